"""Models of games that may end in a tie: Rao-Kupper's and Davidson's. A tier is a tie of all in it.

Both extend the Bradley-Terry model by one parameter, and both become it, for the wins, where that
parameter goes to −inf. They are functions of the parameter too: give a tensor that requires a
gradient to learn it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.pairwise.pair_sums import sum_over_ties, sum_over_wins
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.inputs import Scores
from tierrank.tiers import Tiers


@objective
def rao_kupper(
    scores: Any,
    tiers: Tiers,
    *,
    alpha: Any = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the log-likelihood of all pairs, ties included (Rao and Kupper, 1967).

    With d = w_i − w_j and θ = 1 + e^α ≥ 1, as Tran, Phung and Venkatesh (2010, appendix C) put it,

        P(i above j) = 1 / (1 + θ e^−d),        P(tie) = (θ² − 1) P(i above j) P(j above i)

    for every pair of a list, the last tier's among them. Takes time proportional to the pairs,
    and memory to the items. Other parameters as in `pl_partition`.

    Parameters
    ----------
    alpha
        a number or a tensor of one, which may require a gradient. −inf is θ = 1, where ties have
        probability 0.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import rao_kupper
    >>> win, tie = tr.Tiers.from_labels([1, 0]), tr.Tiers.from_labels([0, 0])
    >>> from math import exp
    >>> [round(exp(-rao_kupper([0.0, 0.0], outcome)), 4) for outcome in (win, tie)]  # θ = 2
    [0.3333, 0.3333]
    """
    given = Scores(scores)
    _refuse_rest(tiers, "Rao-Kupper")
    order = TierOrder(given.values, tiers)
    parameter = _parameter(alpha, "alpha", order)
    log_theta = -logsigmoid(-parameter)
    losses = sum_over_wins("rao_kupper_wins", order, log_theta)
    tied = _tied_pairs(order, parameter, "alpha")
    if tied.any():
        # −log P(tie) = softplus(d − log θ) + softplus(−d − log θ) − log(1 − θ^−2), whose last
        # term is log σ(α) + log(1 + 1/θ), 1/θ = σ(−α)
        losses = losses + sum_over_ties("rao_kupper_ties", order, log_theta)
        losses = losses - tied * (logsigmoid(parameter) + torch.sigmoid(-parameter).log1p())
    return reduced(given, losses, weights, reduction)


@objective
def davidson(
    scores: Any,
    tiers: Tiers,
    *,
    beta: Any = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the log-likelihood of all pairs, ties included (Davidson, 1970).

    With d = w_i − w_j and v = e^β ≥ 0, as Tran, Phung and Venkatesh (2010, appendix C) put it,

        P(i above j) : P(j above i) : P(tie)  =  e^{d/2} : e^{−d/2} : v

    for every pair of a list, the last tier's among them. Takes time proportional to the pairs,
    and memory to the items. Other parameters as in `pl_partition`.

    Parameters
    ----------
    beta
        a number or a tensor of one, which may require a gradient. −inf is v = 0, where ties have
        probability 0.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import davidson
    >>> win, tie = tr.Tiers.from_labels([1, 0]), tr.Tiers.from_labels([0, 0])
    >>> from math import exp, log
    >>> [round(exp(-davidson([0.0, 0.0], outcome, beta=log(2))), 4) for outcome in (win, tie)]
    [0.25, 0.5]
    """
    given = Scores(scores)
    _refuse_rest(tiers, "Davidson")
    order = TierOrder(given.values, tiers)
    parameter = _parameter(beta, "beta", order)
    losses = sum_over_wins("davidson_wins", order, parameter)
    if _tied_pairs(order, parameter, "beta").any():
        losses = losses + sum_over_ties("davidson_ties", order, parameter)
    return reduced(given, losses, weights, reduction)


def _refuse_rest(tiers: Tiers, model: str) -> None:
    if tiers.rest:
        raise ValueError(
            f"{model} counts ties, and every pair of the items that a list does not name would be "
            'one that nobody observed: leave the rest out (rest="absent"), or use ranknet, which '
            "ignores ties"
        )


def _parameter(value: Any, name: str, order: TierOrder) -> Tensor:
    """The parameter as a tensor [] of the kind and on the device of the rows."""
    parameter = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    if parameter.ndim:
        raise ValueError(f"{name} is one number, not {list(parameter.shape)} of them")
    if not parameter < torch.inf:
        raise ValueError(f"{name} is a number or −inf, not {float(parameter)}")
    return parameter.to(order.rows)


def _tied_pairs(order: TierOrder, parameter: Tensor, name: str) -> Tensor:
    """[lists] number of pairs inside tiers."""
    sizes = order.tier_offsets.diff()
    pairs = torch.zeros_like(order.list_offsets[1:])
    pairs.index_add_(0, order.tier_list, sizes * (sizes - 1) // 2)
    if parameter == -torch.inf and pairs.any():
        number = int(pairs.nonzero()[0, 0])
        raise ValueError(
            f"with {name} = −inf ties have probability 0, and list {number} has ties: use a "
            "finite number"
        )
    return pairs
