"""Standings as tables: to read on a terminal, and as CSV and JSON for other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tierrank.ranking.standings import Standing, best_mean
from tierrank.training import History

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = tuple(field.name for field in fields(Standing))

# What spreadsheets take for a formula, or may after they dropped what stands before it; numbers
# that are text are harmless.
_FORMULA = re.compile(r"(?![+-]?[0-9]+(\.[0-9]+)?\Z)[=+\-@＝＋－＠\x00-\x1f]")
_MARKS = re.compile(r'[,"\r\n]')


def plain_table(title: str | None = None) -> Table:
    """An empty table with a line below its headings and little else."""
    from rich import box
    from rich.table import Table

    return Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
        collapse_padding=True,
    )  # fmt: skip


def keep_what_fits(
    table: Table,
    columns: Mapping[str, tuple[str, int]],
    width: int | None,
    first_to_go: Sequence[str],
) -> list[str]:
    """Choose the columns that have room side by side, and let the table say which have none.

    Parameters
    ----------
    table
        gets a line below it, if columns are left out
    columns
        heading and needed width of each, in their order
    width
        of the terminal; None for any
    first_to_go
        the columns that may be left out, the least important first
    """
    kept = list(columns)
    for name in first_to_go:
        needed = sum(columns[each][1] for each in kept) + len(GAP) * (len(kept) - 1)
        if width is None or needed <= width:
            break
        if name in kept:
            kept.remove(name)
    gone = dict.fromkeys(head for name, (head, _) in columns.items() if name not in kept)
    if gone:
        table.caption = f"No room for {', '.join(gone)}: a wider terminal shows all."
        table.caption_justify = "left"
    return kept


GAP = "  "  # between two columns
LEAST = 12  # characters of a name, which goes on in the next line


def standings_table(
    standings: Sequence[Standing],
    *,
    title: str,
    heading: str = "ranker",
    more: Mapping[str, Mapping[str, str]] | None = None,
    width: int | None = None,
) -> Table:
    """One row a ranker and metric; differences where there is more than one ranker.

    Parameters
    ----------
    standings
        in the order in which they are shown, those of a metric together
    title, heading
        of the table, and of the rankers' column
    more
        further columns: heading, then cell by ranker
    width
        of the terminal, where the least important columns give way; None for any
    """
    rankers = {each.name for each in standings}
    metrics = {each.metric for each in standings}
    table = plain_table(title)
    if len(rankers) == 1:
        _one_ranker(table, standings)
        return table
    more = more or {}
    rows = [_cells(each, more) for each in standings]
    headings = {
        "mean": "mean" if len(metrics) > 1 else standings[0].metric, "interval": "95% interval",
        "difference": "− first", "its interval": "95% interval", "p": "p",
    } | {column: column for column in more}  # fmt: skip
    wide = {
        name: (text, max(len(text), *(len(row[name]) for row in rows)))
        for name, text in headings.items()
    }
    columns = {"name": (heading, LEAST)} | wide
    to_go = [*more, "interval", "its interval", "p", "difference"]
    kept = keep_what_fits(table, columns, width, to_go)[1:]
    table.add_column(heading, overflow="fold", min_width=LEAST)
    for name in kept:
        table.add_column(headings[name], justify="right", no_wrap=True)
    metric: str | None = None
    for each, row in zip(standings, rows, strict=True):
        if each.metric != metric and len(metrics) > 1:
            table.add_section()
            table.add_row(f"[bold]{each.metric}[/]")
        metric = each.metric
        best = best_mean([other for other in standings if other.metric == metric])
        shown = row | {"mean": f"[bold]{row['mean']}[/]" if each.mean == best else row["mean"]}
        table.add_row(_plain(each.name), *(shown[name] for name in kept))
    return table


def _cells(each: Standing, more: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    difference, interval, p = _difference(each)
    return {
        "mean": f"{each.mean:.4f}", "interval": _interval(each), "difference": difference,
        "its interval": interval, "p": p,
    } | {column: cells.get(each.name, "") for column, cells in more.items()}  # fmt: skip


def _one_ranker(table: Table, standings: Sequence[Standing]) -> None:
    table.add_column("metric", overflow="fold")
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("95% interval", justify="right", no_wrap=True)
    for each in standings:
        table.add_row(each.metric, f"{each.mean:.4f}", _interval(each))


def csv_text(rows: Iterable[Iterable[Any]], *, raw: bool = False) -> str:
    """Rows as CSV; None is an empty cell.

    Text that a spreadsheet would take for a formula gets ' in front and is quoted, as OWASP
    recommends, unless `raw`. Numbers stay as they are.

    Examples
    --------
    >>> print(csv_text([["item", "log_worth"], ["=1+1", -0.5], ["a, b", None]]), end="")
    item,log_worth
    "'=1+1",-0.5
    "a, b",
    """

    def cell(value: Any) -> str:
        if not isinstance(value, str):
            return "" if value is None else str(value)
        formula = not raw and _FORMULA.match(value)
        if not formula and not _MARKS.search(value):
            return value
        safe = f"'{value}" if formula else value
        return '"' + safe.replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\n" for row in rows)


def standings_csv(standings: Sequence[Standing], *, raw: bool = False) -> str:
    """A row a ranker and metric, under the names of `Standing`; what is not there is empty."""
    rows = ([getattr(each, name) for name in COLUMNS] for each in standings)
    return csv_text([COLUMNS, *rows], raw=raw)


def standings_json(standings: Sequence[Standing], **about: Any) -> str:
    """What it is about, and the standings."""
    whole = {**about, "results": [each.to_json() for each in standings]}
    return json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def curve_csv(history: History) -> str:
    """The training curve, a row a step; what is not there is empty."""
    heading = [history.unit, "loss", f"valid {history.metric_name}"]
    return csv_text([heading, *zip(history.steps, history.loss, history.metric, strict=True)])


def _difference(each: Standing) -> list[str]:
    if each.difference is None or each.p_value is None:
        return ["", "", ""]
    low, high = each.difference_low, each.difference_high
    p = "<0.001" if each.p_value < 0.001 else f"{each.p_value:.3f}"
    return [f"{each.difference:+.4f}", f"{low:+.4f} {high:+.4f}", p]


def _interval(each: Standing) -> str:
    return f"{each.low:.4f} {each.high:.4f}"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
