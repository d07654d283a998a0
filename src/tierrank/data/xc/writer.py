"""Multi-label data into the files of the Extreme Classification Repository."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from tierrank.data.files import writing
from tierrank.data.multilabel import MultiLabelData
from tierrank.data.xc.npz import is_npz

_BLOCK = 1024  # rows


def write_xc(
    path: str | PathLike[str],
    data: MultiLabelData,
    *,
    labels: str | PathLike[str] | None = None,
) -> None:
    """Write multi-label data in a format of the Extreme Classification Repository.

    `read_xc` gives back the same data, to the last bit. A file is written beside and renamed.

    Parameters
    ----------
    path
        the file for features and labels together; with `labels`, for features. Text is compressed
        if the name ends in .gz, .xz or .bz2; a name that ends in .npz gets scipy's format.
    data
        what to write
    labels
        the file for the labels, if they are to stand apart: as text or .npz, and with their
        relevances, for which there is no place where both are together
    """
    path = Path(path)
    if labels is None:
        _write_together(data, path)
        return
    labels = Path(labels)
    if labels.resolve() == path.resolve():
        raise ValueError(f"path and labels are both {path}: give two files, or leave out labels.")
    with writing(labels) as label_file:
        _write_matrix(label_file, data.Y, as_npz=is_npz(labels))
        with writing(path) as feature_file:
            _write_matrix(feature_file, data.X, as_npz=is_npz(path))


def _write_together(data: MultiLabelData, path: Path) -> None:
    if is_npz(path):
        raise ValueError(f"{path} holds one matrix: pass a second file as labels=.")
    if (data.Y.data != 1).any():
        raise ValueError(
            f"there are relevances other than 1, such as {data.Y.data[data.Y.data != 1][0]}, and "
            "no place for them beside the features: pass a file of their own as labels=."
        )
    with writing(path) as file:
        file.write(f"{data.n_rows} {data.n_features} {data.n_labels}\n".encode())
        for features, label_sets in zip(_blocks(data.X), _blocks(data.Y), strict=True):
            heads = _rows(label_sets, ",", with_values=False)
            tails = _rows(features, " ", with_values=True)
            lines = [f"{head} {tail}\n" for head, tail in zip(heads, tails, strict=True)]
            file.write("".join(lines).encode())


def _write_matrix(file: IO[bytes], matrix: Any, *, as_npz: bool) -> None:
    if as_npz:
        from scipy.sparse import save_npz

        save_npz(file, matrix)
        return
    file.write("{} {}\n".format(*matrix.shape).encode())
    for block in _blocks(matrix):
        file.write("".join(f"{row}\n" for row in _rows(block, " ", with_values=True)).encode())


def _blocks(matrix: Any) -> Iterator[Any]:
    for start in range(0, matrix.shape[0], _BLOCK):
        yield matrix[start : start + _BLOCK]


def _rows(matrix: Any, separator: str, *, with_values: bool) -> Iterator[str]:
    """Give one row after the other, as text."""
    words = list(map(str, matrix.indices.tolist()))
    if with_values:
        # Most data sets repeat their values, and it takes long to find the shortest text of one.
        values, which = np.unique(matrix.data.view(np.int32), return_inverse=True)
        texts = [_shortest(value) for value in values.view(np.float32)]
        words = [f"{c}:{texts[i]}" for c, i in zip(words, which.tolist(), strict=True)]
    for start, end in pairwise(matrix.indptr.tolist()):
        yield separator.join(words[start:end])


def _shortest(value: np.float32) -> str:
    """Shortest text that reads back as the same float32."""
    return str(value).removesuffix(".0")
