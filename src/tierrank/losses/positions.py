"""How much a place in the ranking counts: the weights α of position-aware likelihoods.

Lan et al. (2014) multiply the i-th choice of a ranking by α(i), decreasing in i. A tier of ties
takes several places at once; its one choice is weighted by their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from tierrank.plackett_luce.inputs import Scores, wide_dtype
from tierrank.plackett_luce.tier_sums import Groups
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers, ranges, repeat

Alpha = Literal["gain"] | Callable[[Tensor, Tensor], Tensor] | Sequence[float] | Any


def gain(position: Tensor, length: Tensor) -> Tensor:
    """α(i) = 2^(n − i) − 1, the gain of NDCG for grades n − i (Lan et al., 2014), as printed.

    Overflows in long lists: ``"gain"`` is the same divided by its sum over the list.
    """
    return torch.exp2(length - position) - 1


def mean_gain_share(above: Tensor, size: Tensor, length: Tensor) -> Tensor:
    """The mean of `gain` over places above + 1 … above + size, as a share of the list's sum.

    Over places p … q the sum of 2^(n−i) − 1 is 2^(n−p+1) − 2^(n−q) − (q − p + 1), and over the
    list 2^n − 1 − n. Both are divided by 2^n here, so that nothing is large, at any n.
    """
    places = torch.exp2(-above) - torch.exp2(-above - size) - size * torch.exp2(-length)
    total = 1 - (length + 1) * torch.exp2(-length)
    share = places / (size * total).clamp(min=torch.finfo(total.dtype).tiny)
    return torch.where(length > 1, share, 0.0)


def tier_weights(alpha: Alpha, tiers: Tiers) -> Tensor:
    """[tiers] the mean of α over the places that every written tier takes.

    `alpha` is "gain", a function of (position, length), both [places] and counted from 1, or
    the numbers α(1), α(2), …, after which it is 0.
    """
    kind = wide_dtype(tiers.device)
    lengths, sizes = tiers.lengths, tiers.tier_sizes
    full = tiers.full_lengths
    if isinstance(alpha, str):
        if alpha != "gain":
            raise ValueError(f'weights of places are "gain", a function or numbers, not {alpha!r}')
        list_of = range_numbers(tiers.list_offsets.diff())
        above = tiers.tier_offsets[:-1] - tiers.tier_offsets[tiers.list_offsets[:-1]][list_of]
        return mean_gain_share(above.to(kind), sizes.to(kind), full[list_of].to(kind))
    position = ranges(torch.ones_like(lengths), lengths)
    if callable(alpha):
        at = alpha(position.to(kind), repeat(full, lengths).to(kind))
    else:
        given = Scores(alpha).values.to(position.device, kind)
        if given.dim() != 1:
            raise ValueError(f"weights of places are a list of numbers, not {list(given.shape)}")
        at = torch.cat([given, given.new_zeros(1)])[(position - 1).clamp(max=len(given))]
    wrong = ~((at >= 0) & at.isfinite())
    if wrong.any():
        place = int(wrong.nonzero()[0, 0])
        raise ValueError(
            f"weights of places must be finite and not negative, but that of place "
            f"{int(position[place])} is {float(at[place])}"
            + ('; "gain" does not overflow' if at[place] == torch.inf else "")
        )
    return Groups.between(tiers.tier_offsets).sum(at) / sizes
