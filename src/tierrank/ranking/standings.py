"""How rankers stand on the same lists: means with intervals, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tierrank.metrics import bootstrap_interval, from_name, paired_test

Array = np.ndarray[Any, Any]


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

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return asdict(self)


def standings(values: Mapping[str, Mapping[str, Array]], *, seed: int = 0) -> list[Standing]:
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
        base = columns[first][there]
        for name, column in columns.items():
            own = column[there]
            interval = bootstrap_interval(own, generator=seed)
            standing = Standing(name, metric, len(own), *interval[:3])
            if name != first:
                test = paired_test(own, base, generator=seed)
                standing = Standing(
                    name, metric, len(own), *interval[:3], *test[:3], p_value=test.p_value
                )
            result.append(standing)
    return result


def best_mean(standings: Sequence[Standing]) -> float:
    """The best mean by one metric: the largest, or of a loss the smallest."""
    better = max if from_name(standings[0].metric).higher_is_better else min
    return better(each.mean for each in standings)
