"""Gradient and Hessian diagonal of the objectives in the scores: what boosting asks for.

LightGBM and XGBoost take both in float32, so the Plackett-Luce likelihoods are computed by the
float32 kernels, at half the cost and to about 1e-5; all other objectives in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank import _native
from tierrank._types import AnyArray
from tierrank.losses.likelihood import _without_ties, tier_weights
from tierrank.losses.lists import TierOrder
from tierrank.losses.objective import Objective
from tierrank.losses.ordered_partition import SizedStages
from tierrank.losses.pairwise import compiled_pair_sums
from tierrank.losses.record import Hessian
from tierrank.plackett_luce.lists import FlatLists, upper_tier_weights
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import repeat

SMALLEST = 1e-16  # a Hessian is never 0: a library would divide by it
LONGEST_STEP = 0.5  # of an objective's own parameter, in one go
NUDGE = 1e-3  # of that parameter, to see how its derivative changes

# of [rows] scores, tiers, and the objective's own parameters
Diagonal = Callable[[AnyArray, Tiers, dict[str, float]], AnyArray]


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

    Attributes
    ----------
    hessian
        what stands for the second derivative
    """

    def __init__(
        self, objective: Objective, tiers: Tiers, weights: AnyArray | None, seed: int
    ) -> None:
        self.objective, self.tiers = objective.double(), tiers
        self.name = objective.entry.name
        backward = objective.options.get("direction", "forward") != "forward"
        self.hessian: Hessian = "constant" if backward else objective.entry.hessian
        if weights is None:
            weights = np.ones(len(tiers))
        self._weights = torch.from_numpy(weights * (len(weights) / weights.sum()))
        self._by_row = np.empty(len(tiers.items))
        self._by_row[tiers.items.numpy()] = np.repeat(self._weights.numpy(), tiers.lengths.numpy())
        self._draws = "generator" in objective.entry.options
        self.restart(seed)
        self._likelihood = _likelihood(self.name, objective, tiers)
        self._typical_slope = 1.0
        if self.hessian == "constant":
            slope = np.abs(self._by_autograd(np.zeros(len(tiers.items)))[1])
            if slope.any():
                self._typical_slope = float(slope[slope > 0].mean())

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
        at these scores.
        """
        if self._likelihood is not None:
            loss, gradient, hessian = self._likelihood.derivatives(scores, self._weights)
        else:
            self._step_of_parameters(scores)
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

    def _step_of_parameters(self, scores: AnyArray) -> None:
        """Newton's step in each parameter, with a second derivative from two first ones."""
        for number, (name, value) in enumerate(self.parameters.items()):
            here = self._by_autograd(scores)[2][number]
            self.parameters = {**self.parameters, name: value + NUDGE}
            second = (self._by_autograd(scores)[2][number] - here) / NUDGE
            step = -here / second if second > 0 else -np.sign(here) * LONGEST_STEP
            step = float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
            self.parameters = {**self.parameters, name: value + step}

    def _hessian_diagonal(self, scores: AnyArray) -> AnyArray:
        """[rows] the Hessian's diagonal for lists of weight 1."""
        if self.hessian == "constant":
            several = np.repeat(self.tiers.n_tiers.numpy() > 1, self.tiers.lengths.numpy())
            in_order = np.where(several, self._typical_slope, 0.0)
        else:
            sorted_rows = np.asarray(scores, dtype=np.float64)[self.tiers.items.numpy()]
            in_order = _DIAGONALS[self.name](sorted_rows, self.tiers, self.parameters)
        by_row = np.empty(len(scores))
        by_row[self.tiers.items.numpy()] = in_order
        return by_row


# -- Hessian diagonals: [rows] for [rows] scores, both sorted by list and tier ---------------------


