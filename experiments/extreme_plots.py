"""Plots of the experiments over huge label sets, as PNG in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from extreme_figures import Figures
from plots import LINES
from plots import _canvas as new_canvas
from plots import _png as as_png

LEAST_RANGE = 5.0  # percentage points of a panel's height
COLOURS = ("#0b5394", "#cc5500", "#38761d", "#741b47", "#666666", "#b45f06")


def methods_plot(
    figures: Figures,
    methods: Sequence[str],
    measures: Sequence[str],
    best: Mapping[str, float | None] | None = None,
) -> bytes:
    """A panel a measure: dots with the seeds' deviation, and crosses for what is printed.

    `best` has the highest value that is published, by measure: a line across.
    """
    columns = min(3, len(measures))
    lines = -(-len(measures) // columns)
    canvas = new_canvas(3.4 * columns, lines * (1.1 + 0.3 * len(methods)))
    panels = canvas.subplots(lines, columns, sharey=True, squeeze=False)
    places = np.arange(len(methods))[::-1]
    for panel, measure in zip(panels.flat, measures, strict=False):
        own = [figures[method, measure] for method in methods]
        panel.errorbar(
            [figure.mean for figure in own], places, xerr=[f.deviation or 0 for f in own],
            fmt="o", color=COLOURS[0], markersize=5, label="ours, ± deviation over seeds",
        )  # fmt: skip
        known = [
            (f.printed, at) for f, at in zip(own, places, strict=True) if f.printed is not None
        ]
        if known:
            panel.plot(*zip(*known, strict=True), "x", color=COLOURS[1], label="printed")
        highest = (best or {}).get(measure)
        if highest is not None:
            panel.axvline(highest, linestyle="--", color=COLOURS[1], label="best published")
        panel.set_title(measure, fontsize="medium")
    for panel in panels.flat[len(measures) :]:
        panel.set_visible(False)
    for panel in panels.flat:
        panel.set_yticks(places, methods)
        panel.set_ylim(-0.6, len(methods) - 0.4)
        panel.grid(alpha=0.3)
    _legend(canvas, panels.flat[: len(measures)])
    return as_png(canvas)


class Curve(NamedTuple):
    """Points, and the spread of each."""

    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float]


def sensitivity_plot(
    by_intervals: Curve, by_shift: Curve, lines: Mapping[str, float], name: str
) -> bytes:
    """P@5 against T and against c, with lines for methods that have neither."""
    canvas = new_canvas(10, 4.2)
    left, right = canvas.subplots(1, 2)
    for panel, curve, label in (
        (left, by_intervals, "T, intervals of the midpoint rule"),
        (right, by_shift, "c, shift of the scores"),
    ):
        panel.errorbar(
            curve.x, curve.y, yerr=curve.spread, fmt="o-", color=COLOURS[0], markersize=5,
            label="PL-Partition, midpoint rule",
        )  # fmt: skip
        for (method, value), style, colour in zip(
            lines.items(), ("-", "--", "-.", ":"), ("#38761d", "black", "#741b47", "#666666"),
            strict=False,
        ):  # fmt: skip
            panel.axhline(value, linestyle=style, color=colour, linewidth=1.3, label=method)
        low, high = panel.get_ylim()
        room = max(0.0, LEAST_RANGE - (high - low)) / 2  # or noise would look like a trend
        panel.set(xlabel=label, ylim=(low - room, high + room))
        panel.grid(alpha=0.3)
    left.set(xscale="log", ylabel=f"P@5 on {name}, per cent")
    _legend(canvas, [left])
    return as_png(canvas)


def budget_plot(curves: Mapping[str, Mapping[str, Curve]], measures: Sequence[str]) -> bytes:
    """Measures against minutes of training: a panel a measure, a line a contender."""
    canvas = new_canvas(4.6 * len(measures), 4.2)
    panels = canvas.subplots(1, len(measures), squeeze=False)[0]
    for panel, measure in zip(panels, measures, strict=True):
        for (name, by_measure), line, colour in zip(
            curves.items(), LINES, COLOURS * 2, strict=False
        ):
            curve = by_measure[measure]
            panel.plot(curve.x, curve.y, line, color=colour, markersize=4, label=name)
        panel.set(xlabel="minutes of training", ylabel=f"{measure}, per cent")
        panel.grid(alpha=0.3)
    _legend(canvas, [panels[0]])
    return as_png(canvas)


def _legend(canvas: Any, panels: Any) -> None:
    """Below all panels: what any of them has."""
    known = {}
    for panel in panels:
        handles, names = panel.get_legend_handles_labels()
        known |= dict(zip(names, handles, strict=True))
    columns = min(4, len(known))
    canvas.legend(known.values(), known.keys(), loc="outside lower center", ncols=columns)
