"""Weights and the memory of an optimiser as named arrays, so that safetensors can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tierrank.storage import Arrays

Weights = dict[str, Tensor]


def weights_of(module: nn.Module) -> Weights:
    """A copy of all parameters and buffers, on the CPU."""
    return {
        name: value.detach().to("cpu", copy=True) for name, value in module.state_dict().items()
    }


def as_arrays(prefix: str, weights: Mapping[str, Tensor]) -> Arrays:
    """Tensors as arrays under ``prefix.name``."""
    return {f"{prefix}.{name}": tensor.numpy() for name, tensor in weights.items()}


def from_arrays(prefix: str, arrays: Arrays) -> Weights:
    """Undo `as_arrays`, leaving other prefixes out."""
    return {
        name.removeprefix(f"{prefix}."): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(f"{prefix}.")
    }


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> Arrays:
    """What an optimiser remembers of each parameter, as ``optimiser.number.name``."""
    return {
        f"optimiser.{number}.{name}": value.detach().cpu().numpy()
        for number, memory in optimiser.state_dict()["state"].items()
        for name, value in memory.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, arrays: Arrays) -> None:
    """Undo `optimiser_arrays`; rates and groups stay as they are."""
    memory: dict[int, dict[str, Any]] = {}
    for key, value in from_arrays("optimiser", arrays).items():
        number, _, name = key.partition(".")
        memory.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict(
        {"state": memory, "param_groups": optimiser.state_dict()["param_groups"]}
    )
