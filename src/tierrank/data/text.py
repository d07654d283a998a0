"""Text files, and the sparse rows of ``index:value`` that LETOR and XC have in common.

A reader takes the file's bytes (`Text`), lets the compiled pass of its format fill flat arrays, and
words what that stumbled over (`Token`). `SparseRows` are the rows that come out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank._types import AnyArray, IntArray
from tierrank.data.files import DataFileError, read_bytes

MARK = b"\xef\xbb\xbf"  # that some editors begin UTF-8 with

_LONGEST_SHOWN = 40
_LONGEST_TOKEN = 400


def shown(value: object) -> str:
    """A value as an error quotes it, cut if it is long."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


class Text:
    """A file's bytes, without NUL and with a newline at the end.

    Attributes
    ----------
    path
        the file
    content
        what it holds, decompressed
    start
        where it begins, behind a byte order mark
    """

    def __init__(self, path: Path, error_class: type[DataFileError]) -> None:
        self.path = path
        self.content = read_bytes(path, error_class)
        self._error_class = error_class
        if (nul := self.content.find(b"\0")) >= 0:
            raise self.error(nul, "there is a NUL byte: this is not a text file.")
        if not self.content.endswith(b"\n"):
            self.content += b"\n"
        self.start = len(MARK) if self.content.startswith(MARK) else 0

    def error(self, at: int, what: str) -> DataFileError:
        """Name the line and column of a place."""
        line_start = self.content.rfind(b"\n", 0, at) + 1
        line = self.content.count(b"\n", 0, line_start) + 1
        return self._error_class(self.path, line, what, column=at - line_start + 1)

    def file_error(self, line: int | None, what: str) -> DataFileError:
        """Name a line as a whole, or none."""
        return self._error_class(self.path, line, what)

    def shown(self, start: int, end: int) -> str:
        """A piece of the text as an error quotes it, cut if it is long."""
        return shown(self.content[start:end])


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
        raise ValueError(f"{name} is a whole number, not {size!r}.")
    if not 0 <= size <= most:
        raise ValueError(f"{name} is from 0 to {most:,}, not {size}.")
