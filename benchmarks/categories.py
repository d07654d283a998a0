"""What splits of categories gain over their codes as numbers, on simulated shops.

    python benchmarks/categories.py [--shops 1000 100 10] [--library lightgbm]

20,000 rows to learn from, 6,000 to stop by and 20,000 to be measured by, in queries of 20. A row's
utility is its shop's effect, drawn from a standard normal, plus two plain features, a product of
others and logistic noise; three thresholds make grades of it.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from measure import Column, Progress, Report, Table

import tierrank as tr

WAYS = {"without the shop": None, "codes as numbers": None, "categories": ["shop"]}


def rows(shops, n, seed):
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(5).normal(size=shops)
    shop, x = rng.integers(0, shops, n), rng.normal(size=(n, 5))
    utility = effect[shop] + x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + rng.logistic(size=n)
    table = pd.DataFrame(x, columns=list("abcde")).assign(shop=shop)
    return table, np.digitize(utility, [0, 1.5, 3]), np.repeat(np.arange(n // 20), 20)


def quality(way, shops, seed, library):
    """NDCG@10 on rows that were not learned from."""
    parts = [rows(shops, n, 3 * seed + i) for i, n in enumerate((20000, 6000, 20000))]
    if way == "without the shop":
        parts = [(table.drop(columns="shop"), *rest) for table, *rest in parts]
    (X, y, qid), valid, (test_X, test_y, test_qid) = parts
    ranker = tr.BoostedRanker(
        library=library, trees=300, learning_rate=0.1, patience=30, leaves=31,
        min_rows_per_leaf=None, row_fraction=1.0, feature_fraction=1.0,
        categories=WAYS[way], random_state=0,
    )  # fmt: skip
    ranker.fit(X, y, qid=qid, eval_set=tuple(valid))
    return ranker.score(test_X, test_y, qid=test_qid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shops", type=int, nargs="+", default=[1000, 100, 10])
    parser.add_argument("--library", default="lightgbm", choices=["lightgbm", "xgboost"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="a table to paste")
    given = parser.parse_args()
    progress = Progress()
    lines = []
    for shops in given.shops:
        line = [f"{shops:,}"]
        for way in WAYS:
            progress(f"{shops:,} shops, {way}")
            found = [quality(way, shops, seed, given.library) for seed in range(given.seeds)]
            error = np.std(found, ddof=1) / np.sqrt(len(found))
            line.append(f"{np.mean(found):.4f} ± {error:.4f}")
        lines.append(line)
    title = "NDCG@10 and its standard error, by what is known of the shop"
    columns = [Column("shops"), *map(Column, WAYS)]
    Report(given.markdown, progress).add(Table(title, columns, lines))


if __name__ == "__main__":
    main()
