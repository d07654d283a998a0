"""A ranking as a table, CSV and JSON: the same numbers, whatever stands in the names."""

import csv
import dataclasses
import io
import json
import math
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from report_page import made_page
from tierrank.aggregation.summary import Parameter
from tierrank.report.content import percent
from tierrank.report.tables import (
    WORTH_COLUMNS,
    printable,
    summary_lines,
    worth_csv,
    worth_json,
    worth_table,
)

NAMES = ["plain", 'with "quotes", and a comma', "two\nlines", "", "[red]markup[/]"]


def printed(page, top=None, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(worth_table(page, top))
    return console.file.getvalue()


def test_csv_gives_every_number_back():
    page = made_page(5, names=NAMES)
    rows = list(csv.DictReader(io.StringIO(worth_csv(page))))
    assert list(rows[0]) == list(WORTH_COLUMNS)
    for place, (row, item) in enumerate(zip(rows, page.rows, strict=True)):
        assert row["item"] == item.name
        assert int(row["rank"]) == place + 1
        for name in ("log_worth", "low", "high", "worth", "tier", "expected_rank", "top_k"):
            assert float(row[name]) == getattr(item, name)
    assert [row["cut_below"] for row in rows][-1] == ""
    assert float(rows[0]["cut_below"]) == page.cut_probabilities[0]


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80])
def test_a_narrow_table_says_which_columns_it_leaves_out_and_cuts_nothing(width):
    page = made_page(5, names=["ann", "a name of two lines", "cy", "日本語の名前です", "dee"])
    console = Console(file=io.StringIO(), width=width)
    console.print(worth_table(page, None, width))
    text = console.file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    headings, _, said = text.partition("No room for ")
    headings, said = headings.splitlines()[0].split(), said.replace("\n", " ")
    assert "item" in headings
    for heading in ("log-worth", "interval", "rank", "worth", "tier", "ranks"):
        assert (heading in headings) != (re.search(rf"(?<![-\w]){heading}\b", said) is not None)


def test_json_has_no_number_that_json_has_not():
    page = made_page(3)
    first = dataclasses.replace(page.rows[0], high=math.inf)
    page = dataclasses.replace(page, rows=(first, *page.rows[1:]))
    page = dataclasses.replace(page, parameters=(Parameter("log v", 0.1, 0.2, -0.3, 0.5),))
    text = worth_json(page, file="x.csv")
    found = json.loads(text, parse_constant=lambda word: 1 / 0)
    assert found["file"] == "x.csv"
    assert found["results"][0]["high"] is None
    assert found["results"][1]["high"] == page.rows[1].high
    assert found["parameters"][0]["low"] == -0.3
    assert found["fit"]["history"] == [90.5, 60.25, 55.0, 54.5]


def test_the_table_has_only_columns_with_values_and_only_the_rows_asked_for():
    whole = printed(made_page(12))
    assert whole.splitlines()[0].split()[-4:] == ["tier", "ranks", "top", "1"]
    assert max(map(len, whole.splitlines())) <= 80
    bare = printed(made_page(12, intervals=False, tiers=False, top_k=None, rows=tuple(
        dataclasses.replace(row, top_k=None)
        for row in made_page(12, intervals=False, tiers=False).rows
    )), top=4)  # fmt: skip
    assert bare.splitlines()[0].split() == ["rank", "item", "log-worth", "worth"]
    assert len(bare.splitlines()) == 2 + 4


def test_names_are_shown_and_not_obeyed():
    text = printed(made_page(5, names=NAMES))
    assert "[red]markup[/]" in text
    assert "(no name)" in text
    assert printable("a\x1b[2Jb\u202e") == "a\ufffd[2Jb\ufffd"


def test_a_probability_is_0_or_100_percent_only_if_it_is():
    assert [f"{percent(p, 1)}%" for p in (0, 1e-9, 0.1234, 0.99999, 1)] == [
        "0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%",
    ]  # fmt: skip


def test_the_lines_below_say_what_was_fitted():
    lines = summary_lines(made_page(12))
    assert lines[0] == "12 items; 40 lists, 30 different; 2 are one tie and say nothing"
    assert any("log-likelihood -54.50, AIC 131.00" in line for line in lines)
    assert any("4 iterations in 0.02 s, converged" in line for line in lines)
    stopped = made_page(12).convergence
    stopped = dataclasses.replace(stopped, converged=False, stopped_by="max_iter")
    lines = summary_lines(made_page(12, convergence=stopped))
    assert any("not converged, stopped by max_iter" in line for line in lines)
