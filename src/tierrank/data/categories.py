"""Columns of categories: what is written in them, as the codes that trees split.

A category is what its value looks like in text: 7, 7.0 and "7" are one, so that it is the same in a
frame, in Parquet and in CSV, and whether or not pandas made floats of integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.data.files import shown
from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.columns import (
    BadColumn,
    Distinct,
    distinct_of,
    frame_columns,
)
from tierrank.tiers.arrays import frame_library, is_missing


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
