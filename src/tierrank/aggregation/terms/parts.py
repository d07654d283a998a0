"""What every term gives, terms added up, and what terms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse

from tierrank._types import IntArray
from tierrank.aggregation.lists import FloatArray
from tierrank.tiers import Tiers

CHUNK = 1 << 24  # numbers of a [lists, items] block of gradients


class Bend(Protocol):
    """Second derivatives of a term at some scores."""

    def product(self, vector: FloatArray) -> FloatArray:
        """H · vector."""

    def diagonal(self) -> FloatArray | None:
        """The diagonal of H, if it comes cheaper than H."""

    def matrix(self) -> FloatArray:
        """[items, items] H."""


class Term(Protocol):
    """A part of what is minimised."""

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [items] gradient."""

    def at(self, scores: FloatArray) -> Bend:
        """The second derivatives."""


class ListTerm(Term, Protocol):
    """A part that is a sum over lists."""

    def outer_products(self, scores: FloatArray) -> FloatArray:
        """[items, items] Σ_l count_l g_l g_lᵀ, g_l the gradient of one list's loss."""


class Sum:
    """Terms added up."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = terms

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        values, gradients = zip(*(term.value_and_gradient(scores) for term in self.terms),
                                strict=True)  # fmt: skip
        return float(sum(values)), np.asarray(sum(gradients))

    def at(self, scores: FloatArray) -> Bend:
        return SumBend([term.at(scores) for term in self.terms])


class SumBend:
    """Second derivatives of a `Sum`."""

    def __init__(self, bends: Sequence[Bend]) -> None:
        self._bends = bends

    def product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(sum(bend.product(vector) for bend in self._bends))

    def diagonal(self) -> FloatArray | None:
        found = [bend.diagonal() for bend in self._bends]
        parts = [part for part in found if part is not None]
        return np.asarray(sum(parts)) if len(parts) == len(found) else None

    def matrix(self) -> FloatArray:
        total = self._bends[0].matrix()
        for bend in self._bends[1:]:
            total += bend.matrix()
        return total


def by_columns(product: Callable[[FloatArray], FloatArray], size: int) -> FloatArray:
    """[size, size] a symmetric matrix from its products with the unit vectors."""
    out = np.empty((size, size))
    unit = np.zeros(size)
    for number in range(size):
        unit[number] = 1.0
        out[number] = product(unit)
        unit[number] = 0.0
    return np.asarray((out + out.T) / 2)


def outer_products(
    losses: Callable[[Any, Tiers], Any], tiers: Tiers, counts: FloatArray, scores: FloatArray
) -> FloatArray:
    """Σ_l count_l g_l g_lᵀ: every list gets scores of its own, so that its gradient is apart."""
    size = len(scores)
    total = np.zeros((size, size))
    block = max(1, CHUNK // size)
    for start in range(0, len(tiers), block):
        part, count = tiers[start : start + block], counts[start : start + block]
        leaf = torch.from_numpy(np.tile(scores, (len(part), 1))).requires_grad_()
        (gradient,) = torch.autograd.grad(losses(leaf, part).sum(), leaf)
        weighted = gradient.numpy() * np.sqrt(count)[:, None]
        total += weighted.T @ weighted
    return total


def summed_squares(
    slopes: FloatArray, items: IntArray, borders: IntArray, counts: FloatArray, size: int
) -> FloatArray:
    """Σ_l count_l g_l g_lᵀ from the slopes of all entries, those of a list between two borders."""
    weighted = slopes * np.sqrt(np.repeat(counts, np.diff(borders)))
    rows = sparse.csr_array((weighted, items, borders), (len(counts), size))
    return np.asarray((rows.T @ rows).toarray())
