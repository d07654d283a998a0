"""Subsets of a given size, each as probable as the product of its items' weights.

Let every item toss a coin of its own, and look only at tosses with m heads: the conditional
Bernoulli distribution (Chen, Dempster and Liu, 1994). A constant added to all log-odds changes
nothing, so it can be chosen such that m heads are not improbable. All terms are positive, and
so nothing cancels.

Tiers chosen so, each out of what remains and of its own size, are Cox's discrete likelihood.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, ranges, repeat

MOST_TERMS = 1 << 25  # of one stage: 8,000 items, of which half are chosen
MOST_ENTRIES = 1 << 24  # of all stages: what remains is written out at each, some 100 bytes an item
CERTAIN = 100.0  # of two groups that are so far apart, all of the upper one is chosen first


@objective
def cox_discrete(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    r"""Minus the log-probability of tiers of known sizes, chosen at once (Cox, 1972).

    Stage m chooses n_m items out of what remains, R_m, a subset with probability proportional to
    the product of its items' worths:

    .. math:: \log p(S_m) = \sum_{i\in S_m} w_i - \log \sum_{S\subset R_m,\,|S|=n_m}
              \exp \sum_{i\in S} w_i

    What is left at last is no choice. In survival analysis this is Cox's discrete likelihood, the
    ``exact`` one of R's ``clogit`` and ``coxph``, and for two tiers conditional logistic
    regression. `pl_partition` sums over the orders of a tier instead, as if its items had been
    chosen one by one. Where all tiers but the last have one item, the two agree.

    The sum is an elementary symmetric polynomial: it takes n_m |R_m| steps a stage, of which
    |R_m| are one after the other. Twice differentiable. Parameters as in `pl_partition`.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores = np.log([4.0, 2.0, 1.0])  # pairs are worth 8, 4 and 2
    >>> float(np.exp(-tr.losses.cox_discrete(scores, tr.Tiers.from_labels([1, 1, 0]))))
    0.57142857
    """
    given = Scores(scores)
    stages = SizedStages(TierOrder(given.values, tiers))
    return reduced(given, stages.losses(), weights, reduction)


class SizedStages:
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


class GivenSize:
    """Coins of many rows, of which each is to show its own number of heads.

    Parameters
    ----------
    log_odds
        [rows, items] log(p / (1 − p)); −inf for an item that is not there
    heads
        [rows] how many heads

    Attributes
    ----------
    probability
        [rows] of that many heads
    """

    def __init__(self, log_odds: Tensor, heads: Tensor) -> None:
        rows, items = log_odds.shape
        self.p, self.q = log_odds.sigmoid().unsqueeze(-1), (-log_odds).sigmoid().unsqueeze(-1)
        most = int(heads.max()) if rows else 0
        # after[i, r, j] = P(items i, i + 1, … add the heads that are missing after j), with a
        # column more than heads, so that there is a j + 1
        self.after = log_odds.new_zeros(items + 1, rows, most + 2)
        self.after[items].scatter_(1, heads.unsqueeze(1), 1.0)
        for i in range(items - 1, -1, -1):
            torch.mul(self.after[i + 1], self.q[:, i], out=self.after[i])
            self.after[i, :, :-1].addcmul_(self.after[i + 1, :, 1:], self.p[:, i])
        self.probability = self.after[0, :, 0]

    def inclusion(self) -> Tensor:
        """[rows, items] the probability that an item is in the subset."""
        inclusion = torch.zeros_like(self.p.squeeze(-1))
        before = torch.zeros_like(self.after[0])  # P(the items so far show j heads)
        before[:, 0] = 1.0
        for i in range(inclusion.shape[1]):
            joined = before[:, :-1] * self.p[:, i]
            inclusion[:, i] = (joined * self.after[i + 1, :, 1:]).sum(1)
            before *= self.q[:, i]
            before[:, 1:] += joined
        # where there are fewer items than heads, nothing is included
        possible = self.probability.clamp(min=torch.finfo(inclusion.dtype).tiny)
        return inclusion / possible.unsqueeze(1)

    def draw(self, rows: Tensor, generator: torch.Generator | None) -> Tensor:
        """[draws, items] a subset for each of `rows` [draws], which may name a row repeatedly."""
        items = self.p.shape[1]
        subset = torch.zeros(len(rows), items, dtype=torch.bool, device=rows.device)
        uniform = torch.rand(
            (items, len(rows)), dtype=self.p.dtype, device=rows.device, generator=generator
        )
        heads = torch.zeros_like(rows)
        for i in range(items):
            chance = self.p[rows, i, 0] * self.after[i + 1, rows, heads + 1]
            subset[:, i] = uniform[i] * self.after[i, rows, heads] < chance
            heads += subset[:, i]
        return subset
