"""Learning from the clicks of a biased ranker, judged by grades that nobody clicked.

    python experiments/clicks.py --data FOLDER/mq2008 --out out/clicks
    python experiments/clicks.py --data FOLDER/mq2008 --model cascade --sizes 100000
    python experiments/clicks.py --data FOLDER/mq2008 --out out/clicks --table
    python experiments/clicks.py --data FOLDER/mq2008 --coverage 100

A production ranker (a linear one, fitted to one query in a hundred) shows ten items a session, and
a simulated user clicks. From so many clicks everybody learns: linear and boosted rankers without
positions, from clicks weighed by propensities that the log tells, with biases of positions that are
learned beside the scores, and with the true propensities; LightGBM's lambdarank with `position`,
and XGBoost's rank:ndcg with `lambdarank_unbiased`. The oracle has the grades of the same training
rows. All are measured by NDCG@10 on the grades of the fold's test queries. Regained is the way from
naive to the oracle of the same kind; of the other libraries, that of our boosted trees. Trees have
the same settings for all, those of BoostedRanker by itself for so few rows; only the penalty of
leaves grows with the lists, as said below. Nothing is chosen on the test fold. Of each fold, size
and seed there is a file in --out; one that is there is not computed again. The peers, for which a
row is written out each time that it was shown, and biases beside scores take part up to 200,000
clicks.

With --coverage, nobody learns to rank. Of each size there are so many logs, by folds in turn, each
of a production ranker of its own; the table says how the biases that `ClickLog.propensities` finds
are spread about the simulator's, and how often intervals of 1.96 standard errors have these.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import matplotlib as mpl
import numpy as np
import xgboost
from scipy.stats import chi2

import tierrank as tr
from tierrank._types import AnyArray
from tierrank.data import ClickLists, ClickLog, Propensities, RankingData
from tierrank.data.synthetic import simulate_clicks

DEPTH, ETA = 10, 1.0
TREES, RATE = 200, 0.05
LEAVES, MIN_ROWS, ROW_FRACTION, FEATURE_FRACTION = 7, 50, 0.7, 0.5
# More clicks on the same rows are more lists, but no more rows: chosen on validation folds and
# clicks of other seeds, as everything here.
L2_OF_A_LIST = 0.05
MOST_CLICKS = 200_000  # of those who are slow, or need much memory
Scores = Callable[[Any], AnyArray]


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="a folder with folds")
    options.add_argument("--out", type=Path, default=Path("out/clicks"))
    options.add_argument("--folds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    options.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    options.add_argument("--seeds", type=int, default=1, help="logs a fold and size")
    options.add_argument("--model", default="position-based")
    options.add_argument("--temperature", type=float, default=0.2)
    options.add_argument("--without-peers", action="store_true")
    options.add_argument("--noise", type=float, default=0.1)
    options.add_argument("--trust", type=float, default=0.0)
    options.add_argument("--table", action="store_true", help="only show what --out has")
    options.add_argument("--coverage", type=int, metavar="LOGS", help="biases alone, of many logs")
    chosen = options.parse_args(arguments)
    if chosen.coverage:
        for size in chosen.sizes:
            print(f"{coverage(size, chosen)}\n", flush=True)
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    if not chosen.table:
        folds = tr.data.read_folds(chosen.data)
        for number in chosen.folds:
            for size in chosen.sizes:
                for seed in range(chosen.seeds):
                    path = chosen.out / f"{name_of(chosen)}-{number}-{size}-{seed}.json"
                    if not path.exists():
                        run = Run(folds[number - 1], number, size, seed, chosen)
                        path.write_text(json.dumps(run.results()))
    report(chosen)


def name_of(chosen: argparse.Namespace) -> str:
    return f"{chosen.data.name}-{chosen.model}"


class Run:
    """One fold, one number of clicks, one log: what each way of learning comes to."""

    def __init__(
        self, fold: Any, number: int, size: int, seed: int, chosen: argparse.Namespace
    ) -> None:
        assert fold.test is not None
        self.train, self.test, self.chosen = fold.train, fold.test, chosen
        self.number, self.size = number, size
        self.X, self.held = (dense(part) for part in (fold.train, fold.test))
        self.production = production_ranker(self.X, self.train, number)
        self.log = simulate_until(
            size, self.train, self.production.predict(self.X), number + 1_000 * seed, chosen
        )
        self.found: dict[str, list[float]] = {}
        self.biases: dict[str, Any] = {}

    def results(self) -> dict[str, Any]:
        log, train = self.log, self.train
        learned = log.propensities()
        self.keep_biases("from the log", learned.bias, learned.standard_errors)
        small = self.size <= MOST_CLICKS
        ways = {"naive": log.lists("unclicked"), "weighed": log.lists()}
        if small:
            ways["biases beside scores"] = log.lists("each")
        ways["propensities given"] = log.lists(propensities=np.arange(1, DEPTH + 1) ** -ETA)
        for kind, make in KINDS.items():
            for way, lists in ways.items():
                fit = partial(self.fit, make(len(lists)), lists, blind=way == "naive")
                self.measure(f"{kind}, {way}", fit)
            self.measure(
                f"{kind}, oracle",
                lambda make=make: make().fit(self.X, train.y, qid=train.qid).predict,
            )
        if small and not self.chosen.without_peers:
            self.measure("LightGBM, `position`", lambda: by_lightgbm(self.X, log))
            self.measure(
                "LightGBM, `position`, our l2", lambda: by_lightgbm(self.X, log, ours=True)
            )
            self.measure("XGBoost, `lambdarank_unbiased`", lambda: by_xgboost(self.X, log))
        self.measure("production ranker", lambda: self.production.predict)
        return {"ndcg": self.found, "biases": self.biases}

    def measure(self, name: str, learn: Callable[[], Scores]) -> None:
        begun = time.process_time()
        scores = learn()(self.held)
        ndcg = tr.metrics.from_name("ndcg@10")
        by_query = ndcg(scores, self.test.y, qid=self.test.qid, reduction="none")
        self.found[name] = np.asarray(by_query, dtype=float).tolist()
        spent = time.process_time() - begun
        mean = np.mean(self.found[name])
        print(
            f"fold {self.number} {self.size:>9,} clicks  {name:<32} {mean:.4f} {spent:7.1f} s",
            file=sys.stderr,
            flush=True,
        )

    def fit(self, ranker: Any, lists: ClickLists, *, blind: bool = False) -> Scores:
        ranker.fit(self.X, **lists.arguments | ({"positions": None} if blind else {}))
        if hasattr(ranker, "position_standard_errors_"):
            what = "beside the scores of boosted trees"
            self.keep_biases(what, ranker.position_bias_, ranker.position_standard_errors_)
        return ranker.predict  # type: ignore[no-any-return]

    def keep_biases(self, what: str, bias: AnyArray, errors: AnyArray) -> None:
        self.biases[what] = [bias.tolist(), errors.tolist()]


def dense(data: RankingData) -> AnyArray:
    return np.asarray(data.X.todense() if hasattr(data.X, "todense") else data.X)


def linear(lists: int = 0) -> tr.LinearRanker:
    return tr.LinearRanker(l2=1e-3, max_iter=200)


def boosted(lists: int = 0) -> tr.BoostedRanker:
    return tr.BoostedRanker(
        trees=TREES, learning_rate=RATE, leaves=LEAVES, min_rows_per_leaf=MIN_ROWS,
        row_fraction=ROW_FRACTION, feature_fraction=FEATURE_FRACTION, random_state=0, threads=1,
        l2=max(1.0, L2_OF_A_LIST * lists),
    )  # fmt: skip


KINDS: dict[str, Callable[[], Any]] = {"linear": linear, "boosted": boosted}


def production_ranker(X: AnyArray, train: RankingData, seed: int) -> tr.LinearRanker:
    """Fitted to the grades of a few queries."""
    queries = np.unique(train.qid)
    few = np.random.default_rng(seed).choice(queries, max(5, len(queries) // 100), replace=False)
    rows = np.isin(train.qid, few)
    ranker = tr.LinearRanker(l2=0.1)
    return ranker.fit(X[rows], train.y[rows], qid=train.qid[rows])


def simulate_until(
    size: int, train: RankingData, scores: AnyArray, seed: int, chosen: argparse.Namespace
) -> ClickLog:
    """A log of about so many clicks."""
    options = {
        "model": chosen.model, "depth": DEPTH, "temperature": chosen.temperature, "eta": ETA,
        "noise": chosen.noise, "trust": chosen.trust,
    }  # fmt: skip
    scores = scores / scores.std()
    trial = simulate_clicks(train.y, train.qid, scores, 2_000, seed=100_000 + seed, **options)
    sessions = int(np.ceil(size / trial.click.sum() * 2_000))
    return simulate_clicks(train.y, train.qid, scores, sessions, seed=seed, **options)


def observations(log: ClickLog) -> tuple[ClickLog, AnyArray]:
    """Sessions that have a click and something else, and their sizes: the others teach nobody."""
    clicks = np.bincount(log.session, log.click)
    sizes = np.bincount(log.session)
    keep = ((clicks > 0) & (clicks < sizes))[log.session]
    some = ClickLog(log.session[keep], log.row[keep], log.position[keep], log.click[keep])
    counts = np.bincount(some.session)
    return some, counts[counts > 0]


def by_lightgbm(X: AnyArray, log: ClickLog, *, ours: bool = False) -> Scores:
    some, sizes = observations(log)
    data = lightgbm.Dataset(
        X[some.row].astype(np.float32), label=some.click.astype(int), group=sizes,
        position=some.position - 1,
    )  # fmt: skip
    params = {
        "objective": "lambdarank", "learning_rate": RATE, "verbosity": -1, "num_threads": 1,
        "seed": 0, "num_leaves": LEAVES,
        "bagging_fraction": ROW_FRACTION, "bagging_freq": 1,
        "feature_fraction": FEATURE_FRACTION,
        "lambdarank_truncation_level": DEPTH,
        "lambda_l2": L2_OF_A_LIST * len(sizes) if ours else 0.0,
        # as many distinct rows in a leaf as ours, which counts a row once
        "min_data_in_leaf": MIN_ROWS * max(1, len(some.row) // len(X)),
    }  # fmt: skip
    return lightgbm.train(params, data, num_boost_round=TREES).predict  # type: ignore[return-value]


def by_xgboost(X: AnyArray, log: ClickLog) -> Scores:
    some, sizes = observations(log)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    data = xgboost.DMatrix(X[some.row].astype(np.float32), label=some.click.astype(int), qid=qid)
    params = {
        "objective": "rank:ndcg", "eta": RATE, "max_leaves": LEAVES,
        "grow_policy": "lossguide", "max_depth": 0, "nthread": 1, "seed": 0,
        "subsample": ROW_FRACTION,
        "colsample_bytree": FEATURE_FRACTION,
        "lambdarank_unbiased": True, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": DEPTH,
    }  # fmt: skip
    booster = xgboost.train(params, data, num_boost_round=TREES)
    return lambda rows: booster.predict(xgboost.DMatrix(rows))


def coverage(size: int, chosen: argparse.Namespace) -> str:
    """How biases from many logs of a size lie about the simulator's."""
    folds = tr.data.read_folds(chosen.data)
    parts = [folds[number - 1].train for number in chosen.folds]
    rows = [dense(part) for part in parts]
    found = []
    for seed in range(chosen.coverage):
        train, X = parts[seed % len(parts)], rows[seed % len(parts)]
        scores = production_ranker(X, train, 10_000 + seed).predict(X)
        log = simulate_until(size, train, scores, 10_000 + seed, chosen)
        found.append(log.propensities())
    title = f"## {chosen.model} clicks, {chosen.coverage} logs of {size:,}"
    return "\n".join([title, "", *spread(found, -ETA * np.log(np.arange(1, DEPTH + 1)))])


