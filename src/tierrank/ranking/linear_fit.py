"""How a linear ranker is fitted: what its settings mean, and the two solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.losses import find
from tierrank.ranking.inference import check_uncertainty
from tierrank.ranking.inputs import Array
from tierrank.ranking.linear_loss import LinearLoss
from tierrank.storage import Arrays
from tierrank.training import History
from tierrank.training.ascent import ascend
from tierrank.training.lbfgs import Journal, minimise
from tierrank.training.newton import refine
from tierrank.training.tracker import Tracker

if TYPE_CHECKING:
    from tierrank.ranking.linear import LinearRanker

NEAR_ENOUGH = 1e-7  # relative improvement at which Newton's method takes over
MOST_NEWTON_FEATURES = 1000  # a step takes as many products with the Hessian as features
MOST_NEWTON_STEPS = 30  # about 3 are needed, unless there is no finite minimum

Kept = tuple[dict[str, Any], Arrays] | None  # what a checkpoint gives


@dataclass(frozen=True)
class Plan:
    """Settings of a fit, with nothing left open.

    Attributes
    ----------
    means_to_end
        whether L-BFGS is meant to end before `max_iter`: the default of 100 iterations is a rule
        to stop by, any other number a limit
    """

    solver: str
    tol: float
    max_iter: int
    patience: int | None
    learning_rate: float
    batch_lists: int | None
    means_to_end: bool


def plan_of(ranker: LinearRanker, *, validated: bool) -> Plan:
    """Check the settings of a ranker and fill in what is left to us.

    Raises
    ------
    ValueError
        for settings that are wrong, or that do not go together
    """
    entry = find(ranker.objective)
    solver: str = ranker.solver
    if solver == "auto":
        solver = "sgd" if entry.stochastic else "lbfgs"
    if solver not in ("lbfgs", "sgd"):
        raise ValueError(f'solver is "auto", "lbfgs" or "sgd", not {solver!r}')
    if solver == "lbfgs" and entry.stochastic:
        raise ValueError(f'the gradient of {entry.name} is random, so it needs solver="sgd"')
    if "generator" in (ranker.objective_params or {}):
        raise ValueError("a ranker's randomness comes from random_state, not from a generator")
    exact = ranker.uncertainty is not None
    check_uncertainty(ranker.uncertainty, entry.name, ranker.objective_params)
    if exact and solver == "sgd":
        raise ValueError('uncertainty is about the minimum, which takes solver="lbfgs"')
    if exact and validated and ranker.patience is not None:
        raise ValueError(
            "uncertainty is about the minimum, and patience stops before it: leave out one"
        )
    tol = ranker.tol
    if tol is None:
        tol = 0.0 if exact else 1e-5
    _check_number("l2", ranker.l2, ranker.l2 >= 0, "not negative")
    _check_number("tol", tol, tol >= 0, "not negative")
    _check_number("learning_rate", ranker.learning_rate, ranker.learning_rate > 0, "positive")
    for what in ("max_iter", "batch_lists", "patience"):
        count = getattr(ranker, what)
        if count is not None and not (count == int(count) and count >= 1):
            raise ValueError(f"{what} is an integer from 1, or None, not {count!r}")
    most = ranker.max_iter
    if most is None:
        most = 1000 if solver == "sgd" else 100 if tol > 0 else 10_000
    return Plan(
        solver=solver,
        tol=float(tol),
        max_iter=int(most),
        patience=ranker.patience if validated else None,
        learning_rate=float(ranker.learning_rate),
        batch_lists=ranker.batch_lists,
        means_to_end=solver == "lbfgs" and (ranker.max_iter is not None or tol == 0),
    )


def _check_number(name: str, value: float, fits: bool, kind: str) -> None:
    if not (fits and value < np.inf):
        raise ValueError(f"{name} is a number that is {kind}, not {value!r}")


def by_lbfgs(loss: LinearLoss, tracker: Tracker, kept: Kept, plan: Plan, seed: int) -> str:
    """Minimise the sum over the lists, so that a relative improvement is one; how it ended.

    To the last digit, L-BFGS comes near and Newton's method does the rest, if it can.
    """
    journal = Journal(None if kept is None else kept[1])
    tracker.arrays = journal.arrays
    if kept is not None:
        tracker.known = History.from_json(kept[0]["history"])

    def summed(point: Array) -> tuple[float, Array]:
        value, gradient = loss.value_and_gradient(point)
        return loss.lists * value, loss.lists * gradient

    def iterated(point: Array, value: float) -> bool:
        return tracker.step(point, value / loss.lists)

    newton = plan.tol == 0 and loss.twice_differentiable and loss.features <= MOST_NEWTON_FEATURES
    end = minimise(
        summed,
        loss.start(),
        tol=NEAR_ENOUGH if newton else plan.tol,
        max_iter=plan.max_iter,
        journal=journal,
        evaluated=tracker.pause,
        iterated=iterated,
    )
    if not end.iterations:  # it began at the minimum
        iterated(end.point, end.value)
    left = min(plan.max_iter - end.iterations, MOST_NEWTON_STEPS)
    if newton and end.stopped_by in ("tolerance", "line search") and left > 0:
        per_list = loss.lists / loss.total_weight
        end = refine(
            summed,
            lambda point: loss.information(point) * per_list,
            end.point,
            max_iter=left,
            iterated=iterated,
        )
    return end.stopped_by


def by_steps(loss: LinearLoss, tracker: Tracker, kept: Kept, plan: Plan, seed: int) -> str:
    """Take stochastic steps; how they ended."""
    tracker.arrays = lambda: {"point": tracker.point, "best": tracker.best}
    if kept is not None:
        tracker.history = History.from_json(kept[0]["history"])
        tracker.point, tracker.best = kept[1]["point"], kept[1]["best"]
    if not tracker.out_of_patience:  # a fit may have been killed right after its last step
        ascend(
            loss.value_and_gradient,
            tracker.point,
            learning_rate=plan.learning_rate,
            lists=loss.lists,
            batch=loss.lists if plan.batch_lists is None else int(plan.batch_lists),
            seed=seed,
            done=len(tracker.history.steps),
            steps=plan.max_iter,
            stepped=tracker.step,
        )
    return "patience" if tracker.out_of_patience else "max_iter"
