"""Newton's method for the last digits, where second derivatives are at hand.

L-BFGS compares values, so rounding stops it at a distance from the minimum of about the square root
of the rounding error. Newton's method goes by the gradient, and has no such limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tierrank.training.lbfgs import Function, Minimum, StoppedBy

Array = np.ndarray[Any, Any]

# Twice the improvement that is left, in nats; its root is the distance in standard errors. One more
# step squares that, which is beyond what rounding lets one see.
NEAR = 1e-12
TRUSTED = 1e-6  # the same, where whole steps are safe and values too coarse to compare
FLAT = 1e-12  # an eigenvalue, for a diagonal of 1, below which there is no curvature


def refine(
    function: Function,
    hessian: Callable[[Array], Array],
    start: Array,
    *,
    max_iter: int,
    iterated: Callable[[Array, float], bool],
) -> Minimum:
    """Go from a point near a minimum to the minimum.

    Directions without curvature are left alone. It ends as "line search" where no step improves
    the value, or where the point turns out not to be near a minimum.

    Parameters
    ----------
    function
        gives value and gradient at a point [parameters]
    hessian
        gives [parameters, parameters] second derivatives
    start
        where to begin
    max_iter
        most steps; without a finite minimum there is no end otherwise
    iterated
        called after every step with the point and the value there; True ends it
    """
    point = start
    value, gradient = function(point)
    stopped_by: StoppedBy = "max_iter"
    steps = 0
    while steps < max_iter:
        step, decrement = _newton_step(hessian(point), gradient)
        near = decrement <= NEAR
        found = _shorter_until_better(function, point, value, step, anyway=decrement <= TRUSTED)
        if found is None:
            stopped_by = "line search"
            break
        point, value, gradient = found
        steps += 1
        if iterated(point, value):
            stopped_by = "patience"
            break
        if near:
            # a step that is nothing in standard errors but goes on at the same pace: these grow
            # as fast as the point itself, towards a minimum that lies at infinity
            away = np.abs(step).max(initial=0) > 1e-3 * np.abs(point).max(initial=0)
            stopped_by = "no minimum" if away else "tolerance"
            break
    return Minimum(point, value, steps, stopped_by)


def _newton_step(matrix: Array, gradient: Array) -> tuple[Array, float]:
    """−H⁻¹ g, and gᵀ H⁻¹ g; infinite where H has negative curvature."""
    diagonal = np.diag(matrix)
    scale = 1 / np.sqrt(np.where(diagonal > np.finfo(float).tiny, diagonal, 1.0))
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
    if values[0] < -1e-8:
        return np.zeros_like(gradient), np.inf
    slopes = vectors.T @ (gradient * scale)
    moves = np.where(values > FLAT, slopes / np.maximum(values, FLAT), 0.0)
    return -(vectors @ moves) * scale, float(slopes @ moves)


def _shorter_until_better(
    function: Function, point: Array, value: float, step: Array, *, anyway: bool
) -> tuple[Array, float, Array] | None:
    """Take the step, or half of it, or a quarter, …; the first that improves the value."""
    if not anyway and not step.any():
        return None
    for halvings in range(30):
        moved = point + step / 2**halvings
        there, gradient = function(moved)
        finite = np.isfinite(there) and np.isfinite(gradient).all()
        if finite and (anyway or there < value):
            return moved, there, gradient
    return None
