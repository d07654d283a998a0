"""Walks from the roots of trees to their leaves, compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tierrank.compilation import announce, compiled, digest
from tierrank.ranking.boosting import forest
from tierrank.ranking.boosting.forest import NAN, ZERO

SOURCES = digest([Path(__file__), Path(forest.__file__)])
ROWS_AT_ONCE = 64  # while these pass through a tree, it stays in the cache

# what LightGBM takes for zero, where zeros are missing: a float32, compared as a float64
NEARLY_ZERO = float(np.float32(1e-35))

announce(__file__, SOURCES, "compiling the walks through trees for this CPU, this once")


def jit(function: Any) -> Any:
    """Compile without the GIL, so that threads can share the rows."""
    return compiled(function, sources=SOURCES, nogil=True, error_model="numpy")


@jit
def goes_left(x: float, threshold: float, missing: int, default_left: bool) -> bool:
    """Where a value goes at a node. A NaN counts as 0 where NaN is not what is missing."""
    if missing == NAN:
        return default_left if np.isnan(x) else x <= threshold
    if np.isnan(x):
        x = 0.0
    if missing == ZERO and abs(x) <= NEARLY_ZERO:
        return default_left
    return x <= threshold


@jit
def add_scores(
    X: Any, rows: int, roots: Any, feature: Any, threshold: Any, left: Any, missing: Any,
    default_left: Any, value: Any, out: Any,
) -> None:  # fmt: skip
    """Add to `out` what every tree says of the first rows of X, tree by tree."""
    for first in range(0, rows, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, rows)
        for root in roots:
            for row in range(first, last):
                node = root
                while left[node] > 0:
                    x = np.float64(X[row, feature[node]])
                    go = goes_left(x, threshold[node], missing[node], default_left[node])
                    node = left[node] + (0 if go else 1)
                out[row] += value[node]


@jit
def add_sparse_scores(
    data: Any, indices: Any, indptr: Any, slot: Any, slots: int, roots: Any, feature: Any,
    threshold: Any, left: Any, missing: Any, default_left: Any, value: Any, out: Any,
) -> None:  # fmt: skip
    """The same for rows of a CSR matrix; slot[f] says where feature f is put, −1 for nowhere."""
    rows = len(indptr) - 1
    block = np.zeros((ROWS_AT_ONCE, slots))
    for first in range(0, rows, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, rows)
        for row in range(first, last):
            for i in range(indptr[row], indptr[row + 1]):
                if slot[indices[i]] >= 0:
                    block[row - first, slot[indices[i]]] = data[i]
        add_scores(
            block, last - first, roots, feature, threshold, left, missing, default_left, value,
            out[first:last],
        )  # fmt: skip
        for row in range(first, last):  # cheaper than filling it with zeros
            for i in range(indptr[row], indptr[row + 1]):
                if slot[indices[i]] >= 0:
                    block[row - first, slot[indices[i]]] = 0.0
