"""Figures 1 and 3 of Ma et al. (2021): how well worths are recovered, over items and lists.

    python experiments/worths_recovery.py
    python experiments/worths_recovery.py --items 10 100 --lists 100 1000 --jobs 2

Data are drawn as in section 4.1; every method trains a score an item by AdaGrad with early
stopping; the mean squared error is between softmax(scores) and the true worths. A fit that is done
is kept in the output folder, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from command import run
from extreme_report import PAPER, Report
from page import Cell, Table
from worths_grid import Grid, against_items, against_lists, panels_plot
from worths_jobs import Result, Settings, Store, run_cells
from worths_training import (
    METHODS,
    ORACLE,
    OURS,
    PAPERS,
    Training,
    data_for,
    mean_squared_error,
    train,
)

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


def perform(cell: Settings) -> Result:
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


Fits = Sequence[Mapping[str, Any]]

PAIRWISE = ("ranknet", "ranksvm")
LABEL = "MSE of the worths"
FIGURE_3_ITEMS = (100, 1_000, 10_000)
NOTES = (
    "A seed decides about worths, lists, which of them are held out and the order of the others, "
    "and is the same for all methods. ± and error bars are a standard error of the mean over "
    "seeds. Differences are paired by seed.",
    "PL-TopK is the oracle: it sees the order of the items above the rest, from the same draws.",
    "RankNet's pairs are not independent, and those of a list that are in different tiers are not "
    "a random choice of all pairs. RankSVM's scale is that of its margin. As in the paper, the "
    "softmax of the scores is taken of all alike.",
    "The paper does not say what early stopping looks at. Here it is the method's own loss on the "
    "lists held out.",
)


def figure_1(grid: Grid, fits: Fits, training: Training) -> Report:
    """MSE against n for the smallest and the largest N, and against N likewise."""
    rows = [
        [against_lists(grid, items) for items in _ends(grid.items)],
        [against_items(grid, lists) for lists in _ends(grid.lists)],
    ]
    report = _report(grid, fits, training, "figure-1", "Figure 1: error of the worths")
    report.plot = panels_plot(rows, LABEL)
    report.caption = "MSE of the worths against the number of lists n, and of items N."
    return report


def figure_3(grid: Grid, fits: Fits, training: Training) -> Report:
    """MSE against n, a panel an N: those of the paper, or all if none of them is there."""
    chosen = [items for items in FIGURE_3_ITEMS if items in grid.items] or grid.items
    report = _report(grid, fits, training, "figure-3", "Figure 3: error of the worths, by items")
    report.tables = [error_table(grid, chosen)]
    report.plot = panels_plot([[against_lists(grid, items) for items in chosen]], LABEL)
    report.caption = "MSE of the worths against the number of lists n, a panel for each N."
    return report


def _ends(sizes: Sequence[int]) -> list[int]:
    return sorted({sizes[0], sizes[-1]})


def _report(grid: Grid, fits: Fits, training: Training, stem: str, title: str) -> Report:
    return Report(
        stem=stem,
        title=title,
        introduction=[
            f"Section 4.1 of {PAPER}: lists drawn from known worths, cut into 4 tiers with at most "
            "500 items above the rest, and worths estimated from them."
        ],
        tables=[error_table(grid), behind_table(grid), claims_table(grid)],
        plot=b"",
        caption="",
        settings=_settings(training, fits),
        notes=NOTES,
        csv=grid.to_csv(),
        more={"cells": grid.to_json(), "fits": fits},
        details=[ended_table(grid, fits)],
    )


def _settings(training: Training, fits: Fits) -> dict[str, str]:
    return {
        "parameters": "a score an item, from 0, in float32",
        "optimiser": f"AdaGrad, initial learning rate {training.rate:g}, batches of "
        f"{training.batch} lists",
        "held out": f"{training.held_out:g} of the lists, at most {training.most_held_out}",
        "early stopping": f"the scores with the lowest loss on those, looked at every "
        f"{training.check} steps; ends after {training.patience} looks without a lower one, or "
        f"{training.steps:,} steps",
        "seeds": str(len({fit["seed"] for fit in fits})),
    }


def error_table(grid: Grid, of_items: Sequence[int] | None = None) -> Table:
    """A row a cell, a column a method; the lowest but for the oracle is marked and named.

    `of_items` chooses rows; None: all.
    """
    rows = []
    for items, lists in grid.cells:
        if of_items is not None and items not in of_items:
            continue
        lowest = grid.lowest(items, lists)
        cells = [
            Cell(str(grid.estimate(items, lists, method)), best=method == lowest)
            for method in grid.methods
        ]
        named = Cell(METHODS[lowest] if lowest else "–", best=lowest == OURS)
        rows.append([Cell(f"N = {items:,}, n = {lists:,}"), *cells, named])
    names = [METHODS[m] + (" (oracle)" if m == ORACLE else "") for m in grid.methods]
    return Table("Mean squared error of the worths", ["", *names, "lowest"], rows)


def behind_table(grid: Grid) -> Table:
    """Every cell where PL-Partition is not the lowest; one row that says so if there is none."""
    rows = [
        [
            Cell(f"N = {each.items:,}, n = {each.lists:,}"), Cell(METHODS[each.method]),
            Cell(_signed(each.difference)), Cell(f"{each.ratio:.2f}"),
            Cell(f"{each.seeds} of {len(grid.values(each.items, each.lists, OURS))}"),
        ]
        for each in grid.behind()
    ] or [[Cell("no cell"), *[Cell("–")] * 4]]  # fmt: skip
    columns = ["", "lower", "difference", "ratio of means", "seeds in which it is lower"]
    return Table("Where PL-Partition is not the lowest", columns, rows)


def _signed(difference: Any) -> str:
    text = f"{difference.mean:+.2e}"
    return text if difference.error is None else f"{text} ± {difference.error:.0e}"


def claims_table(grid: Grid) -> Table:
    """What section 4.1 says, beside what came out here."""
    rows = []
    if OURS in grid.methods:
        behind = list(dict.fromkeys((each.items, each.lists) for each in grid.behind()))
        text = f"in {len(grid.cells) - len(behind)} of {len(grid.cells)} cells"
        if behind:
            where = "; ".join(f"N = {items:,}, n = {lists:,}" for items, lists in behind)
            text += f"; not at {where}"
        claim = "PL-Partition has the lowest MSE of all but the oracle, in every configuration"
        rows.append([Cell(claim), Cell(text)])
    if {"pl-lb", *PAIRWISE} <= set(grid.methods):
        worse = grid.above_all("pl-lb", PAIRWISE)
        text = "; ".join(
            f"N = {items:,}: above both in {len(lists)} of {len(grid.lists)} cells"
            for items, lists in worse.items()
        )
        claim = "PL-LB is worse than the pairwise methods when N is small"
        rows.append([Cell(claim), Cell(text)])
    return Table("The paper's claims", ["section 4.1", "here"], rows, kind="words")


def ended_table(grid: Grid, fits: Fits) -> Table:
    """How many fits had to end because there were no more steps, and the seconds they took."""
    rows = []
    for items, lists in grid.cells:
        cells = [Cell(f"N = {items:,}, n = {lists:,}")]
        for method in grid.methods:
            own = [
                f for f in fits if (f["items"], f["lists"], f["method"]) == (items, lists, method)
            ]
            limit = sum(fit["ended"] == "steps" for fit in own)
            seconds = sum(fit["seconds"] for fit in own) / len(own)
            cells.append(Cell(f"{limit} of {len(own)}", f"{seconds:.0f} s"))
        rows.append(cells)
    names = [METHODS[method] for method in grid.methods]
    return Table("Fits that took all steps, and seconds of a fit", ["", *names], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run; None: with the arguments of the command line."""
    run(options(), experiment, arguments)


if __name__ == "__main__":
    main()
