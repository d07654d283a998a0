"""Votes and games by the hundred million: seconds, and the memory of each process.

    python benchmarks/votes.py               # about half an hour on 2 cores: 10⁶, 10⁷ and 10⁸ rows
    python benchmarks/votes.py --rows 1e8    # these alone
    python benchmarks/votes.py --quick       # 10⁵ rows

Tables of Parquet are drawn by `tierrank simulate`, and `tierrank aggregate` ranks their items: in
one process, and by two Dask workers of one thread each. Timed is the whole command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from measure import Claim, Column, Progress, Report, Table, claims_table, figures, main

GB = 1e9
MOST_GB = 3.0
ROWS_AN_ITEM = 1000  # so that 10⁸ rows have 10⁵ items
PLAYERS = 2000  # of games
LOOK = 0.2  # seconds between two looks at the memory


class Plan(NamedTuple):
    """How many rows."""

    rows: tuple[int, ...]


class Run(NamedTuple):
    """Seconds, and the most memory that the command, and any process that it started, had."""

    seconds: float
    peak: float
    workers: float


def run(*arguments: object) -> Run:
    """A command of `tierrank`, watched from outside."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "tierrank", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peaks: dict[int, float] = {}
    while process.poll() is None:
        for pid in descendants(process.pid):
            peaks[pid] = max(peaks.get(pid, 0.0), peak_of(pid))
        time.sleep(LOOK)
    if process.returncode:
        assert process.stderr is not None
        raise SystemExit(f"{' '.join(command)}: {process.stderr.read().decode()}")
    others = [peak for pid, peak in peaks.items() if pid != process.pid]
    return Run(time.perf_counter() - begun, peaks.get(process.pid, 0.0), max(others, default=0.0))


def descendants(pid: int) -> list[int]:
    """A process, and all that it and they have started."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents.setdefault(int(fields[1]), []).append(int(each.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def peak_of(pid: int) -> float:
    """The most bytes of memory that a process had so far."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0.0)


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    """Draw, and aggregate in all ways."""
    table: list[list[Any]] = []
    claims = []
    for rows in plan.rows:
        items = max(rows // ROWS_AN_ITEM, 20)
        ways = (
            (f"{rows:,} rows of votes on {items:,} items", (), ("--items", items)),
            (f"{rows:,} games of {PLAYERS:,} sides", ("--games",), ("--items", PLAYERS)),
        )
        for what, games, sizes in ways:
            with TemporaryDirectory() as name:
                data = Path(name, "games.parquet" if games else "votes")
                progress(f"{what}: drawing")
                drawn = run("simulate", "--out", data, "--rows", rows, *sizes, *games)
                table.append([f"{what}: simulate", drawn.seconds, drawn.peak / GB, None])
                for how in ((),) if games else ((), ("--workers", 2)):
                    progress(f"{what}: aggregate {' '.join(map(str, how))}")
                    out = Path(name, "worths.csv")
                    done = run("aggregate", data, "--no-tiers", "--csv", out, "--top", 1, *how)
                    called = f"{what}: {'two workers' if how else 'one process'}"
                    workers = done.workers / GB if how else None
                    table.append([called, done.seconds, done.peak / GB, workers])
                    largest = max(done.peak, done.workers) / GB
                    claims.append(Claim(f"{called}, GB a process", largest, MOST_GB))
    columns = [
        Column("tierrank aggregate"), Column("seconds", figures), Column("peak, GB", figures),
        Column("of a worker, GB", figures),
    ]  # fmt: skip
    report.add(Table("Votes and games", columns, table))
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")
    full = Plan((10**6, 10**7, 10**8))
    if "--rows" in sys.argv:
        at = sys.argv.index("--rows")
        full = Plan((int(float(sys.argv[at + 1])),))
        del sys.argv[at : at + 2]
    packages = ["torch", "numpy", "pyarrow", "dask", "distributed", "tierrank"]
    main(__doc__.splitlines()[0], packages, measure, full, Plan((10**5,)))
