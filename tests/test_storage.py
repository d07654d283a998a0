"""Folders of JSON and safetensors: whole or refused, and never run."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from safetensors.numpy import load, save

import tierrank as tr
from tierrank import storage
from tierrank.data import (
    MultiLabelData,
    RankingData,
    Rankings,
    write_letor,
    write_rankings,
    write_table,
    write_xc,
)
from tierrank.storage import StorageError

# How often a folder is read and written by several processes at once; more for a thorough look.
CONCURRENT = int(os.environ.get("TIERRANK_CONCURRENT_RUNS", "300"))

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


def test_tensors_are_the_bytes_that_safetensors_writes(tmp_path):
    arrays = {
        f"{kind} {shape}": np.arange(np.prod(shape)).reshape(shape).astype(kind)
        for kind in storage.DTYPES
        for shape in [(), (0, 3), (2, 3)]
    } | {'"ü\n': np.zeros(1), "swapped": np.arange(3.0).astype(">f8")}
    storage.write(tmp_path, "model", {}, arrays)
    written = next(tmp_path.glob("*.safetensors")).read_bytes()
    assert written == save(arrays)
    for key, array in load(written).items():
        np.testing.assert_array_equal(array, arrays[key])


@pytest.mark.skipif(os.name != "posix", reason="umask is POSIX's")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_all_files_follow_the_umask(tmp_path, umask):
    old = os.umask(umask)
    try:
        storage.write(tmp_path / "it", "model", CONTENT, ARRAYS)
        storage.replace_file(tmp_path / "it" / "page.html", b"")
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "it").iterdir()}
    assert modes == {0o666 & ~umask}


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
    manifest["checksum"] = storage.checksum(manifest)
    (folder / "model.json").write_bytes(storage.canonical(manifest))


@pytest.mark.parametrize("name", ["../model-0.safetensors", "/etc/passwd", "model.json", ""])
def test_tensors_are_only_looked_for_in_the_folder(folder, name):
    manifest = json.loads((folder / "model.json").read_text())
    data = (folder / manifest["tensors"]["file"]).read_bytes()
    (folder.parent / "model-0.safetensors").write_bytes(data)
    manifest["tensors"]["file"] = name
    forge(folder, manifest, data)
    with pytest.raises(StorageError, match="is missing"):
        storage.read(folder, "model")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\ud800", "\x1b[2J", "a\nb"])
def test_a_monstrous_name_of_the_tensors_is_refused_in_one_line(folder, name):
    manifest = json.loads((folder / "model.json").read_text())
    manifest["tensors"]["file"] = name
    forge(folder, manifest, b"")
    with pytest.raises(StorageError, match="is missing") as caught:
        storage.read(folder, "model")
    said = str(caught.value).removeprefix(str(folder))
    assert said.isprintable()
    assert len(said) < 300


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("where", ["content", "format_version", "written_by", "checksum"])
def test_numbers_that_are_none_are_refused(folder, number, where):
    manifest = json.loads((folder / "model.json").read_text())
    manifest[where] = "HERE"
    text = json.dumps(manifest, indent=1, sort_keys=True).replace('"HERE"', number)
    (folder / "model.json").write_text(text + "\n")
    with pytest.raises(StorageError):
        storage.read(folder, "model")


@pytest.mark.parametrize(
    "tensors", [None, 3, {}, {"file": 3, "sha256": 4}, {"file": "a"},
                {"file": "a", "sha256": "\0" * 64}, {"file": [], "sha256": "0" * 64}],
)  # fmt: skip
def test_a_forged_pointer_to_the_tensors_is_refused(folder, tensors):
    manifest = json.loads((folder / "model.json").read_text())
    manifest["tensors"] = tensors
    manifest["checksum"] = storage.checksum(manifest)
    (folder / "model.json").write_bytes(storage.canonical(manifest))
    with pytest.raises(StorageError):
        storage.read(folder, "model")


def test_a_newer_format_says_who_wrote_it_and_what_to_do(folder):
    manifest = json.loads((folder / "model.json").read_text())
    manifest.update(format_version=storage.FORMAT_VERSION + 1, written_by="9.9")
    (folder / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=r"tierrank 9\.9 in format 3.*Upgrade tierrank"):
        storage.read(folder, "model")


def test_json_nested_too_deep_is_refused(folder):
    (folder / "model.json").write_text("[" * 200_000)
    with pytest.raises(StorageError):
        storage.read(folder, "model")


def test_numbers_that_json_lacks_are_not_written(folder):
    with pytest.raises(ValueError, match="JSON"):
        storage.write(folder, "model", {"x": float("nan")}, {})
    assert storage.read(folder, "model")[0] == CONTENT  # the old one is still there


WRITER = """
import sys, numpy as np
from pathlib import Path
import tierrank as tr
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


SAVER = """
import os, sys, numpy as np
from pathlib import Path
import tierrank as tr
from tierrank import storage
folder, own, saves = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(own)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(saves):
    n = int(rng.integers(3)) if rng.random() < 0.5 else own  # also what another wrote, or writes
    storage.write(folder, "model", {"n": n}, {"w": np.full(2000, float(n))})
"""

