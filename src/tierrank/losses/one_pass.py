"""Objectives by the native core: value and gradient in one pass.

It computes for the CPU, outside of `torch.compile`. Elsewhere, and where a second derivative is
asked for, the objective's formula in torch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from tierrank import _native
from tierrank.plackett_luce.flat import FlatLists
from tierrank.plackett_luce.kernels import compiled_for, kernel_for
from tierrank.plackett_luce.kernels.native import checked_layout
from tierrank.tiers import Tiers


class Results(NamedTuple):
    """What a kernel fills; gradients are empty where none are asked for."""

    value: npt.NDArray[np.float64]  # [lists]; NaN where a score is not finite
    gradient: npt.NDArray[Any]  # [rows]
    bottom_gradient: npt.NDArray[np.float64]  # [lists]


Kernel = Callable[[FlatLists, Results], None]
Formula = Callable[[Tensor], Tensor]


def in_one_pass(values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
    """[lists] `formula(values)`, in the scores' own float; by the kernel where that can compute."""
    if not _native_computes(values):
        return formula(values).to(values.dtype)
    if torch.is_grad_enabled() and values.requires_grad:
        return _OnePass.apply(values, tiers, kernel, formula)  # type: ignore[no-any-return, no-untyped-call]
    return _compute(values, tiers, kernel, formula, with_gradient=False)[0]


def fill_stages(
    choice: Literal["breslow", "efron", "subset", "subset, backward"],
    lists: FlatLists,
    results: Results,
) -> None:
    """Log-probabilities of tiers that are chosen one after the other (`native/stages.hpp`).

    Without their terms in which no score appears.
    """
    _native.staged_log_prob(
        choice, checked_layout(lists.layout), lists.rows.contiguous().numpy(), lists.bottom.numpy(),
        torch.get_num_threads(), *results,
    )  # fmt: skip


def fill_cross_entropies(shares: Tensor, floor: Tensor, lists: FlatLists, results: Results) -> None:
    """Σ_j p_j log softmax(w)_j: p is `shares` [upper tiers], and `floor` [lists] in last tiers."""
    _native.cross_entropy(
        checked_layout(lists.layout), lists.rows.contiguous().numpy(), shares.numpy(),
        floor.numpy(), torch.get_num_threads(), results.value, results.gradient,
    )  # fmt: skip


def shares_a_rest(values: Tensor, tiers: Tiers) -> bool:
    """Whether lists share their scores and leave part of the catalogue unwritten."""
    return tiers.rest and len(tiers) > 1 and values.dim() == 1


def _native_computes(values: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()
        and compiled_for(values.device)
        and unpack_dual(values).tangent is None  # forward mode goes through the formula
    )


def _compute(
    values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula, with_gradient: bool
) -> tuple[Tensor, FlatLists, Tensor, Tensor]:
    lists = FlatLists(values.detach(), tiers)
    rows, number = (len(lists.rows), len(tiers)) if with_gradient else (0, 0)
    value = torch.empty(len(tiers), dtype=torch.float64)
    gradient = torch.empty(rows, dtype=values.dtype)
    bottom_gradient = torch.empty(number, dtype=torch.float64)
    kernel(lists, Results(value.numpy(), gradient.numpy(), bottom_gradient.numpy()))
    if value.isnan().any():
        formula(values)  # refuses the scores, in its own words
    return value.to(values.dtype), lists, gradient, bottom_gradient


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
        computed = _compute(values, tiers, kernel, formula, with_gradient=True)
        value, ctx.lists, ctx.gradient, ctx.bottom_gradient = computed
        ctx.save_for_backward(values)
        ctx.formula = formula
        return value

    @staticmethod
    def backward(ctx: Any, by_value: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative may be asked for
            value = ctx.formula(values).to(by_value.dtype)
            (by_scores,) = torch.autograd.grad(value, values, by_value, create_graph=True)
        else:
            rows = kernel_for(values.device).scale_lists(
                ctx.gradient, ctx.lists.layout[0], by_value
            )
            by_scores = _to_scores(ctx.lists, rows, ctx.bottom_gradient * by_value)
        return by_scores, None, None, None


def _to_scores(lists: FlatLists, by_rows: Tensor, by_bottom: Tensor) -> Tensor:
    """Gradients by rows and by the bottom, taken to where the scores stand."""
    flat = by_rows
    if lists.gather is not None:
        flat = flat.new_zeros(lists.values.numel()).index_add_(0, lists.gather, flat)
    if lists.rest is not None:
        flat = flat + lists.rest.spread(by_bottom).to(flat.dtype)
    return flat.view(lists.values.shape)
