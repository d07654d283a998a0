"""Preference optimisation over responses in tiers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tierrank as tr
from reference import enumerate_log_prob
from tierrank.preference import dpo_loss, implicit_rewards, objective_for, reward_loss

BETA = 0.3


def numbers(*shape, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64) * 3 - 20


def enumerated(rewards, ratings):
    """−log P of one prompt's tiers: the sum over all orders within them."""
    grades = sorted(set(ratings), reverse=True)
    tiers = [[rewards[i] for i, r in enumerate(ratings) if r == grade] for grade in grades]
    return -enumerate_log_prob(tiers)


def test_two_responses_are_dpo_to_the_last_digit():
    policy, reference = numbers(2, 40), numbers(2, 40, seed=1)
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0]] * 40))
    policy.requires_grad_()
    loss = dpo_loss(policy.T, reference.T, tiers, beta=BETA, reduction="none")
    logits = (policy[0] - policy[1]) - (reference[0] - reference[1])
    theirs = -F.logsigmoid(BETA * logits)
    torch.testing.assert_close(loss, theirs, rtol=1e-14, atol=1e-14)
    ours, other = (torch.autograd.grad(x.mean(), policy)[0] for x in (loss, theirs))
    torch.testing.assert_close(ours, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "ratings", [[3, 1, 1], [0, 2, 1, 1], [5, 5, 1, 1, 1], [2, 0, 1, 2, 1, 0], [1, 0, 0, 0, 0, 0]]
)
def test_lists_in_tiers_are_what_enumeration_says(ratings):
    policy, reference = numbers(len(ratings)), numbers(len(ratings), seed=1)
    policy.requires_grad_()
    loss = dpo_loss(policy, reference, tr.Tiers.from_labels(ratings), beta=BETA)
    rewards = (BETA * (policy - reference)).detach()
    assert loss.item() == pytest.approx(enumerated(rewards.tolist(), ratings), rel=1e-12)
    (slope,) = torch.autograd.grad(loss, policy)
    for i in range(len(ratings)):
        step = torch.zeros_like(rewards)
        step[i] = 1e-5
        up, down = (enumerated((rewards + s).tolist(), ratings) for s in (step, -step))
        assert slope[i].item() == pytest.approx(BETA * (up - down) / 2e-5, rel=1e-5, abs=1e-9)


def test_order_of_responses_padding_and_flat_rows_make_no_difference():
    ratings = [[2, 1, 1, 0], [1, 0], [0, 4, 4]]
    policy, reference = numbers(9), numbers(9, seed=1)
    flat = tr.Tiers.from_labels(np.concatenate(ratings), lengths=[4, 2, 3])
    wanted = dpo_loss(policy, reference, flat, beta=BETA, reduction="none")
    turned = torch.tensor([3, 2, 1, 0, 5, 4, 8, 7, 6])
    labels = np.concatenate(ratings)[turned.numpy()]
    other = tr.Tiers.from_labels(labels, lengths=[4, 2, 3])
    found = dpo_loss(policy[turned], reference[turned], other, beta=BETA, reduction="none")
    torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-13)
    padded = torch.full((3, 4), torch.nan, dtype=torch.float64)
    labels, mask, begin = torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.bool), 0
    theirs = padded.clone()
    for i, each in enumerate(ratings):
        padded[i, : len(each)] = policy[begin : begin + len(each)]
        theirs[i, : len(each)] = reference[begin : begin + len(each)]
        labels[i, : len(each)], mask[i, : len(each)] = torch.tensor(each), True
        begin += len(each)
    tiers = tr.Tiers.from_labels(labels, mask=mask)
    for options in ({}, {"label_smoothing": 0.1}, {"margin": 0.5}):
        found = dpo_loss(padded, theirs, tiers, beta=BETA, reduction="none", **options)
        wanted = dpo_loss(policy, reference, flat, beta=BETA, reduction="none", **options)
        torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-13)


def test_without_a_reference_by_length_and_with_a_margin_it_is_simpo():
    policy, tokens, gamma = numbers(2, 10), torch.randint(1, 50, (2, 10)), 0.7
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0]] * 10))
    loss = dpo_loss(
        policy.T, None, tiers, beta=2.0, lengths=tokens.T, margin=gamma, reduction="none"
    )
    by_token = policy / tokens
    simpo = -F.logsigmoid(2.0 * (by_token[0] - by_token[1]) - gamma)
    torch.testing.assert_close(loss, simpo, rtol=1e-12, atol=1e-14)


