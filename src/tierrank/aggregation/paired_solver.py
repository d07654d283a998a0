"""Newton's method, damped where the loss is not convex, and the covariance at its end.

The loss does not change if the same number is added to all log-worths (unless a prior says where
they lie). So the surest player, with the largest second derivative, is held where it is, and what
is found for the others is against it: no two sizes are added, however far apart they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.paired_likelihood import PairedLoss
from tierrank.errors import Argument, ArgumentError
from tierrank.training.covariance import NotDefinite
from tierrank.training.covariance import covariance as training_covariance
from tierrank.training.optim import Minimum, StoppedBy

TRUSTED = 1e-6  # twice the improvement that is left, where values are too coarse to compare
LARGEST_DAMPING = 1e12
LAST = 1e-9  # a step that changes no parameter by more than this need not be taken
STALLED = 1e-8  # twice the improvement that is left, where each step should square it
ROUNDING = 1e-14  # the same, relative to the loss
FAR = 0.01  # a step that promises next to nothing and yet goes so far is on its way to infinity
VANISHED = 1e-13  # part of a diagonal that is left by elimination, and is a rounding error
LITTLE = 1e-10  # curvature of a prior relative to the games: too little to be told from rounding
FLAT = 1e-9  # curvature relative to the games: directions of which to blame for having none


def minimise(
    loss: PairedLoss,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    iterated: Callable[[int, float], None] | None = None,
) -> Minimum:
    """Go to a minimum of the loss.

    Every step solves (H + λ D) step = −gradient, D the diagonal that `loss.scale` gives. λ is 0
    unless H has negative curvature (teams, or Rao-Kupper far from the minimum) or the step does
    not improve the loss; then it is raised tenfold until it does.

    It ends where the gradient is next to nothing *and* so is the step. Games with chances near 0
    and 1 have little curvature, so that a gradient which is small beside their number may still
    be steps away from the minimum. Where there is none, steps stay as long as they are.

    Parameters
    ----------
    loss
        of the games
    start
        [parameters] where to begin
    tol
        it does not end before every part of the gradient is below this times the games it is a
        sum over
    max_iter
        most steps
    iterated
        called after every step with its number and the value
    """
    scale = loss.scale()
    lowest = np.where(scale > 0, scale, 1.0)
    point, value = start.copy(), loss.value(start)
    values = [value]
    damping, promised_before = 0.0, np.inf

    def ended(stopped_by: StoppedBy) -> Minimum:
        return Minimum(point, values, stopped_by, float(np.abs(gradient).max(initial=0)))

    while True:
        gradient, hessian = loss.gradient(point), loss.hessian(point)
        settled, far = bool((np.abs(gradient) <= tol * lowest).all()), True
        damping = 0.0 if settled else damping
        step = None
        if damping == 0:
            step = _solve(hessian, -gradient, _free(loss, hessian))
        if settled:
            if step is None:  # no curvature is left
                return ended("no minimum")
            size, promised = float(np.abs(step).max()), -float(gradient @ step)
            least = max(STALLED * min(loss.weight, 1.0), ROUNDING * abs(value))
            stalled = promised <= least and promised > promised_before / 4
            far = size > FAR
            if size <= LAST or stalled:
                return ended("no minimum" if far else "tolerance" if size <= LAST else "rounding")
            promised_before = promised
        if len(values) > max_iter:
            return ended("max_iter")
        while True:
            if step is not None:
                moved = point + step
                there = loss.value(moved)
                near = damping == 0 and -(gradient @ step) <= TRUSTED
                if near or there <= value + 1e-4 * (gradient @ step):
                    break
            if damping > LARGEST_DAMPING:  # no step improves: only rounding is left
                return ended("no step" if not settled else "no minimum" if far else "rounding")
            damping = max(10 * damping, 1e-3)
            step = _solve(hessian + np.diag(damping * lowest), -gradient, np.arange(loss.size))
        point, value = moved, there
        damping = 0.0 if damping <= 1e-3 else damping / 10
        values.append(value)
        if iterated is not None:
            iterated(len(values) - 1, value)


def covariance(
    loss: PairedLoss, end: Minimum, *, sandwich: bool, names: list[str]
) -> FloatArray:  # fmt: skip
    """[parameters, parameters] covariance, of the log-worths minus their mean.

    Raises
    ------
    ValueError
        if the games do not determine some parameter, naming those, or if they are too few to see
        how the estimates vary between them
    """
    if sandwich and loss.weight <= loss.size:
        raise ArgumentError(
            f"{loss.weight:g} games are too few to see how {loss.size} estimates vary between "
            "games: ", Argument("uncertainty", "sandwich"), " needs more games than parameters",
        )  # fmt: skip
    hessian = loss.hessian(end.point)
    blamed = hessian.copy()
    try:
        if end.stopped_by == "no minimum":
            raise NotDefinite
        return training_covariance(
            hessian, loss.variability(end.point) if sandwich else None, worths=loss.players,
            shifted=len(_free(loss, hessian)) < loss.size, vanished=VANISHED,
        )  # fmt: skip
    except NotDefinite:
        raise _undetermined(names, _flat(loss, blamed), loss.prior is not None) from None


def effective_parameters(loss: PairedLoss, point: FloatArray) -> float:
    """How many parameters the games, not the prior, decide: the trace of (H + prior)⁻¹ H."""
    if loss.prior is None:
        return float(loss.size - 1)
    return float(np.trace(np.linalg.solve(loss.hessian(point), loss.hessian(point, prior=False))))


def _free(loss: PairedLoss, hessian: FloatArray) -> IntArray:
    """Numbers of the parameters but for the surest player, which is held.

    A prior says where all log-worths lie together, and then none is held; but for one that says
    next to nothing beside the games, whose curvature in that direction is a rounding error.
    """
    every, diagonal = np.arange(loss.size), np.diag(hessian)[: loss.players]
    together = float(hessian[: loss.players, : loss.players].sum())
    if loss.prior is not None and together > LITTLE * float(diagonal.max()):
        return every
    return np.delete(every, int(np.argmax(diagonal)))


def _factor(matrix: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Cholesky's factor with 1 on the diagonal, by this scale; None if not positive definite."""
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or diagonal.min(initial=np.inf) <= 0:
        return None
    root = 1 / np.sqrt(diagonal)
    try:
        return cho_factor(matrix * np.outer(root, root), lower=True)[0], root
    except LinAlgError:
        return None


