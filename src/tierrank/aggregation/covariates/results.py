"""What can be asked of a fitted function from features to worths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import nn

from tierrank._types import FloatArray
from tierrank.aggregation.covariates import fitting
from tierrank.aggregation.covariates.worths import FeatureWorths, ItemWorths
from tierrank.aggregation.item_features import ItemFeatures, read_features
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.neural_worths import network_scores
from tierrank.losses import find
from tierrank.training import History
from tierrank.training.covariance import Kind

if TYPE_CHECKING:
    from tierrank.aggregation.covariates.summary import FeatureSummary


class FeatureResults(FeatureWorths):
    """Coefficients, or a network; and worths of any items by it."""

    model: str
    objective: str
    objective_params: dict[str, Any] | None
    l2: float
    uncertainty: Kind
    item_column: str | None

    feature_names_: tuple[str, ...]
    coef_: FloatArray
    network_: nn.Sequential
    history_: History
    log_likelihood_: float | None
    aic_: float | None
    lists_: CountedLists

    _named: bool  # whether features were given with names
    _scaling: fitting.Scaling
    _offset: float
    _covariances: dict[str, FloatArray]
    _later: Callable[[str], FloatArray] | None

    # -- what features say ------------------------------------------------------------------

    @overload
    def predict(self, features: Any) -> FloatArray: ...

    @overload
    def predict(self, features: Any, *, return_std: bool) -> Any: ...

    def predict(
        self, features: Any, *, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """[rows] log-worths of items, seen or not, on the scale of `log_worths_`.

        0 is the average item of the fit, so items of the fit get their `log_worths_` again.

        Parameters
        ----------
        features
            as in `fit`. Columns of a frame are found by their names.
        return_std
            whether to give [rows] standard errors too, of the linear model
        """
        rows = self._read(features).values
        scores = self._scores(rows)
        if not return_std:
            return scores
        return scores, self._errors((rows - self._scaling.mean) / self._scaling.unit)

    def worths_of(self, features: Any) -> ItemWorths:
        """Worths of any items by their features, with all that can be asked of worths.

        Parameters
        ----------
        features
            as in `fit`; rows of an array are items 0, 1, …
        """
        table = self._read(features)
        items = tuple(range(len(table.values))) if table.items is None else table.items
        return ItemWorths(self, items, table.values)

    def _read(self, features: Any) -> ItemFeatures:
        check_is_fitted(self, "log_worths_")
        columns = getattr(features, "column_names", getattr(features, "columns", ()))
        known = self.item_column in list(columns)  # a frame of new items may do without names
        given = read_features(features, self.item_column if known else None)
        return given.named(self.feature_names_, by_name=self._named).checked()

    def _scores(self, features: FloatArray) -> FloatArray:
        """[rows] log-worths, 0 for the average item of the fit."""
        if self.model == "linear":
            scores = (features - self._scaling.mean) @ self.coef_
        else:
            scores = network_scores(self.network_, self._scaling.applied(features))
        return np.asarray(scores - self._offset)

    # -- uncertainty ------------------------------------------------------------------------

    @property
    def coef_covariance_(self) -> FloatArray:
        """[features, features] covariance of the coefficients."""
        return self.coef_covariance()

    @property
    def coef_standard_errors_(self) -> FloatArray:
        """[features] standard errors of the coefficients."""
        return np.asarray(np.sqrt(np.diag(self._unit_covariance())) / self._scaling.unit)

    def coef_covariance(self, kind: Kind | None = None) -> FloatArray:
        """[features, features] covariance of the coefficients.

        With I the second derivatives of all that was minimised, and g_l the gradient of one list's
        loss, it is I⁻¹ ("information") or I⁻¹ (Σ_l count_l g_l g_lᵀ) I⁻¹ ("sandwich").

        Parameters
        ----------
        kind
            "information" or "sandwich"; None as the estimator was told
        """
        unit = self._unit_covariance(kind)  # refuses before the fit
        return np.asarray(unit / self._scaling.unit / self._scaling.unit[:, None])

    def _unit_covariance(self, kind: Kind | None = None) -> FloatArray:
        check_is_fitted(self, "log_worths_")
        kind = self.uncertainty if kind is None else kind
        fitting.check_kind(self, kind)
        if kind not in self._covariances:
            if self._later is None:
                raise ValueError(f"the saved model has no covariance of kind {kind!r}: fit again")
            self._covariances[kind] = self._later(kind)
        return self._covariances[kind]

    def summary(self, level: float = 0.95, top: int | None = None) -> FeatureSummary:
        """Coefficients, and the ranking of the items, as tables to print.

        Parameters
        ----------
        level
            of the intervals
        top
            how many items to show; None for all
        """
        from tierrank.aggregation.covariates.summary import feature_summary

        check_is_fitted(self, "log_worths_")
        return feature_summary(self, level, top)

    def _parameters(self, level: float) -> list[tuple[str, float, float, float, float]]:
        """The coefficients of the linear model."""
        table = self.summary(level, top=1).coefficients
        if table is None:
            return []
        names = [f"coefficient of {name}" for name in table.features]
        columns = (table.coef, table.standard_errors, table.lower, table.upper)
        return list(zip(names, *(column.tolist() for column in columns), strict=True))

    def _note(self) -> str:
        kind = f", {self.uncertainty}" if self.model == "linear" else ""
        penalty = f", l2={self.l2:g}" if self.l2 else ""
        fit = ""
        if self.log_likelihood_ is not None:
            fit = f", log-likelihood {self.log_likelihood_:.4g}"
        if self.aic_ is not None:
            fit += f", AIC {self.aic_:.4g}"
        return (
            f"FeatureAggregator, {self.model}, {find(self.objective).name}{kind}{penalty}: "
            f"{len(self.items_):,} items, {self.lists_.total:g} lists{fit}"
        )
