"""Every model with every objective on LETOR folds, beside LightGBM's and XGBoost's own rankers.

    python experiments/letor.py --data FOLDER [--out DIR] [--models boosted] [--objectives ranknet]
    python experiments/letor.py --data FOLDER --trees leaves=8 row_fraction=0.7

One protocol for all: learn from a fold's training part, stop (trees, epochs) by NDCG@10 of its
validation part, and be judged once by its test part. All trees have the same settings.

What is done is kept in DIR as it goes: the same command again goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command import Progress, machine, parser, run
from sklearn.base import clone

from tierrank.data import RankingData, read_folds
from tierrank.losses import OBJECTIVES
from tierrank.metrics import from_name
from tierrank.ranking.boosted import BoostedRanker
from tierrank.ranking.comparison import QueryFold, Standing, compare, standings
from tierrank.ranking.features import Impute, QueryScale, Standardize
from tierrank.ranking.linear import LinearRanker
from tierrank.ranking.neural import NeuralRanker
from tierrank.ranking.peers import TreePeer, peer_from
from tierrank.report.plots import plot_standings
from tierrank.storage import replace_file

METRIC = "ndcg@10"
PEERS = {
    "LightGBM lambdarank": peer_from("lightgbm:lambdarank", threads=1),
    "LightGBM rank_xendcg": peer_from("lightgbm:rank_xendcg", threads=1),
    "XGBoost rank:ndcg": peer_from("xgboost:rank:ndcg", threads=1),
}
TREES = {
    "trees": 1000, "patience": 100, "learning_rate": 0.05, "leaves": 15, "min_rows_per_leaf": 50,
    "row_fraction": 1.0, "feature_fraction": 1.0,
}  # fmt: skip
FRACTIONS = ("row_fraction", "feature_fraction", "learning_rate", "l2")
# The papers break ties; rows are shuffled here, so that the order of the input says nothing.
BROKEN_TIES = {"listmle": {"ties": "input"}, "p-listmle": {"ties": "input"}}
# take minutes a fit, so only when they are named
SLOW = ("pmop-exact", "cox-discrete")
POSITION_AWARE = "pl-partition, alpha = gain"


def contenders(
    models: Sequence[str], objectives: Sequence[str], missing: bool, trees: dict[str, Any]
) -> dict[str, Any]:
    """Unfitted rankers by name, ours and theirs."""
    # A feature of MQ2007-agg is a place in an input ranking, so its rank in the query says as
    # much, and what was not ranked stands behind all.
    scaled = [QueryScale("rank"), Impute(1.1), Standardize()] if missing else [Standardize()]
    found: dict[str, Any] = {}
    for objective in objectives:
        options = {"objective_params": BROKEN_TIES.get(objective), "random_state": 0}
        if "linear" in models:
            found[f"linear, {objective}"] = LinearRanker(objective, features=scaled, **options)
        if "neural" in models:
            found[f"neural, {objective}"] = NeuralRanker(objective, features=scaled, **options)
        if "boosted" in models:
            found[f"boosted, {objective}"] = BoostedRanker(objective, **trees, **options)
    if "boosted" in models and "pl-partition" in objectives:
        gain = {"objective_params": {"alpha": "gain"}, "random_state": 0}
        found[f"boosted, {POSITION_AWARE}"] = BoostedRanker(**trees, **gain)
        xgboost = {**trees, "library": "xgboost", "min_rows_per_leaf": None, "random_state": 0}
        found["boosted by XGBoost, pl-partition"] = BoostedRanker(**xgboost)
    if "peers" in models:
        found.update({name: clone(peer).set_params(**trees) for name, peer in PEERS.items()})
    return found


class Journal:
    """What is done, a line a ranker and fold, so that a run can be taken up again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[tuple[str, str], dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                done = json.loads(line)
                self.lines[done["name"], done["fold"]] = done

    def add(self, done: dict[str, Any]) -> None:
        """Note what one ranker did in one fold."""
        self.lines[done["name"], done["fold"]] = done
        text = "".join(json.dumps(line) + "\n" for line in self.lines.values())
        replace_file(self.path, text.encode())


def folds_of(folder: Path, seed: int, first: int | None) -> Iterator[QueryFold]:
    """The folds, dense, with rows shuffled."""
    rng = np.random.default_rng(seed)
    for fold in read_folds(folder)[:first]:
        valid, test = fold.valid, fold.test
        if valid is None or test is None:
            raise ValueError(f"{folder}: {fold.name} lacks a validation or a test part.")
        yield QueryFold(fold.name, *(shuffled(part, rng) for part in (fold.train, valid, test)))
        fold.release()


def shuffled(data: RankingData, rng: np.random.Generator) -> RankingData:
    order = rng.permutation(len(data))
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return RankingData(X[order], data.y[order], data.qid[order])


def judge(name: str, ranker: Any, fold: QueryFold) -> dict[str, Any]:
    """Fit and test one ranker in one fold."""
    (result,) = compare({name: ranker}, [fold], [from_name(METRIC)])
    values = result.values.get(METRIC)
    return {
        "name": name,
        "fold": fold.name,
        "values": None if values is None else values.tolist(),
        "seconds": round(result.seconds, 2),
        "best_step": result.best_step,
        "failure": result.failure,
    }


def ranking_of(journal: Journal) -> tuple[list[Standing], dict[str, str]]:
    """Means over all test queries, best first, against lambdarank; and who failed, why."""
    failed = {
        name: f"{fold}: {done['failure']}"
        for (name, fold), done in journal.lines.items()
        if done["values"] is None
    }
    values: dict[str, dict[str, Any]] = {}
    names = dict.fromkeys([*PEERS, *(name for name, _ in journal.lines)])
    folds = sorted({fold for _, fold in journal.lines})
    for name in names:
        own = [journal.lines[name, fold] for fold in folds if (name, fold) in journal.lines]
        # Only those that went through all folds can stand in one table.
        if len(own) == len(folds) and name not in failed:
            values[name] = {METRIC: np.concatenate([done["values"] for done in own])}
    return sorted(standings(values), key=lambda each: -each.mean), failed


def markdown(found: Sequence[Standing], journal: Journal, times: bool = True) -> str:
    """The table as the docs have it."""
    seconds: dict[str, float] = {}
    for (name, _), done in journal.lines.items():
        seconds[name] = seconds.get(name, 0.0) + done["seconds"]
    lines = [
        "| ranker | NDCG@10 | 95 % interval | over lambdarank | p |" + " seconds |" * times,
        "| --- | ---: | ---: | ---: | ---: |" + " ---: |" * times,
    ]
    for each in found:
        over = "" if each.difference is None else f"{each.difference:+.4f}"
        p = "" if each.p_value is None else f"{each.p_value:.2f}"
        name = f"*{each.name}*" if each.name in PEERS else each.name
        lines.append(
            f"| {name} | {each.mean:.4f} | {each.low:.4f} … {each.high:.4f} | {over} | {p} |"
            + f" {seconds[each.name]:.0f} |" * times
        )
    return "\n".join(lines) + "\n"


def experiment(chosen: argparse.Namespace) -> None:
    """Go through the folds; write and print the table."""
    unknown = [name for name in chosen.objectives if name not in OBJECTIVES]
    if unknown:
        raise ValueError(f"there is no objective {unknown[0]!r}; see `tierrank objectives`.")
    name = chosen.data.resolve().name
    trees = TREES | dict(map(_setting, chosen.trees))
    out = chosen.out or Path("out", f"letor-{name}")
    journal = Journal(out / "journal.jsonl")
    for fold in folds_of(chosen.data, chosen.seed, 2 if chosen.quick else None):
        missing = bool(np.isnan(fold.train.X).any())
        rankers = contenders(chosen.models, chosen.objectives, missing, trees)
        with Progress(len(rankers)) as progress:
            for who, ranker in rankers.items():
                if (who, fold.name) in journal.lines:
                    progress.step(f"{fold.name}, {who}: done before")
                    continue
                progress.say(f"{fold.name}, {who}")
                if chosen.quick:
                    _shorten(ranker)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # limits of iterations are part of the protocol
                    done = judge(who, ranker, fold)
                journal.add(done)
                mean = done["failure"] or f"{np.mean(done['values']):.4f}"
                progress.step(f"{fold.name}, {who}: {mean} ({done['seconds']:.0f} s)")
    found, failed = ranking_of(journal)
    table = markdown(found, journal, not chosen.no_seconds)
    content = {
        "machine": machine(),
        "trees": trees,
        "failed": failed,
        "standings": [e.to_json() for e in found],
    }
    replace_file(out / "table.md", table.encode())
    replace_file(out / "table.json", (json.dumps(content, indent=1) + "\n").encode())
    plot_standings(out / "plot.png", found, title=f"{name}: NDCG@10 on the test queries")
    print(table)
    for who, why in failed.items():
        print(f"{who} failed in {why}")


def _setting(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    if name not in TreePeer().get_params() or not number:
        raise ValueError(f"--trees takes NAME=NUMBER, such as leaves=8, not {text!r}.")
    value = float(number)
    return name, int(value) if value.is_integer() and name not in FRACTIONS else value


def _shorten(ranker: Any) -> None:
    known = ranker.get_params()
    for name, few in (("trees", 5), ("max_epochs", 1), ("max_iter", 5)):
        if name in known:
            ranker.set_params(**{name: few})


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0])
    models = ("linear", "neural", "boosted", "peers")
    options.add_argument("--models", nargs="+", choices=models, default=models)
    linear_time = [name for name in OBJECTIVES if name not in SLOW]
    options.add_argument("--objectives", nargs="+", default=linear_time, metavar="NAME")
    options.add_argument(
        "--trees", nargs="+", default=[], metavar="NAME=NUMBER",
        help=f"other settings of all trees than {TREES}; row_fraction and feature_fraction too",
    )  # fmt: skip
    options.add_argument(
        "--no-seconds", action="store_true", help="leave times out: other work made them long"
    )
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
