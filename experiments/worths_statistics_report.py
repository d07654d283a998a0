"""What the studies of fitted worths show: slopes, coverage, and the bootstrap beside Wald."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from extreme_report import Report
from page import Cell, Table
from plots import _canvas as new_canvas
from plots import _png as as_png
from worths_grid import Estimate, Grid, as_csv, estimate
from worths_plots import _draw as draw_panel
from worths_plots import against_lists
from worths_training import METHODS

Parts = Sequence[Mapping[str, Any]]

KINDS = ("information", "sandwich")
BAND = (0.93, 0.97)
NEAR = 0.10
NOTES = (
    "Worths and lists are drawn anew for every data set: log-worths uniform on [0, log N], lists "
    "of all items cut at random into 4 tiers. Errors and intervals are of centred log-worths, so "
    "of an item against the average one.",
    "A slope is that of log MSE against log n, fitted by least squares to each seed's errors, and "
    "averaged over the seeds; ± is its standard error. An estimate that converges to the truth "
    "has −1; one with a bias of its own flattens.",
    "Coverage is of Wald intervals, estimate ± 1.96 standard errors. ± is the standard error over "
    "data sets, which allows for items of one data set being dependent.",
    "Bootstrap intervals are percentiles over fits to lists drawn with replacement.",
)


class Coverage(NamedTuple):
    """How often 95 % intervals hold the truth: in all, and by the item's true place."""

    objective: str
    kind: str
    all: Estimate
    places: list[float]
    replicates: int
    without: int


def report(parts: Parts) -> Report:
    """Tables and a plot of whichever studies were done."""
    grid = Grid(
        (part["items"], part["lists"], part["objective"], part["seed"], part["mse"])
        for part in parts
        if part["study"] == "convergence"
    )
    coverages = coverage_of([part for part in parts if part["study"] == "coverage"])
    sets = [part for part in parts if part["study"] == "bootstrap"]
    tables, lines = [], []
    if grid.methods:
        tables.append(convergence_table(grid))
        lines += [
            {"study": "convergence", "what": f"slope, {m}", "value": value, "error": error}
            for m, (value, error) in slopes(grid).items()
        ]
    if coverages:
        tables.append(coverage_table(coverages))
        lines += [
            {"study": "coverage", "what": f"{c.objective}, {c.kind}", "value": c.all.mean,
             "error": c.all.error}
            for c in coverages
        ]  # fmt: skip
    if sets:
        tables.append(bootstrap_table(sets))
        lines += [
            {"study": "bootstrap", "what": f"widths over Wald's, {kind}",
             "value": float(np.mean([part[kind]["widths"] for part in sets])), "error": None}
            for kind in KINDS
        ]  # fmt: skip
    return Report(
        stem="statistics",
        title="Fitted worths: convergence, coverage, bootstrap",
        introduction=["Lists with ties drawn from known worths; worths fitted to them exactly."],
        tables=tables,
        plot=_plot(grid, coverages, sets),
        caption="Left: error against lists. Middle: coverage by true place. Right: bootstrap "
        "intervals over Wald's, a dot an item of a data set.",
        settings=_settings(parts),
        notes=NOTES,
        csv=as_csv(lines),
        more={
            "cells": grid.to_json(),
            "slopes": {m: s._asdict() for m, s in slopes(grid).items()},
            "coverage": [{**c._asdict(), "all": c.all._asdict()} for c in coverages],
            "bootstrap": sets,
        },
    )


def _settings(parts: Parts) -> dict[str, str]:
    known = {"items": str(parts[0]["items"])}
    for study in dict.fromkeys(part["study"] for part in parts):
        own = [part for part in parts if part["study"] == study]
        lists = sorted({part["lists"] for part in own})
        known[f"{study}, lists"] = ", ".join(f"{n:,}" for n in lists)
        sets = len({part["seed"] for part in own})
        if study == "coverage":
            sets = sum(part["replicates"] for part in own if part["objective"] == "pl-partition")
        known[f"{study}, data sets"] = f"{sets:,}"
        if study == "bootstrap":
            known["bootstrap, draws"] = f"{own[0]['draws']:,}"
    return known


# -- convergence ------------------------------------------------------------------------------


def slopes(grid: Grid) -> dict[str, Estimate]:
    """By objective: the slope of log MSE against log n, over the seeds."""
    if not grid.methods:
        return {}
    (items,) = grid.items
    x = np.log(grid.lists)
    found = {}
    for method in grid.methods:
        y = np.log([grid.values(items, lists, method) for lists in grid.lists])  # [sizes, seeds]
        found[method] = estimate(np.polyfit(x, y, 1)[0].tolist())
    return found


