"""The folds of a data set as a linear ranker wants them: dense, and with nothing missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tierrank.data import RankingData, read, read_folds
from tierrank.data.letor import read_letor_files
from tierrank.ranking.comparison import hold_out
from tierrank.ranking.features import QueryScale
from tierrank.tiers.arrays import group_rows

YAHOO = ("set1.train.txt", "set1.valid.txt", "set1.test.txt")
PACKED = ("", ".gz", ".xz", ".bz2")

FILLED = (
    "Some values are missing (in MQ2007-agg a feature is a document's rank in one of 21 input "
    "rankings, and NULL where it is not ranked). They become the worst rank of the query plus one; "
    "then every feature is scaled to 0 … 1 within its query, as LETOR's other sets are."
)


class Fold(NamedTuple):
    """Rows to train on, to choose by (if there are any), and to test on."""

    name: str
    train: RankingData
    valid: RankingData | None
    test: RankingData


class DataSet:
    """Folds that are made ready one at a time, so that one of them is in memory.

    Parameters
    ----------
    path
        a folder that `tierrank.data.read_folds` takes; a folder with the Yahoo! challenge's
        set1.train.txt; or one file of rows
    share
        of the queries of one file that are held out as the test part. With the Yahoo! files, 0
        takes set1.valid.txt and set1.test.txt instead.
    seed
        which queries are held out
    first
        only so many folds

    Attributes
    ----------
    notes
        what was done to the data, in words; complete after the folds were gone through
    """

    def __init__(self, path: Path, share: float, seed: int, first: int | None = None) -> None:
        if not 0 <= share < 1:
            raise ValueError(f"--split is a share of the queries, as 0.1 is, not {share:g}.")
        self.notes: list[str] = []
        self.name = path.resolve().name
        self._share, self._seed = share, seed
        self._load = self._loaders(path)[:first]

    def __len__(self) -> int:
        return len(self._load)

    def __iter__(self) -> Iterator[Fold]:
        for load in self._load:
            name, *parts = load()
            if any(part is not None and np.isnan(_values(part)).any() for part in parts):
                if FILLED not in self.notes:
                    self.notes.append(FILLED)
                parts = [None if part is None else filled(part) for part in parts]
            train, valid, test = (None if part is None else dense(part) for part in parts)
            assert train is not None
            assert test is not None
            yield Fold(name, train, valid, test)

    def with_validation(self, fold: Fold) -> Fold:
        """The fold, with some of its training queries to choose by if it has no others."""
        if fold.valid is not None:
            return fold
        train, valid = hold_out(fold.train, self._share or 0.1, self._seed + 1)
        return fold._replace(train=train, valid=valid)

    def _loaders(self, path: Path) -> list[Callable[[], Fold]]:
        train, *others = yahoo = [_packed(path / name) for name in YAHOO]
        if train is not None and self._share > 0:
            self.notes.append(
                f"{train.name} alone, split by query as in the paper (which knows the labels of "
                f"no other file): {self._share:.0%} of the queries are the test part."
            )
            return [lambda: self._split(train)]
        if train is not None:
            if None in others:
                raise ValueError(f"{path}: --split 0 needs {' and '.join(YAHOO[1:])} too.")
            files = [file for file in yahoo if file is not None]
            self.notes.append(f"{', '.join(file.name for file in files)}, as they are.")
            return [lambda: Fold(self.name, *read_letor_files(files))]
        if path.is_file():
            if self._share == 0:
                raise ValueError(f"{path}: is one file, so --split must hold out a share of it.")
            self.notes.append(
                f"One file, split by query: {self._share:.0%} of the queries are the test part."
            )
            return [lambda: self._split(path)]

        def loader(number: int) -> Callable[[], Fold]:
            def load() -> Fold:
                fold = folds[number]
                ready = Fold(fold.name, fold.train, fold.valid, fold.test)
                fold.release()
                return ready

            return load

        folds = read_folds(path)
        return [loader(number) for number in range(len(folds))]

    def _split(self, path: Path) -> Fold:
        train, test = hold_out(read(path), self._share, self._seed)
        return Fold("split", train, None, test)


def filled(data: RankingData) -> RankingData:
    """Missing values become the query's worst rank plus one; then all is scaled in the query."""
    X = dense(data).X
    of_row, keys = group_rows(data.qid, len(data))
    order = np.argsort(of_row, kind="stable")
    starts = np.searchsorted(of_row[order], np.arange(len(keys)))
    worst = np.fmax.reduceat(X[order], starts)
    # Where nobody is ranked, all are alike, whatever they get.
    after = np.where(np.isnan(worst), 0.0, worst + 1)
    X = np.where(np.isnan(X), after[of_row], X)
    return replace(data, X=QueryScale().fit_transform(X, qid=data.qid))


def dense(data: RankingData) -> RankingData:
    """As an array: once features are centred, they are not sparse."""
    return data if isinstance(data.X, np.ndarray) else replace(data, X=data.X.toarray())


def _values(data: RankingData) -> np.ndarray:
    return data.X if isinstance(data.X, np.ndarray) else data.X.data


def _packed(path: Path) -> Path | None:
    """The file, compressed or not, if it is there."""
    return next((f for end in PACKED if (f := path.with_name(path.name + end)).is_file()), None)
