"""What people do with the page: search, sort, filter, link, download, compare; by keyboard."""

import csv
import dataclasses
import importlib.resources
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

import tierrank as tr
from tierrank.aggregation.paired import PairedTies
from tierrank.report.aggregation import write_page
from tierrank.report.content import Deviation, FitCheck, TimeCurves
from tierrank.report.from_fit import page_of
from votes import drawn_rankings

DESK, PHONE = 1280, 390
HARD_NAMES = [
    "<script>document.title = 'taken'</script>", "<img src=x onerror=\"document.title='taken'\">",
    "=1+1", "</script><b>", "a&b=c#d", "שלום", "comma, \"quoted\"", "--> ${x}",
]  # fmt: skip


@pytest.fixture
def see(chromium, tmp_path):
    tabs = []

    def opened(page, width=DESK, **options):
        file = write_page(page, tmp_path / f"{len(tabs)}.html")
        tab = chromium.open(file, width=width, **options)
        tabs.append((tab, file))
        return tab

    yield opened
    for tab, file in tabs:
        assert tab.complaints() == []
        assert set(tab.requests()) <= {file.as_uri()}
        with tab:
            pass


def names(tab):
    return tab.run(
        "[...document.querySelectorAll('.view:not([hidden]) .main tbody tr:not(.band) bdi')]"
        ".map((name) => name.textContent)"
    )


def text(tab, selector):
    return tab.run(f"document.querySelector({selector!r}).textContent")


def type_into(tab, label, words):
    """Into the control with this label, as a person does."""
    tab.run(
        "document.getElementById([...document.querySelectorAll('.view:not([hidden]) label')]"
        f".find((label) => label.textContent === {label!r}).htmlFor).focus()"
    )
    tab.run("document.activeElement.select()")
    tab.call("Input.insertText", text=words)


def choose(tab, label, value):
    tab.run(
        "(() => { const it = document.getElementById([...document.querySelectorAll('label')]"
        f".find((label) => label.textContent === {label!r}).htmlFor); it.value = {value!r};"
        "it.dispatchEvent(new Event('change')); })()"
    )


KEYS = {"Tab": 9, "Enter": 13, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39,
        "ArrowDown": 40, "Escape": 27}  # fmt: skip


def press(tab, key, times=1):
    written = {"Enter": "\r", " ": " "}.get(key)
    for _ in range(times):
        for kind in ("keyDown", "keyUp"):
            given = {"text": written} if written and kind == "keyDown" else {}
            tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode=KEYS[key], **given)  # fmt: skip


def grouped(page):
    rows = [
        dataclasses.replace(row, group="odd" if place % 2 else "even",
                            link="https://example.com/?a=1&b=2" if place == 0 else "")
        for place, row in enumerate(page.rows)
    ]  # fmt: skip
    return dataclasses.replace(page, rows=tuple(rows))


def test_search_and_filters_show_what_is_asked_for_and_say_how_much(make_page, see):
    page = grouped(make_page(12))
    tab = see(page)
    everybody = [row.name for row in page.rows]
    assert names(tab) == everybody
    assert text(tab, "[role=status]") == "12 items"
    type_into(tab, "Search", "ITEM 1")
    assert names(tab) == ["item 1", "item 10", "item 11", "item 12"]
    assert text(tab, "[role=status]") == "4 of 12 items"
    choose(tab, "Group", "odd")
    assert names(tab) == ["item 10", "item 12"]
    type_into(tab, "Search", "")
    assert names(tab) == everybody[1::2]
    type_into(tab, "Least lists", "40")
    assert names(tab) == [row.name for row in page.rows[1::2] if row.games >= 40]
    type_into(tab, "Search", "nobody")
    assert names(tab) == []
    assert "No item of 12 is like this" in text(tab, "[role=status]")


def test_a_view_stands_in_the_address_and_comes_back_from_it(make_page, chromium, tmp_path):
    page = grouped(make_page(12, names=[*HARD_NAMES, *"wxyz"]))
    file = write_page(page, tmp_path / "page.html")
    with chromium.open(file, width=DESK) as tab:
        type_into(tab, "Search", "a")
        choose(tab, "Group", "even")
        tab.run("document.querySelector('.main [data-key=games] button').click()")
        type_into(tab, "One", HARD_NAMES[4])
        type_into(tab, "The other", HARD_NAMES[0])
        shown, address = names(tab), tab.run("location.href")
        said = text(tab, ".said")
        assert "#find=a&group=even&sort=games&order=descending" in address
    with chromium.open(file, width=DESK) as tab:
        tab.run(f"location.href = {address!r}")
        tab.run("new Promise((done) => setTimeout(done, 100))")
        assert names(tab) == shown
        assert text(tab, ".said") == said
        assert tab.run("document.querySelector('input[type=search]').value") == "a"
        assert tab.run("document.title") == "Trees"
        tab.run("location.hash = '#sort=nothing&order=<b>&least=x&view=%00&find=%3Cimg%3E'")
        tab.run("new Promise((done) => setTimeout(done, 100))")
        assert names(tab) == []  # there is an <img src=…, but no <img>
        assert tab.run("document.querySelectorAll('img').length") == 0
        assert tab.complaints() == []


