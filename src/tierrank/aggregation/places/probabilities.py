"""Where items will stand: who is above whom, expected ranks, the first k, and how sure that is.

All under the Plackett-Luce model with log-worths w, of which only the differences count.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.aggregation.places.top import top_k
from tierrank.aggregation.worth_checks import as_log_worths

FloatArray = npt.NDArray[np.float64]

BLOCK = 1 << 20  # numbers at once

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

    An integral over the time of an exponential race (see `tierrank.aggregation.places.top`), in
    time O(items · min(k, items − k)). The absolute error is a few 1e-15, for worths that differ by
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
