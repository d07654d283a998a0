"""The best labels of rows, in blocks of rows and of labels: scores of all are never there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.extreme.network import Network, SparseRows

Array = np.ndarray[Any, Any]

ROWS = 256
BLOCK = 1 << 14  # labels


def top_labels(
    networks: Sequence[Network], X: Any, k: int, *, offset: Tensor | None = None
) -> tuple[Array, Array]:
    """[rows, k] labels, best first, and their scores; equal scores by label.

    Parameters
    ----------
    networks
        whose scores are averaged; on one device, in evaluation mode
    X
        [rows, features] CSR of float32
    k
        not more than there are labels
    offset
        [labels] added to all scores, or None
    """
    device = networks[0].labels.device
    labels = np.empty((X.shape[0], k), dtype=np.int64)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, X.shape[0], ROWS):
            some = slice(start, start + ROWS)
            rows = SparseRows.of(X[some]).to(device)
            best, which = _of_rows(networks, [network(rows) for network in networks], k, offset)
            scores[some], labels[some] = best.cpu().numpy(), which.cpu().numpy()
    return labels, scores


def _of_rows(
    networks: Sequence[Network], hidden: list[Tensor], k: int, offset: Tensor | None
) -> tuple[Tensor, Tensor]:
    best = hidden[0].new_empty(len(hidden[0]), 0)
    which = torch.empty(len(best), 0, dtype=torch.int64, device=best.device)
    for start in range(0, len(networks[0].labels), BLOCK):
        block = slice(start, start + BLOCK)
        scores = torch.addmm(networks[0].label_bias[block], hidden[0], networks[0].labels[block].T)
        for network, one in zip(networks[1:], hidden[1:], strict=True):
            scores += network.label_bias[block]
            scores.addmm_(one, network.labels[block].T)
        if len(networks) > 1:
            scores /= len(networks)
        if offset is not None:
            scores += offset[block]
        found, at = _first(scores, k)
        best, which = torch.cat([best, found], 1), torch.cat([which, at + start], 1)
        if best.shape[1] > k:  # of equal scores, those of lower labels are in front
            best, order = _in_order(best, k)
            which = which.gather(1, order)
    best, order = _in_order(best, k)
    return best, which.gather(1, order)


def _first(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """[rows, up to k] the highest scores of each row and their places; equal ones by place."""
    if scores.shape[1] <= k:
        return _in_order(scores, k)
    found, at = scores.topk(k + 1)
    tied = found[:, k] == found[:, k - 1]  # topk does not say which of them it takes
    at, order = at[:, :k].sort(1)
    found, order = _in_order(found.gather(1, order), k)
    at = at.gather(1, order)
    if tied.any():
        found[tied], at[tied] = _in_order(scores[tied], k)
    return found, at


def _in_order(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row, or all, and their places; equal ones stay in their order."""
    ordered, at = scores.sort(dim=1, descending=True, stable=True)
    return ordered[:, :k], at[:, :k]


def padded(labels: Array, k: int) -> Array:
    """[rows, k or more] the labels, with −1 behind them where there are no more."""
    missing = max(k - labels.shape[1], 0)
    return np.pad(labels, ((0, 0), (0, missing)), constant_values=-1)
