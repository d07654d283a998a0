"""What the costs are: time and memory by items and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from extreme_report import PAPER, Report
from page import Cell, Table
from worths_grid import Estimate, as_csv, estimate
from worths_plots import Panel, panels_plot
from worths_training import METHODS

Figures = Sequence[Mapping[str, Any]]

MEGABYTE = 2**20
COLUMNS = (
    "method", "items", "seed", "threads", "seconds", "timed steps", "memory", "process", "failed"
)  # fmt: skip
NOTES = (
    "Time is of 1,000 steps, each with taking the lists out of the data, loss, gradient and "
    "AdaGrad's move of all scores. Where fewer steps were timed, it is that of a step times 1,000.",
    "Memory is by how much the process grows while it takes the steps, at the peak: scores, "
    "AdaGrad's sums, gradients and whatever the loss needs. Lists and libraries are there before.",
    "The paper's figures are of a GPU, where all pairs are held in memory at once. Sums over pairs "
    "are compiled here and hold no pair: their memory grows with lists times items, their time "
    "with the pairs.",
)


def figure_2(figures: Figures) -> Report:
    """Time and memory against N."""
    items = sorted({figure["items"] for figure in figures})
    methods = [method for method in METHODS if any(f["method"] == method for f in figures)]
    panels = [
        Panel("Time of 1,000 steps, seconds", "N, items", items, {
            m: [_mean(figures, m, n, "seconds", 1) for n in items] for m in methods
        }),
        Panel("Memory that they take, MB", "N, items", items, {
            m: [_mean(figures, m, n, "memory", MEGABYTE) for n in items] for m in methods
        }),
    ]  # fmt: skip
    lines = [{name: figure.get(name) for name in COLUMNS} for figure in figures]
    return Report(
        stem="figure-2",
        title="Figure 2: what 1,000 steps cost",
        introduction=[f"Section 4.1 of {PAPER}: time and memory over the number of items."],
        tables=[
            _table("Seconds of 1,000 steps of 20 lists", figures, items, methods, "seconds", 1),
            _table("Memory, MB", figures, items, methods, "memory", MEGABYTE),
        ],
        plot=panels_plot([panels], ""),
        caption="Time and memory of 1,000 steps with 20 lists against the number of items N.",
        settings={
            "batch": "20 lists, cut into 4 tiers with at most 500 items above the rest",
            "seeds": str(len({figure["seed"] for figure in figures})),
            "threads": str(figures[0]["threads"]),
            "budget": f"{figures[0]['budget']:g} s of steps, and {figures[0]['limit']:g} s in all",
        },
        notes=NOTES,
        csv=as_csv(lines),
        more={"figures": list(figures)},
    )


def _of(figures: Figures, method: str, items: int) -> Figures:
    return [f for f in figures if (f["method"], f["items"]) == (method, items)]


def _mean(figures: Figures, method: str, items: int, what: str, unit: float) -> Estimate | None:
    """Over the seeds; None where one of them did not come to an end, or nothing was to be seen."""
    values = [figure.get(what) for figure in _of(figures, method, items)]
    return estimate([value / unit for value in values]) if all(values) else None


def _table(
    title: str, figures: Figures, items: Sequence[int], methods: Sequence[str], what: str,
    unit: float,
) -> Table:  # fmt: skip
    """A row a number of items; in small print how many steps were timed, if not all."""
    rows = []
    for n in items:
        cells = [Cell(f"N = {n:,}")]
        for method in methods:
            own = _of(figures, method, n)
            mean = _mean(figures, method, n, what, unit)
            failed = next((f["failed"] for f in own if "failed" in f), None)
            steps = min((f.get("timed steps", 1000) for f in own), default=1000)
            fewer = f"{steps} timed" if steps < 1000 and what == "seconds" else ""
            text = failed or (three_figures(mean.mean) if mean else f"{0:.1f}")
            cells.append(Cell(text, fewer))
        rows.append(cells)
    return Table(title, ["", *(METHODS[method] for method in methods)], rows)


def three_figures(value: float) -> str:
    """0.0123, 1.23, 12.3, 1,230."""
    rounded = float(f"{value:.2e}")
    decimals = max(0, 2 - int(f"{value:.2e}".partition("e")[2]))
    return f"{rounded:,.{decimals}f}"
