"""The ranking as people know it from arenas: a name, a dot with its interval, a number.

Each row is HTML with a small SVG whose coordinates are shares of its width. So text keeps its size
and dots stay round on any screen, names can be searched, and rows may be of any height.
"""

from __future__ import annotations

from itertools import groupby

from tierrank.report.aggregation.axis import axis_of, decimals_of
from tierrank.report.aggregation.content import AggregationPage, ItemRow
from tierrank.report.aggregation.markup import (
    Section,
    count,
    item_name,
    length,
    number,
    percent,
    plain_name,
    text,
)

SHOWN_AT_ONCE = 50
MOST_ITEMS = 2_000
_MOST_CHARACTERS = 34  # of the names' column; longer ones take two lines


def ranking_section(page: AggregationPage) -> Section:
    """The plot; beyond some items, the others unfold, on an axis of their own."""
    whole, last = len(page.rows), min(len(page.rows), MOST_ITEMS)
    # A fold that hides a handful is a nuisance.
    first = whole if whole <= SHOWN_AT_ONCE + 10 else SHOWN_AT_ONCE
    blocks = [_Block(page, 0, first)]
    content = blocks[0].plot()
    if whole > first:
        blocks.append(_Block(page, first, last))
        content += (
            f'<details class="more"><summary>Show items {first + 1:,} to {last:,}, on an axis of '
            f"their own</summary>{blocks[1].plot()}</details>"
        )
    if whole > last:
        content += f'<p class="aside">{whole - last:,} further items are not drawn.</p>'
    beyond = any(block.goes_beyond() for block in blocks)
    return Section("ranking", "Ranking", _explained(page, beyond) + content, "wide")


def tier_shade(tier: int, tiers: int) -> float:
    """How far a tier's colour is from that of the best: 0 to 1."""
    return (tier - 1) / (tiers - 1) if tiers > 1 else 0.0


