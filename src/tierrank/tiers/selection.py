"""`Tiers` from `Tiers`: lists taken out or put together, ties broken, the rest written out."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import (
    as_generator,
    offsets,
    outside_graphs,
    range_numbers,
    ranges,
    repeat,
)

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


def with_rest_written(tiers: Tiers) -> Tiers:
    """The same lists without a rest: in its place, their last tier names every other item.

    Takes memory for lists × items.

    Examples
    --------
    >>> from tierrank import Tiers
    >>> tiers = Tiers.from_rankings([["a"], ["c", "b"]], items=["a", "b", "c"], rest="last")
    >>> with_rest_written(tiers).to_rankings()
    [['a', ('b', 'c')], ['c', 'b', 'a']]
    """
    if not tiers.rest:
        return tiers
    n_lists, n_items = len(tiers), tiers.n_items or 0
    lengths = tiers.lengths.numpy()
    written_list = np.repeat(np.arange(n_lists), lengths)
    in_rest = np.ones((n_lists, n_items), dtype=bool)
    in_rest[written_list, tiers.items.numpy()] = False
    rest_list, rest_items = np.nonzero(in_rest)
    order = np.argsort(np.append(written_list, rest_list), kind="stable")
    rest_size = n_items - lengths
    per_list = np.diff(tiers.list_offsets.numpy())
    # Behind the last tier of every list that does not name all items, insert one.
    sizes = np.insert(
        tiers.tier_sizes.numpy(),
        tiers.list_offsets.numpy()[1:][rest_size > 0],
        rest_size[rest_size > 0],
    )
    return replace(
        tiers,
        items=torch.from_numpy(np.append(tiers.items.numpy(), rest_items)[order]),
        tier_offsets=torch.from_numpy(offsets(sizes)),
        list_offsets=torch.from_numpy(offsets(per_list + (rest_size > 0))),
        rest=False,
        keys=None,
        labels=None,
    )


def equal_lists(tiers: Tiers) -> tuple[IntArray, IntArray]:
    """First of the lists that are equal, for each kind, and [lists] which kind a list is."""
    hashes = list_hashes(tiers)
    one, two = np.ascontiguousarray(hashes["a"]), hashes["b"]
    order = np.argsort(one, kind="stable")  # of the first hash alone, which is much faster
    same = one[order[1:]] == one[order[:-1]]
    if (two[order[1:][same]] == two[order[:-1][same]]).all():
        new = np.append(True, ~same)[: len(order)]
        first = order[new]
        which = np.empty_like(order)
        which[order] = np.cumsum(new) - 1
    else:
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # kinds in order of first appearance
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[which]


def list_hashes(tiers: Tiers) -> AnyArray:
    """[lists] two 64-bit sums over a list's items of a hash of (item, tier's place), "a" and "b".

    They do not depend on the order inside a tier. That different lists agree in both is as probable
    as a fault of the memory.
    """
    items = tiers.items.numpy().astype(np.uint64)
    list_offsets, tier_offsets = tiers.list_offsets.numpy(), tiers.tier_offsets.numpy()
    per_list = np.diff(list_offsets)
    place = np.arange(len(tier_offsets) - 1) - np.repeat(list_offsets[:-1], per_list)
    place = np.repeat(place, np.diff(tier_offsets)).astype(np.uint64)
    borders = tier_offsets[list_offsets]
    both = np.empty(len(tiers), dtype=[("a", np.uint64), ("b", np.uint64)])
    for name, seed in (("a", 0x9E3779B97F4A7C15), ("b", 0xD1B54A32D192ED03)):
        hashed = _mixed(_mixed(items + np.uint64(seed)) ^ (place * np.uint64(0xA24BAED4963EE407)))
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashed, dtype=np.uint64)])
        both[name] = running[borders[1:]] - running[borders[:-1]]
    return both


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the input changes half of the output's."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
