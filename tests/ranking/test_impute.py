"""Numbers where features are missing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tierrank.ranking.features import Impute, Standardize, Steps, steps_from

rng = np.random.default_rng(0)
X = np.where(rng.random((40, 5)) < 0.3, np.nan, rng.normal(size=(40, 5)))
X[:, 3] = rng.normal(size=40)


@parametrize_with_checks([Impute(), Impute(1.5), Impute("low")])
def test_scikit_learns_contract_holds(estimator, check):
    check(estimator)


def test_the_mean_is_scikit_learns():
    np.testing.assert_allclose(
        Impute().fit_transform(X), SimpleImputer(strategy="mean").fit_transform(X), rtol=1e-14
    )


@pytest.mark.parametrize(("value", "best"), [("low", np.nanmin), ("high", np.nanmax)])
def test_bounds_are_those_of_the_training_rows(value, best):
    impute = Impute(value).fit(X)
    filled = impute.transform(np.full((1, 5), np.nan))
    np.testing.assert_array_equal(filled[0], [best(column) for column in X.T])


def test_indicators_stand_for_the_features_that_were_missing():
    peer = SimpleImputer(strategy="constant", fill_value=7.0, add_indicator=True).fit(X)
    ours = Impute(7.0, indicator=True).fit(X)
    np.testing.assert_array_equal(ours.transform(X), peer.transform(X))
    assert list(ours.indicated_) == [0, 1, 2, 4]
    assert list(ours.get_feature_names_out(list("abcde")))[5:] == [
        "missing a", "missing b", "missing c", "missing e",
    ]  # fmt: skip


def test_a_feature_that_is_never_there_becomes_zero():
    assert Impute().fit([[np.nan], [np.nan]]).transform([[np.nan]]) == 0.0


def test_sparse_rows_keep_their_zeros():
    given = csr_array([[0.0, np.nan], [2.0, 4.0]])
    out = Impute("high").fit_transform(given)
    np.testing.assert_array_equal(out.toarray(), [[0.0, 4.0], [2.0, 4.0]])
    with pytest.raises(ValueError, match="dense data"):
        Impute(indicator=True).fit(given)


def test_single_precision_stays():
    assert Impute(indicator=True).fit_transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("value", ["middle", None, float("nan"), float("inf"), True])
def test_a_wrong_value_is_refused(value):
    with pytest.raises(ValueError, match="value must be"):
        Impute(value).fit(X)


def test_a_saved_chain_fills_the_same():
    chain = Steps(steps_from([Impute("high", indicator=True), Standardize()]))
    expected = chain.fit_transform(X)
    assert chain.fills_missing
    again = Steps.from_state(*chain.to_state())
    np.testing.assert_array_equal(again.transform(X), expected)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("values", np.full(5, np.nan)),
        ("values", np.zeros(4)),
        ("indicated", np.array([0, 5])),
        ("indicated", np.array([-1, 2])),
        ("indicated", np.array([2, 2])),
        ("indicated", np.array([0.0])),
    ],
)
def test_a_damaged_state_is_refused(name, array):
    info, tensors = Impute(indicator=True).fit(X).to_state()
    with pytest.raises(ValueError, match="damaged"):
        Impute.from_state(info, {**tensors, name: array})
