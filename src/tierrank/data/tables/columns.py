"""Columns of tables: cells that are numbers, cells that are keys, and what is wrong with others.

Wherever a table is, it gives its `Columns` by position; `opening` makes more of them. Those of
frames, of pandas, polars, pyarrow or datasets, and of Parquet files, which pyarrow reads, are here;
none of these libraries is imported unless it is needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import DataFileError, check_expansion, shown
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers.arrays import frame_library, is_missing

MISSING = ("", "NA", "N/A", "n/a", "NULL", "null", "Null", "NaN", "nan", "None", "<NA>")
EXACT_INTEGERS = 2**53  # that a float64 holds

_BLANKS = " \t"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMED = re.compile(r"[+-]?(?:(inf|infinity)|nan)", re.IGNORECASE)
_TRUTH = {"true": 1.0, "false": 0.0}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


class TableError(DataFileError):
    r"""A table that cannot be read: says which, where in it, what is wrong and what to do.

    A `DataFileError`, which has its attributes.

    See Also
    --------
    read_table : Raises it.
    UnclearTable : Of a table that may be read in several ways.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import TableError, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("qid,label,x\n7,2,0.5\n7,high,0.1\n")
    ...     try:
    ...         read_table(file)
    ...     except TableError as error:
    ...         error.line
    3
    """


class BadColumn(NamedTuple):
    """A column that does not serve: why, and in which row, counted from 0, if in one.

    `large` if it is an integer that a float64 would change.
    """

    why: str
    row: int | None = None
    large: bool = False

    @classmethod
    def with_integer(cls, value: int, row: int) -> BadColumn:
        """For an integer that a float64 would change."""
        return cls(f"has {value}, over 2^53, which a float64 cannot hold: scale it.", row, True)


class Distinct(NamedTuple):
    """[rows] numbers of the distinct values of a column, and these values."""

    codes: IntArray
    values: list[Any]


class Columns(Protocol):
    """Columns by position, as numbers and as the values that there are.

    Attributes
    ----------
    names
        of all columns of the table
    rows
        how many there are
    """

    names: Sequence[str]
    rows: int

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is missing; `what` is for the error."""

    def decimal(self, position: int) -> bool:
        """Whether its numbers may be decimals that a float64 rounds."""

    def categorical(self, position: int) -> bool:
        """Whether its type says that it holds categories."""


# Numbers ------------------------------------------------------------------------------------------


def numbers(cells: Sequence[str]) -> FloatArray | BadColumn:
    """Read words: numbers throughout, or true and false throughout; NaN for what is missing."""
    said = (word for cell in cells if (word := cell.strip(_BLANKS)) not in MISSING)
    read = _truth if next(said, "").lower() in _TRUTH else _number
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        word = cell.strip(_BLANKS)
        value = math.nan if word in MISSING else read(word)
        if isinstance(value, str):
            return BadColumn(value, row)
        values[row] = value
    return values


def exact_number(cell: Any) -> Any:
    """The number of a cell to the last digit, NaN for what is missing; None if it is no number."""
    if cell is None:
        return math.nan
    if not isinstance(cell, str):
        return cell if isinstance(cell, Real | Decimal) else None
    word = cell.strip(_BLANKS)
    value = math.nan if word in MISSING else _number(word)
    if isinstance(value, str):
        return None
    return Decimal(word) if math.isfinite(value) else value


def order_of(exact: Sequence[Any]) -> FloatArray:
    """The place of each number in the order of all, equal ones alike; NaN and infinities stay."""
    order = sorted({value for value in exact if math.isfinite(value)})
    number = {value: float(place) for place, value in enumerate(order)}
    return np.array([number.get(value, value) for value in exact], dtype=np.float64)


def _truth(word: str) -> float | str:
    known = _TRUTH.get(word.lower())
    return f"has {shown(word)} after true or false: write one kind." if known is None else known


def _number(word: str) -> float | str:
    if _DECIMAL.fullmatch(word):
        value = float(word)
        if math.isinf(value):
            return f"has {shown(word)}, too large for a float64: scale it down."
        return value
    if (named := _NAMED.fullmatch(word)) is None:
        return f"has {shown(word)}, which is not a number."
    if named[1] is None:
        return math.nan
    return -math.inf if word.startswith("-") else math.inf


# Keys ---------------------------------------------------------------------------------------------


class BadKey(NamedTuple):
    """Which of the distinct values cannot be a key, and why."""

    code: int
    why: str


