"""Worths through time on football: beside kickscore, and beside worths that do not change.

    python benchmarks/through_time.py            # some 10 minutes on 2 cores
    python benchmarks/through_time.py --quick    # some teams and years, a minute

The first table compares posteriors of the same model and prior: games of some teams without ties,
log-worths that walk from year to year, σ² and the standard deviation of the first year given. Ours
is the normal approximation at the mode (Laplace), kickscore's by expectation propagation (EP) or
variational inference (KL), one item at a time; and the exact one is by importance sampling.

The second predicts forward, every second year from 2006 on: everything before it is fitted, that
year's games are predicted.
kickscore's ternary model has the same likelihood as Rao and Kupper's, its margin is log θ. It is
told θ and σ² as ours found them before the first year, and the first side's advantage is an item of
its own; it goes on from what it had before.
"""

from __future__ import annotations

import lzma
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import Claim, Column, Progress, Report, Table, figures, main

import tierrank as tr
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.random_walk import Nodes, Posterior, SeenGames, Walk, mode

SCALE = 2.0  # standard deviation of a first log-worth
DRAWS = 400_000  # of importance sampling


class Plan(NamedTuple):
    """Teams of the first table; years of the second, and how many teams."""

    teams: int
    small_since: int
    fitted_since: int
    years: range
    busiest: int | None


class Matches(NamedTuple):
    """[games] each."""

    date: np.ndarray[Any, Any]
    first: np.ndarray[Any, Any]
    second: np.ndarray[Any, Any]
    outcome: np.ndarray[Any, Any]
    neutral: np.ndarray[Any, Any]

    def of(self, which: Any) -> Matches:
        return Matches(*(column[which] for column in self))

    def rows(self) -> list[tuple[str, str, int]]:
        return list(
            zip(self.first.tolist(), self.second.tolist(), self.outcome.tolist(), strict=True)
        )

    def busiest(self, teams: int) -> Matches:
        """Games among the teams that played most."""
        names, played = np.unique(np.concatenate([self.first, self.second]), return_counts=True)
        chosen = names[np.argsort(-played, kind="stable")[:teams]]
        return self.of(np.isin(self.first, chosen) & np.isin(self.second, chosen))


