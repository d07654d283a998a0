"""`tierrank demo` and `tierrank simulate`: lists drawn from known worths.

The one shows what the exact likelihood is good for; the other writes lists, to see whether a fit
finds the worths again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank.cli.options import (
    Seed,
    app,
    argument,
    check_file,
    check_picture,
    explained,
    option,
    stderr,
    waiting,
    write,
)

if TYPE_CHECKING:
    from tierrank._types import FloatArray
    from tierrank.data import Rankings

DEFAULT_PLOT = Path("tierrank-demo.png")
MOST_WRITTEN = 20_000_000  # items of all lists that a table or a PrefLib file is made of

OBJECTIVES: dict[str, dict[str, Any]] = {
    "PL-Partition (exact)": {"objective": "pl-partition"},
    "PL-Efron (approximation)": {"objective": "pl-efron"},
    "PL-LB (lower bound)": {"objective": "pl-lb"},
    "ListMLE (ties broken)": {
        "objective": "listmle", "objective_params": {"ties": "random"}, "random_state": 0,
    },
}  # fmt: skip

_ROWS = "Large tables"
FAINT = "gaussian:10"  # so that a handful of lists has an estimate too


@dataclass(frozen=True)
class Door:
    """One of the jobs: lines of code, a table of results, and a file or a picture beside it."""

    title: str
    code: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    said: str
    link: str = ""
    link_text: str = ""
    picture: str = ""
    alt: str = ""


def _picture(path: Path) -> Path:
    """A place where a plot can be saved: better known before the work than after it."""
    check_picture(path, "--out")
    return path


@app.command()
@explained
def demo(
    items: Annotated[int, option("Items to rank.", min=3)] = 30,
    lists: Annotated[int, option("Lists in the largest data set.", min=8)] = 4000,
    tiers: Annotated[int, option("Tiers a list is cut into.", min=2)] = 4,
    seed: Seed = 0,
    out: Annotated[Path, option(
        "Where to save the plot (.png, .pdf or .svg).", callback=_picture
    )] = DEFAULT_PLOT,
    examples: Annotated[Path | None, option(
        "Also write small files there, to try the other commands on; train a ranker, make a "
        "leaderboard and train a network on them; and leave a page, index.html, of what came out.",
        metavar="FOLDER")] = None,
) -> None:  # fmt: skip
    """Draw lists with ties from known worths, and see which likelihood finds them again."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

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
        for objective, error in _errors(items, sizes, tiers, seed):
            errors[objective].append(error)
            progress.advance(task)
    table = Table(title="Error of the estimated log-worths (root mean square)")
    table.add_column("objective", overflow="fold")
    for size in sizes:
        table.add_column(f"{size:,} lists", justify="right", overflow="fold")
    for name, values in errors.items():
        table.add_row(name, *(f"{value:.4f}" for value in values))
    console.print(table)
    if examples is not None and out == DEFAULT_PLOT:
        examples.mkdir(parents=True, exist_ok=True)
        out = examples / "errors.png"
    plot_errors(
        out, sizes, errors,
        title=f"Worths of {items} items from lists of {tiers} tiers",
        xlabel="lists", ylabel="error of log-worths (RMS)",
    )  # fmt: skip
    console.print(f"The plot is in {out}")
    if examples is not None:
        _write_examples(examples, seed)
        console.print(f"Files to try the other commands on are in {examples}")
        with waiting("Training a ranker, making a leaderboard, training a network"):
            page = _three_doors(examples, out, sizes, errors)
        console.print(f"What the three jobs gave is a page to open: {page}", soft_wrap=True)


