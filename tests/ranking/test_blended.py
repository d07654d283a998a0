"""BlendedRanker: what it adds up, by which weights, and that it is kept and exported whole."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import tierrank as tr
from tierrank.ranking.blended import RIDGE

pytest.importorskip("lightgbm", reason="lightgbm is not installed")

SMALL = {
    "boosted": {"trees": 15, "threads": 1, "min_rows_per_leaf": 3},
    "neural": {"hidden": (8,), "max_epochs": 4},
    "random_state": 0,
}


def rows(seed=0, lists=30, missing=0.0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(lists), rng.integers(2, 12, lists))
    X = rng.normal(size=(len(qid), 4))
    score = X[:, 0] + np.abs(X[:, 1]) + 0.8 * rng.normal(size=len(X))
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.digitize(score, [0, 1]).astype(float), qid


X, Y, QID = rows(missing=0.05)
VALID = rows(1, lists=20)


def blended(**more):
    return tr.BlendedRanker(**{**SMALL, **more})


def test_scores_are_the_weighted_sum_and_weights_minimise_the_validation_loss():
    ranker = blended().fit(X, Y, qid=QID, eval_set=VALID)
    names = list(ranker.rankers_)
    assert names == ["boosted", "linear", "neural"]
    columns = np.stack(
        [ranker.rankers_[n].predict(VALID[0]).astype(float) / ranker.scales_[n] for n in names], 1
    ).astype(float)
    weights = np.array([ranker.weights_[n] for n in names])
    np.testing.assert_allclose(ranker.predict(VALID[0]), columns @ weights, rtol=1e-10)
    within = [columns[VALID[2] == each] for each in range(20)]
    spread = np.concatenate([each - each.mean(axis=0) for each in within]).std(axis=0)
    np.testing.assert_allclose(spread, 1.0, rtol=1e-6)
    tiers = tr.Tiers.from_labels(VALID[1], qid=VALID[2])

    def loss(w):
        value = -tr.log_prob(torch.from_numpy(columns @ w), tiers).mean()
        return float(value) + RIDGE / 2 * float(w @ w)

    best = minimize(loss, np.ones(3), bounds=[(0, None)] * 3, method="L-BFGS-B")  # scipy's bounds
    assert loss(weights) <= best.fun + 1e-4
    np.testing.assert_allclose(weights, best.x, atol=0.05)
    assert (weights >= 0).all()
    assert ranker.history_.best_metric == pytest.approx(
        ranker.score(VALID[0], VALID[1], qid=VALID[2])
    )
    for name in names:
        own = ranker.rankers_[name].score(*VALID[:2], qid=VALID[2])
        assert ranker.validation_[name] == pytest.approx(own)


def test_a_ranker_that_orders_the_wrong_way_has_no_weight():
    X, y, qid = rows(2)
    against = X.copy(), y.max() - y, qid  # validation lists say the opposite
    ranker = blended(neural=False).fit(X, y, qid=qid, eval_set=against)
    assert all(weight == 0 or weight > 0 for weight in ranker.weights_.values())
    assert min(ranker.weights_.values()) >= 0


def test_without_an_eval_set_a_fifth_of_the_lists_is_held_out_and_then_learned_from():
    ranker = blended(neural=False).fit(X, Y, qid=QID)
    again = blended(neural=False).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(ranker.predict(X), again.predict(X))
    refitted = blended(neural=False, refit="auto").fit(X, Y, qid=QID)
    assert refitted.weights_ == ranker.weights_
    assert refitted.history_.refit == 1
    settings = {"features": ["impute", "standardize"], "l2": 1e-3, "random_state": 0}
    whole = tr.LinearRanker(**settings).fit(X, Y, qid=QID)
    np.testing.assert_allclose(refitted.rankers_["linear"].predict(X), whole.predict(X), rtol=1e-6)
    assert not np.allclose(ranker.rankers_["linear"].predict(X), whole.predict(X))


def test_one_list_cannot_be_held_out_and_weights_are_equal():
    ranker = blended(neural=False).fit(X[:40], Y[:40], group=[40])
    assert set(ranker.weights_.values()) == {0.5}


def test_only_lists_that_weigh_something_count_as_held_out():
    heavy = np.zeros(30)
    heavy[[2, 5]] = 1
    ranker = blended(neural=False).fit(X, Y, qid=QID, weights=heavy)
    assert set(ranker.weights_.values()) == {0.5}
    one_label = np.where(QID < 20, 0, Y)
    with pytest.raises(ValueError, match="every list that weighs more than 0 has one label only"):
        blended().fit(X, one_label, qid=QID, weights=np.arange(30) < 20)


def test_saved_loaded_and_exported_it_scores_the_same(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    ranker = blended(refit=True, members=2).fit(X, Y, qid=QID, eval_set=VALID)
    tr.save(ranker, tmp_path / "model")
    loaded = tr.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert (loaded.weights_, loaded.validation_) == (ranker.weights_, ranker.validation_)
    assert loaded.history_ == ranker.history_
    path = tr.export(ranker, tmp_path / "ranker.onnx")
    sent = X.astype(np.float32)
    (scores,) = onnxruntime.InferenceSession(path).run(None, {"features": sent})
    np.testing.assert_allclose(scores, ranker.predict(sent), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="cannot be exported to solr"):
        tr.export(ranker, tmp_path / "ranker.json", "solr")


def test_stopped_it_goes_on_to_the_same(tmp_path):
    whole = blended(refit=True).fit(X, Y, qid=QID, eval_set=VALID)
    seen = []

    def stop(step):
        seen.append(step.run)
        if step.run == "neural, refit":
            raise KeyboardInterrupt

    fit = {"qid": QID, "eval_set": VALID, "checkpoint": tmp_path, "checkpoint_every": 0}
    with pytest.raises(KeyboardInterrupt):
        blended(refit=True).fit(X, Y, **fit, watch=stop)
    order = [name for name, _ in itertools.groupby(seen)]
    assert order[:3] == ["boosted", "linear", "neural"]
    on = blended(refit=True).fit(X, Y, **fit)
    np.testing.assert_array_equal(on.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({"boosted": False, "linear": False, "neural": False}, {}, "are all False"),
        ({"boosted": True}, {}, "boosted is a mapping of its settings"),
        ({}, {"init_model": "model"}, "does not go on from an init_model"),
        ({"refit": "yes"}, {}, "refit is True, False or"),
        ({"scaling": "list"}, {}, 'scaling is "global", "query" or "auto"'),
        ({}, {"positions": QID}, "takes no positions"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, fit, message):
    with pytest.raises(ValueError, match=message):
        blended(**settings).fit(X, Y, qid=QID, **fit)


# Scores by their list ------------------------------------------------------------------------


def by_own_list(scores, qid):
    """Divided by the standard deviation in each list, list by list; 1 where that is 0."""
    found = scores.astype(float)
    for each in np.unique(qid):
        own = found[qid == each]
        found[qid == each] = own / own.std() if len(set(own)) > 1 else own
    return found


def test_scaled_by_query_scores_are_divided_by_their_own_lists_spread(tmp_path):
    ranker = blended(scaling="query").fit(X, Y, qid=QID, eval_set=VALID)
    names = list(ranker.rankers_)
    columns = np.stack(
        [by_own_list(ranker.rankers_[n].predict(VALID[0]), VALID[2]) for n in names], 1
    )
    weights = np.array([ranker.weights_[n] for n in names])
    np.testing.assert_allclose(ranker.predict(VALID[0], qid=VALID[2]), columns @ weights)
    assert set(ranker.scales_.values()) == {1.0}
    tiers = tr.Tiers.from_labels(VALID[1], qid=VALID[2])

    def loss(w):
        value = -tr.log_prob(torch.from_numpy(columns @ w), tiers).mean()
        return float(value) + RIDGE / 2 * float(w @ w)

    best = minimize(loss, np.ones(3), bounds=[(0, None)] * 3, method="L-BFGS-B")
    assert loss(weights) <= best.fun + 1e-4
    with pytest.raises(ValueError, match=r"predict\(X, qid=qid\)"):
        ranker.predict(X)
    tr.save(ranker, tmp_path / "model")
    loaded = tr.load(tmp_path / "model")
    assert loaded.scaling_ == "query"
    np.testing.assert_array_equal(loaded.predict(X, qid=QID), ranker.predict(X, qid=QID))


def test_auto_takes_the_scaling_with_the_smaller_validation_loss():
    losses = {
        scaling: blended(scaling=scaling).fit(X, Y, qid=QID, eval_set=VALID).history_.loss[0]
        for scaling in ("global", "query", "auto")
    }
    ranker = blended(scaling="auto").fit(X, Y, qid=QID, eval_set=VALID)
    assert losses["global"] != losses["query"]
    assert ranker.scaling_ == min(("global", "query"), key=losses.get)
    assert losses["auto"] == min(losses.values())


def test_scaled_by_query_it_is_exported_list_by_list(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    ranker = blended(scaling="query").fit(X, Y, qid=QID, eval_set=VALID)
    path = tr.export(ranker, tmp_path / "ranker.onnx")
    session = onnxruntime.InferenceSession(path)
    for each in np.unique(QID):
        sent = X[each == QID].astype(np.float32)
        (scores,) = session.run(None, {"features": sent})
        expected = ranker.predict(sent, qid=np.zeros(len(sent)))
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    (scores,) = session.run(None, {"features": np.repeat(sent[:1], 3, axis=0)})  # all the same
    assert np.isfinite(scores).all()


def test_a_blend_that_was_saved_before_there_was_a_choice_is_scaled_globally():
    ranker = blended(neural=False).fit(X, Y, qid=QID, eval_set=VALID)
    info, arrays = ranker.to_state()
    del info["params"]["scaling"], info["learned"]["scaling"]
    back = tr.BlendedRanker.from_state(info, arrays)
    assert back.scaling_ == "global"
    np.testing.assert_array_equal(back.predict(X), ranker.predict(X))
    info["learned"]["scaling"] = "list"
    with pytest.raises(ValueError, match="there is no scaling 'list'"):
        tr.BlendedRanker.from_state(info, arrays)
