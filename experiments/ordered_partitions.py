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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from command import Progress, parser, run, show
from folds import DataSet, Fold
from ordered_partitions_report import LIST_MLE, NOTES, RANDOM_TIES, REFERENCE, Report
from printed import ORDERS
from scores import Scores, Values
from sklearn.exceptions import ConvergenceWarning

from tierrank.data import RankingData
from tierrank.metrics import err, ndcg
from tierrank.ranking.features import SecondOrder, Standardize
from tierrank.ranking.linear import LinearRanker
from tierrank.training import Progress as Step


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
