"""Gradient and Hessian diagonal of the objectives in the scores: what boosting asks for.

LightGBM and XGBoost take both in float32, so the Plackett-Luce likelihoods are computed by the
float32 kernels, at half the cost and to about 1e-5; all other objectives in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray
from tierrank.losses.likelihood import tier_weights, without_ties
from tierrank.losses.objective import Objective
from tierrank.losses.record import Hessian
from tierrank.plackett_luce.kernels import kernel_for
from tierrank.plackett_luce.lists import FlatLists, NonFiniteScore, upper_tier_weights
from tierrank.ranking.base import Shown
from tierrank.ranking.linear_loss import LinearLoss, bias_loss
from tierrank.tiers import Tiers
from tierrank.training.optim import by_eigenvectors

SMALLEST = 1e-16  # a Hessian is never 0: a library would divide by it
LONGEST_STEP = 0.5  # of an objective's own parameter, in one go
NUDGE = 1e-3  # of that parameter, to see how its derivative changes


class Derivatives(NamedTuple):
    """The loss and its derivatives at some scores.

    Attributes
    ----------
    loss
        mean over the lists, by weight
    gradient, hessian
        [rows] float32: of the sum over the lists, by weight, where weights have mean 1
    """

    loss: float
    gradient: AnyArray
    hessian: AnyArray


class BoostingObjective:
    """An objective over fixed tiers, as a function of the scores.

    Parameters
    ----------
    objective
        with ``reduction="none"``
    tiers
        of labels, one score a row
    weights
        [lists], all 1 if not given; only their proportions matter
    seed
        for objectives that draw something
    mean_weight
        of all lists, where these are some of them only

    Attributes
    ----------
    hessian
        what stands for the second derivative
    first_slopes
        where a constant does: sum and number of the slopes at scores of 0 that are not 0
    typical_slope
        their mean, which is the constant
    learns
        whether a call first improves the objective's own parameters
    """

    learns = True

    def __init__(
        self,
        objective: Objective,
        tiers: Tiers,
        weights: AnyArray | None,
        seed: int,
        mean_weight: float | None = None,
    ) -> None:
        self.objective, self.tiers = objective.double(), tiers
        self.name = objective.entry.name
        backward = objective.options.get("direction", "forward") != "forward"
        self.hessian: Hessian = "constant" if backward else objective.entry.hessian
        if weights is None:
            weights = np.ones(len(tiers))
        unit = len(weights) / weights.sum() if mean_weight is None else 1 / mean_weight
        self._weights = torch.from_numpy(weights * unit)
        self._by_row = np.empty(len(tiers.items))
        self._by_row[tiers.items.numpy()] = np.repeat(self._weights.numpy(), tiers.lengths.numpy())
        self._draws = "generator" in objective.entry.options
        self.restart(seed)
        self._likelihood = _likelihood(objective, tiers)
        self.typical_slope, self.first_slopes = 1.0, (0.0, 0)
        if self.hessian == "constant":
            slope = np.abs(self._by_autograd(np.zeros(len(tiers.items)))[1])
            slope = slope[slope > 0]
            self.first_slopes = float(slope.sum()), len(slope)
            if len(slope):
                self.typical_slope = float(slope.mean())

    @property
    def repeats(self) -> bool:
        """Whether it gives the same at the same scores: it neither draws nor learns."""
        return not self._draws and not self.parameters

    def restart(self, seed: int) -> None:
        """Let all that is drawn from here on depend on the seed alone."""
        if self._draws:
            generator = torch.Generator().manual_seed(seed)
            self.objective.options["generator"] = generator

    @property
    def parameters(self) -> dict[str, float]:
        """The objective's own parameters, by name."""
        return {name: value.item() for name, value in self.objective.named_parameters()}

    @parameters.setter
    def parameters(self, values: dict[str, float]) -> None:
        with torch.no_grad():
            for name, parameter in self.objective.named_parameters():
                parameter.fill_(values[name])

    def __call__(self, scores: AnyArray) -> Derivatives:
        """Loss, gradient and Hessian diagonal at [rows] scores.

        If the objective has a parameter of its own, it first takes a step towards its best value
        at these scores, unless somebody else sees to it (`learns`).
        """
        if self._likelihood is not None:
            loss, gradient, hessian = self._likelihood.derivatives(scores, self._weights)
        else:
            if self.learns:
                self.parameters = newton_step(
                    self.parameters, lambda parameters: self.slopes(scores, parameters)
                )
            loss, gradient, _ = self._by_autograd(scores)
            hessian = self._by_row * self._hessian_diagonal(scores)
        with np.errstate(over="ignore"):  # whoever asked looks at whether it is finite
            hessian = np.maximum(hessian, SMALLEST, dtype=np.float32, casting="same_kind")
            return Derivatives(loss, gradient.astype(np.float32, copy=False), hessian)

    def _by_autograd(self, scores: AnyArray) -> tuple[float, AnyArray, list[float]]:
        w = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        own = list(self.objective.parameters())
        total = (self.objective(w, self.tiers) * self._weights).sum()
        slope, *slopes = torch.autograd.grad(total, [w, *own])
        loss = float(total.detach()) / len(self.tiers)
        return loss, slope.numpy(), [float(one) for one in slopes]

    def slopes(self, scores: AnyArray, parameters: dict[str, float]) -> list[float]:
        """Of the sum over the lists, in each of the objective's own parameters."""
        self.parameters = parameters
        return self._by_autograd(scores)[2]

    def _hessian_diagonal(self, scores: AnyArray) -> AnyArray:
        """[rows] the Hessian's diagonal for lists of weight 1."""
        if self.hessian == "constant":
            several = np.repeat(self.tiers.n_tiers.numpy() > 1, self.tiers.lengths.numpy())
            in_order = np.where(several, self.typical_slope, 0.0)
        else:
            sorted_rows = np.asarray(scores, dtype=np.float64)[self.tiers.items.numpy()]
            diagonal = self.objective.entry.hessian_diagonal
            takes = signature(diagonal).parameters
            options = {n: v for n, v in self.objective.options.items() if n in takes}
            in_order = diagonal(sorted_rows, self.tiers, **options, **self.parameters)
        by_row = np.empty(len(scores))
        by_row[self.tiers.items.numpy()] = in_order
        return by_row


