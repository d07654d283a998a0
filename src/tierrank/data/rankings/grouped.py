"""Rows of (list, item, value) as tiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from tierrank._types import AnyArray, IntArray
from tierrank.data.tables.assembly import FloatArray
from tierrank.data.text import shown
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets
from tierrank.tiers.catalogue import Catalogue


class Entries(NamedTuple):
    """Items of lists, in any order; a lower value is better, and equal ones tie."""

    lists: IntArray  # [entries] 0 .. lists - 1, each at least once
    items: IntArray  # [entries]
    values: FloatArray  # [entries] no NaN
    keys: AnyArray  # [lists] what the lists are called
    catalogue: Catalogue

    def tiers(self, rest: bool) -> Tiers:
        """Sort by list, then by value, then by position."""
        order = np.lexsort((self.values, self.lists))
        lists, values = self.lists[order], self.values[order]
        starts = np.ones(len(order), dtype=bool)
        starts[1:] = (lists[1:] != lists[:-1]) | (values[1:] != values[:-1])
        first = np.flatnonzero(starts)
        return Tiers(
            items=torch.from_numpy(self.items[order]),
            tier_offsets=torch.from_numpy(np.append(first, len(order))),
            list_offsets=torch.from_numpy(
                offsets(np.bincount(lists[first], minlength=len(self.keys)))
            ),
            n_items=self.catalogue.size,
            names=self.catalogue.names,
            keys=self.keys,
            rest=rest,
        )


def without_repeats(
    entries: Entries, keep_best: bool, refuse: Callable[[int, str], Any]
) -> Entries:
    """Keep the best place of an item that a list has twice, or call `refuse` with the second."""
    pairs = entries.lists * entries.catalogue.size + entries.items
    order = np.lexsort((entries.values, pairs)) if keep_best else np.argsort(pairs, kind="stable")
    again = np.zeros(len(order), dtype=bool)
    again[1:] = pairs[order[1:]] == pairs[order[:-1]]
    if not again.any():
        return entries
    if not keep_best:
        at = int(order[again].min())
        name = shown(entries.catalogue.name(int(entries.items[at])))
        key = shown(entries.keys[entries.lists[at]])
        refuse(
            at,
            f"the item {name} stands in the list {key} twice: leave one out, or pass "
            'twice="best" to keep the better.',
        )
    kept = np.sort(order[~again])
    return entries._replace(
        lists=entries.lists[kept], items=entries.items[kept], values=entries.values[kept]
    )
