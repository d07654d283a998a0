"""Derivatives for boosting: against finite differences and automatic differentiation."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tierrank as tr
from tierrank.losses import OBJECTIVES, from_name
from tierrank.losses.record import Hessian
from tierrank.ranking.derivatives import SMALLEST, BoostingObjective

CHAINS = {"pmop-gibbs", "pmop-mh", "pl-rank"}  # their gradient is drawn
EXACT = sorted(name for name, entry in OBJECTIVES.items() if entry.hessian == "exact")
STEP = 1e-5


def rows(seed=0, n=40, lists=6, tiers=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, tiers, n).astype(float)
    qid = rng.integers(0, lists, n)
    return rng.normal(size=n), tr.Tiers.from_labels(labels, qid=qid), rng


def gradient_at(objective, scores, tiers, weights):
    """Loss and gradient of the weighted sum, by autograd in float64."""
    w = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    total = (objective(w, tiers) * torch.from_numpy(weights)).sum()
    return total.item(), torch.autograd.grad(total, w)[0].numpy()


def second_differences(objective, scores, tiers, weights):
    """The Hessian's diagonal from gradients a little to both sides."""
    diagonal = np.empty(len(scores))
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += STEP
        down[i] -= STEP
        above = gradient_at(objective, up, tiers, weights)[1][i]
        diagonal[i] = (above - gradient_at(objective, down, tiers, weights)[1][i]) / (2 * STEP)
    return diagonal


def test_every_objective_says_what_stands_for_its_second_derivative():
    assert {entry.hessian for entry in OBJECTIVES.values()} == set(get_args(Hessian))


@pytest.mark.parametrize("name", sorted(set(OBJECTIVES) - CHAINS))
def test_loss_and_gradient_are_those_of_the_objective(name):
    scores, tiers, rng = rows()
    weights = rng.uniform(0.2, 3.0, len(tiers))
    boosting = BoostingObjective(from_name(name, reduction="none"), tiers, weights, seed=0)
    derivatives = boosting(scores)
    same = from_name(name, reduction="none", **boosting.parameters)
    mean_one = weights / weights.mean()
    total, gradient = gradient_at(same.double(), scores, tiers, mean_one)
    assert derivatives.loss == pytest.approx(total / len(tiers), rel=1e-6)
    np.testing.assert_allclose(derivatives.gradient, gradient, rtol=1e-4, atol=2e-6)
    assert derivatives.gradient.dtype == derivatives.hessian.dtype == np.float32