def keys_of(distinct: Sequence[Any], what: str = "query") -> AnyArray | BadKey:
    """Give a key for each of the distinct values of a column; `what` is what errors call one.

    int64 where all are whole numbers that fit, else an object array of strings: a column of
    such an array shares one string between all rows of a query.
    """
    types = set(map(type, distinct))
    if types == {str}:  # nothing to convert, and none look the same
        empty = next((code for code, word in enumerate(distinct) if not word.strip()), None)
        return _strings(distinct) if empty is None else BadKey(empty, _empty(what))
    if types == {int} and _fits(min(distinct)) and _fits(max(distinct)):
        return np.array(distinct, dtype=np.int64)
    for code, value in enumerate(distinct):
        if is_missing(value):
            return BadKey(code, f"the {what} is missing: give every row one.")
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return BadKey(code, f"the {what} is {value}: give a number or a word.")
        if isinstance(value, str) and not value.strip():
            return BadKey(code, _empty(what))
    if all(map(_is_whole, distinct)):
        return np.array([int(value) for value in distinct], dtype=np.int64)
    words: dict[str, Any] = {}
    for code, value in enumerate(distinct):
        word = value if isinstance(value, str) else str(value)
        if word in words:
            other = words[word]
            return BadKey(
                code,
                f"the {_several(what)} {other!r} ({type(other).__name__}) and {value!r} "
                f"({type(value).__name__}) look the same: give the column one type.",
            )
        words[word] = value
    return _strings(list(words))


def keys_of_words(
    distinct: Sequence[str], what: str = "query", missing: Container[str] = MISSING
) -> AnyArray | BadKey:
    """The same for text: words such as 7 are numbers if all are; 07 and 7.0 are words.

    A word that stands for a missing value is no key: all rows that lack one would be of one kind.
    """
    if all(_WHOLE.fullmatch(word) and _fits(int(word)) for word in distinct):
        return keys_of([int(word) for word in distinct], what)
    for code, word in enumerate(map(str.strip, distinct)):
        if word and word in missing:
            return BadKey(
                code,
                f"the {what} is {word}, which stands for a missing value: give every row one. "
                "(Where one is really called so, Parquet can tell.)",
            )
    return keys_of(distinct, what)


def bad_type(kind: object, what: str = "query") -> str:
    """What to say about a column whose values cannot be keys."""
    return f"the {what} column is of type {shown(kind)}: give numbers, strings or dates."


def _strings(words: Sequence[str]) -> AnyArray:
    keys = np.empty(len(words), dtype=object)
    keys[:] = words
    return keys


def _empty(what: str) -> str:
    return f"the {what} is empty: give every row one."


def _several(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"


def _fits(value: int) -> bool:
    return _SMALLEST <= value <= _LARGEST


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | np.integer):
        return _fits(int(value))
    # pandas makes floats of integers when one is missing
    return isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_INTEGERS


# Frames and Parquet -------------------------------------------------------------------------------


_LARGEST_ARRAY = 2**31 - 1  # bytes of text that one array of strings can hold
_MAGIC = b"PAR1"
_CELL = 8  # bytes


def is_numbered(frame: Any) -> bool:
    """Whether a frame is of pandas and its columns have no names but numbers, as of an array."""
    return frame_library(frame) == "pandas" and type(frame.columns).__name__ == "RangeIndex"


def frame_columns(frame: Any) -> Columns:
    """Give the columns of a frame of any of the four libraries."""
    kind = frame_library(frame)
    if kind == "pandas":
        return PandasColumns(frame)
    if kind == "polars":
        return PolarsColumns(frame)
    table = arrow_table(frame)
    return ArrowColumns(table, list(table.column_names))


def arrow_table(frame: Any) -> Any:
    """A frame of any of the four libraries as a `pyarrow.Table`."""
    kind = frame_library(frame)
    if kind == "pandas":
        import pyarrow as pa

        return pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "polars":
        return frame.to_arrow()
    if kind == "pyarrow":
        return frame
    if kind == "datasets":
        return frame.with_format("arrow")[:]  # also of rows that were selected or shuffled
    advice = " Call .collect() on it first." if hasattr(frame, "collect") else ""
    raise ValueError(
        f"a {type(frame).__module__}.{type(frame).__qualname__} is not a frame: give one of "
        f"pandas or polars, a pyarrow table or a datasets.Dataset.{advice}"
    )


