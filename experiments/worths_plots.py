"""Plots of the experiments on worths, as PNG in memory; both axes are logarithmic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from plots import _canvas as new_canvas
from plots import _png as as_png
from worths_grid import Estimate, Grid
from worths_training import METHODS, ORACLE

STYLES: Mapping[str, dict[str, Any]] = {
    "pl-partition": {"color": "#0b5394", "marker": "o", "linewidth": 2.2, "zorder": 3},
    "pl-lb": {"color": "#cc5500", "marker": "s"},
    "attrank": {"color": "#741b47", "marker": "^"},
    "ranknet": {"color": "#38761d", "marker": "D"},
    "ranksvm": {"color": "#b8860b", "marker": "v"},
    "pl-efron": {"color": "#6fa8dc", "marker": "P"},
    "pl-topk": {"color": "#666666", "marker": "x", "linestyle": "--"},
}


class Panel(NamedTuple):
    """A panel's title, its x axis, and by method what is drawn; None leaves a gap."""

    title: str
    axis: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[Estimate | None]]


def against_lists(grid: Grid, items: int) -> Panel:
    """Errors against n, for one N."""
    lines = {m: [grid.estimate(items, n, m) for n in grid.lists] for m in grid.methods}
    return Panel(f"N = {items:,} items", "n, lists", grid.lists, lines)


def against_items(grid: Grid, lists: int) -> Panel:
    """Errors against N, for one n."""
    lines = {m: [grid.estimate(items, lists, m) for items in grid.items] for m in grid.methods}
    return Panel(f"n = {lists:,} lists", "N, items", grid.items, lines)


def panels_plot(rows: Sequence[Sequence[Panel]], label: str) -> bytes:
    """Rows of panels, a line a method, with error bars of one standard error."""
    columns = max(map(len, rows))
    canvas = new_canvas(max(7.0, 3.9 * columns), 0.9 + 3.2 * len(rows))
    axes = canvas.subplots(len(rows), columns, squeeze=False)
    for row, places in zip(rows, axes, strict=True):
        for panel, at in zip(row, places, strict=False):
            _draw(at, panel)
        places[0].set_ylabel(label)
        for at in places[len(row) :]:
            at.set_visible(False)
    handles, names = axes[0, 0].get_legend_handles_labels()
    canvas.legend(
        handles, names, loc="outside lower center", ncols=min(3 if columns < 3 else 6, len(names))
    )
    return as_png(canvas)


def _draw(axes: Any, panel: Panel) -> None:
    for method, values in panel.lines.items():
        y = [np.nan if value is None else value.mean for value in values]
        spread = [0.0 if value is None else value.error or 0.0 for value in values]
        # a bar that reaches 0 has no place on a logarithmic axis
        below = [min(s, 0.9 * v) if v == v else 0.0 for s, v in zip(spread, y, strict=True)]
        style = {"markersize": 5, "linewidth": 1.3, **STYLES.get(method, {})}
        name = METHODS.get(method, method) + (" (oracle)" if method == ORACLE else "")
        axes.errorbar(panel.x, y, yerr=[below, spread], capsize=2, label=name, **style)
    axes.set(xscale="log", yscale="log", xlabel=panel.axis)
    axes.set_title(panel.title, fontsize="medium")
    axes.grid(alpha=0.3, which="major")
