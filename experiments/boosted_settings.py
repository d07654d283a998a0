"""Settings of boosted trees by the size of the data, cross-validated where nothing is tested.

    python experiments/boosted_settings.py --data FOLDER [--queries 100 400] [--repeats 3]
    python experiments/boosted_settings.py --data DATA --by-size

Only the training and validation rows of a set's first fold are looked at (of LightGBM's example the
file rank.train): these queries are cut into five folds, and in each one a candidate learns from the
others, of which a fifth say when to stop. With `--queries`, so many of them, drawn at random, are
all there is. What stands in the test part is not used.

It prints NDCG@10 of every candidate, and its difference to the first with the p-value of a paired
randomisation test over the queries; `--out` keeps the same as JSON. With `--by-size` DATA has the
sets of `SIZES`, and three candidates are a row of one table for each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command import Progress, machine, parser, run, show
from page import Cell, Table

from tierrank.data import RankingData, read, read_folds
from tierrank.metrics import from_name
from tierrank.ranking.boosted import BoostedRanker
from tierrank.ranking.comparison import Standing, compare, query_folds, standings
from tierrank.storage import replace_file
from tierrank.tiers.arrays import group_rows

METRIC = "ndcg@10"
FOLDS = 5


def trees(leaves: int, rows: int, row_fraction: float = 1.0, feature_fraction: float = 1.0) -> Any:
    """Settings of trees, by place."""
    return {
        "leaves": leaves, "min_rows_per_leaf": rows, "row_fraction": row_fraction,
        "feature_fraction": feature_fraction,
    }  # fmt: skip


CANDIDATES: dict[str, dict[str, dict[str, Any]]] = {
    "shape": {
        "31 leaves, 20 rows": trees(31, 20),
        "15 leaves, 20 rows": trees(15, 20),
        "7 leaves, 20 rows": trees(7, 20),
        "31 leaves, 50 rows": trees(31, 50),
        "15 leaves, 50 rows": trees(15, 50),
        "7 leaves, 50 rows": trees(7, 50),
        "15 leaves, 100 rows": trees(15, 100),
        "31 leaves, 20 rows, sampled": trees(31, 20, 0.7, 0.5),
        "15 leaves, 20 rows, sampled": trees(15, 20, 0.7, 0.5),
        "15 leaves, 50 rows, sampled": trees(15, 50, 0.7, 0.5),
        "7 leaves, 50 rows, sampled": trees(7, 50, 0.7, 0.5),
        "15 leaves, 50 rows, sampled more": trees(15, 50, 0.5, 0.3),
    },
}

# A set, queries that are drawn (None: all), and how often they are cut into folds: small ones more.
SIZES: tuple[tuple[str, int | None, int], ...] = (
    ("mslr-web10k-sample", None, 6),
    ("lightgbm-rank", None, 4),
    ("mq2008", 100, 4),
    ("mq2008", None, 2),
    ("mq2007-agg", 100, 2),
    ("mq2007-agg", 300, 2),
    ("mq2007-agg", None, 1),
)
BY_SIZE = ("31 leaves, 20 rows", "15 leaves, 50 rows, sampled", "7 leaves, 50 rows, sampled")


def queries_of(folder: Path) -> RankingData:
    """The training and validation rows of a set's first fold, with queries numbered anew."""
    own = [path for path in sorted(folder.glob("rank.train*")) if path.suffix != ".query"]
    if own:  # LightGBM's example has no validation rows, and no folds
        data = read(own[0])
        return RankingData(data.X.toarray(), data.y, data.qid)
    fold = read_folds(folder)[0]
    parts = (fold.train, fold.valid)
    names = [np.char.add(f"{number} ", part.qid.astype(str)) for number, part in enumerate(parts)]
    dense = [part.X.toarray() if hasattr(part.X, "toarray") else part.X for part in parts]
    return RankingData(
        np.concatenate(dense),
        np.concatenate([part.y for part in parts]),
        np.unique(np.concatenate(names), return_inverse=True)[1],
    )


def drawn(data: RankingData, queries: int, seed: int) -> RankingData:
    """Rows of so many queries, drawn at random."""
    names = np.unique(data.qid)
    if queries >= len(names):
        raise ValueError(f"there are {len(names)} queries: ask for fewer than {queries}")
    chosen = np.random.default_rng(seed).choice(names, queries, replace=False)
    return data.select(np.isin(data.qid, chosen))


