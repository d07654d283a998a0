"""The labels that the lists of a batch name, in an order in which a block's are a range."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers

GATHERED = 1 << 21  # numbers of weight rows that are copied at once: 8 MB of float32


class InBlock(NamedTuple):
    """What lists name of the labels of a block.

    Attributes
    ----------
    lists, columns
        [entries in the block] where it is in the block's scores
    entries
        [entries in the block] its number in `Tiers.items`
    """

    lists: Tensor
    columns: Tensor
    entries: Tensor


class Written:
    """The entries of `Tiers.items` with the list of each, sorted by label."""

    def __init__(self, tiers: Tiers) -> None:
        self.labels = tiers.items
        self.lists = range_numbers(tiers.lengths)
        self._in_order, self._entries = tiers.items.sort(stable=True)
        self._lists_in_order = self.lists[self._entries]

    def within(self, start: int, stop: int) -> InBlock:
        """Those of the labels start … stop − 1."""
        ends = torch.tensor([start, stop], device=self.labels.device)
        first, last = torch.searchsorted(self._in_order, ends).tolist()
        return InBlock(
            self._lists_in_order[first:last],
            self._in_order[first:last] - start,
            self._entries[first:last],
        )

    def scores(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """[entries] h · w_label + b_label."""
        scores = bias[self.labels]
        step = max(1, GATHERED // hidden.shape[1])
        for start in range(0, len(scores), step):
            lists, labels = (part[start : start + step] for part in (self.lists, self.labels))
            scores[start : start + step] += (hidden[lists] * weight[labels]).sum(1)
        return scores
