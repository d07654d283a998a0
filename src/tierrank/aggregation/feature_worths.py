"""Log-worths that follow from features of the items: w = X · coef, or a perceptron of x.

Here is how features are read, from an array, a mapping or a frame; what is minimised of
coefficients, whether the lists determine them, and how sure they are; and how a network is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import torch
from scipy import linalg, sparse
from torch import nn

from tierrank._types import FloatArray
from tierrank.aggregation.dask import PartedLists
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.terms import objective_of, outer_products
from tierrank.data.tables.columns import BadColumn, frame_columns
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers.arrays import preview, to_numpy
from tierrank.training import History, Watch
from tierrank.training.covariance import INVOLVED, NotDefinite, covariance, dependent, some
from tierrank.training.loop import own_randomness, seed_generators
from tierrank.training.optim import Hessian, Minimum, TwiceDifferentiable
from tierrank.training.perceptron import perceptron

SHOWN = 5  # names in an error


@dataclass(frozen=True)
class ItemFeatures:
    """Rows of numbers, with the names of items and of features where there are any.

    Attributes
    ----------
    values
        [rows, features] float64; it may have NaN until `checked`
    items
        [rows] names of the items, no two alike; None: the rows have none
    names
        [features] their names; None: they have none
    """

    values: FloatArray
    items: tuple[Any, ...] | None
    names: tuple[str, ...] | None

    def of(self, items: Sequence[Any]) -> ItemFeatures:
        """The rows of these items, in their order; all rows, if these have no names."""
        if self.items is None:
            if len(self.values) != len(items):
                raise ValueError(
                    f"features have {len(self.values)} rows for {len(items)} items: an array has "
                    "one row an item of the catalogue, in its order"
                )
            return ItemFeatures(self.values, tuple(items), self.names)
        row_of = dict(zip(self.items, range(len(self.items)), strict=True))
        absent = [item for item in items if item not in row_of]
        if absent:
            raise ValueError(
                f"features lack {len(absent)} of {len(items)} items: {_few(absent)}. (They have "
                f"{_few(list(self.items))}.) Give theirs too, or leave out the lists with these "
                "items."
            )
        rows = np.array([row_of[item] for item in items], dtype=np.int64)
        return ItemFeatures(self.values[rows], tuple(items), self.names)

    def named(self, names: tuple[str, ...], *, by_name: bool) -> ItemFeatures:
        """The columns that a fit knows: by their names if it had some, else by their order."""
        values = self.values
        if by_name and self.names is not None:
            column_of = dict(zip(self.names, range(len(self.names)), strict=True))
            absent = [name for name in names if name not in column_of]
            if absent:
                raise ValueError(f"the fit had features that are not there: {_few(absent)}")
            values = values[:, [column_of[name] for name in names]]
        if values.shape[1] != len(names):
            raise ValueError(
                f"there are {values.shape[1]} features an item, but the fit had {len(names)}"
            )
        return ItemFeatures(values, self.items, names)

    def checked(self) -> ItemFeatures:
        """Itself, if all numbers are finite."""
        wrong = ~np.isfinite(self.values)
        if wrong.any():
            row, column = (int(number) for number in np.argwhere(wrong)[0])
            item = f"row {row}" if self.items is None else f"item {preview(self.items[row])}"
            name = column if self.names is None else preview(self.names[column])
            raise ValueError(
                f"{item}: feature {name} is {self.values[row, column]}, not a finite number: fill "
                "in what is missing, or leave the feature or the item out"
            )
        return self


def read_features(features: Any, item_column: str | None = None) -> ItemFeatures:
    """Take features in any form.

    Parameters
    ----------
    features
        [items, features] array; a mapping from items to vectors, or to mappings from names of
        features to numbers; or a frame of pandas (whose index names the items), polars or pyarrow
    item_column
        the column of a frame that names the items
    """
    if isinstance(features, ItemFeatures):
        return features
    if isinstance(features, Mapping):
        return _of_mapping(features)
    if hasattr(features, "columns") or hasattr(features, "collect"):
        return _of_frame(features, item_column)
    values = to_numpy(features, "features")
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise ValueError(
            "features are numbers [items, features], a mapping from items to vectors, or a frame; "
            f"not {values.dtype} of shape {values.shape}"
        )
    return _some(ItemFeatures(values.astype(np.float64), None, None))


def _of_mapping(features: Mapping[Any, Any]) -> ItemFeatures:
    items = tuple(features)
    names: tuple[str, ...] | None = None
    rows: list[FloatArray] = []
    for item, given in features.items():
        if isinstance(given, Mapping):
            own = {str(name): number for name, number in given.items()}
            names = tuple(own) if names is None and not rows else names
            if names is None or set(own) != set(names):
                raise ValueError(
                    f"item {preview(item)} has the features {_few(list(own))}, and item "
                    f"{preview(items[0])} has others: give all items the same"
                )
            given = [own[name] for name in names]
        elif names is not None:
            raise ValueError(f"item {preview(item)}: its features have no names, others' have some")
        row = to_numpy(given, f"features of item {preview(item)}")
        if row.ndim != 1 or row.dtype.kind not in "iufb" or (rows and len(row) != len(rows[0])):
            wanted = f"a vector of {len(rows[0])} numbers" if rows else "a vector of numbers"
            raise ValueError(
                f"item {preview(item)}: features are {wanted}, not {row.dtype} of shape {row.shape}"
            )
        rows.append(row.astype(np.float64))
    values = np.array(rows) if rows else np.zeros((0, 0))
    return _some(ItemFeatures(values, items, names))


def _of_frame(frame: Any, item_column: str | None) -> ItemFeatures:
    columns = frame_columns(frame)
    names = list(columns.names)
    items: tuple[Any, ...] | None = None
    if item_column is not None:
        if names.count(item_column) != 1:
            raise ValueError(
                f"the frame has {names.count(item_column) or 'no'} columns {item_column!r}, which "
                f"item_column names: it has {_few(names)}"
            )
        found = columns.distinct(names.index(item_column), "item")
        if isinstance(found, BadColumn):
            raise ValueError(f"column {item_column!r}, which names the items, {found.why}")
        items = tuple(found.values[code] for code in found.codes.tolist())
    elif hasattr(frame, "index"):  # of pandas
        items = tuple(frame.index.tolist())
    if items is not None and len(set(items)) < len(items):
        twice = next(item for place, item in enumerate(items) if item in items[:place])
        raise ValueError(f"item {preview(twice)} has two rows of features: give it one")
    chosen = [place for place, name in enumerate(names) if name != item_column]
    values = np.empty((columns.rows, len(chosen)))
    for column, place in enumerate(chosen):
        numbers = columns.floats(place)
        if isinstance(numbers, BadColumn):
            raise ValueError(f"feature {names[place]!r} {numbers.why}")
        values[:, column] = numbers
    if len(set(names)) < len(names):
        raise ValueError("two columns of the frame have one name: rename one")
    return _some(ItemFeatures(values, items, tuple(names[place] for place in chosen)))


def _some(features: ItemFeatures) -> ItemFeatures:
    if not features.values.size:
        raise ValueError(f"features have the shape {features.values.shape}: there are none")
    return features


def _few(names: Sequence[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(preview(name) for name in names[:SHOWN]) + more


# -- w = X · coef ---------------------------------------------------------------------------------

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


# -- w = a perceptron of x ------------------------------------------------------------------------

CPU = torch.device("cpu")
MEASURE = "held-out −loss"


@dataclass(frozen=True)
class Course:
    """How a network is trained.

    Attributes
    ----------
    learning_rate
        of Adam
    l2
        penalty on the matrices (not on biases), beside the mean loss
    max_iter
        most steps, each on all lists
    patience
        steps without a lower loss of the held-out lists that end it
    """

    learning_rate: float
    l2: float
    max_iter: int
    patience: int


@dataclass(frozen=True)
class WeighedTerm:
    """A sum over lists, and their weight."""

    term: TwiceDifferentiable
    weight: float


def network_for(width: int, hidden: Sequence[int], activation: str, seed: int) -> nn.Sequential:
    """A perceptron with its first weights; torch's own generator is left as it was."""
    with own_randomness(CPU):
        seed_generators(seed, CPU)
        return perceptron(width, hidden, activation=activation)


