"""Quasi-variances: one number an item, from which the variance of every difference follows.

A table can hold one standard error an item, but what people compare are pairs, and the estimates
are correlated. Quasi-variances q are made so that var(w_i − w_j) ≈ q_i + q_j for all pairs, as if
the estimates were independent. They minimise (Firth and de Menezes, 2004, Biometrika 91)

    Σ_{i<j} (log(q_i + q_j) − log var(w_i − w_j))².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank._types import BoolArray, FloatArray
from tierrank.aggregation.item_ranks import as_covariance
from tierrank.training.optim import by_cholesky, newton


@dataclass(frozen=True, eq=False)
class QuasiVariances:
    """Quasi-variances, and how far off they are.

    Parameters
    ----------
    values : ndarray of float
        [items] numbers q. One of them may be negative: the sums of two never are.
    worst_error : tuple of float
        The lowest and the highest relative error of a difference's standard error,
        √((q_i + q_j) / var(w_i − w_j)) − 1, over all pairs.

    See Also
    --------
    tierrank.RankAggregator.quasi_variances : Gives them.

    Examples
    --------
    >>> import tierrank as tr
    >>> fitted = tr.RankAggregator().fit([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
    >>> low, high = fitted.quasi_variances().worst_error  # of three items they are exact
    >>> bool(abs(low) < 1e-6 and abs(high) < 1e-6)
    True
    """

    values: FloatArray
    worst_error: tuple[float, float]

    @property
    def standard_errors(self) -> FloatArray:
        """√q: half-lengths of comparison intervals; NaN where q is negative."""
        return np.sqrt(np.where(self.values < 0.0, np.nan, self.values))


def quasi_variances(covariance: Any, *, equal: bool = False) -> QuasiVariances:
    """Quasi-variances of estimates with this covariance.

    It is only looked at through the variances of differences, so it makes no difference to which
    item, or to which average, the log-worths are relative. With three items the quasi-variances
    are exact. With two only their sum is determined, and each is one half of it; of one item, 0.

    Parameters
    ----------
    covariance
        [items, items] of log-worths; may be singular.
    equal
        What becomes of items whose difference has no variance: one estimate under several names, as
        items of equal features are, with the quasi-variance that one of them alone would have.
        Otherwise they are refused.

    Examples
    --------
    Independent estimates have their own variances, centred or not.

    >>> import numpy as np
    >>> centring = np.eye(4) - 0.25
    >>> quasi_variances(centring @ np.diag([1.0, 2.0, 3.0, 4.0]) @ centring).values
    array([1., 2., 3., 4.])
    """
    matrix = as_covariance(covariance, len(np.asarray(covariance)))
    if equal:
        own = np.diagonal(matrix)
        apart = ~_nothing(np.add.outer(own, own) - matrix - matrix.T, own)
        first, estimate = np.unique(apart.argmin(axis=1), return_inverse=True)
        if len(first) < len(own):
            alone = quasi_variances(matrix[np.ix_(first, first)])
            return QuasiVariances(alone.values[estimate], alone.worst_error)
    items = len(matrix)
    differences = difference_variances(matrix)
    if items == 1:
        return QuasiVariances(np.zeros(1), (0.0, 0.0))
    if items == 2:
        return QuasiVariances(np.full(2, 0.5 * differences[0, 1]), (0.0, 0.0))
    if items == 3:
        # v_ij + v_ik − v_jk = 2 q_i: three equations for three numbers
        rows = differences.sum(axis=1)
        return QuasiVariances(rows - 0.25 * rows.sum(), (0.0, 0.0))
    pairs = np.triu_indices(items, 1)
    # relative to a typical one, so that nothing over- or underflows
    unit = float(np.exp(np.log(differences[pairs]).mean()))
    values = unit * minimise(differences / unit)
    errors = np.sqrt((values[pairs[0]] + values[pairs[1]]) / differences[pairs]) - 1.0
    return QuasiVariances(values, (float(errors.min()), float(errors.max())))


def difference_variances(matrix: FloatArray) -> FloatArray:
    """var(w_i − w_j), checked to be positive; 0 on the diagonal."""
    own = np.diagonal(matrix)
    differences = np.add.outer(own, own) - matrix - matrix.T
    np.fill_diagonal(differences, 0.0)
    lacking = _nothing(differences, own)
    np.fill_diagonal(lacking, False)
    if lacking.any():
        i, j = (int(n) for n in np.argwhere(lacking)[0])
        raise ValueError(
            f"the difference of items {i} and {j} has the variance {differences[i, j]:.3g}: "
            "quasi-variances need a positive one for every pair"
        )
    return differences


def _nothing(differences: FloatArray, own: FloatArray) -> BoolArray:
    """Where a difference of estimates has no variance, but for rounding."""
    return ~(differences > 1e-14 * np.maximum.outer(own, own))


def minimise(differences: FloatArray) -> FloatArray:
    """Newton's method on the sum of squares, all sums of two kept positive.

    With s_ij = q_i + q_j and residuals r = log s − log v, the Hessian is 2 (D + W), where
    W_ij = (1 − r_ij)/s_ij² off the diagonal and D holds the sums of its rows: positive definite as
    long as r < 1. Larger residuals get a smaller weight than Newton's, and a step of descent.
    """
    items = len(differences)
    diagonal = np.diag_indices(items)
    logs = np.log(differences + np.eye(items))

    def summed(q: FloatArray) -> FloatArray:
        sums = np.add.outer(q, q)
        sums[diagonal] = 1.0
        return sums

    def residuals(sums: FloatArray) -> FloatArray:
        left = np.log(sums) - logs
        left[diagonal] = 0.0
        return left

    def function(q: FloatArray) -> tuple[float, FloatArray]:
        sums = summed(q)
        if sums.min() <= 0.0:
            return np.inf, q
        left = residuals(sums)
        return 0.5 * float(np.vdot(left, left)), 2.0 * (left / sums).sum(axis=1)

    def solve(q: FloatArray, gradient: FloatArray, _: float) -> FloatArray | None:
        sums = summed(q)
        weights = np.maximum(1.0 - residuals(sums), 0.25) / np.square(sums)
        weights[diagonal] = 0.0
        # two items far surer than the rest hardly tell one from the other: stay off singularity
        weights[diagonal] = (1.0 + 1e-14 * items) * weights.sum(axis=1)
        return by_cholesky(weights, 0.5 * gradient)

    # least squares of v_ij = q_i + q_j, kept away from 0
    rows = differences.sum(axis=1)
    q = (rows - rows.sum() / (2.0 * (items - 1))) / (items - 2)
    smallest = np.where(np.eye(items, dtype=bool), np.inf, differences).min(axis=1)
    end = newton(function, solve, np.maximum(q, 0.1 * smallest))
    if not end.converged:
        raise ArithmeticError(
            f"quasi-variances have not converged in {end.iterations} steps: please report it"
        )
    return end.point
