"""Arrays that are mapped from files: of these, what is in use is in memory, and no more.

Whoever makes an array as large as a mapped one (some of its rows, the same in other units) makes
it by blocks, into a file that has no name any more and goes with the array: `scratch`.
"""

from __future__ import annotations

import math
import os
import shutil
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from tierrank import storage
from tierrank._types import AnyArray

_NUMBERS = 1 << 22  # that are copied at once: 32 MB of float64


def folder_of(X: Any) -> Path | None:
    """Where the file of a mapped array or CSR matrix is; None if it is in memory."""
    array = X.data if hasattr(X, "indptr") else X
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return Path(array.filename).parent
        array = array.base
    return None


def map_file(path: Path, kind: Any, shape: tuple[int, ...], offset: int) -> AnyArray:
    """An array of a file, to be read only."""
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.memmap(path, dtype=kind, mode="r", offset=offset, shape=shape)


def blocks(rows: int, columns: int, begin: int = 0) -> Iterator[slice]:
    """Ranges of rows, from one on, of some million numbers each."""
    step = max(1, _NUMBERS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(begin, rows, step))


def empty_like(X: Any, shape: tuple[int, ...] | None = None, kind: Any = None) -> AnyArray:
    """An array to be filled, on the disk if X is there."""
    shape, kind = X.shape if shape is None else shape, np.dtype(X.dtype if kind is None else kind)
    folder = folder_of(X)
    if folder is None or not math.prod(shape):
        return np.empty(shape, kind)
    return scratch(folder, shape, kind)


def as_kind(X: Any, kind: Any) -> Any:
    """An array or a CSR matrix with numbers of another type, on the disk if X is there."""
    if X.dtype == kind:
        return X
    values = X.data if hasattr(X, "indptr") else X
    out = empty_like(values, kind=kind)
    for some in blocks(len(values), math.prod(values.shape[1:])):
        out[some] = values[some]
    return like(X, out) if hasattr(X, "indptr") else out


def like(X: Any, values: AnyArray) -> Any:
    """A CSR matrix with other values in the places of one; it shares what is mapped."""
    indices, ends = X.indices, X.indptr
    if folder_of(X) is None:
        indices, ends = indices.copy(), ends.copy()
    out = type(X)((values, indices, ends), shape=X.shape)
    out.has_canonical_format = X.has_canonical_format
    return out


def scratch(folder: Path, shape: tuple[int, ...], kind: np.dtype[Any]) -> AnyArray:
    """An array of zeros in a file of a folder; the file goes with the array.

    The room is taken at once, so that a full disk is an `OSError` that names the folder: found
    out in the middle, it would end the process.
    """
    size = math.prod(shape) * kind.itemsize
    where = writable(folder)
    with NamedTemporaryFile(dir=where, prefix=".scratch-") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            what = f"{error.strerror}, for {size:,} bytes that the memory is not to hold"
            raise OSError(error.errno, what, str(where)) from None
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def writable(folder: Path) -> Path:
    """The folder, or the one for temporary files where nothing can be written into it."""
    return folder if os.access(folder, os.W_OK) else Path(gettempdir())


def scratch_folder(folder: Path, prefix: str) -> TemporaryDirectory[str]:
    """A new folder there for files that need names, which goes with what this gives.

    It is locked as long. What killed processes left under this prefix is locked by nobody, and is
    removed.
    """
    folder = writable(folder)
    with storage.locked(folder):  # so that none is new, and not locked yet
        for old in folder.glob(f"{prefix}*"):
            if storage.is_abandoned(old):
                shutil.rmtree(old, ignore_errors=True)
        place = TemporaryDirectory(prefix=prefix, dir=folder)
        held = ExitStack()
        held.enter_context(storage.locked(Path(place.name)))
        weakref.finalize(place, held.close)
    return place


def stacked(X: Any, below: Any) -> Any:
    """The rows of one array or CSR matrix, then those of another, on the disk if X is there."""
    if hasattr(X, "indptr") or hasattr(below, "indptr"):
        from scipy.sparse import csr_matrix, vstack

        if folder_of(X) is None or not hasattr(below, "indptr"):
            return vstack([csr_matrix(X), csr_matrix(below)], format="csr")
        parts = [(each.data, each.indices) for each in (X, below)]
        data, indices = (_joined(*each) for each in zip(*parts, strict=True))
        ends = np.concatenate([X.indptr, X.indptr[-1] + below.indptr[1:].astype(np.int64)])
        return csr_matrix((data, indices, ends), shape=(X.shape[0] + below.shape[0], X.shape[1]))
    return np.concatenate([X, below]) if folder_of(X) is None else _joined(X, below)


def _joined(one: AnyArray, other: AnyArray) -> AnyArray:
    out = empty_like(one, (len(one) + len(other), *one.shape[1:]))
    for part, first in ((one, 0), (other, len(one))):
        for some in blocks(len(part), math.prod(part.shape[1:])):
            out[first + some.start : first + some.stop] = part[some]
    return out


def rows_of(X: Any, rows: AnyArray) -> Any:
    """X[rows] of an array or a CSR matrix, on the disk if X is there.

    Parameters
    ----------
    rows
        numbers of rows, or [rows of X] booleans
    """
    folder = folder_of(X)
    if folder is None:
        return X[rows]
    if rows.dtype.kind == "b":
        rows = np.flatnonzero(rows)
    if not hasattr(X, "indptr"):
        out = empty_like(X, (len(rows), X.shape[1]))
        for some in blocks(*out.shape):
            out[some] = X[rows[some]]
        return out
    from scipy.sparse import csr_matrix

    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.diff(X.indptr)[rows], out=ends[1:])
    data, indices = (empty_like(each, (int(ends[-1]),)) for each in (X.data, X.indices))
    for some in blocks(len(rows), -(-int(ends[-1]) // max(len(rows), 1))):
        part, entries = X[rows[some]], slice(ends[some.start], ends[some.stop])
        data[entries], indices[entries] = part.data, part.indices
    chosen = csr_matrix((data, indices, ends), shape=(len(rows), X.shape[1]))
    chosen.has_canonical_format = X.has_canonical_format
    return chosen
