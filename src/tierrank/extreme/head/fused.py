"""Loss and gradients of the last layer, a block of labels at a time.

The scores of a batch, [lists, labels], and their gradient are never held as a whole. A first pass
over the labels finds the losses, a second one the gradients; it computes the scores again, but
for those of the first blocks, which are kept up to a fixed size. What is needed besides the
weights and whatever `update` does with their gradient does not grow with the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tierrank.extreme.head.objectives import Block, Loss, rest_of
from tierrank.extreme.head.written import Written
from tierrank.tiers import Tiers

BLOCK_BYTES = 8 << 20  # of a block's scores, or its weights, whichever is more
KEPT_BYTES = 64 << 20  # of scores that are not computed a second time

Update = Callable[[slice, Tensor, Tensor], None]


class Losses(NamedTuple):
    """What a first pass found, and what a second one needs."""

    by_list: Tensor
    backward: Callable[[Tensor, Update], Tensor]


def fused_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    tiers: Tiers,
    objective: str | Loss,
    *,
    log_weights: Tensor | None = None,
) -> Losses:
    """[lists] losses of the scores ``hidden @ weight.T + bias``, without these.

    Parameters
    ----------
    hidden
        [lists, width]
    weight, bias
        [labels, width] and [labels]
    tiers
        a catalogue of all labels, with a rest, as `Tiers.from_positives` gives it
    objective
        a name among `FUSED`, or a function of (scores, tiers) that gives [lists] losses and in
        which the rest counts by its log-sum-exp alone; adding a number to all scores of a list
        must not change it
    log_weights
        [labels] log of how often a label counts in the rest, −inf for never; None: each once

    Returns
    -------
    Losses
        `by_list`, and `backward(by_list, update)`: given [lists] derivatives by the losses it
        returns those by `hidden`, and calls ``update(labels, by_weight, by_bias)`` for one slice
        of labels after the other. From then on it does not look at these labels' weights, so
        `update` may change them.
    """
    written = Written(tiers)
    slices = list(_label_blocks(len(hidden), len(weight), weight.shape[1], hidden.element_size()))

    def scores_of(labels: slice) -> Tensor:
        return torch.addmm(bias[labels], hidden, weight[labels].T)

    def block(labels: slice, scores: Tensor) -> Block:
        of_labels = None if log_weights is None else log_weights[labels]
        return Block(scores, written.within(labels.start, labels.stop), of_labels)

    kept: dict[int, Tensor] = {}
    room = KEPT_BYTES
    if len(slices) == 1:
        kept[0] = scores_of(slices[0])
        named = kept[0][written.lists, written.labels]
    else:
        named = written.scores(hidden, weight, bias)
    rest = rest_of(objective, named, tiers)
    for labels in slices:
        one = block(labels, kept[0] if len(slices) == 1 else scores_of(labels))
        rest.see(one)
        if one.scores.nbytes <= room:
            kept[labels.start] = one.scores
            room -= one.scores.nbytes
    by_list, named_slopes = rest.finish()

    def backward(by_loss: Tensor, update: Update) -> Tensor:
        by_hidden = torch.zeros_like(hidden)
        by_entry = named_slopes * by_loss[written.lists]
        for labels in slices:
            fresh = labels.start not in kept
            one = block(labels, scores_of(labels) if fresh else kept.pop(labels.start))
            if fresh:
                rest.prepare(one)
            slopes = rest.slopes(one, by_loss)
            slopes[one.named.lists, one.named.columns] = by_entry[one.named.entries]
            by_hidden.addmm_(slopes, weight[labels])
            update(labels, slopes.T @ hidden, slopes.sum(0))
        return by_hidden

    return Losses(by_list, backward)


def _label_blocks(lists: int, labels: int, width: int, element: int) -> Iterator[slice]:
    """Slices that cover all labels."""
    step = max(256, BLOCK_BYTES // (element * max(lists, width, 1)))
    for start in range(0, labels, step):
        yield slice(start, min(start + step, labels))
