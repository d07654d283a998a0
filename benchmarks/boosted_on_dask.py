"""Boosted trees on a Dask cluster: workers of one thread each, on this machine.

The rows are a folder of Parquet. Timed is everything from the folder to a model, with a cluster
that is there already. Besides, the processor's time of what a worker does is told: of one worker,
of each of two, and of two that know nothing of each other and train on half of the rows, which is
what two can come to. That hardly depends on what else the machine does; waiting is not in it.

    python benchmarks/boosted_on_dask.py           # 2 million rows, half an hour
    python benchmarks/boosted_on_dask.py --quick   # 400,000 rows
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from boosted import BINS, LEAVES, RATE, Plan, Run, Stopwatch, simulate
from distributed import Client, LocalCluster
from measure import Claim, Column, Progress, Report, Table, Times, claims_table, figures, main

import tierrank as tr

FULL = Plan(rows=2_000_000, features=30, trees=50, rounds=3)
QUICK = Plan(rows=400_000, features=30, trees=10, rounds=1)
FILES = 20
LIBRARIES = ("lightgbm", "xgboost")
WORKERS = (1, 2)


def write(plan: Plan, folder: Path) -> None:
    """The rows as so many files, no list in two of them."""
    rows = simulate(plan)
    frame = pd.DataFrame(rows.X, columns=[f"x{number}" for number in range(plan.features)])
    frame["label"] = rows.y
    frame["query"] = np.repeat(np.arange(len(rows.group)), rows.group)
    size = plan.rows // FILES // plan.list_length * plan.list_length
    for number, start in enumerate(range(0, plan.rows, size)):
        part = frame[start : start + size].reset_index(drop=True)
        part.to_parquet(folder / f"part-{number:03}.parquet")


def new_ranker(plan: Plan, library: str) -> tr.BoostedRanker:
    return tr.BoostedRanker(
        library=library, trees=plan.trees, leaves=LEAVES, bins=BINS, learning_rate=RATE,
        min_rows_per_leaf=None, row_fraction=1.0, feature_fraction=1.0, random_state=0, threads=1,
    )  # fmt: skip


def train(folder: Path, plan: Plan, library: str, client: Client) -> Run:
    watch = Stopwatch()
    ranker = new_ranker(plan, library)
    ranker.fit(folder, "label", qid="query", client=client, watch=watch.tick)
    return watch.run()


def train_alone(files: list[Path], plan: Plan, library: str) -> dict[str, float]:
    """On some of the files, in this process; what `spent` gives."""
    spent()
    frame = pd.concat([pd.read_parquet(file) for file in files])
    X = frame.drop(columns=["label", "query"]).to_numpy()
    new_ranker(plan, library).fit(X, frame["label"].to_numpy(), qid=frame["query"].to_numpy())
    return spent()


WORK = "binning", "derivatives", "growing"


def note_work() -> None:
    """Let this process note the seconds that its processor has for each part of a fit.

    What LightGBM's own thread prints goes where progress goes.
    """
    os.dup2(2, 1)
    from tierrank.ranking import forest
    from tierrank.ranking.derivatives import BoostingObjective

    def noted(owner: type, name: str, part: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        @wraps(inner)
        def outer(*arguments: Any, **given: Any) -> Any:
            begun = time.thread_time()
            try:
                return inner(*arguments, **given)
            finally:
                forest.spent[part] += time.thread_time() - begun

        setattr(owner, name, outer)

    if hasattr(forest, "spent"):
        return
    forest.spent = dict.fromkeys(WORK, 0.0)
    noted(BoostingObjective, "__call__", "derivatives")
    for trees in (forest.LightGBMTrees, forest.XGBoostTrees):
        noted(trees, "__init__", "binning")
        noted(trees, "grow", "growing")
        noted(trees, "scores", "growing")


def spent() -> dict[str, float]:
    """What was noted since this was asked last."""
    from tierrank.ranking import forest

    found: dict[str, float] = forest.spent
    forest.spent = dict.fromkeys(found, 0.0)
    return found


def of_the_slowest(several: list[dict[str, float]]) -> dict[str, float]:
    return max(several, key=lambda one: sum(one.values()))


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    runs: dict[tuple[str, int], list[Run]] = {}
    work: dict[tuple[str, str], dict[str, float]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        progress("writing rows")
        write(plan, folder)
        for number in range(plan.rounds):
            for workers in WORKERS:
                with (
                    LocalCluster(
                        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                        dashboard_address=":0",
                    ) as cluster,
                    Client(cluster) as client,
                ):  # fmt: skip
                    client.run(note_work)
                    for library in LIBRARIES:
                        progress(f"round {number + 1} of {plan.rounds}: {library}, {workers}")
                        train(folder, plan._replace(trees=2), library, client)  # imports
                        client.run(spent)
                        run = train(folder, plan, library, client)
                        runs.setdefault((library, workers), []).append(run)
                        called = "one worker" if workers == 1 else "each of two"
                        work[library, called] = of_the_slowest(list(client.run(spent).values()))
                    if workers == 2 and number == plan.rounds - 1:
                        files = sorted(folder.iterdir())
                        for library in LIBRARIES:
                            progress(f"{library}: halves")
                            halves = [
                                client.submit(train_alone, files[half::2], plan, library,
                                              workers=[worker], pure=False)
                                for half, worker in enumerate(client.nthreads())
                            ]  # fmt: skip
                            work[library, "half of the rows, alone"] = of_the_slowest(
                                client.gather(halves)
                            )
    whole = {key: Times([run.whole for run in all_]) for key, all_ in runs.items()}
    trees = {
        key: Times([run.trees / (plan.trees - 1) for run in all_]) for key, all_ in runs.items()
    }
    columns = [
        Column("library"), Column("workers"), Column("seconds", figures),
        Column("× one worker", figures), Column("seconds a tree", figures),
        Column("× one worker", figures),
    ]  # fmt: skip
    table = [
        [
            library, workers, whole[library, workers].median,
            whole[library, workers].over(whole[library, 1]),
            trees[library, workers].median, trees[library, workers].over(trees[library, 1]),
        ]
        for library, workers in runs
    ]  # fmt: skip
    title = (
        f"{plan.rows:,} rows in lists of {plan.list_length}, {plan.features} features, "
        f"{plan.trees} trees of {LEAVES} leaves, {FILES} files of Parquet"
    )
    report.add(Table(title, columns, table))
    columns = [
        Column("processor's time, s"), Column("of"), *(Column(part, figures) for part in WORK),
        Column("× one worker", figures),
    ]  # fmt: skip
    table = [
        [library, whose, *(parts[part] for part in WORK),
         sum(parts.values()) / sum(work[library, "one worker"].values())]
        for (library, whose), parts in sorted(work.items(), key=lambda one: one[0][0])
    ]  # fmt: skip
    report.add(Table("What a worker works", columns, table))
    claims = [
        Claim(f"2 workers over 1, by {library}", whole[library, 2].over(whole[library, 1]), 0.7)
        for library in LIBRARIES
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    packages = ["torch", "numpy", "lightgbm", "xgboost", "dask", "distributed", "tierrank"]
    main(__doc__ or "", packages, measure, FULL, QUICK)
