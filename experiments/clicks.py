"""Learning from the clicks of a biased ranker, judged by grades that nobody clicked.

    python experiments/clicks.py --data FOLDER/mq2008 --out out/clicks
    python experiments/clicks.py --data FOLDER/mq2008 --model cascade --sizes 100000

A production ranker (a linear one, fitted to one query in a hundred) shows ten items a session, and
a simulated user clicks. From so many clicks everybody learns: linear and boosted rankers without
positions, with them, and with the true propensities; LightGBM's lambdarank with `position`, and
XGBoost's rank:ndcg with `lambdarank_unbiased`. The oracle has the grades of the same training rows.
All are measured by NDCG@10 on the grades of the fold's test queries. Regained is the way from naive
to the oracle of the same kind; of the other libraries, that of our boosted trees. Trees have the
same settings for all, and nothing is chosen on the test fold.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lightgbm
import matplotlib as mpl
import numpy as np
import xgboost

import tierrank as tr
from tierrank._types import AnyArray
from tierrank.data import ClickLists, ClickLog, RankingData
from tierrank.data.synthetic import simulate_clicks

DEPTH, ETA = 10, 1.0
TREES = {"trees": 200, "learning_rate": 0.05, "leaves": 15, "min_rows_per_leaf": 20}
Scores = Callable[[Any], AnyArray]


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="a folder with folds")
    options.add_argument("--out", type=Path, default=Path("out/clicks"))
    options.add_argument("--folds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    options.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    options.add_argument("--model", default="position-based")
    options.add_argument("--temperature", type=float, default=0.2)
    options.add_argument("--without-peers", action="store_true")
    options.add_argument("--noise", type=float, default=0.1)
    options.add_argument("--trust", type=float, default=0.0)
    chosen = options.parse_args(arguments)
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    biases: dict[tuple[int, str], list[tuple[AnyArray, AnyArray]]] = defaultdict(list)
    for number in chosen.folds:
        fold = tr.data.read_folds(chosen.data)[number - 1]
        assert fold.test is not None
        for size in chosen.sizes:
            run_fold(fold.train, fold.test, size, number, chosen, found, biases)
    report(found, biases, chosen)


def run_fold(
    train: RankingData,
    test: RankingData,
    size: int,
    seed: int,
    chosen: argparse.Namespace,
    found: dict[tuple[int, str], list[float]],
    biases: dict[tuple[int, str], list[tuple[AnyArray, AnyArray]]],
) -> None:
    """One fold, one number of clicks: what each way of learning comes to."""
    X = np.asarray(train.X.todense()) if hasattr(train.X, "todense") else train.X
    held = np.asarray(test.X.todense()) if hasattr(test.X, "todense") else test.X
    production = production_scores(X, train, seed)
    log = simulate_until(size, train, production, seed, chosen)
    theta = np.arange(1, DEPTH + 1) ** -ETA
    ndcg = tr.metrics.from_name("ndcg@10")

    def measure(name: str, learn: Callable[[], Scores]) -> None:
        begun = time.process_time()
        value = float(ndcg(learn()(held), test.y, qid=test.qid))
        found[size, name].append(value)
        spent = time.process_time() - begun
        print(f"fold {seed}  {size:>9,} clicks  {name:<32} {value:.4f}  {spent:6.1f} s", flush=True)

    def ours(make: Callable[[], Any], lists: ClickLists, *, blind: bool = False) -> Any:
        given = lists.arguments | ({"positions": None} if blind else {})
        ranker = make().fit(X, **given)
        if hasattr(ranker, "position_standard_errors_"):
            kept = (ranker.position_bias_, ranker.position_standard_errors_)
            how = "unclicked" if lists is together else "each"
            biases[size, f"{type(ranker).__name__}, {how}"].append(kept)
        return ranker.predict

    together, apart = log.lists(), log.lists("each")
    skipped = log.lists("skip-above")
    weighed = log.lists(propensities=theta, clip=20.0)
    for kind, make in KINDS.items():
        measure(f"{kind}: naive", lambda make=make: ours(make, together, blind=True))
        measure(f"{kind}: positions", lambda make=make: ours(make, together))
        measure(f"{kind}: positions, each click", lambda make=make: ours(make, apart))
        measure(f"{kind}: propensities given", lambda make=make: ours(make, weighed))
        measure(f"{kind}: skip above", lambda make=make: ours(make, skipped, blind=True))
        measure(
            f"{kind}: oracle",
            lambda make=make: make().fit(X, train.y, qid=train.qid).predict,
        )
    study_biases(train, log, size, chosen.model, biases)
    if chosen.without_peers:
        return
    measure("LightGBM: naive", lambda: by_lightgbm(X, log, position=False))
    measure("LightGBM: position", lambda: by_lightgbm(X, log, position=True))
    measure("XGBoost: naive", lambda: by_xgboost(X, log, unbiased=False))
    measure("XGBoost: unbiased", lambda: by_xgboost(X, log, unbiased=True))
    measure("production ranker", lambda: production_ranker(X, train, seed).predict)


def study_biases(
    train: RankingData,
    log: ClickLog,
    size: int,
    model: str,
    biases: dict[tuple[int, str], list[tuple[AnyArray, AnyArray]]],
) -> None:
    """Biases beside scores that can be right: one a grade, which is all that a click looks at."""
    grades = np.unique(train.y, return_inverse=True)[1]
    X = np.eye(grades.max() + 1)[grades][:, 1:]
    for compare in ("unclicked", "each"):
        ranker = tr.LinearRanker(features=None, uncertainty="information")
        ranker.fit(X, **log.lists(compare).arguments)  # type: ignore[arg-type]
        kept = (ranker.position_bias_, ranker.position_standard_errors_)
        biases[size, f"a number a grade, {compare}"].append(kept)


def linear() -> tr.LinearRanker:
    return tr.LinearRanker(l2=1e-3, max_iter=200)


def boosted() -> tr.BoostedRanker:
    return tr.BoostedRanker(random_state=0, threads=1, **TREES)


KINDS: dict[str, Callable[[], Any]] = {"linear": linear, "boosted": boosted}


def production_ranker(X: AnyArray, train: RankingData, seed: int) -> tr.LinearRanker:
    """Fitted to the grades of a few queries."""
    queries = np.unique(train.qid)
    few = np.random.default_rng(seed).choice(queries, max(5, len(queries) // 100), replace=False)
    rows = np.isin(train.qid, few)
    ranker = tr.LinearRanker(l2=0.1)
    return ranker.fit(X[rows], train.y[rows], qid=train.qid[rows])


def production_scores(X: AnyArray, train: RankingData, seed: int) -> AnyArray:
    scores = production_ranker(X, train, seed).predict(X)
    return np.asarray(scores / scores.std())


def simulate_until(
    size: int, train: RankingData, scores: AnyArray, seed: int, chosen: argparse.Namespace
) -> ClickLog:
    """A log of about so many clicks."""
    options = {
        "model": chosen.model, "depth": DEPTH, "temperature": chosen.temperature, "eta": ETA,
        "noise": chosen.noise, "trust": chosen.trust,
    }  # fmt: skip
    trial = simulate_clicks(train.y, train.qid, scores, 2_000, seed=1_000 + seed, **options)
    sessions = int(np.ceil(size / trial.click.mean() / len(trial.click) * 2_000))
    return simulate_clicks(train.y, train.qid, scores, sessions, seed=seed, **options)


def observations(log: ClickLog) -> tuple[ClickLog, AnyArray]:
    """Sessions that have a click and something else, and their sizes: the others teach nobody."""
    clicks = np.bincount(log.session, log.click)
    sizes = np.bincount(log.session)
    keep = ((clicks > 0) & (clicks < sizes))[log.session]
    some = ClickLog(log.session[keep], log.row[keep], log.position[keep], log.click[keep])
    counts = np.bincount(some.session)
    return some, counts[counts > 0]


def by_lightgbm(X: AnyArray, log: ClickLog, *, position: bool) -> Scores:
    some, sizes = observations(log)
    data = lightgbm.Dataset(
        X[some.row], label=some.click.astype(int), group=sizes,
        position=some.position - 1 if position else None,
    )  # fmt: skip
    params = {
        "objective": "lambdarank", "learning_rate": TREES["learning_rate"],
        "num_leaves": TREES["leaves"], "verbosity": -1, "num_threads": 1, "seed": 0,
        "lambdarank_truncation_level": DEPTH,
        # as many distinct rows in a leaf as ours, which counts a row once
        "min_data_in_leaf": int(TREES["min_rows_per_leaf"] * max(1, len(some.row) // len(X))),
    }  # fmt: skip
    return lightgbm.train(params, data, num_boost_round=int(TREES["trees"])).predict  # type: ignore[return-value]


def by_xgboost(X: AnyArray, log: ClickLog, *, unbiased: bool) -> Scores:
    some, sizes = observations(log)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    data = xgboost.DMatrix(X[some.row], label=some.click.astype(int), qid=qid)
    params = {
        "objective": "rank:ndcg", "eta": TREES["learning_rate"], "max_leaves": TREES["leaves"],
        "grow_policy": "lossguide", "max_depth": 0, "nthread": 1, "seed": 0,
        "lambdarank_unbiased": unbiased, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": DEPTH,
    }  # fmt: skip
    booster = xgboost.train(params, data, num_boost_round=int(TREES["trees"]))
    return lambda rows: booster.predict(xgboost.DMatrix(rows))


def report(
    found: dict[tuple[int, str], list[float]],
    biases: dict[tuple[int, str], list[tuple[AnyArray, AnyArray]]],
    chosen: argparse.Namespace,
) -> None:
    """Tables as text, and the curve."""
    sizes, names = sorted({size for size, _ in found}), list(dict.fromkeys(n for _, n in found))
    lines = [f"{chosen.data.name}, {chosen.model}, folds {chosen.folds}: NDCG@10 and, in brackets, "
             "% of the way from naive to oracle that is regained"]  # fmt: skip
    lines.append(" " * 34 + "".join(f"{size:>18,}" for size in sizes))
    for name in names:
        cells = []
        for size in sizes:
            kind = name.split(":")[0] if name.split(":")[0] in KINDS else "boosted"
            mean = np.mean(found[size, name])
            low, high = (np.mean(found[size, f"{kind}: {end}"]) for end in ("naive", "oracle"))
            cells.append(f"{mean:.4f} [{100 * (mean - low) / (high - low):6.0f}]".rjust(18))
        lines.append(f"{name:<34}" + "".join(cells))
    truth = -ETA * np.log(np.arange(1, DEPTH + 1))
    for (size, name), several in biases.items():
        z = np.array([(bias - truth)[1:] / errors[1:] for bias, errors in several])
        mean = np.mean([bias for bias, _ in several], axis=0)
        lines.append(
            f"{size:>9,} {name}: biases {' '.join(f'{each:.2f}' for each in mean)}; "
            f"{np.mean(np.abs(z) < 1.96):.0%} of the true ones within 1.96 standard errors"
        )
    text = "\n".join(lines)
    print(text)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / f"{chosen.data.name}-{chosen.model}.txt").write_text(text + "\n")
    if len(sizes) > 1:
        plot(found, sizes, names, chosen)


def plot(
    found: dict[tuple[int, str], list[float]],
    sizes: list[int],
    names: list[str],
    chosen: argparse.Namespace,
) -> None:
    mpl.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name in names:
        if name.startswith("linear") or "skip" in name:
            continue
        values = [np.mean(found[size, name]) for size in sizes]
        style = "--" if "oracle" in name or "production" in name else "-"
        axes.plot(sizes, values, style, marker="o", label=name)
    axes.set(xscale="log", xlabel="clicks", ylabel="NDCG@10 by grades, held-out queries")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(chosen.out / f"{chosen.data.name}-{chosen.model}.svg")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        main()
