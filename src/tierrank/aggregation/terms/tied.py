"""The likelihood of lists whose ties are small, by matrices that are kept for each tier."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from tierrank import _native
from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.exact import Exact
from tierrank.aggregation.terms.parts import Bend, summed_squares
from tierrank.tiers import Tiers
from tierrank.tiers.selection import with_rest_written

LARGEST = 32  # items of a tier whose matrix is kept: 256 bytes an entry, at most
CHUNK = 1 << 24  # numbers, of tiers' matrices and items, that are kept at a time for the sum of all
WIDEST = 100.0  # scores further apart than this might leave float64's range as products of worths


class Tied:
    """Plackett-Luce likelihood of lists without a rest.

    Of ties beyond `LARGEST`, all but a last one, the matrix takes longer than it saves.
    """

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self.tiers, self.counts = tiers, counts
        self.items = tiers.items.numpy()
        self.list_offsets = tiers.list_offsets.numpy()
        self.lists = _native.TiedLists(
            self.items, tiers.tier_offsets.numpy(), self.list_offsets, counts, tiers.n_items or 0
        )
        self._entry_count = np.repeat(counts, tiers.lengths.numpy())

    @cached_property
    def _exact(self) -> Exact:
        """For scores too far apart."""
        return Exact(self.tiers, self.counts)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        if np.ptp(scores) > WIDEST:
            return self._exact.value_and_gradient(scores)
        lists = TiedLists(self, scores, with_matrices=False)
        gradient = np.bincount(self.items, lists.entry_gradients() * self._entry_count, len(scores))
        return -lists.log_prob, -gradient.astype(np.float64)

    def at(self, scores: FloatArray) -> Bend:
        if np.ptp(scores) > WIDEST:
            return self._exact.at(scores)
        return TiedLists(self, scores, with_matrices=True)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        if np.ptp(scores) > WIDEST:
            return self._exact.outer_products(scores)
        lists = TiedLists(self, scores, with_matrices=False)
        borders = self.tiers.tier_offsets.numpy()[self.list_offsets]
        return summed_squares(
            lists.entry_gradients(), self.items, borders, self.counts, len(scores)
        )


class TiedLists:
    """The lists at some scores: every tier's value, slopes and, if wanted, matrix."""

    def __init__(self, term: Tied, scores: FloatArray, *, with_matrices: bool) -> None:
        self._lists = term.lists
        log_worth = scores - scores.max()
        self.worth = np.exp(log_worth)
        self._below, value = np.empty((2, len(term.tiers.tier_sizes)))
        self._slopes = np.empty(len(term.items))
        self._matrices = np.empty(self._lists.matrix_size if with_matrices else 0)
        self._lists.terms(
            self.worth, log_worth, torch.get_num_threads(),
            self._below, value, self._slopes, self._matrices,
        )  # fmt: skip
        by_list = np.add.reduceat(value, term.list_offsets[:-1])
        self.log_prob = float(by_list @ term.counts)

    def entry_gradients(self) -> FloatArray:
        """[entries] slopes of one list's log-probability."""
        out = np.empty(len(self._slopes))
        self._lists.entry_gradients(self.worth, self._below, self._slopes, out)
        return out

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros(len(self.worth))
        self._lists.product(*self._known(), vector, out)
        return -out

    def diagonal(self) -> FloatArray:
        out = np.zeros(len(self.worth))
        self._lists.diagonal(*self._known(), out)
        return np.negative(out)

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self.worth),) * 2)
        self._lists.matrix(*self._known(), out)
        return -(out + out.T)

    def _known(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.worth, self._below, self._slopes, self._matrices


def matrix_by_parts(tiers: Tiers, counts: FloatArray, scores: FloatArray) -> FloatArray:
    """[items, items] second derivatives of lists of any kind, a few lists at a time."""
    sizes = tiers.tier_sizes.numpy().astype(np.float64)
    squares = np.concatenate([[0.0], np.cumsum(sizes**2)])[tiers.list_offsets.numpy()]
    room = np.cumsum(np.diff(squares) + tiers.full_lengths.numpy())
    total = np.zeros((len(scores),) * 2)
    for part in np.split(np.arange(len(tiers)), np.flatnonzero(np.diff(room // CHUNK)) + 1):
        total += Tied(with_rest_written(tiers[part]), counts[part]).at(scores).matrix()
    return total
