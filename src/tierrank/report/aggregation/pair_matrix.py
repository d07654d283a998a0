"""Who stands above whom: a table of probabilities, coloured by how sure it is."""

from __future__ import annotations

from typing import Literal

from tierrank.report.aggregation.content import AggregationPage
from tierrank.report.aggregation.markup import Section, item_name, percent, plain_name

MOST_ITEMS = 30
_MOST_IN_A_HALF = 12

_LEGEND = (
    '<div class="legend" aria-hidden="true"><span>column above row</span>'
    '<span class="ramp"></span><span>row above column</span></div>'
)


def matrix_section(page: AggregationPage) -> Section | None:
    """The matrix of the first items; nothing where there are no probabilities."""
    if page.pairwise is None or len(page.pairwise) < 2:
        return None
    many = min(len(page.pairwise), MOST_ITEMS)
    rows = page.rows[:many]
    headings = "".join(
        f'<th scope="col" title="{plain_name(row.name)}">{rank}'
        f'<span class="unseen"> {plain_name(row.name)}</span></th>'
        for rank, row in enumerate(rows, start=1)
    )
    body = ""
    for place, row in enumerate(rows):
        cells = "".join(
            '<td class="self">·</td>' if place == other else _cell(float(value))
            for other, value in enumerate(page.pairwise[place, :many])
        )
        body += (
            f'<tr><th scope="row" title="{plain_name(row.name)}"><span class="rank">{place + 1}'
            f'</span><span class="short">{item_name(row.name)}</span></th>{cells}</tr>\n'
        )
    first = f" of the first {many} items" if many < len(page.rows) else ""
    explained = (
        '<p class="lead">Probability, in percent, that the item of the row stands above the item '
        f"of the column{first}. Columns carry the items' ranks; from 50 on, numbers are bold.</p>"
    )
    table = (
        '<div class="scroll" role="region" aria-labelledby="pairs-heading" tabindex="0">'
        '<table class="pairs"><thead><tr><td></td>'
        f"{headings}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    content = explained + _LEGEND + table
    shape: Literal["wide", "half"] = "wide" if many > _MOST_IN_A_HALF else "half"
    return Section("pairs", "Who stands above whom", content, shape)


def _cell(value: float) -> str:
    """A number on a colour: blue for the row, orange for the column, pale where it is open."""
    side = "above" if value >= 0.5 else "below"
    return (
        f'<td class="{side}" style="--p:{round(abs(2 * value - 1) * 100)}%">{percent(value)}</td>'
    )
