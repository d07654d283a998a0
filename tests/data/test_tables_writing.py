"""Tables that are written: what is in them, what comes back, what is refused."""

import csv
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from tierrank.data import (
    RankingData,
    read_table,
    write_table,
)
from tierrank.data.tables import ranking_tables as writer

X = np.array([[0.1, 3.0, -0.0], [math.nan, 1e300, -math.inf]])
DATA = RankingData(X, np.array([2, 0.5]), np.array([7, 8]))


def test_the_text_is_plain(tmp_path):
    path = tmp_path / "new" / "data.csv"
    write_table(path, DATA)
    assert path.read_text() == "label,qid,f1,f2,f3\n2,7,0.1,3,-0\n0.5,8,,1e+300,-inf\n"
    named = RankingData(X, DATA.y, np.array(['a"b', "c,d"]), feature_names=("x,1", "é", "z"))
    write_table(path, named, label="grade", query="words")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["grade", "words", "x,1", "é", "z"]
    assert [row[1] for row in rows[1:]] == ['a"b', "c,d"]
    assert [file.name for file in path.parent.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv.xz", "a.csv.bz2", "a.parquet"])
def test_what_is_written_is_read_back_and_the_same_each_time(tmp_path, name):
    write_table(tmp_path / name, DATA)
    first = (tmp_path / name).read_bytes()
    back = read_table(tmp_path / name)
    np.testing.assert_array_equal(back.X, X)
    assert (back.y.tolist(), back.qid.tolist()) == ([2, 0.5], [7, 8])
    assert back.feature_names == ("f1", "f2", "f3")
    write_table(tmp_path / name, DATA)
    assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_sparse_matrix_is_written_dense_and_in_blocks(tmp_path, name, monkeypatch):
    monkeypatch.setattr(writer, "_CELLS_AT_ONCE", 30)
    matrix = scipy.sparse.random(40, 5, 0.3, format="csr", random_state=1)
    write_table(tmp_path / name, RankingData(matrix, np.zeros(40), np.arange(40)))
    np.testing.assert_array_equal(read_table(tmp_path / name).X, matrix.toarray())


def test_other_libraries_read_what_is_written(tmp_path):
    write_table(tmp_path / "a.parquet", DATA)
    write_table(tmp_path / "a.csv", DATA)
    for frame in (pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "a.csv")):
        np.testing.assert_array_equal(frame[["f1", "f2", "f3"]].to_numpy(), X)
        assert frame["qid"].tolist() == [7, 8]
    assert pl.read_csv(tmp_path / "a.csv")["f1"].to_list() == [0.1, None]


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"y": np.array([1, math.nan])}, {}, "label of row 1 is nan"),
        ({"y": np.array([1.0])}, {}, "1 labels, 2 rows of X and 2 qid"),
        ({"y": np.ones(0), "X": np.ones((0, 3)), "qid": np.ones(0, int)}, {}, "there are no rows"),
        ({"qid": np.array(["a", ""])}, {}, "qid of row 1 is ''"),
        ({"qid": np.array(["a", "\ud800"])}, {}, "qid of row 1 is .*UTF-8"),
        ({"qid": np.array(["a", "b\0c"])}, {}, "qid of row 1 is .*NUL"),
        ({"qid": np.array([1.0, 2.0])}, {}, r"qid of row 0 is 1\.0"),
        ({"qid": np.array([1, 2**63], np.uint64)}, {}, r"a qid is over 2\^63"),
        ({"feature_names": ("a", "b")}, {}, "2 feature names for 3 features"),
        ({"feature_names": ("a", "b", "a")}, {}, "two columns would be called 'a'"),
        ({"feature_names": ("a", "b", "")}, {}, "a column cannot be called ''"),
        ({}, {"query": "label"}, "two columns would be called 'label'"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_what_cannot_be_written_is_refused_and_leaves_no_file(
    tmp_path, changed, options, message, name
):
    given = {"X": X, "y": DATA.y, "qid": DATA.qid} | changed
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / name, RankingData(**given), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_csv_would_take_for_missing_can_be_written_as_parquet(tmp_path):
    data = RankingData(X, DATA.y, np.array(["a", "NA"], dtype=object))
    with pytest.raises(ValueError, match="in CSV the query 'NA' is a missing value"):
        write_table(tmp_path / "a.csv", data)
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "a.parquet", data)
    assert read_table(tmp_path / "a.parquet").qid.tolist() == ["a", "NA"]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path, name, monkeypatch):
    path = tmp_path / name
    path.write_text("old")
    monkeypatch.setattr(writer, "_CELLS_AT_ONCE", 5)

    class Fails(np.ndarray):
        def __getitem__(self, rows):
            return 1 / 0 if rows.start else super().__getitem__(rows)

    with pytest.raises(ZeroDivisionError):
        write_table(path, RankingData(X.view(Fails), DATA.y, DATA.qid))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
