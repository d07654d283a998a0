"""The exact likelihood of lists with ties, by `tierrank.log_prob` and its curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.parts import Bend, by_columns, outer_products
from tierrank.plackett_luce import Curvature, log_prob, operators
from tierrank.plackett_luce.lists import FlatLists
from tierrank.tiers import Tiers


class Exact:
    """Plackett-Luce likelihood of any tiers, with or without a rest."""

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self.tiers, self.counts = tiers, counts
        self._counts = torch.from_numpy(counts)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        leaf = torch.from_numpy(scores).requires_grad_()
        value = -(self._counts * log_prob(leaf, self.tiers)).sum()
        (gradient,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), gradient.numpy()

    def at(self, scores: FloatArray) -> Bend:
        return ExactBend(self, scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        def losses(values: Any, tiers: Tiers) -> Any:
            return -log_prob(values, tiers)

        return outer_products(losses, self.tiers, self.counts, scores)


class ExactBend:
    """Second derivatives of `Exact`."""

    def __init__(self, term: Exact, scores: FloatArray) -> None:
        self._term, self._scores = term, scores
        self._curvature = Curvature(scores, term.tiers, term.counts)

    def product(self, vector: FloatArray) -> FloatArray:
        return -np.asarray(self._curvature @ vector)

    def diagonal(self) -> FloatArray:
        return -np.asarray(self._curvature.diagonal())

    def matrix(self) -> FloatArray:
        from tierrank.aggregation.terms import tied  # which falls back on `Exact` itself

        if np.ptp(self._scores) <= tied.WIDEST:
            return tied.matrix_by_parts(self._term.tiers, self._term.counts, self._scores)
        longest = int(self._term.tiers.lengths.max()) if len(self._term.tiers) else 0
        if self._term.tiers.rest or longest >= len(self._scores):
            return by_columns(self.product, len(self._scores))
        return self._by_lists(longest)

    def _by_lists(self, longest: int) -> FloatArray:
        """One product a place in a list, for all lists at once: row p of each list's H."""
        term, size = self._term, len(self._scores)
        lists = FlatLists(torch.from_numpy(self._scores), term.tiers)
        no_weights = lists.bottom.new_empty(0)
        assert lists.gather is not None
        starts, items = lists.layout[0].numpy(), lists.gather.numpy()
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        count = np.repeat(term.counts, lengths)
        out = np.zeros(size * size)
        nothing = torch.zeros_like(lists.bottom)
        for place in range(longest):
            there = lengths > place
            vector = torch.zeros_like(lists.rows)
            vector[torch.from_numpy(starts[:-1][there] + place)] = 1.0
            row, _ = operators.hessian_product(
                lists.rows, lists.bottom, *lists.layout, no_weights, vector, nothing
            )
            at = np.flatnonzero(there[owner])
            column = items[starts[owner[at]] + place]
            np.add.at(out, items[at] * size + column, -row.numpy()[at] * count[at])
        square = out.reshape(size, size)
        return np.asarray((square + square.T) / 2)
