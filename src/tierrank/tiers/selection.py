"""Taking lists out of a `Tiers`, and putting several together."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tierrank.randomness import as_generator
from tierrank.tiers.arrays import AnyArray, outside_graphs
from tierrank.tiers.ragged import offsets, range_numbers, ranges, repeat

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers


@outside_graphs
def list_numbers(selection: Any, n_lists: int, device: torch.device) -> Tensor:
    """Give the numbers of the selected lists, from whatever numpy would take along one axis."""
    if isinstance(selection, slice):
        return torch.arange(*_bounds(selection, n_lists), device=device)
    chosen = selection if isinstance(selection, Tensor) else np.asarray(selection)
    chosen = torch.as_tensor(_indexable(chosen, selection), device=device)
    if chosen.dtype == torch.bool:
        if chosen.shape != (n_lists,):
            raise IndexError(
                f"a mask of shape {tuple(chosen.shape)} for {n_lists} lists: give one flag a list."
            )
        return chosen.nonzero().squeeze(1)
    chosen = chosen.to(torch.int64).reshape(-1)
    outside = (chosen < -n_lists) | (chosen >= n_lists)
    if bool(outside.any()):
        raise IndexError(f"list {int(chosen[outside][0])} is out of range: there are {n_lists}.")
    return torch.where(chosen < 0, chosen + n_lists, chosen)


def _bounds(selection: slice, n_lists: int) -> tuple[int, int, int]:
    start, stop, step = selection.indices(n_lists)
    count = len(range(start, stop, step))
    return start, start + count * step, step  # torch refuses empty ranges that point backwards


def _indexable(chosen: Tensor | AnyArray, selection: Any) -> Tensor | AnyArray:
    """An array of integers or flags, or an IndexError."""
    if isinstance(chosen, Tensor):
        fits = not chosen.is_floating_point() and not chosen.is_complex()
        a_flag = chosen.dtype == torch.bool and chosen.dim() == 0
    else:
        if chosen.size == 0 and chosen.dtype.kind == "f":  # np.asarray([]) is float
            chosen = chosen.astype(np.int64)
        fits = chosen.dtype.kind in "iub"
        a_flag = chosen.dtype.kind == "b" and chosen.ndim == 0
        if fits and chosen.dtype.kind != "b":
            chosen = chosen.astype(np.int64)  # a fresh array, of a type that torch knows
    if not fits or a_flag or chosen.ndim > 1:
        raise IndexError(
            f"cannot select lists with {str(selection)[:60]!r} ({type(selection).__name__}): "
            "give a number, a slice, one flag a list, or a 1-D array of numbers."
        )
    return chosen


@outside_graphs
def rows_of(tiers: Tiers, lists: Tensor) -> Tensor:
    """Give the row numbers of these lists, each list's in their original order."""
    if tiers.score_shape is None or len(tiers.score_shape) != 1:
        raise ValueError(
            "rows() is for Tiers from flat labels. Here the first axis of the scores is the lists: "
            "tiers[selection] goes with scores[selection]."
        )
    items, lengths = _items_of(tiers, lists)
    return items[_by_row(items, lengths)]


@outside_graphs
def select(tiers: Tiers, lists: Tensor) -> Tiers:
    """Give the `Tiers` that the data of these lists alone, in this order, would have built.

    Touches only what is selected, so that small batches of large data are quick.
    """
    first = tiers.list_offsets[lists]
    n_tiers = tiers.list_offsets[lists + 1] - first
    chosen = ranges(first, n_tiers)
    sizes = tiers.tier_offsets[chosen + 1] - tiers.tier_offsets[chosen]
    items, lengths = _items_of(tiers, lists)
    score_shape = tiers.score_shape
    if score_shape is not None and len(score_shape) == 1:
        by_row = _by_row(items, lengths)
        items = torch.empty_like(items)
        items[by_row] = torch.arange(len(items), device=items.device)
        score_shape = (len(items),)
    elif score_shape is not None:
        moved = torch.arange(len(lists), device=lists.device) - lists
        items = items + repeat(moved * score_shape[1], lengths)
        score_shape = (len(lists), score_shape[1])
    return replace(
        tiers,
        items=items,
        tier_offsets=offsets(sizes),
        list_offsets=offsets(n_tiers),
        score_shape=score_shape,
        keys=None if tiers.keys is None else tiers.keys[lists.cpu().numpy()],
        labels=None if tiers.labels is None else tiers.labels[chosen],
    )


def _items_of(tiers: Tiers, lists: Tensor) -> tuple[Tensor, Tensor]:
    """The written items of these lists, and how many each list has."""
    start = tiers.tier_offsets[tiers.list_offsets[lists]]
    lengths = tiers.tier_offsets[tiers.list_offsets[lists + 1]] - start
    return tiers.items[ranges(start, lengths)], lengths


def _by_row(items: Tensor, lengths: Tensor) -> Tensor:
    """Order of these entries by list, and by row inside a list."""
    n_rows = int(items.max()) + 1 if len(items) else 0
    return (range_numbers(lengths) * n_rows + items).argsort()


