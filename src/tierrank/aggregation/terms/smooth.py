"""Any objective of `tierrank.losses` as a term."""

from __future__ import annotations

import numpy as np
import torch

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.terms.parts import Bend, by_columns, outer_products
from tierrank.losses.objective import Objective
from tierrank.tiers import Tiers

DIFFERENCE = 1e-5  # step of a finite difference, relative to the vector's largest number


class Smooth:
    """Any objective of `tierrank.losses`, by autograd, or by differences of its gradient."""

    def __init__(self, tiers: Tiers, counts: FloatArray, objective: Objective) -> None:
        self.tiers, self.counts, self.objective = tiers, counts, objective
        self._counts = torch.from_numpy(counts)
        # The cosine has second derivatives, but is not convex, and changes with the scores' mean.
        self.twice = objective.entry.twice_differentiable and objective.entry.shift_invariant

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        leaf, value = self._value(scores)
        (gradient,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), gradient.numpy()

    def _value(self, scores: FloatArray) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = torch.from_numpy(scores).requires_grad_()
        return leaf, (self._counts * self.objective(leaf, self.tiers)).sum()

    def at(self, scores: FloatArray) -> Bend:
        return SmoothBend(self, scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        return outer_products(self.objective, self.tiers, self.counts, scores)


class SmoothBend:
    """Second derivatives of `Smooth`."""

    def __init__(self, term: Smooth, scores: FloatArray) -> None:
        self._term, self._scores = term, scores
        if term.twice:
            self._leaf, value = term._value(scores)
            (self._slope,) = torch.autograd.grad(value, self._leaf, create_graph=True)

    def product(self, vector: FloatArray) -> FloatArray:
        if self._term.twice:
            along = torch.from_numpy(np.ascontiguousarray(vector))
            (out,) = torch.autograd.grad(self._slope, self._leaf, along, retain_graph=True)
            return np.asarray(out.numpy())
        size = DIFFERENCE / max(float(np.abs(vector).max(initial=0)), np.finfo(float).tiny)
        high, low = (
            self._term.value_and_gradient(self._scores + way * size * vector)[1] for way in (1, -1)
        )
        return np.asarray((high - low) / (2 * size))

    def diagonal(self) -> None:
        return None

    def matrix(self) -> FloatArray:
        return by_columns(self.product, len(self._scores))
