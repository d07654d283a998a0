"""The experiments' plots, as PNG in memory: they go into a file and into the page."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scores import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

COLOURS = ("#0b5394", "#cc5500")
LINES = ("o-", "s-", "^-", "D-", "v--", "P--", "X--")


def table_plot(
    figures: Sequence[Figure],
    methods: Sequence[str],
    measures: Sequence[str],
    ours: str,
    theirs: str,
) -> bytes:
    """Dots with intervals, a panel a measure; below them what the paper prints, in the same order.

    `ours` and `theirs` name the data of the two rows.
    """
    orders = list(dict.fromkeys(figure.features for figure in figures))
    known = {(f.features, f.method, f.measure): f for f in figures}
    canvas = new_canvas(4 * len(measures), 1.2 + 0.62 * len(methods))
    panels = canvas.subplots(2, len(measures), sharey=True, squeeze=False)
    places = np.arange(len(methods))[::-1]
    for column, measure in enumerate(measures):
        for i, order in enumerate(orders):
            rows = [known[order, method, measure] for method in methods]
            at = places + 0.14 * (1 - 2 * i) * (len(orders) > 1)
            mean = np.array([row.mean for row in rows])
            reach = np.abs([[row.low, row.high] for row in rows] - mean[:, None]).T
            style = {"color": COLOURS[i], "fmt": "os"[i], "markersize": 5, "label": order}
            panels[0, column].errorbar(mean, at, xerr=reach, elinewidth=1, **style)
            printed = np.array([np.nan if r.printed is None else r.printed for r in rows])
            panels[1, column].errorbar(printed, at, **style)
        panels[0, column].set_title(f"{measure}, {ours}", fontsize="medium")
        panels[1, column].set_title(f"{measure}, printed: {theirs}", fontsize="medium")
    for panel in panels.flat:
        panel.set_yticks(places, methods)
        panel.grid(alpha=0.3)
    canvas.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return as_png(canvas)


def curve_plot(curves: Mapping[str, Sequence[float]], title: str) -> bytes:
    """NDCG@1, @2, … as a line a method."""
    canvas = new_canvas(7.5, 5)
    axes = canvas.add_subplot()
    for (method, values), line in zip(curves.items(), LINES, strict=False):
        axes.plot(range(1, len(values) + 1), values, line, markersize=4, label=method)
    longest = max(map(len, curves.values()))
    axes.set(title=title, xlabel="k", ylabel="NDCG@k", xticks=range(1, longest + 1))
    axes.grid(alpha=0.3)
    axes.legend()
    return as_png(canvas)


def new_canvas(width: float, height: float) -> Canvas:
    """A figure that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def as_png(canvas: Canvas) -> bytes:
    file = io.BytesIO()
    canvas.savefig(file, format="png", dpi=130)
    return file.getvalue()
