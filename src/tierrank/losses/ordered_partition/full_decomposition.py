"""PMOP-FD: a subset is worth the mean of what its items are worth."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.one_pass import Pass, fill_stages, in_one_pass, shares_a_rest
from tierrank.losses.ordered_partition.stages import Direction, Stages, has_stages, is_backward
from tierrank.plackett_luce.inputs import Scores, wide_dtype
from tierrank.plackett_luce.lists import FlatLists, Rest
from tierrank.plackett_luce.tier_sums import Groups, LogSumExp, TierSums
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers, repeat


@objective
def pmop_fd(
    scores: Any,
    tiers: Tiers,
    *,
    constant: bool = True,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    r"""Minus the log-probability of tiers chosen by their mean worth (Tran et al., 2010).

    Stage k chooses a subset of what remains, R_k, with probability proportional to
    :math:`\frac1{|X|}\sum_{x\in X}\phi_k(x)`, until nothing is left. Then (equation 8)

    .. math:: \log p(X_k) = \log\sum_{x\in X_k}\phi_k(x) - \log\sum_{x\in R_k}\phi_k(x)
              - \log\frac{(2^{N_k}-1)\,|X_k|}{N_k}, \qquad N_k = |R_k|,

    which is a probability over all ordered partitions of a list's items. Unlike in
    `pl_partition`, the last tier is an event too: all that is left might have been split. Its
    share does not depend on the scores. Costs linear time, with a rest that is not written, too.

    Parameters
    ----------
    scores, tiers
        as in `tierrank.log_prob`, φ(x) = e^score; or scores with one more axis at the end, the
        stages, φ_k(x) = exp(scores[..., k]) for k = 0, 1, …, at least as many as any list has
        tiers. Those take time Σ_k N_k, and no rest that is not written. (Where [lists, items]
        and [items, stages] are the same shape, the former is meant.)
    constant
        whether to count the last term, in which no score appears. The paper leaves it out for
        learning; the gradient is the same. With a million items it is about 693,147, which
        leaves a float32 few digits for the rest.
    direction
        "forward" chooses the best tier first. "backward" (equation 17) eliminates the worst
        first, out of all items, then the next worst out of what is left. The paper leaves the
        potentials of elimination open; here they are e^−score, and stage 0 is the first
        elimination. This is another model than "forward", not the same one computed otherwise.
    weights, reduction
        as in `pl_partition`

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tiers = tr.Tiers.from_labels([1, 1, 0])  # by equal scores: 1/7 of the subsets, then all
    >>> float(np.exp(-tr.losses.pmop_fd(np.zeros(3), tiers)))
    0.14285714
    """
    given = Scores(scores)
    backward = is_backward(direction)
    if has_stages(given.values, tiers):
        losses = -_by_stage(Stages(given.values, tiers, direction), constant)
    else:
        losses = _in_one_pass(given.values, tiers, backward, constant)
    return reduced(given, losses, weights, reduction)


def _by_stage(stages: Stages, constant: bool) -> Tensor:
    """[lists] log-probabilities, every stage summed by itself."""
    groups, f = stages.groups, stages.potentials
    among = groups.logsumexp(f)
    own = Groups(groups.of[stages.chosen], groups.number).logsumexp(f[stages.chosen])
    log_prob = stages.sum_by_list(_log_share(own, among))
    if constant:
        log_prob = log_prob - stages.sum_by_list(_log_constant(stages.sizes, stages.picked))
    return log_prob


def _in_one_pass(values: Tensor, tiers: Tiers, backward: bool, constant: bool) -> Tensor:
    """[lists] minus log-probabilities, by the native core or by the formula."""

    def formula(values: Tensor) -> Tensor:
        log_prob = _log_shares(FlatLists(values, tiers), backward)
        return log_prob - _log_constants(tiers, backward) if constant else log_prob

    def kernel(lists: FlatLists, arrays: Pass) -> bool:
        finite = fill_stages("subset, backward" if backward else "subset", lists, arrays)
        if constant:
            key = "pmop-fd, backward" if backward else "pmop-fd"
            arrays.value[:] -= tiers.kept(key, lambda: _log_constants(tiers, backward).numpy())
        return finite

    if not backward:
        return in_one_pass(values, tiers, kernel, formula)
    if shares_a_rest(values, tiers):
        return -formula(values)
    return in_one_pass(-values, tiers, kernel, lambda negated: formula(-negated))


def _log_shares(lists: FlatLists, backward: bool) -> Tensor:
    """[lists] sums over the stages, from the log-sum-exps of all tiers and their running sums."""
    lists.check_finite()
    row_offsets, _, tier_offsets, list_offsets = lists.layout
    rows, bottom = lists.rows.to(lists.bottom), lists.bottom
    if backward:
        rows = -rows
        if lists.rest is not None:
            bottom = Rest(-lists.values.to(bottom), lists.tiers.items, row_offsets).log_sum
    sums = TierSums(rows, bottom, lists.layout)
    among = sums.own.scanned(sums.tables.downwards) if backward else sums.own.merge(sums.below)
    upper = _log_share(sums.own, among)
    log_prob = bottom.new_zeros(len(bottom)).index_add(0, sums.tier_list, upper)
    if backward:
        # the tier that the layout leaves out is chosen first, out of all
        last = lists.tiers.full_lengths - tier_offsets[list_offsets].diff()
        both = ((last > 0) & (list_offsets.diff() > 0)).nonzero()[:, 0]
        among = sums.own.merge(sums.below).take(list_offsets[:-1][both])
        own = sums.below.take(list_offsets[1:][both] - 1)
        log_prob = log_prob.index_add(0, both, _log_share(own, among))
    return log_prob


def _log_constants(tiers: Tiers, backward: bool) -> Tensor:
    """[lists] sums over the stages of log (C n), a rest's among them."""
    size, number, total = tiers.tier_sizes, tiers.list_offsets.diff(), tiers.full_lengths
    above = tiers.tier_offsets[:-1] - repeat(tiers.tier_offsets[tiers.list_offsets[:-1]], number)
    remaining = above + size if backward else repeat(total, number) - above
    rest = total - tiers.lengths
    constants = _log_constant(total if backward else rest, rest)
    return constants.index_add(0, range_numbers(number), _log_constant(remaining, size))


def _log_share(own: LogSumExp, among: LogSumExp) -> Tensor:
    """log Σ_own φ − log Σ_among φ."""
    return (own.largest - among.largest) + own.total.log() - among.total.log()


def _log_constant(remaining: Tensor, picked: Tensor) -> Tensor:
    """log (C n), C = (2^N − 1)/N, for n picked of N remaining (equation 8); 0 for none of none."""
    size = remaining.to(wide_dtype(remaining.device))
    subsets = size * math.log(2) + torch.log1p(-torch.exp2(-size))
    share = subsets + (picked / size).log()
    return torch.where(picked > 0, share, 0.0)
