"""Saved models, and all that is kept on the disk: whole or absent, and no code when read.

`save` and `load` keep fitted models by `write` and `read`, which checkpoints use too: no pickle.

A folder holds `NAME.json` and the tensors it points to, `NAME-<digest>.safetensors`: one file, or
several where it would be too large. Of an array that is in several files each has some rows, in
their order. All are written beside, as `.part` files; renaming the JSON into place is the one
moment at which the new content replaces the old. Whoever is killed before it leaves the old one.

Several processes may read and write a folder at the same time. Writers rename and clear away one
after the other: they hold a lock on the folder for it. Readers hold none: where the tensors are
gone by the time they are opened, a new manifest has come, and that one is read. A `.part` file is
locked by its writer as long as it lives, so what the dead left is known. The locks are flock's: on
Windows, and between machines that share a folder, only one process may write at a time.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

try:
    import fcntl

    LOCKS: Any = fcntl
except ImportError:  # Windows
    LOCKS = None

FORMAT_VERSION = 2
ONE_FILE = 1  # the version in which tensors are in one file, as all but huge ones are
LARGEST_FILE = 10**10  # bytes of a file, unless `save` is told another number
MANIFEST_KEYS = {"format", "format_version", "written_by", "content", "tensors", "checksum"}
POINTER_KEYS = ("file", "sha256")
RUNS_CODE = {".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".dill", ".py", ".so"}

# What safetensors calls the types of numpy, in the order in which it writes them.
DTYPES = {
    "u8": "U64", "i8": "I64", "f8": "F64", "c8": "C64", "f4": "F32", "u4": "U32", "i4": "I32",
    "f2": "F16", "u2": "U16", "i2": "I16", "i1": "I8", "u1": "U8", "b1": "BOOL",
}  # fmt: skip
DAY = 86400.0

# The classes that a saved model may name, all of `tierrank` itself: nothing else is imported.
SAVABLE = (
    "LinearRanker", "NeuralRanker", "BoostedRanker", "BlendedRanker", "ExtremeRanker",
    "RankAggregator", "PairedTies", "FeatureAggregator", "DavidsonLuce",
    "WorthsThroughTime", "RankMixture",
)  # fmt: skip

Arrays: TypeAlias = "dict[str, np.ndarray[Any, Any]]"


class StorageError(ValueError):
    """A folder that cannot be read: says which, what is wrong and what to do."""


class Spread:
    """An array whose rows several processes hold; they save the model together, and one writes.

    Attributes
    ----------
    shape, dtype, nbytes
        of the whole
    here
        whether this process writes
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    here: bool

    def pieces(self) -> Iterator[np.ndarray[Any, Any]]:
        """Its rows in order, where it is written; all processes go through them together."""
        raise NotImplementedError

    def wait(self) -> None:
        """Until all processes are here."""
        raise NotImplementedError


class Savable(Protocol):
    """What `save` asks of a model; its class also has `from_state`."""

    def to_state(self) -> tuple[dict[str, Any], Arrays]: ...


