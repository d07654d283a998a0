"""Losses that are minus a log-likelihood of the tiers under the Plackett-Luce model.

PL-LB and PL-Efron are cheaper stand-ins for the exact one, known from survival analysis: a list
is a stratum, a tier a set of tied deaths, and the last tier is censored. Where all tiers above the
last have one item, both are exact. See docs/objectives.md for how far off they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray, FloatArray
from tierrank.losses.objective import (
    Pass,
    Reduction,
    fill_stages,
    in_one_pass,
    objective,
    reduced,
    stage_hessian,
)
from tierrank.plackett_luce import log_prob
from tierrank.plackett_luce.lists import FlatLists, Scores, wide_dtype
from tierrank.plackett_luce.tier_sums import Groups, TierSums
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers, ranges, repeat

Ties = Literal["exact", "input", "random"]
Alpha = Literal["gain"] | Callable[[Tensor, Tensor], Tensor] | Sequence[float] | Any


@objective
def pl_partition(
    scores: Any,
    tiers: Tiers,
    *,
    alpha: Alpha | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Negative exact log-probability of the tiers (PL-Partition; Ma et al., 2021).

    All orders inside a tier are summed over; see `tierrank.log_prob`.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    alpha : "gain", callable or sequence of float, optional
        How much the places count: the loss is −Σ_m α_m log P(S_m > S_{m+1} ∪ …), with α_m the
        mean of α(i) over the places i that tier m takes. "gain" is p-ListMLE's choice, here for
        any ties; see `p_list_mle` for the others. Without it, all count alike.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    tierrank.log_prob : The log-probability itself.
    pl_efron : A cheap approximation that is close.
    pl_lower_bound : A cheap lower bound.
    list_mle : Of a strict order.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.pl_partition(scores, tiers)  # −log(4/7 · 2/3 + 2/7 · 4/5)
    array(0.49507727)
    """
    given = Scores(scores)
    by_tier = None if alpha is None else tier_weights(alpha, tiers)
    exact = log_prob(given.values, tiers, tier_weights=by_tier)
    return reduced(given, -exact, weights, reduction)


