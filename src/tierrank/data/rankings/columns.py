"""The columns of a table of rankings or games, wherever it is: CSV, Parquet or a frame."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tierrank._types import AnyArray, IntArray
from tierrank.data.tables.arrow import ArrowColumns, codes_and_distinct, fill
from tierrank.data.tables.assembly import BadColumn, Columns, Distinct, FloatArray, spread
from tierrank.data.tables.choice import absent, refuse_same_names
from tierrank.data.tables.csv_numbers import MISSING, BadCell, exact_number, numbers, places
from tierrank.data.tables.csv_reader import as_floats, header_error, words_only
from tierrank.data.tables.csv_text import CsvText, read_text
from tierrank.data.tables.errors import TableError
from tierrank.data.tables.frames import frame_columns, frame_error
from tierrank.data.tables.keys import BadKey, keys_of, keys_of_words
from tierrank.data.tables.parquet_reader import open_parquet, read_columns
from tierrank.data.tables.reader import PARQUET, TableFormat, table_kind
from tierrank.data.text import shown
from tierrank.tiers.labels import group_rows

SURE_DIGITS = 15  # that a float64 keeps of any decimal

Place = tuple[int | None, int | None]  # a row and a column, counted from 0, if it is one


@dataclass(frozen=True)
class Keys:
    """What the rows of a column are called.

    Attributes
    ----------
    codes
        [rows] number of each row's key
    keys
        the keys, in order of first appearance
    """

    codes: IntArray
    keys: AnyArray

    def renumbered(self) -> Keys:
        """The same, with the keys that occur in order of first appearance."""
        codes, used = group_rows(self.codes, len(self.codes))
        return Keys(codes, self.keys[used])

    def first_rows(self) -> IntArray:
        """[keys] the first row of each."""
        rows = np.empty(len(self.keys), dtype=np.int64)
        rows[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)  # the last written stays
        return rows

    def of(self, rows: IntArray) -> Keys:
        """Those of some rows."""
        return Keys(self.codes[rows], self.keys).renumbered()


@dataclass
class OpenTable:
    """The names of a table's columns, and the columns that are asked for.

    Attributes
    ----------
    names
        of all columns
    """

    names: Sequence[str]
    _fetch: Callable[[Sequence[int]], Columns]
    _error: Callable[[Place, str], ValueError]

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(name in self.names for name in names)

    def find(self, name: str, option: str) -> int:
        """Give the position of a column; `option` is what asked for it."""
        if name not in self.names:
            raise self._error((None, None), absent(name, self.names, option))
        return self.names.index(name)

    def refuse_twice(self, positions: Sequence[int]) -> None:
        """Refuse a column that is named for two things."""
        position, times = Counter(positions).most_common(1)[0]
        if times > 1:
            name = shown(self.names[position])
            self.refuse(f"{name} is named for two things: each is a column of its own.")

    def error(self, what: str) -> ValueError:
        """What is wrong with the table's columns, under its name."""
        return self._error((None, None), what)

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong with the table's columns."""
        raise self.error(what)

    def fetch(self, *positions: int) -> Fetched:
        """Read some columns, all at once."""
        columns = self._fetch(positions)
        if not columns.rows:
            self.refuse("there are columns but no row: give at least one.")
        return Fetched(columns, self._error)


@dataclass
class Fetched:
    """Columns of a table that were read; what is wrong with a cell is said with its line."""

    _columns: Columns
    _error: Callable[[Place, str], ValueError]
    _floats: dict[int, FloatArray | BadColumn] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._columns.rows

    def keys(self, position: int, what: str, missing: Container[str] = MISSING) -> Keys:
        """Int64 keys if all are whole numbers, else strings; none is missing, nor such a word."""
        codes, values = self.distinct(position, what)
        keys = self.keys_of(values, what, missing)
        if isinstance(keys, BadKey):
            self.refuse(int((codes == keys.code).argmax()), position, keys.why)
        return Keys(codes, keys).renumbered()

    def keys_of(
        self, values: Sequence[Any], what: str, missing: Container[str] = MISSING
    ) -> AnyArray | BadKey:
        """The same of distinct values, of one column or several."""
        written = isinstance(self._columns, CsvColumns)
        return keys_of_words(values, what, missing) if written else keys_of(values, what)

    def floats(self, position: int, what: str) -> FloatArray:
        """[rows] numbers, NaN for what is missing."""
        found = self.floats_or_fault(position)
        if isinstance(found, BadColumn):
            name = shown(self._columns.names[position])
            self.refuse(found.row, position, f"the {what} column {name} {found.why}")
        return found

    def in_order(self, positions: Sequence[int], what: str) -> list[FloatArray]:
        """[rows] numbers that stand to each other, also between columns, as those of the table.

        NaN for what is missing. They are the table's own, or, where float64 would make two
        different ones equal (integers beyond 2^53, long decimals), their places in order.
        """
        if not self.rounds(*positions):
            return [self.floats(position, what) for position in positions]
        found = [self.distinct(position, what) for position in positions]
        exact = [exact_number(cell) for _, cells in found for cell in cells]
        if None in exact:
            return [self.floats(position, what) for position in positions]  # which says where
        borders = np.cumsum([len(cells) for _, cells in found])[:-1]
        by_column = zip(found, np.split(places(exact), borders), strict=True)
        return [values[codes] for (codes, _), values in by_column]

    def rounds(self, *positions: int) -> bool:
        """Whether float64 would make two different numbers of these columns equal."""
        found = [self.floats_or_fault(position) for position in positions]
        faults = [each for each in found if isinstance(each, BadColumn)]
        if faults:
            return all(fault.large for fault in faults)
        if not any(map(self._columns.decimal, positions)):
            return False
        values = np.concatenate([np.asarray(each) for each in found])
        in_order = np.sort(values)
        if not (in_order[1:] == in_order[:-1]).any():
            return False
        order = np.argsort(values)
        again = np.flatnonzero(values[order[1:]] == values[order[:-1]])
        if isinstance(self._columns, CsvColumns):
            equal = np.union1d(order[again], order[again + 1])  # to these alone the words matter
            return len(np.unique(values[equal])) < self._columns.different(positions, equal)
        cells = (self.distinct(position, "number").values for position in positions)
        return len(np.unique(values)) < len(set(itertools.chain.from_iterable(cells)))

    def weights(self, position: int) -> FloatArray:
        """[rows] positive and finite numbers."""
        values = self.floats(position, "weight")
        self.check(
            ~(np.isfinite(values) & (values > 0)),
            position,
            "the weight is missing, or not positive and finite: it says how often something was "
            "seen. Leave out what was not.",
        )
        return values

    def floats_or_fault(self, position: int) -> FloatArray | BadColumn:
        """The same, or why it cannot be."""
        if position not in self._floats:
            self._floats[position] = self._columns.floats(position)
        return self._floats[position]

    def distinct(self, position: int, what: str) -> Distinct:
        """The distinct values of a column, whatever they are, None for what is missing."""
        found = self._columns.distinct(position, what)
        if isinstance(found, BadColumn):
            self.refuse(found.row, position, found.why)
        return found

    def refuse(self, row: int | None, position: int, what: str) -> NoReturn:
        """Say what is wrong with a cell, or with a column."""
        raise self._error((row, position), what)

    def check(self, wrong: npt.NDArray[np.bool_], position: int, what: str) -> None:
        """Refuse the first row that is wrong."""
        if wrong.any():
            self.refuse(int(wrong.argmax()), position, what)