def test_margins_lie_between_neighbouring_tiers():
    rewards, ratings = numbers(5), [9, 4, 4, 1, 1]
    loss = reward_loss(rewards, tr.Tiers.from_labels(ratings), margin=0.25)
    lower = rewards - torch.tensor([0.5, 0.25, 0.25, 0, 0])
    assert loss.item() == pytest.approx(enumerated(lower.tolist(), ratings), rel=1e-12)
    own = reward_loss(rewards, tr.Tiers.from_labels(ratings), margin=[0.5, 0.25, 0.25, 0, 0])
    assert own.item() == pytest.approx(loss.item(), rel=1e-14)


def test_label_smoothing_takes_the_reverse_into_account():
    policy, reference = numbers(2, 10), numbers(2, 10, seed=1)
    pairs = tr.Tiers.from_labels(torch.tensor([[1, 0]] * 10))
    logits = BETA * ((policy[0] - policy[1]) - (reference[0] - reference[1]))
    conservative = -0.9 * F.logsigmoid(logits) - 0.1 * F.logsigmoid(-logits)
    loss = dpo_loss(policy.T, reference.T, pairs, beta=BETA, label_smoothing=0.1, reduction="none")
    torch.testing.assert_close(loss, conservative, rtol=1e-12, atol=1e-14)
    rewards, ratings = numbers(5), [2, 1, 1, 0, 0]
    smooth = reward_loss(rewards, tr.Tiers.from_labels(ratings), label_smoothing=0.2)
    both = [enumerated(rewards.tolist(), [sign * r for r in ratings]) for sign in (1, -1)]
    assert smooth.item() == pytest.approx(0.8 * both[0] + 0.2 * both[1], rel=1e-12)


def test_pairs_that_may_tie_have_models_of_their_own():
    rewards = numbers(3, 2)
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0], [1, 1], [0, 1]]))
    assert objective_for(tiers) == "davidson"
    assert objective_for(tiers[[0, 2]]) == "pl-partition"
    nu = 0.6
    params = {"beta": float(np.log(nu))}
    loss = reward_loss(
        rewards, tiers, objective="davidson", objective_params=params, reduction="none"
    )
    half = (rewards[:, 0] - rewards[:, 1]) / 2
    total = half.exp() + (-half).exp() + nu
    wanted = (
        -torch.stack([half[0].exp(), torch.tensor(nu, dtype=torch.float64), (-half[2]).exp()]).log()
        + total.log()
    )
    torch.testing.assert_close(loss, wanted, rtol=1e-12, atol=1e-12)


def test_weights_of_prompts():
    rewards = numbers(3, 2)
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0]] * 3))
    each = reward_loss(rewards, tiers, reduction="none")
    loss = reward_loss(rewards, tiers, weights=torch.tensor([1.0, 0, 3]))
    assert loss.item() == pytest.approx(((each[0] + 3 * each[2]) / 4).item())


def test_wrong_input_is_refused_in_one_line():
    policy, reference = numbers(5), numbers(5, seed=1)
    tiers = tr.Tiers.from_labels([1, 0, 2, 2, 1], lengths=[2, 3])
    with pytest.raises(
        ValueError, match=r"policy_logps must be finite, but policy_logps\[3\] is nan"
    ):
        dpo_loss(policy.index_fill(0, torch.tensor(3), torch.nan), reference, tiers)
    with pytest.raises(ValueError, match=r"reference_logps\[0\] is inf"):
        dpo_loss(policy, reference.index_fill(0, torch.tensor(0), torch.inf), tiers)
    with pytest.raises(ValueError, match=r"shape \[5\] and reference_logps \[4\]"):
        dpo_loss(policy, reference[:4], tiers)
    with pytest.raises(ValueError, match="scores need that shape"):
        dpo_loss(policy[:4], reference[:4], tiers)
    with pytest.raises(ValueError, match=r"number of tokens of each response"):
        implicit_rewards(policy, None, beta=1, lengths=[3, 4])
    with pytest.raises(ValueError, match="none of them negative"):
        dpo_loss(policy, reference, tiers, lengths=[3, 4, -1, 2, 2])
    with pytest.raises(ValueError, match="numbers of tokens, finite"):
        dpo_loss(policy, reference, tiers, lengths=[3, 4, np.inf, 2, 2])
    single = tr.Tiers.from_labels([1, 0, 2, 2, 2], qid=["a", "a", "b", "b", "b"])
    with pytest.raises(
        ValueError, match=r"prompt b has one tier only \(3 responses, all tied\).*1 of 2"
    ):
        dpo_loss(policy, reference, single)
    for name, value in [("beta", 0), ("label_smoothing", 0.5), ("margin", -1.0), ("margin", [1.0])]:
        with pytest.raises(ValueError, match=name):
            dpo_loss(policy, reference, tiers, **{name: value})
    with pytest.raises(ValueError, match="tiers must be a Tiers"):
        dpo_loss(policy, reference, [1, 0, 2, 2, 1])
