"""Ordered partitions drawn from the PMOP models, stage by stage."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from tierrank.losses.lists import Direction, is_backward
from tierrank.losses.subsets import MOST_ITEMS, by_size, gibbs, rows_in_a_block
from tierrank.plackett_luce.lists import Scores, check_finite, wide_dtype
from tierrank.plackett_luce.model import BLOCK
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_generator, offsets

Generator = torch.Generator | None
Draw = Callable[[Tensor, Tensor], Tensor]  # [items] f and [rows, items] what remains -> chosen


def sample_ordered_partitions(
    scores: Any,
    n: int,
    *,
    potential: Literal["sum", "mean"] = "sum",
    direction: Direction = "forward",
    sweeps: int = 50,
    generator: torch.Generator | int | None = None,
) -> Tiers:
    """Draw ordered partitions of the items from the model of `pmop_fd` or of `pmop_exact`.

    Parameters
    ----------
    scores : array_like
        [items], or [items, stages] with a score for each stage, of which there may be as many
        as items; torch or numpy.
    n : int
        How many to draw.
    potential : {"sum", "mean"}
        "sum" is the model of `pmop_fd`, "mean" that of `pmop_exact`. Both are drawn exactly; "mean"
        with more than 200 items by Gibbs sampling, at each stage from a uniformly random start.
    direction : {"forward", "backward"}
        As in `pmop_fd`.
    sweeps : int
        Length of these Gibbs chains.
    generator : Generator or int, optional
        A torch generator or an integer seed; without one, torch's global generator is used.

    Returns
    -------
    Tiers
        `n` lists of labels [n, items]; the last tier has label 0.

    See Also
    --------
    pmop_fd : Tiers chosen by their mean worth.
    pmop_exact : Tiers chosen by their mean score.
    tierrank.sample : Full rankings from the Plackett-Luce model.

    Notes
    -----
    For "sum", a size m is drawn from Binomial(N, 1/2), given that it is not 0, an anchor by its
    worth, and m − 1 others uniformly. A subset S can come about by any of its anchors, so it has
    C(N, m)/(2^N − 1) · Σ_{a∈S} φ(a)/Σ_R φ / C(N − 1, m − 1) = N/(2^N − 1) · (1/m) Σ_S φ / Σ_R φ,
    which is its probability. It also shows that sizes of tiers say nothing of the scores.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tr.losses.sample_ordered_partitions(np.array([9.0, 0.0, 0.0, -9.0]), 2, generator=3)
    Tiers(2 lists, padded to 4, 2 to 3 tiers a list)
      list 0: {0, 1} > 2 > 3
      list 1: {0, 3} > {1, 2}
    """
    f = _checked(scores, n)
    if sweeps < 1:
        raise ValueError(f"sweeps = {sweeps}: a chain needs at least one")
    backward = is_backward(direction)
    if backward:
        f = -f
    source = as_generator(generator, f.device)
    draw: Draw
    if potential == "sum":
        draw = partial(anchored_subsets, generator=source)
    elif potential != "mean":
        raise ValueError(f'potential is "sum" (pmop_fd) or "mean" (pmop_exact), not {potential!r}')
    elif len(f) <= MOST_ITEMS and f.dtype == torch.float64:  # 2^−200 is no float32
        draw = partial(exact_subsets, generator=source)
    else:
        draw = partial(gibbs_subsets, sweeps=sweeps, generator=source)
    rows = max(1, BLOCK // len(f))
    parts = [_stage_of_each(f, min(rows, n - first), draw) for first in range(0, n, rows)]
    stage = torch.cat(parts) if parts else f.new_zeros((0, len(f)), dtype=torch.int64)
    return Tiers.from_labels(stage if backward else stage.amax(1, keepdim=True) - stage)


def _checked(scores: Any, n: int) -> Tensor:
    """[items, stages] scores; 1 stage if they are the same at each."""
    values = Scores(scores).values.detach()
    check_finite(values)
    if values.dim() not in (1, 2) or not len(values):
        raise ValueError(
            f"scores are [items] or [items, stages], not of shape {list(values.shape)}"
        )
    items = len(values)
    if values.dim() == 2 and values.shape[1] < items:
        raise ValueError(
            f"{items} items may form as many tiers, so scores are needed for {items} stages, "
            f"not for {values.shape[1]}"
        )
    if n < 0:
        raise ValueError(f"the number of partitions n = {n} is negative")
    return values.to(wide_dtype(values.device)).view(items, -1)


def _stage_of_each(f: Tensor, rows: int, draw: Draw) -> Tensor:
    """[rows, items] the stage at which each item is chosen."""
    items, stages = f.shape
    stage = torch.full((rows, items), -1, device=f.device)
    unfinished = torch.arange(rows, device=f.device)
    number = 0
    while len(unfinished):
        remaining = stage[unfinished] < 0
        chosen = draw(f[:, min(number, stages - 1)], remaining)
        stage[unfinished] = torch.where(chosen, number, stage[unfinished])
        unfinished = unfinished[(remaining & ~chosen).any(1)]
        number += 1
    return stage


def anchored_subsets(f: Tensor, remaining: Tensor, generator: Generator) -> Tensor:
    """A subset of each row of `remaining`, with probability ∝ the mean of e^f over it."""
    left = remaining.sum(1).to(f)
    half = torch.full_like(left, 0.5)
    size = torch.zeros_like(left)
    while (size == 0).any():
        size = torch.where(size > 0, size, torch.binomial(left, half, generator=generator))
    waiting = torch.empty(remaining.shape, dtype=f.dtype, device=f.device)
    noisy = _centred(f, remaining) - waiting.exponential_(generator=generator).log()
    anchor = noisy.argmax(1, keepdim=True)
    key = _uniform(remaining, f, generator).masked_fill(~remaining, 2.0).scatter(1, anchor, -1.0)
    threshold = key.sort(1).values.gather(1, size.long().unsqueeze(1) - 1)
    return key <= threshold


def exact_subsets(f: Tensor, remaining: Tensor, generator: Generator) -> Tensor:
    """A subset of each row of `remaining`, with probability ∝ e^(mean of f): size, then members."""
    sets, which = remaining.unique(dim=0, return_inverse=True)
    width = int(remaining.sum(1).max())
    item = sets.int().argsort(dim=1, descending=True, stable=True)[:, :width]
    padded = _centred(f[item], sets.gather(1, item))
    chosen = torch.zeros_like(remaining)
    step = rows_in_a_block(width)
    for first in range(0, len(sets), step):
        log_sums, subsets = by_size(padded[first : first + step])
        rows = ((which >= first) & (which < first + step)).nonzero()[:, 0]
        own = which[rows] - first
        size = torch.multinomial(log_sums.softmax(1)[own], 1, generator=generator)[:, 0]
        drawn = subsets.draw(own * width + size, generator)
        chosen[rows] = torch.zeros_like(chosen[rows]).scatter_(1, item[which[rows]], drawn)
    return chosen


def gibbs_subsets(f: Tensor, remaining: Tensor, sweeps: int, generator: Generator) -> Tensor:
    """A subset of each row of `remaining`, with probability about ∝ e^(mean of f)."""
    start = torch.zeros_like(remaining)
    while not (settled := start.any(1, keepdim=True)).all():
        tossed = remaining & (_uniform(remaining, f, generator) < 0.5)
        start = torch.where(settled, start, tossed)
    chain = gibbs(
        _centred(f, remaining)[remaining],
        offsets(remaining.sum(1)),
        start[remaining],
        sweeps,
        generator,
    )
    last = deque(chain, maxlen=1).pop()
    return torch.zeros_like(remaining).masked_scatter_(remaining, last)


def _centred(f: Tensor, remaining: Tensor) -> Tensor:
    """[rows, items] f less the best of what remains, −inf for the others.

    No probability changes, and those that may be chosen keep digits for the noise.
    """
    f = f.where(remaining, -torch.inf)
    return f - f.amax(1, keepdim=True)


def _uniform(like: Tensor, f: Tensor, generator: Generator) -> Tensor:
    return torch.rand(like.shape, dtype=f.dtype, device=f.device, generator=generator)
