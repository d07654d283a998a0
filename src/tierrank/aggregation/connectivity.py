"""Whether comparisons determine all worths: the components of the graph of who is above whom.

An item is above every item of a lower tier of its list: quadratically many pairs. Helper nodes
keep every path between two items and need few edges. Each tier with something below it has one,

    item of the tier  ->  helper  ->  items of the next tier,

and further down it goes on through these items. The rest, if a list has one, may be nearly the
whole catalogue; `nest_lists` (`native/graphs.cpp`) says how all lists share one way there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank._native import nest_lists
from tierrank._types import BoolArray, IntArray
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.errors import Argument, ArgumentError, Column
from tierrank.names import counted
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets
from tierrank.tiers.build import Graphs, layer_tiers


@dataclass(frozen=True, eq=False, repr=False)
class Connectivity:
    """How far comparisons lead from one item to another.

    The graph has an edge from an item to another if some list has it in a higher tier. A
    likelihood of worths has one finite maximum iff the graph is strongly connected: otherwise
    some set of items never stands below the others, and raising all its worths costs nothing.

    Parameters
    ----------
    n_items : int
        Size of the catalogue.
    groups : ndarray of int
        [items] number of the group of each item: those compared with each other, directly or
        through others, whoever was above; in order of their first items.
    components : ndarray of int
        [items] number of the component of each item: those from which comparisons lead down to
        each other, in both directions. No item ever stands above one of a component with a
        smaller number.
    never_below : ndarray of bool
        [components] whether no item of it ever stands below one of another component.
    never_above : ndarray of bool
        [components] whether no item of it ever stands above one of another component.
    names : tuple, optional
        [items] of the items; None if they are just numbers.

    See Also
    --------
    Disconnected : Says which items are why there is no estimate.
    tierrank.RankAggregator : Has it as `connectivity_`.

    Examples
    --------
    >>> import tierrank as tr
    >>> graph = tr.RankAggregator(prior="gaussian").fit([["a", "b"], ["c", "d"]]).connectivity_
    >>> graph.n_groups, graph.connected
    (2, False)
    >>> graph.group_items(1)
    ('c', 'd')
    """

    n_items: int
    groups: IntArray
    components: IntArray
    never_below: BoolArray
    never_above: BoolArray
    names: tuple[Any, ...] | None = None

    @property
    def n_groups(self) -> int:
        """How many groups were never compared with each other."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def n_components(self) -> int:
        """How many components there are."""
        return len(self.never_below)

    @property
    def connected(self) -> bool:
        """Whether there is only one component: the estimate exists, and there is only one."""
        return self.n_components <= 1

    def group_items(self, number: int) -> tuple[Any, ...]:
        """Give the items of a group, by name if they have names.

        Parameters
        ----------
        number : int
            Of the group, from 0.

        Returns
        -------
        tuple
            Names, or numbers.

        See Also
        --------
        component_items : Of a component.

        Examples
        --------
        >>> import tierrank as tr
        >>> graph = tr.RankAggregator(prior="gaussian").fit([["a", "b"], ["c", "d"]]).connectivity_
        >>> graph.group_items(0)
        ('a', 'b')
        """
        return self._items(self.groups, number, self.n_groups, "group")

    def component_items(self, number: int) -> tuple[Any, ...]:
        """Give the items of a component, by name if they have names.

        Parameters
        ----------
        number : int
            Of the component, from 0.

        Returns
        -------
        tuple
            Names, or numbers.

        See Also
        --------
        group_items : Of a group.

        Examples
        --------
        >>> import tierrank as tr
        >>> graph = tr.RankAggregator(prior="gaussian").fit([["a", "b"], ["c", "d"]]).connectivity_
        >>> graph.component_items(0)
        ('a',)
        """
        return self._items(self.components, number, self.n_components, "component")

    def explain(
        self,
        limit: int = 10,
        seen: str = "lists",
        spell: Callable[[Argument], str] = str,
    ) -> str:
        """Say in words what is not connected, which items those are, and what to do about it.

        Parameters
        ----------
        limit : int
            How many items of a set are named at the most, and how many sets.
        seen : {"lists", "games"}
            What was seen: "lists" or "games".
        spell : callable
            Says what the arguments that help are called.

        Returns
        -------
        str
            Some sentences.

        See Also
        --------
        Disconnected : Raised with these words.

        Examples
        --------
        >>> import tierrank as tr
        >>> graph = tr.RankAggregator(prior="gaussian").fit([["a", "b"], ["c", "d"]]).connectivity_
        >>> len(graph.explain()) > 0
        True
        """
        return explain(self, limit, seen, spell)

    def _items(self, numbers: IntArray, number: int, count: int, what: str) -> tuple[Any, ...]:
        if not 0 <= number < count:
            raise ValueError(f"there is no {what} {number}: they are 0 to {count - 1}.")
        items: list[int] = np.flatnonzero(numbers == number).tolist()
        return tuple(items if self.names is None else (self.names[item] for item in items))

    def __repr__(self) -> str:
        counts = (
            (self.n_items, "item"),
            (self.n_groups, "group"),
            (self.n_components, "component"),
        )
        return f"Connectivity({', '.join(counted(*each) for each in counts)})"


