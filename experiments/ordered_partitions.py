"""Tran et al. (2010), table 1: nine methods, with first-order and with second-order features.

    python experiments/ordered_partitions.py --data FOLDER [--out DIR]

Tran, Phung and Venkatesh (2010), section 5: linear scorers on standardised features, by L-BFGS to
a relative improvement below 1e-5 or 100 iterations, or by 1,000 stochastic steps of 0.1 where the
gradient is drawn by MCMC. docs/experiments.md says what to know about it.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from command import Outcome, Progress, machine, parser, run, show
from folds import DataSet, Fold
from page import Cell, Table, facts, page
from plots import table_plot
from printed import BASELINES, MEASURES, ORDERS, PMOP, TABLE_1
from scores import Figure, Scores, Values, p_text
from sklearn.exceptions import ConvergenceWarning

from tierrank.data import RankingData
from tierrank.metrics import err, kendall_tau_b, ndcg
from tierrank.ranking.features import SecondOrder, Standardize
from tierrank.ranking.linear import LinearRanker
from tierrank.training import Progress as Step

REFERENCE = "PL-Partition"
LIST_MLE, RANDOM_TIES = "ListMLE", "ListMLE, random ties"
PAPER = (
    "Tran, Phung and Venkatesh (2010), Probabilistic Models over Ordered Partitions with "
    "Application in Learning to Rank"
)

NOTES = (
    "Unless this is set1.train.txt of the Yahoo! challenge, the data differ from the paper's "
    "(19,944 queries, 473,134 documents, 519 features, grades 0 to 4). Compare who is ahead, and "
    "not the values.",
    "ERR is the paper's, V(r) = (2^r − 1) / 16. Where the largest grade is 2, as in MQ2007 and "
    "MQ2008, V is at most 3/16 and ERR is small; --max-grade 2 divides by 4 instead.",
    "NDCG has gains 2^r − 1; tied scores are averaged, and a query without a relevant document "
    "counts as 0 (the paper does not say).",
    "Nothing is tuned, so only the training part of a fold is learned from; a validation part is "
    "left aside.",
    "Second-order features are the first-order ones and the products of two of them, squares "
    "included, chosen on the training part by their correlation with the label.",
    "ListMLE takes tied documents in the order of the file, as a sort leaves them. Where that "
    "order means something (LETOR's documents are in the order of their names), ListMLE learns it; "
    "with random ties, tied documents are put in a random order, once. RankNet, Ranking SVM and "
    "Rank Regress leave tied pairs out.",
    "An iteration of stochastic ascent is one step by the mean gradient of 32 queries. The paper "
    "does not say how many queries its steps see.",
    "PMOP-MH is algorithm 1 as printed, whose chain does not have the intended distribution; the "
    "corrected one stands below. PL-Partition is the exact likelihood of the tiers.",
    "Figures are means over the test queries of all folds, with 95 % bootstrap intervals (BCa); "
    "p-values are those of a paired randomisation test on the same queries, two-sided.",
    "The second printed statement does not hold in the printed table: with second-order features, "
    "RankNet (ERR 0.5049) is ahead of PMOP-Gibbs (0.5040).",
)

Lookup = Callable[[str, str, str], float]  # method, order, measure


@dataclass
class Report:
    """All that is shown of a run.

    Parameters
    ----------
    scores
        of every method, under both kinds of features
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
        """All means with their intervals, and what is printed."""
        return self.scores.figures(TABLE_1)

    @cached_property
    def _known(self) -> dict[tuple[str, str, str], Figure]:
        return {(f.method, f.features, f.measure): f for f in self.figures}

    @property
    def _methods(self) -> list[str]:
        return list(dict.fromkeys(figure.method for figure in self.figures))

    def outcome(self, products: dict[str, int]) -> Outcome:
        """The files; `products` says how many were chosen in each fold."""
        plot = table_plot(self.figures, self._methods, MEASURES, self.data, "Yahoo!")
        about = machine()
        text = page(
            f"Ordered partitions, table 1: {self.data}",
            [
                f"{PAPER}, table 1, run again with tierrank on {self.data}. The printed figures, "
                "of the Yahoo! challenge's data, stand beside ours.",
            ],
            self.tables(),
            plot,
            f"Above: our means on {self.data}, with 95 % intervals. Below: what the paper prints, "
            "on the Yahoo! challenge's data.",
            self.notes,
            [facts("Settings", self.settings), facts("Machine", about)],
        )
        more = {
            "experiment": "Tran et al. (2010), table 1",
            "settings": self.settings,
            "machine": about,
            "notes": self.notes,
            "products": products,
            "statements": [
                dict(zip(("statement", "printed", "here"), s, strict=True)) for s in self._said()
            ],
            "by fold": self.scores.by_fold(),
        }
        return Outcome(self.figures, plot, text, more)

    def tables(self) -> list[Table]:
        """What the paper says, and table 1 for both kinds of features."""
        rows = [[Cell(cell) for cell in said] for said in self._said()]
        columns = ["statement", "printed", f"{self.data}"]
        said = Table("What the paper concludes", columns, rows, kind="words")
        return [said, *map(self._table_1, ORDERS)]

    def _table_1(self, order: str) -> Table:
        rows = []
        best = {
            m: max(f.mean for f in self.figures if f.measure == m and f.features == order)
            for m in MEASURES
        }
        top = {
            m: max(TABLE_1[method, order, m] for method in (*BASELINES, *PMOP)) for m in MEASURES
        }
        for method in self._methods:
            cells = [Cell(method)]
            for measure in MEASURES:
                figure = self._known[method, order, measure]
                reach = f"[{figure.low:.4f}, {figure.high:.4f}]"
                cells.append(Cell(f"{figure.mean:.4f}", reach, best=figure.mean == best[measure]))
                printed = "–" if figure.printed is None else f"{figure.printed:.4f}"
                cells.append(Cell(printed, kind="printed", best=figure.printed == top[measure]))
            last = self._known[method, order, "NDCG@5"]
            cells.append(Cell("–" if last.p_value is None else p_text(last.p_value)))
            rows.append(cells)
        agreement = ", ".join(f"{m} {self._agreement(order, m):+.2f}" for m in MEASURES)
        return Table(
            f"{order.capitalize()} features",
            ["method", *("ours", "printed") * len(MEASURES), "p"],
            rows,
            groups=[("", 1), *((measure, 2) for measure in MEASURES), ("NDCG@5", 1)],
            text="p: of the difference to PL-Partition in NDCG@5. In italics: not in the paper. "
            f"How far the order of the nine methods agrees with the printed one (Kendall's tau-b): "
            f"{agreement}.",
            row_kinds=["" if method in BASELINES + PMOP else "ours" for method in self._methods],
        )

    def _agreement(self, order: str, measure: str) -> float:
        methods = [*BASELINES, *PMOP]
        ours = [self._known[method, order, measure].mean for method in methods]
        return float(kendall_tau_b(ours, [TABLE_1[method, order, measure] for method in methods]))

    def _said(self) -> list[tuple[str, ...]]:
        """The paper's conclusions, as its own table and as ours have them."""

        def ours(method: str, order: str, measure: str) -> float:
            return self._known[method, order, measure].mean

        def printed(method: str, order: str, measure: str) -> float:
            return TABLE_1[method, order, measure]

        def over(one: tuple[str, str], other: tuple[str, str]) -> str:
            gain = self.scores.over(one, other, "ERR")
            return f"{gain} (p {p_text(gain.p_value, '= ')})"

        def printed_over(one: tuple[str, str], other: tuple[str, str]) -> str:
            (order, method), (other_order, other_method) = one, other
            ratio = printed(method, order, "ERR") / printed(other_method, other_order, "ERR")
            return f"{ratio - 1:+.2%}"

        first, second = ORDERS
        mh, fd = "PMOP-MH", "PMOP-FD"
        return [
            (
                "Second-order features improve nearly all baselines (ERR)",
                *(_improved(of) for of in (printed, ours)),
            ),
            *(
                (
                    f"PMOP is ahead of all baselines, {order} (ERR)",
                    *(_ahead(of, order) for of in (printed, ours)),
                )
                for order in ORDERS
            ),
            (
                "PMOP-MH over ListMLE, first-order (ERR)",
                printed_over((first, mh), (first, LIST_MLE)),
                over((first, mh), (first, LIST_MLE)),
            ),
            (
                "The same, over ListMLE with ties at random",
                "–",
                over((first, mh), (first, RANDOM_TIES)),
            ),
            (
                "PMOP-FD, second-order over first-order (ERR)",
                printed_over((second, fd), (first, fd)),
                over((second, fd), (first, fd)),
            ),
        ]


