"""Gradient and Hessian diagonal of the objectives in the scores: what boosting asks for.

LightGBM and XGBoost take both in float32, so the Plackett-Luce likelihoods are computed by the
float32 kernels, at half the cost and to about 1e-5; all other objectives in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank import _native
from tierrank._types import AnyArray as Array
from tierrank.losses.likelihood import _without_ties
from tierrank.losses.objective import Objective
from tierrank.losses.ordered_partition.given_size import SizedStages
from tierrank.losses.pairwise.pair_sums import compiled_pair_sums
from tierrank.losses.positions import tier_weights
from tierrank.losses.record import Hessian
from tierrank.losses.tier_order import TierOrder
from tierrank.plackett_luce.lists import FlatLists, upper_tier_weights
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import repeat

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
    gradient: Array
    hessian: Array


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
    """

    def __init__(
        self, objective: Objective, tiers: Tiers, weights: Array | None, seed: int
    ) -> None:
        self.objective = objective.double()
        self.tiers = tiers
        self.name = objective.entry.name
        if weights is None:
            weights = np.ones(len(tiers))
        self._weights = torch.from_numpy(weights * (len(weights) / weights.sum()))
        self._by_row = np.empty(len(tiers.items))
        self._by_row[tiers.items.numpy()] = np.repeat(self._weights.numpy(), tiers.lengths.numpy())
        self._random = "generator" in objective.entry.options
        self.restart(seed)
        self._likelihood = _likelihood(self.name, objective, tiers)
        self._constant = 1.0
        if self.second == "constant":
            self._constant = self._typical_slope()

    @property
    def second(self) -> Hessian:
        """What stands for the second derivative."""
        backward = self.objective.options.get("direction", "forward") != "forward"
        return "constant" if backward else self.objective.entry.hessian

    def restart(self, seed: int) -> None:
        """Let all that is drawn from here on depend on the seed alone."""
        if self._random:
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

    def __call__(self, scores: Array) -> Derivatives:
        """Loss, gradient and Hessian diagonal at [rows] scores.

        If the objective has a parameter of its own, it first takes a step towards its best value
        at these scores.
        """
        if self._likelihood is not None:
            loss, gradient, hessian = self._likelihood.derivatives(scores, self._weights)
        else:
            self._step_of_parameters(scores)
            loss, gradient, _ = self._by_autograd(scores)
            hessian = self._by_row * self._bends(scores)
        with np.errstate(over="ignore"):  # whoever asked looks at whether it is finite
            hessian = np.maximum(hessian, SMALLEST, dtype=np.float32, casting="same_kind")
            return Derivatives(loss, gradient.astype(np.float32, copy=False), hessian)

    # -- by autograd ------------------------------------------------------------------------

    def _by_autograd(self, scores: Array) -> tuple[float, Array, list[float]]:
        w = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        own = list(self.objective.parameters())
        total = (self.objective(w, self.tiers) * self._weights).sum()
        slope, *slopes = torch.autograd.grad(total, [w, *own])
        loss = float(total.detach()) / len(self.tiers)
        return loss, slope.numpy(), [float(one) for one in slopes]

    def _step_of_parameters(self, scores: Array) -> None:
        """Newton's step in each parameter, with a second derivative from two first ones."""
        for number, (name, value) in enumerate(self.parameters.items()):
            here = self._by_autograd(scores)[2][number]
            self.parameters = {**self.parameters, name: value + NUDGE}
            bend = (self._by_autograd(scores)[2][number] - here) / NUDGE
            step = -here / bend if bend > 0 else -np.sign(here) * LONGEST_STEP
            step = float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
            self.parameters = {**self.parameters, name: value + step}

    # -- second derivatives -----------------------------------------------------------------

    def _bends(self, scores: Array) -> Array:
        """[rows] the Hessian's diagonal for lists of weight 1."""
        by_row = np.empty(len(scores))
        by_row[self.tiers.items.numpy()] = self._bends_in_order(
            np.asarray(scores, dtype=np.float64)[self.tiers.items.numpy()]
        )
        return by_row

    def _bends_in_order(self, rows: Array) -> Array:
        """The same for rows sorted by list and tier."""
        lengths = self.tiers.lengths.numpy()
        sizes = self.tiers.tier_sizes.numpy()
        if self.second == "constant":
            several = np.repeat(self.tiers.n_tiers.numpy() > 1, lengths)
            return np.where(several, self._constant, 0.0)
        if self.name in ("listnet", "attrank"):
            share = _softmax(rows, lengths)
            counts = np.repeat(self._has_target(), lengths)
            return np.asarray(counts * share * (1 - share))
        if self.name == "rank-regress":  # (1 − d)² of every pair of different tiers
            others = np.repeat(lengths, self.tiers.n_tiers.numpy()) - sizes
            return np.repeat(2.0 * others, sizes)
        if self.name == "cox-discrete":
            scores = torch.empty(len(rows), dtype=torch.float64)
            scores[self.tiers.items] = torch.from_numpy(rows)
            stages = SizedStages(TierOrder(scores, self.tiers))
            by_row = torch.zeros_like(scores).index_add(0, stages.place, stages.variances())
            return np.asarray(by_row.numpy())
        return _compiled_bends(self.name, rows, self.tiers, self.parameters)

    def _has_target(self) -> Array:
        """[lists] whether a list has grades to compare with: for AttRank, one above 0."""
        if self.name == "listnet":
            return np.ones(len(self.tiers))
        # a list's best grade is its first tier's
        best = self.tiers.grades.numpy()[self.tiers.list_offsets.numpy()[:-1]]
        return np.asarray((best > 0).astype(np.float64))

    def _typical_slope(self) -> float:
        slope = np.abs(self._by_autograd(np.zeros(len(self.tiers.items)))[1])
        slope = slope[slope > 0]
        return float(slope.mean()) if len(slope) else 1.0


