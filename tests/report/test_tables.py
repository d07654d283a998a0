"""Tables of standings, and curves as CSV."""

import csv
import io
import json

import pytest
from rich.console import Console

from tierrank.ranking.comparison import Standing
from tierrank.report.tables import (
    csv_text,
    curve_csv,
    standings_csv,
    standings_json,
    standings_table,
)
from tierrank.training import History

ONE = [Standing("m", "map", 7, 0.5, 0.4, 0.6), Standing("m", "err", 7, 0.2, 0.1, 0.3)]
TWO = [
    Standing("first", "map", 7, 0.5, 0.4, 0.6),
    Standing("a model [with brackets]", "map", 7, 0.75, 0.6, 0.9, 0.25, 0.1, 0.4, 0.0004),
    Standing("third", "map", 7, 0.45, 0.3, 0.6, -0.05, -0.2, 0.1, 0.25),
]


def shown(table, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    return console.file.getvalue()


def test_one_ranker_has_a_row_a_metric_and_no_differences():
    text = shown(standings_table(ONE, title="data"))
    assert "map" in text
    assert "0.2000  0.1000 0.3000" in text
    assert "first" not in text


def test_differences_are_signed_and_small_p_values_are_not_written_out():
    text = shown(standings_table(TWO, title="data"))
    assert "a model [with brackets]" in text
    assert "+0.2500  +0.1000 +0.4000  <0.001" in text
    assert "-0.0500  -0.2000 +0.1000   0.250" in text
    assert "map" in text.splitlines()[1]  # the metric is the heading


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("metrics", [1, 2])
def test_a_table_fits_the_width(width, metrics):
    standings = [
        Standing(each.name, name, *list(vars(each).values())[2:])
        for name in ("ndcg@10", "map")[:metrics]
        for each in TWO
    ]
    lines = shown(standings_table(standings, title="some data"), width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("-0.0500" in line for line in lines) == metrics
    assert not any("…" in line for line in lines)  # nothing is cut off


@pytest.mark.parametrize("width", range(30, 100, 5))
@pytest.mark.parametrize("metrics", [1, 2])
def test_narrow_tables_say_which_columns_they_leave_out_and_cut_nothing(width, metrics):
    standings = [
        Standing(each.name, name, *list(vars(each).values())[2:])
        for name in ("ndcg@10", "map")[:metrics]
        for each in TWO
    ]
    more = {"fits": {"first": "3 min 20 s"}}
    text = shown(standings_table(standings, title="d", more=more, width=width), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    headings = text.splitlines()[1]
    said = " ".join(text.partition("No room for ")[2].split()).partition(":")[0].split(", ")
    assert "ranker" in headings
    assert "0.7500" in text
    assert (headings.count("95% interval") == 2) != ("95% interval" in said)
    for heading, cell in (("− first", "-0.0500"), ("p", "<0.001"), ("fits", "3 min 20 s")):
        assert (cell in text) != (heading in said)


def test_more_columns_go_to_the_right():
    text = shown(standings_table(TWO, title="x", more={"fits": {"first": "3 s", "third": "9 s"}}))
    assert "fits" in text
    assert text.splitlines()[3].rstrip().endswith("3 s")


def test_csv_and_json_say_the_same():
    rows = list(csv.DictReader(io.StringIO(standings_csv(TWO))))
    whole = json.loads(standings_json(TWO, data="x"))
    assert whole["data"] == "x"
    for row, result in zip(rows, whole["results"], strict=True):
        assert {key: row[key] or None for key in row} == {
            key: None if value is None else str(value) for key, value in result.items()
        }
    assert float(rows[1]["p_value"]) == 0.0004


def test_a_curve_is_a_row_a_step():
    history = History("epoch", "ndcg@10")
    history.add(1, 0.1 + 0.2, 0.5)
    history.add(2, None, None)
    assert curve_csv(history) == ("epoch,loss,valid ndcg@10\n1,0.30000000000000004,0.5\n2,,\n")


FORMULAS = ["=1+1", "+49 30", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1+1",
            '="a","b"', "-", "--x"]  # fmt: skip
HARMLESS = ["ann", "", "a=b", "1+1", "'=1", "-0.57", "+3", "-12", 'say "no"', "a, b", "two\nlines"]


def read_csv(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_text_that_a_spreadsheet_would_compute_is_made_text_and_numbers_stay_numbers():
    rows = [[text, -0.57, 3, None] for text in FORMULAS]
    text = csv_text(rows)
    assert read_csv(text) == [[f"'{text}", "-0.57", "3", ""] for text in FORMULAS]
    assert text.count("\"'") == len(FORMULAS)  # and quoted
    assert read_csv(csv_text([HARMLESS])) == [HARMLESS]


def test_raw_csv_gives_every_text_back():
    assert read_csv(csv_text([FORMULAS, HARMLESS], raw=True)) == [FORMULAS, HARMLESS]
    first = Standing("=model", "map", 7, 0.5, 0.4, 0.6)
    assert read_csv(standings_csv([first]))[1][0] == "'=model"
    assert read_csv(standings_csv([first], raw=True))[1][0] == "=model"