def _improved(of: Lookup) -> str:
    better = [m for m in BASELINES if of(m, ORDERS[1], "ERR") > of(m, ORDERS[0], "ERR")]
    return f"{len(better)} of {len(BASELINES)}"


def _ahead(of: Lookup, order: str) -> str:
    best = max(BASELINES, key=lambda method: of(method, order, "ERR"))
    behind = [method for method in PMOP if of(method, order, "ERR") <= of(best, order, "ERR")]
    return f"not {', '.join(behind)}: {best} is ahead" if behind else "yes"


class Method(NamedTuple):
    """An objective by its name, with options."""

    objective: str
    options: dict[str, Any] | None = None


METHODS = {
    "Rank Regress": Method("rank-regress"),
    "RankNet": Method("ranknet"),
    "Ranking SVM": Method("ranksvm"),
    LIST_MLE: Method("listmle", {"ties": "input"}),
    "PairTies-D": Method("davidson"),
    "PairTies-RK": Method("rao-kupper"),
    "PMOP-FD": Method("pmop-fd"),
    "PMOP-Gibbs": Method("pmop-gibbs"),
    "PMOP-MH": Method("pmop-mh", {"as_printed": True}),
    RANDOM_TIES: Method("listmle", {"ties": "random"}),
    "PMOP-MH, corrected": Method("pmop-mh"),
    REFERENCE: Method("pl-partition"),
}