@objective
def pl_top_k(
    scores: Any,
    tiers: Tiers,
    *,
    k: int = 10,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Negative log-probability of the first k places alone (PL-TopK; Xia et al., 2009).

    What comes after them is one last tier (`Tiers.top`). Ties among the first k are summed over,
    so that strict rankings are not needed; where they are known, this is the oracle that Ma et
    al. (2021) compare with.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    k : int
        How many places.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    pl_partition : The exact likelihood.
    list_mle : Of a strict order.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([2, 1, 0])
    >>> float(np.exp(-tr.losses.pl_top_k(scores, tiers, k=1)))  # the first is first: 4/7
    0.57142857
    """
    return pl_partition(scores, tiers.top(k), weights=weights, reduction=reduction)


@objective
def list_mle(
    scores: Any,
    tiers: Tiers,
    *,
    ties: Ties = "exact",
    generator: torch.Generator | int | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Negative log-probability of one full ranking (ListMLE; Xia et al., 2008).

    The papers' ListMLE needs a strict order, and where the data have ties it invents one: the
    order of the input (``ties="input"``), or one drawn at random (``"random"``, by
    `generator`). By default nothing is invented: the ties are summed over, which is
    `pl_partition`. A rest that is not written down always stays tied.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    ties : {"exact", "input", "random"}
        What becomes of ties: "exact" sums over their orders, "input" takes the order of the input,
        "random" draws one.
    generator : Generator or int, optional
        A torch generator or an integer seed, for what is drawn; without one, torch's global
        generator.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    pl_partition : The exact likelihood.
    p_list_mle : Places weighted.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> float(np.exp(-tr.losses.list_mle(scores, tiers, ties="input")))  # 4/7 · 2/3
    0.38095238
    """
    strict = without_ties(tiers, ties, generator)
    return pl_partition(scores, strict, weights=weights, reduction=reduction)


@objective
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
    """Negative log-probability of each choice, weighted by place (p-ListMLE; Lan et al., 2014).

    With the i-th best item at place i, −Σ_i α(i) (w_i − lse(w_i, …, w_n)). Ties as in `list_mle`;
    where they are summed over, a tier is weighted by the mean of α over the places it takes.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    alpha : "gain", callable or sequence of float
        Decreasing weights of the places: "gain", the paper's 2^(n − i) − 1 divided by its sum over
        the list's n items, which overflows at no length; a function of (position, length), both
        tensors, positions from 1 (`losses.gain` is the paper's as printed); or the numbers α(1),
        α(2), …, after which it is 0.
    ties : {"exact", "input", "random"}
        What becomes of ties: "exact" sums over their orders, "input" takes the order of the input,
        "random" draws one.
    generator : Generator or int, optional
        A torch generator or an integer seed, for what is drawn; without one, torch's global
        generator.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    list_mle : Of a strict order.
    gain : The paper's weights of places.
    pl_partition : The exact likelihood.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([2, 1, 0])
    >>> float(tr.losses.p_list_mle(scores, tiers, alpha=[1.0]))  # the first place alone: log 7/4
    0.55961579
    """
    strict = without_ties(tiers, ties, generator)
    return pl_partition(scores, strict, alpha=alpha, weights=weights, reduction=reduction)


def without_ties(tiers: Tiers, ties: Ties, generator: torch.Generator | int | None) -> Tiers:
    """The tiers as they are, or with their ties broken."""
    if ties == "exact":
        return tiers
    if ties == "input":
        return tiers.break_ties()
    if ties == "random":
        return tiers.break_ties(at_random=True, generator=generator)
    raise ValueError(f'ties are "exact", broken by "input" or at "random", not {ties!r}')


# -- stand-ins ----------------------------------------------------------------------------------


@objective
def pl_lower_bound(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Negative lower bound of the log-probability (PL-LB; Hino et al., 2010).

    With R_m the tier S_m and all below it, log P(S_m > R_{m+1}) ≥ log n_m! + Σ_{i∈S_m}
    (w_i − lse(R_m)): every item of the tier is drawn as if the others were still there. In
    survival analysis this is Breslow's approximation.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    pl_partition : The exact likelihood.
    pl_efron : A cheap approximation that is close.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.pl_lower_bound(scores, tiers)  # pl_partition says 0.4951
    array(1.11923158)
    """
    given = Scores(scores)
    return reduced(given, _approximate(given.values, tiers, efron=False), weights, reduction)


def pl_lower_bound_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: Σ n_m p (1 − p) over the tiers m that an item is there for."""
    return stage_hessian("breslow", rows, tiers)


@objective
def pl_efron(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Negative log-probability, approximated (PL-Efron; Efron, 1977).

    With R_m the tier S_m and all below it, log P(S_m > R_{m+1}) is taken for log n_m! +
    Σ_{i∈S_m} w_i − Σ_{l<n_m} log(Σ_{R_m} e^w − (l/n_m) Σ_{S_m} e^w): when the l-th item is
    drawn, the tier has lost l average items. As cheap as `pl_lower_bound`, and much closer.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    pl_partition : The exact likelihood.
    pl_lower_bound : A cheap lower bound.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.pl_efron(scores, tiers)  # log 7/4; pl_partition says 0.4951
    array(0.55961579)
    """
    given = Scores(scores)
    return reduced(given, _approximate(given.values, tiers, efron=True), weights, reduction)


def pl_efron_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: Σ p (1 − p) over the draws, p the chance to be drawn."""
    return stage_hessian("efron", rows, tiers)


def _approximate(values: Tensor, tiers: Tiers, *, efron: bool) -> Tensor:
    """[lists] losses, by the native core or by minus the formula."""

    def kernel(lists: FlatLists, arrays: Pass) -> bool:
        finite = fill_stages("efron" if efron else "breslow", lists, arrays)
        arrays.value[:] += tiers.kept("log orders", lambda: _log_orders(tiers))
        return finite

    return in_one_pass(values, tiers, kernel, partial(_formula, tiers=tiers, efron=efron))


def _log_orders(tiers: Tiers) -> AnyArray:
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


# -- how much a place counts: the weights α of position-aware likelihoods -------------------------
#
# Lan et al. (2014) multiply the i-th choice of a ranking by α(i), decreasing in i. A tier of ties
# takes several places at once; its one choice is weighted by their mean.


def gain(position: Tensor, length: Tensor) -> Tensor:
    """Gain of NDCG for grades n − i, 2^(n − i) − 1, as printed by Lan et al. (2014).

    Overflows in long lists: ``"gain"`` is the same divided by its sum over the list.

    Parameters
    ----------
    position : Tensor
        Places i, from 1.
    length : Tensor
        Lengths n of the lists they are in.

    Returns
    -------
    Tensor
        Weights α(i) of the places.

    See Also
    --------
    p_list_mle : Places weighted.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> tr.losses.gain(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(3.0))
    tensor([3., 1., 0.])
    """
    return torch.exp2(length - position) - 1


def mean_gain_share(above: Tensor, size: Tensor, length: Tensor) -> Tensor:
    """The mean of `gain` over places above + 1 … above + size, as a share of the list's sum.

    Over places p … q the sum of 2^(n−i) − 1 is 2^(n−p+1) − 2^(n−q) − (q − p + 1), and over the
    list 2^n − 1 − n. Both are divided by 2^n here, so that nothing is large, at any n.
    """
    places = torch.exp2(-above) - torch.exp2(-above - size) - size * torch.exp2(-length)
    total = 1 - (length + 1) * torch.exp2(-length)
    share = places / (size * total).clamp(min=torch.finfo(total.dtype).tiny)
    return torch.where(length > 1, share, 0.0)


def tier_weights(alpha: Alpha, tiers: Tiers) -> Tensor:
    """[tiers] the mean of α over the places that every written tier takes.

    `alpha` is "gain", a function of (position, length), both [places] and counted from 1, or
    the numbers α(1), α(2), …, after which it is 0.
    """
    kind = wide_dtype(tiers.device)
    lengths, sizes = tiers.lengths, tiers.tier_sizes
    full = tiers.full_lengths
    if isinstance(alpha, str):
        if alpha != "gain":
            raise ValueError(f'weights of places are "gain", a function or numbers, not {alpha!r}')
        list_of = range_numbers(tiers.list_offsets.diff())
        above = tiers.tier_offsets[:-1] - tiers.tier_offsets[tiers.list_offsets[:-1]][list_of]
        return mean_gain_share(above.to(kind), sizes.to(kind), full[list_of].to(kind))
    position = ranges(torch.ones_like(lengths), lengths)
    if callable(alpha):
        at = alpha(position.to(kind), repeat(full, lengths).to(kind))
    else:
        given = Scores(alpha).values.to(position.device, kind)
        if given.dim() != 1:
            raise ValueError(f"weights of places are a list of numbers, not {list(given.shape)}")
        at = torch.cat([given, given.new_zeros(1)])[(position - 1).clamp(max=len(given))]
    wrong = ~((at >= 0) & at.isfinite())
    if wrong.any():
        place = int(wrong.nonzero()[0, 0])
        raise ValueError(
            f"weights of places must be finite and not negative, but that of place "
            f"{int(position[place])} is {float(at[place])}"
            + ('; "gain" does not overflow' if at[place] == torch.inf else "")
        )
    return Groups.between(tiers.tier_offsets).sum(at) / sizes
