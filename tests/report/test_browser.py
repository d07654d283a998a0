"""The page as people see it: in a real browser, on a desk and on a phone, by day and by night."""

import dataclasses
import io
from itertools import pairwise

import numpy as np
import pytest

import browser
from tierrank.report.aggregation import ConnectivityFacts, ConvergenceFacts, write_page

DESK, PHONE = 1280, 390
SECTIONS = ["ranking", "pick", "tiers", "pairs", "data", "fit", "settings"]
HARD_NAMES = [
    "<script>document.title = 'taken'</script>", "<img src=http://example.com/x.png>",
    "שלום עולם (ימין)", "🦊 🏳️‍🌈", "x" * 200, "", "many words " * 20, "\u202ebackwards", "plain",
]  # fmt: skip

# Text and what lies behind it, as the browser painted them: any notation, layers mixed.
CONTRASTS = """(() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const mixed = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest("script, title, desc") || !element.checkVisibility()) continue;
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.unshift(getComputedStyle(e).backgroundColor);
    }
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(mixed([...layers, colour])), light(mixed(layers))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([ratio, element.tagName + "." + (element.getAttribute("class") || ""),
                element.textContent.slice(0, 20)]);
  }
  return found;
})()"""

# What sticks out to the right and is not in a box of its own that scrolls.
STICKING_OUT = """[...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll > *") && e.getBoundingClientRect().right > innerWidth + 0.5)
  .map((e) => e.tagName + "." + e.getAttribute("class"))"""


@pytest.fixture
def see(chromium, tmp_path):
    """Open a page at a width; all tabs are closed in the end, and nothing may have complained."""
    tabs = []

    def opened(page, width=DESK, *, dark=False):
        file = write_page(page, tmp_path / f"{len(tabs)}.html")
        tab = chromium.open(file, width=width, dark=dark)
        tabs.append((tab, file))
        return tab

    yield opened
    for tab, file in tabs:
        assert tab.complaints() == []
        assert tab.requests() == [file.as_uri()]
        with tab:
            pass


def pixels(tab):
    from matplotlib.image import imread

    return imread(io.BytesIO(tab.picture()))[..., :3]


def column(tab, name):
    """The cells of a column of the table, from top to bottom."""
    return tab.run(
        "(() => { const table = document.querySelector('.main');"
        "const place = [...table.tHead.rows[0].cells]"
        f".findIndex((cell) => cell.textContent.trim() === {name!r});"
        "return [...table.querySelectorAll('tbody tr:not(.band, .space)')]"
        ".map((row) => row.cells[place].textContent); })()"
    )


def click(tab, name):
    tab.run(
        "[...document.querySelectorAll('.main thead button')]"
        f".find((button) => button.textContent.trim() === {name!r}).click()"
    )


def type_into(tab, selector, text):
    """As a person does: the control has the focus and gets the letters."""
    tab.run(
        f"(() => {{ const it = document.querySelector({selector!r}); it.focus(); it.select(); }})()"
    )
    tab.call("Input.insertText", text=text)


