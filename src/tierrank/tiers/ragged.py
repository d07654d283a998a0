"""Arithmetic on ranges of different sizes, for tensors on any device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def offsets(sizes: Tensor) -> Tensor:
    """Running sum from 0: the borders of consecutive ranges with these sizes."""
    return torch.nn.functional.pad(sizes.cumsum(0), (1, 0))


def repeat(values: Tensor, sizes: Tensor) -> Tensor:
    """Repeat each value as often as its size says."""
    if values.device.type == "cpu":  # numpy's is several times faster than torch's, and no threads
        return torch.from_numpy(np.repeat(values.numpy(), sizes.numpy()))
    return values.repeat_interleave(sizes)


def range_numbers(sizes: Tensor) -> Tensor:
    """Give 0 as often as sizes[0] says, 1 as often as sizes[1], ..."""
    return repeat(torch.arange(len(sizes), device=sizes.device), sizes)


def ranges(starts: Tensor, sizes: Tensor) -> Tensor:
    """Give starts[0], starts[0] + 1, ... (sizes[0] of them), then those of the next range."""
    shift = repeat(starts - sizes.cumsum(0) + sizes, sizes)
    return shift.add_(torch.arange(len(shift), device=starts.device))
