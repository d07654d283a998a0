"""Rows to be ranked: what every reader of ranking files gives, and every ranker takes.

Columns of categories are what is written in them, as the codes that trees split. A category is what
its value looks like in text: 7, 7.0 and "7" are one, so that it is the same in a frame, in Parquet
and in CSV, and whether or not pandas made floats of integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray
from tierrank.data.cache import rows_of
from tierrank.data.files import shown
from tierrank.data.tables.columns import (
    BadColumn,
    Distinct,
    distinct_of,
    frame_columns,
)
from tierrank.errors import Argument, ArgumentError
from tierrank.names import counted
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import frame_library, group_rows, is_missing

Missing = float | Literal["keep"]
Categories = Sequence[str] | Literal["auto"]
"""Columns that hold categories; "auto" for those whose type says so."""
Part = tuple[int, int]
"""Which part of a file is read, (0, 4) to (3, 4): that of a rank, of so many."""


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows with features and a graded label, each of a query.

    What `tierrank.data.read` gives; ``ranker.fit(data.X, data.y, qid=data.qid)`` learns from it.

    Parameters
    ----------
    X : ndarray or csr_matrix
        [rows, n_features] in float64; of a sparse one the indices are sorted.
    y : ndarray of float
        [rows] labels, higher is better.
    qid : ndarray
        [rows] the query of each row: int64, or strings if not all are integers.
    comments : tuple of str, optional
        [rows] what followed the ``#``, stripped, "" for nothing; None if they were not kept.
    feature_names : tuple of str, optional
        [n_features] the names of the columns of `X`, if they have any.
    categories : mapping, optional
        Of columns that hold categories, by name: what their numbers in `X` stand for, from 0 on
        (NaN is a missing one). They are those of these rows: other data have others.
    positions : ndarray of float, optional
        [rows] where each was shown, from 1, for labels that are clicks; None: that is not known.

    See Also
    --------
    read : From a file.
    read_folds : From the folds of a data set.
    tierrank.BoostedRanker : Learns from them.

    Examples
    --------
    >>> import numpy as np
    >>> from tierrank.data import RankingData
    >>> data = RankingData(np.eye(3), y=np.array([2.0, 0.0, 1.0]), qid=np.array([7, 7, 8]))
    >>> data.n_queries, data.n_features
    (2, 3)
    """

    X: Any
    y: FloatArray
    qid: AnyArray
    comments: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[str, ...]] | None = None
    positions: FloatArray | None = None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        query: str = "qid",
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        missing: Missing = "keep",
        categories: Categories = (),
    ) -> RankingData:
        """Take a pandas or polars frame, a pyarrow table or a `datasets.Dataset`.

        A column of vectors of one length, such as embeddings, is a feature a number: ``text[0]``,
        ``text[1]``, …

        Parameters
        ----------
        frame : DataFrame, Table or Dataset
            One row an item of a query.
        label, query : str
            The columns of labels and of queries.
        features : sequence of str, optional
            The columns of features, in this order; None for all others.
        drop : sequence of str
            Columns to leave out.
        missing : "keep" or float
            What a missing value becomes: "keep" for NaN, or a number.
        categories : "auto" or sequence of str
            Feature columns that hold categories, as in `read_table`.

        Returns
        -------
        RankingData
            The rows, in the frame's order.

        Raises
        ------
        ValueError
            A column is missing or a value is no number; the message says the row, from 0, and the
            column.

        See Also
        --------
        read_table : From a file.

        Examples
        --------
        >>> import pandas as pd
        >>> from tierrank.data import RankingData
        >>> frame = pd.DataFrame({"query": ["a", "b", "a"], "grade": [0, 1, 2], "x": [5, None, 7]})
        >>> data = RankingData.from_frame(frame, label="grade", query="query")
        >>> data.feature_names
        ('x',)
        >>> data.tiers()
        Tiers(2 lists, 3 rows, 1 to 2 tiers a list)
          'a': 2 > 0
          'b': 1
        """
        from tierrank.data.tables.ranking_tables import Wanted, from_frame

        return from_frame(frame, Wanted(label, query, features, drop, categories), missing)

    def select(self, rows: AnyArray) -> RankingData:
        """Keep the rows that a mask names, in the same order.

        Parameters
        ----------
        rows : ndarray of bool
            [rows] which to keep.

        Returns
        -------
        RankingData
            These rows, with all columns and categories.

        See Also
        --------
        part : A part of the queries.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.data import RankingData
        >>> data = RankingData(np.eye(3), y=np.array([2.0, 0.0, 1.0]), qid=np.array([7, 7, 8]))
        >>> data.select(data.qid == 7).y
        array([2., 0.])
        """
        comments = self.comments
        if comments is not None:
            comments = tuple(comments[row] for row in np.flatnonzero(rows))
        X = rows_of(self.X, rows)
        positions = None if self.positions is None else self.positions[rows]
        return replace(
            self, X=X, y=self.y[rows], qid=self.qid[rows], comments=comments, positions=positions
        )

    def part(self, part: Part) -> RankingData:
        """Take the rows of a part of the queries, these counted in order of first appearance.

        Parameters
        ----------
        part : tuple of int
            (rank, ranks): which part, from 0, of how many. A part has consecutive queries, about as
            many as the others.

        Returns
        -------
        RankingData
            The rows of these queries.

        See Also
        --------
        select : Rows by a mask.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.data import RankingData
        >>> data = RankingData(np.eye(3), y=np.array([2.0, 0.0, 1.0]), qid=np.array([7, 7, 8]))
        >>> data.part((1, 2)).qid
        array([8])
        """
        rank, ranks = part
        query, keys = group_rows(self.qid, len(self))
        borders = len(keys) * rank // ranks, len(keys) * (rank + 1) // ranks
        return self.select((query >= borders[0]) & (query < borders[1]))

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of different `qid`."""
        return len(group_rows(self.qid, len(self))[1])

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.X, np.ndarray) else "sparse"
        return (
            f"RankingData({counted(len(self), 'row')}, "
            f"{counted(self.n_queries, 'query', 'queries')}, "
            f"{counted(self.n_features, f'{kind} feature')})"
        )

    def tiers(self) -> Tiers:
        """Build one list a query, in order of first appearance: `Tiers.from_labels(y, qid=qid)`.

        Returns
        -------
        Tiers
            The lists, with a score a row.

        See Also
        --------
        tierrank.Tiers.from_labels : With more options.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.data import RankingData
        >>> data = RankingData(np.eye(3), y=np.array([2.0, 0.0, 1.0]), qid=np.array([7, 7, 8]))
        >>> data.tiers()
        Tiers(2 lists, 3 rows, 1 to 2 tiers a list)
          7: 0 > 1
          8: 2
        """
        return Tiers.from_labels(self.y, qid=self.qid)


def check_part(part: Part | None) -> None:
    """Refuse what is no part; None is all of a file."""
    if part is not None:
        rank, ranks = part
        if not 0 <= rank < ranks:
            raise ArgumentError(
                Argument("part"),
                f" is (rank, ranks), with ranks counted from 0, not {part!r}.",
            )


def fill_value(missing: Missing) -> float:
    """What a missing value becomes, as a number."""
    if isinstance(missing, str):
        if missing != "keep":
            raise ValueError(f'missing is "keep", for NaN, or a number, not {missing!r}.')
        return float("nan")
    return float(missing)


def written(value: Any) -> str | None:
    """How a category is written; None for what is missing."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_ | Integral):
        return str(value)
    if isinstance(value, Real | Decimal):
        number = float(value)
        whole = math.isfinite(number) and number == int(number)
        return str(int(number)) if whole else repr(number)
    if isinstance(value, date):
        return str(value)
    raise ValueError(
        f"has a {type(value).__name__}: categories are text, numbers, dates, or true and false"
    )


