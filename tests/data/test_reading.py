"""One door for all files: the format is told by the name."""

import bz2
import gzip
import lzma
import pickle
import subprocess
import sys
import textwrap
import tracemalloc
from functools import partial

import numpy as np
import pyarrow
import pytest
import scipy.sparse
from pyarrow import parquet

from tierrank import data
from tierrank.data import (
    DataFileError,
    LetorError,
    TableError,
    files,
    rankings,
    read,
    read_table,
    write_letor,
    write_table,
)

LETOR = "2 qid:7 1:0.5 2:3\n0 qid:7 1:NULL 2:4\n"
CSV = "qid,label,x,y\n7,2,0.5,3\n7,0,,4\n"
EXPECTED = [[0.5, 3], [np.nan, 4]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.txt", LETOR.encode()),
        ("rank.train", LETOR.encode()),
        ("train", LETOR.encode()),
        ("train.csv.txt", LETOR.encode()),
        ("train.svmlight.gz", gzip.compress(LETOR.encode(), mtime=0)),
        ("train.txt.XZ", lzma.compress(LETOR.encode())),
        ("train.csv", CSV.encode()),
        ("train.CSV.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("train.tsv.xz", lzma.compress(CSV.replace(",", "\t").encode())),
    ],
)
def test_the_name_tells_the_format(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    data = read(tmp_path / name)
    np.testing.assert_array_equal(data.X, EXPECTED)
    assert (data.y.tolist(), data.qid.tolist()) == ([2, 0], [7, 7])
    assert read(str(tmp_path / name), missing=-1).X.tolist() == [[0.5, 3], [-1, 4]]


def test_parquet_is_known_too_and_all_formats_hold_the_same(tmp_path):
    (tmp_path / "a.txt").write_text(LETOR)
    data = read(tmp_path / "a.txt")
    write_letor(tmp_path / "b.txt", data.X, data.y, data.qid)
    for name in ("b.parquet", "b.csv", "b.tsv.bz2"):
        write_table(tmp_path / name, data)
    for name in ("b.txt", "b.parquet", "b.csv", "b.tsv.bz2"):
        np.testing.assert_array_equal(read(tmp_path / name).X, EXPECTED)


def test_columns_of_tables_are_passed_on(tmp_path):
    (tmp_path / "a.csv").write_text("q,grade,x,y,url\na,1,2,3,u\n")
    data = read(tmp_path / "a.csv", label="grade", query="q", features=["y"])
    assert (data.X.tolist(), data.qid.tolist()) == ([[3]], ["a"])
    assert read(tmp_path / "a.csv", label="grade", query="q", drop=["url"]).n_features == 2


def test_a_given_format_goes_before_the_name(tmp_path):
    (tmp_path / "a.csv").write_text(LETOR)
    assert read(tmp_path / "a.csv", format="letor").n_features == 2
    (tmp_path / "a.txt").write_text(CSV)
    assert read(tmp_path / "a.txt", format="csv").feature_names == ("x", "y")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(CSV.replace(",", "\t").encode()))
    assert read(tmp_path / "a.txt.gz", format="tsv").feature_names == ("x", "y")
    with pytest.raises(TableError, match="is not a Parquet file"):
        read(tmp_path / "a.txt", format="parquet")
    with pytest.raises(ValueError, match="format is one of csv, tsv, parquet, not 'letor'"):
        read_table(tmp_path / "a.csv", format="letor")
    with pytest.raises(ValueError, match="format is one of auto, letor, csv, tsv, parquet, not"):
        read(tmp_path / "a.csv", format="xlsx")


def test_the_number_of_features_widens_letor_and_is_checked_in_tables(tmp_path):
    (tmp_path / "a.txt").write_text(LETOR)
    (tmp_path / "a.csv").write_text(CSV)
    assert read(tmp_path / "a.txt", n_features=3).n_features == 3
    assert read(tmp_path / "a.txt", n_features=3, one_based=False).n_features == 3
    with pytest.raises(LetorError, match="pass a larger n_features"):
        read(tmp_path / "a.txt", n_features=1)
    assert read(tmp_path / "a.csv", n_features=2).n_features == 2
    with pytest.raises(DataFileError, match=r"a\.csv: has 2 feature columns, but should have 3"):
        read(tmp_path / "a.csv", n_features=3)


