"""`fit(init_model=…)`: going on from what was learned before."""

from __future__ import annotations

import numpy as np
import pytest

import tierrank as tr


def rows(seed=0, lists=40, width=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(lists * 10, width))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)), [0, 1]).astype(float)
    return X, y, np.repeat(np.arange(lists), 10)


def boosted(library, **more):
    settings = {
        "leaves": 7, "random_state": 3, "row_fraction": 0.8, "feature_fraction": 1.0, "threads": 1
    }  # fmt: skip
    if library == "lightgbm":
        settings["min_rows_per_leaf"] = 5
    return tr.BoostedRanker(library=library, **settings | more)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_more_trees_are_those_of_one_long_fit(library):
    X, y, qid = rows()
    held_out = rows(1)
    whole = boosted(library, trees=50).fit(X, y, qid=qid, eval_set=held_out)
    half = boosted(library, trees=25, patience=None).fit(X, y, qid=qid)
    before = half.predict(X)
    rest = boosted(library, trees=25).fit(X, y, qid=qid, eval_set=held_out, init_model=half)
    assert rest.history_.steps[0] == 25
    assert len(rest.forest_) == rest.history_.best_step
    shared = min(len(rest.forest_), len(whole.forest_))
    assert shared > 25
    for name, array in rest.forest_.first(shared).arrays().items():
        np.testing.assert_array_equal(array, whole.forest_.first(shared).arrays()[name], name)
    np.testing.assert_array_equal(half.predict(X), before)  # is left as it is


def test_what_the_objective_learned_is_gone_on_from():
    X, y, qid = rows()
    whole = boosted("lightgbm", objective="davidson", trees=50).fit(X, y, qid=qid)
    half = boosted("lightgbm", objective="davidson", trees=25).fit(X, y, qid=qid)
    rest = boosted("lightgbm", objective="davidson", trees=25).fit(X, y, qid=qid, init_model=half)
    np.testing.assert_allclose(rest.predict(X), whole.predict(X), rtol=1e-6)
    assert rest.objective_state_ == pytest.approx(whole.objective_state_, rel=1e-6)


def test_trees_of_the_other_library_may_come_before(tmp_path):
    X, y, qid = rows()
    first = boosted("xgboost", trees=10).fit(X, y, qid=qid)
    tr.save(first, tmp_path / "model")
    both = boosted("lightgbm", trees=10).fit(X, y, qid=qid, init_model=tmp_path / "model")
    assert len(both.forest_) == 20
    assert both.history_.loss[0] == pytest.approx(first.history_.loss[-1], rel=1e-5)
    assert both.history_.loss[-1] < first.history_.loss[-1]


def test_what_makes_nothing_better_leaves_the_model_before():
    X, y, qid = rows()
    first = boosted("lightgbm", trees=40).fit(X, y, qid=qid, eval_set=(X, y, qid))
    noise = np.random.default_rng(5).permutation(y)
    after = boosted("lightgbm", trees=30, patience=5, learning_rate=0.5).fit(
        X, noise, qid=qid, eval_set=(X, y, qid), init_model=first
    )
    assert len(after.forest_) == len(first.forest_)
    np.testing.assert_array_equal(after.predict(X), first.predict(X))

    network = tr.NeuralRanker(max_epochs=15, random_state=0).fit(X, y, qid=qid)
    after = tr.NeuralRanker(max_epochs=8, patience=2, learning_rate=0.1, random_state=0).fit(
        X, noise, qid=qid, eval_set=(X, y, qid), init_model=network
    )
    assert after.history_.steps[0] == 0
    assert after.history_.best_step == 0
    np.testing.assert_array_equal(after.predict(X), network.predict(X))


def test_a_network_goes_on_and_keeps_its_scaling():
    X, y, qid = rows()
    first = tr.NeuralRanker(max_epochs=10, random_state=0).fit(X, y, qid=qid)
    steps, loss = first.steps_, first.history_.loss[-1]
    more = tr.NeuralRanker(max_epochs=10, random_state=1).fit(
        3 * X + 1, y, qid=qid, init_model=first
    )
    assert more.steps_ is steps
    more = tr.NeuralRanker(max_epochs=10, random_state=1).fit(X, y, qid=qid, init_model=first)
    assert more.history_.loss[0] < 1.1 * loss < first.history_.loss[0]
    assert more.history_.loss[-1] < loss
    # a ranker may go on from itself
    again = first.fit(X, y, qid=qid, init_model=first)
    assert again.history_.loss[-1] < loss


