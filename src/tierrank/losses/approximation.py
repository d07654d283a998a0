"""Cheaper stand-ins for the exact likelihood of tiers, known from survival analysis.

A list is a stratum, a tier a set of tied deaths, and the last tier is censored. Where all tiers
above the last have one item, both are exact. See docs/objectives.md for how far off they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.losses.one_pass import Array, Pass, fill_stages, in_one_pass
from tierrank.losses.reduction import Reduction, finish
from tierrank.losses.registry import objective
from tierrank.plackett_luce.flat import FlatLists
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.kernels.ragged import TierSums
from tierrank.tiers import Tiers


@objective("pl-lb", "likelihood", "Hino et al., 2010")
def pl_lower_bound(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Minus a lower bound of the log-probability (PL-LB; Hino et al., 2010).

    With R_m the tier S_m and all below it, log P(S_m > R_{m+1}) ≥ log n_m! + Σ_{i∈S_m}
    (w_i − lse(R_m)): every item of the tier is drawn as if the others were still there. In
    survival analysis this is Breslow's approximation. Parameters as in `pl_partition`.
    """
    given = Scores(scores)
    return finish(given, _approximate(given.values, tiers, efron=False), weights, reduction)


@objective("pl-efron", "likelihood", "Efron, 1977")
def pl_efron(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Minus Efron's approximation of the log-probability (PL-Efron; Efron, 1977).

    With R_m the tier S_m and all below it, log P(S_m > R_{m+1}) is taken for log n_m! +
    Σ_{i∈S_m} w_i − Σ_{l<n_m} log(Σ_{R_m} e^w − (l/n_m) Σ_{S_m} e^w): when the l-th item is
    drawn, the tier has lost l average items. As cheap as `pl_lower_bound`, and much closer.
    Parameters as in `pl_partition`.
    """
    given = Scores(scores)
    return finish(given, _approximate(given.values, tiers, efron=True), weights, reduction)


def _approximate(values: Tensor, tiers: Tiers, *, efron: bool) -> Tensor:
    """[lists] losses, by the native core or by minus the formula."""

    def kernel(lists: FlatLists, arrays: Pass) -> bool:
        finite = fill_stages("efron" if efron else "breslow", lists, arrays)
        arrays.value[:] += tiers.kept("log orders", lambda: _log_orders(tiers))
        return finite

    return in_one_pass(values, tiers, kernel, partial(_formula, tiers=tiers, efron=efron))


def _log_orders(tiers: Tiers) -> Array:
    """[lists] Σ_m log n_m! over the tiers with something below them."""
    orders = torch.lgamma(tiers.tier_sizes.to(torch.float64) + 1).numpy()
    number = tiers.list_offsets.diff().numpy()
    nothing_below = (tiers.lengths == tiers.full_lengths).numpy() & (number > 0)
    orders[tiers.list_offsets.numpy()[1:][nothing_below] - 1] = 0.0
    return np.bincount(np.repeat(np.arange(len(tiers)), number), orders, minlength=len(tiers))


def _formula(values: Tensor, tiers: Tiers, *, efron: bool) -> Tensor:
    """[lists] Σ_m log n_m! + Σ_{i∈S_m} w_i − Σ_{l<n_m} log(below_m + own_m (1 − l/n_m)).

    `own` and `below` are the sums of e^w over a tier and over all under it. Without `efron`,
    every l is 0.
    """
    lists = FlatLists(values, tiers)
    lists.check_finite()
    rows = lists.rows.to(lists.bottom)
    _, order, tier_offsets, _ = lists.layout
    sums = TierSums(rows, lists.bottom, lists.layout)
    of, size = sums.tier.of, tier_offsets.diff().to(rows)
    largest = torch.maximum(sums.own.largest, sums.below.largest)
    own = sums.own.total * (sums.own.largest - largest).exp()
    below = sums.below.total * (sums.below.largest - largest).exp()
    relative = sums.tier.sum(rows[order] - largest[of])
    if efron:
        drawn = torch.arange(len(order), device=order.device) - tier_offsets[of]
        left = below[of] + own[of] * (1 - drawn / size[of])
        logs = sums.tier.sum(left.log())
    else:
        logs = size * (below + own).log()
    term = torch.lgamma(size + 1) + relative - logs
    # a tier that nothing stands below is a last one, whichever way it is written
    term = torch.where(sums.below.largest == -torch.inf, 0.0, term)
    return lists.bottom.new_zeros(len(tiers)).index_add(0, sums.tier_list, term)
