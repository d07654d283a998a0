"""A neural scorer as ONNX operators, in float32 as it was trained."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor, nn

from tierrank.ranking.attention import AttentionBlock, ListAttention
from tierrank.ranking.export.graph import Graph
from tierrank.ranking.networks import Scorer


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
