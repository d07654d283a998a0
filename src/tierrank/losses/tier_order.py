"""Every item of every list, best tier first: the view for objectives that look at single items."""

from __future__ import annotations

import torch
from torch import Tensor

from tierrank.plackett_luce.inputs import wide_dtype
from tierrank.plackett_luce.lists import ScoredLists
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, range_numbers, ranges


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
