"""The real sets that synthetic ones are like: sizes, and how labels and features occur."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tierrank.data.synthetic.frequencies import power_law, row_sizes


@dataclass(frozen=True)
class Occurrence:
    """How the items of one kind, labels or features, occur.

    Attributes
    ----------
    n
        how many there are
    a_row, spread, most
        a row's number of them: mean, standard deviation, and largest; None for no limit but that
        of half of them
    head
        share of the rows that have the most frequent one
    rarest
        how frequent the rarest is, the average one being 1
    background
        how much of a rare one's worth belongs to no topic
    """

    n: int
    a_row: float
    spread: float
    most: int | None
    head: float
    rarest: float
    background: float

    def resized(self, n: int, a_row: float) -> Occurrence:
        """Give the same with another number, and another mean a row; spread and most follow."""
        factor = a_row / self.a_row
        most = None if self.most is None else max(round(self.most * factor), 1 + int(a_row))
        return replace(self, n=n, a_row=a_row, spread=self.spread * factor, most=most)

    def shares(self) -> npt.NDArray[np.float64]:
        """[n] in what share of the rows each is to be, most frequent first."""
        return power_law(self.n, self.a_row, self.head, self.rarest)

    def sizes(self, generator: np.random.Generator, rows: int) -> npt.NDArray[np.int64]:
        """[rows] how many each row has: at least 1, and at most half of all."""
        return row_sizes(generator, rows, self.a_row, self.spread, self.most, self.n // 2)


@dataclass(frozen=True)
class Shape:
    """A set to be like: rows to train on and to test with, what is in them, how many topics."""

    rows: tuple[int, int]
    labels: Occurrence
    features: Occurrence
    topics: int

    def resized(self, rows: tuple[int, int], labels: Occurrence, features: Occurrence) -> Shape:
        """Give another size, with topics in proportion to the root of the number of labels.

        So both the topics and what is in them grow, and labels stay about as hard to predict. No
        topic has fewer than 5 labels or features, unless there are fewer than 10 in all.
        """
        topics = round(self.topics * math.sqrt(labels.n / self.labels.n))
        return Shape(rows, labels, features, max(min(topics, labels.n // 5, features.n // 5), 2))


# Numbers of rows, features and labels, and labels a row: Ma et al. (2021), table 3. The other
# numbers of Delicious-1K were fitted to the set itself: its counts, and what nearest neighbours
# predict. Those of the other sets are assumptions: orders of magnitude, and what their sources make
# likely (Wiki10's site showed 30 tags at most).
SHAPES = {
    "delicious-1k": Shape(
        (12_920, 3_185),
        Occurrence(983, 19.03, 5.04, 25, head=0.44, rarest=0.09, background=0.1),
        Occurrence(500, 18.5, 60.0, None, head=0.3, rarest=0.05, background=0.05),
        topics=33,
    ),
    "eurlex-4k": Shape(
        (15_539, 3_809),
        Occurrence(3_993, 5.31, 1.7, None, head=0.08, rarest=0.05, background=0.06),
        Occurrence(5_000, 236.0, 120.0, None, head=0.6, rarest=0.05, background=0.5),
        topics=750,
    ),
    "wiki10-31k": Shape(
        (14_146, 6_616),
        Occurrence(30_938, 18.64, 7.0, 30, head=0.8, rarest=0.15, background=0.1),
        Occurrence(101_938, 673.0, 500.0, None, head=0.6, rarest=0.1, background=0.5),
        topics=258,
    ),
    "delicious-200k": Shape(
        (196_606, 100_095),
        Occurrence(205_443, 75.54, 100.0, None, head=0.4, rarest=0.03, background=0.6),
        Occurrence(782_585, 301.0, 250.0, None, head=0.5, rarest=0.1, background=0.6),
        topics=400,
    ),
}
