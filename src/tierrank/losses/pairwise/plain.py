"""Sums over pairs in plain torch, block by block: any device, the same numbers.

The formulas are not those of `native/pairs.hpp`, so that either checks the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank.plackett_luce.inputs import wide_dtype

BLOCK = 1 << 20  # pairs at once

Terms = tuple[Tensor, Tensor, Tensor]  # loss, ∂loss/∂x, ∂loss/∂parameter; x = w_j − w_i


def rao_kupper_win(x: Tensor, c: float) -> Terms:
    slope = torch.sigmoid(x + c)
    return -logsigmoid(-x - c), slope, slope


def rao_kupper_tie(x: Tensor, c: float) -> Terms:
    up, down = torch.sigmoid(x - c), torch.sigmoid(-x - c)
    return -logsigmoid(c - x) - logsigmoid(c + x), up - down, -up - down


def davidson_win(x: Tensor, beta: float) -> Terms:
    """−log P(i above j) = log(1 + e^x + v e^(x/2))."""
    loss = -logsigmoid(-torch.logaddexp(x, x / 2 + beta))
    j_above, tie = (x - loss).exp(), (x / 2 + beta - loss).exp()
    return loss, j_above + tie / 2, tie


def davidson_tie(x: Tensor, beta: float) -> Terms:
    """−log P(tie) = log(1 + (e^(x/2) + e^(−x/2)) / v)."""
    loss = -logsigmoid(beta - torch.logaddexp(x / 2, -x / 2))
    j_above, i_above = (x / 2 - beta - loss).exp(), (-x / 2 - beta - loss).exp()
    return loss, (j_above - i_above) / 2, -j_above - i_above


PAIRS: dict[str, Callable[[Tensor, float], Terms]] = {
    "rao_kupper_wins": rao_kupper_win,
    "rao_kupper_ties": rao_kupper_tie,
    "davidson_wins": davidson_win,
    "davidson_ties": davidson_tie,
}


def pair_sums(
    kind: str, scores: Tensor, start: Tensor, stop: Tensor, parameter: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `pair_sums.compiled_pair_sums`."""
    scores = scores.to(wide_dtype(scores.device))
    loss, gradient, by_parameter = (torch.zeros_like(scores) for _ in range(3))
    for i, j, exists in _blocks(start, stop):
        terms = PAIRS[kind](scores[j] - scores[i, None], parameter)
        one_loss, slope, one_by_parameter = (torch.where(exists, t, 0.0) for t in terms)
        loss[i] = one_loss.sum(1)
        by_parameter[i] = one_by_parameter.sum(1)
        gradient[i] -= slope.sum(1)
        gradient.index_add_(0, j.view(-1), slope.view(-1))
    return loss, gradient, by_parameter


def _blocks(start: Tensor, stop: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All pairs in rectangles: items i [rows], items j [rows, width], whether there is such a pair.

    Items with the most pairs come first, so that those of a rectangle have about as many.
    """
    pairs, by_pairs = (stop - start).sort(descending=True)
    first, rows = 0, int((pairs > 0).sum())
    while first < rows:
        width = int(pairs[first])
        i = by_pairs[first : min(first + max(1, BLOCK // width), rows)]
        first += len(i)
        j = start[i, None] + torch.arange(width, device=i.device)
        exists = j < stop[i, None]
        yield i, torch.where(exists, j, i[:, None]), exists
