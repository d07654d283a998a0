"""The losses that are minus a log-likelihood: exact, bounded from below, and with ties broken."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tierrank as tr
from partitions import each_dtype, ragged, tiers_of_scores, value_and_gradient
from tierrank.losses import list_mle, pl_lower_bound, pl_partition

SEEDS = st.integers(0, 10**6)
LOSSES = {"pl_partition": pl_partition, "pl_lower_bound": pl_lower_bound, "list_mle": list_mle}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())

SCORES, LABELS, LENGTHS = ragged(31, lists=6, longest=8)
TIERS = tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0, 0.25])


# What all of them share ------------------------------------------------------------------------


@each_loss
def test_a_loss_is_reduced_to_its_mean_unless_asked_otherwise(loss):
    each = loss(SCORES, TIERS, reduction="none")
    assert each.shape == (6,)
    assert (each >= 0).all()
    assert loss(SCORES, TIERS) == pytest.approx(each.mean(), rel=1e-14)
    assert loss(SCORES, TIERS, reduction="mean") == pytest.approx(each.mean(), rel=1e-14)
    assert loss(SCORES, TIERS, reduction="sum") == pytest.approx(each.sum(), rel=1e-14)


@each_loss
def test_weights_say_how_much_each_list_counts(loss):
    each = loss(SCORES, TIERS, reduction="none")
    weighted = loss(SCORES, TIERS, weights=WEIGHTS, reduction="none")
    np.testing.assert_allclose(weighted, WEIGHTS * each, rtol=1e-14)
    total = (WEIGHTS * each).sum()
    assert loss(SCORES, TIERS, weights=WEIGHTS, reduction="sum") == pytest.approx(total, rel=1e-14)
    mean = loss(SCORES, TIERS, weights=WEIGHTS)
    assert mean == pytest.approx(total / 6.75, rel=1e-14)
    for other in (10 * WEIGHTS, list(WEIGHTS), torch.from_numpy(WEIGHTS).float()):
        assert loss(SCORES, TIERS, weights=other) == pytest.approx(mean, rel=1e-14)
    whole = np.array([1, 2, 0, 1, 3, 1])
    assert loss(SCORES, TIERS, weights=whole) == pytest.approx((whole * each).sum() / 8, rel=1e-14)


@each_loss
def test_a_list_of_weight_zero_has_no_gradient(loss):
    _, gradient = value_and_gradient(lambda w: loss(w, TIERS, weights=WEIGHTS), SCORES)
    rows = np.repeat(np.arange(6), LENGTHS)
    assert gradient[rows == 2].count_nonzero() == 0
    assert gradient[rows == 4].count_nonzero() > 0


@each_loss
@each_dtype
def test_a_loss_keeps_the_kind_of_the_scores(loss, dtype):
    given_ = torch.from_numpy(SCORES).to(dtype)
    for reduction in ("mean", "sum", "none"):
        result = loss(given_, TIERS, weights=WEIGHTS, reduction=reduction)
        assert isinstance(result, torch.Tensor)
        assert result.dtype == dtype
        in_numpy = loss(given_.numpy(), TIERS, weights=WEIGHTS, reduction=reduction)
        assert isinstance(in_numpy, np.ndarray)
        assert in_numpy.dtype == given_.numpy().dtype
        np.testing.assert_array_equal(in_numpy, result)


@each_loss
def test_half_precision_is_computed_in_single(loss):
    half = torch.from_numpy(SCORES).to(torch.bfloat16).requires_grad_()
    result = loss(half, TIERS)
    assert result.dtype == torch.float32
    assert result.item() == pytest.approx(loss(half.detach().double(), TIERS).item(), rel=1e-5)
    result.backward()
    assert half.grad.dtype == torch.bfloat16
    assert half.grad.isfinite().all()


@each_loss
@pytest.mark.parametrize("junk", [math.nan, math.inf, 1e30])
def test_padding_is_never_looked_at(loss, junk):
    tiers = tr.Tiers.from_labels([[1, 0, 7], [0, 1, 2]], mask=[[True, True, False], [True] * 3])
    clean = np.array([[0.5, 0.25, 0.0], [0.0, 1.0, -1.0]])
    padded = clean.copy()
    padded[0, 2] = junk
    expected = loss(clean, tiers, reduction="none")
    np.testing.assert_array_equal(loss(padded, tiers, reduction="none"), expected)


@each_loss
def test_an_item_that_no_list_names_is_never_looked_at(loss):
    tiers = tr.Tiers.from_rankings([[0, (1, 2)]], items=4)
    clean, junk = np.array([0.5, 0.25, 0.0, 0.0]), np.array([0.5, 0.25, 0.0, np.nan])
    assert loss(junk, tiers) == loss(clean, tiers)


@each_loss
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [(0, 0), (1, 1), (1, 2)])
def test_a_score_that_is_not_finite_is_named(loss, bad, at):
    scores = np.zeros((2, 3))
    scores[at] = bad
    with pytest.raises(ValueError, match=rf"scores\[{at[0]}, {at[1]}\].* is {bad}"):
        loss(scores, tr.Tiers.from_labels([[2, 1, 0], [0, 1, 1]]))


@each_loss
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "median"}, '"mean", "sum" or "none", not \'median\''),
        ({"weights": np.ones(5)}, "6 lists need as many weights"),
        ({"weights": np.ones((6, 1))}, "6 lists need as many weights"),
        ({"weights": [1, 1, 1, 1, 1, -1]}, "not negative"),
        ({"weights": [1, 1, 1, 1, 1, math.nan]}, "finite"),
        ({"weights": [1, 1, 1, 1, 1, math.inf]}, "finite"),
        ({"weights": np.zeros(6)}, "no mean"),
    ],
)
def test_what_makes_no_sense_is_refused(loss, options, message):
    with pytest.raises(ValueError, match=message):
        loss(SCORES, TIERS, **options)


@each_loss
def test_no_lists_have_a_sum_but_no_mean(loss):
    none = tr.Tiers.from_labels([])
    assert loss(np.zeros(0), none, reduction="none").shape == (0,)
    assert loss(np.zeros(0), none, reduction="sum") == 0
    with pytest.raises(ValueError, match="no mean over no lists"):
        loss(np.zeros(0), none)


# PL-Partition ----------------------------------------------------------------------------------


def test_pl_partition_is_minus_the_log_probability():
    each = pl_partition(SCORES, TIERS, reduction="none")
    np.testing.assert_array_equal(each, -tr.log_prob(SCORES, TIERS))
    loss, gradient = value_and_gradient(lambda w: pl_partition(w, TIERS, weights=WEIGHTS), SCORES)
    weights = torch.from_numpy(WEIGHTS / 6.75)
    _, expected = value_and_gradient(lambda w: -weights * tr.log_prob(w, TIERS), SCORES)
    assert loss.dim() == 0
    torch.testing.assert_close(gradient, expected, rtol=1e-14, atol=1e-15)


# PL-LB -----------------------------------------------------------------------------------------


def lower_bound(tiers):
    """The formula for one list of tiers of scores: Σ log n! + Σ (w − lse of it and all below)."""
    total = 0.0
    for m, tier in enumerate(tiers[:-1]):
        among = np.logaddexp.reduce(np.concatenate(tiers[m:]))
        total += math.lgamma(len(tier) + 1) + (tier - among).sum()
    return total


def by_list(scores, labels, lengths):
    borders = np.cumsum(lengths)[:-1]
    lists = zip(np.split(scores, borders), np.split(labels, borders), strict=True)
    return [tiers_of_scores(*one) for one in lists]


@given(seed=SEEDS)
@settings(max_examples=25)
def test_the_lower_bound_is_its_formula_and_below_the_exact_value(seed):
    scores, labels, lengths = ragged(seed)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    bound = -pl_lower_bound(scores, tiers, reduction="none")
    expected = [lower_bound(one) for one in by_list(scores, labels, lengths)]
    np.testing.assert_allclose(bound, expected, rtol=1e-12, atol=1e-12)
    assert (bound <= tr.log_prob(scores, tiers) + 1e-12).all()


def test_the_lower_bound_is_below_where_there_are_ties_above_the_last_tier():
    tied = tr.Tiers.from_labels([1, 1, 0])
    exact, bound = pl_partition(np.zeros(3), tied), pl_lower_bound(np.zeros(3), tied)
    assert exact == pytest.approx(-math.log(1 / 3), rel=1e-14)
    assert bound == pytest.approx(-math.log(2 / 9), rel=1e-14)  # 2! · (1/3)²


@given(seed=SEEDS)
@settings(max_examples=25)
def test_the_lower_bound_is_exact_for_strict_lists(seed):
    rng = np.random.default_rng(seed)
    scores = 3 * rng.normal(size=(4, 7))
    labels = rng.permuted(np.tile(np.arange(7), (4, 1)), axis=1)
    labels[:2] = np.maximum(labels[:2], 3)  # with a tie in the last place
    tiers = tr.Tiers.from_labels(labels)
    value, gradient = value_and_gradient(lambda w: pl_lower_bound(w, tiers), scores)
    exact, exact_gradient = value_and_gradient(lambda w: pl_partition(w, tiers), scores)
    torch.testing.assert_close(value, exact, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=1e-13)


def test_the_lower_bound_equals_breslows_approximation_in_survival_analysis():
    """A list is a stratum, a tier a set of tied deaths, the last tier is censored."""
    regression = pytest.importorskip("statsmodels.duration.hazard_regression")
    scores, labels, lengths = ragged(32, lists=5, longest=9, grades=3)
    lists = by_list(scores, labels, lengths)
    stratum = np.repeat(np.arange(5), lengths)
    last = np.array([labels[stratum == s].min() for s in range(5)])[stratum]
    model = regression.PHReg(
        10 - labels, scores[:, None], status=labels > last, strata=stratum, ties="breslow"
    )
    orders = sum(math.lgamma(len(tier) + 1) for tiers in lists for tier in tiers[:-1])
    bound = -pl_lower_bound(scores, tr.Tiers.from_labels(labels, lengths=lengths), reduction="sum")
    assert bound == pytest.approx(model.loglike(np.ones(1)) + orders, rel=1e-12)


@pytest.mark.parametrize("scores", [[0.3, -1.2, 0.8, 2.0], [9.0, -1.2, 0.8, 1.0]])
def test_the_lower_bound_of_a_catalogue(scores):
    """Shared scores, with a rest that is not written (and thin, in the second case)."""
    scores = np.array(scores)
    rankings = [[(0, 1)], [2, (0, 3)], [], [(0, 1, 2, 3)], [0, 1, 2]]
    tiers = tr.Tiers.from_rankings(rankings, items=4, rest="last")
    written = [[[0, 1], [2, 3]], [[2], [0, 3], [1]], [[0, 1, 2, 3]], [[0, 1, 2, 3]],
               [[0], [1], [2], [3]]]  # fmt: skip
    expected = [lower_bound([scores[tier] for tier in one]) for one in written]
    for given_ in (scores, np.tile(scores, (5, 1))):
        bound = -pl_lower_bound(given_, tiers, reduction="none")
        np.testing.assert_allclose(bound, expected, rtol=1e-12, atol=1e-12)
        assert torch.autograd.gradcheck(
            lambda w: pl_lower_bound(w, tiers), torch.from_numpy(given_).requires_grad_()
        )


@pytest.mark.parametrize("height", [-1e4, 1e4])
@each_dtype
def test_the_lower_bound_of_scores_of_ten_thousand(height, dtype):
    labels = [2, 2, 1, 0, 0]
    tiers = tr.Tiers.from_labels(labels)
    differences = np.array([0.5, 0.0, -0.25, 1.0, 0.75])
    scores = torch.from_numpy(height + differences).to(dtype)
    value, gradient = value_and_gradient(lambda w: -pl_lower_bound(w, tiers), scores)
    exact = lower_bound(tiers_of_scores(differences, labels))
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}[dtype]
    assert value.item() == pytest.approx(exact, rel=tolerance)
    assert gradient.sum().item() == pytest.approx(0, abs=10 * tolerance)
    apart, gradient = value_and_gradient(
        lambda w: -pl_lower_bound(w, tiers), torch.tensor([1e4, 1e4, 0, -1e4, -1e4], dtype=dtype)
    )
    assert apart.item() == pytest.approx(math.log(2 / 4), rel=1e-6)  # 2! · (1/2)²
    assert gradient.isfinite().all()


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
    scores = np.array([0.4, -0.3, 1.2, -0.9])[[1, 3, 0, 2]]  # by first appearance
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
