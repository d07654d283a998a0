"""Cut a fitted ranking into tiers: which items are, for all the data say, equally good.

The items of a tier share one true log-worth v, and tiers' log-worths are drawn from N(m, τ²). With
quasi-variances q the estimates are as good as independent, so what the data say for a tier S is

    Φ(S) = ∫ ∏_{i∈S} N(ŵ_i | v, q_i) N(v | m, τ²) dv,

and an ordered partition into tiers S_1 > … > S_K is worth π(S_1, …, S_K) ∏_k Φ(S_k): a model of
ordered partitions by potentials of their subsets, as PMOP (Tran, Phung and Venkatesh, 2010), but
with potentials that are evidence. All 2^(N−1) partitions that keep the fitted order are summed and
searched, exactly, by dynamic programming.

The items were put in order by the same estimates that decide the cuts. A prior on the cuts of a
*given* order would forget that, and find tiers where there are none: of many equal items, the half
with the better estimates always looks better than the other half. So the prior is one on partitions
of items that have no order yet, where every item is as likely as any other to be in any tier: that
of Ewens (the Chinese restaurant process), which gives N items the tiers S_1, …, S_K, in whatever
order their log-worths turn out, with probability

    π = c^K ∏_k (|S_k| − 1)! / (c (c + 1) … (c + N − 1)),

so that two items share a tier with probability 1/(1 + c). It knows in how many ways n items can be
chosen, and makes the choice pay for it. With equal q, the most probable of *all* partitions keeps
the fitted order, so nothing is lost by looking at no others.

By default two items share a tier with probability 3/4, c = 1/3. Then, of two items alone, the
estimates must differ by two standard errors of their difference to be cut apart: the usual test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.item_ranks import as_log_worths
from tierrank.aggregation.quasi_variances import quasi_variances

NEGATIVE = 0.01  # of the median quasi-variance, in place of one that is not positive


@dataclass(frozen=True, eq=False)
class TierCut:
    """A ranking cut into tiers.

    Parameters
    ----------
    order : ndarray of int
        [items] numbers of the items, best first.
    tiers : tuple of ndarray
        For each tier the numbers of its items, best first.
    tier_of : ndarray of int
        [items] the tier of each item, 0 being the best.
    cut_probabilities : ndarray of float
        [items − 1] the probability that the items at places n and n + 1 of `order` are in
        different tiers.
    log_evidence : float
        Log of the sum of π ∏ Φ over all partitions that keep the fitted order.
    variances : ndarray of float
        [items] the variances that were used, those of independent estimates.
    mean, spread : float
        The m and τ of the tiers' log-worths.
    criterion : str
        What the tiers are, in a sentence.

    See Also
    --------
    tierrank.RankAggregator.tiers : Gives it.

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [["a", "b", "c"], ["b", "a", "c"]] * 20 + [["c", "a", "b"]]
    >>> cut = tr.RankAggregator().fit(votes).tiers()
    >>> cut.tier_of
    array([0, 0, 1])
    >>> cut.criterion
    "The tiers are the most probable ones among all that keep the fitted order, ..."
    """

    order: IntArray
    tiers: tuple[IntArray, ...]
    tier_of: IntArray
    cut_probabilities: FloatArray
    log_evidence: float
    variances: FloatArray
    mean: float
    spread: float
    criterion: str
    _posterior: TierPosterior = field(repr=False)

    def same_tier_probability(self, item: int, other: int) -> float:
        """Compute the probability that two items are in the same tier.

        Parameters
        ----------
        item, other : int
            Numbers of the items.

        Returns
        -------
        float
            Over all partitions that keep the fitted order.

        See Also
        --------
        same_tier_probabilities : Of all pairs.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b", "c"], ["b", "a", "c"]] * 20 + [["c", "a", "b"]]
        >>> cut = tr.RankAggregator().fit(votes).tiers()
        >>> cut.same_tier_probability(0, 1) > 0.5 > cut.same_tier_probability(1, 2)
        True
        """
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return self._posterior.together(*sorted((int(places[item]), int(places[other]))))

    def same_tier_probabilities(self) -> FloatArray:
        """Compute the probabilities that two items are in the same tier, of all pairs.

        Returns
        -------
        ndarray of float
            [items, items] probabilities, 1 on the diagonal.

        See Also
        --------
        same_tier_probability : Of one pair.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b", "c"], ["b", "a", "c"]] * 20 + [["c", "a", "b"]]
        >>> tr.RankAggregator().fit(votes).tiers().same_tier_probabilities().shape
        (3, 3)
        """
        by_place = self._posterior.all_together()
        result = np.empty_like(by_place)
        result[np.ix_(self.order, self.order)] = by_place
        return result


def cut_into_tiers(log_worths: Any, covariance: Any, *, prior_tie: float = 0.75) -> TierCut:
    """Cut a fitted ranking into tiers of items that the data do not tell apart.

    The most probable tiers, among all that keep the fitted order, and the probability of each cut
    (see the module for the model). m and τ² are estimated by the method of Paule and Mandel, but τ²
    is at least the median variance: tiers are not supposed to be closer together than one estimate
    can tell. Time O(items²), memory linear beyond the covariance.

    Parameters
    ----------
    log_worths
        [items] float, the estimates.
    covariance
        [items, items] their covariance, from which quasi-variances are made; or [items] variances
        of independent estimates. Where a quasi-variance is not positive, which one at most can be,
        a hundredth of the median is used in its place, and the criterion says so.
    prior_tie
        The probability that two items share a tier, before any data: 1/(1 + c). Larger numbers
        give fewer tiers.

    Examples
    --------
    >>> cut = cut_into_tiers([2.0, -2.1, 1.9, -1.8], [0.04, 0.04, 0.04, 0.04])
    >>> [tier.tolist() for tier in cut.tiers]
    [[0, 2], [3, 1]]
    """
    w = as_log_worths(log_worths)
    if not 0.0 < prior_tie < 1.0:
        raise ValueError(f"prior_tie must be between 0 and 1, but is {prior_tie!r}")
    variances, replaced = independent_variances(covariance, len(w))
    order = np.lexsort((variances, -w))  # equal estimates: those of the surest first
    mean, spread = random_effects(w, variances)
    concentration = (1.0 - prior_tie) / prior_tie
    posterior = TierPosterior.of(w[order] - mean, variances[order], spread, concentration)
    ends = posterior.best()
    tiers = tuple(np.split(order, ends[:-1]))
    tier_of = np.empty(len(w), dtype=np.int64)
    tier_of[order] = np.repeat(np.arange(len(ends)), [len(tier) for tier in tiers])
    return TierCut(
        order=order,
        tiers=tiers,
        tier_of=tier_of,
        cut_probabilities=posterior.cuts(),
        log_evidence=posterior.log_evidence,
        variances=variances,
        mean=mean,
        spread=spread,
        criterion=criterion(prior_tie, spread, replaced),
        _posterior=posterior,
    )


def independent_variances(covariance: Any, items: int) -> tuple[FloatArray, bool]:
    """Variances of as good as independent estimates, and whether one had to be replaced."""
    given = np.asarray(covariance, dtype=np.float64)
    if given.ndim != 1:
        if given.shape != (items, items):
            raise ValueError(
                f"the covariance of {items} items must have the shape {(items, items)}, or "
                f"{(items,)} if they are variances, but has {given.shape}"
            )
        # one item alone has nothing to differ from: any variance will do
        values = quasi_variances(given, equal=True).values if items > 1 else np.ones(1)
        replaced = values <= 0.0
        return np.where(replaced, NEGATIVE * np.median(values), values), bool(replaced.any())
    if given.shape != (items,):
        raise ValueError(f"there are {items} items, but {len(given)} variances")
    wrong = np.flatnonzero(~((given > 0.0) & np.isfinite(given)))
    if len(wrong):
        raise ValueError(
            f"variances must be positive and finite, but that of item {wrong[0]} is "
            f"{given[wrong[0]]}"
        )
    return given, False


def random_effects(w: FloatArray, variances: FloatArray) -> tuple[float, float]:
    """m and τ of ŵ_i ~ N(m, τ² + q_i) by Paule and Mandel's method; τ² ≥ the median of q.

    The τ² at which Σ_i (ŵ_i − m)² / (τ² + q_i) is what is expected of it, items − 1, m being the
    mean of ŵ with weights 1 / (τ² + q_i).
    """

    def mean_at(squared: float) -> tuple[float, float]:
        weights = 1.0 / (squared + variances)
        mean = float(weights @ w / weights.sum())
        return mean, float(weights @ np.square(w - mean))

    low = float(np.median(variances))
    if mean_at(low)[1] > len(w) - 1:
        high = low + float(np.square(np.ptp(w))) * len(w)  # where the sum is less than one
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if mean_at(middle)[1] > len(w) - 1 else (low, middle)
    return mean_at(low)[0], float(np.sqrt(low))


def criterion(prior_tie: float, spread: float, replaced: bool) -> str:
    """What the tiers are, in a sentence."""
    sentence = (
        "The tiers are the most probable ones among all that keep the fitted order, if items of a "
        "tier share one true log-worth, the tiers' log-worths are normal with a standard deviation "
        f"of {spread:.3g}, estimates are normal with their quasi-variances, and two items share a "
        f"tier with probability {prior_tie:.3g} before any data"
    )
    if replaced:
        sentence += (
            "; one quasi-variance was not positive and was replaced by a hundredth of the median"
        )
    return sentence + "."


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
