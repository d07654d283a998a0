"""Figures 1 and 3 of Ma et al. (2021): how well worths are recovered, over items and lists.

    python experiments/worths_recovery.py
    python experiments/worths_recovery.py --items 10 100 --lists 100 1000 --jobs 2

Data are drawn as in section 4.1; every method trains a score an item by AdaGrad with early
stopping; the mean squared error is between softmax(scores) and the true worths. A fit that is done
is kept in the output folder, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from command import run
from worths_grid import Grid
from worths_jobs import Cell, Result, Store, run_cells
from worths_recovery_report import figure_1, figure_3
from worths_training import METHODS, PAPERS, Training, data_for, mean_squared_error, train

ITEMS = (10, 100, 1_000, 10_000)
LISTS = (100, 1_000, 10_000)


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--items", type=int, nargs="+", default=list(ITEMS), metavar="N",
        help=f"sizes of the catalogue, 4 or more (default {' '.join(map(str, ITEMS))})",
    )  # fmt: skip
    parser.add_argument(
        "--lists", type=int, nargs="+", default=list(LISTS), metavar="N",
        help=f"how many lists (default {' '.join(map(str, LISTS))})",
    )  # fmt: skip
    parser.add_argument(
        "--methods", nargs="+", choices=tuple(METHODS), default=list(PAPERS), metavar="METHOD",
        help=f"of {', '.join(METHODS)} (default: the paper's six)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5, help="how many (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (default 0)")
    default = Training()
    parser.add_argument(
        "--steps", type=int, default=default.steps, help=f"at most (default {default.steps:,})"
    )
    parser.add_argument(
        "--held-out", type=float, default=default.held_out, metavar="SHARE",
        help=f"of the lists, to stop by (default {default.held_out})",
    )  # fmt: skip
    parser.add_argument(
        "--patience", type=int, default=default.patience, metavar="LOOKS",
        help=f"at the lists held out, one every {default.check} steps, without a lower loss "
        f"(default {default.patience})",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="fits at once, each in a process with one thread (default 1, with all threads)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, help="threads (default: torch's choice)")
    parser.add_argument(
        "--out", type=Path, default=Path("out", "worths-recovery"), metavar="DIR",
        help="where results and finished fits go (default out/worths-recovery)",
    )  # fmt: skip
    return parser


def perform(cell: Cell) -> Result:
    """Draw the data, fit, and compare with the truth."""
    worths, tiers = data_for(cell["method"], cell["items"], cell["lists"], cell["seed"])
    done = train(cell["method"], tiers, Training(**cell["training"]), cell["seed"])
    return {
        "mse": mean_squared_error(done.scores, worths), "best step": done.best_step,
        "steps": done.steps, "ended": done.ended, "seconds": round(done.seconds, 2),
    }  # fmt: skip


def cells_of(chosen: argparse.Namespace, training: Training) -> list[dict[str, Any]]:
    """All fits; those of one data set follow each other."""
    if chosen.seeds < 1:
        raise ValueError(f"--seeds is how many, 1 or more, not {chosen.seeds}")
    for name, least in (("items", 4), ("lists", 2)):
        wrong = [size for size in getattr(chosen, name) if size < least]
        if wrong:
            raise ValueError(f"--{name} {wrong[0]}: at least {least} are needed")
    return [
        {"method": method, "items": items, "lists": lists, "seed": seed,
         "training": asdict(training)}
        for items in sorted(set(chosen.items))
        for lists in sorted(set(chosen.lists))
        for seed in range(chosen.seed, chosen.seed + chosen.seeds)
        for method in dict.fromkeys(chosen.methods)
    ]  # fmt: skip


def experiment(chosen: argparse.Namespace) -> None:
    """Fit what is not fitted yet, and write both figures."""
    training = Training(
        held_out=chosen.held_out, patience=chosen.patience, steps=chosen.steps
    )  # fmt: skip
    cells = cells_of(chosen, training)
    results = run_cells(cells, perform, Store(chosen.out), chosen.jobs)
    grid = Grid(
        (cell["items"], cell["lists"], cell["method"], cell["seed"], result["mse"])
        for cell, result in zip(cells, results, strict=True)
    )
    fits = [{**cell, **result} for cell, result in zip(cells, results, strict=True)]
    for report in (figure_3(grid, fits, training), figure_1(grid, fits, training)):
        report.publish(chosen.out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run; None: with the arguments of the command line."""
    run(options(), experiment, arguments)


if __name__ == "__main__":
    main()
