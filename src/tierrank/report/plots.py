"""Plots, saved as files: they need no screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def plot_errors(
    path: Path, x: Sequence[float], errors: Mapping[str, Sequence[float]], *,
    title: str, xlabel: str, ylabel: str,
) -> None:  # fmt: skip
    """Lines of errors against x, both logarithmic, one line a method."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
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


def save(figure: object, path: Path) -> None:
    """Write beside and rename, so that no half-written file is ever seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=150)  # type: ignore[attr-defined]
    temporary.replace(path)
