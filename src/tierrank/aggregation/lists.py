"""Lists as they are fitted: each different one once, with how often it was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import IntArray, to_numpy

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CountedLists:
    """Lists over a catalogue, no two alike, and how often each was seen.

    Attributes
    ----------
    tiers
        the different lists that say something, those of one tier left out
    counts
        [lists] how often each was seen
    seen
        number of lists before equal ones were put together
    total
        their total weight, lists of one tier among them
    silent
        total weight of the lists of one tier, which say nothing of worths
    """

    tiers: Tiers
    counts: FloatArray
    seen: int
    total: float
    silent: float

    @property
    def n_items(self) -> int:
        """Size of the catalogue."""
        assert self.tiers.n_items is not None
        return self.tiers.n_items

    @property
    def items(self) -> tuple[Any, ...]:
        """Names of the catalogue's items; their numbers if they have none."""
        return self.tiers.names or tuple(range(self.n_items))

    @property
    def entries(self) -> int:
        """Number of items in all lists."""
        return len(self.tiers.items)

    def with_counts(self, counts: FloatArray) -> CountedLists:
        """The same lists seen otherwise often; those never seen are left out."""
        there = np.flatnonzero(counts)
        tiers = self.tiers if len(there) == len(counts) else self.tiers[there]
        return replace(self, tiers=tiers, counts=counts[there])


def weighted_lists(
    rankings: Any,
    weights: Any = None,
    items: Any = None,
    rest: Literal["absent", "last"] = "absent",
) -> tuple[Tiers, FloatArray]:
    """Take rankings in any form: the lists, and how often each was seen.

    Parameters
    ----------
    rankings
        `tierrank.data.Rankings` or `Games`, a `Tiers` over a catalogue, or what
        `Tiers.from_rankings` takes
    weights
        [lists] how often each was seen; times the weights that `rankings` may have itself
    items, rest
        as in `Tiers.from_rankings`, for plain rankings
    """
    if isinstance(rankings, Games):
        rankings = rankings.to_rankings()
    own: FloatArray | None = None
    if isinstance(rankings, Rankings):
        rankings, own = rankings.tiers, rankings.weights
    if isinstance(rankings, Tiers):
        if items is not None or rest != "absent":
            raise ValueError("items and rest go with plain rankings; these know theirs already")
        tiers = rankings.to("cpu")
        if tiers.n_items is None:
            raise ValueError(
                "worths belong to items that several lists name, and these Tiers have rows of "
                "labels: build them with Tiers.from_rankings, or use a ranker with features"
            )
    else:
        tiers = Tiers.from_rankings(rankings, items=items, rest=rest)
    counts = np.ones(len(tiers)) if own is None else own
    if weights is not None:
        counts = counts * _checked(weights, len(tiers))
    return tiers, counts


def distinct(tiers: Tiers, counts: FloatArray, *, ties_speak: bool = False) -> CountedLists:
    """Put equal lists together: the same tiers, whatever the order inside them.

    Parameters
    ----------
    tiers, counts
        lists over a catalogue, and how often each was seen
    ties_speak
        whether a list of one tier says something too, as it does to models of ties
    """
    said = np.ones(len(tiers), bool) if ties_speak else tiers.n_tiers.numpy() > 1
    kept = np.flatnonzero(said & (counts > 0))
    chosen = tiers if len(kept) == len(tiers) else tiers[kept]
    first, which = _equal_lists(chosen)
    summed: FloatArray = np.bincount(which, counts[kept], len(first)).astype(np.float64)
    return CountedLists(
        tiers=chosen if len(first) == len(chosen) else chosen[first],
        counts=summed,
        seen=len(tiers),
        total=float(counts.sum()),
        silent=float(counts[~said].sum()),
    )


def _equal_lists(tiers: Tiers) -> tuple[IntArray, IntArray]:
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


def _checked(weights: Any, lists: int) -> FloatArray:
    values = to_numpy(weights, "weights")
    if values.shape != (lists,) or values.dtype.kind not in "iufb":
        raise ValueError(
            f"weights are one number a list, {lists} in all, not {values.dtype} of shape "
            f"{values.shape}"
        )
    values = values.astype(np.float64)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"weights[{at}] is {values[at]}: a weight is how often, 0 or more")
    return values


def largest_ties(tiers: Tiers) -> tuple[IntArray, IntArray]:
    """[lists] sizes of the largest tier that has something below it, and of the last tier.

    A rest that is not written down counts as more than any tier.
    """
    if tiers.rest:
        many = np.full(len(tiers), np.iinfo(np.int64).max)
        return many, many
    sizes = tiers.tier_sizes.numpy().copy()
    ends = tiers.list_offsets.numpy()
    last = sizes[ends[1:] - 1].copy()
    sizes[ends[1:] - 1] = 0
    return np.maximum.reduceat(sizes, ends[:-1]), last
