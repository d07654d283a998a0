"""What splits of categories gain over their codes as numbers, on simulated shops.

    python benchmarks/categories.py [--shops 1000] [--library lightgbm]

20,000 rows to learn from, 6,000 to stop by and 20,000 to be measured by, in queries of 20. A row's
utility is its shop's effect, drawn from a standard normal, plus two plain features, a product of
others and logistic noise; three thresholds make grades of it.
"""

import argparse

import numpy as np
import pandas as pd

import tierrank as tr


def rows(shops, n, seed):
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(5).normal(size=shops)
    shop, x = rng.integers(0, shops, n), rng.normal(size=(n, 5))
    utility = effect[shop] + x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + rng.logistic(size=n)
    table = pd.DataFrame(x, columns=list("abcde")).assign(shop=shop)
    return table, np.digitize(utility, [0, 1.5, 3]), np.repeat(np.arange(n // 20), 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shops", type=int, default=1000)
    parser.add_argument("--library", default="lightgbm")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    ways = {"without the shop": None, "codes as numbers": None, "categories": ["shop"]}
    print(f"{given.library}, {given.shops:,} shops: NDCG@10, mean and standard error")
    for way, categories in ways.items():
        found = []
        for seed in range(given.seeds):
            parts = [rows(given.shops, n, 3 * seed + i) for i, n in enumerate((20000, 6000, 20000))]
            if way == "without the shop":
                parts = [(table.drop(columns="shop"), *rest) for table, *rest in parts]
            (X, y, qid), valid, (test_X, test_y, test_qid) = parts
            ranker = tr.BoostedRanker(
                library=given.library, trees=300, learning_rate=0.1, patience=30, leaves=31,
                min_rows_per_leaf=None, row_fraction=1.0, feature_fraction=1.0,
                categories=categories, random_state=0,
            )  # fmt: skip
            ranker.fit(X, y, qid=qid, eval_set=tuple(valid))
            found.append(ranker.score(test_X, test_y, qid=test_qid))
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"  {way:18} {np.mean(found):.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
