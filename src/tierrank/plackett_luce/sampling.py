"""Rankings drawn from the model: sort scores plus Gumbel noise (Yellott, 1977)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce.lists import Scores, check_finite, wide_dtype
from tierrank.randomness import as_generator

BLOCK = 1 << 24  # noisy scores held at once
GAP = 100.0  # further apart, the order is certain: e^−100 is 4e-44


def sample(
    scores: Any,
    n: int,
    *,
    k: int | None = None,
    generator: torch.Generator | int | None = None,
) -> Any:
    """Draw `n` rankings from the Plackett-Luce model of `scores`.

    Parameters
    ----------
    scores : array_like
        [items], or [lists, items] for a model a list; torch or numpy. A constant added to all
        scores of a list changes nothing, however large it is.
    n : int
        How many rankings to draw.
    k : int, optional
        Draw only the first k places, without sorting the others. Default: all.
    generator : Generator or int, optional
        A torch generator or an integer seed; without one, torch's global generator is used.

    Returns
    -------
    Tensor or ndarray
        [n, k] or [n, lists, k] indices of items, best first, of the kind that `scores` is.

    See Also
    --------
    log_prob : How probable a ranking is.
    tierrank.data.synthetic.simulate : Worths and tiers, drawn.

    Examples
    --------
    >>> import tierrank as tr, torch
    >>> tr.sample(torch.tensor([9.0, 0.0, 4.5]), 2, generator=0)
    tensor([[0, 2, 1],
            [0, 2, 1]])
    """
    given = Scores(scores)
    values = given.values.detach()
    if values.dim() not in (1, 2):
        raise ValueError(f"scores are [items] or [lists, items], not of shape {list(values.shape)}")
    check_finite(values)
    items = values.shape[-1]
    places = items if k is None else k
    if not 0 <= places <= items:
        raise ValueError(f"k = {k} places cannot be filled from {items} items")
    if n < 0:
        raise ValueError(f"the number of rankings n = {n} is negative")
    generator = as_generator(generator, values.device)

    near = _brought_near(values.to(wide_dtype(values.device)))
    rankings = torch.empty((n, *values.shape[:-1], places), dtype=torch.int64, device=values.device)
    draws = max(1, BLOCK // max(1, values.numel()))
    for start in range(0, n, draws):
        rankings[start : start + draws] = _race(near, min(draws, n - start), places, generator)
    return given.same_kind(rankings)


def _race(values: Tensor, n: int, places: int, generator: torch.Generator | None) -> Tensor:
    """−log of an exponential is Gumbel: item i arrives first with probability ∝ e^w_i."""
    waiting = torch.empty((n, *values.shape), dtype=values.dtype, device=values.device)
    waiting.exponential_(generator=generator).log_()
    noisy = torch.sub(values, waiting, out=waiting)
    if places == values.shape[-1]:
        return noisy.argsort(-1, descending=True)
    return noisy.topk(places, -1).indices


def _brought_near(values: Tensor) -> Tensor:
    """[..., items] scores that draw the same rankings, and are small enough to take noise.

    Noise that is added to a score near 1e15 is rounded away, and ties are then broken by index.
    So the best score becomes 0, and of a gap above GAP no more than GAP is left: across it no two
    items ever change places (once in e^GAP). What remains is at most GAP · items, which leaves
    the noise an error of 1e-14 · items.
    """
    if not values.numel():
        return values
    best = values.amax(-1, keepdim=True)
    if (best - values.amin(-1, keepdim=True)).max() <= GAP:
        return values - best
    falling, order = values.sort(-1, descending=True)
    place = torch.arange(values.shape[-1], device=values.device)
    after_gap = torch.zeros_like(falling, dtype=torch.bool)
    after_gap[..., 1:] = falling[..., :-1] - falling[..., 1:] > GAP
    top = torch.where(after_gap, place, 0).cummax(-1).values  # the first of those without a gap
    depth = falling.gather(-1, top) - falling
    shift = torch.where(after_gap, GAP + depth.roll(1, -1), 0.0).cumsum(-1)
    return torch.empty_like(values).scatter_(-1, order, -(depth + shift))
