"""Objectives by the native core: value and gradient in one pass.

It computes for the CPU, outside of `torch.compile`. Elsewhere, and where a second derivative is
asked for, the objective's formula in torch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from tierrank import _native
from tierrank._types import AnyArray, FloatArray
from tierrank.plackett_luce.kernels import checked_layout, compiled_for, scale_lists
from tierrank.plackett_luce.lists import FlatLists
from tierrank.tiers import Tiers


class Pass(NamedTuple):
    """What a kernel takes, and what it fills; no gradients where none are asked for."""

    scores: AnyArray  # [rows]
    value: AnyArray  # [lists], in float64
    gradient: AnyArray | None = None  # [rows], in the scores' float
    bottom_gradient: AnyArray | None = None  # [lists], float64; none if nothing is below


Kernel = Callable[[FlatLists, Pass], bool]  # says whether all scores are finite
Formula = Callable[[Tensor], Tensor]


def in_one_pass(values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
    """[lists] losses, in the scores' own float: minus what kernel and formula give.

    The kernel computes where it can, and the formula elsewhere.
    """
    if not native_computes(values):
        return -formula(values).to(values.dtype)
    if torch.is_grad_enabled() and values.requires_grad:
        return _OnePass.apply(values, tiers, kernel, formula)  # type: ignore[no-any-return, no-untyped-call]
    return _compute(values, tiers, kernel, formula, with_gradient=False)[0]


def fill_stages(
    choice: Literal["breslow", "efron", "subset", "subset, backward"],
    lists: FlatLists,
    arrays: Pass,
) -> bool:
    """Log-probabilities of tiers that are chosen one after the other (`native/stages.hpp`).

    Without their terms in which no score appears.
    """
    scores, value, gradient, bottom_gradient = arrays
    bottom = None if lists.rest is None else lists.bottom.numpy()
    threads = torch.get_num_threads()
    layout = checked_layout(lists.layout)
    return _native.staged_log_prob(
        choice, layout, scores, bottom, threads, value, gradient, bottom_gradient
    )


def stage_hessian(
    choice: Literal["breslow", "efron", "one draw"], rows: FloatArray, tiers: Tiers
) -> FloatArray:
    """[rows] diagonal of the Hessian of such tiers, of [rows] scores sorted by list and tier.

    For "one draw", of a subset by one of its items, without the part that is concave.
    """
    out = np.empty(len(rows))
    _native.stage_hessians(
        choice, rows, tiers.tier_offsets.numpy(), tiers.list_offsets.numpy(),
        torch.get_num_threads(), out,
    )  # fmt: skip
    return out


def shares_a_rest(values: Tensor, tiers: Tiers) -> bool:
    """Whether lists share their scores and leave part of the catalogue unwritten."""
    return tiers.rest and len(tiers) > 1 and values.dim() == 1


def native_computes(values: Tensor) -> bool:
    """Whether the native core takes these: on the CPU, outside of graphs and of forward mode."""
    return (
        not torch.compiler.is_compiling()
        and compiled_for(values.device)
        and unpack_dual(values).tangent is None  # forward mode goes through the formula
    )


def _compute(
    values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula, with_gradient: bool
) -> tuple[Tensor, FlatLists, Pass]:
    lists = FlatLists(values.detach(), tiers)
    scores = lists.rows.contiguous().numpy()
    arrays = Pass(
        scores,
        np.empty(len(tiers)),
        np.empty_like(scores) if with_gradient else None,
        np.empty(len(tiers)) if with_gradient and lists.rest is not None else None,
    )
    if not kernel(lists, arrays):
        formula(values)  # refuses the scores, in its own words
    return torch.from_numpy(-arrays.value).to(values.dtype), lists, arrays


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
        loss, ctx.lists, ctx.arrays = _compute(values, tiers, kernel, formula, with_gradient=True)
        ctx.save_for_backward(values)
        ctx.formula = formula
        return loss

    @staticmethod
    def backward(ctx: Any, by_loss: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative may be asked for
            loss = -ctx.formula(values).to(by_loss.dtype)
            (by_scores,) = torch.autograd.grad(loss, values, by_loss, create_graph=True)
        else:
            by_scores = _to_scores(ctx.lists, ctx.arrays, -by_loss)
        return by_scores, None, None, None


def _to_scores(lists: FlatLists, arrays: Pass, factor: Tensor) -> Tensor:
    """The gradients by rows and by the bottom, times a factor [lists], where the scores stand."""
    assert arrays.gradient is not None
    flat = scale_lists(torch.from_numpy(arrays.gradient), lists.layout[0], factor)
    if lists.gather is not None:
        flat = flat.new_zeros(lists.values.numel()).index_add_(0, lists.gather, flat)
    if lists.rest is not None and arrays.bottom_gradient is not None:
        by_bottom = torch.from_numpy(arrays.bottom_gradient) * factor
        flat = flat + lists.rest.spread(by_bottom).to(flat.dtype)
    return flat.view(lists.values.shape)
