"""Several rankers on the same folds."""

import numpy as np
import pytest

import tierrank as tr
from tierrank import metrics
from tierrank.data import RankingData
from tierrank.ranking.comparison import Comparison, compare, query_folds
from tierrank.ranking.peers import peer_from


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3))
    y = np.digitize(X @ [2.0, -1.0, 0.0] + rng.gumbel(size=240), [0, 2]).astype(float)
    return RankingData(X, y, np.repeat(np.arange(30), 8))


def test_folds_have_three_parts_that_share_no_query(data):
    folds = query_folds(data, 3, valid_fraction=0.25, seed=5)
    for fold in folds:
        train, valid, test = (set(part.qid) for part in (fold.train, fold.valid, fold.test))
        assert (len(train), len(valid), len(test)) == (15, 5, 10)
        assert train | valid | test == set(range(30))
    assert set().union(*(fold.test.qid for fold in folds)) == set(range(30))


def test_every_ranker_meets_the_same_queries_in_the_same_order(data):
    folds = query_folds(data, 3)
    rankers = {"a": tr.LinearRanker(), "b": tr.LinearRanker("listnet")}
    measures = [metrics.from_name("ndcg@5"), metrics.from_name("map")]
    seen = []
    comparison = Comparison()
    for result in compare(rankers, folds, measures, starting=lambda *names: seen.append(names)):
        comparison.add(result)
    assert seen == [(name, f"fold {i}") for i in (1, 2, 3) for name in "ab"]
    assert not hasattr(rankers["a"], "coef_")  # copies were fitted
    values = []
    for fold in folds:
        train, valid, test = fold.train, fold.valid, fold.test
        ranker = tr.LinearRanker("listnet").fit(
            train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid)
        )
        values += metrics.ndcg(
            ranker.predict(test.X), test.y, qid=test.qid, k=5, reduction="none"
        ).tolist()
    found = {(each.name, each.metric): each for each in comparison.standings()}
    assert found["b", "ndcg@5"].mean == pytest.approx(np.mean(values), abs=1e-12)
    assert found["b", "ndcg@5"].queries == 30
    assert found["b", "map"].difference is not None
    assert set(comparison.seconds()) == {"a", "b"}


def test_one_that_fails_is_not_tried_again_and_left_out(data):
    rankers = {"bad": tr.LinearRanker(objective_params={"q": 1}), "good": tr.LinearRanker()}
    comparison = Comparison()
    for result in compare(rankers, query_folds(data, 2), [metrics.from_name("map")]):
        comparison.add(result)
    assert [(each.name, each.fold) for each in comparison.results] == [
        ("bad", "fold 1"), ("good", "fold 1"), ("good", "fold 2"),
    ]  # fmt: skip
    assert list(comparison.failures) == ["bad"]
    assert "objective_params do not fit" in comparison.failures["bad"]
    assert [each.name for each in comparison.standings()] == ["good"]


def test_if_all_fail_it_says_why(data):
    comparison = Comparison()
    rankers = {"bad": tr.LinearRanker(objective_params={"q": 1})}
    for result in compare(rankers, query_folds(data, 2), [metrics.from_name("map")]):
        comparison.add(result)
    with pytest.raises(ValueError, match="no ranker could be fitted: fold 1: objective_params"):
        comparison.standings()


def test_categories_stay_what_they_are_and_are_refused_for_peers():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(2)
    kinds, worth = tuple("abcdef"), np.array([0.0, 3.0, -3.0, 2.0, -2.0, 1.0])
    code = rng.integers(6, size=4000)
    y = np.digitize(worth[code] + rng.gumbel(size=4000), [0, 2]).astype(float)
    rows = RankingData(
        code[:, None].astype(float), y, np.repeat(np.arange(400), 10),
        feature_names=("kind",), categories={"kind": kinds},
    )  # fmt: skip
    (fold, _) = query_folds(rows, 2)
    rankers = {
        "ours": tr.BoostedRanker(trees=5, random_state=0),
        "theirs": peer_from("lightgbm:lambdarank", trees=5),
    }
    found = {each.name: each for each in compare(rankers, [fold], [metrics.from_name("ndcg@5")])}
    ours = tr.BoostedRanker(trees=5, random_state=0)
    ours.fit(fold.train, fold.train.y, qid=fold.train.qid, eval_set=fold_rows(fold.valid))
    scores = ours.predict(fold.test, qid=fold.test.qid)
    expected = metrics.ndcg(scores, fold.test.y, qid=fold.test.qid, k=5, reduction="none")
    np.testing.assert_allclose(found["ours"].values["ndcg@5"], expected, rtol=0, atol=1e-12)
    assert ours.categories_  # the trees knew
    assert "columns with categories (kind)" in found["theirs"].failure


def fold_rows(part):
    return part, part.y, part.qid
