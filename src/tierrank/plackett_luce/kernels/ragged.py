"""Sums over groups and scans along lists, for ragged data in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Groups:
    """Consecutive groups of a flat array: `of[i]` is the group of element i.

    Sums are taken of FAN elements at a time, then of these sums, and so on: adding ten thousand
    equal numbers one by one would round each time the same way.
    """

    FAN = 64

    def __init__(self, of: Tensor, number: int) -> None:
        self.of, self.number = of, number
        sizes = torch.bincount(of, minlength=number)
        self.pieces: Groups | None = None
        if len(of) and int(sizes.max()) > self.FAN:
            pieces = (sizes + self.FAN - 1) // self.FAN
            first = torch.cumsum(pieces, 0) - pieces
            place = torch.arange(len(of), device=of.device) - (torch.cumsum(sizes, 0) - sizes)[of]
            self.piece_of = first[of] + place // self.FAN
            self.pieces = Groups(torch.repeat_interleave(pieces), number)

    @classmethod
    def between(cls, offsets: Tensor) -> Groups:
        sizes = offsets.diff()
        return cls(torch.repeat_interleave(sizes), len(sizes))

    def leaves(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Zeros to add elements to, block by block, for `collect`; and where element i goes."""
        of, number = (
            (self.of, self.number) if self.pieces is None else (self.piece_of, len(self.pieces.of))
        )
        return like.new_zeros((number, *like.shape[1:])), of

    def collect(self, leaves: Tensor) -> Tensor:
        return leaves if self.pieces is None else self.pieces.sum(leaves)

    def sum(self, values: Tensor) -> Tensor:
        zeros, of = self.leaves(values)
        return self.collect(zeros.index_add(0, of, values))

    def logsumexp(self, values: Tensor) -> Pair:
        largest = values.new_full((self.number,), -torch.inf)
        largest = largest.scatter_reduce_(0, self.of, values.detach(), "amax")
        return Pair(largest, self.sum((values - largest[self.of]).exp()))


class Pair(NamedTuple):
    """A log-sum-exp as (maximum, sum of exponentials relative to it); of nothing: (−inf, 0).

    Their sum maximum + log(total) would lose what sets apart scores near ±1e4. The maximum is
    a constant to autograd: all of the derivative is in the total.
    """

    largest: Tensor
    total: Tensor

    @classmethod
    def of_each(cls, values: Tensor) -> Pair:
        """Of single numbers, of which −inf is nothing."""
        present = values > -torch.inf
        safe = torch.where(present, values, 0.0)
        return cls(values.detach(), torch.where(present, (safe - safe.detach()).exp(), 0.0))

    @classmethod
    def of_rows(cls, values: Tensor) -> Pair:
        """Of the rows of a matrix, in which −inf is nothing."""
        largest = values.detach().amax(1)
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return cls(largest, (values - safe.unsqueeze(1)).exp().sum(1))

    def merge(self, other: Pair) -> Pair:
        largest = torch.maximum(self.largest, other.largest)
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return Pair(
            largest,
            self.total * (self.largest - safe).exp() + other.total * (other.largest - safe).exp(),
        )

    def where(self, condition: Tensor, other: Pair) -> Pair:
        return Pair(
            torch.where(condition, self.largest, other.largest),
            torch.where(condition, self.total, other.total),
        )

    def take(self, index: Tensor) -> Pair:
        return Pair(self.largest[index], self.total[index])


class TierSums:
    """Log-sum-exps of every upper tier and of what stands below it. Differentiable.

    The arguments are those of `operators.log_prob`.
    """

    def __init__(self, scores: Tensor, bottom: Tensor, layout: tuple[Tensor, ...]) -> None:
        row_offsets, order, tier_offsets, list_offsets = layout
        self.tier = Groups.between(tier_offsets)
        self.tier_list, self.row_list = (
            Groups.between(offsets).of for offsets in (list_offsets, row_offsets)
        )
        here = torch.arange(self.tier.number, device=scores.device)
        self.tiers_above = here - list_offsets[:-1][self.tier_list]
        self.tiers_under = list_offsets[1:][self.tier_list] - 1 - here
        self.upwards = neighbours(self.tiers_under, +1)
        self.in_last = torch.ones(len(scores), dtype=torch.bool, device=scores.device)
        self.in_last[order] = False

        lengths = row_offsets.diff()
        if len(scores) and bool((lengths == lengths[0]).all()):
            last = Pair.of_rows(scores.index_fill(0, order, -torch.inf).view(len(lengths), -1))
        else:
            last = Groups(self.row_list[self.in_last], len(bottom)).logsumexp(scores[self.in_last])
        floor = last.merge(Pair.of_each(bottom))
        self.own = self.tier.logsumexp(scores[order])
        self.below = self.own
        if len(here):
            under_me = self.own.take((here + 1) % len(here))
            self.below = floor.take(self.tier_list).where(self.tiers_under == 0, under_me)
            nothing = Pair(
                torch.full_like(self.below.largest, -torch.inf), torch.zeros_like(self.below.total)
            )
            for partner, inside in self.upwards:
                self.below = self.below.merge(self.below.take(partner).where(inside, nothing))


def neighbours(steps_left: Tensor, direction: int) -> list[tuple[Tensor, Tensor]]:
    """Partners of a doubling scan: for reach 1, 2, 4 … (index of the partner, is it inside?).

    `steps_left[i]` says how many steps in `direction` (+1 or −1) stay inside i's list.
    """
    partners = []
    here = torch.arange(len(steps_left), device=steps_left.device)
    furthest = int(steps_left.max()) if len(steps_left) else 0
    reach = 1
    while reach <= furthest:
        partner = (here + direction * reach).clamp(0, len(here) - 1)
        partners.append((partner, steps_left >= reach))
        reach *= 2
    return partners


def scan(start: Tensor, partners: list[tuple[Tensor, Tensor]],
         factor: Callable[[Tensor], Tensor]) -> Tensor:  # fmt: skip
    """x_i = start_i + x_next · factor(next → i), all along each list, in log₂(length) steps.

    `factor(partner)` is what a value is multiplied by on its way from there to here; it must
    compose, as ratios of exponentials do.
    """
    value = start
    for partner, inside in partners:
        value = value + torch.where(inside, value[partner] * factor(partner), 0.0)
    return value