def vectors_spread(frame: Any, wanted: Callable[[str], bool]) -> tuple[Any, dict[str, list[str]]]:
    """A column for each number of vectors, such as embeddings: name[0], name[1], ….

    Returns the frame, as it is if it has no vectors among the columns that are wanted, and the new
    names of each column that was spread.
    """
    kind, spread = frame_library(frame), dict[str, list[str]]()
    if kind == "pandas":
        firsts = [value for at in range(frame.shape[1]) for value in frame.iloc[:1, at].tolist()]
        nested = any(isinstance(first, list | tuple | np.ndarray) for first in firsts)
    elif kind == "polars":
        nested = any(each.is_nested() for each in frame.dtypes)
    else:
        nested = kind is not None
    if not nested:
        return frame, spread
    import pyarrow as pa

    def is_vector(name: str, of: Any) -> bool:
        tests = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
        return wanted(name) and any(test(of) for test in tests)

    table = arrow_table(frame)
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_vector(name, column.type):
            numbers = _numbers_of_vectors(name, column)
            spread[name] = [f"{name}[{number}]" for number in range(numbers.shape[1])]
            columns.update(zip(spread[name], map(pa.array, numbers.T), strict=True))
        else:
            columns[name] = column
    return (pa.table(columns), spread) if spread else (frame, spread)


def _numbers_of_vectors(name: str, column: Any) -> FloatArray:
    """[rows, width] the numbers of a column of lists, which all are equally long."""
    import pyarrow as pa
    from pyarrow import compute

    lengths = compute.list_value_length(column).fill_null(-1).to_numpy()
    width = int(lengths.max(initial=0))
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        has = "is missing" if lengths[row] < 0 else f"has {lengths[row]} numbers"
        raise ArgumentError(
            f"row {row} of the frame: the vector {shown(name)} {has}, and others have {width}: "
            "give vectors of one length."
        )
    flat = _as_float64(compute.list_flatten(column))
    if isinstance(flat, BadColumn):
        raise ArgumentError(
            f"the column of vectors {shown(name)} {flat.why} Leave it out by ",
            Argument("drop"),
            ".",
        )
    if not isinstance(flat, pa.ChunkedArray):
        flat = pa.chunked_array([flat])
    values = np.empty(len(flat))
    fill(flat, values)
    return values.reshape(len(lengths), width)


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
        return distinct_of(values, bad_type(series.dtype, what))

    def decimal(self, position: int) -> bool:
        """Whether its numbers may be decimals, which pandas keeps as objects."""
        from pandas.api import types

        return bool(types.is_object_dtype(self._frame.dtypes.iloc[position]))

    def categorical(self, position: int) -> bool:
        """Whether its type says that it holds categories."""
        return str(self._frame.dtypes.iloc[position]).startswith(("category", "dictionary"))


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
        return distinct_of(series.to_list(), bad_type(series.dtype, what))

    def decimal(self, position: int) -> bool:
        """Whether its numbers are decimals."""
        return bool(self._frame.dtypes[position].is_decimal())

    def categorical(self, position: int) -> bool:
        """Whether its type says that it holds categories."""
        import polars as pl

        return self._frame.dtypes[position] in (pl.Categorical, pl.Enum)


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


def distinct_of(values: list[Any], why_not: str) -> Distinct | BadColumn:
    """The distinct values of a list; `why_not` is for what cannot be hashed."""
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

        column = self._column(position)
        if (found := _of_dictionary(column)) is not None:
            return found
        column = _plain(column)
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

    def categorical(self, position: int) -> bool:
        """Whether its type says that it holds categories."""
        from pyarrow import types

        return bool(types.is_dictionary(self._column(position).type))

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

    if not len(column):
        return Distinct(np.empty(0, dtype=np.int64), [])
    if column.num_chunks > 1 and column.nbytes < _LARGEST_ARRAY:  # to unify them is slow
        column = pa.chunked_array([pa.concat_arrays(column.chunks)])
    encoded = column.dictionary_encode(null_encoding="encode").unify_dictionaries()
    chunks = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    codes = np.concatenate(chunks).astype(np.int64)
    return Distinct(codes, encoded.chunk(0).dictionary.to_pylist())