def read() -> Matches:
    import csv

    folder = Path(os.environ.get("TIERRANK_DATA", "../shared/data"))
    with lzma.open(folder / "football" / "results.csv.xz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["home_score"].isdigit()]
    goals = np.array([[int(row["home_score"]), int(row["away_score"])] for row in rows])
    return Matches(
        np.array([row["date"] for row in rows], dtype="datetime64[D]"),
        np.array([row["home_team"] for row in rows]),
        np.array([row["away_team"] for row in rows]),
        np.sign(goals[:, 0] - goals[:, 1]),
        np.array([row["neutral"] == "TRUE" for row in rows]),
    )


# -- one posterior, four ways ---------------------------------------------------------------------


def posteriors(plan: Plan, report: Report, progress: Progress, matches: Matches) -> None:
    """Means and standard deviations of all log-worths, by item and year."""
    variance = 0.1
    year = matches.date.astype("datetime64[Y]").astype(int) + 1970
    small = matches.of((year >= plan.small_since) & (matches.outcome != 0)).busiest(plan.teams)
    when = small.date.astype("datetime64[Y]").astype(int) + 1970
    names, codes = np.unique(np.concatenate([small.first, small.second]), return_inverse=True)
    nodes, node = Nodes.of(len(names), codes, np.tile(when, 2))
    size, games = len(nodes), len(when)
    progress("laplace")
    begun = time.perf_counter()
    played = Fixtures(
        tuple(range(size)), np.arange(size), np.arange(size + 1), node[:games], node[games:],
        small.outcome, np.zeros(games), np.ones(games),
    )  # fmt: skip
    played = played._select(np.argsort(played.first, kind="stable"))
    seen, walk = SeenGames(nodes, played, "bradley-terry", home=False), Walk(nodes, SCALE, variance)
    posterior = Posterior(walk, seen, mode(walk, seen, np.zeros(size), max_iter=50).point)
    mean, spread = posterior.point, np.sqrt(posterior.factor.smooth().variance)
    found = {"tierrank, Laplace": (mean, spread, time.perf_counter() - begun)}
    for method in ("ep", "kl"):
        progress(f"kickscore, {method}")
        begun = time.perf_counter()
        found[f"kickscore, {method.upper()}"] = (
            *kickscore_posterior(small, when, names, nodes, variance, method),
            time.perf_counter() - begun,
        )
    progress("importance sampling")
    begun = time.perf_counter()
    exact, deviation, effective = sampled(posterior, played, walk)
    found[f"exact ({effective:,.0f} effective draws)"] = (
        exact, deviation, time.perf_counter() - begun
    )  # fmt: skip
    rows = [
        [
            name,
            float(np.sqrt(np.mean((at - exact) ** 2))),
            float(np.abs(at - exact).max()),
            float(np.median(sd / deviation)),
            seconds,
        ]
        for name, (at, sd, seconds) in found.items()
    ]
    columns = [
        Column("posterior"), Column("mean, rms from exact", figures), Column("largest", figures),
        Column("sd / exact, median", figures), Column("seconds", figures),
    ]  # fmt: skip
    title = f"{games:,} games of {len(names)} teams, {size:,} log-worths, σ² = {variance} a year"
    report.add(Table(title, columns, rows))


def kickscore_posterior(
    small: Matches, when: Any, names: Any, nodes: Nodes, variance: float, method: str
) -> tuple[Any, Any]:
    import kickscore as ks

    model = ks.BinaryModel("logit")
    begun = nodes.positions[nodes.period[nodes.first]]
    for item, start in zip(nodes.item[nodes.first], begun, strict=True):
        model.add_item(str(names[item]), kernel_of(SCALE, variance, float(start)))
    order = np.argsort(when, kind="stable")
    for first, second, outcome, t in zip(*(c[order] for c in (
        small.first, small.second, small.outcome, when)), strict=True):  # fmt: skip
        pair = ([str(first)], [str(second)])
        model.observe(*(pair if outcome > 0 else pair[::-1]), t=float(t))
    model.fit(method=method, tol=1e-6, max_iter=500)
    mean, var = np.empty(len(nodes)), np.empty(len(nodes))
    at = nodes.positions[nodes.period].astype(float)
    for item, name in enumerate(names):
        own = np.flatnonzero(nodes.item == item)
        mean[own], var[own] = model.item[str(name)].predict(at[own])
    return mean, np.sqrt(var)


def kernel_of(scale: float, variance: float, start: float) -> Any:
    """Of a random walk that at its start has this standard deviation: it began as much earlier.

    (A constant and a walk from the start on are the same, but singular to kickscore's filter.)
    """
    import kickscore as ks

    return ks.kernel.Wiener(var=variance, t0=start - scale**2 / variance)


def sampled(posterior: Posterior, played: Fixtures, walk: Walk) -> tuple[Any, Any, float]:
    """Means and standard deviations by importance sampling from the normal approximation.

    Draws are x = m + H^−½ z, by the dense inverse.
    """
    size = len(posterior.point)
    covariance = posterior.factor.solve(np.eye(size))
    root = np.linalg.cholesky((covariance + covariance.T) / 2)
    random = np.random.default_rng(0)
    logs, total, squares = [], np.zeros(size), np.zeros(size)
    draws = []
    for _ in range(DRAWS // 2000):
        z = random.normal(size=(2000, size))
        x = posterior.point + z @ root.T
        lead = x[:, played.first] - x[:, played.second]
        log = -(np.logaddexp(0, -played.outcome * lead) * played.weights).sum(axis=1)
        log -= np.array([walk.value_and_gradient(each)[0] for each in x])
        logs.append(log + (z**2).sum(axis=1) / 2)
        draws.append(x.astype(np.float32))
    weight = np.exp(np.concatenate(logs) - max(log.max() for log in logs))
    weight /= weight.sum()
    for number, x in enumerate(draws):
        own = weight[2000 * number : 2000 * (number + 1)]
        total += own @ x
        squares += own @ x.astype(np.float64) ** 2
    return total, np.sqrt(squares - total**2), 1 / float(weight @ weight)


# -- forward --------------------------------------------------------------------------------------


def years_of(matches: Matches, plan: Plan) -> Iterator[tuple[int, Matches, Matches]]:
    """Every year with what was before, and what of it is between teams that were seen."""
    year = matches.date.astype("datetime64[Y]").astype(int) + 1970
    for now in plan.years:
        before, after = matches.of(year < now), matches.of(year == now)
        known = np.unique(np.concatenate([before.first, before.second]))
        yield now, before, after.of(np.isin(after.first, known) & np.isin(after.second, known))


def forward(plan: Plan, report: Report, progress: Progress, matches: Matches) -> list[Claim]:
    """Mean log-loss of games that are predicted a year ahead, and the seconds of all fits."""
    year = matches.date.astype("datetime64[Y]").astype(int) + 1970
    matches = matches.of(year >= plan.fitted_since)
    if plan.busiest is not None:
        matches = matches.busiest(plan.busiest)
    losses: dict[str, list[Any]] = {}
    seconds: dict[str, float] = {}

    def note(name: str, values: Any, begun: float) -> None:
        losses.setdefault(name, []).append(values)
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun

    variance, first_fit = None, 0.0
    peer: Any = None
    for now, before, after in years_of(matches, plan):
        progress(f"{now}: worths that do not change")
        games, played = before.rows(), after.rows()
        begun = time.perf_counter()
        still = tr.PairedTies("rao-kupper", home=True, prior=f"gaussian:{SCALE}")
        still.fit(games, neutral=before.neutral)
        note("the same at all times (PairedTies)", still.log_prob(played, neutral=after.neutral),
             begun)  # fmt: skip
        progress(f"{now}: through time")
        begun = time.perf_counter()
        fitted = tr.WorthsThroughTime(
            "rao-kupper", step="30d", home=True, prior=f"gaussian:{SCALE}", variance=variance
        ).fit(games, times=before.date, neutral=before.neutral)
        if variance is None:
            variance, first_fit = fitted.variance_, time.perf_counter() - begun
            begun = time.perf_counter()
        ahead = fitted.log_prob(played, times=after.date, neutral=after.neutral)
        note("tierrank, at the estimates", ahead, begun)
        begun = time.perf_counter()
        ahead = fitted.log_prob(played, times=after.date, neutral=after.neutral, averaged=True)
        note("tierrank, averaged", ahead, begun)
        progress(f"{now}: kickscore")
        begun = time.perf_counter()
        if peer is None:
            peer = Peer(variance, float(np.log1p(np.exp(fitted._extras["tie"]))))
        peer.fit(before)
        note("kickscore, EP", peer.log_prob(after), begun)
    often = float(np.mean(np.concatenate(losses["tierrank, averaged"])))
    rows = [
        [name, -float(np.mean(np.concatenate(each))), seconds[name]]
        for name, each in losses.items()
    ]
    count = len(np.concatenate(losses["tierrank, averaged"]))
    columns = [
        Column("log-worths"),
        Column("log-loss", "{:.4f}".format),
        Column("seconds", figures),
    ]
    last = len(matches.date)
    title = f"{count:,} games of {len(plan.years)} years from {plan.years[0]} on, a year ahead"
    report.add(Table(title, columns, rows, [
        f"Fitted: games since {plan.fitted_since}, up to {last:,}. σ² = {variance:.4g} of 30 days, "
        f"found in the first fit in {first_fit:.1f} s more; kickscore was told it, and θ.",
    ]))  # fmt: skip
    rival = -float(np.mean(np.concatenate(losses["kickscore, EP"])))
    return [Claim("log-loss a year ahead beside kickscore's", -often / rival, 1.002)]


class Peer:
    """kickscore's ternary model, which goes on from year to year."""

    def __init__(self, variance: float, margin: float) -> None:
        import kickscore as ks

        self.variance, self.done = variance, 0
        self.model = ks.TernaryModel(margin=margin, obs_type="logit")
        self.model.add_item("\N{HOUSE BUILDING}", ks.kernel.Constant(var=SCALE**2))
        self.epoch: Any = None

    def sides(self, matches: Matches) -> Iterator[tuple[dict[str, float], dict[str, float], float]]:
        """Who met, with the first side's advantage as a player, and when in steps."""
        when = (matches.date - self.epoch).astype(int) // 30
        for first, second, neutral, t in zip(
            matches.first.tolist(), matches.second.tolist(), matches.neutral.tolist(),
            when.tolist(), strict=True,
        ):  # fmt: skip
            home = {} if neutral else {"\N{HOUSE BUILDING}": 1.0}
            yield {first: 1.0, **home}, {second: 1.0}, float(t)

    def fit(self, before: Matches) -> None:
        order = np.argsort(before.date, kind="stable")
        self.epoch = before.date[order[0]]
        new = before.of(order[self.done :])
        self.done = len(order)
        for (one, two, t), outcome in zip(self.sides(new), new.outcome.tolist(), strict=True):
            for name in (*one, *two):
                if name not in self.model.item:
                    self.model.add_item(name, kernel_of(SCALE, self.variance, t))
            pair = (one, two) if outcome >= 0 else (two, one)
            self.model.observe(*pair, t=t, tie=outcome == 0)
        self.model.fit(method="ep", tol=1e-3, max_iter=100)

    def log_prob(self, after: Matches) -> Any:
        chances = np.array([self.model.probabilities(*side[:2], t=side[2])
                            for side in self.sides(after)])  # fmt: skip
        return np.log(chances[np.arange(len(chances)), 1 - after.outcome])


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    """Both tables."""
    import kickscore as ks

    progress("kickscore compiles")
    warm = ks.BinaryModel("logit")
    for name in "ab":
        warm.add_item(name, kernel_of(1.0, 1.0, 0.0))
    warm.observe(["a"], ["b"], t=0.0)
    for method in ("ep", "kl"):
        warm.fit(method=method)
    matches = read()
    posteriors(plan, report, progress, matches)
    return forward(plan, report, progress, matches)


if __name__ == "__main__":
    main(
        __doc__.splitlines()[0],
        ["numpy", "scipy", "kickscore", "tierrank"],
        measure,
        Plan(16, 2005, 1980, range(2006, 2026, 2), None),
        Plan(8, 2015, 2010, range(2020, 2022), 40),
    )
