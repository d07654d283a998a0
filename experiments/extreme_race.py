"""Networks that train in turns, in one process, each for the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from command import Progress
from extreme_tables import NETWORKS
from printed import SIX

from tierrank.data import MultiLabelData
from tierrank.data.synthetic import label_sets
from tierrank.extreme.learner import LabelBatches, LabelLearner
from tierrank.extreme.network import top_labels
from tierrank.extreme.ranker import ExtremeRanker
from tierrank.extreme.runs import Runs, checked_rates
from tierrank.metrics import labels as label_metrics
from tierrank.training import Checkpoint
from tierrank.training.devices import own_randomness, seed_generators
from tierrank.training.loop import Diverged


@dataclass
class Contender:
    """A network in training, and how it did so far.

    Attributes
    ----------
    name
        of the method
    learner, batches, seed
        what takes steps, what from, and the seed of both
    seconds, steps
        spent, and taken
    points
        (seconds, steps, {measure: per cent}) after each turn
    top
        the last predictions
    """

    name: str
    learner: LabelLearner
    batches: LabelBatches
    seed: int
    seconds: float = 0.0
    steps: int = 0
    points: list[dict[str, Any]] = field(default_factory=list)
    top: Any = None

    @classmethod
    def of(
        cls, objective: str, settings: dict[str, Any], data: MultiLabelData, seed: int
    ) -> Contender:
        """With first weights that depend on the seed alone."""
        ranker = ExtremeRanker(objective, random_state=seed, accelerator="cpu", **settings)
        (rate,) = checked_rates(ranker, data, None)
        ranker.n_features_in_, ranker.n_labels_, ranker.n_rows_ = (
            data.n_features, data.n_labels, data.n_rows,
        )  # fmt: skip
        runs = Runs(ranker, Checkpoint(None, {}), seed, None)
        with own_randomness(torch.device("cpu")):
            seed_generators(seed, torch.device("cpu"))
            network = ranker._network()
            network.reset()
        learner = runs._learner(network, rate, data)
        batches = LabelBatches(data.X, data.Y, None, size=ranker.batch_rows, seed=seed)
        return cls(NETWORKS[objective], learner, batches, seed)

    def train(self, until: float) -> None:
        """Take steps until so many seconds are spent."""
        while self.seconds < until:
            start = time.perf_counter()
            epoch, step = divmod(self.steps, len(self.batches))
            if step == 0:
                self.batches.begin(epoch)
            draws = np.random.SeedSequence([self.seed, epoch, step]).generate_state(1, np.uint64)
            seed_generators(int(draws[0]) >> 1, self.learner.device)
            batch = self.batches.load(step, self.learner.share, self.learner.device)
            try:
                self.learner.learn(batch, False)
            except Diverged as diverged:
                where = f"{self.name}, step {self.steps + 1}"
                raise ValueError(f"{where}: {diverged}. {self.learner.advice}") from None
            self.steps += 1
            self.seconds += time.perf_counter() - start

    def judge(self, test: MultiLabelData, inverse: Any) -> None:
        """Note how it does."""
        with self.learner.evaluating():
            self.top, _ = top_labels([self.learner.network], test.X, 5)
        values = label_metrics.evaluate(self.top, test.Y, inverse_propensity=inverse)
        shares = {measure: 100 * values[measure] for measure in SIX}
        self.points.append({"seconds": self.seconds, "steps": self.steps, "values": shares})


def compete(
    contenders: Sequence[Contender],
    seconds: float,
    turn: float,
    test: MultiLabelData,
    inverse: Any,
    progress: Progress | None = None,
) -> None:
    """Take turns until each has had its seconds."""
    with own_randomness(torch.device("cpu")):
        for until in turn_ends(seconds, turn):
            for each in contenders:
                if progress:
                    progress.say(f"{each.name}: {each.seconds:.0f} of {seconds:.0f} s")
                each.train(until)
                each.judge(test, inverse)
                if progress:
                    value = each.points[-1]["values"]["P@5"]
                    rate = each.steps / max(each.seconds, 1e-9)
                    progress.step(
                        f"{each.name}: {each.seconds:.0f} of {seconds:.0f} s, {each.steps:,} steps "
                        f"({rate:.2f} a second), P@5 {value:.2f}"
                    )


def turn_ends(seconds: float, turn: float) -> Iterator[float]:
    """When the turns end, in seconds of each contender's own time."""
    turns = max(1, round(seconds / turn))
    return (seconds * (i + 1) / turns for i in range(turns))


def warm_up(objectives: Sequence[str], settings: dict[str, Any]) -> None:
    """Compile what is compiled on first use."""
    small, _ = label_sets("eurlex-4k", rows=(64, 8), features=60, labels=40)
    for objective in objectives:
        few = {**settings, "hidden": 8, "learning_rate": 1e-3}
        few["negatives"] = few.get("negatives") and 8
        Contender.of(objective, few, small, 0).train(1e-6)