def _of_dictionary(column: Any) -> Distinct | None:
    """The same of words that are numbered already; None of other columns.

    A dictionary may have words that no row has, in any order; one that has a word twice is not
    taken, nor are parts that have more words together than their kind of number counts.
    """
    import pyarrow as pa

    kind, words = column.type, (pa.string(), pa.large_string())
    if not (pa.types.is_dictionary(kind) and kind.value_type in words and len(column)):
        return None
    if any(chunk.dictionary.null_count for chunk in column.chunks):
        return None
    try:
        column = column.unify_dictionaries()
    except pa.ArrowInvalid:
        return None
    values: list[Any] = column.chunk(0).dictionary.to_pylist()
    if len(set(values)) < len(values):
        return None
    missing = len(values)
    indices = (chunk.indices.cast(pa.int64()) for chunk in column.chunks)
    codes = np.concatenate([each.fill_null(missing).to_numpy() for each in indices])
    first = np.full(missing + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last written stays: the first row
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    number = np.empty(missing + 1, dtype=np.int64)
    number[order] = np.arange(len(order))
    return Distinct(number[codes], [(*values, None)[code] for code in order.tolist()])


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
def open_parquet(path: Path, numbered: Sequence[str] = ()) -> Iterator[Any]:
    """Open a `pyarrow.parquet.ParquetFile`; whatever goes wrong with it is a `TableError`.

    Words of the columns that are to be `numbered` are not spelled out row by row.
    """
    from pyarrow import parquet

    with path.open("rb") as raw:
        start = raw.read(len(_MAGIC))
        if not start:
            raise TableError(path, None, "the file is empty: give one with columns and rows.")
        if start != _MAGIC:
            raise TableError(path, None, "is not a Parquet file: give its name the right suffix.")
        raw.seek(0)
        with _damaged(path):
            yield parquet.ParquetFile(
                raw, read_dictionary=list(numbered), page_checksum_verification=True
            )


def one_schema(paths: Sequence[Path]) -> list[str]:
    """The names of the columns of Parquet files, which all have them: numbers in all, or words."""
    first: Any = None
    for path in paths:
        with open_parquet(path) as file:
            schema = file.schema_arrow
        first = first or schema
        for name in (*first.names, *schema.names):
            for here, there, lacks in ((schema, paths[0], path), (first, path, paths[0])):
                if name not in here.names:
                    what = (
                        f"has no column {shown(name)}, but {there} has: give files of one schema."
                    )
                    raise TableError(lacks, None, what)
            one, other = (each.field(name).type for each in (first, schema))
            if _comparable(one) != _comparable(other):
                raise TableError(
                    path, None, f"the column {shown(name)} is of type {other}, but in {paths[0]} "
                    f"of type {one}: give files of one schema.",
                )  # fmt: skip
    return list(first.names)


def _comparable(kind: Any) -> str:
    """A type as far as it matters: how many bits a number has, or a category, does not."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if _is_number(kind) or types.is_boolean(kind) or types.is_null(kind):
        return "number"
    return "string" if types.is_large_string(kind) else str(kind)


def parquet_columns(path: Path, file: Any, positions: Sequence[int], rows: slice) -> ArrowColumns:
    """Some columns and rows of an open Parquet file."""
    names = file.schema_arrow.names
    check_expansion(path, (rows.stop - rows.start) * len(positions) * _CELL, TableError)
    table = _rows_of(file, [names[position] for position in positions], rows)
    table.validate(full=True)  # pyarrow trusts offsets and UTF-8 otherwise
    return ArrowColumns(table, names)


def parquet_part(file: Any, query: str, part: tuple[int, int]) -> slice:
    """The rows of a part, from where a query begins to where one ends.

    It begins with a row group, if one begins near by: then no rank reads another's.
    """
    rank, ranks = part
    rows, borders = file.metadata.num_rows, group_starts(file)
    if query not in file.schema_arrow.names:
        return slice(0, rows)  # which is refused with all that there is

    def query_start(row: int) -> int:
        """Where a query begins first, at a row or behind it."""
        near = min(borders, key=lambda start: abs(start - row))
        if abs(near - row) * 4 * ranks <= rows:
            row = near
        before, start = None, max(0, row - 1)
        while 0 < row < rows:
            some = slice(start, next(border for border in borders if border > start))
            keys = _rows_of(file, [query], some).column(0).to_pylist()
            before = keys[0] if before is None else before
            other = next((n for n, key in enumerate(keys) if key != before), None)
            if other is not None:
                return start + other
            start = row = some.stop
        return row

    return slice(query_start(rows * rank // ranks), query_start(rows * (rank + 1) // ranks))


def group_starts(file: Any) -> list[int]:
    """The first row of each row group, and the end."""
    groups = range(file.num_row_groups)
    return [0, *np.cumsum([file.metadata.row_group(each).num_rows for each in groups]).tolist()]


def _rows_of(file: Any, columns: Sequence[str], rows: slice) -> Any:
    """A table of rows, from the row groups that have some of them."""
    starts = group_starts(file)
    groups = [
        number
        for number, (start, end) in enumerate(pairwise(starts))
        if start < rows.stop and rows.start < end
    ]
    if not groups:
        return file.schema_arrow.empty_table().select(columns)
    table = file.read_row_groups(groups, columns=columns)
    return table.slice(rows.start - starts[groups[0]], rows.stop - rows.start)


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
