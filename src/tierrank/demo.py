"""The demo: draw lists with ties from known worths, and see which likelihood finds them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank.data.synthetic import simulate
from tierrank.losses import list_mle, pl_efron, pl_lower_bound, pl_partition
from tierrank.tiers import Tiers

Objective = Callable[[Tensor, Tiers], Tensor]

OBJECTIVES: dict[str, Objective] = {
    "PL-Partition (exact)": pl_partition,
    "PL-Efron (approximation)": pl_efron,
    "PL-LB (lower bound)": pl_lower_bound,
    "ListMLE (ties broken)": lambda scores, tiers: list_mle(
        scores, tiers, ties="random", generator=0
    ),
}


class Fit(NamedTuple):
    """One estimate: how many lists it saw, by which objective, and how far off it is."""

    lists: int
    objective: str
    error: float  # root mean square, in log-worth


def fit_log_worths(objective: Objective, tiers: Tiers) -> Tensor:
    """[items] log-worths that minimise an objective, centred; L-BFGS in float64."""
    from scipy.optimize import minimize

    assert tiers.n_items is not None

    def loss_and_gradient(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = torch.from_numpy(w).requires_grad_()
        loss = objective(scores, tiers)
        (gradient,) = torch.autograd.grad(loss, scores)
        return float(loss.detach()), gradient.numpy()

    result = minimize(
        loss_and_gradient, np.zeros(tiers.n_items), jac=True, method="L-BFGS-B",
        options={"maxiter": 500, "gtol": 1e-7},
    )  # fmt: skip
    worths = torch.from_numpy(result.x)
    return worths - worths.mean()


def run(items: int, lists: tuple[int, ...], tiers: int, seed: int) -> Iterator[Fit]:
    """Fit every objective to growing parts of one simulated data set."""
    truth, data = simulate(items, max(lists), tiers=tiers, seed=seed)
    truth = truth - truth.mean()
    for n in lists:
        for name, objective in OBJECTIVES.items():
            error = (fit_log_worths(objective, data[:n]) - truth).square().mean().sqrt()
            yield Fit(n, name, float(error))
