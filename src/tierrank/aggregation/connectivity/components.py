"""Whether comparisons determine all worths: the components of the graph of who is above whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.aggregation.connectivity.comparison_graph import ComparisonGraph, comparison_graph
from tierrank.aggregation.connectivity.explanation import explain
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import IntArray
from tierrank.tiers.graph import Graphs, layer_tiers

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Connectivity:
    """How far comparisons lead from one item to another.

    The graph has an edge from an item to another if some list has it in a higher tier. A
    likelihood of worths has one finite maximum iff the graph is strongly connected: otherwise
    some set of items never stands below the others, and raising all its worths costs nothing.

    Attributes
    ----------
    n_items
        size of the catalogue
    groups
        [items] number of the group of each item: those compared with each other, directly or
        through others, whoever was above; in order of their first items
    components
        [items] number of the component of each item: those from which comparisons lead down to
        each other, in both directions. No item ever stands above one of a component with a
        smaller number.
    never_below
        [components] whether no item of it ever stands below one of another component
    never_above
        [components] whether no item of it ever stands above one of another component
    names
        [items] of the items; None if they are just numbers
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
        """Give the items of a group, by name if they have names."""
        return self._items(self.groups, number, self.n_groups, "group")

    def component_items(self, number: int) -> tuple[Any, ...]:
        """Give the items of a component, by name if they have names."""
        return self._items(self.components, number, self.n_components, "component")

    def explain(self, limit: int = 10) -> str:
        """Say in words what is not connected, which items those are, and what to do about it.

        Parameters
        ----------
        limit
            how many items of a set are named at the most, and how many sets
        """
        return explain(self, limit)

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
        shown = (f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts)
        return f"Connectivity({', '.join(shown)})"


class Disconnected(ValueError):
    """There is no finite estimate: some items were never compared, or always won.

    Attributes
    ----------
    connectivity
        which items those are
    """

    def __init__(self, found: Connectivity) -> None:
        super().__init__(found.explain())
        self.connectivity = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.connectivity,)  # another process may have raised it


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
    What to do: choose a prior (prior="gaussian" or prior="pseudo-item"), leave items out, or fit
    each component by itself.
    """
    if tiers.n_items is None:
        raise ValueError(
            "the items of these Tiers are rows of labels, which no two lists share: build them "
            "with Tiers.from_rankings, from_positives or from_preferences."
        )
    if tiers.n_items == 0:
        none, flags = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        return Connectivity(0, none, none, flags, flags, tiers.names)
    graph = comparison_graph(tiers.to("cpu"), ties_connect)
    weak, strong = _labels(graph, "weak"), _labels(graph, "strong")
    layer, has_above, has_below = _order(graph, strong)
    components, kept = _number(strong[: tiers.n_items], layer)
    groups, _ = _number(weak[: tiers.n_items], None)
    return Connectivity(
        n_items=tiers.n_items,
        groups=groups,
        components=components,
        never_below=~has_above[kept],
        never_above=~has_below[kept],
        names=tiers.names,
    )


def _labels(graph: ComparisonGraph, connection: str) -> npt.NDArray[np.int32]:
    """[nodes] the component of each, in any order."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(graph.above))  # scipy wants float64, and would make a copy of another type
    matrix = coo_array((ones, (graph.above, graph.below)), shape=(graph.n_nodes, graph.n_nodes))
    labels: npt.NDArray[np.int32] = connected_components(matrix.tocsr(), connection=connection)[1]
    return labels


def _order(
    graph: ComparisonGraph, strong: npt.NDArray[np.int32]
) -> tuple[IntArray, BoolArray, BoolArray]:
    """[components] the longest path that ends in each; whether it has one above, and below it."""
    size = int(strong.max()) + 1
    start, end = strong[graph.above], strong[graph.below]
    between = start != end
    pairs = np.unique(start[between].astype(np.int64) * size + end[between])
    above, below = pairs // size, pairs % size
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
