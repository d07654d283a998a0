"""Boosted trees on a Dask cluster: workers of one thread each, on this machine.

The rows are a folder of Parquet. Timed is everything from the folder to a model, with a cluster
that is there already.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from boosted import BINS, LEAVES, RATE, Plan, Run, Stopwatch, simulate
from distributed import Client, LocalCluster
from measure import Claim, Column, Progress, Report, Table, Times, claims_table, figures, main

import tierrank as tr

FULL = Plan(rows=2_000_000, features=30, trees=50, rounds=3)
QUICK = Plan(rows=200_000, features=30, trees=20, rounds=1)
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


def train(folder: Path, plan: Plan, library: str, client: Client) -> Run:
    watch = Stopwatch()
    ranker = tr.BoostedRanker(
        library=library, trees=plan.trees, leaves=LEAVES, bins=BINS, learning_rate=RATE,
        min_rows_per_leaf=None, row_fraction=1.0, feature_fraction=1.0, random_state=0, threads=1,
    )  # fmt: skip
    ranker.fit(folder, "label", qid="query", client=client, watch=watch.tick)
    return watch.run()


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    runs: dict[tuple[str, int], list[Run]] = {}
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
                    for library in LIBRARIES:
                        progress(f"round {number + 1} of {plan.rounds}: {library}, {workers}")
                        train(folder, plan._replace(trees=2), library, client)  # imports
                        run = train(folder, plan, library, client)
                        runs.setdefault((library, workers), []).append(run)
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
    claims = [
        Claim(f"2 workers over 1, by {library}", whole[library, 2].over(whole[library, 1]), 0.7)
        for library in LIBRARIES
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    packages = ["torch", "numpy", "lightgbm", "xgboost", "dask", "distributed", "tierrank"]
    main(__doc__ or "", packages, measure, FULL, QUICK)
