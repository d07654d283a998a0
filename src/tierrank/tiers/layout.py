"""The likelihood's view of a `Tiers`: every list one range of rows, its last tier left implicit.

`Layout` is what the native core takes. On a device without it every step is an operation on whole
tensors, and `torch.compile` fuses those that are static: no index to be found, no size to be looked
at, no two numbers that are added into one place. So groups of different sizes (tiers, lists) are
laid out as rows of a table (`Slots`): a sum over a group is a sum along rows, and numbers go from
groups to items and back by gathering only. All of it is made once, outside graphs (`Tables`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from tierrank.tiers.arrays import offsets, outside_graphs, range_numbers, repeat

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers

LayoutTensors: TypeAlias = tuple[Tensor, ...]  # a `Layout` without its `rows`
Partners: TypeAlias = list[tuple[Tensor, Tensor]]  # of a doubling scan, by reach
Made = TypeVar("Made")

FEW = 3  # tiers of up to so many items are summed over their subsets, without an integral
WIDTHS = (2, 4, 8, 16)  # a row of these is summed in float32, if the scores are that
WIDTHS_OF_SUMS = (2, 4, 8, 16, 32, 64)  # a row of sums in float64
COST_OF_A_ROW = 4  # in slots, for the choice between widths


class Layout(NamedTuple):
    """Where the items of every list and of its tiers stand in the flattened scores.

    A list's last tier is never written down: it is what remains of the list's range. So a
    million negatives cost nothing here. (The one exception: scores shared by all lists, with a
    rest. There the range holds what is written, all of it, and the bottom comes from elsewhere.)

    Attributes
    ----------
    rows
        gathers flat scores so that each list's items are one range; None if they are already
    row_offsets
        [lists + 1] that range, after the gather
    order
        places in the gathered rows of the items of every tier but the list's last, by list and tier
    tier_offsets
        [upper tiers + 1] ranges of `order`
    list_offsets
        [lists + 1] ranges of upper tiers
    """

    rows: Tensor | None
    row_offsets: Tensor
    order: Tensor
    tier_offsets: Tensor
    list_offsets: Tensor


@outside_graphs
def layout_of(tiers: Tiers, per_list: bool) -> Layout:
    """Compute what `Tiers.layout` gives."""
    n_lists, device = len(tiers), tiers.device
    lengths = tiers.lengths
    rows: Tensor | None
    if tiers.score_shape is not None:
        rows = _rows_list_by_list(tiers, lengths)
        row_offsets = offsets(lengths)
        places = tiers.items if rows is None else _inverse(rows, tiers.score_shape)[tiers.items]
        return _without_last(tiers, rows, row_offsets, places)
    assert tiers.n_items is not None
    shift = torch.arange(n_lists + 1, device=device) * tiers.n_items
    if per_list and tiers.rest:
        places = tiers.items + repeat(shift[:-1], lengths)
        return _without_last(tiers, None, shift, places, lengths == tiers.n_items)
    rows = tiers.items + repeat(shift[:-1], lengths) if per_list else tiers.items
    places = torch.arange(len(tiers.items), device=device)
    last_is_written = torch.full_like(lengths, not tiers.rest, dtype=torch.bool)
    return _without_last(tiers, rows, offsets(lengths), places, last_is_written)


def _rows_list_by_list(tiers: Tiers, lengths: Tensor) -> Tensor | None:
    """Row numbers by list, then in their original order; None if that is 0, 1, 2, ..."""
    n_rows = len(tiers.items)
    assert tiers.score_shape is not None
    if len(tiers.score_shape) == 2:
        width = tiers.score_shape[1]
        if n_rows == len(tiers) * width:
            return None
        real = torch.zeros(len(tiers) * width, dtype=torch.bool, device=tiers.device)
        real[tiers.items] = True
        return real.nonzero().squeeze(1)
    list_of_item = range_numbers(lengths)
    if torch.equal(torch.bucketize(tiers.items, lengths.cumsum(0), right=True), list_of_item):
        return None  # the items of each list are the rows of its range
    list_of_row = torch.empty_like(tiers.items)
    list_of_row[tiers.items] = list_of_item
    return list_of_row.argsort(stable=True)


def _inverse(rows: Tensor, score_shape: tuple[int, ...]) -> Tensor:
    """Place of every row among `rows` (of no meaning for the holes of padded scores)."""
    place = torch.zeros(score_shape, dtype=torch.int64, device=rows.device).view(-1)
    place[rows] = torch.arange(len(rows), device=rows.device)
    return place


def _without_last(
    tiers: Tiers,
    rows: Tensor | None,
    row_offsets: Tensor,
    places: Tensor,
    last_is_written: Tensor | None = None,
) -> Layout:
    """Leave each list's last tier out of `places`, where it is written at all; None: everywhere."""
    sizes, ends = tiers.tier_sizes, tiers.list_offsets[1:]
    upper = torch.ones_like(sizes, dtype=torch.bool)
    if last_is_written is None:
        before = torch.arange(len(tiers) + 1, device=tiers.device)
    else:
        ends, before = ends[last_is_written], offsets(last_is_written.long())
    upper[ends - 1] = False
    order = places[repeat(upper, sizes)]
    tier_offsets = offsets(sizes[upper])
    list_offsets = tiers.list_offsets - before
    return Layout(rows, row_offsets, order, tier_offsets, list_offsets)


