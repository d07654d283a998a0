"""Parts of data, cut between queries."""

import numpy as np
import pytest
import scipy.sparse

from tierrank.data import RankingData
from tierrank.ranking.comparison import hold_out, split_folds


def data(queries=10, *, sparse=False, strings=False):
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(queries), rng.integers(1, 5, size=queries)))
    X = np.arange(2.0 * len(qid)).reshape(-1, 2) + 1
    return RankingData(
        scipy.sparse.csr_matrix(X) if sparse else X,
        np.arange(float(len(qid))),
        np.array([f"q{number}" for number in qid], dtype=object) if strings else qid,
        comments=tuple(map(str, range(len(qid)))),
        feature_names=("a", "b"),
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("strings", [False, True])
def test_queries_stay_whole_and_rows_keep_their_order(sparse, strings):
    whole = data(sparse=sparse, strings=strings)
    rest, held = hold_out(whole, 0.3, seed=1)
    assert (rest.n_queries, held.n_queries) == (7, 3)
    assert set(rest.qid).isdisjoint(held.qid)
    assert sorted([*rest.y, *held.y]) == whole.y.tolist()
    for part in (rest, held):
        assert (np.diff(part.y) > 0).all()
        X = part.X.toarray() if sparse else part.X
        assert (X[:, 0] == 2 * part.y + 1).all()  # features and labels still belong together
        assert part.comments == tuple(str(int(y)) for y in part.y)
        assert part.feature_names == ("a", "b")


def test_the_seed_decides_which():
    held = [set(hold_out(data(), 0.3, seed=seed)[1].qid.tolist()) for seed in (1, 1, 2)]
    assert held[0] == held[1] != held[2]


@pytest.mark.parametrize(("fraction", "held"), [(0.001, 1), (0.999, 9), (0.25, 2)])
def test_at_least_one_query_is_on_each_side(fraction, held):
    assert hold_out(data(), fraction, seed=0)[1].n_queries == held


@pytest.mark.parametrize("fraction", [0, 1, -0.1, float("nan")])
def test_a_share_that_is_none_is_refused(fraction):
    with pytest.raises(ValueError, match="lies between 0 and 1"):
        hold_out(data(), fraction, seed=0)


def test_one_query_cannot_be_split():
    with pytest.raises(ValueError, match="one query only"):
        hold_out(data(1), 0.5, seed=0)
    with pytest.raises(ValueError, match="one query only"):
        split_folds(data(1), 2, seed=0)


@pytest.mark.parametrize("folds", [2, 3, 10])
def test_every_query_is_tested_once(folds):
    whole = data()
    cut = split_folds(whole, folds, seed=3)
    assert len(cut) == folds
    tested = [query for _, test in cut for query in set(test.qid.tolist())]
    assert sorted(tested) == list(range(10))
    for train, test in cut:
        assert set(train.qid).isdisjoint(test.qid)
        assert len(train) + len(test) == len(whole)
        assert test.n_queries in (10 // folds, 10 // folds + 1)


@pytest.mark.parametrize("folds", [1, 11])
def test_folds_that_cannot_be_are_refused(folds):
    with pytest.raises(ValueError, match="10 queries make 2 to 10 folds"):
        split_folds(data(), folds, seed=0)
