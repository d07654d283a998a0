"""Minimisers: Newton's method, L-BFGS that can be taken up again, and stochastic steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tierrank._types import FloatArray
from tierrank.storage import Arrays

Function = Callable[[FloatArray], tuple[float, FloatArray]]  # value and gradient at a point
# from a point, the gradient there and a tolerance: H⁻¹ · gradient, or None
Solve = Callable[[FloatArray, FloatArray, float], FloatArray | None]
Iterated = Callable[[FloatArray, float], bool]  # told of point and value; True: that is enough
StoppedBy = Literal["tolerance", "rounding", "line search", "max_iter", "patience", "no minimum"]

MOST_DENSE = 5000  # parameters for which a Hessian is written out: 200 MB, and as much again


class Hessian(Protocol):
    """Second derivatives H of a function at some point."""

    def product(self, vector: FloatArray) -> FloatArray:
        """H · vector."""

    def diagonal(self) -> FloatArray | None:
        """The diagonal of H, if it comes cheaper than H."""

    def matrix(self) -> FloatArray:
        """[parameters, parameters] H."""


class TwiceDifferentiable(Protocol):
    """What Newton's method minimises. Those of parts of the data add up to that of all of it."""

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [parameters] gradient."""

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""


@dataclass
class Minimum:
    """Where a minimisation ended, and how it went.

    Attributes
    ----------
    point
        the last iterate (of stochastic steps, the best)
    values
        what was minimised, at the start and after every iteration
    stopped_by
        "tolerance": next to nothing is left to gain; "rounding": as near as numbers allow;
        "line search": no step improves the value; "max_iter"; "patience": whoever was
        told of the iterations asked for it; "no minimum": the point moves towards infinity
    gradient_norm
        largest slope at the end
    """

    point: FloatArray
    values: list[float] = field(default_factory=list)
    stopped_by: StoppedBy = "max_iter"
    gradient_norm: float = np.inf

    @property
    def value(self) -> float:
        """What was minimised, at the end."""
        return self.values[-1]

    @property
    def converged(self) -> bool:
        """Whether it came to its end by itself."""
        return self.stopped_by in ("tolerance", "rounding")

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return len(self.values) - 1


# -- Newton's method ------------------------------------------------------------------------------

# Twice the improvement that a step still promises, in nats; its root is the distance in standard
# errors. The step is taken all the same, and squares what is left.
NEAR = 1e-16
TRUSTED = 1e-8  # the same, where values are too coarse to compare and whole steps are safe
ROUNDING = 1e-15  # of values, relative to the weight of all lists
LOOSEST, TIGHTEST = 0.3, 1e-3  # how exactly a step is solved for: residual relative to gradient
TINIEST = 1e-300
SUFFICIENT = 1e-4  # part of the promised improvement that a step must keep


def newton(
    function: Function,
    solve: Solve,
    start: FloatArray,
    *,
    weight: float = 1.0,
    far: float | FloatArray = np.inf,
    tol: float | FloatArray = np.inf,
    max_iter: int = 100,
    iterated: Iterated | None = None,
) -> Minimum:
    """Minimise by Newton's method: steps of −H⁻¹ · gradient, or of a half of it, a quarter, ….

    It goes by the gradient, and so to the last digit, where a method that compares values (such as
    L-BFGS) stops at a distance of about the square root of their rounding error.

    Parameters
    ----------
    function
        gives value and gradient at a point [parameters]
    solve
        gives H⁻¹ · gradient from a point, the gradient there, and how large a residual may be
        relative to it; None where there is no such step
    start
        [parameters] where to begin
    weight
        of all lists: the scale of the function, and of its rounding errors
    far
        changes of the parameters by the last step that are no last step's: where there is next to
        nothing to gain and it still goes that far, the minimum is at infinity
    tol
        it does not end before every part of the gradient is this small
    max_iter
        most steps; with a finite minimum, about ten are taken
    iterated
        called after every step with the point and the value there; True ends it
    """
    point = start.copy()
    value, gradient = function(point)
    end = Minimum(point, [value])
    unit = min(weight, 1.0)
    steepest, last_promised = TINIEST, np.inf
    while end.iterations < max_iter:
        size = float(np.linalg.norm(gradient))
        steepest = max(steepest, size)
        step = solve(point, gradient, min(LOOSEST, max(TIGHTEST, np.sqrt(size / steepest))))
        if step is None:
            end.stopped_by = "line search"
            break
        promised = float(gradient @ step)
        trusted = max(TRUSTED * unit, ROUNDING * max(weight, abs(value)))
        endless = bool((np.abs(step) > far).any())
        settled = bool((np.abs(gradient) <= tol).all())
        stalled = promised <= trusted and promised > last_promised / 4  # it should be squared
        if settled and stalled:
            end.stopped_by = "no minimum" if endless else "rounding"
            break
        last_promised = promised
        moved = _shortened(function, point, value, step, promised, trusted=promised <= trusted)
        if moved is None:
            end.stopped_by = "rounding" if promised <= 100 * trusted else "line search"
            break
        point, value, gradient = moved
        end.values.append(value)
        if iterated is not None and iterated(point, value):
            end.stopped_by = "patience"
            break
        if settled and promised <= NEAR * unit:
            end.stopped_by = "no minimum" if endless else "tolerance"
            break
    end.point = point
    end.gradient_norm = float(np.abs(gradient).max(initial=0))
    return end


def _shortened(
    function: Function,
    point: FloatArray,
    value: float,
    step: FloatArray,
    promised: float,
    *,
    trusted: bool,
) -> tuple[FloatArray, float, FloatArray] | None:
    """The first of point − step, point − step/2, … that improves the value enough."""
    for halvings in range(40):
        share = 0.5**halvings
        moved = point - share * step
        there, gradient = function(moved)
        finite = np.isfinite(there) and bool(np.isfinite(gradient).all())
        if finite and (trusted or there <= value - SUFFICIENT * share * promised):
            return moved, there, gradient
    return None


# -- steps of Newton's method: H⁻¹ · gradient -----------------------------------------------------

_one_thread = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products of matrices take one thread until this ends: small ones take longer in several.

    The number is the process's. Whoever comes while it is one already leaves it so: two who each
    restored what they found would leave it at one for good.
    """
    if not _one_thread.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        _one_thread.release()


