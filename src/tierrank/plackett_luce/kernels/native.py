"""The likelihood on the CPU: what the native core computes, on torch's memory."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank import _native

_NOTHING = np.empty(0)

# Layouts that were checked, by the identity of the first of their tensors, as long as that lives.
_kept: dict[int, tuple[tuple[weakref.ref[Tensor], ...], _native.Layout]] = {}


def checked_layout(layout: tuple[Tensor, ...]) -> _native.Layout:
    """The core's own view of row_offsets, order, tier_offsets and list_offsets; made once."""
    key = id(layout[0])
    entry = _kept.get(key)
    if entry is not None and all(ref() is part for ref, part in zip(entry[0], layout, strict=True)):
        return entry[1]
    made = _native.Layout(*(part.detach().contiguous().numpy() for part in layout))

    def forget(_: Any) -> None:
        if (entry := _kept.get(key)) is not None and entry[1] is made:
            del _kept[key]

    _kept[key] = (weakref.ref(layout[0], forget), *map(weakref.ref, layout[1:])), made
    return made


def _given(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()


def _doubles(values: Tensor) -> Any:
    return _given(values.to(torch.float64))


def log_prob_and_gradient(
    scores: Tensor,
    bottom: Tensor,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor,
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """[lists] log-probabilities, [rows] and [lists] gradients of them in scores and bottom.

    Each upper tier's term counts `tier_weights` times, or once if that is empty. The gradients
    are empty without `with_gradient`. A list with a score that is not finite has
    log-probability NaN.
    """
    lists, kind = len(layout[0]) - 1, scores.dtype
    log_prob = torch.empty(lists, dtype=torch.float64)
    gradient = torch.empty(len(scores) if with_gradient else 0, dtype=kind)
    bottom_gradient = torch.empty(lists if with_gradient else 0, dtype=torch.float64)
    _native.log_prob(
        checked_layout(layout), _given(scores), _doubles(bottom), _doubles(tier_weights),
        torch.get_num_threads(), log_prob.numpy(), gradient.numpy(), bottom_gradient.numpy(),
        _NOTHING, _NOTHING,
    )  # fmt: skip
    return log_prob.to(kind), gradient, bottom_gradient.to(bottom.dtype)


def derivatives(
    scores: Tensor, bottom: Tensor, layout: tuple[Tensor, ...], tier_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """[lists] log-probabilities, [rows] gradients and diagonals of their Hessians in the scores."""
    lists, kind = len(layout[0]) - 1, scores.dtype
    log_prob, bottoms, bottom_bends = torch.empty(3, lists, dtype=torch.float64)
    gradient = torch.empty(len(scores), dtype=kind)
    diagonal = torch.empty(len(scores), dtype=torch.float64)
    _native.log_prob(
        checked_layout(layout), _given(scores), _doubles(bottom), _doubles(tier_weights),
        torch.get_num_threads(), log_prob.numpy(), gradient.numpy(), bottoms.numpy(),
        diagonal.numpy(), bottom_bends.numpy(),
    )  # fmt: skip
    return log_prob.to(kind), gradient, diagonal.to(kind)


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
    bottom_out = torch.empty(len(bottom), dtype=torch.float64)
    if len(scores):
        v, v_bottom = (
            _NOTHING if part is None else _doubles(part) for part in (vector, bottom_vector)
        )
        _native.hessian_product(
            checked_layout(layout), _given(scores), _doubles(bottom), _doubles(tier_weights),
            torch.get_num_threads(), v, v_bottom, out.numpy(), bottom_out.numpy(),
        )  # fmt: skip
    else:
        bottom_out.zero_()
    return out.to(scores.dtype), bottom_out.to(bottom.dtype)


def scale_lists(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    """[rows] every row times the number of its list."""
    if len(by_list) == 1:
        return rows * by_list
    out = torch.empty_like(rows)
    _native.scale_lists(_given(row_offsets), _given(rows), _given(by_list.to(rows)), out.numpy())
    return out
