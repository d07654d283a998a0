"""Lists on the workers of a Dask cluster, as a term that a fit minimises.

Scores travel to the parts, and what they say there comes back: value, gradient, products with the
Hessian, added up on the way, always in the same order. The lists stay where they are. All of it is
a function of a part and of what was sent to it, so that what a worker takes along when it dies is
computed again by another, from the files if it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tierrank._types import FloatArray
from tierrank.aggregation.connectivity import (
    ComparisonGraph,
    Connectivity,
    comparison_graph,
    condensed,
    connectivity_of,
    joined,
)
from tierrank.aggregation.lists import CountedLists, distinct, drawn_counts, weighted_lists
from tierrank.aggregation.state import counts_of, lists_from
from tierrank.aggregation.terms import Sum, prepared, terms_of
from tierrank.data.rankings.container import PartedRankings
from tierrank.data.rankings.games import Games
from tierrank.losses import find
from tierrank.training.optim import Hessian

ADDED = 8  # numbers, or arrays, that are added in one task


@dataclass(frozen=True)
class PartedLists(CountedLists):
    """Lists that lie in parts on workers; `tiers` has none of them, and the names.

    Attributes
    ----------
    client
        of the cluster
    parts
        futures of `CountedLists`
    weights
        [parts] how often the lists of each were seen
    written
        number of items in all lists
    """

    client: Any = None
    parts: Sequence[Any] = ()
    weights: FloatArray = None  # type: ignore[assignment]
    written: int = 0

    @property
    def weight(self) -> float:
        """How often all lists that say something were seen."""
        return float(self.weights.sum())

    @property
    def entries(self) -> int:
        """Number of items in all lists."""
        return self.written

    @property
    def there(self) -> bool:
        """Whether the lists can be asked."""
        return bool(len(self.parts))

    def connectivity(self) -> Connectivity:
        """Which items were compared with which."""
        graphs = self.client.gather(self.client.map(_condensed, self.parts, pure=False))
        return connectivity_of(joined(graphs, self.n_items), self.n_items, self.tiers.names)

    def drawn(self, random: np.random.Generator) -> PartedLists:
        """As many lists as were seen, drawn from them: first from which part, then which there."""
        often, total = drawn_counts(self.weights, random), self.weight
        seeds = random.integers(2**31, size=len(self.parts)).tolist()
        parts = self.client.map(
            _drawn, self.parts, often.tolist(), seeds, unit=total / round(total), pure=False
        )
        there = np.flatnonzero(often)
        return replace(self, parts=[parts[part] for part in there], weights=often[there])

    def __reduce__(self) -> tuple[Any, ...]:  # a copy has no cluster, as a saved model has no lists
        return lists_from, (self.items, counts_of(self))


def parted_lists(
    rankings: PartedRankings,
    rest: Literal["absent", "last"],
    name: str,
    params: dict[str, Any] | None,
    seed: int,
) -> PartedLists:
    """The lists as an objective sees them, where they lie; as `prepared` and `distinct` do it."""
    client = rankings.client
    counted = client.map(
        _counted, rankings.parts, range(len(rankings.parts)), rest=rest, name=name, params=params,
        seed=seed, pure=False,
    )  # fmt: skip
    found = np.array(client.gather(client.map(_about, counted, pure=False)))  # [parts, 5]
    lists, written, weights, total, silent = found.T
    speak = np.flatnonzero(lists)
    about = {"seen": rankings.seen, "total": total.sum(), "silent": silent.sum()}
    none = lists_from(rankings.items, about)
    return PartedLists(
        **vars(none), client=client, parts=[counted[part] for part in speak],
        weights=weights[speak], written=int(written.sum()),
    )  # fmt: skip


def _counted(
    part: Any, number: int, rest: Any, name: str, params: dict[str, Any] | None, seed: int
) -> CountedLists | None:
    """The lists of a part, which may be None; ties broken at random, by a seed of its own."""
    if part is None:
        return None
    lists = part.to_rankings() if isinstance(part, Games) else part
    own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return distinct(*prepared(*weighted_lists(lists, rest=rest), name, params, own))


def _about(lists: CountedLists | None) -> tuple[float, ...]:
    """Lists that say something, their entries and weight; the weight of all, and of silent ones."""
    if lists is None:
        return (0.0,) * 5
    return len(lists.tiers), lists.entries, lists.weight, lists.total, lists.silent


def _condensed(lists: CountedLists) -> ComparisonGraph:
    return condensed(comparison_graph(lists.tiers, False), lists.n_items)


def _drawn(lists: CountedLists, often: float, seed: int, unit: float) -> CountedLists:
    """Lists of this weight, of a unit each, drawn by how often each was seen."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(round(often / unit), lists.counts / lists.weight)
    return lists.with_counts(np.asarray(counts * unit, dtype=np.float64))


