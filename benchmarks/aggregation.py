"""Worths from rankings: time beside choix, agreement with it, and what the largest data take.

    python benchmarks/aggregation.py            # about 15 minutes on 2 cores
    python benchmarks/aggregation.py --quick    # about 1 minute: fewer items, fewer rounds

Rankings are drawn from a Plackett-Luce model. choix and ours start from nothing and go to the
maximum of the same likelihood, choix with its default tolerance, and take turns. Our time has
all in it: counting equal lists, whether the estimate exists, and the fit.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import choix
import numpy as np
import torch
from measure import (
    GIVES_MEMORY_BACK,
    Claim,
    Column,
    Progress,
    Report,
    Table,
    Task,
    claims_table,
    error,
    figures,
    in_fresh_process,
    main,
    peak_memory,
    side_by_side,
)

import tierrank as tr

GB = 1e9
FASTER = 20.0
AGREE = 1e-6
MOST_GB = 8.0
PASSES = 3  # of AdaGrad over the largest data
FAINT = "gaussian:3"  # a prior, for a few long lists leave some items without a loss


class Case(NamedTuple):
    """Rankings of `length` out of `items`, cut into ties of `tied` (1: strict)."""

    items: int
    lists: int
    length: int
    tied: int = 1
    rest: bool = False

    def __str__(self) -> str:
        ties = "" if self.tied == 1 else f", ties of {self.tied}"
        rest = " over all the rest" if self.rest else ""
        return f"{self.items:,} items, {self.lists:,} lists of {self.length}{ties}{rest}"


class Plan(NamedTuple):
    """What to measure."""

    beside_choix: list[Case]
    claimed: Case
    with_ties: list[Case]
    largest: list[Case]
    seconds: float


CLAIMED = Case(1_000, 2_000, 10)
FULL = Plan(
    beside_choix=[Case(100, 1_000, 10), CLAIMED, Case(1_000, 20_000, 10), Case(3_000, 6_000, 10)],
    claimed=CLAIMED,
    with_ties=[Case(1_000, 2_000, 10, 2), Case(1_000, 2_000, 10, 5), Case(1_000, 200, 500, 50)],
    largest=[
        Case(1_000_000, 100_000, 10),
        Case(1_000_000, 100_000, 10, 5),
        Case(1_000_000, 100_000, 10, 5, rest=True),
    ],
    seconds=10.0,
)
QUICK = FULL._replace(
    beside_choix=[Case(100, 1_000, 10), CLAIMED],
    with_ties=[Case(1_000, 2_000, 10, 2)],
    largest=[Case(100_000, 10_000, 10, 5)],
    seconds=3.0,
)


def draw(case: Case) -> tr.Tiers:
    """Rankings from the model, with log-worths uniform on [0, 2]."""
    random = np.random.default_rng(0)
    truth = random.uniform(0, 2, case.items)
    rows = np.array([random.choice(case.items, case.length, replace=False, shuffle=False)
                     for _ in range(case.lists)])  # fmt: skip
    order = np.argsort(-(truth[rows] + random.gumbel(size=rows.shape)), axis=1)
    items = np.take_along_axis(rows, order, axis=1)
    tiers = case.length // case.tied
    return tr.Tiers(
        items=torch.from_numpy(items.reshape(-1)),
        tier_offsets=torch.arange(0, items.size + 1, case.tied),
        list_offsets=torch.arange(0, case.lists * tiers + 1, tiers),
        n_items=case.items,
        rest=case.rest,
    )


def beside_choix(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """Strict rankings: seconds of a whole fit, and how far the estimates are apart."""
    rows: list[list[Any]] = []
    claims = []
    for case in plan.beside_choix:
        progress(str(case))
        tiers = draw(case)
        plain = tiers.items.reshape(case.lists, case.length).tolist()
        times = side_by_side(
            {
                "ours": Task(lambda tiers=tiers: tr.RankAggregator().fit(tiers)),
                "choix": Task(
                    lambda case=case, plain=plain: choix.ilsr_rankings(case.items, plain)
                ),
            },
            plan.seconds,
        )
        ours = tr.RankAggregator().fit(tiers).log_worths_
        theirs = choix.ilsr_rankings(case.items, plain, tol=1e-10)
        apart = float(np.abs(ours - (theirs - theirs.mean())).max())
        ratio = times["choix"].over(times["ours"])
        rows.append([str(case), times["ours"].median, times["choix"].median, ratio, apart])
        if case == plan.claimed:
            claims.append(Claim(f"{case}: ours over choix's ILSR", 1 / ratio, 1 / FASTER))
        claims.append(Claim(f"{case}: largest difference from choix", apart, AGREE))
    columns = [Column("strict rankings"), Column("ours, s", figures), Column("ILSR, s", figures),
               Column("times as long", figures), Column("apart", error)]  # fmt: skip
    return Table("Beside choix's ILSR", columns, rows), claims


def with_ties(plan: Plan, progress: Progress) -> Table:
    """What ties cost, which choix does not take."""
    rows: list[list[Any]] = []
    for case in plan.with_ties:
        progress(str(case))
        tiers = draw(case)
        times = side_by_side(
            {
                "ties": Task(lambda tiers=tiers: tr.RankAggregator(prior=FAINT).fit(tiers)),
                "strict": Task(
                    lambda tiers=tiers: tr.RankAggregator(prior=FAINT).fit(tiers.break_ties())
                ),
            },
            plan.seconds,
        )
        ratio = times["ties"].over(times["strict"])
        rows.append([str(case), times["ties"].median, times["strict"].median, ratio])
    columns = [Column("with ties"), Column("exact, s", figures),
               Column("ties broken, s", figures), Column("times as long", figures)]  # fmt: skip
    return Table("What ties cost", columns, rows)


def largest_here(case: Case, solver: str) -> dict[str, Any]:
    """Seconds, peak memory and end of a fit in this process, which must be fresh."""
    tiers = draw(case)
    begun = time.perf_counter()
    most = PASSES if solver == "adagrad" else None
    fitted = tr.RankAggregator(prior="gaussian", solver=solver, max_iter=most, random_state=0)  # type: ignore[arg-type]
    fitted.fit(tiers)
    return {
        "seconds": time.perf_counter() - begun,
        "peak": peak_memory(),
        "iterations": fitted.n_iter_,
        "value": min(fitted.objective_values_),
    }


def largest(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """A million items: Newton's method beside stochastic steps, each in a fresh process."""
    rows: list[list[Any]] = []
    claims = []
    for case in plan.largest:
        found = {}
        # with a rest, a step of AdaGrad moves all items, and a pass takes minutes
        for solver in ("newton",) if case.rest else ("newton", "adagrad"):
            progress(f"{case}: {solver}")
            code = (
                "import aggregation, json\n"
                f"print(json.dumps(aggregation.largest_here(aggregation.Case(*{tuple(case)!r}), "
                f"{solver!r})))"
            )
            found[solver] = in_fresh_process(code, **GIVES_MEMORY_BACK)
        lowest = min(each["value"] for each in found.values())
        for solver, each in found.items():
            rows.append(
                [f"{case}: {solver}", each["seconds"], each["iterations"], each["peak"] / GB,
                 each["value"] / lowest - 1]
            )  # fmt: skip
            claims.append(Claim(f"{case}: {solver}, GB", each["peak"] / GB, MOST_GB))
    columns = [Column("with a Gaussian prior"), Column("seconds", figures), Column("iterations"),
               Column("peak, GB", figures), Column("above the lowest", error)]  # fmt: skip
    return Table("The largest", columns, rows), claims


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    """All tables, and what was promised."""
    strict, claims = beside_choix(plan, progress)
    report.add(strict)
    report.add(with_ties(plan, progress))
    table, more = largest(plan, progress)
    report.add(table)
    claims += more
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(__doc__.splitlines()[0], ["tierrank", "choix", "torch", "numpy"], measure, FULL, QUICK)
