"""Exported rankers beside `predict`, in every format, on rows that are hard for them.

    python benchmarks/exports.py            # 10,000 rows, 300 trees of 31 leaves: some 2 minutes
    python benchmarks/exports.py --quick    # 30 trees

Of the rows, most values stand on a threshold or next to one, a tenth is missing, some are 0. ONNX,
XGBoost and LightGBM read their files themselves; what Solr, RankLib and the learning-to-rank plugin
compute stands in `tests/engines.py`, from their public sources. Differences are relative to the
largest score. A row that goes another way at one split is off by a leaf, some 1e-2.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from measure import Claim, Column, Progress, Report, Table, claims_table, error, figures, main
from peers import from_tests

import tierrank as tr
from tierrank.names import EXPORTS

FEATURES, ROWS = 20, 10_000
LIMIT = {np.float32: 2e-6, np.float64: 1e-13}


class Plan(NamedTuple):
    """How much to measure."""

    trees: int
    lists: int


def data(rows: int, missing: float) -> tuple[np.ndarray, np.ndarray]:
    """Features of several sizes, of which the first three matter, and grades."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, FEATURES)) * 10.0 ** rng.integers(-4, 5, FEATURES)
    scale = X.std(axis=0)
    score = X[:, 0] / scale[0] + (X[:, 1] / scale[1]) ** 2 * np.sign(X[:, 2])
    y = np.digitize(score + rng.normal(size=rows), [0, 1, 2])
    X[:, 3:6] = np.round(X[:, 3:6] / scale[3:6])
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def by_onnx(path: Path, X: np.ndarray) -> np.ndarray:
    (scores,) = onnxruntime.InferenceSession(path).run(["scores"], {"features": X})
    return np.asarray(scores)


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    engines = from_tests("engines")
    X, y = data(20 * plan.lists, missing=0.1)
    full = np.where(np.isnan(X), 0.0, X)
    rankers = {
        f"{library}, {steps or 'no steps'}": tr.BoostedRanker(
            library=library, trees=plan.trees, leaves=31, features=steps, random_state=0
        )
        for library in ("lightgbm", "xgboost")
        for steps in (None, "standardize")
    }
    rankers["linear, standardize"] = tr.LinearRanker(l2=0.01)
    rankers["network, standardize"] = tr.NeuralRanker(max_epochs=3, random_state=0)
    rows, worst = [], dict.fromkeys(LIMIT, 0.0)
    by_format: dict[str, dict[str, float]] = {to: {} for to in EXPORTS}
    for name, ranker in rankers.items():
        progress(f"fit: {name}")
        trees = isinstance(ranker, tr.BoostedRanker)
        ranker.fit(X if trees else full, y, group=[20] * plan.lists)
        for to in EXPORTS if trees else ("onnx", "solr"):
            progress(f"{name}: {to}")
            dtype = engines.precision(to)[0]
            some = data(ROWS, missing=0.0)[0].astype(dtype)
            some = engines.hard_rows(ranker, some) if trees else some
            if to == "ranklib":
                some = np.nan_to_num(some)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"ranker{EXPORTS[to]}"
                start = time.perf_counter()
                tr.export(ranker, path, to, missing_as_zero=to == "ranklib")
                seconds = time.perf_counter() - start
                found = (by_onnx if to == "onnx" else engines.READERS[to])(path, some)
                size = path.stat().st_size / 1e6
            expected = ranker.predict(some)
            if isinstance(ranker, tr.LinearRanker) and to == "solr":  # it has no constant
                found = found + (expected - found).mean()
            difference = float(np.abs(found - expected).max() / np.abs(expected).max())
            worst[dtype] = max(worst[dtype], difference) if trees else worst[dtype]
            by_format[to][name] = difference
            rows.append([f"{name}: {to}", np.dtype(dtype).name, difference, size, seconds])
    columns = [Column("format"), *(Column(name, error) for name in rankers)]
    table = [[to, *map(found.get, rankers)] for to, found in by_format.items()]
    report.add(Table("Largest difference from predict", columns, table))
    columns = [Column("ranker and format"), Column("rows"), Column("largest difference", error)]
    columns += [Column("MB", figures), Column("s to write, checked", figures)]
    report.add(Table(f"{ROWS:,} rows, {plan.trees} trees of 31 leaves", columns, rows))
    claims = [
        Claim(f"trees, {np.dtype(kind).name}: largest difference", worst[kind], limit)
        for kind, limit in LIMIT.items()
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(
        "Compare exported rankers with predict, on rows at thresholds and with missing values.",
        ["numpy", "lightgbm", "xgboost", "onnxruntime", "tierrank"],
        run,
        full=Plan(300, 500),
        quick=Plan(30, 50),
    )
