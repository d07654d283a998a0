"""The text of a CSV file: its header, and where in it a row, a cell or a line is.

pyarrow splits a text into rows and cells fast, but does not say where they were. So this module
splits by the same rules, slowly, and only when there is an error to place. The rules: a line
break is LF, CR or both; a line with nothing on it is no row; a cell that starts with a quote goes
on to the next quote that is not doubled, over line breaks; elsewhere a quote is a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tierrank.data.files import read_bytes
from tierrank.data.tables.errors import TableError

_MARK = b"\xef\xbb\xbf"  # with which Windows starts UTF-8
_NOT_UTF8 = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class CsvText:
    """A text, its header, and where its rows start."""

    path: Path
    text: bytes
    separator: bytes
    header: tuple[str, ...]
    start: int

    def error(self, at: int, what: str) -> TableError:
        """Name the line of a place in the text."""
        return _error(self.path, self.text, at, what)

    def cell_error(self, row: int, column: int, what: str) -> TableError:
        """Name the line of a cell, counted from 0."""
        for number, (start, end) in enumerate(self._rows()):
            if number == row:
                return self.error(self._cells(start, end)[column], what)
        return TableError(self.path, None, what, row=row + 1)  # pyarrow split the text otherwise

    def ragged(self) -> TableError | None:
        """The first row that has not as many cells as the header."""
        expected = len(self.header)
        for start, end in self._rows():
            if self.text.find(b'"', start, end) < 0:  # the usual case, and much faster
                found = self.text.count(self.separator, start, end) + 1
            else:
                found = len(self._cells(start, end))
            if found != expected:
                return self.error(
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
    start = len(_MARK) if text.startswith(_MARK) else 0
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


def _error(path: Path, text: bytes, at: int, what: str) -> TableError:
    breaks = text.count(b"\n", 0, at) + text.count(b"\r", 0, at) - text.count(b"\r\n", 0, at)
    return TableError(path, breaks + 1, what)
