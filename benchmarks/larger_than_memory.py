"""Training on files whose rows are three times the memory: XGBoost, neural and extreme rankers.

    python benchmarks/larger_than_memory.py                 # RLIMIT_DATA 1 GiB
    python benchmarks/larger_than_memory.py --quick         # 640 MiB
    python benchmarks/larger_than_memory.py --only extreme  # one of them

`python benchmarks/boosted.py --larger-than-memory` does the same for LightGBM, with 2 GiB. As
there, memory is the process's own, without the mapped files that the system drops when it likes.
Each file is converted by the first training that reads it, which is part of its time.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from boosted import LargePlan, train_limited, write_large
from measure import Claim, Column, Progress, Report, Table, claims_table, figures, main

PARTS = "extreme", "xgboost", "neural"
ENTRY = 8  # bytes of a row's feature: a number of four bytes, and which it is


class Plan(NamedTuple):
    """How much is measured."""

    letor: LargePlan = LargePlan(limit=1 << 30)
    xc_features: int = 50_000
    entries: int = 200  # of a row
    labels: int = 2_000

    @property
    def xc_rows(self) -> int:
        """As many as take three times the limit."""
        return 3 * self.letor.limit // (ENTRY * self.entries)


REPEATED = 20_000  # rows that are written over and over: it is their number that matters


def write_xc(path: Path, plan: Plan, rows: int) -> None:
    """Write XC text: three labels a row, and features in ascending order."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(min(rows, REPEATED)):
        labels = ",".join(map(str, np.unique(rng.integers(plan.labels, size=3)).tolist()))
        first = rng.integers(plan.xc_features // plan.entries)
        columns = first + plan.xc_features // plan.entries * np.arange(plan.entries)
        cells = " ".join(
            f"{column}:{value:.3f}"
            for column, value in zip(
                columns.tolist(), rng.random(plan.entries).tolist(), strict=True
            )
        )
        lines.append(f"{labels} {cells}\n")
    with path.open("w") as file:
        file.write(f"{rows} {plan.xc_features} {plan.labels}\n")
        for row in range(0, rows, len(lines)):
            file.writelines(lines[: rows - row])


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    limit, table, claims = plan.letor.limit, [], []
    with TemporaryDirectory(dir=Path.cwd()) as name:  # /tmp may be in memory
        folder = Path(name)
        letor, xc = (folder / "rows.txt", folder / "letor-valid.txt"), (
            folder / "xc.txt", folder / "xc-valid.txt",
        )  # fmt: skip
        ways = {
            "extreme": (xc, "extreme train", ("--hidden", 32, "--epochs", 1, "--learning-rate",
                                              0.004, "--cache")),
            "xgboost": (letor, "train", ("--model", "boosted", "--set", "library=xgboost", "--set",
                                         f"trees={plan.letor.trees}", "--no-refit")),
            "neural": (letor, "train", ("--model", "neural", "--set", "max_epochs=1",
                                        "--no-refit")),
        }  # fmt: skip
        for what, (files, command, settings) in ways.items():
            if not report.wants(what):
                continue
            if not files[0].exists():
                progress(f"writing {files[0].name}")
                for file, share in zip(files, (1, 50), strict=True):
                    if files is xc:
                        write_xc(file, plan, plan.xc_rows // share)
                    else:
                        write_large(file, plan.letor, plan.letor.rows // share)
            progress(what)
            own = ("--valid", files[1], *settings, "--out", folder / f"model {what}")
            run = train_limited(limit, files[0], *own, command=command.split())
            rows, size = (
                (plan.xc_rows, ENTRY * plan.entries)
                if files is xc
                else (plan.letor.rows, 8 * plan.letor.features)
            )
            table.append([
                what, rows, files[0].stat().st_size / 1e9, rows * size / 1e9, run.seconds,
                run.own >> 20, run.mapped >> 20,
                "a model" if run.fine else run.said.strip().splitlines()[-1][:60],
            ])  # fmt: skip
            claims += [
                Claim(f"{what}: a model", int(run.fine), 1, at_least=True),
                Claim(f"{what}: rows over the limit", rows * size / limit, 2.99, at_least=True),
                Claim(f"{what}: own memory over the limit", run.own / limit, 1),
            ]
    columns = [
        Column("tierrank train"), Column("rows"), Column("text, GB", figures),
        Column("in memory, GB", figures), Column("seconds", figures), Column("own memory, MB"),
        Column("with mapped files, MB"), Column("ended"),
    ]  # fmt: skip
    report.add(Table(f"RLIMIT_DATA {limit >> 20:,} MB", columns, table))
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    quick = Plan(LargePlan(limit=640 << 20, trees=2), labels=500)
    main(__doc__ or "", ["torch", "numpy", "xgboost", "tierrank"], measure, Plan(), quick, PARTS)
