"""`sample`: rankings that come as often as the model says, and that give their worths back."""

import itertools

import numpy as np
import pytest
import torch
from scipy import optimize, stats

import tierrank as tr
from partitions import each_dtype
from tierrank.data.synthetic import simulate
from tierrank.plackett_luce import model

WORTHS = np.array([4.0, 3.0, 2.0, 1.0])


def probabilities(places, worths=WORTHS):
    """{ranking of that many places: its probability}."""
    result = {}
    for ranking in itertools.permutations(range(len(worths)), places):
        left, p = worths.sum(), 1.0
        for item in ranking:
            p, left = p * worths[item] / left, left - worths[item]
        result[ranking] = p
    return result


def assert_as_probable(rankings, expected):
    """Chi-square: frequencies this far off come once in a thousand times, if they are right."""
    drawn, counts = np.unique(np.asarray(rankings), axis=0, return_counts=True)
    observed = dict.fromkeys(expected, 0) | dict(
        zip(map(tuple, drawn.tolist()), counts, strict=True)
    )
    assert observed.keys() == expected.keys()
    frequencies = [observed[ranking] for ranking in expected]
    result = stats.chisquare(frequencies, len(rankings) * np.array(list(expected.values())))
    assert result.pvalue > 1e-3


@each_dtype
def test_all_24_orders_of_4_items_come_as_often_as_they_should(dtype):
    scores = torch.from_numpy(np.log(WORTHS)).to(dtype)
    rankings = tr.sample(scores, 100_000, generator=1)
    assert len(probabilities(4)) == 24
    assert_as_probable(rankings, probabilities(4))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_first_places_alone_come_as_often_as_in_full_rankings(k):
    scores = np.log(WORTHS) + 1e3  # a constant does not matter
    assert_as_probable(tr.sample(scores, 50_000, k=k, generator=2), probabilities(k))
    assert_as_probable(tr.sample(scores, 50_000, generator=3)[:, :k], probabilities(k))


@pytest.mark.parametrize(
    ("dtype", "constant"),
    [
        (torch.float32, 1e7),
        (torch.float32, -1e7),
        (torch.float64, 4e15),
        (torch.float64, -4e15),
    ],
)
@pytest.mark.parametrize("k", [None, 1])
def test_a_constant_changes_nothing_however_large_it_is(dtype, constant, k):
    scores = torch.tensor([0.0, 1.0, 0.0, 2.0], dtype=dtype) + constant
    assert (scores - constant).tolist() == [0, 1, 0, 2]  # so the sums are exact
    expected = probabilities(k or 4, np.exp([0.0, 1.0, 0.0, 2.0]))
    assert_as_probable(tr.sample(scores, 50_000, k=k, generator=10), expected)


@pytest.mark.parametrize(
    ("dtype", "depth"), [(torch.float32, 1e7), (torch.float64, 4e15), (torch.float64, 1.7e308)]
)
def test_items_far_below_the_best_are_drawn_among_themselves_as_if_alone(dtype, depth):
    """Three groups, far apart: each of two, by worths 1 and 2, or 1 and 1 where no 1 fits in."""
    step = 1.0 if depth < 1e300 else 0.0
    scores = torch.tensor([-depth, depth, step - depth, step, depth + step, 0.0], dtype=dtype)
    rankings = tr.sample(scores[None].expand(2, -1), 40_000, generator=11)[:, 1]
    odds = np.exp(step)
    alone = np.array([1, odds]) / (1 + odds)
    expected = {
        (*top, *middle, *bottom): p * q * r
        for top, p in zip(((1, 4), (4, 1)), alone, strict=True)
        for middle, q in zip(((5, 3), (3, 5)), alone, strict=True)
        for bottom, r in zip(((0, 2), (2, 0)), alone, strict=True)
    }
    assert_as_probable(rankings, expected)


def test_each_list_is_drawn_by_its_own_scores():
    scores = np.log(np.stack([WORTHS, WORTHS[::-1], np.ones(4)]))
    rankings = tr.sample(scores, 40_000, generator=4)
    assert rankings.shape == (40_000, 3, 4)
    assert_as_probable(rankings[:, 0], probabilities(4))
    assert_as_probable(3 - rankings[:, 1], probabilities(4))
    assert_as_probable(rankings[:, 2], dict.fromkeys(probabilities(4), 1 / 24))


def test_frequencies_of_ties_are_what_log_prob_says():
    """The model of the samples is the model of the likelihood."""
    scores = np.array([0.7, -0.4, 0.2, 1.1, -1.0])
    first_two = np.sort(tr.sample(scores, 60_000, k=2, generator=5), axis=1)
    pairs = list(itertools.combinations(range(5), 2))
    tiers = tr.Tiers.from_rankings([[pair] for pair in pairs], items=5, rest="last")
    expected = dict(zip(pairs, np.exp(tr.log_prob(scores, tiers)), strict=True))
    assert_as_probable(first_two, expected)


