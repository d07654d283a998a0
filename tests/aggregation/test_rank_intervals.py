"""Intervals of functions of log-worths, and of ranks."""

import numpy as np
import pytest
from scipy.stats import norm

from tierrank.aggregation import item_ranks
from tierrank.aggregation.item_ranks import (
    drawn,
    expected_ranks,
    rank_intervals,
    simulated_intervals,
)


def centred(variances):
    """The covariance of independent estimates less their mean."""
    centring = np.eye(len(variances)) - 1 / len(variances)
    return centring @ np.diag(variances) @ centring


def test_the_interval_of_a_difference_is_the_normal_one():
    w, covariance = np.array([1.0, 0.0, -1.0]), centred([0.1, 0.2, 0.3])
    low, high = simulated_intervals(
        lambda v: v[0] - v[1], w, covariance, level=0.9, draws=40_000, seed=3
    )
    reach = norm.ppf(0.95) * np.sqrt(0.3)
    assert low == pytest.approx(1 - reach, abs=0.02)
    assert high == pytest.approx(1 + reach, abs=0.02)


def test_draws_have_the_covariance_that_was_given():
    covariance = centred([0.5, 1.0, 2.0, 4.0])
    draws = np.concatenate(list(drawn(np.arange(4.0), covariance, 50_000, 1)))
    np.testing.assert_allclose(draws.mean(axis=0), np.arange(4.0), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.08)
    np.testing.assert_allclose(draws.sum(axis=1), 6.0, atol=1e-6)  # centred ones stay centred


def test_expected_ranks_stay_between_the_first_and_the_last():
    w, covariance = np.array([3.0, 0.1, 0.0, -0.1, -3.0]), centred(np.full(5, 1.0))
    low, high = simulated_intervals(expected_ranks, w, covariance)
    assert low.shape == high.shape == (5,)
    assert (low >= 1).all()
    assert (high <= 5).all()
    assert (low < expected_ranks(w)).all()
    assert (high > expected_ranks(w)).all()


def test_expected_ranks_are_covered_as_often_as_promised():
    rng = np.random.default_rng(0)
    truth = np.array([0.6, 0.5, 0.0, -0.2, -0.9])
    covariance = centred(np.full(5, 0.04))
    covered = []
    for n in range(100):
        estimate = truth + 0.2 * rng.standard_normal(5)
        low, high = simulated_intervals(expected_ranks, estimate, covariance, draws=200, seed=n)
        covered.append((low <= expected_ranks(truth)) & (expected_ranks(truth) <= high))
    assert 0.91 < np.mean(covered) < 0.98


def test_the_same_seed_gives_the_same_draws_in_whatever_blocks(monkeypatch):
    w, covariance = np.arange(4.0), centred(np.ones(4))
    at_once = simulated_intervals(expected_ranks, w, covariance, seed=5)
    monkeypatch.setattr(item_ranks, "BLOCK", 40)
    np.testing.assert_allclose(simulated_intervals(expected_ranks, w, covariance, seed=5), at_once)
    assert (simulated_intervals(expected_ranks, w, covariance, seed=6)[0] != at_once[0]).any()


@pytest.mark.parametrize("method", ["differences", "draws"])
def test_items_far_apart_have_one_rank_each(method):
    w = np.array([0.0, 10.0, -10.0, 20.0])
    ranks = rank_intervals(w, centred(np.full(4, 0.1)), method=method)
    np.testing.assert_array_equal(ranks, [[3, 3], [2, 2], [4, 4], [1, 1]])
    assert ranks.dtype == np.int64


def test_two_items_keep_both_ranks_unless_they_differ_by_the_usual_test():
    for z in (1.9, 2.02):
        ranks = rank_intervals([z, 0.0], centred([0.5, 0.5]), draws=100_000)
        assert ranks.tolist() == ([[1, 2], [1, 2]] if z < 1.96 else [[1, 1], [2, 2]])


def test_ranks_of_close_items_are_covered_by_differences_but_not_by_draws():
    # eight items, neighbours a fifth of a standard error apart
    rng = np.random.default_rng(1)
    truth, covariance = -0.2 * np.arange(8.0), centred(np.ones(8))
    covered = {"differences": [], "draws": []}
    for n in range(150):
        estimate = truth + rng.standard_normal(8)
        for method, hits in covered.items():
            ranks = rank_intervals(estimate, covariance, draws=300, seed=n, method=method)
            hits.append((ranks[:, 0] <= np.arange(1, 9)) & (np.arange(1, 9) <= ranks[:, 1]))
    assert np.mean(covered["differences"], axis=0).min() > 0.95
    assert np.mean(covered["draws"], axis=0).min() < 0.92


def test_a_difference_without_error_is_known_and_disturbs_no_other():
    # the first two estimates have the very same error
    mixing = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    ranks = rank_intervals([0.1, 0.0, -9.0], mixing @ mixing.T)
    assert ranks.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_one_item_is_the_first():
    assert rank_intervals([0.3], [[0.0]]).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.eye(3), r"must have the shape \(2, 2\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), r"entry \(0, 1\) is nan"),
        (np.diag([1.0, -1.0]), "negative variance"),
    ],
)
def test_what_is_not_a_covariance_is_an_error(covariance, message):
    with pytest.raises(ValueError, match=message):
        simulated_intervals(expected_ranks, np.zeros(2), covariance)
    with pytest.raises(ValueError, match=message):
        rank_intervals(np.zeros(2), covariance)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"draws": 0}, "draws must be positive"),
        ({"method": "guess"}, "method must be"),
    ],
)
def test_bad_options_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        rank_intervals(np.zeros(2), centred([1.0, 1.0]), **options)
