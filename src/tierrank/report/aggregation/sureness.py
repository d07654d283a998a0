"""How sure a fitted ranking is, as far as its size allows, and why something is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.aggregation.aggregator import RankAggregator
from tierrank.aggregation.covariates import FeatureAggregator
from tierrank.aggregation.inference import MOST_DENSE
from tierrank.aggregation.paired import PairedTies
from tierrank.aggregation.places import rank_intervals
from tierrank.aggregation.tier_cuts import TierCut, cut_into_tiers

Fitted = RankAggregator | PairedTies | FeatureAggregator
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MOST_RANKED = 500  # items whose intervals of ranks are computed: each is compared with all others


@dataclass(frozen=True)
class Sureness:
    """Standard errors, tiers and intervals of ranks; what there is none of is None.

    Attributes
    ----------
    order
        [items] numbers of the items, best first
    errors
        [items] standard errors of the log-worths, NaN where there is none
    ranks
        [items, 2] best and worst rank
    cut
        the tiers
    notes
        what is not there, and why
    """

    order: IntArray
    errors: FloatArray
    ranks: IntArray | None = None
    cut: TierCut | None = None
    notes: list[str] = field(default_factory=list)


def sureness(fitted: Fitted, *, level: float, tiers: bool, shown: int, seed: int) -> Sureness:
    """Find out how sure a fit is.

    Parameters
    ----------
    fitted
        the fit
    level
        of the intervals of ranks
    tiers
        whether to cut the ranking into tiers
    shown
        how many items have standard errors where there are too many for all
    seed
        of the draws that intervals of ranks rest on
    """
    w = fitted.log_worths_
    size = len(w)
    order = np.argsort(-w, kind="stable")
    errors = np.full(size, np.nan)
    if size > MOST_DENSE:
        return _of_many(fitted, order, errors, shown)
    try:
        matrix = covariance_of(fitted)
    except ValueError as error:
        return Sureness(order, errors, notes=[_without_intervals(error)])
    errors = np.sqrt(np.diag(matrix))
    notes = []
    cut = cut_into_tiers(w, matrix) if tiers and size > 1 else None
    ranks = None
    if 1 < size <= MOST_RANKED:
        ranks = rank_intervals(w, matrix, level=level, seed=seed)
    elif size > 1:
        notes.append(
            f"Intervals of ranks were left out: each of {size:,} items would be compared with all "
            f"others, which takes long beyond {MOST_RANKED}."
        )
    # Where estimates are equal, the tiers have an order of their own.
    return Sureness(order if cut is None else cut.order, errors, ranks, cut, notes)


def covariance_of(fitted: Fitted, items: Any = None) -> FloatArray:
    """[items, items] covariance of the centred log-worths, of all or of some."""
    if isinstance(fitted, PairedTies):
        size = len(fitted.items_)
        return fitted.covariance_[:size, :size]
    return fitted.covariance(items)


def _of_many(fitted: Fitted, order: IntArray, errors: FloatArray, shown: int) -> Sureness:
    """Standard errors of the first items only: each is a system of equations of its own."""
    first = order[: max(shown, 1)]
    size = len(order)
    notes = [
        f"There are {size:,} items, so only the first {len(first):,} have intervals; tiers and "
        f"intervals of ranks, which take all pairs, are left out (limit {MOST_DENSE:,} items)."
    ]
    if fitted.uncertainty == "sandwich" and not isinstance(fitted, PairedTies):
        reason = f'uncertainty="sandwich" takes a matrix of {size:,}² numbers: use "information"'
        return Sureness(order, errors, notes=[f"There are no intervals: {reason}."])
    try:
        if isinstance(fitted, PairedTies):
            errors[first] = fitted.standard_errors_[first]
        else:
            matrix = covariance_of(fitted, [fitted.items_[code] for code in first])
            errors[first] = np.sqrt(np.diag(matrix))
    except ValueError as error:
        notes = [_without_intervals(error)]
    return Sureness(order, errors, notes=notes)


def _without_intervals(error: ValueError) -> str:
    return f"There are no intervals, no tiers and no intervals of ranks: {error}"
