"""One door for all files: the format is told by the name."""

import gzip
import lzma

import numpy as np
import pytest

from tierrank.data import (
    DataFileError,
    LetorError,
    TableError,
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
        ("train.svmlight.gz", gzip.compress(LETOR.encode())),
        ("train.txt.XZ", lzma.compress(LETOR.encode())),
        ("train.csv", CSV.encode()),
        ("train.CSV.gz", gzip.compress(CSV.encode())),
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
