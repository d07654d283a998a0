"""Several rankers on the same folds: fitted to the same rows, tested on the same queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from tierrank.data.ranking_data import RankingData
from tierrank.metrics import Metric
from tierrank.ranking.base import Ranker
from tierrank.ranking.splits import hold_out, split_folds
from tierrank.ranking.standings import Standing, standings
from tierrank.training import Watch

Array = np.ndarray[Any, Any]


class Parts(Protocol):
    """A fold: what to learn from, what to stop by (if anything), what to be judged by."""

    @property
    def name(self) -> str: ...
    @property
    def train(self) -> RankingData: ...
    @property
    def valid(self) -> RankingData | None: ...
    @property
    def test(self) -> RankingData | None: ...


@dataclass(frozen=True)
class QueryFold:
    """A fold that was cut out of one data set."""

    name: str
    train: RankingData
    valid: RankingData | None
    test: RankingData


@dataclass(frozen=True)
class FoldResult:
    """What one ranker did in one fold.

    Attributes
    ----------
    name, fold
        the ranker and the fold
    values
        by metric, [queries of the fold's test part]
    seconds
        how long the fit took
    best_step
        the step at which the fit was best by its validation data, if there were some
    failure
        why there are no values, if the fit refused
    """

    name: str
    fold: str
    values: dict[str, Array]
    seconds: float
    best_step: int | None = None
    failure: str | None = None


@dataclass
class Comparison:
    """Results as they come in, fold after fold."""

    results: list[FoldResult] = field(default_factory=list)

    def add(self, result: FoldResult) -> None:
        """Take a fold's result in."""
        self.results.append(result)

    @property
    def failures(self) -> dict[str, str]:
        """Why a ranker is left out, by its name."""
        return {each.name: f"{each.fold}: {each.failure}" for each in self.results if each.failure}

    def seconds(self) -> dict[str, float]:
        """How long the fits of each ranker took, summed over the folds."""
        total: dict[str, float] = {}
        for each in self.results:
            total[each.name] = total.get(each.name, 0.0) + each.seconds
        return total

    def standings(self, *, seed: int = 0) -> list[Standing]:
        """Means over the test queries of all folds, with those that failed left out."""
        values: dict[str, dict[str, list[Array]]] = {}
        for each in self.results:
            if each.name not in self.failures:
                own = values.setdefault(each.name, {metric: [] for metric in each.values})
                for metric, column in each.values.items():
                    own[metric].append(column)
        if not values:
            raise ValueError(f"no ranker could be fitted: {'; '.join(self.failures.values())}")
        joined = {
            name: {metric: np.concatenate(columns) for metric, columns in own.items()}
            for name, own in values.items()
        }
        return standings(joined, seed=seed)


def query_folds(
    data: RankingData, folds: int, *, valid_fraction: float = 0.2, seed: int = 0
) -> list[QueryFold]:
    """Cut data into folds by query; a share of each fold's training queries is to stop by."""
    cut = []
    for number, (rest, test) in enumerate(split_folds(data, folds, seed), start=1):
        train, valid = hold_out(rest, valid_fraction, seed)
        cut.append(QueryFold(f"fold {number}", train, valid, test))
    return cut


def compare(
    rankers: Mapping[str, Ranker],
    folds: Iterable[Parts],
    metrics: Iterable[Metric],
    *,
    starting: Callable[[str, str], Watch | None] | None = None,
) -> Iterator[FoldResult]:
    """Fit every ranker in every fold and measure it there; results come one by one.

    A ranker that refuses (a loss that ends in NaN, say) gives a result that says why, and is not
    tried in further folds.

    Parameters
    ----------
    rankers
        unfitted, by name; they are copied, not changed
    folds
        read one after the other, so that only one needs to be in memory
    metrics
        what is measured on the test parts
    starting
        called with a ranker's and a fold's name before the fit; may give a `watch` for it
    """
    wanted = list(metrics)
    running = dict(rankers)
    for fold in folds:
        if fold.test is None:
            raise ValueError(f"{fold.name} has no test part to compare by.")
        for metric in wanted:  # labels that it refuses are better refused before the fits
            metric(np.zeros(len(fold.test)), fold.test.y, qid=fold.test.qid)
        for name in list(running):
            watch = starting(name, fold.name) if starting else None
            result = _one_fold(name, clone(running[name]), fold, wanted, watch)
            if result.failure is not None:
                del running[name]
            yield result


def _one_fold(
    name: str, ranker: Ranker, fold: Parts, metrics: list[Metric], watch: Watch | None
) -> FoldResult:
    train, valid, test = fold.train, fold.valid, fold.test
    assert test is not None
    begin = time.perf_counter()
    try:
        ranker.fit(
            train.X,
            train.y,
            qid=train.qid,
            eval_set=None if valid is None else (valid.X, valid.y, valid.qid),
            watch=watch,
        )
    except ValueError as error:
        return FoldResult(name, fold.name, {}, time.perf_counter() - begin, failure=str(error))
    seconds = time.perf_counter() - begin
    scores = ranker.predict(test.X, qid=test.qid)
    values = {
        metric.name: metric(scores, test.y, qid=test.qid, reduction="none") for metric in metrics
    }
    return FoldResult(name, fold.name, values, seconds, ranker.history_.best_step)
