"""Statistics of the columns of a matrix, a block of rows at a time, safe for any finite numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

AnyArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]

_BLOCK_NUMBERS = 1 << 20  # 8 MB in float64: long enough for fast products, short enough for any RAM


class ColumnStatistics(NamedTuple):
    """What is known of each column; NaN is left out, and a column of nothing else has 0 everywhere.

    Attributes
    ----------
    low, high
        [columns] smallest and largest value
    mean, deviation
        [columns] mean and standard deviation (divided by the number of rows); of a constant column
        exactly its value, and exactly 0
    """

    low: FloatArray
    high: FloatArray
    mean: FloatArray
    deviation: FloatArray


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut the rows into blocks of about a million numbers."""
    step = max(1, _BLOCK_NUMBERS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def dense_block(X: Any, rows: slice) -> FloatArray:
    """Give some rows of a dense or sparse matrix as float64."""
    block = X[rows].toarray() if sparse.issparse(X) else X[rows]
    return np.asarray(block, dtype=np.float64)


def unit_power(largest: FloatArray) -> FloatArray:
    """Power of two that brings a magnitude near 1: what is multiplied by it keeps every digit.

    Squares and differences of what was scaled so neither overflow nor vanish.
    """
    exponent = np.frexp(largest)[1]
    power: FloatArray = np.ldexp(1.0, -np.clip(exponent, -1000, 1000))  # beyond, it would overflow
    return power


def column_statistics(X: Any) -> ColumnStatistics:
    """Compute the statistics of a dense or CSR matrix of finite numbers and NaN."""
    return _of_sparse(X) if sparse.issparse(X) else _of_dense(X)


def _of_dense(X: AnyArray) -> ColumnStatistics:
    n_columns = X.shape[1]
    blocks = list(row_blocks(*X.shape))
    low, high = np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    count = np.zeros(n_columns)
    for rows in blocks:
        low = np.fmin(low, np.fmin.reduce(X[rows], axis=0))
        high = np.fmax(high, np.fmax.reduce(X[rows], axis=0))
        count += np.count_nonzero(~np.isnan(X[rows]), axis=0)
    low, high = np.nan_to_num(low), np.nan_to_num(high)
    count = np.maximum(count, 1)
    unit = unit_power(np.maximum(np.abs(low), np.abs(high)))
    total = np.zeros(n_columns)
    for rows in blocks:
        total += np.nansum(dense_block(X, rows) * unit, axis=0)
    mean = total / count
    # Squares of deviations from the mean, not of the values: those would cancel for 1e9 + tiny.
    first, second = np.zeros(n_columns), np.zeros(n_columns)
    for rows in blocks:
        away = dense_block(X, rows) * unit - mean
        first += np.nansum(away, axis=0)
        second += np.nansum(away * away, axis=0)
    return _finished(low, high, count, unit, mean, first, second)


def _of_sparse(X: Any) -> ColumnStatistics:
    rows, n_columns = X.shape
    column, value = X.indices, np.asarray(X.data, dtype=np.float64)
    present = ~np.isnan(value)
    column, value = column[present], value[present]
    stored = np.bincount(X.indices, minlength=n_columns)
    kept = np.bincount(column, minlength=n_columns)
    zeros = (rows - stored).astype(np.float64)
    low = np.where(zeros > 0, 0.0, np.inf)
    high = -low
    np.minimum.at(low, column, value)
    np.maximum.at(high, column, value)
    low, high = (np.where(np.isfinite(bound), bound, 0.0) for bound in (low, high))
    count = np.maximum(kept + zeros, 1)
    unit = unit_power(np.maximum(np.abs(low), np.abs(high)))
    value = value * unit[column]
    mean = np.bincount(column, value, minlength=n_columns) / count
    away = value - mean[column]
    first = np.bincount(column, away, minlength=n_columns) - zeros * mean
    second = np.bincount(column, away * away, minlength=n_columns) + zeros * mean**2
    return _finished(low, high, count, unit, mean, first, second)


def _finished(
    low: FloatArray,
    high: FloatArray,
    count: FloatArray,
    unit: FloatArray,
    mean: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> ColumnStatistics:
    """Mend the mean by what the deviations add up to, and undo the scaling."""
    shift = first / count
    variance = np.maximum(second / count - shift**2, 0.0)
    constant = low == high
    return ColumnStatistics(
        low,
        high,
        np.where(constant, low, (mean + shift) / unit),
        np.where(constant, 0.0, np.sqrt(variance) / unit),
    )
