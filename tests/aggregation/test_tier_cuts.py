"""Tiers of a fitted ranking, against sums over all partitions."""

import itertools
from functools import cache
from math import factorial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from tierrank.aggregation.quasi_variances import quasi_variances
from tierrank.aggregation.tier_cuts import cut_into_tiers, random_effects


def log_weights(w, variances, mean, spread, partitions, c):
    """log π ∏ Φ of partitions: a tier's estimates are normal, with covariance q_i + τ²."""

    @cache  # a tier stands in many partitions
    def of_tier(*tier):
        covariance = np.diag(variances[[*tier]]) + spread**2
        log_density = multivariate_normal.logpdf(w[[*tier]], np.full(len(tier), mean), covariance)
        return np.log(c * factorial(len(tier) - 1)) + log_density

    total = np.log(c + np.arange(len(w))).sum()
    return np.array([sum(of_tier(*tier) for tier in tiers) - total for tiers in partitions])


def ordered_partitions(order):
    """All ways to cut an order: 2^(items − 1) of them."""
    for cuts in itertools.product([False, True], repeat=len(order) - 1):
        yield [list(tier) for tier in np.split(order, 1 + np.flatnonzero(cuts))]


def set_partitions(items):
    """All partitions of a set, in no order."""
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for n, tier in enumerate(partition):
            yield [*partition[:n], [first, *tier], *partition[n + 1 :]]


def small_case(seed, items):
    rng = np.random.default_rng(seed)
    return rng.normal(size=items), np.exp(rng.normal(size=items)) * 0.2


@pytest.mark.parametrize("items", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("prior_tie", [0.3, 0.75])
def test_everything_agrees_with_the_sum_over_all_partitions(items, prior_tie):
    w, variances = small_case(items, items)
    cut = cut_into_tiers(w, variances, prior_tie=prior_tie)
    np.testing.assert_array_equal(cut.order, np.argsort(-w))
    partitions = list(ordered_partitions(cut.order))
    c = (1 - prior_tie) / prior_tie
    logs = log_weights(w, variances, cut.mean, cut.spread, partitions, c)
    assert cut.log_evidence == pytest.approx(logsumexp(logs), abs=1e-10)
    assert [tier.tolist() for tier in cut.tiers] == partitions[int(logs.argmax())]

    same = np.zeros((items, items))
    for tiers, p in zip(partitions, np.exp(logs - logsumexp(logs)), strict=True):
        for tier in tiers:
            same[np.ix_(tier, tier)] += p
    np.testing.assert_allclose(cut.same_tier_probabilities(), same, atol=1e-12)
    for i, j in itertools.product(range(items), repeat=2):
        assert cut.same_tier_probability(i, j) == pytest.approx(same[i, j], abs=1e-12)
    neighbours = same[cut.order[:-1], cut.order[1:]]
    np.testing.assert_allclose(cut.cut_probabilities, 1 - neighbours, atol=1e-12)


def test_the_prior_is_one_on_all_partitions_of_a_set():
    c = 1 / 3
    weights = [
        c ** len(tiers) * np.prod([factorial(len(tier) - 1) for tier in tiers])
        for tiers in set_partitions(list(range(6)))
    ]
    assert sum(weights) == pytest.approx(np.prod(c + np.arange(6)))


@pytest.mark.parametrize("seed", range(8))
def test_of_all_partitions_the_most_probable_keeps_the_order_if_errors_are_equal(seed):
    rng = np.random.default_rng(seed)
    w, variances = rng.normal(size=7), np.full(7, rng.choice([0.02, 0.1, 0.3]))
    cut = cut_into_tiers(w, variances, prior_tie=0.5)
    partitions = list(set_partitions(list(range(7))))
    logs = log_weights(w, variances, cut.mean, cut.spread, partitions, 1.0)
    best = partitions[int(logs.argmax())]
    assert sorted(map(sorted, best)) == sorted(sorted(tier.tolist()) for tier in cut.tiers)


def test_tiers_that_are_far_apart_are_found():
    rng = np.random.default_rng(1)
    truth = np.repeat([2.0, 0.0, -1.0], [4, 10, 6])
    found = [
        (cut_into_tiers(w, np.full(20, 0.01)).tier_of == np.repeat([0, 1, 2], [4, 10, 6])).all()
        for w in truth + 0.1 * rng.standard_normal((200, 20))
    ]
    assert np.mean(found) > 0.95


@pytest.mark.parametrize("items", [2, 5, 20, 100])
def test_equal_items_are_one_tier(items):
    # sorting by the same estimates must not make tiers: a prior on cuts of a given order would
    # find some in every set of 50 or more
    rng = np.random.default_rng(items)
    split = [
        len(cut_into_tiers(w - w.mean(), np.full(items, 0.01)).tiers) > 1
        for w in 0.1 * rng.standard_normal((400 if items < 100 else 50, items))
    ]
    assert np.mean(split) < 0.08


def test_two_items_are_cut_apart_from_two_standard_errors_on():
    def odds(z):
        cut = cut_into_tiers([z, 0.0], [0.5, 0.5])
        return cut.cut_probabilities[0] - 0.5

    assert brentq(odds, 0.5, 5.0) == pytest.approx(2.0, abs=0.05)


def test_sure_items_that_all_differ_are_a_tier_each():
    w = np.arange(30.0)
    cut = cut_into_tiers(w, np.full(30, 1e-4))
    assert [tier.tolist() for tier in cut.tiers] == [[n] for n in range(29, -1, -1)]
    assert (cut.cut_probabilities > 0.999).all()


def test_a_covariance_is_used_through_its_quasi_variances():
    rng = np.random.default_rng(2)
    mixing = 0.3 * rng.normal(size=(8, 9))
    covariance, w = mixing @ mixing.T, rng.normal(size=8)
    cut = cut_into_tiers(w, covariance)
    other = cut_into_tiers(w, quasi_variances(covariance).values)
    np.testing.assert_array_equal(cut.tier_of, other.tier_of)
    assert cut.log_evidence == other.log_evidence
    centring = np.eye(8) - 1 / 8
    centred = cut_into_tiers(w - w.mean(), centring @ covariance @ centring)
    np.testing.assert_allclose(centred.cut_probabilities, cut.cut_probabilities, atol=1e-9)
    assert centred.log_evidence == pytest.approx(cut.log_evidence)


def test_shift_unit_and_order_of_the_items_do_not_matter():
    w, variances = small_case(3, 12)
    w[3] = w[7]  # a tie of estimates
    cut = cut_into_tiers(w, variances)
    order = np.random.default_rng(3).permutation(12)
    for other in (
        cut_into_tiers(w + 100.0, variances),
        cut_into_tiers(w[order], variances[order]),
        cut_into_tiers(3.0 * w, 9.0 * variances),
    ):
        np.testing.assert_allclose(other.cut_probabilities, cut.cut_probabilities, rtol=1e-6)
    np.testing.assert_array_equal(
        cut_into_tiers(w[order], variances[order]).tier_of, cut.tier_of[order]
    )


def test_the_spread_is_that_of_paule_and_mandel_with_a_floor():
    rng = np.random.default_rng(4)
    variances = np.exp(rng.normal(size=200))
    w = 5.0 + 3.0 * rng.normal(size=200) + np.sqrt(variances) * rng.normal(size=200)
    mean, spread = random_effects(w, variances)
    weights = 1 / (spread**2 + variances)
    assert mean == pytest.approx(np.average(w, weights=weights))
    assert weights @ (w - mean) ** 2 == pytest.approx(199)
    assert spread == pytest.approx(3.0, abs=0.5)
    assert random_effects(np.zeros(200), variances)[1] ** 2 == pytest.approx(np.median(variances))


def test_a_negative_quasi_variance_is_replaced_and_the_criterion_says_so():
    spread = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])  # q = 1.5, −0.5, 1.5
    centring = np.eye(3) - 1 / 3
    cut = cut_into_tiers([1.0, 0.0, -1.0], -0.5 * centring @ spread @ centring)
    np.testing.assert_allclose(cut.variances, [1.5, 0.015, 1.5], rtol=1e-9)
    assert "was replaced by a hundredth of the median" in cut.criterion
    assert "replaced" not in cut_into_tiers([1.0, 0.0, -1.0], np.ones(3)).criterion