MOST_PRODUCTS = 1000  # of a step by conjugate gradients
LARGEST_DAMPING = 1e12
FLAT = 1e-12  # an eigenvalue, for a diagonal of 1, below which there is no curvature


def by_products(
    hessian: Hessian,
    gradient: FloatArray,
    tightness: float,
    *,
    centred: bool,
    longest: float = np.inf,
) -> FloatArray:
    """A step by conjugate gradients: no matrix is written, so a million parameters are fine.

    Where the function is not convex, it follows positive curvature.

    Parameters
    ----------
    hessian, gradient
        second and first derivatives
    tightness
        residual that may be left, relative to the gradient
    centred
        whether steps have mean 0: lists alone say nothing about a constant added to all scores
    longest
        about how far a score may go by its own slope. Chances level off within a few units of a
        log-worth, and beyond that second derivatives tell nothing.
    """
    if centred:
        gradient = gradient - gradient.mean()
    hessian = damped(hessian, gradient, longest)
    found = conjugate_gradients(hessian, gradient, tightness, centred=centred)
    if found.positive and not found.reached and len(gradient) <= MOST_DENSE:
        # chains are too long for conjugate gradients
        exact = by_cholesky(hessian.matrix(), gradient, shared=len(gradient) if centred else 0)
        if exact is not None:
            return exact - exact.mean() if centred else exact
    return found.solution


class Damped:
    """A Hessian with more on its diagonal."""

    def __init__(self, hessian: Hessian, damping: FloatArray, diagonal: FloatArray) -> None:
        self._hessian, self._damping, self._diagonal = hessian, damping, diagonal

    def product(self, vector: FloatArray) -> FloatArray:
        return self._hessian.product(vector) + self._damping * vector

    def diagonal(self) -> FloatArray:
        return self._diagonal

    def matrix(self) -> FloatArray:
        return self._hessian.matrix() + np.diag(self._damping)


def damped(hessian: Hessian, gradient: FloatArray, longest: float) -> Hessian:
    """At least |slope| / longest on the diagonal; near a minimum, what is there already."""
    diagonal = hessian.diagonal()
    if diagonal is None:
        return hessian
    least = np.abs(gradient) / longest
    if (least <= diagonal).all():
        return hessian
    raised = np.maximum(diagonal, least)
    return Damped(hessian, raised - diagonal, raised)


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


def conjugate_gradients(
    hessian: Hessian,
    right: FloatArray,
    tolerance: float,
    *,
    centred: bool = True,
    most: int = MOST_PRODUCTS,
) -> Solved:
    """H⁻¹ · right; if `centred`, within the vectors of mean 0.

    Preconditioned by the diagonal. Along a direction of no or negative curvature they end with what
    they have, or with that direction if it is the first.
    """
    diagonal = hessian.diagonal()
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
        image = projected(hessian.product(along))
        curvature = float(along @ image)
        if curvature <= 1e-14 * float(along @ (along / scale)):
            return Solved(along if number == 0 else solution, False, False)
        length = product / curvature
        solution = solution + length * along
        residual = residual - length * image
        towards = projected(residual * scale)
        last, product = product, float(residual @ towards)
        along = towards + (product / last) * along
    return Solved(solution, True, reached)


