"""Tiers from rankings: named items, best first, with ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from tierrank.tiers.arrays import AnyArray, IntArray, Parts, device_of, offsets, preview, to_numpy
from tierrank.tiers.catalogue import (
    Catalogue,
    encode,
    encode_array,
    entry_keys,
    flatten,
    lists_of,
    read_catalogue,
)
from tierrank.tiers.convert import is_tie

_HINT = (
    "A ranking is a sequence of items, best first, and a tie in it is a tuple or a set; "
    "for a single ranking write [ranking]."
)


def parts_from_rankings(rankings: Any, items: Any, rest: str) -> Parts:
    """Build the fields of `Tiers.from_rankings`, which says what the arguments mean."""
    if rest not in ("absent", "last"):
        raise ValueError(f'rest must be "absent" or "last", not {rest!r}.')
    stated = read_catalogue(items)
    strict = _integer_table(rankings)
    if strict is not None:
        per_list = np.full(len(strict), strict.shape[1])
        tier_sizes = np.ones(strict.size, dtype=np.int64)
        borders = offsets(per_list)
        codes, catalogue = encode_array(strict.ravel(), borders, stated)
    else:
        lists = lists_of(rankings, "ranking", _HINT)
        per_list = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        names, tier_sizes = _untie(flatten(lists), offsets(per_list))
        borders = offsets(tier_sizes)[offsets(per_list)]
        codes, catalogue = encode(names, borders, stated)
    if rest == "absent" and not per_list.all():
        raise ValueError(
            f"list {int(np.argmin(per_list != 0))}: the ranking is empty. Leave it out."
        )
    tier_offsets = offsets(tier_sizes)
    _refuse_twice(codes, borders, tier_offsets, catalogue)
    return Parts(
        items=codes,
        tier_offsets=tier_offsets,
        list_offsets=offsets(per_list),
        n_items=catalogue.size,
        rest=rest == "last",
        names=catalogue.names,
        device=device_of(rankings),
    )


def _integer_table(rankings: Any) -> AnyArray | None:
    """A 2-D array of integers (a data frame of them as well), or None."""
    if not isinstance(rankings, Tensor | np.ndarray) and not hasattr(rankings, "to_numpy"):
        return None
    table = to_numpy(rankings, "rankings")
    return table if table.ndim == 2 and table.dtype.kind in "iu" else None


def _untie(entries: list[Any], borders: IntArray) -> tuple[list[Any], IntArray]:
    """Give the names of all items, and the size of every tier."""
    tie_types = {
        kind for kind in set(map(type, entries)) if issubclass(kind, tuple | set | frozenset)
    }
    if not tie_types:
        return entries, np.ones(len(entries), dtype=np.int64)
    ties = [_in_order(entry) if is_tie(entry) else (entry,) for entry in entries]
    sizes = np.fromiter(map(len, ties), dtype=np.int64, count=len(ties))
    if not sizes.all():
        at = int(np.argmin(sizes != 0))
        number = int(np.searchsorted(borders, at, side="right")) - 1
        raise ValueError(
            f"list {number}: the tie at place {at - borders[number]} is empty. Leave it out."
        )
    return flatten(ties), sizes


def _in_order(tie: Any) -> Any:
    """Sort a set: its own order changes from one run of Python to the next."""
    if isinstance(tie, tuple):
        return tie
    try:
        return sorted(tie)
    except TypeError:
        return sorted(tie, key=lambda name: (type(name).__name__, repr(name)))


def _refuse_twice(
    codes: IntArray, borders: IntArray, tier_offsets: IntArray, catalogue: Catalogue
) -> None:
    keys = entry_keys(codes, borders, catalogue.size)
    in_order = np.sort(keys)
    same = in_order[1:] == in_order[:-1]
    if not same.any():
        return
    key = in_order[int(np.argmax(same))]
    tiers = np.searchsorted(tier_offsets, np.flatnonzero(keys == key), side="right")
    problem = "twice in one tie" if tiers[0] == tiers[1] else "in two tiers"
    raise ValueError(
        f"list {key // catalogue.size}: item {preview(catalogue.name(int(key % catalogue.size)))} "
        f"is {problem}. Name each item once."
    )
