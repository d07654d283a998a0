"""Ranking data into LETOR (svmlight) files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tierrank.data.files import writing
from tierrank.data.letor.parsing import AnyArray, FloatArray

_EXACT_INTEGERS = 2**53


def write_letor(
    path: str | PathLike[str],
    X: Any,
    y: Any,
    qid: Any,
    *,
    one_based: bool = True,
    comments: Sequence[str] | None = None,
    precision: int | None = None,
) -> None:
    """Write a LETOR or svmlight ranking file.

    `read_letor` gives back the same float64, to the last bit. Of a dense `X` every value is
    written, of a sparse one what is stored: to get its last columns back if they are empty, pass
    `n_features` when you read, and `one_based=False` for a file that starts at 0. NaN, a missing
    value, is written as ``NaN``. The file is written beside and renamed.

    Parameters
    ----------
    path
        the file; compressed if the name ends in .gz, .xz or .bz2
    X
        [rows, features] numbers: an array, or a scipy sparse matrix
    y
        [rows] finite labels
    qid
        [rows] integers, or strings without blanks, `:` and `#`. Strings of digits come back as
        integers if all of them are.
    one_based
        whether indices start at 1, as in LETOR's files, or at 0
    comments
        [rows] one line each, "" for none
    precision
        number of significant digits of the features; None for as many as it takes, and no more
    """
    if precision is not None and not 1 <= precision <= 17:
        raise ValueError(f"precision is from 1 to 17 digits, or None for all, not {precision}.")
    labels = _floats(np.asarray(y), "y")
    if labels.ndim != 1:
        raise ValueError(f"y has shape {labels.shape}: give one label a row.")
    if not np.isfinite(labels).all():
        row = int(np.isfinite(labels).argmin())
        raise ValueError(f"the label of row {row} is {labels[row]}: labels are finite numbers.")
    if not len(labels):
        raise ValueError("there are no rows: a file needs at least one.")
    matrix = _matrix(X, len(labels))
    heads = _heads(labels, _words(np.asarray(qid)))
    tails = _tails(comments, len(labels))
    rows = zip(heads, _features(matrix, one_based, precision), tails, strict=True)
    with writing(Path(path)) as file:
        while lines := [
            f"{head} {row}{tail}".rstrip(" ") for head, row, tail in islice(rows, 1024)
        ]:
            file.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _shortest(value: float) -> str:
    """Shortest text that reads back as the same float."""
    return repr(value).removesuffix(".0")


def _heads(labels: FloatArray, qids: Sequence[str]) -> list[str]:
    if len(qids) != len(labels):
        raise ValueError(f"there are {len(labels)} labels but {len(qids)} qid: give one a row.")
    return [f"{_shortest(y)} qid:{q}" for y, q in zip(labels.tolist(), qids, strict=True)]


def _words(qid: AnyArray) -> list[str]:
    """Check the qid, and give them as text."""
    if qid.ndim != 1:
        raise ValueError(f"qid has shape {qid.shape}: give one a row.")
    if qid.dtype.kind in "iu":
        return [str(q) for q in qid.tolist()]
    words = []
    for row, q in enumerate(qid.tolist()):
        if isinstance(q, bool) or not isinstance(q, int | str):
            raise ValueError(f"the qid of row {row} is {q!r}: write integers or strings.")
        word = str(q)
        if not word or any(c in ":#" or c <= " " or "\ud800" <= c <= "\udfff" for c in word):
            raise ValueError(
                f"the qid of row {row} is {q!r}: it may not be empty, nor hold blanks, : or #, "
                "nor what UTF-8 cannot write."
            )
        words.append(word)
    return words


def _tails(comments: Sequence[str] | None, rows: int) -> list[str]:
    if comments is None:
        return [""] * rows
    if len(comments) != rows:
        raise ValueError(f"there are {rows} labels but {len(comments)} comments: give one a row.")
    for row, comment in enumerate(comments):
        if not isinstance(comment, str) or any(c in comment for c in "\n\r\0"):
            raise ValueError(f"the comment of row {row} is {comment!r}: give one line of text.")
    return [f" # {comment}" if comment else "" for comment in comments]


def _matrix(X: Any, rows: int) -> Any:
    """Check X, and give it as a numpy array or a scipy CSR matrix with sorted rows."""
    matrix = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"X has shape {matrix.shape}: give one row of features a label.")
    if matrix.shape[0] != rows:
        raise ValueError(f"X has {matrix.shape[0]} rows, but there are {rows} labels.")
    if isinstance(matrix, np.ndarray):
        return _floats(matrix, "X")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()  # and sorts
    _floats(matrix.data, "X")
    return matrix


def _features(matrix: Any, one_based: bool, precision: int | None) -> Iterator[str]:
    """Give the features of one row after the other, as text."""
    write: Callable[[float], str] = _shortest if precision is None else f"{{:.{precision}g}}".format
    base = int(one_based)
    if isinstance(matrix, np.ndarray):
        columns = list(range(base, matrix.shape[1] + base))
        for row in matrix:
            yield _row(columns, map(write, row.tolist()))
    else:
        values = _floats(matrix.data, "X")
        for start, end in pairwise(matrix.indptr.tolist()):
            columns = (matrix.indices[start:end].astype(np.int64) + base).tolist()
            yield _row(columns, map(write, values[start:end].tolist()))


def _row(columns: Sequence[int], words: Iterator[str]) -> str:
    pairs = [f"{column}:{word}" for column, word in zip(columns, words, strict=True)]
    return " ".join(pairs).replace(":nan", ":NaN")


def _floats(values: AnyArray, name: str) -> FloatArray:
    """Give numbers as float64, and refuse those that it cannot hold."""
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise ValueError(f"{name} is of type {values.dtype}: give integers, floats or booleans.")
    whole = values.dtype.kind in "iu" and values.size > 0
    if whole and max(int(values.max()), -int(values.min())) > _EXACT_INTEGERS:
        raise ValueError(f"{name} has integers over 2^53, which a float64 cannot hold: scale it.")
    return values.astype(np.float64, copy=False)
