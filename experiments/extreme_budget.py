"""PL-Partition and PL-LB with the same time to train, on a set like Delicious-200K.

    python experiments/extreme_budget.py --minutes 8
    python experiments/extreme_budget.py --scale 0.05 --minutes 0.5    # a trial

Contenders take turns of a minute in one process, so that whatever else the machine does hits all
alike. They have the same first weights, batches and learning rate. After each turn they are judged
by a sample of the test rows; the time that takes does not count, nor does compiling. What was found
with a learning rate is kept in DIR/fits when its minutes are over.
"""

from __future__ import annotations

import argparse
import csv
import gc
import hashlib
import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command import Progress, run
from extreme_data import DataSet
from extreme_figures import Difference
from extreme_options import PAPER, folder_of, named_values, parser, source_from
from extreme_report import Curve, Report, budget_plot, difference_cell, notes_for
from extreme_tables import NETWORKS
from page import Cell, Table
from printed import SIX

from tierrank import storage
from tierrank.data import MultiLabelData
from tierrank.data.synthetic import label_sets
from tierrank.extreme.learner import LabelBatches, LabelLearner
from tierrank.extreme.network import Features, top_labels
from tierrank.extreme.ranker import ExtremeRanker, Runs, checked_rates
from tierrank.extreme.sharding import Shards
from tierrank.metrics import labels as label_metrics
from tierrank.metrics import paired_test
from tierrank.training import Checkpoint
from tierrank.training.loop import Diverged, own_randomness, seed_generators

LIKE = "delicious-200k"
SHOWN = ("P@1", "P@5", "PSP@5")
NOTES = (
    "Time is that of training alone: loading batches, loss, gradients and the optimiser. Judging "
    "and compiling do not count. Contenders take turns in one process.",
    "There is no early stopping and no validation: the last point is what the time bought.",
    "p-values are of the last point: a two-sided paired randomisation test over the sample of test "
    "rows.",
)


@dataclass(frozen=True)
class Round:
    """What was found with one learning rate: points and the last predictions, by method."""

    rate: float
    points: dict[str, list[dict[str, Any]]]
    top: dict[str, Any]


def _round(
    rate: float, data: DataSet, test: MultiLabelData, chosen: argparse.Namespace, folder: Path
) -> Round:
    """Let all compete with one learning rate, or read what came of it before."""
    settings = settings_of(chosen) | {"learning_rate": rate}
    identity = {
        "settings": settings, "methods": chosen.methods, "seed": chosen.seed,
        "minutes": chosen.minutes, "turn": chosen.turn, "rows": test.n_rows, "data": data.digest(),
    }  # fmt: skip
    text = json.dumps(identity, sort_keys=True).encode()
    key = f"budget-{rate:g}-{hashlib.sha256(text).hexdigest()[:12]}"
    names = [NETWORKS[method] for method in chosen.methods]
    if storage.exists(folder / "fits", key):
        content, arrays = storage.read(folder / "fits", key)
        return Round(rate, content["points"], {n: arrays[str(i)] for i, n in enumerate(names)})
    contenders = [
        Contender.of(method, settings, data.train, chosen.seed) for method in chosen.methods
    ]
    seconds = 60 * chosen.minutes
    with Progress(len(contenders) * len(list(turn_ends(seconds, chosen.turn)))) as progress:
        inverse = data.inverse_propensity()
        compete(contenders, seconds, chosen.turn, test, inverse, progress)
    points = {each.name: each.points for each in contenders}
    arrays = {str(i): each.top.astype(np.int32) for i, each in enumerate(contenders)}
    storage.write(folder / "fits", key, {**identity, "points": points}, arrays)
    return Round(rate, points, {each.name: each.top for each in contenders})


def settings_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Of all networks."""
    settings = {name: value for name, value in PAPER.items() if name != "learning_rate"}
    settings |= {"validation": 0.0}
    if chosen.negatives:
        settings |= {"negatives": chosen.negatives, "sampler": chosen.sampler}
    if chosen.quick:
        settings["hidden"] = 16
    return settings | named_values(chosen.set, "", ExtremeRanker())


def result_tables(rounds: Sequence[Round], test: MultiLabelData, inverse: Any) -> list[Table]:
    """The last points, and by how much the first method is ahead."""
    rows, ahead = [], []
    for each in rounds:
        first, *others = each.points
        last = {method: points[-1] for method, points in each.points.items()}
        for method, point in last.items():
            best = {m: max(p["values"][m] for p in last.values()) for m in SIX}
            cells = [
                Cell(f"{point['values'][m]:.2f}", best=point["values"][m] == best[m]) for m in SIX
            ]
            rows.append(
                [
                    Cell(method), Cell(f"{each.rate:g}"), Cell(f"{point['seconds'] / 60:.1f}"),
                    Cell(f"{point['steps']:,}"), *cells,
                ]
            )  # fmt: skip
        for other in others:
            cells = [
                difference_cell(_over(each.top[first], each.top[other], test, inverse, m))
                for m in SIX
            ]
            ahead.append([Cell(f"{other}, learning rate {each.rate:g}"), *cells])
    head = ["method", "learning rate", "minutes", "steps", *SIX]
    tables = [Table("After the same time, per cent", head, rows)]
    if ahead:
        title = f"By how much {first} is ahead, in percentage points"
        tables.append(Table(title, ["of", *SIX], ahead))
    return tables


def _over(one: Any, other: Any, test: MultiLabelData, inverse: Any, measure: str) -> Difference:
    metric = label_metrics.from_name(measure)
    mine, theirs = (100 * metric(top, test.Y, inverse, reduction="none") for top in (one, other))
    found = paired_test(mine, theirs, resamples=2000, generator=0)
    return Difference(found.difference, None, found.low, found.high, found.p_value)


def as_csv(rounds: Sequence[Round]) -> str:
    """A line a point."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["method", "learning rate", "seconds", "steps", *SIX])
    for each in rounds:
        for method, points in each.points.items():
            for point in points:
                values = [f"{point['values'][measure]:.4f}" for measure in SIX]
                seconds = f"{point['seconds']:.1f}"
                table.writerow([method, f"{each.rate:g}", seconds, point["steps"], *values])
    return text.getvalue()


