"""Parts of a file, one a rank: whole queries, all rows once, and no more bytes than its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks import on_threads
from tierrank.data import RankingData, read, read_folds, read_letor, write_letor
from tierrank.data.files import DataFileError
from tierrank.data.letor import LetorError

KNOWN = {"n_features": 3, "one_based": True}


def some_rows(seed, longest=8):
    rng = np.random.default_rng(seed)
    queries = int(rng.integers(1, 30))
    qid = np.repeat(rng.permutation(queries) + 7, rng.integers(1, longest, queries))
    X = rng.normal(size=(len(qid), 3)).round(3)
    return X, rng.integers(0, 3, len(qid)), qid


def write_parquet(path, X, y, qid, **options):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    parquet.write_table(pa.table({"qid": qid, "label": y, **columns}), path, **options)


def assert_parts(parts, whole):
    for name in ("X", "y", "qid"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(found, getattr(whole, name))
    queries = [query for part in parts for query in set(part.qid.tolist())]
    assert len(queries) == len(set(queries))


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_letor_text_are_whole_queries_and_all_rows_once(tmp_path, seed):
    path, rng = tmp_path / "data.txt", np.random.default_rng(seed)
    write_letor(path, *some_rows(seed))
    lines = [
        line + b"# a comment\n \n" * (rng.random() < 0.2)
        for line in path.read_bytes().splitlines(keepends=True)
    ]
    text = (b"\xef\xbb\xbf" if seed % 3 == 0 else b"") + b"".join(lines)
    path.write_bytes(text.rstrip(b"\n") if seed % 4 == 0 else text)
    whole = read_letor(path, dense=True)
    for ranks in (1, 2, 3, 50):
        parts = [read(path, part=(rank, ranks), **KNOWN) for rank in range(ranks)]
        assert_parts(parts, whole)


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_parquet_are_whole_queries_and_all_rows_once(tmp_path, seed):
    path, rng = tmp_path / "data.parquet", np.random.default_rng(seed)
    write_parquet(path, *some_rows(seed), row_group_size=int(rng.integers(1, 40)))
    whole = read(path)
    for ranks in (1, 2, 3, 50):
        assert_parts([read(path, part=(rank, ranks)) for rank in range(ranks)], whole)


def test_queries_that_are_words_numbers_with_zeros_or_longer_than_a_block_stay_whole(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tierrank.data.letor._BACK", 10)
    path = tmp_path / "data.txt"
    path.write_text("".join(f"1 qid:{qid} 1:1\n" for qid in ["07", "7"] * 9 + ["a-b"] * 10))
    for ranks in (2, 3, 7):
        parts = [
            read_letor(path, part=(rank, ranks), n_features=1, one_based=True)
            for rank in range(ranks)
        ]
        assert [len(part) for part in parts if len(part)] == [18, 10]


def test_what_cannot_be_cut_is_read_whole_for_a_part_of_the_queries(tmp_path):
    X, y, qid = some_rows(1)
    shuffled = np.random.default_rng(0).permutation(len(qid))  # not even adjacent
    write_letor(tmp_path / "packed.txt.gz", X[shuffled], y[shuffled], qid[shuffled])
    plain = tmp_path / "plain.txt"
    write_letor(plain, X, y, qid)
    (tmp_path / "bare.txt").write_bytes(
        b"".join(b" ".join(line.split()[:1] + line.split()[2:]) + b"\n"
                 for line in plain.read_bytes().splitlines())
    )  # fmt: skip
    counts = "\n".join(str(count) for count in RankingData(X, y, qid).tiers().lengths.tolist())
    (tmp_path / "bare.txt.query").write_text(counts)
    write_table = pytest.importorskip("tierrank.data.tables").write_table
    write_table(tmp_path / "table.csv", RankingData(X[shuffled], y[shuffled], qid[shuffled]))
    for name in ("packed.txt.gz", "bare.txt", "table.csv"):
        known = {} if name.endswith("csv") else KNOWN
        parts = [read(tmp_path / name, part=(rank, 3), **known) for rank in range(3)]
        whole = read(tmp_path / name)
        assert sum(map(len, parts)) == len(whole)
        assert sum(part.n_queries for part in parts) == whole.n_queries
        assert all(len(part) for part in parts)


def bytes_read():
    """By this process so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not tell")
