"""Least squares with an L2 penalty for many targets at once, by conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class RidgeSolver:
    """Solves (s_j XᵀX + λ) v_j = b_j for all columns j together.

    Only products with X are formed, never XᵀX: time and memory go with the non-zeros of X and
    with features × columns. Each column has steps of its own, so that it ends as early as it would
    alone, and one product with X serves them all. The diagonal preconditions, because features
    that most rows have stand beside features that few have.

    Parameters
    ----------
    X
        [rows, features] CSR, float64
    l2
        λ, above 0
    """

    def __init__(self, X: Any, l2: float) -> None:
        self.X = X
        self.transposed = X.T.tocsr()  # products by rows of either are the fast ones
        self.l2 = l2
        self._squares = np.asarray(X.multiply(X).sum(axis=0)).reshape(-1, 1)

    def solve(
        self,
        right: Array,
        *,
        scales: Array | float = 1.0,
        start: Array | None = None,
        tol: float = 1e-6,
        max_steps: int = 200,
    ) -> Array:
        """[features, columns] the solutions.

        Parameters
        ----------
        right
            [features, columns] b
        scales
            [columns] s, not negative
        start
            [features, columns] where to begin; 0 without
        tol
            a column ends when its residual is at most this part of its b
        max_steps
            most steps. Every one of them lowers the quadratic whose minimum is sought, so that
            fewer than convergence takes are still an improvement on `start`.
        """
        solution = np.zeros_like(right) if start is None else start.copy()
        residual = right - self._product(solution, scales) if start is not None else right.copy()
        enough = tol * np.linalg.norm(right, axis=0)
        diagonal = self._squares * scales + self.l2
        direction = residual / diagonal
        size = (residual * direction).sum(axis=0)
        for _ in range(max_steps):
            going = np.linalg.norm(residual, axis=0) > enough
            if not going.any():
                break
            image = self._product(direction, scales)
            curvature = (direction * image).sum(axis=0)
            going &= curvature > 0  # or the direction is 0 but for rounding
            step = np.divide(size, curvature, out=np.zeros_like(size), where=going)
            solution += step * direction
            residual -= step * image
            preconditioned = residual / diagonal
            previous, size = size, (residual * preconditioned).sum(axis=0)
            turn = np.divide(size, previous, out=np.zeros_like(size), where=going)
            direction = preconditioned + turn * direction
        return solution

    def _product(self, columns: Array, scales: Array | float) -> Array:
        product: Array = self.transposed @ (self.X @ columns)
        return product * scales + self.l2 * columns