class Disconnected(ArgumentError):
    """There is no finite estimate: some items were never compared, or always won.

    A `ValueError`; its `connectivity` says which items those are.

    Parameters
    ----------
    found : Connectivity
        Which items those are.
    seen : {"lists", "games"}
        What was seen.

    See Also
    --------
    Connectivity : What it found.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.aggregation.connectivity import Disconnected
    >>> try:
    ...     tr.RankAggregator().fit([["a", "b"], ["c", "d"]])
    ... except Disconnected as error:
    ...     error.connectivity.n_groups
    2
    """

    def __init__(self, found: Connectivity, seen: str = "lists") -> None:
        super().__init__(found.explain(seen=seen))
        self.connectivity = found
        self._seen = seen

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """The explanation, with `spell` of each argument in its place."""
        return self.connectivity.explain(seen=self._seen, spell=spell)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.connectivity, self._seen)  # another process may have raised it


def connectivity(tiers: Tiers, *, ties_connect: bool = False) -> Connectivity:
    """Find out whether comparisons lead from every item to every other.

    Time and memory are linear in the catalogue and the entries of the lists.

    Parameters
    ----------
    tiers
        of catalogue kind, with or without rest. Where there is no rest, items that no list names
        are groups of their own, and so are items that never meet another in a different tier.
    ties_connect
        for models in which a tie says that items are alike: the items of one tier are then
        joined in both directions, in every written tier, the last too. The rest is not: nobody
        compared its items.

    Examples
    --------
    >>> from tierrank import Tiers
    >>> found = connectivity(Tiers.from_rankings([["ann", "bob", "cy"], ["cy", "bob"]]))
    >>> found
    Connectivity(3 items, 1 group, 2 components)
    >>> found.connected, found.component_items(0), found.component_items(1)
    (False, ('ann',), ('bob', 'cy'))
    >>> print(found.explain())
    The lists do not determine the worths of all 3 items.
    - ann stands above others and never below one: the likelihood has no maximum, the worth would
      grow for ever.
    - The others are connected with each other: {bob, cy}.
    What to do: choose a prior (prior="gaussian" or prior="pseudo-item"), leave items out with
    leave_out (component="largest", min_games= or exclude=), or fit each component by itself.
    """
    if tiers.n_items is None:
        raise ValueError(
            "the items of these Tiers are rows of labels, which no two lists share: build them "
            "with Tiers.from_rankings, from_positives or from_preferences."
        )
    graph = comparison_graph(tiers.to("cpu"), ties_connect)
    return connectivity_of(graph, tiers.n_items, tiers.names)


def connectivity_of(
    graph: ComparisonGraph, n_items: int, names: tuple[Any, ...] | None
) -> Connectivity:
    """The same from a graph whose first nodes are the items."""
    if n_items == 0:
        none, flags = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        return Connectivity(0, none, none, flags, flags, names)
    weak, strong = _labels(graph, "weak"), _labels(graph, "strong")
    layer, has_above, has_below = _order(graph, strong)
    components, kept = _number(strong[:n_items], layer)
    groups, _ = _number(weak[:n_items], None)
    return Connectivity(
        n_items=n_items,
        groups=groups,
        components=components,
        never_below=~has_above[kept],
        never_above=~has_below[kept],
        names=names,
    )