def coded(found: Distinct, missing: Sequence[str] = ()) -> Distinct:
    """[rows] numbers of the categories that are there, −1 for what is missing, and these.

    `missing` are words that stand for it.
    """
    number: dict[str, int] = {}
    words = (written(value) for value in found.values)
    codes = [
        -1 if word is None or word in missing else number.setdefault(word, len(number))
        for word in words
    ]
    return Distinct(np.array(codes, dtype=np.int64)[found.codes], list(number))


def occurring(column: Distinct) -> tuple[str, ...]:
    """The categories that some row has, sorted: no order of theirs makes other trees."""
    return tuple(sorted(column.values[code] for code in np.unique(column.codes) if code >= 0))


def recoded(column: Distinct, known: Sequence[str]) -> FloatArray:
    """[rows] numbers among the categories that are known; NaN for what is missing or unknown."""
    number = {word: float(code) for code, word in enumerate(known)}
    codes = [number.get(word, math.nan) for word in column.values]
    found: FloatArray = np.array([*codes, math.nan])[column.codes]  # −1 is the last
    return found


def check_kind(name: str, column: Distinct, known: Sequence[str]) -> None:
    """Refuse numbers where the training rows had words: they are codes of somebody's own.

    All would be unknown, and every score wrong without a sign.
    """
    numbers = column.values and all(map(_is_number, column.values))
    if numbers and known and not any(map(_is_number, known)):
        raise ValueError(
            f"column {name} has numbers such as {column.values[0]}, but its categories are such as "
            f"{known[0]!r}: give the categories themselves, not codes of them"
        )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def chosen_columns(X: Any, categories: Any) -> list[int]:
    """Which columns hold categories, where "auto" goes by their type, None is for none of them."""
    own = X.categories or {} if isinstance(X, RankingData) else {}
    names = column_names(X)
    found = {names.index(name) for name in own}
    if isinstance(categories, str) or categories is None:
        if categories not in ("auto", None):
            raise ValueError(
                f'categories is "auto", None or a list of columns, not {categories!r}: write '
                f"[{categories!r}] for a column of this name"
            )
        if categories == "auto" and frame_library(X) is not None:
            columns = frame_columns(X)
            found.update(at for at in range(len(names)) if columns.categorical(at))
        return sorted(found)
    shape = np.shape(X.X if isinstance(X, RankingData) else X)
    width = shape[1] if len(shape) == 2 else 0
    for column in categories:
        if isinstance(column, str):
            if column not in names:
                there = f"it has {', '.join(names[:30])}" if names else "its columns have no names"
                raise ValueError(f"categories names {column!r}, but X has no such column: {there}")
            found.add(names.index(column))
        elif isinstance(column, bool) or not isinstance(column, int | np.integer):
            raise ValueError(f"categories has {column!r}: give names or numbers of columns")
        elif not 0 <= column < width:
            raise ValueError(f"categories has {column}, but X has the shape {list(shape)}")
        else:
            found.add(int(column))
    return sorted(found)


