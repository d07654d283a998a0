"""The likelihood as torch operators: autograd twice, `torch.compile`, any device.

`tierrank::log_prob` gives value and gradient in one pass. Its backward pass is then one
multiplication, and because the gradient is an output of the operator too, differentiating a
second time is its other half: `tierrank::curvature_product`, the Hessian in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce.kernels import kernel_for
from tierrank.plackett_luce.lists import wide_dtype

# `torch.library.custom_op` would say the same in fewer words, but its first call imports
# torch._dynamo, which takes longer than all the rest of a first call.
_LISTS = (
    "Tensor scores, Tensor bottom, Tensor row_offsets, Tensor order, Tensor tier_offsets,"
    " Tensor list_offsets, Tensor tier_weights"
)
torch.library.define(
    "tierrank::log_prob",
    f"({_LISTS}, bool with_gradient) -> (Tensor, Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    "tierrank::curvature_product",
    f"({_LISTS}, Tensor vector, Tensor bottom_vector) -> (Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    "tierrank::scale_lists",
    "(Tensor rows, Tensor row_offsets, Tensor by_list) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


log_prob: Callable[..., tuple[Tensor, Tensor, Tensor]] = torch.ops.tierrank.log_prob.default
hessian_product: Callable[..., tuple[Tensor, Tensor]] = torch.ops.tierrank.curvature_product.default
scale_lists: Callable[..., Tensor] = torch.ops.tierrank.scale_lists.default


def _log_prob(
    scores: Tensor, bottom: Tensor, row_offsets: Tensor, order: Tensor, tier_offsets: Tensor,
    list_offsets: Tensor, tier_weights: Tensor, with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """[lists] log-probabilities, and their gradients in scores [rows] and bottom [lists].

    The arguments after `bottom` are `Layout`'s. `bottom` is the lse of what stands below every
    row of a list, −inf for nothing, and may be of a wider float than the scores. `tier_weights`
    [upper tiers] multiply the tiers' terms and are constants; an empty tensor says that all are
    1. Without `with_gradient` the last two results are empty.
    """
    layout = (row_offsets, order, tier_offsets, list_offsets)
    kernel = kernel_for(scores.device)
    value, *gradients = kernel.log_prob_and_gradient(
        scores, bottom, layout, tier_weights, with_gradient
    )
    if not with_gradient:
        return value, scores.new_empty(0), bottom.new_empty(0)
    return value, *gradients


torch.library.impl("tierrank::log_prob", "CompositeExplicitAutograd", _log_prob)


class EagerLogProb(torch.autograd.Function):
    """[lists] log-probabilities outside `torch.compile`, at a fifth of an operator's overhead.

    By (scores, bottom or None, layout, tier_weights or None). Where a second derivative may be
    asked for, the operators take over.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        bottom: Tensor | None,
        layout: tuple[Tensor, ...],
        tier_weights: Tensor | None,
    ) -> Tensor:
        kernel = kernel_for(scores.device)
        value, ctx.pullback = kernel.log_prob_and_pullback(scores, bottom, layout, tier_weights)
        ctx.save_for_backward(scores, bottom)
        ctx.problem = layout, tier_weights
        return value  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, by_value: Tensor) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return *ctx.pullback(by_value), None, None
        scores, bottom = ctx.saved_tensors
        problem = problem_of(scores, bottom, *ctx.problem)
        _, gradient, by_bottom = log_prob(*problem, True)
        to_bottom = by_bottom * by_value if ctx.needs_input_grad[1] else None
        return scale_lists(gradient, problem[2], by_value), to_bottom, None, None


def problem_of(
    scores: Tensor, bottom: Tensor | None, layout: tuple[Tensor, ...], tier_weights: Tensor | None
) -> tuple[Tensor, ...]:
    """The arguments of an operator, which takes tensors for what there is not."""
    wide = wide_dtype(scores.device)
    if bottom is None:
        bottom = scores.new_full((layout[0].shape[0] - 1,), -torch.inf, dtype=wide)
    if tier_weights is None:
        tier_weights = scores.new_empty(0, dtype=wide)
    return scores, bottom, *layout, tier_weights