@pytest.mark.parametrize("name", EXACT)
def test_the_hessian_is_exact_where_it_says_so(name):
    scores, tiers, rng = rows(seed=1)
    weights = rng.uniform(0.2, 3.0, len(tiers))
    boosting = BoostingObjective(from_name(name, reduction="none"), tiers, weights, seed=0)
    hessian = boosting(scores).hessian
    same = from_name(name, reduction="none", **boosting.parameters)
    expected = second_differences(same.double(), scores, tiers, weights / weights.mean())
    np.testing.assert_allclose(hessian, expected, rtol=1e-4, atol=3e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pl-partition", {"alpha": "gain"}),
        ("pl-partition", {"alpha": [3.0, 2.0, 1.0]}),
        ("pl-topk", {"k": 2}),
        ("listmle", {"ties": "input"}),
        ("p-listmle", {"ties": "input", "alpha": [4, 3, 2, 1]}),
    ],
)
def test_options_of_the_likelihoods_count(name, options):
    scores, tiers, _ = rows(seed=2)
    derivatives = BoostingObjective(
        from_name(name, reduction="none", **options), tiers, None, seed=0
    )(scores)
    same, ones = from_name(name, reduction="none", **options), np.ones(len(tiers))
    total, gradient = gradient_at(same, scores, tiers, ones)
    assert derivatives.loss == pytest.approx(total / len(tiers), rel=1e-6)
    np.testing.assert_allclose(derivatives.gradient, gradient, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(
        derivatives.hessian,
        second_differences(same, scores, tiers, ones),
        rtol=1e-4,
        atol=3e-6,
    )


@pytest.mark.parametrize("name", ["pl-lb", "pl-efron", "listnet", "attrank", "cox-discrete", "bce"])
def test_closed_forms_agree_with_differentiating_twice(name):
    scores, tiers, _ = rows(seed=3, n=25, lists=3)
    objective = from_name(name, reduction="sum")
    hessian = torch.autograd.functional.hessian(lambda w: objective(w, tiers), torch.tensor(scores))
    ours = BoostingObjective(from_name(name, reduction="none"), tiers, None, seed=0)(scores)
    np.testing.assert_allclose(ours.hessian, hessian.diagonal(), rtol=1e-6, atol=1e-8)


def test_the_upper_bound_of_pmop_fd_is_one():
    for seed in range(5):
        scores, tiers, _ = rows(seed=seed)
        objective = from_name("pmop-fd", reduction="none")
        bound = BoostingObjective(objective, tiers, None, seed=0)(3 * scores).hessian
        true = second_differences(objective, 3 * scores, tiers, np.ones(len(tiers)))
        assert (bound >= true - 1e-6).all()


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_lists_of_one_tier_or_row_ask_for_nothing_but_have_a_hessian(name):
    tiers = tr.Tiers.from_labels([1, 1, 0, 2, 5], qid=[0, 0, 1, 1, 2])
    derivatives = BoostingObjective(from_name(name, reduction="none"), tiers, None, seed=0)(
        np.zeros(5)
    )
    claims = {"rankcosine", "bce"}  # they ask something of a list of one row, too
    assert derivatives.gradient[4] == pytest.approx(0, abs=1e-6) or name in claims
    assert (derivatives.hessian >= np.float32(SMALLEST)).all()
    assert np.isfinite(derivatives.gradient).all()
    assert derivatives.gradient[3] < 0 < derivatives.gradient[2] or name in (
        CHAINS | {"rankcosine"}
    )


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("spread", [30.0, 500.0])
def test_extreme_scores_have_finite_derivatives(name, spread):
    scores, tiers, _ = rows(seed=4)
    derivatives = BoostingObjective(from_name(name, reduction="none"), tiers, None, seed=0)(
        spread * scores
    )
    assert np.isfinite(derivatives.loss)
    assert np.isfinite(derivatives.gradient).all()
    assert np.isfinite(derivatives.hessian).all()
    assert (derivatives.hessian > 0).all()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(-50, 50))
def test_a_shift_of_a_list_changes_no_hessian_of_a_likelihood(seed, shift):
    scores, tiers, _ = rows(seed=seed, n=20, lists=1)
    for name in ("pl-partition", "pl-efron", "ranknet"):
        boosting = BoostingObjective(from_name(name, reduction="none"), tiers, None, seed=0)
        np.testing.assert_allclose(
            boosting(scores + shift).hessian, boosting(scores).hessian, rtol=2e-3, atol=2e-5
        )


def test_only_proportions_of_weights_matter_and_zero_switches_a_list_off():
    scores, tiers, rng = rows(seed=5)
    weights = rng.uniform(0.5, 2, len(tiers))
    weights[2] = 0.0
    one, ten = (
        BoostingObjective(from_name("pl-partition", reduction="none"), tiers, given, seed=0)(scores)
        for given in (weights, 10 * weights)
    )
    np.testing.assert_allclose(one.gradient, ten.gradient, rtol=1e-6)
    assert one.loss == pytest.approx(ten.loss)
    assert (one.gradient[tiers.rows([2]).numpy()] == 0).all()


@pytest.mark.parametrize("name", ["rao-kupper", "davidson"])
def test_the_parameter_of_ties_walks_to_its_best_value(name):
    scores, tiers, _ = rows(seed=6)
    boosting = BoostingObjective(from_name(name, reduction="none"), tiers, None, seed=0)
    for _ in range(20):
        loss = boosting(scores).loss
    ((parameter, found),) = boosting.parameters.items()
    losses = [
        from_name(name, **{parameter: found + shift})(torch.tensor(scores), tiers).item()
        for shift in (-0.05, 0.0, 0.05)
    ]
    assert losses[1] == pytest.approx(loss, rel=1e-6)
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize(("name", "options"), [("pmop-gibbs", {}), ("listmle", {"ties": "random"})])
def test_what_is_drawn_depends_on_the_seed_alone(name, options):
    scores, tiers, _ = rows(seed=7)
    objective = from_name(name, reduction="none", **options)
    boosting = BoostingObjective(objective, tiers, None, seed=3)
    drawn = []
    for seed in (5, 5, 6):
        boosting.restart(seed)
        drawn.append([boosting(scores).gradient for _ in range(2)])
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0][0], drawn[0][1])
