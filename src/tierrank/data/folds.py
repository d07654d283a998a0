"""Folders of folds: train, validate and test, as LETOR's data sets come.

A fold knows where its data are and reads them when they are first asked for, so that a list of
folds takes no memory by itself. What several folds share is read once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.data.files import DataFileError, expands
from tierrank.data.fold_files import N_PARTS, fold_folders, numbered_parts, train_valid_test
from tierrank.data.letor import read_letor_files
from tierrank.data.ranking_data import Missing, RankingData, fill_value
from tierrank.data.reading import is_table
from tierrank.data.tables import read_table
from tierrank.tiers.labels import group_rows

Read = Callable[[Sequence[Path]], list[RankingData]]


@dataclass(eq=False)
class Fold:
    """What to train on, to validate on and to test on; read when first asked for, then kept.

    Attributes
    ----------
    name
        such as "Fold1"
    """

    name: str
    _load: Callable[[], tuple[RankingData, RankingData, RankingData]]

    @cached_property
    def _data(self) -> tuple[RankingData, RankingData, RankingData]:
        return self._load()

    @property
    def train(self) -> RankingData:
        """The rows to train on."""
        return self._data[0]

    @property
    def valid(self) -> RankingData:
        """The rows that say when to stop, or which model to take."""
        return self._data[1]

    @property
    def test(self) -> RankingData:
        """The rows to measure with."""
        return self._data[2]

    def release(self) -> None:
        """Let go of the data; they are read again when asked for."""
        self.__dict__.pop("_data", None)

    def __repr__(self) -> str:
        return f"Fold({self.name!r})"


def read_folds(
    folder: str | PathLike[str],
    *,
    label: str = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    max_expansion: float | None = None,
) -> list[Fold]:
    """Find the folds in a folder.

    The folder holds one of these; what else is in it does not matter:

    - folders `Fold1`, `Fold2`, …, each with a train, a vali (or valid, val, validation) and a
      test file;
    - one such train, vali and test file: a single fold, with the name of the folder;
    - five parts called by a letter and a number, such as `S1.txt` to `S5.txt`. Fold i trains on
      parts i, i + 1 and i + 2, validates on i + 3 and tests on i + 4, counting round, as LETOR
      4.0 does.

    Files are LETOR (.txt, .svm, .svmlight, .letor) or CSV (.csv, .tsv), also with .gz, .xz or
    .bz2, or Parquet; the files of a fold are of one kind. Their columns agree: in LETOR the number
    of features is that of the file that has most, and tables must have the same names.

    Numbered parts are joined, so a query that stands in two of them is refused. Queries of a
    train, a vali and a test file are never joined: many data sets number them anew in each.

    Parameters
    ----------
    folder
        where to look
    label, query, features, drop, missing, separator, max_expansion
        as in `read`

    Returns
    -------
    the folds, in order. They are read when first asked for; numbered parts, all at once, and
    once for all folds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(1, 6):
    ...         _ = pathlib.Path(folder, f"S{i}.txt").write_text(f"1 qid:{i} 1:0.5\\n")
    ...     folds = read_folds(folder)
    ...     folds[3], folds[3].train.qid, folds[3].valid.qid, folds[3].test.qid
    (Fold('Fold4'), array([4, 5, 1]), array([2]), array([3]))
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataFileError(folder, None, "is not a folder: give the one that holds the folds.")
    read = partial(
        _read_together, label=label, query=query, features=features, drop=drop, missing=missing,
        separator=separator,
        max_expansion=max_expansion,
    )  # fmt: skip
    inner = fold_folders(folder)
    if inner:
        return [_fold_of_files(path, train_valid_test(path), read) for path in inner]
    if (files := train_valid_test(folder)) is not None:
        return [_fold_of_files(folder, files, read)]
    parts = _Parts(numbered_parts(folder), read)
    return [Fold(f"Fold{i + 1}", partial(parts.fold, i)) for i in range(N_PARTS)]


