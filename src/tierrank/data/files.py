"""Files, plain or compressed, whole in memory, and what the readers of text share.

A few bytes can stand for any number of them, so what a compressed file expands to has a limit:
half a GiB is always allowed, and beyond that `MAX_EXPANSION` times the size of the file. LETOR's
text takes 5 to 20 times less room when compressed, 110 to 290 times where only 1 feature in 500 is
not 0 (measured with gzip and xz); a file made to fill the memory 1,000 times (gzip), and up.

LETOR and XC have sparse rows of ``index:value`` in common. Their readers take a file's bytes
(`Text`), let the compiled pass of the format fill flat arrays, and word what that stumbled over
(`Token`). `SparseRows` are the rows that come out. What is written appears whole, by a rename.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from numbers import Real
from pathlib import Path
from typing import IO, Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tierrank._types import AnyArray, IntArray
from tierrank.errors import Argument, ArgumentError, InPython
from tierrank.storage import writing_beside

P = ParamSpec("P")
R = TypeVar("R")

SUFFIXES = (".gz", ".xz", ".bz2")
SEPARATORS = {".csv": ",", ".tsv": "\t"}  # between two cells of a table
PARQUET = ".parquet"

ALWAYS_ALLOWED = 1 << 29  # bytes that any compressed file may expand to
MAX_EXPANSION = 200.0  # times its size, beyond that

_OPEN: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": cast(Callable[[IO[bytes]], IO[bytes]], gzip.open),
    ".xz": cast(Callable[[IO[bytes]], IO[bytes]], lzma.open),
    ".bz2": cast(Callable[[IO[bytes]], IO[bytes]], bz2.open),
}
_DAMAGED = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
_BLOCK = 1 << 24  # bytes that are expanded at once
_START = 4096  # bytes that tell what a file is
_max_expansion = ContextVar("max_expansion", default=MAX_EXPANSION)
_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2"}
_PACKED = {b"\x28\xb5\x2f\xfd": "by zstd", b"PK\x03\x04": "in a zip archive"}  # not read


class DataFileError(ArgumentError):
    r"""A file that cannot be read: says which, where in it, what is wrong and what to do.

    Parameters
    ----------
    path : Path
        The file.
    line : int or None
        The line, counted from 1, or None if it concerns the file as a whole, or no text.
    *what
        The message in parts.
    column : int, optional
        Where in the line, counted from 1.
    row : int, optional
        The row, counted from 1, of a file that has no lines (Parquet).

    See Also
    --------
    read : Raises it.
    LetorError : Of LETOR files.
    TableError : Of tables.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import DataFileError, read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5\nhigh qid:7 1:0.1\n")
    ...     try:
    ...         read(file)
    ...     except DataFileError as error:
    ...         error.line
    2
    """

    def __init__(
        self,
        path: Path,
        line: int | None,
        *what: object,
        column: int | None = None,
        row: int | None = None,
    ) -> None:
        place = "" if line is None else f", line {line}"
        if row is not None:
            place += f", row {row}"
        if column is not None:
            place += f", column {column}"
        super().__init__(f"{path}{place}: ", *what)
        self.path = path
        self.line = line
        self.row = row
        self._column = column

    def further_down(self, lines: int) -> DataFileError:
        """The same, so many lines further down."""
        line = None if self.line is None else self.line + lines
        return type(self)(self.path, line, *self.args[1:], column=self._column, row=self.row)

    def __reduce__(self) -> tuple[Any, ...]:  # another process may have raised it
        remade = partial(type(self), column=self._column, row=self.row)
        return remade, (self.path, self.line, *self.args[1:])


def without_compression(path: Path) -> Path:
    """The name without .gz, .xz or .bz2: `a.csv` of `a.csv.gz`."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def is_table(path: Path) -> bool:
    """Whether the name is that of a table."""
    return without_compression(path).suffix.lower() in (*SEPARATORS, PARQUET)


def expands(reader: Callable[P, R]) -> Callable[P, R]:
    """Give effect to a reader's argument `max_expansion`, in all files that it reads."""

    @wraps(reader)
    def read(*arguments: P.args, **options: P.kwargs) -> R:
        times: Any = options.get("max_expansion")
        if times is None:
            return reader(*arguments, **options)
        if not (isinstance(times, Real) and float(times) > 0):  # NaN neither
            what = f" is a number of times, above 0, not {times!r}."
            raise ArgumentError(Argument("max_expansion"), what)
        token = _max_expansion.set(float(times))
        try:
            return reader(*arguments, **options)
        finally:
            _max_expansion.reset(token)

    return read


def check_expansion(
    path: Path, expanded: int, error_class: type[DataFileError] = DataFileError
) -> None:
    """Refuse a file that expands to too many bytes for its size."""
    most, size = _max_expansion.get(), path.stat().st_size
    if expanded > max(ALWAYS_ALLOWED, most * size):
        raise error_class(
            path,
            None,
            f"expands to more than {expanded >> 20:,} MiB, over {most:g} times the {size:,} bytes "
            "that it has, as files do that are made to fill the memory. If it is to be trusted, "
            "unpack it first",
            InPython(", or pass a larger max_expansion= to the reader"),
            ".",
        )


