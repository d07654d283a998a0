"""Peers in plain torch: losses as people write them today, and the published midpoint rule."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch.nn.functional import softplus

PAIRS_AT_ONCE = 2**19  # small enough for the cache, large enough to share between threads

Run = Callable[[], Sequence[Tensor]]  # gives a value and its gradient


@cache
def from_tests(name: str) -> ModuleType:
    """What the tests compare with: "oracle" has 40 digits, "reference" the slow, plain ways."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    return importlib.import_module(name)


def value_and_gradient(
    loss: Callable[[Tensor], Tensor], scores: Tensor, shape: Sequence[int] = ()
) -> Run:
    """A call of loss(scores), of this shape, and of its gradient, all entries counting 1."""
    leaf = scores.detach().clone().requires_grad_()
    ones = scores.new_ones(shape)

    def run() -> Sequence[Tensor]:
        value = loss(leaf)
        return value, *torch.autograd.grad(value, leaf, ones)

    return run


def log_softmax(scores: Tensor) -> Run:
    """Over the last dimension."""
    return value_and_gradient(lambda w: w.log_softmax(-1), scores, scores.shape)


def list_mle(in_order: Tensor) -> Tensor:
    """[lists] losses of scores [lists, length] that lie in their order, best first."""
    flipped = in_order.flip(1)
    return (flipped.logcumsumexp(1) - flipped).sum(1)


def list_net(scores: Tensor, labels: Tensor) -> Tensor:
    """[lists] cross-entropies between the softmax of labels, which are floats, and of scores."""
    return -(labels.softmax(1) * scores.log_softmax(1)).sum(1)


# Pairs ---------------------------------------------------------------------------------------


def _lead_and_pairs(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """[lists, length, length] w_i − w_j, and whether i has the better label."""
    return scores[:, :, None] - scores[:, None, :], labels[:, :, None] > labels[:, None, :]


def rank_net_matrix(scores: Tensor, labels: Tensor) -> Tensor:
    """[lists] logistic losses of all pairs with different labels, all of them at once."""
    lead, better = _lead_and_pairs(scores, labels)
    return (softplus(-lead) * better).sum((1, 2))


def hinge_matrix(scores: Tensor, labels: Tensor) -> Tensor:
    """[lists] hinge losses of all pairs with different labels, all of them at once."""
    lead, better = _lead_and_pairs(scores, labels)
    return ((1 - lead).relu() * better).sum((1, 2))


def rank_net(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and gradient over all pairs with different labels, a block of pairs at a time."""
    lists, length = scores.shape
    some_lists = max(1, PAIRS_AT_ONCE // length**2)
    some_rows = max(1, PAIRS_AT_ONCE // length)
    loss, gradient = scores.new_zeros(()), torch.zeros_like(scores)
    for lo, row in itertools.product(range(0, lists, some_lists), range(0, length, some_rows)):
        block, upper = slice(lo, lo + some_lists), slice(row, row + some_rows)
        w = scores[block].detach().requires_grad_()
        better = labels[block, upper, None] > labels[block, None, :]
        lost = (softplus(w[:, None, :] - w[:, upper, None]) * better).sum()
        gradient[block] += torch.autograd.grad(lost, w)[0]
        loss += lost.detach()
    return loss, gradient


# The midpoint rule ---------------------------------------------------------------------------


def tiers_of_scores(scores: Tensor, labels: Tensor) -> list[Tensor]:
    """Tier by tier, best first, [lists, largest size]; −inf where a list has fewer items."""
    order = labels.argsort(dim=1, descending=True, stable=True)
    tiers, start = [], torch.zeros(len(labels), 1, dtype=torch.int64)
    for grade in labels.unique().flip(0):
        size = (labels == grade).sum(1, keepdim=True)
        place = torch.arange(int(size.max()))
        index = order.gather(1, (start + place).clamp(max=labels.shape[1] - 1))
        tiers.append(torch.where(place < size, scores.gather(1, index), -torch.inf))
        start = start + size
    return tiers


def midpoint(scores: Tensor, labels: Tensor, c: float = 5.0) -> Tensor:
    """[lists] log-probabilities by the rule of Ma et al. (2021), with their T and c."""
    rule = from_tests("reference").midpoint_log_prob
    return rule(tiers_of_scores(scores, labels), intervals=10_000, c=c)
