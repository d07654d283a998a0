"""Ordered partitions chosen subset by subset: the PMOP models of Tran, Phung and Venkatesh (2010).

A stage chooses a subset X_k of what remains, R_k, with probability Φ(X_k) / Σ_{S⊆R_k} Φ(S), over
all 2^N_k − 1 subsets that are not empty. The two potentials Φ of the paper are the mean of e^w
(`pmop_fd`, linear) and e to the mean of w (`pmop_exact`, cubic; `pmop_gibbs` and `pmop_mh`,
estimates of its gradient). `cox_discrete` chooses among subsets of one size, by the product of e^w.
`sample_ordered_partitions` draws from the models, stage by stage.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from tierrank._types import FloatArray
from tierrank.losses.lists import Direction, Stages, TierOrder, has_stages, is_backward
from tierrank.losses.objective import (
    Pass,
    Reduction,
    fill_stages,
    in_one_pass,
    objective,
    reduced,
    shares_a_rest,
    stage_hessian,
)
from tierrank.losses.subsets import (
    MOST_ITEMS,
    by_size,
    gibbs,
    log_normaliser,
    metropolis_hastings,
    rows_in_a_block,
)
from tierrank.plackett_luce.lists import FlatLists, Rest, Scores, check_finite, wide_dtype
from tierrank.plackett_luce.model import BLOCK
from tierrank.plackett_luce.tier_sums import Groups, LogSumExp, TierSums
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_generator, offsets, range_numbers, ranges, repeat

Generator = torch.Generator | int | None
Draw = Callable[[Tensor, Tensor], Tensor]  # [items] f and [rows, items] what remains -> chosen

MOST_TERMS = 1 << 25  # of one stage: 8,000 items, of which half are chosen
MOST_ENTRIES = 1 << 24  # of all stages: what remains is written out at each, some 100 bytes an item
CERTAIN = 100.0  # of two groups that are so far apart, all of the upper one is chosen first


# -- PMOP-FD: a subset is worth the mean of what its items are worth ------------------------------


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
    r"""Negative log-probability of tiers chosen by their mean worth (Tran et al., 2010).

    Stage k chooses a subset of what remains, R_k, with probability proportional to
    :math:`\frac1{|X|}\sum_{x\in X}\phi_k(x)`, until nothing is left. Then (equation 8)

    .. math:: \log p(X_k) = \log\sum_{x\in X_k}\phi_k(x) - \log\sum_{x\in R_k}\phi_k(x)
              - \log\frac{(2^{N_k}-1)\,|X_k|}{N_k}, \qquad N_k = |R_k|,

    which is a probability over all ordered partitions of a list's items. Unlike in
    `pl_partition`, the last tier is an event too: all that is left might have been split. Its
    share does not depend on the scores. Costs linear time, with a rest that is not written, too.

    Parameters
    ----------
    scores : array_like
        As in `tierrank.log_prob`, φ(x) = e^score; or scores with one more axis at the end, the
        stages, φ_k(x) = exp(scores[..., k]) for k = 0, 1, …, at least as many as any list has
        tiers. Those take time Σ_k N_k, and no rest that is not written. (Where [lists, items] and
        [items, stages] are the same shape, the former is meant.).
    tiers : Tiers
        The lists.
    constant : bool
        Whether to count the last term, in which no score appears. The paper leaves it out for
        learning; the gradient is the same. With a million items it is about 693,147, which
        leaves a float32 few digits for the rest.
    direction : {"forward", "backward"}
        "forward" chooses the best tier first. "backward" (equation 17) eliminates the worst
        first, out of all items, then the next worst out of what is left. The paper leaves the
        potentials of elimination open; here they are e^−score, and stage 0 is the first
        elimination. This is another model than "forward", not the same one computed otherwise.
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
    pmop_exact : Tiers chosen by their mean score.
    pl_partition : The exact likelihood.
    sample_ordered_partitions : Draws from these models.

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


def pmop_fd_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the convex part's Hessian, that of Σ lse(R_m): an upper bound."""
    return stage_hessian("one draw", rows, tiers)


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


# -- PMOP with the general potential: e to the mean of the items' scores --------------------------