class _Block:
    """Rows from one place to another, on one axis."""

    def __init__(self, page: AggregationPage, start: int, stop: int) -> None:
        self.page = page
        self.rows = list(enumerate(page.rows, start=1))[start:stop]
        self.axis = axis_of(page.rows[start:stop])
        self.decimals = decimals_of(page.rows)
        self.level = f"{100 * page.level:g}"
        tiers = sorted({row.tier for row in page.rows if row.tier is not None})
        self.place_of_tier = {tier: place for place, tier in enumerate(tiers, start=1)}

    def plot(self) -> str:
        """The rows between their axes."""
        tiers = "".join(
            self._tier(tier, list(members))
            for tier, members in groupby(self.rows, key=lambda each: each[1].tier)
        )
        return (
            f'<div class="plot" style="{self._style()}">'
            f"{self._axis('top')}{tiers}{self._axis('bottom')}</div>"
        )

    def goes_beyond(self) -> bool:
        """Whether an interval does not end on the axis."""
        ends = (end for _, row in self.rows for end in (row.low, row.high) if end is not None)
        return any(not self.axis.holds(end) for end in ends)

    def _style(self) -> str:
        """Widths of the columns, and the ticks' lines as the background that all rows share."""
        rows = [row for _, row in self.rows]
        lines = []
        for tick, (place, _) in zip(self.axis.ticks, self.axis.labels(), strict=True):
            colour = "var(--zero)" if abs(tick) < 1e-12 else "var(--line)"
            lines.append(f"linear-gradient({colour},{colour}) {length(place)} 0/1px 100% no-repeat")
        widths = {
            "ranks": len(f"{self.rows[-1][0]:,}"),
            "names": min(max(8, *(len(row.name) for row in rows), 0), _MOST_CHARACTERS),
            "values": max(len(self.value(row)) for row in rows),
            "intervals": max(len(self.interval(row)) for row in rows),
        }
        sizes = "".join(f"--{name}:{size}ch;" for name, size in widths.items())
        return f"{sizes}--grid:{','.join(lines)}"

    def value(self, row: ItemRow) -> str:
        return number(row.log_worth, self.decimals)

    def interval(self, row: ItemRow) -> str:
        if row.low is None or row.high is None:
            return ""
        return f"{number(row.low, self.decimals)} to {number(row.high, self.decimals)}"

    def _tier(self, tier: int | None, members: list[tuple[int, ItemRow]]) -> str:
        rows = "".join(self._row(rank, row) for rank, row in members)
        if tier is None:
            return f'<ol class="rows" role="list">{rows}</ol>'
        first, place = members[0][0], self.place_of_tier[tier]
        continued = first > 1 and self.page.rows[first - 2].tier == tier
        heading = f"Tier {tier}" + (", continued" if continued else self._cut(first))
        shade = length(tier_shade(place, len(self.place_of_tier)))
        return (
            f'<div class="tier {"odd" if place % 2 else "even"}" style="--t:{shade}">'
            f'<h3>{heading}</h3><ol class="rows" role="list" start="{first}">{rows}</ol></div>'
        )

    def _cut(self, rank: int) -> str:
        """How sure the cut above this rank is."""
        if rank == 1 or self.page.cut_probabilities is None:
            return ""
        sure = percent(float(self.page.cut_probabilities[rank - 2]))
        return f' <span class="aside">cut with probability {sure}&#8239;%</span>'

    def _row(self, rank: int, row: ItemRow) -> str:
        interval = self.interval(row)
        said = f"{plain_name(row.name)}: log-worth {self.value(row)}"
        if interval:
            said += f", {self.level}&#8239;% interval {interval}"
        return (
            f'<li class="row" value="{rank}"><span class="rank">{rank:,}</span>'
            f'<span class="name" title="{plain_name(row.name)}">{item_name(row.name)}</span>'
            f'<span class="track"><svg role="img"><title>{said}</title>{self._marks(row)}</svg>'
            "</span>"
            f'<b class="value">{self.value(row)}</b><span class="interval">{interval}</span></li>\n'
        )

    def _marks(self, row: ItemRow) -> str:
        marks = ""
        if row.low is not None and row.high is not None:
            left, right = (length(self.axis.place(end)) for end in (row.low, row.high))
            marks += f'<line class="whisker" x1="{left}" x2="{right}" y1="50%" y2="50%"/>'
            # A path cannot have shares of the width as coordinates; a nested SVG can stand at one.
            if not self.axis.holds(row.low):
                marks += f'<svg class="beyond" x="{left}" y="50%"><path d="M6-5 0 0 6 5"/></svg>'
            if not self.axis.holds(row.high):
                marks += f'<svg class="beyond" x="{right}" y="50%"><path d="M-6-5 0 0-6 5"/></svg>'
        dot = length(self.axis.place(row.log_worth))
        return f'{marks}<circle class="dot" cx="{dot}" cy="50%" r="5"/>'

    def _axis(self, side: str) -> str:
        """The ticks' numbers, above or below the rows."""
        ticks = "".join(
            f'<text x="{length(place)}" y="14">{label}</text>'
            for place, label in self.axis.labels()
        )
        scale = f'<span class="scale">{text(self.page.scale)}</span>' if side == "bottom" else ""
        return (
            f'<div class="row axis {side}" aria-hidden="true"><svg class="ticks">{ticks}</svg>'
            f"{scale}</div>"
        )


def _explained(page: AggregationPage, beyond: bool) -> str:
    """What the dots and lines are."""
    said = f"Each dot is an item at its {text(page.scale)}; further right is better."
    if any(row.low is not None for row in page.rows):
        said += f" Its line is the {100 * page.level:g}&#8239;% interval."
    else:
        said += " No intervals were computed."
    if beyond:
        said += " A line with an arrowhead goes on beyond the axis."
    if page.tiers:
        said += f" Bands are tiers: {count(page.tiers, 'tier')} in all."
    return f'<p class="lead">{said}</p>'
