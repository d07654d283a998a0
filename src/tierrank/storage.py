"""Folders of JSON and safetensors that are whole or absent, and never run code when read.

A folder holds `NAME.json` and the tensors it points to, `NAME-<digest>.safetensors`. The tensors
are written first, under a name of their own; renaming the JSON into place is the one moment at
which the new content replaces the old. Whoever is killed before it leaves the old content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

FORMAT_VERSION = 1
MANIFEST_KEYS = {"format", "format_version", "written_by", "content", "tensors", "checksum"}
POINTER_KEYS = {"file", "sha256"}
RUNS_CODE = {".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".dill", ".py", ".so"}

Arrays = dict[str, np.ndarray[Any, Any]]


class StorageError(ValueError):
    """A folder that cannot be read: says which, what is wrong and what to do."""


def write(folder: Path, name: str, content: Mapping[str, Any], tensors: Arrays) -> None:
    """Write content (as JSON) and tensors; what was there under this name is replaced at once."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = _write_tensors(folder, name, tensors)
    file = f"{name}-{digest[:16]}.safetensors"
    manifest: dict[str, Any] = {
        "format": f"tierrank {name}",
        "format_version": FORMAT_VERSION,
        "written_by": _version(),
        "content": content,
        "tensors": {"file": file, "sha256": digest},
    }
    manifest["checksum"] = _checksum(manifest)
    target = folder / file
    replace_file(folder / f"{name}.json", _canonical(manifest))
    for old in (*folder.glob(f"{name}-*.safetensors"), *folder.glob(f".{name}[.-]*.part")):
        if old != target:  # the last content's, and what a killed writer left half-written
            old.unlink(missing_ok=True)


def _write_tensors(folder: Path, name: str, tensors: Arrays) -> str:
    """Write `NAME-<digest>.safetensors`, and give the digest of what is in it.

    They go straight to the file: as bytes, huge tensors would be in memory three times.
    """
    from safetensors.numpy import save_file

    part = folder / f".{name}-{os.getpid()}.safetensors.part"
    try:
        save_file({key: np.asarray(array, order="C") for key, array in tensors.items()}, part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        part.replace(folder / f"{name}-{digest[:16]}.safetensors")
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return digest


def read(folder: Path, name: str) -> tuple[dict[str, Any], Arrays]:
    """Read content and tensors, or raise a `StorageError`: nothing damaged is ever given back."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not folder.is_dir():
        raise StorageError(f"{folder}: there is no such folder. A saved {name} is a folder.")
    _refuse_code(folder)
    manifest = _manifest(folder / f"{name}.json", name)
    file = folder / manifest["tensors"]["file"]
    if file.parent != folder or file.suffix != ".safetensors" or not file.is_file():
        raise StorageError(f"{file}: is missing. The {name} is not whole: copy all of its folder.")
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != manifest["tensors"]["sha256"]:
        raise StorageError(f"{file}: does not have the bytes that were written. {_AGAIN}")
    try:
        return manifest["content"], load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{file}: is no safetensors file ({error}). {_AGAIN}") from None


def exists(folder: Path, name: str) -> bool:
    """Whether something was written under this name."""
    return (folder / f"{name}.json").is_file()


def remove(folder: Path, name: str) -> None:
    """Remove what was written under this name, and the folder if nothing else is in it."""
    (folder / f"{name}.json").unlink(missing_ok=True)
    if folder.is_dir():
        for file in folder.glob(f"{name}-*.safetensors"):
            file.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file in place of what was there."""
    with writing_beside(path) as file:
        file.write(data)


@contextmanager
def writing_beside(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears, whole, when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_AGAIN = "It was changed or damaged since: fetch it again from where it came from."


def _manifest(path: Path, name: str) -> dict[str, Any]:
    if not path.is_file():
        raise StorageError(f"{path}: is missing. Is {path.parent} the folder of a saved {name}?")
    raw = path.read_bytes()
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path}: is no JSON ({error}). {_AGAIN}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != f"tierrank {name}":
        raise StorageError(f"{path}: is not the description of a tierrank {name}.")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise StorageError(
            f"{path}: was written by tierrank {manifest.get('written_by')} in format {version}; "
            f"tierrank {_version()} reads formats up to {FORMAT_VERSION}. Upgrade tierrank."
        )
    # Byte for byte, so that not even a changed blank passes.
    whole = manifest.keys() == MANIFEST_KEYS and _canonical(manifest) == raw
    tensors = manifest.get("tensors")
    points = isinstance(tensors, dict) and {str} == {type(tensors.get(k)) for k in POINTER_KEYS}
    if not whole or not points or manifest["checksum"] != _checksum(manifest):
        raise StorageError(f"{path}: does not have the content that was written. {_AGAIN}")
    return manifest


def _refuse_code(folder: Path) -> None:
    """A stranger's file that other tools would run has no place in a model."""
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in RUNS_CODE:
            raise StorageError(
                f"{file}: does not belong there, and files of this kind can run code when opened. "
                "tierrank writes none: remove it, if you know where the folder comes from."
            )


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _checksum(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def _version() -> str:
    from tierrank import __version__

    return __version__
