"""Files of text, plain or compressed, whole in memory; written beside and renamed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from tierrank.storage import writing_beside

SUFFIXES = (".gz", ".xz", ".bz2")

_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}
_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2"}


class DataFileError(ValueError):
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
        what: str,
        *,
        column: int | None = None,
        row: int | None = None,
    ) -> None:
        place = "" if line is None else f", line {line}"
        if row is not None:
            place += f", row {row}"
        if column is not None:
            place += f", column {column}"
        super().__init__(f"{path}{place}: {what}")
        self.path = path
        self.line = line
        self.row = row


def without_compression(path: Path) -> Path:
    """The name without .gz, .xz or .bz2: `a.csv` of `a.csv.gz`."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def read_bytes(path: Path, error_class: type[DataFileError] = DataFileError) -> bytes:
    """All of a file, decompressed if its name ends in .gz, .xz or .bz2."""
    raw = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix in _DECOMPRESS:
        try:
            return _DECOMPRESS[suffix](raw)
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise error_class(
                path,
                None,
                f"cannot be decompressed as {suffix} ({str(error).rstrip('.')}): it is cut short, "
                "damaged, or has the wrong suffix. Fetch it again, or rename it.",
            ) from error
    for magic, kind in _MAGIC.items():
        if raw.startswith(magic):
            raise error_class(path, 1, f"is compressed: give its name the suffix {kind}.")
    return raw


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
