"""AdaGrad over a few lists at a time (Ma et al., 2021), for data too large for many passes.

A step costs what its lists cost: where they leave no rest, only the scores of items that they name
are touched. A prior on scores is shared out among the lists that name an item, so that it too is
met list by list, and in expectation once a pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.terms import ListTerm, Prior, Sum, of_named_items
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.losses.objective import Objective
from tierrank.tiers import Tiers
from tierrank.training import Progress, Watch
from tierrank.training.optim import (
    Iterated,
    Minimum,
    TwiceDifferentiable,
    by_products,
    lbfgs,
    newton,
)

TINY = 1e-10  # beside the root of the summed squares, as torch has it
LEAST_STEPS = 100  # of a pass: few lists make several rounds in it
PATIENCE = 3  # passes that improve the objective too little, after which it ends


@dataclass(frozen=True)
class Steps:
    """How AdaGrad goes.

    Attributes
    ----------
    learning_rate
        of the first step; each score's own shrinks with the root of its summed squared slopes
    batch
        lists of a step, drawn in proportion to their counts
    max_epochs
        most passes over the data
    tol
        least improvement of a pass, relative to the objective, that counts as one
    """

    learning_rate: float = 0.1
    batch: int = 20
    max_epochs: int = 100
    tol: float = 1e-4

    def __post_init__(self) -> None:
        check_size("learning_rate", self.learning_rate)
        check_count("batch_lists", self.batch)
        check_size("tol", self.tol, zero=True)


def adagrad(
    whole: TwiceDifferentiable,
    lists: CountedLists,
    objective: Objective,
    prior: Prior | None,
    start: FloatArray,
    *,
    steps: Steps,
    seed: int,
    iterated: Iterated,
) -> Minimum:
    """Minimise Σ count · loss + prior by stochastic steps; the best pass is kept.

    Parameters
    ----------
    whole
        all of the objective, which is looked at after each pass
    lists, objective, prior
        what it consists of; `objective` gives one loss a list
    start
        [items] where to begin
    steps, seed
        how to go, and the seed of what is drawn
    iterated
        called after every pass with the scores and the objective
    """
    scores, squares = start.copy(), np.zeros_like(start)
    lowest, gradient = whole.value_and_gradient(scores)
    steepest = float(np.abs(gradient).max(initial=0))
    best, waited = Minimum(scores.copy(), [lowest], gradient_norm=steepest), 0
    share = _prior_share(lists)
    edges = np.cumsum(lists.counts)
    random = np.random.default_rng(seed)
    per_pass = max(-(-len(lists.tiers) // steps.batch), LEAST_STEPS)
    for _ in range(steps.max_epochs):
        for _ in range(per_pass):
            drawn = np.searchsorted(edges, random.random(steps.batch) * edges[-1], side="right")
            batch = lists.tiers[np.minimum(drawn, len(edges) - 1)]
            _step(scores, squares, batch, objective, prior, share, steps.learning_rate)
        value, gradient = whole.value_and_gradient(scores)
        best.values.append(value)
        iterated(scores, value)
        enough = value < lowest - steps.tol * abs(lowest)
        if value < lowest:
            lowest, best.point = value, scores.copy()
            best.gradient_norm = float(np.abs(gradient).max(initial=0))
        waited = 0 if enough else waited + 1
        if waited == PATIENCE:
            best.stopped_by = "patience"
            break
    return best


def _prior_share(lists: CountedLists) -> FloatArray:
    """[items] the part of an item's prior that one list which meets it carries, per count."""
    if lists.tiers.rest:
        return np.full(lists.n_items, 1 / lists.counts.sum())
    lengths = lists.tiers.lengths.numpy()
    met = np.bincount(
        lists.tiers.items.numpy(), weights=np.repeat(lists.counts, lengths), minlength=lists.n_items
    )
    return 1 / np.maximum(met, np.finfo(float).tiny)


