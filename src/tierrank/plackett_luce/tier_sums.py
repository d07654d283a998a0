"""Sums over groups and scans along lists, for ragged data in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tierrank.tiers.layout import Slots, Tables, tables_of


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

    @classmethod
    def of_slots(cls, values: Tensor, slots: Slots) -> Pair:
        """Of every group of an array."""
        taken = slots.take(values, -torch.inf)
        largest = slots.amax(taken.detach())
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return cls(largest, slots.sum((taken - slots.spread(safe).unsqueeze(1)).exp()))

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

    The arguments are those of `operators.log_prob`, and the layout's `Tables`, if it is known.
    """

    def __init__(
        self,
        scores: Tensor,
        bottom: Tensor,
        layout: tuple[Tensor, ...],
        tables: Tables | None = None,
    ) -> None:
        known = tables_of(layout) if tables is None else tables
        self.tables = known
        self.tier_list, self.row_list = known.tier_list, known.row_list
        self.tiers_above, self.tiers_under = known.tiers_above, known.tiers_under
        self.upwards, self.in_last = known.upwards, known.in_last
        if known.last is None:
            upper = torch.where(known.in_last, scores, -torch.inf)
            last = Pair.of_rows(upper.view(known.n_lists, -1))
        else:
            last = Pair.of_slots(scores, known.last)
        floor = last.merge(Pair.of_each(bottom))
        self.own = Pair.of_slots(scores, known.upper)
        self.below = self.own
        if known.n_tiers:
            under_me = self.own.take(known.next_tier)
            self.below = floor.take(self.tier_list).where(known.lowest, under_me)
            nothing = Pair(
                torch.full_like(self.below.largest, -torch.inf), torch.zeros_like(self.below.total)
            )
            for partner, inside in self.upwards:
                self.below = self.below.merge(self.below.take(partner).where(inside, nothing))

    @cached_property
    def tier(self) -> Groups:
        """The items of `order`, by upper tier."""
        return Groups.between(self.tables.layout[2])


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