def held_out(counts: FloatArray, fraction: float, random: np.random.Generator) -> FloatArray:
    """[lists] how often each list is held out: about this fraction of all, at random.

    Lists that were seen several times are split up; with counts that are no whole numbers, they
    are held out as a whole.

    Raises
    ------
    ValueError
        if there is nothing left to learn from
    """
    whole = counts.astype(np.int64)
    if (whole == counts).all():
        total = int(whole.sum())
        chosen = max(1, round(fraction * total))
        kept_out = random.multivariate_hypergeometric(whole, min(chosen, total), method="marginals")
        out = kept_out.astype(np.float64)
    else:
        order = random.permutation(len(counts))
        before = np.cumsum(counts[order]) - counts[order]
        out = np.zeros_like(counts)
        chosen_lists = order[before < fraction * counts.sum()]
        out[chosen_lists] = counts[chosen_lists]
    if not (out < counts).any():
        raise ValueError(
            'there are too few lists to hold some out: use validation_fraction=0, or model="linear"'
        )
    return out


def train_network(
    network: nn.Sequential,
    features: FloatArray,
    lists: WeighedTerm,
    held: WeighedTerm | None,
    course: Course,
    watch: Watch | None = None,
) -> tuple[History, str]:
    """Train in place; the weights of the best step are kept.

    The best step has the lowest loss of the held-out lists, or, without any, what is minimised.
    The term gives its gradient by the scores, and autograd goes on from there.

    Returns
    -------
    The training curve, and "patience" or "max_iter".
    """
    rows = torch.from_numpy(features.astype(np.float32))
    matrices = [each for each in network.parameters() if each.ndim == 2]
    optimiser = torch.optim.Adam(network.parameters(), lr=course.learning_rate)
    history = History("iteration", MEASURE)
    best, lowest, stopped_by = deepcopy(network.state_dict()), np.inf, "max_iter"
    for step in range(1, course.max_iter + 1):
        scores = network(rows).squeeze(1)
        point = scores.detach().double().numpy()
        value, slope = lists.term.value_and_gradient(point)
        penalty = course.l2 / 2 * torch.stack([each.square().sum() for each in matrices]).sum()
        loss = value / lists.weight
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss is not finite in iteration {step}: lower learning_rate, give some l2, "
                "or use standardize=True"
            )
        # without held-out lists, the best step is the one with the lowest of what is minimised
        judged = loss + float(penalty.detach())
        metric = None
        if held is not None:
            judged = held.term.value_and_gradient(point)[0] / held.weight
            metric = -judged
        history.add(step, loss, metric)
        if judged < lowest:
            lowest = judged
            best = deepcopy(network.state_dict())
        if watch is not None:
            watch(history.progress(course.max_iter))
        if history.since_best() >= course.patience:
            stopped_by = "patience"
            break
        optimiser.zero_grad()
        down = torch.from_numpy(slope / lists.weight).float()
        torch.autograd.backward([scores, penalty], [down, None])
        optimiser.step()
    network.load_state_dict(best)
    return history, stopped_by


def network_scores(network: nn.Sequential, features: FloatArray) -> FloatArray:
    """[rows] scores in float64, so that a row's does not depend on what else is asked for."""
    with torch.inference_mode():
        exact = deepcopy(network).double()
        return np.asarray(exact(torch.from_numpy(features)).squeeze(1).numpy())
