"""The loss of a batch of lists, and which lists have one that scores can change."""

from __future__ import annotations

import operator

import numpy as np
import torch
from torch import Tensor, nn

from tierrank.losses.objective import Objective
from tierrank.ranking.inputs import Array, TrainingRows
from tierrank.ranking.networks import Scorer
from tierrank.tiers import Tiers
from tierrank.training.batches import ListBatch


class ListLoss(nn.Module):
    """A scorer and an objective as one module, which gives the loss of a batch of lists."""

    def __init__(self, scorer: Scorer, objective: Objective) -> None:
        super().__init__()
        self.scorer, self.objective = scorer, objective
        draws = objective.options.get("generator")
        self.draws = None if draws is None else operator.index(draws)

    def forward(self, X: Tensor, batch: ListBatch) -> Tensor:
        """Sum of the losses times `batch.weights`; NaN if scores are not finite."""
        scores: Tensor = self.scorer(X, batch.lengths)
        if self.draws is not None:  # anew in each step, and the same when the step is repeated
            seed = np.random.SeedSequence([self.draws, torch.initial_seed()]).generate_state(1)
            generator = torch.Generator(X.device).manual_seed(int(seed[0]))
            self.objective.options["generator"] = generator
        with torch.autocast(X.device.type, enabled=False):
            scores = scores.float()
            total = scores.sum()
            if not torch.isfinite(total):
                return total * torch.nan
            losses: Tensor = self.objective(scores, batch.tiers)
            return losses @ batch.weights


def lists_that_teach(rows: TrainingRows, objective: Objective) -> Array:
    """Numbers of the lists whose loss depends on the scores; there is at least one."""
    teach = rows.tiers.lengths.numpy() > 1
    if _ignores_one_tier(objective):
        teach &= rows.tiers.n_tiers.numpy() > 1
    if rows.weights is not None:
        teach &= rows.weights > 0
    if not teach.any():
        raise ValueError(
            "there is nothing to learn: every list that weighs more than 0 has one label or row "
            "only. Are y, qid and weights right?"
        )
    return np.flatnonzero(teach)


def _ignores_one_tier(objective: Objective) -> bool:
    """Whether a list of one tier has loss 0 whatever the scores: asked by an example."""
    scores = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    loss = objective(scores, Tiers.from_labels([1, 1, 1])).sum()
    if float(loss.detach()) != 0:
        return False
    (gradient,) = torch.autograd.grad(loss, scores, allow_unused=True)
    return gradient is None or not bool(gradient.any())
