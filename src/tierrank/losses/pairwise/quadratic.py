"""RankRegress: every pair of different tiers should differ by exactly 1."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers


@objective
def rank_regress(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Squared loss of every pair of different tiers (Pair Regress; Tran et al., 2010).

        loss = Σ_{i above j} (1 − (w_i − w_j))²

    Pairs inside a tier are left out. Takes O(n) time, because the sum has a closed form: see
    `squared_losses`. Parameters as in `pl_partition`.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import rank_regress
    >>> float(rank_regress([2.0, 0.0, 0.5], tr.Tiers.from_labels([1, 0, 0])))  # 1² + 0.5²
    1.25
    """
    given = Scores(scores)
    return reduced(given, squared_losses(TierOrder(given.values, tiers)), weights, reduction)


def squared_losses(order: TierOrder) -> Tensor:
    """[lists] Σ_{i above j} (1 − (w_i − w_j))², as a sum over tiers of what is never negative.

    With n items in the list, w centred, and for tier t: n_t items, mean w̄_t, a_t items above it
    and b_t below,

        Σ_t  n n_t (w̄_t − (b_t − a_t)/n)²  +  (n − n_t) Σ_{i∈t} (w_i − w̄_t)²  +  n_t a_t b_t / n:

    how far the tiers are from where they would be best, how far items are from their tier, and
    what three tiers cost at best, since no three can be 1 apart from each other.
    """
    tier = Groups(order.tier_of, len(order.tier_list))
    lists = Groups(order.list_of, len(order.list_offsets) - 1)
    size, tier_size = (o.diff().to(order.rows) for o in (order.list_offsets, order.tier_offsets))
    w = order.rows - (lists.sum(order.rows) / size)[lists.of]
    mean = tier.sum(w) / tier_size
    spread = tier.sum((w - mean[tier.of]) ** 2)
    above = (order.tier_offsets[:-1] - order.list_offsets[order.tier_list]).to(w)
    n = size[order.tier_list]
    below = n - above - tier_size
    away = mean - (below - above) / n
    away = away * (tier_size < n)  # a single tier is where it should be, up to rounding
    terms = n * tier_size * away**2 + (n - tier_size) * spread + tier_size * above * below / n
    return Groups(order.tier_list, lists.number).sum(terms)
