"""Mistakes of public libraries, which must not become ours."""

import itertools
import math

import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.losses import OBJECTIVES, list_mle, p_list_mle, pl_partition


def test_a_large_score_does_not_swallow_the_others():
    """exp before log gives −inf here, and clamping gives 194.9; the answer is log(1 + 1/e)."""
    scores = torch.tensor([120.0, 0.0, -1.0], dtype=torch.float32, requires_grad=True)
    tiers = tr.Tiers.from_labels([2, 1, 0])
    for ties in ("exact", "input", "random"):
        loss = list_mle(scores, tiers, ties=ties)
        assert loss.item() == pytest.approx(0.3133, abs=5e-5)
        assert loss.item() == pytest.approx(math.log1p(math.exp(-1)), rel=1e-6)
    loss.backward()
    share = math.exp(-1) / (1 + math.exp(-1))
    np.testing.assert_allclose(scores.grad, [0, -share, share], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_position_weights_do_not_overflow(dtype):
    scores = torch.linspace(1, -1, 1000, dtype=dtype, requires_grad=True)
    loss = p_list_mle(scores, tr.Tiers.from_labels(-np.arange(1000)))
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_one_padded_item_changes_no_loss(name):
    """Masking with a large negative score, or with label 0, does."""
    options = {"generator": 0} if OBJECTIVES[name].stochastic else {}
    loss = OBJECTIVES[name].function
    bare = loss(np.array([[1.0, 0.0, -1.0]]), tr.Tiers.from_labels([[2, 1, 0]]), **options)
    mask = np.array([[True, True, True, False]])
    tiers = tr.Tiers.from_labels([[2, 1, 0, 0]], mask=mask)
    padded = loss(np.array([[1.0, 0.0, -1.0, 5.0]]), tiers, **options)
    assert padded == pytest.approx(bare, rel=1e-14)


def test_tied_labels_give_the_same_loss_in_any_row_order():
    scores, labels = np.array([1.0, 0.0, -1.0, 2.0]), np.array([1, 1, 0, 0])
    for order in itertools.permutations(range(4)):
        order = list(order)
        tiers = tr.Tiers.from_labels(labels[order])
        for loss in (pl_partition, list_mle):
            assert loss(scores[order], tiers) == pytest.approx(3.0025, abs=5e-5)
    by_input = {
        round(
            float(list_mle(scores[list(o)], tr.Tiers.from_labels(labels[list(o)]), ties="input")), 9
        )
        for o in itertools.permutations(range(4))
    }
    assert len(by_input) == 4  # what depends on the order of the input, and is documented to
