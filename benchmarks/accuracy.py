"""How exact the likelihood is on tiers that nobody picked: random ones, and equal ones of any size.

    python benchmarks/accuracy.py            # 100,000 random tiers of 6 to 50,000: some 5 minutes
    python benchmarks/accuracy.py --quick    # 2,000 of them

Errors of log P are relative to max(1, |log P|), those of the gradient absolute. Random tiers are
compared with Gauss-Legendre quadrature in float64, written here and plainly: 160 nodes where the
integrand is within e^−45 of its maximum. A sample of them is compared with 40 digits, and so is
that quadrature itself. Tiers of equal scores have a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from measure import Claim, Column, Progress, Report, Table, claims_table, error, main
from mpmath import mp, mpf
from peers import from_tests

import tierrank as tr

DTYPES = {"float32": torch.float32, "float64": torch.float64}
PROMISE = {"float32": 1e-5, "float64": 1e-12}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(160)
DROP = 45.0
Array = np.ndarray


class Plan(NamedTuple):
    """How much to measure."""

    tiers: int  # random ones: of every hundred, one has more than 500 items
    digits: int  # of them, how many against 40 digits
    sizes: Sequence[int]  # of tiers of equal scores
    heights: int  # how many scores relative to the item below, from −16 to 20


FULL = Plan(100_000, 200, (10, 100, 1_000, 10_000, 100_000, 1_000_000), 73)
QUICK = Plan(2_000, 20, (10, 1_000, 100_000), 19)


# Random tiers --------------------------------------------------------------------------------


def random_tiers(number: int) -> Iterator[Array]:
    """Scores relative to what stands below: clusters, normal and uniform ones, in float32."""
    rng = np.random.default_rng(2026)
    for i in range(number):
        low, high = (500, 50_000) if i % 100 == 99 else (6, 500)
        size = int(np.exp(rng.uniform(np.log(low), np.log(high))))
        centre, spread = rng.uniform(-12, 12), np.exp(rng.uniform(np.log(0.01), np.log(8)))
        kind = rng.integers(4)
        if kind == 0:
            d = centre + spread * rng.normal(size=size)
        elif kind == 1:
            d = centre + spread * rng.uniform(-2, 2, size=size)
        elif kind == 2:  # two clusters
            d = (
                centre
                + spread * rng.normal(size=size)
                + rng.uniform(0, 20) * (rng.random(size) < 0.5)
            )
        else:  # an outlier or two
            d = np.full(size, centre)
            d[:2] = rng.uniform(-40, 40, 2)
        yield np.clip(d, -40, 40).astype(np.float32)


def log_integrand(x: Array, d: Array) -> Array:
    """[x] of x − eˣ + Σ log(1 − exp(−e^{x + d}))."""
    z = np.exp(np.add.outer(x, d))
    with np.errstate(divide="ignore"):  # in the branch that is not taken
        log_q = np.where(z < 0.7, np.log(-np.expm1(-z)), np.log1p(-np.exp(-z)))
    return x - np.exp(x) + log_q.sum(1)


def by_legendre(d: Array) -> tuple[float, Array]:
    """log P of a tier over one item of score 0, and its gradient in the tier's scores."""
    left, right = -DROP - 2.0, np.log1p(len(d)) + 5.0
    for _ in range(3):  # to where the integrand is not negligible: each time between 40 points
        x = np.linspace(left, right, 40)
        f = log_integrand(x, d)
        there = np.flatnonzero(f > f.max() - DROP)
        left, right = x[max(there[0] - 1, 0)], x[min(there[-1] + 1, 39)]
    half = 0.5 * (right - left)
    x = 0.5 * (left + right) + half * NODES
    f = log_integrand(x, d)
    weight = WEIGHTS * np.exp(f - f.max())
    total = weight.sum()
    z = np.exp(np.add.outer(x, d))
    with np.errstate(over="ignore"):  # z / ∞ is 0
        slope = (weight / total) @ (z / np.expm1(z))
    return float(f.max() + np.log(half * total)), slope


def ours(tiers: Sequence[Array], dtype: torch.dtype) -> tuple[Array, list[Array]]:
    """The same by `tr.log_prob`: every tier in a list of its own, over one item of score 0."""
    lengths = np.array([len(d) + 1 for d in tiers])
    scores = torch.from_numpy(np.concatenate([np.append(d, np.float32(0)) for d in tiers]))
    labels = np.ones(len(scores))
    labels[np.cumsum(lengths) - 1] = 0
    leaf = scores.to(dtype).requires_grad_()
    value = tr.log_prob(leaf, tr.Tiers.from_labels(labels, lengths=lengths))
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    parts = np.split(gradient.double().numpy(), np.cumsum(lengths)[:-1])
    return value.detach().double().numpy(), [part[:-1] for part in parts]