def _fold_of_files(folder: Path, files: Sequence[Path] | None, read: Read) -> Fold:
    if files is None:
        raise DataFileError(folder, None, "has no train file: put one there, or remove the folder.")

    def load() -> tuple[RankingData, RankingData, RankingData]:
        train, valid, test = read(files)
        return train, valid, test

    return Fold(folder.resolve().name, load)


class _Parts:
    """Numbered parts, read once for all folds."""

    def __init__(self, paths: Sequence[Path], read: Read) -> None:
        self._paths = paths
        self._read = read

    @cached_property
    def _data(self) -> list[RankingData]:
        data = self._read(self._paths)
        keys = _one_kind([group_rows(part.qid, len(part))[1] for part in data])
        first: dict[Any, int] = {}
        for i, part in enumerate(keys):
            for key in part.tolist():
                if (other := first.setdefault(key, i)) != i:
                    raise DataFileError(
                        self._paths[i],
                        None,
                        f"query {key!r} stands in {self._paths[other].name} too: a query belongs "
                        "to one part, or it would be trained on and tested. Number them anew.",
                    )
        return data

    def fold(self, i: int) -> tuple[RankingData, RankingData, RankingData]:
        """Three parts, joined, and two single ones, from part i on."""
        a, b, c, valid, test = (self._data[(i + j) % N_PARTS] for j in range(N_PARTS))
        return _joined([a, b, c]), valid, test


def _joined(parts: Sequence[RankingData]) -> RankingData:
    matrices = [part.X for part in parts]
    if all(isinstance(X, np.ndarray) for X in matrices):
        X: Any = np.concatenate(matrices)
    else:
        from scipy.sparse import vstack

        X = vstack(matrices, format="csr")
    qid = np.concatenate(_one_kind([part.qid for part in parts]))
    y = np.concatenate([part.y for part in parts])
    return RankingData(X, y, qid, feature_names=parts[0].feature_names)


def _one_kind(qids: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Integers, or all as strings: some parts may have numbers alone."""
    if all(qid.dtype.kind == "i" for qid in qids):
        return list(qids)
    return [np.array([str(key) for key in qid.tolist()], dtype=object) for qid in qids]


@expands
def _read_together(
    paths: Sequence[Path],
    label: str,
    query: str,
    features: Sequence[str] | None,
    drop: Sequence[str],
    missing: Missing,
    separator: str | None,
    max_expansion: float | None,
) -> list[RankingData]:
    tables = [path for path in paths if is_table(path)]
    if not tables:
        if features is not None or drop or separator is not None:
            what = "columns have names in tables alone: leave out features, drop and separator."
            raise DataFileError(paths[0], None, what)
        return read_letor_files(paths, missing=fill_value(missing))
    if len(tables) < len(paths):
        other = next(path for path in paths if path not in tables)
        what = f"is no table, but {tables[0].name} is: give files of one kind."
        raise DataFileError(other, None, what)
    data = [
        read_table(
            path,
            label=label,
            query=query,
            features=features,
            drop=drop,
            missing=missing,
            separator=separator,
        )
        for path in paths
    ]
    return [_like(data[0], other, path, paths[0]) for other, path in zip(data, paths, strict=True)]


def _like(first: RankingData, other: RankingData, path: Path, first_path: Path) -> RankingData:
    """The columns in the order of the first file, which must be the same ones."""
    names, found = first.feature_names or (), other.feature_names or ()
    if names == found:
        return other
    if different := sorted(set(names) ^ set(found)):
        where = first_path.name if different[0] in names else path.name
        raise DataFileError(
            path,
            None,
            f"the column {different[0]!r} is in {where} alone: give all files the same columns, or "
            "name those to use in features.",
        )
    order = [found.index(name) for name in names]
    return replace(other, X=other.X[:, order], feature_names=names)