class ShownObjective(BoostingObjective):
    """An objective over observations, as a function of the scores of rows.

    Observation i has the score w[row_i] + b[position_i]. A call gives the derivatives in w, which
    add up over the observations of a row, and moves b by a step of Newton's method for the next
    one: the gradient is that of the call, the Hessian that of the first call after a `restart`.

    Parameters
    ----------
    objective, tiers, weights, seed
        as in `BoostingObjective`, with one score an observation
    shown
        rows and positions of the observations
    smoothing
        of the biases, see `LinearLoss`
    biases
        [positions] to begin with
    """

    repeats = False  # the biases move with every call

    def __init__(
        self,
        objective: Objective,
        tiers: Tiers,
        weights: AnyArray | None,
        seed: int,
        shown: Shown,
        smoothing: float,
        biases: AnyArray,
    ) -> None:
        self.shown, self.smoothing, self.biases = shown, smoothing, biases
        self._given_weights = weights
        super().__init__(objective, tiers, weights, seed)

    def restart(self, seed: int) -> None:
        """Let all that comes depend on the seed and on biases and scores alone."""
        super().restart(seed)
        self._information: AnyArray | None = None

    def __call__(self, scores: AnyArray) -> Derivatives:
        """Loss, gradient and Hessian diagonal at [rows] scores."""
        found = super().__call__(self.shown.spread(scores, self.biases))
        if self.shown.positions is not None:
            self.biases = self._moved(scores, found.gradient)
        both = (
            self.shown.by_row(part, len(scores)).astype(np.float32, copy=False)
            for part in (found.gradient, found.hessian)
        )
        return Derivatives(found.loss, *both)

    def bias_loss(self, scores: AnyArray) -> LinearLoss:
        """The loss as a function of the biases, at [rows] scores."""
        spread = self.shown.spread(scores, None)
        return bias_loss(
            spread, self.tiers, self.objective, self._given_weights, self.shown, self.smoothing
        )

    def _moved(self, scores: AnyArray, by_observation: AnyArray) -> AnyArray:
        """Biases after a step; where there is no curvature to trust, by the diagonal."""
        loss = self.bias_loss(scores)
        point = loss.start()
        point[: loss.linear] = self.biases[1:]
        if self._information is None:
            self._information = loss.information(point)[: loss.linear, : loss.linear]
        unit = loss.total_weight / loss.lists  # a gradient is of weights with mean 1
        gradient = loss.gradient_in_biases(point, by_observation * unit)
        step = by_eigenvectors(self._information, gradient)
        if step is None:
            step = gradient / np.maximum(np.abs(np.diag(self._information)), SMALLEST)
        return np.append(0.0, point[: loss.linear] - np.clip(step, -LONGEST_STEP, LONGEST_STEP))


