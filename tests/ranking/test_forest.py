"""Forests: that they say what the libraries say, and that no array can lead them astray."""

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tierrank.ranking.forest import Forest, last_below, lightgbm_forest
from tierrank.ranking.forest import xgboost_forest as forest_of

LEAF = {"feature": 0, "threshold": 0.0, "left": 0, "missing": 0, "default_left": False, "gain": 0.0}


def rows(kind, seed=0, n=700, features=6):
    """Values with zeros, NaN and many ties, as both libraries treat in ways of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] *= 1e-3
    X[:, 5] = rng.integers(0, 2, n)
    X[rng.random(X.shape) < 0.15] = 0.0
    if "nan" in kind:
        X[:, :3][rng.random((n, 3)) < 0.2] = np.nan
    y = np.nan_to_num(X) @ rng.normal(size=features) + np.isnan(X).sum(1) + rng.normal(size=n)
    return X.astype(np.float32) if "single" in kind else X, y


def unseen(X, seed=1):
    """Rows to predict: some seen, thresholds' neighbours, zeros and NaN everywhere."""
    rng = np.random.default_rng(seed)
    other = X.copy()
    other[rng.random(X.shape) < 0.1] = np.nan
    other[rng.random(X.shape) < 0.1] = 0.0
    other[rng.random(X.shape) < 0.05] = -0.0
    other[rng.random(X.shape) < 0.05] = 1e-36
    return np.concatenate([X, other, np.nextafter(X, 9), np.nextafter(X, -9)]).astype(X.dtype)


def lightgbm_booster(X, y, trees=20, **params):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    params = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 20, **params}
    return lightgbm.train(params, lightgbm.Dataset(X, y), num_boost_round=trees)


def xgboost_booster(X, y, trees=20, **params):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    params = {"base_score": 0.0, "nthread": 1, "max_depth": 5, "tree_method": "hist", **params}
    return xgboost, xgboost.train(params, xgboost.DMatrix(X, y), num_boost_round=trees)


def xgboost_forest(booster, n_features, **options):
    model = json.loads(bytes(booster.save_raw("json")))
    return forest_of(model, n_features, **options)


@pytest.mark.parametrize("kind", ["plain", "nan", "single", "single nan", "zero is missing"])
def test_a_forest_says_what_lightgbm_says(kind):
    X, y = rows(kind)
    booster = lightgbm_booster(X, y, zero_as_missing=kind == "zero is missing")
    forest = lightgbm_forest(booster.model_to_string(), X.shape[1])
    assert len(forest) == 20
    for given_rows in (unseen(X), np.asfortranarray(unseen(X))):
        expected = booster.predict(given_rows)
        np.testing.assert_allclose(forest.predict(given_rows), expected, rtol=1e-12, atol=1e-14)
    sparse = scipy.sparse.csr_array(unseen(X))
    np.testing.assert_array_equal(forest.predict(sparse), forest.predict(unseen(X)))


@pytest.mark.parametrize("kind", ["plain", "nan", "single", "single nan"])
def test_a_forest_says_what_xgboost_says(kind):
    X, y = rows(kind)
    xgboost, booster = xgboost_booster(X, y)
    forest = xgboost_forest(booster, X.shape[1], zero_is_missing=False)
    every = unseen(X)
    expected = booster.predict(xgboost.DMatrix(every), output_margin=True)
    # XGBoost adds up in float32: so do we here, tree by tree, to be compared to the last bit
    total = np.zeros(len(every), np.float32)
    for number in range(len(forest)):
        alone = forest.first(number + 1).predict(every) - forest.first(number).predict(every)
        total += alone.astype(np.float32)
    np.testing.assert_allclose(total, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(forest.predict(every), expected, rtol=1e-5, atol=1e-5)
    for number in range(3):
        one = booster[number : number + 1]
        alone = xgboost_forest(one, X.shape[1], zero_is_missing=False)
        leaves = one.predict(xgboost.DMatrix(every), output_margin=True)
        np.testing.assert_array_equal(alone.predict(every).astype(np.float32), leaves)


def test_a_forest_from_a_sparse_matrix_takes_zeros_for_missing_as_xgboost_does():
    X, y = rows("nan")
    xgboost, booster = xgboost_booster(scipy.sparse.csr_array(X), y)
    forest = xgboost_forest(booster, X.shape[1], zero_is_missing=True)
    sparse = scipy.sparse.csr_array(X)
    expected = booster.predict(xgboost.DMatrix(sparse), output_margin=True)
    for given_rows in (X, sparse):
        np.testing.assert_allclose(forest.predict(given_rows), expected, rtol=1e-5, atol=1e-5)


@given(st.floats(-(2.0**120), 2.0**120, width=32), st.integers(-3, 3))
def test_a_limit_in_float32_becomes_one_in_float64(limit, steps):
    limit = np.float32(limit)
    (bound,) = last_below(np.array([limit]))
    x = bound
    for _ in range(abs(steps)):
        x = np.nextafter(x, np.inf if steps > 0 else -np.inf)
    assert (np.float32(x) < limit) == (x <= bound)


def test_gains_are_shared_out_among_the_features():
    X, y = rows("plain")
    booster = lightgbm_booster(X, y)
    forest = lightgbm_forest(booster.model_to_string(), X.shape[1])
    gain = booster.feature_importance("gain")
    np.testing.assert_allclose(forest.importances(), gain / gain.sum(), rtol=1e-4)
    assert Forest.empty(3).importances().tolist() == [0, 0, 0]


def test_parts_of_a_forest_add_up_to_it():
    X, y = rows("plain")
    forest = lightgbm_forest(lightgbm_booster(X, y).model_to_string(), X.shape[1])
    joined = Forest.concatenate(6, [forest.first(7).arrays(), forest.arrays()])
    assert len(joined) == 27
    np.testing.assert_allclose(
        joined.predict(X), forest.first(7).predict(X) + forest.predict(X), rtol=1e-12
    )
    assert (Forest.empty(6).predict(X) == 0).all()
    assert len(Forest.concatenate(6, [Forest.empty(6).arrays(), forest.arrays()])) == 20


def test_duplicate_entries_of_a_sparse_row_are_summed():
    X, y = rows("plain")
    forest = lightgbm_forest(lightgbm_booster(X, y).model_to_string(), X.shape[1])
    halves = scipy.sparse.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.repeat(np.tile(np.arange(6), len(X)), 2),
         np.arange(len(X) + 1) * 12), shape=X.shape,
    )  # fmt: skip
    np.testing.assert_array_equal(forest.predict(halves), forest.predict(X))
    assert halves.nnz == 12 * len(X)


