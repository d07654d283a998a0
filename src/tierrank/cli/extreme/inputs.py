"""Rows, labels and models for the commands: files read, columns fitted to each other."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierrank.cli.messages import note
from tierrank.data import MultiLabelData, read_xc, read_xc_features, read_xc_split
from tierrank.data.npz import is_npz

if TYPE_CHECKING:
    from tierrank.cli.extreme.options import Source
    from tierrank.extreme.ranker import ExtremeRanker

_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_LONGEST_HEADER = 100  # bytes


@dataclass(frozen=True)
class Parts:
    """What to learn from, and what to stop by if that is apart."""

    train: MultiLabelData
    valid: MultiLabelData | None = None

    def named(self) -> dict[str, MultiLabelData]:
        """The parts that there are, by name."""
        parts = {"train": self.train, "valid": self.valid}
        return {name: part for name, part in parts.items() if part is not None}


def read_labelled(source: Source) -> MultiLabelData:
    """Read rows and their labels."""
    numbers = _header_numbers(source.data)
    if source.labels is None and (is_npz(source.data) or numbers == 2):
        raise ValueError(
            f"{source.data}: holds features alone: give the file of their labels with --labels."
        )
    if source.labels is not None and numbers == 3:
        raise ValueError(
            f"{source.data}: holds features and labels, as its header has three numbers: leave "
            f"out {source.labels}, or give the file of the features alone."
        )
    data = read_xc(source.data, labels=source.labels, one_based=source.one_based)
    return _chosen(data, source)


def read_rows(source: Source) -> Any:
    """Read features, as [rows, features] CSR; labels may be there and are passed over."""
    if not is_npz(source.data) and _header_numbers(source.data) != 2:
        return _chosen(read_xc(source.data, one_based=source.one_based), source).X
    from scipy.sparse import csr_matrix

    X = read_xc_features(source.data, one_based=source.one_based)
    return _chosen(MultiLabelData(X, csr_matrix((X.shape[0], 1))), source).X


def load_model(folder: Path) -> ExtremeRanker:
    """The model of a folder; refuses those that rank rows, not labels."""
    import tierrank
    from tierrank.extreme.ranker import ExtremeRanker

    model = tierrank.load(folder)
    if not isinstance(model, ExtremeRanker):
        raise ValueError(
            f"{folder}: is a {type(model).__name__}, which ranks the rows of a query: use tierrank "
            "predict or tierrank evaluate, without extreme."
        )
    return model


def for_model(matrix: Any, columns: int, path: Path, what: str) -> Any:
    """Features or labels of a file with as many columns as a model knows."""
    there = matrix.shape[1]
    if there > columns:
        raise ValueError(
            f"{path}: has {there:,} {what}, and the model {columns:,}: give data of the same kind "
            f"as it was trained on, or train it with --n-{what} {there}."
        )
    if there < columns:
        note(f"{path} has {there:,} {what}, and the model {columns:,}: no row has the others.")
    return widened(matrix, columns)


def widened(matrix: Any, columns: int) -> Any:
    """A CSR matrix with so many columns; those that it lacked are empty."""
    from scipy.sparse import csr_matrix

    if matrix.shape[1] == columns:
        return matrix
    shape = (matrix.shape[0], columns)
    wider = csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)
    wider.has_canonical_format = True  # as those of the readers are: no need to look again
    return wider


def read_parts(
    train: Source, valid: Source | None, *, n_features: int | None, n_labels: int | None
) -> Parts:
    """Read training and validation data, and give both as many features and labels.

    Parameters
    ----------
    n_features, n_labels
        how many there are, if more than in the files
    """
    sources = [train] if valid is None else [train, valid]
    read = [read_labelled(each) for each in sources]
    features = _most("features", [each.n_features for each in read], sources, n_features)
    labels = _most("labels", [each.n_labels for each in read], sources, n_labels)
    return Parts(
        *(MultiLabelData(widened(each.X, features), widened(each.Y, labels)) for each in read)
    )


def _most(what: str, found: list[int], sources: list[Source], asked: int | None) -> int:
    most = max(found)
    if asked is not None and asked < most:
        raise ValueError(
            f"--n-{what} is {asked:,}, but there are {most:,} in the files: give as many or more."
        )
    if asked is None and min(found) < most:
        said = ", ".join(f"{each.data} has {n:,}" for each, n in zip(sources, found, strict=True))
        note(f"the files differ in {what}: {said}. No row of the one has the others.")
    return most if asked is None else asked


def _chosen(data: MultiLabelData, source: Source) -> MultiLabelData:
    """The rows of the split, or all."""
    if source.split is not None:
        rows = read_xc_split(source.split, source.split_column)
        try:
            data = data.select(rows)
        except ValueError as error:
            raise ValueError(f"{source.split}: {error}") from None
    if not len(data):
        raise ValueError(f"{source.data}: has no rows.")
    return data


def _header_numbers(path: Path) -> int:
    """How many whole numbers are the first line of a text; 0 if it is something else.

    What is wrong with a file is for its reader to say.
    """
    if is_npz(path):
        return 0
    try:
        with _OPEN.get(path.suffix.lower(), open)(path, "rb") as file:
            line = file.readline(_LONGEST_HEADER).removeprefix(b"\xef\xbb\xbf")
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return 0
    words = line.split()
    return len(words) if line.endswith(b"\n") and all(map(bytes.isdigit, words)) else 0
