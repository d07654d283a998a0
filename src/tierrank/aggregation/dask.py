"""Lists in parts, on the workers of a Dask cluster or packed here, as a term that a fit minimises.

Scores travel to the parts, and what they say there comes back: value, gradient, products with the
Hessian, added up on the way, always in the same order. The lists stay where they are. All of it is
a function of a part and of what was sent to it, so that what a worker takes along when it dies is
computed again by another, from the files if it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

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
from tierrank.aggregation.lists import (
    CountedLists,
    distinct,
    drawn_counts,
    largest_ties,
    weighted_lists,
)
from tierrank.aggregation.state import counts_of, lists_from
from tierrank.aggregation.terms import Last, ListTerm, Sum, prepared, terms_of
from tierrank.data.cluster import gathered, workers_of
from tierrank.data.rankings.container import Packed, PartedRankings, Rankings
from tierrank.losses import find
from tierrank.training.optim import Hessian

ADDED = 4  # numbers, or arrays, that are added in one task
SAMPLES = 2_000_000, 10_000_000  # entries whose estimates are where fits to more begin
KEPT = 20_000_000  # entries of a process that are kept unpacked, with the matrices of their ties


@dataclass(frozen=True)
class PartedLists(CountedLists):
    """Lists that lie in parts on workers; `tiers` has none of them, and the names.

    Attributes
    ----------
    client
        of the cluster
    parts
        futures of `Packed` lists
    weights
        [parts] how often the lists of each were seen
    lists, written
        number of all lists, and of the items in them
    """

    client: Any = None
    parts: Sequence[Any] = ()
    weights: FloatArray = None  # type: ignore[assignment]
    lists: int = 0
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
    def different(self) -> int:
        """Number of lists; those of different parts may be equal."""
        return self.lists

    @property
    def there(self) -> bool:
        """Whether the lists can be asked."""
        return bool(len(self.parts))

    def samples(self) -> Iterator[list[CountedLists]]:
        """The first lists of many, then more of them: from which better guesses are soon found."""
        each = self.written / len(self.parts)
        for entries in SAMPLES:
            if self.written >= 4 * entries:
                some = list(self.parts[: max(2, round(entries / each))])
                yield [_lists(part) for part in gathered(self.client, some)]

    def connectivity(self) -> Connectivity:
        """Which items were compared with which."""
        graphs: list[ComparisonGraph] = []
        some = 2
        while True:  # some first: where these connect all items, the others change nothing
            parts = self.parts[len(graphs) : some]
            graphs += gathered(self.client, self.client.map(_condensed, parts, pure=False))
            found = connectivity_of(joined(graphs, self.n_items), self.n_items, self.tiers.names)
            if found.connected or len(graphs) == len(self.parts):
                return found
            some *= 4

    def summed(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """The sum over the parts of a function of their lists, `CountedLists`."""
        kept = {name: sent(self.client, value) for name, value in arguments.items()}
        return summed(self.client, _of_lists, self.parts, asked=function, **kept)

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
    facts = np.array(gathered(client, client.map(_facts, counted, pure=False)))  # [parts, 8]
    lists, written, weights = facts[:, :6].reshape(-1, 3).T
    speak = np.flatnonzero(lists)  # of each part, its strict lists and the others
    total, silent = facts[:, 6:].sum(axis=0)
    none = lists_from(rankings.items, {"seen": rankings.seen, "total": total, "silent": silent})
    parts = [client.submit(_packed, counted[at // 2], at % 2, pure=False) for at in speak.tolist()]
    return PartedLists(
        **vars(none), client=client, parts=parts, weights=weights[speak],
        lists=int(lists.sum()), written=int(written.sum()),
    )  # fmt: skip


class _Counted(NamedTuple):
    """Strict lists of a part, and others; of both, how many, entries, weight; all, and silent."""

    lists: list[Packed]
    facts: list[float]


def _counted(
    part: Packed | None, number: int, rest: Any, name: str, params: dict[str, Any] | None, seed: int
) -> _Counted:
    """The lists of a part, which may be None; ties broken at random, by a seed of its own."""
    if part is None:
        return _Counted([], [0.0] * 8)
    found = part.unpacked()
    given = weighted_lists(found, rest=rest)
    own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    seen = prepared(*given, name, params, own)
    lists = distinct(*seen, different=seen[0] is given[0] and isinstance(found, Rankings))
    strict = np.maximum(*largest_ties(lists.tiers)) <= 1  # so that no term has to sort them out
    kinds = [
        Rankings(lists.tiers[rows], lists.counts[rows])
        for rows in (np.flatnonzero(strict), np.flatnonzero(~strict))
    ]
    facts = [fact for each in kinds for fact in (len(each), each.entries, each.weights.sum())]
    return _Counted([each.packed() for each in kinds], [*facts, lists.total, lists.silent])


def _facts(counted: _Counted) -> list[float]:
    return counted.facts


def _packed(counted: _Counted, kind: int) -> Packed:
    return counted.lists[kind]


def _lists(part: Packed) -> CountedLists:
    """Those of a part, as a fit has them."""
    lists = part.unpacked()
    return CountedLists(lists.tiers, lists.weights, len(lists), float(lists.weights.sum()), 0.0)


def _of_lists(part: Packed, asked: Callable[..., Any], **arguments: Any) -> Any:
    return asked(_lists(part), **arguments)


def _condensed(part: Packed) -> ComparisonGraph:
    lists = _lists(part)
    return condensed(comparison_graph(lists.tiers, False), lists.n_items)


def _drawn(part: Packed, often: float, seed: int, unit: float) -> Packed:
    """Lists of this weight, of a unit each, drawn by how often each was seen."""
    random, lists = np.random.default_rng(seed), _lists(part)
    counts = random.multinomial(round(often / unit), lists.counts / lists.weight)
    drawn = lists.with_counts(np.asarray(counts * unit, dtype=np.float64))
    return Rankings(drawn.tiers, drawn.counts).packed()


class Part:
    """The terms of a part's lists, on its worker, and the second derivatives asked for last.

    Where `keep` is False, they are made anew whenever they are asked for: that takes about twice as
    long, and a tenth of the memory.
    """

    def __init__(self, part: Packed, name: str, params: dict[str, Any] | None, keep: bool) -> None:
        self.given = part, name, params, keep
        self._kept = self._made() if keep else None
        self._last = Last[Hessian]()

    def __reduce__(self) -> tuple[Any, ...]:  # native lists cannot be sent, and are made anew
        return type(self), self.given

    def _made(self) -> Sequence[ListTerm]:
        part, name, params, _ = self.given
        return terms_of(_lists(part), name, params)

    @property
    def _terms(self) -> Sequence[ListTerm]:
        return self._made() if self._kept is None else self._kept

    def derivatives(self, scores: FloatArray) -> FloatArray:
        """[1 + 2 · items] the value, the gradient, and the Hessian's diagonal, NaN if unknown.

        The last is always asked for next, and found with the others in one pass.
        """
        terms = self._terms
        value, gradient = Sum(terms).value_and_gradient(scores)
        diagonal = self._hessian(terms, scores).diagonal()
        if diagonal is None:
            diagonal = np.full_like(gradient, np.nan)
        return np.concatenate([[value], gradient, diagonal])

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives, which many products are asked of."""
        return self._hessian(self._terms, scores)

    def _hessian(self, terms: Sequence[ListTerm], scores: FloatArray) -> Hessian:
        if self._kept is None:
            return Sum(terms).hessian(scores)
        return self._last.at(scores, Sum(terms).hessian)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        """[items, items] Σ count · slope · slopeᵀ."""
        return np.asarray(sum(term.outer_products(scores) for term in self._terms))


