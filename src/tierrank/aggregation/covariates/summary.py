"""Coefficients and worths as one text to print."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from tierrank.aggregation.summary import WorthTable, worth_table
from tierrank.training.covariance import CoefficientTable, coefficient_table

if TYPE_CHECKING:
    from tierrank.aggregation.covariates.results import FeatureResults


@dataclass(frozen=True, repr=False)
class FeatureSummary(WorthTable):
    """A table of items, and before it one of coefficients, if there are any.

    Attributes
    ----------
    coefficients
        estimates, standard errors, z, p-values and intervals; None for a network
    """

    coefficients: CoefficientTable | None = None

    def __str__(self) -> str:
        worths = super().__str__()
        if self.coefficients is None:
            return worths
        note, _, shown = self.note.partition("\n")
        heading = shown or "items"
        return "\n".join([note, str(self.coefficients), heading, worths[len(self.note) + 1 :]])

    __repr__ = __str__


def feature_summary(fitted: FeatureResults, level: float, top: int | None) -> FeatureSummary:
    """The summary of a fit; NaN for standard errors that it does not have."""
    worths = worth_table(fitted, level, top)
    coefficients = None
    if fitted.model == "linear":
        try:
            matrix = fitted.coef_covariance()
        except ValueError:
            matrix = np.full((len(fitted.coef_),) * 2, np.nan)
        names = list(fitted.feature_names_)
        coefficients = coefficient_table(names, fitted.coef_, matrix, level, "coefficients")
    columns = {field.name: getattr(worths, field.name) for field in fields(worths)}
    return FeatureSummary(**columns, coefficients=coefficients)
