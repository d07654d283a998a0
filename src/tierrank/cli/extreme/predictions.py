"""Predicted labels as files: the XC repository's score files, .npz, or labels alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tierrank.extreme.ranker import ExtremeRanker

Array = np.ndarray[Any, Any]
Block = tuple[Array, Array]  # [rows, k] labels, best first, and their scores

INNER_BLOCK = 256  # rows that the ranker takes at once: so blocks here do not change its sums
_SCORES = 1 << 28  # that are computed between two looks at the clock


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
    from tierrank.cli.extreme.progress import RowsDisplay

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
    from scipy.sparse import csr_matrix

    labels, scores = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    rows, k = labels.shape
    ends = np.arange(rows + 1, dtype=np.int64) * k
    found = csr_matrix((scores.ravel(), labels.ravel(), ends), shape=(rows, n_labels))
    found.sort_indices()
    return found


def read_top(path: Path, k: int) -> tuple[Array, int]:
    """Read a file of scores: [rows, k] labels, best first, and how many labels there are.

    Equal scores come by label; −1 stands where a row has fewer than k.
    """
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