@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_a_rank_reads_no_more_bytes_than_its_part(tmp_path, kind):
    rng, path = np.random.default_rng(0), tmp_path / f"data.{kind}"
    qid = np.repeat(np.arange(2000), 20)
    X, y = rng.normal(size=(len(qid), 8)), rng.integers(0, 3, len(qid))
    known = {"n_features": 8, "one_based": True} if kind == "txt" else {}
    if kind == "txt":
        write_letor(path, X, y, qid)
    else:
        write_parquet(path, X, y, qid, row_group_size=1000)
    size = path.stat().st_size
    assert size > 2e6
    read(path, part=(0, 40), **known)  # loads the modules
    for ranks in (2, 4):
        for rank in range(ranks):
            before = bytes_read()
            data = read(path, part=(rank, ranks), **known)
            found = bytes_read() - before
            assert len(data) == pytest.approx(len(qid) / ranks, rel=0.02)
            assert found == pytest.approx(size / ranks, rel=0.1), (rank, ranks)


def test_ranks_settle_together_how_many_features_there_are_and_where_they_begin(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:1 2:1\n1 qid:2 0:3 1:1 2:5\n1 qid:3 1:4 2:2\n1 qid:4 3:1\n")
    parts = on_threads(2, lambda ranks: read(path, part=(ranks.rank, 2)))
    assert_parts(
        [replace(part, X=part.X.toarray()) for part in parts], read_letor(path, dense=True)
    )
    assert {part.n_features for part in parts} == {4}

    def refused(ranks):
        with pytest.raises(LetorError) as caught:
            read_letor(path, part=(ranks.rank, 2), one_based=True)
        return str(caught.value)

    said = f"{path}: the feature index is 0, but one_based=True says they start at 1: pass False."
    assert on_threads(2, refused) == [said] * 2


def test_a_line_that_is_wrong_is_named_as_in_the_whole_file(tmp_path):
    path = tmp_path / "data.txt"
    lines = [f"1 qid:{row // 5} 1:0.5\n" for row in range(40)]
    lines[33] = "1 qid:6 1:x\n"
    path.write_text("".join(lines))
    read_letor(path, part=(0, 2), n_features=1, one_based=True)
    with pytest.raises(LetorError, match="line 34, column 9: the value 'x'"):
        read_letor(path, part=(1, 2), n_features=1, one_based=True)
    X, y, qid = np.ones((40, 1)), np.ones(40), np.arange(40) // 5
    y[33] = np.nan
    write_parquet(tmp_path / "data.parquet", X, y, qid)
    with pytest.raises(DataFileError, match="row 34: the label is missing"):
        read(tmp_path / "data.parquet", part=(1, 2))


def test_what_is_no_part_or_needs_the_other_ranks_is_refused(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:1\n")
    for wrong in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=r"part is \(rank, ranks\), with ranks counted from 0"):
            read(path, part=wrong)
    with pytest.raises(ValueError, match=r"no group of 2 processes.*give n_features and one_based"):
        read(path, part=(0, 2))
    path.write_text("# nothing\n")
    with pytest.raises(LetorError, match="has no rows"):
        read(path, part=(0, 2), **KNOWN)


def test_folds_come_in_parts_too(tmp_path):
    data = [some_rows(seed) for seed in range(5)]
    for number, (X, y, qid) in enumerate(data, start=1):
        write_letor(tmp_path / f"S{number}.txt", X, y, qid + 100 * number)
    (whole, *_), parts = (
        [read_folds(tmp_path, part=part)[0] for part in several]
        for several in ([None], [(0, 2), (1, 2)])
    )
    for name in ("train", "valid", "test"):
        halves = [getattr(fold, name) for fold in parts]
        together = sorted(np.concatenate([half.y for half in halves]).tolist())
        assert together == sorted(getattr(whole, name).y.tolist())
        assert all(len(half) for half in halves)
    fold = tmp_path / "Fold1"
    fold.mkdir()
    for name, rows in zip(("train", "vali", "test"), data, strict=False):
        write_letor(fold / f"{name}.txt", *rows)
    (whole,) = read_folds(fold)
    halves = on_threads(2, lambda ranks: read_folds(fold, part=(ranks.rank, 2))[0]._load()[0])
    assert_parts(halves, whole.train)
