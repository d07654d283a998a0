"""Who stands above whom, as a sparse graph with as many edges as the lists have entries.

An item is above every item of a lower tier of its list: quadratically many pairs. Helper nodes
keep every path between two items and need few edges. Each tier with something below it has one,

    item of the tier  ->  helper  ->  items of the next tier,

and further down it goes on through these items. The rest, if a list has one, may be nearly the
whole catalogue; `nest_lists` (`native/graphs.cpp`) says how all lists share one way there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank._native import nest_lists
from tierrank._types import IntArray
from tierrank.tiers import Tiers

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
