"""Log-worths that are linear in features: what is minimised, and how sure the coefficients are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from scipy import linalg, sparse

from tierrank._types import FloatArray
from tierrank.aggregation.dask import PartedLists
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.terms import objective_of, outer_products
from tierrank.errors import Argument, ArgumentError
from tierrank.training.covariance import INVOLVED, NotDefinite, covariance, dependent, some
from tierrank.training.optim import Hessian, Minimum, TwiceDifferentiable

NOTHING = 1e-200  # curvature that nothing can be divided by


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

    def __init__(
        self, term: TwiceDifferentiable, features: FloatArray, penalty: FloatArray
    ) -> None:
        self.term, self.features, self.penalty = term, features, penalty

    def value_and_gradient(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """The value, and Xᵀ · gradient + penalty · coef."""
        value, slope = self.term.value_and_gradient(self.features @ coef)
        own = self.penalty * coef
        return value + float(own @ coef) / 2, self.features.T @ slope + own

    def hessian(self, coef: FloatArray) -> FeatureHessian:
        """The second derivatives."""
        return FeatureHessian(self.term.hessian(self.features @ coef), self.features, self.penalty)


class FeatureHessian:
    """Second derivatives Xᵀ H X + penalty, H those of the scores."""

    def __init__(self, hessian: Hessian, features: FloatArray, penalty: FloatArray) -> None:
        self._hessian, self._features, self._penalty = hessian, features, penalty

    def product(self, vector: FloatArray) -> FloatArray:
        """Xᵀ H X · vector + penalty · vector."""
        bent = self._hessian.product(self._features @ vector)
        return np.asarray(self._features.T @ bent + self._penalty * vector)

    def diagonal(self) -> FloatArray | None:
        """About the diagonal, as if H were diagonal: enough to set the scale of steps by."""
        own = self._hessian.diagonal()
        if own is None or not np.isfinite(own).all():
            return None
        found = own @ self._features**2 + self._penalty
        return found if found.max() > NOTHING else None

    def matrix(self) -> FloatArray:
        """[features, features] all of it."""
        return self.of_lists() + np.diag(self._penalty)

    def of_lists(self) -> FloatArray:
        """Xᵀ H X, without the penalty."""
        features = self._features
        if features.shape[0] <= features.shape[1]:
            bent = self._hessian.matrix() @ features
        else:
            bent = np.empty_like(features)
            for number in range(features.shape[1]):
                bent[:, number] = self._hessian.product(np.ascontiguousarray(features[:, number]))
        found = features.T @ bent
        return np.asarray((found + found.T) / 2)


def coefficient_covariance(information: FloatArray, outer: FloatArray | None = None) -> FloatArray:
    """[features, features] covariance, from second derivatives; with `outer`, the sandwich's.

    Raises
    ------
    ValueError
        if the coefficients are no isolated minimum
    """
    try:
        return covariance(information.copy(), outer, vanished=0.0)
    except NotDefinite:
        raise ValueError(
            "there are no standard errors: the coefficients are no isolated minimum of the "
            "objective. Leave features out, or give some l2."
        ) from None


def gradient_products(
    lists: CountedLists,
    coef: FloatArray,
    features: FloatArray,
    objective: str,
    params: dict[str, Any] | None,
) -> FloatArray:
    """[features, features] Σ_l count_l g_l g_lᵀ, g_l the gradient of one list's loss."""
    if isinstance(lists, PartedLists):
        known = {"coef": coef, "features": features, "objective": objective, "params": params}
        return np.asarray(lists.summed(gradient_products, **known))
    losses = objective_of(objective, params)
    return outer_products(losses, lists.tiers, lists.counts, features @ coef, features)


CONSTANT = 1e-12  # part of a feature's variance within lists that is a rounding error
DEPENDENT = 1e-10  # the same of an eigenvalue, for a diagonal of 1
VANISHED = 1e-9  # curvature, relative to that at coefficients of 0, which is none
STILL_MOVING = 0.1  # change of scores in a step that should be the last
BLOCK = 1 << 16  # lists at once

REMEDY = (": leave features out, or give some ", Argument("l2"), ", for instance 1e-3")


