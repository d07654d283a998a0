"""Worths by gradient descent as in section 4.1 of Ma et al. (2021): a free score an item."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from tierrank.aggregation.aggregator import RankAggregator
from tierrank.data.synthetic import simulate
from tierrank.losses import find
from tierrank.tiers import Tiers

Loss = Callable[..., Tensor]

METHODS = {
    "pl-partition": "PL-Partition",
    "pl-lb": "PL-LB",
    "attrank": "AttRank",
    "ranknet": "RankNet",
    "ranksvm": "RankSVM",
    "pl-efron": "PL-Efron",
    "pl-map": "PL-Partition with a prior",
    "pl-topk": "PL-TopK",
}
OURS = "pl-partition"
MAP = "pl-map"  # not trained by steps: the maximum of likelihood and prior, by Newton's method
PRIOR = "gaussian:2"
ORACLE = "pl-topk"  # knows the order of the items above the rest
PAPERS = ("pl-partition", "pl-lb", "attrank", "ranknet", "ranksvm", "pl-topk")


@dataclass(frozen=True)
class Training:
    """How scores are fitted, the same for all methods.

    Attributes
    ----------
    rate
        AdaGrad's initial learning rate
    batch
        lists of a step
    held_out
        share of the lists that is not trained on, to stop by
    most_held_out
        lists held out at most
    check
        steps between two looks at the lists held out
    patience
        looks without a lower loss before it ends
    steps
        at most
    """

    rate: float = 0.1
    batch: int = 20
    held_out: float = 0.25
    most_held_out: int = 500
    check: int = 50
    patience: int = 5
    steps: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ValueError(f"the share held out is between 0 and 1, not {self.held_out}")
        for name in ("batch", "most_held_out", "check", "patience", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")
        if not self.rate > 0 or not math.isfinite(self.rate):
            raise ValueError(f"the learning rate is positive, not {self.rate}")


class Trained(NamedTuple):
    """Scores at the lowest loss of the lists held out, and how it came to them."""

    scores: Tensor
    best_step: int
    steps: int
    ended: str  # "patience", or "steps": there were no more
    seconds: float


def data_for(method: str, items: int, lists: int, seed: int) -> tuple[Tensor, Tiers]:
    """True worths, which sum to 1, and the lists that a method sees."""
    log_worths, tiers = _drawn(items, lists, seed, method == ORACLE)
    return log_worths.exp(), tiers


# Methods of one cell follow each other, and all but the oracle see the same.
@lru_cache(maxsize=2)
def _drawn(items: int, lists: int, seed: int, strict: bool) -> tuple[Tensor, Tiers]:
    return simulate(items, lists, seed=seed, strict=strict)


def loss_of(method: str) -> Loss:
    """The objective of a method; over strict lists, PL-Partition is the likelihood of PL-TopK."""
    return find(OURS if method == ORACLE else method).function


def train(method: str, tiers: Tiers, settings: Training, seed: int) -> Trained:
    """Minimise a method's loss, in float32, from scores of 0.

    The seed decides which lists are held out and the order of the others; it is the same for all
    methods.
    """
    if method == MAP:
        return maximum_a_posteriori(tiers)
    if len(tiers) < 2:
        raise ValueError(f"{len(tiers)} list: at least 2 are needed, to train on and to stop by")
    loss = loss_of(method)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(tiers), generator=generator)
    held = min(max(1, round(settings.held_out * len(tiers))), settings.most_held_out)
    judge, train_on = tiers[order[:held]], order[held:]

    scores = torch.zeros(tiers.n_items or 0, requires_grad=True)
    optimiser = torch.optim.Adagrad([scores], lr=settings.rate)
    start = time.perf_counter()
    best, best_step, best_scores = math.inf, 0, scores.detach().clone()
    looks_since = step = 0
    ended = "steps"
    while step < settings.steps and ended == "steps":
        shuffled = train_on[torch.randperm(len(train_on), generator=generator)]
        for chosen in shuffled.split(settings.batch):
            optimiser.zero_grad()
            loss(scores, tiers[chosen]).backward()
            optimiser.step()
            step += 1
            if step % settings.check == 0 or step == settings.steps:
                with torch.no_grad():  # summed in float64: pairs are many, and steps small
                    now = float(loss(scores, judge, reduction="none").double().mean())
                looks_since += 1
                if now < best:
                    best, best_step, best_scores = now, step, scores.detach().clone()
                    looks_since = 0
                if looks_since >= settings.patience:
                    ended = "patience"
            if ended == "patience" or step == settings.steps:
                break
    return Trained(best_scores, best_step, step, ended, time.perf_counter() - start)


def maximum_a_posteriori(tiers: Tiers) -> Trained:
    """The scores that `RankAggregator` finds from all lists, with nothing to stop early."""
    start = time.perf_counter()
    fitted = RankAggregator(prior=PRIOR).fit(tiers)
    steps, seconds = fitted.n_iter_, time.perf_counter() - start
    return Trained(torch.from_numpy(fitted.log_worths_), steps, steps, "maximum", seconds)


def mean_squared_error(scores: Tensor, worths: Tensor) -> float:
    """Between softmax(scores) and the true worths, over the items: what figures 1 and 3 show."""
    return float((scores.double().softmax(0) - worths).square().mean())