def concatenate(parts: list[Tiers]) -> Tiers:
    """Put the lists of all parts behind each other; the parts must be of one kind."""
    if not parts:
        raise ValueError("there is nothing to concatenate: give at least one Tiers.")
    first = parts[0]
    for number, part in enumerate(parts):
        _check_alike(first, part, number)
    if first.score_shape is None:
        score_shape, heights = None, [0] * len(parts)
    else:
        heights = [int(np.prod(part.score_shape or ())) for part in parts]
        total = sum(part.score_shape[0] for part in parts if part.score_shape)
        score_shape = (total, *first.score_shape[1:])
    return replace(
        first,
        items=_joined([part.items for part in parts], heights),
        tier_offsets=_joined_offsets([part.tier_offsets for part in parts]),
        list_offsets=_joined_offsets([part.list_offsets for part in parts]),
        score_shape=score_shape,
        keys=_joined_keys([part.keys for part in parts]),
        labels=_joined_labels([part.labels for part in parts]),
    )


def _joined(tensors: list[Tensor], heights: list[int]) -> Tensor:
    """Concatenate, each part lifted by the sum of the heights before it."""
    lifted = []
    base = 0
    for tensor, height in zip(tensors, heights, strict=True):
        lifted.append(tensor + base)
        base += height
    return torch.cat(lifted)


def _joined_offsets(borders: list[Tensor]) -> Tensor:
    inner = _joined([b[1:] for b in borders], [int(b[-1]) for b in borders])
    return torch.nn.functional.pad(inner, (1, 0))


def _joined_labels(labels: list[Tensor | None]) -> Tensor | None:
    known = [part for part in labels if part is not None]
    return torch.cat(known) if len(known) == len(labels) else None


def _joined_keys(keys: list[AnyArray | None]) -> AnyArray | None:
    known = [k for k in keys if k is not None]
    if len(known) < len(keys):
        return None
    if len({k.dtype.kind for k in known}) > 1:  # numpy would turn numbers into strings
        known = [k.astype(object) for k in known]
    return np.concatenate(known)


def _check_alike(first: Tiers, part: Tiers, number: int) -> None:
    here, there = _kind(first), _kind(part)
    if here != there:
        raise ValueError(
            f"part 0 has {here} and part {number} has {there}: "
            "concatenate Tiers of one kind, built in one way."
        )
    if first.device != part.device:
        raise ValueError(
            f"part 0 is on {first.device} and part {number} on {part.device}: "
            "move them to one device first, with .to(device)."
        )
    if first.score_shape is not None and part.score_shape is not None:
        if first.score_shape[1:] != part.score_shape[1:]:
            raise ValueError(
                f"part 0 has width {first.score_shape[1]} and part {number} "
                f"{part.score_shape[1]}: pad the labels (and the scores) to one width first, "
                "and mask the padding."
            )
    elif first.n_items != part.n_items or first.names != part.names:
        raise ValueError(
            f"part 0 and part {number} have different catalogues ({first.n_items} and "
            f"{part.n_items} items): build all of them with the same items=."
        )
    elif first.rest != part.rest:
        raise ValueError(
            f"only one of part 0 and part {number} ranks what a list does not name: build all of "
            "them with the same rest=."
        )


def _kind(tiers: Tiers) -> str:
    if tiers.score_shape is None:
        return "catalogue items"
    return "flat rows" if len(tiers.score_shape) == 1 else "padded rows"


@outside_graphs
def without_ties(tiers: Tiers, at_random: bool, generator: torch.Generator | int | None) -> Tiers:
    """Every written item in a tier of its own, by list and tier."""
    items, device = tiers.items, tiers.device
    if at_random:
        lot = torch.rand(
            len(items),
            generator=as_generator(generator, device),
            dtype=torch.float64,
            device=device,
        )
        shuffled = lot.argsort()
        tier_of = torch.repeat_interleave(tiers.tier_sizes)
        items = items[shuffled[tier_of[shuffled].argsort(stable=True)]]
    return replace(
        tiers,
        items=items,
        tier_offsets=torch.arange(len(items) + 1, device=device),
        list_offsets=tiers.tier_offsets[tiers.list_offsets],
        labels=None if tiers.labels is None else repeat(tiers.labels, tiers.tier_sizes),
    )


@outside_graphs
def first_places(tiers: Tiers, k: int) -> Tiers:
    """The tiers that begin within the first k places; all below them in one last tier."""
    if operator.index(k) < 1:
        raise ValueError(f"the first k places are at least 1, not {k}.")
    sizes, per_list = tiers.tier_sizes, tiers.list_offsets.diff()
    list_of = range_numbers(per_list)
    above = tiers.tier_offsets[:-1] - tiers.tier_offsets[tiers.list_offsets[:-1]][list_of]
    if tiers.rest:  # what is no longer written belongs to the rest
        kept = above < k
        items = tiers.items[repeat(kept, sizes)]
    else:  # the first tier beyond k takes in all that follow it
        kept = (above < k) | (above - torch.roll(sizes, 1) < k)
        items = tiers.items
    per_list = torch.zeros_like(per_list).index_add_(
        0, list_of[kept], torch.ones_like(list_of[kept])
    )
    starts = tiers.tier_offsets[:-1][kept]
    return replace(
        tiers,
        items=items,
        tier_offsets=offsets(sizes[kept]) if tiers.rest else _ending(starts, len(items)),
        list_offsets=offsets(per_list),
        labels=None if tiers.labels is None else tiers.labels[kept],
    )


def _ending(starts: Tensor, end: int) -> Tensor:
    """Borders of ranges that begin here, follow each other, and stop at the end."""
    return torch.cat([starts, starts.new_full((1,), end)])