def _three_doors(
    folder: Path, plot: Path, sizes: Sequence[int], errors: dict[str, list[float]]
) -> Path:
    """Do the three jobs of README on the files of a folder, and write a page of what came out."""
    from os.path import relpath

    import torch

    from tierrank import losses, metrics
    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.cli.estimators import default_kind, make_ranker
    from tierrank.data import read, read_rankings
    from tierrank.report.aggregation import page_environment
    from tierrank.storage import replace_file, save
    from tierrank.tiers import Tiers

    train, valid, test = (read(folder / f"{name}.txt") for name in ("train", "vali", "test"))
    ranker = make_ranker(default_kind(), seed=0)
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=[(valid.X, valid.y, valid.qid)])
    save(ranker, folder / "ranker")
    scores = ranker.predict(test.X)
    measured = []
    for name in ("ndcg@1", "ndcg@10", "map"):
        values = metrics.from_name(name)(scores, test.y, qid=test.qid, reduction="none")
        mean, low, high, _ = metrics.bootstrap_interval(values, generator=0)
        measured.append((name, f"{mean:.4f}", f"{low:.4f} to {high:.4f}"))

    fitted = RankAggregator().fit(read_rankings(folder / "votes.toc"))
    fitted.report(folder / "leaderboard.html", title="Candidates")
    worths = sorted(zip(*fitted.intervals(0.95), fitted.items_, strict=True), reverse=True)

    tiers = Tiers.from_labels(train.y, qid=train.qid)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Linear(train.X.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    rows, unseen = (torch.as_tensor(each.X, dtype=torch.float32) for each in (train, test))
    trained = []
    for step in range(201):
        loss = losses.pl_partition(network(rows).squeeze(1), tiers)
        if step in (0, 20, 200):
            found = network(unseen).detach().squeeze(1).numpy()
            reached = metrics.ndcg(found, test.y, qid=test.qid, k=10)
            trained.append((f"{step}", f"{loss.item():.3f}", f"{reached:.4f}"))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    page = folder / "index.html"
    doors = [
        Door(
            "Graded results became a ranker",
            f"tierrank train {folder}/train.txt --valid {folder}/vali.txt --out {folder}/model\n"
            f"tierrank evaluate {folder}/model {folder}/test.txt\n"
            f"tierrank export {folder}/model {folder}/model.onnx",
            ("test queries", "mean", "95% interval"), measured,
            f"The {type(ranker).__name__} of this table is in {folder / 'ranker'}.",
        ),
        Door(
            "Votes became a leaderboard", f"tierrank aggregate {folder}/votes.toc --out page.html",
            ("candidate", "log-worth", "95% interval"),
            [(str(item), f"{at:.3f}", f"{a:.3f} to {b:.3f}") for at, a, b, item in worths],
            "Who beats whom, places and tiers:", "leaderboard.html", "the whole leaderboard",
        ),
        Door(
            "A loss for a network of your own",
            "tiers = tr.Tiers.from_labels(grades, qid=qid)\n"
            "loss = tr.losses.pl_partition(network(X).squeeze(1), tiers)\nloss.backward()",
            ("step", "loss", "NDCG@10 of test queries"), trained,
            "Does the exact likelihood matter? Error of log-worths fitted to "
            f"{sizes[-1]:,} lists: exact {errors['PL-Partition (exact)'][-1]:.4f}, with ties "
            f"broken {errors['ListMLE (ties broken)'][-1]:.4f}.",
            picture=Path(relpath(plot, folder)).as_posix(),
            alt="Errors of log-worths fall with the number of lists for the exact likelihood, "
            "and settle elsewhere for the others",
        ),
    ]  # fmt: skip
    replace_file(page, page_environment().get_template("demo.html").render(doors=doors).encode())
    return page


def _errors(
    items: int, lists: tuple[int, ...], tiers: int, seed: int
) -> Iterator[tuple[str, float]]:
    """Fit every objective to growing parts of one simulated data set: how far off each is.

    The error is the root mean square, in log-worth.
    """
    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.data.synthetic import simulate

    truth, data = simulate(items, max(lists), tiers=tiers, seed=seed)
    centred = (truth - truth.mean()).numpy()
    for n in lists:
        for name, settings in OBJECTIVES.items():
            fitted = RankAggregator(prior=FAINT, **settings).fit(data[:n])
            yield name, float(((fitted.log_worths_ - centred) ** 2).mean() ** 0.5)


def _write_examples(folder: Path, seed: int) -> None:
    """Write files for the other commands: rows with grades, rows with labels, votes and games."""
    import numpy as np

    from tierrank.data import Rankings, write_letor, write_rankings, write_xc
    from tierrank.data.synthetic import label_sets, simulate
    from tierrank.storage import replace_file
    from tierrank.tiers.selection import with_rest_written

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    for name, queries in (("train", 120), ("vali", 40), ("test", 40)):
        X = generator.normal(size=(queries * 15, 5))
        quality = X[:, 0] - np.abs(X[:, 1]) + 0.3 * generator.gumbel(size=len(X))
        grades = np.digitize(quality, [0, 1, 2])
        qid = np.repeat(np.arange(1, queries + 1), 15)
        write_letor(folder / f"{name}.txt", X.round(3), grades, qid)
    parts = label_sets(
        rows=(300, 100), features=100, labels=40, features_a_row=12, labels_a_row=3, seed=seed
    )
    for name, part in zip(("train", "test"), parts, strict=True):
        write_xc(folder / f"labels-{name}.txt", part)
    _, lists = simulate(8, 200, tiers=4, seed=seed)
    names = tuple(f"candidate {letter}" for letter in "ABCDEFGH")
    votes = Rankings(replace(with_rest_written(lists), names=names), np.ones(len(lists)))
    write_rankings(votes, folder / "votes.toc")
    first, second = np.triu_indices(6, 1)
    games = np.repeat(np.column_stack([first, second]), 20, axis=0)
    noise = generator.logistic(size=len(games)) + 0.5 * (games[:, 1] - games[:, 0])
    winners = np.where(np.abs(noise) < 0.5, "tie", np.where(noise > 0, "model_a", "model_b"))
    rows = [
        f"model {a + 1},model {b + 1},{won}\n" for (a, b), won in zip(games, winners, strict=True)
    ]
    replace_file(folder / "arena.csv", "".join(["model_a,model_b,winner\n", *rows]).encode())


@app.command()
@explained
def simulate(
    target: Annotated[Path | None, argument(
        "File of rankings: .jsonl, .csv, .tsv, .parquet, .toc or .toi, also with .gz, .xz or .bz2 "
        "behind. Large ones are best as .jsonl.", metavar="OUT")] = None,
    items: Annotated[int | None, option(
        "Items to rank.", min=2, default="100, and 100,000 with --rows")] = None,
    lists: Annotated[int | None, option("Lists.", min=1, default="1000")] = None,
    tiers: Annotated[int | None, option(
        "Tiers of each list, the last one among them.", min=2, default="4")] = None,
    most_above: Annotated[int | None, option(
        "Items above the last tier, at most.", min=1, default="500")] = None,
    seed: Seed = 0,
    truth: Annotated[Path | None, option(
        "Write the true log-worths, with mean 0, as CSV: item, log_worth.", metavar="FILE")] = None,
    *,
    out: Annotated[Path | None, option(
        "In place of OUT: a new folder of Parquet files (or one file, .parquet) with --rows rows, "
        "votes of 2 to 8 of the items, with ties.", metavar="FOLDER", panel=_ROWS)] = None,
    rows: Annotated[float | None, option(
        "Rows of all files, as in 1e8.", min=2, panel=_ROWS, default="1e6")] = None,
    games: Annotated[bool, option(
        "Games of two with ties in place of votes.", "--games", panel=_ROWS)] = False,
) -> None:  # fmt: skip
    """Draw rankings from the Plackett-Luce model, and cut them into tiers at random.

    Log-worths are uniform on [0, log N], as in section 4.1 of Ma et al. (2021). All items that a
    list does not name are tied in its last place; in the tables of --rows they are absent.
    """
    from tierrank.data import Rankings, write_rankings
    from tierrank.data.synthetic import simulate as drawn

    if (target is None) == (out is None):
        raise typer.BadParameter(
            "Missing argument 'OUT', a file; or --out, a folder: give one of them"
        )
    if truth is not None:
        check_file(truth, "--truth")
        if truth.absolute() in (each.absolute() for each in (target, out) if each is not None):
            raise typer.BadParameter("--truth: the rankings are in this file, give another")
    idle = (
        {"--lists": lists, "--tiers": tiers, "--most-above": most_above}
        if target is None
        else {"--rows": rows, "--games": games or None}
    )
    for name, value in idle.items():
        if value is not None:
            there = "--out, a table of --rows" if target is None else "OUT, a file of lists"
            raise typer.BadParameter(f"{name} means nothing to {there}: leave it out")
    if target is None:
        assert out is not None
        if rows is not None and not math.isfinite(rows):
            raise typer.BadParameter(f"--rows is a number of rows, such as 1e8, not {rows}")
        items, whole = items or 100_000, int(rows or 1e6)
        true = _write_rows(out, items, whole, games, seed)
        write(truth, "The truth", lambda: _truth_csv(true))
        what = "games" if games else "rows of votes"
        stderr().print(f"{whole:,} {what} on {items:,} items are in {out}", markup=False,
                       soft_wrap=True)  # fmt: skip
        return
    items, lists, tiers, most_above = items or 100, lists or 1000, tiers or 4, most_above or 500
    check_file(target, "OUT")
    _check_format(target, items, lists)
    with waiting("Drawing rankings"):
        log_worths, found = drawn(items, lists, tiers=tiers, most_above=most_above, seed=seed)
        rankings = Rankings(found, [1.0] * lists)  # type: ignore[arg-type]
    with waiting(f"Writing {target}"):
        write_rankings(_for_format(rankings, target), target)
    write(truth, "The truth", lambda: _truth_csv(log_worths))
    stderr().print(
        f"{lists:,} lists of {items:,} items in {tiers} tiers are in {target}", markup=False,
        soft_wrap=True,
    )  # fmt: skip


def _write_rows(out: Path, items: int, rows: int, games: bool, seed: int) -> FloatArray:
    """Draw the rows piece by piece into one file, or a folder; gives the true log-worths."""
    from tierrank.cli.progress import RowsDisplay
    from tierrank.data.synthetic import simulate_rows, write_rows

    log_worths, pieces = simulate_rows(items, rows, games=games, seed=seed)
    with RowsDisplay("Drawing", rows) as display:
        write_rows(out, pieces, display.show)
    return log_worths


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


def _truth_csv(log_worths: Any) -> str:
    centred = (log_worths - log_worths.mean()).tolist()
    rows = (f"{item},{value!r}\n" for item, value in enumerate(centred))
    return "item,log_worth\n" + "".join(rows)
