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


def standings_table(
    standings: Sequence[Standing],
    *,
    title: str,
    heading: str = "ranker",
    more: Mapping[str, Mapping[str, str]] | None = None,
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
    """
    rankers = {each.name for each in standings}
    metrics = {each.metric for each in standings}
    if len(rankers) == 1:
        return _one_ranker(standings, title)
    table = plain_table(title)
    table.add_column(heading, overflow="fold", min_width=12)
    headings = ["mean" if len(metrics) > 1 else standings[0].metric, "95% interval",
                "− first", "95% interval", "p", *(more or {})]  # fmt: skip
    for column in headings:
        table.add_column(column, justify="right", no_wrap=True)
    metric: str | None = None
    for each in standings:
        if each.metric != metric and len(metrics) > 1:
            table.add_section()
            table.add_row(f"[bold]{each.metric}[/]")
        metric = each.metric
        best = best_mean([other for other in standings if other.metric == metric])
        value = f"{each.mean:.4f}"
        table.add_row(
            _plain(each.name),
            f"[bold]{value}[/]" if each.mean == best else value,
            _interval(each),
            *_difference(each),
            *(column.get(each.name, "") for column in (more or {}).values()),
        )
    return table


def _one_ranker(standings: Sequence[Standing], title: str) -> Table:
    table = plain_table(title)
    table.add_column("metric")
    table.add_column("mean", justify="right")
    table.add_column("95% interval", justify="right")
    for each in standings:
        table.add_row(each.metric, f"{each.mean:.4f}", _interval(each))
    return table


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