def compared(
    data: RankingData,
    candidates: dict[str, dict[str, Any]],
    seeds: range,
    folds: int,
    say: Progress,
    ranker: Callable[..., Any] = BoostedRanker,
) -> list[Standing]:
    """How the candidates do, over all queries; a query counts once, with its mean over the seeds.

    A seed is that of the folds, and of the rankers.
    """
    metric = from_name(METRIC)
    number, names = group_rows(data.qid, len(data))
    numbered = RankingData(data.X, data.y, number)
    totals = {name: np.zeros(len(names)) for name in candidates}
    times = np.zeros(len(names))
    for seed in seeds:
        rankers = {
            name: ranker(**settings, random_state=seed) for name, settings in candidates.items()
        }
        cut = query_folds(numbered, FOLDS, seed=seed)[:folds]
        queries = {fold.name: group_rows(fold.test.qid, len(fold.test))[1] for fold in cut}
        for result in compare(rankers, cut, [metric]):
            if result.failure is not None:
                raise ValueError(f"{result.name}: {result.failure}")
            totals[result.name][queries[result.fold]] += result.values[metric.name]
            say.step(f"{result.name}, {result.fold}: {result.seconds:.0f} s, at {result.best_step}")
        for own in queries.values():
            times[own] += 1
    seen = times > 0
    means = {name: {metric.name: own[seen] / times[seen]} for name, own in totals.items()}
    return standings(means)


def table_of(title: str, found: Sequence[Standing]) -> Table:
    """To print."""
    rows = []
    for each in found:
        difference = "" if each.difference is None else f"{each.difference:+.4f}"
        p_value = "" if each.p_value is None else f"{each.p_value:.3f}"
        rows.append([Cell(each.name), Cell(f"{each.mean:.4f}"), Cell(difference), Cell(p_value)])
    return Table(title, ["candidate", METRIC, "difference", "p"], rows)


def by_size(chosen: argparse.Namespace) -> None:
    """Three candidates on all sets, in one table."""
    candidates = {name: CANDIDATES["shape"][name] for name in BY_SIZE}
    folds = 2 if chosen.quick else FOLDS
    rows = []
    with Progress(len(candidates) * folds * sum(line[2] for line in SIZES)) as say:
        for name, size, repeats in SIZES:
            data = queries_of(chosen.data / name)
            data = data if size is None else drawn(data, size, chosen.seed)
            seeds = range(chosen.seed, chosen.seed + repeats)
            found = compared(data, candidates, seeds, folds, say)
            best = max(each.mean for each in found)
            cells = [Cell(f"{name}: {data.n_queries:,}{' drawn' * bool(size)}, {len(data):,}")]
            for each in found:
                beside = "" if each.p_value is None else f"p = {each.p_value:.3f}"
                cells.append(Cell(f"{each.mean:.4f}", beside, best=each.mean == best))
            rows.append(cells)
    show(Table("NDCG@10 by settings and size", ["queries, rows", *BY_SIZE], rows))


def experiment(chosen: argparse.Namespace) -> None:
    """Run it."""
    if chosen.by_size:
        by_size(chosen)
        return
    data = queries_of(chosen.data)
    candidates = CANDIDATES[chosen.group]
    folds = 2 if chosen.quick else FOLDS
    sizes = chosen.queries or [None]
    kept: dict[str, Any] = {"machine": machine(), "data": chosen.data.name, "found": {}}
    seeds = range(chosen.seed, chosen.seed + chosen.repeats)
    with Progress(len(sizes) * len(candidates) * folds * len(seeds)) as say:
        for size in sizes:
            rows = data if size is None else drawn(data, size, chosen.seed)
            found = compared(rows, candidates, seeds, folds, say)
            name = f"{chosen.data.name}: {rows.n_queries:,} queries, {len(rows):,} rows"
            kept["found"][name] = [each.to_json() for each in found]
            show(table_of(name, found))
            if chosen.out is not None:
                text = json.dumps(kept, indent=1) + "\n"
                replace_file(chosen.out / f"{chosen.group}.json", text.encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--queries", type=int, nargs="*", metavar="N", help="how many, drawn at random (all)"
    )
    options.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="cut into folds so many times (once)"
    )
    options.add_argument("--group", choices=list(CANDIDATES), default="shape", help="of candidates")
    options.add_argument("--by-size", action="store_true", help="three candidates on all sets")
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
