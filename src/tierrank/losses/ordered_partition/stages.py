"""Every choice of every list: what was chosen at a stage, and out of what."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce.inputs import wide_dtype
from tierrank.plackett_luce.lists import ScoredLists
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, range_numbers, ranges, repeat

Direction = Literal["forward", "backward"]


def is_backward(direction: Direction) -> bool:
    """Whether the worst tier is chosen first; an error if it is neither way."""
    if direction not in ("forward", "backward"):
        raise ValueError(
            f'direction is "forward" (the best tier is chosen first) or "backward" (the worst '
            f"is eliminated first), not {direction!r}"
        )
    return direction == "backward"


def has_stages(values: Tensor, tiers: Tiers) -> bool:
    """Whether the scores have one more axis than the tiers: a score for each stage.

    Over a catalogue, [lists, items] and [items, stages] both have two. Where both would fit,
    it is the former.
    """
    if tiers.score_shape is not None:
        return values.dim() == len(tiers.score_shape) + 1
    if values.dim() == 2:
        by_list = values.shape == (len(tiers), tiers.n_items)
        return not by_list and values.shape[0] == tiers.n_items
    return values.dim() == 3


class Stages(ScoredLists):
    """The stages of all lists behind each other, each with the items that remain at it.

    What remains at a stage is what is chosen there and all that is chosen later: with the items
    of a list in the order of choice, a stage is the end of the list from some place on, and what
    it chooses stands first. There are Σ_k N_k entries.

    Attributes
    ----------
    potentials
        [entries] f, so that φ_k(x) = e^f: the score at this stage, or minus it where the worst
        tier is chosen first. In float64 where the device has it. Differentiable.
    chosen
        [entries] whether the item is chosen at this stage
    offsets
        [stages + 1] ranges of entries, one a stage
    sizes, picked
        [stages] how many remain, and how many of them are chosen
    list_of
        [stages] number of the list
    """

    def __init__(self, values: Tensor, tiers: Tiers, direction: Direction) -> None:
        backward = is_backward(direction)
        self.by_stage = has_stages(values, tiers)
        if tiers.rest:
            raise ValueError(
                "these tiers have a rest that is not written down. Only pmop_fd can do with that, "
                "and with one score an item for all stages: use it, or write the last tier out"
            )
        super().__init__(self._without_stages(values, tiers) if self.by_stage else values, tiers)
        per_list, sizes, item = tiers.list_offsets.diff(), tiers.tier_sizes, self.written
        borders = tiers.tier_offsets[tiers.list_offsets]
        if backward:
            item, sizes = item[_reversed(borders)], sizes[_reversed(tiers.list_offsets)]

        self.picked, self.list_of = sizes, range_numbers(per_list)
        first = offsets(sizes)[:-1]
        self.sizes = borders[1:][self.list_of] - first
        self.offsets = offsets(self.sizes)
        place = ranges(first, self.sizes)
        self.chosen = place < repeat(first + sizes, self.sizes)
        at = item[place]
        if self.by_stage:
            self._check_number(values, per_list)
            stage = ranges(torch.zeros_like(per_list), per_list)
            at = at * values.shape[-1] + repeat(stage, self.sizes)
        # widened first, so that the gradient, too, is summed over the stages in float64
        entries = values.reshape(-1).to(wide_dtype(values.device)).index_select(0, at)
        self._check_finite(values, entries, at)
        self.potentials = -entries if backward else entries

    @cached_property
    def groups(self) -> Groups:
        """The entries by stage."""
        return Groups.between(self.offsets)

    @cached_property
    def centred(self) -> Tensor:
        """[entries] the potentials, less the largest of their stage: no probability changes.

        So scores near ±1e4 keep all digits of their differences.
        """
        stage = self.groups.of
        largest = self.potentials.new_full((len(self.sizes),), -torch.inf)
        largest.scatter_reduce_(0, stage, self.potentials.detach(), "amax")
        return self.potentials - largest[stage]

    def sum_by_list(self, by_stage: Tensor) -> Tensor:
        """[lists] sums of what [stages] holds."""
        return by_stage.new_zeros(len(self.tiers)).index_add(0, self.list_of, by_stage)

    @staticmethod
    def _without_stages(values: Tensor, tiers: Tiers) -> Tensor:
        """A score an item, for the checks of its shape; complaints tell of the whole shape."""
        one = values.new_zeros(()).expand(values.shape[:-1])
        try:
            ScoredLists(one, tiers)
        except ValueError as error:
            raise ValueError(
                f"scores of shape {list(values.shape)} have one axis more than these tiers: the "
                f"last would be the stages. As to the others, {error}"
            ) from None
        return one

    def _check_number(self, values: Tensor, per_list: Tensor) -> None:
        needed = int(per_list.max()) if len(per_list) else 0
        if values.shape[-1] < needed:
            raise ValueError(
                f"list {int(per_list.argmax())} has {needed} tiers, so scores are needed for "
                f"{needed} stages, but the last axis of {list(values.shape)} has "
                f"{values.shape[-1]} (for one score an item, leave that axis out)"
            )

    def _check_finite(self, values: Tensor, entries: Tensor, at: Tensor) -> None:
        if torch.compiler.is_compiling() or bool(entries.isfinite().all()):
            return
        entry = int((~entries.isfinite()).nonzero()[0, 0])
        stage = int(torch.searchsorted(self.offsets, entry, right=True)) - 1
        where = f", in list {int(self.list_of[stage])},"
        if not self.by_stage:
            raise self.not_finite(int(at[entry]), where)
        index = [int(i) for i in np.unravel_index(int(at[entry]), tuple(values.shape))]
        value = float(entries[entry].detach())
        raise ValueError(f"scores must be finite, but scores{index}{where} is {value}")


def _reversed(borders: Tensor) -> Tensor:
    """Indices that turn each range round, in its place."""
    here = torch.arange(int(borders[-1]), device=borders.device)
    return repeat(borders[:-1] + borders[1:] - 1, borders.diff()) - here
