"""`tierrank demo`: a simulation that shows what the exact likelihood is good for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierrank.cli.aggregation.places import check_file
from tierrank.cli.app import app
from tierrank.cli.messages import explained


def _picture(path: Path) -> Path:
    """A place where a plot can be saved: better known before the work than after it."""
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"a plot is a .png, .pdf or .svg file, and {path} is none")
    check_file(path, "--out")
    return path


@app.command()
@explained
def demo(
    items: Annotated[int, typer.Option(min=3, help="Items to rank.")] = 30,
    lists: Annotated[int, typer.Option(min=8, help="Lists in the largest data set.")] = 4000,
    tiers: Annotated[int, typer.Option(min=2, help="Tiers a list is cut into.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[
        Path, typer.Option(callback=_picture, help="Where to save the plot (.png, .pdf or .svg).")
    ] = Path("tierrank-demo.png"),
    examples: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default=False,
                     help="Also write small files there, to try the other commands on."),
    ] = None,
) -> None:  # fmt: skip
    """Draw lists with ties from known worths, and see which likelihood finds them again."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from tierrank.demo import OBJECTIVES, run, write_examples
    from tierrank.report.plots import plot_errors

    if tiers > items:
        raise typer.BadParameter(f"{items} items make at most as many tiers, not {tiers}")
    sizes = tuple(sorted({max(2, lists // 4**k) for k in range(4)}))
    console = Console()
    console.print(
        f"{lists:,} lists of {items} items in {tiers} tiers, drawn from known worths (seed {seed})."
    )
    errors: dict[str, list[float]] = {name: [] for name in OBJECTIVES}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Fitting worths", total=len(sizes) * len(OBJECTIVES))
        for fit in run(items, sizes, tiers, seed):
            errors[fit.objective].append(fit.error)
            progress.advance(task)
    table = Table(title="Error of the estimated log-worths (root mean square)")
    table.add_column("objective", overflow="fold")
    for size in sizes:
        table.add_column(f"{size:,} lists", justify="right", overflow="fold")
    for name, values in errors.items():
        table.add_row(name, *(f"{value:.4f}" for value in values))
    console.print(table)
    plot_errors(
        out, sizes, errors,
        title=f"Worths of {items} items from lists of {tiers} tiers",
        xlabel="lists", ylabel="error of log-worths (RMS)",
    )  # fmt: skip
    console.print(f"The plot is in {out}")
    if examples is not None:
        write_examples(examples, seed)
        console.print(f"Files to try the other commands on are in {examples}")
