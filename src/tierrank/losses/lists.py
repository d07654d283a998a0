"""Lists as objectives look at them that need more than tiers: item by item, choice by choice.

`TierOrder` has every item of every list, best tier first; `Stages` has what was chosen at every
stage of a list, and out of what.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce.lists import ScoredLists, wide_dtype
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, range_numbers, ranges, repeat

Direction = Literal["forward", "backward"]


class TierOrder(ScoredLists):
    """Scores list by list, and inside a list best tier first, so that each tier is a range.

    The rest of a catalogue is written out, and where scores are shared, once for each list:
    memory then grows with lists × items.

    Attributes
    ----------
    index
        [entries] entry i is the flat score index[i]
    rows
        [entries] the scores, in float64 where the device has it. Differentiable.
    tier_offsets
        [tiers + 1] ranges of entries, one a tier
    list_offsets
        [lists + 1] ranges of entries, one a list
    tier_list
        [tiers] which list a tier belongs to
    grades
        [tiers] how good a tier is; 0 for a rest
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        super().__init__(values, tiers)
        sizes, per_list, grades = tiers.tier_sizes, tiers.list_offsets.diff(), tiers.grades
        index = self.written
        if tiers.rest:
            index, sizes, per_list, grades = self._with_rest(index, sizes, per_list, grades)
        self.index, self.grades = index, grades
        self.tier_offsets = offsets(sizes)
        self.list_offsets = self.tier_offsets[offsets(per_list)]
        self.tier_list = range_numbers(per_list)
        rows = values.reshape(-1).index_select(0, index)
        if not torch.compiler.is_compiling() and not rows.isfinite().all():
            entry = int((~rows.isfinite()).nonzero()[0, 0])
            number = int(torch.searchsorted(self.list_offsets, entry, right=True)) - 1
            raise self.not_finite(int(index[entry]), f", in list {number},")
        self.rows = rows.to(wide_dtype(values.device))

    @property
    def tier_of(self) -> Tensor:
        """[entries] number of the tier."""
        return range_numbers(self.tier_offsets.diff())

    @property
    def list_of(self) -> Tensor:
        """[entries] number of the list."""
        return range_numbers(self.list_offsets.diff())

    def _with_rest(
        self, index: Tensor, sizes: Tensor, per_list: Tensor, grades: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The same, with the rest of every list as one more tier, where it is not empty."""
        tiers, lengths = self.tiers, self.tiers.lengths
        assert tiers.n_items is not None
        unnamed = torch.ones(len(tiers), tiers.n_items, dtype=torch.bool, device=tiers.device)
        unnamed[range_numbers(lengths), tiers.items] = False
        rest = unnamed.view(-1).nonzero()[:, 0]
        if not self.own:
            rest = rest % tiers.n_items
        left = tiers.n_items - lengths
        has_rest = (left > 0).long()
        return (
            _interleave(index, lengths, rest, left),
            _interleave(sizes, per_list, left[left > 0], has_rest),
            per_list + has_rest,
            _interleave(grades, per_list, grades.new_zeros(int(has_rest.sum())), has_rest),
        )


def _interleave(first: Tensor, sizes: Tensor, second: Tensor, other_sizes: Tensor) -> Tensor:
    """List by list, what `first` has for it and then what `second` has."""
    start = offsets(sizes + other_sizes)[:-1]
    both = first.new_empty(len(first) + len(second))
    both[ranges(start, sizes)] = first
    both[ranges(start + sizes, other_sizes)] = second
    return both


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