def beginning(content: bytes) -> tuple[bytes, str]:
    """How the text of a file begins, expanded, and the suffix that its compression has, or ""."""
    suffix = _compression(content)
    if not suffix:
        return content[:_START], ""
    with suppress(*_DAMAGED), _OPEN[suffix](io.BytesIO(content)) as file:
        return file.read(_START), suffix
    return b"", suffix


def _compression(content: bytes) -> str:
    return next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), "")


def read_bytes(path: Path, error_class: type[DataFileError] = DataFileError) -> bytes:
    """All of a file, decompressed if its name ends in .gz, .xz or .bz2."""
    size = _BLOCK if path.suffix.lower() in _OPEN else -1
    with _reading(path, error_class) as file:
        return b"".join(iter(lambda: file.read(size), b""))


class _Opened:
    """A file that is read from its start, decompressed by its suffix, or from a place in it."""

    def __init__(
        self, path: Path, raw: IO[bytes], file: IO[bytes], error_class: type[DataFileError]
    ) -> None:
        self._path, self._raw, self._file, self._error_class = path, raw, file, error_class
        self.at = 0  # in what it expands to

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        block = self._file.read(size)
        self.at += len(block)
        if self._file is not self._raw:
            check_expansion(self._path, self.at, self._error_class)
        return block

    def go_to(self, at: int) -> None:
        """Go on from this place; what is compressed is expanded up to there, and not kept."""
        self.at = self._file.seek(at)

    def share(self) -> float:
        """Which part of the file has been read."""
        return self._raw.tell() / max(self._path.stat().st_size, 1)


@contextmanager
def _reading(path: Path, error_class: type[DataFileError]) -> Iterator[_Opened]:
    suffix = path.suffix.lower()
    with path.open("rb") as raw:
        if suffix not in _OPEN:
            start = raw.peek(_START)
            if kind := _compression(start):
                raise error_class(path, 1, f"is compressed: give its name the suffix {kind}.")
            if how := next((how for magic, how in _PACKED.items() if start.startswith(magic)), ""):
                known = ", ".join(SUFFIXES)
                raise error_class(path, None, f"is packed {how}: unpack it, or pack it as {known}.")
            yield _Opened(path, raw, raw, error_class)
            return
        try:
            with _OPEN[suffix](raw) as file:
                yield _Opened(path, raw, file, error_class)
        except DataFileError:
            raise
        except _DAMAGED as error:
            raise error_class(
                path,
                None,
                f"cannot be decompressed as {suffix} ({str(error).rstrip('.')}): it is cut short, "
                "damaged, or has the wrong suffix. Fetch it again, or rename it.",
            ) from error


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed by its suffix, that appears whole or not at all."""
    with writing_beside(path) as raw, _compressing(raw, path.suffix.lower()) as file:
        yield file


@contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":  # without name and time, so that the same data make the same file
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as file:
            yield cast(IO[bytes], file)
    elif suffix == ".xz":
        with lzma.open(raw, "wb") as file:
            yield cast(IO[bytes], file)
    elif suffix == ".bz2":
        with bz2.open(raw, "wb") as file:
            yield cast(IO[bytes], file)
    else:
        yield raw


# Text, and sparse rows of index:value -------------------------------------------------------------


MARK = b"\xef\xbb\xbf"  # that some editors begin UTF-8 with
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # and that UTF-16 begins with
NO_UTF_16 = "the text is UTF-16: save it as UTF-8."

_LONGEST_SHOWN = 40
_LONGEST_TOKEN = 400


def shown(value: object) -> str:
    """A value as an error quotes it, cut if it is long."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


