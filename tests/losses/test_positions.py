"""Position-aware likelihoods: p-ListMLE, its weights, and the same for ties."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import tierrank as tr
from partitions import ragged, value_and_gradient
from tierrank.losses import gain, list_mle, p_list_mle, pl_partition

# Sections 3.1 and 4.3 of Lan et al. (2014): the best ranking is 1, 2, 3, 4, 5, and f1 errs at the
# top where f2 errs at the bottom.
FIVE = tr.Tiers.from_labels([5, 4, 3, 2, 1])
F1, F2 = np.log([4.0, 5.0, 3.0, 2.0, 1.0]), np.log([5.0, 4.0, 1.0, 2.0, 3.0])


def ndcg(scores):
    """With the gains 2^grade − 1 of grades 5 to 1."""
    gains = 2.0 ** np.array([5, 4, 3, 2, 1]) - 1
    discounts = 1 / np.log2(np.arange(2, 7))
    return (gains[np.argsort(-scores)] * discounts).sum() / (gains * discounts).sum()


def test_list_mle_prefers_an_error_at_the_top():
    first = -math.log(4 / 15 * 5 / 11 * 3 / 6 * 2 / 3)
    second = -math.log(5 / 15 * 4 / 10 * 1 / 6 * 2 / 5)
    assert list_mle(F1, FIVE) == pytest.approx(first, rel=1e-13)
    assert list_mle(F2, FIVE) == pytest.approx(second, rel=1e-13)
    assert first < second
    assert ndcg(F1) < ndcg(F2)  # and NDCG does not


@pytest.mark.parametrize("alpha", [[100, 4, 3, 2, 1], [1, 0], [1000, 100, 10, 1, 0]])
def test_weights_that_satisfy_equation_10_prefer_an_error_at_the_bottom(alpha):
    a1, a2, a3, a4 = (*alpha, 0, 0)[:4]
    assert (a1 - a2 - a4) / (a1 - a2 + a3 - a4) > math.log(4) / math.log(5)
    assert p_list_mle(F1, FIVE, alpha=alpha) > p_list_mle(F2, FIVE, alpha=alpha)


def test_the_weights_of_the_paper_do_not_satisfy_it():
    """For n = 5 the paper's own 2^(n − i) − 1 still prefers f1."""
    a1, a2, a3, a4, _ = (2**i - 1 for i in (4, 3, 2, 1, 0))
    assert (a1 - a2 - a4) / (a1 - a2 + a3 - a4) < math.log(4) / math.log(5)
    assert p_list_mle(F1, FIVE, alpha=gain) == pytest.approx(27.830, abs=5e-4)
    assert p_list_mle(F2, FIVE, alpha=gain) == pytest.approx(29.185, abs=5e-4)
    # divided by their sum, 15 + 7 + 3 + 1, the weights do not overflow
    assert p_list_mle(F1, FIVE) == pytest.approx(p_list_mle(F1, FIVE, alpha=gain) / 26, rel=1e-13)
    assert p_list_mle(F2, FIVE) == pytest.approx(p_list_mle(F2, FIVE, alpha=gain) / 26, rel=1e-13)


@pytest.mark.parametrize("n", [2, 3, 10, 60, 129, 1000, 5000])
def test_the_shares_of_the_gain_at_any_length(n):
    """Against fractions, which know no overflow."""
    rng = np.random.default_rng(n)
    scores = rng.normal(size=n)
    tiers = tr.Tiers.from_labels(-np.arange(n))
    below = np.logaddexp.accumulate(scores[::-1])[::-1]
    total = 2**n - 1 - n
    shares = np.array([float(Fraction(2 ** (n - i) - 1, total)) for i in range(1, n + 1)])
    expected = (shares * (below - scores)).sum()
    assert p_list_mle(scores, tiers) == pytest.approx(expected, rel=1e-12)
    value, gradient = value_and_gradient(lambda w: p_list_mle(w, tiers), scores.astype(np.float32))
    assert value.item() == pytest.approx(expected, rel=1e-5)
    assert gradient.isfinite().all()


