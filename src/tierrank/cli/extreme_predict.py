"""`tierrank extreme predict` and `evaluate`: the best labels of rows, written or measured.

They are written as the XC repository's score files, .npz, or labels alone; and measured beside
those of other tools.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank.cli import options
from tierrank.cli.extreme_train import (
    Data,
    LabelledRows,
    Propensity,
    Rows,
    for_model,
    load_model,
    read_labelled,
    read_rows,
    widened,
)
from tierrank.cli.options import argument, explained, extreme, note, option, stderr, stdout
from tierrank.names import counted

if TYPE_CHECKING:
    from rich.table import Table

    from tierrank._types import AnyArray, IntArray
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import ExtremeRanker
    from tierrank.ranking.comparison import Standing

    Block = tuple[IntArray, AnyArray]

INNER_BLOCK = 256  # rows that the ranker takes at once: so blocks here do not change its sums
_SCORES = 1 << 28  # that are computed between two looks at the clock


@extreme.command()
@explained
def predict(
    model: options.ModelFolder,
    data: Annotated[Path, argument(
        "Features, as text or .npz; or text of the XC repository with labels, which are passed "
        "over.", metavar="DATA")],
    k: Annotated[int, option("Labels for a row.", "-k", min=1)] = 5,
    out: Annotated[Path | None, option(
        "Where to write. A name that ends in .npz gets a sparse matrix of scores; text is "
        "compressed by .gz, .xz or .bz2.", metavar="FILE", default="standard output")] = None,
    scores: Annotated[bool, option(
        "Header and label:score, or nothing but labels.", "--scores/--no-scores")] = True,
    propensity: Propensity = 0.0,
    *,
    how: Rows,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Write the best labels of every row, best first.

    A line a row, `label:score label:score …`, after a header with the numbers of rows and labels:
    the score files of the XC repository. Scores are log-worths, so any real numbers.
    """
    from tierrank.data.files import writing

    npz = out is not None and out.suffix.lower() == ".npz"
    if npz and not scores:
        raise typer.BadParameter("an .npz file holds scores: leave out --no-scores")
    if out is not None:
        options.check_file(out, "--out")
    options.use_threads(threads)
    ranker = load_model(model)
    check(ranker, k, propensity)
    X = for_model(read_rows(data, how), ranker.n_features_in_, data, "features")
    silent = out is None and sys.stdout.isatty()
    blocks = predicted(ranker, X, k, propensity, silent=silent)
    rows, n_labels = X.shape[0], ranker.n_labels_
    if out is None:
        for text in lines(blocks, rows, n_labels, scores=scores):
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    with writing(out) as file:
        if npz:
            from scipy.sparse import save_npz

            save_npz(file, matrix(blocks, n_labels))
        else:
            for text in lines(blocks, rows, n_labels, scores=scores):
                file.write(text.encode())
    stderr().print(f"{k} labels a row, of {rows:,} rows, are in {out}", markup=False,
                   soft_wrap=True)  # fmt: skip


def check(model: ExtremeRanker, k: int, propensity: float) -> None:
    """Refuse what cannot be predicted, before anything is written."""
    if k > model.n_labels_:
        raise ValueError(f"-k is {k}, but there are {model.n_labels_:,} labels: ask for fewer.")
    if not math.isfinite(propensity):
        raise ValueError(f"--propensity is a finite number, such as 1, not {propensity}.")
    if propensity:
        model.inverse_propensity()  # says so if there are too few rows for it


