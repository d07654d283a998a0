"""One door for files of ranking data, single ones or the folds of a folder.

A fold knows where its data are and reads them when they are first asked for, so that a list of
folds takes no memory by itself. What several folds share is read once, for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray
from tierrank.data.cache import Where, blocks, empty_like
from tierrank.data.files import SUFFIXES, DataFileError, expands, is_table
from tierrank.data.letor import OneBased, read_letor_files
from tierrank.data.ranking_data import (
    Categories,
    Missing,
    Part,
    RankingData,
    column_of,
    fill_value,
    occurring,
    recoded,
    with_columns,
)
from tierrank.data.tables import read_table
from tierrank.data.tables.opening import TableFormat
from tierrank.errors import Argument, InPython
from tierrank.names import check_one_of
from tierrank.tiers.arrays import group_rows

Format = Literal["auto", "letor"] | TableFormat
FORMATS = ("auto", "letor", "csv", "tsv", "parquet")


@expands
def read(
    path: str | PathLike[str],
    *,
    format: Format = "auto",
    label: str | None = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    cache: Where = False,
    max_expansion: float | None = None,
    part: Part | None = None,
    categories: Categories = (),
) -> RankingData:
    r"""Read a file of ranking data, in whatever format its name says.

    Names that end in .csv, .tsv or .parquet are tables (`read_table`), all others LETOR or
    svmlight (`read_letor`); .gz, .xz and .bz2 are looked through.

    Parameters
    ----------
    path : path-like
        The file.
    format : {"auto", "letor", "csv", "tsv", "parquet"}
        What it is, where the name does not tell.
    label : str or None
        The column of labels in a table; None for rows that are only to be scored.
    query : str
        The column of queries in a table.
    features : sequence of str, optional
        The columns of features in a table; None for all others. A LETOR file has no names.
    drop : sequence of str
        Columns of a table to leave out.
    missing : "keep" or float
        What a missing value becomes: "keep" for NaN, or a number.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    n_features : int, optional
        The number of columns of `X`; a table must have as many, and in a LETOR file those that
        no row names are 0.
    one_based : "auto" or bool
        Whether the indices of a LETOR file start at 1.
    cache : bool or path-like
        True for a file that is larger than the memory, or the folder to keep its arrays in: see
        `read_letor`.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.
    part : tuple of int, optional
        (rank, ranks), to read one of so many parts: of LETOR text by bytes (see `read_letor`), of
        Parquet by rows. CSV is read whole, for its part of the queries.
    categories : "auto" or sequence of str
        Feature columns of a table that hold categories: see `read_table`.

    Returns
    -------
    RankingData
        The rows.

    Raises
    ------
    DataFileError
        A `ValueError` that names the file and the line.

    See Also
    --------
    read_letor : With options of LETOR files alone.
    read_table : With options of tables alone.
    read_folds : All folds of a folder.
    read_rankings : Rankings of items, without features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     letor, table = pathlib.Path(folder, "a.txt"), pathlib.Path(folder, "a.csv")
    ...     _ = letor.write_text("2 qid:7 1:0.5 2:3\n0 qid:7 1:0.1 2:4\n")
    ...     _ = table.write_text("qid,label,x,y\n7,2,0.5,3\n7,0,0.1,4\n")
    ...     (read(letor).X == read(table).X).all()
    np.True_
    """
    path = Path(path)
    check_one_of("format", format, FORMATS)
    if path.is_dir():
        raise DataFileError(
            path,
            None,
            "is a folder: give one of its files",
            InPython(
                ", or read train, vali and test together with read_letor_fold, or all folds with "
                "read_folds"
            ),
            ".",
        )
    return read_files(
        [path], format=format, label=label, query=query, features=features, drop=drop,
        missing=missing, separator=separator, n_features=n_features, one_based=one_based,
        cache=cache, part=part, categories=categories,
    )[0]  # fmt: skip


@expands
def read_files(
    paths: Sequence[Path],
    *,
    format: Format = "auto",
    label: str | None = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    cache: Where = False,
    max_expansion: float | None = None,
    part: Part | None = None,
    categories: Categories = (),
) -> list[RankingData]:
    """Read files of one kind that belong together, so that their columns agree; see `read`."""
    tables = [path for path in paths if is_table(path)] if format == "auto" else paths
    if not tables or format == "letor":
        if features is not None or drop or separator is not None or categories not in ((), "auto"):
            what = "columns have names in tables alone: leave out "
            named = Argument("features"), ", ", Argument("drop"), " and ", Argument("separator")
            raise DataFileError(paths[0], None, what, *named, ".")
        return read_letor_files(
            paths, n_features=n_features, one_based=one_based, missing=fill_value(missing),
            cache=cache, part=part,
        )  # fmt: skip
    if len(tables) < len(paths):
        other = next(path for path in paths if path not in tables)
        what = f"is no table, but {tables[0].name} is: give files of one kind."
        raise DataFileError(other, None, what)
    data: list[RankingData] = []
    for path in paths:
        table = read_table(
            path, label=label, query=query, features=features, drop=drop, missing=missing,
            separator=separator, format=None if format == "auto" else format, cache=cache,
            part=part, categories=categories,
        )  # fmt: skip
        if n_features is not None and table.n_features != n_features:
            raise DataFileError(
                path,
                None,
                f"has {table.n_features} feature columns, but should have {n_features}: choose "
                "them with features or drop.",
            )
        data.append(_like(data[0], table, path, paths[0]) if data else table)
    return data


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
    X = empty_like(other.X)
    for rows in blocks(*X.shape):
        X[rows] = other.X[rows][:, order]
    return replace(other, X=X, feature_names=names)


# Folds: train, validate and test, as LETOR's data sets come ---------------------------------------


Read = Callable[[Sequence[Path]], list[RankingData]]

N_PARTS = 5  # of LETOR's data sets that come in numbered parts

_ROLES = (("train",), ("vali", "valid", "val", "validation"), ("test",))
_TEXTS = (".txt", ".svm", ".svmlight", ".letor", ".csv", ".tsv")
_ENDS = (*(text + end for text in _TEXTS for end in ("", *SUFFIXES)), ".parquet")
_FOLD = re.compile(r"fold[ _-]?(\d+)", re.IGNORECASE)
_PART = re.compile(r"([A-Za-z])(\d+)")


@dataclass(eq=False)
class Fold:
    r"""What to train on, to validate on and to test on; read when first asked for, then kept.

    Parameters
    ----------
    name : str
        Such as "Fold1".

    See Also
    --------
    read_folds : Finds them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_folds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "train", "vali", "test":
    ...         _ = pathlib.Path(folder, f"{name}.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
    ...     (fold,) = read_folds(folder)
    ...     fold.train.y, fold.valid.n_queries
    (array([1., 0.]), 1)
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
        r"""Let go of the data; they are read again when asked for.

        See Also
        --------
        read_folds : Finds folds.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from tierrank.data import read_folds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "train", "vali", "test":
        ...         _ = pathlib.Path(folder, f"{name}.txt").write_text("1 qid:1 1:0.5\n")
        ...     for fold in read_folds(folder):
        ...         rows = len(fold.train.y)
        ...         fold.release()  # before the next one is read
        """
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
    cache: Where = False,
    max_expansion: float | None = None,
    part: Part | None = None,
    categories: Categories = (),
) -> list[Fold]:
    r"""Find the folds in a folder.

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
    folder : path-like
        Where to look.
    label, query : str
        Columns of tables, as in `read`.
    features : sequence of str, optional
        As in `read`.
    drop : sequence of str
        As in `read`.
    missing : "keep" or float
        As in `read`.
    separator : str, optional
        As in `read`.
    cache : bool or path-like
        As in `read`.
    max_expansion : float, optional
        As in `read`.
    part : tuple of int, optional
        As in `read`; numbered parts are read whole, for this part of the queries of each.
    categories : "auto" or sequence of str
        As in `read`.

    Returns
    -------
    list of Fold
        The folds, in order. They are read when first asked for; numbered parts, all at once, and
        once for all folds.

    Raises
    ------
    DataFileError
        A file cannot be read, or the columns of two do not go together.
    ValueError
        There is nothing in the folder that looks like folds.

    See Also
    --------
    Fold : What it gives.
    read : One file.
    read_letor_fold : A fold of LETOR files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_folds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(1, 6):
    ...         _ = pathlib.Path(folder, f"S{i}.txt").write_text(f"1 qid:{i} 1:0.5\n")
    ...     folds = read_folds(folder)
    ...     folds[3], folds[3].train.qid, folds[3].valid.qid, folds[3].test.qid
    (Fold('Fold4'), array([4, 5, 1]), array([2]), array([3]))
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataFileError(folder, None, "is not a folder: give the one that holds the folds.")
    read = partial(
        read_files, label=label, query=query, features=features, drop=drop, missing=missing,
        separator=separator, cache=cache, max_expansion=max_expansion, categories=categories,
    )  # fmt: skip
    cut = partial(read, part=part)
    inner = _fold_folders(folder)
    if inner:
        return [_fold_of_files(path, _train_valid_test(path), cut) for path in inner]
    if (files := _train_valid_test(folder)) is not None:
        return [_fold_of_files(folder, files, cut)]
    parts = _Parts(_numbered_parts(folder), read, part)
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

    def __init__(self, paths: Sequence[Path], read: Read, part: Part | None) -> None:
        self._paths = paths
        self._read = read
        self._part = part

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
        return data if self._part is None else [each.part(self._part) for each in data]

    def fold(self, i: int) -> tuple[RankingData, RankingData, RankingData]:
        """Three parts, joined, and two single ones, from part i on."""
        a, b, c, valid, test = (self._data[(i + j) % N_PARTS] for j in range(N_PARTS))
        return _joined([a, b, c]), valid, test


def _joined(parts: Sequence[RankingData]) -> RankingData:
    names = parts[0].feature_names or ()
    categories: dict[str, tuple[str, ...]] = {}
    recodings: list[dict[int, AnyArray]] = [{} for _ in parts]
    for at, name in enumerate(names):
        if any(name in (part.categories or ()) for part in parts):
            columns = [column_of(part, at) for part in parts]
            known = categories[name] = tuple(sorted(set(chain(*map(occurring, columns)))))
            for recoding, column in zip(recodings, columns, strict=True):
                recoding[at] = recoded(column, known)
    matrices = [
        with_columns(part.X, recoding) if recoding else part.X
        for part, recoding in zip(parts, recodings, strict=True)
    ]
    if all(isinstance(X, np.ndarray) for X in matrices):
        rows = sum(map(len, matrices))
        X: Any = empty_like(matrices[0], (rows, matrices[0].shape[1]))
        np.concatenate(matrices, out=X)
    else:
        from scipy.sparse import vstack

        X = vstack(matrices, format="csr")
    qid = np.concatenate(_one_kind([part.qid for part in parts]))
    y = np.concatenate([part.y for part in parts])
    own = categories or None
    return RankingData(X, y, qid, feature_names=parts[0].feature_names, categories=own)


def _one_kind(qids: Sequence[AnyArray]) -> list[AnyArray]:
    """Integers, or all as strings: some parts may have numbers alone."""
    if all(qid.dtype.kind == "i" for qid in qids):
        return list(qids)
    return [np.array([str(key) for key in qid.tolist()], dtype=object) for qid in qids]


# Where the files of folds are, told by their names ------------------------------------------------


def _fold_folders(folder: Path) -> list[Path]:
    """Give Fold1, Fold2, … in order; none if there is none."""
    by_number: dict[int, list[Path]] = {}
    for path in folder.iterdir():
        if path.is_dir() and (found := _FOLD.fullmatch(path.name)):
            by_number.setdefault(int(found[1]), []).append(path)
    numbers = sorted(by_number)
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        listed = ", ".join(map(str, numbers))
        raise DataFileError(folder, None, f"has folds {listed}: one between them is missing.")
    return [_only(folder, by_number[number]) for number in numbers]


def _train_valid_test(folder: Path) -> list[Path] | None:
    """Give the three files of a fold; None if there is not even one to train on."""
    files: list[Path] = []
    for names in _ROLES:
        wanted = {name + end for name in names for end in _ENDS}
        found = [path for path in _files(folder) if path.name.lower() in wanted]
        if not found and not files:
            return None
        if not found:
            what = f"has no {' or '.join(names)} file, with one of {', '.join(_TEXTS)}, .parquet."
            raise DataFileError(folder, None, what)
        files.append(_only(folder, found))
    return files


def _numbered_parts(folder: Path) -> list[Path]:
    """Give five files that are called by a letter and the numbers 1 to 5."""
    parts: dict[str, dict[int, list[Path]]] = {}
    for path in _files(folder):
        stem, _, end = path.name.partition(".")
        if (found := _PART.fullmatch(stem)) and f".{end.lower()}" in _ENDS:
            parts.setdefault(found[1], {}).setdefault(int(found[2]), []).append(path)
    if not parts:
        raise DataFileError(
            folder,
            None,
            "has no folds: they are folders Fold1, Fold2, …, or one train, vali and test file, or "
            f"{N_PARTS} parts such as S1.txt to S{N_PARTS}.txt.",
        )
    if len(parts) > 1:
        letters = " and ".join(sorted(parts))
        raise DataFileError(folder, None, f"has parts {letters}: give each a folder of its own.")
    ((letter, by_number),) = parts.items()
    if sorted(by_number) != list(range(1, N_PARTS + 1)):
        there = ", ".join(f"{letter}{number}" for number in sorted(by_number))
        what = f"has the parts {there}: folds need {letter}1 to {letter}{N_PARTS}, and no other."
        raise DataFileError(folder, None, what)
    return [_only(folder, by_number[number]) for number in sorted(by_number)]


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_file())


def _only(folder: Path, paths: list[Path]) -> Path:
    if len(paths) > 1:
        names = " and ".join(sorted(path.name for path in paths))
        raise DataFileError(folder, None, f"has both {names}: leave one of them.")
    return paths[0]
