"""Are the worths right: do they converge, do intervals cover, does the bootstrap agree?

    python experiments/worths_statistics.py
    python experiments/worths_statistics.py --studies coverage --replicates 200

Data are drawn as in section 4.1 of Ma et al. (2021), and worths are fitted by `RankAggregator`.
What is done is kept in the output folder, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command import run
from scipy.special import ndtri
from worths_jobs import Cell, Result, Store, run_cells
from worths_statistics_report import report

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


def perform(cell: Cell) -> Result:
    """One part of a study."""
    return {"convergence": squared_error, "coverage": covered, "bootstrap": widths}[cell["study"]](
        cell
    )


def squared_error(cell: Cell) -> Result:
    """Mean squared error of the centred log-worths."""
    truth, tiers = drawn(cell["items"], cell["lists"], cell["seed"])
    found = RankAggregator(cell["objective"], solver="newton").fit(tiers).log_worths_
    return {"mse": float(np.mean((found - truth) ** 2))}


def covered(cell: Cell) -> Result:
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


def widths(cell: Cell) -> Result:
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run; None: with the arguments of the command line."""
    run(options(), experiment, arguments)


if __name__ == "__main__":
    main()