def predicted(
    model: ExtremeRanker, X: Any, k: int, propensity: float, *, silent: bool = False
) -> Iterator[Block]:
    """The best labels of all rows, block after block; shows how it goes on, unless silent."""
    from tierrank.cli.progress import RowsDisplay

    rows = X.shape[0]
    step = INNER_BLOCK * min(max(_SCORES // model.n_labels_ // INNER_BLOCK, 1), 16)
    with RowsDisplay("predicting", rows, silent=silent) as display:
        for start in range(0, rows, step):
            some = X[start : start + step]
            yield model.predict(some, k, propensity=propensity, return_scores=True)
            display.show(min(start + step, rows))


def lines(blocks: Iterator[Block], rows: int, n_labels: int, *, scores: bool) -> Iterator[str]:
    """Text, a block of rows at a time: a header and `label:score …`, or bare labels.

    Scores are the shortest text that reads back as the same float32.
    """
    if scores:
        yield f"{rows} {n_labels}\n"
    for labels, values in blocks:
        words = [str(label) for label in labels.ravel().tolist()]
        if scores:
            words = [f"{label}:{value!s}" for label, value in zip(words, values.flat, strict=True)]
        k = labels.shape[1]
        yield "".join(f"{' '.join(words[at : at + k])}\n" for at in range(0, len(words), k))


def matrix(blocks: Iterator[Block], n_labels: int) -> Any:
    """[rows, labels] CSR of the scores."""
    import numpy as np
    from scipy.sparse import csr_matrix

    labels, scores = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    rows, k = labels.shape
    ends = np.arange(rows + 1, dtype=np.int64) * k
    found = csr_matrix((scores.ravel(), labels.ravel(), ends), shape=(rows, n_labels))
    found.sort_indices()
    return found


def read_top(path: Path, k: int) -> tuple[IntArray, int]:
    """Read a file of scores: [rows, k] labels, best first, and how many labels there are.

    Equal scores come by label; −1 stands where a row has fewer than k.
    """
    import numpy as np

    from tierrank.data import read_xc_features

    scores = read_xc_features(path)
    rows = scores.shape[0]
    row = np.repeat(np.arange(rows), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, row))
    place = np.arange(scores.nnz) - scores.indptr[row]
    top = np.full((rows, k), -1, dtype=np.int64)
    near = place < k
    top[row[near], place[near]] = scores.indices[order][near]
    return top, int(scores.shape[1])


# How good the first labels are --------------------------------------------------------------------


_PROPENSITIES = "Propensities"
_CELL = 22  # characters of a value with its interval, and what keeps it from the next


@extreme.command()
@explained
def evaluate(
    rankers: Annotated[list[Path], argument(
        "Folder of a trained model, or a file of predictions, as tierrank extreme predict writes "
        "it. The others are compared with the first.", metavar="RANKER...")],
    data: Data,
    *,
    how: LabelledRows,
    k: Annotated[list[int] | None, option(
        "How many labels count. Repeat for several.", "-k", min=1, default="1, 3, 5")] = None,
    written: options.Standings,
    propensity: Propensity = 0.0,
    train: Annotated[Path | None, option(
        "Training data that propensities are counted on.", metavar="FILE", panel=_PROPENSITIES,
        default="what the first model was trained on")] = None,
    train_labels: Annotated[Path | None, option(
        "Their labels, if they are in a file of their own.", metavar="FILE", panel=_PROPENSITIES
    )] = None,
    a: Annotated[float, option("Of the propensity model.", "--a", panel=_PROPENSITIES)] = 0.55,
    b: Annotated[float, option("Of the propensity model.", "--b", panel=_PROPENSITIES)] = 1.5,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Measure the first labels of rows: P, nDCG, PSP and PSnDCG, with 95% bootstrap intervals.

    Rows without labels count, with 0. With several rankers, --json and --csv have the differences
    to the first one too, with intervals and the p-value of a paired randomisation test.
    """
    if train is None and train_labels is not None:
        raise ValueError("--train-labels are those of --train: give that as well.")
    options.check_rankers(rankers, data)
    options.use_threads(threads)
    places = sorted(set(k or (1, 3, 5)))
    rows = read_labelled(data, how)
    counts = None
    if train is not None:
        counts = _counted(read_labelled(train, how.of_other(train_labels)))
    first: dict[str, _First] = {}
    for ranker in rankers:
        found = _first_labels(ranker, rows, data, max(places), propensity)
        first[str(ranker)] = found
        counts = counts or found.counts
    results = _standings(first, rows, places, counts, (a, b), seed)
    about = {"data": str(data), "rows": len(rows), "propensity": propensity, "a": a, "b": b}
    if not written.write(results, **about):
        _show(results, f"{data}: {counted(len(rows), 'row')}, in percent", places)


@dataclass(frozen=True)
class _Counts:
    """Training rows that have each label, and how many rows there were."""

    labels: IntArray
    rows: int


@dataclass(frozen=True)
class _First:
    """What a ranker predicts: [rows, k] labels, out of how many; and what it was trained on."""

    top: IntArray
    n_labels: int
    counts: _Counts | None = None


def _counted(data: MultiLabelData) -> _Counts:
    import numpy as np

    return _Counts(np.bincount(data.Y.indices, minlength=data.n_labels), len(data))


def _first_labels(
    ranker: Path, rows: MultiLabelData, path: Path, k: int, propensity: float
) -> _First:
    import numpy as np

    if ranker.is_dir():
        model = load_model(ranker)
        check(model, k, propensity)
        X = for_model(rows.X, model.n_features_in_, path, "features")
        for_model(rows.Y, model.n_labels_, path, "labels")
        blocks = predicted(model, X, k, propensity)
        top = np.concatenate([labels for labels, _ in blocks])
        return _First(top, model.n_labels_, _Counts(model.label_counts_, model.n_rows_))
    if propensity:
        raise ValueError(f"{ranker}: is a file of predictions: leave out --propensity.")
    top, n_labels = read_top(ranker, k)
    if len(top) != len(rows):
        raise ValueError(
            f"{ranker}: has predictions for {len(top):,} rows, but {path} has {len(rows):,}: give "
            "those for the same rows, in the same order."
        )
    if (most := int((top >= 0).sum(1).max())) < k:
        note(f"{ranker} has at most {most} labels a row: the others of the first {k} are missed.")
    return _First(top, n_labels)


def _standings(
    first: dict[str, _First],
    rows: MultiLabelData,
    places: list[int],
    counts: _Counts | None,
    model: tuple[float, float],
    seed: int,
) -> list[Standing]:
    """All rankers by all measures, measure after measure."""
    import numpy as np

    from tierrank.metrics import labels as label_metrics
    from tierrank.ranking.comparison import standings

    measures = ["P", "nDCG"]
    n_labels = max(rows.n_labels, *(each.n_labels for each in first.values()))
    inverse = None
    if counts is not None:
        n_labels = max(n_labels, len(counts.labels))
        of_all = np.pad(counts.labels, (0, n_labels - len(counts.labels)))
        inverse = label_metrics.inverse_propensity_of_counts(of_all, counts.rows, *model)
        measures += ["PSP", "PSnDCG"]
    else:
        note("PSP and PSnDCG count by how rare labels are in training: give --train FILE for them.")
    Y = widened(rows.Y, n_labels)
    results = []
    for measure in measures:
        for k in places:
            metric = label_metrics.from_name(f"{measure}@{k}")
            values = {
                name: {metric.name: metric(each.top, Y, inverse, reduction="none")}
                for name, each in first.items()
            }
            results += standings(values, seed=seed)
    return results


def _show(results: Sequence[Standing], title: str, places: list[int]) -> None:
    console = stdout()
    names = list(dict.fromkeys(each.name for each in results))
    heading = 8 if len(names) == 1 else max(8, *map(len, names))
    with_intervals = heading + _CELL * len(places) <= console.width
    console.print(_table(results, title, names, with_intervals))
    if not with_intervals:
        note("there is no room for intervals: --json and --csv have them.")


def _table(
    results: Sequence[Standing], title: str, names: list[str], with_intervals: bool
) -> Table:
    """A row a measure and ranker, a column a number of places; the best in bold."""
    from rich.markup import escape

    from tierrank.report.tables import plain_table

    by = {(each.metric, each.name): each for each in results}
    metrics = list(dict.fromkeys(each.metric for each in results))
    measures = list(dict.fromkeys(metric.partition("@")[0] for metric in metrics))
    places = list(dict.fromkeys(metric.partition("@")[2] for metric in metrics))
    table = plain_table(title)
    table.add_column("" if len(names) == 1 else "ranker", overflow="fold")
    for place in places:
        table.add_column(f"@{place}", justify="right", no_wrap=True)
    for measure in measures:
        if len(names) > 1:
            table.add_section()
            table.add_row(f"[bold]{measure}[/]")
        for name in names:
            cells = []
            for place in places:
                metric = f"{measure}@{place}"
                best = max(by[metric, other].mean for other in names)
                bold = len(names) > 1 and by[metric, name].mean == best
                cells.append(_cell(by[metric, name], with_intervals, bold=bold))
            table.add_row(measure if len(names) == 1 else escape(name), *cells)
    return table


def _cell(each: Standing, with_interval: bool, *, bold: bool) -> str:
    value = f"{100 * each.mean:.2f}"
    value = f"[bold]{value}[/]" if bold else value
    return f"{value}  {100 * each.low:.2f} {100 * each.high:.2f}" if with_interval else value
