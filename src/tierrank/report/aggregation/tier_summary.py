"""The tiers, who is in them, and how sure the cuts between them are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tierrank.report.aggregation.content import AggregationPage, ItemRow
from tierrank.report.aggregation.markup import (
    Section,
    count,
    item_name,
    length,
    percent,
    plain_name,
    text,
)
from tierrank.report.aggregation.ranking_plot import tier_shade

NAMES_AT_ONCE = 24
TIERS_AT_ONCE = 12
MOST_NAMES = 2_000
MOST_BARS = 300
_MOST_IN_A_HALF = 4


def tiers_section(page: AggregationPage) -> Section | None:
    """Tier by tier; nothing where nobody looked for tiers."""
    if not page.tiers:
        return None
    content = f'<p class="lead">{text(page.tier_criterion)}</p>' if page.tier_criterion else ""
    content += _bars(page)
    tiers = _tiers(page)
    content += f'<ol class="tiers" role="list">{"".join(tiers[:TIERS_AT_ONCE])}</ol>'
    if len(tiers) > TIERS_AT_ONCE:
        more = f"Show {count(len(tiers) - TIERS_AT_ONCE, 'more tier')}"
        content += (
            f'<details class="more"><summary>{more}</summary>'
            f'<ol class="tiers" role="list">{"".join(tiers[TIERS_AT_ONCE:])}</ol></details>'
        )
    return Section("tiers", "Tiers", content, "tall" if len(tiers) > _MOST_IN_A_HALF else "half")


def _tiers(page: AggregationPage) -> list[str]:
    made: list[str] = []
    start = 0
    for tier, group in groupby(page.rows, key=lambda row: row.tier):
        members = list(group)
        stop = start + len(members)
        ranks = f"rank {stop}" if len(members) == 1 else f"ranks {start + 1:,} to {stop:,}"
        below = _cut(page, stop) if stop < len(page.rows) else ""
        shade = length(tier_shade(len(made) + 1, page.tiers))
        made.append(
            f'<li style="--t:{shade}"><h3>Tier {tier} <span class="aside">'
            f"{count(len(members), 'item')}, {ranks}</span></h3>{_names(members)}{below}</li>\n"
        )
        start = stop
    return made


def _names(members: Sequence[ItemRow]) -> str:
    """Names in a row; the many of a large tier unfold."""
    first = _joined(members[:NAMES_AT_ONCE])
    if len(members) <= NAMES_AT_ONCE:
        return f'<p class="names">{first}</p>'
    others = members[NAMES_AT_ONCE:MOST_NAMES]
    rest = _joined(others)
    if len(members) > MOST_NAMES:
        rest += f" and {len(members) - MOST_NAMES:,} further items"
    return (
        f'<p class="names">{first}</p><details class="more"><summary>and '
        f'{len(members) - NAMES_AT_ONCE:,} more</summary><p class="names">{rest}</p></details>'
    )


def _joined(members: Sequence[ItemRow]) -> str:
    return " <i>·</i> ".join(f"<span>{item_name(row.name)}</span>" for row in members)


def _cut(page: AggregationPage, stop: int) -> str:
    """The cut below a rank, and how sure it is."""
    if page.cut_probabilities is None:
        return ""
    sure = float(page.cut_probabilities[stop - 1])
    return (
        '<p class="cut"><svg class="meter" aria-hidden="true"><rect class="full" width="100%" '
        f'height="100%" rx="3"/><rect class="part" width="{length(sure)}" height="100%" rx="3"/>'
        f"</svg>cut with probability {percent(sure)}&#8239;%</p>"
    )


def _bars(page: AggregationPage) -> str:
    """The probability of a cut at every place, as bars; those that are cuts are dark."""
    cuts = page.cut_probabilities
    if cuts is None or not 2 <= len(cuts) <= MOST_BARS:
        return ""
    width = 1 / len(cuts)
    bars = ""
    for place, value in enumerate(cuts):
        above, below = page.rows[place], page.rows[place + 1]
        kind = "bar cut" if above.tier != below.tier else "bar"
        said = (
            f"{plain_name(above.name)} | {plain_name(below.name)}: {percent(float(value))}&#8239;%"
        )
        bars += (
            f'<rect class="{kind}" x="{length((place + 0.12) * width)}" '
            f'width="{length(0.76 * width)}" y="{length(1 - value)}" height="{length(value)}">'
            f"<title>{said}</title></rect>"
        )
    return (
        '<figure class="bars"><div class="chart"><span class="y top">100&#8239;%</span>'
        '<span class="y bottom">0</span><svg role="img" aria-labelledby="bars-title bars-text">'
        '<title id="bars-title">Probability of a cut</title><desc id="bars-text">One bar for every '
        "place between two neighbours of the ranking; coloured where tiers are cut.</desc>"
        f'{bars}</svg></div><div class="ends"><span>between ranks 1 and 2</span>'
        f"<span>{len(cuts)} and {len(cuts) + 1}</span></div>"
        "<figcaption>Probability of a cut between neighbours; coloured where tiers are cut."
        "</figcaption></figure>"
    )
