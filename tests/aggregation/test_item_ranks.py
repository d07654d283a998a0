"""Who is above whom, and expected ranks."""

import itertools

import numpy as np
import pytest
import torch
from mpmath import mp
from scipy.special import expit

import tierrank as tr
from tierrank.aggregation import item_ranks


def ranks_by_enumeration(w):
    """Expected ranks, summed over all orders."""
    worths, ranks = np.exp(w), np.zeros(len(w))
    for order in itertools.permutations(range(len(w))):
        p = np.prod([worths[order[n]] / worths[list(order[n:])].sum() for n in range(len(w))])
        ranks[list(order)] += p * np.arange(1, len(w) + 1)
    return ranks


def test_a_pair_has_the_probability_of_the_model():
    w = np.array([0.3, -1.2, 2.0, 0.0])
    p = item_ranks.pairwise_probabilities(w)
    for i, j in itertools.permutations(range(4), 2):
        tiers = tr.Tiers.from_rankings([[i, j]], items=4)
        assert np.log(p[i, j]) == pytest.approx(float(tr.log_prob(w, tiers)[0]), abs=1e-13)
    assert (np.diagonal(p) == 0.5).all()


def test_a_hopeless_pair_keeps_its_digits():
    p = item_ranks.pairwise_probabilities([0.0, 600.0, 5000.0])
    assert p[0, 1] == pytest.approx(float(1 / (1 + mp.exp(600))), rel=1e-14, abs=0)
    assert p[1, 0] == 1.0
    assert p[0, 2] == 0.0
    assert p[2, 0] == 1.0


def test_some_items_give_that_part_of_the_matrix_in_that_order():
    w = np.random.default_rng(0).normal(size=6)
    chosen = [4, 0, 3]
    np.testing.assert_array_equal(
        item_ranks.pairwise_probabilities(w, chosen),
        item_ranks.pairwise_probabilities(w)[np.ix_(chosen, chosen)],
    )
    assert item_ranks.pairwise_probabilities(w, []).shape == (0, 0)


@pytest.mark.parametrize("items", [[0, 6], [-1], [0.5], [[0]]])
def test_items_that_do_not_exist_are_an_error(items):
    with pytest.raises(ValueError, match="items must be"):
        item_ranks.pairwise_probabilities(np.zeros(6), items)


@pytest.mark.parametrize("items", range(1, 7))
def test_expected_ranks_are_those_of_all_orders(items):
    w = 2 * np.random.default_rng(items).normal(size=items)
    np.testing.assert_allclose(
        item_ranks.expected_ranks(w), ranks_by_enumeration(w), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 8.0, 1000.0])
def test_expected_ranks_of_many_items_are_the_sums_over_pairs(scale):
    w = scale * np.random.default_rng(1).standard_normal(1500)
    direct = 0.5 + expit(w[None, :] - w[:, None]).sum(axis=1)
    np.testing.assert_allclose(item_ranks.expected_ranks(w), direct, rtol=1e-13)


def test_expected_ranks_add_up_and_do_not_depend_on_a_shift():
    w = np.random.default_rng(2).normal(size=30_000)
    ranks = item_ranks.expected_ranks(w)
    assert ranks.sum() == pytest.approx(30_000 * 30_001 / 2, rel=1e-13)
    np.testing.assert_allclose(item_ranks.expected_ranks(w + 7.0), ranks, rtol=1e-12)


def test_an_item_on_an_interpolation_point_gets_the_value_there():
    angles = (np.arange(item_ranks.POINTS) + 0.5) * (np.pi / item_ranks.POINTS)
    w = np.concatenate([np.linspace(0.0, 1.9, 500), 1.0 + np.cos(angles)])
    direct = 0.5 + expit(w[None, :] - w[:, None]).sum(axis=1)
    np.testing.assert_allclose(item_ranks.expected_ranks(w), direct, rtol=1e-13)


def test_expected_ranks_are_the_mean_ranks_of_samples():
    w = np.random.default_rng(3).normal(size=50)
    orders = tr.sample(torch.from_numpy(w), 40_000, generator=0)
    ranks = orders.argsort(dim=1).double() + 1
    error = ranks.std(dim=0).numpy() / 200
    assert (np.abs(ranks.mean(dim=0).numpy() - item_ranks.expected_ranks(w)) < 5 * error).all()


@pytest.mark.parametrize(
    ("w", "message"),
    [([], "one number an item"), ([[1.0]], "one number an item"), ([0, np.nan], "item 1 is nan")],
)
def test_bad_log_worths_are_an_error(w, message):
    with pytest.raises(ValueError, match=message):
        item_ranks.expected_ranks(w)
    with pytest.raises(ValueError, match=message):
        item_ranks.pairwise_probabilities(w)
    with pytest.raises(ValueError, match=message):
        item_ranks.top_k_probabilities(w, 1)
