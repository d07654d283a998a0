"""The card of a ranking: a picture of the first items, for those who share the page."""

from __future__ import annotations

import io
from typing import Any

from tierrank.report.content import AggregationPage, axis_of, number, rating_decimals
from tierrank.report.look import Look
from tierrank.report.plots import new_figure

WIDTH, HEIGHT = 1200, 630
MOST_ROWS = 10
_INK, _MUTED, _LINE, _BEST = "#1c2126", "#59626c", "#e4e6e9", "#0b5aa6"


def card_png(page: AggregationPage, look: Look | None = None) -> bytes:
    """A PNG of 1200 by 630: title, what was counted, and the first ten with their intervals."""
    colour = (look or Look()).on_paper() or _BEST
    rows = page.rows[:MOST_ROWS]
    decimals, axis = rating_decimals(page.rows), axis_of(rows)
    figure = new_figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    said: dict[str, Any] = {"parse_math": False, "color": _INK}  # a name may have a $
    figure.text(0.05, 0.885, _shortened(page.title, 48), fontsize=30, fontweight="bold", **said)
    data = page.connectivity
    told = f"{data.items:,} items ranked by {data.lists:,} {data.seen}"
    figure.text(0.05, 0.825, told, fontsize=15, **(said | {"color": _MUTED}))
    plot = figure.add_axes((0.42, 0.07, 0.45, 0.71))
    for tick in axis.ticks:
        plot.axvline(tick, color=_LINE, linewidth=1, zorder=0)
    for place, row in enumerate(rows):
        value, low, high = row.shown
        if low is not None and high is not None:
            ends = [max(low, axis.low), min(high, axis.high)]
            plot.plot(ends, [place, place], color=colour, linewidth=3, alpha=0.7,
                      solid_capstyle="round")  # fmt: skip
        plot.plot([value], [place], "o", color=colour, markersize=10, zorder=3)
        height = 0.78 - 0.71 * (place + 0.5) / len(rows)
        middle: dict[str, Any] = {"fontsize": 17, "va": "center", **said}
        figure.text(0.085, height, f"{place + 1}", ha="right", **(middle | {"color": _MUTED}))
        figure.text(0.105, height, _shortened(row.name, 32), **middle)
        figure.text(0.95, height, number(value, decimals), ha="right", fontweight="bold", **middle)
    plot.set_xlim(axis.low, axis.high)
    plot.set_ylim(len(rows) - 0.5, -0.5)
    plot.set_axis_off()
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": None})
    return made.getvalue()


def _shortened(text: str, most: int) -> str:
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text).strip() or "(no name)"
    return text if len(text) <= most else f"{text[: most - 1]}…"
