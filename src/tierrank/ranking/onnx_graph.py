"""A ranker as ONNX operators: the graph, then feature steps, networks and trees."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from torch import Tensor, nn

from tierrank._types import AnyArray
from tierrank.ranking.features import Impute, QueryScale, SecondOrder, Standardize, Steps
from tierrank.ranking.forest import NAN, NEARLY_ZERO, NOTHING, ZERO, Forest
from tierrank.ranking.neural import AttentionBlock, ListAttention, Scorer

Dtype = Literal["float32", "float64"]

OPSET = 17  # of 2022, the first with LayerNormalization: runtimes that are not new take it too
IR_VERSION = 8  # of the same time
TREES = "ai.onnx.ml"
IR_VERSION_OF_TREES = {3: IR_VERSION, 5: 10}


class Graph:
    """Operators from `features` [rows, n_features] to `scores` [rows].

    Values are called by name: every method that adds an operator gives the name of its result.

    Parameters
    ----------
    n_features
        columns of the input
    dtype
        of the input and of the scores. Feature steps take and give it, as in `predict`.
    """

    def __init__(self, n_features: int, dtype: Dtype) -> None:
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.features = "features"
        self.trees_version: int | None = None  # of `ai.onnx.ml`, if there are trees
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._named: dict[tuple[Any, ...], str] = {}

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator of one result."""
        return self.op_of_several(kind, *inputs, results=1, domain=domain, **attributes)[0]

    def op_of_several(
        self, kind: str, *inputs: str, results: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add an operator of several results."""
        number = len(self._nodes)
        names = [f"{kind}_{number}" + (f"_{i}" if i else "") for i in range(results)]
        node = helper.make_node(
            kind, inputs, names, name=f"{kind}_{number}", domain=domain, **attributes
        )
        self._nodes.append(node)
        return names

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add an array that is part of the model; small ones that are equal are kept once."""
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 4 else (object(),)
        if key not in self._named:
            name = f"constant_{len(self._constants)}"
            self._constants.append(numpy_helper.from_array(array, name))
            self._named[key] = name
        return self._named[key]

    def cast(self, x: str, dtype: Any) -> str:
        """Convert to another type."""
        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def widened(self, x: str) -> str:
        """A value of the graph's dtype as float64, in which all rankers but the neural compute."""
        return x if self.dtype == np.float64 else self.cast(x, np.float64)

    def narrowed(self, x: str) -> str:
        """A float64 value in the graph's dtype."""
        return x if self.dtype == np.float64 else self.cast(x, self.dtype)

    def model(self, column: str, about: str, notes: dict[str, str]) -> onnx.ModelProto:
        """The whole: scores from a value [rows, 1] of any float type, a text, and notes."""
        from tierrank import __version__

        column = self.op("Squeeze", column, self.constant([1], np.int64))
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        self._nodes.append(helper.make_node("Cast", [column], ["scores"], name="scores", to=kind))
        opsets, ir_version = [helper.make_opsetid("", OPSET)], IR_VERSION
        if self.trees_version is not None:
            opsets.append(helper.make_opsetid(TREES, self.trees_version))
            ir_version = IR_VERSION_OF_TREES[self.trees_version]
        graph = helper.make_graph(
            self._nodes,
            "tierrank",
            [helper.make_tensor_value_info(self.features, kind, ["rows", self.n_features])],
            [helper.make_tensor_value_info("scores", kind, ["rows"])],
            self._constants,
            doc_string=about,
        )
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=ir_version,
            producer_name="tierrank",
            producer_version=__version__,
            doc_string=about,
        )
        helper.set_model_props(model, notes)
        return model


def add_steps(graph: Graph, x: str, steps: Steps) -> str:
    """Add the fitted steps; values go in and out in the graph's dtype."""
    for step in steps.steps:
        if isinstance(step, Standardize):
            x = _standardize(graph, x, step)
        elif isinstance(step, Impute):
            x = _impute(graph, x, step)
        elif isinstance(step, QueryScale):
            x = add_query_scale(graph, x, step)
        elif isinstance(step, SecondOrder):
            x = _second_order(graph, x, step)
        else:
            raise ValueError(f"a step {type(step).__name__} cannot be exported to ONNX")
    return x


