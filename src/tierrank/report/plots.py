"""Plots and cards, saved as files: they need no screen."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank._types import AnyArray, FloatArray
from tierrank.errors import optional
from tierrank.metrics import from_name
from tierrank.ranking.comparison import Standing, best_mean
from tierrank.report.content import AggregationPage, ItemRow, axis_of, number, rating_decimals
from tierrank.storage import replace_file
from tierrank.training import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tierrank.aggregation.summary import WorthTable
    from tierrank.aggregation.through_time import WorthsThroughTime
    from tierrank.report.aggregation import Look


LOSS_COLOUR, METRIC_COLOUR = "tab:blue", "tab:orange"
_MOST_CHARACTERS = 40


def need_matplotlib() -> None:
    """Say how to get it, where it is not installed: better before the work than after it."""
    optional("matplotlib", "a picture", "plots")


def plot_errors(
    path: Path, x: Sequence[float], errors: Mapping[str, Sequence[float]], *,
    title: str, xlabel: str, ylabel: str,
) -> None:  # fmt: skip
    """Lines of errors against x, both logarithmic, one line a method."""
    figure, axes = _figure(7, 4.5)
    for (name, values), marker in zip(errors.items(), "os^Dv", strict=False):
        axes.plot(x, values, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", title=title, xlabel=xlabel, ylabel=ylabel)
    axes.set_xticks(x, [f"{value:,.0f}" for value in x])
    axes.set_xticks([], minor=True)
    for which in ("major", "minor"):
        axes.yaxis.set_tick_params(which=which, labelsize="small")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "23" else "")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, path)


def plot_curve(path: Path, history: History, *, title: str) -> None:
    """The loss, and on an axis of its own the validation metric, step by step."""
    figure, axes = _figure(7, 4.5)
    title = _no_math(title)
    axes.set(title=title, xlabel=history.unit, ylabel="mean training loss")
    axes.yaxis.label.set_color(LOSS_COLOUR)
    _curve(axes, history.steps, history.loss, LOSS_COLOUR)
    axes.grid(alpha=0.3)
    axes.locator_params(axis="x", integer=True)
    if history.best_step is not None and history.best_metric is not None:
        right = axes.twinx()
        _curve(right, history.steps, history.metric, METRIC_COLOUR)
        right.set_ylabel(f"validation {history.metric_name}", color=METRIC_COLOUR)
        right.axvline(history.best_step, color="grey", linestyle=":")
        right.plot([history.best_step], [history.best_metric], "o", color=METRIC_COLOUR)
        best = f"best {history.metric_name} {history.best_metric:.4f}"
        axes.set_title(f"{title}: {best} at {history.unit} {history.best_step:,}")
    save(figure, path)


def plot_standings(path: Path, standings: Sequence[Standing], *, title: str) -> None:
    """A dot and its interval for each ranker, the first on top, and a line through the best."""
    figure, axes = _figure(7, 1.4 + 0.38 * len(standings))
    places = range(len(standings), 0, -1)
    best = best_mean(standings)
    axes.axvline(best, color="grey", linestyle=":")
    for place, each in zip(places, standings, strict=True):
        colour = METRIC_COLOUR if each.mean == best else LOSS_COLOUR
        axes.plot([each.low, each.high], [place, place], color=colour, linewidth=2)
        axes.plot([each.mean], [place], "o", color=colour, zorder=5)
        axes.annotate(
            f"{each.mean:.4f}", (each.mean, place), xytext=(0, 6), textcoords="offset points",
            ha="center", fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
        )  # fmt: skip
    names = [_shortened(each.name) for each in standings]
    axes.set_yticks(list(places), names, parse_math=False)  # a name may have a $
    axes.set_ylim(0.4, len(standings) + 0.75)
    axes.set(title=_no_math(title), xlabel=f"{standings[0].metric}, with 95% interval")
    axes.grid(alpha=0.3, axis="x")
    save(figure, path)


def plot_differences(path: Path, standings: Sequence[Standing], *, title: str) -> None:
    """How far each ranker is from the first on the same queries, with intervals: a forest plot.

    What differs beyond chance, by Holm's p-value below 0.05, has another colour. One ranker alone
    is drawn by its mean.
    """
    first, *others = standings
    if not others:
        plot_standings(path, standings, title=title)
        return
    figure, axes = _figure(8.5, 1.8 + 0.36 * len(others))
    axes.axvline(0, color="grey", linestyle=":", zorder=0)
    for place, each in zip(range(len(others), 0, -1), others, strict=True):
        numbers = each.difference_low, each.difference, each.difference_high, each.p_holm
        low, middle, high, corrected = (np.nan if value is None else value for value in numbers)
        colour = METRIC_COLOUR if corrected < 0.05 else LOSS_COLOUR
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot([middle], [place], "s", color=colour, zorder=5)
        p = "<0.001" if corrected < 0.001 else f"{corrected:.3f}"
        _beside(axes, place, f"{middle:+.4f}", f"{each.mean:.4f}", p)
    _beside(axes, len(others) + 0.8, "difference", "mean", "p (Holm)")
    names = [_shortened(each.name) for each in others]
    axes.set_yticks(range(len(others), 0, -1), names, parse_math=False)
    axes.set_ylim(0.4, len(others) + 0.6)
    better = "higher" if from_name(first.metric).higher_is_better else "lower"
    axes.set_xlabel(
        f"{first.metric} less that of {_no_math(_shortened(first.name))} ({first.mean:.4f}), with "
        f"95% interval; {better} is better"
    )
    figure.suptitle(_no_math(title))
    axes.margins(x=0.08)
    axes.grid(alpha=0.3, axis="x")
    save(figure, path)


def _beside(axes: Axes, height: float, *words: str) -> None:
    """A row of a table to the right of the axes, which the picture makes room for."""
    for text, at in zip(words, (8, 66, 112), strict=True):
        axes.annotate(
            text, (1, height), xycoords=("axes fraction", "data"), xytext=(at, 0),
            textcoords="offset points", va="center", fontsize="small", annotation_clip=False,
        )  # fmt: skip


def draw_worths(axes: Axes, table: WorthTable, *, of: int) -> None:
    """A dot and its interval for each item, the best on top.

    Parameters
    ----------
    axes
        where to draw
    table
        the items
    of
        how many items there are in all
    """
    rows = [
        ItemRow(str(name), w, 0.0, *((None, None) if low != low else (low, high)))
        for name, w, low, high in zip(
            table.items, table.estimates.tolist(), table.lower.tolist(), table.upper.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    for place, row in enumerate(rows, start=1):
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place, place], color=LOSS_COLOUR, linewidth=2)
        axes.plot([row.log_worth], [place], "o", color=LOSS_COLOUR, zorder=5)
    names = [_shortened(row.name) for row in rows]
    axes.set_yticks(range(1, len(rows) + 1), names, parse_math=False)
    axes.set_ylim(len(rows) + 0.6, 0.4)
    spanned = axis_of(rows)  # one endless interval must not make all others a dot
    axes.set_xlim(spanned.low, spanned.high)
    known = any(row.low is not None for row in rows)
    interval = f", with {100 * table.level:g}% interval" if known else ""
    axes.set_xlabel(_no_math(f"{table.scale.explained}{interval}"))
    if len(rows) < of:
        axes.set_title(f"the first {len(rows):,} of {of:,} items")
    if table.scale.name != "worth":
        axes.axvline(table.scale.at, color="grey", linestyle=":", zorder=0)
    axes.grid(alpha=0.3, axis="x")


def plot_through_time(path: Path, fitted: WorthsThroughTime, *, level: float, title: str) -> None:
    """The best items of the last period over time."""
    figure, axes = _figure(9, 5)
    fitted.plot_through_time(axes, level=level)
    axes.set_title(_no_math(title))
    save(figure, path)


def draw_through_time(
    axes: Axes,
    moments: AnyArray,
    names: Sequence[str],
    estimate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    level: float,
) -> None:
    """A line and its band for each item, named at its end.

    Parameters
    ----------
    axes
        where to draw
    moments
        [periods] dates or numbers
    names
        [items]
    estimate, low, high
        [items, periods] log-worths and the ends of their bands; NaN before an item was seen
    level
        of the bands
    """
    ends = []
    for row, name in enumerate(names):
        colour = f"C{row % 10}"
        axes.fill_between(moments, low[row], high[row], color=colour, alpha=0.12, linewidth=0)
        axes.plot(moments, estimate[row], color=colour, linewidth=1.6)
        ends.append((float(estimate[row, -1]), _shortened(name), colour))
    bottom, top = axes.get_ylim()
    room, below = 0.045 * (top - bottom), np.inf
    for height, name, colour in sorted(ends, reverse=True):
        below = min(height, below - room)  # names that would cover each other go down
        axes.annotate(
            name, (1, below), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", color=colour, va="center", parse_math=False,
        )  # fmt: skip
    axes.margins(x=0)
    axes.axhline(0, color="grey", linestyle=":", zorder=0)
    axes.set_ylabel(f"log-worth (0 is the average item), with {100 * level:g}% band")
    axes.grid(alpha=0.3)


def save(figure: Figure, path: Path) -> None:
    """Write beside and rename, so that no half-written file is ever seen."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lstrip(".") or "png", dpi=150)
    replace_file(path, drawn.getvalue())


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = new_figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def new_figure(**settings: Any) -> Figure:
    """A figure that needs no screen."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(**settings)
    FigureCanvasAgg(figure)
    return figure


def new_axes(width: float, height: float) -> Axes:
    """Axes of a new figure of pyplot, which shows it where there is a screen or a notebook."""
    need_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _curve(axes: Axes, steps: Sequence[int], values: Sequence[float | None], colour: str) -> None:
    """A line through the steps that have a value; dots too where there are few."""
    there = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    if there:
        x, y = zip(*there, strict=True)
        axes.plot(x, y, color=colour, marker="." if len(there) < 30 else None)


def _no_math(text: str) -> str:
    """The same where matplotlib would set what stands between two $ as a formula."""
    return text.replace("$", r"\$")


def _shortened(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"…{name[1 - _MOST_CHARACTERS :]}"


# -- the card of a ranking: its first items, for those who share the page --------------------------

WIDTH, HEIGHT = 1200, 630
MOST_ROWS = 10
_INK, _MUTED, _LINE, _BEST = "#1c2126", "#59626c", "#e4e6e9", "#0b5aa6"


def card_png(page: AggregationPage, look: Look | None = None) -> bytes:
    """A PNG of 1200 by 630: title, what was counted, and the first ten with their intervals."""
    colour = (look.on_paper() if look else "") or _BEST
    rows = page.rows[:MOST_ROWS]
    decimals, axis = rating_decimals(page.rows), axis_of(rows)
    figure = new_figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    said: dict[str, Any] = {"parse_math": False, "color": _INK}  # a name may have a $
    figure.text(0.05, 0.885, _in_room(page.title, 48), fontsize=30, fontweight="bold", **said)
    data = page.connectivity
    told = f"{data.items:,} items ranked by {data.lists:,} {data.seen}"
    figure.text(0.05, 0.825, told, fontsize=15, **(said | {"color": _MUTED}))
    plot = figure.add_axes((0.42, 0.07, 0.45, 0.71))
    for tick in axis.ticks:
        plot.axvline(tick, color=_LINE, linewidth=1, zorder=0)
    for place, row in enumerate(rows):
        value, low, high = row.shown
        if low is not None and high is not None:
            ends = [max(low, axis.low), min(high, axis.high)]
            plot.plot(ends, [place, place], color=colour, linewidth=3, alpha=0.7,
                      solid_capstyle="round")  # fmt: skip
        plot.plot([value], [place], "o", color=colour, markersize=10, zorder=3)
        height = 0.78 - 0.71 * (place + 0.5) / len(rows)
        middle: dict[str, Any] = {"fontsize": 17, "va": "center", **said}
        figure.text(0.085, height, f"{place + 1}", ha="right", **(middle | {"color": _MUTED}))
        figure.text(0.105, height, _in_room(row.name, 32), **middle)
        figure.text(0.95, height, number(value, decimals), ha="right", fontweight="bold", **middle)
    plot.set_xlim(axis.low, axis.high)
    plot.set_ylim(len(rows) - 0.5, -0.5)
    plot.set_axis_off()
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": None})
    return made.getvalue()


def _in_room(text: str, most: int) -> str:
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text).strip() or "(no name)"
    return text if len(text) <= most else f"{text[: most - 1]}…"