def condensed(graph: ComparisonGraph, n_items: int) -> ComparisonGraph:
    """A graph with the same paths between the items, and few edges where these are many.

    Each component is a node, joined with its items in both directions, and in one with the
    components that it leads to.
    """
    strong = _labels(graph, "strong")
    component = n_items + strong[:n_items]
    items = np.arange(n_items, dtype=np.int32)
    above, below = (n_items + ends.astype(np.int32) for ends in _between(graph, strong))
    return ComparisonGraph(
        n_items + int(strong.max(initial=-1)) + 1,
        np.concatenate([items, component, above]),
        np.concatenate([component, items, below]),
    )


def joined(graphs: Iterable[ComparisonGraph], n_items: int) -> ComparisonGraph:
    """Graphs over the same items as one; what helps in each helps apart from the others."""
    n_nodes, edges = n_items, []
    for graph in graphs:
        lift = n_nodes - n_items
        edges.append([np.where(end < n_items, end, end + lift) for end in graph[1:]])
        n_nodes += graph.n_nodes - n_items
    above, below = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    return ComparisonGraph(n_nodes, above, below)


def leave_out(
    data: Rankings | Games,
    *,
    exclude: Iterable[Any] = (),
    min_games: float = 0,
    component: Literal["all", "largest"] = "all",
    ties_connect: bool | None = None,
) -> Rankings | Games:
    """Leave items out of lists or games, for instance those that keep worths from being finite.

    An item that is left out is taken from all lists, and the rest of each list stays; a list that
    then compares nothing goes too, as does a game that has lost a side.

    Parameters
    ----------
    data
        `tierrank.data.Rankings` or `Games`
    exclude
        names of items to leave out
    min_games
        leave out who is named by fewer games or lists, by weight. Counted again after every one
        that goes, until nobody is left with fewer: so it holds for what is given back.
    component
        "largest" keeps the largest set of items from each of which comparisons lead to every
        other (the first, of several): the worths of these have a finite estimate
    ties_connect
        as in `connectivity`; None for yes of `Games`, as in `PairedTies`, and no of `Rankings`

    Examples
    --------
    >>> from tierrank.data import Rankings
    >>> votes = Rankings.from_rankings([["ann", "bob", "cy"], ["cy", "bob"], ["ann", "cy"]])
    >>> leave_out(votes, component="largest")
    Rankings(2 lists of weight 2, 2 items)
      1 × bob > cy
      1 × cy > bob
    >>> leave_out(votes, min_games=3)
    Traceback (most recent call last):
    ...
    tierrank.errors.ArgumentError: nobody is left: of 3 items, ...
    """
    if not isinstance(data, Rankings | Games):
        raise ValueError(
            f"leave_out takes Rankings or Games, not a {type(data).__name__}: make them of it with "
            "Rankings.from_rankings, Games.from_rows, tierrank.data.read_rankings or read_games."
        )
    if component not in ("all", "largest"):
        raise ArgumentError(Argument("component"), f' is "all" or "largest", not {component!r}.')
    if not min_games >= 0:
        raise ArgumentError(
            Argument("min_games"), f" is a number of games, 0 or more, not {min_games!r}."
        )
    games = isinstance(data, Games)
    if component == "largest" and any(isinstance(i, tuple | frozenset) for i in data.items):
        raise ArgumentError(
            Argument("component", "largest"), " is for single players: leave teams out by ",
            Column("exclude"), ".",
        )  # fmt: skip
    ties = games if ties_connect is None else ties_connect
    left: Rankings | Games = data.without(exclude)
    while True:
        lists = left.to_rankings() if isinstance(left, Games) else left
        stays = _named(lists) >= min_games
        if component == "largest" and stays.all():
            components = connectivity(lists.tiers, ties_connect=ties).components
            stays = components == np.bincount(components, minlength=1).argmax()
        if stays.all():
            break
        left = left.without(itertools.compress(left.items, ~stays))
    if len(left) == 0 or len(left.items) < 2:
        raise ArgumentError(
            f"nobody is left: of {len(data.items):,} items, none are compared once those are gone "
            "that ", Column("min_games"), ", ", Column("component"), " and ", Column("exclude"),
            " leave out.",
        )  # fmt: skip
    return left


def _named(lists: Rankings) -> npt.NDArray[np.float64]:
    """[items] the weight of the lists that compare it with something."""
    tiers = lists.tiers.to("cpu")
    lengths = tiers.lengths.numpy()
    speaks = lists.weights * (lengths > (0 if tiers.rest else 1))
    counts = np.bincount(tiers.items.numpy(), np.repeat(speaks, lengths), tiers.n_items or 0)
    return counts.astype(np.float64)


