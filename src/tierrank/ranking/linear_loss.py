"""What lists lose by scores linear in features: derivatives, and how sure the minimum is."""

from __future__ import annotations

from itertools import compress
from typing import Any, Literal

import numpy as np
import torch
from scipy import sparse

from tierrank._types import AnyArray
from tierrank.data.mapped import as_kind
from tierrank.losses.objective import Objective
from tierrank.tiers import Tiers
from tierrank.training.covariance import covariance as training_covariance
from tierrank.training.covariance import dependent, some

# relative to the size of a feature: rounding and what a difference leaves out are alike there
DIFFERENCE = 1e-5

# smallest eigenvalue of the information, scaled to a diagonal of 1, that is no rounding error:
# where second derivatives are autograd's, and where they are differences
SMALLEST = {True: 1e-10, False: 1e-7}

Uncertainty = Literal["information", "sandwich"]


class LinearLoss:
    """The loss of lists whose scores are X · coefficients, as a function of one vector, a point.

    A point has the coefficients first, then the parameters that the objective has itself (α of
    Rao-Kupper, β of Davidson), which are learned with them. With list weights v_l, scaled to have
    mean 1, n lists and the penalty λ,

        mean loss = (1/n) Σ_l v_l loss_l + (λ/2) ‖coefficients‖².

    Parameters
    ----------
    X
        [rows, features], dense or CSR; worked on in float64
    tiers
        the lists, with one score a row
    objective
        a module that gives one loss a list
    weights
        [lists] how much each list counts, or None
    l2
        λ
    """

    def __init__(
        self, X: Any, tiers: Tiers, objective: Objective, weights: AnyArray | None, l2: float
    ) -> None:
        self.X = as_kind(X, np.float64)
        self.tiers = tiers
        self.objective = objective.double()
        self.l2 = l2
        self.lists, self.features = len(tiers), X.shape[1]
        given = np.ones(self.lists) if weights is None else weights
        self.total_weight = float(given.sum())
        self._weights = torch.from_numpy(given * (self.lists / self.total_weight))
        self._own = list(self.objective.parameters())
        self.twice_differentiable = objective.entry.twice_differentiable
        self._draws = "generator" in objective.entry.options

    def start(self) -> AnyArray:
        """Coefficients of 0, and the objective's parameters as they are."""
        own = [float(parameter.detach()) for parameter in self._own]
        return np.array([0.0] * self.features + own)

    def own_parameters(self, point: AnyArray) -> dict[str, float]:
        """The objective's own parameters by name."""
        names = [name for name, _ in self.objective.named_parameters()]
        return dict(zip(names, point[self.features :].tolist(), strict=True))

    def sizes(self) -> AnyArray:
        """[features + own parameters] root mean squares of the features; 1 for the others."""
        if sparse.issparse(self.X):
            squares = np.bincount(self.X.indices, np.square(self.X.data), self.features)
        else:
            squares = np.einsum("ij,ij->j", self.X, self.X)
        size = np.sqrt(squares / self.X.shape[0])
        return np.append(np.where(size > 0, size, 1.0), np.ones(len(self._own)))

    def value_and_gradient(
        self, point: AnyArray, chosen: AnyArray | None = None, seed: int | None = None
    ) -> tuple[float, AnyArray]:
        """The mean loss over all or some lists, and its gradient; not finite where scores are not.

        Parameters
        ----------
        point
            [features + own parameters]
        chosen
            numbers of lists; None for all
        seed
            of an objective that draws at random
        """
        X, tiers, weights = self.X, self.tiers, self._weights
        if chosen is not None:
            rows = tiers.rows(chosen).numpy()
            X, tiers, weights = X[rows], tiers[chosen], weights[chosen]
        if seed is not None and self._draws:
            self.objective.options["generator"] = torch.Generator().manual_seed(seed)
        coef = point[: self.features]
        scores = linear_scores(X, coef)
        if not np.isfinite(scores).all():
            return np.nan, np.full_like(point, np.nan)
        losses, leaf = self._losses(point, scores, tiers)
        total = (losses * weights).sum() / len(tiers)
        by_row, *by_own = torch.autograd.grad(total, [leaf, *self._own])
        with np.errstate(over="ignore", invalid="ignore"):
            by_coef = X.T @ by_row.numpy() + self.l2 * coef
        gradient = np.append(by_coef, [float(slope) for slope in by_own])
        return float(total.detach()) + self.l2 / 2 * float(coef @ coef), gradient

    def gradients_by_list(self, point: AnyArray) -> AnyArray:
        """[lists, features + own parameters] gradients of weight · loss, without the penalty."""
        losses, leaf = self._losses(point, linear_scores(self.X, point[: self.features]))
        (by_row,) = torch.autograd.grad(losses.sum(), leaf)
        lengths, rows = self.tiers.lengths.numpy(), self.tiers.items.numpy()
        list_of = np.repeat(np.arange(self.lists), lengths)
        spread = sparse.csr_array((by_row.numpy()[rows], (list_of, rows)), (self.lists, len(leaf)))
        parts = spread @ self.X
        parts = parts.toarray() if sparse.issparse(parts) else parts
        for number in range(self.features, len(point)):
            step = np.zeros_like(point)
            step[number] = DIFFERENCE
            high, low = (
                self._losses(moved, linear_scores(self.X, moved[: self.features]))[0].detach()
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
            matrix[np.diag_indices(self.features)] += self.lists * self.l2
        else:
            matrix = self.lists * self._differences(point)
        return (matrix + matrix.T) / 2 * (self.total_weight / self.lists)

    def _hessian(self, point: AnyArray) -> AnyArray:
        """Xᵀ H X, H that of Σ weight · loss in the scores, which is never written out."""
        losses, leaf = self._losses(point, linear_scores(self.X, point[: self.features]))
        (slope,) = torch.autograd.grad((losses * self._weights).sum(), leaf, create_graph=True)
        matrix = np.empty((self.features, self.features))
        columns = self.X.tocsc() if sparse.issparse(self.X) else self.X
        for number in range(self.features):
            column = columns[:, [number]]
            dense = column.toarray()[:, 0] if sparse.issparse(column) else column[:, 0]
            (product,) = torch.autograd.grad(
                slope, leaf, torch.from_numpy(np.ascontiguousarray(dense)), retain_graph=True
            )
            matrix[:, number] = self.X.T @ product.numpy()
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
        """[lists] losses, and the [rows] scores that they can be differentiated by."""
        with torch.no_grad():
            for parameter, value in zip(self._own, point[self.features :], strict=True):
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
    """[features, features] covariance of the coefficients at the minimum of a loss.

    With I the second derivatives of Σ_l weight_l loss_l + (weight/2) λ ‖coef‖² and g_l the gradient
    of one term of the sum, "information" is I⁻¹ and "sandwich" I⁻¹ (Σ_l g_l g_lᵀ) I⁻¹. The
    objective's own parameters are in both, and left out of what is given back.

    Raises
    ------
    ValueError
        if I is singular, naming the features that make it so, or if there are too few lists
    """
    told = int((loss.tiers.n_tiers > 1).sum())
    if kind == "sandwich" and told <= len(point):
        raise ValueError(
            f"{told} lists with several tiers are too few to see how {len(point)} estimates vary "
            'between lists: uncertainty="sandwich" needs more lists than features'
        )
    information = loss.information(point)
    if not np.isfinite(information).all():
        raise ValueError("the information is not finite: scale the features, or give some l2")
    all_names = [*names, *loss.own_parameters(point)]
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
    return np.asarray(found[: loss.features, : loss.features])


def _singular(problem: str, names: list[str], which: AnyArray) -> ValueError:
    return ValueError(
        f"there are no standard errors: {some(list(compress(names, which)))} {problem}. Leave "
        "features out, or give some l2. The coefficients themselves are fitted."
    )