def _softmax(rows: Array, lengths: Array) -> Array:
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    worth = np.exp(rows - np.repeat(np.maximum.reduceat(rows, starts), lengths))
    return np.asarray(worth / np.repeat(np.add.reduceat(worth, starts), lengths))


def _compiled_bends(name: str, rows: Array, tiers: Tiers, parameters: dict[str, float]) -> Array:
    stages = {"pl-lb": "breslow", "pl-efron": "efron", "pmop-fd": "one draw"}
    if name in stages:
        out = np.empty(len(rows))
        _native.stage_bends(
            stages[name], rows, tiers.tier_offsets.numpy(), tiers.list_offsets.numpy(),
            torch.get_num_threads(), out,
        )  # fmt: skip
        return out
    next_row = torch.arange(1, len(rows) + 1)
    tier_end = repeat(tiers.tier_offsets[1:], tiers.tier_sizes)
    list_end = repeat(tiers.tier_offsets[tiers.list_offsets[1:]], tiers.lengths)

    def pair_bends(kind: str, start: Tensor, stop: Tensor, parameter: float = 0.0) -> Array:
        scores = torch.from_numpy(rows)
        return np.asarray(compiled_pair_sums(kind, scores, start, stop, parameter)[1].numpy())

    if name == "davidson":  # a win bends as a tie does
        return pair_bends("davidson_bends", next_row, list_end, parameters.get("beta", 0.0))
    if name == "ranknet":
        return pair_bends("rao_kupper_win_bends", tier_end, list_end)
    log_theta = float(np.logaddexp(0.0, parameters.get("alpha", 0.0)))
    wins = pair_bends("rao_kupper_win_bends", tier_end, list_end, log_theta)
    return np.asarray(wins + pair_bends("rao_kupper_tie_bends", next_row, tier_end, log_theta))


# -- the likelihoods --------------------------------------------------------------------------


class _Likelihood:
    """Minus the log-likelihood of tiers, which may be drawn anew each time."""

    def __init__(self, tiers: Tiers, alpha: Any, ties: str, options: dict[str, Any]) -> None:
        self.tiers, self.alpha, self.ties, self.options = tiers, alpha, ties, options
        if ties != "random":  # then nothing changes, and all of this is needed once
            self.tiers = _without_ties(tiers, ties, None)  # type: ignore[arg-type]
            self.upper = self._upper_weights(self.tiers)

    def _upper_weights(self, tiers: Tiers) -> Tensor:
        by_tier = None if self.alpha is None else tier_weights(self.alpha, tiers)
        return upper_tier_weights(by_tier, tiers, True)

    def derivatives(self, scores: Array, weights: Tensor) -> tuple[float, Array, Array]:
        """Mean loss, and [rows] gradient and Hessian of the sum, in float32."""
        tiers = self.tiers
        if self.ties == "random":
            tiers = _without_ties(tiers, "random", self.options["generator"])
            self.upper = self._upper_weights(tiers)
        lists = FlatLists(torch.from_numpy(scores.astype(np.float32)), tiers)
        value, gradient, bend = lists.derivatives(self.upper)
        loss = -float(value.double() @ weights) / len(tiers)
        factor = -weights.float()
        both = []
        for part in (gradient, bend):
            part = lists.scaled(part, factor)
            if lists.gather is not None:
                part = torch.empty_like(part).index_copy_(0, lists.gather, part)
            both.append(part.numpy())
        return loss, both[0], both[1]


def _likelihood(name: str, objective: Objective, tiers: Tiers) -> _Likelihood | None:
    """The objective as a likelihood of tiers, if it is one."""
    if name not in ("pl-partition", "pl-topk", "listmle", "p-listmle"):
        return None
    options = objective.options
    alpha = options.get("alpha", "gain" if name == "p-listmle" else None)
    if name == "pl-topk":
        tiers = tiers.top(options.get("k", 10))
    return _Likelihood(tiers, alpha, options.get("ties", "exact"), options)
