"""A latent topic model: what ties the features of a row to its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierrank._native import draw_rows
from tierrank._types import FloatArray, IntArray

SHARES = np.array([4, 2, 1]) / 7  # of an item among its topics
TOPICS_A_ROW = 3
ROWS_AT_A_TIME = 16_384  # so that Ctrl-C is heard


@dataclass(frozen=True)
class RowTopics:
    """What rows are about: [rows, 3] topics, and weights that sum to 1 in every row."""

    topics: IntArray
    weights: FloatArray

    @classmethod
    def draw(cls, generator: np.random.Generator, rows: int, popularity: FloatArray) -> RowTopics:
        """Topics by their popularity, weights uniform on the simplex."""
        shape = (rows, TOPICS_A_ROW)
        cumulative = popularity.cumsum()
        topics = cumulative.searchsorted(generator.random(shape) * cumulative[-1], side="right")
        weights = generator.standard_exponential(shape)
        return cls(
            np.minimum(topics, len(popularity) - 1), weights / weights.sum(axis=1, keepdims=True)
        )


@dataclass(frozen=True)
class TopicMixture:
    """Items, labels or features, each in three topics and in a background that every row shares.

    In a row with topics t of weights θ_t, item l has the worth

        w_l = β b_l + (1 − β) Σ_t θ_t a_tl

    where b_l and a_tl are probabilities: of l in the background, and in topic t. Written
    log w_l = log popularity + affinity, this is a Plackett-Luce model of the row.

    Attributes
    ----------
    offsets, members, weights
        topic t has members[offsets[t] : offsets[t + 1]] with these weights, which sum to
        (1 − β) · popularity of t; the last "topic" is the background, β in all
    n_items
        how many items there are
    """

    offsets: IntArray
    members: npt.NDArray[np.int32]
    weights: FloatArray
    n_items: int

    @classmethod
    def build(
        cls,
        generator: np.random.Generator,
        shares: FloatArray,
        background: float,
        topics: int,
        popularity: FloatArray | None = None,
    ) -> TopicMixture:
        """Spread items over topics at random, so that they come out about as often as asked.

        Parameters
        ----------
        shares
            [items] in what share of the rows each item is to be, most frequent first
        background
            how much of an item's worth belongs to no topic, if the item is rare
        topics
            how many topics; at most as many as items
        popularity
            [topics] where items go: larger topics get more of them; None for all alike
        """
        n_items = len(shares)
        worths = -np.log1p(-shares)  # what makes an item come with that probability, given time
        worths /= worths.sum()
        # a label that half of all rows have cannot be about one topic
        common = background + (1 - background) * shares
        # one topic is dealt like cards, so that none goes empty; the others are drawn
        rounds = -(-n_items // topics)
        dealt = generator.permuted(np.tile(np.arange(topics), (rounds, 1)), axis=1)
        dealt = dealt.ravel()[:n_items]
        drawn = generator.choice(topics, (len(SHARES) - 1, n_items), p=popularity)
        topic = np.concatenate([dealt, drawn.ravel(), np.full(n_items, topics)])
        weight = np.concatenate(
            [np.outer(SHARES, worths * (1 - common)).ravel(), worths * common],
        )
        # what an item is called says nothing of how frequent it is
        names = generator.permutation(n_items).astype(np.int32)
        order = topic.argsort(kind="stable")
        offsets = np.concatenate([[0], np.bincount(topic, minlength=topics + 1).cumsum()])
        return cls(offsets, np.tile(names, len(SHARES) + 1)[order], weight[order], n_items)

    @property
    def masses(self) -> FloatArray:
        """[topics + 1] the weight of every topic, and last of the background."""
        return np.add.reduceat(self.weights, self.offsets[:-1])

    def popularity(self) -> FloatArray:
        """[topics] how much of what rows are about is each topic; they sum to 1."""
        masses = self.masses[:-1]
        return np.asarray(masses / masses.sum())

    def average_worths(self) -> FloatArray:
        """[items] the worth of every item in the average row; they sum to 1."""
        worths = np.bincount(self.members, self.weights, self.n_items)
        return np.asarray(worths / worths.sum())

    def slots(self, rows: RowTopics) -> tuple[IntArray, FloatArray]:
        """The topics of rows with the background as one more, and all their weights."""
        background = self.masses[-1] / self.weights.sum()
        last = np.full((len(rows.topics), 1), len(self.offsets) - 2)
        return (
            np.hstack([rows.topics, last]),
            np.hstack([(1 - background) * rows.weights, np.full(last.shape, background)]),
        )

    def worths(self, rows: RowTopics) -> FloatArray:
        """[rows, items] the worths w, which sum to 1 in every row. For few rows: it is dense."""
        topics, weights = self.slots(rows)
        worths = np.zeros((len(topics), self.n_items))
        masses = self.masses
        for i, row in enumerate(worths):
            for topic, weight in zip(topics[i], weights[i], strict=True):
                part = slice(self.offsets[topic], self.offsets[topic + 1])
                share = self.weights[part] / masses[topic]
                row += weight * np.bincount(self.members[part], share, self.n_items)
        return worths

    def draw(
        self, generator: np.random.Generator, rows: RowTopics, sizes: IntArray
    ) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Draw sets from the Plackett-Luce model of every row: its first `sizes` items.

        Returns
        -------
        [rows + 1] offsets, and with row i at offsets[i] to offsets[i + 1] the items, and how
        often each was drawn until there were enough different ones
        """
        topics, weights = self.slots(rows)
        running = weights.cumsum(axis=1)
        worths = np.concatenate([[0.0], self.weights.cumsum()])
        offsets = np.concatenate([[0], sizes.cumsum()])
        items = np.empty(offsets[-1], dtype=np.int32)
        times = np.empty(offsets[-1], dtype=np.float32)
        last_place = np.full(self.n_items, -1, dtype=np.int64)
        bits = generator.bit_generator
        for first in range(0, len(sizes), ROWS_AT_A_TIME):
            block = slice(first, first + ROWS_AT_A_TIME)
            with bits.lock:
                draw_rows(
                    bits.capsule,
                    offsets[first : first + ROWS_AT_A_TIME + 1],
                    topics[block],
                    running[block],
                    self.offsets,
                    self.members,
                    worths,
                    last_place,
                    items,
                    times,
                )
        return offsets, items, times
