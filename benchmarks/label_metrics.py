"""Measures for huge label sets: seconds and memory of all twelve numbers.

    python benchmarks/label_metrics.py            # a minute: a million rows, a million labels
    python benchmarks/label_metrics.py --quick    # 10,000 rows

Rows have 20 relevant labels and five predictions, of which some are right. P, nDCG, PSP and PSnDCG
at 1, 3 and 5 are asked for, in a process of its own with one thread.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from measure import (
    GIVES_MEMORY_BACK,
    Claim,
    Column,
    Progress,
    Report,
    Table,
    extra_memory,
    figures,
    in_fresh_process,
    main,
)

from tierrank.metrics import labels

RELEVANT, KS = 20, (1, 3, 5)


class Plan(NamedTuple):
    """How many rows, and labels."""

    rows: int
    labels: int


class Input(NamedTuple):
    """What is measured: first labels [rows, 5], relevant ones [rows, labels], 1 / propensities."""

    top: np.ndarray[Any, Any]
    Y: scipy.sparse.csr_array
    inverse_propensity: np.ndarray[Any, Any]


def made(plan: Plan) -> Input:
    """Every second prediction is one of the row's own labels, the others stand beside one."""
    random = np.random.default_rng(0)
    gaps = random.integers(2, plan.labels // (RELEVANT + 1), size=(plan.rows, RELEVANT))
    own = (gaps.cumsum(axis=1) % plan.labels).astype(np.int32)
    starts = np.arange(plan.rows + 1) * RELEVANT
    ones = np.ones(own.size, dtype=np.float32)
    Y = scipy.sparse.csr_array((ones, own.ravel(), starts), shape=(plan.rows, plan.labels))
    top = (own[:, : max(KS)] + np.arange(max(KS)) % 2).astype(np.int64)
    return Input(top, Y, labels.inverse_propensity(Y))


def cost_here(plan: Plan) -> list[float]:
    """Seconds, and extra bytes at the peak, in this process."""

    def evaluate(given: Input) -> None:
        labels.evaluate(
            given.top, given.Y, inverse_propensity=given.inverse_propensity, ks=list(KS)
        )

    evaluate(made(Plan(100, 100)))
    given = made(plan)
    started = time.perf_counter()
    evaluate(given)
    return [time.perf_counter() - started, extra_memory(lambda: evaluate(given))]


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    progress(f"{plan.rows:,} rows")
    code = f"import json, label_metrics as m\nprint(json.dumps(m.cost_here(m.{plan!r})))"
    seconds, extra = in_fresh_process(code, **GIVES_MEMORY_BACK, OMP_NUM_THREADS="1")
    given = f"{plan.rows:,} rows with {RELEVANT} of {plan.labels:,} labels"
    columns = [Column("all twelve numbers of"), Column("seconds", figures)]
    columns.append(Column("MB beyond the input", figures))
    report.add(Table("Measures of labels", columns, [[given, seconds, extra / 1e6]]))
    return []


if __name__ == "__main__":
    main(
        "Time and weigh the measures for huge label sets.",
        ["numpy", "scipy", "tierrank"],
        measure,
        full=Plan(1_000_000, 1_000_000),
        quick=Plan(10_000, 10_000),
    )
