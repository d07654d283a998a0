"""Where randomness comes from: an explicit generator, or a seed for one."""

from __future__ import annotations

import operator

import torch


def as_generator(
    generator: torch.Generator | int | None, device: torch.device
) -> torch.Generator | None:
    """A generator for a device; None stays None, torch's global one."""
    if generator is None or isinstance(generator, torch.Generator):
        return generator
    return torch.Generator(device).manual_seed(operator.index(generator))  # numpy's integers too