@torch.library.register_fake("tierrank::log_prob")
def _log_prob_shapes(
    scores: Tensor, bottom: Tensor, row_offsets: Tensor, order: Tensor, tier_offsets: Tensor,
    list_offsets: Tensor, tier_weights: Tensor, with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    value = scores.new_empty(bottom.shape)
    if with_gradient:
        return value, torch.empty_like(scores), torch.empty_like(bottom)
    return value, scores.new_empty(0), bottom.new_empty(0)


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, with_gradient = inputs
    if not with_gradient:
        raise RuntimeError("tierrank::log_prob needs with_gradient=True to be differentiated")
    ctx.save_for_backward(*tensors, *output[1:])
    ctx.set_materialize_grads(False)  # None tells that no second derivative is wanted


def _log_prob_backward(
    ctx: Any, by_value: Tensor | None, by_gradient: Tensor | None, by_bottom: Tensor | None
) -> tuple[Tensor | None, ...]:
    scores, bottom, row_offsets, *rest, gradient, bottom_gradient = ctx.saved_tensors
    to_scores: Tensor | None = None
    to_bottom: Tensor | None = None
    if by_value is not None:
        to_scores = scale_lists(gradient, row_offsets, by_value)
        to_bottom = bottom_gradient * by_value
    if by_gradient is not None or by_bottom is not None:
        vector = torch.zeros_like(scores) if by_gradient is None else by_gradient
        bottom_vector = torch.zeros_like(bottom) if by_bottom is None else by_bottom
        second = hessian_product(scores, bottom, row_offsets, *rest, vector, bottom_vector)
        to_scores = second[0] if to_scores is None else to_scores + second[0]
        to_bottom = second[1] if to_bottom is None else to_bottom + second[1]
    return to_scores, to_bottom, *(None,) * 6


torch.library.register_autograd(
    "tierrank::log_prob", _log_prob_backward, setup_context=_keep_for_backward
)


@torch.library.impl("tierrank::curvature_product", "CompositeExplicitAutograd")
def _hessian_product(
    scores: Tensor, bottom: Tensor, row_offsets: Tensor, order: Tensor, tier_offsets: Tensor,
    list_offsets: Tensor, tier_weights: Tensor, vector: Tensor, bottom_vector: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Every list's Hessian times its part of (vector [rows], bottom_vector [lists])."""
    layout = (row_offsets, order, tier_offsets, list_offsets)
    kernel = kernel_for(scores.device)
    return kernel.hessian_product(scores, bottom, layout, tier_weights, vector, bottom_vector)  # type: ignore[no-any-return]


@torch.library.register_fake("tierrank::curvature_product")
def _hessian_product_shapes(
    scores: Tensor, bottom: Tensor, row_offsets: Tensor, order: Tensor, tier_offsets: Tensor,
    list_offsets: Tensor, tier_weights: Tensor, vector: Tensor, bottom_vector: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(scores), torch.empty_like(bottom)


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _hessian_product_backward(
    ctx: Any, by_rows: Tensor, by_bottom: Tensor
) -> tuple[Tensor | None, ...]:
    if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
        raise NotImplementedError(
            "the likelihood can be differentiated twice, and this asks for a third derivative; "
            "detach the scores of the inner derivative"
        )
    # H is symmetric
    *problem, _, _ = ctx.saved_tensors
    return *(None,) * 7, *hessian_product(*problem, by_rows, by_bottom)


torch.library.register_autograd(
    "tierrank::curvature_product", _hessian_product_backward, setup_context=_keep_inputs
)


def hessian_diagonal(
    scores: Tensor, bottom: Tensor, layout: tuple[Tensor, ...], tier_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """The diagonal of every list's Hessian: in scores [rows] and in bottom [lists]."""
    kernel = kernel_for(scores.device)
    return kernel.hessian_product(scores, bottom, layout, tier_weights, None, None)  # type: ignore[no-any-return]


@torch.library.impl("tierrank::scale_lists", "CompositeExplicitAutograd")
def _scale_lists(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    """[rows] every row times the number of its list."""
    return kernel_for(rows.device).scale_lists(rows, row_offsets, by_list)  # type: ignore[no-any-return]


@torch.library.register_fake("tierrank::scale_lists")
def _scale_lists_shapes(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    return torch.empty_like(rows)


def _scale_lists_backward(ctx: Any, by_rows: Tensor) -> tuple[Tensor | None, ...]:
    rows, row_offsets, by_list = ctx.saved_tensors
    to_rows = scale_lists(by_rows, row_offsets, by_list) if ctx.needs_input_grad[0] else None
    to_lists = None
    if ctx.needs_input_grad[2]:
        of = torch.repeat_interleave(row_offsets.diff(), output_size=len(rows))
        to_lists = torch.zeros_like(by_list).index_add(0, of, rows * by_rows)
    return to_rows, None, to_lists


torch.library.register_autograd(
    "tierrank::scale_lists", _scale_lists_backward, setup_context=_keep_inputs
)