def test_letor_files_have_no_named_columns(tmp_path):
    (tmp_path / "a.txt").write_text(LETOR)
    for options in ({"features": ["x"]}, {"drop": ["x"]}):
        with pytest.raises(DataFileError, match=r"a\.txt: columns have names in tables alone"):
            read(tmp_path / "a.txt", **options)


def test_a_folder_is_refused_with_a_hint(tmp_path):
    (tmp_path / "train.txt").write_text(LETOR)
    with pytest.raises(DataFileError, match=r"is a folder: .*read_letor_fold.*read_folds"):
        read(tmp_path)


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    for name in ("a.txt", "a.csv", "a.parquet"):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / name)


# -- files that are made to fill the memory -------------------------------------------------------

BLANK = {".gz": gzip.open, ".xz": partial(lzma.open, preset=0), ".bz2": bz2.open}


@pytest.fixture
def small_allowance(monkeypatch):
    """A MiB may always be expanded: a bomb need not be larger to be known as one."""
    monkeypatch.setattr(files, "ALWAYS_ALLOWED", 1 << 20)
    monkeypatch.setattr(files, "_BLOCK", 1 << 16)


def bomb(path, start=b"", size=4 << 20, fill=b"\n"):
    with BLANK[path.suffix](path, "wb") as file:
        file.write(start + fill * size)
    return path


READERS = {
    "a.txt": (data.read, b"1 qid:1 1:1\n"),
    "b.csv": (data.read, b"label,qid,x\n1,1,1\n"),
    "b.tsv": (data.read_table, b"label\tqid\tx\n1\t1\t1\n"),
    "c.letor": (data.read_letor, b"1 qid:1 1:1\n"),
    "d.jsonl": (data.read_rankings, b'["a", "b"]\n'),
    "e.soc": (data.read_rankings, b"# ALTERNATIVE NAME 1: a\n1: 1\n"),
    "f.csv": (data.read_rankings, b"list,item,rank\n1,a,1\n"),
    "i.jsonl": (rankings.read_jsonl_rankings, b'["a", "b"]\n'),
    "j.soc": (rankings.read_preflib, b"# ALTERNATIVE NAME 1: a\n1: 1\n"),
    "k.csv": (rankings.read_long_rankings, b"list,item,rank\n1,a,1\n"),
    "l.csv": (rankings.read_games, b"a,b,winner\nx,y,x\n"),
    "m.csv": (rankings.read_preferences, b"list,winner,loser\n1,x,y\n"),
    "n.csv": (rankings.read_paired_ranks, b"list,team1,team2,rank1,rank2\n1,x,y,1,2\n"),
    "o.csv": (rankings.read_wide_rankings, b"x,y\n1,2\n"),
    "g.xc": (data.read_xc, b"1 2 2\n0 1:1\n"),
    "h.xc": (data.read_xc_features, b"1 2\n1:1\n"),
}


@pytest.mark.parametrize("suffix", BLANK)
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_expands_too_far_is_refused_by_name_and_can_be_allowed(
    tmp_path, small_allowance, name, suffix
):
    reader, start = READERS[name]
    path = bomb(tmp_path / f"{name}{suffix}", start)
    with pytest.raises(DataFileError, match="max_expansion=") as caught:
        reader(path)
    assert str(caught.value).startswith(f"{path}: expands to more than 1 MiB")
    assert reader(path, max_expansion=1e9) is not None
    with pytest.raises(DataFileError, match="max_expansion="):
        reader(path)  # it was allowed once


def test_a_matrix_and_a_table_that_expand_too_far_are_refused(tmp_path, small_allowance):
    zeros = scipy.sparse.csr_matrix((1, 10))
    zeros.indices = zeros.data = np.zeros(1 << 20, dtype=np.int32)
    scipy.sparse.save_npz(tmp_path / "x.npz", zeros)
    columns = {name: np.zeros(1 << 20) for name in ("label", "qid", "x")}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    for reader, path in ((data.read_xc_features, "x.npz"), (data.read, "x.parquet")):
        with pytest.raises(DataFileError, match="max_expansion="):
            reader(tmp_path / path)
        reader(tmp_path / path, max_expansion=1e6)