def _labels(graph: ComparisonGraph, connection: str) -> npt.NDArray[np.int32]:
    """[nodes] the component of each, in any order."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(graph.above))  # scipy wants float64, and would make a copy of another type
    matrix = coo_array((ones, (graph.above, graph.below)), shape=(graph.n_nodes, graph.n_nodes))
    labels: npt.NDArray[np.int32] = connected_components(matrix.tocsr(), connection=connection)[1]
    return labels


def _between(graph: ComparisonGraph, strong: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """Edges from one component to another, each once."""
    size = int(strong.max(initial=-1)) + 1
    start, end = strong[graph.above], strong[graph.below]
    apart = start != end
    pairs = np.unique(start[apart].astype(np.int64) * size + end[apart])
    return pairs // max(size, 1), pairs % max(size, 1)


def _order(
    graph: ComparisonGraph, strong: npt.NDArray[np.int32]
) -> tuple[IntArray, BoolArray, BoolArray]:
    """[components] the longest path that ends in each; whether it has one above, and below it."""
    size = int(strong.max()) + 1
    above, below = _between(graph, strong)
    layer = layer_tiers(Graphs(np.array([0, size], dtype=np.int64), above, below))
    # A helper node lies between items, so an edge to or from one stands for items just as well.
    has_above, has_below = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    has_above[below] = True
    has_below[above] = True
    return layer, has_above, has_below


def _number(
    labels: npt.NDArray[np.int32], layer: IntArray | None
) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Number the sets of items anew, by layer and then by first item; also gives their labels."""
    kept, first, which = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first) if layer is None else np.lexsort((first, layer[kept]))
    number = np.empty(len(kept), dtype=np.int64)
    number[order] = np.arange(len(kept))
    return number[which.reshape(-1)], kept[order]


# -- the graph ------------------------------------------------------------------------------------

NodeArray = npt.NDArray[np.int32]
Edges = tuple[NodeArray, NodeArray]


class ComparisonGraph(NamedTuple):
    """A directed graph; its first nodes are the items, the others only help."""

    n_nodes: int
    above: NodeArray  # [edges]
    below: NodeArray  # [edges]


def comparison_graph(tiers: Tiers, ties_connect: bool) -> ComparisonGraph:
    """Build a graph with a path from an item to another iff comparisons lead there.

    Parameters
    ----------
    tiers
        of catalogue kind, on the CPU
    ties_connect
        whether the items of a written tier are joined with each other as well
    """
    n_items = tiers.n_items or 0
    items = tiers.items.numpy().astype(np.int32)
    tier_offsets, list_offsets = tiers.tier_offsets.numpy(), tiers.list_offsets.numpy()
    tier_sizes = np.diff(tier_offsets)
    tier = np.repeat(np.arange(len(tier_sizes), dtype=np.int32), tier_sizes)

    written = np.diff(list_offsets) > 0
    first, last = list_offsets[:-1][written], list_offsets[1:][written] - 1
    lengths = np.diff(tier_offsets[list_offsets])
    with_rest = np.flatnonzero((lengths > 0) & (lengths < n_items) & tiers.rest)

    is_first = np.zeros(len(tier_sizes), dtype=bool)
    is_first[first] = True
    has_below = np.ones(len(tier_sizes), dtype=bool)
    has_below[last] = False
    has_below[list_offsets[with_rest + 1] - 1] = True
    helper = n_items - 1 + np.cumsum(has_below, dtype=np.int32)
    n_nodes = n_items + int(has_below.sum())

    upper, lower = has_below[tier], ~is_first[tier]
    edges: list[Edges] = [
        (items[upper], helper[tier[upper]]),
        (helper[tier[lower] - 1], items[lower]),
    ]
    if len(with_rest):
        doors = helper[list_offsets[1:] - 1]  # of each list's last tier
        to_rest, n_links = _edges_to_rest(
            with_rest, tier_offsets[list_offsets], items, n_items, doors, n_nodes
        )
        edges += to_rest
        n_nodes += n_links
    if ties_connect:
        edges.append(_rings(items, tier_offsets, tier_sizes))
    above, below = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    return ComparisonGraph(n_nodes, above, below)