class PartedTerm:
    """Σ over all parts of Σ count · loss."""

    def __init__(self, lists: PartedLists, name: str, params: dict[str, Any] | None) -> None:
        self.twice = find(name).suits_newton
        self._client = lists.client
        self._diagonal: tuple[FloatArray, FloatArray | None] = np.zeros(0), None
        keep = lists.written <= KEPT * max(len(workers_of(lists.client)), 1)
        self._parts = lists.client.map(
            Part, lists.parts, name=name, params=params, keep=keep, pure=False
        )

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        found = self._summed(_derivatives, scores=self._sent(scores))
        value, gradient, diagonal = np.split(found, [1, 1 + len(scores)])
        self._diagonal = scores.copy(), None if np.isnan(diagonal).all() else diagonal
        return float(value[0]), gradient

    def hessian(self, scores: FloatArray) -> Hessian:
        if not np.array_equal(self._diagonal[0], scores):
            self.value_and_gradient(scores)
        return PartedHessian(self, scores, self._diagonal[1])

    def outer_products(self, scores: FloatArray) -> FloatArray:
        return self._summed(_outer_products, scores=self._sent(scores))  # type: ignore[no-any-return]

    def _sent(self, numbers: FloatArray) -> Any:
        return sent(self._client, numbers)

    def _summed(self, function: Callable[..., Any], **arguments: Any) -> Any:
        return summed(self._client, function, self._parts, **arguments)


def sent(client: Any, value: Any) -> Any:
    """A future of what is sent once: unlike scattered ones, it outlives the worker it is on."""
    return client.submit(_itself, value, pure=False)


def _itself(value: Any) -> Any:
    return value


def summed(
    client: Any, function: Callable[..., Any], parts: Sequence[Any], **arguments: Any
) -> Any:
    """The sum of what a function gives for the parts, always added in the same order."""
    left = [
        client.submit(_added, client.map(function, some, pure=False, **arguments), pure=False)
        for some in _groups(parts)
    ]
    while len(left) > 1:
        left = [client.submit(_added, some, pure=False) for some in _groups(left)]
    return gathered(client, left)[0]


def _groups(several: Sequence[Any]) -> list[Sequence[Any]]:
    return [several[start : start + ADDED] for start in range(0, len(several), ADDED)]


class PartedHessian:
    """Second derivatives of a `PartedTerm`."""

    def __init__(self, term: PartedTerm, scores: FloatArray, diagonal: FloatArray | None) -> None:
        self._term, self._scores, self._diagonal = term, term._sent(scores), diagonal

    def product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self._of("product", self._term._sent(vector)))

    def diagonal(self) -> FloatArray | None:
        return self._diagonal

    def matrix(self) -> FloatArray:
        return np.array(self._of("matrix"))

    def _of(self, what: str, *vector: Any) -> Any:
        return self._term._summed(_second_derivatives, scores=self._scores, what=what,
                                  vector=vector)  # fmt: skip


def _derivatives(part: Part, scores: FloatArray) -> FloatArray:
    return part.derivatives(scores)


def _outer_products(part: Part, scores: FloatArray) -> FloatArray:
    return part.outer_products(scores)


def _second_derivatives(part: Part, scores: FloatArray, what: str, vector: tuple[Any, ...]) -> Any:
    return getattr(part.hessian(scores), what)(*vector)


def _added(several: list[Any]) -> Any:
    """Their sum in this order."""
    return sum(several[1:], several[0])