def save(model: Savable, folder: Path | str, *, largest_file: int = LARGEST_FILE) -> Path:
    """Save a fitted model as a folder, in place of what was saved there before.

    Killed at any moment, it leaves the old model or the new one. Other processes may load from the
    folder meanwhile, or save to it. A plot or a note of yours in it is left alone. What the disk
    does not take is an `OSError` that names the folder.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    folder : str or path
        Made, if it is not there.
    largest_file : int
        Bytes of a file of tensors, above which they go into several.

    Returns
    -------
    path
        The folder.

    Raises
    ------
    OSError
        The disk does not take it; the folder is named.

    See Also
    --------
    load : Load it again.
    export : Write a ranker for other programs.

    Examples
    --------
    >>> import tempfile, numpy as np, tierrank as tr
    >>> X = np.array([[1.0], [0.0], [2.0], [0.5]])
    >>> ranker = tr.LinearRanker(l2=0.1).fit(X, [1, 0, 1, 0], qid=[7, 7, 8, 8])
    >>> folder = tr.save(ranker, tempfile.mkdtemp())
    >>> bool((tr.load(folder).predict(X) == ranker.predict(X)).all())
    True
    """
    name = type(model).__name__
    if name not in SAVABLE:
        raise TypeError(f"only {', '.join(SAVABLE)} can be saved, not a {name}")
    info, tensors = model.to_state()
    path = Path(folder)
    arrays: list[Any] = [tensors[key] for key in _in_file(tensors)]
    spread = [each for each in arrays if isinstance(each, Spread)]
    if all(each.here for each in spread):
        write(path, "model", {"estimator": name, **info}, tensors, largest_file)
    else:
        for each in spread:
            for _ in each.pieces():
                pass
    if spread:
        spread[0].wait()  # the model is there when any of them goes on
    return path


def load(folder: Path | str) -> Any:
    """Load a model that `save` wrote.

    Parameters
    ----------
    folder : str or path
        Where it was saved.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    StorageError
        The folder is damaged, or not one of `save`; a `ValueError`.

    See Also
    --------
    save : Save it.

    Examples
    --------
    >>> import tempfile, tierrank as tr
    >>> fitted = tr.RankAggregator().fit([["ann", "bob"], ["bob", "ann"], ["ann", "bob"]])
    >>> tr.load(tr.save(fitted, tempfile.mkdtemp())).ranking()
    ['ann', 'bob']
    """
    path = Path(folder)
    info, tensors = read(path, "model")
    name = info.pop("estimator", None) if isinstance(info, dict) else None
    if not isinstance(name, str) or name not in SAVABLE:
        kind = ascii(name)[:80]
        raise StorageError(f"{path}: holds a model of kind {kind}, which this tierrank lacks")
    import tierrank

    estimator = getattr(tierrank, name)
    try:
        return estimator.from_state(info, tensors)
    except ImportError:
        raise  # a library that the model needs is not installed
    except Exception as error:  # of any kind: it is a stranger who chose what is in it
        raise StorageError(f"{path}: does not hold together as a {name}: {error}") from error


def write(
    folder: Path,
    name: str,
    content: Mapping[str, Any],
    tensors: Arrays,
    largest_file: int = LARGEST_FILE,
) -> None:
    """Write content (as JSON) and tensors; what was there under this name is replaced at once.

    What the disk or its limits refuse is an `OSError` that names the folder, and changes nothing.
    """
    path = folder / f"{name}.json"
    targets: dict[Path, Path] = {}
    pointers = []
    with _naming(folder), ExitStack() as parts:
        arrays = {key: _Rows(array) for key, array in tensors.items()}
        for some in _files(tensors, largest_file):
            part = parts.enter_context(_part(folder / f"{name}.safetensors"))
            with _synced(part) as file:
                digest = _write_tensors(file, some, arrays)
            target = folder / f"{name}-{digest[:16]}.safetensors"
            targets[target] = part
            pointers.append({"file": target.name, "sha256": digest})
        manifest: dict[str, Any] = {
            "format": f"tierrank {name}",
            "format_version": ONE_FILE if len(pointers) == 1 else FORMAT_VERSION,
            "written_by": _version(),
            "content": content,
            "tensors": pointers[0] if len(pointers) == 1 else pointers,
        }
        manifest["checksum"] = checksum(manifest)
        manifest_part = parts.enter_context(_part(path))
        with _synced(manifest_part) as file:
            file.write(canonical(manifest))
        with locked(folder):
            for target, part in targets.items():
                part.replace(target)
            manifest_part.replace(path)
            for old in folder.glob(f"{name}-*.safetensors"):
                if old not in targets:  # the last content's, or of a writer that was killed here
                    with suppress(OSError):  # Windows keeps it while somebody reads it
                        old.unlink()
    sweep(folder, name)