def factor(matrix: FloatArray, shared: int = 0) -> tuple[FloatArray, FloatArray, int | None] | None:
    """Cholesky's factor of a matrix, which is written over; None if not positive definite.

    The matrix is scaled to a diagonal of 1. Where H · 1 = 0 for the first `shared` parameters, the
    surest of these, of the largest second derivative, is held where it is, and what is found for
    the others is against it: no two sizes are added, however far apart they are.

    Returns
    -------
    [parameters, parameters] lower factor, [parameters] scale, and the parameter that is held
    """
    held = int(np.argmax(np.diag(matrix)[:shared])) if shared else None
    if held is not None:
        matrix[held, :] = matrix[:, held] = 0.0
        matrix[held, held] = 1.0
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or diagonal.min(initial=np.inf) <= 0:
        return None
    scale = 1 / np.sqrt(diagonal)
    matrix *= scale
    matrix *= scale[:, None]
    try:
        lower = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return lower, scale, held


def by_cholesky(
    matrix: FloatArray,
    gradient: FloatArray,
    *,
    shared: int = 0,
    damping: FloatArray | None = None,
) -> FloatArray | None:
    """A step by Cholesky's method.

    Parameters
    ----------
    matrix, gradient
        second and first derivatives
    shared
        how many of the first parameters may have the same number added without a change: the
        surest of them stays where it is
    damping
        [parameters] D: where H is not positive definite, the step is (H + λ D)⁻¹ · gradient, with
        the first λ of 1e-3, 1e-2, … that makes it so. None: there is no step then.
    """
    found, more = factor(matrix.copy(), shared), 1e-3
    while found is None:
        if damping is None or more > LARGEST_DAMPING:
            return None
        found, more = factor(matrix + np.diag(more * damping)), 10 * more
    lower, scale, held = found
    right = scale * gradient
    if held is not None:
        right[held] = 0.0
    return np.asarray(scale * linalg.cho_solve((lower, True), right, check_finite=False))


def by_eigenvectors(matrix: FloatArray, gradient: FloatArray) -> FloatArray | None:
    """A step that leaves directions without curvature alone; none where curvature is negative."""
    diagonal = np.diag(matrix)
    scale = 1 / np.sqrt(np.where(diagonal > np.finfo(float).tiny, diagonal, 1.0))
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
    if (values < -1e-8).any():  # no direction at all is fine
        return None
    slopes = vectors.T @ (gradient * scale)
    return np.asarray(
        vectors @ np.where(values > FLAT, slopes / np.maximum(values, FLAT), 0.0) * scale
    )


# -- L-BFGS ---------------------------------------------------------------------------------------

MEMORY = 10  # pairs of steps and gradient differences that the method remembers, scipy's default
VANISHED = 1e-15  # a gradient this small beside the first one is 0


class Journal:
    """Evaluations of a function in their order: [evaluations] points, values and gradients.

    scipy keeps the state of its L-BFGS-B to itself. But the method is deterministic: the points
    that it asks for follow from the values and gradients that it was given. So a journal of these
    is all there is to keep. A minimisation that is taken up again asks for the same points, gets
    the answers from the journal at no cost, and goes on where the journal ends, to the same bits.

    Takes memory for evaluations × 2 × parameters numbers. An evaluation costs rows × features, so
    the journal is small beside the data unless there are more evaluations than rows.
    """

    def __init__(self, arrays: Arrays | None = None) -> None:
        self.points: list[FloatArray] = []
        self.values: list[float] = []
        self.gradients: list[FloatArray] = []
        if arrays is not None:
            self.points = list(arrays["points"])
            self.values = arrays["values"].tolist()
            self.gradients = list(arrays["gradients"])

    def add(self, point: FloatArray, value: float, gradient: FloatArray) -> None:
        """Note an evaluation."""
        self.points.append(point.copy())
        self.values.append(value)
        self.gradients.append(gradient.copy())

    def find(self, number: int, point: FloatArray) -> tuple[float, FloatArray] | None:
        """The answer to an evaluation, if it was of the very same point.

        If it was not (another release of scipy, say), what follows is of no use and is dropped.
        """
        if number >= len(self.points):
            return None
        if self.points[number].tobytes() == point.tobytes():
            return self.values[number], self.gradients[number].copy()
        del self.points[number:], self.values[number:], self.gradients[number:]
        return None

    def arrays(self) -> Arrays:
        """All of it, to be stored."""
        return {
            "points": np.array(self.points),
            "values": np.array(self.values),
            "gradients": np.array(self.gradients),
        }


