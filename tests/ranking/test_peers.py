"""Rankers of other libraries under our protocol."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import tierrank as tr
from tierrank import metrics
from tierrank.data import RankingData
from tierrank.ranking import peers
from tierrank.ranking.boosted import by_size
from tierrank.ranking.comparison import compare, query_folds
from tierrank.ranking.peers import ALL, peer_from

FEW = {
    "trees": 12, "learning_rate": 0.3, "leaves": 4, "min_rows_per_leaf": 20, "row_fraction": 1.0,
    "feature_fraction": 1.0, "patience": 3, "threads": 1,
}  # fmt: skip
each_peer = pytest.mark.parametrize("name", ALL)


@pytest.fixture(scope="module")
def parts():
    """Rows to learn from, to stop by, to be judged by; no query's rows stand together."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4))
    y = np.digitize(X @ [2.0, -1.0, 0.5, 0.0] + rng.gumbel(size=600), [0, 2]).astype(float)
    qid = rng.permutation(np.repeat(np.arange(50), 12))
    return [
        RankingData(X[own], y[own], qid[own])
        for own in (qid < 25, (qid >= 25) & (qid < 40), qid >= 40)
    ]


def fitted(name, parts, **settings):
    train, valid, _ = parts
    given = (valid.X, valid.y, valid.qid)
    return peer_from(name, **FEW | settings).fit(train.X, train.y, qid=train.qid, eval_set=given)


@each_peer
def test_fits_stop_by_our_metric_and_keep_its_best_trees(name, parts):
    train, valid, test = parts
    seen = []
    peer = peer_from(name, **FEW).fit(
        train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid), watch=seen.append
    )
    history = peer.history_
    found = metrics.ndcg(peer.predict(valid.X), valid.y, qid=valid.qid, k=10)
    assert found == pytest.approx(history.best_metric, abs=1e-6)
    assert history.best_metric == max(history.metric)
    assert len(seen) == len(history.steps) <= min(12, history.best_step + 3)
    assert metrics.ndcg(peer.predict(test.X), test.y, qid=test.qid) > 0.75


@each_peer
def test_the_order_of_rows_is_no_matter_and_sparse_rows_are_fine(name, parts):
    train, valid, test = parts
    order = np.argsort(train.qid, kind="stable")
    one = fitted(name, parts)
    other = peer_from(name, **FEW).fit(
        csr_matrix(train.X[order]), train.y[order], qid=train.qid[order],
        eval_set=(csr_matrix(valid.X), valid.y, valid.qid),
    )  # fmt: skip
    if name == "lightgbm:lambdarank":  # all others draw at random, by the number of a query
        np.testing.assert_allclose(one.predict(test.X), other.predict(test.X), atol=1e-6)
    assert np.isfinite(other.predict(csr_matrix(test.X))).all()


def test_a_refit_learns_from_all_rows_for_the_best_size_times_their_ratio(parts):
    import lightgbm

    train, valid, test = parts
    peer = fitted("lightgbm:lambdarank", parts, refit=True)
    best = fitted("lightgbm:lambdarank", parts).history_.best_step
    qid = np.concatenate([train.qid, valid.qid])
    order = np.argsort(qid, kind="stable")
    X, y = np.concatenate([train.X, valid.X])[order], np.concatenate([train.y, valid.y])[order]
    trees = round(best * 40 / 25)
    booster = lightgbm.train(
        {"objective": "lambdarank", "num_leaves": 4, "learning_rate": 0.3, "lambda_l2": 1.0,
         "min_data_in_leaf": 20, "verbosity": -1, "seed": 0, "deterministic": True,
         "force_col_wise": True, "num_threads": 1},
        lightgbm.Dataset(X, y, group=np.full(40, 12)), num_boost_round=trees,
    )  # fmt: skip
    np.testing.assert_allclose(peer.predict(test.X), booster.predict(test.X))
    with pytest.raises(ValueError, match=r"refit learns once more .* give an eval_set"):
        peer.fit(train.X, train.y, qid=train.qid)


@pytest.mark.parametrize("refit", [False, "auto"])
@pytest.mark.parametrize("row_fraction", [1.0, 0.6])
def test_members_are_other_models_and_their_scores_are_averaged(parts, refit, row_fraction):
    test = parts[2]
    settings = {"refit": refit, "row_fraction": row_fraction}
    one = fitted("xgboost:rank:pairwise", parts, **settings)
    several = fitted("xgboost:rank:pairwise", parts, members=3, **settings)
    scores = [several._predict(model, test.X, kept) for model, kept in several._models]
    np.testing.assert_allclose(scores[0], one.predict(test.X))
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[1], scores[2])
    np.testing.assert_allclose(several.predict(test.X), np.mean(scores, axis=0), rtol=1e-6)


def test_settings_by_size_are_those_of_boosted_rankers(parts):
    train, _, test = parts
    auto = dict.fromkeys(
        ("leaves", "min_rows_per_leaf", "row_fraction", "feature_fraction"), "auto"
    )
    by_rule = by_size(len(train))
    one, other = (fitted("lightgbm:lambdarank", parts, members=2, **own) for own in (auto, by_rule))
    np.testing.assert_array_equal(one.predict(test.X), other.predict(test.X))


def test_without_validation_rows_all_trees_are_kept(parts):
    train, _, test = parts
    for name in ALL[::2]:
        peer = peer_from(name, **FEW).fit(train.X, train.y, qid=train.qid)
        assert peer.history_.best_step is None
        assert peer._models[0][1] == 12
        assert metrics.ndcg(peer.predict(test.X), test.y, qid=test.qid) > 0.75


def test_peers_stand_beside_ours_in_a_comparison(parts):
    folds = query_folds(parts[0], 2)
    rankers = {"ours": tr.LinearRanker(), **{name: peer_from(name, **FEW) for name in ALL[:3]}}
    results = list(compare(rankers, folds, [metrics.from_name("ndcg@10")]))
    assert [each.failure for each in results] == [None] * 8
    assert all(each.best_step >= 1 for each in results)


def test_names_that_there_are_not_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'xgboost:rank:ndcg'"):
        peer_from("xgboost:rank:ndgc")


@pytest.mark.parametrize(
    ("name", "command"),
    [("catboost:YetiRank", "pip install catboost"), (ALL[0], r'pip install "tierrank\[boost\]"')],
)
def test_a_peer_that_is_not_installed_is_answered_with_what_installs_it(monkeypatch, name, command):
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=f"which is not installed: {command}"):
        peer_from(name)
