"""The demo: draw lists with ties from known worths, and see which likelihood finds them again.

It also makes small files of each kind, so that the other commands have something to be tried on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tierrank.data.synthetic import simulate

OBJECTIVES: dict[str, dict[str, Any]] = {
    "PL-Partition (exact)": {"objective": "pl-partition"},
    "PL-Efron (approximation)": {"objective": "pl-efron"},
    "PL-LB (lower bound)": {"objective": "pl-lb"},
    "ListMLE (ties broken)": {
        "objective": "listmle", "objective_params": {"ties": "random"}, "random_state": 0,
    },
}  # fmt: skip

FAINT = "gaussian:10"  # so that a handful of lists has an estimate too


class Fit(NamedTuple):
    """One estimate: how many lists it saw, by which objective, and how far off it is."""

    lists: int
    objective: str
    error: float  # root mean square, in log-worth


def run(items: int, lists: tuple[int, ...], tiers: int, seed: int) -> Iterator[Fit]:
    """Fit every objective to growing parts of one simulated data set."""
    from tierrank.aggregation.aggregator import RankAggregator

    truth, data = simulate(items, max(lists), tiers=tiers, seed=seed)
    centred = (truth - truth.mean()).numpy()
    for n in lists:
        for name, settings in OBJECTIVES.items():
            fitted = RankAggregator(prior=FAINT, **settings).fit(data[:n])
            error = ((fitted.log_worths_ - centred) ** 2).mean() ** 0.5
            yield Fit(n, name, float(error))


def write_examples(folder: Path, seed: int) -> None:
    """Write files for the other commands: rows with grades, rows with labels, votes and games."""
    import numpy as np

    from tierrank.data import Rankings, write_letor, write_rankings, write_xc
    from tierrank.data.synthetic import label_sets
    from tierrank.storage import replace_file
    from tierrank.tiers.selection import with_rest_written

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    for name, queries in (("train", 120), ("vali", 40), ("test", 40)):
        X = generator.normal(size=(queries * 15, 5))
        quality = X[:, 0] - np.abs(X[:, 1]) + 0.3 * generator.gumbel(size=len(X))
        grades = np.digitize(quality, [0, 1, 2])
        qid = np.repeat(np.arange(1, queries + 1), 15)
        write_letor(folder / f"{name}.txt", X.round(3), grades, qid)
    parts = label_sets(
        rows=(300, 100), features=100, labels=40, features_a_row=12, labels_a_row=3, seed=seed
    )
    for name, part in zip(("train", "test"), parts, strict=True):
        write_xc(folder / f"labels-{name}.txt", part)
    _, lists = simulate(8, 200, tiers=4, seed=seed)
    names = tuple(f"candidate {letter}" for letter in "ABCDEFGH")
    votes = Rankings(replace(with_rest_written(lists), names=names), np.ones(len(lists)))
    write_rankings(votes, folder / "votes.toc")
    first, second = np.triu_indices(6, 1)
    games = np.repeat(np.column_stack([first, second]), 20, axis=0)
    noise = generator.logistic(size=len(games)) + 0.5 * (games[:, 1] - games[:, 0])
    winners = np.where(np.abs(noise) < 0.5, "tie", np.where(noise > 0, "model_a", "model_b"))
    rows = [
        f"model {a + 1},model {b + 1},{won}\n" for (a, b), won in zip(games, winners, strict=True)
    ]
    replace_file(folder / "arena.csv", "".join(["model_a,model_b,winner\n", *rows]).encode())
