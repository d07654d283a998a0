"""Files of text, plain or compressed, whole in memory; written beside and renamed.

A few bytes can stand for any number of them, so what a compressed file expands to has a limit:
half a GiB is always allowed, and beyond that `MAX_EXPANSION` times the size of the file. LETOR's
text takes 5 to 20 times less room when compressed, 110 to 290 times where only 1 feature in 500 is
not 0 (measured with gzip and xz); a file made to fill the memory 1,000 times (gzip), and up.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from numbers import Real
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar, cast

from tierrank.errors import ArgumentError, InPython
from tierrank.storage import writing_beside

P = ParamSpec("P")
R = TypeVar("R")

SUFFIXES = (".gz", ".xz", ".bz2")

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


class DataFileError(ArgumentError):
    """A file that cannot be read: says which, where in it, what is wrong and what to do.

    Attributes
    ----------
    path
        the file
    line
        the line, counted from 1, or None if it concerns the file as a whole, or no text
    row
        the row, counted from 1, of a file that has no lines (Parquet); else None
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

    def __reduce__(self) -> tuple[Any, ...]:  # another process may have raised it
        remade = partial(type(self), column=self._column, row=self.row)
        return remade, (self.path, self.line, *self.args[1:])


def without_compression(path: Path) -> Path:
    """The name without .gz, .xz or .bz2: `a.csv` of `a.csv.gz`."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def expands(reader: Callable[P, R]) -> Callable[P, R]:
    """Give effect to a reader's argument `max_expansion`, in all files that it reads."""

    @wraps(reader)
    def read(*arguments: P.args, **options: P.kwargs) -> R:
        times: Any = options.get("max_expansion")
        if times is None:
            return reader(*arguments, **options)
        if not (isinstance(times, Real) and float(times) > 0):  # NaN neither
            raise ValueError(f"max_expansion is a number of times, above 0, not {times!r}.")
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
    suffix = path.suffix.lower()
    if suffix in _OPEN:
        with path.open("rb") as packed:
            return _expanded(packed, path, suffix, error_class)
    raw = path.read_bytes()
    if kind := _compression(raw):
        raise error_class(path, 1, f"is compressed: give its name the suffix {kind}.")
    return raw


def _expanded(
    packed: IO[bytes], path: Path, suffix: str, error_class: type[DataFileError]
) -> bytes:
    blocks: list[bytes] = []
    size = 0
    try:
        with _OPEN[suffix](packed) as file:
            while block := file.read(_BLOCK):
                blocks.append(block)
                size += len(block)
                check_expansion(path, size, error_class)
    except DataFileError:
        raise
    except _DAMAGED as error:
        raise error_class(
            path,
            None,
            f"cannot be decompressed as {suffix} ({str(error).rstrip('.')}): it is cut short, "
            "damaged, or has the wrong suffix. Fetch it again, or rename it.",
        ) from error
    return b"".join(blocks)


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