def _step(
    scores: FloatArray,
    squares: FloatArray,
    batch: Tiers,
    objective: Objective,
    prior: Prior | None,
    share: FloatArray,
    learning_rate: float,
) -> None:
    """scores ← scores − rate · slope / √(Σ slope²), in place, by the mean over a batch."""
    touched: slice | IntArray = slice(None)
    if not batch.rest:
        batch, touched = of_named_items(batch)
    leaf = torch.from_numpy(scores[touched].copy()).requires_grad_()
    (slope,) = torch.autograd.grad(objective(leaf, batch).mean(), leaf)
    gradient = slope.numpy()
    if prior is not None:
        meetings = np.full(len(gradient), float(len(batch)))
        if not batch.rest:
            meetings = np.bincount(batch.items.numpy(), minlength=len(gradient)).astype(float)
        own = prior.value_and_gradient(scores[touched])[1]
        gradient = gradient + own * share[touched] * meetings / len(batch)
    squares[touched] += gradient**2
    scores[touched] -= learning_rate * gradient / (np.sqrt(squares[touched]) + TINY)


# Written items of all lists, and items, beyond which "auto" takes stochastic steps. Newton's
# method makes some hundred passes, of up to some seconds each at this size; below it, it is
# quicker than AdaGrad to any accuracy, at a million items too.
LARGE = 50_000_000
LONGEST = 1.0  # about how far a log-worth goes in a step of Newton's method by its own slope
FAR = 0.01  # part of it: a step that promises next to nothing and goes so far leads to infinity


def choose(solver: str, lists: CountedLists, parts: Sequence[ListTerm]) -> str:
    """The solver to use."""
    smooth = all(part.twice for part in parts)
    if solver == "newton" and not smooth:
        raise ArgumentError(
            "the objective has no second derivatives for Newton's method: use ",
            Argument("solver", "lbfgs"), ', or "auto"',
        )  # fmt: skip
    if solver == "adagrad" and not len(lists.tiers):
        raise ArgumentError(
            "adagrad draws a few lists a step, and these lie on a cluster: use ",
            Argument("solver", "newton"), ', or "auto"',
        )  # fmt: skip
    if solver != "auto":
        return solver
    if lists.entries + lists.n_items > LARGE and len(lists.tiers):  # they are all here
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
    iterated: Iterated,
) -> Minimum:
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
        called after each iteration with the scores and the value
    """
    whole: TwiceDifferentiable = Sum(parts if prior is None else [*parts, prior])
    if solver == "adagrad":
        return adagrad(
            whole, lists, objective, prior, start, steps=steps, seed=seed, iterated=iterated
        )
    return minimise_smooth(
        whole, solver, start, centred=prior is None, weight=lists.weight,
        longest=LONGEST, max_iter=max_iter, iterated=iterated,
    )  # fmt: skip


def minimise_smooth(
    whole: TwiceDifferentiable,
    solver: str,
    start: FloatArray,
    *,
    max_iter: int,
    iterated: Iterated | None = None,
    weight: float = 1.0,
    centred: bool = False,
    longest: float = np.inf,
) -> Minimum:
    """Minimise by "newton", with products, or by "lbfgs", to where rounding ends it.

    Of the former are `weight`, as in `newton`, and `centred` and `longest`, as in `by_products`.
    """
    if solver == "newton":

        def solve(point: FloatArray, gradient: FloatArray, tightness: float) -> FloatArray:
            hessian = whole.hessian(point)
            return by_products(hessian, gradient, tightness, centred=centred, longest=longest)

        return newton(
            whole.value_and_gradient, solve, start, weight=weight, far=FAR * longest,
            max_iter=max_iter, iterated=iterated,
        )  # fmt: skip
    found = lbfgs(whole.value_and_gradient, start, tol=0.0, max_iter=max_iter, iterated=iterated)
    if found.stopped_by == "line search":
        found.stopped_by = "rounding"
    return found


def watched(watch: Watch | None, most: int, weight: float, unit: str = "iteration") -> Iterated:
    """What tells a watch of iterations: of each its number, of `most`, and the loss a list."""
    numbers = itertools.count(1)

    def iterated(point: FloatArray, value: float) -> bool:
        if watch is not None:
            watch(Progress(next(numbers), most, unit, value / weight))
        return False

    return iterated
