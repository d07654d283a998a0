"""`refit` and `members`: learned once more from all rows, and several models as one."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import tierrank as tr
from tierrank.data.cache import folder_of, scratch, stacked
from tierrank.ranking.export import to_onnx
from tierrank.training.progress import member_seed


def rows(seed=0, lists=30, width=4):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(lists), rng.integers(2, 12, lists))
    X = rng.normal(size=(len(qid), width))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.8 * rng.normal(size=len(X)), [0, 1]).astype(float)
    return X, y, qid


X, Y, QID = rows()
VALID = rows(1, lists=15)
ALL = tuple(np.concatenate(pair) for pair in zip((X, Y), VALID[:2], strict=True))
ALL_QID = np.concatenate([QID, 1000 + VALID[2]])

TREES = {
    "trees": 30, "leaves": 5, "min_rows_per_leaf": 3, "row_fraction": 1.0, "feature_fraction": 1.0,
    "threads": 1, "random_state": 0,
}  # fmt: skip
SMALL = {
    "boosted": lambda **more: tr.BoostedRanker(**{**TREES, **more}),
    "neural": lambda **more: tr.NeuralRanker(
        **{"hidden": (8,), "max_epochs": 6, "learning_rate": 0.02, "random_state": 0} | more
    ),
    "linear": lambda **more: tr.LinearRanker(
        **{"patience": 3, "l2": 0.01, "random_state": 0} | more
    ),
    "sgd": lambda **more: tr.LinearRanker(
        **{"solver": "sgd", "patience": 30, "max_iter": 60, "random_state": 0, "batch_lists": 8}
        | more
    ),
}
KINDS = pytest.mark.parametrize("kind", list(SMALL))


def fitted(kind, eval_set=VALID, **more):
    return SMALL[kind](**more).fit(X, Y, qid=QID, eval_set=eval_set)


def sized(kind, best):
    """The setting that makes a fit to all rows as long as a refit after so many steps is."""
    ratio = len(ALL[1]) / len(Y)
    if kind == "boosted":
        return {"trees": round(best * ratio), "patience": None}
    if kind == "neural":
        return {"max_epochs": best, "patience": None}
    return {"max_iter": round(best * ratio) if kind == "sgd" else best, "patience": None}


@KINDS
def test_a_refit_is_the_fit_to_all_rows_of_the_stopped_size(kind):
    stopped, refitted = fitted(kind), fitted(kind, refit=True)
    own = sized(kind, stopped.history_.best_step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of max_iter, which is here a limit
        by_hand = SMALL[kind](**own).fit(*ALL, qid=ALL_QID)
    np.testing.assert_allclose(refitted.predict(X), by_hand.predict(X), rtol=1e-6, atol=1e-7)
    assert not np.allclose(refitted.predict(X), stopped.predict(X))
    # what was measured is of the model before, and the history says so
    assert refitted.history_.metric == stopped.history_.metric
    assert refitted.history_.best_metric == stopped.history_.best_metric
    assert stopped.history_.refit is None
    assert refitted.history_.refit == by_hand.history_.steps[-1]


@KINDS
@pytest.mark.parametrize("refit", [False, True])
def test_scores_are_the_mean_of_those_of_members_fitted_one_by_one(kind, refit):
    ranker = fitted(kind, members=3, refit=refit)
    best = fitted(kind).history_.best_step
    own = sized(kind, best) if refit else {}
    where, qid = (ALL, ALL_QID) if refit else ((X, Y), QID)
    more = {} if refit else {"eval_set": VALID}
    lists = len(np.unique(qid))
    scores = []
    for number in range(3):
        seed, weights = member_seed(0, number), None
        if number and kind in ("boosted", "linear"):  # nothing else is random
            drawn = np.random.default_rng(seed).integers(lists, size=lists)
            weights = [int((drawn == each).sum()) for each in range(lists)]
        one = SMALL[kind](**own, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores.append(one.fit(*where, qid=qid, weights=weights, **more).predict(X))
    np.testing.assert_allclose(ranker.predict(X), np.mean(scores, axis=0), rtol=1e-5, atol=1e-6)
    assert min(np.abs(scores[0] - each).max() for each in scores[1:]) > 1e-4
    assert ranker.history_.metric == fitted(kind).history_.metric


def test_the_forest_of_members_has_all_trees_with_leaves_divided():
    ranker = fitted("boosted", members=3, refit=True, row_fraction=0.7)
    size = ranker.history_.refit
    assert len(ranker.forest_) == 3 * size
    thirds = [ranker.forest_.between(n * size, (n + 1) * size).predict(X) for n in range(3)]
    np.testing.assert_allclose(sum(thirds), ranker.predict(X), rtol=1e-12)
    alone = fitted("boosted", refit=True, row_fraction=0.7)
    np.testing.assert_allclose(3 * thirds[0], alone.predict(X), rtol=1e-12)


@KINDS
def test_saved_and_loaded_they_score_the_same(kind, tmp_path):
    ranker = fitted(kind, members=2, refit=True)
    tr.save(ranker, tmp_path / "model")
    loaded = tr.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert loaded.history_ == ranker.history_
    assert loaded.history_.refit is not None
    assert (loaded.refit, loaded.members) == (True, 2)


@KINDS
def test_exported_to_onnx_they_score_the_same(kind, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    ranker = fitted(kind, members=3)
    path = to_onnx(ranker, tmp_path / "ranker.onnx")
    sent = X.astype(np.float32)
    (scores,) = onnxruntime.InferenceSession(path).run(None, {"features": sent})
    np.testing.assert_allclose(scores, ranker.predict(sent), rtol=1e-4, atol=1e-5)


def test_forests_of_members_go_into_every_format_and_networks_not_into_solr(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    ranker = fitted("boosted", members=3, refit=True)
    path = tr.export(ranker, tmp_path / "ranker.txt")
    np.testing.assert_allclose(
        lightgbm.Booster(model_file=path).predict(X), ranker.predict(X), rtol=1e-9, atol=1e-12
    )
    tr.export(ranker, tmp_path / "ranker.json", "solr")
    tr.export(fitted("linear", members=2), tmp_path / "linear.json", "solr")
    with pytest.raises(ValueError, match="the mean of 2: train without members"):
        tr.export(fitted("neural", members=2), tmp_path / "n.json", "solr")


@KINDS
@pytest.mark.parametrize("where", ["first", "second", "last"])
def test_stopped_anywhere_it_goes_on_to_the_same(kind, where, tmp_path):
    whole = fitted(kind, members=2, refit=True)
    seen = []
    SMALL[kind](members=2, refit=True).fit(
        X, Y, qid=QID, eval_set=VALID, watch=lambda step: seen.append(step.run)
    )
    assert list(dict.fromkeys(seen)) == [None, "refit 1 of 2", "refit 2 of 2"]
    runs = {"first": None, "second": "refit 1 of 2", "last": "refit 2 of 2"}
    stop = seen.index(runs[where]) + 2
    looks = []

    def press(step):
        looks.append(step)
        if len(looks) == stop:
            signal.raise_signal(signal.SIGINT)

    ranker = SMALL[kind](members=2, refit=True)
    fit = {"qid": QID, "eval_set": VALID, "checkpoint": tmp_path, "checkpoint_every": 0}
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, Y, **fit, watch=press)
    left = ranker.predict(X)  # a model that can be used
    if where == "second":  # no refit is done, so it is the one before
        np.testing.assert_array_equal(left, fitted(kind).predict(X))
        assert ranker.history_.refit is None
    if where == "last":
        np.testing.assert_array_equal(left, fitted(kind, refit=True).predict(X))
    on = SMALL[kind](members=2, refit=True).fit(X, Y, **fit)
    np.testing.assert_array_equal(on.predict(X), whole.predict(X))
    assert on.history_ == whole.history_


def test_without_a_seed_too_what_was_kept_is_gone_on_with(tmp_path):
    fit = {"qid": QID, "eval_set": VALID, "checkpoint": tmp_path, "checkpoint_every": 0}
    settings = {"members": 2, "refit": True, "random_state": None, "row_fraction": 0.6}
    one = SMALL["boosted"](**settings).fit(X, Y, **fit)
    two = SMALL["boosted"](**settings).fit(X, Y, **fit)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("kind", ["boosted", "neural"])
def test_auto_refits_if_there_is_something_to_stop_by(kind):
    assert fitted(kind, refit="auto").history_.refit is not None
    assert fitted(kind, refit="auto", eval_set=None).history_.refit is None
    with pytest.raises(ValueError, match=r"refit learns once more .* no validation rows"):
        fitted(kind, refit=True, eval_set=None)


def test_a_linear_fit_that_only_watches_a_metric_is_refitted_if_told_so():
    assert fitted("linear", patience=None, refit="auto").history_.refit is None
    told = fitted("linear", patience=None, refit=True)
    whole = SMALL["linear"](patience=None).fit(*ALL, qid=ALL_QID)
    np.testing.assert_allclose(told.predict(X), whole.predict(X), rtol=1e-9)


def test_standard_errors_of_a_refit_are_those_of_all_rows_and_members_have_none():
    settings = {"patience": None, "uncertainty": "information"}
    told = fitted("linear", **settings, refit=True)
    whole = SMALL["linear"](**settings).fit(*ALL, qid=ALL_QID)
    np.testing.assert_allclose(told.standard_errors_, whole.standard_errors_, rtol=1e-6)
    with pytest.raises(ValueError, match="uncertainty is about one fit, and members average"):
        fitted("linear", **settings, members=2)


def test_lists_of_the_same_name_stay_two_and_weigh_as_much_as_the_others():
    weights = np.linspace(0.5, 2, 30)
    ranker = SMALL["linear"](patience=None, refit=True)
    ranker.fit(X, Y, group=np.bincount(QID), weights=weights, eval_set=VALID)  # both have a list 0
    of_all = np.concatenate([weights, np.full(15, weights.mean())])
    whole = SMALL["linear"](patience=None).fit(*ALL, qid=ALL_QID, weights=of_all)
    np.testing.assert_allclose(ranker.predict(X), whole.predict(X), rtol=1e-9)


@KINDS
def test_a_refit_goes_on_from_a_model_before(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = SMALL[kind](**sized(kind, 4)).fit(X, Y, qid=QID)
    score = before.predict(X)
    on = SMALL[kind](refit=True, members=2).fit(X, Y, qid=QID, eval_set=VALID, init_model=before)
    np.testing.assert_array_equal(before.predict(X), score)
    assert on.steps_ is before.steps_
    if kind == "boosted":
        known = len(before.forest_)
        for name, array in before.forest_.arrays().items():
            np.testing.assert_array_equal(on.forest_.first(known).arrays()[name], array, name)
        assert (len(on.forest_) - known) % 2 == 0
    if kind != "neural":
        again = SMALL[kind](members=2).fit(X, Y, qid=QID, init_model=on)
        assert np.isfinite(again.predict(X)).all()
    elif len(on.scorers_) > 1:
        with pytest.raises(ValueError, match="the mean of 2 networks"):
            SMALL[kind]().fit(X, Y, qid=QID, init_model=on)


def test_a_model_before_that_was_best_stays():
    before = SMALL["boosted"](trees=40, patience=None).fit(*ALL, qid=ALL_QID)
    against = rows(1, lists=15)[0], -VALID[1] + 2, VALID[2]  # whatever it learns here is wrong
    on = SMALL["boosted"](refit=True, patience=2, learning_rate=0.5)
    on.fit(against[0], against[1], qid=against[2], eval_set=(*ALL, ALL_QID), init_model=before)
    assert on.history_.best_step == len(before.forest_)
    np.testing.assert_array_equal(on.predict(X), before.predict(X))
    assert on.history_.refit is None


def test_one_network_is_scorer_and_several_are_scorers():
    assert fitted("neural").scorer_ is not None
    several = fitted("neural", members=2)
    with pytest.raises(ValueError, match="there are 2 networks: see scorers_"):
        _ = several.scorer_


@KINDS
@pytest.mark.parametrize(
    ("settings", "message"),
    [({"refit": "yes"}, "refit is True, False or"), ({"members": 0}, "members is a whole number")],
)
def test_what_is_neither_is_refused(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        fitted(kind, **settings)


def test_a_fit_that_fails_in_a_member_leaves_nothing():
    ranker = SMALL["boosted"](members=2, refit=True)

    def fail(step):
        if step.run is not None:
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        ranker.fit(X, Y, qid=QID, eval_set=VALID, watch=fail)
    with pytest.raises(NotFittedError):
        ranker.predict(X)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_on_the_disk_are_stacked_there(sparse, tmp_path):
    one, other = X[:7].copy(), X[7:20].copy()
    one[np.abs(one) < 0.5] = 0
    if not sparse:
        disk = scratch(tmp_path, one.shape, one.dtype)
        disk[:] = one
        both = stacked(disk, other)
        assert folder_of(both) is not None
        np.testing.assert_array_equal(both, np.concatenate([one, other]))
        return
    matrix, below = scipy.sparse.csr_matrix(one), scipy.sparse.csr_matrix(other)
    disk = scratch(tmp_path, matrix.data.shape, matrix.data.dtype)
    disk[:] = matrix.data
    on_disk = scipy.sparse.csr_matrix((disk, matrix.indices, matrix.indptr), shape=matrix.shape)
    for first in (matrix, on_disk):
        np.testing.assert_array_equal(stacked(first, below).toarray(), np.concatenate([one, other]))


@pytest.mark.parametrize("settings", [{"refit": True}, {"members": 2}])
def test_clicks_with_positions_are_learned_from_once(settings):
    positions = np.concatenate([np.arange(1, each + 1) for each in np.bincount(QID)])
    with pytest.raises(ValueError, match="does not go with positions and rows"):
        SMALL["linear"](**settings).fit(X, Y, qid=QID, positions=positions, eval_set=VALID)
    auto = SMALL["linear"](refit="auto")
    auto.fit(X, Y, qid=QID, positions=positions, eval_set=VALID)
    assert auto.history_.refit is None
