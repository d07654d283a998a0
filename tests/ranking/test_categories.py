"""Categories: splits that say what the libraries say, words that keep their meaning."""

import json

import numpy as np
import pytest

from tierrank.ranking import growers
from tierrank.ranking.forest import Forest

COLUMNS = [1, 3]
KINDS = ["c" if column in COLUMNS else "q" for column in range(5)]


def coded_rows(categories, missing, seed=0, n=1500):
    """Numbers, and two columns of codes; missing everywhere if asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, categories, n)
    X[:, 3] = rng.integers(0, 3, n) ** 2
    effect = rng.normal(size=categories)
    y = effect[X[:, 1].astype(int)] + X[:, 0] * (X[:, 3] == 1) + 0.1 * rng.normal(size=n)
    if missing:
        absent = rng.random(X.shape) < 0.15
        y += absent[:, 1]
        X[absent] = np.nan
    return X, y


def other_rows(X, seed=1):
    """The same, and codes that nobody saw, negative, huge and missing ones."""
    rng = np.random.default_rng(seed)
    other = X.copy()
    for code in (np.nan, 5, 2, -1, -7, 5000, 2.0**25, 2.0**40):
        other[rng.random(X.shape) < 0.05] = code
    return np.concatenate([X, other])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [1, 2, 4, 40, 1000])
@pytest.mark.parametrize("onehot", [1, 4, 2000])
def test_a_forest_splits_categories_as_lightgbm_does(categories, missing, onehot):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X, y = coded_rows(categories, missing)
    params = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}
    params |= {"min_data_in_leaf": 3, "max_cat_to_onehot": onehot, "max_cat_threshold": 500}
    rows = lightgbm.Dataset(X, y, categorical_feature=COLUMNS)
    booster = lightgbm.train(params, rows, num_boost_round=8)
    forest = growers.lightgbm_forest(booster.model_to_string(), 5)
    assert forest.splits_categories
    assert set(forest.feature[forest.category_counts > 0]) <= set(COLUMNS)
    every = other_rows(X)
    for some in (every, every.astype(np.float32), np.asfortranarray(every)):
        np.testing.assert_array_equal(forest.predict(some), booster.predict(some))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [1, 2, 4, 40, 1000])
@pytest.mark.parametrize("onehot", [1, 4, 2000])
def test_a_forest_splits_categories_as_xgboost_does(categories, missing, onehot):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y = coded_rows(categories, missing)
    how = {"feature_types": KINDS, "enable_categorical": True}
    params = {"base_score": 0.0, "nthread": 1, "max_cat_to_onehot": onehot, "tree_method": "hist"}
    booster = xgboost.train(params, xgboost.QuantileDMatrix(X, y, **how), num_boost_round=8)
    forest = growers.xgboost_forest(
        json.loads(bytes(booster.save_raw("json"))), 5, zero_is_missing=False
    )
    assert forest.splits_categories
    every = other_rows(X)
    said = booster.predict(xgboost.DMatrix(every, **how), output_margin=True)
    np.testing.assert_allclose(forest.predict(every), said, rtol=1e-5, atol=1e-5)
    leaves = booster.predict(xgboost.DMatrix(every, **how), iteration_range=(0, 1))
    np.testing.assert_array_equal(forest.first(1).predict(every).astype(np.float32), leaves)


def by_hand(**changes):
    """Codes 1 and 4 of feature 0 go left; then feature 1 is split, by codes at the right."""
    arrays = {
        "tree_offsets": [0, 5, 8],
        "feature": [0, 0, 1, 0, 0, 1, 0, 0],
        "threshold": np.zeros(8),
        "left": [1, 0, 3, 0, 0, 6, 0, 0],
        "missing": [2, 0, 2, 0, 0, 0, 0, 0],
        "default_left": [False, False, True, False, False, False, False, False],
        "value": [0, 1, 0, 10, 100, 0, 1000, 2000],
        "gain": np.zeros(8),
        "category_counts": [2, 0, 1, 0, 0, 0, 0, 0],
        "categories": [1, 4, 0],
    } | changes  # fmt: skip
    kinds = Forest.KINDS | Forest.OF_CATEGORIES
    return {name: np.array(values, kinds[name]) for name, values in arrays.items()}


def test_codes_go_left_if_they_are_named_and_nan_where_it_is_sent():
    forest = Forest.from_arrays(2, by_hand())
    X = np.array([[1, 0], [4, 7], [0, 0], [2, 1], [np.nan, np.nan], [-1, -1], [9e99, 0], [1.5, 0]])
    expected = [1, 1, 10, 100, 10, 100, 10, 1]
    second = np.where(np.nan_to_num(X[:, 1]) <= 0, 1000, 2000)
    np.testing.assert_array_equal(forest.predict(X), expected + second)
    from scipy.sparse import csr_array

    np.testing.assert_array_equal(forest.predict(csr_array(X)), forest.predict(X))


def test_parts_of_a_forest_with_categories_add_up_to_it():
    X = coded_rows(6, True)[0][:, [1, 3]]
    forest = Forest.from_arrays(2, by_hand())
    plain = {name: array for name, array in by_hand().items() if name in Forest.KINDS}
    plain["missing"][:] = 0
    without = Forest.from_arrays(2, plain)
    assert forest.first(1).categories.tolist() == [1, 4, 0]
    assert not forest.between(1, 2).splits_categories
    joined = without.followed_by(forest).followed_by(forest.between(1, 2)).followed_by(forest)
    assert joined.categories.tolist() == [1, 4, 0, 1, 4, 0]
    expected = without.predict(X) + 2 * forest.predict(X) + forest.between(1, 2).predict(X)
    np.testing.assert_array_equal(joined.predict(X), expected)
    middle = joined.between(2, 5)
    np.testing.assert_array_equal(
        middle.predict(X), forest.predict(X) + forest.between(1, 2).predict(X)
    )
    assert set(without.arrays()) == set(Forest.KINDS)  # as it was saved before there were any
    again = Forest.from_arrays(2, joined.arrays())
    np.testing.assert_array_equal(again.predict(X), joined.predict(X))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"categories": [1, 4, -1]}, "below 0"),
        ({"categories": [4, 1, 0]}, "do not rise"),
        ({"categories": [1, 1, 0]}, "do not rise"),
        ({"categories": [1, 4]}, "do not go with"),
        ({"category_counts": [2, 0, 1]}, "do not go with"),
        ({"category_counts": [4, 0, -1, 0, 0, 0, 0, 0]}, "do not go with"),
        ({"category_counts": [2, 1, 0, 0, 0, 0, 0, 0]}, "at a leaf"),
        ({"missing": [1, 0, 2, 0, 0, 0, 0, 0]}, "where 0 is missing"),
        ({"missing": [0, 0, 2, 0, 0, 0, 0, 0]}, "where 0 is missing"),
    ],
)
def test_categories_that_do_not_hold_together_are_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        Forest.from_arrays(2, by_hand(**changes))
    arrays = by_hand()
    arrays["categories"] = arrays["categories"].astype(np.int64)
    with pytest.raises(ValueError, match="holds int64, not int32"):
        Forest.from_arrays(2, arrays)
