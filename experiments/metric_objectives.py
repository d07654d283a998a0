"""Objectives for a metric beside the likelihood: what NDCG@10 rankers reach by each.

    python experiments/metric_objectives.py --data DATA [--sets mq2008] [--seeds 3] [--folds 1]

DATA has mq2008, mslr-web10k-sample and lightgbm-rank. In a fold a ranker learns from the training
part by every objective, stops by NDCG@10 of the validation part, and is judged by the test part.
"likelihood + X" adds λ times the likelihood to X (approx-ndcg, expected-ndcg), with the λ of
`MIXED` that is best on the validation part. A query's value is the mean over the seeds (of samples
of rows and features in boosting, of first weights in networks). Tests are paired randomisation
tests over the queries against pl-partition, corrected by Holm's method for all of them. Nothing is
chosen by a test part, which each objective sees once.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command import Progress, machine
from defaults import folds

from tierrank._types import AnyArray
from tierrank.metrics import from_name, holm, paired_test
from tierrank.ranking.boosted import BoostedRanker
from tierrank.ranking.comparison import QueryFold
from tierrank.ranking.linear import LinearRanker
from tierrank.ranking.neural import NeuralRanker

SETS = ("lightgbm-rank", "mq2008", "mslr-web10k-sample")
RANKERS = ("linear", "boosted", "neural")
LIKELIHOOD = "pl-partition"
OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    LIKELIHOOD: (LIKELIHOOD, {}),
    "ndcg-loss2++": ("lambdaloss", {}),
    "ndcg-loss2": ("lambdaloss", {"weighting": "ndcg-loss2"}),
    "lambdarank": ("lambdaloss", {"weighting": "lambdarank"}),
    "approx-ndcg": ("approx-ndcg", {}),
    "expected-ndcg": ("expected-ndcg", {}),
    "neural-ndcg": ("neural-ndcg", {}),
    "pl-rank": ("pl-rank", {}),
}
MIXED = (0.003, 0.03, 0.3)  # λ, for the last two
METRIC = from_name("ndcg@10")


def fit(
    ranker: str, objective: str, options: dict[str, Any], fold: QueryFold, seed: int, trees: int
) -> Any:
    """A ranker that stopped by the validation part."""
    own: dict[str, Any] = {"objective_params": options, "random_state": seed}
    if ranker == "boosted":
        model: Any = BoostedRanker(objective, trees=trees, threads=1, **own)
    elif ranker == "neural":
        model = NeuralRanker(objective, **own)
    else:
        model = LinearRanker(objective, max_iter=100, **own)
    train, valid = fold.train, fold.valid
    assert valid is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # limits of iterations are part of the protocol
        return model.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid))


def values(model: Any, data: Any) -> AnyArray:
    """[queries] NDCG@10."""
    scores = model.predict(data.X, qid=data.qid)
    return np.asarray(METRIC(scores, data.y, qid=data.qid, reduction="none"))


def measured(
    ranker: str, labels: Sequence[str], fold: QueryFold, seed: int, trees: int
) -> dict[str, AnyArray]:
    """By objective, [queries] of the test part."""
    found = {}
    for label in labels:
        model = fit(ranker, *OBJECTIVES[label], fold, seed, trees)
        found[label] = values(model, fold.test)
    for label in (each for each in ("approx-ndcg", "expected-ndcg") if each in labels):
        models = [
            fit(ranker, label, {**OBJECTIVES[label][1], "likelihood": weight}, fold, seed, trees)
            for weight in MIXED
        ]
        best = max(models, key=lambda model: values(model, fold.valid).mean())
        found[f"likelihood + {label}"] = values(best, fold.test)
    return found


def table(ranker: str, found: dict[str, dict[str, AnyArray]]) -> str:
    """Means, and tests against the likelihood over all queries, as Markdown."""
    sets, labels = list(found), list(next(iter(found.values())))
    pooled = {label: np.concatenate([found[name][label] for name in sets]) for label in labels}
    tests = {
        label: paired_test(pooled[label], pooled[LIKELIHOOD])
        for label in labels
        if label != LIKELIHOOD
    }
    corrected = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    heads = " | ".join(f"{name} ({len(found[name][LIKELIHOOD])})" for name in sets)
    lines = [f"| {ranker} | {heads} | all | less {LIKELIHOOD} |"]
    lines.append("| --- " + "| ---: " * (len(sets) + 2) + "|")
    for label in labels:
        means = [found[name][label].mean() for name in sets] + [pooled[label].mean()]
        beside = ""
        if label in tests:
            test, p = tests[label], corrected[label]
            beside = f"{test.difference:+.4f} (p {test.p_value:.3f}, Holm {p:.3f})"
        lines.append(f"| {label} | {' | '.join(f'{mean:.4f}' for mean in means)} | {beside} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Compute, and print a table for each ranker."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--rankers", nargs="+", choices=RANKERS, default=list(RANKERS))
    options.add_argument(
        "--objectives", nargs="+", choices=OBJECTIVES, default=list(OBJECTIVES), metavar="NAME",
        help=f"beside {LIKELIHOOD}: {', '.join(list(OBJECTIVES)[1:])}",
    )  # fmt: skip
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--folds", type=int, help="only the first so many of a set")
    options.add_argument("--trees", type=int, default=300, help="at most")
    chosen = options.parse_args(arguments)
    everything = {name: list(folds(chosen.data, name, chosen.folds)) for name in chosen.sets}
    steps = len(chosen.rankers) * chosen.seeds * sum(map(len, everything.values()))
    tables = []
    labels = list(dict.fromkeys([LIKELIHOOD, *chosen.objectives]))
    with Progress(steps) as progress:
        for ranker in chosen.rankers:
            found: dict[str, dict[str, AnyArray]] = {}
            for name, parts in everything.items():
                by_fold: list[dict[str, AnyArray]] = []
                for fold in parts:
                    runs = []
                    for seed in range(chosen.seeds):
                        runs.append(measured(ranker, labels, fold, seed, chosen.trees))
                        progress.step(f"{ranker}, {name}, {fold.name}, seed {seed}")
                    by_fold.append({k: np.mean([run[k] for run in runs], axis=0) for k in runs[0]})
                found[name] = {k: np.concatenate([one[k] for one in by_fold]) for k in by_fold[0]}
            tables.append(table(ranker, found))
    print("\n\n".join(tables))
    print("\n" + "; ".join(f"{name}: {value}" for name, value in machine().items()))


if __name__ == "__main__":
    main()
