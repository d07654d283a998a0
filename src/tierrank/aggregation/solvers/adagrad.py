"""AdaGrad over a few lists at a time (Ma et al., 2021), for data too large for many passes.

A step costs what its lists cost: where they leave no rest, only the scores of items that they name
are touched. A prior on scores is shared out among the lists that name an item, so that it too is
met list by list, and in expectation once a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from tierrank.aggregation.lists import CountedLists, FloatArray
from tierrank.aggregation.solvers.newton import Descent
from tierrank.aggregation.terms.parts import Term
from tierrank.aggregation.terms.priors import Prior
from tierrank.losses.objective import Objective
from tierrank.tiers import Tiers
from tierrank.training.settings import check_count, check_size

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


def minimise(
    whole: Term,
    lists: CountedLists,
    objective: Objective,
    prior: Prior | None,
    start: FloatArray,
    *,
    steps: Steps,
    seed: int,
    iterated: Callable[[int, float], None] | None = None,
) -> Descent:
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
        called after every pass with its number and the objective
    """
    scores, squares = start.copy(), np.zeros_like(start)
    lowest, gradient = whole.value_and_gradient(scores)
    steepest = float(np.abs(gradient).max(initial=0))
    best, waited = Descent(scores.copy(), [lowest], gradient_norm=steepest), 0
    share = _prior_share(lists)
    edges = np.cumsum(lists.counts)
    random = np.random.default_rng(seed)
    per_pass = max(-(-len(lists.tiers) // steps.batch), LEAST_STEPS)
    for epoch in range(1, steps.max_epochs + 1):
        for _ in range(per_pass):
            drawn = np.searchsorted(edges, random.random(steps.batch) * edges[-1], side="right")
            batch = lists.tiers[np.minimum(drawn, len(edges) - 1)]
            _step(scores, squares, batch, objective, prior, share, steps.learning_rate)
        value, gradient = whole.value_and_gradient(scores)
        best.values.append(value)
        if iterated is not None:
            iterated(epoch, value)
        enough = value < lowest - steps.tol * abs(lowest)
        if value < lowest:
            lowest, best.scores = value, scores.copy()
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
    touched: slice | FloatArray = slice(None)
    if not batch.rest:
        touched, where = np.unique(batch.items.numpy(), return_inverse=True)
        batch = replace(
            batch, items=torch.from_numpy(where.reshape(-1)), n_items=len(touched), names=None
        )
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
