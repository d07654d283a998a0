"""Sparse matrices in .npz files, as `scipy.sparse.save_npz` writes them; nothing is unpickled."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from tierrank._types import AnyArray
from tierrank.data.files import DataFileError, check_expansion
from tierrank.data.text import SparseRows

NAMES = ("format", "shape", "data", "indices", "indptr")
MOST_COLUMNS = 2**31 - 1


class XCError(DataFileError):
    """An XC file that cannot be read: says which, where in it, what is wrong and what to do."""


def is_npz(path: Path) -> bool:
    """Whether the name is that of a sparse matrix in numpy's format."""
    return path.suffix.lower() == ".npz"


def read_npz(path: Path, n_columns: int | None, kind: str) -> Any:
    """Read a matrix whose columns are "features" or "labels", as a `csr_matrix` of float32."""
    arrays = _Archive(path)
    layout = arrays.text("format")
    if layout != "csr":
        what = f"is a matrix of format {layout!r}: save it with save_npz(path, matrix.tocsr())."
        raise XCError(path, None, what)
    rows, columns = arrays.shape()
    if columns > MOST_COLUMNS:
        what = f"has {columns:,} {kind}: more than {MOST_COLUMNS:,} cannot be read."
        raise XCError(path, None, what)
    data, indices, ends = (arrays.flat(name) for name in ("data", "indices", "indptr"))
    _check(path, data, indices, ends, rows, columns)
    used = int(ends[-1])  # scipy allows for more room than there are entries
    entries = SparseRows(ends, indices[:used], _float32(path, data[:used]))
    if repeated := entries.sort():
        row, column = repeated
        what = f"{kind[:-1]} {column}, counted from 0, stands twice in this row: {_AGAIN}"
        raise XCError(path, None, what, row=row + 1)
    if kind == "labels" and used and entries.values.min() < 0:
        row = entries.row_of(int((entries.values < 0).argmax()))
        what = "there is a negative relevance: they are more than 0, or left out."
        raise XCError(path, None, what, row=row + 1)
    if n_columns is not None and n_columns < columns:
        what = f"has {columns:,} {kind}, but n_{kind} is {n_columns:,}: pass as many or more."
        raise XCError(path, None, what)
    return entries.matrix(columns if n_columns is None else n_columns)


class _Archive:
    """The arrays of an .npz file, by name, each checked before memory is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            try:
                with ZipFile(file) as archive:
                    there = {name.removesuffix(".npy"): name for name in archive.namelist()}
                    if missing := [name for name in NAMES if name not in there]:
                        raise ValueError(f"it has no {', '.join(missing)}")
                    sizes = [archive.getinfo(there[name]).file_size for name in NAMES]
                    check_expansion(path, sum(sizes), XCError)
                    self._arrays = {name: _array(archive.read(there[name])) for name in NAMES}
            except XCError:
                raise
            except Exception as error:
                # Of any kind: zipfile, zlib, tokenize and numpy's header each have their own.
                what = f"is no sparse matrix that can be read ({_reason(error)})"
                raise self._error(what) from error

    def flat(self, name: str) -> AnyArray:
        """A one-dimensional array."""
        array = self._arrays[name]
        if array.ndim != 1:
            raise self._error(f"its {name} has shape {array.shape} and should be flat")
        return array

    def text(self, name: str) -> str:
        """A word, stored as bytes or as a string."""
        array = self._arrays[name]
        word = array.item() if array.size == 1 and array.dtype.kind in "SU" else None
        if isinstance(word, bytes):
            word = word.decode(errors="backslashreplace")
        if not isinstance(word, str):
            raise self._error(f"its {name} is not a word")
        return word

    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        shape = self._arrays["shape"]
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or min(shape.tolist()) < 0:
            raise self._error(f"its shape is {shape.tolist()} and should be [rows, columns]")
        rows, columns = shape.tolist()
        return rows, columns

    def _error(self, what: str) -> XCError:
        return XCError(self._path, None, f"{what}: {_AGAIN}")


_AGAIN = "write it anew, with scipy.sparse.save_npz."


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": .")[:200]


def _array(content: bytes) -> AnyArray:
    """An array from the bytes of an .npy file; its size must be that of the bytes."""
    file = BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_columns, kind = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"the version {version} of its arrays is not known")
    if kind.hasobject or kind.kind not in "biufSU":
        raise ValueError(f"it has an array of {kind}, not of numbers")
    held = len(content) - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != held:
        raise ValueError(f"an array should be {shape} of {kind}, but has {held:,} bytes")
    if not held:
        return np.empty(shape, dtype=kind)
    array = np.frombuffer(content, dtype=kind, offset=file.tell()).copy()
    return array.reshape(shape, order="F" if by_columns else "C")


def _check(
    path: Path, data: AnyArray, indices: AnyArray, ends: AnyArray, rows: int, columns: int
) -> None:
    """Compare the three arrays of a compressed matrix with each other and with its shape."""
    wrong = None
    if indices.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        wrong = f"its indices are {indices.dtype} and {ends.dtype}, not integers"
    elif data.dtype.kind not in "biuf" or data.dtype.itemsize > 8:
        wrong = f"its values are {data.dtype}, not numbers"
    elif len(data) != len(indices):
        wrong = f"it has {len(data):,} values for {len(indices):,} indices"
    elif len(ends) != rows + 1:
        wrong = f"its indptr has {len(ends):,} numbers for {rows:,} rows"
    elif ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > len(data):
        wrong = "its indptr does not ascend from 0 to the number of values"
    elif len(indices) and int(indices.min()) < 0:
        wrong = f"it has the index {indices.min()}, which is negative"
    elif len(indices) and int(indices.max()) >= columns:
        wrong = f"it has the index {indices.max()}, but {columns:,} columns"
    if wrong is not None:
        raise XCError(path, None, f"is no valid sparse matrix: {wrong}. {_AGAIN.capitalize()}")


def _float32(path: Path, values: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    if len(narrow) and not (np.isfinite(narrow.min()) and np.isfinite(narrow.max())):
        value = values[int((~np.isfinite(narrow)).argmax())]
        what = f"has the value {value}: give finite numbers that a float32 can hold."
        raise XCError(path, None, what)
    return narrow
