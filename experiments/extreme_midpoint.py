"""Training by Ma et al.'s (2021) midpoint rule as it is printed: T intervals, a shift c of scores.

For a list that names the labels A, with all others, B, below (equation 15, w_B = lse of B)::

    P(A > B) = e^{w_B + c} ∫_0^1 v^{e^{w_B + c} − 1} ∏_{a∈A} (1 − v^{e^{w_a + c}}) dv

by the midpoints v_t = (t − 1/2)/T, in logarithms. The gradient is that of lemma 2: with p_t the
share of v_t in the sum, ∂log P/∂w_a = Σ_t p_t z/(e^z − 1), z = −e^{w_a + c} log v_t, and what is
below shares −Σ of it by its softmax. B counts by its log-sum-exp alone: one number stands for it.

The likelihood does not change if all scores of a list are shifted, but the rule does. So it has to
see the scores as the network gives them, and `tierrank.extreme.head`, which shifts them for
the sake of float32, is not used here: all scores of a batch are held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import tierrank as tr
from tierrank.data import MultiLabelData
from tierrank.extreme.learner import LabelLearner, RowOptimiser
from tierrank.extreme.network import Features, Network, SparseRows
from tierrank.extreme.ranker import ExtremeRanker, Race, Runs, checked_rates, hold_out
from tierrank.extreme.sharding import Shards
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers
from tierrank.training import Checkpoint, Watch
from tierrank.training.loop import Course, Position
from tierrank.training.progress import digest

BLOCK = 1 << 22  # numbers of labels × intervals that are held at once
SMALLEST, LARGEST = 1e-30, 1e30  # of e^{w + c}: what float32 can be multiplied by
LOST = 1e-3  # a list whose gradient is shorter teaches next to nothing
LOOKED_AT = 512  # lists by which the rule is compared with the likelihood


class Rule(NamedTuple):
    """The midpoint rule with T intervals and shift c."""

    intervals: int
    shift: float

    def __call__(self, named: Tensor, below: Tensor) -> tuple[Tensor, Tensor]:
        """[lists] log P, and its gradient in what is named.

        `named` is [lists, most], filled up with −inf, and `below` [lists] log-sum-exps.
        """
        if self.intervals < 1:
            raise ValueError(f"T is a number of intervals, 1 or more, not {self.intervals}")
        from_one = (torch.arange(self.intervals, dtype=torch.float64) + 0.5) / self.intervals
        minus_log_v = -torch.log1p(-from_one).to(named)
        step = max(1, BLOCK // (named.shape[1] * self.intervals))
        parts = [
            self._some(named[i : i + step], below[i : i + step], minus_log_v)
            for i in range(0, len(named), step)
        ]
        log_prob, slopes = (torch.cat(each) for each in zip(*parts, strict=True))
        return log_prob, slopes

    def _some(self, named: Tensor, below: Tensor, minus_log_v: Tensor) -> tuple[Tensor, Tensor]:
        there = named > -torch.inf
        b = torch.exp(named + self.shift).clamp(SMALLEST, LARGEST)
        b = torch.where(there, b, LARGEST)  # what is not there never loses: 1 − v^b = 1
        z = b[:, :, None] * minus_log_v
        factors = -torch.expm1(-z)
        above = torch.exp(below + self.shift).clamp(max=LARGEST)
        log_f = factors.log().sum(1) - (above - 1)[:, None] * minus_log_v
        total = torch.logsumexp(log_f, 1)
        log_prob = below + self.shift + total - math.log(self.intervals)
        shares = torch.exp(log_f - total[:, None])
        ratio = factors.reciprocal_().sub_(1).mul_(z)  # z / (e^z − 1)
        return log_prob, torch.where(there, torch.einsum("lnt,lt->ln", ratio, shares), 0.0)


def padded(values: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """[lists, most] filled up with −inf, and where each value went."""
    lists = range_numbers(lengths)
    starts = lengths.cumsum(0) - lengths
    places = torch.arange(len(values)) - starts[lists]
    out = values.new_full((len(lengths), int(lengths.max())), -torch.inf)
    out[lists, places] = values
    return out, (lists, places)


class MidpointLearner(LabelLearner):
    """Learns by the rule, with all scores of a batch at once.

    Attributes
    ----------
    lists, lost
        how many lists it saw, and how many of them had no gradient to speak of
    """

    def __init__(self, network: Network, optimiser: RowOptimiser, rule: Rule) -> None:
        super().__init__(network, optimiser, "pl-partition")
        self.rule, self.lists, self.lost = rule, 0, 0

    def _all_labels(
        self, hidden: Tensor, tiers: Tiers, weights: Tensor, stop: bool
    ) -> tuple[float, bool, Tensor]:
        weight, bias = self.network.labels.detach(), self.network.label_bias.detach()
        scores = torch.addmm(bias, hidden, weight.T)
        lists, lengths = range_numbers(tiers.lengths), tiers.lengths
        named, where = padded(scores[lists, tiers.items], lengths)
        scores[lists, tiers.items] = -torch.inf
        below = torch.logsumexp(scores, 1)
        log_prob, slopes = self.rule(named, below)
        loss, stop = self._together(float(-log_prob @ weights), stop)
        sums = slopes.sum(1)
        self.lists, self.lost = self.lists + len(sums), self.lost + int((sums < LOST).sum())
        by_score = torch.exp(scores - below[:, None]) * (sums * weights)[:, None]
        by_score[lists, tiers.items] = -slopes[where] * weights[lists]
        self.optimiser.begin_step()
        by_hidden = by_score @ weight
        self.optimiser.update("labels", slice(None), by_score.T @ hidden)
        self.optimiser.update("label_bias", slice(None), by_score.sum(0))
        return loss, stop, by_hidden


class MidpointRuns(Runs):
    """Trainings of an `ExtremeRanker` by the rule."""

    def __init__(
        self, ranker: ExtremeRanker, plan: Checkpoint, seed: int, watch: Watch | None, rule: Rule
    ) -> None:
        super().__init__(ranker, plan, seed, watch, Shards())
        self.rule = rule
        self.found: list[dict[str, Any]] = []

    def _learner(self, network: Network, rate: float, data: MultiLabelData) -> MidpointLearner:
        self.before = self._error(network, data)
        self.learner = MidpointLearner(network, self._optimiser(network, rate), self.rule)
        return self.learner

    def _run(
        self,
        name: str,
        data: MultiLabelData,
        valid: MultiLabelData | None,
        rate: float,
        course: Course,
        member: int,
        race: Race | None = None,
    ) -> tuple[Network, Position]:
        """The same as an `ExtremeRanker`'s run, with a look at the rule's error."""
        network, end = super()._run(name, data, valid, rate, course, member, race)
        lists, lost = self.learner.lists, self.learner.lost
        self.found.append(
            {
                "learning rate": rate,
                "error of log P, first weights": self.before,
                "error of log P, last weights": self._error(network, data),
                "lists without a gradient": lost / lists if lists else None,
            }
        )
        return network, end

    def _error(self, network: Network, data: MultiLabelData) -> float:
        """The median over some lists of the rule's log P minus the true one."""
        rows = np.flatnonzero(np.diff(data.Y.indptr))[:LOOKED_AT]
        tiers = Tiers.from_positives(data.Y[rows])
        network.eval()
        with torch.no_grad():
            hidden = network(SparseRows.of(self.ranker.features_(data.X[rows])))
            scores = torch.addmm(network.label_bias, hidden, network.labels.T)
            exact = tr.log_prob(scores.double(), tiers)
            lists = range_numbers(tiers.lengths)
            named, _ = padded(scores[lists, tiers.items], tiers.lengths)
            scores[lists, tiers.items] = -torch.inf
            log_prob, _ = self.rule(named, torch.logsumexp(scores, 1))
        network.train()
        return float((log_prob - exact).median())