def newton_step(
    parameters: dict[str, float], slopes: Callable[[dict[str, float]], list[float]]
) -> dict[str, float]:
    """Newton's step in each parameter, with a second derivative from two first ones."""
    for number, (name, value) in enumerate(parameters.items()):
        here = slopes(parameters)[number]
        second = (slopes({**parameters, name: value + NUDGE})[number] - here) / NUDGE
        step = -here / second if second > 0 else -np.sign(here) * LONGEST_STEP
        step = float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        parameters = {**parameters, name: value + step}
    return parameters


# -- the likelihoods --------------------------------------------------------------------------


class _Likelihood:
    """Minus the log-likelihood of tiers, which may be drawn anew each time."""

    def __init__(self, tiers: Tiers, alpha: Any, ties: str, options: dict[str, Any]) -> None:
        self.tiers, self.alpha, self.ties, self.options = tiers, alpha, ties, options
        if ties != "random":  # then nothing changes, and all of this is needed once
            self.tiers = without_ties(tiers, ties, None)  # type: ignore[arg-type]
            self.upper = self._upper_weights(self.tiers)

    def _upper_weights(self, tiers: Tiers) -> Tensor:
        by_tier = None if self.alpha is None else tier_weights(self.alpha, tiers)
        return upper_tier_weights(by_tier, tiers, True)

    def derivatives(self, scores: AnyArray, weights: Tensor) -> tuple[float, AnyArray, AnyArray]:
        """Mean loss, and [rows] gradient and Hessian of the sum, in float32."""
        tiers = self.tiers
        if self.ties == "random":
            tiers = without_ties(tiers, "random", self.options["generator"])
            self.upper = self._upper_weights(tiers)
        lists = FlatLists(torch.from_numpy(scores.astype(np.float32)), tiers)
        kernel = kernel_for(lists.rows.device)
        try:
            value, gradient, hessian = kernel.derivatives(*lists.problem(self.upper))
        except NonFiniteScore as error:
            raise lists.located(error) from None
        loss = -float(value.double() @ weights) / len(tiers)
        factor = -weights.float()
        both = []
        for part in (gradient, hessian):
            part = kernel.scale_lists(part, lists.layout[0], factor)
            if lists.gather is not None:
                part = torch.empty_like(part).index_copy_(0, lists.gather, part)
            both.append(part.numpy())
        return loss, both[0], both[1]


def _likelihood(objective: Objective, tiers: Tiers) -> _Likelihood | None:
    """The objective as a likelihood of tiers, if it is one."""
    entry, options = objective.entry, objective.options
    if not entry.exact_likelihood:
        return None
    if "k" in entry.options:
        tiers = tiers.top(entry.option("k", options))
    ties = entry.option("ties", options) or "exact"
    return _Likelihood(tiers, entry.option("alpha", options), ties, options)
