"""Files larger than the memory: text converted once into mapped arrays, whole or refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

import tierrank as tr
from tierrank import storage
from tierrank.data import (
    DataFileError,
    LetorError,
    MultiLabelData,
    RankingData,
    TableError,
    XCError,
    cache,
    read_letor,
    read_letor_fold,
    read_table,
    read_xc,
    write_letor,
    write_table,
    write_xc,
)
from tierrank.data.cache import folder_of, rows_of, scratch
from tierrank.data.letor import read_letor_files

ROWS, FEATURES = 600, 7


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PIECE", 3000)
    monkeypatch.setattr(cache, "KEPT", 2)


def letor(path: Path, density: float = 1.0, qid: Any = None, **more: Any) -> Path:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(ROWS, FEATURES))
    if density < 1:
        X[rng.random(X.shape) > density] = 0
        X = csr_matrix(X)
    y = rng.integers(0, 3, ROWS)
    write_letor(path, X, y, np.repeat(np.arange(60), 10) if qid is None else qid, **more)
    return path


def xc(path: Path, labels: Path | None = None) -> Path:
    X = random_array((ROWS, 50), density=0.1, format="csr", rng=0, dtype=np.float32)
    Y = random_array((ROWS, 30), density=0.05, format="csr", rng=1) > 0
    write_xc(path, MultiLabelData(csr_matrix(X), csr_matrix(Y.astype(np.float32))), labels=labels)
    return path


def same_rows(one: RankingData, other: RankingData) -> None:
    assert one.qid.dtype == other.qid.dtype
    assert np.array_equal(one.qid, other.qid)
    assert np.array_equal(one.y, other.y)
    assert hasattr(one.X, "indptr") == hasattr(other.X, "indptr")
    assert one.X.dtype == other.X.dtype
    dense = [X.toarray() if hasattr(X, "indptr") else X for X in (one.X, other.X)]
    assert np.array_equal(*dense, equal_nan=True)


def same_labels(one: MultiLabelData, other: MultiLabelData) -> None:
    for a, b in ((one.X, other.X), (one.Y, other.Y)):
        assert a.shape == b.shape
        for name in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


# -- the same data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1.0, 0.8, 0.3])  # every cell, a dense matrix, a sparse one
def test_letor_from_a_cache_is_what_is_read_into_memory(tmp_path: Path, density: float) -> None:
    file = letor(tmp_path / "train.txt", density)
    read, kept = read_letor(file), read_letor(file, cache=True)
    same_rows(read, kept)
    assert folder_of(kept.X) == tmp_path / "train.txt.cache"
    assert folder_of(read.X) is None
    same_rows(read, read_letor(file, cache=True))  # now it is only opened


@pytest.mark.parametrize("name", ["train.txt.gz", "train.txt.xz"])
def test_compressed_text_that_starts_at_0_with_words_for_queries(tmp_path: Path, name: str) -> None:
    # the first pieces have numbers alone, as 007, which are words once others are
    words = [f"{query:03}" if query < 40 else f"q{query}" for query in np.repeat(np.arange(60), 10)]
    file = letor(tmp_path / name, 0.3, words, one_based=False)
    same_rows(read_letor(file), read_letor(file, cache=True))
    assert read_letor(file, cache=True).qid[0] == "000"


def test_queries_of_a_file_beside(tmp_path: Path) -> None:
    file = letor(tmp_path / "rank.train")
    lines = [line.split(" ", 2) for line in file.read_text().splitlines()]
    file.write_text("".join(f"{label} {rest}\n" for label, _, rest in lines))
    (tmp_path / "rank.train.query").write_text("10\n" * 60)
    same_rows(read_letor(file), read_letor(file, cache=True))
    (tmp_path / "rank.train.query").write_text("20\n" * 30)  # it belongs to the source
    with pytest.warns(UserWarning, match="converted anew"):
        same_rows(read_letor(file), read_letor(file, cache=True))


def test_files_that_belong_together_agree_on_their_columns(tmp_path: Path) -> None:
    train, valid = letor(tmp_path / "train.txt", 0.3), letor(tmp_path / "vali.txt", 0.3)
    valid.write_text(valid.read_text() + "1 qid:9 0:1 9:2\n")  # starts at 0, and has more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the features that train.txt lacks
        for one, other in zip(
            read_letor_files([train, valid]), read_letor_files([train, valid], cache=True),
            strict=True,
        ):  # fmt: skip
            same_rows(one, other)
    with pytest.warns(UserWarning, match="counted in another way"):
        same_rows(read_letor(train), read_letor(train, cache=True))


@pytest.mark.parametrize("apart", [False, True])
def test_xc_from_a_cache_is_what_is_read_into_memory(tmp_path: Path, apart: bool) -> None:
    labels = tmp_path / "labels.txt.gz" if apart else None
    file = xc(tmp_path / "train.txt", labels)
    kept = read_xc(file, labels=labels, cache=True)
    same_labels(read_xc(file, labels=labels), kept)
    assert folder_of(kept.X) == tmp_path / "train.txt.cache"
    chosen = np.arange(ROWS - 1, 0, -3)
    assert folder_of(kept.select(chosen).X) is not None
    same_labels(kept.select(chosen), read_xc(file, labels=labels).select(chosen))


@pytest.mark.parametrize("header", ["", "603 50 30\n"])
def test_blank_rows_at_the_end_are_counted_as_in_memory(tmp_path: Path, header: str) -> None:
    file = xc(tmp_path / "train.txt")
    file.write_text(header + file.read_text().split("\n", 1)[1] + "\n\n\n")
    same_labels(read_xc(file), read_xc(file, cache=True))
    assert len(read_xc(file, cache=True)) == (603 if header else 600)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
@pytest.mark.parametrize("words", [False, True])
def test_a_table_from_a_cache_is_what_is_read_into_memory(
    tmp_path: Path, name: str, words: bool
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    queries = np.repeat(np.arange(60), 10)
    qid = np.array([str(q) if q < 40 else f"a\n{q}" for q in queries], object) if words else queries
    data = RankingData(X, rng.integers(0, 3, ROWS) / 1, qid, feature_names=("a", "b", "c"))
    write_table(tmp_path / name, data)
    if name.endswith("parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(parquet.read_table(tmp_path / name), tmp_path / name, row_group_size=90)
    how: dict[str, Any] = {"drop": ["b"], "missing": 0.5}
    kept = read_table(tmp_path / name, cache=True, **how)
    same_rows(read_table(tmp_path / name, **how), kept)
    assert kept.feature_names == ("a", "c")
    assert folder_of(kept.X) == tmp_path / f"{name}.cache"

    def stop(path: Path, share: float) -> None:
        raise KeyboardInterrupt

    how["drop"] = ["a"]
    with (
        pytest.warns(UserWarning, match="converted anew"),
        pytest.raises(KeyboardInterrupt),
        cache.watching(stop),
    ):
        read_table(tmp_path / name, cache=True, **how)
    same_rows(read_table(tmp_path / name, **how), read_table(tmp_path / name, cache=True, **how))


def test_what_is_wrong_with_a_table_has_its_place(tmp_path: Path) -> None:
    lines = [f"{row // 10},{row % 3},{row}.5" for row in range(ROWS)]
    lines[500] = "50,1,x"
    table = tmp_path / "a.csv"
    table.write_text("qid,label,x\n" + "\n".join(lines) + "\n")
    with pytest.raises(TableError, match="line 502"):
        read_table(table, cache=True)
    assert not (tmp_path / "a.csv.cache").exists()
    table.write_text("qid,label,x\n")
    with pytest.raises(TableError, match="no row"):
        read_table(table, cache=True)
    table.write_text("")
    with pytest.raises(TableError, match="the file is empty"):
        read_table(table, cache=True)
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(b"")
    with pytest.raises(TableError, match="unpack it"):
        read_table(packed, cache=True)


# -- whole or refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz"])
@pytest.mark.parametrize("write", [letor, xc])
def test_a_conversion_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any, name: str
) -> None:
    file = write(tmp_path / name)
    read = read_letor if write is letor else read_xc
    shares: list[float] = []

    def stop(path: Path, share: float) -> None:
        shares.append(share)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), cache.watching(stop):
            read(file, cache=True)
    folder = tmp_path / f"{name}.cache"
    assert not (folder / "cache.json").exists()  # it does not count as finished
    assert 0 < shares[0] <= shares[1] < 1
    # A writer that was killed had written more than it had kept.
    with (folder / ("values.npy" if write is letor else "columns.npy")).open("ab") as part:
        part.write(b"half of a num")
    starts: list[int] = []
    pieces = cache.pieces
    monkeypatch.setattr(
        cache, "pieces", lambda *of: starts.append(of[3]) or pieces(*of)  # where it goes on
    )  # fmt: skip
    kept = read(file, cache=True)
    assert starts[0] > 0
    (same_rows if write is letor else same_labels)(read(file), kept)
    assert not (folder / "progress.json").exists()


def test_the_second_stage_goes_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierrank.data.cache._NUMBERS", 100 * FEATURES)
    file = letor(tmp_path / "train.txt", 0.8)

    def stop(path: Path, share: float) -> None:
        if share < 1 and (tmp_path / "train.txt.cache" / "X.npy").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), cache.watching(stop):
        read_letor(file, cache=True)
    same_rows(read_letor(file), read_letor(file, cache=True))
    (tmp_path / "train.txt.cache" / "cache.json").unlink()
    with pytest.raises(KeyboardInterrupt), cache.watching(stop):
        read_letor(file, cache=True)
    same_rows(read_letor(file, dense=False), read_letor(file, dense=False, cache=True))
    assert not (tmp_path / "train.txt.cache" / "X.npy").exists()  # of the way not gone


def test_a_source_that_has_changed_is_converted_anew(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")
    before = read_letor(file, cache=True)
    first = before.X[0].copy()
    about = file.stat()
    text = file.read_text()
    file.write_text(text.replace("0 qid", "1 qid", 1))
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))  # same size and time
    with pytest.warns(UserWarning, match=r"train\.txt\.cache: it was made of another file"):
        same_rows(read_letor(file), read_letor(file, cache=True))
    assert np.array_equal(before.X[0], first)  # who had mapped the old one still has it
    with pytest.warns(UserWarning, match="with other options"):
        read_letor(file, cache=True, missing=0.0)


def test_a_stopped_conversion_of_another_file_is_not_gone_on_with(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")

    def stop(path: Path, share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), cache.watching(stop):
        read_letor(file, cache=True)
    letor(file, 0.3)
    same_rows(read_letor(file), read_letor(file, cache=True))


def damaged(folder: Path, how: str) -> str:
    """Damage a cache; the file that is to be named."""
    values = folder / "values.npy"
    if how == "a bit":
        with values.open("r+b") as file:
            file.seek(1000)
            file.write(b"\xff")
    elif how == "cut short":
        os.truncate(values, values.stat().st_size - 8)
    elif how == "gone":
        values.unlink()
    elif how == "header":
        with values.open("r+b") as file:
            file.write(b"\x93NUMPY\x02")
    else:
        path = folder / "cache.json"
        manifest = json.loads(path.read_bytes())
        if how == "byte order":
            manifest["byte_order"] = "big" if sys.byteorder == "little" else "little"
        elif how == "type":
            manifest["arrays"]["values"]["dtype"] = "<f4"
        elif how == "swapped":
            manifest["arrays"]["values"]["dtype"] = ">f8"
        elif how == "shape":
            manifest["arrays"]["values"]["shape"] = [-1, 7]
        elif how == "stranger":
            manifest["arrays"]["../secret"] = manifest["arrays"]["values"]
        elif how == "version":
            manifest["format_version"] = 99
        if how != "not sealed":
            manifest["checksum"] = storage.checksum(manifest)
        else:
            manifest["content"]["found"][0] += 1
        path.write_bytes(storage.canonical(manifest))
        return "byte order" if how in ("byte order", "version") else "cache.json"
    return "values.npy"


@pytest.mark.parametrize(
    "how",
    ["a bit", "cut short", "gone", "header", "byte order", "type", "swapped", "shape", "stranger",
     "version", "not sealed"],
)  # fmt: skip
def test_a_damaged_cache_is_refused_by_name(tmp_path: Path, how: str) -> None:
    file = letor(tmp_path / "train.txt")
    read_letor(file, cache=True)
    named = damaged(tmp_path / "train.txt.cache", how)
    with pytest.raises(LetorError) as refused:
        read_letor(file, cache=True)
    assert "train.txt.cache: " in str(refused.value)
    assert named in str(refused.value)
    assert "Remove the folder" in str(refused.value)


def test_a_fault_of_the_text_has_its_line_and_leaves_nothing(tmp_path: Path) -> None:
    for write, read, error in ((letor, read_letor, LetorError), (xc, read_xc, XCError)):
        file = write(tmp_path / "bad.txt")
        lines = file.read_text().splitlines()
        lines[500] = lines[500].replace(":", ":x", 1) if write is xc else "0 qid:1 1:x"
        file.write_text("\n".join(lines))
        with pytest.raises(error) as in_memory:
            read(file)
        with pytest.raises(error) as in_pieces:
            read(file, cache=True)
        assert "line 501" in str(in_pieces.value)
        assert str(in_pieces.value) == str(in_memory.value)
        assert not (tmp_path / "bad.txt.cache").exists()


def test_who_waited_for_a_file_that_was_refused_begins_in_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, locked, waited = letor(tmp_path / "train.txt"), storage.locked, []

    @contextmanager
    def after_another(path: Path, flags: int) -> Iterator[None]:
        with locked(path, flags):
            if not waited:  # who held the lock has removed the folder with it
                waited.append(path)
                shutil.rmtree(path.parent)
            yield

    monkeypatch.setattr(storage, "locked", after_another)
    same_rows(read_letor(file), read_letor(file, cache=True))
    assert waited
    same_rows(read_letor(file), read_letor(file, cache=True))


def test_a_strangers_progress_reaches_no_other_file(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")

    def stop(path: Path, share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), cache.watching(stop):
        read_letor(file, cache=True)
    (tmp_path / "mine.npy").write_bytes(bytes(1000))
    path = tmp_path / "train.txt.cache" / "progress.json"
    progress = json.loads(path.read_bytes())
    progress["arrays"]["../mine"] = {"dtype": "<f8", "shape": [0], "crc32": 0}
    for lacking in ((), ("byte_order",)):
        changed = {key: value for key, value in progress.items() if key not in lacking}
        changed["checksum"] = storage.checksum(changed)
        path.write_bytes(storage.canonical(changed))
        same_rows(read_letor(file), read_letor(file, cache=True))
        shutil.rmtree(path.parent)
        with pytest.raises(KeyboardInterrupt), cache.watching(stop):
            read_letor(file, cache=True)
    assert (tmp_path / "mine.npy").read_bytes() == bytes(1000)


def test_rows_without_a_query_after_others_are_refused(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")
    with file.open("a") as more:
        more.write("# a comment\n" * 300 + "1 1:2\n" * 500)
    with pytest.raises(LetorError, match="qid"):
        read_letor(file, cache=True)


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_empty_file_is_refused_as_in_memory(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.txt"
    file.write_text(text)
    for read in (read_letor, read_xc) if not text.startswith("#") else (read_letor,):
        with pytest.raises(DataFileError, match=r"no rows|is empty"):
            read(file, cache=True)


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")
    (tmp_path / "train.txt.cache").write_text("a file, and no folder")
    with pytest.raises(LetorError, match=r"train\.txt\.cache: nothing can be written.*cache=fold"):
        read_letor(file, cache=True)
    kept = read_letor(file, cache=tmp_path / "elsewhere")
    assert folder_of(kept.X) == tmp_path / "elsewhere" / "train.txt.cache"


def test_a_finished_cache_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = letor(tmp_path / "train.txt")
    read_letor(file, cache=True)

    def read_only(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(storage, "locked", read_only)
    same_rows(read_letor(file), read_letor(file, cache=True))


def test_a_full_disk_is_named_and_can_be_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = letor(tmp_path / "train.txt")
    left = [3]

    def sync(opened: Any) -> None:
        left[0] -= 1
        if left[0] < -10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(cache, "_sync", sync)
        with pytest.raises(OSError, match=r"No space left.*train\.txt\.cache"):
            read_letor(file, cache=True)
    assert (tmp_path / "train.txt.cache" / "progress.json").exists()
    same_rows(read_letor(file), read_letor(file, cache=True))


def test_no_room_for_what_is_made_of_mapped_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left") as refused:
        scratch(tmp_path, (10, 10), np.dtype(float))
    assert refused.value.filename == str(tmp_path)
    assert not list(tmp_path.iterdir())


def test_comments_are_not_kept_in_a_cache(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="comments"):
        read_letor(letor(tmp_path / "train.txt"), cache=True, keep_comments=True)


# -- the same models -------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_chosen_rows_are_mapped_too(tmp_path: Path, density: float) -> None:
    file = letor(tmp_path / "train.txt", density)
    X, mapped = read_letor(file).X, read_letor(file, cache=True).X
    for rows in (np.arange(ROWS) % 3 > 0, np.array([5, 5, 0, ROWS - 1])):
        chosen = rows_of(mapped, rows)
        assert folder_of(chosen) == tmp_path / "train.txt.cache"
        assert abs(chosen - X[rows]).max() == 0
    names = {each.name for each in (tmp_path / "train.txt.cache").iterdir()}
    assert not any("scratch" in name for name in names)  # gone already, or it would stay


def arrays_of(ranker: Any) -> dict[str, Any]:
    return ranker.to_state()[1]  # type: ignore[no-any-return]


@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize(
    "ranker",
    [
        tr.BoostedRanker(trees=5, random_state=0),
        tr.BoostedRanker(trees=5, library="xgboost", random_state=0),
        tr.LinearRanker(features=["impute", "standardize"]),
        tr.NeuralRanker(hidden=(4,), max_epochs=2, random_state=0),
        tr.NeuralRanker(hidden=(4,), max_epochs=2, features=None, random_state=0),
    ],
    ids=["lightgbm", "xgboost", "linear", "neural", "neural, as it is"],
)
def test_rankers_learn_the_same_from_a_cache(tmp_path: Path, ranker: Any, density: float) -> None:
    file = letor(tmp_path / "train.txt", density)
    states = []
    for where in (False, True):
        data = read_letor(file, cache=where)
        held_out = (data.X[:200], data.y[:200], data.qid[:200])
        ranker.fit(data.X, data.y, qid=data.qid, eval_set=held_out)
        states.append((arrays_of(ranker), ranker.predict(data.X)))
    (one, scores), (other, again) = states
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert np.array_equal(scores, again)


def test_feature_steps_of_mapped_rows_are_on_the_disk(tmp_path: Path) -> None:
    file = letor(tmp_path / "train.txt")
    data, kept = read_letor(file), read_letor(file, cache=True)
    from tierrank.ranking.features import Steps, steps_from

    names = ["impute", "standardize", "query-scale", "second-order"]
    steps = [Steps(steps_from(names)) for _ in range(2)]
    made = [
        each.fit_transform(of.X, of.y, of.qid) for each, of in zip(steps, (data, kept), strict=True)
    ]
    assert np.array_equal(*made)
    assert folder_of(made[1]) is not None


def test_products_of_sparse_mapped_rows_are_refused_by_name(tmp_path: Path) -> None:
    data = read_letor(letor(tmp_path / "train.txt", 0.3), cache=True)
    with pytest.raises(ValueError, match="leave out second-order"):
        tr.BoostedRanker(features="second-order").fit(data.X, data.y, qid=data.qid)


def test_an_extreme_ranker_learns_the_same_from_a_cache(tmp_path: Path) -> None:
    file = xc(tmp_path / "train.txt")
    states = []
    for where in (False, True):
        data = read_xc(file, cache=where)
        ranker = tr.ExtremeRanker(hidden=4, learning_rate=0.01, max_epochs=2, random_state=0)
        states.append(arrays_of(ranker.fit(data.X, data.Y)))
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


def test_a_fold_is_not_cached_unless_asked(tmp_path: Path) -> None:
    letor(tmp_path / "train.txt")
    read_letor_fold(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["train.txt"]
