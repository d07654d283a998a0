"""Sums over the pairs of what lists name with a block of labels: compiled, or plain torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tierrank import _native
from tierrank.plackett_luce.kernels import compiled_for
from tierrank.tiers.arrays import range_numbers

AT_ONCE = 1 << 22  # pairs that plain torch holds

# the kernel of each objective, and its parameter: log θ of Rao and Kupper, and the margin
_KERNELS = {"ranknet": ("rao_kupper_wins", 0.0), "ranksvm": ("hinges", 1.0)}


def sums(
    kind: str,
    named: Tensor,
    borders: Tensor,
    scores: Tensor,
    counts: Tensor | None,
    out: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Sums over the pairs of each list's named labels with all labels of a block.

    Parameters
    ----------
    kind
        "ranknet" or "ranksvm"
    named, borders
        [entries] scores of what the lists name, and [lists + 1] the ranges of each
    scores
        [lists, labels] of the block
    counts
        [labels] how often each counts; None: once
    out
        [lists, labels] to be set to the slopes in `scores`, or None

    Returns
    -------
    [lists] losses and [entries] slopes in what is named, in float64
    """
    counts = scores.new_ones(scores.shape[1]) if counts is None else counts.to(scores)
    if compiled_for(scores.device):
        return _compiled(kind, named, borders, scores, counts, out)
    return _plain(kind, named, borders, scores, counts, out)


def _compiled(
    kind: str, named: Tensor, borders: Tensor, scores: Tensor, counts: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    name, parameter = _KERNELS[kind]
    loss = torch.empty(len(borders) - 1, dtype=torch.float64)
    slope = torch.empty(len(named), dtype=torch.float64)
    _native.block_pair_sums(
        name, named.numpy(), borders.numpy(), scores.numpy(), counts.numpy(), parameter,
        torch.get_num_threads(), loss.numpy(), slope.numpy(),
        (scores.new_empty(0, 0) if out is None else out).numpy(),
    )  # fmt: skip
    return loss, slope


def _plain(
    kind: str, named: Tensor, borders: Tensor, scores: Tensor, counts: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    lists = range_numbers(borders.diff())
    loss = scores.new_zeros(len(borders) - 1, dtype=torch.float64)
    slope = scores.new_zeros(len(named), dtype=torch.float64)
    if out is not None:
        out.zero_()
    step = max(1, AT_ONCE // max(scores.shape[1], 1))
    for start in range(0, len(named), step):
        some = slice(start, start + step)
        x = scores[lists[some]] - named[some, None]
        pair_loss = softplus(x) if kind == "ranknet" else (1 + x).clamp(min=0)
        pair_slope = x.sigmoid() if kind == "ranknet" else (1 + x > 0).to(x)
        pair_slope *= counts
        loss.index_add_(0, lists[some], (pair_loss.double() @ counts.double()))
        slope[some] = -pair_slope.sum(1, dtype=torch.float64)
        if out is not None:
            out.index_add_(0, lists[some], pair_slope)
    return loss, slope