def _rings(items: NodeArray, tier_offsets: IntArray, tier_sizes: IntArray) -> Edges:
    """Join the items of a tier in a circle."""
    following = np.arange(1, len(items) + 1)
    following[tier_offsets[1:] - 1] = tier_offsets[:-1]
    tied = np.repeat(tier_sizes > 1, tier_sizes)
    return items[tied], items[following[tied]]


def _edges_to_rest(
    lists: IntArray,
    list_starts: IntArray,
    items: NodeArray,
    n_items: int,
    doors: NodeArray,
    first_link: int,
) -> tuple[list[Edges], int]:
    """Lead from the helper node of each list's last tier to all items that the list does not name.

    Parameters
    ----------
    lists
        those that have a rest
    list_starts
        [all lists + 1] ranges of `items`
    doors
        [all lists] the helper node
    first_link
        number for the first new node

    Returns
    -------
    edges and the number of new nodes
    """
    by_size = lists[np.argsort(np.diff(list_starts)[lists], kind="stable")]
    joined = np.empty(n_items, dtype=np.int32)
    link = np.empty(len(list_starts) - 1, dtype=np.int32)
    room = int(np.diff(list_starts)[lists].sum())
    edge_list, edge_item = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    n_edges, n_links = nest_lists(by_size, list_starts, items, joined, link, edge_list, edge_item)
    direct = doors[edge_list[:n_edges]], edge_item[:n_edges]
    in_chain = np.flatnonzero(link >= 0)
    enter = doors[in_chain], first_link + link[in_chain]
    # Link j leads to what the next list of the chain adds, and on to link j + 1; the last link to
    # everything that no list of the chain names.
    joined[joined < 0] = n_links
    added = np.flatnonzero(joined > 0).astype(np.int32)
    leave = first_link - 1 + joined[added], added
    links = np.arange(first_link, first_link + n_links, dtype=np.int32)
    return [direct, enter, leave, (links[:-1], links[1:])], n_links


# -- in words -------------------------------------------------------------------------------------

WIDTH = 96  # of a line
NAME = 40  # characters of a name
ORDERS = 3  # groups whose sets are shown in order


def explain(found: Connectivity, limit: int, seen: str, spell: Callable[[Argument], str]) -> str:
    """Write the text of `Connectivity.explain`."""
    if limit < 1:
        raise ValueError(f"limit = {limit}: at least one item must be named.")
    if found.connected:
        if found.n_items < 2:
            return (
                f"There {'is one item' if found.n_items else 'are no items'}: nothing to compare."
            )
        return (
            f"Comparisons lead from each of the {found.n_items:,} items to every other, in both "
            "directions."
        )
    words = _Words(found, limit)
    facts = [*words.groups(), *words.extremes(), *words.sets()]
    priors = [spell(Argument("prior", name)) for name in ("gaussian", "pseudo-item")]
    largest, fewest, named = (
        spell(argument)
        for argument in (Argument("component", "largest"), Column("min_games"), Column("exclude"))
    )
    function = " with leave_out" if spell is str else ""
    ways = [
        f"choose a prior ({' or '.join(priors)})",
        f"leave items out{function} ({largest}, {fewest} or {named})",
    ]
    if words.members.sizes.max() > 1:
        torn = found.n_components > found.n_groups
        ways.append(f"fit each {'component' if torn else 'group'} by itself")
    advice = f"What to do: {', '.join(ways[:-1])}, or {ways[-1]}."
    lines = [
        f"The {seen} do not determine the worths of all {found.n_items:,} items.",
        *(_folded(f"- {fact}", "  ") for fact in facts),
        _folded(advice, ""),
    ]
    return "\n".join(lines)


