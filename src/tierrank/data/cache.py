"""A file that is larger than the memory: read in pieces, once, into arrays that are mapped.

Beside `train.txt` is then the folder `train.txt.cache`: the arrays as plain .npy files, and
`cache.json`, which says what they were made of. It is written last, by a rename: without it the
folder holds a conversion under way, and `progress.json` tells how to go on with it. A source of
another size, time or beginning is converted anew; an array that does not have the bytes that were
written is refused. Several processes may ask for the same file: one converts, the others wait.

Of arrays that are mapped, what is in use is in memory, and no more. Whoever makes one as large as a
mapped one (some of its rows, the same in other units) makes it by blocks, into a file that has no
name any more and goes with the array: `scratch`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, gettempdir
from typing import IO, Any, Self

import numpy as np

from tierrank import storage
from tierrank._types import AnyArray, IntArray
from tierrank.data.files import DataFileError, Text, pieces
from tierrank.errors import Argument, InPython
from tierrank.storage import Arrays

Where = bool | str | PathLike[str]
"""Whether to have a cache, beside the file; or the folder that it is to be kept in."""

FORMAT_VERSION = 1
PIECE = 1 << 23  # bytes of text that are read at once; with their arrays some 40 MB
KEPT = 8  # pieces after which the state is kept
HEAD = 1 << 16  # bytes that a source begins with, whose digest is kept
HEADER = 128  # bytes of a .npy file before its numbers
MANIFEST, PROGRESS = "cache.json", "progress.json"
_KEYS = {"format", "format_version", "byte_order", "made_of", "arrays", "content", "checksum"}
_AGAIN = "Remove the folder, and the file is converted anew."
_CHECKED = 1 << 23  # bytes that are looked at at once
_NUMBERS = 1 << 22  # that are copied at once: 32 MB of float64

Watch = Callable[[Path, float], None]
_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Have `watch(path, share that is done)` called while files are converted."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


class Cache:
    """The arrays of a source, on the disk.

    Parameters
    ----------
    sources
        the file, and others that it is read with
    kind, options
        what is read from it, and how: JSON-able
    where
        True for beside the file, or the folder that it is to be kept in
    kinds
        the types of the arrays that there may be, as {"y": "f8"}
    error_class
        of what is wrong

    Attributes
    ----------
    folder
        where the arrays are
    """

    def __init__(
        self,
        sources: Sequence[Path],
        kind: str,
        options: Mapping[str, Any],
        where: Where,
        kinds: Mapping[str, str],
        error_class: type[DataFileError],
    ) -> None:
        self.path, self.kinds, self.error_class = sources[0], kinds, error_class
        name = f"{self.path.name}.cache"
        self.folder = self.path.with_name(name) if where is True else Path(str(where)) / name
        self.made_of: dict[str, Any] = {
            "kind": kind,
            "options": dict(options),
            "sources": [_identity(source) for source in sources],
        }

    def error(self, *what: object) -> DataFileError:
        """What is wrong with the folder."""
        return self.error_class(self.folder, None, *what)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Have the folder for oneself; one that is finished may be where nothing can be written."""
        with ExitStack() as held:
            try:
                while True:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    lock = self.folder / ".lock"
                    held.enter_context(storage.locked(lock, os.O_CREAT | os.O_RDWR))
                    if storage.LOCKS is None or lock.exists():
                        break
                    held.close()  # who had it before found the source wrong, and removed all
            except OSError as error:
                if not (self.folder / MANIFEST).is_file():
                    raise self.error(
                        f"nothing can be written there ({error.strerror}): keep the cache in "
                        "another folder, by ", Argument("cache"), InPython("=folder"), ".",
                    ) from None  # fmt: skip
            yield

    def read(self) -> tuple[dict[str, Any], Arrays] | None:
        """What the conversion said, and the arrays; None if there are none, or of other data."""
        try:
            raw = (self.folder / MANIFEST).read_bytes()
        except FileNotFoundError:
            return None
        manifest = _unsealed(raw)
        if manifest is None or manifest.keys() != _KEYS:
            raise self.error(f"{MANIFEST} does not have the content that was written. {_AGAIN}")
        version, order = manifest["format_version"], manifest["byte_order"]
        if version != FORMAT_VERSION or order != sys.byteorder:
            what = f"is of format {version!r} and {order!r} byte order, not {FORMAT_VERSION} and "
            raise self.error(f"{what}{sys.byteorder!r}. {_AGAIN}")
        if manifest["made_of"] != self.made_of:
            self.say_again("it was made of another file, or with other options")
            return None
        arrays = {name: self._array(name, of) for name, of in manifest["arrays"].items()}
        return manifest["content"], arrays

    def made_by(self, convert: Callable[[Builder], None]) -> tuple[dict[str, Any], Arrays]:
        """The same, of the source as it is now: if there are none, a conversion makes them."""
        with self.locked():
            done = self.read()
            if done is None:
                with Builder(self) as builder:
                    convert(builder)
                done = self.read()
        assert done is not None
        return done

    def say_again(self, why: str) -> None:
        """Say that the file is converted once more."""
        warnings.warn(f"{self.folder}: {why}, so the file is converted anew.", stacklevel=2)

    def _array(self, name: str, of: Any) -> AnyArray:
        """Map an array, once it is what the manifest says."""
        path = self.folder / f"{name}.npy"
        try:
            kind, shape = np.dtype(self.kinds[name]), tuple(map(int, of["shape"]))
            size = _size(of) if of["dtype"] == kind.str and min(shape) >= 0 else -1
        except (KeyError, TypeError, ValueError):
            size = -1
        if size < 0:
            raise self.error(f"{MANIFEST} speaks of an array that is unknown, {name!r}. {_AGAIN}")
        digest = None
        with suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == size and file.read(HEADER) == _header(of):
                digest = _crc32(file)
        if digest != of["crc32"]:
            raise self.error(f"{path.name} does not have the bytes that were written. {_AGAIN}")
        return map_file(path, kind, shape, HEADER)


