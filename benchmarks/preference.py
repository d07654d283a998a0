"""What responses in tiers cost a step of preference optimisation, beyond the log-probabilities.

    python benchmarks/preference.py            # under a minute
    python benchmarks/preference.py --quick    # a few seconds

A step is all that follows the log-probabilities of a batch: tiers of the ratings, the loss and its
gradient. (The trainer's metrics are computed when they are logged, for all batches at once.) Beside
it DPO on pairs, in plain torch: the best response of each prompt with the worst, and all pairs of
different grades.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from measure import (
    Claim,
    Column,
    Progress,
    Report,
    Table,
    Task,
    claims_table,
    figures,
    main,
    side_by_side,
)
from torch.nn.functional import logsigmoid

from tierrank.integrations.transformers import tiers_of
from tierrank.preference import dpo_loss

BETA = 0.1
PROMISED = (64, 8, 2.0)  # prompts, responses, milliseconds


class Plan(NamedTuple):
    budget: float  # seconds for each contender of a case
    cases: tuple[tuple[int, int], ...]  # prompts, responses


FULL = Plan(budget=3.0, cases=((8, 4), (64, 2), (64, 8), (64, 64), (512, 8)))
QUICK = Plan(budget=0.3, cases=((64, 8),))


class Batch:
    """Log-probabilities as two models could give them, and three grades of responses."""

    def __init__(self, prompts: int, responses: int) -> None:
        draw = torch.Generator().manual_seed(0)
        self.ratings = torch.randint(3, (prompts, responses), generator=draw).double()
        self.ratings[:, 0], self.ratings[:, 1] = 2, 0  # two tiers at least
        self.policy = -50 * torch.rand(prompts * responses, generator=draw)
        self.reference = self.policy + torch.randn(len(self.policy), generator=draw)
        self.policy.requires_grad_()

    def loss_and_gradient(self) -> None:
        tiers, _ = tiers_of({"ratings": self.ratings})
        self._back(dpo_loss(self.policy, self.reference, tiers, beta=BETA))

    def one_pair(self) -> None:
        rewards = BETA * (self.policy - self.reference).reshape(self.ratings.shape)
        self._back(-logsigmoid(rewards[:, 0] - rewards[:, 1]).mean())

    def all_pairs(self) -> None:
        rewards = BETA * (self.policy - self.reference).reshape(self.ratings.shape)
        above = self.ratings[:, :, None] > self.ratings[:, None]
        apart = rewards[:, :, None] - rewards[:, None]
        self._back(-logsigmoid(apart[above]).sum() / len(rewards))

    def _back(self, loss: torch.Tensor) -> None:
        torch.autograd.grad(loss, self.policy)


CONTENDERS = {
    "tiers, exactly": Batch.loss_and_gradient,
    "DPO, one pair": Batch.one_pair,
    "DPO, all pairs": Batch.all_pairs,
}


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    rows, claims = [], []
    for prompts, responses in plan.cases:
        progress(f"{prompts} prompts of {responses} responses")
        batch = Batch(prompts, responses)
        tasks = {name: Task(partial(run, batch)) for name, run in CONTENDERS.items()}
        times = {name: 1e3 * each.median for name, each in side_by_side(tasks, plan.budget).items()}
        rows.append([f"{prompts} × {responses}", *times.values()])
        if (prompts, responses) == PROMISED[:2]:
            step = times["tiers, exactly"]
            claims.append(Claim("ms a step, 64 prompts × 8 responses", step, PROMISED[2]))
    columns = [Column("prompts × responses"), *(Column(name, figures) for name in CONTENDERS)]
    report.add(Table("Milliseconds a step beyond the log-probabilities", columns, rows))
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(__doc__ or "", ["torch", "numpy", "tierrank"], measure, FULL, QUICK)
