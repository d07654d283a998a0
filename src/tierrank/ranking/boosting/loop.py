"""The boosting loop: tree after tree, in segments that can be taken up again.

A library's own state cannot be saved to the last bit, so it never outlives a segment: after
every `SEGMENT` trees a new booster starts from the scores so far, with a seed of its own. A fit
that was stopped goes on from the last such start, and computes what it would have computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank.ranking.boosting.derivatives import BoostingObjective, Derivatives
from tierrank.ranking.boosting.forest import Forest
from tierrank.ranking.boosting.settings import Grower
from tierrank.ranking.inputs import Array
from tierrank.storage import Arrays
from tierrank.training import Checkpoint, History, Interruption, Watch

SEGMENT = 25
RUN_AWAY = 1e9  # no score that means anything is as large


@dataclass(frozen=True)
class Standing:
    """All that a fit knows between two segments.

    Attributes
    ----------
    forest
        the trees so far
    scores, valid_scores
        [rows] what they say of the training and validation rows, as the library added it up
    history, parameters
        the curve so far, and the objective's own parameters
    finished
        whether no tree is to be added
    """

    forest: Forest
    scores: Array
    valid_scores: Array | None
    history: dict[str, Any]
    parameters: dict[str, float]
    finished: bool = False

    def save(self, checkpoint: Checkpoint, seed: int) -> None:
        state = {
            "seed": seed,
            "n_features": self.forest.n_features,
            "history": self.history,
            "parameters": self.parameters,
            "finished": self.finished,
        }
        tensors = {f"forest.{name}": array for name, array in self.forest.arrays().items()}
        tensors["scores"] = self.scores
        if self.valid_scores is not None:
            tensors["valid_scores"] = self.valid_scores
        checkpoint.save(state, tensors)

    @classmethod
    def from_saved(cls, state: dict[str, Any], tensors: Arrays) -> Standing:
        forest = {name: tensors[f"forest.{name}"] for name in Forest.KINDS}
        return cls(
            Forest.from_arrays(state["n_features"], forest),
            tensors["scores"],
            tensors.get("valid_scores"),
            state["history"],
            state["parameters"],
            state["finished"],
        )


@dataclass
class Boosting:
    """One fit.

    Parameters
    ----------
    grower, objective
        what adds trees, and what they are to improve
    trees, patience
        at most so many, and so many without a better metric
    metric
        from [rows] validation scores; None without validation data
    seed
        of everything that is drawn
    """

    grower: Grower
    objective: BoostingObjective
    trees: int
    patience: int | None
    metric: Callable[[Array], float] | None
    seed: int

    def run(
        self, standing: Standing, checkpoint: Checkpoint, watch: Watch | None
    ) -> tuple[Standing, bool]:
        """Go on from a standing to the end, or until Ctrl-C; say whether it was interrupted."""
        with Interruption() as interruption:
            while not standing.finished:
                before = standing
                standing, stopped = self._segment(before, interruption, watch)
                if stopped:
                    before.save(checkpoint, self.seed)
                    return standing, True
                if checkpoint.due or standing.finished:
                    standing.save(checkpoint, self.seed)
        return standing, False

    def _segment(
        self, before: Standing, interruption: Interruption, watch: Watch | None
    ) -> tuple[Standing, bool]:
        history = History.from_json(
            {k: list(v) if isinstance(v, list) else v for k, v in before.history.items()}
        )
        number = len(before.forest)
        seeds = np.random.SeedSequence([self.seed, number]).generate_state(2)
        self.objective.parameters = before.parameters
        self.objective.restart(int(seeds[0]))
        self.grower.start(before.scores, before.valid_scores, int(seeds[1]))
        scores = before.scores
        derivatives = self._derivatives(scores, number)
        last = min(number + SEGMENT, self.trees)
        finished = stopped = False
        while number < last and not (finished or stopped):
            if not self.grower.grow(derivatives.gradient, derivatives.hessian):
                finished = True
                break
            number += 1
            scores = self.grower.scores()
            derivatives = self._derivatives(scores, number)
            metric = None if self.metric is None else self.metric(self.grower.valid_scores())
            history.add(number, derivatives.loss, metric)
            finished = number == self.trees or (
                self.patience is not None and history.since_best() >= self.patience
            )
            if watch is not None:
                watch(history.progress(self.trees))
            stopped = interruption.asked and not finished
        grown = self.grower.forest().first(number - len(before.forest))
        if not stopped and grown.is_leaf.all():  # nothing but constants
            finished = True
        parts = [before.forest.arrays(), grown.arrays()]
        valid_scores = None if self.metric is None else self.grower.valid_scores()
        standing = Standing(
            Forest.concatenate(grown.n_features, parts),
            scores,
            valid_scores,
            history.to_json(),
            self.objective.parameters,
            finished,
        )
        return standing, stopped

    def _derivatives(self, scores: Array, trees: int) -> Derivatives:
        advice = "try a smaller learning_rate, or a larger l2 or min_hessian_per_leaf"
        if not np.abs(scores).max() < RUN_AWAY:  # or NaN
            raise ValueError(f"the scores have run away to ±∞ after {trees} trees: {advice}")
        derivatives = self.objective(scores)
        if not (np.isfinite(derivatives.loss) and np.isfinite(derivatives.gradient).all()):
            raise ValueError(
                f"the loss is {derivatives.loss:g} after {trees} trees, or its slope not finite: "
                f"{advice}"
            )
        return derivatives
