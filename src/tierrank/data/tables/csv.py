"""CSV files: pyarrow splits and converts, and what it cannot convert is looked at cell by cell.

pyarrow splits a text into rows and cells fast, but does not say where they were. So `CsvText`
splits by the same rules, slowly, and only when there is an error to place. The rules: a line
break is LF, CR or both; a line with nothing on it is no row; a cell that starts with a quote goes
on to the next quote that is not doubled, over line breaks; elsewhere a quote is a character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.data.files import MARK, NO_UTF_16, UTF_16, read_bytes
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
from tierrank.names import counted

_LARGEST_BLOCK = 2**31 - 1
_SURE_DIGITS = 15  # that a float64 keeps of any decimal


@dataclass(frozen=True)
class CsvText:
    """A text, its header, where its rows start, and how many lines of the file are before it."""

    path: Path
    text: bytes
    separator: bytes
    header: tuple[str, ...]
    start: int
    lines: int = 0

    def error(self, row: int | None, column: int | None, *what: object) -> TableError:
        """Name the line of a cell, counted from 0, or of the header."""
        if row is None:
            return self._error(self.start, *what, *self._header_hint())
        for number, (start, end) in enumerate(self._rows()):
            if number == row:
                return self._error(self._cells(start, end)[column or 0], *what)
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
                return self._error(
                    start,
                    f"this row has {counted(found, 'cell')}, but the header has "
                    f"{expected}: mend the row, or put quotes around a cell with the separator "
                    "in it.",
                )
        return None

    def _error(self, at: int, *what: object) -> TableError:
        return _error(self.path, self.text, at, *what, lines=self.lines)

    def _rows(self) -> Iterator[tuple[int, int]]:
        """Where rows start and end, without their line break."""
        return _rows(self.text, self.start, self.separator)

    def _cells(self, start: int, end: int) -> list[int]:
        """Where the cells of a row start."""
        return [found.start() for found in _cells(self.text, start, end, self.separator)]


def read_text(path: Path, separator: str) -> CsvText:
    """Read a file, and check what concerns the text as a whole."""
    return _checked(path, read_bytes(path, TableError), separator.encode())


def text_blocks(path: Path, separator: str, size: int) -> Iterator[CsvText]:
    """The same of a file that is not compressed, block by block: each ends where a row does."""
    first: CsvText | None = None
    left, lines = b"", 0
    with path.open("rb") as file:
        while block := file.read(size):
            text = left + block
            end = _end_of_rows(text, separator.encode()) if len(block) == size else len(text)
            text, left = text[:end], text[end:]
            if text:
                found = _checked(path, text, separator.encode(), first, lines)
                first = first or found
                lines += _breaks(text, len(text))
                yield found
    if left or first is None:
        yield _checked(path, left, separator.encode(), first, lines)


def _end_of_rows(text: bytes, separator: bytes) -> int:
    """Where the last row ends that is surely whole, with its line break."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1 or text[:-1].rfind(b"\r") + 1  # LF may come after this CR
    last = before = 0  # a line break inside of quotes is none
    for _, end in _rows(text, 0, separator):
        last, before = end, last
    breaks = re.compile(rb"[\r\n]*").match(text, before)
    return before if breaks is None else breaks.end()


def _checked(
    path: Path, text: bytes, delimiter: bytes, first: CsvText | None = None, lines: int = 0
) -> CsvText:
    """A text, or a further block of one that began with `first`."""

    def refuse(at: int, what: str) -> NoReturn:
        raise _error(path, text, at, what, lines=lines)

    if first is None and text.startswith(UTF_16):
        raise TableError(path, 1, NO_UTF_16)
    if (nul := text.find(b"\0")) >= 0:
        refuse(nul, "there is a NUL byte: this is not a text file.")
    _check_utf8(text, refuse)
    start = len(MARK) if first is None and text.startswith(MARK) else 0
    row = next(_rows(text, start, delimiter), None)
    if row is None and first is None:
        raise TableError(path, 1, "the file is empty: give one with a header and rows.")
    if b'"' in text:
        _check_quotes(text, start, delimiter, refuse)
    if first is not None:
        return replace(first, text=text, start=0, lines=lines)
    assert row is not None
    header = tuple(_content(found[0]) for found in _cells(text, *row, delimiter))
    return CsvText(path, text, delimiter, header, row[1])


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


def _check_quotes(
    text: bytes, start: int, separator: bytes, refuse: Callable[[int, str], NoReturn]
) -> None:
    """Refuse a quote that is never closed, which pyarrow would close at the end of the file."""
    stop = re.escape(separator) + rb"\r\n"
    closed = rb'"[^"]*+(?:""[^"]*+)*+"[^%b]*+' % stop
    whole = re.compile(rb'(?:%b|[^"%b][^%b]*+|[%b]++)*+' % (closed, stop, stop, stop))
    found = whole.match(text, start)
    if found is not None and found.end() < len(text):
        refuse(found.end(), "a quote is opened here and never closed: close it, or double a quote "
               "that belongs to the cell.")  # fmt: skip


def _check_utf8(text: bytes, refuse: Callable[[int, str], NoReturn]) -> None:
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        byte = text[error.start]
        refuse(error.start, f"the byte 0x{byte:02x} is not UTF-8: save the file as UTF-8.")


def _error(path: Path, text: bytes, at: int, *what: object, lines: int = 0) -> TableError:
    """Name the line of a place in the text, which has so many lines before it."""
    return TableError(path, lines + _breaks(text, at) + 1, *what)


def _breaks(text: bytes, end: int) -> int:
    return text.count(b"\n", 0, end) + text.count(b"\r", 0, end) - text.count(b"\r\n", 0, end)


class CsvColumns:
    """Some columns of a CSV file, kept as words until it is known what they are."""

    def __init__(self, names: Sequence[str], cells: Mapping[int, Any], rows: int) -> None:
        """Take columns of pyarrow by position: words, or numbers."""
        self.names, self._cells, self.rows = names, dict(cells), rows

    @classmethod
    def of(
        cls, text: CsvText, positions: Sequence[int], expect_numbers: Sequence[int] = ()
    ) -> CsvColumns:
        """Read columns; those that surely should be numbers are read as such, which is faster."""
        expected = set(expect_numbers)
        others: Sequence[int] = [at for at in positions if at not in expected]
        try:
            table = _arrow_table(text, expect_numbers, others)
        except ValueError:
            table, others, expect_numbers = words_only(text, positions), positions, ()
        cells = dict(zip((*expect_numbers, *others), table.columns, strict=True))
        # Infinity may be written, or be a number that is too large for a float64: see the words.
        infinite = [at for at in expect_numbers if _has_infinity(cells[at])]
        if infinite:
            words = words_only(text, infinite)
            cells.update(zip(infinite, words.columns, strict=True))
        return cls(text.header, cells, table.num_rows)

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

    def categorical(self, position: int) -> bool:
        """Text does not say."""
        return False

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