LOADER = """
import sys
from pathlib import Path
import tierrank as tr
from tierrank import storage
folder, loads = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(loads):
    content, arrays = storage.read(folder, "model")
    assert (arrays["w"] == content["n"]).all()
"""


@pytest.mark.slow
@pytest.mark.skipif(storage.LOCKS is None, reason="needs flock")
def test_readers_get_the_old_or_the_new_and_writers_pass_each_other(folder):
    """TIERRANK_CONCURRENT_RUNS=10000: as many saves, by three processes, and as many loads."""
    storage.write(folder, "model", {"n": 0}, {"w": np.zeros(2000)})
    saves, loads = str(CONCURRENT // 3 + 1), str(CONCURRENT // 2)
    programs = [[SAVER, str(folder), own, saves] for own in "012"]
    programs += [[LOADER, str(folder), loads]] * 2
    running = [
        subprocess.Popen(
            [sys.executable, "-c", *program], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for program in programs
    ]  # fmt: skip
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in running] == [""] * len(running)
    content, arrays = storage.read(folder, "model")
    assert (arrays["w"] == content["n"]).all()
    assert len(list(folder.iterdir())) == 2  # however often it was written


@pytest.mark.skipif(storage.LOCKS is None, reason="needs flock")
def test_what_a_live_writer_has_half_written_is_left_alone(folder):
    with storage.writing_beside(folder / "model.json") as file:
        file.write(b"half")
        storage.write(folder, "model", {"new": 1}, ARRAYS)
        storage.sweep(folder, "model")
        assert len(list(folder.glob(".*.part"))) == 1
    assert (folder / "model.json").read_bytes() == b"half"
    assert not list(folder.glob(".*.part"))


@pytest.mark.skipif(storage.LOCKS is None, reason="needs flock")
def test_a_leftover_is_swept_away_while_nobody_can_lock_it(folder, monkeypatch):
    """A writer that has just begun the file would find it gone, or lose it later."""
    (folder / ".model.json.77.part").write_text("{")
    unlink = Path.unlink

    def checked(path):
        with path.open("rb+") as file, pytest.raises(BlockingIOError):
            storage.LOCKS.flock(file, storage.LOCKS.LOCK_EX | storage.LOCKS.LOCK_NB)
        unlink(path)

    monkeypatch.setattr(Path, "unlink", checked)
    storage.sweep(folder, "model")
    assert not list(folder.glob(".*.part"))


def test_without_locks_a_half_written_file_is_left_for_a_day(folder, monkeypatch):
    monkeypatch.setattr(storage, "LOCKS", None)
    for name, age in {".model.json.1.part": 3600, ".model.json.2.part": 90_000}.items():
        (folder / name).write_text("{")
        then = time.time() - age
        os.utime(folder / name, (then, then))
    storage.write(folder, "model", {"new": 1}, ARRAYS)
    assert storage.read(folder, "model")[0] == {"new": 1}
    assert [file.name for file in folder.glob(".*")] == [".model.json.1.part"]


def check_what_is_refused(folder, code):
    """Whatever writes names what it was to write, and changes nothing."""
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 10)), np.ones(2000)
    data = RankingData(X, y, np.arange(2000))
    rankings = Rankings.from_rankings([rng.permutation(100).tolist() for _ in range(200)])
    sparse = scipy.sparse.csr_matrix(X)
    labels = MultiLabelData(sparse, (sparse > 0).astype(float))
    writers = {
        "a.txt": lambda path: write_letor(path, X, y, data.qid),
        "a.csv.gz": lambda path: write_table(path, data),
        "a.parquet": lambda path: write_table(path, data),
        "a.jsonl": lambda path: write_rankings(rankings, path),
        "a.toc.xz": lambda path: write_rankings(rankings, path),
        "b.csv": lambda path: write_rankings(rankings, path),
        "xc.txt": lambda path: write_xc(path, labels),
        "y.txt": lambda path: write_xc(path.with_name("x.npz"), labels, labels=path),
        "page.html": lambda path: storage.replace_file(path, bytes(200_000)),
    }
    for name, writer in writers.items():
        with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
            writer(folder / name)
        assert (caught.value.errno, caught.value.filename) == (code, str(folder / name))
    for content, arrays in (({}, {"w": np.zeros(100_000)}), ({"n": "1" * 200_000}, {})):
        with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
            storage.write(folder, "model", content, arrays)
        assert (caught.value.errno, caught.value.filename) == (code, str(folder))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_file_that_grows_beyond_its_limit_is_named(folder, full_disk):
    with full_disk(at=15_000):
        check_what_is_refused(folder, errno.EFBIG)


def test_what_a_full_disk_does_not_take_is_named(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk may not be mounted here")
    try:
        storage.write(tmp_path, "model", CONTENT, ARRAYS)
        check_what_is_refused(tmp_path, errno.ENOSPC)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / ("x" * 250), tmp_path / "file" / "a.csv"):
        with pytest.raises(OSError, match=r"too long|exists|Not a directory") as caught:
            storage.replace_file(path, b"")
        assert ".part" not in str(caught.value)


