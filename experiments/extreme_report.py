"""What the experiments over huge label sets show: tables, plots, pages and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import machine, show
from extreme_data import DataSet
from extreme_figures import Difference, Figure, Figures
from page import Cell, Table, facts, page
from plots import LINES, as_png, new_canvas
from printed import LEADERS, XML
from scores import p_text

from tierrank.storage import replace_file

PAPER = (
    "Ma, Yi, Tang, Zhao, Hong, Chi and Mei (2021), Learning-to-Rank with Partitioned Preference: "
    "Fast Estimation for the Plackett-Luce Model"
)

MEASURES_NOTE = (
    "P@k and nDCG@k are means over all test rows, those without labels among them, as 0. PSP@k and "
    "PSnDCG@k are ratios of sums over all rows, with 1/p_l = 1 + C (N_l + B)^−A, C = (ln N − 1) "
    "(B + 1)^A, A = 0.55, B = 1.5, and N and N_l counted on all training rows. PSnDCG is "
    "napkinXC's (docs/extreme-metrics.md). The paper does not say what its own is; beyond k = 1 it "
    "is another one, since on D-1K it lies far above where all other measures agree."
)
SEEDS_NOTES = (
    "A figure is the mean over the seeds, with their standard deviation behind ±. A seed decides "
    "about first weights, the order of rows and which of them are held out for validation.",
    "p-values are those of a two-sided paired randomisation test over the test rows, whose values "
    "are means over the seeds; they are not corrected for their number.",
)
DRAWN = (
    "The data are drawn at random with the sizes and frequencies of the real set. What is printed "
    "is of the real one: compare who is ahead, and not the values."
)


def printed_for(paper: str | None) -> dict[tuple[str, str], float]:
    """What is printed of a data set, in per cent, by method and measure."""
    known = {**XML, **LEADERS}
    return {(m, measure): value for (data, m, measure), value in known.items() if data == paper}


# -- cells ------------------------------------------------------------------------------------


def value_cell(figure: Figure, best: bool = False, small: str = "") -> Cell:
    """A mean, with the seeds' standard deviation."""
    text = f"{figure.mean:.2f}"
    if figure.deviation is not None:
        text += f" ± {figure.deviation:.2f}"
    return Cell(text, small, best=best)


def printed_cell(value: float | None, best: bool = False) -> Cell:
    """What is printed, or a dash."""
    return Cell("–" if value is None else f"{value:.2f}", kind="printed", best=best)


def difference_cell(difference: Difference) -> Cell:
    """By how much, with its p-value."""
    text = f"{difference.mean:+.2f}"
    if difference.deviation is not None:
        text += f" ± {difference.deviation:.2f}"
    return Cell(text, f"p {p_text(difference.p_value, '= ')}")


# -- tables -----------------------------------------------------------------------------------


def measure_table(
    figures: Figures, title: str, measures: Sequence[str], methods: Sequence[str], text: str = ""
) -> Table:
    """A row a measure, for each method ours and what is printed, and who is best in either."""
    rows = []
    for measure in measures:
        ours = {method: figures[method, measure] for method in methods}
        printed = {m: f.printed for m, f in ours.items() if f.printed is not None}
        best, best_printed = (max(v, key=v.__getitem__) if v else "–" for v in (
            {m: f.mean for m, f in ours.items()}, printed,
        ))  # fmt: skip
        cells = [Cell(measure)]
        for method, figure in ours.items():
            cells.append(value_cell(figure, method == best))
            cells.append(printed_cell(figure.printed, method == best_printed))
        rows.append([*cells, Cell(best), Cell(best_printed, kind="printed")])
    columns = ["", *("ours", "printed") * len(methods), "ours", "printed"]
    groups = [("", 1), *((method, 2) for method in methods), ("best", 2)]
    return Table(title, columns, rows, groups=groups, text=text)


def difference_table(
    figures: Figures, one: str, others: Sequence[str], measures: Sequence[str]
) -> Table:
    """By how much one method is ahead of the others."""
    rows = [
        [Cell(other), *(difference_cell(figures.over(one, other, m)) for m in measures)]
        for other in others
    ]
    return Table(
        f"By how much {one} is ahead, in percentage points", ["of", *measures], rows,
        text="Means over the seeds, paired, with the standard deviation of the difference.",
    )  # fmt: skip


def choice_table(found: Sequence[tuple[str, int, Mapping[str, Any], float]]) -> Table:
    """What validation chose, for each network: name, seed, facts, seconds."""
    rows = []
    for name, seed, facts_, seconds in found:
        if not facts_:
            continue
        metric = facts_["validation"]
        rows.append(
            [
                Cell(name), Cell(str(seed)), Cell(f"{facts_['learning rate']:g}"),
                Cell(str(facts_["epoch"] or "–")),
                Cell("–" if metric is None else f"{100 * metric:.2f}"), Cell(f"{seconds:.0f}"),
            ]
        )  # fmt: skip
    columns = ["method", "seed", "learning rate", "epoch", "validation", "seconds"]
    return Table("What was chosen by validation", columns, rows)


# -- files ------------------------------------------------------------------------------------


@dataclass
class Report:
    """All that is left of a run.

    Attributes
    ----------
    stem
        the files' name without its ending
    title, introduction
        of the page
    tables
        with figures, shown first
    plot, caption
        a PNG, and what it shows
    settings
        how it was run
    notes
        what to know
    csv
        the figures as a table
    more
        what goes into the JSON besides
    """

    stem: str
    title: str
    introduction: Sequence[str]
    tables: Sequence[Table]
    plot: bytes
    caption: str
    settings: Mapping[str, str]
    notes: Sequence[str]
    csv: str
    more: Mapping[str, Any] = field(default_factory=dict)
    details: Sequence[Table] = ()  # at the end of the page, and not printed

    def publish(self, folder: Path) -> None:
        """Write STEM.csv, .json, .md, .png and .html, each whole or as it was; print the tables."""
        about = machine()
        text = page(
            self.title, self.introduction, self.tables, self.plot, self.caption, self.notes,
            [*self.details, facts("Settings", self.settings), facts("Machine", about)],
        )  # fmt: skip
        content = {
            "title": self.title, "settings": self.settings, "machine": about, "notes": self.notes,
            **self.more,
        }  # fmt: skip
        as_json = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        parts: dict[str, bytes] = {
            "csv": self.csv.encode(),
            "json": as_json.encode(),
            "md": "\n".join(table.markdown() for table in self.tables).encode(),
            "png": self.plot,
            "html": text.encode(),
        }
        for ending, part in parts.items():
            replace_file(folder / f"{self.stem}.{ending}", part)
        for table in self.tables:
            show(table)
        print(f"{folder / self.stem}.html has it all.")


def notes_for(data: DataSet, *more: str) -> list[str]:
    """What to know, of these data."""
    return [*([DRAWN] if data.drawn else []), MEASURES_NOTE, *more]


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
