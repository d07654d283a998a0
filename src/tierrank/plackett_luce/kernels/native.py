"""The likelihood on the CPU: what the native core computes, on torch's memory."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

from tierrank import _native
from tierrank.plackett_luce.inputs import why_nan

# Layouts that were checked, by the identity of the first of their tensors, as long as that lives.
_kept: dict[int, tuple[weakref.ref[Tensor], Tensor, Tensor, Tensor, _native.Layout]] = {}


def checked_layout(layout: tuple[Tensor, ...]) -> _native.Layout:
    """The core's own view of row_offsets, order, tier_offsets and list_offsets; made once."""
    row_offsets, order, tier_offsets, list_offsets = layout
    entry = _kept.get(id(row_offsets))
    if (
        entry is not None
        and entry[0]() is row_offsets
        and entry[1] is order
        and entry[2] is tier_offsets
        and entry[3] is list_offsets
    ):
        return entry[4]
    made = _native.Layout(*map(_numbers, layout))
    key = id(row_offsets)

    def forget(_: Any) -> None:
        if (entry := _kept.get(key)) is not None and entry[4] is made:
            del _kept[key]

    _kept[key] = weakref.ref(row_offsets, forget), order, tier_offsets, list_offsets, made
    return made


def _numbers(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()


def _doubles(values: Tensor | None) -> Any:
    """In float64; None if there are none."""
    return _numbers(values.double()) if values is not None and values.shape[0] else None


def log_prob_and_gradient(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """[lists] log-probabilities, [rows] and [lists] gradients of them in scores and bottom.

    Nothing stands below the rows where there is no `bottom`, and then it has no gradient. Each
    upper tier's term counts `tier_weights` times, or once without them.
    """
    checked, rows = checked_layout(layout), scores.detach().contiguous()
    log_prob = rows.new_empty(checked.lists)
    gradient = bottom_gradient = None
    if with_gradient:
        gradient = torch.empty_like(rows)
        if bottom is not None:
            bottom_gradient = torch.empty(checked.lists, dtype=torch.float64)
    nan = _native.log_prob(
        checked, rows.numpy(), _doubles(bottom), _doubles(tier_weights), torch.get_num_threads(),
        log_prob.numpy(), gradient if gradient is None else gradient.numpy(),
        bottom_gradient if bottom_gradient is None else bottom_gradient.numpy(),
    )  # fmt: skip
    if nan >= 0:
        raise why_nan(scores, layout[0], tier_weights)
    if bottom is not None and bottom_gradient is not None:
        bottom_gradient = bottom_gradient.to(bottom.dtype)
    return log_prob, gradient, bottom_gradient


def derivatives(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """[lists] log-probabilities, [rows] gradients and diagonals of their Hessians in the scores."""
    checked, rows = checked_layout(layout), scores.detach().contiguous()
    log_prob, gradient = rows.new_empty(checked.lists), torch.empty_like(rows)
    diagonal = torch.empty(len(rows), dtype=torch.float64)
    nan = _native.log_prob(
        checked, rows.numpy(), _doubles(bottom), _doubles(tier_weights), torch.get_num_threads(),
        log_prob.numpy(), gradient.numpy(), None, diagonal.numpy(),
    )  # fmt: skip
    if nan >= 0:
        raise why_nan(scores, layout[0], tier_weights)
    return log_prob, gradient, diagonal.to(rows.dtype)


def curvature_product(
    scores: Tensor,
    bottom: Tensor,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor,
    vector: Tensor | None,
    bottom_vector: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Each list's Hessian times its part of `vector` and `bottom_vector`, or its diagonal."""
    out = torch.empty(len(scores), dtype=torch.float64)
    bottom_out = torch.zeros(len(bottom), dtype=torch.float64)
    if len(scores):
        _native.hessian_product(
            checked_layout(layout), _numbers(scores), _doubles(bottom), _doubles(tier_weights),
            torch.get_num_threads(), _doubles(vector), _doubles(bottom_vector), out.numpy(),
            bottom_out.numpy(),
        )  # fmt: skip
    return out.to(scores.dtype), bottom_out.to(bottom.dtype)


def scale_lists(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    """[rows] every row times the number of its list."""
    if by_list.shape[0] == 1 or (by_list.shape[0] and by_list.stride(0) == 0):
        return rows * by_list[:1]  # one number for all, as the gradient of a sum is
    out = torch.empty_like(rows)
    _native.scale_lists(
        _numbers(row_offsets), _numbers(rows), _numbers(by_list.to(rows.dtype)), out.numpy()
    )
    return out
