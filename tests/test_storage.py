"""Folders of JSON and safetensors: whole or refused, and never run."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tierrank import storage
from tierrank.storage import StorageError

CONTENT = {"a": [1, 2.5, None, "ü"], "b": {"deep": True}}
ARRAYS = {"w": np.arange(6.0).reshape(2, 3), "n": np.array([3], dtype=np.int64)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    storage.write(tmp_path / "it", "model", CONTENT, ARRAYS)
    return tmp_path / "it"


def test_what_was_written_is_read(folder):
    content, arrays = storage.read(folder, "model")
    assert content == CONTENT
    assert arrays.keys() == ARRAYS.keys()
    for key, array in ARRAYS.items():
        assert arrays[key].dtype == array.dtype
        np.testing.assert_array_equal(arrays[key], array)


def test_the_same_content_makes_the_same_bytes(folder, tmp_path):
    storage.write(tmp_path / "again", "model", CONTENT, ARRAYS)
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()}


def test_writing_again_replaces_and_leaves_nothing_behind(folder):
    storage.write(folder, "model", {"new": 1}, {"w": np.zeros(1)})
    assert storage.read(folder, "model")[0] == {"new": 1}
    assert len(list(folder.iterdir())) == 2


def test_what_a_killed_writer_left_is_cleared_away(folder):
    (folder / ".model.json.123.part").write_text("{")
    (folder / ".model-abc.safetensors.123.part").write_text("")
    storage.write(folder, "model", CONTENT, ARRAYS)
    assert len(list(folder.iterdir())) == 2


def test_views_and_transposed_arrays_are_written_as_they_read(tmp_path):
    array = np.arange(12.0).reshape(3, 4)
    storage.write(tmp_path, "model", {}, {"t": array.T, "part": array[:, ::2]})
    arrays = storage.read(tmp_path, "model")[1]
    np.testing.assert_array_equal(arrays["t"], array.T)
    np.testing.assert_array_equal(arrays["part"], array[:, ::2])


def test_every_flipped_bit_of_every_byte_is_refused(folder):
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << (at % 8)
            file.write_bytes(damaged)
            with pytest.raises(StorageError, match=r"model|format"):
                storage.read(folder, "model")
        file.write_bytes(whole)
    assert storage.read(folder, "model")[0] == CONTENT


def test_every_truncation_is_refused(folder):
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        for length in range(0, len(whole), 7):
            file.write_bytes(whole[:length])
            with pytest.raises(StorageError):
                storage.read(folder, "model")
        file.write_bytes(whole)


@pytest.mark.parametrize("which", ["*.json", "*.safetensors"])
def test_a_missing_file_is_named(folder, which):
    file = next(folder.glob(which))
    file.unlink()
    with pytest.raises(StorageError, match="is missing") as caught:
        storage.read(folder, "model")
    assert str(file) in str(caught.value)


def test_no_folder_is_said_plainly(tmp_path):
    with pytest.raises(StorageError, match="no such folder"):
        storage.read(tmp_path / "nothing", "model")


class _Hostile:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("place", ["tensors", "json", "beside"])
def test_a_pickle_is_refused_and_never_run(folder, tmp_path, place):
    harm = tmp_path / "harm"
    payload = pickle.dumps(_Hostile(harm))
    if place == "tensors":  # with a checksum that fits, as a forger would write it
        manifest = json.loads((folder / "model.json").read_text())
        file = folder / manifest["tensors"]["file"]
        file.write_bytes(payload)
        forge(folder, manifest, payload)
    else:
        name = {"json": "model.json", "beside": "weights.pkl"}[place]
        (folder / name).write_bytes(payload)
    with pytest.raises(StorageError):
        storage.read(folder, "model")
    assert not harm.exists()


def forge(folder: Path, manifest: dict, data: bytes) -> None:
    """Give a changed manifest the checksums it needs."""
    import hashlib

    manifest["tensors"]["sha256"] = hashlib.sha256(data).hexdigest()
    manifest.pop("checksum", None)
    manifest["checksum"] = storage._checksum(manifest)
    (folder / "model.json").write_bytes(storage._canonical(manifest))


@pytest.mark.parametrize("name", ["../model-0.safetensors", "/etc/passwd", "model.json", ""])
def test_tensors_are_only_looked_for_in_the_folder(folder, name):
    manifest = json.loads((folder / "model.json").read_text())
    data = (folder / manifest["tensors"]["file"]).read_bytes()
    (folder.parent / "model-0.safetensors").write_bytes(data)
    manifest["tensors"]["file"] = name
    forge(folder, manifest, data)
    with pytest.raises(StorageError, match="is missing"):
        storage.read(folder, "model")


@pytest.mark.parametrize("tensors", [None, 3, {}, {"file": 3, "sha256": 4}, {"file": "a"}])
def test_a_forged_pointer_to_the_tensors_is_refused(folder, tensors):
    manifest = json.loads((folder / "model.json").read_text())
    manifest["tensors"] = tensors
    manifest["checksum"] = storage._checksum(manifest)
    (folder / "model.json").write_bytes(storage._canonical(manifest))
    with pytest.raises(StorageError):
        storage.read(folder, "model")


def test_a_newer_format_says_who_wrote_it_and_what_to_do(folder):
    manifest = json.loads((folder / "model.json").read_text())
    manifest.update(format_version=storage.FORMAT_VERSION + 1, written_by="9.9")
    (folder / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=r"tierrank 9\.9 in format 2.*Upgrade tierrank"):
        storage.read(folder, "model")


def test_json_nested_too_deep_is_refused(folder):
    (folder / "model.json").write_text("[" * 200_000)
    with pytest.raises(StorageError):
        storage.read(folder, "model")


def test_numbers_that_json_lacks_are_not_written(folder):
    with pytest.raises(ValueError, match="JSON"):
        storage.write(folder, "model", {"x": float("nan")}, {})
    assert storage.read(folder, "model")[0] == CONTENT  # the old one is still there


def test_removing_leaves_other_files(folder):
    (folder / "note.txt").write_text("mine")
    storage.remove(folder, "model")
    assert [file.name for file in folder.iterdir()] == ["note.txt"]
    assert not storage.exists(folder, "model")


WRITER = """
import sys, numpy as np
from pathlib import Path
from tierrank import storage
print("ready", flush=True)
for n in range(10**9):
    arrays = {"w": np.full(200_000, float(n))}
    storage.write(Path(sys.argv[1]), "model", {"n": n}, arrays)
"""


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_something_whole(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "it"
    for _ in range(10):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(float(rng.uniform(0.02, 0.2)))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        if storage.exists(folder, "model"):
            content, arrays = storage.read(folder, "model")
            assert (arrays["w"] == content["n"]).all()
