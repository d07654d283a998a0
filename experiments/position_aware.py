"""Lan et al.'s (2014) comparison: p-ListMLE against ListMLE, ListNet and RankCosine.

    python experiments/position_aware.py --data FOLDER [--out DIR]

Lan, Zhu, Guo, Niu and Cheng (2014), section 6: a linear scorer by stochastic gradient descent;
learning rate and stopping rule are chosen from 0.1, 0.01, …, 0.00001 by NDCG@10 on the validation
part. docs/experiments.md says what to know about it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import Progress, parser, run, show
from descent import Floats, Loss, Stop, descend
from folds import DataSet, Fold
from position_aware_report import DEPTHS, FEATURES, NEW, NOTES, REFERENCE, Report
from scores import Scores

from tierrank import losses, metrics
from tierrank.data import RankingData
from tierrank.ranking.features import Standardize
from tierrank.tiers.labels import group_rows

POWERS = (0.1, 0.01, 0.001, 0.0001, 0.00001)


class Method(NamedTuple):
    """An objective, and whether it sees ties broken at random."""

    loss: Loss
    strict: bool = False


METHODS = {
    NEW: Method(partial(losses.p_list_mle, reduction="none"), strict=True),
    REFERENCE: Method(partial(losses.list_mle, reduction="none"), strict=True),
    "ListNet": Method(partial(losses.list_net, reduction="none")),
    "RankCosine": Method(partial(losses.rank_cosine, reduction="none")),
    "PL-Partition, α = gain": Method(partial(losses.pl_partition, alpha="gain", reduction="none")),
    "PL-Partition": Method(partial(losses.pl_partition, reduction="none")),
}


def relative_gains(labels: Floats, qid: Any, gain: str) -> Floats:
    """Gains up to a factor that is the query's own, so that NDCG is the same and none overflows.

    (2^l − 1) / 2^L with L the largest label of the query; or the labels as they are.
    """
    if gain == "linear":
        return labels
    of_row, keys = group_rows(np.asarray(qid), len(labels))
    largest = np.zeros(len(keys))
    np.maximum.at(largest, of_row, labels)
    top = largest[of_row]
    return np.exp2(labels - top) - np.exp2(-top)


def ndcg(scores: Floats, data: RankingData, k: int, gain: str) -> Floats:
    """[lists] NDCG@k."""
    gains = relative_gains(data.y, data.qid, gain)
    values: Floats = metrics.ndcg(scores, gains, qid=data.qid, k=k, gain="linear", reduction="none")
    return values


def experiment(chosen: argparse.Namespace) -> None:
    """Train, choose and test on every fold; write and print what came of it."""
    data = DataSet(chosen.data, chosen.split, chosen.seed, 2 if chosen.quick else None)
    powers = POWERS[:2] if chosen.quick else POWERS
    passes = min(chosen.passes, 5) if chosen.quick else chosen.passes
    scores = Scores(REFERENCE, resamples=200 if chosen.quick else 10_000)
    choices: list[dict[str, Any]] = []
    with Progress(len(data) * len(METHODS)) as progress:
        for fold in data:
            trial = _Trial(data.with_validation(fold), powers, passes, chosen)
            for name, method in METHODS.items():
                start = time.perf_counter()
                stops = trial.train(method, f"{fold.name}, {name}", progress)
                seconds = time.perf_counter() - start
                best, valid = trial.choose(stops)
                values = trial.test(best)
                scores.add(FEATURES, name, values, seconds)
                choices.append(
                    {
                        "fold": fold.name, "method": name, "learning rate": best.rate,
                        "tolerance": best.tolerance, "passes": best.passes,
                        "validation NDCG@10": valid,
                    }
                )  # fmt: skip
                progress.step(f"{fold.name}, {name}: NDCG@10 {values['NDCG@10'].mean():.4f}")
    settings = {
        "data": f"{data.name}, {len(data)} fold{'s' * (len(data) != 1)}",
        "test queries": f"{len(scores.values(FEATURES, REFERENCE, 'NDCG@10')):,}",
        "learning rates, and tolerances": ", ".join(f"{power:g}" for power in powers),
        "passes, at most": str(passes),
        "queries a step": str(chosen.batch),
        "gain": chosen.gain,
        "seed": str(chosen.seed),
    }
    if chosen.quick:
        settings["quick"] = "a trial of 5 passes, whose figures mean nothing"
    report = Report(scores, data.name, settings, [*data.notes, *NOTES])
    folder = chosen.out or Path("out", f"position-aware-{data.name}")
    report.outcome(choices).write(folder)
    for table in report.tables():
        show(table)
    print(f"{folder}/page.html has it all.")


class _Trial:
    """One fold: its parts, standardised, and what is tried on them."""

    def __init__(
        self, fold: Fold, powers: Sequence[float], passes: int, chosen: argparse.Namespace
    ) -> None:
        assert fold.valid is not None
        self.fold, self.valid = fold, fold.valid
        self.powers, self.passes, self.chosen = powers, passes, chosen
        scale = Standardize().fit(fold.train.X)
        self.X, self.X_valid, self.X_test = (
            scale.transform(part.X) for part in (fold.train, fold.valid, fold.test)
        )
        self.tiers = fold.train.tiers()
        # The order of a file is no accident (by name, in LETOR), and would be learned.
        self.strict = self.tiers.break_ties(at_random=True, generator=chosen.seed)

    def train(self, method: Method, what: str, progress: Progress) -> list[Stop]:
        """Descend by one method."""
        return descend(
            self.X, self.strict if method.strict else self.tiers, method.loss, rates=self.powers,
            tolerances=self.powers, passes=self.passes, batch=self.chosen.batch,
            seed=self.chosen.seed,
            watch=lambda number: progress.say(f"{what}: pass {number} of {self.passes}"),
        )  # fmt: skip

    def choose(self, stops: list[Stop]) -> tuple[Stop, float]:
        """The stop with the best validation NDCG@10; of equal ones, the first."""
        gain = self.chosen.gain
        values = [float(ndcg(self.X_valid @ s.coef, self.valid, 10, gain).mean()) for s in stops]
        number = int(np.argmax(values))
        return stops[number], values[number]

    def test(self, stop: Stop) -> dict[str, Floats]:
        """[lists] NDCG@k on the test part, by measure."""
        scores = self.X_test @ stop.coef
        return {f"NDCG@{k}": ndcg(scores, self.fold.test, k, self.chosen.gain) for k in DEPTHS}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0])
    options.add_argument(
        "--passes", type=int, default=500, help="over the training queries (default 500)"
    )
    options.add_argument("--batch", type=int, default=64, help="queries of a step (default 64)")
    options.add_argument(
        "--gain", choices=("exp2", "linear"), default="exp2",
        help="what a label is worth: 2^label − 1 (the default), or the label",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
