"""Saved models, and all that is kept on the disk: whole or absent, and no code when read.

`save` and `load` keep fitted models by `write` and `read`, which checkpoints use too: no pickle.

A folder holds `NAME.json` and the tensors it points to, `NAME-<digest>.safetensors`. Both are
written beside, as `.part` files; renaming the JSON into place is the one moment at which the new
content replaces the old. Whoever is killed before it leaves the old content.

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
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

try:
    import fcntl

    LOCKS: Any = fcntl
except ImportError:  # Windows
    LOCKS = None

FORMAT_VERSION = 1
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
    "LinearRanker", "NeuralRanker", "BoostedRanker", "ExtremeRanker", "RankAggregator",
    "PairedTies", "FeatureAggregator",
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


def save(model: Savable, folder: Path | str) -> Path:
    """Save a fitted model as a folder, in place of what was saved there before.

    Killed at any moment, it leaves the old model or the new one. Other processes may load from the
    folder meanwhile, or save to it. A plot or a note of yours in it is left alone. What the disk
    does not take is an `OSError` that names the folder.

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
        write(path, "model", {"estimator": name, **info}, tensors)
    else:
        for each in spread:
            for _ in each.pieces():
                pass
    if spread:
        spread[0].wait()  # the model is there when any of them goes on
    return path


def load(folder: Path | str) -> Any:
    """Load a model that `save` wrote; a damaged or foreign folder raises a `StorageError`."""
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


def write(folder: Path, name: str, content: Mapping[str, Any], tensors: Arrays) -> None:
    """Write content (as JSON) and tensors; what was there under this name is replaced at once.

    What the disk or its limits refuse is an `OSError` that names the folder, and changes nothing.
    """
    path = folder / f"{name}.json"
    with (
        _naming(folder),
        _part(folder / f"{name}.safetensors") as tensors_part,
        _part(path) as manifest_part,
    ):
        with _synced(tensors_part) as file:
            digest = _write_tensors(file, tensors)
        target = folder / f"{name}-{digest[:16]}.safetensors"
        manifest: dict[str, Any] = {
            "format": f"tierrank {name}",
            "format_version": FORMAT_VERSION,
            "written_by": _version(),
            "content": content,
            "tensors": {"file": target.name, "sha256": digest},
        }
        manifest["checksum"] = checksum(manifest)
        with _synced(manifest_part) as file:
            file.write(canonical(manifest))
        with locked(folder):
            tensors_part.replace(target)
            manifest_part.replace(path)
            for old in folder.glob(f"{name}-*.safetensors"):
                if old != target:  # the last content's, or left by a writer that was killed here
                    with suppress(OSError):  # Windows keeps it while somebody reads it
                        old.unlink()
    sweep(folder, name)


def _write_tensors(file: IO[bytes], tensors: Arrays) -> str:
    """Write safetensors, and give the digest of what was written.

    The same bytes as `safetensors.numpy.save` gives: those would be in memory a second time. Its
    `save_file` takes neither a file that is open nor the umask, and hides what the disk says.
    """
    import numpy as np

    digest = hashlib.sha256()

    def put(part: bytes | memoryview) -> None:
        file.write(part)
        digest.update(part)

    kinds = {key: array.dtype.str[1:] for key, array in tensors.items()}
    order = _in_file(tensors)
    ends = np.cumsum([0, *(tensors[key].nbytes for key in order)]).tolist()
    header = {
        key: {"dtype": DTYPES[kinds[key]], "shape": tensors[key].shape, "data_offsets": span}
        for key, span in zip(order, pairwise(ends), strict=True)
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    put(len(text).to_bytes(8, "little"))
    put(text)
    for key in order:
        array = tensors[key]
        for piece in array.pieces() if isinstance(array, Spread) else [array]:
            little = np.asarray(piece, dtype=f"<{kinds[key]}", order="C")
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
    manifest, file, data = _manifest_and_bytes(folder, name)
    if hashlib.sha256(data).hexdigest() != manifest["tensors"]["sha256"]:
        raise StorageError(f"{file}: does not have the bytes that were written. {_remedy(name)}")
    try:
        return manifest["content"], load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{file}: is no safetensors file ({error}). {_remedy(name)}") from None


def check(folder: Path, name: str) -> None:
    """Refuse a folder that holds nothing of this name, or what does not belong there.

    This takes neither numpy nor torch, so a mistyped folder is answered at once.
    """
    if not folder.is_dir():
        raise StorageError(f"{folder}: there is no such folder. A saved {name} is a folder.")
    _refuse_code(folder)
    _refuse_absent(folder, name)


def _manifest_and_bytes(folder: Path, name: str) -> tuple[dict[str, Any], Path, bytes]:
    """The manifest, and the file that it points to with its bytes."""
    path = folder / f"{name}.json"
    while True:
        _refuse_absent(folder, name)
        with path.open("rb") as opened:
            raw = opened.read()
            manifest = _manifest(path, name, raw)
            pointer = manifest["tensors"]
            file = folder / f"{name}-{pointer['sha256'][:16]}.safetensors"
            try:
                data = file.read_bytes() if pointer["file"] == file.name else None
            except OSError as error:
                # While the manifest is open, one that replaces it cannot look the same.
                if not path.is_file() or not os.path.samestat(
                    os.fstat(opened.fileno()), path.stat()
                ):
                    continue
                if not isinstance(error, FileNotFoundError | IsADirectoryError):
                    raise
                data = None
        if not _is_whole(manifest, raw):  # late: it takes long, and the tensors may go meanwhile
            raise StorageError(
                f"{path}: does not have the content that was written. {_remedy(name)}"
            )
        if data is None:
            remedy = _remedy(name, f"The {name} is not whole: copy all of its folder.")
            raise StorageError(f"{folder / _shown(pointer['file'])}: is missing. {remedy}")
        return manifest, file, data


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
    pointer = manifest.get("tensors")
    words = (
        [pointer.get(key) for key in POINTER_KEYS] if isinstance(pointer, dict) else [None, None]
    )
    if not isinstance(words[0], str) or not re.fullmatch("[0-9a-f]{64}", str(words[1])):
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
