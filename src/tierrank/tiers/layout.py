"""The likelihood's view of a `Tiers`: every list one range of rows, its last tier left implicit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from tierrank.tiers.arrays import outside_graphs
from tierrank.tiers.ragged import offsets, range_numbers, repeat

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers


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
        return _without_last(tiers, rows, row_offsets, places, torch.ones_like(lengths) > 0)
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
    list_of_row = torch.empty_like(tiers.items)
    list_of_row[tiers.items] = range_numbers(lengths)
    if bool((list_of_row[1:] >= list_of_row[:-1]).all()):
        return None
    return list_of_row.argsort(stable=True)


def _inverse(rows: Tensor, score_shape: tuple[int, ...]) -> Tensor:
    """Place of every row among `rows` (of no meaning for the holes of padded scores)."""
    place = torch.zeros(score_shape, dtype=torch.int64, device=rows.device).view(-1)
    place[rows] = torch.arange(len(rows), device=rows.device)
    return place


def _without_last(
    tiers: Tiers, rows: Tensor | None, row_offsets: Tensor, places: Tensor, last_is_written: Tensor
) -> Layout:
    """Leave each list's last tier out of `places`, where it is written at all."""
    sizes = tiers.tier_sizes
    upper = torch.ones_like(sizes, dtype=torch.bool)
    upper[tiers.list_offsets[1:][last_is_written] - 1] = False
    order = places[repeat(upper, sizes)]
    tier_offsets = offsets(sizes[upper])
    list_offsets = tiers.list_offsets - offsets(last_is_written.long())
    return Layout(rows, row_offsets, order, tier_offsets, list_offsets)
