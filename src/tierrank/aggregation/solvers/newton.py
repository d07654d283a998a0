"""Newton's method with conjugate gradients: no matrix is written, so a million items are fine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.parts import Bend, Term

# Twice the improvement that a step still promises, in nats; its root is the distance in standard
# errors. The step is taken all the same, and squares what is left.
NEAR = 1e-16
TRUSTED = 1e-8  # the same, where whole steps are safe
ROUNDING = 1e-15  # of values, relative to the weight of all lists
FAR = 0.01  # part of the longest step: one that promises next to nothing is a way to infinity
LOOSEST, TIGHTEST = 0.3, 1e-3  # how exactly a step is solved for: residual relative to gradient
MOST_PRODUCTS = 1000  # of a step
MOST_DENSE = 5000  # items for which [items, items] is written out: 200 MB, and as much again
TINIEST = 1e-300
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
        "tolerance"; "rounding", as near as numbers allow; "max_iter"; "patience"; "no minimum",
        the scores run away; or "no step", none improves the value
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
    weight: float = 1.0,
    longest: float = np.inf,
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
    weight
        of all lists: the scale of the term
    longest
        about how far a score may go in a step by its own slope. Chances level off within a few
        units of a log-worth, and beyond that second derivatives tell nothing.
    max_iter
        most steps; with a finite minimum, about ten are taken
    iterated
        called after every step with its number and the value
    """
    scores = start.copy()
    value, gradient = term.value_and_gradient(scores)
    descent = Descent(scores, [value])
    near = NEAR * min(weight, 1.0)
    first_size, last_promised = 0.0, np.inf
    for number in range(1, max_iter + 1):
        if centred:
            gradient = gradient - gradient.mean()
        size = float(np.linalg.norm(gradient))
        first_size = max(first_size, size)
        tightness = min(LOOSEST, max(TIGHTEST, np.sqrt(size / max(first_size, TINIEST))))
        bend = held_back(term.at(scores), gradient, longest)
        found = solve(bend, gradient, tightness, centred=centred)
        step = -found.solution
        if found.positive and not found.reached and len(scores) <= MOST_DENSE:
            step = -_solve_dense(bend, gradient, found.solution, centred=centred)
        promised = -float(gradient @ step)
        trusted = max(TRUSTED * min(weight, 1.0), ROUNDING * max(weight, abs(value)))
        far = float(np.abs(step).max(initial=0)) > FAR * longest
        if promised <= trusted and promised > last_promised / 4:  # each step should square it
            descent.stopped_by = "no minimum" if far else "rounding"
            break
        last_promised = promised
        moved = _shortened(term, scores, value, step, promised, trusted=promised <= trusted)
        if moved is None:
            descent.stopped_by = "rounding" if promised <= 100 * trusted else "no step"
            break
        scores, value, gradient = moved
        descent.values.append(value)
        if iterated is not None:
            iterated(number, value)
        if promised <= near:
            descent.stopped_by = "no minimum" if far else "tolerance"
            break
    descent.scores = scores
    descent.gradient_norm = float(np.abs(gradient).max(initial=0))
    return descent


class HeldBack:
    """Second derivatives, more on the diagonal where a score's slope would carry it too far."""

    def __init__(self, bend: Bend, more: FloatArray, diagonal: FloatArray) -> None:
        self._bend, self._more, self._diagonal = bend, more, diagonal

    def product(self, vector: FloatArray) -> FloatArray:
        return self._bend.product(vector) + self._more * vector

    def diagonal(self) -> FloatArray:
        return self._diagonal

    def matrix(self) -> FloatArray:
        return self._bend.matrix() + np.diag(self._more)


def held_back(bend: Bend, gradient: FloatArray, longest: float) -> Bend:
    """At least |slope| / longest on the diagonal; near a minimum, what is there already."""
    diagonal = bend.diagonal()
    if diagonal is None:
        return bend
    least = np.abs(gradient) / longest
    if (least <= diagonal).all():
        return bend
    raised = np.maximum(diagonal, least)
    return HeldBack(bend, raised - diagonal, raised)


class Solved(NamedTuple):
    """What conjugate gradients found.

    Attributes
    ----------
    solution
        where they ended
    positive
        whether all curvature they met was
    reached
        whether the residual is as small as it was to be
    """

    solution: FloatArray
    positive: bool
    reached: bool


def solve(
    bend: Bend,
    right: FloatArray,
    tolerance: float,
    *,
    centred: bool = True,
    most: int = MOST_PRODUCTS,
) -> Solved:
    """H⁻¹ · right; if `centred`, within the vectors of mean 0.

    Conjugate gradients, preconditioned by the diagonal. Along a direction of no or negative
    curvature they end with what they have, or with that direction if it is the first.
    """
    diagonal = bend.diagonal()
    scale = np.ones_like(right)
    if diagonal is not None:
        scale = 1 / np.maximum(diagonal, max(1e-12 * float(diagonal.max(initial=0)), TINIEST))

    def projected(vector: FloatArray) -> FloatArray:
        return vector - vector.mean() if centred else vector

    solution = np.zeros_like(right)
    residual = projected(right)
    goal = tolerance * float(np.linalg.norm(residual))
    towards = projected(residual * scale)
    along = towards
    product = float(residual @ towards)
    for number in range(most + 1):
        reached = float(np.linalg.norm(residual)) <= goal
        if reached or product <= 0 or number == most:
            break
        bent = projected(bend.product(along))
        curvature = float(along @ bent)
        if curvature <= 1e-14 * float(along @ (along / scale)):
            return Solved(along if number == 0 else solution, False, False)
        length = product / curvature
        solution = solution + length * along
        residual = residual - length * bent
        towards = projected(residual * scale)
        last, product = product, float(residual @ towards)
        along = towards + (product / last) * along
    return Solved(solution, True, reached)


def _solve_dense(
    bend: Bend, right: FloatArray, instead: FloatArray, *, centred: bool
) -> FloatArray:
    """H⁻¹ · right by Cholesky's method, where long chains of comparisons are too much for `solve`.

    If `centred`, one score is held and then the mean taken off. `instead` if H is not positive.
    """
    from scipy import linalg

    matrix = bend.matrix()
    if centred:
        held = int(np.argmax(np.diag(matrix)))
        matrix[held, :] = matrix[:, held] = 0.0
        matrix[held, held] = 1.0
        right = right.copy()
        right[held] = 0.0
    try:
        found = linalg.cho_solve(linalg.cho_factor(matrix, overwrite_a=True), right)
    except linalg.LinAlgError:
        return instead
    return np.asarray(found - found.mean() if centred else found)


def _shortened(
    term: Term,
    scores: FloatArray,
    value: float,
    step: FloatArray,
    promised: float,
    *,
    trusted: bool,
) -> tuple[FloatArray, float, FloatArray] | None:
    """The step, or half of it, or a quarter, …: the first that improves the value enough."""
    for halvings in range(40):
        share = 0.5**halvings
        moved = scores + share * step
        there, gradient = term.value_and_gradient(moved)
        finite = np.isfinite(there) and bool(np.isfinite(gradient).all())
        if finite and (trusted or there <= value - SUFFICIENT * share * promised):
            return moved, there, gradient
    return None
