"""CSV files: pyarrow splits and converts, and what it cannot convert is looked at cell by cell.

pyarrow splits a text into rows and cells fast, but does not say where they were. So `CsvText`
splits by the same rules, slowly, and only when there is an error to place. The rules: a line
break is LF, CR or both; a line with nothing on it is no row; a cell that starts with a quote goes
on to the next quote that is not doubled, over line breaks; elsewhere a quote is a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.data.files import MARK, read_bytes
from tierrank.data.tables.columns import (
    MISSING,
    BadColumn,
    Distinct,
    TableError,
    codes_and_distinct,
    fill,
    numbers,
)
from tierrank.errors import Argument

_NOT_UTF8 = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_LARGEST_BLOCK = 2**31 - 1
_SURE_DIGITS = 15  # that a float64 keeps of any decimal


@dataclass(frozen=True)
class CsvText:
    """A text, its header, and where its rows start."""

    path: Path
    text: bytes
    separator: bytes
    header: tuple[str, ...]
    start: int

    def error(self, row: int | None, column: int | None, *what: object) -> TableError:
        """Name the line of a cell, counted from 0, or of the header."""
        if row is None:
            return _error(self.path, self.text, self.start, *what, *self._header_hint())
        for number, (start, end) in enumerate(self._rows()):
            if number == row:
                return _error(self.path, self.text, self._cells(start, end)[column or 0], *what)
        return TableError(self.path, None, *what, row=row + 1)  # pyarrow split the text otherwise

    def _header_hint(self) -> tuple[object, ...]:
        """What the header may be instead of one."""
        others = [mark for mark in ";\t|," if mark != self.separator.decode()]
        if len(self.header) == 1 and any(mark in self.header[0] for mark in others):
            mark = next(mark for mark in others if mark in self.header[0])
            no = f" The header has no {self.separator.decode()!r}: pass "
            return no, Argument("separator", mark), "?"
        if not isinstance(numbers(self.header), BadColumn):
            return (" The first line holds numbers: it must be a header with the names.",)
        return ()

    def ragged(self) -> TableError | None:
        """The first row that has not as many cells as the header."""
        expected = len(self.header)
        for start, end in self._rows():
            if self.text.find(b'"', start, end) < 0:  # the usual case, and much faster
                found = self.text.count(self.separator, start, end) + 1
            else:
                found = len(self._cells(start, end))
            if found != expected:
                return _error(
                    self.path,
                    self.text,
                    start,
                    f"this row has {found} cell{'s' * (found != 1)}, but the header has "
                    f"{expected}: mend the row, or put quotes around a cell with the separator "
                    "in it.",
                )
        return None

    def _rows(self) -> Iterator[tuple[int, int]]:
        """Where rows start and end, without their line break."""
        return _rows(self.text, self.start, self.separator)

    def _cells(self, start: int, end: int) -> list[int]:
        """Where the cells of a row start."""
        return [found.start() for found in _cells(self.text, start, end, self.separator)]


def read_text(path: Path, separator: str) -> CsvText:
    """Read a file, and check what concerns the text as a whole."""
    text = read_bytes(path, TableError)
    for mark, encoding in _NOT_UTF8.items():
        if text.startswith(mark):
            raise TableError(path, 1, f"the text is {encoding}: save it as UTF-8.")
    if (nul := text.find(b"\0")) >= 0:
        raise _error(path, text, nul, "there is a NUL byte: this is not a text file.")
    _check_utf8(path, text)
    delimiter = separator.encode()
    start = len(MARK) if text.startswith(MARK) else 0
    first = next(_rows(text, start, delimiter), None)
    if first is None:
        raise TableError(path, 1, "the file is empty: give one with a header and rows.")
    if b'"' in text:
        _check_quotes(path, text, start, delimiter)
    header = tuple(_content(found[0]) for found in _cells(text, *first, delimiter))
    return CsvText(path, text, delimiter, header, first[1])


def _rows(text: bytes, start: int, separator: bytes) -> Iterator[tuple[int, int]]:
    cell = _cell(separator)
    row = re.compile(rb"(%b(?:%b%b)*+)(?:\r\n|\r|\n|\Z)" % (cell, re.escape(separator), cell))
    for found in row.finditer(text, start):
        if found.end(1) > found.start(1):
            yield found.span(1)


def _cells(text: bytes, start: int, end: int, separator: bytes) -> Iterator[re.Match[bytes]]:
    cell = re.compile(_cell(separator))
    while (match := cell.match(text, start, end)) is not None:
        yield match
        if match.end() >= end:
            break
        start = match.end() + len(separator)


def _cell(separator: bytes) -> bytes:
    plain = rb"[^%b\r\n]*+" % re.escape(separator)
    return rb'(?:"[^"]*+(?:""[^"]*+)*+"?+%b|%b)' % (plain, plain)


def _content(cell: bytes) -> str:
    """What a cell says, without its quotes."""
    quoted = re.match(rb'"([^"]*+(?:""[^"]*+)*+)"?+', cell)
    if quoted is None:
        return cell.decode()
    return (quoted[1].replace(b'""', b'"') + cell[quoted.end() :]).decode()


def _check_quotes(path: Path, text: bytes, start: int, separator: bytes) -> None:
    """Refuse a quote that is never closed, which pyarrow would close at the end of the file."""
    stop = re.escape(separator) + rb"\r\n"
    closed = rb'"[^"]*+(?:""[^"]*+)*+"[^%b]*+' % stop
    whole = re.compile(rb'(?:%b|[^"%b][^%b]*+|[%b]++)*+' % (closed, stop, stop, stop))
    found = whole.match(text, start)
    if found is not None and found.end() < len(text):
        raise _error(
            path, text, found.end(), "a quote is opened here and never closed: close it, or "
            "double a quote that belongs to the cell.",
        )  # fmt: skip


def _check_utf8(path: Path, text: bytes) -> None:
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        what = f"the byte 0x{text[error.start]:02x} is not UTF-8: save the file as UTF-8."
        raise _error(path, text, error.start, what) from None


def _error(path: Path, text: bytes, at: int, *what: object) -> TableError:
    """Name the line of a place in the text."""
    breaks = text.count(b"\n", 0, at) + text.count(b"\r", 0, at) - text.count(b"\r\n", 0, at)
    return TableError(path, breaks + 1, *what)


class CsvColumns:
    """Some columns of a CSV file, kept as words until it is known what they are."""

    def __init__(
        self, text: CsvText, positions: Sequence[int], expect_numbers: Sequence[int] = ()
    ) -> None:
        """Read columns; those that surely should be numbers are read as such, which is faster."""
        self.names: Sequence[str] = text.header
        expected = set(expect_numbers)
        others: Sequence[int] = [at for at in positions if at not in expected]
        try:
            table = _arrow_table(text, expect_numbers, others)
        except ValueError:
            table, others, expect_numbers = words_only(text, positions), positions, ()
        self.rows = table.num_rows
        self._cells = dict(zip((*expect_numbers, *others), table.columns, strict=True))
        # Infinity may be written, or be a number that is too large for a float64: see the words.
        infinite = [at for at in expect_numbers if _has_infinity(self._cells[at])]
        if infinite:
            words = words_only(text, infinite)
            self._cells.update(zip(infinite, words.columns, strict=True))

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""
        cells = self._cells[position]
        found = _as_floats(cells)
        if found is None or (found is not cells and _has_infinity(found)):
            return numbers(cells.to_pylist())
        values = np.empty(self.rows)
        fill(found, values)
        return values

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct words of a column; none is missing, but one may be empty."""
        return codes_and_distinct(self._cells[position])

    def decimal(self, position: int) -> bool:
        """Whether some number has more digits than float64 is sure to keep."""
        from pyarrow import compute

        longest = compute.max(compute.utf8_length(self._cells[position])).as_py()
        return longest is not None and longest > _SURE_DIGITS

    def words(self, position: int, rows: IntArray) -> list[str]:
        """What is written in some rows of a column."""
        import pyarrow as pa

        words: list[str] = self._cells[position].take(pa.array(rows)).to_pylist()
        return words


