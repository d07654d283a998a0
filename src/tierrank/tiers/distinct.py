"""Which lists are equal: the same tiers, whatever the order inside them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tierrank.tiers.arrays import IntArray
from tierrank.tiers.container import Tiers


def equal_lists(tiers: Tiers) -> tuple[IntArray, IntArray]:
    """First of the lists that are equal, for each kind, and [lists] which kind a list is.

    A list is told by two 64-bit sums over its items of a hash of (item, tier's place), which do
    not depend on the order inside a tier. That different lists agree in both is as probable as a
    fault of the memory.
    """
    items = tiers.items.numpy().astype(np.uint64)
    list_offsets, tier_offsets = tiers.list_offsets.numpy(), tiers.tier_offsets.numpy()
    per_list = np.diff(list_offsets)
    place = np.arange(len(tier_offsets) - 1) - np.repeat(list_offsets[:-1], per_list)
    place = np.repeat(place, np.diff(tier_offsets)).astype(np.uint64)
    borders = tier_offsets[list_offsets]
    sums = []
    for seed in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
        hashed = _mixed(_mixed(items + np.uint64(seed)) ^ (place * np.uint64(0xA24BAED4963EE407)))
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashed, dtype=np.uint64)])
        sums.append(running[borders[1:]] - running[borders[:-1]])
    both = np.empty(len(tiers), dtype=[("a", np.uint64), ("b", np.uint64)])
    both["a"], both["b"] = sums
    _, first, which = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(first)  # kinds in order of first appearance
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[which]


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the input changes half of the output's."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
