"""Columns of frames, of pandas, polars or pyarrow, and of Parquet files, which pyarrow reads.

None of these libraries is imported unless it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.data.files import check_expansion, shown
from tierrank.data.tables.columns import (
    EXACT_INTEGERS,
    BadColumn,
    Columns,
    Distinct,
    TableError,
    bad_type,
)
from tierrank.errors import ArgumentError

_LARGEST_ARRAY = 2**31 - 1  # bytes of text that one array of strings can hold
_MAGIC = b"PAR1"
_CELL = 8  # bytes


def is_frame(data: Any) -> bool:
    """Whether it is a frame of any of the three libraries."""
    return _library(data) is not None


def is_numbered(frame: Any) -> bool:
    """Whether a frame is of pandas and its columns have no names but numbers, as of an array."""
    return _library(frame) == "pandas" and type(frame.columns).__name__ == "RangeIndex"


def frame_columns(frame: Any) -> Columns:
    """Give the columns of a frame of any of the three libraries."""
    kind = _library(frame)
    if kind == "pandas":
        return PandasColumns(frame)
    if kind == "polars":
        return PolarsColumns(frame)
    if kind == "pyarrow":
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


class ArrowColumns:
    """The columns of a `pyarrow.Table`, found by the names that a file or table gives them."""

    def __init__(self, table: Any, names: Sequence[str]) -> None:
        self.names = names
        self.rows = table.num_rows
        self._table = table
        self._place = {name: i for i, name in enumerate(table.column_names)}

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is null."""
        column = _as_float64(self._column(position))
        if isinstance(column, BadColumn):
            return column
        values = np.empty(self.rows)
        fill(column, values)
        return values

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is null."""
        import pyarrow as pa

        column = _plain(self._column(position))
        kind = column.type
        if pa.types.is_nested(kind):
            return BadColumn(bad_type(kind, what))
        try:
            if not (_is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
                column = column.cast(pa.large_string())  # dates as ISO 8601, bytes if UTF-8
            return codes_and_distinct(column)
        except pa.ArrowNotImplementedError:
            return BadColumn(bad_type(kind, what))

    def decimal(self, position: int) -> bool:
        """Whether its numbers are decimals."""
        from pyarrow import types

        return bool(types.is_decimal(_plain(self._column(position)).type))

    def _column(self, position: int) -> Any:
        return self._table.column(self._place[self.names[position]])


def fill(column: Any, target: FloatArray) -> None:
    """Copy a column of float64 into an array; what is null becomes NaN."""
    start = 0
    for chunk in column.chunks:
        target[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)


def codes_and_distinct(column: Any) -> Distinct:
    """The distinct values of a column, null among them."""
    import pyarrow as pa

    if column.num_chunks > 1 and column.nbytes < _LARGEST_ARRAY:  # to unify them is slow
        column = pa.chunked_array([pa.concat_arrays(column.chunks)])
    encoded = column.dictionary_encode(null_encoding="encode").unify_dictionaries()
    chunks = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    codes = np.concatenate(chunks).astype(np.int64)
    return Distinct(codes, encoded.chunk(0).dictionary.to_pylist())


def _as_float64(column: Any) -> Any:
    import pyarrow as pa

    column = _plain(column)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not (_is_number(kind) or pa.types.is_null(kind)):
        return BadColumn(f"is of type {shown(kind)}, not numbers.")
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        if not pa.types.is_integer(kind):
            raise
    values = column.to_pylist()
    row = next(i for i, v in enumerate(values) if v is not None and abs(v) > EXACT_INTEGERS)
    return BadColumn.with_integer(values[row], row)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _plain(column: Any) -> Any:
    """A column of categories as what the categories are."""
    import pyarrow as pa

    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


# Parquet ------------------------------------------------------------------------------------------


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a `pyarrow.parquet.ParquetFile`; whatever goes wrong with it is a `TableError`."""
    from pyarrow import parquet

    with path.open("rb") as raw:
        start = raw.read(len(_MAGIC))
        if not start:
            raise TableError(path, None, "the file is empty: give one with columns and rows.")
        if start != _MAGIC:
            raise TableError(path, None, "is not a Parquet file: give its name the right suffix.")
        raw.seek(0)
        with _damaged(path):
            yield parquet.ParquetFile(raw, page_checksum_verification=True)


def parquet_columns(path: Path, file: Any, positions: Sequence[int]) -> ArrowColumns:
    """Some columns of an open Parquet file."""
    names = file.schema_arrow.names
    check_expansion(path, file.metadata.num_rows * len(positions) * _CELL, TableError)
    table = file.read(columns=[names[position] for position in positions])
    table.validate(full=True)  # pyarrow trusts offsets and UTF-8 otherwise
    return ArrowColumns(table, names)


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Whatever pyarrow finds wrong with the file, under its name."""
    from pyarrow import ArrowException

    try:
        yield
    except ArgumentError:
        raise
    except (ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        why = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
        raise TableError(
            path,
            None,
            f"cannot be read as Parquet ({why[0]}): it is cut short or damaged, or holds what "
            "pyarrow does not know. Fetch or write it again.",
        ) from error
