"""Our objectives and metrics inside LightGBM and XGBoost themselves."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tierrank as tr
from tierrank.integrations import boosting
from tierrank.integrations import lightgbm as for_lightgbm
from tierrank.integrations import xgboost as for_xgboost
from tierrank.losses import OBJECTIVES
from tierrank.ranking.forest import lightgbm_forest, xgboost_forest

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

SIZES = np.random.default_rng(5).integers(1, 12, size=60)
TREES = 30  # more than a segment of BoostedRanker


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(SIZES.sum(), 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(
        np.nan_to_num(X[:, 0] + X[:, 1] ** 2) + 0.5 * rng.normal(size=len(X)), [0, 1, 2]
    )
    return X, y.astype(float)


X, Y = rows()
QID = np.repeat(np.arange(len(SIZES)), SIZES)
LIGHTGBM = {
    "learning_rate": 0.1, "num_leaves": 7, "min_data_in_leaf": 5, "lambda_l2": 1.0,
    "min_sum_hessian_in_leaf": 1e-3, "force_col_wise": True, "feature_pre_filter": False,
    "num_threads": 1, "verbosity": -1, "metric": "none",
}  # fmt: skip
XGBOOST = {
    "learning_rate": 0.1, "max_leaves": 7, "max_depth": 0, "reg_lambda": 1.0, "nthread": 1,
    "min_child_weight": 1e-3, "grow_policy": "lossguide", "tree_method": "hist", "max_bin": 255,
    "base_score": 0.0, "disable_default_eval_metric": True,
}  # fmt: skip


def ours(name="pl-partition", library="lightgbm", **options):
    least = {"min_rows_per_leaf": 5} if library == "lightgbm" else {}
    settings = {"trees": TREES, "learning_rate": 0.1, "leaves": 7, "threads": 1, **least}
    settings |= {"row_fraction": 1.0, "feature_fraction": 1.0}  # which go by size otherwise
    options.setdefault("random_state", 0)
    return tr.BoostedRanker(name, library=library, **settings, **options)


def trained_by_lightgbm(objective, y=Y, **data):
    rows = lightgbm.Dataset(X, y, group=SIZES, **data)
    booster = lightgbm.train({**LIGHTGBM, "objective": objective}, rows, TREES)
    return lightgbm_forest(booster.model_to_string(num_iteration=-1), X.shape[1])


def trained_by_xgboost(objective, y=Y, **data):
    rows = xgboost.QuantileDMatrix(X, y, max_bin=255, qid=QID, **data)
    booster = xgboost.train(XGBOOST, rows, TREES, obj=objective)
    model = json.loads(bytes(booster.save_raw("json")))
    return xgboost_forest(model, X.shape[1], zero_is_missing=False)


def assert_same_trees(forest, other):
    theirs = other.arrays()
    for name, values in forest.arrays().items():
        assert_array_equal(values, theirs[name], err_msg=name)


@pytest.mark.parametrize("name", sorted(n for n, e in OBJECTIVES.items() if not e.stochastic))
def test_the_trees_are_those_of_the_ranker(name):
    y = np.minimum(Y, 1) if name == "pmop-exact" else Y  # it enumerates
    for library, trained, objective in [
        ("lightgbm", trained_by_lightgbm, for_lightgbm.objective),
        ("xgboost", trained_by_xgboost, for_xgboost.objective),
    ]:
        ranker = ours(name, library).fit(X, y, group=SIZES)
        # what an objective learns of ties takes one more step where the ranker begins a segment
        count = 25 if OBJECTIVES[name].tie_parameter else TREES
        forest = trained(objective(name), y)
        assert_same_trees(ranker.forest_.first(count), forest.first(count))


def test_options_and_weights_of_lists_go_along():
    weights = np.random.default_rng(0).integers(1, 4, size=len(SIZES)).astype(np.float32)
    weights *= len(weights) / weights.sum()  # the ranker takes proportions, the libraries all of it
    ranker = ours("pl-topk", objective_params={"k": 2})
    ranker.fit(X, Y, group=SIZES, weights=weights)
    objective = for_lightgbm.objective("pl-topk", k=2)
    forest = trained_by_lightgbm(objective, weight=np.repeat(weights, SIZES))
    np.testing.assert_allclose(forest.predict(X), ranker.forest_.predict(X), atol=1e-5)
    twice = trained_by_lightgbm(objective, weight=np.full(len(X), 2.0))
    assert not np.array_equal(twice.predict(X), forest.predict(X))
    ranker = ours("pl-topk", "xgboost", objective_params={"k": 2})
    ranker.fit(X, Y, group=SIZES, weights=weights)
    forest = trained_by_xgboost(for_xgboost.objective("pl-topk", k=2), weight=weights)
    # XGBoost chooses its bins by the weights too, so the trees are not the same
    theirs, ranked = (f.predict(X) for f in (forest, ranker.forest_))
    assert np.corrcoef(theirs, ranked)[0, 1] > 0.99
    data = xgboost.DMatrix(X, Y, qid=QID, weight=weights)
    by_xgboost = for_xgboost.objective("pl-topk", k=2)(ranked, data)
    of_rows = objective(Y, ranked, np.repeat(weights, SIZES), SIZES)
    assert_array_equal(by_xgboost, of_rows)


def test_the_estimator_trains_copies_and_tunes_as_train_does():
    from sklearn.base import clone

    ranker = lightgbm.LGBMRanker(
        objective=for_lightgbm.objective(), n_estimators=TREES, learning_rate=0.1, num_leaves=7,
        min_child_samples=5, reg_lambda=1.0, n_jobs=1, verbosity=-1, force_col_wise=True,
        feature_pre_filter=False,
    )  # fmt: skip
    fitted = clone(ranker).fit(X, Y, group=SIZES)
    text = fitted.booster_.model_to_string(num_iteration=-1)
    forest = trained_by_lightgbm(for_lightgbm.objective())
    assert_same_trees(lightgbm_forest(text, X.shape[1]), forest)


def test_tiers_are_built_once_a_data_set(monkeypatch):
    built = []
    real = boosting.Tiers.from_labels

    def counted(labels, **given):
        built.append(len(labels))
        return real(labels, **given)

    monkeypatch.setattr(boosting.Tiers, "from_labels", counted)
    trained_by_lightgbm(for_lightgbm.objective())
    trained_by_xgboost(for_xgboost.objective())
    assert built == [len(X), len(X)]
    built.clear()
    data = lightgbm.Dataset(X, Y, group=SIZES, params=LIGHTGBM, free_raw_data=False)
    fold = QID % 3
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    params = {**LIGHTGBM, "objective": for_lightgbm.objective()}
    seen = lightgbm.cv(params, data, 10, folds=folds, feval=for_lightgbm.metric("ndcg@3"))
    assert sorted(built) == sorted(len(train) for train, _ in folds)
    assert len(seen["valid ndcg@3-mean"]) == 10


def test_labels_that_change_are_seen():
    objective = for_lightgbm.objective()
    scores, sizes = np.zeros(4), np.array([4])
    labels = np.array([2.0, 1, 0, 0])
    first = objective(labels, scores, None, sizes)[0]
    labels[:] = labels[::-1]
    assert_array_equal(objective(labels, scores, None, sizes)[0], first[[3, 2, 1, 0]])


def test_metrics_have_our_ties_and_empty_lists():
    y = np.where(QID % 5 == 0, 0, Y)  # some lists with nothing relevant
    scores = np.round(np.random.default_rng(1).normal(size=len(Y)), 1)
    for options in ({}, {"empty": "skip"}, {"ties": "input"}):
        expected = tr.metrics.ndcg(scores, y, lengths=SIZES, k=5, **options)
        named = for_lightgbm.metric("ndcg@5", **options)
        assert named(y, scores, None, SIZES) == ("ndcg@5", pytest.approx(expected, rel=1e-12), True)
        data = xgboost.DMatrix(X, y, qid=QID)
        name, value = for_xgboost.metric("ndcg@5", **options)(scores, data)
        assert (name, value) == ("ndcg@5", pytest.approx(expected, rel=1e-12))
    weights = np.repeat(np.arange(1.0, len(SIZES) + 1), SIZES)
    by_list = tr.metrics.ndcg(scores, y, lengths=SIZES, k=5, empty="skip", reduction="none")
    there = np.isfinite(by_list)
    expected = np.average(by_list[there], weights=np.arange(1.0, len(SIZES) + 1)[there])
    value = for_lightgbm.metric("ndcg@5", empty="skip")(y, scores, weights, SIZES)[1]
    assert value == pytest.approx(expected)
    assert for_lightgbm.metric("pairwise-disagreement")(y, scores, None, SIZES)[2] is False


def test_early_stopping_takes_the_tree_of_the_ranker():
    valid_X, valid_y = rows(1)
    ranker = ours(metric="ndcg@3", patience=5).set_params(trees=200)
    ranker.fit(X, Y, group=SIZES, eval_set=(valid_X, valid_y, QID))
    train = lightgbm.Dataset(X, Y, group=SIZES)
    valid = train.create_valid(valid_X, valid_y, group=SIZES)
    booster = lightgbm.train(
        {**LIGHTGBM, "objective": for_lightgbm.objective()}, train, 200, valid_sets=[valid],
        feval=for_lightgbm.metric("ndcg@3"),
        callbacks=[lightgbm.early_stopping(5, verbose=False)],
    )  # fmt: skip
    assert booster.best_iteration == ranker.history_.best_step
    rows_of = [xgboost.DMatrix(*pair, qid=QID) for pair in ((X, Y), (valid_X, valid_y))]
    stop = xgboost.callback.EarlyStopping(rounds=5, maximize=True)
    booster = xgboost.train(
        XGBOOST, rows_of[0], 200, obj=for_xgboost.objective(), evals=[(rows_of[1], "valid")],
        custom_metric=for_xgboost.metric("ndcg@3"), callbacks=[stop], verbose_eval=False,
    )  # fmt: skip
    ranker = ours(library="xgboost", metric="ndcg@3", patience=5).set_params(trees=200)
    ranker.fit(X, Y, group=SIZES, eval_set=(valid_X, valid_y, QID))
    assert booster.best_iteration + 1 == ranker.history_.best_step


def test_a_copy_has_the_settings_and_no_rows():
    objective = for_lightgbm.objective("pl-topk", k=2)
    before = objective(Y, np.zeros(len(Y)), None, SIZES)
    written = pickle.dumps(objective)
    assert len(written) < 1000
    after = pickle.loads(written)(Y, np.zeros(len(Y)), None, SIZES)
    assert_array_equal(before, after)
    assert repr(objective) == "objective('pl-topk', k=2)"


def test_wrong_input_is_refused_where_it_is_given():
    with pytest.raises(ValueError, match=r"unknown objective|no objective"):
        for_lightgbm.objective("plackett")
    with pytest.raises(TypeError, match="no option 'q'"):
        for_xgboost.objective("pl-topk", q=2)
    rows = lightgbm.Dataset(X, Y)
    with pytest.raises(ValueError, match=r"Dataset\(X, y, group"):
        lightgbm.train({**LIGHTGBM, "objective": for_lightgbm.objective()}, rows, 1)
    with pytest.raises(ValueError, match="Give the DMatrix qid"):
        xgboost.train(XGBOOST, xgboost.DMatrix(X, Y), 1, obj=for_xgboost.objective())
    weights = np.ones(len(Y))
    long = int(np.argmax(SIZES > 1))
    weights[SIZES[:long].sum()] = 3  # one row of it
    with pytest.raises(
        ValueError, match=rf"rows of list {long} have different weights \(3 and, row"
    ):
        trained_by_lightgbm(for_lightgbm.objective(), weight=weights)
    with pytest.raises(ValueError, match=r"NaN|finite"):
        for_lightgbm.objective()(np.full(3, np.nan), np.zeros(3), None, [3])


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_workers_of_dask_train_by_them():
    distributed = pytest.importorskip("distributed")
    dask_xgboost = pytest.importorskip("xgboost.dask")
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    few = rng.integers(0, 8, size=(480, 4)).astype(float)  # so that all workers have the same bins
    grades = np.digitize(few[:, 0] + 0.7 * few[:, 1] + rng.normal(size=480), [4, 8, 10])
    cut = [da.from_array(a, chunks=(240, *a.shape[1:])) for a in (few, grades)]
    sizes = da.from_array(np.full(40, 12), chunks=20)
    qid = np.repeat(np.arange(40), 12)
    alone = {"n_estimators": 12, "num_leaves": 8, "verbosity": -1}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", silence_logs=50
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        ranker = lightgbm.DaskLGBMRanker(client=client, objective=for_lightgbm.objective(), **alone)
        together = ranker.fit(*cut, group=sizes).to_local().predict(few)
        rows = dask_xgboost.DaskDMatrix(client, *cut, qid=da.from_array(qid, chunks=240))
        found = dask_xgboost.train(client, XGBOOST, rows, 12, obj=for_xgboost.objective())
    # among several machines LightGBM estimates the rows of a leaf by their Hessians
    single = lightgbm.LGBMRanker(objective=for_lightgbm.objective(), **alone)
    scores = single.fit(few, grades, group=[12] * 40).predict(few)
    assert np.corrcoef(together, scores)[0, 1] > 0.95
    here = xgboost.DMatrix(few, grades, qid=qid)
    booster = xgboost.train(XGBOOST, here, 12, obj=for_xgboost.objective())
    np.testing.assert_allclose(found["booster"].predict(here), booster.predict(here), atol=1e-5)
