"""Stochastic gradient ascent of a likelihood (descent of a loss), a few lists at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# point, numbers of the lists (None: all) and a seed -> mean loss of these lists, and its gradient
Gradient = Callable[[Array, Array | None, int], tuple[float, Array]]


def ascend(
    gradient: Gradient,
    start: Array,
    *,
    learning_rate: float,
    lists: int,
    batch: int,
    seed: int,
    done: int,
    steps: int,
    stepped: Callable[[Array, float], bool],
) -> None:
    """Take steps point ← point − learning_rate · gradient, each by the mean over some lists.

    What is drawn in a step depends on `seed` and the number of the step and on nothing before. So
    a fit that is taken up again needs no more than the point.

    Parameters
    ----------
    gradient
        gives the mean loss of some lists and its gradient; a loss that draws by itself does it by
        the seed that it is handed
    start
        [parameters] where to begin, after `done` steps
    learning_rate
        fixed
    lists, batch
        how many lists there are, and how many different ones make a step
    seed
        of all randomness
    done, steps
        how many steps were taken before, and how many there are to be in all
    stepped
        called after each step with the new point and the loss before it; True ends it

    Raises
    ------
    ValueError
        when the loss or the gradient is not finite
    """
    point = start.copy()
    for step in range(done + 1, steps + 1):
        random = np.random.default_rng((seed, step))
        draws = int(random.integers(2**63))
        chosen = None
        if batch < lists:
            chosen = np.sort(random.choice(lists, batch, replace=False))
        loss, slope = gradient(point, chosen, draws)
        with np.errstate(over="ignore", invalid="ignore"):
            point = point - learning_rate * slope
        if not (np.isfinite(loss) and np.isfinite(point).all()):
            raise ValueError(
                f"the loss or its gradient is not finite in iteration {step}: try a smaller "
                f'learning_rate than {learning_rate:g}, or scale the features ("standardize")'
            )
        if stepped(point, loss):
            return
