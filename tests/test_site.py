"""The site: where its links lead, what is found from the front page, and what axe says of it."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

import browser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = DOCS / "_build" / "html"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="make docs has not run here")

# What people ask, and words of the page that answers it.
QUESTIONS = {
    "weights of queries": ("how-to/query-weights.html", "weights="),
    "export to a search engine": ("how-to/search-engine.html", "Elasticsearch"),
    "tied scores in NDCG": ("how-to/tied-scores.html", 'ties="input"'),
    "P(A beats B) with an interval": ("how-to/new-lists.html", "level=0.95"),
    "position bias": ("how-to/position-bias.html", "positions="),
    "several machines": ("how-to/several-machines.html", "torchrun"),
    "categorical features": ("how-to/categories.html", "categories="),
    "an item that always wins": ("how-to/always-wins.html", "prior="),
    "warm start": ("how-to/warm-start.html", "init_model="),
    "probabilities for new lists": ("how-to/new-lists.html", "log_prob"),
    "labels out of a million": ("extreme.html", "ExtremeRanker"),
    "rated responses of a language model": ("preference.html", "dpo_loss"),
    "votes for one of two models": ("paired-ties.html", "PairedTies"),
}


class Page(HTMLParser):
    """Links, anchors and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}

    def handle_data(self, data):
        self.text += data


def targets(page: Path, links: list[str]) -> list[tuple[Path, str]]:
    """Files of this site that links lead to, and the anchors there."""
    found = []
    for link in links:
        parts = urlparse(link)
        if not parts.scheme and not parts.netloc:
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            found.append((path, unquote(parts.fragment)))
    return found


@pytest.fixture(scope="module")
def pages():
    paths = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    return {path: Page(path) for path in paths}


@pytest.mark.slow  # after make docs
@built
def test_every_link_of_the_site_leads_somewhere(pages):
    lost = [
        f"{page.relative_to(SITE)}: {target}#{anchor}"
        for page, content in pages.items()
        for target, anchor in targets(page, content.links)
        if not target.exists()
        or (anchor and target in pages and anchor not in pages[target].anchors | {"top"})
    ]
    assert lost == []


@pytest.mark.slow  # after make docs
@built
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_answered_at_most_two_clicks_from_the_front_page(question, pages):
    answer, said = QUESTIONS[question]
    front = SITE / "index.html"
    once = {target for target, _ in targets(front, pages[front].links) if target in pages}
    twice = {
        target for page in once for target, _ in targets(page, pages[page].links) if target in pages
    }
    assert SITE / answer in once | twice
    assert said in pages[SITE / answer].text


@pytest.mark.slow  # after make docs
@built
@pytest.mark.skipif(not browser.find(), reason="no chromium here")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "page", ["index", "how-to/tied-scores", "generated/tierrank.RankAggregator", "gallery/index"]
)
def test_a_page_has_no_violation_that_axe_knows_of_and_is_no_wider_than_the_screen(page, width):
    axe = pytest.importorskip("axe_core_python")
    script = next(Path(axe.__file__).parent.glob("*.js")).read_text(encoding="utf-8")
    with (
        browser.Browser(browser.find()) as there,
        there.open(SITE / f"{page}.html", width=width) as tab,
    ):
        tab.run(script + "; 0")
        found = tab.run("axe.run().then(found => found.violations.map("
                        "each => [each.id, each.nodes.map(node => node.html)]))")  # fmt: skip
        assert found == []
        assert tab.run("document.documentElement.scrollWidth") <= width


def test_there_is_an_example_for_each_job_with_a_title_and_a_picture():
    assert len(EXAMPLES) >= 12
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert re.match(r'"""\n[^\n]+\n=+\n\n', text), path.name
        assert "plt.show()" in text, path.name


def test_pages_and_readme_link_to_files_that_are_there():
    lost = []
    for page in [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CODE_OF_CONDUCT.md",
                 *DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")]:  # fmt: skip
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path = link.partition("#")[0]
            if not urlparse(link).scheme and path and not (page.parent / path).exists():
                lost.append(f"{page.name}: {link}")
    assert [each for each in lost if "gallery/" not in each] == []


def test_how_to_pages_are_all_listed():
    listed = (DOCS / "how-to.md").read_text(encoding="utf-8")
    for page in DOCS.glob("how-to/*.md"):
        assert f"(how-to/{page.name})" in listed
        assert f"\nhow-to/{page.stem}\n" in listed
