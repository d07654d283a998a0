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
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import Outcome, Progress, machine, parser, run, show
from descent import Floats, Loss, Stop, descend
from folds import DataSet, Fold
from page import Cell, Table, facts, page
from plots import curve_plot
from printed import IMPROVEMENTS
from scores import Figure, Scores, p_text

from tierrank import losses, metrics
from tierrank.data import RankingData
from tierrank.ranking.features import Standardize
from tierrank.tiers.arrays import group_rows

FEATURES = "first-order"
DEPTHS = range(1, 11)
NEW = "p-ListMLE"
REFERENCE = "ListMLE"
PAPER = "Lan, Zhu, Guo, Niu and Cheng (2014), Position-Aware ListMLE"

NOTES = (
    "Unless this is MQ2007-list or MQ2008-list, the data differ from the paper's: there every "
    "query has a full order of hundreds of documents, here it has grades with ties. Compare "
    "who is ahead, and not the values.",
    "ListMLE and p-ListMLE need a strict order: tied documents are put in a random one, once. "
    "The two rows of PL-Partition are the same objectives with the ties summed over; they are "
    "not in the paper.",
    "The paper leaves open what an iteration is, and what the stopping rule compares. Here an "
    "iteration is a pass over the training queries, in steps by the mean gradient of a batch of "
    "them; a rule is met when the mean loss changes by less, relative to the pass before.",
    "Features are standardised over the training part. All methods are trained and chosen alike; "
    "the paper trains ListNet and RankCosine as their own papers have it.",
    "NDCG has gains 2^label − 1 (or, with --gain linear, the label) and discounts 1 / log2(1 + "
    "rank); tied scores are averaged, and a query without a relevant document counts as 0. Labels "
    "of a full order run to a thousand, and 2^label overflows: all gains of a query are divided by "
    "2^(its largest label), which changes no NDCG.",
    "Figures are means over the test queries of all folds, with 95 % bootstrap intervals (BCa); "
    "p-values are those of a paired randomisation test on the same queries, two-sided.",
    "p-ListMLE's weights are 2^(n − i) − 1, divided by their sum over the list.",
)


@dataclass
class Report:
    """All that is shown of a run.

    Parameters
    ----------
    scores
        of every method, by NDCG@1 … NDCG@10
    data
        the name of the data set
    settings, notes
        how it was run, and what to know about it
    """

    scores: Scores
    data: str
    settings: dict[str, str]
    notes: list[str]

    @cached_property
    def figures(self) -> list[Figure]:
        """All means with their intervals. The paper prints none."""
        return self.scores.figures({})

    def outcome(self, choices: list[dict[str, Any]]) -> Outcome:
        """The files; `choices` says what was chosen on the validation parts."""
        curves = {
            method: [self.scores.mean(FEATURES, method, f"NDCG@{k}") for k in DEPTHS]
            for method in self._methods
        }
        plot = curve_plot(curves, f"{self.data}: test NDCG@k, means over the queries")
        about = machine()
        text = page(
            f"p-ListMLE against ListMLE, ListNet and RankCosine: {self.data}",
            [
                f"{PAPER}, section 6, run again with tierrank on {self.data}. The paper prints six "
                "improvements and a figure without numbers; the improvements stand beside ours.",
            ],
            self.tables(),
            plot,
            f"Test NDCG@1 to NDCG@10 on {self.data}, as in the paper's figure 1.",
            self.notes,
            [facts("Settings", self.settings), facts("Machine", about)],
        )
        more = {
            "experiment": "Lan et al. (2014), section 6",
            "settings": self.settings,
            "machine": about,
            "notes": self.notes,
            "printed": IMPROVEMENTS,
            "improvements": {
                other: self.scores.over((FEATURES, NEW), (FEATURES, other), "NDCG@10")._asdict()
                for other in IMPROVEMENTS
            },
            "chosen": choices,
            "by fold": self.scores.by_fold(),
        }
        return Outcome(self.figures, plot, text, more)

    def tables(self) -> list[Table]:
        """The improvements beside the printed ones, and all the curves."""
        return [self._improvements(), self._curves()]

    @property
    def _methods(self) -> list[str]:
        return list(dict.fromkeys(figure.method for figure in self.figures))

    def _improvements(self) -> Table:
        rows = []
        for other, printed in IMPROVEMENTS.items():
            here = self.scores.over((FEATURES, NEW), (FEATURES, other), "NDCG@10")
            cells = [Cell(f"{value:+.2f}%", kind="printed") for value in printed.values()]
            rows.append([Cell(other), *cells, Cell(str(here)), Cell(p_text(here.p_value))])
        columns = ["over", *next(iter(IMPROVEMENTS.values())), self.data, "p"]
        return Table(
            f"By how much {NEW} improves NDCG@10", columns, rows,
            groups=[("", 1), ("printed", 2), ("ours", 2)],
            text="Relative differences of the means. p is two-sided, from a paired randomisation "
            "test over the test queries; the paper gives none.",
        )  # fmt: skip

    def _curves(self) -> Table:
        known = {(figure.method, figure.measure): figure for figure in self.figures}
        measures = [f"NDCG@{k}" for k in DEPTHS]
        best = {m: max(known[method, m].mean for method in self._methods) for m in measures}
        rows = []
        for method in self._methods:
            cells = []
            for m in measures:
                figure = known[method, m]
                small = f"[{figure.low:.4f}, {figure.high:.4f}]" if m == measures[-1] else ""
                cells.append(Cell(f"{figure.mean:.4f}", small, best=figure.mean == best[m]))
            rows.append([Cell(method), *cells])
        kinds = ["ours" if method.startswith("PL-") else "" for method in self._methods]
        columns = ["method", *(f"@{k}" for k in DEPTHS)]
        return Table(
            f"Test NDCG@k on {self.data}", columns, rows, row_kinds=kinds,
            text="Means over the test queries, with a 95 % interval for the last. In italics: not "
            "in the paper.",
        )  # fmt: skip


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
