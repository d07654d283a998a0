"""Weights of tiers, as callers give them and as the operators take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import transforms
from tierrank.plackett_luce.inputs import wide_dtype
from tierrank.tiers import Tiers


def upper_tier_weights(tier_weights: Any, tiers: Tiers, per_list: bool) -> Tensor:
    """[upper tiers] checked weights of the tiers that have a term in `tiers.layout(per_list)`.

    They are picked from weights of all written tiers: which of these are upper ones depends on
    the layout, and a caller need not know it. Empty, which stands for all 1, if there are none.
    """
    wide = wide_dtype(tiers.device)
    if tier_weights is None:
        return torch.empty(0, dtype=wide, device=tiers.device)
    if not isinstance(tier_weights, Tensor):
        tier_weights = torch.from_numpy(np.array(tier_weights, dtype=np.float64))
    _check(tier_weights, len(tiers.tier_offsets) - 1)
    layout = tiers.layout(per_list)
    n_upper = len(layout.tier_offsets) - 1
    # An upper tier stands as many places further on as lists before it left out their last tier.
    # (Not repeat_interleave: it wakes torch's threads, and they would keep ours waiting.)
    left_out = tiers.list_offsets.diff() - layout.list_offsets.diff()
    steps = left_out.new_zeros(n_upper + 1).index_add(0, layout.list_offsets[1:], left_out)
    place = torch.arange(n_upper, device=tiers.device) + steps.cumsum(0)[:-1]
    upper: Tensor = tier_weights.detach().to(tiers.device, wide).index_select(0, place)
    return upper


def _check(weights: Tensor, written: int) -> None:
    if weights.shape != (written,):
        raise ValueError(
            f"tier_weights needs one weight for each of the {written} written tiers, "
            f"[{written}], not {list(weights.shape)}"
        )
    if torch.is_grad_enabled() and weights.requires_grad:
        raise ValueError("tier weights are constants and get no gradient: use .detach()")
    transforms.refuse("tier weights", weights)
    if torch.compiler.is_compiling():
        return
    bad = ~((weights >= 0) & weights.isfinite())
    if bad.any():
        first = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"tier weights must be finite and not negative, but tier_weights[{first}] is "
            f"{float(weights[first])}"
        )
