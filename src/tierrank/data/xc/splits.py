"""The XC repository's split files: which rows are for training, and which for testing."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tierrank.data.files import read_bytes
from tierrank.data.text.source import shown
from tierrank.data.xc.errors import XCError

_MOST_DIGITS = 18  # that surely fit 64 bits


def read_xc_split(path: str | PathLike[str], column: int = 0) -> npt.NDArray[np.int64]:
    """Read the rows of a split, such as ``bibtex_trSplit.txt``, for `MultiLabelData.select`.

    A line has one whole number for each split of the data: rows, counted from 1.

    Parameters
    ----------
    path
        the file; a name that ends in .gz, .xz or .bz2 says that it is compressed
    column
        which split, counted from 0

    Returns
    -------
    [rows of the split] counted from 0, in the order of the file

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trSplit.txt")
    ...     _ = file.write_text("1 4\\n3 2\\n")
    ...     read_xc_split(file), read_xc_split(file, column=1)
    (array([0, 2]), array([3, 1]))
    """
    path = Path(path)
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        raise ValueError(f"column is a whole number, not {column!r}.")
    if path.is_dir():
        raise XCError(path, None, "is a folder: give one of its files.")
    rows: list[int] = []
    lines: dict[int, int] = {}
    width = None
    content = read_bytes(path, XCError).removeprefix(b"\xef\xbb\xbf")
    for line, words in enumerate(map(bytes.split, BytesIO(content)), start=1):
        if not words:
            continue
        if width is None:
            width = len(words)
            if not 0 <= column < width:
                what = f"has {width} columns, so column is from 0 to {width - 1}, not {column}."
                raise XCError(path, line, what)
        if len(words) != width:
            what = f"has {len(words)} numbers, but others have {width}: is the line cut off?"
            raise XCError(path, line, what)
        for word in words:
            if not word.isdigit() or len(word) > _MOST_DIGITS or int(word) == 0:
                what = f"{shown(word)} is not the number of a row: they are whole, and start at 1."
                raise XCError(path, line, what)
        row = int(words[column])
        if row in lines:
            what = f"row {row} stands on line {lines[row]} too: leave one out."
            raise XCError(path, line, what)
        lines[row] = line
        rows.append(row - 1)
    if width is None:
        raise XCError(path, 1, "the file is empty: give one with the number of a row a line.")
    return np.array(rows, dtype=np.int64)
