"""The demo: draw lists with ties from known worths, and see which likelihood finds them again."""

from __future__ import annotations

from collections.abc import Iterator
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