@contextmanager
def open_table(
    source: Any, format: TableFormat | None, separator: str | None
) -> Iterator[OpenTable]:
    """Open a path or a frame, or go on with an open table; inside, only errors about it are raised.

    So whoever looks at the columns before it is known which reader is meant opens a file once.
    """
    if isinstance(source, OpenTable):
        yield source
        return
    if not isinstance(source, str | PathLike):
        frame = frame_columns(source)
        yield _checked(
            OpenTable(frame.names, lambda _: frame, lambda place, what: frame_error(place[0], what))
        )
        return
    path = Path(source)
    suffix, separator = table_kind(path, format, separator)
    if suffix == PARQUET:
        with open_parquet(path) as file:
            names = file.schema_arrow.names
            yield _checked(OpenTable(
                names,
                lambda positions: ArrowColumns(
                    read_columns(path, file, [names[i] for i in dict.fromkeys(positions)]), names
                ),
                lambda place, what: TableError(
                    path, None, what, row=None if place[0] is None else place[0] + 1
                ),
            ))  # fmt: skip
        return
    text = read_text(path, separator)
    yield _checked(
        OpenTable(
            text.header,
            lambda positions: CsvColumns(text, positions),
            lambda place, what: _csv_error(text, place, what),
        )
    )


def _checked(table: OpenTable) -> OpenTable:
    def refuse(what: str) -> NoReturn:
        table.refuse(what)

    refuse_same_names(table.names, refuse)
    return table


def _csv_error(text: CsvText, place: Place, what: str) -> TableError:
    row, column = place
    if row is None:
        return header_error(text, what)
    return text.cell_error(row, column or 0, what)


class CsvColumns:
    """Some columns of a CSV file, kept as words until it is known what they are."""

    def __init__(self, text: CsvText, positions: Sequence[int]) -> None:
        self.names: Sequence[str] = text.header
        self._place = {position: i for i, position in enumerate(dict.fromkeys(positions))}
        self._words = words_only(text, list(self._place))
        self.rows = self._words.num_rows

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""
        words = self._column(position)
        values = np.empty(self.rows)
        if (found := as_floats(words)) is not None:
            fill(found, values)
            if not np.isinf(values).any():  # written so, or too large for a float64?
                return values
        cells = numbers(words.to_pylist())
        return BadColumn(cells.why, cells.row) if isinstance(cells, BadCell) else cells

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct words of a column; none is missing, but one may be empty."""
        return codes_and_distinct(self._column(position))

    def keys(self, position: int, what: str = "query") -> Any:
        """[rows] keys."""
        codes, words = codes_and_distinct(self._column(position))
        return spread(keys_of_words(words, what), codes)

    def decimal(self, position: int) -> bool:
        """Whether some number has more digits than float64 is sure to keep."""
        from pyarrow import compute

        longest = compute.max(compute.utf8_length(self._column(position))).as_py()
        return longest is not None and longest > SURE_DIGITS

    def different(self, positions: Sequence[int], cells: IntArray) -> int:
        """How many different words there are in some cells of columns, one after the other."""
        import pyarrow as pa

        chunks = [chunk for position in positions for chunk in self._column(position).chunks]
        return len(set(pa.chunked_array(chunks).take(pa.array(cells)).to_pylist()))

    def _column(self, position: int) -> Any:
        return self._words.column(self._place[position])
