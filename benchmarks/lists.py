"""What the benchmarks measure on: lists of graded items, with standard normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

import tierrank as tr

ITEMS = 100_000  # in all the lists of a case


@dataclass(frozen=True)
class Lists:
    """Lists of one length: labels and scores, [lists, length]. Higher labels are better."""

    name: str
    labels: Tensor
    scores: Tensor  # float64

    @cached_property
    def tiers(self) -> tr.Tiers:
        return self.build()

    def build(self) -> tr.Tiers:
        """The tiers of flat rows, ready for the likelihood."""
        lists, length = self.labels.shape
        lengths = torch.full((lists,), length)
        tiers = tr.Tiers.from_labels(self.labels.reshape(-1), lengths=lengths)
        tiers.layout()
        return tiers

    @property
    def pairs(self) -> int:
        return self.labels.numel() * self.labels.shape[1]

    def first(self, lists: int) -> Lists:
        return Lists(self.name, self.labels[:lists], self.scores[:lists])


def five_grades(length: int) -> Lists:
    """Standard normal scores, labels 0 to 4 at random."""
    generator = torch.Generator().manual_seed(length)
    shape = (max(1, ITEMS // length), length)
    labels = torch.randint(5, shape, generator=generator)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    return Lists(f"{shape[0]:,} lists of {length:,}, five grades", labels, scores)


def best_first(lists: int, *sizes: int) -> Lists:
    """Many lists of tiers of these sizes, which lie in their order."""
    generator = torch.Generator().manual_seed(sum(sizes))
    scores = torch.randn(lists, sum(sizes), generator=generator, dtype=torch.float64)
    return Lists(f"{lists:,} lists, best first", _grades(sizes).repeat(lists, 1), scores)


def one_list(name: str, *sizes: int) -> Lists:
    """Tiers of these sizes, best first; standard normal scores, rows in random order."""
    generator = torch.Generator().manual_seed(sum(sizes))
    grades = _grades(sizes)
    labels = grades[torch.randperm(len(grades), generator=generator)]
    scores = torch.randn(len(grades), generator=generator, dtype=torch.float64)
    return Lists(name, labels[None], scores[None])


def _grades(sizes: Sequence[int]) -> Tensor:
    return torch.arange(len(sizes)).flip(0).repeat_interleave(torch.tensor(sizes))


def upper_tier(size: int) -> Lists:
    return one_list(f"One list: a tier of {size:,} over as many", size, size)


def few_of_many(items: int) -> Lists:
    name = f"One list of {items:,}: 500 items in three upper tiers"
    return one_list(name, 50, 150, 300, items - 500)
