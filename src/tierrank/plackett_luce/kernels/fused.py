"""The likelihood inside `torch.compile`, where plain torch computes: operations, not an operator.

An operator is opaque to the compiler. Where it can do better, it gets what the operator would
compute, step by step, and makes few kernels of it. A kernel cannot raise: a list with a score
that is not finite has log-probability NaN here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce.kernels.plain import by_tables
from tierrank.tiers.layout import Tables


def in_graph(
    scores: Tensor,
    bottom: Tensor,
    tables: Tables,
    tier_weights: Tensor | None,
    differentiated: bool,
) -> Tensor:
    """[lists] log-probabilities, differentiable once if that is asked for."""
    given = scores.detach(), bottom.detach()
    value, *gradients = by_tables(*given, tables, tier_weights, differentiated)
    if differentiated:
        value = _Known.apply(scores, bottom, value, *gradients, tables.row_list)  # type: ignore[no-untyped-call]
    return value


class _Known(torch.autograd.Function):
    """A value [lists] whose gradients are known already."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, bottom: Tensor, value: Tensor, *known: Tensor) -> Tensor:
        ctx.save_for_backward(*known)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, by_value: Tensor) -> tuple[Tensor | None, ...]:
        gradient, bottom_gradient, row_list = ctx.saved_tensors
        to_bottom = (bottom_gradient * by_value).to(bottom_gradient)
        return gradient * by_value[row_list], to_bottom, None, None, None, None
