"""Log-worths that are linear in features: what is minimised, and how sure the coefficients are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
import torch
from scipy import linalg

from tierrank.aggregation.lists import FloatArray
from tierrank.aggregation.solvers import newton
from tierrank.aggregation.solvers.newton import Descent
from tierrank.aggregation.terms import Bend, Term
from tierrank.aggregation.terms.parts import CHUNK
from tierrank.tiers import Tiers
from tierrank.training import lbfgs

SMALL_CHUNK = 1 << 20  # numbers of a [lists, items that they name] block of gradients
VANISHED = 1e-200  # curvature that nothing can be divided by


class FeatureTerm:
    """A term of scores X · coef, and (penalty/2) · coef², as a function of the coefficients.

    Parameters
    ----------
    term
        a function of the scores of all items
    features
        [items, features] X
    penalty
        [features]
    """

    def __init__(self, term: Term, features: FloatArray, penalty: FloatArray) -> None:
        self.term, self.features, self.penalty = term, features, penalty

    def value_and_gradient(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """The value, and Xᵀ · gradient + penalty · coef."""
        value, slope = self.term.value_and_gradient(self.features @ coef)
        own = self.penalty * coef
        return value + float(own @ coef) / 2, self.features.T @ slope + own

    def at(self, coef: FloatArray) -> FeatureBend:
        """The second derivatives."""
        return FeatureBend(self.term.at(self.features @ coef), self.features, self.penalty)


class FeatureBend:
    """Second derivatives Xᵀ H X + penalty, H those of the scores."""

    def __init__(self, bend: Bend, features: FloatArray, penalty: FloatArray) -> None:
        self._bend, self._features, self._penalty = bend, features, penalty

    def product(self, vector: FloatArray) -> FloatArray:
        """Xᵀ H X · vector + penalty · vector."""
        bent = self._bend.product(self._features @ vector)
        return np.asarray(self._features.T @ bent + self._penalty * vector)

    def diagonal(self) -> FloatArray | None:
        """About the diagonal, as if H were diagonal: enough to set the scale of steps by."""
        own = self._bend.diagonal()
        if own is None or not np.isfinite(own).all():
            return None
        found = own @ self._features**2 + self._penalty
        return found if found.max() > VANISHED else None

    def matrix(self) -> FloatArray:
        """[features, features] all of it."""
        return self.of_lists() + np.diag(self._penalty)

    def of_lists(self) -> FloatArray:
        """Xᵀ H X, without the penalty."""
        features = self._features
        if features.shape[0] <= features.shape[1]:
            bent = self._bend.matrix() @ features
        else:
            bent = np.empty_like(features)
            for number in range(features.shape[1]):
                bent[:, number] = self._bend.product(np.ascontiguousarray(features[:, number]))
        found = features.T @ bent
        return np.asarray((found + found.T) / 2)


def minimise(
    term: FeatureTerm, solver: str, max_iter: int, iterated: Callable[[int, float], None]
) -> Descent:
    """Minimise from coefficients of 0; `scores` of what comes back are the coefficients.

    Parameters
    ----------
    term
        what to minimise
    solver
        "newton", or "lbfgs" where there are no second derivatives
    max_iter
        most iterations
    iterated
        called after each with its number and the value
    """
    start = np.zeros(term.features.shape[1])
    if solver == "newton":
        return newton.minimise(term, start, centred=False, max_iter=max_iter, iterated=iterated)
    values = [term.value_and_gradient(start)[0]]

    def noted(point: Any, value: float) -> bool:
        values.append(value)
        iterated(len(values) - 1, value)
        return False

    end = lbfgs.minimise(term.value_and_gradient, start, tol=0.0, max_iter=max_iter, iterated=noted)
    reasons = {"line search": "rounding", "tolerance": "tolerance"}
    norm = float(np.abs(term.value_and_gradient(end.point)[1]).max(initial=0))
    return Descent(end.point, values, reasons.get(end.stopped_by, "max_iter"), norm)


def inverse(information: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix.

    Raises
    ------
    ValueError
        if it is not one
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    try:
        factor = linalg.cho_factor(information * np.outer(scale, scale), lower=True)
    except (linalg.LinAlgError, ValueError):
        raise ValueError(
            "there are no standard errors: the coefficients are no isolated minimum of the "
            "objective. Leave features out, or give some l2."
        ) from None
    found = linalg.cho_solve(factor, np.eye(len(scale))) * np.outer(scale, scale)
    return np.asarray((found + found.T) / 2)


def summed_squares(
    losses: Callable[[Any, Tiers], Any],
    tiers: Tiers,
    counts: FloatArray,
    scores: FloatArray,
    features: FloatArray,
) -> FloatArray:
    """[features, features] Σ_l count_l g_l g_lᵀ, g_l the gradient of one list's loss by coef.

    Every list gets scores of its own, so that its gradient is apart; and where lists leave no
    rest, only those of items that some list of its block names.

    Parameters
    ----------
    losses
        from scores [lists, items] and tiers to one loss a list
    tiers, counts
        the lists, and how often each was seen
    scores, features
        [items] and [items, features]
    """
    total = np.zeros((features.shape[1],) * 2)
    longest = int(tiers.lengths.max()) if len(tiers) else 1
    block = max(1, CHUNK // len(scores))
    if not tiers.rest:  # work grows with the items of a block, so blocks are small
        block = max(1, isqrt(SMALL_CHUNK // longest))
    for start in range(0, len(tiers), block):
        part = tiers[start : start + block]
        near, rows = scores, features
        if not part.rest:
            touched, where = np.unique(part.items.numpy(), return_inverse=True)
            items = torch.from_numpy(where.reshape(-1))
            part = replace(part, items=items, n_items=len(touched), names=None)
            near, rows = scores[touched], features[touched]
        leaf = torch.from_numpy(np.tile(near, (len(part), 1))).requires_grad_()
        (gradient,) = torch.autograd.grad(losses(leaf, part).sum(), leaf)
        weighted = (gradient.numpy() @ rows) * np.sqrt(counts[start : start + block])[:, None]
        total += weighted.T @ weighted
    return total