def spread(found: Sequence[Propensities], truth: AnyArray) -> list[str]:
    """A table of places; the first has bias 0 in all logs.

    Biases of a log are not independent, as all are measured from the first place: the standard
    error of the share over all places is one over logs. "together" is the share of logs whose
    errors, by the inverse covariance, are within the 95 % quantile of their χ².
    """
    places = slice(1, min(len(each.bias) for each in found))  # pages of few items are shorter
    errors = np.array([(each.bias - truth[: len(each.bias)])[places] for each in found])
    stated = np.array([each.standard_errors[places] for each in found])
    inside = np.abs(errors) < 1.96 * stated
    squares = [
        error @ np.linalg.solve(each.covariance[places, places], error)
        for error, each in zip(errors, found, strict=True)
    ]
    together = np.array(squares) < chi2.ppf(0.95, errors.shape[1])

    def share(within: AnyArray) -> str:
        return f"{100 * within.mean():.1f} ± {100 * within.std(ddof=1) / len(found) ** 0.5:.1f}"

    lines = row("place", "error of the mean", "spread of estimates", "standard error stated",
                "within 1.96 of them, per cent", rule=True)  # fmt: skip
    for place, error, errs, held in zip(
        range(2, DEPTH + 1), errors.T, stated.T, inside.T, strict=False
    ):
        off = error.std(ddof=1) / len(found) ** 0.5
        mean = f"{error.mean():+.4f} ± {off:.4f}".replace("-", "−")
        typical = np.sqrt(np.mean(errs**2))
        lines += row(str(place), mean, f"{error.std(ddof=1):.4f}", f"{typical:.4f}", share(held))
    lines += row("all", "", "", "", share(inside.mean(1)))
    return lines + row("together", "", "", "", share(together))