def _standardize(graph: Graph, x: str, step: Standardize) -> str:
    x = graph.widened(x)
    # Halves, where the difference of two numbers might be larger than any number.
    half = np.where(np.abs(step.mean_) > 1e290, 0.5, 1.0)
    if (half < 1).any():
        x = graph.op("Mul", x, graph.constant(half))
    x = graph.op("Sub", x, graph.constant(step.mean_ * half))
    return graph.narrowed(graph.op("Div", x, graph.constant(step.scale_ * half)))


def _impute(graph: Graph, x: str, step: Impute) -> str:
    missing = graph.op("IsNaN", x)
    filled = graph.op("Where", missing, graph.constant(step.values_, graph.dtype), x)
    if not len(step.indicated_):
        return filled
    indicators = graph.op("Gather", missing, graph.constant(step.indicated_, np.int64), axis=1)
    return graph.op("Concat", filled, graph.cast(indicators, graph.dtype), axis=1)


def _second_order(graph: Graph, x: str, step: SecondOrder) -> str:
    if not len(step.pairs_):
        return x
    first, second = (
        graph.op("Gather", x, graph.constant(column, np.int64), axis=1) for column in step.pairs_.T
    )
    products = graph.op("Mul", first, second)
    return graph.op("Concat", x, products, axis=1) if step.include_first else products


LOG_2 = float(np.log(2.0))


def add_query_scale(graph: Graph, x: str, step: QueryScale) -> str:
    """Add a `QueryScale`: in float64, each column by itself, and NaN stays NaN."""
    scale = {"minmax": _minmax, "standard": _standard, "rank": _rank}[step.method]
    return graph.narrowed(scale(graph, _Columns(graph, graph.widened(x), step.n_features_in_)))


class _Columns:
    """Columns, what is missing in them, and their smallest and largest values.

    A column in which all is missing has low = ∞ and high = −∞; it stays NaN whatever they are.
    """

    def __init__(self, graph: Graph, x: str, count: int) -> None:
        self.x = x
        self.count = count
        self.missing = graph.op("IsNaN", x)
        self.or_infinite = graph.op("Where", self.missing, graph.constant(np.inf), x)
        or_negative = graph.op("Where", self.missing, graph.constant(-np.inf), x)
        self.low = graph.op("ReduceMin", self.or_infinite, axes=[0], keepdims=1)
        self.high = graph.op("ReduceMax", or_negative, axes=[0], keepdims=1)

    def without_missing(self, graph: Graph, x: str) -> str:
        return graph.op("Where", self.missing, graph.constant(0.0), x)

    def present(self, graph: Graph) -> str:
        """How many values are not missing."""
        there = graph.cast(graph.op("Not", self.missing), np.float64)
        return _total(graph, there)

    def zero_if_constant(self, graph: Graph, x: str) -> str:
        constant = graph.op("Equal", self.low, self.high)
        return graph.op("Where", constant, graph.constant(0.0), x)

    def unit(self, graph: Graph) -> str | None:
        """A power of two that brings the largest magnitude near 1, so that no square overflows.

        It changes no digit. None for a graph of float32, whose squares all fit into float64.
        """
        if graph.dtype == np.float32:
            return None
        largest = graph.op("Max", graph.op("Abs", self.low), graph.op("Abs", self.high))
        largest = graph.op("Clip", largest, graph.constant(1e-300), graph.constant(1e300))
        doublings = graph.op(
            "Floor", graph.op("Div", graph.op("Log", largest), graph.constant(LOG_2))
        )
        return graph.op("Pow", graph.constant(2.0), graph.op("Neg", doublings))


def _total(graph: Graph, x: str) -> str:
    return graph.op("ReduceSum", x, graph.constant([0], np.int64), keepdims=1)


def _or_one(graph: Graph, x: str) -> str:
    """1 where there is 0, to divide by."""
    zero = graph.op("Equal", x, graph.constant(0.0))
    return graph.op("Where", zero, graph.constant(1.0), x)


