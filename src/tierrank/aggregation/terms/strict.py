"""The likelihood of lists without ties, where every tier is a single choice."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.exact import Exact
from tierrank.aggregation.terms.parts import Bend, summed_squares
from tierrank.tiers import Tiers

WIDEST = 300.0  # scores further apart than this would leave float64's range as squared worths


class Strict:
    """Plackett-Luce likelihood of strict lists, by `strict_kernel`."""

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        from tierrank.aggregation.terms import strict_kernel

        self._kernels = strict_kernel
        self._tiers = tiers
        self.counts = counts
        self.items = tiers.items.numpy()
        self.offsets = tiers.tier_offsets[tiers.list_offsets].numpy()
        self._longest = int(np.diff(self.offsets).max(initial=0))
        chosen = np.repeat(counts, np.diff(self.offsets))
        chosen[self.offsets[1:] - 1] = 0.0
        # [items] how often an item was chosen over others
        summed = np.bincount(self.items, chosen, tiers.n_items or 0)
        self._chosen: FloatArray = summed.astype(np.float64)

    @cached_property
    def _exact(self) -> Exact:
        """For scores too far apart for worths that all lists share."""
        return Exact(self._tiers, self.counts)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        if np.ptp(scores) > WIDEST:
            return self._exact.value_and_gradient(scores)
        _, _, value, gradient = self._run(scores)
        return value, gradient

    def _run(self, scores: FloatArray) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        largest = scores.max()
        worth = np.exp(scores - largest)
        inverse, gradient = np.empty(len(self.items)), -self._chosen
        logs = self._kernels.value_and_gradient(
            worth, self.items, self.offsets, self.counts, inverse, gradient
        )
        return worth, inverse, logs - float(self._chosen @ (scores - largest)), gradient

    def at(self, scores: FloatArray) -> Bend:
        if np.ptp(scores) > WIDEST:
            return self._exact.at(scores)
        worth, inverse, _, _ = self._run(scores)
        return StrictBend(self, worth, inverse)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        if np.ptp(scores) > WIDEST:
            return self._exact.outer_products(scores)
        worth, inverse, _, _ = self._run(scores)
        slopes = np.empty(len(self.items))
        self._kernels.entry_gradients(worth, self.items, self.offsets, inverse, slopes)
        return summed_squares(slopes, self.items, self.offsets, self.counts, len(scores))


class StrictBend:
    """Second derivatives of `Strict`."""

    def __init__(self, term: Strict, worth: FloatArray, inverse: FloatArray) -> None:
        self._kernels = term._kernels
        self._lists = (worth, term.items, term.offsets, term.counts, inverse)
        self._below = np.empty(term._longest)

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros_like(vector)
        self._kernels.product(*self._lists, vector, self._below, out)
        return out

    def diagonal(self) -> FloatArray:
        out = np.zeros_like(self._lists[0])
        self._kernels.diagonal(*self._lists, out)
        return out

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self._lists[0]),) * 2)
        self._kernels.matrix(*self._lists, out)
        return out + out.T
