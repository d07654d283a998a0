"""Objectives that are a sum over the pairs of a list.

RankNet, RankSVM and RankRegress look at the pairs of different tiers, Rao-Kupper and Davidson at
the pairs inside a tier too. Memory grows with the items in all of them. So does the time of
RankRegress, and nearly that of RankSVM; the others take every pair, a few nanoseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank import _native
from tierrank._types import FloatArray
from tierrank.losses.lists import TierOrder
from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.plackett_luce.kernels import compiled_for
from tierrank.plackett_luce.lists import Scores, wide_dtype
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.plackett_luce.transforms import once
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers, repeat

# -- RankNet: every pair is a game, won by the better item ----------------------------------------


@objective
def ranknet(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Logistic loss of every pair of different tiers (RankNet; Burges et al., 2005).

        loss = Σ_{i above j} log(1 + e^{−(w_i − w_j)})

    Each pair counts as a game of the Bradley-Terry model, as if the others had not been played.
    Pairs inside a tier are left out; `rao_kupper` and `davidson` are the same with ties. Takes
    time proportional to the pairs, and memory to the items.

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
    rao_kupper : Pairs with ties, by a threshold.
    davidson : Pairs with ties, by a geometric mean.
    rank_svm : Pairs with a margin.
    lambda_loss : Pairs weighted by a metric.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import ranknet
    >>> float(ranknet([2.0, 0.0, 0.0], tr.Tiers.from_labels([1, 0, 0])))  # 2 log(1 + e^−2)
    0.253856
    """
    given = Scores(scores)
    order = TierOrder(given.values, tiers)
    losses = sum_over_pairs("rao_kupper_wins", order, order.rows.new_zeros(()))  # θ = 1
    return reduced(given, losses, weights, reduction)


def ranknet_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: Σ σ (1 − σ) over an item's pairs."""
    _, tier_end, list_end = _ends(tiers.tier_offsets, tiers.tier_offsets[tiers.list_offsets])
    return _pair_hessian("rao_kupper_win_hessians", rows, tier_end, list_end, 0.0)


# -- Rao-Kupper and Davidson: games that may end in a tie -----------------------------------------
#
# A tier is a tie of all in it. Both models extend Bradley's and Terry's by one parameter, and both
# become it, for the wins, where that parameter goes to −inf. They are functions of the parameter
# too: give a tensor that requires a gradient to learn it.


