"""Data sets as the experiments read them: which rows train and test, and what is filled in."""

import numpy as np
import pytest
from folds import FILLED, YAHOO, DataSet, filled

from tierrank.data import RankingData


@pytest.fixture
def rows():
    random = np.random.default_rng(1)
    return random.normal(size=(40, 2)), random.integers(0, 3, 40), np.repeat(np.arange(20), 2)


def test_every_query_of_five_parts_is_tested_once_and_never_trained_on(parts):
    tested = []
    for number, fold in enumerate(DataSet(parts, 0.1, 0)):
        assert fold.name == f"Fold{number + 1}"
        used = [set(part.qid) for part in (fold.train, fold.valid, fold.test)]
        assert [len(queries) for queries in used] == [36, 12, 12]
        assert len(set.union(*used)) == 60
        # fold i trains on parts i, i + 1, i + 2 and tests on i + 4, counting round
        assert {qid // 100 for qid in used[0]} == {(number + j) % 5 for j in range(3)}
        assert {qid // 100 for qid in used[2]} == {(number + 4) % 5}
        tested += sorted(used[2])
    assert len(tested) == len(set(tested)) == 60


def test_one_file_is_split_between_queries(tmp_path, rows, write_rows):
    path = tmp_path / "all.txt"
    write_rows(path, *rows)
    data = DataSet(path, 0.25, 7)
    (fold,) = data
    assert fold.valid is None
    assert (fold.train.n_queries, fold.test.n_queries) == (15, 5)
    assert not set(fold.train.qid) & set(fold.test.qid)
    assert "25%" in data.notes[0]
    chosen = data.with_validation(fold)
    assert (chosen.train.n_queries, chosen.valid.n_queries) == (11, 4)
    assert not set(chosen.train.qid) & set(chosen.valid.qid)
    (again,), (other,) = DataSet(path, 0.25, 7), DataSet(path, 0.25, 8)
    assert set(again.test.qid) == set(fold.test.qid) != set(other.test.qid)


def test_the_training_file_of_yahoo_is_split_as_in_the_paper(tmp_path, rows, write_rows):
    write_rows(tmp_path / YAHOO[0], *rows)
    (fold,) = DataSet(tmp_path, 0.1, 0)
    assert (fold.train.n_queries, fold.test.n_queries) == (18, 2)


def test_all_files_of_yahoo_are_used_on_demand(tmp_path, rows, write_rows):
    X, y, qid = rows
    for number, name in enumerate(YAHOO):
        write_rows(tmp_path / name, X[: 10 + number], y[: 10 + number], qid[: 10 + number])
    (fold,) = DataSet(tmp_path, 0.0, 0)
    assert [len(part) for part in (fold.train, fold.valid, fold.test)] == [10, 11, 12]


def test_sparse_rows_become_dense(tmp_path):
    path = tmp_path / "sparse.txt"
    path.write_text("".join(f"{i % 2} qid:{i // 2} {1 + i % 9}:{i + 1}\n" for i in range(20)))
    (fold,) = DataSet(path, 0.2, 0)
    assert isinstance(fold.train.X, np.ndarray)
    assert (fold.train.X != 0).sum() == len(fold.train)


def test_who_is_not_ranked_comes_after_the_last_of_the_query():
    nan = np.nan
    X = np.array([[1.0, nan], [nan, nan], [3.0, 5.0], [7.0, nan], [nan, 2.0], [5.0, 2.0]])
    qid = np.array(["a", "a", "a", "b", "b", "b"])
    ready = filled(RankingData(X, np.zeros(6), qid)).X
    # query a, first feature: ranks 1, 4, 3, from 0 to 1; b, second feature: 3, 2, 2
    assert ready[:, 0].tolist() == pytest.approx([0, 1, 2 / 3, 2 / 3, 1, 0])
    assert ready[:, 1].tolist() == [1, 1, 0, 1, 0, 0]


def test_a_feature_that_nobody_of_the_query_has_is_constant():
    X = np.array([[np.nan], [np.nan], [2.0]])
    assert filled(RankingData(X, np.zeros(3), np.array([1, 1, 2]))).X.tolist() == [[0], [0], [0]]


def test_filling_is_noted(tmp_path):
    for part in range(1, 6):
        (tmp_path / f"A{part}.txt").write_text(f"1 qid:{part} 1:3\n0 qid:{part} 1:NULL\n")
    data = DataSet(tmp_path, 0.1, 0)
    assert [fold.test.X.tolist() for fold in data] == [[[0.0], [1.0]]] * 5
    assert data.notes == [FILLED]


@pytest.mark.parametrize(
    ("share", "files", "message"),
    [
        (1.0, [], "--split is a share"),
        (0.0, ["set1.train.txt"], "needs set1.valid.txt and set1.test.txt too"),
        (0.1, [], "has no"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, share, files, message):
    for name in files:
        (tmp_path / name).write_text("1 qid:1 1:1\n0 qid:2 1:1\n")
    with pytest.raises(ValueError, match=message):
        DataSet(tmp_path, share, 0)


def test_one_file_without_a_share_to_test_on_is_refused(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("1 qid:1 1:1\n")
    with pytest.raises(ValueError, match="must hold out a share"):
        DataSet(path, 0.0, 0)
