"""The table of all items. A click on a heading sorts it; without scripts it is a plain table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tierrank.report.aggregation.axis import decimals_of
from tierrank.report.aggregation.content import AggregationPage, ItemRow
from tierrank.report.aggregation.markup import Section, item_name, number, percent, significant

MOST_ITEMS = 10_000


@dataclass(frozen=True)
class _Column:
    heading: str
    value: Callable[[ItemRow], float | None]  # what it is sorted by
    shown: Callable[[ItemRow], str]  # markup
    high_first: bool = True  # which way the first click sorts


def table_section(page: AggregationPage) -> Section:
    """The table, with the columns for which there are values."""
    columns = [
        column
        for column in _columns(page)
        if any(column.value(row) is not None for row in page.rows)
    ]
    headings = "".join(
        f'<th scope="col" data-first="{"descending" if column.high_first else "ascending"}">'
        f"{column.heading}</th>"
        for column in columns
    )
    shown = page.rows[:MOST_ITEMS]
    body = "".join(_row(rank, row, columns) for rank, row in enumerate(shown, start=1))
    table = (
        '<div class="scroll long" role="region" aria-labelledby="items-heading" tabindex="0">'
        '<table class="items" data-sortable><thead><tr>'
        '<th scope="col" class="rank" aria-sort="ascending" data-first="ascending">rank</th>'
        '<th scope="col" class="item" data-first="ascending" data-words>item</th>'
        f"{headings}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if len(page.rows) > MOST_ITEMS:
        left_out = len(page.rows) - MOST_ITEMS
        table += f'<p class="aside">{left_out:,} further items are not in this table.</p>'
    return Section("items", "All items", table, "wide")


def _columns(page: AggregationPage) -> list[_Column]:
    decimals = decimals_of(page.rows)
    level = f"{100 * page.level:g}&#8239;%"
    return [
        _Column("log-worth", lambda row: row.log_worth,
                lambda row: number(row.log_worth, decimals)),
        _Column(f"{level} <br>interval", lambda row: row.low,
                lambda row: _range(number(row.low, decimals), number(row.high, decimals))),
        _Column("standard <br>error", lambda row: row.standard_error,
                lambda row: number(row.standard_error, decimals), high_first=False),
        _Column("worth, %", lambda row: row.worth, lambda row: significant(100 * row.worth)),
        _Column("tier", lambda row: row.tier,
                lambda row: f"{row.tier:,}" if row.tier else "", high_first=False),
        _Column("expected <br>rank", lambda row: row.expected_rank,
                lambda row: number(row.expected_rank, 1), high_first=False),
        _Column(f"{level} <br>of ranks", lambda row: row.rank_low,
                lambda row: _range(number(row.rank_low, 0), number(row.rank_high, 0)),
                high_first=False),
        _Column(f"in the <br>top {page.top_k}, %", lambda row: row.top_k,
                lambda row: "" if row.top_k is None else percent(row.top_k, 1)),
    ]  # fmt: skip


def _row(rank: int, row: ItemRow, columns: list[_Column]) -> str:
    cells = "".join(
        f'<td data-value="{"" if (value := column.value(row)) is None else repr(float(value))}">'
        f"{column.shown(row)}</td>"
        for column in columns
    )
    return (
        f'<tr><td class="rank" data-value="{rank}">{rank:,}</td>'
        f'<th scope="row" class="item">{item_name(row.name)}</th>{cells}</tr>\n'
    )


def _range(low: str, high: str) -> str:
    return f'{low} <span class="to">to</span> {high}' if low else ""
