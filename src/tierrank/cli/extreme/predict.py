"""`tierrank extreme predict`: the best labels of rows, as files.

They are the XC repository's score files, .npz, or labels alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank.cli import options
from tierrank.cli.app import extreme
from tierrank.cli.extreme.inputs import Propensity, Rows
from tierrank.cli.messages import explained, stderr
from tierrank.cli.options import argument, option

if TYPE_CHECKING:
    from tierrank._types import AnyArray, IntArray
    from tierrank.extreme.ranker import ExtremeRanker

    Block = tuple[IntArray, AnyArray]  # [rows, k] labels, best first, and their scores

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
    from tierrank.cli.extreme.inputs import for_model, load_model, read_rows
    from tierrank.data.files import writing

    npz = out is not None and out.suffix.lower() == ".npz"
    if npz and not scores:
        raise typer.BadParameter("an .npz file holds scores: leave out --no-scores")
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