class _Words:
    """The sentences about one `Connectivity`."""

    def __init__(self, found: Connectivity, limit: int) -> None:
        self.names = found.names
        self.limit = limit
        self.group_members = _Members(found.groups, found.n_groups)
        self.members = _Members(found.components, found.n_components)
        self.never_below, self.never_above = found.never_below, found.never_above
        self.group_of = found.groups[self.members.firsts()]  # [components]
        self.parts = _Members(self.group_of, found.n_groups)  # components of each group
        # Components of a single item that only wins, or only loses.
        self.at_an_end = (self.members.sizes == 1) & (self.never_below ^ self.never_above)

    def groups(self) -> list[str]:
        """Which items were never compared with each other."""
        sizes = self.group_members.sizes
        if len(sizes) == 1:
            return []
        alone, several = np.flatnonzero(sizes == 1), np.flatnonzero(sizes > 1)
        if not len(several):
            items = self.group_members.firsts()
            return [f"No item was ever compared with another: {self._list(items)}."]
        facts = []
        if len(several) > 1:
            several = several[np.argsort(-sizes[several], kind="stable")]
            sets = [self._set(self.group_members[group]) for group in several[: self.limit]]
            facts.append(
                f"There are {len(several):,} groups of items that were never compared with each "
                f"other, directly or through others: {_joined(sets, len(several))}."
            )
        if len(alone):
            items = self.group_members.firsts()[alone]
            subject = "was" if len(alone) == 1 else "were"
            facts.append(f"{self._list(items)} {subject} never compared with another item.")
        return facts

    def extremes(self) -> list[str]:
        """Which single items only ever win or lose."""
        facts = []
        for chosen, here, there, would in (
            (self.never_below, "above", "below", "grow"),
            (self.never_above, "below", "above", "shrink"),
        ):
            items = self.members.firsts()[np.flatnonzero(chosen & self.at_an_end)]
            if len(items):
                stand, worth = ("stands", "worth") if len(items) == 1 else ("stand", "worths")
                facts.append(
                    f"{self._list(items)} {stand} {here} others and never {there} one: the "
                    f"likelihood has no maximum, the {worth} would {would} for ever."
                )
        return facts

    def sets(self) -> list[str]:
        """How the components stand that are more than one item at an end."""
        left = np.flatnonzero(~self.at_an_end)
        by_group = _Members(self.group_of[left], len(self.parts.sizes), left)
        torn = np.flatnonzero(by_group.sizes > 1)
        torn = torn[np.argsort(-self.group_members.sizes[torn], kind="stable")]
        facts = [self._order(group, by_group[group]) for group in torn[:ORDERS]]
        if len(torn) > len(facts):
            hidden = counted(len(torn) - len(facts), "more group")
            facts.append(f"There are such sets in {hidden}.")
        elif not facts and len(self.parts.sizes) == 1 and by_group.sizes[0]:
            others = self.members[by_group[0][0]]
            facts.append(f"The others are connected with each other: {self._set(others)}.")
        return facts

    def _order(self, group: int, parts: IntArray) -> str:
        largest = np.argsort(-self.members.sizes[parts], kind="stable")[: self.limit]
        shown = parts[np.sort(largest)]
        sets = [self._set(self.members[part]) for part in shown]
        if self.parts.sizes[group] == 2 and len(sets) == 2:
            return f"{sets[0]} stand above {sets[1]} and never below one of them."
        order = ", ".join(sets)
        if len(shown) < len(parts):
            order = f"{order} (the largest of {len(parts):,})"
        return f"In this order of sets, no item ever stands above one of an earlier set: {order}."

    def _set(self, items: IntArray) -> str:
        if len(items) == 1:
            return self._name(items[0])
        return "{" + _joined(self._names(items), len(items)) + "}"

    def _list(self, items: IntArray) -> str:
        return _joined(self._names(items), len(items))

    def _names(self, items: IntArray) -> list[str]:
        return [self._name(item) for item in items[: self.limit]]

    def _name(self, item: Any) -> str:
        name = int(item) if self.names is None else self.names[item]
        text = " ".join(str(name).split()) or repr(name)  # a name may hold line breaks
        return text if len(text) <= NAME else text[: NAME - 3] + "..."


class _Members:
    """The elements of numbered sets, from the number of each element's set.

    The elements are 0, 1, ... unless given.
    """

    def __init__(self, numbers: IntArray, count: int, elements: IntArray | None = None) -> None:
        self._order = np.argsort(numbers, kind="stable")
        if elements is not None:
            self._order = elements[self._order]
        self.sizes = np.bincount(numbers, minlength=count)
        self._offsets = offsets(self.sizes)

    def __getitem__(self, number: int) -> IntArray:
        return self._order[self._offsets[number] : self._offsets[number + 1]]

    def firsts(self) -> IntArray:
        """[sets] the first element of each."""
        return self._order[self._offsets[:-1]]


def _joined(shown: list[str], count: int) -> str:
    text = ", ".join(shown)
    return text if len(shown) == count else f"{text} and {count - len(shown):,} more"


def _folded(text: str, indent: str) -> str:
    return fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
