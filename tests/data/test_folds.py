"""Folders of folds: which files make one, and what is refused."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from real_data import real
from tierrank.data import DataFileError, RankingData, read_folds, read_letor, write_table


def _write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)
        (folder / name).write_bytes(pack(text.encode()))


def _letor(qid, features="1:0.5 2:0.25"):
    return f"1 qid:{qid} {features}\n0 qid:{qid} {features}\n"


def _queries(fold):
    return [np.unique(data.qid).tolist() for data in (fold.train, fold.valid, fold.test)]


@pytest.mark.parametrize("valid", ["vali.txt", "valid.txt.gz", "val.svm", "VALIDATION.txt.xz"])
def test_one_train_vali_and_test_are_one_fold(tmp_path, valid):
    _write(tmp_path / "mine", {"train.txt": _letor(1), valid: _letor(2), "test.txt": _letor(3)})
    _write(tmp_path / "mine", {"README.md": "x", "S1.txt": "x", "train.txt.query": "2"})
    (fold,) = read_folds(tmp_path / "mine")
    assert (fold.name, repr(fold)) == ("mine", "Fold('mine')")
    assert _queries(fold) == [[1], [2], [3]]


def test_folders_of_folds_come_in_the_order_of_their_numbers(tmp_path):
    for i in range(1, 12):
        part = {"train.txt.gz": _letor(i), "vali.txt": _letor(i + 20), "test.txt": _letor(i + 40)}
        _write(tmp_path / f"Fold{i}", part)
    folds = read_folds(tmp_path)
    assert [fold.name for fold in folds] == [f"Fold{i}" for i in range(1, 12)]
    assert _queries(folds[9]) == [[10], [30], [50]]


@pytest.mark.parametrize("name", ["S{}.txt", "A{}.txt.xz", "p{}.svm.gz"])
def test_five_numbered_parts_make_the_five_folds_of_letor(tmp_path, name):
    _write(tmp_path, {name.format(i): _letor(i) for i in range(1, 6)})
    folds = read_folds(tmp_path)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    assert [_queries(fold) for fold in folds] == [
        [[1, 2, 3], [4], [5]],
        [[2, 3, 4], [5], [1]],
        [[3, 4, 5], [1], [2]],
        [[1, 4, 5], [2], [3]],
        [[1, 2, 5], [3], [4]],
    ]
    assert folds[3].train.qid.tolist() == [4, 4, 5, 5, 1, 1]


def test_letor_files_of_a_fold_agree_on_their_columns(tmp_path):
    files = {
        "train.txt": _letor(1, "2:1"),
        "vali.txt": _letor(2, "3:1"),
        "test.txt": _letor(3, "0:1 3:1"),
    }
    _write(tmp_path / "a", files)
    (fold,) = read_folds(tmp_path / "a")
    with pytest.warns(UserWarning, match=r"train\.txt has 3 features, and vali\.txt 4"):
        assert len(fold.train) == 2
    assert [data.n_features for data in (fold.train, fold.valid, fold.test)] == [4, 4, 4]
    _write(tmp_path / "b", {f"S{i}.txt": _letor(i, f"{i}:{i} 100:1") for i in range(1, 6)})
    train = read_folds(tmp_path / "b")[1].train
    assert scipy.sparse.issparse(train.X)
    assert train.X[:, :6].toarray().tolist() == [
        row for i in (2, 3, 4) for row in [[i * (j == i - 1) for j in range(6)]] * 2
    ]


def test_missing_values_are_kept_or_filled(tmp_path):
    _write(tmp_path, {f"A{i}.txt": _letor(i, "1:NULL 2:3") for i in range(1, 6)})
    assert np.isnan(read_folds(tmp_path)[0].train.X).sum() == 6
    assert read_folds(tmp_path, missing=0.0)[0].train.X.tolist() == [[0, 3]] * 6


@pytest.mark.parametrize("ends", [[".csv"] * 5, [".parquet", ".csv", ".tsv.gz", ".csv.xz", ".csv"]])
def test_tables_are_joined_by_the_names_of_their_columns(tmp_path, ends):
    for i, end in enumerate(ends, start=1):
        names = ("x", "y") if i % 2 else ("y", "x")
        X = np.array([[i, -i]], dtype=float) if i % 2 else np.array([[-i, i]], dtype=float)
        qid = np.array([f"query {i}"], dtype=object)
        data = RankingData(X, np.array([1.0]), qid, feature_names=names)
        write_table(tmp_path / f"S{i}{end}", data, label="grade", query="q")
    folds = read_folds(tmp_path, label="grade", query="q")
    assert folds[0].train.X.tolist() == [[1, -1], [2, -2], [3, -3]]
    assert folds[0].train.qid.tolist() == ["query 1", "query 2", "query 3"]
    assert folds[0].train.feature_names == folds[0].test.feature_names == ("x", "y")
    assert read_folds(tmp_path, label="grade", query="q", drop=["x"])[0].test.X.tolist() == [[-5]]


def test_numbered_and_named_queries_do_not_mix(tmp_path):
    _write(tmp_path, {f"S{i}.txt": _letor(i if i < 5 else "x") for i in range(1, 6)})
    train = read_folds(tmp_path)[2].train
    assert train.qid.tolist() == ["3", "3", "4", "4", "x", "x"]
    assert len(train.tiers()) == 3
    _write(tmp_path, {"S5.txt": _letor("x") + _letor(2)})
    with pytest.raises(DataFileError, match=r"S5\.txt: query '2' stands in S2\.txt too"):
        read_folds(tmp_path)[2].train  # noqa: B018


def test_a_query_in_two_parts_is_refused(tmp_path):
    _write(tmp_path, {f"S{i}.txt": _letor(i % 4) for i in range(1, 6)})
    folds = read_folds(tmp_path)
    with pytest.raises(DataFileError, match=r"S5\.txt: query 1 stands in S1\.txt too: a query"):
        folds[0].test  # noqa: B018


def test_queries_numbered_anew_in_train_vali_and_test_stay_apart(tmp_path):
    _write(tmp_path, {"train.txt": _letor(1), "vali.txt": _letor(1), "test.txt": _letor(1)})
    assert _queries(read_folds(tmp_path)[0]) == [[1], [1], [1]]


def test_files_are_read_once_when_first_asked_for(tmp_path, monkeypatch):
    _write(tmp_path, {f"S{i}.txt": _letor(i) for i in range(1, 6)})
    read = []
    import tierrank.data.files as parsing

    whole = parsing.read_bytes
    monkeypatch.setattr(
        parsing, "read_bytes", lambda path, *a: read.append(path) or whole(path, *a)
    )
    folds = read_folds(tmp_path)
    assert read == []
    for fold in folds:
        assert fold.train is fold.train
        assert len(fold.valid) == len(fold.test) == 2
    assert sorted(path.name for path in read) == [f"S{i}.txt" for i in range(1, 6)]
    first = folds[0].train
    folds[0].release()
    assert folds[0].train is not first
    np.testing.assert_array_equal(folds[0].train.X, first.X)
    assert len(read) == 5


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"has no folds: they are folders Fold1, .* S1\.txt to S5\.txt"),
        ({"train.txt": ""}, "has no vali or valid or val or validation file"),
        ({"train.txt": "", "vali.txt": ""}, "has no test file"),
        ({"train.txt": "", "train.txt.gz": ""}, r"has both train\.txt and train\.txt\.gz"),
        ({"train.csv": "", "vali.csv": "", "val.csv": ""}, r"has both val\.csv and vali\.csv"),
        ({f"S{i}.txt": "" for i in (1, 2, 4)}, "has the parts S1, S2, S4: folds need S1 to S5"),
        ({f"S{i}.txt": "" for i in range(1, 7)}, "S5, S6: folds need S1 to S5, and no other"),
        ({f"{c}1.txt": "" for c in "SA"}, "has parts A and S"),
        ({f"S{i}.txt": "" for i in range(1, 6)} | {"S3.csv": ""}, r"has both S3\.csv and S3\.txt"),
    ],
)
def test_a_folder_without_whole_folds_is_refused(tmp_path, files, message):
    _write(tmp_path, files)
    with pytest.raises(DataFileError, match=message):
        read_folds(tmp_path)


def test_folders_of_folds_must_be_whole(tmp_path):
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(DataFileError, match=r"Fold1: has no train file"):
        read_folds(tmp_path)
    (tmp_path / "Fold3").mkdir()
    with pytest.raises(DataFileError, match="has folds 1, 3: one between them is missing"):
        read_folds(tmp_path)
    with pytest.raises(DataFileError, match="is not a folder"):
        read_folds(tmp_path / "absent")


def test_files_of_a_fold_that_do_not_fit_are_refused(tmp_path):
    table = "label,qid,x\n1,1,1\n"
    _write(tmp_path, {"train.csv": table, "vali.txt": _letor(1), "test.csv": table})
    with pytest.raises(DataFileError, match=r"vali\.txt: is no table, but train\.csv is"):
        read_folds(tmp_path)[0].train  # noqa: B018
    (tmp_path / "vali.txt").unlink()
    _write(tmp_path, {"vali.csv": "label,qid,x,z\n1,1,1,1\n"})
    with pytest.raises(DataFileError, match=r"vali\.csv: the column 'z' is in vali\.csv alone"):
        read_folds(tmp_path)[0].train  # noqa: B018
    assert read_folds(tmp_path, features=["x"])[0].valid.X.tolist() == [[1]]
    _write(tmp_path / "letor", {f"{n}.txt": _letor(1) for n in ("train", "vali", "test")})
    with pytest.raises(DataFileError, match="columns have names in tables alone"):
        read_folds(tmp_path / "letor", drop=["x"])[0].train  # noqa: B018


# Real data ---------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "letter", "queries", "rows", "features"),
    [("mq2008", "S", 784, 15_211, 46), ("mq2007-agg", "A", 1_692, 69_623, 21)],
)
def test_each_row_of_letor_is_tested_once_and_in_no_fold_twice(
    name, letter, queries, rows, features
):
    folder = real(name)
    folds = read_folds(folder)
    assert sum(len(fold.test) for fold in folds) == rows
    assert sum(fold.test.n_queries for fold in folds) == queries
    for i, fold in enumerate(folds):
        train, valid, test = (set(data.qid) for data in (fold.train, fold.valid, fold.test))
        assert len(train) + len(valid) + len(test) == len(train | valid | test) == queries
        assert fold.train.n_features == features
        assert fold.test.X.shape == (len(fold.test), features)
        expected = read_letor(folder / f"{letter}{(i + 4) % 5 + 1}.txt.xz")
        np.testing.assert_array_equal(fold.test.X, expected.X)
        fold.release()
    assert np.isnan(folds[0].test.X).any() == (name == "mq2007-agg")


@pytest.mark.data
def test_the_mslr_sample_is_one_fold():
    (fold,) = read_folds(real("mslr-web10k-sample"))
    assert fold.name == "mslr-web10k-sample"
    assert [len(data) for data in (fold.train, fold.valid, fold.test)] == [5_555, 1_734, 1_900]