class Worst:
    """The largest errors so far, and where."""

    def __init__(self) -> None:
        self.value, self.gradient, self.at = 0.0, 0.0, ""

    def add(self, name: str, value: float, gradient: float) -> None:
        if not value <= self.value:
            self.value, self.at = value, name
        self.gradient = max(self.gradient, gradient)


def relative(found: float, right: float | mpf) -> float:
    return float(abs(mpf(found) - right) / max(1, abs(right)))


def random_errors(plan: Plan, oracle: ModuleType, progress: Progress) -> dict[str, Worst]:
    worst = {
        name: Worst()
        for name in (
            "float32 against Gauss-Legendre",
            "float64 against Gauss-Legendre",
            "float32 against 40 digits",
            "float64 against 40 digits",
            "Gauss-Legendre against 40 digits",
        )
    }
    every = max(1, plan.tiers // plan.digits)
    batch: list[Array] = []
    for i, d in enumerate(random_tiers(plan.tiers)):
        batch.append(d)
        if len(batch) < 1_000 and i < plan.tiers - 1:
            continue
        progress(f"random tiers: {i + 1:,} of {plan.tiers:,}")
        found = {name: ours(batch, dtype) for name, dtype in DTYPES.items()}
        for k, d in enumerate(batch):
            about = f"{len(d):,} items, d from {d.min():.3g} to {d.max():.3g}"
            plain = by_legendre(d.astype(float))
            answers = {name: (float(v[k]), g[k]) for name, (v, g) in found.items()}
            for name, (value, gradient) in answers.items():
                gap = float(np.abs(gradient - plain[1]).max())
                worst[f"{name} against Gauss-Legendre"].add(about, relative(value, plain[0]), gap)
            if (i - len(batch) + 1 + k) % every == 0 and len(d) <= 500:
                value_mp, parts = oracle.value_and_gradient_mp([d, np.zeros(1)])
                slopes = parts[0].astype(float)
                for name, (value, gradient) in {**answers, "Gauss-Legendre": plain}.items():
                    gap = float(np.abs(gradient - slopes).max())
                    worst[f"{name} against 40 digits"].add(about, relative(value, value_mp), gap)
        batch = []
    return worst


# Equal scores --------------------------------------------------------------------------------


def equal_errors(plan: Plan, progress: Progress) -> dict[str, dict[int, Worst]]:
    """log P = log n! + log Γ(1 + x) − log Γ(n + 1 + x) with x = e^−d; all slopes alike."""
    worst: dict[str, dict[int, Worst]] = {name: {} for name in DTYPES}
    for size in plan.sizes:
        progress(f"equal scores: {size:,}")
        for d in [*np.linspace(-16, 20, plan.heights, dtype=np.float32), -40.0, 40.0]:
            with mp.workdps(40):
                x = mp.exp(-mpf(float(d)))
                right = mp.loggamma(size + 1) + mp.loggamma(1 + x) - mp.loggamma(size + 1 + x)
                slope = float(x * (mp.psi(0, size + 1 + x) - mp.psi(0, 1 + x)) / size)
                for name, dtype in DTYPES.items():
                    value, gradient = ours([np.full(size, d, dtype=np.float32)], dtype)
                    so_far = worst[name].setdefault(size, Worst())
                    gap = float(np.abs(gradient[0] - slope).max())
                    so_far.add(f"d = {d:g}", relative(float(value[0]), right), gap)
    return worst


# The run -------------------------------------------------------------------------------------


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    oracle = from_tests("oracle")
    columns = [Column("largest error of"), Column("log P", error), Column("at")]
    columns.append(Column("gradient", error))
    at_random = random_errors(plan, oracle, progress)
    rows = [[name, w.value, w.at, w.gradient] for name, w in at_random.items()]
    report.add(Table(f"{plan.tiers:,} random tiers of 6 to 50,000 items", columns, rows))
    equal = equal_errors(plan, progress)
    columns[0] = Column("tiers of equal scores")
    rows = [
        [f"{name}, {size:,} items", w.value, w.at, w.gradient]
        for name, by_size in equal.items()
        for size, w in by_size.items()
    ]
    report.add(Table("Equal scores, over one item of score 0: a closed form", columns, rows))
    claims = []
    for name, limit in PROMISE.items():
        found = [w.value for what, w in at_random.items() if what.startswith(name)]
        found += [w.value for w in equal[name].values()]
        claims.append(Claim(f"{name}: largest error of log P", max(found), limit))
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(
        "Measure the errors of the likelihood on random tiers and on equal ones of any size.",
        ["torch", "numpy", "tierrank"],
        run,
        full=FULL,
        quick=QUICK,
    )
