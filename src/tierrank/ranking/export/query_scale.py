"""Scaling within the list as ONNX operators; all rows of a call are one list."""

from __future__ import annotations

import numpy as np

from tierrank.ranking.export.graph import Graph
from tierrank.ranking.features import QueryScale

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
