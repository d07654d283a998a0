"""Intervals by fitting again to lists drawn from the lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank.aggregation.lists import FloatArray


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
        if not 0 < level < 1:
            raise ValueError(f"level is between 0 and 1, for instance 0.95, not {level}")
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(self.log_worths, tails, axis=0)
        return low, high


def drawn_counts(counts: FloatArray, random: np.random.Generator) -> FloatArray:
    """How often each list is drawn, when as many are drawn as were seen."""
    total = counts.sum()
    return random.multinomial(round(float(total)), counts / total).astype(np.float64)