def report(chosen: argparse.Namespace) -> None:
    """Tables, and the curve."""
    ndcg: dict[tuple[int, str], dict[int, list[AnyArray]]] = defaultdict(lambda: defaultdict(list))
    biases: dict[tuple[int, str], list[AnyArray]] = defaultdict(list)
    for path in sorted(chosen.out.glob(f"{name_of(chosen)}-*.json")):
        fold, size, _ = map(int, path.stem.removeprefix(f"{name_of(chosen)}-").split("-"))
        kept = json.loads(path.read_text())
        for name, values in kept["ndcg"].items():
            ndcg[size, name][fold].append(np.array(values))
        for name, pair in kept["biases"].items():
            biases[size, name].append(np.array(pair))
    # [queries] over all folds, each the mean over the logs of its fold
    all_folds = max(len(folds) for folds in ndcg.values())
    by_query = {
        key: np.concatenate([np.mean(logs, axis=0) for _, logs in sorted(folds.items())])
        for key, folds in ndcg.items()
        if len(folds) == all_folds  # means over some folds are no neighbours of those over all
    }
    sizes = sorted({size for size, _ in ndcg})
    names = sorted({name for _, name in ndcg}, key=[name for _, name in ndcg].index)
    means = {key: float(values.mean()) for key, values in by_query.items()}
    lines = [f"## {chosen.data.name}, {chosen.model} clicks", ""]
    lines += row("clicks", *(f"{size:,}" for size in sizes), rule=True)
    for name in names:
        kind = name.split(",")[0] if name.split(",")[0] in KINDS else "boosted"
        cells = []
        for size in sizes:
            if (size, name) not in means:
                cells.append("")
                continue
            low, high = means[size, f"{kind}, naive"], means[size, f"{kind}, oracle"]
            part = 100 * (means[size, name] - low) / (high - low)
            ends = name.endswith(("naive", "oracle", "ranker"))
            value = f"{means[size, name]:.4f}".removeprefix("0")
            cells.append(value if ends else f"{value} ({part:.0f})".replace("-", "−"))
        lines += row(name, *cells)
    lines += ["", "## Differences by query, with 95 % intervals", ""]
    lines += row("boosted, weighed, less", *(f"{size:,}" for size in sizes), rule=True)
    for name in names:
        if name.startswith(("LightGBM", "XGBoost", "boosted, biases", "boosted, prop")):
            cells = []
            for size in sizes:
                if (size, name) in by_query:
                    less = by_query[size, "boosted, weighed"] - by_query[size, name]
                    half = 1.96 * less.std(ddof=1) / np.sqrt(len(less))
                    cells.append(f"{less.mean():+.4f} ± {half:.4f}".replace("-", "−"))
                else:
                    cells.append("")
            lines += row(name, *cells)
    lines += ["", "## Biases within 1.96 standard errors of the simulator's", ""]
    lines += row("learned", "clicks", "per cent", "largest error of the mean", rule=True)
    truth = -ETA * np.log(np.arange(1, DEPTH + 1))
    for (size, name), several in sorted(biases.items(), key=lambda each: each[0][::-1]):
        places = min(pair.shape[1] for pair in several)  # pages of few items are shorter
        bias, errors = np.array([pair[:, 1:places] for pair in several]).transpose(1, 0, 2)
        inside = np.abs(bias - truth[1:places]) < 1.96 * errors
        off = np.abs(bias.mean(0) - truth[1:places]).max()
        lines += row(name, f"{size:,}", f"{100 * inside.mean():.0f}", f"{off:.3f}")
    text = "\n".join(lines)
    print(text)
    (chosen.out / f"{name_of(chosen)}.md").write_text(text + "\n")
    if len(sizes) > 1:
        plot(means, sizes, names, chosen)


def row(*cells: str, rule: bool = False) -> list[str]:
    line = "| " + " | ".join(cells) + " |"
    return [line, "| --- |" + " --: |" * (len(cells) - 1)] if rule else [line]


def plot(
    means: dict[tuple[int, str], float],
    sizes: list[int],
    names: list[str],
    chosen: argparse.Namespace,
) -> None:
    mpl.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name in names:
        if name.startswith("linear"):
            continue
        there = [size for size in sizes if (size, name) in means]
        style = "--" if "oracle" in name or "production" in name else "-"
        values = [means[size, name] for size in there]
        axes.plot(there, values, style, marker="o", label=name.replace("`", ""))
    axes.set(xscale="log", xlabel="clicks", ylabel="NDCG@10 by grades, held-out queries")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(chosen.out / f"{name_of(chosen)}.svg")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        main()
