"""How sure a mean over lists is, and whether two rankers differ."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, FloatArray
from tierrank.tiers.arrays import to_numpy

# Random numbers that are held at once.
_BLOCK = 1 << 21

Generator = np.random.Generator | int


class Interval(NamedTuple):
    """A mean over lists, and the interval around it.

    Parameters
    ----------
    mean : float
        Over the lists.
    low, high : float
        The ends.
    confidence : float
        How often such an interval holds the true mean.

    See Also
    --------
    bootstrap_interval : An interval of the mean.

    Examples
    --------
    >>> from tierrank import metrics
    >>> interval = metrics.bootstrap_interval([0.2, 0.5, 0.4, 0.9, 0.7, 0.6], generator=1)
    >>> interval.low < interval.mean < interval.high
    True
    """

    mean: float
    low: float
    high: float
    confidence: float


class PairedTest(NamedTuple):
    """The mean difference a − b, its interval, and how often chance gives as much.

    Parameters
    ----------
    difference : float
        The mean of a − b.
    low, high : float
        The ends of its interval.
    confidence : float
        Of that interval.
    p_value : float
        How often chance gives as large a difference.
    exact : bool
        Whether all sign flips were tried.

    See Also
    --------
    paired_test : Two rankers on the same lists.

    Examples
    --------
    >>> from tierrank import metrics
    >>> test = metrics.paired_test([0.9, 0.8, 0.7, 0.6], [0.5, 0.6, 0.4, 0.5])
    >>> test.p_value, test.exact
    (0.125, True)
    """

    difference: float
    low: float
    high: float
    confidence: float
    p_value: float
    exact: bool


def bootstrap_interval(
    values: Any,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    generator: Generator = 0,
) -> Interval:
    """Bootstrap interval (BCa) of the mean over lists (Efron, 1987).

    Lists are resampled with replacement; the percentiles are corrected for bias and skewness (BCa),
    as in `scipy.stats.bootstrap`, whose numbers these are for the same generator.

    Parameters
    ----------
    values : array_like
        [lists] values, as a measure gives them with ``reduction="none"``.
    confidence : float
        How often such an interval holds the true mean.
    resamples : int
        How many times the lists are drawn.
    generator : Generator or int
        A numpy generator or a seed.

    Returns
    -------
    Interval
        The mean and the ends.

    Raises
    ------
    ValueError
        There are no values, or one is not finite.

    See Also
    --------
    paired_test : Two rankers on the same lists.
    Interval : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.bootstrap_interval([0.2, 0.5, 0.4, 0.9, 0.7, 0.6], generator=1)
    Interval(mean=0.55, low=0.3833333333, high=0.7333333333, confidence=0.95)
    """
    rows = _checked_values(values, "values")
    _check_options(confidence, resamples)
    mean = float(rows.mean())
    if np.ptp(rows) == 0:
        return Interval(mean, mean, mean, confidence)
    means = np.sort(_resampled_means(rows, resamples, np.random.default_rng(generator)))
    low, high = np.quantile(means, _bca_levels(rows, means, mean, confidence))
    return Interval(mean, float(low), float(high), confidence)


def paired_test(
    a: Any,
    b: Any,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    generator: Generator = 0,
) -> PairedTest:
    """Paired randomisation test of two rankers' values on the same lists (two-sided).

    If the rankers do
    not differ, each list's difference could as well have the other sign (Smucker et al., 2007): the
    p-value is the share of sign flips whose mean is at least as far from 0. All 2^lists flips are
    tried if there are no more than `resamples` (`exact`), else `resamples` random ones and the one
    observed, so that it is never 0. The interval of the mean difference is `bootstrap_interval`'s.

    Parameters
    ----------
    a, b : array_like
        [lists] values of each ranker, as a measure gives them with ``reduction="none"``.
    confidence : float
        Of the interval of the mean difference.
    resamples : int
        How many sign flips at most; all, if there are no more.
    generator : Generator or int
        A numpy generator or a seed.

    Returns
    -------
    PairedTest
        The mean difference with its interval, and the p-value.

    Raises
    ------
    ValueError
        The two are not of the same lists, or a value is not finite.

    See Also
    --------
    bootstrap_interval : An interval of the mean.
    holm : Correct for several tests.
    PairedTest : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> test = metrics.paired_test([0.9, 0.8, 0.7, 0.6], [0.5, 0.6, 0.4, 0.5])
    >>> test.difference, test.p_value  # two of the 16 flips: + + + + and − − − −
    (0.25, 0.125)
    """
    left, right = _checked_values(a, "a"), _checked_values(b, "b")
    if len(left) != len(right):
        raise ValueError(
            f"a has {len(left)} values and b has {len(right)}: give both for the same lists."
        )
    _check_options(confidence, resamples)
    rng = np.random.default_rng(generator)
    difference = left - right
    interval = bootstrap_interval(
        difference, confidence=confidence, resamples=resamples, generator=rng
    )
    n = len(difference)
    exact = n < 63 and 2**n <= resamples
    flips = _every_flip(n) if exact else _random_flips(n, resamples, rng)
    # Σ ± d = Σ d − 2 Σ_flipped d. Sums that differ by rounding alone are taken as equal.
    total = difference.sum()
    least = abs(total) - 1e-12 * np.abs(difference).sum()
    as_far = sum(int((np.abs(total - 2 * (flip @ difference)) >= least).sum()) for flip in flips)
    p_value = as_far / 2**n if exact else (as_far + 1) / (resamples + 1)
    return PairedTest(interval.mean, interval.low, interval.high, confidence, p_value, exact)


def holm(p_values: Any) -> FloatArray:
    """Correct the p-values of several tests for their number (Holm, 1979).

    The smallest is multiplied by how many there are, the next one by one less, and so on; none is
    above 1, nor below one that was smaller. Whoever rejects what is below 0.05 then errs anywhere
    with a probability of at most 0.05, whatever the tests have to do with each other.

    Parameters
    ----------
    p_values : array_like
        One a test.

    Returns
    -------
    ndarray of float
        Corrected p-values, in the same order.

    Raises
    ------
    ValueError
        A p-value is not between 0 and 1.

    See Also
    --------
    paired_test : Two rankers on the same lists.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given: AnyArray = np.asarray(to_numpy(p_values, "p_values"), dtype=np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise ValueError("p_values are numbers from 0 to 1, one a test")
    order = np.argsort(given, kind="stable")
    found = np.empty(len(given))
    scaled = given[order] * np.arange(len(given), 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return found


def _resampled_means(rows: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    n = len(rows)
    return np.concatenate(
        [
            rows[rng.integers(0, n, size=(block, n))].mean(axis=1)
            for block in _block_sizes(resamples, n)
        ]
    )


def _bca_levels(
    rows: FloatArray, means: FloatArray, mean: float, confidence: float
) -> tuple[float, float]:
    """The percentiles to take: Φ(z0 + (z0 + z) / (1 − acceleration · (z0 + z)))."""
    normal = NormalDist()
    below = (np.sum(means < mean) + np.sum(means <= mean)) / (2 * len(means))
    bias = normal.inv_cdf(float(np.clip(below, 0.5 / len(means), 1 - 0.5 / len(means))))
    off = rows - mean  # leaving a list out moves the mean by −off / (n − 1)
    acceleration = float((off**3).sum() / (6 * (off**2).sum() ** 1.5))

    def level(probability: float) -> float:
        z = bias + normal.inv_cdf(probability)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return level((1 - confidence) / 2), level((1 + confidence) / 2)


def _every_flip(n: int) -> Iterator[FloatArray]:
    bits = np.arange(n)
    done = 0
    for block in _block_sizes(2**n, n):
        numbers = np.arange(done, done + block)[:, None]
        yield ((numbers >> bits) & 1).astype(np.float64)
        done += block


def _random_flips(n: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    for block in _block_sizes(resamples, n):
        yield rng.integers(0, 2, size=(block, n), dtype=np.int8).astype(np.float64)


def _block_sizes(resamples: int, n: int) -> list[int]:
    block = max(_BLOCK // n, 1)
    whole, rest = divmod(resamples, block)
    return [block] * whole + [rest] * (rest > 0)


def _checked_values(values: Any, what: str) -> FloatArray:
    rows: AnyArray = to_numpy(values, what)
    if rows.ndim != 1 or rows.dtype.kind not in "biuf" or not len(rows):
        raise ValueError(
            f"{what} must be one number a list, not {rows.dtype} with shape {rows.shape}: "
            'take them with reduction="none".'
        )
    rows = rows.astype(np.float64)
    if not (finite := np.isfinite(rows)).all():
        raise ValueError(
            f"{what}[{int(np.argmin(finite))}] is {rows[int(np.argmin(finite))]} "
            f"({int((~finite).sum())} such lists in all): leave these lists out (of both rankers)."
        )
    return rows


def _check_options(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence lies between 0 and 1, as 0.95 does; it is not {confidence!r}."
        )
    if operator.index(resamples) < 1:
        raise ValueError(f"resamples is a number from 1 on, not {resamples!r}.")