class Unidentified(ArgumentError):
    """The lists do not determine the coefficients.

    Attributes
    ----------
    features
        names of the features that are why
    """

    def __init__(self, features: Sequence[str], problem: str) -> None:
        super().__init__(problem.format(some(features)), *REMEDY)
        self.features, self._problem = tuple(features), problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.features, self._problem)  # another process may have raised it


def scatter(lists: CountedLists, features: FloatArray) -> FloatArray:
    """[features, features] Σ_l count_l Σ_{i∈l} (x_i − mean_l)(x_i − mean_l)ᵀ.

    A direction of the features changes no probability if and only if it has none of this.
    """
    if isinstance(lists, PartedLists):
        return np.asarray(lists.summed(scatter, features=features))
    if lists.tiers.rest:  # every list has all items
        spread = features - features.mean(axis=0)
        return np.asarray(lists.counts.sum() * (spread.T @ spread))
    items, lengths = lists.tiers.items.numpy(), lists.tiers.lengths.numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    named = sparse.csr_array((np.ones(len(items)), items, offsets), (len(lengths), lists.n_items))
    total = features.T @ (features * (named.T @ lists.counts)[:, None])
    for start in range(0, len(lengths), BLOCK):
        part = slice(start, start + BLOCK)
        sums = (named[part] @ features) * np.sqrt(lists.counts[part] / lengths[part])[:, None]
        total -= sums.T @ sums
    return np.asarray(total)


def check_features(lists: CountedLists, features: FloatArray, names: Sequence[str]) -> FloatArray:
    """Refuse features that the lists say nothing about; give `scatter` of the others.

    Parameters
    ----------
    lists
        what is fitted
    features
        [items, features] of mean 0 and variance 1 (or 0)
    names
        of the features
    """
    within = scatter(lists, features)
    diagonal = np.diag(within)
    constant = diagonal <= CONSTANT * max(lists.weight, float(diagonal.max()))
    if constant.any():
        raise Unidentified(
            list(compress(names, constant)),
            "the items of each list do not differ in {}, so nothing can be said of coefficients",
        )
    involved = dependent(within, DEPENDENT)
    if involved is not None:
        scaled = within / np.sqrt(np.outer(diagonal, diagonal))
        directions = int((np.linalg.eigvalsh(scaled) >= DEPENDENT).sum())
        raise Unidentified(
            list(compress(names, involved)),
            f"there are {len(names)} features, and items of a list differ in {directions} "
            "of their directions only: {} depend on each other linearly",
        )
    return within


def check_maximum(
    term: FeatureTerm,
    end: Minimum,
    within: FloatArray,
    names: Sequence[str],
) -> None:
    """Refuse coefficients that were on their way to infinity.

    If a direction of the features orders all lists perfectly, the likelihood rises along it
    without end. Then there is next to nothing left to gain where a fit stops, but the next step of
    Newton's method would still change scores as much as the last one, by about 1; or the
    curvature has fallen to nothing. Where the maximum is finite, neither is so: one list in a
    million that is ordered otherwise leaves a millionth of the curvature.

    Parameters
    ----------
    term, end
        what was minimised, and how that went
    within
        what `check_features` gave
    names
        of the features
    """
    information = term.hessian(end.point).of_lists()
    at_zero = term.hessian(np.zeros_like(end.point)).of_lists()
    first = linalg.eigh(at_zero, within, eigvals_only=True)
    if not np.isfinite(information).all() or first[-1] <= 0:
        return
    # an objective that is not convex may have no curvature at 0 in some direction
    usual = at_zero if first[0] > DEPENDENT * first[-1] else first[-1] * within
    values, vectors = linalg.eigh(information, usual)
    endless = abs(values[0]) < VANISHED
    if not endless and end.converged and values[0] > 0:
        gradient = term.value_and_gradient(end.point)[1]
        step = vectors @ ((vectors.T @ gradient) / values)
        endless = bool(np.ptp(term.features @ step) > STILL_MOVING)
    if endless:
        size = np.abs(vectors[:, 0]) * np.sqrt(np.diag(within))
        raise Unidentified(
            list(compress(names, size > INVOLVED * size.max())),
            "there is no finite maximum, for some weighted sum of {} orders all lists perfectly "
            "in the eyes of the objective, and larger coefficients are better without end",
        )
