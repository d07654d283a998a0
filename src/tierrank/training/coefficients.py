"""Coefficients of a fit as a table to print, with standard errors and Wald tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CoefficientTable:
    """Coefficients with standard errors, Wald tests and intervals; printed, a table.

    Attributes
    ----------
    features
        [features] names
    coef, standard_errors
        [features] estimates and their standard errors (NaN where there are none)
    z, p_values
        [features] coef / standard error, and how probable one as far from 0 is if it is 0
    lower, upper
        [features] ends of the intervals
    level
        how often such an interval holds the true value
    note
        what was fitted, in a line
    """

    features: list[str]
    coef: Array
    standard_errors: Array
    z: Array
    p_values: Array
    lower: Array
    upper: Array
    level: float
    note: str

    def __str__(self) -> str:
        tails = (1 - self.level) / 2
        ends = [f"[{tails:.4g}", f"{1 - tails:.4g}]"]
        heads = ["feature", "coef", "std err", "z", "P>|z|", *ends]
        numbers = zip(
            self.coef, self.standard_errors, self.z, self.p_values, self.lower, self.upper,
            strict=True,
        )  # fmt: skip
        errors = self.standard_errors[np.isfinite(self.standard_errors)]
        plain = errors.min(initial=1) >= 1e-3 and errors.max(initial=1) < 1e4
        form = "{:.4f}" if plain else "{:.3e}"
        formats = [form, form, "{:.2f}", "{:.3f}", form, form]
        rows = [
            [name, *(each.format(number) for each, number in zip(formats, row, strict=True))]
            for name, row in zip(self.features, numbers, strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in [heads, *rows]
        ]
        return "\n".join([self.note, *lines])

    __repr__ = __str__


def coefficient_table(
    names: list[str], coef: Array, matrix: Array, level: float, note: str
) -> CoefficientTable:
    """Wald statistics of coefficients with a covariance matrix."""
    from scipy.special import ndtr, ndtri

    if not 0 < level < 1:
        raise ValueError(f"level is between 0 and 1, for instance 0.95, not {level}")
    errors = np.sqrt(np.diag(matrix))
    z = coef / errors
    reach = float(ndtri((1 + level) / 2)) * errors
    p_values = 2 * ndtr(-np.abs(z))
    return CoefficientTable(
        names, coef.copy(), errors, z, p_values, coef - reach, coef + reach, level, note
    )