class Part:
    """The terms of a part's lists, on its worker, and the second derivatives asked for last."""

    def __init__(self, lists: CountedLists, name: str, params: dict[str, Any] | None) -> None:
        self.given = lists, name, params
        self._terms = terms_of(lists, name, params)
        self._last: tuple[FloatArray, Hessian] | None = None

    def __reduce__(self) -> tuple[Any, ...]:  # native lists cannot be sent, and are made anew
        return type(self), self.given

    def value_and_gradient(self, scores: FloatArray) -> FloatArray:
        """[1 + items] both of them."""
        value, gradient = Sum(self._terms).value_and_gradient(scores)
        return np.append(value, gradient)

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives, which many products are asked of."""
        if self._last is None or not np.array_equal(self._last[0], scores):
            self._last = None  # or two of them would be there
            self._last = scores, Sum(self._terms).hessian(scores)
        return self._last[1]

    def outer_products(self, scores: FloatArray) -> FloatArray:
        """[items, items] Σ count · slope · slopeᵀ."""
        return np.asarray(sum(term.outer_products(scores) for term in self._terms))


class PartedTerm:
    """Σ over all parts of Σ count · loss."""

    def __init__(self, lists: PartedLists, name: str, params: dict[str, Any] | None) -> None:
        entry = find(name)
        self.twice = entry.twice_differentiable and entry.shift_invariant
        self._client = lists.client
        self._parts = lists.client.map(Part, lists.parts, name=name, params=params, pure=False)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        found = self._summed(_value_and_gradient, scores=self._sent(scores))
        return float(found[0]), found[1:]

    def hessian(self, scores: FloatArray) -> Hessian:
        return PartedHessian(self, scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        return self._summed(_outer_products, scores=self._sent(scores))  # type: ignore[no-any-return]

    def _sent(self, numbers: FloatArray) -> Any:
        """A future of these numbers: unlike scattered ones, they outlive the worker they are on."""
        return self._client.submit(np.asarray, numbers, pure=False)

    def _summed(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """The sum of what a function gives for the parts."""
        left = self._client.map(function, self._parts, pure=False, **arguments)
        while len(left) > 1:
            some = [left[start : start + ADDED] for start in range(0, len(left), ADDED)]
            left = [self._client.submit(_added, each, pure=False) for each in some]
        return self._client.gather(left[0])


class PartedHessian:
    """Second derivatives of a `PartedTerm`."""

    def __init__(self, term: PartedTerm, scores: FloatArray) -> None:
        self._term, self._scores = term, term._sent(scores)

    def product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self._of("product", self._term._sent(vector)))

    def diagonal(self) -> FloatArray | None:
        return self._of("diagonal")  # type: ignore[no-any-return]

    def matrix(self) -> FloatArray:
        return np.array(self._of("matrix"))

    def _of(self, what: str, *vector: Any) -> Any:
        return self._term._summed(_second_derivatives, scores=self._scores, what=what,
                                  vector=vector)  # fmt: skip


def _value_and_gradient(part: Part, scores: FloatArray) -> FloatArray:
    return part.value_and_gradient(scores)


def _outer_products(part: Part, scores: FloatArray) -> FloatArray:
    return part.outer_products(scores)


def _second_derivatives(part: Part, scores: FloatArray, what: str, vector: tuple[Any, ...]) -> Any:
    return getattr(part.hessian(scores), what)(*vector)


def _added(several: list[Any]) -> Any:
    """Their sum in this order; None if one of them is."""
    return None if any(one is None for one in several) else sum(several[1:], several[0])
