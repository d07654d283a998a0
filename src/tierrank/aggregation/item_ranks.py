"""Where items will stand under the Plackett-Luce model: who is above whom, expected ranks, top k.

Only differences of the log-worths w count. Items that arrive after exponential times with rates
λ = e^w arrive in an order that follows the model. So item i is among the first k if at most k − 1
others arrive before it:

    P(i among the first k) = ∫ λ_i e^(−λ_i t) P(at most k − 1 others have arrived by t) dt.

The count of the others is a sum of independent coins, P(j has arrived) = 1 − e^(−λ_j t). Counts of
the items in front of i, and of those behind it, are made by adding one coin after the other, and
the two together give the count without i: nothing is subtracted, so no digits are lost.

How sure all that is, and which ranks an item may truly have, say draws of the log-worths from their
normal distribution.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import FloatArray, IntArray

BLOCK = 1 << 20  # numbers at once


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


# Σ_j P(j above an item of log-worth u) is analytic in u for |Im u| < π. So on a panel of length 2
# its values at 22 Chebyshev points determine it to (π + √(1 + π²))^−22 = 2e-18 of its largest one.
PANEL, POINTS = 2.0, 22


def pairwise_probabilities(log_worths: Any, items: Sequence[int] | None = None) -> FloatArray:
    """P(row above column), for all items or some: 1 / (1 + e^(w_column − w_row)).

    Parameters
    ----------
    log_worths
        [items] float.
    items
        Numbers of the items wanted, in the order wanted; all of them, by default.

    Returns
    -------
    [n, n] float64; 0.5 on the diagonal. Small probabilities have all their digits.

    Examples
    --------
    >>> pairwise_probabilities([0.0, 1.0986122886681098])
    array([[0.5 , 0.25],
           [0.75, 0.5 ]])
    """
    from scipy.special import expit

    w = as_log_worths(log_worths)
    if items is not None:
        chosen = np.asarray(items)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise ValueError("items must be a sequence of item numbers")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(w):
            raise ValueError(f"items must be between 0 and {len(w) - 1}, but are {chosen.tolist()}")
        w = w[chosen.astype(np.int64)]
    probabilities: FloatArray = expit(np.subtract.outer(w, w))
    return probabilities


def expected_ranks(log_worths: Any) -> FloatArray:
    """The expected rank of each item, 1 being the best: 1 + Σ_j P(j above i).

    With many items, Σ_j P(j above u) is computed for the u of some Chebyshev points and
    interpolated, which is exact to rounding and takes time linear in the items. Memory too.

    Examples
    --------
    >>> expected_ranks([0.0, 1.0986122886681098])
    array([1.75, 1.25])
    """
    w = as_log_worths(log_worths)
    panel_of = np.floor((w - w.min()) / PANEL)
    panels, which = np.unique(panel_of, return_inverse=True)
    if len(panels) * POINTS >= len(w):
        # an item is not above itself
        return 0.5 + above(w, w)
    angles = (np.arange(POINTS) + 0.5) * (np.pi / POINTS)
    points, signs = np.cos(angles), np.sin(angles) * (-1.0) ** np.arange(POINTS)
    centres = w.min() + PANEL * (panels + 0.5)
    values = above(w, (centres[:, None] + 0.5 * PANEL * points).ravel()).reshape(-1, POINTS)
    ranks = np.empty_like(w)
    rows = max(1, BLOCK // POINTS)
    for first in range(0, len(w), rows):
        at = slice(first, first + rows)
        gaps = ((w[at] - centres[which[at]]) * (2.0 / PANEL))[:, None] - points
        gaps[gaps == 0.0] = 1e-300  # on a point: its weight outgrows the others
        weights = signs / gaps  # barycentric interpolation
        ranks[at] = (weights * values[which[at]]).sum(axis=1) / weights.sum(axis=1)
    return 0.5 + ranks


def above(w: FloatArray, levels: FloatArray) -> FloatArray:
    """Σ_j P(item j above an item of that log-worth), for each level."""
    from scipy.special import expit

    sums = np.empty_like(levels)
    rows = max(1, BLOCK // len(w))
    for first in range(0, len(levels), rows):
        block = np.subtract.outer(levels[first : first + rows], w)
        sums[first : first + rows] = expit(np.negative(block, out=block), out=block).sum(axis=1)
    return sums


def top_k_probabilities(log_worths: Any, k: int) -> FloatArray:
    """P(item among the first k) for every item, exact to rounding.

    An integral over the time of an exponential race (see above), in time
    O(items · min(k, items − k)). The absolute error is a few 1e-15, for worths that differ by
    factors of e^30 as well; if k is at most half of the items, small probabilities have all their
    digits.

    Parameters
    ----------
    log_worths
        [items] float.
    k
        From 1 to the number of items.

    Examples
    --------
    >>> top_k_probabilities([0.0, 0.0, 0.0, 0.0], 3)
    array([0.75, 0.75, 0.75, 0.75])
    """
    w = as_log_worths(log_worths)
    k = operator.index(k)
    if not 1 <= k <= len(w):
        raise ValueError(f"k must be from 1 to {len(w)}, the number of items, but is {k}")
    if k == len(w):
        return np.ones_like(w)
    if k == 1:
        worths = np.exp(w - w.max())
        return np.asarray(worths / worths.sum())
    return top_k(w, k)


TAIL = 41.5  # what is left out at either end of the integral is less than e^−TAIL = 1e-18
NODES = 16  # Gauss-Legendre nodes of a panel, which are exact to rounding if it spans
DEVIATIONS = 3.0  # no more than so many standard deviations of the count
LONGEST = 1.5  # and no more than so much of log t, the scale of one item's own arrival
TOLERANCE = 1e-10
NUMBERS_AT_ONCE = 8192  # of a count's probabilities, so that they stay in the first cache
LATEST = 6.7  # log(λt) from which on e^(−λt) is 0


class Arrivals(NamedTuple):
    """The items at some times t = e^x: [items] for one time, [items, times] for several."""

    hazard: FloatArray  # λt
    arrived: FloatArray  # 1 − e^(−λt)
    left: FloatArray  # e^(−λt)


def arrivals(log_rates: FloatArray, x: float | FloatArray) -> Arrivals:
    """How likely each item is to have arrived by t = e^x."""
    hazard = np.exp(np.minimum(np.add.outer(log_rates, x), LATEST))
    return Arrivals(hazard, -np.expm1(-hazard), np.exp(-hazard))


def top_k(log_worths: FloatArray, k: int) -> FloatArray:
    """P(item among the first k), for 1 < k < items.

    Σ_i P(i among the first k) = k tells how good the quadrature is; if it were off, panels would
    be halved.
    """
    log_rates = log_worths - log_worths.max()
    start, stop = where_it_is_open(log_rates, k)
    for finer in (1.0, 0.5, 0.25):
        probabilities = integrate(log_rates, k, panels(log_rates, start, stop, finer))
        if abs(probabilities.sum() - k) <= TOLERANCE * k:
            break
    else:
        raise ArithmeticError(
            f"the probabilities of being among the first {k} add up to {probabilities.sum()!r}, "
            f"which should be {k}: please report these log-worths"
        )
    return np.clip(probabilities, 0.0, 1.0)


def log_tail(mean: float, count: int) -> float:
    """Chernoff's bound on the log-probability of a count as far out as this one, or further.

    count − mean − count log(count/mean): for a sum of independent coins, as for a Poisson number.
    """
    if mean <= 0.0 or count == 0:
        return -mean if count == 0 else -math.inf
    return count - mean - count * math.log(count / mean)


def where_it_is_open(log_rates: FloatArray, k: int) -> tuple[float, float]:
    """log t before which k items have not arrived, and after which they have, for all we can see.

    Bounds on the tail of the number that has arrived, and on that of the number that is left;
    either will do.
    """
    below = len(log_rates) - k

    def too_early(x: float) -> bool:
        _, arrived, left = arrivals(log_rates, x)
        here, away = float(arrived.sum()), float(left.sum())
        return (here < k and log_tail(here, k) < -TAIL) or (
            away > below and log_tail(away, below) < -TAIL
        )

    def late(x: float) -> bool:
        _, arrived, left = arrivals(log_rates, x)
        here, away = float(arrived.sum()), float(left.sum())
        return (here > k and log_tail(here, k) < -TAIL) or (
            away < below and log_tail(away, below) < -TAIL
        )

    # no item has arrived at the first, and all of them at the second
    first = -float(np.log(np.exp(log_rates).sum())) - TAIL - 2.0
    last = math.log(2.0 * TAIL + math.log(len(log_rates))) - float(log_rates.min())
    start, undecided = first, last
    while undecided - start > 0.01:
        middle = 0.5 * (start + undecided)
        start, undecided = (middle, undecided) if too_early(middle) else (start, middle)
    undecided, stop = start, last
    while stop - undecided > 0.01:
        middle = 0.5 * (undecided + stop)
        undecided, stop = (undecided, middle) if late(middle) else (middle, stop)
    return start, stop


def panels(log_rates: FloatArray, start: float, stop: float, finer: float) -> FloatArray:
    """Edges of the panels between two values of log t; `finer` makes them shorter."""

    def longest(x: float) -> float:
        hazard, arrived, left = arrivals(log_rates, x)
        speed = float(hazard @ left)  # of the mean count
        deviation = math.sqrt(1.0 + float(arrived @ left))
        return finer * min(LONGEST, DEVIATIONS * deviation / max(speed, 1e-300))

    edges = [start]
    while edges[-1] < stop:
        length = longest(edges[-1])
        # the count may change faster further on
        length = min(length, longest(edges[-1] + length))
        edges.append(min(edges[-1] + length, stop))
    return np.array(edges)


def integrate(log_rates: FloatArray, k: int, edges: FloatArray) -> FloatArray:
    """The integral for all items: in closed form up to the first edge, by nodes up to the last.

    If more than half of the items are in the first k, it is those that are *not* whose
    probability is integrated: item i is among the last m if at most m − 1 others are left when
    it arrives.
    """
    from_the_end = 2 * k > len(log_rates)
    few = len(log_rates) - k if from_the_end else k
    abscissas, weights = np.polynomial.legendre.leggauss(NODES)
    halves = 0.5 * np.diff(edges)
    x = (edges[:-1] + halves)[:, None] + halves[:, None] * abscissas
    weights = halves[:, None] * weights
    ends = arrivals(log_rates, edges[[0, -1]])
    total = ends.left[:, 1].copy() if from_the_end else ends.arrived[:, 0].copy()
    block = max(1, NUMBERS_AT_ONCE // few)
    for first in range(0, x.size, block):
        nodes = slice(first, first + block)
        add_nodes(total, log_rates, x.ravel()[nodes], weights.ravel()[nodes], few, from_the_end)
    return 1.0 - total if from_the_end else total


def add_nodes(
    total: FloatArray,
    log_rates: FloatArray,
    x: FloatArray,
    weights: FloatArray,
    few: int,
    from_the_end: bool,
) -> None:
    """Add to each item's integral what some nodes x = log t contribute to it.

    The counts in front of all items would be too much to keep, so we keep those in front of every
    √items-th one, and make the rest once more on the way back.
    """
    items = len(log_rates)
    stride = math.isqrt(items - 1) + 1
    starts = range(0, items, stride)

    def coins(first: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        hazard, arrived, left = arrivals(log_rates[first : first + stride], x)
        density = hazard * left * weights
        return (left, arrived, density) if from_the_end else (arrived, left, density)

    in_front = np.zeros((few, len(x)))  # P(c of the items in front of i), c = 0 … few − 1
    in_front[0] = 1.0
    kept = np.empty((len(starts), few, len(x)))
    for n, first in enumerate(starts):
        kept[n] = in_front
        if n + 1 < len(starts):
            hits, misses, _ = coins(first)
            for hit, miss in zip(hits, misses, strict=True):
                in_front = added(in_front, hit, miss)

    # P(at most few − 1 − c of the items behind i), so that it meets c items in front
    behind = np.ones((few, len(x)))
    for n, first in reversed(list(enumerate(starts))):
        hits, misses, density = coins(first)
        fronts = [kept[n]]
        for hit, miss in zip(hits[:-1], misses[:-1], strict=True):
            fronts.append(added(fronts[-1], hit, miss))
        for i in range(len(hits) - 1, -1, -1):
            few_others = np.einsum("ct,ct->t", fronts[i], behind)
            total[first + i] += few_others @ density[i]
            behind = added(behind[::-1], hits[i], misses[i])[::-1]


def added(counts: FloatArray, hit: FloatArray, miss: FloatArray) -> FloatArray:
    """Probabilities of counts with one coin more: P(c) miss + P(c − 1) hit."""
    sums = counts * miss
    sums[1:] += counts[:-1] * hit
    return sums


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
