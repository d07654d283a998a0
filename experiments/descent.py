"""Stochastic gradient descent of a linear scorer, for all learning rates side by side.

A pass over the training lists takes many small steps, and a small step is mostly overhead. So the
scorers of all learning rates take each step together: the loss sees every list once a rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tierrank import Tiers

Floats = npt.NDArray[np.float64]
Loss = Callable[[torch.Tensor, Tiers], torch.Tensor]


class Stop(NamedTuple):
    """Where a descent stood when it met a stopping rule."""

    rate: float
    tolerance: float
    passes: int
    coef: Floats


class _Batch(NamedTuple):
    X: Floats  # rows, features
    copies: Tiers  # its lists once a rate


def descend(
    X: Floats,
    tiers: Tiers,
    loss: Loss,
    *,
    rates: Sequence[float],
    tolerances: Sequence[float],
    passes: int,
    batch: int,
    seed: int,
    watch: Callable[[int], None] | None = None,
) -> list[Stop]:
    """Descend from zeros, and note where each stopping rule would have stopped.

    A rule is met when the mean loss a list changes by less than `tolerance`, relative to the pass
    before; after the last pass, all are. Lists are cut into batches once, at random, and every
    pass takes the batches in an order of its own.

    Parameters
    ----------
    X, tiers
        [rows, features], and the lists of rows
    loss
        gives one loss a list
    rates, tolerances
        all pairs of them are tried
    passes, batch, seed
        passes over the lists, lists of a step, and the seed of all randomness
    watch
        called after each pass with its number

    Returns
    -------
    a `Stop` for each pair; a rate whose loss was not finite any more has those from before
    """
    random = np.random.default_rng(seed)
    batches = _batches(X, tiers, batch, len(rates), random)
    coef = np.zeros((len(rates), X.shape[1]))
    step = np.asarray(rates, dtype=np.float64)[:, None]
    before = np.full(len(rates), np.nan)
    alive = np.ones(len(rates), dtype=bool)
    pairs = list(np.ndindex(len(rates), len(tolerances)))
    stops: dict[tuple[int, ...], Stop] = {}
    done = 0

    def note(i: int, j: int) -> None:
        stops.setdefault((i, j), Stop(rates[i], tolerances[j], done, coef[i].copy()))

    for done in range(1, passes + 1):
        total = np.zeros(len(rates))
        for number in random.permutation(len(batches)):
            losses, slope = _gradient(coef, batches[number], loss)
            new = coef - step * slope
            alive &= np.isfinite(losses) & np.isfinite(new).all(1) & (np.abs(new) < 1e100).all(1)
            coef = np.where(alive[:, None], new, 0.0)
            total += losses * (len(batches[number].copies) // len(rates))
        now = total / len(tiers)
        change = np.abs(now - before) / np.maximum(np.abs(before), np.finfo(np.float64).tiny)
        for i, j in pairs:
            if alive[i] and change[i] < tolerances[j]:
                note(i, j)
        before = now
        if watch is not None:
            watch(done)
        if all((i, j) in stops or not alive[i] for i, j in pairs):
            break
    for i, j in pairs:
        if alive[i]:
            note(i, j)
    if not stops:
        raise ValueError("every learning rate led to a loss that is not finite: scale the features")
    return [stops[key] for key in sorted(stops)]


def _batches(
    X: Floats, tiers: Tiers, size: int, copies: int, random: np.random.Generator
) -> list[_Batch]:
    order = random.permutation(len(tiers))
    cuts = [order[start : start + size] for start in range(0, len(order), size)]
    return [
        _Batch(X[tiers.rows(lists).numpy()], Tiers.concat([tiers[lists]] * copies))
        for lists in cuts
    ]


def _gradient(coef: Floats, batch: _Batch, loss: Loss) -> tuple[Floats, Any]:
    """[rates] mean loss a list, and [rates, features] its gradient."""
    scores = torch.from_numpy(coef @ batch.X.T).requires_grad_()  # rates, rows
    losses = loss(scores.reshape(-1), batch.copies).reshape(len(coef), -1).mean(1)
    (slope,) = torch.autograd.grad(losses.sum(), scores)
    return losses.detach().numpy(), slope.numpy() @ batch.X
