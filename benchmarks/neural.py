"""Training a network: PL-Partition beside ListMLE, on the same network, lists and loop.

    python benchmarks/neural.py            # about 10 minutes on 2 cores
    python benchmarks/neural.py --quick    # about 1 minute: fewer lists, fewer rounds

A time is that of an epoch of `NeuralRanker`, without what a fit does once (checking and
standardising the rows): the difference between fits of two epochs and of one would be noisy, so
the clock starts after the first epoch. ListMLE takes ties in the order of the input, as published;
so it invents an order, and needs no integral. It runs as the objective `listmle` has it, and in
plain torch on lists that lie sorted, which is the least that it can cost. The fits take turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from measure import Claim, Column, Progress, Report, Table, claims_table, figures, main
from torch import Tensor

import tierrank as tr
from tierrank.losses import Objective

FEATURES = 136  # as many as MSLR-WEB has
EXACT = "pl-partition"
OTHERS = ("listmle", "plain listmle")
LIMIT = 1.2


def plain_list_mle(module: Objective, scores: Tensor, tiers: tr.Tiers) -> Tensor:
    """Minus the log-probability of each list's best-first order; all lists are of one length."""
    best_first = scores[tiers.items].view(len(tiers), -1)
    return (best_first.flip(1).logcumsumexp(1).flip(1) - best_first).sum(1)


class Case(NamedTuple):
    """Lists of one length, and the network that is trained on them."""

    lists: int
    length: int
    hidden: tuple[int, ...]

    @property
    def name(self) -> str:
        network = "-".join(map(str, (FEATURES, *self.hidden, 1)))
        return f"{self.lists:,} lists of {self.length:,}, network {network}"


class Plan(NamedTuple):
    """How much to measure."""

    cases: Sequence[Case]
    epochs: int  # timed in a round
    rounds: int


FULL = Plan(
    cases=[
        Case(2_000, 20, (256, 128)),
        Case(2_000, 100, (256, 128)),
        Case(200, 1_000, (256, 128)),
        Case(2_000, 100, (64, 32)),
    ],
    epochs=2,
    rounds=3,
)
QUICK = Plan(cases=[Case(500, 20, (256, 128)), Case(200, 100, (256, 128))], epochs=1, rounds=3)


class Data(NamedTuple):
    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    group: np.ndarray[Any, Any]


def data_of(case: Case) -> Data:
    """Standard normal features; labels 0 to 4, mostly low, by a noisy score of a few of them."""
    rng = np.random.default_rng(case.length)
    X = rng.normal(size=(case.lists * case.length, FEATURES)).astype(np.float32)
    score = np.abs(X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3] + rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(score, [0.5, 0.8, 0.93, 0.98]), score)
    return Data(X, y, np.full(case.lists, case.length))


class Clock:
    """Seconds an epoch, from the end of the first one; and how many of them the loss takes."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.losses = 0.0

    def end_epoch(self, progress: object) -> None:
        self.ends.append(time.perf_counter())
        if len(self.ends) == 1:
            self.losses = 0.0

    @property
    def epoch(self) -> float:
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)

    def around(self, forward: Any) -> Any:
        """An objective's forward that counts its time."""

        def timed(module: Objective, *given: Any) -> Any:
            begun = time.perf_counter()
            found = forward(module, *given)
            self.losses += time.perf_counter() - begun
            return found

        return timed


def fit(case: Case, data: Data, objective: str, epochs: int) -> Clock:
    """Train for one epoch more than is timed."""
    clock = Clock()
    ranker = tr.NeuralRanker(
        EXACT if objective == EXACT else "listmle",
        objective_params={} if objective == EXACT else {"ties": "input"},
        hidden=case.hidden,
        max_epochs=1 + epochs,
        accelerator="cpu",
        random_state=0,
    )
    forward = plain_list_mle if objective == "plain listmle" else Objective.forward
    with mock.patch.object(Objective, "forward", clock.around(forward)):
        ranker.fit(data.X, data.y, group=data.group, watch=clock.end_epoch)
    return clock


class Found(NamedTuple):
    """Of one case, by round: seconds an epoch, and the part of it that the loss's value takes."""

    epoch: dict[str, list[float]]
    part: dict[str, list[float]]

    def ratios(self, other: str) -> list[float]:
        pairs = zip(self.epoch[EXACT], self.epoch[other], strict=True)
        return [mine / theirs for mine, theirs in pairs]


def measure(case: Case, plan: Plan, progress: Progress) -> Found:
    """Time all in turns; who begins alternates too."""
    data, names = data_of(case), (EXACT, *OTHERS)
    found = Found({name: [] for name in names}, {name: [] for name in names})
    for number in range(plan.rounds):
        progress(f"{case.name}: round {number + 1} of {plan.rounds}")
        for name in names[:: -1 if number % 2 else 1]:
            clock = fit(case, data, name, plan.epochs)
            found.epoch[name].append(clock.epoch)
            found.part[name].append(clock.losses / plan.epochs / clock.epoch)
    return found


def table(found: dict[Case, Found]) -> Table:
    columns = [Column("an epoch of"), Column("seconds", figures), Column("loss, %", figures)]
    columns += [Column(name, figures) for name in (f"{EXACT} over it", "lowest", "highest")]
    rows: list[list[Any]] = []
    for case, each in found.items():
        for name in (EXACT, *OTHERS):
            row: list[Any] = [f"{name}, {case.name}", median(each.epoch[name])]
            row.append(100 * median(each.part[name]))
            ratios = each.ratios(name)
            row += [None] * 3 if name == EXACT else [median(ratios), min(ratios), max(ratios)]
            rows.append(row)
    return Table("Training a network", columns, rows, [NOTE])


NOTE = (
    "Medians over rounds, and the ratio's range. The loss is its value and what prepares it; for "
    "the objectives the gradient comes with it, in plain torch it is not counted."
)


def claims(found: dict[Case, Found]) -> Iterator[Claim]:
    for case, each in found.items():
        for name in OTHERS:
            text = f"{case.name}: training time, {EXACT} over {name}"
            yield Claim(text, median(each.ratios(name)), LIMIT)


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    progress("compiling, if need be")
    for name in (EXACT, *OTHERS):
        small = Case(40, 20, (8,))
        fit(small, data_of(small), name, 1)
    found = {case: measure(case, plan, progress) for case in plan.cases}
    report.add(table(found))
    kept = list(claims(found))
    report.add(claims_table(kept))
    return kept


if __name__ == "__main__":
    main(
        "Time the training of a network by PL-Partition and by ListMLE.",
        ["torch", "lightning-fabric", "numpy", "tierrank"],
        run,
        full=FULL,
        quick=QUICK,
    )
