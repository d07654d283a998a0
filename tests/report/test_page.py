"""The page as text: it is one file, holds what it was given, and lets nothing else in."""

import base64
import dataclasses
import hashlib
import importlib.metadata
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report_page import made_page
from tierrank.aggregation.summary import Parameter
from tierrank.report.aggregation import (
    MOST_PLAIN,
    ConnectivityFacts,
    ConvergenceFacts,
    page_html,
    write_page,
)
from tierrank.report.content import PairModel

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
VOID = {"meta", "br", "input", "img"}
HARD_NAMES = [
    "<script>alert(1)</script>", "\"double\" & 'single'", "--></style><img src=x onerror=alert(1)>",
    "שלום עולם", "🦊", "x" * 200, "", "a\nb\tc", "{curly} %s \\",
]  # fmt: skip


class Reader(HTMLParser):
    """The elements of a page, whether they are closed in order, and the cells of its table."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.texts = [], [], {}
        self.items = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))
            if (tag, dict(attributes).get("class")) == ("th", "item"):
                self.items.append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag = self.open[-1][0] if self.open else None
        self.texts.setdefault(tag, []).append(data)
        if any(a.get("class") == "item" for _, a in self.open):
            self.items[-1] += data

    def data(self):
        """What the script is given."""
        (place,) = [place for place, (tag, a) in enumerate(self.scripts) if a.get("type")]
        return json.loads(self.texts["script"][place])

    @property
    def scripts(self):
        return [(tag, attributes) for tag, attributes in self.elements if tag == "script"]

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


def test_the_page_is_whole_and_holds_what_it_was_given(make_page, tmp_path):
    page = make_page(12)
    path = write_page(page, tmp_path / "new" / "report.html", made=MADE)
    text = path.read_text(encoding="utf-8")
    assert text == page_html(page, made=MADE)
    read = Reader(text)
    assert read.texts["title"][0] == "Trees"
    assert read.items[1:] == [row.name for row in page.rows]
    assert len(read.ids()) == len(set(read.ids()))
    links = [a["href"][1:] for tag, a in read.elements if tag == "a"]
    assert links == ["ranking", "pick", "tiers", "pairs", "data", "fit", "settings"]
    assert set(links) <= set(read.ids())
    for said in ("The most probable cuts.", "Two lists compare nothing.", "pl-partition",
                 "2026-01-02 03:04 UTC", importlib.metadata.version("tierrank")):  # fmt: skip
        assert said in text
    (view,) = read.data()["views"]
    assert view["columns"]["log_worth"] == [row.log_worth for row in page.rows]


def test_the_same_page_is_the_same_text(make_page):
    assert page_html(make_page(7), made=MADE) == page_html(make_page(7), made=MADE)


@pytest.mark.parametrize("items", [1, 2, 3, 60, 61, 300])
@pytest.mark.parametrize("bare", [False, True])
def test_any_number_of_items_makes_a_page(make_page, items, bare):
    page = make_page(items, intervals=not bare, tiers=not bare, pairs=not bare)
    read = Reader(page_html(page))
    assert read.items[1:] == [row.name for row in page.rows]
    assert len(read.data()["views"][0]["columns"]["name"]) == items
    dots = [a for tag, a in read.elements if tag == "circle" and a.get("class") == "dot"]
    assert len(dots) == items
    assert ("tiers" in read.ids()) == (not bare)
    assert ("pairs" in read.ids()) == (not bare and items > 1)


def test_names_from_outside_stay_text(make_page):
    names = HARD_NAMES
    page = make_page(len(names), names=names, title=names[2], subtitle=names[0],
                     notes=tuple(names), settings={names[0]: names[2]}, scale=names[1],
                     tier_criterion=names[2])  # fmt: skip
    read = Reader(page_html(page))
    assert read.items[1:] == [name or "(no name)" for name in names]
    tags = {tag for tag, _ in read.elements}
    assert "img" not in tags
    assert [attributes for _, attributes in read.scripts] == [
        {"type": "application/json", "id": "page-data"}, {},
    ]  # fmt: skip
    assert read.data()["views"][0]["columns"]["name"] == names
    assert not any(name.startswith("on") for _, a in read.elements for name in a)


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_name_comes_back_as_it_was_or_with_unwritable_signs_replaced(names):
    text = page_html(made_page(len(names), names=names))
    read = Reader(text.encode("utf-8").decode("utf-8"))
    for name, shown in zip(names, read.items[1:], strict=True):
        if not name.strip():
            assert shown == "(no name)"
        else:
            kept = zip(name, shown, strict=True)
            assert all(b in (a, "\ufffd") for a, b in kept)
            assert all(b == a for a, b in zip(name, shown, strict=True) if a.isalnum())


def test_a_lone_surrogate_can_be_written(make_page, tmp_path):
    path = write_page(make_page(1, names=["\ud800\x00"]), tmp_path / "page.html")
    assert "\ufffd\ufffd" in path.read_text(encoding="utf-8")


def test_the_page_points_to_nothing_outside_and_forbids_it(make_page):
    read = Reader(page_html(make_page(12)))
    for tag, attributes in read.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert "url(" not in attributes.get("style", "")
    (style,) = read.texts["style"]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [a["content"] for _, a in read.elements if a.get("http-equiv")]
    _, script = read.texts["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_what_makes_the_numbers_doubtful_stands_at_the_top(make_page):
    facts = ConnectivityFacts(5, 9, 9, 9.0, 0, 3, 4, False, "ann never lost")
    fit = ConvergenceFacts("L-BFGS", 9, 1.0, False, "9 steps <b>")
    text = page_html(make_page(5, connectivity=facts, convergence=fit))
    start = text.index("<header>")
    head = text[start : text.index("</header>", start)]
    assert "did not converge (stopped by: 9 steps &lt;b&gt;)" in head
    assert "do not compare every item" in head
    assert "ann never lost" in text
    assert "<polyline" not in text
    assert 'class="warning"' not in page_html(make_page(5))


def test_probabilities_of_pairs_stand_in_their_cells(make_page):
    pairs = np.array([[0.5, 0.75, 0.999], [0.25, 0.5, 0.6], [0.001, 0.4, 0.5]])
    text = page_html(make_page(4, pairwise=pairs))
    body = text[text.index('<table class="pairs">') :]
    cells = re.findall(r'<td class="(\w+)"(?: style="--p:(\d+)%")?>([^<]*)</td>', body)
    assert cells == [
        ("self", "", "·"), ("above", "50", "75"), ("above", "100", "&gt;99"),
        ("below", "50", "25"), ("self", "", "·"), ("above", "20", "60"),
        ("below", "100", "&lt;1"), ("below", "20", "40"), ("self", "", "·"),
    ]  # fmt: skip
    assert "of the first 3 items" in text
    assert "in games that one of the two wins" not in text
    tied = page_html(make_page(4, pairwise=pairs, pair_model=PairModel("davidson")))
    assert "in games that one of the two wins" in tied


def test_tiers_name_their_items_and_how_sure_each_cut_is(make_page):
    rows = make_page(4).rows
    tiers = (1, 1, 2, 3)
    rows = tuple(dataclasses.replace(row, tier=t) for row, t in zip(rows, tiers, strict=True))
    text = page_html(make_page(4, rows=rows, cut_probabilities=[0.2, 0.81, 0.63]))
    section = text[text.index('<section id="tiers"') : text.index('<section id="pairs"')]
    assert re.findall(r"<h3>(Tier \d)", section) == ["Tier 1", "Tier 2"]  # 63 % is not enough
    assert re.findall(r"cut with probability (\d+)", section) == ["81"]
    assert re.findall(r"2.items?, ranks \d to \d", section) == [
        "2\xa0items, ranks 1 to 2", "2\xa0items, ranks 3 to 4",
    ]  # fmt: skip
    assert section.count('class="bar cut"') == 1
    assert section.count('class="bar"') == 2
    table = text[text.index("<tbody>") : text.index("</tbody>")]
    assert re.findall(r'scope="rowgroup">(Tier \d)', table) == ["Tier 1", "Tier 2"]
    unclear = page_html(make_page(4, rows=rows, cut_probabilities=[0.2, 0.46, 0.21]))
    assert "The data do not show clear tiers." in unclear
    assert "the most probable one has 46" in unclear
    assert 'class="band"' not in unclear


def test_of_a_catalogue_all_are_in_the_data_and_the_first_also_stand_there_without_scripts(
    make_page,
):
    page = make_page(MOST_PLAIN + 5)
    read = Reader(text := page_html(page))
    assert read.items[1:] == [row.name for row in page.rows[:MOST_PLAIN]]
    assert "5 further items are shown where scripts may run" in text
    assert read.data()["views"][0]["columns"]["name"] == [row.name for row in page.rows]


def test_nothing_is_left_where_a_page_cannot_be_written(make_page, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write_page(make_page(2), tmp_path / "file" / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_was_estimated_beside_the_worths_has_a_section_and_stands_nowhere_else(make_page):
    parameters = (Parameter("slope <b>", -0.25, 0.125, -0.5, 0.0),
                  Parameter("unsure", 2e6, np.nan, np.nan, np.nan))  # fmt: skip
    settings = {"slope <b>": "-0.25, from -0.5 to 0", "prior": "none"}
    text = page_html(make_page(5, parameters=parameters, settings=settings))
    Reader(text)
    section = text[text.index('<section id="parameters"') : text.index('<section id="data"')]
    cells = re.findall(r"<td>(.*?)</td>", section)
    assert cells == [
        "−0.2500", "0.1250", '−0.5000 <span class="to">to</span> 0.0000', "2.000e+06", "", "",
    ]  # fmt: skip
    assert text.count("slope &lt;b&gt;") == 1
    assert 'id="parameters"' not in page_html(make_page(5))
