"""What is asked of log-worths and their covariance, wherever they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def as_log_worths(log_worths: Any) -> FloatArray:
    """Log-worths as float64 [items], checked."""
    w = np.asarray(log_worths, dtype=np.float64)
    if w.ndim != 1 or not w.size:
        raise ValueError(f"log-worths must be one number an item, but have the shape {w.shape}")
    if not np.isfinite(w).all():
        item = int(np.flatnonzero(~np.isfinite(w))[0])
        raise ValueError(f"log-worths must be finite, but that of item {item} is {w[item]}")
    return w


def as_covariance(covariance: Any, items: int) -> FloatArray:
    """A covariance as float64 [items, items], checked."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.shape != (items, items):
        raise ValueError(
            f"the covariance of {items} items must have the shape {(items, items)}, "
            f"but has {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        row, column = (int(n) for n in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(
            f"the covariance must be finite, but its entry ({row}, {column}) is "
            f"{matrix[row, column]}"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-8 * np.abs(matrix).max()):
        raise ValueError("the covariance must be symmetric")
    return matrix
