"""Sums over the pairs of every list, differentiable once: the work of the logistic objectives.

A kind of pair is a function of w_j − w_i and one parameter; the kinds are named and computed in
`native/pairs.hpp`, for the CPU, and in `plain.py`, for the rest. Both look at every pair and keep
none, so time grows with the pairs and memory with the items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tierrank import _native
from tierrank.losses.pairwise import plain
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.kernels import compiled_for
from tierrank.plackett_luce.transforms import once
from tierrank.tiers.arrays import range_numbers, repeat


def sum_over_wins(kind: str, order: TierOrder, parameter: Tensor) -> Tensor:
    """[lists] sums over all pairs of an item and one of a lower tier."""
    return _sum_pairs(kind, order, _tier_end(order), _list_end(order), parameter)


def sum_over_ties(kind: str, order: TierOrder, parameter: Tensor) -> Tensor:
    """[lists] sums over all pairs inside the tiers."""
    next_item = torch.arange(1, len(order.rows) + 1, device=order.rows.device)
    return _sum_pairs(kind, order, next_item, _tier_end(order), parameter)


def _tier_end(order: TierOrder) -> Tensor:
    return repeat(order.tier_offsets[1:], order.tier_offsets.diff())


def _list_end(order: TierOrder) -> Tensor:
    return repeat(order.list_offsets[1:], order.list_offsets.diff())


def _sum_pairs(
    kind: str, order: TierOrder, start: Tensor, stop: Tensor, parameter: Tensor
) -> Tensor:
    lengths = order.list_offsets.diff()
    inputs = order.rows, parameter, kind, order.values.dtype, start, stop, lengths
    return _PairSums.apply(*inputs)  # type: ignore[no-any-return, no-untyped-call]


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        parameter: Tensor,
        kind: str,
        dtype: torch.dtype,
        start: Tensor,
        stop: Tensor,
        lengths: Tensor,
    ) -> Tensor:
        """The rows are scores in float64; they were, and are worked on, in `dtype`."""
        pair_sums = _pair_sums_for(rows.device)
        loss, gradient, by_parameter = pair_sums(
            kind, rows.detach().to(dtype), start, stop, float(parameter)
        )
        of = range_numbers(lengths)
        sums, slopes = (
            part.new_zeros(len(lengths)).index_add(0, of, part) for part in (loss, by_parameter)
        )
        ctx.save_for_backward(rows, parameter, gradient, slopes, lengths)
        return sums

    @staticmethod
    def backward(ctx: Any, by_list: Tensor) -> tuple[Tensor | None, ...]:
        rows, parameter, gradient, slopes, lengths = ctx.saved_tensors
        if torch.is_grad_enabled():
            message = "ranknet, rao_kupper and davidson can be differentiated once, not twice"
            gradient, slopes = (once(by, message, rows, parameter) for by in (gradient, slopes))
        to_parameter = (slopes * by_list).sum() if ctx.needs_input_grad[1] else None
        return gradient * by_list[range_numbers(lengths)], to_parameter, *(None,) * 5


def _pair_sums_for(
    device: torch.device,
) -> Callable[[str, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor, Tensor]]:
    return compiled_pair_sums if compiled_for(device) else plain.pair_sums


def compiled_pair_sums(
    kind: str, scores: Tensor, start: Tensor, stop: Tensor, parameter: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum over pairs of item i with items j = start[i] … stop[i] − 1, all of them after i.

    Gives, by item i, Σ_j loss; by item, the gradient of the sum of all losses; and by item i,
    Σ_j ∂loss/∂parameter; all in float64.
    """
    loss, gradient, by_parameter = (torch.empty(len(scores), dtype=torch.float64) for _ in range(3))
    _native.pair_sums(
        kind, scores.contiguous().numpy(), start.numpy(), stop.numpy(), parameter,
        torch.get_num_threads(), loss.numpy(), gradient.numpy(), by_parameter.numpy(),
    )  # fmt: skip
    return loss, gradient, by_parameter
