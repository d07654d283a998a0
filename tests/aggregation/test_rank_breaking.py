"""Generalised rank-breaking: preferences as tiers, whatever their size, and their likelihood."""

import tracemalloc
from itertools import pairwise, permutations
from math import comb, exp, lgamma

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tierrank as tr
from tierrank.tiers import Tiers


def probability_of_order(scores, order):
    """Plackett-Luce, by its definition."""
    worths = np.exp(scores[list(order)])
    return float(np.prod(worths / np.cumsum(worths[::-1])[::-1]))


def probability_of_preferences(scores, pairs):
    """The sum over all orders that agree with every pair."""
    items = range(len(scores))
    return sum(
        probability_of_order(scores, order)
        for order in permutations(items)
        if all(order.index(winner) < order.index(loser) for winner, loser in pairs)
    )


@settings(max_examples=25)
@given(st.data())
def test_the_exact_partition_claims_no_more_than_the_preferences(data):
    order = data.draw(st.permutations(range(5)))
    pairs = [(order[i], order[j]) for i in range(5) for j in range(i + 1, 5)]
    kept = data.draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    kept += [(order[0], item) for item in order[1:]]  # every item is mentioned
    scores = np.array([0.9, -0.3, 0.2, -1.1, 0.5])
    tiers = Tiers.from_preferences([kept], items=5)
    broken = exp(float(tr.log_prob(scores, tiers)[0]))
    given_all = probability_of_preferences(scores, kept)
    assert given_all <= broken * (1 + 1e-9)
    # Nothing is lost where all pairs of different tiers are all that was said.
    levels = [t if isinstance(t, tuple) else (t,) for t in tiers.to_rankings()[0]]
    level_of = {item: level for level, items in enumerate(levels) for item in items}
    if all(level_of[winner] < level_of[loser] for winner, loser in kept):
        assert given_all == pytest.approx(broken, rel=1e-9)


def test_layers_claim_more():
    games = [("ann", "bob"), ("cy", "dee")]
    scores = np.array([0.9, -0.3, 0.2, -1.1])
    exact = Tiers.from_preferences([games], items=["ann", "bob", "cy", "dee"])
    layers = Tiers.from_preferences([games], items=["ann", "bob", "cy", "dee"], method="layers")
    said = probability_of_preferences(scores, [(0, 1), (2, 3)])
    assert float(tr.log_prob(scores, exact)[0]) == 0.0  # one tier: nothing is claimed
    assert exp(float(tr.log_prob(scores, layers)[0])) < said < 1


def log_prob_of_equal_scores(tier_sizes):
    """All orders are alike, so a tier is the first of what is left with probability 1 / C(n, k)."""
    left = np.cumsum(tier_sizes[::-1])[::-1]
    return -sum(
        lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        for n, k in zip(left.tolist(), tier_sizes.tolist(), strict=True)
    )


def check_likelihood(tiers, seed=0):
    """The value where it is known, and the gradient along a direction by central differences."""
    rng = np.random.default_rng(seed)
    w = torch.tensor(rng.normal(size=tiers.n_items), requires_grad=True)
    value = tr.log_prob(w, tiers).sum()
    value.backward()
    assert torch.isfinite(w.grad).all()
    assert abs(float(w.grad.sum())) < 1e-6 * max(1.0, float(w.grad.abs().sum()))
    direction = torch.tensor(rng.normal(size=tiers.n_items))
    step = 1e-4
    up, down = (
        float(tr.log_prob(w.detach() + sign * step * direction, tiers).sum()) for sign in (1, -1)
    )
    slope = float(w.grad @ direction)
    assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-5)


def planted_preferences(blocks, block_size, inner, seed):
    """Blocks of items with a hub between two: all of a block > hub > all of the next.

    Inside a block there are `inner` random preferences, but its first item has none there, so
    that nothing cuts a block in two. Items have random numbers. Gives the pairs and the tiers.
    """
    rng = np.random.default_rng(seed)
    n_items = blocks * block_size + blocks - 1
    number = rng.permutation(n_items)
    starts = np.arange(blocks) * (block_size + 1)
    members = starts[:, None] + np.arange(block_size)
    hubs = starts[1:] - 1
    to_hub = np.stack([members[:-1], np.broadcast_to(hubs[:, None], members[:-1].shape)], axis=-1)
    from_hub = np.stack([np.broadcast_to(hubs[:, None], members[1:].shape), members[1:]], axis=-1)
    inside = np.sort(rng.integers(1, block_size, (blocks, inner, 2)), axis=-1)
    inside = (inside + starts[:, None, None]).reshape(-1, 2)
    inside = inside[inside[:, 0] < inside[:, 1]]
    pairs = np.concatenate([to_hub.reshape(-1, 2), from_hub.reshape(-1, 2), inside])
    levels = []
    for block in members:
        levels += [tuple(number[block].tolist()), number[(block[-1] + 1) % n_items].item()]
    return number[rng.permutation(pairs)], levels[:-1]


