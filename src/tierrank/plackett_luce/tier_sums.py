"""Sums and log-sum-exps over tiers and lists, and scans along lists, in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tierrank.tiers.layout import Partners, Slots, Tables, tables_of


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

    def sum(self, values: Tensor) -> Tensor:
        """[groups, ...] of [elements, ...]."""
        if self.pieces is None:
            return values.new_zeros((self.number, *values.shape[1:])).index_add(0, self.of, values)
        pieces = values.new_zeros((len(self.pieces.of), *values.shape[1:]))
        return self.pieces.sum(pieces.index_add(0, self.piece_of, values))

    def logsumexp(self, values: Tensor) -> LogSumExp:
        largest = values.new_full((self.number,), -torch.inf)
        largest = largest.scatter_reduce_(0, self.of, values.detach(), "amax")
        return LogSumExp(largest, self.sum((values - largest[self.of]).exp()))


class LogSumExp(NamedTuple):
    """A log-sum-exp as (maximum, sum of exponentials relative to it); of nothing: (−inf, 0).

    Their sum maximum + log(total) would lose what sets apart scores near ±1e4. The maximum is
    a constant to autograd: all of the derivative is in the total.
    """

    largest: Tensor
    total: Tensor

    @classmethod
    def of_each(cls, values: Tensor) -> LogSumExp:
        """Of single numbers, of which −inf is nothing."""
        present = values > -torch.inf
        safe = torch.where(present, values, 0.0)
        return cls(values.detach(), torch.where(present, (safe - safe.detach()).exp(), 0.0))

    @classmethod
    def of_rows(cls, values: Tensor) -> LogSumExp:
        """Of the rows of a matrix, in which −inf is nothing."""
        largest = values.detach().amax(1)
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return cls(largest, (values - safe.unsqueeze(1)).exp().sum(1))

    @classmethod
    def of_slots(cls, values: Tensor, slots: Slots) -> LogSumExp:
        """Of every group of an array."""
        taken = slots.take(values, -torch.inf)
        largest = slots.amax(taken.detach())
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return cls(largest, slots.sum((taken - slots.spread(safe).unsqueeze(1)).exp()))

    def merge(self, other: LogSumExp) -> LogSumExp:
        largest = torch.maximum(self.largest, other.largest)
        safe = torch.where(largest == -torch.inf, 0.0, largest)
        return LogSumExp(
            largest,
            self.total * (self.largest - safe).exp() + other.total * (other.largest - safe).exp(),
        )

    def where(self, condition: Tensor, other: LogSumExp) -> LogSumExp:
        return LogSumExp(
            torch.where(condition, self.largest, other.largest),
            torch.where(condition, self.total, other.total),
        )

    def scanned(self, partners: Partners) -> LogSumExp:
        """Each merged with all those of its list that a doubling scan reaches."""
        running = self
        nothing = LogSumExp(torch.full_like(self.largest, -torch.inf), torch.zeros_like(self.total))
        for partner, inside in partners:
            running = running.merge(running.take(partner).where(inside, nothing))
        return running

    def take(self, index: Tensor) -> LogSumExp:
        return LogSumExp(self.largest[index], self.total[index])


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
        self.tables = of = tables_of(layout) if tables is None else tables
        self.tier_list = of.tier_list
        if of.last is None:
            last = LogSumExp.of_rows(
                torch.where(of.in_last, scores, -torch.inf).view(of.n_lists, -1)
            )
        else:
            last = LogSumExp.of_slots(scores, of.last)
        floor = last.merge(LogSumExp.of_each(bottom))
        self.own = LogSumExp.of_slots(scores, of.upper)
        self.below = self.own
        if of.n_tiers:
            under_me = self.own.take(of.next_tier)
            self.below = floor.take(of.tier_list).where(of.lowest, under_me).scanned(of.upwards)

    @cached_property
    def tier(self) -> Groups:
        """The items of `order`, by upper tier."""
        return Groups.between(self.tables.layout[2])


def scan(start: Tensor, partners: Partners, factor: Callable[[Tensor], Tensor]) -> Tensor:
    """x_i = start_i + x_next · factor(next → i), all along each list, in log₂(length) steps.

    `factor(partner)` is what a value is multiplied by on its way from there to here; it must
    compose, as ratios of exponentials do.
    """
    value = start
    for partner, inside in partners:
        value = value + torch.where(inside, value[partner] * factor(partner), 0.0)
    return value
