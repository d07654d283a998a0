"""Markov chains over subsets: algorithm 1 of Tran, Phung and Venkatesh (2010).

The target is Φ(S) = exp(mean of f over S), up to a constant, on the subsets of a chain's items
that are not empty. All chains walk at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from tierrank.tiers.arrays import offsets as borders_of
from tierrank.tiers.arrays import range_numbers, ranges


def gibbs(
    f: Tensor, offsets: Tensor, start: Tensor, steps: int, generator: torch.Generator | None
) -> Iterator[Tensor]:
    """Sweep over the items of each chain: x is in with probability Φ(S+x) / (Φ(S+x) + Φ(S−x)).

    With c others of mean s in the subset, the log-odds are (f_x − s)/(c + 1). The empty set has
    no potential, so an only member stays.

    Parameters
    ----------
    f
        [entries] logarithms of the items' potentials
    offsets
        [chains + 1] ranges of entries, one a chain
    start
        [entries] the members of the first subsets, none of them empty
    steps
        how many sweeps to make

    Yields
    ------
    [entries] the members of the subsets after each step
    """
    columns = _Columns(offsets)
    f, inside = columns.pack(f), columns.pack(start.to(f))
    for _ in range(steps):
        # summed anew in each sweep, lest rounding adds up
        total, count = columns.sum(f * inside), columns.sum(inside)
        noise = _uniform(f, generator).logit()
        for column in columns.slices:
            x, was, noise_x = f[column], inside[column], noise[column]
            others, others_total = count[: len(x)], total[: len(x)]
            others -= was
            others_total -= was * x
            log_odds = (x - others_total / others.clamp(min=1)) / (others + 1)
            was.copy_((noise_x < log_odds) | (others == 0))
            others += was
            others_total += was * x
        yield columns.unpack(inside) > 0


def metropolis_hastings(
    f: Tensor,
    offsets: Tensor,
    start: Tensor,
    steps: int,
    generator: torch.Generator | None,
    as_printed: bool = False,
) -> Iterator[Tensor]:
    """Propose a size m, uniform on 1 … N, then a uniform subset S of that size; a step is one.

    A subset of size m is proposed with probability 1/(N C(N, m)), which is not the same for all
    sizes. So S replaces X with probability min(1, Φ(S) C(N, |S|) / (Φ(X) C(N, |X|))). The paper
    prints min(1, Φ(S)/Φ(X)) (`as_printed`): that chain's distribution is ∝ Φ(S)/C(N, |S|).
    The arguments, and what it yields, are those of `gibbs`.
    """
    columns = _Columns(offsets)
    f, now = columns.pack(f), columns.pack(start.to(f))
    n = columns.sizes.to(f)

    def log_target(subset: Tensor) -> Tensor:
        """[chains] log Φ(S), and log C(N, |S|) if it counts."""
        m = columns.sum(subset)
        mean = columns.sum(f * subset) / m
        if as_printed:
            return mean
        return mean + (n + 1).lgamma() - (m + 1).lgamma() - (n - m + 1).lgamma()

    log_now = log_target(now)
    for _ in range(steps):
        proposed = _uniform_subsets(columns, 1 + (_uniform(n, generator) * n).floor(), generator)
        log_proposed = log_target(proposed)
        accepted = _uniform(n, generator).log() < log_proposed - log_now
        now = torch.where(accepted[columns.chain], proposed, now)
        log_now = torch.where(accepted, log_proposed, log_now)
        yield columns.unpack(now) > 0


def _uniform_subsets(columns: _Columns, sizes: Tensor, generator: torch.Generator | None) -> Tensor:
    """Subsets of these [chains] sizes: an item is in with probability missing / left.

    This is selection sampling (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S).
    """
    missing, left = sizes.clone(), columns.sizes.to(sizes)
    inside = _uniform(columns.chain.to(sizes), generator)
    for column in columns.slices:
        x = inside[column]
        x.copy_(x * left[: len(x)] < missing[: len(x)])
        missing[: len(x)] -= x
        left[: len(x)] -= 1
    return inside


class _Columns:
    """All first items of the chains, then all second ones, …: a step of all chains is a slice.

    The longest chain comes first, so that the n chains which still have an item at some place
    are always the first n, and nothing is padded.

    Attributes
    ----------
    sizes
        [chains] number of items, in that order
    chain
        [entries] number of the chain, in that order
    slices
        of the entries, one a place
    """

    def __init__(self, offsets: Tensor) -> None:
        sizes = offsets.diff()
        self.sizes, order = sizes.sort(descending=True, stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order), device=order.device)
        place = ranges(torch.zeros_like(sizes), sizes)
        lengths = torch.bincount(place)
        borders = borders_of(lengths)
        self._to = borders[place] + rank[range_numbers(sizes)]
        self.chain = ranges(torch.zeros_like(lengths), lengths)
        ends = borders.tolist()
        self.slices = [slice(*pair) for pair in pairwise(ends)]

    def pack(self, values: Tensor) -> Tensor:
        return torch.empty_like(values).scatter_(0, self._to, values)

    def unpack(self, values: Tensor) -> Tensor:
        return values[self._to]

    def sum(self, values: Tensor) -> Tensor:
        """[chains] sums of what [entries] holds."""
        return values.new_zeros(len(self.sizes)).index_add_(0, self.chain, values)


def _uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)