def by_own_spread(graph: Graph, column: str) -> str:
    """[rows, 1] float64 scores of one list, divided by their standard deviation if it is not 0."""
    low = graph.op("ReduceMin", column, axes=[0], keepdims=1)
    high = graph.op("ReduceMax", column, axes=[0], keepdims=1)
    from_mean = graph.op("Sub", column, graph.op("ReduceMean", column, axes=[0], keepdims=1))
    square = graph.op("Mul", from_mean, from_mean)
    spread = graph.op("Sqrt", graph.op("ReduceMean", square, axes=[0], keepdims=1))
    same = graph.op("Equal", low, high)
    return graph.op("Div", column, graph.op("Where", same, graph.constant(1.0), spread))


def _minmax(graph: Graph, columns: _Columns) -> str:
    x, low, high = columns.x, columns.low, columns.high
    unit = columns.unit(graph)
    if unit is not None:
        x, low, high = (graph.op("Mul", each, unit) for each in (x, low, high))
    width = _or_one(graph, graph.op("Sub", high, low))
    return graph.op("Div", graph.op("Sub", x, low), width)


def _standard(graph: Graph, columns: _Columns) -> str:
    x, unit = columns.x, columns.unit(graph)
    if unit is not None:
        x = graph.op("Mul", x, unit)
    count = graph.op("Max", columns.present(graph), graph.constant(1.0))

    def mean(values: str) -> str:
        return graph.op("Div", _total(graph, columns.without_missing(graph, values)), count)

    x = graph.op("Sub", x, mean(x))
    x = graph.op("Sub", x, mean(x))  # what rounding left
    deviation = _or_one(graph, graph.op("Sqrt", mean(graph.op("Mul", x, x))))
    scaled = columns.zero_if_constant(graph, graph.op("Div", x, deviation))
    return graph.op("Where", columns.missing, graph.constant(np.nan), scaled)


def _rank(graph: Graph, columns: _Columns) -> str:
    """Sort each column; a run of ties at places f … f + size − 1 has f below, size − 1 beside."""
    rows = graph.op("Shape", columns.x, start=0, end=1)
    value, row = graph.op_of_several(  # the missing ones are last
        "TopK", columns.or_infinite, rows, results=2, axis=0, largest=0, sorted=1
    )
    from_first, to_last, down = (graph.constant([n], np.int64) for n in (0, -1, 0))
    before = graph.op("Slice", value, from_first, to_last, down)
    nothing = graph.constant(np.full((1, columns.count), -np.inf))
    before = graph.op("Concat", nothing, before, axis=0)
    begins = graph.cast(graph.op("Not", graph.op("Equal", value, before)), np.int64)
    one, top = graph.constant(1, np.int64), graph.constant(0, np.int64)
    run = graph.op("Sub", graph.op("CumSum", begins, top), one)
    zeros = graph.op("Mul", run, top)
    size = graph.op(
        "ScatterElements", zeros, run, graph.op("Add", zeros, one), axis=0, reduction="add"
    )
    start = graph.cast(graph.op("CumSum", size, top, exclusive=1), np.float64)
    beside = graph.cast(graph.op("Sub", size, one), np.float64)
    below = graph.op("Add", start, graph.op("Div", beside, graph.constant(2.0)))
    below = graph.op("GatherElements", below, run, axis=0)
    below = graph.op("ScatterElements", below, row, below, axis=0)
    others = graph.op("Sub", columns.present(graph), graph.constant(1.0))
    others = graph.op("Max", others, graph.constant(1.0))
    ranked = columns.zero_if_constant(graph, graph.op("Div", below, others))
    return graph.op("Where", columns.missing, graph.constant(np.nan), ranked)