def test_ordinary_files_may_expand_as_ordinary_files_do(tmp_path):
    path = bomb(tmp_path / "a.txt.gz", b"1 qid:1 1:1\n", size=4 << 20)
    assert len(data.read(path)) == 1


@pytest.mark.parametrize("times", [0, -1, float("nan"), "x", "500", [2]])
def test_a_limit_that_allows_nothing_is_refused(tmp_path, times):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(ValueError, match="max_expansion is a number of times"):
        data.read(tmp_path / "a.txt", max_expansion=times)


@pytest.mark.slow
def test_a_file_of_newlines_does_not_take_the_memory(tmp_path):
    """8 GB of newlines are 8 MB of gzip: it is refused before much of it is expanded."""
    block = gzip.compress(b"\n" * (1 << 28))
    with (tmp_path / "a.txt.gz").open("wb") as file:
        for _ in range(32):
            file.write(block)
    code = f"""
        import resource, tierrank as tr
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            tr.data.read({str(tmp_path / "a.txt.gz")!r})
        except tr.data.DataFileError:
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) >> 10)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True,
                         capture_output=True, text=True)  # fmt: skip
    assert int(ran.stdout) < 2500  # MiB: 200 times the file's 8, and a little


# -- one long word among many short ones ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["letor", "csv", "jsonl", "long", "games", "soc"])
def test_one_long_name_takes_the_memory_of_one(tmp_path, kind):
    rows, long = 6000, "q" * 300_000
    names = [f"w{row}" for row in range(rows)] + [long]
    texts = {
        "letor": ("a.txt", "".join(f"1 qid:{name} 1:1\n" for name in names)),
        "csv": ("a.csv", "label,qid,x\n" + "".join(f"1,{name},1\n" for name in names)),
        "jsonl": ("a.jsonl", "".join(f'["{name}", "b"]\n' for name in names)),
        "long": ("a.csv", "list,item,rank\n" + "".join(f"1,{name},1\n" for name in names)),
        "games": ("a.csv", "first,second,winner\n"
                  + "".join(f"{name},b,first\n" for name in names)),
        "soc": ("a.soi", "".join(f"# ALTERNATIVE NAME {i + 1}: {name}\n"
                                 for i, name in enumerate(names)) + "1: 1\n"),
    }  # fmt: skip
    name, text = texts[kind]
    (tmp_path / name).write_text(text)
    tracemalloc.start()
    try:
        if kind in ("letor", "csv"):
            found = data.read(tmp_path / name)
            assert found.qid[-1] == long
            assert found.n_queries == rows + 1
        else:
            found = data.read_rankings(tmp_path / name)
            assert long in found.items
        assert tracemalloc.get_traced_memory()[1] < 100 << 20  # 6,001 rows as wide take 7.2 GB
    finally:
        tracemalloc.stop()


def test_memory_for_rows_is_by_the_lines_that_are_not_empty(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\n" * (3 << 20) + b"1 qid:1 1:1\n\n2 qid:1 1:2")
    tracemalloc.start()
    try:
        assert data.read(tmp_path / "a.txt").y.tolist() == [1, 2]
        assert tracemalloc.get_traced_memory()[1] < 20 << 20  # 48 bytes a line would be 144 MiB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("bad.txt", "1 qid:1 1:x\n", data.read),  # a line and a column
        ("bad.csv", "label,qid,x\n1,1,word\n", data.read),
        ("bad.soc", "# FILE NAME: bad.soc\n", data.read_rankings),
        ("unclear.csv", "a,b,c\nx,y,z\n", data.read_rankings),
    ],
)
def test_what_is_wrong_with_a_file_comes_back_from_another_process(tmp_path, name, content, read):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=name) as caught:
        read(tmp_path / name)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
    assert {k: v for k, v in vars(again).items() if k != "readings"} == {
        k: v for k, v in vars(caught.value).items() if k != "readings"
    }
