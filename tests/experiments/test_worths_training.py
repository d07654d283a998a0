"""Worths trained by AdaGrad with early stopping: what is trained on, what is kept, what is seen."""

import numpy as np
import pytest
import torch
import worths_training
from worths_training import MAP, METHODS, Training, data_for, loss_of, mean_squared_error, train

import tierrank as tr


def strict_log_likelihood(scores, rankings):
    """Each item above the rest against all that are not above it: the formula, item by item."""
    total = 0.0
    for ranking in rankings:
        left = dict(enumerate(scores))
        for item in ranking:
            total += left[item] - np.log(np.sum(np.exp(list(left.values()))))
            del left[item]
    return total


def test_the_oracle_sees_the_same_lists_with_their_order():
    worths, tied = data_for("pl-partition", 12, 30, seed=3)
    same, strict = data_for("pl-topk", 12, 30, seed=3)
    assert torch.equal(worths, same)
    assert float(worths.sum()) == pytest.approx(1)
    for with_ties, without in zip(tied.to_rankings(), strict.to_rankings(), strict=True):
        flat = [i for tier in with_ties for i in (tier if isinstance(tier, tuple) else (tier,))]
        assert sorted(flat) == sorted(without)
    assert data_for("ranknet", 12, 30, seed=3)[1] == tied


def test_the_oracle_s_loss_is_the_likelihood_of_a_full_order():
    _, strict = data_for("pl-topk", 7, 5, seed=1)
    scores = np.random.default_rng(0).normal(size=7)
    expected = -strict_log_likelihood(scores, strict.to_rankings()) / 5
    assert float(loss_of("pl-topk")(scores, strict)) == pytest.approx(expected)


def test_with_a_prior_nothing_is_held_out_and_the_maximum_is_found():
    _, tiers = data_for(MAP, 8, 30, seed=0)
    done = train(MAP, tiers, Training(steps=1), seed=4)
    scores = done.scores.clone().requires_grad_()
    loss = tr.losses.pl_partition(scores, tiers, reduction="sum") + scores.square().sum() / (2 * 4)
    loss.backward()
    assert scores.grad.abs().max() < 1e-8
    assert done.ended == "maximum"


@pytest.mark.parametrize("method", [method for method in METHODS if method != MAP])
def test_the_first_step_is_adagrad_s(method):
    """Whatever the gradient's size, AdaGrad's first move is the learning rate, downhill."""
    _, tiers = data_for(method, 8, 12, seed=0)
    done = train(method, tiers, Training(batch=9, steps=1), seed=4)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(4))
    zero = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    name = "pl-partition" if method == "pl-topk" else method
    tr.losses.from_name(name)(zero, tiers[order[3:]]).backward()
    np.testing.assert_allclose(done.scores, -0.1 * zero.grad.sign(), atol=1e-6)
    assert (done.steps, done.best_step, done.ended) == (1, 1, "steps")


def test_lists_held_out_are_never_trained_on(monkeypatch):
    _, tiers = data_for("pl-partition", 30, 40, seed=5)
    trained, judged = set(), set()
    loss = loss_of("pl-partition")

    def watched(scores, given, **more):
        seen = trained if torch.is_grad_enabled() else judged
        seen.update(map(str, given.to_rankings()))
        return loss(scores, given, **more)

    monkeypatch.setattr(worths_training, "loss_of", lambda method: watched)
    train("pl-partition", tiers, Training(batch=4, steps=40, check=10), seed=0)
    assert (len(trained), len(judged)) == (30, 10)  # a quarter of 40, all different
    assert not trained & judged
    trained.clear(), judged.clear()
    train("pl-partition", tiers, Training(most_held_out=3, steps=40, check=10), seed=0)
    assert (len(trained), len(judged)) == (37, 3)


def test_it_keeps_the_scores_with_the_lowest_loss_on_lists_held_out():
    """More scores than lists overfit: it must end early, and not with the last scores."""
    _, tiers = data_for("pl-partition", 60, 12, seed=2)
    settings = Training(check=10, patience=3, steps=2000)
    done = train("pl-partition", tiers, settings, seed=1)
    assert done.ended == "patience"
    assert done.steps == done.best_step + 30
    held = tiers[torch.randperm(12, generator=torch.Generator().manual_seed(1))[:3]]
    losses = {
        step: float(
            tr.losses.pl_partition(
                train("pl-partition", tiers, Training(check=step, steps=step), 1).scores, held
            )
        )
        for step in (done.best_step - 10, done.best_step, done.best_step + 10)
    }
    assert min(losses, key=losses.get) == done.best_step
    assert float(tr.losses.pl_partition(done.scores, held)) == pytest.approx(
        losses[done.best_step], rel=1e-5
    )


def test_it_finds_worths_and_the_same_ones_each_time():
    worths, tiers = data_for("pl-partition", 8, 2000, seed=0)
    done = train("pl-partition", tiers, Training(steps=400), seed=0)
    uniform = mean_squared_error(torch.zeros(8), worths)
    assert mean_squared_error(done.scores, worths) < 0.02 * uniform
    again = train("pl-partition", tiers, Training(steps=400), seed=0)
    assert torch.equal(done.scores, again.scores)


def test_the_error_is_between_the_softmax_and_the_worths():
    worths = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    assert mean_squared_error(worths.log() + 3, worths) == pytest.approx(0, abs=1e-30)
    # 1/3 in place of each
    expected = ((1 / 6) ** 2 + 2 * (1 / 12) ** 2) / 3
    assert mean_squared_error(torch.zeros(3), worths) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"held_out": 0.0}, "between 0 and 1"),
        ({"held_out": 1.0}, "between 0 and 1"),
        ({"steps": 0}, "steps is 1 or more, not 0"),
        ({"patience": 0}, "patience is 1 or more"),
        ({"rate": float("nan")}, "learning rate is positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Training(**settings)


def test_one_list_is_too_few():
    _, tiers = data_for("pl-partition", 5, 1, seed=0)
    with pytest.raises(ValueError, match="at least 2 are needed"):
        train("pl-partition", tiers, Training(), 0)
