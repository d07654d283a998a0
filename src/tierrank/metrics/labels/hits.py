"""Which predictions are relevant, and the best that could be predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.metrics.inputs import FloatArray
from tierrank.metrics.labels.inputs import Relevant, read_relevant, read_top, read_weights
from tierrank.tiers.arrays import list_of_entry

# Relevant labels that are sorted at once: their keys fit into a processor's cache.
_BLOCK = 1 << 18


class Hits(NamedTuple):
    """Which of the first predictions are relevant.

    Attributes
    ----------
    first
        [rows, places] the predicted labels, best first, and −1 where there is none
    found
        [rows, places] whether the prediction is relevant
    relevant
        the relevant labels
    """

    first: IntArray
    found: AnyArray
    relevant: Relevant


class WeightedHits(NamedTuple):
    """What was found and what could be found, in inverse propensities.

    Attributes
    ----------
    gains
        [rows, places] the weight of what is found, else 0
    best
        [rows, places] the highest weights of relevant labels, descending, then 0
    counts
        [rows] how many labels are relevant
    """

    gains: FloatArray
    best: FloatArray
    counts: IntArray


def look_up(top: Any, Y: Any, k: int) -> Hits:
    """Check the input of a measure, and find the first k predictions among what is relevant."""
    relevant = read_relevant(Y)
    first = read_top(top, relevant, k)[:, :k]
    return Hits(first, _found(first, relevant), relevant)


def weigh(hits: Hits, inverse_propensity: Any) -> WeightedHits:
    """Check inverse propensities, and weigh hits by them."""
    weights = read_weights(inverse_propensity, hits.relevant.n_labels)
    gains = np.zeros(hits.first.shape)
    gains[hits.found] = weights[hits.first[hits.found]]
    best = _best_weights(weights, hits.relevant, hits.first.shape[1])
    return WeightedHits(gains, best, hits.relevant.counts)


def _found(first: IntArray, relevant: Relevant) -> AnyArray:
    """Bisect for all predictions at once, each among the relevant labels of its row."""
    labels, borders = relevant.labels, relevant.borders
    if not len(labels):
        return np.zeros(first.shape, dtype=bool)
    ends = borders[1:, None]
    # `at` steps over the labels of the row that are smaller than the prediction, in powers of two
    # that fall from the largest that fits into any row. So nothing but [rows, places] is held.
    at = np.repeat(borders[:-1, None], first.shape[1], axis=1)
    step = 1 << int(relevant.counts.max()).bit_length() >> 1
    while step:
        ahead = at + step
        fits = ahead <= ends
        np.minimum(ahead, len(labels), out=ahead)
        at += step * (fits & (labels[ahead - 1] < first))
        step >>= 1
    inside = at < ends
    np.minimum(at, len(labels) - 1, out=at)
    same: AnyArray = inside & (labels[at] == first)
    return same


def _best_weights(weights: FloatArray, relevant: Relevant, k: int) -> FloatArray:
    """[rows, k] the k highest weights of each row's relevant labels.

    The labels are ranked by weight once, so that a row needs its k smallest ranks: whole numbers,
    which sort row by row, in one go, as row · labels + rank.
    """
    order = np.argsort(-weights, kind="stable")
    descending = weights[order]
    rank_of_label = np.empty(len(order), dtype=np.int64)
    rank_of_label[order] = np.arange(len(order))
    best = np.zeros((len(relevant.counts), k))
    place = np.arange(k)
    for first, last in _blocks_of_rows(relevant.borders):
        borders = relevant.borders[first : last + 1]
        row_key = list_of_entry(borders) * relevant.n_labels
        ranks = rank_of_label[relevant.labels[borders[0] : borders[-1]]] + row_key
        ranks.sort()
        ranks -= row_key
        there = place < np.diff(borders)[:, None]
        entry = (borders[:-1, None] - borders[0] + place)[there]
        best[first:last][there] = descending[ranks[entry]]
    return best


def _blocks_of_rows(borders: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of rows that have about `_BLOCK` entries each, and all entries together."""
    wanted = np.arange(0, borders[-1], _BLOCK)
    starts = np.unique(np.searchsorted(borders, wanted, side="right") - 1)
    ends = np.append(starts[1:], len(borders) - 1)
    yield from zip(starts.tolist(), ends.tolist(), strict=False)
