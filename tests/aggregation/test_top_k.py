"""The probability of being among the first k."""

import numpy as np
import pytest
import torch
from mpmath import mp

import tierrank as tr
from tierrank.aggregation import item_ranks
from tierrank.aggregation.item_ranks import expected_ranks, top_k_probabilities


def by_subsets(w):
    """[k, items] P(item among the first k), k = 0 … items, to 30 digits.

    P(the first |S| are S) is a sum over which of S came last: no integral, all items at once.
    """
    items = len(w)
    with mp.workdps(30):
        rates = [mp.exp(mp.mpf(float(x))) for x in w]
        first = [mp.mpf(0)] * 2**items
        first[0] = mp.mpf(1)
        table = [[mp.mpf(0)] * items for _ in range(items + 1)]
        for subset in range(2**items):
            inside = [i for i in range(items) if subset >> i & 1]
            left = mp.fsum(rates[i] for i in range(items) if not subset >> i & 1)
            for i in inside:
                table[len(inside)][i] += first[subset]
            for i in range(items):
                if not subset >> i & 1:
                    first[subset | 1 << i] += first[subset] * rates[i] / left
        return np.array([[float(p) for p in row] for row in table])


@pytest.mark.parametrize("items", range(1, 8))
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0, 30.0, 200.0])
def test_every_k_agrees_with_the_sum_over_subsets(items, spread):
    w = spread * (np.random.default_rng(items).uniform(size=items) - 0.5)
    exact = by_subsets(w)
    for k in range(1, items + 1):
        p = top_k_probabilities(w, k)
        np.testing.assert_allclose(p, exact[k], rtol=0, atol=1e-14)
        if 2 * k <= items:  # counted from the front: small ones have all their digits
            np.testing.assert_allclose(p, exact[k], rtol=1e-12)


@pytest.mark.parametrize("k", [2, 5, 6, 9])
def test_a_dozen_items_of_which_some_are_worth_e30_times_the_others(k):
    w = np.concatenate([np.linspace(29.0, 30.0, 5), np.linspace(-1.0, 1.0, 7)])
    np.testing.assert_allclose(top_k_probabilities(w, k), by_subsets(w)[k], rtol=0, atol=1e-14)


@pytest.mark.parametrize(("items", "k"), [(1000, 10), (1000, 990), (400, 200)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_the_probabilities_add_up_to_k(items, k, scale):
    w = scale * np.random.default_rng(k).normal(size=items)
    p = top_k_probabilities(w, k)
    assert p.sum() == pytest.approx(k, rel=1e-13)
    assert ((p >= 0) & (p <= 1)).all()
    order = np.argsort(w)
    assert (np.diff(p[order]) >= -1e-15).all()  # a better item has no smaller chance


def test_summed_over_k_they_give_the_expected_ranks():
    w = 2 * np.random.default_rng(4).normal(size=40)
    total = sum(top_k_probabilities(w, k) for k in range(1, 40))
    np.testing.assert_allclose(40 - total, expected_ranks(w), rtol=1e-13)


def test_the_ends_have_their_closed_forms():
    w = np.random.default_rng(5).normal(size=200)
    np.testing.assert_allclose(
        top_k_probabilities(w, 1), np.exp(w) / np.exp(w).sum(), rtol=1e-14, atol=0
    )
    np.testing.assert_allclose(item_ranks.top_k(w, 1), top_k_probabilities(w, 1), rtol=1e-12)
    np.testing.assert_array_equal(top_k_probabilities(w, 200), np.ones(200))
    np.testing.assert_allclose(top_k_probabilities(np.zeros(300), 7), 7 / 300, rtol=1e-13)


def test_samples_agree():
    w = np.random.default_rng(6).normal(size=60)
    first = tr.sample(torch.from_numpy(w), 40_000, generator=1)[:, :8].numpy()
    seen = np.bincount(first.ravel(), minlength=60) / 40_000
    p = top_k_probabilities(w, 8)
    assert (np.abs(seen - p) < 5 * np.sqrt(p * (1 - p) / 40_000)).all()


def test_a_shift_and_another_order_of_the_items_change_nothing():
    rng = np.random.default_rng(7)
    w = rng.normal(size=90)
    p = top_k_probabilities(w, 12)
    np.testing.assert_allclose(top_k_probabilities(w + 300.0, 12), p, rtol=1e-12)
    order = rng.permutation(90)
    np.testing.assert_allclose(top_k_probabilities(w[order], 12), p[order], rtol=1e-13)


def test_blocks_of_nodes_change_nothing(monkeypatch):
    w = np.random.default_rng(8).normal(size=50)
    p = top_k_probabilities(w, 20)
    monkeypatch.setattr(item_ranks, "NUMBERS_AT_ONCE", 100)
    np.testing.assert_allclose(top_k_probabilities(w, 20), p, rtol=1e-13)


def test_panels_that_are_too_long_are_noticed_and_halved(monkeypatch):
    w = np.random.default_rng(9).normal(size=50)
    p = top_k_probabilities(w, 20)
    monkeypatch.setattr(item_ranks, "DEVIATIONS", 12.0)
    monkeypatch.setattr(item_ranks, "LONGEST", 6.0)
    np.testing.assert_allclose(top_k_probabilities(w, 20), p, rtol=0, atol=1e-9)
    monkeypatch.setattr(item_ranks, "NODES", 1)
    with pytest.raises(ArithmeticError, match="add up to"):
        top_k_probabilities(w, 20)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_k_is_between_1_and_the_number_of_items(k):
    with pytest.raises(ValueError, match="k must be from 1 to 4"):
        top_k_probabilities(np.zeros(4), k)
