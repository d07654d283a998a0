"""The losses that are minus a log-likelihood: exact, of the first places, and with ties broken."""

import itertools

import numpy as np
import pytest
import torch

import tierrank as tr
from partitions import ragged, value_and_gradient
from tierrank.losses import list_mle, pl_partition, pl_top_k

SCORES, LABELS, LENGTHS = ragged(31, lists=6, longest=8)
TIERS = tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0, 0.25])


# PL-Partition ----------------------------------------------------------------------------------


def test_pl_partition_is_minus_the_log_probability():
    each = pl_partition(SCORES, TIERS, reduction="none")
    np.testing.assert_array_equal(each, -tr.log_prob(SCORES, TIERS))
    loss, gradient = value_and_gradient(lambda w: pl_partition(w, TIERS, weights=WEIGHTS), SCORES)
    weights = torch.from_numpy(WEIGHTS / 6.75)
    _, expected = value_and_gradient(lambda w: -weights * tr.log_prob(w, TIERS), SCORES)
    assert loss.dim() == 0
    torch.testing.assert_close(gradient, expected, rtol=1e-14, atol=1e-15)


# PL-TopK ---------------------------------------------------------------------------------------


def test_the_first_places_of_a_strict_ranking():
    worths = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    tiers = tr.Tiers.from_labels([4, 3, 2, 1, 0])
    terms = [5 / 15, 4 / 10, 3 / 6, 2 / 3]
    for k in range(1, 5):
        loss = pl_top_k(np.log(worths), tiers, k=k)
        assert loss == pytest.approx(-np.log(terms[:k]).sum(), rel=1e-13)
    for k in (5, 6, 100):
        assert pl_top_k(np.log(worths), tiers, k=k) == pl_partition(np.log(worths), tiers)


def test_ties_that_begin_within_the_first_places_are_summed_over():
    tiers = tr.Tiers.from_labels([3, 2, 2, 1, 0])
    known = tr.Tiers.from_labels([3, 2, 2, 0, 0])
    for k in (2, 3):
        assert pl_top_k(SCORES[:5], tiers, k=k) == pl_partition(SCORES[:5], known)


def test_no_place_is_no_number_of_places():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        pl_top_k(SCORES, TIERS, k=0)


# ListMLE ---------------------------------------------------------------------------------------

# item 2 first, then 0 and 3, in an order that nobody knows, then 1
TIE = tr.Tiers.from_labels([1, 0, 2, 1])
TIE_SCORES = np.array([0.4, -0.3, 1.2, -0.9])


def minus_log_prob_of(ranking):
    """Of a full ranking of TIE_SCORES."""
    worths = np.exp(TIE_SCORES[list(ranking)])
    return -np.log(worths / worths[::-1].cumsum()[::-1]).sum()


def test_list_mle_of_a_strict_ranking_is_the_product_of_its_choices():
    tiers = tr.Tiers.from_rankings([[1, 3, 0, 2]])
    scores = TIE_SCORES
    for ties in ("exact", "input", "random"):
        loss = list_mle(scores, tiers, ties=ties)
        assert loss == pytest.approx(minus_log_prob_of([1, 3, 0, 2]), rel=1e-13)


def test_list_mle_invents_no_order_unless_asked_to():
    exact = pl_partition(TIE_SCORES, TIE)
    assert list_mle(TIE_SCORES, TIE) == exact
    assert list_mle(TIE_SCORES, TIE, ties="exact") == exact
    either = np.logaddexp(-minus_log_prob_of([2, 0, 3, 1]), -minus_log_prob_of([2, 3, 0, 1]))
    assert exact == pytest.approx(-either, rel=1e-13)


def test_list_mle_by_the_order_of_the_input():
    loss = list_mle(TIE_SCORES, TIE, ties="input")
    assert loss == pytest.approx(minus_log_prob_of([2, 0, 3, 1]), rel=1e-13)
    reverse = tr.Tiers.from_rankings([[2, (3, 0), 1]], items=4)
    loss = list_mle(TIE_SCORES, reverse, ties="input")
    assert loss == pytest.approx(minus_log_prob_of([2, 3, 0, 1]), rel=1e-13)


def test_list_mle_breaks_ties_of_the_last_tier_too():
    tiers = tr.Tiers.from_labels([0, 0, 1, 0])
    assert list_mle(TIE_SCORES, tiers, ties="input") == pytest.approx(
        minus_log_prob_of([2, 0, 1, 3]), rel=1e-13
    )


def test_list_mle_by_random_orders():
    orders = [minus_log_prob_of([2, 0, 3, 1]), minus_log_prob_of([2, 3, 0, 1])]
    drawn = [float(list_mle(TIE_SCORES, TIE, ties="random", generator=s)) for s in range(40)]
    nearest = [int(np.argmin([abs(loss - order) for order in orders])) for loss in drawn]
    np.testing.assert_allclose(drawn, [orders[i] for i in nearest], rtol=1e-13)
    assert 8 < sum(nearest) < 32  # either comes half of the time
    again = [float(list_mle(TIE_SCORES, TIE, ties="random", generator=s)) for s in range(40)]
    assert again == drawn
    generator = torch.Generator().manual_seed(3)
    assert list_mle(TIE_SCORES, TIE, ties="random", generator=generator) == drawn[3]


def test_random_orders_are_drawn_anew_each_time_without_a_seed():
    tiers = tr.Tiers.from_labels(np.zeros(50))
    scores = np.linspace(-3, 3, 50)
    losses = {float(list_mle(scores, tiers, ties="random")) for _ in range(5)}
    assert len(losses) == 5


@pytest.mark.parametrize("ties", ["input", "random"])
def test_a_rest_that_is_not_written_stays_tied(ties):
    tiers = tr.Tiers.from_rankings([[(2,), (0,)]], items=4, rest="last")
    expected = np.logaddexp.reduce(
        [-minus_log_prob_of([2, 0, *rest]) for rest in itertools.permutations([1, 3])]
    )
    assert list_mle(TIE_SCORES, tiers, ties=ties, generator=0) == pytest.approx(
        -expected, rel=1e-13
    )


def test_an_unknown_way_to_break_ties_is_refused():
    with pytest.raises(
        ValueError, match='"exact", broken by "input" or at "random", not \'first\''
    ):
        list_mle(TIE_SCORES, TIE, ties="first")
