"""Are the worths right: do they converge, do intervals cover, does the bootstrap agree?

    python experiments/worths_statistics.py
    python experiments/worths_statistics.py --studies coverage --replicates 200

Data are drawn as in section 4.1 of Ma et al. (2021), and worths are fitted by `RankAggregator`.
What is done is kept in the output folder, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import run
from extreme_report import Report
from page import Cell, Table
from plots import as_png, new_canvas
from scipy.special import ndtri
from worths_grid import Estimate, Grid, against_lists, as_csv, draw_panel, estimate
from worths_jobs import Result, Settings, Store, run_cells
from worths_training import METHODS

from tierrank.aggregation.aggregator import RankAggregator
from tierrank.aggregation.connectivity import Disconnected
from tierrank.data.synthetic import simulate
from tierrank.tiers import Tiers

STUDIES = ("convergence", "coverage", "bootstrap")
SIZES = (100, 400, 1_600, 6_400, 25_600)
OBJECTIVES = ("pl-partition", "pl-efron", "pl-lb")
COVERAGE_OBJECTIVES = ("pl-partition", "pl-lb")
KINDS = ("information", "sandwich")
PART = 50  # replicates of a cell
REACH = float(ndtri(0.975))


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--studies", nargs="+", choices=STUDIES, default=list(STUDIES), metavar="STUDY",
        help=f"of {', '.join(STUDIES)} (default: all)",
    )  # fmt: skip
    parser.add_argument("--items", type=int, default=10, help="4 or more (default 10)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), metavar="N",
        help=f"lists, of convergence (default {' '.join(map(str, SIZES))})",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=int, default=20, help="data sets of a size, of convergence (default 20)"
    )
    parser.add_argument(
        "--lists", type=int, default=400, help="of coverage and bootstrap (default 400)"
    )
    parser.add_argument(
        "--replicates", type=int, default=1000, help="data sets, of coverage (default 1,000)"
    )
    parser.add_argument(
        "--sets", type=int, default=5, help="data sets, of the bootstrap (default 5)"
    )
    parser.add_argument(
        "--draws", type=int, default=2000, help="of a bootstrap, from one data set (default 2,000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default 0)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="at once, each in a process with one thread (default 1, with all threads)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, help="threads (default: torch's choice)")
    parser.add_argument(
        "--out", type=Path, default=Path("out", "worths-statistics"), metavar="DIR",
        help="where results go (default out/worths-statistics)",
    )  # fmt: skip
    return parser


# -- computations -----------------------------------------------------------------------------


def drawn(items: int, lists: int, seed: int) -> tuple[Any, Tiers]:
    """True centred log-worths, and lists."""
    log_worths, tiers = simulate(items, lists, seed=seed)
    return (log_worths - log_worths.mean()).numpy(), tiers


def perform(cell: Settings) -> Result:
    """One part of a study."""
    return {"convergence": squared_error, "coverage": covered, "bootstrap": widths}[cell["study"]](
        cell
    )


def squared_error(cell: Settings) -> Result:
    """Mean squared error of the centred log-worths."""
    truth, tiers = drawn(cell["items"], cell["lists"], cell["seed"])
    found = RankAggregator(cell["objective"], solver="newton").fit(tiers).log_worths_
    return {"mse": float(np.mean((found - truth) ** 2))}


def covered(cell: Settings) -> Result:
    """For each replicate and kind, a 1 or 0 an item, from the best to the last: was it covered?

    A replicate without a finite estimate has no interval, and is counted instead.
    """
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    without = 0
    for seed in range(cell["seed"], cell["seed"] + cell["replicates"]):
        truth, tiers = drawn(cell["items"], cell["lists"], seed)
        try:
            fitted = RankAggregator(cell["objective"], solver="newton").fit(tiers)
        except Disconnected:
            without += 1
            continue
        miss = np.abs(fitted.log_worths_ - truth)[np.argsort(-truth)]
        for kind in KINDS:
            errors = np.sqrt(np.diag(fitted.covariance(kind=kind)))[np.argsort(-truth)]
            found[kind].append("".join("01"[int(hit)] for hit in miss <= REACH * errors))
    return {"covered": found, "without": without}


def widths(cell: Settings) -> Result:
    """By item: 95 % percentile intervals of the bootstrap over Wald intervals, and both errors."""
    _, tiers = drawn(cell["items"], cell["lists"], cell["seed"])
    fitted = RankAggregator("pl-partition", solver="newton").fit(tiers)
    again = fitted.bootstrap(cell["draws"], random_state=cell["seed"])
    low, high = again.intervals(0.95)
    errors = {kind: np.sqrt(np.diag(fitted.covariance(kind=kind))) for kind in KINDS}
    return {
        "without": again.without_estimate,
        **{
            kind: {
                "widths": ((high - low) / (2 * REACH * errors[kind])).tolist(),
                "standard errors": (again.standard_errors / errors[kind]).tolist(),
            }
            for kind in KINDS
        },
    }


# -- the program ------------------------------------------------------------------------------


def cells_of(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """All parts of all studies that are asked for."""
    for name in ("seeds", "replicates", "sets", "draws"):
        if getattr(chosen, name) < 2:
            raise ValueError(f"--{name} is 2 or more, not {getattr(chosen, name)}")
    if chosen.items < 4 or min(chosen.lists, *chosen.sizes) < 2:
        raise ValueError("--items is 4 or more, --lists and --sizes are 2 or more")
    sizes = sorted(set(chosen.sizes))
    if len(sizes) < 2:
        raise ValueError("--sizes: a slope needs at least 2")
    common = {"items": chosen.items}
    convergence = [
        {"study": "convergence", "objective": objective, **common, "lists": lists, "seed": seed}
        for objective in OBJECTIVES
        for lists in sizes
        for seed in range(chosen.seed, chosen.seed + chosen.seeds)
    ]
    coverage = [
        {"study": "coverage", "objective": objective, **common, "lists": chosen.lists,
         "seed": chosen.seed + first, "replicates": min(PART, chosen.replicates - first)}
        for objective in COVERAGE_OBJECTIVES
        for first in range(0, chosen.replicates, PART)
    ]  # fmt: skip
    bootstrap = [
        {"study": "bootstrap", **common, "lists": chosen.lists, "seed": seed, "draws": chosen.draws}
        for seed in range(chosen.seed, chosen.seed + chosen.sets)
    ]
    every = [*convergence, *coverage, *bootstrap]
    return [cell for cell in every if cell["study"] in chosen.studies]


def experiment(chosen: argparse.Namespace) -> None:
    """Compute what is missing, and write the report."""
    cells = cells_of(chosen)
    results = run_cells(cells, perform, Store(chosen.out), chosen.jobs)
    report([{**cell, **result} for cell, result in zip(cells, results, strict=True)]).publish(
        chosen.out
    )


Parts = Sequence[Mapping[str, Any]]

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run; None: with the arguments of the command line."""
    run(options(), experiment, arguments)


if __name__ == "__main__":
    main()