@objective
def pmop_exact(
    scores: Any,
    tiers: Tiers,
    *,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    r"""Negative log-probability of tiers chosen by their mean score (Tran et al., 2010).

    Stage k chooses a subset of what remains, R_k, with the potential of equation 16:

    .. math:: p(X_k) = \frac{\exp(\bar f(X_k))}{\sum_{S\subseteq R_k} \exp(\bar f(S))},
              \qquad \bar f(S) = \frac1{|S|} \sum_{x\in S} f(x).

    The paper holds the sum over 2^N − 1 subsets to be intractable, and samples. It is exact here,
    in time N³ a stage: `normaliser` says how. Once differentiable.

    Parameters
    ----------
    scores : array_like
        F, as in `pmop_fd`, with or without an axis of stages.
    tiers : Tiers
        Lists of at most 200 items, without a rest that is not written.
    direction : {"forward", "backward"}
        As in `pmop_fd`; "backward" takes −f.
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
    pmop_fd : Tiers chosen by their mean worth.
    pmop_gibbs : Gibbs sampling.
    pmop_mh : Metropolis-Hastings.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores = np.log([16.0, 4.0])  # Φ is 16 and 4 for one item, and √64 = 8 for both
    >>> float(np.exp(-tr.losses.pmop_exact(scores, tr.Tiers.from_labels([0, 0]))))
    0.28571428
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    longest = int(stages.sizes.max()) if len(stages.sizes) else 0
    if longest > MOST_ITEMS:
        number = int(stages.list_of[stages.sizes.argmax()])
        raise ValueError(
            f"list {number} has {longest} items, and the exact sum over subsets takes cubic "
            f"time: at most {MOST_ITEMS} are allowed. pmop_gibbs estimates the gradient instead"
        )
    f = stages.centred
    log_sums = log_normaliser(f, stages.offsets)
    losses = stages.sum_by_list(log_sums - _mean_of_chosen(stages, f))
    return reduced(given, losses, weights, reduction)


@objective
def pmop_gibbs(
    scores: Any,
    tiers: Tiers,
    *,
    steps: int = 3,
    generator: Generator = None,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    r"""Contrastive divergence for `pmop_exact` by Gibbs sampling (Tran et al., 2010).

    At every stage a Markov chain starts from what was observed and makes n = `steps` sweeps over
    the remaining items (algorithm 1). With the subsets S⁽ˡ⁾ after each of them, held fixed,

    .. math:: \ell = \sum_k \Big(\frac1n \sum_{l=1}^n \bar f(S_k^{(l)}) - \bar f(X_k)\Big).

    Its gradient is the estimate of section 3.4. Its value is no likelihood: it may be negative,
    and a lower one does not mean a better fit. Few steps bias the gradient towards 0, for the
    chains still remember their start.

    Parameters
    ----------
    scores : array_like
        As in `pmop_exact`, with any number of items.
    tiers : Tiers
        The lists.
    steps : int
        Number of sweeps; the paper has 1 to 3.
    generator : Generator or int, optional
        A torch generator or an integer seed; without one, torch's global generator is used.
    direction : {"forward", "backward"}
        As in `pmop_fd`; "backward" takes −f.
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
    pmop_exact : Tiers chosen by their mean score.
    pmop_mh : Metropolis-Hastings.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> tr.losses.pmop_gibbs(scores, tr.Tiers.from_labels([1, 0, 0]), generator=0).backward()
    >>> bool(scores.grad[0] < 0)  # the best one's score is to rise
    True
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    chains = _chains(stages, steps, generator)
    return reduced(given, _contrast(stages, gibbs(*chains), steps), weights, reduction)


@objective
def pmop_mh(
    scores: Any,
    tiers: Tiers,
    *,
    steps: int = 3,
    generator: Generator = None,
    as_printed: bool = False,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Contrastive divergence for `pmop_exact` by Metropolis-Hastings (Tran et al., 2010).

    As `pmop_gibbs`, but a step is one proposal: a size, uniform on 1 … N, and a uniform subset of
    that size.

    Parameters
    ----------
    scores : array_like
        As in `pmop_exact`, with any number of items.
    tiers : Tiers
        The lists.
    steps : int
        Number of proposals.
    generator : Generator or int, optional
        A torch generator or an integer seed, for what is drawn; without one, torch's global
        generator.
    as_printed : bool
        Accept with probability min(1, Φ(S)/Φ(X)), as algorithm 1 has it. The proposal is not
        symmetric, and this chain tends to ``Φ(S)/C(N, |S|)``, not to Φ(S): small and large subsets
        come too often. By default the ratio has the factor ``C(N, |S|)/C(N, |X|)`` that
        mends it.
    direction : {"forward", "backward"}
        As in `pmop_fd`; "backward" takes −f.
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
    pmop_exact : Tiers chosen by their mean score.
    pmop_gibbs : Gibbs sampling.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> loss = tr.losses.pmop_mh(scores, tr.Tiers.from_labels([1, 0, 0]), steps=20, generator=0)
    >>> loss.backward()
    >>> bool(scores.grad[0] < 0)  # the best one's score is to rise
    True
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    chains = _chains(stages, steps, generator)
    samples = metropolis_hastings(*chains, as_printed=as_printed)
    return reduced(given, _contrast(stages, samples, steps), weights, reduction)


def _chains(
    stages: Stages, steps: int, generator: Generator
) -> tuple[Tensor, Tensor, Tensor, int, torch.Generator | None]:
    """What the samplers take: a chain a stage, started from what was observed."""
    if steps < 1:
        raise ValueError(f"steps = {steps}: a chain needs at least one")
    f = stages.centred.detach()
    return f, stages.offsets, stages.chosen, steps, as_generator(generator, f.device)


def _contrast(stages: Stages, samples: Iterable[Tensor], steps: int) -> Tensor:
    """[lists] Σ_k of the mean score of what was sampled, less that of what was chosen."""
    f, stage_of = stages.centred, stages.groups.of
    share = torch.zeros_like(f)
    for subset in samples:
        size = f.new_zeros(len(stages.sizes)).index_add_(0, stage_of, subset.to(f))
        share += subset / (steps * size[stage_of])
    return stages.sum_by_list(stages.groups.sum(share * f) - _mean_of_chosen(stages, f))


def _mean_of_chosen(stages: Stages, f: Tensor) -> Tensor:
    """[stages] the mean of [entries] f over what was chosen."""
    return stages.groups.sum(f * stages.chosen) / stages.picked


# -- Cox's discrete likelihood: tiers of given sizes, each out of what remains --------------------


@objective
def cox_discrete(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    r"""Negative log-probability of tiers of known sizes, chosen at once (Cox, 1972).

    Stage m chooses n_m items out of what remains, R_m, a subset with probability proportional to
    the product of its items' worths:

    .. math:: \log p(S_m) = \sum_{i\in S_m} w_i - \log \sum_{S\subset R_m,\,|S|=n_m}
              \exp \sum_{i\in S} w_i

    What is left at last is no choice. In survival analysis this is Cox's discrete likelihood, the
    ``exact`` one of R's ``clogit`` and ``coxph``, and for two tiers conditional logistic
    regression. `pl_partition` sums over the orders of a tier instead, as if its items had been
    chosen one by one. Where all tiers but the last have one item, the two agree.

    The sum is an elementary symmetric polynomial: it takes ``n_m |R_m|`` steps a stage, of
    which ``|R_m|`` are one after the other. Twice differentiable.

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
    pmop_exact : Tiers chosen by their mean score.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores = np.log([4.0, 2.0, 1.0])  # pairs are worth 8, 4 and 2
    >>> float(np.exp(-tr.losses.cox_discrete(scores, tr.Tiers.from_labels([1, 1, 0]))))
    0.57142857
    """
    given = Scores(scores)
    stages = _SizedStages(TierOrder(given.values, tiers))
    return reduced(given, stages.losses(), weights, reduction)


def cox_discrete_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: variances of being in a subset of the given size, by stage."""
    scores = torch.empty(len(rows), dtype=torch.float64)
    scores[tiers.items] = torch.from_numpy(rows)
    stages = _SizedStages(TierOrder(scores, tiers))
    by_row = torch.zeros_like(scores).index_add(0, stages.place, stages.variances())
    return np.asarray(by_row.numpy())


class _SizedStages:
    """The stages of all lists but the last, each with what remains and how many are chosen of it.

    Attributes
    ----------
    place
        [entries] where in the order of tiers an item stands; there are Σ_m |R_m| entries
    log_odds
        [entries] scores, less a constant of the stage with which about as many coins as are to
        be chosen show heads. Differentiable.
    """

    def __init__(self, order: TierOrder) -> None:
        start, picked = order.tier_offsets[:-1], order.tier_offsets.diff()
        sizes = order.list_offsets[1:][order.tier_list] - start
        choice = picked < sizes
        self.lists, self.list_of = len(order.list_offsets) - 1, order.tier_list[choice]
        self.sizes, self.picked, start = sizes[choice], picked[choice], start[choice]
        self._check()
        self.offsets = offsets(self.sizes)
        self.groups = Groups.between(self.offsets)
        self.place = ranges(start, self.sizes)
        self.chosen = self.place < repeat(start + self.picked, self.sizes)
        self.log_odds = self._centred(order.rows[self.place])

    def losses(self) -> Tensor:
        """[lists] −Σ log of Π_{S_m} p Π_{R_m∖S_m} (1 − p) / P(n_m heads)."""
        z = self.log_odds
        tossed = self.groups.sum(logsigmoid(torch.where(self.chosen, z, -z)))
        by_stage = self._log_chance(z) - tossed
        return by_stage.new_zeros(self.lists).index_add(0, self.list_of, by_stage)

    def variances(self) -> Tensor:
        """[entries] of whether an item is chosen: its part of the Hessian's diagonal."""
        z = self.log_odds.detach().requires_grad_()
        # the log of the sum over subsets is log P(n_m heads) + Σ log(1 + e^z), up to a constant
        (excess,) = torch.autograd.grad(self._log_chance(z).sum(), z)
        inclusion = z.detach().sigmoid() + excess
        return inclusion * (1 - inclusion)

    def _check(self) -> None:
        few = torch.minimum(self.picked, self.sizes - self.picked)
        many = ((few > 1) & (few * self.sizes > MOST_TERMS)).nonzero()[:, 0]
        if len(many):
            at = many[0]
            raise ValueError(
                f"list {int(self.list_of[at])} has a tier of {int(self.picked[at])} out of "
                f"{int(self.sizes[at])} items, and the sum over its subsets would have "
                f"{int(few[at] * self.sizes[at]):,} terms: use pl_partition, which is linear"
            )
        if int(self.sizes.sum()) > MOST_ENTRIES:
            raise ValueError(
                f"what remains at each of the {len(self.sizes):,} tiers adds up to "
                f"{int(self.sizes.sum()):,} items, which cox-discrete writes out: give it fewer "
                "lists at once, or use pl_partition, which is linear"
            )

    def _centred(self, w: Tensor) -> Tensor:
        """[entries] w − a, with the mean number of heads within ½ of what is picked.

        It is sought around the last score to be chosen if the best were: taking that off first
        leaves all digits of what is near to it.
        """
        stage, fixed = self.groups.of, w.detach()
        falling = fixed.argsort(descending=True)
        falling = falling[stage[falling].argsort(stable=True)]
        last = fixed[falling[self.offsets[:-1] + self.picked - 1]]
        after = fixed[falling[self.offsets[:-1] + self.picked]]
        near = w - last[stage]
        margin = self.sizes.to(w).log() + 5  # too low or too high by that, they are e^−5 off
        low, high = -(last - after).clamp(max=CERTAIN) - margin, margin
        middle = (low + high) / 2
        for _ in range(60):
            heads = self.groups.sum((near.detach() - middle[stage]).sigmoid()) - self.picked
            if not len(heads) or heads.abs().max() <= 0.5:
                break
            low, high = torch.where(heads > 0, middle, low), torch.where(heads > 0, high, middle)
            middle = torch.where(heads.abs() > 0.5, (low + high) / 2, middle)
        return near - middle[stage]

    def _log_chance(self, z: Tensor) -> Tensor:
        """[stages] log P(as many heads as are picked), of coins with log-odds [entries] z."""
        heads = torch.minimum(self.picked, self.sizes - self.picked)
        z = torch.where(repeat(heads < self.picked, self.sizes), -z, z)  # or as few tails
        largest, total = self.groups.logsumexp(z)
        chance = self.groups.sum(logsigmoid(-z)) + largest + total.log()  # if one head is to show
        chance = torch.where(heads == 1, chance, 0.0)
        # stages of about as many items and heads at once
        alike = (torch.stack([self.sizes, heads]).double().log2().ceil() * (heads > 1)).long()
        for kind in alike.unique(dim=1).unbind(1):
            if not kind.any():
                continue
            stages = (alike == kind.unsqueeze(1)).all(0).nonzero()[:, 0]
            chance = chance.index_add(0, stages, self._tossed(z, stages, heads[stages]).log())
        return chance

    def _tossed(self, z: Tensor, stages: Tensor, heads: Tensor) -> Tensor:
        """[stages] P(heads), one coin of all stages after the other."""
        items, most = int(self.sizes[stages].max()), int(heads.max())
        at = self.offsets[stages].unsqueeze(1) + torch.arange(items, device=z.device)
        there = at < self.offsets[stages + 1].unsqueeze(1)
        padded = torch.where(there, z[torch.where(there, at, 0)], -torch.inf)
        p, q = padded.sigmoid().unsqueeze(-1), (-padded).sigmoid().unsqueeze(-1)
        shown = pad(torch.ones_like(p[:, 0]), (0, most))
        for i in range(items):
            shown = shown * q[:, i] + pad(shown[:, :-1] * p[:, i], (1, 0))
        return shown.gather(1, heads.unsqueeze(1)).squeeze(1)


# -- draws ---------------------------------------------------------------------------------------


def sample_ordered_partitions(
    scores: Any,
    n: int,
    *,
    potential: Literal["sum", "mean"] = "sum",
    direction: Direction = "forward",
    sweeps: int = 50,
    generator: torch.Generator | int | None = None,
) -> Tiers:
    """Draw ordered partitions of the items from the model of `pmop_fd` or of `pmop_exact`.

    Parameters
    ----------
    scores : array_like
        [items], or [items, stages] with a score for each stage, of which there may be as many
        as items; torch or numpy.
    n : int
        How many to draw.
    potential : {"sum", "mean"}
        "sum" is the model of `pmop_fd`, "mean" that of `pmop_exact`. Both are drawn exactly; "mean"
        with more than 200 items by Gibbs sampling, at each stage from a uniformly random start.
    direction : {"forward", "backward"}
        As in `pmop_fd`.
    sweeps : int
        Length of these Gibbs chains.
    generator : Generator or int, optional
        A torch generator or an integer seed; without one, torch's global generator is used.

    Returns
    -------
    Tiers
        `n` lists of labels [n, items]; the last tier has label 0.

    See Also
    --------
    pmop_fd : Tiers chosen by their mean worth.
    pmop_exact : Tiers chosen by their mean score.
    tierrank.sample : Full rankings from the Plackett-Luce model.

    Notes
    -----
    For "sum", a size m is drawn from Binomial(N, 1/2), given that it is not 0, an anchor by its
    worth, and m − 1 others uniformly. A subset S can come about by any of its anchors, so it has
    C(N, m)/(2^N − 1) · Σ_{a∈S} φ(a)/Σ_R φ / C(N − 1, m − 1) = N/(2^N − 1) · (1/m) Σ_S φ / Σ_R φ,
    which is its probability. It also shows that sizes of tiers say nothing of the scores.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tr.losses.sample_ordered_partitions(np.array([9.0, 0.0, 0.0, -9.0]), 2, generator=3)
    Tiers(2 lists, padded to 4, 2 to 3 tiers a list)
      list 0: {0, 1} > 2 > 3
      list 1: {0, 3} > {1, 2}
    """
    f = _checked(scores, n)
    if sweeps < 1:
        raise ValueError(f"sweeps = {sweeps}: a chain needs at least one")
    backward = is_backward(direction)
    if backward:
        f = -f
    source = as_generator(generator, f.device)
    draw: Draw
    if potential == "sum":
        draw = partial(anchored_subsets, generator=source)
    elif potential != "mean":
        raise ValueError(f'potential is "sum" (pmop_fd) or "mean" (pmop_exact), not {potential!r}')
    elif len(f) <= MOST_ITEMS and f.dtype == torch.float64:  # 2^−200 is no float32
        draw = partial(exact_subsets, generator=source)
    else:
        draw = partial(gibbs_subsets, sweeps=sweeps, generator=source)
    rows = max(1, BLOCK // len(f))
    parts = [_stage_of_each(f, min(rows, n - first), draw) for first in range(0, n, rows)]
    stage = torch.cat(parts) if parts else f.new_zeros((0, len(f)), dtype=torch.int64)
    return Tiers.from_labels(stage if backward else stage.amax(1, keepdim=True) - stage)


def _checked(scores: Any, n: int) -> Tensor:
    """[items, stages] scores; 1 stage if they are the same at each."""
    values = Scores(scores).values.detach()
    check_finite(values)
    if values.dim() not in (1, 2) or not len(values):
        raise ValueError(
            f"scores are [items] or [items, stages], not of shape {list(values.shape)}"
        )
    items = len(values)
    if values.dim() == 2 and values.shape[1] < items:
        raise ValueError(
            f"{items} items may form as many tiers, so scores are needed for {items} stages, "
            f"not for {values.shape[1]}"
        )
    if n < 0:
        raise ValueError(f"the number of partitions n = {n} is negative")
    return values.to(wide_dtype(values.device)).view(items, -1)


def _stage_of_each(f: Tensor, rows: int, draw: Draw) -> Tensor:
    """[rows, items] the stage at which each item is chosen."""
    items, stages = f.shape
    stage = torch.full((rows, items), -1, device=f.device)
    unfinished = torch.arange(rows, device=f.device)
    number = 0
    while len(unfinished):
        remaining = stage[unfinished] < 0
        chosen = draw(f[:, min(number, stages - 1)], remaining)
        stage[unfinished] = torch.where(chosen, number, stage[unfinished])
        unfinished = unfinished[(remaining & ~chosen).any(1)]
        number += 1
    return stage


def anchored_subsets(f: Tensor, remaining: Tensor, generator: torch.Generator | None) -> Tensor:
    """A subset of each row of `remaining`, with probability ∝ the mean of e^f over it."""
    left = remaining.sum(1).to(f)
    half = torch.full_like(left, 0.5)
    size = torch.zeros_like(left)
    while (size == 0).any():
        size = torch.where(size > 0, size, torch.binomial(left, half, generator=generator))
    waiting = torch.empty(remaining.shape, dtype=f.dtype, device=f.device)
    noisy = _centred(f, remaining) - waiting.exponential_(generator=generator).log()
    anchor = noisy.argmax(1, keepdim=True)
    key = _uniform(remaining, f, generator).masked_fill(~remaining, 2.0).scatter(1, anchor, -1.0)
    threshold = key.sort(1).values.gather(1, size.long().unsqueeze(1) - 1)
    return key <= threshold


def exact_subsets(f: Tensor, remaining: Tensor, generator: torch.Generator | None) -> Tensor:
    """A subset of each row of `remaining`, with probability ∝ e^(mean of f): size, then members."""
    sets, which = remaining.unique(dim=0, return_inverse=True)
    width = int(remaining.sum(1).max())
    item = sets.int().argsort(dim=1, descending=True, stable=True)[:, :width]
    padded = _centred(f[item], sets.gather(1, item))
    chosen = torch.zeros_like(remaining)
    step = rows_in_a_block(width)
    for first in range(0, len(sets), step):
        log_sums, subsets = by_size(padded[first : first + step])
        rows = ((which >= first) & (which < first + step)).nonzero()[:, 0]
        own = which[rows] - first
        size = torch.multinomial(log_sums.softmax(1)[own], 1, generator=generator)[:, 0]
        drawn = subsets.draw(own * width + size, generator)
        chosen[rows] = torch.zeros_like(chosen[rows]).scatter_(1, item[which[rows]], drawn)
    return chosen


def gibbs_subsets(
    f: Tensor, remaining: Tensor, sweeps: int, generator: torch.Generator | None
) -> Tensor:
    """A subset of each row of `remaining`, with probability about ∝ e^(mean of f)."""
    start = torch.zeros_like(remaining)
    while not (settled := start.any(1, keepdim=True)).all():
        tossed = remaining & (_uniform(remaining, f, generator) < 0.5)
        start = torch.where(settled, start, tossed)
    chain = gibbs(
        _centred(f, remaining)[remaining],
        offsets(remaining.sum(1)),
        start[remaining],
        sweeps,
        generator,
    )
    last = deque(chain, maxlen=1).pop()
    return torch.zeros_like(remaining).masked_scatter_(remaining, last)


def _centred(f: Tensor, remaining: Tensor) -> Tensor:
    """[rows, items] f less the best of what remains, −inf for the others.

    No probability changes, and those that may be chosen keep digits for the noise.
    """
    f = f.where(remaining, -torch.inf)
    return f - f.amax(1, keepdim=True)


def _uniform(like: Tensor, f: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.rand(like.shape, dtype=f.dtype, device=f.device, generator=generator)