def add_network(graph: Graph, x: str, scorer: Scorer) -> str:
    """Add a `Scorer`: [rows, 1] float32 from [rows, features] of the graph's dtype."""
    if graph.dtype != np.float32:
        x = graph.cast(x, np.float32)
    if scorer.project is not None:
        x = _layer(graph, x, scorer.project)
        for block in scorer.blocks:
            assert isinstance(block, AttentionBlock)
            x = _attention_block(graph, x, block)
    for layer in scorer.layers:
        x = _layer(graph, x, layer)
    return x


def _attention_block(graph: Graph, x: str, block: AttentionBlock) -> str:
    attended = _attention(graph, _layer(graph, x, block.norm1), block.attention)
    x = graph.op("Add", x, attended)
    fed = _layer(graph, x, block.norm2)
    for layer in block.feed:
        fed = _layer(graph, fed, layer)
    return graph.op("Add", x, fed)


def _attention(graph: Graph, x: str, attention: ListAttention) -> str:
    """softmax(q kᵀ / √width) v for each head, over all rows of the call.

    Heads are taken one by one: on all of them at once, onnxruntime 1.31 crashes without rows.
    """
    heads, width = attention.heads, attention.out_proj.in_features // attention.heads
    projected = _layer(graph, x, attention.in_proj)
    sizes = graph.constant([width] * (3 * heads), np.int64)
    parts = graph.op_of_several("Split", projected, sizes, results=3 * heads, axis=1)
    root = graph.constant(math.sqrt(width), np.float32)
    seen = []
    for head in range(heads):
        query, key, value = parts[head::heads]
        match = graph.op("MatMul", query, graph.op("Transpose", key, perm=[1, 0]))
        shares = graph.op("Softmax", graph.op("Div", match, root), axis=-1)
        seen.append(graph.op("MatMul", shares, value))
    joined = graph.op("Concat", *seen, axis=1)
    return _layer(graph, joined, attention.out_proj)


def _layer(graph: Graph, x: str, layer: nn.Module) -> str:
    """One module of a scorer, as it is after training."""
    match layer:
        case nn.Linear():
            return _linear(graph, x, layer)
        case nn.LayerNorm():
            affine = [_numbers(graph, each) for each in (layer.weight, layer.bias)]
            return graph.op("LayerNormalization", x, *affine, axis=-1, epsilon=layer.eps)
        case nn.BatchNorm1d():
            moments = (layer.weight, layer.bias, layer.running_mean, layer.running_var)
            affine = [_numbers(graph, each) for each in moments]
            return graph.op("BatchNormalization", x, *affine, epsilon=layer.eps)
        case nn.Dropout():
            return x
        case nn.ReLU():
            return graph.op("Relu", x)
        case nn.ELU():
            return graph.op("Elu", x, alpha=layer.alpha)
        case nn.Tanh():
            return graph.op("Tanh", x)
        case nn.SiLU():
            return graph.op("Mul", x, graph.op("Sigmoid", x))
        case nn.GELU(approximate="none"):
            # x Φ(x), Φ(x) = (1 + erf(x/√2)) / 2
            erf = graph.op("Erf", graph.op("Mul", x, graph.constant(math.sqrt(0.5), np.float32)))
            twice = graph.op("Add", erf, graph.constant(1.0, np.float32))
            return graph.op("Mul", graph.op("Mul", x, twice), graph.constant(0.5, np.float32))
    raise ValueError(f"a layer {layer} cannot be exported to ONNX")


def _linear(graph: Graph, x: str, layer: nn.Linear) -> str:
    weights = [_numbers(graph, layer.weight)]
    if layer.bias is not None:
        weights.append(_numbers(graph, layer.bias))
    return graph.op("Gemm", x, *weights, transB=1)


def _numbers(graph: Graph, weights: Tensor | None) -> str:
    assert weights is not None
    return graph.constant(weights.detach().cpu().numpy(), np.float32)


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
    x, column, threshold = _columns(graph, x, forest)
    nodes = _nodes(forest, column, threshold)
    return _regressor(graph, x, nodes) if graph.dtype == np.float32 else _ensemble(graph, x, nodes)


class _Nodes(NamedTuple):
    """The nodes of a forest in which every tree has a split: [nodes] each, but for the offsets."""

    offsets: AnyArray
    column: AnyArray
    threshold: AnyArray
    left: AnyArray
    default_left: AnyArray
    value: AnyArray