def test_a_linear_ranker_begins_at_its_minimum():
    X, y, qid = rows()
    first = tr.LinearRanker(l2=1e-3, tol=0.0).fit(X, y, qid=qid)
    again = tr.LinearRanker(l2=1e-3, tol=0.0).fit(X, y, qid=qid, init_model=first)
    np.testing.assert_allclose(again.coef_, first.coef_, rtol=1e-9, atol=1e-12)
    assert again.n_iter_ < first.n_iter_


def test_a_continued_fit_resumes_from_its_checkpoint(tmp_path):
    X, y, qid = rows()
    first = boosted("lightgbm", trees=10).fit(X, y, qid=qid)
    ranker = boosted("lightgbm", trees=60)
    whole = ranker.fit(X, y, qid=qid, init_model=first).predict(X)

    def stop(progress):
        if progress.done == 45:
            raise RuntimeError("stop")

    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0.0, "init_model": first}
    with pytest.raises(RuntimeError, match="stop"):
        boosted("lightgbm", trees=60).fit(X, y, qid=qid, watch=stop, **kept)
    resumed = boosted("lightgbm", trees=60).fit(X, y, qid=qid, **kept)
    assert len(resumed.forest_) == 70
    np.testing.assert_array_equal(resumed.predict(X), whole)
    other = boosted("lightgbm", trees=11).fit(X, y, qid=qid)
    with pytest.raises(tr.storage.StorageError, match="init_model"):
        boosted("lightgbm", trees=60).fit(X, y, qid=qid, **kept | {"init_model": other})


def test_what_does_not_go_together_is_refused():
    X, y, qid = rows()
    ranker = boosted("lightgbm", trees=3).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"init_model is a BoostedRanker: a LinearRanker goes on"):
        tr.LinearRanker().fit(X, y, qid=qid, init_model=ranker)
    with pytest.raises(ValueError, match="X has 3 features, but init_model was fitted to 4"):
        boosted("lightgbm").fit(X[:, :3], y, qid=qid, init_model=ranker)
    with pytest.raises(ValueError, match="other feature steps, features=None"):
        boosted("lightgbm", features="standardize").fit(X, y, qid=qid, init_model=ranker)
    with pytest.raises(TypeError, match="xgb_model': write init_model"):
        boosted("lightgbm").fit(X, y, qid=qid, xgb_model=ranker)
    network = tr.NeuralRanker(max_epochs=1).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"another network .*: give the same hidden"):
        tr.NeuralRanker(hidden=(8,)).fit(X, y, qid=qid, init_model=network)


def test_columns_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    X, y, qid = rows()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    ranker = boosted("lightgbm", trees=3).fit(frame, y, qid=qid)
    with pytest.raises(ValueError, match="feature 1 is 'b', but of init_model it was 'a'"):
        boosted("lightgbm").fit(frame[["b", "a", "c", "d"]], y, qid=qid, init_model=ranker)


@pytest.mark.parametrize("games", [False, True])
def test_an_aggregation_begins_with_old_worths(games, tmp_path):
    rng = np.random.default_rng(0)
    lists = [
        tuple(rng.permutation(list("abcdefg")).tolist()[: 2 if games else 5]) for _ in range(300)
    ]
    if games:
        lists = [(*pair, "tie" if n % 5 == 0 else "first") for n, pair in enumerate(lists)]
    make = tr.PairedTies if games else tr.RankAggregator
    old = make(prior="gaussian" if not games else None).fit(lists[:200])
    cold = make().fit(lists)
    warm = make().fit(lists, init_model=cold)
    np.testing.assert_allclose(warm.log_worths_, cold.log_worths_, atol=1e-9)
    assert warm.n_iter_ < cold.n_iter_
    tr.save(old, tmp_path / "old")
    for before in (old, tmp_path / "old", {"a": 1.0, "b": -2}):
        found = make().fit(lists, init_model=before)
        np.testing.assert_allclose(found.log_worths_, cold.log_worths_, atol=1e-9)
    with pytest.raises(ValueError, match=r"no item of these lists, such as '.': it knows 1, 2"):
        make().fit(lists, init_model={1: 0.5, 2: 0.1})
    with pytest.raises(ValueError, match="log-worth of 'b' that is not finite"):
        make().fit(lists, init_model={"b": np.nan})
    with pytest.raises(ValueError, match="is a list: give a fitted aggregation"):
        make().fit(lists, init_model=[1.0])
