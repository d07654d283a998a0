"""Two ways to compute the same numbers: compiled for the CPU, and plain torch for the rest.

The choice is made by itself. `using("plain")` overrides it, for tests and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Literal

import torch

from tierrank.plackett_luce.kernels import native, plain

Choice = Literal["auto", "compiled", "plain"]

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
    """The module that computes for scores on this device."""
    choice = _choice.get()
    if choice == "compiled" and device.type != "cpu":
        raise ValueError(f"the compiled kernel is for the CPU, and the scores are on {device}")
    return native if choice != "plain" and device.type == "cpu" else plain


def compiled_for(device: torch.device) -> bool:
    """Whether compiled code computes for scores on this device."""
    return kernel_for(device) is native


def fused_for(device: torch.device) -> bool:
    """Whether `torch.compile` gets the tensor operations themselves, to fuse; not an operator."""
    return device.type != "cpu" or _choice_in_graphs == "plain"
