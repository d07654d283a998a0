"""Intervals by fitting again to lists drawn from the lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.training.covariance import reach

MOST_DRAWN = 2**62  # what numpy can draw


@dataclass(frozen=True)
class Bootstrap:
    """Estimates from lists that were drawn, with replacement, from those that were seen.

    Attributes
    ----------
    items
        their names
    estimate
        [items] centred log-worths of all lists
    log_worths
        [replicates, items] centred log-worths of the drawn ones
    without_estimate
        replicates that had no finite estimate and are left out: in these, some item was never
        beaten, or never beat another. Where they are many, intervals are too short.
    """

    items: tuple[Any, ...]
    estimate: FloatArray
    log_worths: FloatArray
    without_estimate: int

    @property
    def standard_errors(self) -> FloatArray:
        """[items] standard deviations over the replicates."""
        return np.asarray(self.log_worths.std(axis=0, ddof=1))

    def covariance(self) -> FloatArray:
        """[items, items] over the replicates."""
        return np.atleast_2d(np.cov(self.log_worths, rowvar=False))

    def intervals(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """([items], [items]) ends of percentile intervals of log-worths."""
        reach(level)  # refuses a wrong one
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(self.log_worths, tails, axis=0)
        return low, high


def drawn_counts(counts: FloatArray, random: np.random.Generator) -> FloatArray:
    """How often each list is drawn, when as many are drawn as were seen.

    Where weights do not sum to a whole number, the next one is drawn, and weighted to that sum.

    Raises
    ------
    ValueError
        if the weights cannot be how often lists were seen
    """
    total = float(counts.sum())
    if not 1.5 <= total <= MOST_DRAWN:
        raise ValueError(
            f"a bootstrap draws as many lists as were seen, and the weights sum to {total:g}: "
            "give weights that say how often each list was seen"
        )
    often = random.multinomial(round(total), counts / total)
    return np.asarray(often * (total / round(total)))
