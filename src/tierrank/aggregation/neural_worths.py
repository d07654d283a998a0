"""Log-worths that are a perceptron of features, trained on all lists at once by Adam."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from tierrank._types import FloatArray
from tierrank.training import History, Watch
from tierrank.training.loop import own_randomness, seed_generators
from tierrank.training.optim import TwiceDifferentiable
from tierrank.training.perceptron import perceptron

CPU = torch.device("cpu")
MEASURE = "held-out −loss"


@dataclass(frozen=True)
class Course:
    """How a network is trained.

    Attributes
    ----------
    learning_rate
        of Adam
    l2
        penalty on the matrices (not on biases), beside the mean loss
    max_iter
        most steps, each on all lists
    patience
        steps without a lower loss of the held-out lists that end it
    """

    learning_rate: float
    l2: float
    max_iter: int
    patience: int


@dataclass(frozen=True)
class WeighedTerm:
    """A sum over lists, and their weight."""

    term: TwiceDifferentiable
    weight: float


def network_for(width: int, hidden: Sequence[int], activation: str, seed: int) -> nn.Sequential:
    """A perceptron with its first weights; torch's own generator is left as it was."""
    with own_randomness(CPU):
        seed_generators(seed, CPU)
        return perceptron(width, hidden, activation=activation)


def held_out(counts: FloatArray, fraction: float, random: np.random.Generator) -> FloatArray:
    """[lists] how often each list is held out: about this fraction of all, at random.

    Lists that were seen several times are split up; with counts that are no whole numbers, they
    are held out as a whole.

    Raises
    ------
    ValueError
        if there is nothing left to learn from
    """
    whole = counts.astype(np.int64)
    if (whole == counts).all():
        total = int(whole.sum())
        chosen = max(1, round(fraction * total))
        kept_out = random.multivariate_hypergeometric(whole, min(chosen, total), method="marginals")
        out = kept_out.astype(np.float64)
    else:
        order = random.permutation(len(counts))
        before = np.cumsum(counts[order]) - counts[order]
        out = np.zeros_like(counts)
        chosen_lists = order[before < fraction * counts.sum()]
        out[chosen_lists] = counts[chosen_lists]
    if not (out < counts).any():
        raise ValueError(
            'there are too few lists to hold some out: use validation_fraction=0, or model="linear"'
        )
    return out


def train(
    network: nn.Sequential,
    features: FloatArray,
    lists: WeighedTerm,
    held: WeighedTerm | None,
    course: Course,
    watch: Watch | None = None,
) -> tuple[History, str]:
    """Train in place; the weights of the best step are kept.

    The best step has the lowest loss of the held-out lists, or, without any, what is minimised.
    The term gives its gradient by the scores, and autograd goes on from there.

    Returns
    -------
    The training curve, and "patience" or "max_iter".
    """
    rows = torch.from_numpy(features.astype(np.float32))
    matrices = [each for each in network.parameters() if each.ndim == 2]
    optimiser = torch.optim.Adam(network.parameters(), lr=course.learning_rate)
    history = History("iteration", MEASURE)
    best, lowest, stopped_by = deepcopy(network.state_dict()), np.inf, "max_iter"
    for step in range(1, course.max_iter + 1):
        scores = network(rows).squeeze(1)
        point = scores.detach().double().numpy()
        value, slope = lists.term.value_and_gradient(point)
        penalty = course.l2 / 2 * torch.stack([each.square().sum() for each in matrices]).sum()
        loss = value / lists.weight
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss is not finite in iteration {step}: lower learning_rate, give some l2, "
                "or use standardize=True"
            )
        # without held-out lists, the best step is the one with the lowest of what is minimised
        judged = loss + float(penalty.detach())
        metric = None
        if held is not None:
            judged = held.term.value_and_gradient(point)[0] / held.weight
            metric = -judged
        history.add(step, loss, metric)
        if judged < lowest:
            lowest = judged
            best = deepcopy(network.state_dict())
        if watch is not None:
            watch(history.progress(course.max_iter))
        if history.since_best() >= course.patience:
            stopped_by = "patience"
            break
        optimiser.zero_grad()
        down = torch.from_numpy(slope / lists.weight).float()
        torch.autograd.backward([scores, penalty], [down, None])
        optimiser.step()
    network.load_state_dict(best)
    return history, stopped_by


def network_scores(network: nn.Sequential, features: FloatArray) -> FloatArray:
    """[rows] scores in float64, so that a row's does not depend on what else is asked for."""
    with torch.inference_mode():
        exact = deepcopy(network).double()
        return np.asarray(exact(torch.from_numpy(features)).squeeze(1).numpy())
