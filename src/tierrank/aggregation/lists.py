"""Lists as they are fitted: each different one once, with how often it was seen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.connectivity import Connectivity, connectivity
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import to_numpy
from tierrank.tiers.selection import equal_lists

MOST_DRAWN = 2**62  # lists of a bootstrap: what numpy can draw
LIGHTEST, HEAVIEST = 1e-50, 1e50  # the largest weight: its square and sums stay in float64's range


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

    @property
    def different(self) -> int:
        """Number of lists that are left."""
        return len(self.tiers)

    @property
    def weight(self) -> float:
        """How often all lists that say something were seen."""
        return float(self.counts.sum())

    @property
    def there(self) -> bool:
        """Whether the lists can be asked, which those of a saved model cannot."""
        return bool(len(self.tiers))

    def connectivity(self) -> Connectivity:
        """Which items were compared with which."""
        return connectivity(self.tiers)

    def drawn(self, random: np.random.Generator) -> CountedLists:
        """As many lists as were seen, drawn from them."""
        return self.with_counts(drawn_counts(self.counts, random))

    def with_counts(self, counts: FloatArray) -> CountedLists:
        """The same lists seen otherwise often; those never seen are left out."""
        there = np.flatnonzero(counts)
        tiers = self.tiers if len(there) == len(counts) else self.tiers[there]
        return replace(self, tiers=tiers, counts=counts[there])


def drawn_counts(counts: FloatArray, random: np.random.Generator) -> FloatArray:
    """How often each list is drawn, when as many are drawn as were seen.

    Where weights do not sum to a whole number, the next one is drawn, and weighted to that sum.

    Raises
    ------
    ValueError
        if the weights cannot be how often lists were seen
    """
    total = float(counts.sum())
    if not 1.5 <= total <= MOST_DRAWN:
        raise ValueError(
            f"a bootstrap draws as many lists as were seen, and the weights sum to {total:g}: "
            "give weights that say how often each list was seen"
        )
    often = random.multinomial(round(total), counts / total)
    return np.asarray(often * (total / round(total)))


def nothing_said() -> ArgumentError:
    """Why lists that compare nothing are refused."""
    return ArgumentError(
        "no list says anything: all are empty, of weight 0, or one tie of all their items. If "
        "items that a list does not name are behind those it names, as on approval ballots, pass ",
        Argument("rest", "last"), ".",
    )  # fmt: skip


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
        as in `Tiers.from_rankings`; what `rankings` know themselves stays without them
    """
    if isinstance(rankings, Games):
        if rest == "last":
            raise ArgumentError(Argument("rest", "last"), " is for rankings: a game has two sides.")
        rankings = rankings.to_rankings()
    own: FloatArray | None = None
    if isinstance(rankings, Rankings):
        rankings, own = rankings.tiers, rankings.weights
    if isinstance(rankings, Tiers):
        tiers = rankings.to("cpu")
        if tiers.n_items is None:
            raise ValueError(
                "worths belong to items that several lists name, and these Tiers have rows of "
                "labels: build them with Tiers.from_rankings, or use a ranker with features"
            )
        if rest not in ("absent", "last"):
            raise ValueError(f'rest must be "absent" or "last", not {rest!r}.')
        if rest == "last" and not tiers.rest:
            tiers = replace(tiers, rest=True)
        if items is not None:
            last: Literal["absent", "last"] = "last" if tiers.rest else "absent"
            tiers = Tiers.from_rankings(tiers.to_rankings(), items=items, rest=last)
    else:
        tiers = Tiers.from_rankings(rankings, items=items, rest=rest)
    return tiers, how_often(np.ones(len(tiers)) if own is None else own, weights, "list")


def how_often(own: FloatArray, weights: Any, one: str) -> FloatArray:
    """How often each list or game, as `one` is called, was seen: its own weight times that given.

    Parameters
    ----------
    own
        [rows] weights that they have themselves
    weights
        [rows] those given beside them, in any form; None: no others
    """
    counts = own if weights is None else own * _checked(weights, len(own), one)
    heaviest = float(counts.max(initial=0))
    if heaviest and not LIGHTEST < heaviest < HEAVIEST:
        raise ValueError(
            f"the largest weight is {heaviest:g}: a weight is how often a {one} was seen. Scale "
            f"them to between {LIGHTEST:g} and {HEAVIEST:g}"
        )
    return counts


def distinct(
    tiers: Tiers, counts: FloatArray, *, ties_speak: bool = False, different: bool = False
) -> CountedLists:
    """Put equal lists together: the same tiers, whatever the order inside them.

    Parameters
    ----------
    tiers, counts
        lists over a catalogue, and how often each was seen
    ties_speak
        whether a list of one tier says something too, as it does to models of ties
    different
        whether it is known that no two are equal
    """
    said = np.ones(len(tiers), bool) if ties_speak else tiers.n_tiers.numpy() > 1
    kept = np.flatnonzero(said & (counts > 0))
    chosen = tiers if len(kept) == len(tiers) else tiers[kept]
    first, which = (np.arange(len(chosen)),) * 2 if different else equal_lists(chosen)
    summed: FloatArray = np.bincount(which, counts[kept], len(first)).astype(np.float64)
    return CountedLists(
        tiers=chosen if len(first) == len(chosen) else chosen[first],
        counts=summed,
        seen=len(tiers),
        total=float(counts.sum()),
        silent=float(counts[~said].sum()),
    )


def _checked(weights: Any, rows: int, one: str) -> FloatArray:
    values = to_numpy(weights, "weights")
    if values.dtype.kind == "O":  # as pandas has whole numbers some of which may be missing
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.shape != (rows,) or values.dtype.kind not in "iufb":
        raise ValueError(
            f"weights are {values.dtype} of shape {values.shape}: give {rows} of them, one number "
            f"a {one}"
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
