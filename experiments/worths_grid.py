"""Errors over a grid of items and lists, with several seeds: means, who is lowest, and plots."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from plots import as_png, new_canvas
from worths_training import METHODS, ORACLE, OURS

Key = tuple[int, int, str]  # items, lists, method


class Estimate(NamedTuple):
    """A mean over the seeds with its standard error, which one seed does not have."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        return f"{self.mean:.2e}" if self.error is None else f"{self.mean:.2e} ± {self.error:.0e}"


def estimate(values: Sequence[float]) -> Estimate:
    """The mean, and the standard error of the mean."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(float(np.mean(values)), spread)


class Behind(NamedTuple):
    """A cell where PL-Partition is not the lowest, and by whom and how much it is beaten."""

    items: int
    lists: int
    method: str
    difference: Estimate  # of PL-Partition's error less the other's, by seed
    seeds: int  # in which the other is lower
    ratio: float  # of the means


class Grid:
    """The error of every method, by items, lists and seed.

    Parameters
    ----------
    found
        (items, lists, method, seed) and the error
    """

    def __init__(self, found: Iterable[tuple[int, int, str, int, float]]) -> None:
        self._by_seed: dict[Key, dict[int, float]] = {}
        for items, lists, method, seed, value in found:
            self._by_seed.setdefault((items, lists, method), {})[seed] = value
        self.items = sorted({key[0] for key in self._by_seed})
        self.lists = sorted({key[1] for key in self._by_seed})
        present = {key[2] for key in self._by_seed}
        self.methods = [method for method in METHODS if method in present]

    @property
    def cells(self) -> list[tuple[int, int]]:
        """All pairs of items and lists."""
        return [(items, lists) for items in self.items for lists in self.lists]

    def values(self, items: int, lists: int, method: str) -> list[float]:
        """A value for each seed."""
        by_seed = self._by_seed[items, lists, method]
        return [by_seed[seed] for seed in sorted(by_seed)]

    def estimate(self, items: int, lists: int, method: str) -> Estimate:
        """The mean over the seeds."""
        return estimate(self.values(items, lists, method))

    def lowest(self, items: int, lists: int) -> str | None:
        """Which method has the lowest mean; the oracle does not compete."""
        rivals = [method for method in self.methods if method != ORACLE]
        means = {method: self.estimate(items, lists, method).mean for method in rivals}
        return min(means, key=means.__getitem__) if means else None

    def behind(self) -> list[Behind]:
        """Every cell where another method has a lower mean than PL-Partition; each such method."""
        found = []
        for items, lists in self.cells if OURS in self.methods else ():
            ours = np.array(self.values(items, lists, OURS))
            for method in self.methods:
                if method in (ORACLE, OURS):
                    continue
                theirs = np.array(self.values(items, lists, method))
                if theirs.mean() < ours.mean():
                    apart = ours - theirs
                    found.append(
                        Behind(
                            items, lists, method, estimate(apart.tolist()), int((apart > 0).sum()),
                            float(ours.mean() / theirs.mean()),
                        )
                    )  # fmt: skip
        return found

    def above_all(self, method: str, others: Sequence[str]) -> dict[int, list[int]]:
        """By items: the numbers of lists where a method's mean is above those of all others."""
        return {
            items: [
                lists
                for lists in self.lists
                if all(
                    self.estimate(items, lists, method).mean
                    > self.estimate(items, lists, other).mean
                    for other in others
                )
            ]
            for items in self.items
        }

    def to_json(self) -> list[dict[str, Any]]:
        """A line a cell and method, with the value of every seed."""
        return [
            {**line, "by seed": self.values(line["items"], line["lists"], line["method"])}
            for line in self._lines()
        ]

    def to_csv(self) -> str:
        """A line a cell and method; nothing stands for the standard error of one seed."""
        return as_csv(self._lines())

    def _lines(self) -> list[dict[str, Any]]:
        lines = []
        for items, lists in self.cells:
            lowest = self.lowest(items, lists)
            for method in self.methods:
                mean, error = self.estimate(items, lists, method)
                lines.append(
                    {
                        "items": items, "lists": lists, "method": method, "mean": mean,
                        "standard_error": error, "seeds": len(self.values(items, lists, method)),
                        "lowest": method == lowest,
                    }
                )  # fmt: skip
        return lines


def as_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines with the same names."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    return text.getvalue()


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
            draw_panel(at, panel)
        places[0].set_ylabel(label)
        for at in places[len(row) :]:
            at.set_visible(False)
    handles, names = axes[0, 0].get_legend_handles_labels()
    canvas.legend(
        handles, names, loc="outside lower center", ncols=min(3 if columns < 3 else 6, len(names))
    )
    return as_png(canvas)


def draw_panel(axes: Any, panel: Panel) -> None:
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
