"""RankNet: every pair of different tiers is a game, won by the better item."""

from __future__ import annotations

from typing import Any

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.pairwise.pair_sums import sum_over_wins
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.inputs import Scores
from tierrank.tiers import Tiers


@objective
def ranknet(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Logistic loss of every pair of different tiers (RankNet; Burges et al., 2005).

        loss = Σ_{i above j} log(1 + e^{−(w_i − w_j)})

    Each pair counts as a game of the Bradley-Terry model, as if the others had not been played.
    Pairs inside a tier are left out; `rao_kupper` and `davidson` are the same with ties. Takes
    time proportional to the pairs, and memory to the items. Parameters as in `pl_partition`.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import ranknet
    >>> float(ranknet([2.0, 0.0, 0.0], tr.Tiers.from_labels([1, 0, 0])))  # 2 log(1 + e^−2)
    0.253856
    """
    given = Scores(scores)
    order = TierOrder(given.values, tiers)
    losses = sum_over_wins("rao_kupper_wins", order, order.rows.new_zeros(()))  # θ = 1
    return reduced(given, losses, weights, reduction)