def _files(tensors: Arrays, largest: int) -> list[dict[str, int]]:
    """How many rows of which arrays go into each file; an array that fits into one is not cut."""
    files: list[dict[str, int]] = [{}]
    room = largest
    for key in _in_file(tensors):
        array = tensors[key]
        rows = array.shape[0] if array.shape else 1
        row = array.nbytes // max(rows, 1)
        while True:
            fits = rows * row <= room
            some = rows if fits else room // row if array.nbytes > largest else 0
            if not (fits or some or files[-1]):
                some = 1  # alone, though it is too large
            if fits or some:
                files[-1][key] = some
            rows, room = rows - some, max(0, room - some * row)
            if not rows:
                break
            files.append({})
            room = largest
    return files


class _Rows:
    """The rows of an array, which are taken from it in order; a number is one."""

    def __init__(self, array: np.ndarray[Any, Any] | Spread) -> None:
        self.array, self.kind = array, array.dtype.str[1:]
        self._pieces = array.pieces() if isinstance(array, Spread) else iter([array])
        self._left: np.ndarray[Any, Any] | None = None

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of so many."""
        return (rows, *self.array.shape[1:]) if self.array.shape else ()

    def take(self, rows: int) -> Iterator[np.ndarray[Any, Any]]:
        """The next ones, in pieces."""
        while rows:
            piece = next(self._pieces) if self._left is None else self._left
            count = len(piece) if piece.shape else 1
            self._left = piece[rows:] if count > rows else None
            yield piece[:rows] if count > rows else piece
            rows -= min(rows, count)


def _write_tensors(file: IO[bytes], some: dict[str, int], arrays: Mapping[str, _Rows]) -> str:
    """Write some rows of arrays as safetensors, and give the digest of what was written.

    The same bytes as `safetensors.numpy.save` gives: those would be in memory a second time. Its
    `save_file` takes neither a file that is open nor the umask, and hides what the disk says.
    """
    import numpy as np

    digest = hashlib.sha256()

    def put(part: bytes | memoryview) -> None:
        file.write(part)
        digest.update(part)

    shapes = {key: arrays[key].shape(rows) for key, rows in some.items()}
    sizes = [math.prod(shape) * int(arrays[key].kind[1:]) for key, shape in shapes.items()]
    ends = accumulate(sizes, initial=0)
    header = {
        key: {"dtype": DTYPES[arrays[key].kind], "shape": shape, "data_offsets": span}
        for (key, shape), span in zip(shapes.items(), pairwise(ends), strict=True)
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    put(len(text).to_bytes(8, "little"))
    put(text)
    for key, rows in some.items():
        for piece in arrays[key].take(rows):
            little = np.asarray(piece, dtype=f"<{arrays[key].kind}", order="C")
            put(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _in_file(tensors: Arrays) -> list[str]:
    """Names in the order in which safetensors writes them."""
    kinds = list(DTYPES)
    return sorted(tensors, key=lambda key: (kinds.index(tensors[key].dtype.str[1:]), key))


def read(folder: Path, name: str) -> tuple[dict[str, Any], Arrays]:
    """Read content and tensors, or raise a `StorageError`: nothing damaged is ever given back."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    check(folder, name)
    manifest, files = _manifest_and_files(folder, name)
    found: dict[str, list[np.ndarray[Any, Any]]] = {}
    for pointer in _pointers(manifest):
        file, data = files.pop(0)
        if hashlib.sha256(data).hexdigest() != pointer["sha256"]:
            what = "does not have the bytes that were written"
            raise StorageError(f"{file}: {what}. {_remedy(name)}")
        try:
            for key, array in load(data).items():
                found.setdefault(key, []).append(array)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            what = f"is no safetensors file ({error})"
            raise StorageError(f"{file}: {what}. {_remedy(name)}") from None
    try:
        return manifest["content"], {key: _joined(found.pop(key)) for key in list(found)}
    except ValueError as error:
        what = f"its files do not go together ({error})"
        raise StorageError(f"{folder}: {what}. {_remedy(name)}") from None


