"""Correlation of every product of two columns with a label, by a few matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import IntArray
from tierrank.ranking.features.columns import (
    AnyArray,
    FloatArray,
    column_statistics,
    dense_block,
    row_blocks,
    unit_power,
)

# A column whose mean is this many deviations from 0 is centred. Others are not: their zeros, and
# so products that are 0 in every row, stay exact.
_FAR_FROM_ZERO = 10.0

# A variance that is so much smaller than what it is the difference of has lost too many digits.
_CANCELLED = 1e-6


def product_correlations(X: Any, y: AnyArray) -> FloatArray:
    """Pearson correlation of x_i x_j with y, for all i and j.

    With z = (x − c) / s, where c is 0 or the mean of a column far from 0, and a = c / s,

        x_i x_j / (s_i s_j) = z_i z_j + a_j z_i + a_i z_j + a_i a_j,

    so the variance of a product and its covariance with y follow from the means over the rows of
    z_i z_j, z_i² z_j², z_i z_j y and z_i² z_j: matrix products, each of a block of rows at a time.
    The few pairs for which the terms cancel are computed from the products themselves.

    Parameters
    ----------
    X
        [rows, features] finite, dense or CSR
    y
        [rows] finite

    Returns
    -------
    array
        [features, features] symmetric; 0 where the product, or y, is constant
    """
    rows, n_features = X.shape
    label = _unit_label(y)
    if not label.any():
        return np.zeros((n_features, n_features))
    known = column_statistics(X)
    centre = np.where(np.abs(known.mean) > _FAR_FROM_ZERO * known.deviation, known.mean, 0.0)
    scale = np.maximum(known.deviation, np.abs(known.mean - centre))
    scale[~(scale > 0)] = 1.0  # zero throughout, or constant and centred: z is 0
    # Numbers near 1 before anything is subtracted, divided or squared.
    unit = unit_power(np.maximum(np.abs(known.low), np.abs(known.high)))
    centre, scale = centre * unit, scale * unit
    offset = centre / scale
    far = np.flatnonzero(offset)

    z_mean, zy_mean = np.zeros(n_features), np.zeros(n_features)
    zz, zzzz, zzy = (np.zeros((n_features, n_features)) for _ in range(3))
    zz_far = np.zeros((n_features, len(far)))  # z_i² z_j, for the j that are far
    for block in row_blocks(rows, n_features):
        z = (dense_block(X, block) * unit - centre) / scale
        square = z * z
        z_mean += z.sum(axis=0)
        zy_mean += label[block] @ z
        zz += z.T @ z
        zzzz += square.T @ square
        zzy += z.T @ (z * label[block, None])
        if len(far):
            zz_far += square.T @ z[:, far]
    for total in (z_mean, zy_mean, zz, zzzz, zzy, zz_far):
        total /= rows

    variance = zzzz - zz * zz
    magnitude = zzzz + zz * zz
    covariance = zzy + offset * zy_mean[:, None] + offset[:, None] * zy_mean
    if len(far):
        z_variance = np.diag(zz) - z_mean**2
        z_covariance = zz - np.outer(z_mean, z_mean)
        cross = np.zeros_like(zz)  # a_j Cov(z_i z_j, z_i)
        cross[:, far] = offset[far] * (zz_far - zz[:, far] * z_mean[:, None])
        alone = offset**2 * z_variance[:, None]  # a_j² Var(z_i)
        both = 2 * np.outer(offset, offset) * z_covariance
        variance += alone + alone.T + both + 2 * (cross + cross.T)
        magnitude += alone + alone.T + np.abs(both) + 2 * (np.abs(cross) + np.abs(cross.T))
    correlation = np.zeros_like(zz)
    sure = variance > _CANCELLED * magnitude
    correlation[sure] = covariance[sure] / np.sqrt(variance[sure])
    unsure = np.argwhere(np.triu(~sure & (magnitude > 0)))
    _fill_in(correlation, unsure, X, unit, label)
    clipped: FloatArray = np.clip(correlation, -1.0, 1.0)
    return clipped


def _unit_label(y: AnyArray) -> FloatArray:
    """The label with mean 0 and standard deviation 1; 0 throughout if it is constant."""
    known = column_statistics(np.asarray(y, dtype=np.float64)[:, None])
    unit = unit_power(np.maximum(np.abs(known.low), np.abs(known.high)))
    away: FloatArray = np.asarray(y, dtype=np.float64) * unit - known.mean * unit
    away /= np.where(known.deviation > 0, known.deviation * unit, 1.0)
    away -= away.mean()
    return away


def _fill_in(
    correlation: FloatArray, pairs: IntArray, X: Any, unit: FloatArray, label: FloatArray
) -> None:
    """Correlations of a few pairs by the definition, two passes over their products."""
    rows, n_features = X.shape
    noise = np.finfo(X.dtype).eps
    # As many pairs at once as there are features: then a block of products is one of rows too.
    for start in range(0, len(pairs), n_features):
        first, second = pairs[start : start + n_features].T
        total, peak = np.zeros(len(first)), np.zeros(len(first))
        covariance, square, rest = (np.zeros(len(first)) for _ in range(3))
        for block in row_blocks(rows, n_features):
            x = dense_block(X, block) * unit
            product = x[:, first] * x[:, second]
            total += product.sum(axis=0)
            np.maximum(peak, np.abs(product).max(axis=0), out=peak)
        mean = total / rows
        for block in row_blocks(rows, n_features):
            x = dense_block(X, block) * unit
            away = x[:, first] * x[:, second] - mean
            rest += away.sum(axis=0)
            square += (away * away).sum(axis=0)
            covariance += label[block] @ away
        deviation = np.sqrt(np.maximum(square / rows - (rest / rows) ** 2, 0.0))
        varies = deviation > noise * peak  # below that, it is how products were rounded
        value = np.where(varies, covariance / rows / np.where(varies, deviation, 1.0), 0.0)
        correlation[first, second] = correlation[second, first] = value
