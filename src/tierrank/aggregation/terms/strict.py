"""The likelihood of lists without ties, where every tier is a single choice."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tierrank import _native
from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.exact import Exact
from tierrank.aggregation.terms.parts import Bend, summed_squares
from tierrank.tiers import Tiers

WIDEST = 300.0  # scores further apart than this would leave float64's range as squared worths


class Strict:
    """Plackett-Luce likelihood of strict lists, by `native/strict_lists.cpp`."""

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self._tiers = tiers
        self.counts = counts
        self.items = tiers.items.numpy()
        self.offsets = tiers.tier_offsets[tiers.list_offsets].numpy()
        self.lists = _native.StrictLists(self.items, self.offsets, counts, tiers.n_items or 0)
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
        logs = self.lists.value_and_gradient(worth, inverse, gradient)
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
        self.lists.entry_gradients(worth, inverse, slopes)
        return summed_squares(slopes, self.items, self.offsets, self.counts, len(scores))


class StrictBend:
    """Second derivatives of `Strict`."""

    def __init__(self, term: Strict, worth: FloatArray, inverse: FloatArray) -> None:
        self._lists, self._worth, self._inverse = term.lists, worth, inverse

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros_like(self._worth)
        self._lists.product(self._worth, self._inverse, vector, out)
        return out

    def diagonal(self) -> FloatArray:
        out = np.zeros_like(self._worth)
        self._lists.diagonal(self._worth, self._inverse, out)
        return out

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self._worth),) * 2)
        self._lists.matrix(self._worth, self._inverse, out)
        return out + out.T
