"""Worths that follow from features, of the items of a fit or of any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.results import WorthResults
from tierrank.training.covariance import MOST_DENSE, Kind

if TYPE_CHECKING:
    from tierrank.aggregation.covariates.results import FeatureResults


class FeatureWorths(WorthResults):
    """Results of worths w = X · coef, whose covariance is X · covariance of coef · Xᵀ."""

    _spread: FloatArray  # [items, features], with mean 0 over the items, in the fit's units

    def _unit_covariance(self, kind: Kind | None = None) -> FloatArray:
        """[features, features] covariance of the coefficients, of features in those units."""
        raise NotImplementedError

    def covariance(
        self, items: Sequence[Any] | None = None, kind: Kind | None = None
    ) -> FloatArray:
        """[items, items] covariance of the centred log-worths.

        Parameters
        ----------
        items
            names; None for all, if they are no more than
            `tierrank.training.covariance.MOST_DENSE`
        kind
            "information" or "sandwich"; None as the estimator was told
        """
        matrix = self._unit_covariance(kind)
        if items is None and len(self.items_) > MOST_DENSE:
            raise ValueError(
                f"a covariance of {len(self.items_):,} items is too large to be written out "
                f"(limit {MOST_DENSE:,}): ask for some items, covariance(items=[…])"
            )
        rows = self._spread if items is None else self._spread[self._codes(items)]
        found = rows @ matrix @ rows.T
        return np.asarray((found + found.T) / 2)

    @property
    def standard_errors_(self) -> FloatArray:
        """[items] standard errors of the centred log-worths: of an item against the average."""
        return self._errors(self._spread)

    def _errors(self, rows: FloatArray) -> FloatArray:
        variances = ((rows @ self._unit_covariance()) * rows).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0)))

    def _errors_of(self, codes: IntArray) -> FloatArray:
        """[codes] standard errors; NaN where the fit has none."""
        try:
            return self._errors(self._spread[codes])
        except ValueError:
            return np.full(len(codes), np.nan)


class ItemWorths(FeatureWorths):
    """Worths of any items by the features that a `FeatureAggregator` was given.

    They are centred: 0 is the average of these items, not of those that the fit saw.

    Attributes
    ----------
    items_, log_worths_, worths_, standard_errors_
        [items] as in `RankAggregator`; and its `ranking`, `intervals`, `predict_proba`,
        `expected_ranks`, `summary` and so on
    """

    def __init__(
        self, fitted: FeatureResults, items: tuple[Any, ...], features: FloatArray
    ) -> None:
        self._fitted = fitted
        self.items_ = items
        scores = fitted._scores(features)
        self.log_worths_ = scores - scores.mean()
        self._spread = (features - features.mean(axis=0)) / fitted._scaling.unit

    def coef_covariance(self, kind: Kind | None = None) -> FloatArray:
        """[features, features] covariance of the coefficients, that of the fit."""
        return self._fitted.coef_covariance(kind)

    def _unit_covariance(self, kind: Kind | None = None) -> FloatArray:
        return self._fitted._unit_covariance(kind)

    def report(self, *_: Any, **__: Any) -> NoReturn:
        """There is none of items by their features: lists were fitted, and these are of no list."""
        raise ValueError(
            "a report tells of a fit and its lists, and these items are worths by their features: "
            "use the report of the fitted model, or to_frame and plot of these"
        )

    def _note(self) -> str:
        return f"{len(self.items_):,} items by their features; {self._fitted._note()}"