def downloaded(tab, kind):
    """The text that a button hands to the browser to keep."""
    tab.run(
        "window.kept = new Promise((done) => { const made = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then(done);"
        "URL.createObjectURL = made; return made.call(URL, blob); }; }); 0"
    )
    tab.run(
        "[...document.querySelectorAll('.view:not([hidden]) .buttons button')]"
        f".find((button) => button.textContent === {kind!r}).click()"
    )
    return tab.run("window.kept")


def test_what_is_shown_can_be_downloaded_and_a_spreadsheet_runs_no_formula(make_page, see):
    page = grouped(make_page(8, names=HARD_NAMES))
    tab = see(page)
    choose(tab, "Group", "even")
    rows = list(csv.DictReader(io.StringIO(downloaded(tab, "CSV"))))
    assert [row["item"] for row in rows] == [
        "'" + name if name.startswith("=") else name for name in HARD_NAMES[::2]
    ]
    whole = json.loads(downloaded(tab, "JSON"))
    assert whole["title"] == "Trees"
    assert [row["item"] for row in whole["results"]] == HARD_NAMES[::2]
    for row, kept, shown in zip(page.rows[::2], whole["results"], rows, strict=True):
        assert kept["log_worth"] == row.log_worth == float(shown["log_worth"])
        assert kept["low"] == pytest.approx(row.low, rel=1e-6)
        assert [kept[name] for name in ("games", "wins", "ties", "losses")] == [
            row.games, row.wins, row.ties, row.losses,
        ]  # fmt: skip
        assert kept["rank"] == int(shown["rank"]) == page.rows.index(row) + 1


def test_cells_of_the_download_are_those_of_the_command_line(make_page, see):
    from tierrank.report.tables import csv_text

    cells = [
        "=1",
        "+1",
        "+1.5",
        "-x",
        "@a",
        "＝1",
        "\t1",
        "a,b",
        'a"b',
        "a\nb",
        "plain",
        "",
        "-",
        "−1",
    ]
    tab = see(make_page(2))
    for cell in cells:
        assert tab.run(f"csvCell({json.dumps(cell)})") == csv_text([[cell]]).removesuffix("\n")


def test_numbers_are_the_same_with_and_without_scripts(make_page, see, chromium, tmp_path):
    page = make_page(40, top_k=3)
    cells = "[...document.querySelectorAll('.main tbody :is(th, td)')].map((c) => c.textContent)"
    drawn = (
        "[...document.querySelectorAll('.main tbody svg')].map((e) => e.getAttribute('aria-label'))"
    )
    places = "[...document.querySelectorAll('.main circle')].map((e) => e.getAttribute('cx'))"
    tab = see(page)
    file = write_page(page, tmp_path / "plain.html")
    with chromium.open(file, width=DESK, scripts=False) as plain:
        for looked_at in (cells, drawn, places):
            assert tab.run(looked_at) == plain.run(looked_at)


def test_all_of_it_works_with_the_keyboard_alone(make_page, see):
    tab = see(make_page(12))
    press(tab, "Tab")  # how to read this
    press(tab, "Enter")
    assert tab.run("document.querySelector('.reading').open")
    reached = []
    for _ in range(60):
        press(tab, "Tab")
        reached.append(tab.run(
            "(() => { const it = document.activeElement; const label = it.labels?.[0];"
            "return (label ?? it).textContent.trim().slice(0, 20) || it.className; })()"
        ))  # fmt: skip
        if reached[-1] == "item":
            press(tab, "Enter")
            assert tab.run("document.activeElement.closest('th').getAttribute('aria-sort')") == (
                "ascending"
            )
            press(tab, " ")
            assert names(tab)[0] == "item 12"
    for each in ("Search", "Least lists", "More columns", "CSV", "JSON", "rank", "log-worth",
                 "One", "The other", "Swap"):  # fmt: skip
        assert any(there.startswith(each) for there in reached), (each, reached)
    # the matrix is one stop, and arrows walk in it
    cells = "document.querySelectorAll('.pairs td[tabindex=\"0\"]').length"
    assert tab.run(cells) == 1
    tab.run("document.querySelector('.pairs td[tabindex=\"0\"]').focus()")
    press(tab, "ArrowRight", 2)
    press(tab, "ArrowDown")
    hint = text(tab, ".hint")
    assert hint.startswith("item 2 above item 4:")
    assert not tab.run("document.querySelector('.hint').hidden")
    assert tab.run("document.activeElement.getAttribute('aria-label')") == hint
    press(tab, "Enter")
    assert text(tab, ".main-chance").startswith("item 2 stands above item 4 with probability")
    press(tab, "Escape")
    assert tab.run("document.querySelector('.hint').hidden")
    assert tab.run(cells) == 1