# Hostile arrays ------------------------------------------------------------------------------


def one_split():
    """A root and two leaves, and a tree of one leaf."""
    nodes = [LEAF | {"feature": 1, "threshold": 0.5, "left": 1}, LEAF, LEAF, LEAF]
    arrays = {
        name: np.array([node[name] for node in nodes], dtype=kind)
        for name, kind in Forest.KINDS.items()
        if name in LEAF
    }
    arrays["value"] = np.array([0.0, -1.0, 2.0, 10.0])
    arrays["tree_offsets"] = np.array([0, 3, 4])
    return arrays


def test_a_forest_by_hand():
    forest = Forest.from_arrays(2, one_split())
    X = np.array([[9.0, 0.5], [9.0, 0.75], [9.0, np.nan]])
    assert forest.predict(X).tolist() == [9.0, 12.0, 9.0]
    assert forest.is_leaf.tolist() == [False, True, True, True]
    with pytest.raises(ValueError, match="grown from 2 features, but X has 3"):
        forest.predict(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("name", "place", "value", "complaint"),
    [
        ("left", 0, 3, "not below it in its tree"),
        ("left", 0, 2, "not below it in its tree"),
        ("left", 0, 2**31 - 1, "not below it in its tree"),
        ("left", 0, -1, "not below it in its tree"),
        ("left", 1, 1, "not below it in its tree"),
        ("left", 0, 0, "without a parent"),
        ("feature", 0, 2, "beyond its 2"),
        ("feature", 0, -1, "beyond its 2"),
        ("threshold", 0, np.nan, "NaN"),
        ("missing", 0, 3, "unknown kind"),
        ("value", 1, np.nan, "not finite"),
        ("value", 3, np.inf, "not finite"),
        ("gain", 0, np.nan, "not finite"),
        ("tree_offsets", 0, 1, "tree_offsets"),
        ("tree_offsets", 1, 4, "tree_offsets"),
        ("tree_offsets", 1, -5, "tree_offsets"),
        ("tree_offsets", 2, 400, "tree_offsets"),
    ],
)
def test_arrays_that_could_lead_a_walk_astray_are_refused(name, place, value, complaint):
    arrays = one_split()
    arrays[name][place] = value
    with pytest.raises(ValueError, match=complaint):
        Forest.from_arrays(2, arrays)


def test_two_parents_of_a_node_are_refused():
    arrays = {
        name: np.concatenate([array[:3], array[1:3], array[1:3]])
        for name, array in one_split().items()
        if name != "tree_offsets"
    }
    arrays["tree_offsets"] = np.array([0, 7])
    arrays["left"][:3] = [1, 3, 3]
    with pytest.raises(ValueError, match="with two"):
        Forest.from_arrays(2, arrays)


@pytest.mark.parametrize("name", sorted(Forest.KINDS))
def test_arrays_of_another_kind_shape_or_length_are_refused(name):
    for change in (
        lambda array: array.astype(np.complex64),
        lambda array: array[None],
        lambda array: array[:-1],
        lambda array: np.append(array, array[-1:]),
    ):
        arrays = one_split()
        arrays[name] = change(arrays[name])
        with pytest.raises(ValueError, match="the forest"):
            Forest.from_arrays(2, arrays)
    arrays = one_split()
    del arrays[name]
    with pytest.raises(ValueError, match=f"no array {name}"):
        Forest.from_arrays(2, arrays)


@pytest.mark.parametrize("features", [0, -1, 2.0, "2", None])
def test_a_number_of_features_that_is_none_is_refused(features):
    with pytest.raises(ValueError, match="1 feature or more"):
        Forest.from_arrays(features, one_split())


@given(st.data())
def test_whatever_passes_the_checks_can_be_walked(data):
    """Random arrays are refused, or every row ends in a leaf."""
    nodes = data.draw(st.integers(1, 9))
    small = st.integers(-2, 9)
    draw = {name: data.draw(st.lists(small, min_size=nodes, max_size=nodes)) for name in LEAF}
    arrays = {name: np.array(draw[name]).astype(Forest.KINDS[name]) for name in LEAF}
    arrays["value"] = np.ones(nodes)
    cuts = data.draw(st.sets(st.integers(1, nodes)).map(lambda s: sorted(s | {nodes})))
    arrays["tree_offsets"] = np.array([0, *cuts])
    try:
        forest = Forest.from_arrays(4, arrays)
    except ValueError:
        return
    X = np.random.default_rng(0).normal(size=(5, 4))
    assert (forest.predict(X) == len(cuts)).all()