def _columns(graph: Graph, x: str, forest: Forest) -> tuple[str, AnyArray, AnyArray]:
    """What the nodes look at, NaN where a value is missing; the column and threshold of each node.

    ONNX knows one kind of missing values, NaN; where a node has another idea of them, it looks at
    a column that is changed so. A node that splits categories has a column of its own, 0 for those
    that go left and 1 for all others.
    """
    inner = ~forest.is_leaf
    threshold = forest.threshold
    column = np.zeros(len(inner), dtype=np.int64)
    parts, width = [], 0
    splits = np.zeros(len(inner), dtype=bool)
    if forest.splits_categories:
        splits = forest.category_counts > 0
        threshold = np.where(splits, 0.5, threshold)
        for feature in np.unique(forest.feature[splits]):
            own = np.flatnonzero(splits & (forest.feature == feature))
            parts.append(_memberships(graph, x, forest, own))
            column[own] = width + np.arange(len(own))
            width += len(own)
    for kind in (NOTHING, ZERO, NAN):
        own = inner & ~splits & (forest.missing == kind)
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
        return x, column, threshold
    joined = parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)
    return joined, column, threshold


def _memberships(graph: Graph, x: str, forest: Forest, nodes: AnyArray) -> str:
    """[rows, nodes] of one feature, a row of a table for each code: 0 if it goes left, else 1.

    Two rows more are for codes that no node names, and for NaN, which stays NaN (2 in the table).
    """
    ends = np.cumsum(forest.category_counts)
    sets = [forest.categories[ends[node] - forest.category_counts[node] : ends[node]]
            for node in nodes]  # fmt: skip
    none = max(int(codes[-1]) for codes in sets) + 1
    table = np.ones((none + 2, len(nodes)), dtype=np.uint8)
    table[-1] = 2
    for place, codes in enumerate(sets):
        table[codes, place] = 0
    feature = graph.constant(int(forest.feature[nodes[0]]), np.int64)
    code = graph.op("Gather", x, feature, axis=1)
    absent = graph.op("IsNaN", code)
    from_zero = graph.op("GreaterOrEqual", code, graph.constant(0.0))
    named = graph.op("And", from_zero, graph.op("Less", code, graph.constant(float(none))))
    code = graph.op("Where", named, code, graph.constant(float(none)))
    code = graph.op("Where", absent, graph.constant(none + 1.0), code)
    rows = graph.op("Gather", graph.constant(table, np.uint8), graph.cast(code, np.int64), axis=0)
    rows = graph.cast(rows, np.float64)
    absent = graph.op("Greater", rows, graph.constant(1.5))
    return graph.op("Where", absent, graph.constant(np.nan), rows)


def _nodes(forest: Forest, column: AnyArray, threshold: AnyArray) -> _Nodes:
    """Give a tree that is one leaf a split with this leaf on both sides: not all runtimes take it.

    The split is at 0 of column 0, and two nodes more follow the root.
    """
    sizes = np.diff(forest.tree_offsets)
    alone = sizes == 1
    offsets = np.concatenate([[0], np.cumsum(np.where(alone, 3, sizes))])
    shift = np.repeat(offsets[:-1] - forest.tree_offsets[:-1], sizes)
    moved = np.arange(len(shift)) + shift

    def spread(values: AnyArray) -> AnyArray:
        out = np.zeros(offsets[-1], dtype=values.dtype)
        out[moved] = values
        return out

    left = spread(np.where(forest.left > 0, forest.left + shift, 0))
    value = spread(forest.value)
    roots = offsets[:-1][alone]
    left[roots] = roots + 1
    value[roots + 1] = value[roots + 2] = value[roots]
    tracks = spread(forest.default_left & (forest.missing != NOTHING))
    return _Nodes(offsets, spread(column), spread(threshold), left, tracks, value)


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


def _tensor(values: AnyArray) -> Any:
    return numpy_helper.from_array(np.ascontiguousarray(values))