def _solve(matrix: FloatArray, right: FloatArray, free: IntArray) -> FloatArray | None:
    """The solution, 0 for what is not free; None if the matrix is not positive definite."""
    factored = _factor(matrix[np.ix_(free, free)])
    if factored is None:
        return None
    lower, root = factored
    solution = np.zeros_like(right)
    solution[free] = root * cho_solve((lower, True), root * right[free])
    return solution


def _flat(loss: PairedLoss, hessian: FloatArray) -> IntArray:
    """Numbers of the parameters that can move without a change of the loss."""
    players, root = loss.players, np.sqrt(np.where(loss.scale() > 0, loss.scale(), 1.0))
    scaled = hessian / np.outer(root, root)
    if loss.prior is None:  # that all log-worths can move together is no news
        together = np.where(np.arange(loss.size) < players, root, 0.0)
        scaled += np.outer(together, together) / (together @ together)
    values, vectors = np.linalg.eigh(scaled)
    flat = values <= max(FLAT, float(values[0]))
    moves = vectors[:, flat] / root[:, None]
    moves[:players] -= np.median(moves[:players], axis=0)  # most players stay where they are
    sizes = np.abs(moves) / np.maximum(np.abs(moves).max(axis=0), np.finfo(float).tiny)
    return np.flatnonzero(sizes.max(axis=1) > 0.01)


def _undetermined(names: list[str], which: IntArray, prior: bool) -> ArgumentError:
    found = [names[number] for number in which] or names
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    cure: list[object] = ["Leave them out."]
    if not prior:
        cure = ["Give a prior (", Argument("prior", "gaussian"), "), or leave them out."]
    return ArgumentError(
        f"the games do not determine {', '.join(found[:10])}{more}: there is no finite best value, "
        "or several go together and only their sum shows. That is so for players who are always in "
        "one team, whose team does no better for them, or for a home advantage where the home "
        "sides always win; and it looks so where weights are more than 12 digits apart. ",
        *cure,
    )
