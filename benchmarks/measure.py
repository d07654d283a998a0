"""What the benchmarks share: a command line, timing side by side, fresh processes, memory, tables.

Times on a shared machine are noisy, and what disturbs one contender disturbs its neighbour. So
contenders take turns, a short sample each, round after round, and a ratio is the median over
rounds of the ratio within a round. The best round stands beside the median.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from rich.console import Console
from rich.table import Table as RichTable

SAMPLE = 0.01  # seconds: a sample repeats a shorter call until about this much
SLOW = 1.0  # seconds: a call as long as this needs no warming up
MOST_ROUNDS = 41

Name = TypeVar("Name")


# Time ----------------------------------------------------------------------------------------


class Task(NamedTuple):
    """Something to time, and how many items one call of it handles."""

    run: Callable[[], object]
    items: int = 1


class Times(NamedTuple):
    """Seconds an item, one entry a round."""

    rounds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def best(self) -> float:
        return min(self.rounds)

    def over(self, other: Times) -> float:
        """How many times as long as the other: the median over rounds that both took part in."""
        pairs = zip(self.rounds, other.rounds, strict=False)
        return statistics.median(mine / theirs for mine, theirs in pairs)


def side_by_side(tasks: Mapping[Name, Task], budget: float) -> dict[Name, Times]:
    """Time tasks in alternation, each for about `budget` seconds in all, and at least once.

    A task that has used up its budget sits out the remaining rounds. Every sample follows a
    call that is not timed, so that nobody pays for what the one before left in the caches.
    """
    stopwatches = {name: _Stopwatch(task) for name, task in tasks.items()}
    gc.collect()
    gc.disable()
    try:
        for _ in range(MOST_ROUNDS):
            for stopwatch in stopwatches.values():
                if stopwatch.spent < budget:
                    stopwatch.sample()
    finally:
        gc.enable()
    return {name: Times(stopwatch.samples) for name, stopwatch in stopwatches.items()}


class _Stopwatch:
    """Times samples of one task: as many calls as fill `SAMPLE` seconds."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.samples: list[float] = []  # seconds an item
        self.spent = 0.0
        self.calls = 1
        self.slow = self._time() >= SLOW
        if self.slow:
            return  # this call is the first sample
        self._time()  # the first may have compiled or cached something
        self.calls = max(1, math.ceil(SAMPLE / self.spent))
        self.samples, self.spent = [], 0.0

    def sample(self) -> None:
        if not self.slow:
            self.task.run()
        self._time()

    def _time(self) -> float:
        start = time.perf_counter()
        for _ in range(self.calls):
            self.task.run()
        seconds = time.perf_counter() - start
        self.spent += seconds
        self.samples.append(seconds / self.calls / self.task.items)
        return seconds


# Fresh processes -----------------------------------------------------------------------------


