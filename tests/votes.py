"""Small sets of rankings with ties, and their likelihood by brute force."""

from __future__ import annotations

from itertools import permutations, product
from math import exp, log

import numpy as np

from tierrank.tiers import Tiers


def drawn_rankings(
    seed: int, items: int, lists: int, length: int, most_tied: int = 1
) -> tuple[np.ndarray, list[list]]:
    """True log-worths, and rankings of `length` items with ties of up to `most_tied`."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=items)
    rankings = []
    for _ in range(lists):
        chosen = random.choice(items, length, replace=False)
        order = chosen[np.argsort(-(truth[chosen] + random.gumbel(size=length)))].tolist()
        ranking: list = []
        while order:
            size = min(int(random.integers(1, most_tied + 1)), len(order))
            tie, order = order[:size], order[size:]
            ranking.append(tie[0] if size == 1 else tuple(tie))
        rankings.append(ranking)
    return truth - truth.mean(), rankings


def log_likelihood(log_worths: np.ndarray, rankings: list[list], weights=None) -> float:
    """Summed over every order inside the tiers, one after the other."""
    worth = [exp(w) for w in log_worths]
    total = 0.0
    for number, ranking in enumerate(rankings):
        tiers = [tier if isinstance(tier, tuple) else (tier,) for tier in ranking]
        chance = 0.0
        for orders in product(*(permutations(tier) for tier in tiers)):
            order = [item for tier in orders for item in tier]
            part, left = 1.0, sum(worth[item] for item in order)
            for item in order:
                part *= worth[item] / left
                left -= worth[item]
            chance += part
        total += (1 if weights is None else weights[number]) * log(chance)
    return total


def central_hessian(function, point: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Second derivatives by central differences of fourth order."""
    size = len(point)
    unit = np.eye(size) * step
    away = {1: 8.0, 2: -1.0}
    out = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            out[i, j] = (
                sum(
                    s * t * a * b * function(point + s * m * unit[i] + t * n * unit[j])
                    for m, a in away.items()
                    for n, b in away.items()
                    for s in (1, -1)
                    for t in (1, -1)
                )
                / (12 * step) ** 2
            )
    return out


def tiers_of(rankings: list[list], items: int) -> Tiers:
    return Tiers.from_rankings(rankings, items=items)