def test_every_ranking_names_each_item_once_best_first():
    rankings = tr.sample(np.linspace(0, 300, 7), 50, generator=0)
    assert (rankings == np.arange(7)[::-1]).all()  # 50 apart: no noise is that large
    rankings = tr.sample(np.zeros(7), 50, generator=0)
    assert (np.sort(rankings, axis=1) == np.arange(7)).all()
    assert len(np.unique(rankings, axis=0)) > 1


def test_the_same_seed_gives_the_same_rankings():
    scores = torch.zeros(6)
    first = tr.sample(scores, 20, generator=7)
    assert torch.equal(tr.sample(scores, 20, generator=7), first)
    assert torch.equal(tr.sample(scores, 20, generator=torch.Generator().manual_seed(7)), first)
    assert not torch.equal(tr.sample(scores, 20, generator=8), first)
    generator = torch.Generator().manual_seed(7)
    assert torch.equal(tr.sample(scores, 20, generator=generator), first)
    assert not torch.equal(tr.sample(scores, 20, generator=generator), first)  # it moves on
    with torch.random.fork_rng():
        torch.manual_seed(7)
        assert torch.equal(tr.sample(scores, 20), first)


def test_many_rankings_are_drawn_in_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(model, "BLOCK", 40)  # ten rankings of four
    rankings = tr.sample(np.log(WORTHS), 20_003, generator=6)
    assert rankings.shape == (20_003, 4)
    assert_as_probable(rankings, probabilities(4))


@pytest.mark.parametrize(
    ("shape", "k", "expected"),
    [
        ((5,), None, (3, 5)),
        ((5,), 2, (3, 2)),
        ((5,), 5, (3, 5)),
        ((5,), 0, (3, 0)),
        ((2, 5), None, (3, 2, 5)),
        ((2, 5), 1, (3, 2, 1)),
        ((0, 5), 1, (3, 0, 1)),
        ((0,), None, (3, 0)),
    ],
)
def test_shapes(shape, k, expected):
    scores = np.zeros(shape)
    rankings = tr.sample(scores, 3, k=k, generator=0)
    assert isinstance(rankings, np.ndarray)
    assert rankings.dtype == np.int64
    assert rankings.shape == expected
    assert tr.sample(scores, 0, k=k, generator=0).shape == (0, *expected[1:])
    from_torch = tr.sample(torch.from_numpy(scores), 3, k=k, generator=0)
    assert isinstance(from_torch, torch.Tensor)
    assert np.array_equal(from_torch, rankings)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros(3), {"n": 2, "k": 4}, "k = 4 places cannot be filled from 3 items"),
        (np.zeros(3), {"n": 2, "k": -1}, "k = -1 places"),
        (np.zeros(3), {"n": -1}, "n = -1 is negative"),
        (np.array(1.0), {"n": 2}, r"\[items\] or \[lists, items\], not of shape \[\]"),
        (np.zeros((2, 2, 2)), {"n": 2}, r"not of shape \[2, 2, 2\]"),
        (np.array([0.0, np.nan]), {"n": 2}, r"scores\[1\] is nan"),
        (np.array([[0.0, 1.0], [np.inf, 0.0]]), {"n": 2}, r"scores\[1, 0\] is inf"),
    ],
)
def test_what_cannot_be_drawn_is_refused(scores, options, message):
    with pytest.raises(ValueError, match=message):
        tr.sample(scores, **options)


def test_drawn_lists_with_ties_give_their_worths_back():
    """Maximum likelihood is within a few of the standard errors that `Curvature` gives."""
    truth, tiers = simulate(items=8, lists=3000, tiers=3, seed=9)
    truth = (truth - truth.mean()).numpy()

    def loss_and_gradient(w):
        scores = torch.from_numpy(w).requires_grad_()
        loss = -tr.log_prob(scores, tiers).sum()
        (gradient,) = torch.autograd.grad(loss, scores)
        return loss.item(), gradient.numpy()

    found = optimize.minimize(
        loss_and_gradient, np.zeros(8), jac=True, method="L-BFGS-B", options={"gtol": 1e-6}
    ).x
    found -= found.mean()
    curvature = tr.Curvature(found, tiers)
    information = -np.stack([curvature @ unit for unit in np.eye(8)])
    # worths count up to a constant: 7 dimensions, and rounding in the eighth
    covariance = np.linalg.pinv(information, rcond=1e-12)
    z = (found - truth) / np.sqrt(covariance.diagonal())
    assert abs(found - truth).max() < 0.15
    assert abs(z).max() < 4
    # and all of them together: by chance it is larger once in a thousand times
    assert (found - truth) @ information @ (found - truth) < stats.chi2(df=7).isf(1e-3)
