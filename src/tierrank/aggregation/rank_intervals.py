"""How sure a function of fitted log-worths is, and the ranks that items may have."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.rank_probabilities import as_covariance, as_log_worths

BLOCK = 1 << 20  # numbers at once


def simulated_intervals(
    function: Callable[[FloatArray], Any],
    log_worths: Any,
    covariance: Any,
    *,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Intervals of any function of the log-worths, by draws from their normal distribution.

    The function is computed at w* ~ N(w, covariance), and the percentiles (1 ± level)/2 of what it
    gives are the interval. So it never leaves the function's range: expected ranks stay between 1
    and the number of items, probabilities between 0 and 1, where w ± 2 standard errors by the
    delta method would not.

    Parameters
    ----------
    function
        Takes log-worths [items], gives an array, always of the same shape.
    log_worths, covariance
        [items] and [items, items]; the covariance may be singular, as that of centred log-worths.
    level
        Of confidence, each interval by itself.
    draws, seed
        How many draws, and where they start.

    Returns
    -------
    low, high
        Of the shape of what the function gives.
    """
    tail = tail_of(level)
    values = np.stack(
        [
            np.asarray(function(w), dtype=np.float64)
            for block in drawn(log_worths, covariance, draws, seed)
            for w in block
        ]
    )
    low, high = np.quantile(values, (tail, 1.0 - tail), axis=0)
    return low, high


def rank_intervals(
    log_worths: Any,
    covariance: Any,
    *,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    method: str = "differences",
) -> IntArray:
    """The ranks that each item may have among the others by its true worth, from best to worst.

    That is about the order of the true worths, not about the outcome of a list, which is more
    random (`expected_ranks`, `top_k_probabilities`). Each item's interval holds by itself.

    Parameters
    ----------
    log_worths, covariance
        [items] and [items, items]; the covariance may be singular.
    level
        Of confidence.
    draws, seed
        How many draws, and where they start.
    method
        "differences": an item is surely below those that are better by more than a margin, and
        above those that are worse by more; with the given confidence none of that is wrong, since
        the margin is the percentile, over draws of the errors, of the largest standardised error
        of its differences with all others (Mogstad, Romano, Shaikh and Wilhelm, 2024, Review of
        Economic Studies 91). It holds for tied items too.

        "draws": the percentiles (1 ± level)/2 of its rank in draws of the log-worths. These are
        shorter, and too short where items are close: a draw adds noise to noise and so takes the
        best and the worst of near-equal items for average ones.

    Returns
    -------
    [items, 2] int64: the best and the worst rank, 1 being the best.
    """
    tail = tail_of(level)
    if method == "draws":
        blocks = drawn(log_worths, covariance, draws, seed)
        ranks = np.concatenate([(-block).argsort(axis=1).argsort(axis=1) for block in blocks])
        ends = np.quantile(ranks, (tail, 1.0 - tail), axis=0, method="inverted_cdf")
        return np.asarray(1 + ends.T, dtype=np.int64)
    if method != "differences":
        raise ValueError(f'method must be "differences" or "draws", but is {method!r}')
    w = as_log_worths(log_worths)
    matrix = as_covariance(covariance, len(w))
    errors = np.concatenate(list(drawn(np.zeros_like(w), matrix, draws, seed)))
    own = np.diagonal(matrix)
    intervals = np.empty((len(w), 2), dtype=np.int64)
    for i in range(len(w)):
        scale = np.sqrt(np.maximum(own + own[i] - 2.0 * matrix[i], 0.0))
        # what has no error but rounding, as its difference with itself, needs no margin
        known = scale <= 1e-7 * scale.max()
        largest = np.abs(errors - errors[:, i : i + 1]) / np.where(known, np.inf, scale)
        margin = np.quantile(largest.max(axis=1), level) * np.where(known, 0.0, scale)
        intervals[i] = 1 + (w - w[i] > margin).sum(), len(w) - (w[i] - w > margin).sum()
    return intervals


def drawn(log_worths: Any, covariance: Any, draws: int, seed: int) -> Iterator[FloatArray]:
    """Draws from N(w, covariance), in blocks of [some, items]."""
    w = as_log_worths(log_worths)
    matrix = as_covariance(covariance, len(w))
    draws = operator.index(draws)
    if draws < 1:
        raise ValueError(f"draws must be positive, but is {draws}")
    variances, directions = np.linalg.eigh(matrix)
    if variances[0] < -1e-8 * max(variances[-1], 0.0):
        raise ValueError(
            f"the covariance has a negative variance, {variances[0]:.3g}, in some direction: "
            "it is not the covariance of anything"
        )
    # a Cholesky factor would not do, since centred log-worths have no variance along (1, …, 1)
    factor = directions * np.sqrt(np.maximum(variances, 0.0))
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // len(w))
    for first in range(0, draws, rows):
        noise = rng.standard_normal((min(rows, draws - first), len(w)))
        yield w + noise @ factor.T


def tail_of(level: float) -> float:
    """The probability on either side of an interval."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, but is {level!r}")
    return 0.5 * (1.0 - level)
