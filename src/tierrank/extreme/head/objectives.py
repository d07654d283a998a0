"""How the labels that a list does not name, its rest, enter an objective.

In either way the rest can be looked at block by block, and is never there as a whole:

- *by its log-sum-exp alone* (the likelihoods): the rest is worth as much as one label with the
  score lse(rest), so the objective of `tierrank.losses` is asked about the labels that the list
  names and that one. Its slope there is shared by the rest as by a softmax.
- *as a sum over its labels* (the pairwise losses): each block adds its own pairs.

Both look at the rest twice: first for the loss and the slopes of what is named, then for the
slopes of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tierrank.extreme.head import pairs
from tierrank.extreme.head.written import InBlock
from tierrank.losses.record import find_fused
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, range_numbers, ranges

Loss = Callable[[Tensor, Tiers], Tensor]  # of scores and tiers, [lists] losses

NEVER = -1e30  # the score of what is no rest: far below all others, but finite


class NotFinite(ValueError):
    """Scores that are NaN or infinite."""


class Block(NamedTuple):
    """Some labels' scores.

    Attributes
    ----------
    scores
        [lists, labels] contiguous; whoever works on the block may overwrite them
    named
        what lists name of them
    log_weights
        [labels] log of how often a label counts in the rest; None: all once
    """

    scores: Tensor
    named: InBlock
    log_weights: Tensor | None


class Rest(Protocol):
    """The rest of every list of a batch, under one objective."""

    def see(self, block: Block) -> None:
        """Take in a block; its scores end up as `slopes` wants them."""

    def finish(self) -> tuple[Tensor, Tensor]:
        """[lists] losses, and [entries] their slopes in what is named."""

    def prepare(self, block: Block) -> None:
        """Bring fresh scores to where `see` would leave them."""

    def slopes(self, block: Block, by_list: Tensor) -> Tensor:
        """[lists, labels] slopes of the rest times [lists] numbers; 0 where a label is named."""


def rest_of(objective: str | Loss, scores: Tensor, tiers: Tiers) -> Rest:
    """The rest of a batch, whose lists name labels with these [entries] scores."""
    if callable(objective):
        return CollapsedRest(objective, scores, tiers)
    entry = find_fused(objective)
    loss = entry.module(reduction="none")
    if entry.fused == "pairs":
        return PairwiseRest(entry.name, loss, scores, tiers)
    return CollapsedRest(loss, scores, tiers)


class CollapsedRest:
    """The rest as one label whose score is its log-sum-exp."""

    def __init__(self, loss: Loss, scores: Tensor, tiers: Tiers) -> None:
        self.loss, self.scores, self.tiers = loss, scores, tiers
        self.largest = scores.new_full((len(tiers),), -torch.inf)
        self.total = scores.new_zeros(len(tiers), dtype=torch.float64)

    def prepare(self, block: Block) -> None:
        """What counts n times is as one label with score w + log n; what is named is none."""
        if block.log_weights is not None:
            block.scores.add_(block.log_weights)
        block.scores[block.named.lists, block.named.columns] = -torch.inf

    def see(self, block: Block) -> None:
        """Go on with the log-sum-exp, as (largest, Σ e^(w − largest))."""
        self.prepare(block)
        largest = torch.maximum(self.largest, block.scores.amax(1))
        base = torch.where(largest == -torch.inf, 0.0, largest)  # no rest, so far
        self.total *= (self.largest - base).double().exp()
        self.total += (block.scores - base[:, None]).exp_().sum(1)
        self.largest = largest

    def finish(self) -> tuple[Tensor, Tensor]:
        """Ask the objective about short lists: what is named, and the rest as one label.

        All scores are taken relative to the rest's largest, where float32 has the most digits.
        """
        lengths, per_list = self.tiers.lengths, self.tiers.list_offsets.diff()
        list_of = range_numbers(lengths)
        finite = self.largest < torch.inf
        finite[list_of[~self.scores.isfinite()]] = False
        _refuse_infinite(finite)
        has_rest = self.total > 0
        self.base = torch.where(has_rest, self.largest, 0.0)
        one_more = has_rest.long()
        start = offsets(lengths + one_more)[:-1]
        place, rest_place = ranges(start, lengths), (start + lengths)[has_rest]
        short = self.scores.new_empty(len(place) + len(rest_place))
        short[place] = self.scores - self.base[list_of]
        short[rest_place] = self.total[has_rest].log().to(short)
        before = offsets(one_more)[:-1]  # rests of the lists before
        tier_ends = self.tiers.tier_offsets[1:] + before[range_numbers(per_list)]
        lists = per_list + one_more
        filled = lists > 0  # else nothing is named and nothing left
        short_tiers = Tiers(
            items=torch.arange(len(short), device=short.device),
            tier_offsets=torch.cat([tier_ends.new_zeros(1), tier_ends, rest_place + 1])
            .sort()
            .values,
            list_offsets=offsets(lists[filled]),
            score_shape=(len(short),),
        )
        short_losses, slopes = _differentiated(self.loss, short, short_tiers)
        losses = short_losses.new_zeros(len(lists))
        losses[filled] = short_losses
        self.scale = torch.zeros_like(self.base)
        self.scale[has_rest] = (slopes[rest_place] / self.total[has_rest]).to(slopes)
        return losses, slopes[place]

    def slopes(self, block: Block, by_list: Tensor) -> Tensor:
        """∂loss/∂lse(rest) · softmax over the rest."""
        worths = block.scores.sub_(self.base[:, None]).exp_()
        return worths.mul_((self.scale * by_list)[:, None])


class PairwiseRest:
    """The rest as so many pairs with each label that is named."""

    def __init__(self, kind: str, loss: Loss, scores: Tensor, tiers: Tiers) -> None:
        self.kind, self.loss, self.scores, self.tiers = kind, loss, scores, tiers
        self.borders = offsets(tiers.lengths)
        self.losses = scores.new_zeros(len(tiers), dtype=torch.float64)
        self.named_slopes = scores.new_zeros(len(scores), dtype=torch.float64)

    def prepare(self, block: Block) -> None:
        """What is named is no rest."""
        block.scores[block.named.lists, block.named.columns] = NEVER

    def see(self, block: Block) -> None:
        """Add the pairs of a block."""
        self.prepare(block)
        self._pairs(block, None)

    def finish(self) -> tuple[Tensor, Tensor]:
        """Add the pairs among what is named, where that has several tiers."""
        _refuse_infinite(self.losses.isfinite())
        several = self.tiers.list_offsets.diff() > 1
        if several.any():
            upper = self.tiers[several]
            rows = Tiers(
                items=torch.arange(len(upper.items), device=upper.device),
                tier_offsets=upper.tier_offsets,
                list_offsets=upper.list_offsets,
                score_shape=(len(upper.items),),
            )
            entries = several[range_numbers(self.tiers.lengths)]
            losses, slopes = _differentiated(self.loss, self.scores[entries], rows)
            self.losses[several] += losses
            self.named_slopes[entries] += slopes
        return self.losses.to(self.scores), self.named_slopes.to(self.scores)

    def slopes(self, block: Block, by_list: Tensor) -> Tensor:
        """Σ of the pairs' slopes, label by label."""
        out = torch.empty_like(block.scores)
        self._pairs(block, out)
        return out.mul_(by_list[:, None])

    def _pairs(self, block: Block, out: Tensor | None) -> None:
        """Sums over a block's pairs: of losses and slopes, or of the slopes by label into `out`."""
        counts = None if block.log_weights is None else block.log_weights.exp()
        losses, slopes = pairs.sums(self.kind, self.scores, self.borders, block.scores, counts, out)
        if out is None:
            self.losses += losses
            self.named_slopes += slopes


def _refuse_infinite(finite: Tensor) -> None:
    """Refuse lists, [lists], that have a score which is not."""
    if not bool(finite.all()):
        raise NotFinite(
            f"scores must be finite, but list {int(finite.long().argmin())} has one that is NaN or "
            "infinite: look at hidden, weight and bias"
        )


def _differentiated(loss: Loss, scores: Tensor, tiers: Tiers) -> tuple[Tensor, Tensor]:
    """[lists] losses, and [scores] their slopes."""
    with torch.enable_grad():
        scores = scores.detach().requires_grad_()
        losses = loss(scores, tiers)
        (slopes,) = torch.autograd.grad(losses.sum(), scores, allow_unused=True)
    return losses.detach(), torch.zeros_like(scores) if slopes is None else slopes
