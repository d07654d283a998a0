"""A forest as ONNX operators: thresholds and leaves in float64, as in `Forest.predict`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import numpy_helper

from tierrank.ranking.boosting.forest import NAN, NEARLY_ZERO, NOTHING, ZERO, Forest
from tierrank.ranking.export.graph import TREES, Array, Graph

LESS_OR_EQUAL, SUM, AS_IT_IS = (
    0,
    1,
    0,
)  # of TreeEnsemble: a node's mode, and what it does in the end


def add_forest(graph: Graph, x: str, forest: Forest) -> str:
    """Add a `Forest`: [rows, 1] float32 or float64 from [rows, features] of the graph's dtype."""
    x = graph.widened(x)
    if not len(forest):
        rows = graph.op("Shape", x, start=0, end=1)
        shape = graph.op("Concat", rows, graph.constant([1], np.int64), axis=0)
        zero = numpy_helper.from_array(np.zeros(1))
        return graph.op("ConstantOfShape", shape, value=zero)
    x, column = _columns(graph, x, forest)
    nodes = _nodes(forest, column)
    return _regressor(graph, x, nodes) if graph.dtype == np.float32 else _ensemble(graph, x, nodes)


class _Nodes(NamedTuple):
    """The nodes of a forest in which every tree has a split: [nodes] each, but for the offsets."""

    offsets: Array
    column: Array
    threshold: Array
    left: Array
    default_left: Array
    value: Array


def _columns(graph: Graph, x: str, forest: Forest) -> tuple[str, Array]:
    """What the nodes look at, NaN where a value is missing, and the column of each node.

    ONNX knows one kind of missing values, NaN; where a node has another idea of them, it looks at
    a column that is changed so.
    """
    inner = ~forest.is_leaf
    column = np.zeros(len(inner), dtype=np.int64)
    parts, width = [], 0
    for kind in (NOTHING, ZERO, NAN):
        own = inner & (forest.missing == kind)
        used, place = np.unique(forest.feature[own], return_inverse=True)
        if not len(used):
            continue
        part = x
        if len(used) < forest.n_features:
            part = graph.op("Gather", x, graph.constant(used, np.int64), axis=1)
        if kind != NAN:
            absent = graph.op("IsNaN", part)
            part = graph.op("Where", absent, graph.constant(0.0), part)
        if kind == ZERO:
            size = graph.op("Abs", part)
            absent = graph.op("LessOrEqual", size, graph.constant(NEARLY_ZERO))
            part = graph.op("Where", absent, graph.constant(np.nan), part)
        parts.append(part)
        column[own] = width + place
        width += len(used)
    if not parts:  # no tree has a split
        return x, column
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1), column


def _nodes(forest: Forest, column: Array) -> _Nodes:
    """Give a tree that is one leaf a split with this leaf on both sides: not all runtimes take it.

    The split is at 0 of column 0, and two nodes more follow the root.
    """
    sizes = np.diff(forest.tree_offsets)
    alone = sizes == 1
    offsets = np.concatenate([[0], np.cumsum(np.where(alone, 3, sizes))])
    shift = np.repeat(offsets[:-1] - forest.tree_offsets[:-1], sizes)
    moved = np.arange(len(shift)) + shift

    def spread(values: Array) -> Array:
        out = np.zeros(offsets[-1], dtype=values.dtype)
        out[moved] = values
        return out

    left = spread(np.where(forest.left > 0, forest.left + shift, 0))
    value = spread(forest.value)
    roots = offsets[:-1][alone]
    left[roots] = roots + 1
    value[roots + 1] = value[roots + 2] = value[roots]
    tracks = spread(forest.default_left & (forest.missing != NOTHING))
    return _Nodes(offsets, spread(column), spread(forest.threshold), left, tracks, value)


def _regressor(graph: Graph, x: str, nodes: _Nodes) -> str:
    """The older operator, which more runtimes know; it adds in float64 and gives float32."""
    graph.trees_version = 3
    tree = np.repeat(np.arange(len(nodes.offsets) - 1), np.diff(nodes.offsets))
    number = np.arange(len(tree)) - nodes.offsets[tree]
    leaf = nodes.left == 0
    child = np.where(leaf, 0, nodes.left - nodes.offsets[tree])
    return graph.op(
        "TreeEnsembleRegressor",
        x,
        domain=TREES,
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=number.tolist(),
        nodes_featureids=nodes.column.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=_tensor(nodes.threshold),
        nodes_truenodeids=child.tolist(),
        nodes_falsenodeids=np.where(leaf, 0, child + 1).tolist(),
        nodes_missing_value_tracks_true=nodes.default_left.astype(np.int64).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=number[leaf].tolist(),
        target_ids=[0] * int(leaf.sum()),
        target_weights_as_tensor=_tensor(nodes.value[leaf]),
    )


def _ensemble(graph: Graph, x: str, nodes: _Nodes) -> str:
    """The newer operator, which also gives float64: inner nodes and leaves stand apart."""
    graph.trees_version = 5
    leaf = nodes.left == 0
    number = np.where(leaf, np.cumsum(leaf) - 1, np.cumsum(~leaf) - 1)
    left = nodes.left[~leaf]
    right = left + 1
    return graph.op(
        "TreeEnsemble",
        x,
        domain=TREES,
        n_targets=1,
        aggregate_function=SUM,
        post_transform=AS_IT_IS,
        tree_roots=number[nodes.offsets[:-1]].tolist(),
        nodes_featureids=nodes.column[~leaf].tolist(),
        nodes_modes=_tensor(np.full(len(left), LESS_OR_EQUAL, dtype=np.uint8)),
        nodes_splits=_tensor(nodes.threshold[~leaf]),
        nodes_truenodeids=number[left].tolist(),
        nodes_trueleafs=leaf[left].astype(np.int64).tolist(),
        nodes_falsenodeids=number[right].tolist(),
        nodes_falseleafs=leaf[right].astype(np.int64).tolist(),
        nodes_missing_value_tracks_true=nodes.default_left[~leaf].astype(np.int64).tolist(),
        leaf_targetids=[0] * int(leaf.sum()),
        leaf_weights=_tensor(nodes.value[leaf]),
    )


def _tensor(values: Array) -> Any:
    return numpy_helper.from_array(np.ascontiguousarray(values))
