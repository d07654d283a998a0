"""How often items occur, and how many of them a row has."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LARGEST_SHARE = 0.95


def power_law(n: int, mean: float, head: float, rarest: float) -> Floats:
    """In what share of the rows each of n items is, most frequent first: Zipf-Mandelbrot.

    f_i = c (i + q)^−s, with the shift q, the exponent s and the factor c such that the first
    item is in `head` of the rows, a row has `mean` items, and the last item is `rarest` times as
    frequent as the average one. Where no q ≥ 0 does all of that (few items, many a row), a curve
    that comes near; no item is in more than 0.95 of the rows.
    """
    from scipy.optimize import brentq  # takes a while, so only where it is used

    average = mean / n
    head = max(head, min(2 * average, LARGEST_SHARE))  # the first must be ahead of the average
    ratio = head / (rarest * average)
    ranks = np.arange(1, n + 1, dtype=np.float64)

    def curve(exponent: float) -> Floats:
        reach = ratio ** (1 / exponent)  # (n + q) / (1 + q)
        shift = max((n - reach) / (reach - 1), 0.0)
        return np.asarray(head * ((ranks + shift) / (1 + shift)) ** -exponent)

    # a larger exponent, with its larger shift, leaves a broader head: the sum grows with it
    low, high = math.log(ratio) / math.log(n) * (1 + 1e-9), 50.0
    if curve(low).sum() >= mean:
        shares = curve(low)
    elif curve(high).sum() <= mean:
        shares = curve(high)
    else:
        shares = curve(brentq(lambda exponent: curve(exponent).sum() - mean, low, high))
    return np.asarray(np.minimum(shares * (mean / shares.sum()), LARGEST_SHARE))


def row_sizes(
    generator: np.random.Generator,
    rows: int,
    mean: float,
    spread: float,
    most: int | None,
    limit: int,
) -> npt.NDArray[np.int64]:
    """Whole numbers from 1 to `limit` with a given mean and about a given standard deviation.

    Without `most`, skewed to the right: one more than a lognormal number, like the words of a
    document, and cut off at the limit, which takes from the spread but not from the mean. With
    it, a beta distribution from 1 to `most`: the tags of a site that shows no more than so many.
    Rounded up or down at random, so that the mean stays.
    """
    variance = max(spread**2 - 1 / 6, 0.0)  # rounding adds the sixth
    above, reach = mean - 1, min(most or limit, limit) - 1
    if above <= 0 or variance == 0 or above >= reach:
        sizes = np.full(rows, above)
    elif most is None:
        deviation = math.sqrt(math.log1p(variance / above**2))
        middle = _lognormal_middle(above, deviation, reach)
        sizes = np.minimum(generator.lognormal(middle, deviation, rows), reach)
    else:
        centre = above / reach
        evenness = centre * (1 - centre) * reach**2 / variance - 1
        evenness = max(evenness, 0.1)  # no wider than nearly all at one of the two ends
        sizes = reach * generator.beta(centre * evenness, (1 - centre) * evenness, rows)
    return 1 + np.floor(sizes + generator.random(rows)).astype(np.int64)


def _lognormal_middle(mean: float, deviation: float, reach: float) -> float:
    """Find the mean logarithm with which lognormal numbers, cut off at `reach`, have a mean.

    E min(X, c) = e^{μ + σ²/2} Φ((log c − μ) / σ − σ) + c (1 − Φ((log c − μ) / σ))
    """

    def cut_mean(middle: float) -> float:
        far = (math.log(reach) - middle) / deviation
        kept = math.exp(middle + deviation**2 / 2) * _normal(far - deviation)
        return kept + reach * _normal(-far)

    low = math.log(mean) - deviation**2 / 2  # right without the cut
    high = math.log(reach) + 10 * deviation  # nearly all are cut
    for _ in range(100):
        middle = (low + high) / 2
        if cut_mean(middle) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _normal(x: float) -> float:
    """Φ, the distribution function of the standard normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2
