"""`tierrank demo` and `tierrank simulate`: lists drawn from known worths.

The one shows what the exact likelihood is good for; the other writes lists, to see whether a fit
finds the worths again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tierrank.cli.app import app
from tierrank.cli.messages import explained, stderr, waiting
from tierrank.cli.options import Seed, check_file, write

if TYPE_CHECKING:
    from torch import Tensor

    from tierrank.data import Rankings

MOST_WRITTEN = 20_000_000  # items of all lists that a table or a PrefLib file is made of


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


@app.command()
@explained
def simulate(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", show_default=False,
                       help="File of rankings: .jsonl, .csv, .tsv, .parquet, .toc or .toi, also "
                       "with .gz, .xz or .bz2 behind. Large ones are best as .jsonl."),
    ],
    items: Annotated[int, typer.Option(min=2, help="Items to rank.")] = 100,
    lists: Annotated[int, typer.Option(min=1, help="Lists.")] = 1000,
    tiers: Annotated[
        int, typer.Option(min=2, help="Tiers of each list, the last one among them.")
    ] = 4,
    most_above: Annotated[
        int, typer.Option(min=1, help="Items above the last tier, at most.")
    ] = 500,
    seed: Seed = 0,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False,
                     help="Write the true log-worths, with mean 0, as CSV: item, log_worth."),
    ] = None,
) -> None:  # fmt: skip
    """Draw rankings from the Plackett-Luce model, and cut them into tiers at random.

    Log-worths are uniform on [0, log N], as in section 4.1 of Ma et al. (2021). All items that a
    list does not name are tied in its last place.
    """
    from tierrank.data import Rankings, write_rankings
    from tierrank.data.synthetic import simulate as drawn

    check_file(out, "OUT")
    if truth is not None:
        check_file(truth, "--truth")
        if truth.absolute() == out.absolute():
            raise typer.BadParameter("--truth: the rankings are in this file, give another")
    _check_format(out, items, lists)
    with waiting("Drawing rankings"):
        log_worths, found = drawn(items, lists, tiers=tiers, most_above=most_above, seed=seed)
        rankings = Rankings(found, [1.0] * lists)  # type: ignore[arg-type]
    with waiting(f"Writing {out}"):
        write_rankings(_for_format(rankings, out), out)
    write(truth, "The truth", lambda: _truth_csv(log_worths))
    stderr().print(
        f"{lists:,} lists of {items:,} items in {tiers} tiers are in {out}", markup=False,
        soft_wrap=True,
    )  # fmt: skip


def _check_format(out: Path, items: int, lists: int) -> None:
    """Refuse what the format cannot hold, before anything is drawn."""
    from tierrank.data.files import DataFileError, without_compression
    from tierrank.data.rankings.reading import format_of

    if format_of(out) == "jsonl":
        return
    suffix = without_compression(out).suffix.lower()
    if suffix in (".soc", ".soi", ".cat"):
        raise DataFileError(
            out, None, f"{suffix} files hold no tiers of this kind: use .toc, .jsonl or .csv."
        )
    if items * lists > MOST_WRITTEN:
        raise DataFileError(
            out,
            None,
            f"{suffix} files name the items of the last tier too, {items * lists:,} in all lists: "
            "use .jsonl, where it is one word for all.",
        )


def _for_format(rankings: Rankings, out: Path) -> Rankings:
    """Write the last tier out where the format has no word for it."""
    from tierrank.data.rankings.reading import format_of
    from tierrank.tiers.selection import with_rest_written

    if format_of(out) == "jsonl":
        return rankings
    return replace(rankings, tiers=with_rest_written(rankings.tiers))


def _truth_csv(log_worths: Tensor) -> str:
    centred = (log_worths - log_worths.mean()).tolist()
    rows = (f"{item},{value!r}\n" for item, value in enumerate(centred))
    return "item,log_worth\n" + "".join(rows)
