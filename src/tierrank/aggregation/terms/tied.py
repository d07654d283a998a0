"""The likelihood of lists whose ties are small, by matrices that are kept for each tier."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.exact import Exact
from tierrank.aggregation.terms.parts import Bend, summed_squares
from tierrank.plackett_luce.kernels.driver import run
from tierrank.plackett_luce.quadrature import gauss_legendre, rule_for
from tierrank.tiers import Tiers
from tierrank.tiers.rest import with_rest_written

LARGEST = 32  # items of a tier whose matrix is kept: 256 bytes an entry, at most
CHUNK = 1 << 24  # numbers, of tiers' matrices and items, that are kept at a time for the sum of all
WIDEST = 100.0  # scores further apart than this might leave float64's range as products of worths


class Tied:
    """Plackett-Luce likelihood of lists without a rest.

    Of ties beyond `LARGEST`, all but a last one, the matrix takes longer than it saves.
    """

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        from tierrank.aggregation.terms import tied_kernel

        self._kernels = tied_kernel
        self.tiers, self.counts = tiers, counts
        self.items = tiers.items.numpy()
        self.tier_offsets, self.list_offsets = (
            tiers.tier_offsets.numpy(), tiers.list_offsets.numpy(),
        )  # fmt: skip
        self._entry_count = np.repeat(counts, tiers.lengths.numpy())
        sizes = np.diff(self.tier_offsets)
        kept = sizes.copy()
        kept[self.list_offsets[1:] - 1] = 0  # the last tier of a list has no term
        self._matrix_offsets = np.concatenate([[0], np.cumsum(kept**2)])
        rule = rule_for(torch.float64)
        self._rule = ((rule.drop, rule.tolerance), *gauss_legendre(rule.nodes))
        # about what a tier takes: a few operations a subset, or a pass over all nodes
        self._cost = np.concatenate([[0], np.cumsum(np.where(kept > 5, 200 * kept, 4 * kept**2))])

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
        borders = self.tier_offsets[self.list_offsets]
        return summed_squares(
            lists.entry_gradients(), self.items, borders, self.counts, len(scores)
        )


class TiedLists:
    """The lists at some scores: every tier's value, slopes and, if wanted, matrix."""

    def __init__(self, term: Tied, scores: FloatArray, *, with_matrices: bool) -> None:
        self._term, self._kernels = term, term._kernels
        self.worth = np.exp(scores - scores.max())
        tiers = len(term.tier_offsets) - 1
        self._below, value = np.empty(tiers), np.empty(tiers)
        self._slopes = np.empty(len(term.items))
        self._matrices = np.empty(int(term._matrix_offsets[-1]) if with_matrices else 0)
        self._kernels.sums_below(
            self.worth, term.items, term.tier_offsets, term.list_offsets, self._below
        )

        def stage(lo: int, hi: int) -> None:
            self._kernels.tiers(
                self.worth, term.items, term.tier_offsets, self._below, term._matrix_offsets,
                *term._rule, lo, hi, value, self._slopes, self._matrices,
            )  # fmt: skip

        run(stage, term._cost)
        by_list = np.add.reduceat(value, term.list_offsets[:-1])
        self.log_prob = float(by_list @ term.counts)

    def entry_gradients(self) -> FloatArray:
        """[entries] slopes of one list's log-probability."""
        term, out = self._term, np.empty(len(self._term.items))
        self._kernels.entry_gradients(
            self.worth, term.items, term.tier_offsets, term.list_offsets, self._below,
            self._slopes, out,
        )  # fmt: skip
        return out

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros_like(vector)
        self._kernels.product(*self._lists(), vector, np.empty_like(self._below), out)
        return -out

    def diagonal(self) -> FloatArray:
        out = np.zeros(len(self.worth))
        self._kernels.diagonal(*self._lists(), out)
        return np.negative(out)

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self.worth),) * 2)
        self._kernels.matrix(*self._lists(), out)
        return -(out + out.T)

    def _lists(self) -> tuple[Any, ...]:
        term = self._term
        return (
            self.worth, term.items, term.tier_offsets, term.list_offsets, term.counts, self._below,
            self._slopes, term._matrix_offsets, self._matrices,
        )  # fmt: skip


def matrix_by_parts(tiers: Tiers, counts: FloatArray, scores: FloatArray) -> FloatArray:
    """[items, items] second derivatives of lists of any kind, a few lists at a time."""
    sizes = tiers.tier_sizes.numpy().astype(np.float64)
    squares = np.concatenate([[0.0], np.cumsum(sizes**2)])[tiers.list_offsets.numpy()]
    room = np.cumsum(np.diff(squares) + tiers.full_lengths.numpy())
    total = np.zeros((len(scores),) * 2)
    for part in np.split(np.arange(len(tiers)), np.flatnonzero(np.diff(room // CHUNK)) + 1):
        total += Tied(with_rest_written(tiers[part]), counts[part]).at(scores).matrix()
    return total
