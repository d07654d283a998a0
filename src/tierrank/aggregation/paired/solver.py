"""Newton's method, damped where the loss is not convex, and the covariance at its end.

The loss does not change if the same number is added to all log-worths (unless a prior says where
they lie). That direction u = (1, …, 1, 0, 0)/√N gets a curvature c of its own: the step does not
go there, and (H + c uuᵀ)⁻¹ − uuᵀ/c is the pseudo-inverse of H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tierrank.aggregation.paired.likelihood import PairedLoss
from tierrank.aggregation.paired.outcomes import FloatArray, IntArray

TRUSTED = 1e-6  # twice the improvement that is left, where values are too coarse to compare
LARGEST_DAMPING = 1e12
# A variance, times the games that a parameter is in: 1/(p(1 − p)) for a log-worth that is known
# from games with chances p. Beyond this there is no information but rounding.
UNKNOWN = 1e9


@dataclass(frozen=True)
class Solution:
    """Where Newton's method ended."""

    point: FloatArray
    n_iter: int
    converged: bool


def minimise(loss: PairedLoss, start: FloatArray, *, tol: float, max_iter: int) -> Solution:
    """Go to a minimum of the loss.

    Every step solves (H + λ D) step = −gradient, D the diagonal that `loss.scale` gives. λ is 0
    unless H has negative curvature (teams, or Rao-Kupper far from the minimum) or the step does
    not improve the loss; then it is raised tenfold until it does.

    Parameters
    ----------
    loss
        of the games
    start
        [parameters] where to begin
    tol
        it ends when every part of the gradient is below this times the games it is a sum over
    max_iter
        most steps
    """
    scale = loss.scale()
    lowest = np.where(scale > 0, scale, 1.0)
    point, value = start.copy(), loss.value(start)
    damping, steps = 0.0, 0
    while True:
        gradient = loss.gradient(point)
        if (np.abs(gradient) <= tol * lowest).all():
            return Solution(point, steps, True)
        if steps == max_iter:
            return Solution(point, steps, False)
        curvature = _with_gauge(loss, loss.hessian(point))[0]
        while True:
            step = _solve(curvature + np.diag(damping * lowest), -gradient)
            if step is not None:
                moved = point + step
                there = loss.value(moved)
                near = damping == 0 and -(gradient @ step) <= TRUSTED
                if near or there <= value + 1e-4 * (gradient @ step):
                    break
            if damping > LARGEST_DAMPING:  # no step improves: only rounding is left
                return Solution(point, steps, False)
            damping = max(10 * damping, 1e-3)
        point, value = moved, there
        damping = 0.0 if damping <= 1e-3 else damping / 10
        steps += 1


def covariance(
    loss: PairedLoss, point: FloatArray, *, sandwich: bool, names: list[str]
) -> FloatArray:
    """[parameters, parameters] covariance, of the log-worths minus their mean.

    Raises
    ------
    ValueError
        if the games do not determine some parameter, naming those, or if they are too few to see
        how the estimates vary between them
    """
    if sandwich and loss.weight <= loss.size:
        raise ValueError(
            f"{loss.weight:g} games are too few to see how {loss.size} estimates vary between "
            'games: uncertainty="sandwich" needs more games than parameters'
        )
    scale = np.where(loss.scale() > 0, loss.scale(), 1.0)
    matrix, gauge = _with_gauge(loss, loss.hessian(point))
    root = np.sqrt(np.outer(scale, scale))
    factor = _factor(matrix / root)
    if factor is None:
        raise _undetermined(names, _flat(matrix / root, scale, loss.players))
    inverse = cho_solve(factor, np.eye(loss.size)) / root - gauge
    if (np.diag(inverse) * scale).max() > UNKNOWN:
        raise _undetermined(names, _flat(matrix / root, scale, loss.players))
    _centre(inverse, loss.players)
    if sandwich:
        inverse = inverse @ loss.variability(point) @ inverse
        _centre(inverse, loss.players)
    return np.asarray((inverse + inverse.T) / 2)


def effective_parameters(loss: PairedLoss, point: FloatArray) -> float:
    """How many parameters the games, not the prior, decide: the trace of (H + prior)⁻¹ H."""
    if loss.prior is None:
        return float(loss.size - 1)
    return float(np.trace(np.linalg.solve(loss.hessian(point), loss.hessian(point, prior=False))))


def _with_gauge(loss: PairedLoss, hessian: FloatArray) -> tuple[FloatArray, FloatArray | float]:
    """H + c uuᵀ, and the uuᵀ/c that its inverse has too much; H itself if there is a prior."""
    if loss.prior is not None:
        return hessian, 0.0
    players = loss.players
    size = max(float(np.abs(np.diag(hessian)[:players]).mean()), np.finfo(float).tiny)
    fixed = hessian.copy()
    fixed[:players, :players] += size / players
    extra = np.zeros_like(hessian)
    extra[:players, :players] = 1 / (size * players)
    return fixed, extra


def _centre(matrix: FloatArray, players: int) -> None:
    """From log-worths to log-worths minus their mean, in rows and columns, in place."""
    matrix[:players] -= matrix[:players].mean(axis=0)
    matrix[:, :players] -= matrix[:, :players].mean(axis=1, keepdims=True)


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool] | None:
    try:
        lower, which = cho_factor(matrix, lower=True)
    except LinAlgError:
        return None
    return lower, which


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """The solution, or None if the matrix is not positive definite."""
    if not np.isfinite(matrix).all():
        return None
    diagonal = np.diag(matrix)
    if diagonal.min() <= 0:
        return None
    root = 1 / np.sqrt(diagonal)
    factor = _factor(matrix * np.outer(root, root))
    if factor is None:
        return None
    return np.asarray(root * cho_solve(factor, root * right))


def _flat(scaled: FloatArray, scale: FloatArray, players: int) -> IntArray:
    """Numbers of the parameters that can move without a change of the loss."""
    values, vectors = np.linalg.eigh(scaled)
    flat = values <= max(1 / UNKNOWN, float(values[0]))
    moves = vectors[:, flat] / np.sqrt(scale)[:, None]
    moves[:players] -= np.median(moves[:players], axis=0)  # most players stay where they are
    sizes = np.abs(moves) / np.abs(moves).max(axis=0)
    return np.flatnonzero(sizes.max(axis=1) > 0.01)


def _undetermined(names: list[str], which: IntArray) -> ValueError:
    found = [names[number] for number in which]
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return ValueError(
        f"the games do not determine {', '.join(found[:10])}{more}: there is no finite best value, "
        "or several go together and only their sum shows. That is so for players who are always in "
        "one team, whose team does no better for them, or for a home advantage where the home "
        'sides always win. Give a prior (prior="gaussian"), or leave them out.'
    )
