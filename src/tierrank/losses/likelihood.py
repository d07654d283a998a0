"""Losses that are minus a log-likelihood of the tiers under the Plackett-Luce model."""

from __future__ import annotations

from typing import Any, Literal

import torch

from tierrank.losses.positions import Alpha, tier_weights
from tierrank.losses.reduction import Reduction, finish
from tierrank.losses.registry import objective
from tierrank.plackett_luce import log_prob
from tierrank.plackett_luce.inputs import Scores
from tierrank.tiers import Tiers

Ties = Literal["exact", "input", "random"]


@objective("pl-partition", "likelihood", "Ma et al., 2021")
def pl_partition(
    scores: Any,
    tiers: Tiers,
    *,
    alpha: Alpha | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the exact log-probability of the tiers (PL-Partition; Ma et al., 2021).

    All orders inside a tier are summed over; see `tierrank.log_prob`.

    Parameters
    ----------
    scores, tiers
        as in `tierrank.log_prob`
    alpha
        how much the places count: the loss is −Σ_m α_m log P(S_m > S_{m+1} ∪ …), with α_m the
        mean of α(i) over the places i that tier m takes. "gain" is p-ListMLE's choice, here for
        any ties; see `p_list_mle` for the others. Without it, all count alike.
    weights
        [lists] how much each list counts
    reduction
        "mean" over the lists (by weight), "sum", or "none" for one loss a list
    """
    given = Scores(scores)
    by_tier = None if alpha is None else tier_weights(alpha, tiers)
    exact = log_prob(given.values, tiers, tier_weights=by_tier)
    return finish(given, -exact, weights, reduction)


@objective("pl-topk", "likelihood", "Xia et al., 2009")
def pl_top_k(
    scores: Any,
    tiers: Tiers,
    *,
    k: int = 10,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the log-probability of the first k places alone (PL-TopK; Xia et al., 2009).

    What comes after them is one last tier (`Tiers.top`). Ties among the first k are summed over,
    so that strict rankings are not needed; where they are known, this is the oracle that Ma et
    al. (2021) compare with. Parameters as in `pl_partition`.
    """
    return pl_partition(scores, tiers.top(k), weights=weights, reduction=reduction)


@objective("listmle", "likelihood", "Xia et al., 2008")
def list_mle(
    scores: Any,
    tiers: Tiers,
    *,
    ties: Ties = "exact",
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
    strict = _without_ties(tiers, ties, generator)
    return pl_partition(scores, strict, weights=weights, reduction=reduction)


@objective("p-listmle", "likelihood", "Lan et al., 2014")
def p_list_mle(
    scores: Any,
    tiers: Tiers,
    *,
    alpha: Alpha = "gain",
    ties: Ties = "exact",
    generator: torch.Generator | int | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Minus the log-probability of each choice, weighted by place (p-ListMLE; Lan et al., 2014).

    With the i-th best item at place i, −Σ_i α(i) (w_i − lse(w_i, …, w_n)). Ties as in `list_mle`;
    where they are summed over, a tier is weighted by the mean of α over the places it takes.

    Parameters
    ----------
    alpha
        decreasing weights of the places: "gain", the paper's 2^(n − i) − 1 divided by its sum
        over the list's n items, which overflows at no length; a function of (position, length),
        both tensors, positions from 1 (`losses.gain` is the paper's as printed); or the numbers
        α(1), α(2), …, after which it is 0
    ties, generator
        as in `list_mle`
    """
    strict = _without_ties(tiers, ties, generator)
    return pl_partition(scores, strict, alpha=alpha, weights=weights, reduction=reduction)


def _without_ties(tiers: Tiers, ties: Ties, generator: torch.Generator | int | None) -> Tiers:
    if ties == "exact":
        return tiers
    if ties == "input":
        return tiers.break_ties()
    if ties == "random":
        return tiers.break_ties(at_random=True, generator=generator)
    raise ValueError(f'ties are "exact", broken by "input" or at "random", not {ties!r}')
