"""Sums and maxima over all ways to cut a sequence into tiers, by dynamic programming, in logs.

Places are 0 … N − 1, in the fitted order; the tier a … b holds the places a, …, b − 1, and its
potential is c (n − 1)! Φ. With d = ŵ − m and precisions p = 1/q, Φ is, up to a factor
∏_i N(d_i | 0, q_i) that no cut changes,

    exp(½ R² / (P + 1/τ²)) / √(1 + τ² P),        P = Σ p_i,  R = Σ p_i d_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Potentials:
    """Log-potentials of all tiers, from running sums.

    Attributes
    ----------
    precision, pull
        [N + 1] running sums of p and of p·d.
    log_sizes
        [N + 1] log of c (n − 1)!, by the tier's size n.
    squared
        τ².
    """

    precision: FloatArray
    pull: FloatArray
    log_sizes: FloatArray
    squared: float

    def __call__(self, a: int | IntArray, b: int | IntArray) -> FloatArray:
        """Log-potentials of the tiers a … b; a and b broadcast."""
        precision = self.precision[b] - self.precision[a]
        pull = self.pull[b] - self.pull[a]
        gain = np.square(pull) / (precision + 1.0 / self.squared)
        logs: FloatArray = self.log_sizes[np.subtract(b, a)] + 0.5 * (
            gain - np.log1p(self.squared * precision)
        )
        return logs


@dataclass(frozen=True, eq=False)
class TierPosterior:
    """The probabilities of all partitions that keep the order.

    Attributes
    ----------
    potentials
        Of the tiers.
    before, after
        [N + 1] log-sums over all ways to cut the places before a place, and from it on.
    log_evidence
        Log of the sum over all partitions, with every factor.
    """

    potentials: Potentials
    before: FloatArray
    after: FloatArray
    log_evidence: float

    @classmethod
    def of(
        cls, deviations: FloatArray, variances: FloatArray, spread: float, concentration: float
    ) -> TierPosterior:
        """Sum over all partitions, from the front and from the back.

        Parameters
        ----------
        deviations, variances
            [N] estimates less m, best first, and their variances.
        spread, concentration
            τ, and c of the prior.
        """
        from scipy.special import gammaln

        items = len(deviations)
        precisions = 1.0 / variances
        sizes = np.arange(1, items + 1)
        potentials = Potentials(
            precision=np.concatenate([[0.0], np.cumsum(precisions)]),
            pull=np.concatenate([[0.0], np.cumsum(precisions * deviations)]),
            log_sizes=np.concatenate([[-np.inf], np.log(concentration) + gammaln(sizes)]),
            squared=spread**2,
        )
        before, after = np.zeros(items + 1), np.zeros(items + 1)
        for b in range(1, items + 1):
            before[b] = log_sum(before[:b] + potentials(np.arange(b), b))
        for a in range(items - 1, -1, -1):
            after[a] = log_sum(potentials(a, np.arange(a + 1, items + 1)) + after[a + 1 :])
        shared = np.log(2.0 * np.pi * variances).sum() + precisions @ np.square(deviations)
        prior = gammaln(concentration + items) - gammaln(concentration)
        return cls(potentials, before, after, float(before[-1] - 0.5 * shared - prior))

    def best(self) -> IntArray:
        """Where the tiers of the most probable partition end; of equals, the fewest tiers."""
        items = len(self.before) - 1
        values = np.zeros(items + 1)
        start_of = np.zeros(items + 1, dtype=np.int64)
        for b in range(1, items + 1):
            candidates = values[:b] + self.potentials(np.arange(b), b)
            start_of[b] = candidates.argmax()  # the first, and so the longest tier
            values[b] = candidates[start_of[b]]
        ends = [items]
        while start_of[ends[-1]] > 0:
            ends.append(int(start_of[ends[-1]]))
        return np.array(ends[::-1], dtype=np.int64)

    def cuts(self) -> FloatArray:
        """[N − 1] P(a tier ends between the places n and n + 1)."""
        logs = self.before[1:-1] + self.after[1:-1] - self.before[-1]
        return np.asarray(np.exp(np.minimum(logs, 0.0)))

    def together(self, place: int, other: int) -> float:
        """P(two places, the first not behind the second, are in one tier)."""
        chances = self.chances(np.arange(place + 1), np.arange(other + 1, len(self.before)))
        return min(1.0, float(chances.sum()))

    def all_together(self) -> FloatArray:
        """[N, N] P(two places are in one tier)."""
        items = len(self.before) - 1
        sums = np.zeros((items, items))
        for a in range(items):
            sums[a, a:] = self.chances(np.array([a]), np.arange(a + 1, items + 1))[0]
        # every tier that starts no later than one of the two, and ends no earlier than the other
        sums = np.cumsum(sums, axis=0)
        sums = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1]
        upper = np.triu(sums, 1)
        return np.minimum(upper + upper.T + np.eye(items), 1.0)

    def chances(self, starts: IntArray, ends: IntArray) -> FloatArray:
        """[starts, ends] P(there is a tier that starts here and ends there)."""
        logs = self.potentials(starts[:, None], ends)
        logs = logs + self.before[starts][:, None] + self.after[ends]
        return np.asarray(np.exp(logs - self.before[-1]))


def log_sum(logs: FloatArray) -> float:
    """log Σ exp."""
    largest = logs.max()
    return float(largest + np.log(np.exp(logs - largest).sum()))
