"""How sure worths are: covariances of the centred log-worths from second derivatives.

With H the second derivatives of what was minimised, g_l the gradient of one list's loss and P the
projection that takes the mean off,

    information   P H⁻¹ P                        (H⁺, the pseudo-inverse, without a prior)
    sandwich      P H⁻¹ (Σ_l count_l g_l g_lᵀ) H⁻¹ P

The first is right if the model is, the second also where it is not, with enough lists. Under a
prior, the first is the covariance of the normal approximation to the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import linalg

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.solvers.newton import solve
from tierrank.aggregation.terms import Bend, ListTerm

Kind = Literal["information", "sandwich"]

MOST_DENSE = 5000  # items for which [items, items] is written out: 200 MB, and as much again
COLUMN_TOLERANCE = 1e-10


class NotDefinite(ValueError):
    """The scores are no minimum, or not the only one."""


def inverse(bend: Bend, *, centred: bool) -> FloatArray:
    """[items, items] H⁻¹, or its pseudo-inverse where H · 1 = 0.

    Raises
    ------
    NotDefinite
        if H is not positive definite (but for that direction)
    """
    matrix = bend.matrix()
    size = len(matrix)
    lift = float(np.trace(matrix)) / size**2 if centred else 0.0
    matrix += lift
    try:
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=True)
    except (linalg.LinAlgError, ValueError) as error:
        raise NotDefinite(
            "there are no standard errors: the estimate is no isolated maximum of the "
            f"likelihood ({error}). Some worths may be infinite: give a prior."
        ) from None
    found, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    found = np.tril(found) + np.tril(found, -1).T
    if centred:
        found -= 1 / (lift * size**2)
    return np.asarray(found)


def covariance(
    bend: Bend, lists: Sequence[ListTerm], scores: FloatArray, kind: Kind, *, centred: bool
) -> FloatArray:
    """[items, items] covariance of the centred log-worths.

    Parameters
    ----------
    bend
        second derivatives of all that was minimised, at `scores`
    lists
        the terms that are sums over lists, without a prior
    scores
        [items] the minimum
    kind
        "information" or "sandwich"
    centred
        whether the scores' mean is free, as it is without a prior
    """
    found = inverse(bend, centred=centred)
    if kind == "sandwich":
        middle = lists[0].outer_products(scores)
        for term in lists[1:]:
            middle += term.outer_products(scores)
        found = found @ middle @ found
    return centre(found)


def columns(bend: Bend, items: FloatArray, size: int, *, centred: bool) -> FloatArray:
    """[chosen, items] rows of the information's covariance, without the matrix as a whole."""
    rows = np.empty((len(items), size))
    for row, item in zip(rows, items, strict=True):
        unit = np.full(size, -1 / size)
        unit[int(item)] += 1
        found, positive = solve(bend, unit, COLUMN_TOLERANCE, centred=centred)
        if not positive:
            raise NotDefinite("there are no standard errors: some worths are infinite")
        row[:] = found - found.mean()
    return rows


def centre(matrix: FloatArray) -> FloatArray:
    """P · matrix · P, symmetric to the last bit."""
    matrix = matrix - matrix.mean(axis=0)
    matrix = matrix - matrix.mean(axis=1, keepdims=True)
    return np.asarray((matrix + matrix.T) / 2)