@pytest.mark.parametrize("damage", [b"{}", b"", b"["])
def test_a_damaged_checkpoint_is_to_be_removed_and_not_fetched(tmp_path, damage):
    storage.write(tmp_path, "checkpoint", CONTENT, ARRAYS)
    manifest = (tmp_path / "checkpoint.json").read_bytes()
    tensors = next(tmp_path.glob("*.safetensors"))
    for file in (tmp_path / "checkpoint.json", tensors):
        whole = file.read_bytes()
        file.write_bytes(damage)
        with pytest.raises(StorageError, match="Remove the folder of this checkpoint") as caught:
            storage.read(tmp_path, "checkpoint")
        assert "fetch" not in str(caught.value)
        file.write_bytes(whole)
    tensors.unlink()
    with pytest.raises(StorageError, match="Remove the folder of this checkpoint"):
        storage.read(tmp_path, "checkpoint")
    assert (tmp_path / "checkpoint.json").read_bytes() == manifest


def test_pipes_and_what_links_lead_to_are_written_and_not_replaced(tmp_path):
    pipe, real, link = tmp_path / "pipe", tmp_path / "real.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    storage.replace_file(pipe, b"some text")
    assert os.read(reader, 100) == b"some text"
    os.close(reader)
    assert pipe.is_fifo()
    real.write_bytes(b"old")
    link.symlink_to(real)
    storage.replace_file(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.csv", "pipe", "real.csv"]


def test_links_that_lead_to_each_other_are_an_error_of_the_disk_that_names_the_path(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.symlink_to(two)
    two.symlink_to(one)
    with pytest.raises(OSError, match="symbolic links") as caught:
        storage.replace_file(one, b"new")
    assert caught.value.filename == str(one)
    assert sorted(tmp_path.iterdir()) == [one, two]
    assert one.is_symlink()


# Several files ---------------------------------------------------------------------------------


ARRAYS = {
    "long": np.arange(101, dtype=np.float32).reshape(101, 1) @ np.ones((1, 7), np.float32),
    "wide": np.arange(40.0).reshape(1, 40),
    "number": np.array(3.5),
    "none": np.zeros((0, 4)),
    "flags": np.array([True, False, True]),
    "names": np.arange(50),
}


class Sent(storage.Spread):
    """An array whose rows come a few at a time."""

    here = True

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.nbytes = (
            array, array.shape, array.dtype, array.nbytes,
        )  # fmt: skip

    def pieces(self):
        """Of several lengths."""
        yield from np.split(self.array, [1, 9, 9, 60])

    def wait(self):
        """For nobody."""


@pytest.mark.parametrize("largest", [1, 100, 333, 1000, 3000, 10**10])
def test_arrays_in_files_of_any_size_are_read_back(tmp_path, largest):
    sent = ARRAYS | {"long": Sent(ARRAYS["long"])}
    storage.write(tmp_path, "model", {"kind": "of test"}, sent, largest)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert (len(files) == 1) == (largest == 10**10)
    widest = max(array.nbytes // max(1, len(array)) for array in ARRAYS.values() if array.shape)
    for file in files:
        data = file.read_bytes()
        held = len(data) - 8 - int.from_bytes(data[:8], "little")
        assert held <= max(largest, widest)
    content, found = storage.read(tmp_path, "model")
    assert content == {"kind": "of test"}
    assert found.keys() == ARRAYS.keys()
    for key, array in ARRAYS.items():
        assert found[key].dtype == array.dtype
        np.testing.assert_array_equal(found[key], array)
    # one file after another, as before, and nothing of the last content stays
    storage.write(tmp_path, "model", {}, {"a": np.arange(3)})
    assert len(list(tmp_path.iterdir())) == 2
    assert json.loads((tmp_path / "model.json").read_text())["format_version"] == 1


def test_a_model_in_several_files_loads_and_a_missing_or_changed_one_is_named(tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 5)), np.repeat(np.arange(12), 5)
    ranker = tr.NeuralRanker(max_epochs=1, random_state=0).fit(X, rng.integers(0, 3, 60), qid=qid)
    tr.save(ranker, tmp_path, largest_file=2000)
    manifest = json.loads((tmp_path / "model.json").read_text())
    assert manifest["format_version"] == 2
    assert len(manifest["tensors"]) > 3
    np.testing.assert_array_equal(tr.load(tmp_path).predict(X), ranker.predict(X))
    last = tmp_path / manifest["tensors"][-1]["file"]
    data = last.read_bytes()
    last.write_bytes(data[:-1] + b"x")
    with pytest.raises(StorageError, match=f"{last.name}: does not have the bytes"):
        tr.load(tmp_path)
    last.unlink()
    with pytest.raises(StorageError, match=f"{last.name}: is missing"):
        tr.load(tmp_path)