def fit_midpoint(
    settings: Mapping[str, Any],
    seed: int,
    data: MultiLabelData,
    state: Path | None = None,
    watch: Watch | None = None,
) -> tuple[ExtremeRanker, dict[str, Any]]:
    """An `ExtremeRanker` that learned by the rule, and what is to be said of it.

    `settings` are those of `ExtremeRanker`, with "intervals" and "shift" of the rule. First
    weights, validation rows and batches are those of an `ExtremeRanker` with this seed.
    """
    own = dict(settings)
    rule = Rule(own.pop("intervals"), own.pop("shift"))
    ranker = ExtremeRanker(random_state=seed, **own)
    rates = checked_rates(ranker, data, None)
    if ranker.refit or ranker.skip or ranker.members > 1 or ranker.negatives is not None:
        raise ValueError("the midpoint rule is trained without refit, skip, members and negatives")
    ranker.features_ = Features.learned(data.X, ranker.features)
    ranker.n_features_in_, ranker.n_labels_ = data.n_features, data.n_labels
    ranker.n_rows_ = data.n_rows
    ranker.label_counts_ = np.bincount(data.Y.indices, minlength=data.n_labels)
    identity = {"rule": rule, "settings": own, "seed": seed, "data": digest(data.X, data.Y)}
    runs = MidpointRuns(ranker, Checkpoint(state, identity), seed, watch, rule)
    taught, held_out = hold_out(data, ranker.validation, seed)
    runs.choose_rate(taught, held_out, rates)
    chosen = next(each for each in runs.found if each["learning rate"] == ranker.learning_rate_)
    from extreme_fits import training_facts

    return ranker, {**training_facts(ranker), **chosen}
