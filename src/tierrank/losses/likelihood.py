"""Losses that are minus a log-likelihood of the tiers under the Plackett-Luce model."""

from __future__ import annotations

from typing import Any, Literal

import torch

from tierrank.losses.reduction import Reduction, reduce
from tierrank.plackett_luce import log_prob
from tierrank.plackett_luce.flat import FlatLists
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.kernels.ragged import TierSums
from tierrank.tiers import Tiers


def pl_partition(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Minus the exact log-probability of the tiers (PL-Partition; Ma et al., 2021).

    All orders inside a tier are summed over; see `tierrank.log_prob`.

    Parameters
    ----------
    scores, tiers
        as in `tierrank.log_prob`
    weights
        [lists] how much each list counts
    reduction
        "mean" over the lists (by weight), "sum", or "none" for one loss a list
    """
    given = Scores(scores)
    return given.same_kind(reduce(-log_prob(given.values, tiers), weights, reduction))


def pl_lower_bound(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Minus a lower bound of the log-probability (PL-LB; Hino et al., 2010).

    With R_m the tier S_m and all below it, log P(S_m > R_{m+1}) ≥ log n_m! + Σ_{i∈S_m}
    (w_i − lse(R_m)): every item of the tier is drawn as if the others were still there. In
    survival analysis this is Breslow's approximation. Parameters as in `pl_partition`.
    """
    given = Scores(scores)
    lists = FlatLists(given.values, tiers)
    lists.check_finite()
    rows = lists.rows.to(lists.bottom)
    sums = TierSums(rows, lists.bottom, lists.layout)
    own = rows[lists.layout[1]]
    among = sums.own.merge(sums.below)
    size = sums.tier.sum(torch.ones_like(own))
    relative = sums.tier.sum(own - among.largest[sums.tier.of])
    term = torch.lgamma(size + 1) + relative - size * among.total.log()
    term = torch.where(sums.below.largest == -torch.inf, 0.0, term)
    bound = lists.bottom.new_zeros(len(tiers)).index_add(0, sums.tier_list, term)
    return given.same_kind(reduce(-bound.to(given.values), weights, reduction))


def list_mle(
    scores: Any,
    tiers: Tiers,
    *,
    ties: Literal["exact", "input", "random"] = "exact",
    generator: torch.Generator | int | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the log-probability of one full ranking (ListMLE; Xia et al., 2008).

    The papers' ListMLE needs a strict order, and where the data have ties it invents one: the
    order of the input (``ties="input"``), or one drawn at random (``"random"``, by
    `generator`). By default nothing is invented: the ties are summed over, which is
    `pl_partition`. A rest that is not written down always stays tied.
    """
    if ties == "exact":
        strict = tiers
    elif ties == "input":
        strict = tiers.break_ties()
    elif ties == "random":
        strict = tiers.break_ties(at_random=True, generator=generator)
    else:
        raise ValueError(f'ties are "exact", broken by "input" or at "random", not {ties!r}')
    return pl_partition(scores, strict, weights=weights, reduction=reduction)
