"""The likelihood by the native core, on torch's memory, and the choice of who computes.

There are two ways to the same numbers: compiled for the CPU, which is this module, and in plain
torch for the rest, which is `integral`. The choice is made by itself. `using("plain")` overrides
it, for tests and comparisons.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tierrank import _native
from tierrank._types import AnyArray, FloatArray
from tierrank.plackett_luce.kernels import integral as plain
from tierrank.plackett_luce.lists import why_nan
from tierrank.tiers.layout import once_a_layout

Choice = Literal["auto", "compiled", "plain"]
Pullback: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor | None]]

_choice: ContextVar[Choice] = ContextVar("tierrank_kernel", default="auto")
_choice_in_graphs: Choice = "auto"  # the same: torch.compile cannot look into a ContextVar


@contextmanager
def using(choice: Choice) -> Iterator[None]:
    """Within the block, compute with "compiled" or "plain" whatever the device."""
    if choice not in ("auto", "compiled", "plain"):
        raise ValueError(f'the kernel is "auto", "compiled" or "plain", not {choice!r}')
    global _choice_in_graphs
    token, before = _choice.set(choice), _choice_in_graphs
    _choice_in_graphs = choice
    try:
        yield
    finally:
        _choice.reset(token)
        _choice_in_graphs = before


def kernel_for(device: torch.device) -> ModuleType:
    """The module that computes for scores on this device: this one, or `plain`."""
    choice = _choice.get()
    if choice == "compiled" and device.type != "cpu":
        raise ValueError(f"the compiled kernel is for the CPU, and the scores are on {device}")
    compiled = choice != "plain" and device.type == "cpu"
    return sys.modules[__name__] if compiled else plain


def compiled_for(device: torch.device) -> bool:
    """Whether compiled code computes for scores on this device."""
    return kernel_for(device) is not plain


def fused_for(device: torch.device) -> bool:
    """Whether `torch.compile` gets the tensor operations themselves, to fuse; not an operator."""
    return device.type != "cpu" or _choice_in_graphs == "plain"


def native_info() -> dict[str, Any]:
    """Say how the native core was built and what it uses on this machine.

    The environment variable ``TIERRANK_INSTRUCTIONS``, set before tierrank is loaded, overrides the
    choice by the name of another set.

    Returns
    -------
    dict
        ``instructions``, the set that is used; ``available``, all that this machine runs, from the
        plainest to the widest; ``compiler``; ``build``, its type and what sanitizers watch over it;
        and ``file``, the module itself.

    See Also
    --------
    log_prob : What it computes.

    Examples
    --------
    >>> import tierrank as tr
    >>> info = tr.native_info()
    >>> info["instructions"] in info["available"]
    True
    """
    return {
        "instructions": _native.instructions(),
        "available": _native.all_instructions(),
        "compiler": _native.compiler,
        "build": _native.build,
        "file": _native.__file__,
    }


# -- by the native core ------------------------------------------------------------------------


@once_a_layout
def checked_layout(layout: tuple[Tensor, ...]) -> _native.Layout:
    """The core's own view of row_offsets, order, tier_offsets and list_offsets; made once."""
    return _native.Layout(*map(_numbers, layout))


def _numbers(values: Tensor) -> AnyArray:
    return np.ascontiguousarray(values.numpy(force=True))


def _doubles(values: Tensor | None) -> AnyArray | None:
    """In float64; None if there are none."""
    return _numbers(values.double()) if values is not None and values.shape[0] else None


class _Computed(NamedTuple):
    """What one pass over the lists fills: in numpy, which makes an array in a third of the time."""

    value: AnyArray  # [lists], in the scores' float
    gradient: AnyArray | None  # [rows], in the scores' float
    bottom_gradient: FloatArray | None  # [lists]; None if nothing stands below
    diagonal: FloatArray | None  # [rows] of the Hessians


def _compute(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    with_gradient: bool,
    with_diagonal: bool = False,
) -> _Computed:
    checked, rows = checked_layout(layout), _numbers(scores)
    computed = _Computed(
        np.empty(checked.lists, rows.dtype),
        np.empty(len(rows), rows.dtype) if with_gradient else None,
        None if bottom is None or not with_gradient else np.empty(checked.lists),
        np.empty(len(rows)) if with_diagonal else None,
    )
    nan = _native.log_prob(
        checked, rows, _doubles(bottom), _doubles(tier_weights), torch.get_num_threads(),
        *computed,
    )  # fmt: skip
    if nan >= 0:
        raise why_nan(scores, layout[0], tier_weights)
    return computed


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
    found = _compute(scores, bottom, layout, tier_weights, with_gradient)
    value = torch.from_numpy(found.value)
    if found.gradient is None:
        return value, None, None
    by_bottom = None
    if bottom is not None and found.bottom_gradient is not None:
        by_bottom = torch.from_numpy(found.bottom_gradient).to(bottom.dtype)
    return value, torch.from_numpy(found.gradient), by_bottom


def log_prob_and_pullback(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
) -> tuple[Tensor, Pullback]:
    """[lists] log-probabilities, and what takes the derivatives by them to scores and bottom."""
    found = _compute(scores, bottom, layout, tier_weights, True)

    def pullback(by_value: Tensor) -> tuple[Tensor, Tensor | None]:
        assert found.gradient is not None
        factor = by_value.numpy(force=True)
        to_scores = _scaled(layout[0].numpy(), found.gradient, factor)
        if found.bottom_gradient is None:
            return to_scores, None
        return to_scores, torch.from_numpy(found.bottom_gradient * factor)

    return torch.from_numpy(found.value), pullback


def derivatives(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """[lists] log-probabilities, [rows] gradients and diagonals of their Hessians in the scores."""
    found = _compute(scores, bottom, layout, tier_weights, True, True)
    diagonal = np.asarray(found.diagonal, found.value.dtype)
    return (
        torch.from_numpy(found.value),
        torch.from_numpy(found.gradient),
        torch.from_numpy(diagonal),
    )


def hessian_product(
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
    return _scaled(_numbers(row_offsets), _numbers(rows), _numbers(by_list.to(rows.dtype)))


def _scaled(row_offsets: AnyArray, rows: AnyArray, by_list: AnyArray) -> Tensor:
    if by_list.size == 1 or (by_list.size and by_list.strides[0] == 0):
        return torch.from_numpy(rows * by_list[0])  # one number for all, as a sum's gradient is
    out = np.empty_like(rows)
    _native.scale_lists(row_offsets, rows, np.ascontiguousarray(by_list), out)
    return torch.from_numpy(out)