def test_a_cell_says_what_was_seen_of_its_two(make_page, see):
    page = make_page(6)
    tab = see(page)
    met = page.pair_counts.table(6)
    for one, two in ((0, 1), (1, 0), (0, 2), (3, 5)):
        label = tab.run(
            f"document.querySelector('.pairs tbody').rows[{one}].cells[{two + 1}].ariaLabel"
        )
        wins, ties, losses = met[one, two].astype(int).tolist()
        told = f"seen {wins} won, {ties} tied, {losses} lost"
        assert label.endswith(told if met[one, two].any() else "they never met")


@pytest.fixture(scope="module")
def fits():
    random = np.random.default_rng(0)
    strong = dict(zip("abcdef", (1.2, 0.5, 0.1, 0.0, -0.6, -1.0), strict=True))
    rows = []
    for _ in range(400):
        one, two = random.permutation(list(strong))[:2].tolist()
        lead = strong[one] - strong[two] + random.logistic()
        rows.append((one, two, 0 if abs(lead) < 0.5 else int(np.sign(lead))))
    games = tr.data.Games.from_rows(rows)
    _, rankings = drawn_rankings(seed=3, items=6, lists=200, length=4, most_tied=2)
    return {
        "davidson": PairedTies().fit(games),
        "rao-kupper": PairedTies("rao-kupper").fit(games),
        "bradley-terry": PairedTies("bradley-terry", ties="half").fit(games),
        "plackett-luce": tr.RankAggregator().fit(rankings),
    }


@pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry", "plackett-luce"])
def test_the_page_computes_what_predict_proba_gives(fits, see, model):
    fitted = fits[model]
    page = page_of(fitted, title="Games", level=0.9)
    tab = see(page)
    order = fitted.ranking()
    for one, two in ((0, 1), (1, 0), (0, 5), (4, 2)):
        found = tab.run(f"new Pairs(views[0].ranking).chances({one}, {two})")
        given = fitted.predict_proba(order[one], order[two], level=0.9)
        if model == "plackett-luce":
            given = [given, None, fitted.predict_proba(order[two], order[one], level=0.9)]
        for mine, theirs in zip(found, given, strict=True):
            if mine is not None:
                # standard errors are packed into two bytes
                assert [mine["p"], mine["low"], mine["high"]] == pytest.approx(
                    list(theirs), abs=2e-5
                )


def test_two_that_are_picked_are_told_with_their_games_and_what_a_tie_says(fits, see):
    fitted = fits["davidson"]
    page = page_of(fitted, title="Games")
    tab = see(page)
    best, second = page.rows[0].name, page.rows[1].name
    win, tie, loss = (round(100 * each) for each in fitted.predict_proba(best, second))
    assert text(tab, ".main-chance").startswith(f"{best} beats {second} with probability {win}")
    assert f"A tie: {tie}" in text(tab, ".said")
    wins, ties, losses = page.pair_counts.table(2)[0, 1].astype(int).tolist()
    assert (
        f"They met in {wins + ties + losses} games: {best} won {wins}, {ties} tied, {second} "
        f"{losses}." in text(tab, ".said")
    )
    assert "it says two are close" in text(tab, ".said")
    tab.run("document.querySelector('#pick button').click()")
    assert text(tab, ".main-chance").startswith(f"{second} beats {best} with probability {loss}")
    type_into(tab, "One", "nobody <b>")
    press(tab, "Tab")
    assert "There is no item “nobody <b>”" in text(tab, ".said")
    assert tab.run("document.querySelectorAll('.said b').length") == 0
    type_into(tab, "One", best)
    assert "Both are the same item" in text(tab, ".said")