def in_fresh_process(code: str, **environment: str) -> Any:
    """Run Python code in a process of its own; the last line that it prints is JSON.

    It can import what stands beside this file.
    """
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.getenv("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"a measuring process failed:\n{code}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# So that memory that was given back does not hide what is asked for next: glibc otherwise keeps
# blocks of up to 32 MB for itself.
GIVES_MEMORY_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def extra_memory(run: Callable[[], object]) -> int:
    """Bytes by which the process grows while it runs something, at the peak.

    To be called in a fresh process (with `GIVES_MEMORY_BACK`) that has run the same on a small
    scale before. Linux can forget the peak so far; elsewhere, growth below it is not seen.
    """
    gc.collect()
    _trim_heap()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _kilobytes("VmRSS")
        run()
        return max(0, _kilobytes("VmHWM") - before) * 1024
    except OSError:
        before = _peak_so_far()
        run()
        return _peak_so_far() - before


def peak_memory() -> int:
    """Bytes of the whole process at its peak, since `extra_memory` began if that was called."""
    try:
        return _kilobytes("VmHWM") * 1024
    except OSError:
        return _peak_so_far()


def _trim_heap() -> None:
    """Give back the holes that imports and compilers left: what is asked for would hide there."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _kilobytes(field: str) -> int:
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise OSError(f"/proc/self/status has no {field}")
    return int(found[1])


def _peak_so_far() -> int:
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# The machine ---------------------------------------------------------------------------------


def machine(threads: int, packages: Sequence[str]) -> dict[str, str]:
    """What the figures depend on, by name."""
    return {
        "CPU": _cpu_model(),
        "cores": f"{os.cpu_count()}, of which {threads} used",
        "RAM": _ram(),
        "load before": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{package: version(package) for package in packages},
        "date": date.today().isoformat(),
    }


def _cpu_model() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _ram() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):  # not on Windows
        return "unknown"


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.1f} processes in the last minute"
    except (AttributeError, OSError):  # not on Windows
        return "unknown"


# Tables --------------------------------------------------------------------------------------


def figures(value: float) -> str:
    """Three significant figures: 0.0123, 1.23, 12.3, 1,230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = f"{value:.2e}"
    decimals = max(0, 2 - int(rounded.partition("e")[2]))
    return f"{float(rounded):,.{decimals}f}"


def error(value: float) -> str:
    """One figure and the power of ten, which is all that an error is about."""
    return "0" if value == 0 else f"{value:.0e}"


class Column(NamedTuple):
    """A heading, and how a cell is written; None is always a dash."""

    name: str
    write: Callable[[Any], str] = str


class Table(NamedTuple):
    """Raw values, with the columns that say how to write them; the first names the row."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def cells(self) -> list[list[str]]:
        return [
            ["–" if value is None else column.write(value) for column, value in pairs]
            for pairs in (zip(self.columns, row, strict=True) for row in self.rows)
        ]

    def raw(self) -> dict[str, Any]:
        """For JSON."""
        names = [column.name for column in self.columns]
        return {"title": self.title, "columns": names, "rows": self.rows, "notes": self.notes}


class Claim(NamedTuple):
    """Something promised, what this run measured, the limit, and what would be better still."""

    text: str
    measured: float
    limit: float
    goal: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def row(self) -> list[str | None]:
        write = error if self.limit < 1e-3 else figures
        limit = f"{'≥' if self.at_least else '≤'} {write(self.limit)}"
        goal = None if self.goal is None else write(self.goal)
        return [self.text, write(self.measured), limit, goal, "yes" if self.holds else "NO"]

    def raw(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "holds": self.holds}


def claims_table(claims: Sequence[Claim]) -> Table:
    columns = [Column(name) for name in ("claim", "measured", "must be", "goal", "holds")]
    return Table("Claims, from this run", columns, [claim.row() for claim in claims])


class Progress:
    """Says on stderr what is being measured: one live line on a terminal, else a line each."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._live = sys.stderr.isatty()
        self._last = ""

    def __call__(self, text: str) -> None:
        if text == self._last:
            return
        self._last = text
        self.clear()
        line = f"{time.perf_counter() - self._start:4.0f} s  {text}"
        print(line, file=sys.stderr, end="" if self._live else "\n", flush=True)

    def clear(self) -> None:
        """Make room for something else on the terminal."""
        if self._live:
            print("\r\x1b[K", file=sys.stderr, end="", flush=True)


class Report:
    """Prints tables as they come: by rich on a terminal, else (or on demand) as Markdown."""

    def __init__(self, markdown: bool, progress: Progress, only: Sequence[str] = ()) -> None:
        self.progress = progress
        self.only = only
        self.console = Console()
        self.markdown = markdown or not self.console.is_terminal
        self.tables: list[Table] = []

    def wants(self, part: str) -> bool:
        """Whether a part of the run was asked for."""
        return not self.only or part in self.only

    def add(self, table: Table) -> None:
        self.tables.append(table)
        self.progress.clear()
        if self.markdown:
            print(as_markdown(table), flush=True)
        else:
            self.console.print(_as_rich(table))

    def save(self, path: Path, **more: Any) -> None:
        """Everything as JSON, raw; written beside and renamed."""
        temporary = path.with_name(f".{path.name}.part")
        content = {**more, "tables": [table.raw() for table in self.tables]}
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        temporary.replace(path)


def as_markdown(table: Table) -> str:
    """A table to paste, padded so that it also reads well as plain text."""
    lines = [[column.name for column in table.columns], *table.cells()]
    widths = [max(3, *map(len, cells)) for cells in zip(*lines, strict=True)]
    lines.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    text = [f"\n## {table.title}\n"]
    for first, *others in lines:
        padded = [first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]
        text.append(f"| {' | '.join(padded)} |")
    return "\n".join([*text, *(f"\n{note}" for note in table.notes)])


def _as_rich(table: Table) -> RichTable:
    rich = RichTable(
        title=table.title, caption="\n".join(table.notes), title_justify="left",
        caption_justify="left",
    )  # fmt: skip
    for i, column in enumerate(table.columns):
        rich.add_column(column.name, justify="right" if i else "left")
    for cells in table.cells():
        rich.add_row(*cells)
    return rich


Plan = TypeVar("Plan")
Measure = Callable[[Plan, Report, Progress], list[Claim]]


def main(
    description: str,
    packages: Sequence[str],
    measure: Measure[Plan],
    full: Plan,
    quick: Plan,
    parts: Sequence[str] = (),
) -> None:
    """Read the options, say what the machine is, measure by the full plan or the quick one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer cases, fewer rounds")
    parser.add_argument("--threads", type=int, help="threads for all (default: torch's choice)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--markdown", action="store_true", help="tables to paste")
    if parts:
        parser.add_argument("--only", nargs="+", choices=parts, help="parts of the run")
    chosen = parser.parse_args()
    if chosen.threads:
        os.environ["OMP_NUM_THREADS"] = str(chosen.threads)  # for fresh processes
        torch.set_num_threads(chosen.threads)
    progress = Progress()
    report = Report(chosen.markdown, progress, chosen.only or () if parts else ())
    about = machine(torch.get_num_threads(), packages)
    report.add(Table("Machine", [Column("what"), Column("which")], list(about.items())))
    claims = measure(quick if chosen.quick else full, report, progress)
    if chosen.json:
        report.save(chosen.json, machine=about, claims=[claim.raw() for claim in claims])
