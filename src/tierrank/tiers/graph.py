"""Ordered partitions of acyclic graphs, many graphs at once, in linear time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tierrank._native import kahn
from tierrank._types import IntArray
from tierrank.tiers.arrays import offsets


class CycleError(Exception):
    """A graph has a cycle: `cycle` has its nodes, each above the next, the last above the first."""

    def __init__(self, cycle: list[int]) -> None:
        super().__init__(cycle)
        self.cycle = cycle


class Graphs(NamedTuple):
    """Several graphs side by side; nodes are numbered through, graph by graph."""

    node_offsets: IntArray  # [graphs + 1] ranges of nodes
    above: IntArray  # [edges] sorted, and no edge twice
    below: IntArray  # [edges]


def exact_tiers(graphs: Graphs) -> IntArray:
    """Number the tiers of the finest ordered partition that only claims what paths say.

    Put the nodes in any topological order. Whatever set of nodes is above all others is a prefix
    of it, and a prefix is one if every sink u of the prefix has an edge to every source v of what
    follows: no path from u to v could pass through another node. With the prefix of size p,

        u is such a sink     for  position(u) + 1  <= p <=  first successor's position of u
        v is such a source   for  last predecessor's position of v + 1  <= p <=  position(v)

    and an edge joins the two for the p in both ranges. Counting all three over p takes
    differences and one running sum; p is a cut if edges = sinks * sources.

    Returns
    -------
    [nodes] number of the tier of each node, numbered through graph by graph, best first
    """
    order, _ = _topological(graphs)
    n_nodes = len(order)
    position = np.empty_like(order)
    position[order] = np.arange(n_nodes, dtype=np.int64)
    sizes = np.diff(graphs.node_offsets)
    first_below = np.repeat(graphs.node_offsets[1:], sizes)
    last_above = np.repeat(graphs.node_offsets[:-1] - 1, sizes)
    np.minimum.at(first_below, graphs.above, position[graphs.below])
    np.maximum.at(last_above, graphs.below, position[graphs.above])

    sinks = _count_ranges(position + 1, first_below, n_nodes)
    sources = _count_ranges(last_above + 1, position, n_nodes)
    start, end = last_above[graphs.below] + 1, first_below[graphs.above]
    meet = start <= end
    edges = _count_ranges(start[meet], end[meet], n_nodes)
    is_cut = edges == sinks * sources
    is_cut[graphs.node_offsets] = True
    tier_at = np.cumsum(is_cut[:n_nodes], dtype=np.int64) - 1
    return tier_at[position]


def layer_tiers(graphs: Graphs) -> IntArray:
    """Number the layers: a node's layer is the number of edges of the longest path that ends there.

    Returns
    -------
    [nodes] number of the layer of each node, numbered through graph by graph, best first
    """
    _, layer = _topological(graphs)
    if not len(layer):
        return layer
    depths = np.maximum.reduceat(layer, graphs.node_offsets[:-1]) + 1
    return layer + np.repeat(offsets(depths)[:-1], np.diff(graphs.node_offsets))


def _count_ranges(starts: IntArray, ends: IntArray, n: int) -> IntArray:
    """For each of 0 .. n, how many of the ranges start <= p <= end hold it."""
    change = np.bincount(starts, minlength=n + 2) - np.bincount(ends + 1, minlength=n + 2)
    return np.cumsum(change[: n + 1], dtype=np.int64)


def _topological(graphs: Graphs) -> tuple[IntArray, IntArray]:
    """Give a topological order, graph by graph, and the longest path that ends in each node."""
    n_nodes = int(graphs.node_offsets[-1])
    edge_offsets = offsets(np.bincount(graphs.above, minlength=n_nodes))
    waiting = np.bincount(graphs.below, minlength=n_nodes).astype(np.int64)
    order = np.empty(n_nodes, dtype=np.int64)
    layer = np.empty(n_nodes, dtype=np.int64)
    # This pass is sequential: numpy has no words for it.
    stuck = kahn(graphs.node_offsets, edge_offsets, graphs.below, waiting, order, layer)
    if stuck >= 0:
        raise CycleError(_find_cycle(graphs, waiting))
    return order, layer


def _find_cycle(graphs: Graphs, waiting: IntArray) -> list[int]:
    """Walk upwards among the nodes that Kahn's algorithm left: there is always one above."""
    left = waiting > 0
    among = left[graphs.above] & left[graphs.below]
    one_above = np.full(len(waiting), -1, dtype=np.int64)
    one_above[graphs.below[among]] = graphs.above[among]
    # Later graphs were not visited, so start in the first that has a node left.
    node = int(graphs.below[among][0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = int(one_above[node])
    return path[seen[node] :][::-1]