def _arrow_table(text: CsvText, numeric: Sequence[int], words: Sequence[int]) -> Any:
    """Some columns as floats, and after them others as strings."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(column) for column in range(len(text.header))]
    types = {str(column): pa.float64() for column in numeric}
    types |= {str(column): pa.string() for column in words}
    convert = csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=list(MISSING),
        strings_can_be_null=False,
        check_utf8=False,  # checked before
    )
    parse = csv.ParseOptions(
        delimiter=text.separator.decode(), newlines_in_values=b'"' in text.text
    )
    rows = memoryview(text.text)[text.start :]
    if not len(rows):  # which pyarrow refuses
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})

    def read(block: int | None) -> Any:
        read_options = csv.ReadOptions(column_names=names, block_size=block)
        source = pa.BufferReader(pa.py_buffer(rows))
        return csv.read_csv(source, read_options, parse, convert)

    try:
        return read(None)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        return read(min(len(rows) + 1, _LARGEST_BLOCK))  # a row longer than a block of 1 MB


def words_only(text: CsvText, columns: Sequence[int]) -> Any:
    """Some columns as strings, in this order."""
    try:
        return _arrow_table(text, numeric=(), words=columns)
    except ValueError as error:
        if (ragged := text.ragged()) is not None:
            raise ragged from None
        raise TableError(text.path, None, f"cannot be read as CSV: {error}") from error


def _as_floats(cells: Any) -> Any:
    """A column as float64: itself if it is, and None if some words are no numbers for pyarrow."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(cells.type):
        return cells
    absent = compute.is_in(cells, value_set=pa.array(MISSING))
    try:
        return compute.if_else(absent, pa.scalar(None, pa.string()), cells).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _has_infinity(floats: Any) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.is_inf(floats)).as_py())