class Matrices(NamedTuple):
    """The features of a fold's training and test rows."""

    train: Any
    test: Any


def first_order(fold: Fold) -> Matrices:
    """Standardised over the training rows."""
    scale = Standardize().fit(fold.train.X)
    return Matrices(scale.transform(fold.train.X), scale.transform(fold.test.X))


def second_order(first: Matrices, y: Values, threshold: float, most: int | None) -> Matrices:
    """The same, and products whose correlation with the training labels is beyond ±threshold."""
    products = SecondOrder(threshold, max_features=most).fit(first.train, y)
    cells = (len(first.train) + len(first.test)) * products.n_features_out_
    if (memory := _memory()) is not None and 8 * cells > memory:
        raise ValueError(
            f"{len(products.pairs_):,} products are beyond the threshold of {threshold:g}, which "
            f"takes {8 * cells / 2**30:.0f} GiB; this machine has {memory / 2**30:.0f}. Raise "
            "--threshold, or keep the strongest alone with --max-products."
        )
    return Matrices(products.transform(first.train), products.transform(first.test))


def measured(scores: Values, data: RankingData, max_grade: float) -> dict[str, Values]:
    """[lists] ERR, NDCG@1 and NDCG@5, by name."""
    rows: dict[str, Any] = {"qid": data.qid, "reduction": "none"}
    return {
        "ERR": err(scores, data.y, **rows, max_grade=max_grade),
        "NDCG@1": ndcg(scores, data.y, **rows, k=1),
        "NDCG@5": ndcg(scores, data.y, **rows, k=5),
    }