@objective
def rao_kupper(
    scores: Any,
    tiers: Tiers,
    *,
    alpha: Any = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Negative log-likelihood of all pairs, ties included (Rao and Kupper, 1967).

    With d = w_i − w_j and θ = 1 + e^α ≥ 1, as Tran, Phung and Venkatesh (2010, appendix C) put it,

        P(i above j) = 1 / (1 + θ e^−d),        P(tie) = (θ² − 1) P(i above j) P(j above i)

    for every pair of a list, the last tier's among them. Takes time proportional to the pairs,
    and memory to the items.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    alpha : float or Tensor
        A number or a tensor of one, which may require a gradient. −inf is θ = 1, where ties have
        probability 0.
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
    davidson : Pairs with ties, by a geometric mean.
    ranknet : Logistic pairs.

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
    order, parameter, tied = _games(given, tiers, "Rao-Kupper", "alpha", alpha)
    log_theta = -logsigmoid(-parameter)
    losses = sum_over_pairs("rao_kupper_wins", order, log_theta)
    if tied.any():
        # −log P(tie) = softplus(d − log θ) + softplus(−d − log θ) − log(1 − θ^−2), whose last
        # term is log σ(α) + log(1 + 1/θ), 1/θ = σ(−α)
        losses = losses + sum_over_pairs("rao_kupper_ties", order, log_theta)
        losses = losses - tied * (logsigmoid(parameter) + torch.sigmoid(-parameter).log1p())
    return reduced(given, losses, weights, reduction)


def rao_kupper_hessian(rows: FloatArray, tiers: Tiers, alpha: float = 0.0) -> FloatArray:
    """Diagonal of the Hessian: σ (1 − σ) at x + log θ for wins, at x ± log θ for ties."""
    borders = tiers.tier_offsets, tiers.tier_offsets[tiers.list_offsets]
    next_row, tier_end, list_end = _ends(*borders)
    log_theta = float(np.logaddexp(0.0, alpha))
    wins = _pair_hessian("rao_kupper_win_hessians", rows, tier_end, list_end, log_theta)
    return wins + _pair_hessian("rao_kupper_tie_hessians", rows, next_row, tier_end, log_theta)


@objective
def davidson(
    scores: Any,
    tiers: Tiers,
    *,
    beta: Any = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Negative log-likelihood of all pairs, ties included (Davidson, 1970).

    With d = w_i − w_j and v = e^β ≥ 0, as Tran, Phung and Venkatesh (2010, appendix C) put it,

        P(i above j) : P(j above i) : P(tie)  =  e^{d/2} : e^{−d/2} : v

    for every pair of a list, the last tier's among them. Takes time proportional to the pairs,
    and memory to the items.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    beta : float or Tensor
        A number or a tensor of one, which may require a gradient. −inf is v = 0, where ties have
        probability 0.
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
    rao_kupper : Pairs with ties, by a threshold.
    ranknet : Logistic pairs.

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
    order, parameter, tied = _games(given, tiers, "Davidson", "beta", beta)
    losses = sum_over_pairs("davidson_wins", order, parameter)
    if tied.any():
        losses = losses + sum_over_pairs("davidson_ties", order, parameter)
    return reduced(given, losses, weights, reduction)


def davidson_hessian(rows: FloatArray, tiers: Tiers, beta: float = 0.0) -> FloatArray:
    """Diagonal of the Hessian: the variance of ½, −½ and 0, for a win as for a tie."""
    next_row, _, list_end = _ends(tiers.tier_offsets, tiers.tier_offsets[tiers.list_offsets])
    return _pair_hessian("davidson_hessians", rows, next_row, list_end, beta)


def _games(
    given: Scores, tiers: Tiers, model: str, name: str, value: Any
) -> tuple[TierOrder, Tensor, Tensor]:
    """The lists, the parameter as a tensor [] like their rows, and [lists] pairs inside tiers."""
    if tiers.rest:
        raise ValueError(
            f"{model} counts ties, and every pair of the items that a list does not name would be "
            'one that nobody observed: leave the rest out (rest="absent"), or use ranknet, which '
            "ignores ties"
        )
    order = TierOrder(given.values, tiers)
    parameter = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    if parameter.ndim:
        raise ValueError(f"{name} is one number, not {list(parameter.shape)} of them")
    if not parameter < torch.inf:
        raise ValueError(f"{name} is a number or −inf, not {float(parameter)}")
    sizes = order.tier_offsets.diff()
    pairs = torch.zeros_like(order.list_offsets[1:])
    pairs.index_add_(0, order.tier_list, sizes * (sizes - 1) // 2)
    if parameter == -torch.inf and pairs.any():
        number = int(pairs.nonzero()[0, 0])
        raise ValueError(
            f"with {name} = −inf ties have probability 0, and list {number} has ties: use a "
            "finite number"
        )
    return order, parameter.to(order.rows), pairs


# -- sums over the pairs of every list, differentiable once ---------------------------------------
#
# A kind of pair is a function of w_j − w_i and one parameter; the kinds are named and computed in
# `native/pairs.hpp`, for the CPU, and in plain torch, for other devices. Both look at every pair
# and keep none, so time grows with the pairs and memory with the items.


def sum_over_pairs(kind: str, order: TierOrder, parameter: Tensor) -> Tensor:
    """[lists] sums over all pairs of an item and one of a lower tier, or, of ties, of its own."""
    next_row, tier_end, list_end = _ends(order.tier_offsets, order.list_offsets)
    start, stop = (next_row, tier_end) if kind.endswith("_ties") else (tier_end, list_end)
    lengths = order.list_offsets.diff()
    inputs = order.rows, parameter, kind, order.values.dtype, start, stop, lengths
    return _PairSums.apply(*inputs)  # type: ignore[no-any-return, no-untyped-call]


def _ends(tier_offsets: Tensor, list_offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """[rows] the next row, the end of the row's tier and that of its list; rows sorted by these."""
    tier_end, list_end = (repeat(each[1:], each.diff()) for each in (tier_offsets, list_offsets))
    next_row = torch.arange(1, len(tier_end) + 1, device=tier_end.device)
    return next_row, tier_end, list_end


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        parameter: Tensor,
        kind: str,
        dtype: torch.dtype,
        start: Tensor,
        stop: Tensor,
        lengths: Tensor,
    ) -> Tensor:
        """The rows are scores in float64; they were, and are worked on, in `dtype`."""
        pair_sums = compiled_pair_sums if compiled_for(rows.device) else plain_pair_sums
        loss, gradient, by_parameter = pair_sums(
            kind, rows.detach().to(dtype), start, stop, float(parameter)
        )
        of = range_numbers(lengths)
        sums, slopes = (
            part.new_zeros(len(lengths)).index_add(0, of, part) for part in (loss, by_parameter)
        )
        ctx.save_for_backward(rows, parameter, gradient, slopes, lengths)
        return sums

    @staticmethod
    def backward(ctx: Any, by_list: Tensor) -> tuple[Tensor | None, ...]:
        rows, parameter, gradient, slopes, lengths = ctx.saved_tensors
        if torch.is_grad_enabled():
            message = "ranknet, rao_kupper and davidson can be differentiated once, not twice"
            gradient, slopes = (once(by, message, rows, parameter) for by in (gradient, slopes))
        to_parameter = (slopes * by_list).sum() if ctx.needs_input_grad[1] else None
        return gradient * by_list[range_numbers(lengths)], to_parameter, *(None,) * 5


def compiled_pair_sums(
    kind: str, scores: Tensor, start: Tensor, stop: Tensor, parameter: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum over pairs of item i with items j = start[i] … stop[i] − 1, all of them after i.

    Gives, by item i, Σ_j loss; by item, the gradient of the sum of all losses; and by item i,
    Σ_j ∂loss/∂parameter; all in float64.
    """
    loss, gradient, by_parameter = (torch.empty(len(scores), dtype=torch.float64) for _ in range(3))
    _native.pair_sums(
        kind, scores.contiguous().numpy(), start.numpy(), stop.numpy(), parameter,
        torch.get_num_threads(), loss.numpy(), gradient.numpy(), by_parameter.numpy(),
    )  # fmt: skip
    return loss, gradient, by_parameter


def _pair_hessian(
    kind: str, rows: FloatArray, start: Tensor, stop: Tensor, parameter: float
) -> FloatArray:
    """[rows] sums of second derivatives over the pairs of each row with others."""
    sums = compiled_pair_sums(kind, torch.from_numpy(rows), start, stop, parameter)
    return np.asarray(sums[1].numpy())


# In plain torch, block by block: any device, the same numbers. The formulas are not those of
# `native/pairs.hpp`, so that either checks the other; and their second derivatives are what
# Newton's method takes for the likelihood of games.

BLOCK = 1 << 20  # pairs at once


class PairTerms(NamedTuple):
    """−log P of what a pair did, and its derivatives by x = w_j − w_i and by the parameter c."""

    loss: Tensor
    x: Tensor
    c: Tensor
    xx: Tensor
    xc: Tensor
    cc: Tensor


def _softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), to the last digit. (`logsigmoid` wakes torch's threads for a few numbers.)"""
    return torch.logaddexp(x, x.new_zeros(()))


def _rao_kupper_win(x: Tensor, c: float) -> PairTerms:
    """softplus(x + c), with c = log θ."""
    slope = torch.sigmoid(x + c)
    second = slope * torch.sigmoid(-x - c)
    return PairTerms(_softplus(x + c), slope, slope, second, second, second)


def _rao_kupper_tie(x: Tensor, c: float) -> PairTerms:
    """softplus(x − c) + softplus(−x − c): −log P(tie) + log(1 − θ^−2)."""
    up, down = torch.sigmoid(x - c), torch.sigmoid(-x - c)
    rising, falling = up * torch.sigmoid(c - x), down * torch.sigmoid(c + x)
    loss, both = _softplus(x - c) + _softplus(-x - c), rising + falling
    return PairTerms(loss, up - down, -up - down, both, falling - rising, both)


def _davidson_win(x: Tensor, beta: float) -> PairTerms:
    """−log P(i above j) = log(1 + e^x + v e^(x/2))."""
    loss = _softplus(torch.logaddexp(x, x / 2 + beta))
    i_above, j_above, tie = (-loss).exp(), (x - loss).exp(), (x / 2 + beta - loss).exp()
    return PairTerms(loss, j_above + tie / 2, tie, *_davidson_seconds(i_above, j_above, tie))


def _davidson_tie(x: Tensor, beta: float) -> PairTerms:
    """−log P(tie) = log(1 + (e^(x/2) + e^(−x/2)) / v)."""
    loss = _softplus(torch.logaddexp(x / 2, -x / 2) - beta)
    j_above, i_above = (x / 2 - beta - loss).exp(), (-x / 2 - beta - loss).exp()
    seconds = _davidson_seconds(i_above, j_above, (-loss).exp())
    return PairTerms(loss, (j_above - i_above) / 2, -j_above - i_above, *seconds)


def _davidson_seconds(i: Tensor, j: Tensor, tie: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """An exponential family: (co)variances of ½, −½, 0 and of 0, 0, 1, whatever the outcome was."""
    return i * j + tie * (i + j) / 4, tie * (i - j) / 2, tie * (i + j)


PAIRS: dict[str, Callable[[Tensor, float], PairTerms]] = {
    "rao_kupper_wins": _rao_kupper_win,
    "rao_kupper_ties": _rao_kupper_tie,
    "davidson_wins": _davidson_win,
    "davidson_ties": _davidson_tie,
}


def plain_pair_sums(
    kind: str, scores: Tensor, start: Tensor, stop: Tensor, parameter: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `compiled_pair_sums`."""
    scores = scores.to(wide_dtype(scores.device))
    loss, gradient, by_parameter = (torch.zeros_like(scores) for _ in range(3))
    for i, j, exists in _blocks(start, stop):
        terms = PAIRS[kind](scores[j] - scores[i, None], parameter)[:3]
        one_loss, slope, one_by_parameter = (torch.where(exists, t, 0.0) for t in terms)
        loss[i] = one_loss.sum(1)
        by_parameter[i] = one_by_parameter.sum(1)
        gradient[i] -= slope.sum(1)
        gradient.index_add_(0, j.view(-1), slope.view(-1))
    return loss, gradient, by_parameter


def _blocks(start: Tensor, stop: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All pairs in rectangles: items i [rows], items j [rows, width], whether there is such a pair.

    Items with the most pairs come first, so that those of a rectangle have about as many.
    """
    pairs, by_pairs = (stop - start).sort(descending=True)
    first, rows = 0, int((pairs > 0).sum())
    while first < rows:
        width = int(pairs[first])
        i = by_pairs[first : min(first + max(1, BLOCK // width), rows)]
        first += len(i)
        j = start[i, None] + torch.arange(width, device=i.device)
        exists = j < stop[i, None]
        yield i, torch.where(exists, j, i[:, None]), exists


# -- RankSVM: every pair should differ by 1 or more -----------------------------------------------


@objective
def rank_svm(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Hinge loss of every pair of different tiers (RankSVM; Joachims, 2002).

        loss = Σ_{i above j} max(0, 1 − (w_i − w_j))

    Pairs inside a tier are left out, and pairs that differ by exactly 1 have no slope. Takes
    O(n log n log K) time for n items in K tiers, because the sum and its slopes follow from
    counts: see `violations`.

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
    ranknet : Logistic pairs.
    rank_regress : Squared pairs.

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


# -- RankRegress: every pair should differ by exactly 1 -------------------------------------------


@objective
def rank_regress(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Squared loss of every pair of different tiers (Pair Regress; Tran et al., 2010).

        loss = Σ_{i above j} (1 − (w_i − w_j))²

    Pairs inside a tier are left out. Takes O(n) time, because the sum has a closed form: see
    `squared_losses`.

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
    ranknet : Logistic pairs.
    rank_svm : Pairs with a margin.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.pairwise import rank_regress
    >>> float(rank_regress([2.0, 0.0, 0.5], tr.Tiers.from_labels([1, 0, 0])))  # 1² + 0.5²
    1.25
    """
    given = Scores(scores)
    return reduced(given, squared_losses(TierOrder(given.values, tiers)), weights, reduction)


def rank_regress_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: 2 for each item of another tier."""
    sizes = tiers.tier_sizes.numpy()
    others = np.repeat(tiers.lengths.numpy(), tiers.n_tiers.numpy()) - sizes
    return np.repeat(2.0 * others, sizes)


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
