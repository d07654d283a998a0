"""RankSVM: every pair of different tiers should differ by 1 or more."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import repeat


@objective
def rank_svm(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Hinge loss of every pair of different tiers (RankSVM; Joachims, 2002).

        loss = Σ_{i above j} max(0, 1 − (w_i − w_j))

    Pairs inside a tier are left out, and pairs that differ by exactly 1 have no slope. Takes
    O(n log n log K) time for n items in K tiers, because the sum and its slopes follow from
    counts: see `violations`. Parameters as in `pl_partition`.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import rank_svm
    >>> float(rank_svm([2.0, 0.0, 1.5], tr.Tiers.from_labels([1, 0, 0])))  # 0 + 0.5
    0.5
    """
    given = Scores(scores)
    order = TierOrder(given.values, tiers)
    as_upper, as_lower, rising = violations(order)
    # Σ over violating pairs of 1 − w_i + w_j, where a difference is the sum of the gaps between
    # neighbours that it spans. How many pairs span a gap is a whole number, so what is far away
    # costs the others no digits, as it would if one number were taken off all scores.
    w, slope = order.rows.detach(), as_lower - as_upper
    spanned = -slope[rising].cumsum(0)
    at = spanned.nonzero()[:, 0]
    below, terms = rising[at], as_upper.to(w)
    terms[below] += spanned[at] * (w[rising[at + 1]] - w[below])
    # the last term is 0, and has the gradient
    lists = Groups(order.list_of, len(order.list_offsets) - 1)
    losses = lists.sum(terms + slope * (order.rows - w))
    return reduced(given, losses, weights, reduction)


def violations(order: TierOrder) -> tuple[Tensor, Tensor, Tensor]:
    """[entries] in how many pairs with w_j > w_i − 1 an item is i, the upper, and j, the lower.

    And the [entries] by list and rising score, in which the sums are taken.

    Two tiers, numbered from the best, part at the highest bit in which their numbers differ. So,
    one bit after the other: items that agree in all higher bits form a group, where those with a
    0 are above those with a 1, and a search in either's sorted scores counts the pairs.
    """
    height, reach, rising = _levels(order.rows.detach())
    lists = torch.arange(len(order.list_offsets) - 1, device=order.rows.device)
    first_tier = repeat(torch.searchsorted(order.tier_list, lists), order.list_offsets.diff())
    number = order.tier_of - first_tier
    as_upper, as_lower = torch.zeros_like(number), torch.zeros_like(number)
    for bit in range(int(number.max()).bit_length() if len(number) else 0):
        group = (first_tier + (number >> (bit + 1))) * (len(number) + 1)  # apart by all levels
        is_lower = (number >> bit) & 1 == 1
        upper, lower = (~is_lower).nonzero()[:, 0], is_lower.nonzero()[:, 0]
        reaches, heights = group[upper] + reach[upper], group[lower] + height[lower]
        in_order = heights.sort().values
        group_end = torch.searchsorted(in_order, group[upper] + len(number), right=True)
        as_upper[upper] += group_end - torch.searchsorted(in_order, reaches)
        in_order = reaches.sort().values
        group_start = torch.searchsorted(in_order, group[lower])
        as_lower[lower] += torch.searchsorted(in_order, heights, right=True) - group_start
    if len(order.list_offsets) > 2:
        rising = rising[order.list_of[rising].argsort(stable=True)]
    return as_upper, as_lower, rising


def _levels(w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whole numbers height and reach, 0 … n, with height_j ≥ reach_i where w_j > w_i − 1.

    The height of w_j is the number of scores below it, the reach of w_i that of scores up to
    w_i − 1. And the order of the scores.
    """
    in_order, index = w.sort()
    height, reach = torch.empty_like(index), torch.empty_like(index)
    height[index] = below = torch.searchsorted(in_order, in_order)
    margin = in_order - 1
    up_to_margin = torch.searchsorted(in_order, margin, right=True)
    # from 2^53 on the 1 is rounded away: then equal scores are within each other's reach
    reach[index] = torch.where(margin < in_order, up_to_margin, below)
    return height, reach, index