class Text:
    """A file's bytes, or some lines of them, without NUL and with a newline at the end.

    Attributes
    ----------
    path
        the file
    content
        what it holds, decompressed
    start
        where it begins, behind a byte order mark
    lines_before
        how many lines of the file come before these
    """

    def __init__(
        self,
        path: Path,
        error_class: type[DataFileError],
        content: bytes | None = None,
        lines_before: int = 0,
    ) -> None:
        """Read all of a file; or take some lines of it."""
        self.path, self.lines_before = path, lines_before
        self.content = read_bytes(path, error_class) if content is None else content
        self._error_class = error_class
        if not lines_before and self.content.startswith(UTF_16):
            raise self.file_error(1, NO_UTF_16)
        if (nul := self.content.find(b"\0")) >= 0:
            raise self.error(nul, "there is a NUL byte: this is not a text file.")
        if not self.content.endswith(b"\n"):
            self.content += b"\n"
        self.start = len(MARK) if not lines_before and self.content.startswith(MARK) else 0

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of the file, counted from 1."""
        line_start = self.content.rfind(b"\n", 0, at) + 1
        line = self.lines_before + self.content.count(b"\n", 0, line_start) + 1
        return line, at - line_start + 1

    def error(self, at: int, *what: object) -> DataFileError:
        """Name the line and column of a place."""
        line, column = self.place(at)
        return self._error_class(self.path, line, *what, column=column)

    def file_error(self, line: int | None, what: str) -> DataFileError:
        """Name a line as a whole, or none."""
        return self._error_class(self.path, line, what)

    def shown(self, start: int, end: int) -> str:
        """A piece of the text as an error quotes it, cut if it is long."""
        return shown(self.content[start:end])


class Piece(NamedTuple):
    """Some lines of a file, where the next ones begin, and which share of the file is read."""

    text: Text
    end: int
    share: float


def pieces(
    path: Path, error_class: type[DataFileError], size: int, start: int, lines_before: int
) -> Iterator[Piece]:
    """A text from a place on, some whole lines at a time; an empty one gives one empty piece.

    Parameters
    ----------
    size
        bytes of a piece, more or less
    start, lines_before
        where the last piece ended, and how many lines there were
    """
    with _reading(path, error_class) as file:
        file.go_to(start)
        begun: list[bytes] = []
        while True:
            block = file.read(size)
            end = block.rfind(b"\n") + 1
            if block and not end:
                begun.append(block)
                continue
            content = b"".join([*begun, block[:end]])
            begun = [block[end:]]
            if content or not start:
                text = Text(path, error_class, content, lines_before)
                start = file.at - len(begun[0])
                yield Piece(text, start, file.share())
                lines_before += text.content.count(b"\n")
            if not block:
                return


class Token:
    """What stands at a place up to the next blank: perhaps ``index:value``.

    Attributes
    ----------
    raw
        its bytes
    shown, name, value
        all of it, what is before the first colon and what is behind it, as an error quotes them
    """

    def __init__(self, text: Text, at: int, end: bytes = rb"\s") -> None:
        self.raw: bytes = re.split(end, text.content[at : at + _LONGEST_TOKEN], maxsplit=1)[0]
        index, _, value = self.raw.partition(b":")
        self._index: bytes = index
        self.shown, self.name, self.value = shown(self.raw), shown(index), shown(value)

    def bad_index(self, what: str) -> str:
        """Say why it does not begin with the index of a column, such as `what`."""
        if b":" not in self.raw:
            return f"{self.shown} is not index:value: write a {what.split()[-1]} as 3:0.5"
        if is_negative(self._index):
            return f"{what} {self.name} is negative"
        return f"{what} {self.name} is not a whole number: write it in digits alone"


def is_negative(word: bytes) -> bool:
    """Whether it is a whole number below 0."""
    return word[:1] == b"-" and word[1:].isdigit()


@dataclass
class SparseRows:
    """The entries of a matrix, row after row.

    Attributes
    ----------
    ends
        [rows + 1] where the entries of each row begin and end; the first is 0
    columns
        [entries] int32; ascending in each row, and none twice, once they are sorted
    values
        [entries]
    """

    ends: IntArray
    columns: npt.NDArray[np.int32]
    values: AnyArray

    def __len__(self) -> int:
        return len(self.ends) - 1

    def matrix(self, n_columns: int) -> Any:
        """The same as a scipy `csr_matrix`; the rows are sorted."""
        matrix = self._csr(n_columns)
        matrix.has_canonical_format = True
        return matrix

    def sort(self) -> tuple[int, int] | None:
        """Make the columns of every row ascend; row and column of one that stands twice, if any."""
        matrix = self._csr(int(self.columns.max(initial=0)) + 1)
        matrix.sort_indices()
        self.columns, self.values = matrix.indices.astype(np.int32, copy=False), matrix.data
        same = np.append(False, self.columns[1:] == self.columns[:-1])
        same[self.ends[:-1][np.diff(self.ends) > 0]] = False  # the first of a row
        if not same.any():
            return None
        entry = int(same.argmax())
        return self.row_of(entry), int(self.columns[entry])

    def some(self, rows: slice) -> SparseRows:
        """Some consecutive rows."""
        ends = self.ends[rows.start : rows.stop + 1]
        entries = slice(ends[0], ends[-1])
        return SparseRows(ends - ends[0], self.columns[entries], self.values[entries])

    def row_of(self, entry: int) -> int:
        """The row that an entry belongs to."""
        return int(np.searchsorted(self.ends, entry, side="right")) - 1

    def _csr(self, n_columns: int) -> Any:
        from scipy.sparse import csr_matrix  # takes a while, so only where it is used

        return csr_matrix((self.values, self.columns, self.ends), shape=(len(self), n_columns))


def check_size(name: str, size: Any, most: int) -> None:
    """Refuse what is no number of columns; None leaves it open."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise ArgumentError(Argument(name), f" is a whole number, not {size!r}.")
    if not 0 <= size <= most:
        raise ArgumentError(Argument(name), f" is from 0 to {most:,}, not {size}.")
