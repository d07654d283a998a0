"""Distributions over the subsets of some items: of a given size, of any, and chains over them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce.transforms import once
from tierrank.tiers.arrays import offsets as borders_of
from tierrank.tiers.arrays import range_numbers, ranges

MOST_ITEMS = 200  # of a list whose subsets are summed over
BLOCK = 1 << 23  # numbers held at once: a list of MOST_ITEMS just fits


# -- of a given size, each as probable as the product of its items' weights -----------------------
#
# Let every item toss a coin of its own, and look only at tosses with m heads: the conditional
# Bernoulli distribution (Chen, Dempster and Liu, 1994). A constant added to all log-odds changes
# nothing, so it can be chosen such that m heads are not improbable. All terms are positive, and so
# nothing cancels.


class GivenSize:
    """Coins of many rows, of which each is to show its own number of heads.

    Parameters
    ----------
    log_odds
        [rows, items] log(p / (1 − p)); −inf for an item that is not there
    heads
        [rows] how many heads

    Attributes
    ----------
    probability
        [rows] of that many heads
    """

    def __init__(self, log_odds: Tensor, heads: Tensor) -> None:
        rows, items = log_odds.shape
        self.p, self.q = log_odds.sigmoid().unsqueeze(-1), (-log_odds).sigmoid().unsqueeze(-1)
        most = int(heads.max()) if rows else 0
        # after[i, r, j] = P(items i, i + 1, … add the heads that are missing after j), with a
        # column more than heads, so that there is a j + 1
        self.after = log_odds.new_zeros(items + 1, rows, most + 2)
        self.after[items].scatter_(1, heads.unsqueeze(1), 1.0)
        for i in range(items - 1, -1, -1):
            torch.mul(self.after[i + 1], self.q[:, i], out=self.after[i])
            self.after[i, :, :-1].addcmul_(self.after[i + 1, :, 1:], self.p[:, i])
        self.probability = self.after[0, :, 0]

    def inclusion(self) -> Tensor:
        """[rows, items] the probability that an item is in the subset."""
        inclusion = torch.zeros_like(self.p.squeeze(-1))
        before = torch.zeros_like(self.after[0])  # P(the items so far show j heads)
        before[:, 0] = 1.0
        for i in range(inclusion.shape[1]):
            joined = before[:, :-1] * self.p[:, i]
            inclusion[:, i] = (joined * self.after[i + 1, :, 1:]).sum(1)
            before *= self.q[:, i]
            before[:, 1:] += joined
        # where there are fewer items than heads, nothing is included
        possible = self.probability.clamp(min=torch.finfo(inclusion.dtype).tiny)
        return inclusion / possible.unsqueeze(1)

    def draw(self, rows: Tensor, generator: torch.Generator | None) -> Tensor:
        """[draws, items] a subset for each of `rows` [draws], which may name a row repeatedly."""
        items = self.p.shape[1]
        subset = torch.zeros(len(rows), items, dtype=torch.bool, device=rows.device)
        uniform = torch.rand(
            (items, len(rows)), dtype=self.p.dtype, device=rows.device, generator=generator
        )
        heads = torch.zeros_like(rows)
        for i in range(items):
            chance = self.p[rows, i, 0] * self.after[i + 1, rows, heads + 1]
            subset[:, i] = uniform[i] * self.after[i, rows, heads] < chance
            heads += subset[:, i]
        return subset


# -- of any size: the sum of exp(mean of f) over all subsets, in cubic time -----------------------
#
# Tran et al. (2010) hold the 2^N − 1 terms of Σ_S Φ(S) to be intractable for Φ(S) = exp(mean of f
# over S). But subsets of one size m share the factor 1/m, and
#
#     Σ_{|S| = m} ∏_{i∈S} e^{f_i/m} = e_m(e^{f_1/m}, …, e^{f_N/m})
#
# is an elementary symmetric polynomial: N steps of at most m terms each. With b between the m-th
# and the next largest f, and coins of log-odds z_i = (f_i − b)/m,
#
#     log e_m = mean of the m largest f + Σ_i log(1 + e^{−|z_i|}) + log P(m heads),
#
# where P(m heads) ≥ 2^−N, as the m likeliest items alone have that much. So float64 will do up to
# hundreds of items, without a logarithm in the recursion. The derivatives are inclusion
# probabilities:
#
#     ∂ log Σ_S Φ(S) / ∂ f_i = Σ_m P(|S| = m) P(i ∈ S | m) / m.


def by_size(f: Tensor) -> tuple[Tensor, GivenSize]:
    """The subsets of [rows, items] f, size by size; −inf is an item that is not there.

    Gives [rows, items] log e_m for m = 1, 2, … (−inf where there are not so many), and the
    distribution of the subsets for each pair of a row and a size, rows × items of them.
    """
    rows, items = f.shape
    size = torch.arange(1, items + 1, device=f.device)
    ranked = f.sort(1, descending=True).values
    there = ranked > -torch.inf
    largest_mean = torch.where(there, ranked, 0.0).cumsum(1) / size
    following = torch.nn.functional.pad(ranked, (0, 1), value=-torch.inf)[:, 1:]
    border = torch.where(following > -torch.inf, (ranked + following) / 2, ranked)
    border = torch.where(there, border, 0.0)
    log_odds = (f.unsqueeze(1) - border.unsqueeze(2)) / size.unsqueeze(1)
    subsets = GivenSize(log_odds.view(-1, items), size.repeat(rows))
    log_sum = torch.nn.functional.softplus(-log_odds.abs()).sum(2)
    log_sum += largest_mean + subsets.probability.view(rows, items).log()
    return torch.where(there, log_sum, -torch.inf), subsets


def rows_in_a_block(items: int) -> int:
    """How many rows of so many items `by_size` may take at once."""
    return max(1, BLOCK // max(1, items * (items + 1) * (items + 2)))


def log_normaliser(f: Tensor, offsets: Tensor) -> Tensor:
    """[chains] log Σ_S exp(mean of f over S), over the subsets of each range of [entries] f."""
    return _LogNormaliser.apply(f, offsets)  # type: ignore[no-any-return, no-untyped-call]


class _LogNormaliser(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, f: Tensor, offsets: Tensor) -> Tensor:
        value, gradient = f.new_empty(len(offsets) - 1), torch.zeros_like(f)
        for chains, at in _blocks(offsets):
            there = at >= 0
            # not on a device without float64: 2^−200 is no float32
            padded = torch.where(there, f[at], -torch.inf).to(_exact_device(f), torch.float64)
            log_sums, subsets = by_size(padded)
            value[chains] = log_sums.logsumexp(1).to(value)
            if ctx.needs_input_grad[0]:
                items = at.shape[1]
                share = log_sums.softmax(1) / torch.arange(1, items + 1, device=padded.device)
                inclusion = subsets.inclusion().view(-1, items, items)
                mean = torch.einsum("cm,cmi->ci", share, inclusion).to(gradient)
                gradient[at[there]] = mean[there]
        ctx.save_for_backward(f, gradient, offsets)
        return value

    @staticmethod
    def backward(ctx: Any, by_chain: Tensor) -> tuple[Tensor, None]:
        f, gradient, offsets = ctx.saved_tensors
        if torch.is_grad_enabled():
            gradient = once(gradient, "pmop_exact can be differentiated once, not twice", f)
        return gradient * by_chain[range_numbers(offsets.diff())], None


def _blocks(offsets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Chains of about the same size, and [chains, items] their entries, −1 where there is none."""
    sizes, order = offsets.diff().sort(descending=True, stable=True)
    first = 0
    while first < len(order):
        items = int(sizes[first])
        chains = order[first : first + rows_in_a_block(items)]
        first += len(chains)
        place = torch.arange(items, device=offsets.device)
        at = offsets[chains].unsqueeze(1) + place
        yield chains, torch.where(at < offsets[chains + 1].unsqueeze(1), at, -1)


def _exact_device(f: Tensor) -> torch.device:
    return torch.device("cpu") if f.device.type == "mps" else f.device


# -- Markov chains over subsets: algorithm 1 of Tran, Phung and Venkatesh (2010) ------------------
#
# The target is Φ(S) = exp(mean of f over S), up to a constant, on the subsets of a chain's items
# that are not empty. All chains walk at once.


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