def _joined(rows: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """An array whose rows were in one file or several."""
    import numpy as np

    if len({each.dtype for each in rows}) > 1:
        raise ValueError("an array has several types")
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _pointers(manifest: Mapping[str, Any]) -> list[Any]:
    """To the files of tensors, in order."""
    tensors = manifest.get("tensors")
    return tensors if isinstance(tensors, list) else [tensors]


def check(folder: Path, name: str) -> None:
    """Refuse a folder that holds nothing of this name, or what does not belong there.

    This takes neither numpy nor torch, so a mistyped folder is answered at once.
    """
    if not folder.is_dir():
        raise StorageError(f"{folder}: there is no such folder. A saved {name} is a folder.")
    _refuse_code(folder)
    _refuse_absent(folder, name)


def _manifest_and_files(folder: Path, name: str) -> tuple[dict[str, Any], list[tuple[Path, bytes]]]:
    """The manifest, and the files that it points to with their bytes."""
    path = folder / f"{name}.json"
    while True:
        _refuse_absent(folder, name)
        with path.open("rb") as opened:
            raw = opened.read()
            manifest = _manifest(path, name, raw)
            files: list[tuple[Path, bytes]] = []
            missing = None
            try:
                for pointer in _pointers(manifest):
                    file = folder / f"{name}-{pointer['sha256'][:16]}.safetensors"
                    if pointer["file"] != file.name:
                        missing = pointer["file"]
                        break
                    missing = file.name
                    files.append((file, file.read_bytes()))
                    missing = None
            except OSError as error:
                # While the manifest is open, one that replaces it cannot look the same.
                if not path.is_file() or not os.path.samestat(
                    os.fstat(opened.fileno()), path.stat()
                ):
                    continue
                if not isinstance(error, FileNotFoundError | IsADirectoryError):
                    raise
        if not _is_whole(manifest, raw):  # late: it takes long, and the tensors may go meanwhile
            raise StorageError(
                f"{path}: does not have the content that was written. {_remedy(name)}"
            )
        if missing is not None:
            remedy = _remedy(name, f"The {name} is not whole: copy all of its folder.")
            raise StorageError(f"{folder / _shown(missing)}: is missing. {remedy}")
        return manifest, files


def check_arrays(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays of another name, shape or type, and numbers that are not finite."""
    import numpy as np

    for name, array in arrays.items():
        if name not in shapes or array.shape != shapes[name] or array.dtype != np.float64:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")


def exists(folder: Path, name: str) -> bool:
    """Whether something was written under this name."""
    return (folder / f"{name}.json").is_file()


def sweep(folder: Path, *names: str) -> None:
    """Remove what writers of files whose names begin so left half-written when they were killed."""
    for name in names:
        for part in folder.glob(f".{name}[.-]*.part"):
            with suppress(OSError):
                _remove_abandoned(part)


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file in place of what was there."""
    with writing_beside(path) as file:
        file.write(data)


@contextmanager
def writing_beside(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears, whole, when the block ends without an error.

    What the disk or its limits refuse is an `OSError` that names the path. A device or a pipe is
    written to, and so is what a link leads to (as /dev/stdout does): neither is replaced.
    """
    with _naming(path):
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        if target.is_symlink():  # links that lead to each other
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        with _part(target) as part:
            with _synced(part) as file:
                yield file
            part.replace(target)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the disk name the path, not a `.part` file, or nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or ".part").endswith(".part"):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """The name of a file beside a path, locked; gone at the end, unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        with locked(part, os.O_CREAT | os.O_EXCL | os.O_RDWR):
            if LOCKS is not None and not part.exists():
                continue  # swept away before it was locked
            try:
                yield part
            finally:
                part.unlink(missing_ok=True)
            return


@contextmanager
def _synced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that is on the disk when the block ends."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked(path: Path, flags: int = os.O_RDONLY) -> Iterator[None]:
    """Hold the lock of a file or folder, once nobody else does."""
    if LOCKS is None:
        yield
        return
    descriptor = os.open(path, flags, 0o666)
    try:
        with suppress(OSError):  # some network file systems have no locks
            LOCKS.flock(descriptor, LOCKS.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            LOCKS.flock(descriptor, LOCKS.LOCK_UN)  # also what a forked process inherited
        os.close(descriptor)


def is_abandoned(path: Path) -> bool:
    """Whether a file or folder that its process keeps `locked` is there without that process.

    Where there are no locks, nobody knows, and it is not.
    """
    if LOCKS is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # it is gone, or somebody else's
        return False
    try:
        LOCKS.flock(descriptor, LOCKS.LOCK_EX | LOCKS.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_abandoned(part: Path) -> None:
    """Remove a `.part` file whose writer is dead; without locks, one that is a day old."""
    old = time.time() - part.stat().st_mtime > DAY
    if LOCKS is None:
        if old:
            part.unlink()
        return
    with part.open("rb+") as file:
        try:
            LOCKS.flock(file, LOCKS.LOCK_EX | LOCKS.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:  # there are no locks
            if not old:
                return
        part.unlink()  # while it is locked, or its writer may have locked it by now


def _shown(value: Any) -> str:
    """A stranger's word in a message: of one line, and short."""
    return ascii(str(value))[1:-1][:80]


def _remedy(name: str, of_a_model: str = "It was changed or damaged since: fetch it again.") -> str:
    """What to do about something that is not whole."""
    if name == "checkpoint":
        return "Remove the folder of this checkpoint (or --overwrite), and begin the fit anew."
    return of_a_model


def _manifest(path: Path, name: str, raw: bytes) -> dict[str, Any]:
    """What a manifest says, if it is whole."""
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path}: is no JSON ({error}). {_remedy(name)}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != f"tierrank {name}":
        remedy = _remedy(name, "Is it from elsewhere? Give the folder of a saved model.")
        raise StorageError(f"{path}: is not the description of a tierrank {name}. {remedy}")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise StorageError(
            f"{path}: was written by tierrank {_shown(manifest.get('written_by'))} in format "
            f"{_shown(version)}; tierrank {_version()} reads formats up to {FORMAT_VERSION}. "
            "Upgrade tierrank."
        )
    for pointer in _pointers(manifest) or [None]:
        known = isinstance(pointer, dict)
        file, digest = (pointer.get(key) if known else None for key in POINTER_KEYS)
        if not isinstance(file, str) or not re.fullmatch("[0-9a-f]{64}", str(digest)):
            raise StorageError(f"{path}: points to no tensors. {_remedy(name)}")
    return manifest


def _is_whole(manifest: Mapping[str, Any], raw: bytes) -> bool:
    """Whether a manifest is what was written: byte for byte, so that no changed blank passes."""
    try:
        same = manifest.keys() == MANIFEST_KEYS and canonical(manifest) == raw
        return same and manifest["checksum"] == checksum(manifest)
    except (ValueError, RecursionError):  # NaN and 1e400 are not written
        return False


def _refuse_code(folder: Path) -> None:
    """A stranger's file that other tools would run has no place in a model."""
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in RUNS_CODE:
            raise StorageError(
                f"{file}: does not belong there, and files of this kind can run code when opened. "
                "tierrank writes none: remove it, if you know where the folder comes from."
            )


def _refuse_absent(folder: Path, name: str) -> None:
    if not exists(folder, name):
        path = folder / f"{name}.json"
        raise StorageError(f"{path}: is missing. Is {folder} the folder of a saved {name}?")


def canonical(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def checksum(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(canonical(rest)).hexdigest()


def _version() -> str:
    from tierrank import __version__

    return __version__