def _cross_entropy(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    """p (1 − p), with p the softmax over the list."""
    lengths = tiers.lengths.numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    worth = np.exp(rows - np.repeat(np.maximum.reduceat(rows, starts), lengths))
    share = worth / np.repeat(np.add.reduceat(worth, starts), lengths)
    return np.asarray(share * (1 - share))


def _with_targets(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    """The same where a list has a grade above 0, its first tier's; else AttRank has no target."""
    best = tiers.grades.numpy()[tiers.list_offsets.numpy()[:-1]]
    targets = np.repeat(best > 0, tiers.lengths.numpy())
    return np.where(targets, _cross_entropy(rows, tiers, parameters), 0.0)


def _squares(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    """(1 − d)² of every pair of different tiers: 2 for each row of another tier."""
    sizes = tiers.tier_sizes.numpy()
    others = np.repeat(tiers.lengths.numpy(), tiers.n_tiers.numpy()) - sizes
    return np.repeat(2.0 * others, sizes)


def _subsets(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    """Variances of being in a subset of the given size, stage by stage."""
    scores = torch.empty(len(rows), dtype=torch.float64)
    scores[tiers.items] = torch.from_numpy(rows)
    stages = SizedStages(TierOrder(scores, tiers))
    by_row = torch.zeros_like(scores).index_add(0, stages.place, stages.variances())
    return np.asarray(by_row.numpy())


def _stages(kind: str) -> Diagonal:
    def diagonal(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
        out = np.empty(len(rows))
        _native.stage_bends(
            kind, rows, tiers.tier_offsets.numpy(), tiers.list_offsets.numpy(),
            torch.get_num_threads(), out,
        )  # fmt: skip
        return out

    return diagonal


def _pairs(rows: AnyArray, kind: str, start: Tensor, stop: Tensor, parameter: float) -> AnyArray:
    """Sums over the pairs of each row with the rows from `start` to `stop`, both [rows]."""
    sums = compiled_pair_sums(kind, torch.from_numpy(rows), start, stop, parameter)[1]
    return np.asarray(sums.numpy())


def _ends(tiers: Tiers) -> tuple[Tensor, Tensor, Tensor]:
    """[rows] the next row, the end of the row's tier, and that of its list."""
    next_row = torch.arange(1, len(tiers.items) + 1)
    tier_end = repeat(tiers.tier_offsets[1:], tiers.tier_sizes)
    list_end = repeat(tiers.tier_offsets[tiers.list_offsets[1:]], tiers.lengths)
    return next_row, tier_end, list_end


def _ranknet(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    _, tier_end, list_end = _ends(tiers)
    return _pairs(rows, "rao_kupper_win_bends", tier_end, list_end, 0.0)


def _rao_kupper(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    next_row, tier_end, list_end = _ends(tiers)
    log_theta = float(np.logaddexp(0.0, parameters.get("alpha", 0.0)))
    wins = _pairs(rows, "rao_kupper_win_bends", tier_end, list_end, log_theta)
    return np.asarray(wins + _pairs(rows, "rao_kupper_tie_bends", next_row, tier_end, log_theta))


def _davidson(rows: AnyArray, tiers: Tiers, parameters: dict[str, float]) -> AnyArray:
    next_row, _, list_end = _ends(tiers)  # a win's second derivative is a tie's
    return _pairs(rows, "davidson_bends", next_row, list_end, parameters.get("beta", 0.0))


_DIAGONALS: dict[str, Diagonal] = {
    "pl-lb": _stages("breslow"),
    "pl-efron": _stages("efron"),
    "pmop-fd": _stages("one draw"),
    "cox-discrete": _subsets,
    "listnet": _cross_entropy,
    "attrank": _with_targets,
    "rank-regress": _squares,
    "ranknet": _ranknet,
    "rao-kupper": _rao_kupper,
    "davidson": _davidson,
}


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

    def derivatives(self, scores: AnyArray, weights: Tensor) -> tuple[float, AnyArray, AnyArray]:
        """Mean loss, and [rows] gradient and Hessian of the sum, in float32."""
        tiers = self.tiers
        if self.ties == "random":
            tiers = _without_ties(tiers, "random", self.options["generator"])
            self.upper = self._upper_weights(tiers)
        lists = FlatLists(torch.from_numpy(scores.astype(np.float32)), tiers)
        value, gradient, hessian = lists.derivatives(self.upper)
        loss = -float(value.double() @ weights) / len(tiers)
        factor = -weights.float()
        both = []
        for part in (gradient, hessian):
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