def test_the_criterion_states_its_prior_and_spread():
    cut = cut_into_tiers([9.0, 0.0, -9.0], np.ones(3), prior_tie=0.6)
    assert f"standard deviation of {cut.spread:.3g}" in cut.criterion
    assert "with probability 0.6 before any data" in cut.criterion


def test_two_thousand_items_add_up():
    w = np.random.default_rng(5).normal(size=2000)
    cut = cut_into_tiers(w, np.full(2000, 0.01))
    assert sum(len(tier) for tier in cut.tiers) == 2000
    np.testing.assert_array_equal(np.concatenate(cut.tiers), cut.order)
    assert ((cut.cut_probabilities >= 0) & (cut.cut_probabilities <= 1)).all()
    same = cut.same_tier_probability(int(cut.order[10]), int(cut.order[11]))
    assert same == pytest.approx(1 - cut.cut_probabilities[10], abs=1e-9)


def test_one_item_is_one_tier():
    cut = cut_into_tiers([0.4], [[0.0]])
    assert [tier.tolist() for tier in cut.tiers] == [[0]]
    assert cut.cut_probabilities.shape == (0,)
    assert cut.same_tier_probabilities().tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("covariance", "options", "message"),
    [
        (np.ones((2, 2)), {}, r"must have the shape \(3, 3\), or \(3,\)"),
        (np.ones(2), {}, "3 items, but 2 variances"),
        (np.array([1.0, 0.0, 1.0]), {}, "item 1 is 0.0"),
        (np.ones(3), {"prior_tie": 1.0}, "prior_tie must be between 0 and 1"),
    ],
)
def test_bad_input_is_an_error(covariance, options, message):
    with pytest.raises(ValueError, match=message):
        cut_into_tiers(np.zeros(3), covariance, **options)