class Slots:
    """Groups of a flat array, each laid out in one or more rows of a table.

    A sum over ten thousand numbers is then one of sums of at most 16: adding equal numbers one
    by one would round each time the same way.

    Attributes
    ----------
    index
        [rows, width] where in the array the number of a slot stands
    filled
        [rows, width] whether there is one
    group
        [rows] the group that a row belongs to
    rows
        the rows as elements of the groups; None if row i is group i
    """

    def __init__(
        self, starts: Tensor, sizes: Tensor, elements: Tensor, widths: tuple[int, ...] = WIDTHS
    ) -> None:
        """Group g holds elements[starts[g] : starts[g] + sizes[g]], which are places."""
        self.width = _best_width(sizes, widths)
        rows = ((sizes + self.width - 1) // self.width).clamp(min=1)
        self.group = range_numbers(rows)
        first = offsets(rows)
        row = torch.arange(len(self.group), device=sizes.device) - first[self.group]
        along = torch.arange(self.width, device=sizes.device)
        place = (row * self.width)[:, None] + along
        self.filled = place < sizes[self.group][:, None]
        place = torch.where(self.filled, place + starts[self.group][:, None], 0)
        self.index = elements[place] if len(elements) else torch.zeros_like(place)
        self.rows: Slots | None = None
        if len(self.group) > len(sizes):
            everything = torch.arange(len(self.group), device=sizes.device)
            self.rows = Slots(first[:-1], rows, everything, WIDTHS_OF_SUMS)

    def take(self, values: Tensor, fill: float) -> Tensor:
        """[rows, width] the numbers of an array; `fill` where a slot has none."""
        if len(values) == 0:
            return values.new_full(self.index.shape, fill) + values.sum()  # for autograd
        taken = values.index_select(0, self.index.reshape(-1)).view(self.index.shape)
        return torch.where(self.filled, taken, fill)

    def spread(self, by_group: Tensor) -> Tensor:
        """[rows, ...] the number of every row's group."""
        return by_group if self.rows is None else by_group.index_select(0, self.group)

    def sum(self, by_slot: Tensor) -> Tensor:
        """[groups, ...] of [rows, width, ...]."""
        return self.sum_rows(by_slot.sum(1))

    def sum_rows(self, by_row: Tensor) -> Tensor:
        """[groups, ...] of [rows, ...]."""
        if self.rows is None:
            return by_row
        inner = self.rows
        taken = by_row.index_select(0, inner.index.reshape(-1))
        taken = taken.view(*inner.index.shape, *by_row.shape[1:])
        filled = inner.filled.view(*inner.filled.shape, *(1,) * (by_row.dim() - 1))
        return inner.sum(torch.where(filled, taken, 0.0))

    def amax(self, by_slot: Tensor) -> Tensor:
        """[groups] of [rows, width]."""
        by_row = by_slot.amax(1)
        return by_row if self.rows is None else self.rows.amax(self.rows.take(by_row, -torch.inf))


def _best_width(sizes: Tensor, widths: tuple[int, ...]) -> int:
    """Wide rows hold large groups in few steps, narrow ones small groups without waste."""

    def slots(width: int) -> int:
        rows = ((sizes + width - 1) // width).clamp(min=1)
        return int(rows.sum()) * (width + COST_OF_A_ROW)

    return min(widths, key=slots) if len(sizes) else widths[0]


class Tables:
    """The tables of a layout (`Layout` without its `rows`).

    Upper tiers are of kinds by their size, because each has its own formula: `few` (tiers of 1,
    of 2, ... items, where there are any: their numbers, and [tiers, n] the rows of their items)
    and `many`. Results of all kinds stand one after the other, and `place_of_tier` and
    `place_of_row` find them there.
    """

    def __init__(self, layout: tuple[Tensor, ...]) -> None:
        row_offsets, order, tier_offsets, list_offsets = layout
        self.layout = layout
        device, sizes, starts = order.device, tier_offsets.diff(), tier_offsets[:-1]
        self.n_lists, self.n_tiers = len(list_offsets) - 1, len(sizes)
        lengths, tiers = row_offsets.diff(), list_offsets.diff()
        self.n_rows = int(lengths.sum())
        self.tier_list, self.row_list = range_numbers(tiers), range_numbers(lengths)

        # tiers along their list
        here = torch.arange(self.n_tiers, device=device)
        tiers_above = here - list_offsets[:-1][self.tier_list]
        tiers_under = list_offsets[1:][self.tier_list] - 1 - here
        self.lowest = tiers_under == 0
        self.next_tier = (here + 1).clamp(max=max(self.n_tiers - 1, 0))
        self.upwards = _neighbours(tiers_under, +1)
        self.downwards = _neighbours(tiers_above, -1)
        self.upper = Slots(starts, sizes, order)
        self.terms = Slots(list_offsets[:-1], tiers, here)

        # the last tier of every list: what remains of its rows
        self.in_last = torch.ones(self.n_rows, dtype=torch.bool, device=device)
        self.in_last[order] = False
        equal_lengths = bool(self.n_rows and (lengths == lengths[0]).all())
        self.last: Slots | None = None
        if not equal_lengths:
            rows = self.in_last.nonzero()[:, 0]
            number = torch.bincount(self.row_list[rows], minlength=self.n_lists)
            self.last = Slots(offsets(number)[:-1], number, rows)

        # the upper tier of a row (0 for those in the last), and its place in the table of these
        tier_of = range_numbers(sizes)
        self.row_tier, self.place_in_upper = torch.zeros(2, self.n_rows, device=device).long()
        self.row_tier[order] = tier_of
        index, filled = self.upper.index, self.upper.filled
        place = torch.arange(index.numel(), device=device).view(index.shape)
        self.place_in_upper[index[filled]] = place[filled]
        self.single_row = (
            ~self.in_last & (sizes[self.row_tier] == 1) if self.n_tiers else ~self.in_last
        )

        # every row pays to the tier just above it, and the bottom to the lowest one
        above = torch.full_like(self.row_list, -1)
        above[order] = torch.where(tiers_above[tier_of] > 0, tier_of - 1, -1)
        bottom_above = torch.where(tiers > 0, list_offsets[1:] - 1, -1)
        above = torch.where(self.in_last, bottom_above[self.row_list], above)
        self.pays, self.paid = above >= 0, above.clamp(min=0)
        self.bottom_pays, self.bottom_paid = bottom_above >= 0, bottom_above.clamp(min=0)

        # tiers by kind, and where their results stand: those of items behind one 0
        kinds = [(sizes == n).nonzero()[:, 0] for n in range(1, FEW + 1)]
        self.many = (sizes > FEW).nonzero()[:, 0]
        self.few = [
            (tiers, order[starts[tiers].unsqueeze(1) + torch.arange(n, device=device)])
            for n, tiers in enumerate(kinds, 1)
            if len(tiers)
        ]
        self.many_slots = Slots(starts[self.many], sizes[self.many], order)
        self.place_of_tier = torch.cat([*kinds, self.many]).argsort()
        self.place_of_row = torch.zeros_like(self.row_list)
        behind = 1
        many = (self.many_slots.index, self.many_slots.filled)
        for index, filled in [*((rows, torch.ones_like(rows) > 0) for _, rows in self.few), many]:
            place = behind + torch.arange(index.numel(), device=device).view(index.shape)
            self.place_of_row[index[filled]] = place[filled]
            behind += index.numel()

    def sum_last(self, by_row: Tensor) -> Tensor:
        """[lists] Σ over the last tier of a list of [rows]."""
        if self.last is None:
            return torch.where(self.in_last, by_row, 0.0).view(self.n_lists, -1).sum(1)
        return self.last.sum(self.last.take(by_row, 0.0))

    def all_in_list(self, by_row: Tensor) -> Tensor:
        """[lists] whether all of a list's [rows] are true."""
        row_offsets = self.layout[0]
        wrong = torch.nn.functional.pad((~by_row).cumsum(0), (1, 0))
        return wrong[row_offsets[1:]] == wrong[row_offsets[:-1]]


def _neighbours(steps_left: Tensor, direction: int) -> Partners:
    """Partners of a doubling scan: for reach 1, 2, 4 … (index of the partner, is it inside?).

    `steps_left[i]` says how many steps in `direction` (+1 or −1) stay inside i's list.
    """
    partners = []
    here = torch.arange(len(steps_left), device=steps_left.device)
    furthest = int(steps_left.max()) if len(steps_left) else 0
    reach = 1
    while reach <= furthest:
        partner = (here + direction * reach).clamp(0, len(here) - 1)
        partners.append((partner, steps_left >= reach))
        reach *= 2
    return partners


def once_a_layout(make: Callable[[LayoutTensors], Made]) -> Callable[[LayoutTensors], Made]:
    """Make something of row_offsets, order, tier_offsets and list_offsets once; keep it with them.

    Operators get these four tensors and nothing else, so that their identity has to tell.
    """
    kept: dict[int, tuple[weakref.ref[Tensor], Tensor, Tensor, Tensor, Made]] = {}

    @wraps(make)
    def found(layout: LayoutTensors) -> Made:
        row_offsets, order, tier_offsets, list_offsets = layout
        key = id(row_offsets)
        entry = kept.get(key)
        if (
            entry is not None
            and entry[0]() is row_offsets
            and entry[1] is order
            and entry[2] is tier_offsets
            and entry[3] is list_offsets
        ):
            return entry[4]
        made = make(layout)

        def forget(_: Any) -> None:
            if (entry := kept.get(key)) is not None and entry[4] is made:
                del kept[key]

        kept[key] = weakref.ref(row_offsets, forget), order, tier_offsets, list_offsets, made
        return made

    return found


@once_a_layout
def _tables_of(layout: LayoutTensors) -> Tables:
    """The tables of a layout, made once and kept as long as its tensors."""
    return Tables(tuple(part.detach() for part in layout))


tables_of = outside_graphs(
    _tables_of,
    "how tiers lie depends on values, which a graph has not: call tiers.tables() before",
)