def lbfgs(
    function: Function,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    journal: Journal | None = None,
    evaluated: Callable[[], None] | None = None,
    iterated: Iterated | None = None,
) -> Minimum:
    """Minimise a smooth function by L-BFGS; it can be stopped anywhere and taken up again.

    Parameters
    ----------
    function
        gives value and gradient at a point [parameters], float64
    start
        [parameters] where to begin
    tol
        end when an iteration improves the value by no more than tol · max(|value|, 1); 0 goes on
        as long as there is any improvement
    max_iter
        end after so many iterations
    journal
        is added to, and where it already has answers, these are taken
    evaluated
        called after every evaluation that the journal did not answer
    iterated
        called after every iteration with a point and the value there; True ends it

    Raises
    ------
    ValueError
        when the value or the gradient is not finite
    """
    from scipy.optimize import OptimizeResult, minimize

    evaluations = 0
    values: list[float] = []
    asked_to_stop = vanished = False
    steepest = slope = 0.0  # at the start, and now

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal evaluations, steepest, slope
        answer = None if journal is None else journal.find(evaluations, point)
        if answer is None:
            answer = function(point)
            _check_finite(*answer, max(len(values), 1))
            if journal is not None:
                journal.add(point, *answer)
            evaluations += 1
            if evaluated is not None:
                evaluated()
        else:
            evaluations += 1
        slope = float(np.abs(answer[1]).max(initial=0))
        if evaluations == 1:
            steepest = slope
            values.append(float(answer[0]))
        return answer

    # scipy looks at this name to know what to hand over
    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal asked_to_stop, vanished
        values.append(float(intermediate_result.fun))
        if iterated is not None:
            asked_to_stop = iterated(intermediate_result.x.copy(), values[-1])
        # without a finite minimum, the point would run away until something overflows
        vanished = slope <= VANISHED * steepest
        if asked_to_stop or vanished:
            raise StopIteration

    # one iteration takes at most maxls evaluations, and one or two as a rule
    options = {
        "maxcor": MEMORY,
        "ftol": tol,
        "gtol": 0.0,
        "maxiter": max_iter,
        "maxfun": 50 * max_iter,
        "maxls": 50,
    }
    result = minimize(
        evaluate, start, jac=True, method="L-BFGS-B", callback=callback, options=options
    )
    reasons: dict[int, StoppedBy] = {0: "tolerance", 1: "max_iter"}
    stopped_by = reasons.get(result.status, "line search")
    if asked_to_stop or vanished:
        stopped_by = "patience" if asked_to_stop else "tolerance"
    return Minimum(result.x.copy(), values, stopped_by, float(np.abs(result.jac).max(initial=0)))


def _check_finite(value: float, gradient: FloatArray, iteration: int) -> None:
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise ValueError(
            f"the loss or its gradient is not finite in iteration {iteration} of L-BFGS: scale "
            'the features (features="standardize"), or penalise large coefficients (l2=1e-3)'
        )


# -- stochastic steps -----------------------------------------------------------------------------

# point, numbers of the lists (None: all) and a seed -> mean loss of these lists, and its gradient
Gradient = Callable[[FloatArray, Any, int], tuple[float, FloatArray]]


def ascend(
    gradient: Gradient,
    start: FloatArray,
    *,
    learning_rate: float,
    lists: int,
    batch: int,
    seed: int,
    done: int,
    steps: int,
    stepped: Callable[[FloatArray, float], bool],
) -> None:
    """Stochastic gradient ascent of a likelihood (descent of a loss), a few lists at a time.

    Steps are point ← point − learning_rate · gradient, each by the mean over some lists. What is
    drawn in a step depends on `seed` and the number of the step and on nothing before. So a fit
    that is taken up again needs no more than the point.

    Parameters
    ----------
    gradient
        gives the mean loss of some lists and its gradient; a loss that draws by itself does it by
        the seed that it is handed
    start
        [parameters] where to begin, after `done` steps
    learning_rate
        fixed
    lists, batch
        how many lists there are, and how many different ones make a step
    seed
        of all randomness
    done, steps
        how many steps were taken before, and how many there are to be in all
    stepped
        called after each step with the new point and the loss before it; True ends it

    Raises
    ------
    ValueError
        when the loss or the gradient is not finite
    """
    point = start.copy()
    for step in range(done + 1, steps + 1):
        random = np.random.default_rng((seed, step))
        draws = int(random.integers(2**63))
        chosen = None
        if batch < lists:
            chosen = np.sort(random.choice(lists, batch, replace=False))
        loss, slope = gradient(point, chosen, draws)
        with np.errstate(over="ignore", invalid="ignore"):
            point = point - learning_rate * slope
        if not (np.isfinite(loss) and np.isfinite(point).all()):
            raise ValueError(
                f"the loss or its gradient is not finite in iteration {step}: try a smaller "
                f'learning_rate than {learning_rate:g}, or scale the features ("standardize")'
            )
        if stepped(point, loss):
            return
