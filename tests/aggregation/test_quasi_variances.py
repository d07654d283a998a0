"""Quasi-variances, against what R's qvcalc published and what another optimiser finds."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize

import tierrank as tr
from tierrank.aggregation.quasi_variances import quasi_variances

# McCullagh and Nelder (1989), section 6.3.2: for each type of ship and each of four periods of
# construction, months of service and incidents from 1960 to 1974, and then from 1975 to 1979.
SHIPS = {
    "A": [127, 0, 63, 0, 1095, 3, 1095, 4, 1512, 6, 3353, 18, 0, 0, 2244, 11],
    "B": [44882, 39, 17176, 29, 28609, 58, 20370, 53, 7064, 12, 13099, 44, 0, 0, 7117, 18],
    "C": [1179, 1, 552, 1, 781, 0, 676, 1, 783, 6, 1948, 2, 0, 0, 274, 1],
    "D": [251, 0, 105, 0, 288, 0, 192, 0, 349, 2, 1208, 11, 0, 0, 2051, 4],
    "E": [45, 0, 0, 0, 789, 7, 437, 7, 1157, 5, 2161, 12, 0, 0, 542, 1],
}
# the quasi standard errors in the tests of qvcalc 1.0.4
PUBLISHED = [
    0.200965853501369,
    0.112705161723464,
    0.375250492322657,
    0.323893536427565,
    0.232171862907782,
]


def ship_covariance():
    """Of the five types' effects in the overdispersed Poisson model, relative to type A's."""
    rows = [
        (kind, cell // 2, cell % 2, numbers[2 * cell], numbers[2 * cell + 1])
        for kind, numbers in enumerate(SHIPS.values())
        for cell in range(8)
        if numbers[2 * cell] > 0
    ]
    kind, year, period, service, incidents = np.array(rows).T
    design = np.column_stack(
        [np.ones(len(rows))]
        + [kind == level for level in range(1, 5)]
        + [year == level for level in range(1, 4)]
        + [period == 1]
    ).astype(float)
    model = sm.GLM(incidents, design, family=sm.families.Poisson(), offset=np.log(service))
    covariance = np.zeros((5, 5))
    covariance[1:, 1:] = model.fit(scale="X2", tol=1e-14).cov_params()[1:5, 1:5]
    return covariance


def differences(covariance):
    own = np.diagonal(covariance)
    return np.add.outer(own, own) - 2 * covariance


def random_covariance(rng, items):
    mixing = rng.normal(size=(items, items + 2)) * np.exp(rng.normal(size=(items, 1)) / 2)
    return mixing @ mixing.T


def test_the_ships_have_the_quasi_variances_that_qvcalc_published():
    # R stops its fit at a relative change of 1e-8 in the deviance, which leaves 1e-5 here
    result = quasi_variances(ship_covariance())
    np.testing.assert_allclose(result.standard_errors, PUBLISHED, rtol=2e-5)


@pytest.mark.parametrize("items", [4, 6, 12])
def test_another_optimiser_finds_the_same_minimum(items):
    covariance = random_covariance(np.random.default_rng(items), items) + 3 * np.eye(items)
    pairs = np.triu_indices(items, 1)
    logs = np.log(differences(covariance)[pairs])

    def squares(log_q):  # all are positive in these cases
        q = np.exp(log_q)
        return np.square(np.log(np.add.outer(q, q)[pairs]) - logs).sum()

    found = minimize(squares, np.zeros(items), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(quasi_variances(covariance).values, np.exp(found.x), rtol=1e-5)


@pytest.mark.parametrize("items", [3, 5, 40])
def test_independent_estimates_have_their_own_variances(items):
    rng = np.random.default_rng(items)
    variances = rng.uniform(0.1, 5.0, size=items)
    result = quasi_variances(np.diag(variances) + 0.7)
    np.testing.assert_allclose(result.values, variances, rtol=1e-12)
    assert max(np.abs(result.worst_error)) < 1e-13
    np.testing.assert_allclose(result.standard_errors, np.sqrt(variances), rtol=1e-12)


def test_centring_and_the_choice_of_a_reference_change_nothing():
    covariance = random_covariance(np.random.default_rng(1), 7)
    values = quasi_variances(covariance).values
    for reference in (np.full(7, 1 / 7), np.eye(7)[2]):
        relative = np.eye(7) - reference
        shifted = relative @ covariance @ relative.T
        np.testing.assert_allclose(quasi_variances(shifted).values, values, rtol=1e-11)


def test_units_and_the_order_of_the_items_go_through():
    covariance = random_covariance(np.random.default_rng(2), 6)
    result = quasi_variances(covariance)
    order = np.array([3, 1, 5, 0, 4, 2])
    np.testing.assert_allclose(
        quasi_variances(covariance[np.ix_(order, order)]).values, result.values[order], rtol=1e-12
    )
    for unit in (1e-100, 1e100):
        scaled = quasi_variances(unit * covariance)
        np.testing.assert_allclose(scaled.values / unit, result.values, rtol=1e-12)
        np.testing.assert_allclose(scaled.worst_error, result.worst_error, atol=1e-13)


def test_three_items_are_exact():
    covariance = random_covariance(np.random.default_rng(3), 3)
    result = quasi_variances(covariance)
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(
        np.add.outer(result.values, result.values)[off], differences(covariance)[off], rtol=1e-12
    )
    assert max(np.abs(result.worst_error)) < 1e-12


def test_one_may_be_negative_and_then_has_no_standard_error():
    # q = v/2 sums: 1.5 + 1.5 = 3 between the outer two, 1.5 − 0.5 = 1 with the middle one
    spread = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    centring = np.eye(3) - 1 / 3
    result = quasi_variances(-0.5 * centring @ spread @ centring)
    np.testing.assert_allclose(result.values, [1.5, -0.5, 1.5], rtol=1e-10)
    np.testing.assert_array_equal(np.isnan(result.standard_errors), [False, True, False])


def test_the_worst_errors_are_those_of_the_standard_errors_of_differences():
    covariance = random_covariance(np.random.default_rng(4), 9)
    result = quasi_variances(covariance)
    errors = [
        np.sqrt((result.values[i] + result.values[j]) / differences(covariance)[i, j]) - 1
        for i in range(9)
        for j in range(i)
    ]
    assert result.worst_error == pytest.approx((min(errors), max(errors)))
    assert min(errors) < 0 < max(errors)


def test_wildly_different_errors_converge_too():
    rng = np.random.default_rng(5)
    for _ in range(100):
        items = int(rng.integers(3, 9))
        mixing = rng.normal(size=(items, 3)) * np.exp(3 * rng.normal(size=(items, 1)))
        values = quasi_variances(mixing @ mixing.T + 1e-6 * np.eye(items)).values
        assert (np.add.outer(values, values)[~np.eye(items, dtype=bool)] > 0).all()


def test_many_items_are_stationary_at_the_result():
    covariance = random_covariance(np.random.default_rng(6), 300) / 300 + np.eye(300)
    values = quasi_variances(covariance).values
    sums = np.add.outer(values, values)
    slopes = np.log(sums / (differences(covariance) + np.diag(2 * values))) / sums
    np.testing.assert_allclose(values * slopes.sum(axis=1), 0.0, atol=1e-9)


def test_of_two_items_each_has_half_and_of_one_nothing():
    assert quasi_variances([[2.0, 0.5], [0.5, 1.0]]).values.tolist() == [1.0, 1.0]
    assert quasi_variances([[3.0]]).values.tolist() == [0.0]


def test_items_that_do_not_differ_are_an_error():
    with pytest.raises(ValueError, match="items 0 and 2 has the variance"):
        quasi_variances([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def test_items_that_are_one_estimate_have_the_quasi_variance_of_one_of_them():
    apart = random_covariance(np.random.default_rng(7), 5)
    which = np.array([0, 1, 1, 2, 3, 4, 0])
    found = quasi_variances(apart[np.ix_(which, which)], equal=True)
    np.testing.assert_allclose(found.values, quasi_variances(apart).values[which], rtol=1e-12)
    np.testing.assert_array_equal(
        quasi_variances(apart, equal=True).values, quasi_variances(apart).values
    )
    assert quasi_variances(np.ones((3, 3)), equal=True).values.tolist() == [0.0] * 3


@pytest.mark.parametrize("w", [[1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 3.0, 3.0], [0.0, 1.0, 1.0, 1.0]])
def test_items_of_equal_features_have_tiers_and_quasi_variances(w):
    rng = np.random.default_rng(8)
    orders = [rng.permutation(len(w)).tolist() for _ in range(40)]
    fitted = tr.FeatureAggregator().fit(orders, np.array(w)[:, None], items=len(w))
    values = fitted.quasi_variances().values
    for level in set(w):
        assert len({float(v) for v in values[np.equal(w, level)]}) == 1
        alike = {n for n, each in enumerate(w) if each == level}
        assert sum(not alike.isdisjoint(tier.tolist()) for tier in fitted.tiers().tiers) == 1


def test_what_is_not_a_covariance_is_an_error():
    with pytest.raises(ValueError, match="must have the shape"):
        quasi_variances(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        quasi_variances([[1.0, 0.5], [0.0, 1.0]])
