"""Whether lists determine the coefficients of features, and if not, which features are why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from tierrank.aggregation.covariates.linear import FeatureTerm
from tierrank.aggregation.lists import CountedLists, FloatArray
from tierrank.aggregation.solvers.newton import Descent

CONSTANT = 1e-12  # part of a feature's variance within lists that is a rounding error
DEPENDENT = 1e-10  # the same of an eigenvalue, for a diagonal of 1
VANISHED = 1e-9  # curvature, relative to that at coefficients of 0, which is none
STILL_MOVING = 0.1  # change of scores in a step that should be the last
INVOLVED = 0.01  # least part of a direction that counts
SHOWN = 10
BLOCK = 1 << 16  # lists at once

REMEDY = "leave features out, or give some l2, for instance l2=1e-3"


class Unidentified(ValueError):
    """The lists do not determine the coefficients.

    Attributes
    ----------
    features
        names of the features that are why
    """

    def __init__(self, features: Sequence[str], problem: str) -> None:
        more = f" and {len(features) - SHOWN} more" if len(features) > SHOWN else ""
        super().__init__(problem.format(", ".join(features[:SHOWN]) + more) + f": {REMEDY}")
        self.features, self._problem = tuple(features), problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.features, self._problem)  # another process may have raised it


def scatter(lists: CountedLists, features: FloatArray) -> FloatArray:
    """[features, features] Σ_l count_l Σ_{i∈l} (x_i − mean_l)(x_i − mean_l)ᵀ.

    A direction of the features changes no probability if and only if it has none of this.
    """
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
    constant = diagonal <= CONSTANT * max(float(lists.counts.sum()), float(diagonal.max()))
    if constant.any():
        raise Unidentified(
            _chosen(names, constant),
            "the items of each list do not differ in {}, so nothing can be said of coefficients",
        )
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(within * np.outer(scale, scale))
    flat = values < DEPENDENT
    if flat.any():
        raise Unidentified(
            _chosen(names, np.abs(vectors[:, flat]).max(axis=1) > INVOLVED),
            f"there are {len(names)} features, and items of a list differ in {int((~flat).sum())} "
            "of their directions only: {} depend on each other linearly",
        )
    return within


def check_maximum(
    term: FeatureTerm,
    end: Descent,
    information: FloatArray,
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
    information
        [features, features] second derivatives at the end
    within
        what `check_features` gave
    names
        of the features
    """
    at_zero = term.at(np.zeros_like(end.scores)).of_lists()
    first = linalg.eigh(at_zero, within, eigvals_only=True)
    if not np.isfinite(information).all() or first[-1] <= 0:
        return
    # an objective that is not convex may have no curvature at 0 in some direction
    usual = at_zero if first[0] > DEPENDENT * first[-1] else first[-1] * within
    values, vectors = linalg.eigh(information, usual)
    endless = abs(values[0]) < VANISHED
    if not endless and end.converged and values[0] > 0:
        gradient = term.value_and_gradient(end.scores)[1]
        step = vectors @ ((vectors.T @ gradient) / values)
        endless = bool(np.ptp(term.features @ step) > STILL_MOVING)
    if endless:
        size = np.abs(vectors[:, 0]) * np.sqrt(np.diag(within))
        raise Unidentified(
            _chosen(names, size > INVOLVED * size.max()),
            "there is no finite maximum, for some weighted sum of {} orders all lists perfectly "
            "in the eyes of the objective, and larger coefficients are better without end",
        )


def _chosen(names: Sequence[str], which: npt.NDArray[np.bool_]) -> list[str]:
    return [name for name, taken in zip(names, which.tolist(), strict=True) if taken]