class Builder:
    """A conversion under way: arrays that grow, and a state to go on from. Its cache is locked.

    Attributes
    ----------
    state
        what was kept with the arrays; empty at the beginning
    """

    def __init__(self, cache: Cache) -> None:
        self.cache, self.folder = cache, cache.folder
        self._arrays: dict[str, dict[str, Any]] = {}
        self._files: dict[str, IO[bytes]] = {}
        self.state: dict[str, Any] = {}

    def __enter__(self) -> Self:
        with self._naming_folder():
            if not self._goes_on():
                self.clear()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file in self._files.values():
            with suppress(OSError):  # what was not kept does not count
                file.close()
        if kind is not None and issubclass(kind, DataFileError):  # it has to be mended first
            with suppress(OSError):
                self.clear()
                (self.folder / ".lock").unlink(missing_ok=True)
                self.folder.rmdir()

    def _goes_on(self) -> bool:
        """Take up what was kept, if it is of the same source and all there."""
        try:
            kept = _unsealed((self.folder / PROGRESS).read_bytes())
        except FileNotFoundError:
            return False
        if kept is None or kept.keys() != _KEYS or kept["arrays"].keys() - self.cache.kinds.keys():
            return False
        if any(kept[key] != now for key, now in self._about().items()):
            return False
        files = {self.folder / f"{name}.npy": _size(of) for name, of in kept["arrays"].items()}
        if not all(file.is_file() and file.stat().st_size >= size for file, size in files.items()):
            return False
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for file, size in files.items():
            os.truncate(file, size)
        self._arrays, self.state = kept["arrays"], kept["content"]
        return True

    def clear(self) -> None:
        """Begin anew. Files are removed and not overwritten: somebody may have mapped them."""
        for open_file in self._files.values():
            open_file.close()
        self._arrays, self._files, self.state = {}, {}, {}
        for name in (MANIFEST, PROGRESS):
            (self.folder / name).unlink(missing_ok=True)
        for old in self.folder.glob("*.npy"):
            old.unlink()
        storage.sweep(self.folder, "cache", "progress")

    def texts(self) -> Iterator[Text]:
        """The text that is still to be read, in pieces; what was made of each is kept."""
        if self.state.get("read"):
            return
        path, begun = self.cache.path, (self.state.get("end", 0), self.state.get("lines", 0))
        reading = pieces(path, self.cache.error_class, PIECE, *begun)
        for number, (text, end, share) in enumerate(reading, start=1):
            yield text
            self.state["end"] = end
            self.state["lines"] = text.lines_before + text.content.count(b"\n")
            if number % KEPT == 0:
                self.keep(share)
        self.state["read"] = True
        self.keep(1.0)

    def append(self, name: str, rows: AnyArray) -> None:
        """Put rows below those that an array has."""
        rows = np.ascontiguousarray(rows, dtype=self.cache.kinds[name])
        of = self._arrays.setdefault(
            name, {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]], "crc32": 0}
        )
        data = rows.reshape(-1).view(np.uint8).data
        with self._naming_folder():
            if name not in self._files:
                new = not of["shape"][0]
                file = self._files[name] = (self.folder / f"{name}.npy").open("wb" if new else "ab")
                file.write(bytes(HEADER * new))
            self._files[name].write(data)
        of["shape"][0] += len(rows)
        of["crc32"] = zlib.crc32(data, of["crc32"])

    def keep(self, share: float) -> None:
        """Keep the state, with the arrays as they are; `share` of the work is done."""
        with self._naming_folder():
            for file in self._files.values():
                _sync(file)
            self._write(PROGRESS, self.state)
        if (watch := _watch.get()) is not None:
            watch(self.cache.path, share)

    def array(self, name: str) -> AnyArray:
        """An array as it was kept last."""
        of = self._arrays.get(name)
        if of is None:
            return np.empty(0, self.cache.kinds[name])
        return map_file(self.folder / f"{name}.npy", of["dtype"], tuple(of["shape"]), HEADER)

    def length(self, name: str) -> int:
        """How many rows an array has by now."""
        return int(self._arrays[name]["shape"][0]) if name in self._arrays else 0

    def drop(self, *names: str) -> None:
        """Begin these arrays anew."""
        for name in names:
            self._arrays.pop(name, None)

    def finish(self, content: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> None:
        """Say that all is there: these arrays, with the shapes that they get.

        Some may be shorter than what was put into them.
        """
        arrays = self._arrays
        self._arrays = {}
        with self._naming_folder():
            for file in self._files.values():
                file.flush()
            for name, shape in shapes.items():
                empty = {"dtype": np.dtype(self.cache.kinds[name]).str, "crc32": 0}
                of = {**arrays.get(name, empty), "shape": [int(size) for size in shape]}
                with (self.folder / f"{name}.npy").open("r+b" if name in arrays else "wb") as file:
                    file.write(_header(of))
                    if name in arrays and _size(of) < _size(arrays[name]):
                        file.truncate(_size(of))
                        of["crc32"] = _crc32(file)
                    _sync(file)
                self._arrays[name] = of
            self._write(MANIFEST, content)
            (self.folder / PROGRESS).unlink()
            for old in self.folder.glob("*.npy"):
                if old.stem not in shapes:
                    old.unlink()

    def _about(self) -> dict[str, Any]:
        return {
            "format": "tierrank cache",
            "format_version": FORMAT_VERSION,
            "byte_order": sys.byteorder,
            "made_of": self.cache.made_of,
        }

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        manifest = {**self._about(), "arrays": self._arrays, "content": dict(content)}
        manifest["checksum"] = storage.checksum(manifest)
        storage.replace_file(self.folder / name, storage.canonical(manifest))

    @contextmanager
    def _naming_folder(self) -> Iterator[None]:
        """Let what the disk refuses name the folder."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.folder)) from error


class Words:
    """Names by number, in order of first appearance, in the array `words` of a conversion."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._known = {word: number for number, word in enumerate(words_of(builder.array("words")))}

    def numbers(self, words: Sequence[str]) -> IntArray:
        """[words] the number of each; those that are new are put into the array."""
        known = self._known
        new = [word for word in dict.fromkeys(words) if word not in known]
        known |= {word: number for number, word in enumerate(new, start=len(known))}
        lines = "".join(f"{json.dumps(word)}\n" for word in new).encode()
        self._builder.append("words", np.frombuffer(lines, dtype=np.uint8))
        return np.array([known[word] for word in words], dtype=np.int64)


def words_of(lines: AnyArray) -> list[str]:
    """The names that such an array holds."""
    return [json.loads(line) for line in lines.tobytes().splitlines()]


def _identity(source: Path) -> dict[str, Any]:
    """By what a source is known: size, time, and how it begins."""
    with source.open("rb") as file:
        about, head = os.fstat(file.fileno()), file.read(HEAD)
    return {
        "name": source.name,
        "size": about.st_size,
        "modified": about.st_mtime_ns,
        "head": hashlib.sha256(head).hexdigest(),
    }


def _unsealed(raw: bytes) -> dict[str, Any] | None:
    """What was written as a manifest; None if it is not that, byte for byte."""
    try:
        found = json.loads(raw)
        whole = found["checksum"] == storage.checksum(found) and storage.canonical(found) == raw
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return dict(found) if whole and found["format"] == "tierrank cache" else None


def _size(of: Mapping[str, Any]) -> int:
    """Bytes of the file of an array."""
    size: int = math.prod(of["shape"]) * np.dtype(of["dtype"]).itemsize
    return HEADER + size


def _header(of: Mapping[str, Any]) -> bytes:
    """The beginning of a .npy file, version 1.0."""
    words = {"descr": of["dtype"], "fortran_order": False, "shape": tuple(of["shape"])}
    text = repr(words).encode()
    magic = np.lib.format.magic(1, 0) + (HEADER - 10).to_bytes(2, "little")
    return magic + text.ljust(HEADER - 11) + b"\n"


def _crc32(file: IO[bytes]) -> int:
    """The checksum of what is left of a file."""
    digest = 0
    while block := file.read(_CHECKED):
        digest = zlib.crc32(block, digest)
    return digest


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


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
