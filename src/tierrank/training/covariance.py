"""How sure estimates are: covariances from second derivatives, and coefficients as a table.

With H the second derivatives of what was minimised, g_l the gradient of one list's loss and P the
projection that takes the mean off log-worths,

    information   P H⁻¹ P      (without a prior H · 1 = 0, and P takes any generalised inverse)
    sandwich      P H⁻¹ (Σ_l count_l g_l g_lᵀ) H⁻¹ P

The first is right if the model is, the second also where it is not, with enough lists. Under a
prior, the first is the covariance of the normal approximation to the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import linalg, special

from tierrank._types import BoolArray, FloatArray, IntArray
from tierrank.training.optim import MOST_DENSE as MOST_DENSE
from tierrank.training.optim import Hessian, conjugate_gradients, factor

Kind = Literal["information", "sandwich"]

VANISHED = 1e-14  # part of a diagonal that is left by elimination, and is a rounding error
COLUMN_TOLERANCE = 1e-10
MOST_PRODUCTS = 10_000  # of a column
FLAT = 1e-9  # curvature relative to the data: directions of which to blame for having none
INVOLVED = 0.01  # least part of a direction that counts
SHOWN = 10  # names in a message


class NotDefinite(ValueError):
    """The estimate is no minimum, or not the only one."""


def covariance(
    hessian: FloatArray,
    outer: FloatArray | None = None,
    *,
    worths: int = 0,
    shifted: bool = False,
    vanished: float = VANISHED,
) -> FloatArray:
    """[parameters, parameters] covariance of estimates at a minimum.

    Parameters
    ----------
    hessian
        [parameters, parameters] second derivatives of all that was minimised; it is written over
    outer
        Σ_l count_l g_l g_lᵀ, for the sandwich; None for the information
    worths
        how many of the first parameters are log-worths, whose mean is taken off
    shifted
        whether the same number added to all of these changes nothing, as it is without a prior
    vanished
        part of a diagonal that may be left by elimination and is no rounding error

    Raises
    ------
    NotDefinite
        if H is not positive definite (but for that direction)
    """
    found = inverse(hessian, worths if shifted else 0, vanished)
    if outer is not None:
        found = found @ outer @ found
    found[:worths] -= found[:worths].mean(axis=0) if worths else 0.0
    found[:, :worths] -= found[:, :worths].mean(axis=1, keepdims=True) if worths else 0.0
    return np.asarray((found + found.T) / 2)


def factored(
    matrix: FloatArray, shared: int, vanished: float
) -> tuple[FloatArray, FloatArray, int | None]:
    """As `factor` gives it, of a matrix that is definite beyond rounding; refuses all others."""
    found = factor(matrix, shared)
    if found is None or (np.diag(found[0]) ** 2 <= vanished).any():
        raise NotDefinite(
            "there are no standard errors: the estimate is no isolated maximum of the likelihood. "
            "Some worths may be infinite: give a prior."
        )
    return found


def inverse(matrix: FloatArray, shared: int = 0, vanished: float = VANISHED) -> FloatArray:
    """The inverse of a positive definite matrix, which is written over.

    Where H · 1 = 0 for the first `shared` parameters, the surest of these is held at 0, see
    `factor`.
    """
    lower, scale, held = factored(matrix, shared, vanished)
    found, _ = linalg.lapack.dpotri(lower, lower=1, overwrite_c=1)
    found = (np.tril(found) + np.tril(found, -1).T) * scale * scale[:, None]
    if held is not None:
        found[held, held] = 0.0
    return np.asarray(found)


def effective_parameters(whole: FloatArray, data: FloatArray) -> float:
    """How many parameters the data, not the prior, decide: the trace of (H + prior)⁻¹ H.

    Where the prior is lost to rounding beside the data, their sum is singular in the directions
    of which the data say nothing: these count 0, by the generalised inverse for a diagonal of 1.
    """
    scale = 1 / np.sqrt(np.diag(whole))
    unit = np.outer(scale, scale)
    return float(np.trace(np.linalg.pinv(whole * unit, VANISHED, hermitian=True) @ (data * unit)))


def columns(hessian: Hessian, items: IntArray, size: int, *, centred: bool) -> FloatArray:
    """[chosen, items] rows of the information's covariance, without the matrix as a whole."""
    rows = np.empty((len(items), size))
    for row, item in zip(rows, items, strict=True):
        unit = np.full(size, -1 / size)
        unit[int(item)] += 1
        found = conjugate_gradients(
            hessian, unit, COLUMN_TOLERANCE, centred=centred, most=MOST_PRODUCTS
        )
        if not found.positive:
            raise NotDefinite("there are no standard errors: some worths are infinite")
        if not found.reached:
            raise ValueError(
                f"standard errors were not found in {MOST_PRODUCTS:,} steps: long chains of "
                "comparisons hold the items together. Bootstrap, or give a prior."
            )
        row[:] = found.solution - found.solution.mean()
    return rows


def dependent(matrix: FloatArray, smallest: float) -> BoolArray | None:
    """[parameters] which make second derivatives singular; None if none do.

    Those that take part in directions of eigenvalues below `smallest`, for a diagonal of 1.
    """
    scale = 1 / np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
    flat = vectors[:, values < smallest]
    return np.abs(flat).max(axis=1) > INVOLVED if flat.size else None


def undetermined(hessian: FloatArray, scale: FloatArray, shared: int, worths: int) -> IntArray:
    """Parameters that can move with next to no change of what was minimised.

    Parameters
    ----------
    hessian
        [parameters, parameters] its second derivatives
    scale
        [parameters] what each part of the gradient is a sum over
    shared
        how many of the first can move together without a change, which is no news
    worths
        how many of the first are log-worths, most of which stay where they are
    """
    root = np.sqrt(scale)
    scaled = hessian / np.outer(root, root)
    if shared:
        together = np.where(np.arange(len(root)) < shared, root, 0.0)
        scaled += np.outer(together, together) / (together @ together)
    values, vectors = np.linalg.eigh(scaled)
    moves = vectors[:, values <= max(FLAT, float(values[0]))] / root[:, None]
    moves[:worths] -= np.median(moves[:worths], axis=0)
    sizes = np.abs(moves) / np.maximum(np.abs(moves).max(axis=0), np.finfo(float).tiny)
    return np.flatnonzero(sizes.max(axis=1) > INVOLVED)


def some(names: Sequence[Any]) -> str:
    """The first of these names, for a message."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(str, names[:SHOWN])) + more


def reach(level: float) -> float:
    """Standard errors on either side of an estimate that an interval of this level takes.

    Raises
    ------
    ValueError
        if the level is not between 0 and 1
    """
    try:
        fits = 0 < level < 1
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"level is between 0 and 1, for instance 0.95, not {level!r}")
    return float(special.ndtri((1 + level) / 2))


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
    coef: FloatArray
    standard_errors: FloatArray
    z: FloatArray
    p_values: FloatArray
    lower: FloatArray
    upper: FloatArray
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
    names: list[str], coef: FloatArray, matrix: FloatArray, level: float, note: str
) -> CoefficientTable:
    """Wald statistics of coefficients with a covariance matrix."""
    errors = np.sqrt(np.diag(matrix))
    half = reach(level) * errors
    z = coef / errors
    p_values = 2 * special.ndtr(-np.abs(z))
    return CoefficientTable(
        names, coef.copy(), errors, z, p_values, coef - half, coef + half, level, note
    )
