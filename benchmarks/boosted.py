"""Boosting with the exact likelihood, beside the libraries' own ranking objectives.

All contenders grow as many trees of as many leaves, from the same rows and bins, on as many
threads. Timed is everything from arrays to a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import lightgbm
import numpy as np
import torch
import xgboost
from measure import Claim, Column, Progress, Report, Table, Times, claims_table, figures, main

import tierrank as tr
from tierrank.ranking.derivatives import BoostingObjective

LEAVES, BINS, RATE = 31, 255, 0.1
LAMBDARANK, OURS = "LightGBM lambdarank", "BoostedRanker (lightgbm), pl-partition"
XGBOOST, OURS_BY_XGBOOST = "XGBoost rank:ndcg", "BoostedRanker (xgboost), pl-partition"


class Plan(NamedTuple):
    """How much is measured."""

    rows: int
    features: int
    trees: int
    rounds: int
    list_length: int = 100


FULL = Plan(rows=1_000_000, features=60, trees=50, rounds=3)
QUICK = Plan(rows=100_000, features=30, trees=20, rounds=2)


class Rows(NamedTuple):
    """Features, labels 0 to 4 of which most are 0, and sizes of the lists."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray


def simulate(plan: Plan) -> Rows:
    """Rows whose labels are steps of a bent function of some features, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((plan.rows, plan.features), dtype=np.float32)
    height = X[:, :10].sum(1) / 3 + np.abs(X[:, 10:15]).sum(1) / 3 + X[:, 15] * X[:, 16]
    height += rng.standard_normal(plan.rows, dtype=np.float32)
    y = np.searchsorted(np.quantile(height, [0.6, 0.8, 0.92, 0.98]), height)
    return Rows(X, y, np.full(plan.rows // plan.list_length, plan.list_length))


class Run(NamedTuple):
    """Seconds of one training, and how many of them went by between the first tree and the last."""

    whole: float
    trees: float


class Stopwatch:
    """Notes when the first tree was done, and the last."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.moments: list[float] = []

    def tick(self, *_: object) -> None:
        self.moments.append(time.perf_counter())

    def run(self) -> Run:
        end = time.perf_counter()
        return Run(end - self.start, self.moments[-1] - self.moments[0])


def by_lightgbm(objective: str) -> Callable[[Rows, Plan], Run]:
    def train(rows: Rows, plan: Plan) -> Run:
        watch = Stopwatch()
        params = {
            "objective": objective, "num_leaves": LEAVES, "max_bin": BINS, "learning_rate": RATE,
            "verbosity": -1, "num_threads": torch.get_num_threads(), "metric": "none",
        }  # fmt: skip
        data = lightgbm.Dataset(rows.X, rows.y, group=rows.group)
        lightgbm.train(params, data, plan.trees, callbacks=[watch.tick])
        return watch.run()

    return train


class _Tick(xgboost.callback.TrainingCallback):
    def __init__(self, watch: Stopwatch) -> None:
        self.watch = watch

    def after_iteration(self, *_: object) -> bool:
        self.watch.tick()
        return False


def by_xgboost(rows: Rows, plan: Plan) -> Run:
    watch = Stopwatch()
    params = {
        "objective": "rank:ndcg", "max_leaves": LEAVES, "max_bin": BINS, "eta": RATE,
        "tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "verbosity": 0,
        "nthread": torch.get_num_threads(),
    }  # fmt: skip
    data = xgboost.QuantileDMatrix(rows.X, rows.y, group=rows.group, max_bin=BINS)
    xgboost.train(params, data, plan.trees, callbacks=[_Tick(watch)])
    return watch.run()


def by_ours(library: str) -> Callable[[Rows, Plan], Run]:
    def train(rows: Rows, plan: Plan) -> Run:
        watch = Stopwatch()
        ranker = tr.BoostedRanker(
            library=library, trees=plan.trees, leaves=LEAVES, bins=BINS, learning_rate=RATE, l2=0,
            random_state=0,
        )  # fmt: skip
        ranker.fit(rows.X, rows.y, group=rows.group, watch=watch.tick)
        return watch.run()

    return train


CONTENDERS: dict[str, Callable[[Rows, Plan], Run]] = {
    LAMBDARANK: by_lightgbm("lambdarank"),
    "LightGBM rank_xendcg": by_lightgbm("rank_xendcg"),
    OURS: by_ours("lightgbm"),
    XGBOOST: by_xgboost,
    OURS_BY_XGBOOST: by_ours("xgboost"),
}


@contextmanager
def objective_timed() -> Iterator[list[float]]:
    """Within the block, note the seconds of every call of our objective."""
    seconds: list[float] = []
    call = BoostingObjective.__call__

    def timed(self: BoostingObjective, scores: np.ndarray) -> object:
        start = time.perf_counter()
        result = call(self, scores)
        seconds.append(time.perf_counter() - start)
        return result

    BoostingObjective.__call__ = timed  # type: ignore[method-assign, assignment]
    try:
        yield seconds
    finally:
        BoostingObjective.__call__ = call  # type: ignore[method-assign]


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    progress("making rows")
    rows = simulate(plan)
    warm = Rows(rows.X[:1000], rows.y[:1000], rows.group[:10])
    for train in CONTENDERS.values():  # compiles, imports
        train(warm, plan._replace(trees=2))
    runs: dict[str, list[Run]] = {name: [] for name in CONTENDERS}
    objective: dict[str, float] = {}
    for number in range(plan.rounds):
        for name, train in CONTENDERS.items():
            progress(f"round {number + 1} of {plan.rounds}: {name}")
            with objective_timed() as seconds:
                runs[name].append(train(rows, plan))
            if seconds:
                objective[name] = sum(seconds) / runs[name][-1].whole
    whole = {name: Times([run.whole for run in all_]) for name, all_ in runs.items()}
    trees = {
        name: Times([run.trees / (plan.trees - 1) for run in all_]) for name, all_ in runs.items()
    }
    columns = [
        Column(f"{plan.trees} trees"),
        Column("seconds", figures),
        Column("best", figures),
        Column("× lambdarank", figures),
        Column("seconds a tree", figures),
        Column("× lambdarank", figures),
        Column("in our objective", "{:.0%}".format),
    ]
    table = [
        [
            name,
            whole[name].median,
            whole[name].best,
            whole[name].over(whole[LAMBDARANK]),
            trees[name].median,
            trees[name].over(trees[LAMBDARANK]),
            objective.get(name),
        ]
        for name in CONTENDERS
    ]
    title = (
        f"{plan.rows:,} rows in lists of {plan.list_length}, {plan.features} features, "
        f"{LEAVES} leaves, {BINS} bins"
    )
    notes = [
        "Seconds are from arrays to a model, the binning of the features among them; those of a "
        "tree are between the first tree and the last."
    ]
    report.add(Table(title, columns, table, notes))
    claims = [
        Claim(
            "BoostedRanker by LightGBM over lambdarank", whole[OURS].over(whole[LAMBDARANK]), 1.5
        ),
        Claim("the same, a tree", trees[OURS].over(trees[LAMBDARANK]), 1.5),
        Claim(
            "BoostedRanker by XGBoost over rank:ndcg",
            whole[OURS_BY_XGBOOST].over(whole[XGBOOST]),
            1.5,
        ),
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    packages = ["torch", "numpy", "lightgbm", "xgboost", "tierrank"]
    main(__doc__ or "", packages, measure, FULL, QUICK)