def test_several_rankings_are_tabs_each_with_its_own_view(make_page, see):
    pages = {"All <b>": make_page(12), "Long": make_page(5, names=list("vwxyz")), "&": make_page(1)}
    tab = see(pages)
    chosen = "[...document.querySelectorAll('[role=tab]')].map((tab) => tab.ariaSelected)"
    assert tab.run(chosen) == ["true", "false", "false"]
    assert len(names(tab)) == 12
    tab.run("document.querySelectorAll('[role=tab]')[0].focus()")
    press(tab, "ArrowRight")
    assert tab.run(chosen) == ["false", "true", "false"]
    assert names(tab) == list("vwxyz")
    assert tab.run("location.hash") == "#view=Long"
    press(tab, "ArrowRight")
    assert names(tab) == ["item 1"]
    press(tab, "ArrowRight")
    assert tab.run("document.activeElement.textContent") == "All <b>"
    ids = tab.run("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    tab.run("location.hash = '#view=Long&find=w'")
    tab.run("new Promise((done) => setTimeout(done, 100))")
    assert names(tab) == ["w"]


def curves_and_check(items):
    periods = tuple(f"2020-{month:02}" for month in range(1, 13))
    way = np.cumsum(np.random.default_rng(0).normal(size=(items, 12)), axis=1)
    way[1, :3] = np.nan
    labels = tuple(f"item {number + 1}" for number in range(items))
    return {
        "curves": TimeCurves(periods, labels, way, way - 0.5, way + 0.5),
        "fit_check": FitCheck(
            "The data do not contradict one worth an item (p = 0.4).",
            tuple((x, min(1.0, x + 0.02), 50.0) for x in np.linspace(0.5, 0.95, 9)),
            (Deviation("item 1", "<b>item 2", 12.0, 0.25, 0.75, -3.1, 0.04),),
            (("item 1", "<i>", "item 3"),), "1 of 9 triples.",
        ),
    }  # fmt: skip


def test_curves_through_time_are_drawn_and_can_be_chosen(make_page, see):
    tab = see(make_page(12, **curves_and_check(9)))
    seen = "[...document.querySelectorAll('#curves g')].map((each) => !each.hasAttribute('hidden'))"
    assert tab.run(seen) == [True] * 6 + [False] * 3
    tab.run("document.querySelectorAll('#curves input')[7].click()")
    tab.run("document.querySelectorAll('#curves input')[0].click()")
    assert tab.run(seen) == [False, *[True] * 5, False, True, False]
    assert tab.run("document.querySelectorAll('#curves .line')[1].getAttribute('d')").startswith(
        "M27."
    )
    assert "item 1 over <b>item 2" in " ".join(text(tab, "#check").split())


def axe():
    """The source of axe-core: the one at $TIERRANK_AXE, or that of the test extra."""
    if given := os.environ.get("TIERRANK_AXE"):
        return Path(given).read_text(encoding="utf-8")
    try:
        return importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    except ModuleNotFoundError:
        pytest.skip("there is no axe-core here: pip install axe-core-python")


@pytest.mark.parametrize(
    ("width", "dark"),
    [(DESK, False), pytest.param(PHONE, True, marks=pytest.mark.slow),
     pytest.param(DESK, True, marks=pytest.mark.slow),
     pytest.param(PHONE, False, marks=pytest.mark.slow)],
)  # fmt: skip
def test_axe_finds_nothing_wrong(make_page, chromium, tmp_path, width, dark):
    rows = grouped(make_page(40)).rows
    page = make_page(40, rows=rows, command="tierrank aggregate votes.csv", **curves_and_check(9))
    wide = dataclasses.replace(rows[3], low=-9.0, high=9.0)
    page = dataclasses.replace(page, rows=(*rows[:3], wide, *rows[4:]))
    file = write_page({"All": page, "Some": make_page(400)}, tmp_path / "page.html")
    with chromium.open(file, width=width, dark=dark) as tab:
        tab.run(axe() + ";0")
        for prepare in ("document.querySelector('.reading').open = true", "showView(1)"):
            tab.run(prepare + ";0")
            found = tab.run(
                "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations"
                ".map((each) => [each.id, each.nodes.length, each.nodes[0].html,"
                "each.nodes[0].failureSummary]))"
            )
            assert found == []


@pytest.mark.slow
def test_five_thousand_items_are_a_small_page_that_scrolls(make_page, see, tmp_path):
    page = make_page(5000, names=[f"a model of some name, number {n}" for n in range(5000)])
    file = write_page(page, tmp_path / "large.html")
    assert file.stat().st_size < 3_000_000
    tab = see(page)
    made = "document.querySelectorAll('.main tbody tr:not(.band, .space)').length"
    for part in (0.1, 0.5, 0.9, 1.0):
        tab.run(f"scrollTo(0, {part} * document.querySelector('.main').offsetHeight)")
        tab.run("new Promise((done) => setTimeout(done, 200))")
        assert tab.run(made) < 400
        assert tab.run(
            "document.elementFromPoint(400, 450).closest('tr:not(.space), section') !== null"
        )
    type_into(tab, "Search", "number 4999")
    assert names(tab) == ["a model of some name, number 4999"]
