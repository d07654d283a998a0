"""Boosting with the exact likelihood, beside the libraries' own ranking objectives.

All contenders grow as many trees of as many leaves, from the same rows and bins, on as many
threads. Timed is everything from arrays to a model.

    python benchmarks/boosted.py --larger-than-memory  # some 20 minutes, and 20 GB of the disk

trains by `tierrank train` on a file of LETOR whose rows, as read into memory, are three times what
the process may have. RLIMIT_DATA is what it may have: all memory of its own, and no files that are
mapped, which the system drops when it likes.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import torch
import xgboost
from measure import Claim, Column, Progress, Report, Table, Times, claims_table, figures, main

import tierrank as tr
from tierrank.integrations import lightgbm as for_lightgbm
from tierrank.integrations import xgboost as for_xgboost
from tierrank.ranking.derivatives import BoostingObjective

LEAVES, BINS, RATE = 31, 255, 0.1
LAMBDARANK, OURS = "LightGBM lambdarank", "BoostedRanker (lightgbm), pl-partition"
XGBOOST, OURS_BY_XGBOOST = "XGBoost rank:ndcg", "BoostedRanker (xgboost), pl-partition"
IN_LIGHTGBM, IN_XGBOOST = "LightGBM, objective pl-partition", "XGBoost, objective pl-partition"


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


def by_lightgbm(objective: str | Callable[..., Any], **more: Any) -> Callable[[Rows, Plan], Run]:
    def train(rows: Rows, plan: Plan) -> Run:
        watch = Stopwatch()
        params = {
            "objective": objective, "num_leaves": LEAVES, "max_bin": BINS, "learning_rate": RATE,
            "verbosity": -1, "num_threads": torch.get_num_threads(), "metric": "none", **more,
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


def by_xgboost(call: Callable[..., Any] | None = None, **more: Any) -> Callable[[Rows, Plan], Run]:
    def train(rows: Rows, plan: Plan) -> Run:
        watch = Stopwatch()
        params = {
            "max_leaves": LEAVES, "max_bin": BINS, "eta": RATE, "tree_method": "hist",
            "grow_policy": "lossguide", "max_depth": 0, "verbosity": 0,
            "nthread": torch.get_num_threads(), **more,
        }  # fmt: skip
        data = xgboost.QuantileDMatrix(rows.X, rows.y, group=rows.group, max_bin=BINS)
        xgboost.train(params, data, plan.trees, obj=call, callbacks=[_Tick(watch)])
        return watch.run()

    return train


def by_ours(library: str) -> Callable[[Rows, Plan], Run]:
    def train(rows: Rows, plan: Plan) -> Run:
        watch = Stopwatch()
        ranker = tr.BoostedRanker(
            library=library, trees=plan.trees, leaves=LEAVES, bins=BINS, learning_rate=RATE, l2=0,
            min_rows_per_leaf=None, row_fraction=1.0, feature_fraction=1.0, random_state=0,
        )  # fmt: skip
        ranker.fit(rows.X, rows.y, group=rows.group, watch=watch.tick)
        return watch.run()

    return train


CONTENDERS: dict[str, Callable[[Rows, Plan], Run]] = {
    LAMBDARANK: by_lightgbm("lambdarank"),
    "LightGBM rank_xendcg": by_lightgbm("rank_xendcg"),
    OURS: by_ours("lightgbm"),
    IN_LIGHTGBM: by_lightgbm(
        for_lightgbm.objective("pl-partition"), lambda_l2=0.0, force_col_wise=True
    ),
    XGBOOST: by_xgboost(objective="rank:ndcg"),
    OURS_BY_XGBOOST: by_ours("xgboost"),
    IN_XGBOOST: by_xgboost(
        for_xgboost.objective("pl-partition"), reg_lambda=0.0, min_child_weight=1e-3, base_score=0.0
    ),
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
        Claim("our objective in LightGBM over BoostedRanker",
              whole[IN_LIGHTGBM].over(whole[OURS]), 1.05),
        Claim("our objective in XGBoost over BoostedRanker",
              whole[IN_XGBOOST].over(whole[OURS_BY_XGBOOST]), 1.05),
    ]  # fmt: skip
    report.add(claims_table(claims))
    return claims


# Larger than memory ---------------------------------------------------------------------------


class LargePlan(NamedTuple):
    """How much is measured."""

    limit: int = 2 << 30  # bytes of memory that training may have
    features: int = 220  # as Istella's data have
    trees: int = 10
    list_length: int = 100

    @property
    def rows(self) -> int:
        """As many as take three times the limit, in float64."""
        lists = 3 * self.limit // (8 * self.features * self.list_length)
        return lists * self.list_length


REPEATED = 50_000  # rows that are written over and over, as those of other queries


def write_large(path: Path, plan: LargePlan, rows: int) -> None:
    """Write LETOR text, some rows again and again: it is their number that matters."""
    some = simulate(Plan(min(rows, REPEATED), plan.features, 0, 0, plan.list_length))
    lines = []
    for y, values in zip(some.y.tolist(), some.X.tolist(), strict=True):
        cells = " ".join(f"{n}:{value:.4f}" for n, value in enumerate(values, start=1))
        lines.append((y, cells))
    with path.open("w") as file:
        for row in range(0, rows, len(lines)):
            numbered = enumerate(lines[: rows - row], start=row)
            file.write("".join(f"{y} qid:{n // plan.list_length} {cells}\n"
                               for n, (y, cells) in numbered))  # fmt: skip


class Large(NamedTuple):
    """How a training went: its memory in bytes, of its own and with mapped files; its words."""

    seconds: float
    own: int
    mapped: int
    fine: bool
    said: str


def train_limited(limit: int, *arguments: object, command: Sequence[str] = ("train",)) -> Large:
    """Run `tierrank train` with so much memory, and look at what it has."""
    begun = time.perf_counter()
    training = subprocess.Popen(
        [sys.executable, "-m", "tierrank", *command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    status, own, mapped = Path(f"/proc/{training.pid}/status"), 0, 0
    while training.poll() is None:
        kilobytes = dict(re.findall(r"(RssAnon|VmHWM):\s*(\d+)", status.read_text()))
        own = max(own, int(kilobytes.get("RssAnon", 0)) * 1024)
        mapped = max(mapped, int(kilobytes.get("VmHWM", 0)) * 1024)
        time.sleep(0.05)
    assert training.stdout is not None
    seconds, said = time.perf_counter() - begun, training.stdout.read()
    return Large(seconds, own, mapped, training.returncode == 0, said)


def larger_than_memory(plan: LargePlan, report: Report, progress: Progress) -> list[Claim]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # /tmp may be in memory
        folder = Path(name)
        train, valid = folder / "train.txt", folder / "valid.txt"
        progress(f"writing {plan.rows:,} rows")
        write_large(train, plan, plan.rows)
        write_large(valid, plan, plan.rows // 20)
        common = (train, "--valid", valid, "--model", "boosted", "--set", f"trees={plan.trees}")
        runs: dict[str, Large] = {}
        for what, more in {
            "into memory (--no-cache)": ("--no-cache",),
            "LightGBM, with the conversion": (),
            "LightGBM": (),
            "XGBoost": ("--set", "library=xgboost"),
        }.items():
            progress(what)
            out = folder / f"model {len(runs)}"
            runs[what] = train_limited(plan.limit, *common, *more, "--out", out)
        cells = plan.rows * plan.features
        size = train.stat().st_size
    columns = [Column("tierrank train"), Column("seconds", figures), Column("own memory, MB"),
               Column("with mapped files, MB"), Column("ended")]  # fmt: skip
    table = [
        [what, run.seconds, run.own >> 20, run.mapped >> 20,
         "a model" if run.fine else run.said.strip().splitlines()[-1][:60]]
        for what, run in runs.items()
    ]  # fmt: skip
    title = (
        f"{plan.rows:,} rows × {plan.features}: {size / 1e9:.1f} GB of text, {8 * cells / 1e9:.1f} "
        f"GB of float64; RLIMIT_DATA {plan.limit >> 20:,} MB; {plan.trees} trees"
    )
    report.add(Table(title, columns, table, []))
    trained = [run for what, run in runs.items() if "memory" not in what]
    claims = [
        Claim("rows over the limit", 8 * cells / plan.limit, 2.99, at_least=True),
        Claim("trainings that gave a model", sum(run.fine for run in trained), 3, at_least=True),
        Claim("own memory over the limit", max(run.own for run in trained) / plan.limit, 1),
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    if "--larger-than-memory" in sys.argv:
        sys.argv.remove("--larger-than-memory")
        packages = ["torch", "numpy", "lightgbm", "xgboost", "tierrank"]
        main(__doc__ or "", packages, larger_than_memory, LargePlan(), LargePlan(trees=2))
        sys.exit()
    packages = ["torch", "numpy", "lightgbm", "xgboost", "tierrank"]
    main(__doc__ or "", packages, measure, FULL, QUICK)