def experiment(chosen: argparse.Namespace) -> None:
    """Train and test on every fold; write and print what came of it."""
    data = DataSet(chosen.data, chosen.split, chosen.seed, 2 if chosen.quick else None)
    scores = Scores(REFERENCE, resamples=200 if chosen.quick else 10_000)
    products: dict[str, int] = {}
    with Progress(len(data) * len(ORDERS) * len(METHODS)) as progress:
        for fold in data:
            first = first_order(fold)
            progress.say(f"{fold.name}, choosing products")
            second = second_order(first, fold.train.y, chosen.threshold, chosen.max_products)
            products[fold.name] = second.train.shape[1] - first.train.shape[1]
            for order, X in zip(ORDERS, (first, second), strict=True):
                for name, method in METHODS.items():
                    what = f"{fold.name}, {order}, {name}"
                    start = time.perf_counter()
                    ranker = train(method, X.train, fold.train, chosen, progress, what)
                    seconds = time.perf_counter() - start
                    values = measured(ranker.predict(X.test), fold.test, chosen.max_grade)
                    scores.add(order, name, values, seconds)
                    progress.step(f"{what}: NDCG@5 {values['NDCG@5'].mean():.4f}")
    settings = {
        "data": f"{data.name}, {len(data)} fold{'s' * (len(data) != 1)}",
        "test queries": f"{len(scores.values(ORDERS[0], REFERENCE, 'ERR')):,}",
        "first-order features": str(first.train.shape[1]),
        "products chosen": f"{', '.join(f'{n:,} ({fold})' for fold, n in products.items())}; "
        f"absolute correlation with the label above {chosen.threshold:g}",
        "L-BFGS": "until the loss improves by less than 1e-5 of it, at most 100 iterations",
        "stochastic ascent": "1,000 steps of 0.1, each by 32 queries; 3 MCMC sweeps a query",
        "penalty": "none",
        "largest grade of ERR": f"{chosen.max_grade:g}",
        "seed": str(chosen.seed),
    }
    if chosen.quick:
        settings["quick"] = "a trial of 5 iterations, whose figures mean nothing"
    notes = [*data.notes, *_about_products(products, chosen.threshold), *NOTES]
    report = Report(scores, data.name, settings, notes)
    folder = chosen.out or Path("out", f"ordered-partitions-{data.name}")
    report.outcome(products).write(folder)
    for table in report.tables():
        show(table)
    print(f"{folder}/page.html has it all.")


def train(
    method: Method,
    X: Any,
    rows: RankingData,
    chosen: argparse.Namespace,
    progress: Progress,
    what: str,
) -> LinearRanker:
    """Fit one method as the paper does."""

    def watch(step: Step) -> None:
        progress.say(f"{what}: {step.unit} {step.done} of {step.total}")

    ranker = LinearRanker(
        method.objective,
        objective_params=method.options,
        features=None,  # made before, once for all methods
        max_iter=5 if chosen.quick else None,
        random_state=chosen.seed,
    )
    with warnings.catch_warnings():
        # The paper stops after 100 iterations, wherever it stands.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(X, rows.y, qid=rows.qid, watch=watch)


def _about_products(products: dict[str, int], threshold: float) -> list[str]:
    without = [fold for fold, number in products.items() if not number]
    if not without:
        return []
    return [
        f"No product has a correlation beyond {threshold:g} in {', '.join(without)}: there, the "
        "second-order features are the first-order ones. A lower --threshold chooses some."
    ]


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0])
    options.add_argument(
        "--threshold", type=float, default=0.15,
        help="of the correlation that a product must have with the label (default 0.15)",
    )  # fmt: skip
    options.add_argument(
        "--max-products", type=int, metavar="N", help="keep only the N strongest products"
    )
    options.add_argument(
        "--max-grade", type=float, default=4,
        help="ERR has V(r) = (2^r − 1) / 2^this (default 4, as printed)",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
