"""Columns of pyarrow as numbers and as keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tierrank.data.tables.assembly import EXACT_INTEGERS, BadColumn, Distinct, FloatArray, spread
from tierrank.data.tables.keys import bad_type, keys_of
from tierrank.data.text import shown

_LARGEST_ARRAY = 2**31 - 1  # bytes of text that one array of strings can hold


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

    def keys(self, position: int, what: str = "query") -> Any:
        """[rows] keys."""
        found = self.distinct(position, what)
        if isinstance(found, BadColumn):
            return found
        return spread(keys_of(found.values, what), found.codes)

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