def convergence_table(grid: Grid) -> Table:
    """A row an objective: errors by size, the slope, and the slope of the last two sizes."""
    (items,) = grid.items
    rows = []
    for method, slope in slopes(grid).items():
        means = [grid.estimate(items, lists, method) for lists in grid.lists]
        last = math.log(means[-1].mean / means[-2].mean) / math.log(grid.lists[-1] / grid.lists[-2])
        rows.append(
            [
                Cell(METHODS[method]), *(Cell(str(mean)) for mean in means),
                Cell(f"{slope.mean:.2f} ± {slope.error or 0:.2f}"), Cell(f"{last:.2f}"),
            ]
        )  # fmt: skip
    columns = ["", *(f"n = {lists:,}" for lists in grid.lists), "slope", "of the last two"]
    return Table(f"Mean squared error of log-worths, {items} items", columns, rows)


# -- coverage ---------------------------------------------------------------------------------


def coverage_of(parts: Parts) -> list[Coverage]:
    """By objective and kind of standard error."""
    found = []
    for objective in dict.fromkeys(part["objective"] for part in parts):
        own = [part for part in parts if part["objective"] == objective]
        without = sum(part["without"] for part in own)
        for kind in KINDS:
            rows = [row for part in own for row in part["covered"][kind]]
            hits = np.array([[int(hit) for hit in row] for row in rows])
            found.append(
                Coverage(
                    objective, kind, estimate(hits.mean(1).tolist()), hits.mean(0).tolist(),
                    len(rows), without,
                )
            )  # fmt: skip
    return found


def coverage_table(coverages: Sequence[Coverage]) -> Table:
    """A row an objective and kind, in per cent."""
    rows = [
        [
            Cell(f"{METHODS[c.objective]}, {c.kind}"),
            Cell(f"{100 * c.all.mean:.1f} ± {100 * (c.all.error or 0):.1f}"),
            Cell(f"{100 * min(c.places):.1f} to {100 * max(c.places):.1f}"),
            Cell("yes" if BAND[0] <= c.all.mean <= BAND[1] else "no"),
            Cell(f"{c.replicates:,}", f"{c.without} without" if c.without else ""),
        ]
        for c in coverages
    ]
    columns = ["", "covered, per cent", "by true place", "within 93 to 97", "data sets"]
    return Table("Coverage of 95 % intervals of log-worths", columns, rows)


# -- bootstrap --------------------------------------------------------------------------------


def bootstrap_table(sets: Parts) -> Table:
    """A row a kind of standard error: ratios over items and data sets."""
    rows = []
    for kind in KINDS:
        ratios = np.array([part[kind]["widths"] for part in sets])
        errors = np.array([part[kind]["standard errors"] for part in sets])
        near = np.abs(ratios - 1) <= NEAR
        rows.append(
            [
                Cell(kind), Cell(f"{ratios.mean():.3f}"),
                Cell(f"{ratios.min():.3f} to {ratios.max():.3f}"),
                Cell(f"{errors.mean():.3f}"), Cell(f"{near.sum()} of {near.size}"),
            ]
        )  # fmt: skip
    columns = [
        "Wald intervals by", "width, mean ratio", "least to most", "standard errors, mean ratio",
        "within 10 %",
    ]  # fmt: skip
    return Table("Bootstrap intervals over Wald intervals", columns, rows)


# -- plot -------------------------------------------------------------------------------------


def _plot(grid: Grid, coverages: Sequence[Coverage], sets: Parts) -> bytes:
    canvas = new_canvas(13, 4.2)
    left, middle, right = canvas.subplots(1, 3)
    if grid.methods:
        (items,) = grid.items
        draw_panel(left, against_lists(grid, items))
        first = grid.estimate(items, grid.lists[0], grid.methods[0]).mean
        line = [first * grid.lists[0] / n for n in grid.lists]
        left.plot(grid.lists, line, ":", color="#666666", label="slope −1")
        left.set(ylabel="MSE of log-worths")
        left.legend(fontsize="small")
    for coverage, colour, mark in zip(
        coverages, ("#0b5394", "#6fa8dc", "#cc5500", "#e69138"), "osD^", strict=False
    ):
        places = range(1, len(coverage.places) + 1)
        name = f"{METHODS[coverage.objective]}, {coverage.kind}"
        middle.plot(places, coverage.places, mark, color=colour, markersize=5, label=name)
    middle.axhspan(*BAND, color="#0b5394", alpha=0.08)
    middle.axhline(0.95, color="#666666", linewidth=1, linestyle=":")
    middle.set(xlabel="true place of the item", ylabel="coverage of 95 % intervals")
    if coverages:
        middle.legend(  # below: marks may be anywhere
            fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
        )
    for i, kind in enumerate(KINDS if sets else ()):
        ratios = np.ravel([part[kind]["widths"] for part in sets])
        at = i + np.linspace(-0.2, 0.2, len(ratios))  # side by side, or dots hide each other
        right.plot(at, ratios, "o", color="#0b5394", markersize=4, alpha=0.6)
    right.axhspan(1 - NEAR, 1 + NEAR, color="#0b5394", alpha=0.08)
    right.axhline(1, color="#666666", linewidth=1, linestyle=":")
    right.set_xticks(range(len(KINDS)), KINDS)
    right.set(xlabel="Wald intervals by", ylabel="bootstrap width over Wald width")
    for axes in (middle, right):
        axes.grid(alpha=0.3)
    return as_png(canvas)
