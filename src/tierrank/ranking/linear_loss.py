"""What lists lose by scores linear in features: derivatives, and how sure the minimum is."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import compress
from typing import Any, Literal

import numpy as np
import torch
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tierrank._types import AnyArray
from tierrank.data.cache import as_kind
from tierrank.losses.objective import Objective
from tierrank.ranking.base import ONCE_EACH, Shown
from tierrank.tiers import Tiers
from tierrank.training.covariance import covariance as training_covariance
from tierrank.training.covariance import dependent, some
from tierrank.training.optim import Iterated, Minimum, by_eigenvectors, newton

# relative to the size of a feature: rounding and what a difference leaves out are alike there
DIFFERENCE = 1e-5

# smallest eigenvalue of the information, scaled to a diagonal of 1, that is no rounding error:
# where second derivatives are autograd's, and where they are differences
SMALLEST = {True: 1e-10, False: 1e-7}

FAR = 0.01  # change of a score by a typical feature in a step that should be the last
MOST_NEWTON_STEPS = 30  # about 3 are needed, unless there is no finite minimum

Uncertainty = Literal["information", "sandwich"]


class LinearLoss:
    """The loss of lists whose scores are linear in one vector, a point.

    Observation i of a list is about row r(i) of X and was shown at position p(i):

        score_i = X_{r(i)} · coefficients + b_{p(i)} + offset_i,   b_1 = 0.

    A point has the coefficients first, then the biases b_2, b_3, … of the positions, if any are
    given, then the parameters that the objective has itself (α of Rao-Kupper, β of Davidson), which
    are learned with them. With list weights v_l, n lists, the penalty λ, and κ for smooth biases,

        mean loss = (Σ_l v_l loss_l + (κ/2) Σ_p (b_{p+1} − b_p)²) / Σ_l v_l + (λ/2) ‖coefficients‖²

    so that κ is the precision of a random walk's steps, a prior that a longer log outweighs.

    Parameters
    ----------
    X
        [rows, features], dense or CSR; worked on in float64
    tiers
        the lists, with one score an observation
    objective
        a module that gives one loss a list
    weights
        [lists] how much each list counts, or None
    l2
        λ
    shown
        which row each observation is about, and where it was shown
    smoothing
        κ
    offset
        [observations] what is added to the scores, or None
    """

    def __init__(
        self,
        X: Any,
        tiers: Tiers,
        objective: Objective,
        weights: AnyArray | None,
        l2: float,
        *,
        shown: Shown = ONCE_EACH,
        smoothing: float = 0.0,
        offset: AnyArray | None = None,
    ) -> None:
        self.X = as_kind(X, np.float64)
        self.tiers = tiers
        self.objective = objective.double()
        self.l2, self.smoothing = l2, smoothing
        self.shown, self.offset = shown, offset
        self.lists, self.features = len(tiers), X.shape[1]
        self.linear = self.features + max(shown.n_positions - 1, 0)  # features and biases
        given = np.ones(self.lists) if weights is None else weights
        self.total_weight = float(given.sum())
        self._weights = torch.from_numpy(given * (self.lists / self.total_weight))
        self._own = list(self.objective.parameters())
        self.twice_differentiable = objective.entry.twice_differentiable
        self._draws = "generator" in objective.entry.options

    def start(self) -> AnyArray:
        """Coefficients and biases of 0, and the objective's parameters as they are."""
        own = [float(parameter.detach()) for parameter in self._own]
        return np.array([0.0] * self.linear + own)

    def biases(self, point: AnyArray) -> AnyArray:
        """[positions] b, with b_1 = 0; empty where no positions are known."""
        if self.shown.positions is None:
            return np.zeros(0)
        return np.append(0.0, point[self.features : self.linear])

    def own_parameters(self, point: AnyArray) -> dict[str, float]:
        """The objective's own parameters by name."""
        names = [name for name, _ in self.objective.named_parameters()]
        return dict(zip(names, point[self.linear :].tolist(), strict=True))

    def sizes(self) -> AnyArray:
        """[parameters] root mean squares of features and biases' columns; 1 for the others."""
        if sparse.issparse(self.X):
            squares = np.bincount(self.X.indices, np.square(self.X.data), self.features)
        else:
            squares = np.einsum("ij,ij->j", self.X, self.X)
        size = np.sqrt(squares / max(self.X.shape[0], 1))
        if self.shown.positions is not None:
            share = np.bincount(self.shown.positions)[2:] / len(self.shown.positions)
            size = np.append(size, np.sqrt(share))
        return np.append(np.where(size > 0, size, 1.0), np.ones(len(self._own)))

    def scores(self, point: AnyArray) -> AnyArray:
        """[observations] scores; they may overflow without a word, and the caller looks."""
        found = self.shown.spread(linear_scores(self.X, point[: self.features]), self.biases(point))
        return found if self.offset is None else found + self.offset

    def transposed(self, by_observation: AnyArray) -> AnyArray:
        """[features and biases] a slope in each, from one in the score of each observation."""
        by_row = self.shown.by_row(by_observation, self.X.shape[0])
        by_bias = self.shown.by_position(by_observation)[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.append(self.X.T @ by_row, by_bias)

    def gradient_in_biases(self, point: AnyArray, by_observation: AnyArray) -> AnyArray:
        """[positions − 1] of the sum of weight · loss, from its slopes in the observations."""
        by_penalty = self.total_weight * self._penalty(point)[1]
        return (self.transposed(by_observation) + by_penalty)[self.features :]

    def _penalty(self, point: AnyArray) -> tuple[float, AnyArray]:
        """What the mean loss has beside the lists, and its gradient in features and biases."""
        coef, steps = point[: self.features], np.diff(self.biases(point))
        precision = self.smoothing / self.total_weight
        # the slope in b_p is κ (step to it − step from it), and the last has none from it
        by_bias = precision * -np.diff(np.append(steps, 0.0))
        value = self.l2 / 2 * float(coef @ coef) + precision / 2 * float(steps @ steps)
        return value, np.append(self.l2 * coef, by_bias)

    def value_and_gradient(
        self, point: AnyArray, chosen: AnyArray | None = None, seed: int | None = None
    ) -> tuple[float, AnyArray]:
        """The mean loss over all or some lists, and its gradient; not finite where scores are not.

        Parameters
        ----------
        point
            [parameters]
        chosen
            numbers of lists; None for all
        seed
            of an objective that draws at random
        """
        loss = self if chosen is None else self._of_lists(chosen)
        if seed is not None and self._draws:
            self.objective.options["generator"] = torch.Generator().manual_seed(seed)
        scores = loss.scores(point)
        if not np.isfinite(scores).all():
            return np.nan, np.full_like(point, np.nan)
        losses, leaf = self._losses(point, scores, loss.tiers)
        total = (losses * loss._weights).sum() / loss.lists
        by_score, *by_own = torch.autograd.grad(total, [leaf, *self._own])
        penalty, by_penalty = self._penalty(point)
        by_linear = loss.transposed(by_score.numpy()) + by_penalty
        gradient = np.append(by_linear, [float(slope) for slope in by_own])
        return float(total.detach()) + penalty, gradient

    def _of_lists(self, chosen: AnyArray) -> LinearLoss:
        """The same of some lists, whose weights stay as they are."""
        some = copy(self)
        taken = self.tiers.rows(chosen).numpy()
        rows = taken if self.shown.rows is None else self.shown.rows[taken]
        positions = None if self.shown.positions is None else self.shown.positions[taken]
        some.X, some.shown = self.X[rows], Shown(None, positions, self.shown.n_positions)
        some.offset = None if self.offset is None else self.offset[taken]
        some.tiers, some._weights = self.tiers[chosen], self._weights[chosen]
        some.lists = len(some.tiers)
        return some

    def summed(self, point: AnyArray) -> tuple[float, AnyArray]:
        """The loss summed over the lists, so that a relative improvement is one, and gradient."""
        value, gradient = self.value_and_gradient(point)
        return self.lists * value, self.lists * gradient

    def by_newton(
        self, start: AnyArray, max_iter: int, iterated: Iterated | None = None
    ) -> Minimum:
        """The minimum of `summed` to the last digit, from a point that may be far."""
        per_list = self.lists / self.total_weight

        def solve(point: AnyArray, gradient: AnyArray, _: float) -> AnyArray | None:
            return by_eigenvectors(self.information(point) * per_list, gradient)

        return newton(
            self.summed, solve, start, weight=float(self.lists), far=FAR / self.sizes(),
            max_iter=max_iter, iterated=iterated,
        )  # fmt: skip

    def gradients_by_list(self, point: AnyArray) -> AnyArray:
        """[lists, parameters] gradients of weight · loss, without the penalty."""
        losses, leaf = self._losses(point, self.scores(point))
        (by_score,) = torch.autograd.grad(losses.sum(), leaf)
        lengths, order = self.tiers.lengths.numpy(), self.tiers.items.numpy()
        list_of = np.repeat(np.arange(self.lists), lengths)
        slopes = by_score.numpy()[order]
        rows = order if self.shown.rows is None else self.shown.rows[order]
        spread = sparse.csr_array((slopes, (list_of, rows)), (self.lists, self.X.shape[0]))
        parts = spread @ self.X
        parts = parts.toarray() if sparse.issparse(parts) else parts
        if self.shown.positions is not None:
            places = self.shown.positions[order] - 1
            shape = (self.lists, self.shown.n_positions)
            by_bias = sparse.csr_array((slopes, (list_of, places)), shape).toarray()
            parts = np.column_stack([parts, by_bias[:, 1:]])
        for number in range(self.linear, len(point)):
            step = np.zeros_like(point)
            step[number] = DIFFERENCE
            high, low = (
                self._losses(moved, self.scores(moved))[0].detach()
                for moved in (point + step, point - step)
            )
            parts = np.column_stack([parts, (high - low).numpy() / (2 * DIFFERENCE)])
        weights = self._weights.numpy() * (self.total_weight / self.lists)
        return np.asarray(parts * weights[:, None])

    def information(self, point: AnyArray) -> AnyArray:
        """Second derivatives of the sum of weight · loss, and of the penalty for this many lists.

        Where autograd can take derivatives of the scores only once, the second ones are
        differences of the gradient.
        """
        if self.twice_differentiable:
            matrix = self._hessian(point)
            matrix += self.lists * self._penalty_hessian()
        else:
            matrix = self.lists * self._differences(point)
        return (matrix + matrix.T) / 2 * (self.total_weight / self.lists)

    def _hessian(self, point: AnyArray) -> AnyArray:
        """Xᵀ H X, H that of Σ weight · loss in the scores, which is never written out."""
        losses, leaf = self._losses(point, self.scores(point))
        (slope,) = torch.autograd.grad((losses * self._weights).sum(), leaf, create_graph=True)
        matrix = np.empty((self.linear, self.linear))
        columns = self.X.tocsc() if sparse.issparse(self.X) else self.X
        for number in range(self.linear):
            (product,) = torch.autograd.grad(
                slope, leaf, torch.from_numpy(self._column(columns, number)), retain_graph=True
            )
            matrix[:, number] = self.transposed(product.numpy())
        return matrix

    def _column(self, columns: Any, number: int) -> AnyArray:
        """[observations] what a score changes by with one of the coefficients and biases."""
        if number >= self.features:
            assert self.shown.positions is not None
            place = number - self.features + 2
            return np.asarray(self.shown.positions == place, dtype=np.float64)
        column = columns[:, [number]]
        dense = column.toarray()[:, 0] if sparse.issparse(column) else column[:, 0]
        return np.ascontiguousarray(self.shown.spread(dense, None))

    def _penalty_hessian(self) -> AnyArray:
        matrix = np.zeros((self.linear, self.linear))
        at = np.arange(self.linear)
        matrix[at[: self.features], at[: self.features]] = self.l2
        if self.linear > self.features and self.smoothing:
            precision = self.smoothing / self.total_weight
            biases = at[self.features :]
            matrix[biases, biases] = 2 * precision
            matrix[biases[-1], biases[-1]] = precision
            matrix[biases[1:], biases[:-1]] = matrix[biases[:-1], biases[1:]] = -precision
        return matrix

    def _differences(self, point: AnyArray) -> AnyArray:
        matrix = np.empty((len(point), len(point)))
        for number, width in enumerate(DIFFERENCE / self.sizes()):
            step = np.zeros_like(point)
            step[number] = width
            high, low = (
                self.value_and_gradient(moved)[1] for moved in (point + step, point - step)
            )
            matrix[:, number] = (high - low) / (2 * width)
        return matrix

    def _losses(
        self, point: AnyArray, scores: AnyArray, tiers: Tiers | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[lists] losses, and the scores that they can be differentiated by."""
        with torch.no_grad():
            for parameter, value in zip(self._own, point[self.linear :], strict=True):
                parameter.fill_(float(value))
        leaf = torch.from_numpy(scores).requires_grad_()
        return self.objective(leaf, self.tiers if tiers is None else tiers), leaf


def linear_scores(X: Any, coef: AnyArray) -> AnyArray:
    """[rows] X · coef in float64; it may overflow without a word, and the caller looks."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(X @ coef, dtype=np.float64)


def check_uncertainty(kind: Any, objective: Objective) -> None:
    """Refuse, before anything is fitted, a kind of uncertainty that an objective does not have."""
    if kind is None:
        return
    if kind not in ("information", "sandwich"):
        raise ValueError(f'uncertainty is None, "information" or "sandwich", not {kind!r}')
    entry = objective.entry
    if entry.without_errors:
        raise ValueError(
            f"there are no standard errors for {entry.name}, which {entry.without_errors}: use "
            "uncertainty=None, or bootstrap the lists"
        )
    if kind == "information" and not entry.is_likelihood(objective.options):
        weighted = " with alpha" if entry.likelihood else ""
        raise ValueError(
            f"{entry.name}{weighted} is no likelihood of a list, so its "
            'curvature alone says nothing of standard errors: use uncertainty="sandwich"'
        )


def covariance(loss: LinearLoss, point: AnyArray, kind: Uncertainty, names: list[str]) -> AnyArray:
    """[features and biases] covariance of coefficients and biases at the minimum of a loss.

    With I the second derivatives of Σ_l weight_l loss_l + (weight/2) λ ‖coef‖² and g_l the gradient
    of one term of the sum, "information" is I⁻¹ and "sandwich" I⁻¹ (Σ_l g_l g_lᵀ) I⁻¹. The
    objective's own parameters are in both, and left out of what is given back.

    Raises
    ------
    ValueError
        if I is singular, naming the features that make it so, or if there are too few lists
    """
    told = int(((loss.tiers.n_tiers > 1) & (loss._weights > 0)).sum())
    if kind == "sandwich" and told <= len(point):
        raise ValueError(
            f"{told} lists with several tiers are too few to see how {len(point)} estimates vary "
            'between lists: uncertainty="sandwich" needs more lists than features'
        )
    information = loss.information(point)
    if not np.isfinite(information).all():
        raise ValueError("the information is not finite: scale the features, or give some l2")
    positions = [f"position {place}" for place in range(2, loss.linear - loss.features + 2)]
    all_names = [*names, *positions, *loss.own_parameters(point)]
    relative = np.diag(information) / loss.sizes() ** 2
    nothing = relative <= max(1e-14 * relative.max(), np.finfo(float).tiny)  # rounding, at most
    if nothing.any():
        raise _singular(
            "say nothing, for they are constant in every list that has several tiers (or the "
            "lists are ordered perfectly, and the coefficients have no finite best value)",
            all_names,
            nothing,
        )
    involved = dependent(information, SMALLEST[loss.twice_differentiable])
    if involved is not None:
        raise _singular("depend on each other linearly within the lists", all_names, involved)
    outer = None
    if kind == "sandwich":
        parts = loss.gradients_by_list(point)
        outer = parts.T @ parts
    found = training_covariance(information, outer, vanished=0.0)
    return np.asarray(found[: loss.linear, : loss.linear])


def _singular(problem: str, names: list[str], which: AnyArray) -> ValueError:
    return ValueError(
        f"there are no standard errors: {some(list(compress(names, which)))} {problem}. Leave "
        "features out, or give some l2. The coefficients themselves are fitted."
    )


# -- biases of positions, where scores come from elsewhere ----------------------------------------


def bias_loss(
    scores: AnyArray,
    tiers: Tiers,
    objective: Objective,
    weights: AnyArray | None,
    shown: Shown,
    smoothing: float,
) -> LinearLoss:
    """The loss as a function of the biases alone, at [observations] scores that are given."""
    entry = objective.entry
    if entry.without_errors:
        raise ValueError(
            f"positions do not go with {entry.name}, which {entry.without_errors}: take a smooth "
            "objective, such as pl-partition"
        )
    where = Shown(None, shown.positions, shown.n_positions)
    return LinearLoss(
        np.zeros((len(scores), 0)), tiers, objective, weights, 0.0, shown=where,
        smoothing=smoothing, offset=np.asarray(scores, dtype=np.float64),
    )  # fmt: skip


def fitted_biases(loss: LinearLoss, start: AnyArray) -> tuple[AnyArray, AnyArray]:
    """[positions] biases that are best at these scores, and their standard errors there.

    The errors are by the information for a likelihood and else by the sandwich; they take the
    scores for known, and are NaN where the biases have none: without smoothing, a position that
    was never clicked.
    """
    point = loss.start()
    point[: loss.linear] = start[1:]
    end = loss.by_newton(point, MOST_NEWTON_STEPS)
    if end.stopped_by == "no minimum":
        warnings.warn(
            "some position was never above another, or never below: its bias has no finite best "
            "value. Give some position_smoothing.",
            ConvergenceWarning,
            stacklevel=2,
        )
    objective = loss.objective
    kind: Uncertainty = (
        "information" if objective.entry.is_likelihood(objective.options) else "sandwich"
    )
    try:
        errors = np.sqrt(np.diag(covariance(loss, end.point, kind, [])))
    except ValueError:  # too few lists, or no minimum
        errors = np.full(loss.linear, np.nan)
    return loss.biases(end.point), np.append(0.0, errors)
