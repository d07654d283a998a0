"""What recovery shows: errors by cell, where PL-Partition is not the lowest, the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from extreme_report import PAPER, Report
from page import Cell, Table
from worths_grid import Grid
from worths_plots import against_items, against_lists, panels_plot
from worths_training import METHODS, ORACLE, OURS, Training

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
