"""Newton's method with conjugate gradients: no matrix is written, so a million items are fine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.parts import Bend, Term

# Twice the improvement that a step still promises, in nats; its root is the distance in standard
# errors. The step is taken all the same, and squares what is left.
NEAR = 1e-16
TRUSTED = 1e-8  # the same, where whole steps are safe, and values too coarse to compare
LOOSEST, TIGHTEST = 0.3, 1e-3  # how exactly a step is solved for: residual relative to gradient
MOST_PRODUCTS = 1000  # of a step
SUFFICIENT = 1e-4  # part of the promised improvement that a step must keep


@dataclass
class Descent:
    """How a minimisation went.

    Attributes
    ----------
    scores
        [items] where it ended
    values
        what was minimised, at the start and after every iteration
    stopped_by
        "tolerance", "rounding" (no step improves the value), "max_iter" or "patience"
    gradient_norm
        largest slope at the end
    """

    scores: FloatArray
    values: list[float] = field(default_factory=list)
    stopped_by: str = "max_iter"
    gradient_norm: float = np.inf

    @property
    def converged(self) -> bool:
        """Whether it came to its end by itself."""
        return self.stopped_by in ("tolerance", "rounding")

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return max(len(self.values) - 1, 0)


def minimise(
    term: Term,
    start: FloatArray,
    *,
    centred: bool = True,
    max_iter: int = 100,
    iterated: Callable[[int, float], None] | None = None,
) -> Descent:
    """Minimise a twice differentiable term. Where it is not convex, follow positive curvature.

    Parameters
    ----------
    term
        what to minimise
    start
        [items] where to begin
    centred
        whether steps have mean 0: lists alone say nothing about a constant added to all scores
    max_iter
        most steps; with a finite minimum, about ten are taken
    iterated
        called after every step with its number and the value
    """
    scores = start.copy()
    value, gradient = term.value_and_gradient(scores)
    descent = Descent(scores, [value])
    last_promised = np.inf
    for number in range(1, max_iter + 1):
        if centred:
            gradient = gradient - gradient.mean()
        size = float(np.linalg.norm(gradient))
        tightness = min(LOOSEST, max(TIGHTEST, np.sqrt(size / max(len(scores), 1))))
        step = -solve(term.at(scores), gradient, tightness, centred=centred)[0]
        promised = -float(gradient @ step)
        if promised <= TRUSTED and promised > last_promised / 4:
            descent.stopped_by = "rounding"  # each step should square it
            break
        last_promised = promised
        found = _shortened(term, scores, value, step, promised)
        if found is None:
            descent.stopped_by = "rounding"
            break
        scores, value, gradient = found
        descent.values.append(value)
        if iterated is not None:
            iterated(number, value)
        if promised <= NEAR:
            descent.stopped_by = "tolerance"
            break
    descent.scores = scores
    descent.gradient_norm = float(np.abs(gradient).max(initial=0))
    return descent


def solve(
    bend: Bend,
    right: FloatArray,
    tolerance: float,
    *,
    centred: bool = True,
    most: int = MOST_PRODUCTS,
) -> tuple[FloatArray, bool]:
    """H⁻¹ · right, and whether H was positive; if `centred`, within the vectors of mean 0.

    Conjugate gradients, preconditioned by the diagonal. Along a direction of no or negative
    curvature they end with what they have, or with that direction if it is the first.
    """
    diagonal = bend.diagonal()
    scale = np.ones_like(right)
    if diagonal is not None:
        scale = 1 / np.maximum(diagonal, max(1e-12 * float(diagonal.max(initial=0)), 1e-300))

    def projected(vector: FloatArray) -> FloatArray:
        return vector - vector.mean() if centred else vector

    solution = np.zeros_like(right)
    residual = projected(right)
    goal = tolerance * float(np.linalg.norm(residual))
    towards = projected(residual * scale)
    along = towards
    product = float(residual @ towards)
    for number in range(most):
        if float(np.linalg.norm(residual)) <= goal or product <= 0:
            break
        bent = projected(bend.product(along))
        curvature = float(along @ bent)
        if curvature <= 1e-14 * float(along @ (along / scale)):
            return (along if number == 0 else solution), False
        length = product / curvature
        solution = solution + length * along
        residual = residual - length * bent
        towards = projected(residual * scale)
        last, product = product, float(residual @ towards)
        along = towards + (product / last) * along
    return solution, True


def _shortened(
    term: Term, scores: FloatArray, value: float, step: FloatArray, promised: float
) -> tuple[FloatArray, float, FloatArray] | None:
    """The step, or half of it, or a quarter, …: the first that improves the value enough."""
    trusted = promised <= TRUSTED
    for halvings in range(40):
        share = 0.5**halvings
        moved = scores + share * step
        there, gradient = term.value_and_gradient(moved)
        finite = np.isfinite(there) and bool(np.isfinite(gradient).all())
        if finite and (trusted or there <= value - SUFFICIENT * share * promised):
            return moved, there, gradient
    return None
