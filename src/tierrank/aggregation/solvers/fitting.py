"""Which solver suits the data, and one way to call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tierrank.aggregation.lists import CountedLists, FloatArray
from tierrank.aggregation.solvers import adagrad, newton
from tierrank.aggregation.solvers.adagrad import Steps
from tierrank.aggregation.solvers.newton import Descent
from tierrank.aggregation.terms import ListTerm, Smooth, Sum, Term
from tierrank.aggregation.terms.priors import Prior
from tierrank.losses.objective import Objective
from tierrank.training import lbfgs

# Written items of all lists, and items, beyond which "auto" takes stochastic steps. Newton's
# method makes some hundred passes, of up to some seconds each at this size; below it, it is
# quicker than AdaGrad to any accuracy, at a million items too.
LARGE = 50_000_000
LONGEST = 1.0  # about how far a log-worth goes in a step of Newton's method by its own slope


def choose(solver: str, lists: CountedLists, parts: Sequence[ListTerm]) -> str:
    """The solver to use."""
    smooth = not any(isinstance(part, Smooth) and not part.twice for part in parts)
    if solver == "newton" and not smooth:
        raise ValueError(
            "the objective has no second derivatives for Newton's method: use "
            'solver="lbfgs", or "auto"'
        )
    if solver != "auto":
        return solver
    if lists.entries + lists.n_items > LARGE:
        return "adagrad"
    return "newton" if smooth else "lbfgs"


def minimise(
    solver: str,
    lists: CountedLists,
    parts: Sequence[ListTerm],
    prior: Prior | None,
    objective: Objective,
    *,
    start: FloatArray,
    max_iter: int,
    steps: Steps,
    seed: int,
    iterated: Callable[[int, float], None],
) -> Descent:
    """Minimise Σ parts + prior.

    Parameters
    ----------
    solver
        "newton", "lbfgs" or "adagrad"
    lists, objective
        what the parts were made of, for stochastic steps
    parts, prior
        what to minimise
    start
        [items] scores to begin with
    max_iter
        most iterations
    steps, seed
        of "adagrad"
    iterated
        called after each iteration with its number and the value
    """
    whole: Term = Sum(parts if prior is None else [*parts, prior])
    if solver == "newton":
        return newton.minimise(
            whole, start, centred=prior is None, weight=float(lists.counts.sum()),
            longest=LONGEST, max_iter=max_iter, iterated=iterated,
        )  # fmt: skip
    if solver == "adagrad":
        return adagrad.minimise(
            whole, lists, objective, prior, start, steps=steps, seed=seed, iterated=iterated
        )
    values: list[float] = [whole.value_and_gradient(start)[0]]

    def noted(point: Any, value: float) -> bool:
        values.append(value)
        iterated(len(values) - 1, value)
        return False

    found = lbfgs.minimise(
        whole.value_and_gradient, start, tol=0.0, max_iter=max_iter, iterated=noted
    )
    reasons = {"line search": "rounding", "tolerance": "tolerance"}
    norm = float(np.abs(whole.value_and_gradient(found.point)[1]).max(initial=0))
    return Descent(found.point, values, reasons.get(found.stopped_by, "max_iter"), norm)