def test_the_gain_as_printed_overflows_and_says_so():
    tiers = tr.Tiers.from_labels(-np.arange(1100))
    with pytest.raises(ValueError, match='place 1 is inf; "gain" does not overflow'):
        p_list_mle(np.zeros(1100), tiers, alpha=gain)


def test_a_function_gets_places_and_lengths():
    seen = []

    def by_place(position, length):
        seen.extend(zip(position.tolist(), length.tolist(), strict=True))
        return 1 / position

    tiers = tr.Tiers.from_labels([2, 1, 0, 1, 0], lengths=[3, 2])
    loss = p_list_mle(np.zeros(5), tiers, alpha=by_place, reduction="none")
    np.testing.assert_allclose(loss, [math.log(3) + math.log(2) / 2, math.log(2)], rtol=1e-13)
    assert seen == [(1, 3), (2, 3), (3, 3), (1, 2), (2, 2)]
    rest = tr.Tiers.from_rankings([[3, 0]], items=10, rest="last")
    p_list_mle(np.zeros(10), rest, alpha=by_place)
    assert seen[5:] == [(1, 10), (2, 10)]  # the rest belongs to the list


def test_equal_weights_are_no_weights():
    scores, labels, lengths = ragged(41)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    ones = torch.ones(20)
    loss = pl_partition(scores, tiers, alpha=ones, reduction="none")
    np.testing.assert_allclose(loss, pl_partition(scores, tiers, reduction="none"), rtol=1e-13)


def test_a_tier_is_weighted_by_the_mean_over_its_places():
    tiers = tr.Tiers.from_labels([2, 1, 1, 1, 0])
    scores = np.random.default_rng(4).normal(size=5)
    top = tr.log_prob_above(scores, [0], [1, 2, 3, 4])
    middle = tr.log_prob_above(scores, [1, 2, 3], [4])
    loss = pl_partition(scores, tiers, alpha=[8, 4, 2, 0.5, 100])
    assert loss == pytest.approx(-(8 * top + 6.5 / 3 * middle), rel=1e-12)
    assert p_list_mle(scores, tiers, alpha=[8, 4, 2, 0.5, 100]) == loss
    gains = p_list_mle(scores, tiers)  # 15, 7, 3, 1, 0
    assert gains == pytest.approx(-(15 * top + 11 / 3 * middle) / 26, rel=1e-12)


def test_ties_can_be_broken_first():
    tiers, strict = tr.Tiers.from_labels([1, 1, 0]), tr.Tiers.from_labels([2, 1, 0])
    scores = np.array([0.3, -1.0, 0.5])
    assert p_list_mle(scores, tiers, ties="input") == p_list_mle(scores, strict)
    drawn = {float(p_list_mle(scores, tiers, ties="random", generator=s)) for s in range(20)}
    other = tr.Tiers.from_labels([1, 2, 0])
    assert drawn == {float(p_list_mle(scores, t)) for t in (strict, other)}


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ("discount", "\"gain\", a function or numbers, not 'discount'"),
        ([1.0, -1.0], "place 2 is -1.0"),
        ([1.0, math.nan], "place 2 is nan"),
        ([[1.0, 2.0]], r"a list of numbers, not \[1, 2\]"),
    ],
)
def test_weights_that_are_none_are_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        p_list_mle(F1, FIVE, alpha=alpha)


@pytest.mark.parametrize(
    "kind", [torch.uint8, torch.int16, torch.uint16, torch.uint32, torch.int64]
)
def test_positions_of_every_whole_type_add_the_same_bias(kind):
    bias = tr.losses.PositionBias(3, start=[0.0, -1.0, -2.0])
    found = bias(torch.tensor([2.0, 3.0]), torch.tensor([1, 3]).to(kind))
    assert found.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match=r"whole numbers, not torch\.complex64"):
        bias(torch.tensor([2.0]), torch.tensor([1 + 0j]))