def column_names(X: Any) -> list[str]:
    """What the columns of a frame, or of ranking data, are called; of an array nothing."""
    if isinstance(X, RankingData):
        return list(X.feature_names or ())
    return [] if frame_library(X) is None else list(frame_columns(X).names)


def column_of(X: Any, at: int) -> Distinct:
    """The categories of a column, whatever it is a column of."""
    if isinstance(X, RankingData):
        if X.feature_names and X.categories and (name := X.feature_names[at]) in X.categories:
            codes = np.nan_to_num(X.X[:, at], nan=-1.0).astype(np.int64)
            return Distinct(codes, list(X.categories[name]))
        X = X.X
    if frame_library(X) is not None:
        found = frame_columns(X).distinct(at, "category")
    else:
        column = np.asarray(X)[:, at]
        if column.dtype.kind in "biuf":
            values, codes = np.unique(column, return_inverse=True)
            found = Distinct(codes, values.tolist())
        else:
            found = distinct_of(column.tolist(), "holds what cannot be a category")
    try:
        if not isinstance(found, BadColumn):
            return coded(found)
        why = found.why
    except ValueError as error:
        why = str(error)
    raise ValueError(f"column {called(X, at)} {why}")


def called(X: Any, at: int) -> str:
    """A column by its name, or else by its number."""
    names = column_names(X)
    return shown(names[at]) if names else str(at)


def with_columns(X: Any, columns: dict[int, FloatArray]) -> Any:
    """The rows of an array or a frame with other numbers in some columns; X stays as it is."""
    library = frame_library(X)
    if library == "pandas":
        X = X.copy(deep=False)
        for at, numbers in columns.items():
            X.isetitem(at, numbers)
    elif library == "polars":
        import polars

        X = X.clone()
        for at, numbers in columns.items():
            X.replace_column(at, polars.Series(X.columns[at], numbers))
    elif library == "pyarrow":
        import pyarrow

        for at, numbers in columns.items():
            X = X.set_column(at, X.column_names[at], pyarrow.array(numbers))
    else:
        X = np.asarray(X)
        X = X.astype(np.result_type(X.dtype, np.float64) if X.dtype.kind in "biuf" else object)
        for at, numbers in columns.items():
            X[:, at] = numbers
    return X
