"""Rankers compared: data cut between queries, fits fold by fold, how they stand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tierrank._types import AnyArray
from tierrank.data.ranking_data import RankingData
from tierrank.metrics import Metric, bootstrap_interval, evaluate, from_name, holm, paired_test
from tierrank.ranks import ALONE, Ranks
from tierrank.tiers.arrays import group_rows
from tierrank.training import Watch

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker
    from tierrank.ranking.peers import TreePeer


def hold_out(
    data: RankingData, fraction: float, seed: int, ranks: Ranks = ALONE
) -> tuple[RankingData, RankingData]:
    """Split off a share of the queries, drawn at random.

    Parameters
    ----------
    data
        rows of at least two queries
    fraction
        the share of the queries to hold out, between 0 and 1; at least one, and not all
    seed
        the same seed draws the same queries
    ranks
        if several, each has a part of the queries: a share of all is drawn, whatever the parts

    Returns
    -------
    rest, held_out
        both with their rows in the order of `data`
    """
    if not 0 < fraction < 1:
        raise ValueError(f"the share to hold out lies between 0 and 1; it is not {fraction}.")
    query, own = _numbered(data)
    counts = ranks.gather(own)
    first, count = sum(counts[: ranks.rank]), sum(counts)
    if count < 2:
        raise ValueError(
            "there is one query only, and none can be held out of it: give validation data, or "
            "learn without."
        )
    held = np.zeros(count, dtype=bool)
    size = min(max(round(fraction * count), 1), count - 1)
    held[np.random.default_rng(seed).permutation(count)[:size]] = True
    mine = held[first : first + own][query]
    return data.select(~mine), data.select(mine)


def split_folds(data: RankingData, folds: int, seed: int) -> list[tuple[RankingData, RankingData]]:
    """Cut the queries at random into folds: for each, all the others' rows, and its own."""
    query, count = _numbered(data)
    if not 2 <= folds <= count:
        raise ValueError(
            f"{count} queries make 2 to {count} folds, not {folds}."
            if count > 1
            else "there is one query only, and it cannot be cut into folds. Is the query right?"
        )
    fold_of = np.empty(count, dtype=np.int64)
    fold_of[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    own = fold_of[query]
    return [(data.select(own != fold), data.select(own == fold)) for fold in range(folds)]


def _numbered(data: RankingData) -> tuple[AnyArray, int]:
    """[rows] the number of each row's query, and how many there are."""
    query, keys = group_rows(data.qid, len(data))
    return query, len(keys)


@dataclass(frozen=True)
class Standing:
    """One ranker by one metric.

    Attributes
    ----------
    name, metric
        whose it is, and by what
    queries
        how many lists the mean is over
    mean, low, high
        the mean and its 95% bootstrap interval
    difference, difference_low, difference_high, p_value
        the mean difference to the first ranker on the same lists, its interval, and the p-value
        of a paired randomisation test; None for the first ranker itself
    p_holm
        the p-value corrected for as many comparisons as there are by this metric, see `holm`
    """

    name: str
    metric: str
    queries: int
    mean: float
    low: float
    high: float
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return asdict(self)


def standings(values: Mapping[str, Mapping[str, AnyArray]], *, seed: int = 0) -> list[Standing]:
    """Standings of all rankers, metric by metric.

    Parameters
    ----------
    values
        by the ranker's name and the metric's name, [lists] values as a metric gives them with
        ``reduction="none"``; the lists are the same for all rankers. A list that is NaN for one
        (``empty="skip"``) is left out for all.
    seed
        of the resampling

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([0.5, 0.6, 0.4, 0.5]), np.array([0.9, 0.8, 0.7, 0.6])
    >>> for each in standings({"a": {"map": a}, "b": {"map": b}}):
    ...     print(each.name, each.mean, each.difference, each.p_value)
    a 0.5 None None
    b 0.75 0.25 0.125
    """
    first = next(iter(values))
    result = []
    for metric in values[first]:
        columns = {name: np.asarray(by_metric[metric]) for name, by_metric in values.items()}
        there = ~np.isnan(np.stack(list(columns.values()))).any(axis=0)
        if not there.any():
            raise ValueError(f"{metric} has no value in any list: no list has anything relevant.")
        found = {name: column[there] for name, column in columns.items()}
        base = found[first]
        tests = {
            name: paired_test(own, base, generator=seed)
            for name, own in found.items() if name != first
        }  # fmt: skip
        corrected = holm([test.p_value for test in tests.values()]).tolist()
        against = {
            name: (*test[:3], test.p_value, p_holm)
            for (name, test), p_holm in zip(tests.items(), corrected, strict=True)
        }
        for name, own in found.items():
            interval = bootstrap_interval(own, generator=seed)[:3]
            result.append(Standing(name, metric, len(own), *interval, *against.get(name, ())))
    return result


def best_mean(standings: Sequence[Standing]) -> float:
    """The best mean by one metric: the largest, or of a loss the smallest."""
    better = max if from_name(standings[0].metric).higher_is_better else min
    return better(each.mean for each in standings)


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
    values: dict[str, AnyArray]
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
        values: dict[str, dict[str, list[AnyArray]]] = {}
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
    rankers: Mapping[str, Ranker | TreePeer],
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
        unfitted, by name, ours or those of `tierrank.ranking.peers`; they are copied, not changed
    folds
        read one after the other, so that only one needs to be in memory
    metrics
        what is measured on the test parts
    starting
        called with a ranker's and a fold's name before the fit; may give a `watch` for it
    """
    from sklearn.base import clone

    wanted = list(metrics)
    running = dict(rankers)
    for fold in folds:
        if fold.test is None:
            raise ValueError(f"{fold.name} has no test part to compare by.")
        # labels that a metric refuses are better refused before the fits
        evaluate(np.zeros(len(fold.test)), fold.test.y, wanted, qid=fold.test.qid)
        for name in list(running):
            watch = starting(name, fold.name) if starting else None
            result = _one_fold(name, clone(running[name]), fold, wanted, watch)
            if result.failure is not None:
                del running[name]
            yield result


def _one_fold(
    name: str, ranker: Ranker | TreePeer, fold: Parts, metrics: list[Metric], watch: Watch | None
) -> FoldResult:
    from tierrank.ranking.peers import TreePeer

    train, valid, test = fold.train, fold.valid, fold.test
    assert test is not None
    begin = time.perf_counter()

    def rows(part: RankingData) -> Any:
        """For ours, all that is known of the columns; for the libraries, the numbers."""
        if not isinstance(ranker, TreePeer):
            return part
        if part.categories:
            raise ValueError(
                f"columns with categories ({', '.join(part.categories)}) are not compared with "
                "those of other libraries: leave them out, or take BoostedRanker on the library"
            )
        return part.X

    try:
        held_out = None if valid is None else (rows(valid), valid.y, valid.qid)
        ranker.fit(rows(train), train.y, qid=train.qid, eval_set=held_out, watch=watch)
    except ValueError as error:
        return FoldResult(name, fold.name, {}, time.perf_counter() - begin, failure=str(error))
    seconds = time.perf_counter() - begin
    scores = ranker.predict(rows(test), qid=test.qid)
    values = evaluate(scores, test.y, metrics, qid=test.qid, reduction="none")
    return FoldResult(name, fold.name, values, seconds, ranker.history_.best_step)
