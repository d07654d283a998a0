"""L-BFGS that can be stopped at any evaluation and taken up again, to the same bits.

scipy keeps the state of its L-BFGS-B to itself. But the method is deterministic: the points that
it asks for follow from the values and gradients that it was given. So a journal of these is all
there is to keep. A minimisation that is taken up again asks for the same points, gets the answers
from the journal at no cost, and goes on where the journal ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tierrank.storage import Arrays

Array = np.ndarray[Any, Any]
Function = Callable[[Array], tuple[float, Array]]
StoppedBy = Literal["tolerance", "line search", "max_iter", "patience", "no minimum"]

MEMORY = 10  # pairs of steps and gradient differences that the method remembers, scipy's default
VANISHED = 1e-15  # a gradient this small beside the first one is 0


class Journal:
    """Evaluations of a function in their order: [evaluations] points, values and gradients.

    Takes memory for evaluations × 2 × parameters numbers. An evaluation costs rows × features, so
    the journal is small beside the data unless there are more evaluations than rows.
    """

    def __init__(self, arrays: Arrays | None = None) -> None:
        self.points: list[Array] = []
        self.values: list[float] = []
        self.gradients: list[Array] = []
        if arrays is not None:
            self.points = list(arrays["points"])
            self.values = arrays["values"].tolist()
            self.gradients = list(arrays["gradients"])

    def add(self, point: Array, value: float, gradient: Array) -> None:
        """Note an evaluation."""
        self.points.append(point.copy())
        self.values.append(value)
        self.gradients.append(gradient.copy())

    def find(self, number: int, point: Array) -> tuple[float, Array] | None:
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


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    point, value
        the last iterate, and the function there
    iterations
        how many there were
    stopped_by
        "tolerance": the value improved too little, or the gradient vanished; "line search": no step
        improved it at all, which is the end of what rounding allows, or a kink; "max_iter";
        "patience": whoever was told of the iterations asked for it; "no minimum": the point moves
        towards infinity (only `newton.refine` sees it)
    """

    point: Array
    value: float
    iterations: int
    stopped_by: StoppedBy


def minimise(
    function: Function,
    start: Array,
    *,
    tol: float,
    max_iter: int,
    journal: Journal | None = None,
    evaluated: Callable[[], None] | None = None,
    iterated: Callable[[Array, float], bool] | None = None,
) -> Minimum:
    """Minimise a smooth function by L-BFGS.

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

    evaluations = iterations = 0
    asked_to_stop = vanished = False
    steepest = slope = 0.0  # at the start, and now

    def evaluate(point: Array) -> tuple[float, Array]:
        nonlocal evaluations, steepest, slope
        answer = None if journal is None else journal.find(evaluations, point)
        if answer is None:
            answer = function(point)
            _check_finite(*answer, iterations + 1)
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
        return answer

    # scipy looks at this name to know what to hand over
    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal iterations, asked_to_stop, vanished
        iterations += 1
        if iterated is not None:
            point, value = intermediate_result.x.copy(), float(intermediate_result.fun)
            asked_to_stop = iterated(point, value)
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
    return Minimum(result.x.copy(), float(result.fun), iterations, stopped_by)


def _check_finite(value: float, gradient: Array, iteration: int) -> None:
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise ValueError(
            f"the loss or its gradient is not finite in iteration {iteration} of L-BFGS: scale "
            'the features (features="standardize"), or penalise large coefficients (l2=1e-3)'
        )