def curves_of(rounds: Sequence[Round]) -> dict[str, dict[str, Curve]]:
    """For the plot."""
    curves = {}
    for each in rounds:
        for method, points in each.points.items():
            minutes = [point["seconds"] / 60 for point in points]
            name = method + f", learning rate {each.rate:g}" * (len(rounds) > 1)
            curves[name] = {
                m: Curve(minutes, [point["values"][m] for point in points], []) for m in SHOWN
            }
    return curves


def experiment(chosen: argparse.Namespace) -> None:
    """Let them compete; write and print what came of it."""
    if chosen.minutes <= 0 or chosen.turn <= 0 or chosen.test_rows < 1:
        raise ValueError("--minutes, --turn and --test-rows are numbers above 0")
    if not chosen.data and not chosen.synthetic:
        chosen.synthetic = LIKE
    data = source_from(chosen).load()
    folder = folder_of(chosen, data.name)
    order = np.random.default_rng(0).permutation(data.test.n_rows)[: chosen.test_rows]
    test = data.test.select(np.sort(order))
    warm_up(chosen.methods, settings_of(chosen))
    rounds = []
    for rate in chosen.rates:
        rounds.append(_round(rate, data, test, chosen, folder))
        gc.collect()  # networks are large
    report = Report(
        "budget",
        f"The same time to train: {data.name}",
        [
            f"{', '.join(NETWORKS[method] for method in chosen.methods)}: {chosen.minutes:g} "
            f"minutes of training each, judged by {test.n_rows:,} of the {data.judged}."
        ],
        result_tables(rounds, test, data.inverse_propensity()),
        budget_plot(curves_of(rounds), SHOWN),
        f"Measures on {data.name} against minutes of training.",
        {
            **data.facts(),
            "minutes, and seconds of a turn": f"{chosen.minutes:g}, {chosen.turn:g}",
            "seed": str(chosen.seed),
            "labels of a step": f"{chosen.negatives:,} drawn ({chosen.sampler})"
            if chosen.negatives
            else "all",
            **{key: str(value) for key, value in settings_of(chosen).items()},
        },
        notes_for(data, *NOTES),
        as_csv(rounds),
        {"rounds": [{"learning rate": each.rate, "points": each.points} for each in rounds]},
    )
    report.publish(folder)


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
        runs = Runs(ranker, Checkpoint(None, {}), seed, None, Shards())
        with own_randomness(torch.device("cpu")):
            seed_generators(seed, torch.device("cpu"))
            network = ranker._network()
            network.reset()
        learner = runs._learner(network, rate, data)
        ranker.features_ = Features.learned(data.X, ranker.features)
        batches = LabelBatches(
            data.X, data.Y, None, size=ranker.batch_rows, seed=seed, weighted=ranker.features_
        )
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
            self.top, _ = top_labels(
                [self.learner.network], test.X, 5, weighted=self.batches.weighted
            )
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


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0], seeds=None)
    options.add_argument(
        "--minutes", type=float, default=8.0, help="of training, for each (default 8)"
    )
    options.add_argument("--turn", type=float, default=60.0, help="seconds of a turn (default 60)")
    options.add_argument(
        "--methods", nargs="+", choices=tuple(NETWORKS), default=["pl-partition", "pl-lb"],
        metavar="METHOD", help=f"of {', '.join(NETWORKS)} (default pl-partition pl-lb)",
    )  # fmt: skip
    options.add_argument(
        "--rates", type=float, nargs="+", default=[1e-3], metavar="RATE",
        help="learning rates, one after the other (default 0.001)",
    )  # fmt: skip
    options.add_argument(
        "--test-rows", type=int, default=10_000, help="of the test rows (default 10000)"
    )
    options.add_argument(
        "--negatives", type=int, help="labels to draw in a step (default: all labels)"
    )
    options.add_argument(
        "--sampler", default="uniform", help="uniform, frequency or in-batch (default uniform)"
    )
    options.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE",
        help="other settings of ExtremeRanker, such as hidden=512 batch_rows=256",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