@pytest.mark.slow
def test_a_million_preferences_in_one_list():
    pairs, levels = planted_preferences(blocks=100, block_size=2_000, inner=6_100, seed=1)
    assert len(pairs) > 1_000_000
    tiers = Tiers.from_preferences([pairs])
    assert tiers == Tiers.from_rankings([levels], items=tiers.n_items)
    equal = tr.log_prob(np.zeros(tiers.n_items), tiers)[0]
    assert float(equal) == pytest.approx(
        log_prob_of_equal_scores(tiers.tier_sizes.numpy()), rel=1e-9
    )
    check_likelihood(tiers)


def test_a_million_preferences_that_are_one_chain():
    order = np.random.default_rng(2).permutation(1_000_001)
    tiers = Tiers.from_preferences([np.stack([order[:-1], order[1:]], axis=1)])
    assert np.array_equal(tiers.items.numpy(), order)
    assert len(tiers.tier_sizes) == len(order)
    equal = tr.log_prob(np.zeros(len(order)), tiers)[0]
    assert float(equal) == pytest.approx(-lgamma(len(order) + 1), rel=1e-12)


@pytest.mark.slow
def test_a_million_preferences_in_a_hundred_thousand_lists():
    rng = np.random.default_rng(3)
    shapes = [(2, 3, 3), (1, 7), (3, 2, 1, 2), (4, 4)]
    items = rng.integers(0, 1_000, (100_000, 1)) * 8 + rng.permuted(
        np.tile(np.arange(8), (100_000, 1)), axis=1
    )
    pairs, rankings = [None] * len(items), [None] * len(items)
    for first, shape in enumerate(shapes):
        tiers = np.split(np.arange(8), np.cumsum(shape)[:-1])
        places = [(i, j) for upper, lower in pairwise(tiers) for i in upper for j in lower]
        pairs[first::4] = items[first::4, places]
        rankings[first::4] = zip(
            *(map(tuple, items[first::4, tier].tolist()) for tier in tiers), strict=True
        )
    assert sum(map(len, pairs)) > 1_000_000
    broken = Tiers.from_preferences(pairs, items=8_000)
    assert broken == Tiers.from_rankings(map(list, rankings), items=8_000)
    equal = tr.log_prob(np.zeros(8_000), broken)[:4]
    assert np.exp(-equal) == pytest.approx(
        [comb(8, 2) * comb(6, 3), 8, comb(8, 3) * comb(5, 2) * 3, comb(8, 4)]
    )
    check_likelihood(broken)


@pytest.mark.parametrize("rest", ["absent", "last"])
def test_fifty_thousand_tied_items_in_one_tier(rest):
    n = 100_000
    top = tuple(range(0, n, 2))
    ranking = [top] if rest == "last" else [top, tuple(range(1, n, 2))]
    tiers = Tiers.from_rankings([ranking], items=n, rest=rest)
    expected = 2 * lgamma(n // 2 + 1) - lgamma(n + 1)
    assert float(tr.log_prob(np.zeros(n), tiers)[0]) == pytest.approx(expected, rel=1e-12)
    check_likelihood(tiers)


def test_fifty_thousand_tied_items_from_preferences_over_one():
    pairs = np.stack([np.arange(50_000), np.full(50_000, 50_000)], axis=1)
    tiers = Tiers.from_preferences([pairs])
    assert tiers.tier_sizes.tolist() == [50_000, 1]
    scores = np.append(np.zeros(50_000), 0.0)
    # The last of 50,001 equal items is any of them.
    assert float(tr.log_prob(scores, tiers)[0]) == pytest.approx(-np.log(50_001), rel=1e-9)
    check_likelihood(tiers)


@pytest.mark.parametrize("method", ["exact", "layers"])
def test_memory_grows_with_the_number_of_preferences_not_of_pairs(method):
    def peak(blocks):
        pairs, _ = planted_preferences(blocks, block_size=500, inner=1_000, seed=4)
        tracemalloc.start()
        Tiers.from_preferences([pairs], method=method)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used / len(pairs)

    peak(2)  # compiles
    small, large = peak(20), peak(160)
    assert large < 1.2 * small
    assert large < 200  # bytes a preference
