"""Which labels stand for the rest in a step, and how often each of them counts.

The sum Σ_rest e^w is estimated by Σ_drawn (times drawn / expected times) e^w, which is right on
average whatever the labels are drawn by; its log, and so the loss, is then a little low, by about
half the relative variance. Labels that a list names do not count in its rest, drawn or not.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tierrank.names import check_sampler

Name = Literal["uniform", "frequency", "in-batch"]
POWER = 0.75  # of frequencies: between uniform (0) and as they are (1)


class Sample(NamedTuple):
    """Labels, ascending, and the log of how often each counts in a rest."""

    labels: Tensor
    log_weights: Tensor


class Sampler(Protocol):
    """Draws from torch's global generator."""

    def draw(self, named: Tensor, lists: int) -> Sample:
        """Labels for a batch of so many lists, which name `named`, with repetitions."""


class Uniform:
    """Each draw is any of the labels."""

    def __init__(self, n_labels: int, draws: int) -> None:
        self.n_labels, self.draws = n_labels, draws

    def draw(self, named: Tensor, lists: int) -> Sample:
        """So many draws, with replacement."""
        drawn = torch.randint(self.n_labels, (self.draws,))
        labels, times = drawn.unique(return_counts=True)
        return Sample(labels, torch.log(times * (self.n_labels / self.draws)).float())


class Frequency:
    """Each draw is a label with a probability that grows with how often rows have it.

    Parameters
    ----------
    counts
        [labels] rows that have it; one more is counted, so that every label may come
    draws
        how many
    """

    def __init__(self, counts: Tensor, draws: int, power: float = POWER) -> None:
        share = (counts.double() + 1) ** power
        self.ends = (share / share.sum()).cumsum(0)
        self.log_share = (share / share.sum()).log()
        self.draws = draws

    def draw(self, named: Tensor, lists: int) -> Sample:
        """So many draws, with replacement."""
        at = torch.rand(self.draws, dtype=torch.float64) * self.ends[-1]
        drawn = torch.searchsorted(self.ends, at, right=True).clamp_(max=len(self.ends) - 1)
        labels, times = drawn.unique(return_counts=True)
        log_weights = times.double().log() - np.log(self.draws) - self.log_share[labels]
        return Sample(labels, log_weights.float())


class InBatch:
    """The labels that the other lists of the batch name; those that no row has never come.

    A list without a label meets it if one of the batch's other rows has it. With c of n rows
    having it, and b − 1 others drawn, that has the probability 1 − C(n − 1 − c, b − 1) /
    C(n − 1, b − 1).

    Parameters
    ----------
    counts
        [labels] rows that have it
    rows, batch
        n, and b; the last batch of an epoch may be smaller
    """

    def __init__(self, counts: Tensor, rows: int, batch: int) -> None:
        self.counts, self.rows, self.batch = counts, rows, min(batch, rows)
        self.log_weights = self._log_weights(counts, self.batch)

    def _log_weights(self, counts: Tensor, batch: int) -> Tensor:
        have = counts.double().clamp(max=self.rows - 1)
        others, without = batch - 1, self.rows - 1 - have
        log_missed = _log_choose(without, others) - _log_choose(
            torch.tensor(self.rows - 1.0, dtype=torch.float64), others
        )
        log_missed[without < others] = -torch.inf
        never = log_missed == 0  # so that it does not matter, but it must be a number
        return torch.where(never, -torch.inf, -torch.log(-torch.expm1(log_missed)))

    def draw(self, named: Tensor, lists: int) -> Sample:
        """All labels of the batch, once each."""
        labels = named.unique()
        if lists == self.batch:
            return Sample(labels, self.log_weights[labels].float())
        return Sample(labels, self._log_weights(self.counts[labels], lists).float())


def _log_choose(n: Tensor, k: int) -> Tensor:
    """log C(n, k), for n ≥ k; what is computed for smaller n is not to be used."""
    return torch.lgamma(n + 1) - torch.lgamma((n - k).clamp(min=0) + 1) - torch.lgamma(
        torch.tensor(k + 1.0, dtype=torch.float64)
    )  # fmt: skip


def sampler_from(name: Name, draws: int, Y: Any, batch: int) -> Sampler:
    """The sampler of this name for [rows, labels] positives, all rows of which are learned from."""
    check_sampler(name)
    counts = torch.from_numpy(np.bincount(Y.indices, minlength=Y.shape[1]))
    if name == "uniform":
        return Uniform(Y.shape[1], draws)
    if name == "frequency":
        return Frequency(counts, draws)
    return InBatch(counts, Y.shape[0], batch)
