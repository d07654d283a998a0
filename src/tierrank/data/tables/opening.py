"""A table that is open, wherever it is: CSV, Parquet or a frame.

A table is opened once and a column of it is read once, by whoever needs it first: to find out what
the table holds takes no second reading.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.data.files import PARQUET, SEPARATORS, shown, without_compression
from tierrank.data.tables.columns import (
    MISSING,
    BadColumn,
    BadKey,
    Columns,
    Distinct,
    TableError,
    exact_number,
    frame_columns,
    keys_of,
    keys_of_words,
    open_parquet,
    order_of,
    parquet_columns,
)
from tierrank.data.tables.csv import CsvColumns, read_text
from tierrank.errors import Argument, ArgumentError
from tierrank.names import check_one_of
from tierrank.tiers.arrays import group_rows
from tierrank.tiers.catalogue import catalogue_of

TableFormat = Literal["csv", "tsv", "parquet"]

_MOST_NAMES = 30


@dataclass(frozen=True)
class Keys:
    """What the rows of a column are called.

    Attributes
    ----------
    codes
        [rows] number of each row's key
    keys
        the keys
    """

    codes: IntArray
    keys: AnyArray

    def renumbered(self) -> Keys:
        """The same, with the keys that occur in order of first appearance."""
        so_far = np.append(-1, np.maximum.accumulate(self.codes))
        if so_far[-1] == len(self.keys) - 1 and (so_far[1:] - so_far[:-1] <= 1).all():
            return self  # as they are
        codes, used = group_rows(self.codes, len(self.codes))
        return Keys(codes, self.keys[used])

    def first_rows(self) -> IntArray:
        """[keys] the first row of each; of one that does not occur, the number of rows."""
        numbers, rows = np.arange(len(self.keys)), len(self.codes)
        first = np.searchsorted(np.maximum.accumulate(self.codes), numbers)
        if (first < rows).all() and np.array_equal(self.codes[first], numbers):
            return first  # they are numbered in order of first appearance
        first = np.full(len(self.keys), rows, dtype=np.int64)
        first[self.codes[::-1]] = np.arange(rows - 1, -1, -1)  # the last written stays
        return first

    def of(self, rows: IntArray) -> Keys:
        """Those of some rows."""
        return Keys(self.codes[rows], self.keys).renumbered()


class Sides(NamedTuple):
    """The two sides of every row, by number, and their names in the order of `catalogue_of`."""

    first: IntArray  # [rows]
    second: IntArray  # [rows]
    names: tuple[Any, ...]


class Table:
    """The names of a table's columns, and the columns that are asked for, by position.

    What is wrong with a cell is said with its line; `what` is how an error calls what a cell is.

    Attributes
    ----------
    names
        of all columns
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[Sequence[int], Sequence[int]], Columns],
        error: Callable[..., ArgumentError],
        is_part: bool = False,
    ) -> None:
        """Take `read(positions, those that should be numbers)`, `error(row, position, *what)`.

        A part of a table may be without rows.
        """
        self.names = names
        self._read = read
        self._error = error
        self.is_part = is_part
        self._columns: dict[int, Columns] = {}
        self._floats: dict[int, FloatArray | BadColumn] = {}
        self._place: dict[str, int] = {}
        for at, name in enumerate(names):
            if self._place.setdefault(name, at) != at:
                self.refuse(f"two columns are called {shown(name)}: rename one of them.")

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(name in self._place for name in names)

    def find(self, name: str, option: str) -> int:
        """Give the position of a column; `option` is the argument that asked for it."""
        if name not in self._place:
            self.refuse(*absent(name, self.names, Argument(option)))
        return self._place[name]

    def refuse_twice(self, positions: Sequence[int]) -> None:
        """Refuse a column that is named for two things."""
        position, times = Counter(positions).most_common(1)[0]
        if times > 1:
            name = shown(self.names[position])
            self.refuse(f"{name} is named for two things: each is a column of its own.")

    def error(self, *what: object, row: int | None = None, at: int | None = None) -> ArgumentError:
        """What is wrong with the table's columns, or with the cell in a row of the column `at`."""
        return self._error(row, at, *what)

    def refuse(self, *what: object, row: int | None = None, at: int | None = None) -> NoReturn:
        """Raise such an error."""
        raise self.error(*what, row=row, at=at)

    def check(self, wrong: BoolArray, at: int, *what: object) -> None:
        """Refuse the first row that is wrong."""
        if wrong.any():
            self.refuse(*what, row=int(wrong.argmax()), at=at)

    def load(self, *positions: int, numbers: Sequence[int] = ()) -> None:
        """Read columns, all at once, and not again; `numbers` are further ones that hold those."""
        new = [at for at in dict.fromkeys((*positions, *numbers)) if at not in self._columns]
        if new:
            columns = self._read(new, [at for at in numbers if at not in self._columns])
            if not columns.rows and not self.is_part:
                self.refuse("there are columns but no row: give at least one.")
            self._columns.update(dict.fromkeys(new, columns))

    @property
    def rows(self) -> int:
        """How many rows there are, once a column is read."""
        return next(iter(self._columns.values())).rows

    def _column(self, at: int) -> Columns:
        self.load(at)
        return self._columns[at]

    def keys(self, at: int, what: str, missing: Container[str] = MISSING) -> Keys:
        """Int64 keys if all are whole numbers, else strings; none is missing, nor such a word.

        They come in order of first appearance.
        """
        return self.unordered_keys(at, what, missing).renumbered()

    def unordered_keys(self, at: int, what: str, missing: Container[str] = MISSING) -> Keys:
        """The same in any order."""
        codes, values = self.distinct(at, what)
        keys = self.keys_of(values, at, what, missing)
        if isinstance(keys, BadKey):
            self.refuse(keys.why, row=int((codes == keys.code).argmax()), at=at)
        return Keys(codes, keys)

    def keys_of(
        self, values: Sequence[Any], at: int, what: str, missing: Container[str] = MISSING
    ) -> AnyArray | BadKey:
        """The keys of distinct values, of a column or several like it."""
        written = isinstance(self._column(at), CsvColumns)
        return keys_of_words(values, what, missing) if written else keys_of(values, what)

    def is_categorical(self, at: int) -> bool:
        """Whether the type of a column says that it holds categories."""
        return self._column(at).categorical(at)

    def missing_words(self, at: int) -> Sequence[str]:
        """Words that stand for what is missing: of text, which has no other way to say it."""
        return MISSING if isinstance(self._column(at), CsvColumns) else ()

    def sides(self, first: int, second: int) -> Sides:
        """Read two columns: integers if all names of both are whole numbers, else strings."""
        columns = [self.unordered_keys(at, "side") for at in (first, second)]
        whole = all(column.keys.dtype.kind == "i" for column in columns)
        number: dict[Any, int] = {}
        numbered, places = [], []
        for i, column in enumerate(columns):
            names = column.keys.tolist() if whole else map(str, column.keys.tolist())
            code = np.array([number.setdefault(n, len(number)) for n in names], dtype=np.int64)
            numbered.append(code)
            places.append(2 * column.first_rows() + i)  # a row's first side before its second
        place = np.full(len(number), 2 * self.rows)
        for code, where in zip(numbered, places, strict=True):
            np.minimum.at(place, code, where)
        order = np.argsort(place, kind="stable")
        order = order[: np.count_nonzero(place < 2 * self.rows)]  # those that occur
        every = list(number)
        catalogue = catalogue_of([every[code] for code in order.tolist()])
        new = np.zeros(len(number), dtype=np.int64)
        new[order] = np.arange(len(order))
        if catalogue.names is None:  # the names are their numbers
            new[order] = [int(every[code]) for code in order.tolist()]
        one, two = (new[code][column.codes] for code, column in zip(numbered, columns, strict=True))
        names = tuple(catalogue.items) if catalogue.names is None else catalogue.names
        return Sides(one, two, names)

    def distinct(self, at: int, what: str) -> Distinct:
        """The distinct values of a column, whatever they are, None for what is missing."""
        found = self._column(at).distinct(at, what)
        if isinstance(found, BadColumn):
            self.refuse(found.why, row=found.row, at=at)
        return found

    def floats(self, at: int, what: str) -> FloatArray:
        """[rows] numbers, NaN for what is missing."""
        found = self.floats_or_fault(at)
        if isinstance(found, BadColumn):
            name = shown(self.names[at])
            self.refuse(f"the {what} column {name} {found.why}", row=found.row, at=at)
        return found

    def floats_or_fault(self, at: int, *, keep: bool = True) -> FloatArray | BadColumn:
        """The same, or why it cannot be; kept for whoever asks again."""
        if not keep:
            return self._column(at).floats(at)
        if at not in self._floats:
            self._floats[at] = self._column(at).floats(at)
        return self._floats[at]

    def cells(self, name: str, option: str) -> AnyArray:
        """[rows] what a column holds: float64 if all are numbers, datetime64, or objects.

        What is missing is NaN, NaT or None. Words such as 07, and numbers that float64 would make
        equal, are the names of something and stay words.
        """
        at = self.find(name, option)
        self.load(at)
        found = self.floats_or_fault(at)
        plain = not isinstance(found, BadColumn) and not self.rounds(at)
        if plain and not isinstance(self._column(at), CsvColumns):
            return np.asarray(found)
        codes, values = self.distinct(at, option)
        gone = self.missing_words(at)
        cells: list[Any] = [
            None if isinstance(cell, str) and cell.strip() in gone else cell for cell in values
        ]
        there = [cell for cell in cells if cell is not None]
        if plain and not any(re.match(r"\s*[+-]?0\d", cell) for cell in there):
            return np.asarray(found)
        if there and all(isinstance(cell, date) for cell in there):
            aware = any(getattr(cell, "tzinfo", None) is not None for cell in there)
            if aware:
                cells = [c and c.astimezone(UTC).replace(tzinfo=None) for c in cells]
            return np.array(cells, dtype="datetime64[us]")[codes]
        whole = np.empty(len(cells), dtype=object)
        whole[:] = cells
        return np.asarray(whole[codes])

    def weights(self, at: int) -> FloatArray:
        """[rows] positive and finite numbers."""
        values = self.floats(at, "weight")
        self.check(
            ~(np.isfinite(values) & (values > 0)),
            at,
            "the weight is missing, or not positive and finite: it says how often something was "
            "seen. Leave out what was not.",
        )
        return values

    def in_order(self, positions: Sequence[int], what: str) -> list[FloatArray]:
        """[rows] numbers that stand to each other, also between columns, as those of the table.

        NaN for what is missing. They are the table's own, or, where float64 would make two
        different ones equal (integers beyond 2^53, long decimals), their places in order.
        """
        if not self.rounds(*positions):
            return [self.floats(at, what) for at in positions]
        found = [self.distinct(at, what) for at in positions]
        exact = [exact_number(cell) for _, cells in found for cell in cells]
        if None in exact:
            return [self.floats(at, what) for at in positions]  # which says where
        borders = np.cumsum([len(cells) for _, cells in found])[:-1]
        by_column = zip(found, np.split(order_of(exact), borders), strict=True)
        return [values[codes] for (codes, _), values in by_column]

    def rounds(self, *positions: int) -> bool:
        """Whether float64 would make two different numbers of these columns equal."""
        found = [self.floats_or_fault(at) for at in positions]
        faults = [each for each in found if isinstance(each, BadColumn)]
        if faults:
            return all(fault.large for fault in faults)
        if not any(self._column(at).decimal(at) for at in positions):
            return False
        values = np.concatenate([np.asarray(each) for each in found])
        in_order = np.sort(values)
        if not (in_order[1:] == in_order[:-1]).any():
            return False
        columns = [self._column(at) for at in positions]
        if isinstance(columns[0], CsvColumns):
            order = np.argsort(values)
            again = np.flatnonzero(values[order[1:]] == values[order[:-1]])
            equal = np.union1d(order[again], order[again + 1])  # to these alone the words matter
            words: set[str] = set()
            for i, (at, column) in enumerate(zip(positions, columns, strict=True)):
                assert isinstance(column, CsvColumns)
                words.update(column.words(at, equal[equal // self.rows == i] % self.rows))
            return len(np.unique(values[equal])) < len(words)
        cells = (self.distinct(at, "number").values for at in positions)
        return len(np.unique(values)) < len(set(itertools.chain.from_iterable(cells)))


def absent(name: str, names: Sequence[str], option: object) -> tuple[object, ...]:
    """What to say about a column that is not there, for an error in parts."""
    listed = ", ".join(shown(column) for column in names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        listed += f" and {len(names) - _MOST_NAMES} more"
    alike = [column for column in names if column.strip().lower() == name.strip().lower()]
    alike = alike or get_close_matches(name, names, n=1)
    hint = f"did you mean {shown(alike[0])}? " if alike else ""
    there = f"there is no column {shown(name)} (for "
    return there, option, f"): {hint}The columns are {listed}."


@contextmanager
def open_table(
    source: Any,
    format: TableFormat | None = None,
    separator: str | None = None,
    cut: Callable[[Any], slice] | None = None,
) -> Iterator[Table]:
    """Open a path or a frame, or go on with an open table; inside, only errors about it are raised.

    So whoever looks at the columns before it is known which reader is meant opens a file once.
    `cut` says which rows of a file of Parquet are wanted.
    """
    if isinstance(source, Table):
        yield source
        return
    if not isinstance(source, str | PathLike):
        yield frame_table(source)
        return
    path = Path(source)
    suffix, separator = table_kind(path, format, separator)
    if suffix == PARQUET:
        with open_parquet(path) as file:
            rows = slice(0, file.metadata.num_rows) if cut is None else cut(file)
            yield Table(
                file.schema_arrow.names,
                lambda positions, _: parquet_columns(path, file, positions, rows),
                lambda row, _, *what: TableError(
                    path, None, *what, row=None if row is None else rows.start + row + 1
                ),
                is_part=cut is not None,
            )
        return
    text = read_text(path, separator)
    yield Table(
        text.header,
        lambda positions, numbers: CsvColumns.of(text, positions, numbers),
        text.error,
    )


def frame_table(frame: Any) -> Table:
    """A frame of pandas or polars, or a pyarrow table; its rows are counted from 0."""
    columns = frame_columns(frame)

    def error(row: int | None, _: int | None, *what: object) -> ArgumentError:
        return ArgumentError(*([] if row is None else [f"row {row} of the frame: "]), *what)

    return Table(columns.names, lambda *_: columns, error)


def table_kind(path: Path, format: TableFormat | None, separator: str | None) -> tuple[str, str]:
    """Give the suffix that stands for the format, and what separates cells (of CSV)."""
    if separator is not None and (len(separator) != 1 or separator in '"\r\n\0'):
        raise ArgumentError(
            Argument("separator"),
            f" is one character, no quote or line break, not {separator!r}.",
        )
    if format is not None:
        check_one_of("format", format, get_args(TableFormat))
    if path.is_dir():
        raise TableError(path, None, "is a folder: give one of its files.")
    need_pyarrow(path)
    suffix = table_suffix(path) if format is None else f".{format}"
    return suffix, separator or SEPARATORS.get(suffix, ",")


def table_suffix(path: Path) -> str:
    """Tell the format by the name: .csv, .tsv or .parquet."""
    suffix = without_compression(path).suffix.lower()
    if suffix in SEPARATORS:
        return suffix
    if path.suffix.lower() == PARQUET:
        return PARQUET
    what = "has no suffix of a table: give it one of .csv, .tsv (also .gz, .xz, .bz2), .parquet."
    if suffix == PARQUET:
        what = "is compressed outside, but Parquet compresses inside: unpack it first."
    raise TableError(path, None, what)


def need_pyarrow(path: Path) -> None:
    """Say how to get pyarrow, where it is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        what = 'tables need pyarrow, which is not installed: pip install "tierrank[tables]".'
        raise TableError(path, None, what) from error
