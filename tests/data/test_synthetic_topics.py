"""What `label_sets` is made of: frequencies, numbers a row, and sets drawn from topics."""

import itertools
import math

import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.data.synthetic import RowTopics, TopicMixture, power_law, row_sizes


@pytest.fixture(scope="module")
def mixture():
    shares = np.array([0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05])
    return TopicMixture.build(np.random.default_rng(0), shares, background=0.2, topics=3)


def about(topics, weights, rows):
    return RowTopics(np.tile(topics, (rows, 1)), np.tile(np.asarray(weights, float), (rows, 1)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sets_come_with_their_plackett_luce_probability(mixture, size):
    """Every set, as often as the orders in which it may be drawn say; and as `log_prob` says."""
    rows = 200_000
    same = about([0, 2, 1], [0.5, 0.3, 0.2], rows)
    _, items, _ = mixture.draw(np.random.default_rng(1), same, np.full(rows, size))
    drawn = np.sort(items.reshape(rows, size), axis=1)
    worths = mixture.worths(about([0, 2, 1], [0.5, 0.3, 0.2], 1))[0]
    keys = drawn @ 10 ** np.arange(size)
    for chosen in itertools.combinations(range(7), size):
        expected = 0.0
        for order in itertools.permutations(chosen):
            left = 1.0
            product = 1.0
            for item in order:
                product *= worths[item] / left
                left -= worths[item]
            expected += product
        tiers = tr.Tiers.from_rankings([[chosen]], items=range(7), rest="last")
        exact = float(tr.log_prob(torch.from_numpy(np.log(worths)), tiers)[0])
        assert math.exp(exact) == pytest.approx(expected, rel=1e-10)
        found = (keys == np.array(chosen) @ 10 ** np.arange(size)).mean()
        assert found == pytest.approx(expected, abs=5 * math.sqrt(expected / rows))


def test_worths_are_the_mixture_of_the_topics(mixture):
    worths = mixture.worths(about([1, 1, 2], [0.1, 0.2, 0.7], 2))
    np.testing.assert_allclose(worths.sum(axis=1), 1)
    assert (worths > 0).all()
    # three equal topics are the topic itself, and worths are linear in the weights
    parts = [mixture.worths(about([t, t, t], [0.2, 0.3, 0.5], 1))[0] for t in (1, 2)]
    np.testing.assert_allclose(worths[0], 0.3 * parts[0] + 0.7 * parts[1])


def test_over_all_rows_worths_are_the_popularities(mixture):
    rows = RowTopics.draw(np.random.default_rng(2), 8000, mixture.popularity())
    np.testing.assert_allclose(rows.weights.sum(axis=1), 1)
    mean = mixture.worths(rows).mean(axis=0)
    np.testing.assert_allclose(mean, mixture.average_worths(), rtol=0.05)
    shares = np.array([0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05])
    expected = -np.log(1 - shares)
    np.testing.assert_allclose(np.sort(mean)[::-1], expected / expected.sum(), rtol=0.05)


def test_rows_have_the_numbers_asked_for_and_nothing_twice(mixture):
    generator = np.random.default_rng(3)
    rows = RowTopics.draw(generator, 40_000, mixture.popularity())  # more than one block
    sizes = generator.integers(0, 8, 40_000)  # none, and all
    offsets, items, times = mixture.draw(generator, rows, sizes)
    np.testing.assert_array_equal(np.diff(offsets), sizes)
    assert (times >= 1).all()
    row = np.repeat(np.arange(40_000), sizes)
    assert len(np.unique(row * 7 + items)) == len(items)


def test_every_topic_has_members_even_if_there_are_as_many_topics_as_items():
    mixture = TopicMixture.build(np.random.default_rng(4), np.full(5, 0.2), 0.1, topics=5)
    assert np.diff(mixture.offsets).min() >= 1
    assert mixture.masses.min() > 0


@pytest.mark.parametrize(
    ("n", "mean", "head", "rarest"),
    [
        (983, 19.03, 0.4, 0.07),
        (3993, 5.31, 0.08, 0.05),
        (30_938, 18.64, 0.8, 0.15),
        (205_443, 75.54, 0.33, 0.03),
    ],
)
def test_frequencies_follow_a_power_law_with_the_head_mean_and_tail_asked_for(
    n, mean, head, rarest
):
    shares = power_law(n, mean, head, rarest)
    assert shares.shape == (n,)
    assert shares.sum() == pytest.approx(mean, rel=1e-6)
    assert shares[0] == pytest.approx(head, rel=1e-4)
    assert shares[-1] == pytest.approx(rarest * mean / n, rel=1e-4)
    assert (np.diff(shares) < 0).all()
    # f^(−1/s) is linear in the rank for the one right s; its second difference tells
    ranks = np.array([0, n // 2, n - 1])
    exponents = np.linspace(0.3, 8, 20_000)[:, None]
    bent = shares[ranks] ** (-1 / exponents)
    middle = bent[:, 0] + (bent[:, 2] - bent[:, 0]) * (n // 2) / (n - 1)
    s = exponents[np.abs(bent[:, 1] / middle - 1).argmin(), 0]
    straight = np.interp(np.arange(n), ranks[[0, 2]], (shares ** (-1 / s))[ranks[[0, 2]]])
    np.testing.assert_allclose(shares ** (-1 / s), straight, rtol=0.01)


@pytest.mark.parametrize(("n", "mean"), [(2, 1.0), (3, 1.0), (4, 2.0), (10, 5.0), (50, 1.0)])
def test_frequencies_of_few_items_stay_shares(n, mean):
    shares = power_law(n, mean, head=0.08, rarest=0.05)
    assert shares.min() > 0
    assert shares.max() < 1
    assert (np.diff(shares) <= 0).all()
    assert 0.7 * mean < shares.sum() < 1.01 * mean


@pytest.mark.parametrize(
    ("mean", "spread", "most"),
    [(19.03, 5.04, 25), (18.64, 7.0, 30), (5.31, 1.7, None), (75.54, 100.0, None)],
)
def test_numbers_a_row_have_the_mean_and_the_spread_asked_for(mean, spread, most):
    rows = 400_000
    sizes = row_sizes(np.random.default_rng(5), rows, mean, spread, most, limit=100_000)
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(rows))
    assert sizes.std() == pytest.approx(spread, rel=0.05)
    if most is not None:
        assert sizes.max() == most


@pytest.mark.parametrize("limit", [10, 40, 250])
@pytest.mark.parametrize("most", [None, 60])
def test_a_limit_cuts_numbers_off_and_leaves_the_mean(limit, most):
    sizes = row_sizes(np.random.default_rng(6), 100_000, 9.0, 20.0, most, limit)
    assert sizes.min() == 1
    assert sizes.max() <= limit
    assert sizes.mean() == pytest.approx(9, rel=0.03)


@pytest.mark.parametrize(("mean", "limit"), [(1.0, 5), (5.0, 5), (2.0, 9)])
def test_numbers_without_spread_are_all_the_mean(mean, limit):
    assert set(row_sizes(np.random.default_rng(7), 100, mean, 0.0, None, limit)) == {mean}
