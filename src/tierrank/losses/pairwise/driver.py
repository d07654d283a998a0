"""Runs the compiled sums over pairs over threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tierrank.compilation import announce
from tierrank.losses.pairwise import compiled
from tierrank.plackett_luce.kernels.driver import run

announce(
    __file__, compiled.SOURCES,
    "compiling sums over pairs for this CPU: takes a few seconds a kind, this once",
)  # fmt: skip


def pair_sums(
    kind: str, scores: Tensor, start: Tensor, stop: Tensor, parameter: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum over pairs of item i with items j = start[i] … stop[i] − 1, all of them after i.

    Gives, by item i, Σ_j loss; by item, the gradient of the sum of all losses; and by item i,
    Σ_j ∂loss/∂parameter; all in float64.
    """
    sums = getattr(compiled, kind)
    items = len(scores)
    padded = np.zeros(items + compiled.LANES, scores.numpy().dtype)
    padded[:items] = scores.numpy()
    first, last = start.numpy(), stop.numpy()
    loss, by_parameter, gradient = np.empty(items), np.empty(items), np.zeros(items)
    parts: dict[int, np.ndarray] = {}

    def stage(lo: int, hi: int) -> None:
        if lo == hi:
            return
        # other ranges of i may have the same j, so each has a gradient of its own
        alone = hi - lo == items
        part = gradient if alone else np.zeros(max(int(last[hi - 1]), hi) - lo)
        sums(padded, first, last, lo, hi, parameter, loss, by_parameter, part)
        if not alone:
            parts[lo] = part

    run(stage, np.concatenate([[0], np.cumsum(last - first + 1)]))
    for lo, part in sorted(parts.items()):  # in one order, whoever came first: the same bits
        gradient[lo : lo + len(part)] += part
    return tuple(map(torch.from_numpy, (loss, gradient, by_parameter)))  # type: ignore[return-value]
