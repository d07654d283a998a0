"""The sum of exp(mean of f) over all subsets, which takes cubic and not exponential time.

The paper holds the 2^N − 1 terms of Σ_S Φ(S) to be intractable for Φ(S) = exp(mean of f over S).
But subsets of one size m share the factor 1/m, and

    Σ_{|S| = m} ∏_{i∈S} e^{f_i/m} = e_m(e^{f_1/m}, …, e^{f_N/m})

is an elementary symmetric polynomial: N steps of at most m terms each. With b between the m-th
and the next largest f, and coins of log-odds z_i = (f_i − b)/m,

    log e_m = mean of the m largest f + Σ_i log(1 + e^{−|z_i|}) + log P(m heads),

where P(m heads) ≥ 2^−N, as the m likeliest items alone have that much. So float64 will do up to
hundreds of items, without a logarithm in the recursion. The derivatives are inclusion
probabilities:

    ∂ log Σ_S Φ(S) / ∂ f_i = Σ_m P(|S| = m) P(i ∈ S | m) / m.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tierrank.losses.ordered_partition.given_size import GivenSize
from tierrank.plackett_luce.transforms import once
from tierrank.tiers.arrays import range_numbers

MOST_ITEMS = 200
BLOCK = 1 << 23  # numbers held at once: a list of MOST_ITEMS just fits


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
