"""Ranking data from frames: pandas, polars, pyarrow. None is imported unless it is given."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.data.ranking_data import Missing, RankingData, fill_value
from tierrank.data.tables.assembly import (
    EXACT_INTEGERS,
    BadColumn,
    Columns,
    Distinct,
    FloatArray,
    assemble,
    spread,
)
from tierrank.data.tables.choice import Wanted, choose
from tierrank.data.tables.keys import bad_type, keys_of
from tierrank.data.text import shown


def from_frame(
    frame: Any,
    label: str,
    query: str,
    features: Sequence[str] | None,
    drop: Sequence[str],
    missing: Missing,
) -> RankingData:
    """See `RankingData.from_frame`."""
    columns = frame_columns(frame)
    wanted, fill = Wanted(label, query, features, drop), fill_value(missing)
    choice = choose(columns.names, wanted, ValueError)
    return assemble(columns, choice, fill, frame_error)


def frame_error(row: int | None, what: str) -> ValueError:
    """Name a row of a frame, counted from 0."""
    return ValueError(what if row is None else f"row {row} of the frame: {what}")


def is_frame(data: Any) -> bool:
    """Whether it is a frame of any of the three libraries."""
    return _library(data) is not None


def is_numbered(frame: Any) -> bool:
    """Whether a frame is of pandas and its columns have no names but numbers, as of an array."""
    return _library(frame) == "pandas" and _is_numbered(frame.columns)


def frame_columns(frame: Any) -> Columns:
    """Give the columns of a frame of any of the three libraries."""
    kind = _library(frame)
    if kind == "pandas":
        return PandasColumns(frame)
    if kind == "polars":
        return PolarsColumns(frame)
    if kind == "pyarrow":
        from tierrank.data.tables.arrow import ArrowColumns

        return ArrowColumns(frame, list(frame.column_names))
    advice = " Call .collect() on it first." if hasattr(frame, "collect") else ""
    raise ValueError(
        f"a {type(frame).__module__}.{type(frame).__qualname__} is not a frame: give one of "
        f"pandas or polars, or a pyarrow table.{advice}"
    )


def _library(data: Any) -> str | None:
    """Whose frame it is, if it is one."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    marks = {"pandas": ("iloc", "columns"), "polars": ("to_series",), "pyarrow": ("column_names",)}
    return next(
        (
            library
            for library, has in marks.items()
            if library in libraries and all(hasattr(data, each) for each in has)
        ),
        None,
    )


def _is_numbered(columns: Any) -> bool:
    return type(columns).__name__ == "RangeIndex"


class PandasColumns:
    """The columns of a `pandas.DataFrame`."""

    def __init__(self, frame: Any) -> None:
        self.names: Sequence[str] = [str(name) for name in frame.columns]
        self.rows = len(frame)
        self._frame = frame

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""
        from pandas.api import types

        series = self._frame.iloc[:, position]
        kind = series.dtype
        if types.is_object_dtype(kind):
            return _floats_of_objects(series.tolist(), series.isna().tolist())
        is_number = types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)
        if not is_number or types.is_complex_dtype(kind):
            return BadColumn(f"is of type {shown(kind)}, not numbers.")
        if types.is_integer_dtype(kind):
            present = series.dropna()
            if len(present) and max(int(present.max()), -int(present.min())) > EXACT_INTEGERS:
                return _large_integer(series.tolist(), series.isna().tolist())
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is missing."""
        series = self._frame.iloc[:, position]
        values, missing = series.tolist(), series.isna().to_numpy()
        for row in np.flatnonzero(missing).tolist():  # pandas has four ways to say it
            values[row] = None
        return _distinct(values, bad_type(series.dtype, what))

    def keys(self, position: int, what: str = "query") -> Any:
        """[rows] keys."""
        return _keys(self.distinct(position, what), what)

    def decimal(self, position: int) -> bool:
        """Whether its numbers may be decimals, which pandas keeps as objects."""
        from pandas.api import types

        return bool(types.is_object_dtype(self._frame.dtypes.iloc[position]))


class PolarsColumns:
    """The columns of a `polars.DataFrame`."""

    def __init__(self, frame: Any) -> None:
        self.names: Sequence[str] = list(frame.columns)
        self.rows = frame.height
        self._frame = frame

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is null."""
        import polars as pl

        series = self._frame.to_series(position)
        kind = series.dtype
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            return BadColumn(f"is of type {shown(kind)}, not numbers.")
        if kind.is_integer():
            present = series.drop_nulls()
            if len(present) and max(int(present.max()), -int(present.min())) > EXACT_INTEGERS:
                return _large_integer(series.to_list(), series.is_null().to_list())
        return np.asarray(series.cast(pl.Float64).fill_null(float("nan")).to_numpy())

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is null."""
        series = self._frame.to_series(position)
        if series.dtype.is_nested():
            return BadColumn(bad_type(series.dtype, what))
        return _distinct(series.to_list(), bad_type(series.dtype, what))

    def keys(self, position: int, what: str = "query") -> Any:
        """[rows] keys."""
        return _keys(self.distinct(position, what), what)

    def decimal(self, position: int) -> bool:
        """Whether its numbers are decimals."""
        return bool(self._frame.dtypes[position].is_decimal())


def _floats_of_objects(values: list[Any], missing: list[bool]) -> FloatArray | BadColumn:
    """Numbers that pandas keeps as objects, such as booleans with a None among them."""
    found = np.full(len(values), np.nan)
    for row, (value, absent) in enumerate(zip(values, missing, strict=True)):
        if absent:
            continue
        if not isinstance(value, Real | Decimal):
            return BadColumn(f"has {shown(value)}, which is not a number.", row)
        found[row] = float(value)
        if isinstance(value, Integral) and abs(int(value)) > EXACT_INTEGERS:
            return BadColumn.with_integer(int(value), row)
    return found


def _large_integer(values: list[Any], missing: list[bool]) -> BadColumn:
    rows = (row for row, absent in enumerate(missing) if not absent)
    row = next(row for row in rows if abs(int(values[row])) > EXACT_INTEGERS)
    return BadColumn.with_integer(int(values[row]), row)


def _distinct(values: list[Any], why_not: str) -> Distinct | BadColumn:
    try:
        number = {value: code for code, value in enumerate(dict.fromkeys(values))}
    except TypeError:
        return BadColumn(why_not)
    codes = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
    return Distinct(codes, list(number))


def _keys(found: Distinct | BadColumn, what: str) -> npt.NDArray[Any] | BadColumn:
    if isinstance(found, BadColumn):
        return found
    keys: npt.NDArray[Any] | BadColumn = spread(keys_of(found.values, what), found.codes)
    return keys
