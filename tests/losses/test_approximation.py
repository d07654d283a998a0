"""Breslow's and Efron's approximations: their formulas, survival software, and the exact value."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tierrank as tr
from partitions import each_dtype, ragged, tiers_of_scores, value_and_gradient
from tierrank.losses import pl_efron, pl_lower_bound, pl_partition

SEEDS = st.integers(0, 10**6)


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
def test_both_are_exact_for_strict_lists(seed):
    rng = np.random.default_rng(seed)
    scores = 3 * rng.normal(size=(4, 7))
    labels = rng.permuted(np.tile(np.arange(7), (4, 1)), axis=1)
    labels[:2] = np.maximum(labels[:2], 3)  # with a tie in the last place
    tiers = tr.Tiers.from_labels(labels)
    exact, exact_gradient = value_and_gradient(lambda w: pl_partition(w, tiers), scores)
    for loss in (pl_lower_bound, pl_efron):
        value, gradient = value_and_gradient(lambda w, loss=loss: loss(w, tiers), scores)
        torch.testing.assert_close(value, exact, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("loss", "ties"), [(pl_lower_bound, "breslow"), (pl_efron, "efron")], ids=["lower", "efron"]
)
@pytest.mark.parametrize("seed", range(4))
def test_survival_software_finds_the_same_value_and_gradient(loss, ties, seed):
    """A list is a stratum, a tier a set of tied deaths, the last tier is censored.

    Every item has a covariate of its own, so that the coefficients are the scores.
    """
    regression = pytest.importorskip("statsmodels.duration.hazard_regression")
    scores, labels, lengths = ragged(seed, lists=5, longest=9, grades=3, spread=1.0)
    stratum = np.repeat(np.arange(5), lengths)
    last = np.array([labels[stratum == s].min() for s in range(5)])[stratum]
    model = regression.PHReg(
        10 - labels, np.eye(len(scores)), status=labels > last, strata=stratum, ties=ties
    )
    orders = sum(
        math.lgamma(len(tier) + 1) for one in by_list(scores, labels, lengths) for tier in one[:-1]
    )
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    value, gradient = value_and_gradient(lambda w: -loss(w, tiers, reduction="sum"), scores)
    assert value.item() == pytest.approx(model.loglike(scores) + orders, rel=1e-10)
    np.testing.assert_allclose(gradient, model.score(scores), rtol=0, atol=1e-10)


def efron(tiers):
    """Σ log n! + Σ w − Σ_l log(sum of it and all below − l/n of its own sum)."""
    total = 0.0
    for m, tier in enumerate(tiers[:-1]):
        own, among = np.exp(tier).sum(), np.exp(np.concatenate(tiers[m:])).sum()
        left = among - np.arange(len(tier)) / len(tier) * own
        total += math.lgamma(len(tier) + 1) + tier.sum() - np.log(left).sum()
    return total


@given(seed=SEEDS)
@settings(max_examples=25)
def test_efron_is_its_formula_and_lies_between_the_lower_bound_and_the_exact_value(seed):
    scores, labels, lengths = ragged(seed)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    value = -pl_efron(scores, tiers, reduction="none")
    expected = [efron(one) for one in by_list(scores, labels, lengths)]
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    assert (value >= -pl_lower_bound(scores, tiers, reduction="none") - 1e-12).all()
    assert (value <= tr.log_prob(scores, tiers) + 1e-12).all()


def test_efron_is_much_closer_than_the_lower_bound():
    rng = np.random.default_rng(0)
    scores, tiers = rng.normal(size=30), tr.Tiers.from_labels(rng.integers(0, 4, size=30))
    exact = pl_partition(scores, tiers)
    assert 0 < pl_efron(scores, tiers) - exact < 0.2 * (pl_lower_bound(scores, tiers) - exact)


each_approximation = pytest.mark.parametrize(
    ("loss", "formula"),
    [(pl_lower_bound, lower_bound), (pl_efron, efron)],
    ids=["lower", "efron"],
)


@pytest.mark.parametrize("scores", [[0.3, -1.2, 0.8, 2.0], [9.0, -1.2, 0.8, 1.0]])
@each_approximation
def test_the_approximations_of_a_catalogue(scores, loss, formula):
    """Shared scores, with a rest that is not written (and thin, in the second case)."""
    scores = np.array(scores)
    rankings = [[(0, 1)], [2, (0, 3)], [], [(0, 1, 2, 3)], [0, 1, 2]]
    tiers = tr.Tiers.from_rankings(rankings, items=4, rest="last")
    written = [[[0, 1], [2, 3]], [[2], [0, 3], [1]], [[0, 1, 2, 3]], [[0, 1, 2, 3]],
               [[0], [1], [2], [3]]]  # fmt: skip
    expected = [formula([scores[tier] for tier in one]) for one in written]
    for given_ in (scores, np.tile(scores, (5, 1))):
        value = -loss(given_, tiers, reduction="none")
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        assert torch.autograd.gradcheck(
            lambda w: loss(w, tiers), torch.from_numpy(given_).requires_grad_()
        )


@pytest.mark.parametrize("height", [-1e4, 1e4])
@each_dtype
@each_approximation
def test_the_approximations_of_scores_of_ten_thousand(height, dtype, loss, formula):
    labels = [2, 2, 1, 0, 0]
    tiers = tr.Tiers.from_labels(labels)
    differences = np.array([0.5, 0.0, -0.25, 1.0, 0.75])
    scores = torch.from_numpy(height + differences).to(dtype)
    value, gradient = value_and_gradient(lambda w: -loss(w, tiers), scores)
    exact = formula(tiers_of_scores(differences, labels))
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}[dtype]
    assert value.item() == pytest.approx(exact, rel=tolerance)
    assert gradient.sum().item() == pytest.approx(0, abs=10 * tolerance)
    apart, gradient = value_and_gradient(
        lambda w: -loss(w, tiers), torch.tensor([1e4, 1e4, 0, -1e4, -1e4], dtype=dtype)
    )
    # two equal items far above the rest: 2! · (1/2)², or nearly certain, 2! · (1/2) · 1
    assert apart.item() == pytest.approx(math.log(2 / 4) if loss is pl_lower_bound else 0, abs=1e-6)
    assert gradient.isfinite().all()


def test_lists_that_name_nothing_claim_nothing():
    """Shared scores, and all of the catalogue left to the rest of each list."""
    tiers = tr.Tiers.from_rankings([[], []], items=4, rest="last")
    for loss in (pl_lower_bound, pl_efron, pl_partition):
        for scores in (np.arange(4.0), np.arange(8.0).reshape(2, 4)):
            assert loss(scores, tiers, reduction="none").tolist() == [0, 0]