@pytest.mark.parametrize("width", [DESK, PHONE, 320, 768])
@pytest.mark.parametrize("items", [1, 5, 60])
def test_all_sections_are_seen_and_nothing_sticks_out(make_page, see, width, items):
    tab = see(make_page(items), width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(STICKING_OUT) == []
    shown = [name for name in SECTIONS if name not in ("pairs", "pick") or items > 1]
    boxes = tab.run(
        "[...document.querySelectorAll('section')]"
        ".map((section) => [section.id, section.offsetWidth, section.offsetHeight])"
    )
    assert [name for name, _, _ in boxes] == shown
    assert all(box_width > 250 and height > 100 for _, box_width, height in boxes)


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_hard_names_and_endless_intervals_do_no_harm(make_page, see, width):
    page = make_page(
        len(HARD_NAMES), names=HARD_NAMES, title=HARD_NAMES[0] + "y" * 300, subtitle="z" * 300,
        settings={"k" * 100: "v" * 300}, notes=("n" * 300,), tier_criterion="c" * 300,
        scale="s" * 300,
        connectivity=ConnectivityFacts(9, 9, 9, 9.0, 0, 2, 3, False, "w" * 300),
        convergence=ConvergenceFacts("q" * 99, 2, 3.0, False, "p" * 300, (1e300, -1e300)),
    )  # fmt: skip
    endless = dataclasses.replace(page.rows[3], low=-np.inf, high=1e300)
    page = dataclasses.replace(page, rows=(*page.rows[:3], endless, *page.rows[4:]))
    tab = see(page, width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(STICKING_OUT) == []
    assert tab.run("document.title").endswith("y")
    assert tab.run("document.querySelectorAll('script:not([type])').length") == 1
    assert tab.run("document.querySelectorAll('script').length") == 2  # the data, which never run
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.run("document.querySelectorAll('.beyond').length") == 2
    names = tab.run("[...document.querySelectorAll('.items tbody .item')].map(e => e.textContent)")
    assert names == [name or "(no name)" for name in HARD_NAMES]


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_dots_and_lines_stand_where_the_ticks_say(make_page, see, width):
    page = make_page(12)
    tab = see(page, width)
    ticks = tab.run(
        "[...document.querySelectorAll('.ticks text')].map((t) => { const box ="
        "t.getBoundingClientRect(); return [t.textContent, (box.left + box.right) / 2]; })"
    )
    labels = [float(label.replace("−", "-")) for label, _ in ticks]
    slope, start = np.polyfit(labels, [place for _, place in ticks], 1)
    drawn = np.array(
        tab.run(
            "[...document.querySelectorAll('.dot')].map((dot) => { const d ="
            "dot.getBoundingClientRect(), w = dot.parentNode.querySelector('.whisker');"
            "const x = w.parentNode.getBoundingClientRect().left;"
            "return [(d.left + d.right) / 2, x + w.x1.baseVal.value, x + w.x2.baseVal.value]; })"
        )
    )
    meant = np.array([[row.log_worth, row.low, row.high] for row in page.rows])
    assert np.abs(drawn - (start + slope * meant)).max() < 1.5  # pixels
    assert drawn[0, 0] > drawn[1, 0]
    assert drawn[0, 0] - drawn[-1, 0] > width / 4


def test_a_click_on_a_heading_sorts_and_another_turns_the_order(make_page, see):
    names = [f"item {number}" for number in (10, 9, 2, 33, 1)]
    page = make_page(5, names=names)
    rows = [dataclasses.replace(row, top_k=None) if place == 1 else row
            for place, row in enumerate(page.rows)]  # fmt: skip
    tab = see(dataclasses.replace(page, rows=tuple(rows)))
    assert column(tab, "item") == names
    click(tab, "item")
    assert column(tab, "item") == [f"item {number}" for number in (1, 2, 9, 10, 33)]
    click(tab, "item")
    assert column(tab, "item") == [f"item {number}" for number in (33, 10, 9, 2, 1)]
    click(tab, "log-worth")
    assert column(tab, "rank") == ["1", "2", "3", "4", "5"]
    click(tab, "log-worth")
    assert column(tab, "rank") == ["5", "4", "3", "2", "1"]
    for _ in range(2):  # what is missing stays last, whichever the order
        click(tab, "in the top 1, %")
        assert column(tab, "in the top 1, %")[-1] == ""
    sorted_by = "[...document.querySelectorAll('[aria-sort]')].map((e) => e.textContent.trim())"
    assert tab.run(sorted_by) == ["in the top 1, %"]


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_text_is_easy_to_tell_from_what_lies_behind_it(make_page, see, width, dark):
    doubtful = {
        "connectivity": ConnectivityFacts(20, 9, 9, 9.0, 0, 2, 3, False, "ann never lost"),
        "convergence": ConvergenceFacts("Newton", 2, 3.0, False, "steps", (3.0, 2.0, 1.0)),
    }
    tab = see(make_page(20, pairwise=np.linspace(0, 1, 400).reshape(20, 20), **doubtful), width,
              dark=dark)  # fmt: skip
    found = tab.run(CONTRASTS)
    assert len(found) > 500
    assert min(found)[0] >= 4.5, min(found)  # WCAG 2, level AA


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_day_and_night_are_painted_and_differ(make_page, see, width):
    page = make_page(12)
    day, night = pixels(see(page, width)), pixels(see(page, width, dark=True))
    assert day.shape == night.shape
    assert day.shape[1] == width
    assert day.mean() > 0.85
    assert night.mean() < 0.25
    for picture in (day, night):
        bands = np.array_split(picture, 20)
        assert all(band.std() > 0.01 for band in bands)  # nowhere blank


def test_of_a_thousand_items_rows_are_made_when_they_are_seen_and_all_can_be_found(make_page, see):
    tab = see(make_page(1000), PHONE)
    made = "document.querySelectorAll('.main tbody tr:not(.space, .band)').length"
    assert 50 <= tab.run(made) < 300
    whole = tab.run("document.documentElement.scrollHeight")
    assert whole > 1000 * 30
    tab.run("scrollTo(0, document.querySelector('.main').offsetHeight * 0.7)")
    tab.run("new Promise((done) => setTimeout(done, 300))")
    seen = tab.run(
        "[...document.querySelectorAll('.main tbody tr:not(.space)')].filter((row) => { const box ="
        "row.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; }).length"
    )
    assert seen >= 5
    assert tab.run(made) < 300
    type_into(tab, "input[type=search]", "item 777")
    assert column(tab, "item") == ["item 777"]
    assert tab.run("document.documentElement.scrollWidth") <= PHONE


def test_on_paper_all_is_unfolded_and_light(make_page, see):
    tab = see(make_page(700), dark=True)
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("[...document.querySelectorAll('details')].every((fold) => fold.open)")
    assert column(tab, "item") == [f"item {number}" for number in range(1, 701)]
    assert pixels(tab).mean() > 0.85
    assert tab.run("getComputedStyle(document.querySelector('.scroll')).maxHeight") == "none"


def test_without_scripts_the_page_shows_the_same_items(make_page, chromium, tmp_path):
    file = write_page(make_page(12), tmp_path / "page.html")
    with chromium.open(file, width=DESK, scripts=False) as tab:
        assert column(tab, "item") == [f"item {number}" for number in range(1, 13)]
        assert tab.run("document.querySelectorAll('button').length") == 0


def test_pictures_have_names_for_those_who_do_not_see_them(make_page, see):
    tab = see(make_page(12))
    tree = tab.call("Accessibility.getFullAXTree")["nodes"]
    images = [node["name"]["value"] for node in tree if node["role"]["value"] in ("image", "img")]
    page = make_page(12)
    for row in page.rows:
        assert any(name.startswith(f"{row.name}: log-worth") for name in images)
    assert "The objective, step by step" in " ".join(images)
    assert all(images)
    levels = tab.run(
        "[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_the_browser_sees_what_is_wrong_with_a_bad_page(chromium, tmp_path):
    """The tests above would notice: a probe that never complains proves nothing."""
    file = tmp_path / "bad.html"
    file.write_text(
        "<body style='background:#fff'><p style='width:2000px;color:#ccc'>wide and pale</p>"
        "<img src='missing.png'><script>missing()</script>"
    )
    with chromium.open(file, width=PHONE) as tab:
        assert tab.run("document.documentElement.scrollWidth") > PHONE
        assert any("P." in name for name in tab.run(STICKING_OUT.replace("innerWidth", "390")))
        assert min(tab.run(CONTRASTS))[0] == pytest.approx(1.606, abs=0.01)
        assert len(tab.requests()) == 2
        assert any("missing is not defined" in said for said in tab.complaints())


def test_what_the_browser_refuses_is_an_error(chromium):
    with pytest.raises(browser.BrowserError, match=r"Nothing\.such"):
        chromium.call("Nothing.such")
