"""Feature steps as ONNX operators: the same arithmetic, in the same precision, as `transform`."""

from __future__ import annotations

import numpy as np

from tierrank.ranking.export.graph import Graph
from tierrank.ranking.export.query_scale import add_query_scale
from tierrank.ranking.features import Impute, QueryScale, SecondOrder, Standardize, Steps


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
