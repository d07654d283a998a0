"""What the experiments' command lines share: options, progress, and the files they leave."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from page import Table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable
from scores import Figure, as_csv

import tierrank
from tierrank.storage import replace_file


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER",
        help="folds (Fold1 … or parts S1 … S5), train/vali/test files, set1.train.txt, or one file",
    )  # fmt: skip
    options.add_argument("--out", type=Path, metavar="DIR", help="where the results go (out/…)")
    options.add_argument(
        "--split", type=float, default=0.1, metavar="SHARE",
        help="of the queries of a single file, or of set1.train.txt, to test on (default 0.1; with "
        "0, set1.valid.txt and set1.test.txt are used)",
    )  # fmt: skip
    options.add_argument("--seed", type=int, default=0, help="of every random choice (default 0)")
    options.add_argument("--threads", type=int, help="threads (default: torch's choice)")
    options.add_argument("--quick", action="store_true", help="two folds, few steps: a trial")
    return options


def run(
    options: argparse.ArgumentParser,
    experiment: Callable[[argparse.Namespace], None],
    arguments: Sequence[str] | None,
) -> None:
    """Read the options (None: of the command line) and run.

    Bad input is a message and exit code 2, no traceback.
    """
    chosen = options.parse_args(arguments)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    try:
        experiment(chosen)
    except (ValueError, OSError) as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        raise SystemExit(2) from None


class Progress:
    """A bar on a terminal; elsewhere a line for each step that is done."""

    def __init__(self, total: int) -> None:
        self.console = Console(stderr=True)
        self.total = total
        self.done = 0
        self._start = time.perf_counter()
        self._bar: Bar | None = None
        if self.console.is_terminal:
            what = TextColumn("{task.description}")
            self._bar = Bar(
                BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what,
                console=self.console, transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, text: str) -> None:
        """What is being done."""
        if self._bar:
            self._bar.update(self._task, description=text)

    def step(self, text: str) -> None:
        """Something is done."""
        self.done += 1
        if self._bar:
            self._bar.update(self._task, advance=1, description=text)
        else:
            seconds = time.perf_counter() - self._start
            print(
                f"{seconds:5.0f} s  {self.done}/{self.total}  {text}", file=sys.stderr, flush=True
            )


@dataclass(frozen=True)
class Outcome:
    """What an experiment leaves in its folder."""

    figures: list[Figure]
    plot: bytes
    page: str
    more: Mapping[str, Any]  # what goes into the JSON besides

    def write(self, folder: Path) -> None:
        """table.csv, table.json, plot.png and page.html, each of them whole or as it was."""
        content = {**self.more, "figures": [asdict(figure) for figure in self.figures]}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        replace_file(folder / "table.csv", as_csv(self.figures).encode())
        replace_file(folder / "table.json", text.encode())
        replace_file(folder / "plot.png", self.plot)
        replace_file(folder / "page.html", self.page.encode())


def show(table: Table) -> None:
    """Print a table: for people on a terminal, else as the docs have it."""
    console = Console()
    if not console.is_terminal:
        print(table.markdown())
        return
    shown = RichTable(title=table.title, title_justify="left")
    heads = [name for name, width in table.groups for _ in range(width)] or [""] * len(
        table.columns
    )
    for i, (group, column) in enumerate(zip(heads, table.columns, strict=True)):
        name = f"{group}\n{column}".strip()
        shown.add_column(name, justify="right" if i else "left", no_wrap=bool(i))
    for row in table.rows:
        shown.add_row(*(f"{cell.text} {cell.small}".strip() for cell in row))
    console.print(shown)


def machine() -> dict[str, str]:
    """What ran it."""
    return {
        "CPU": _cpu_model(),
        "cores": f"{os.cpu_count()}, of which {torch.get_num_threads()} used",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "tierrank": tierrank.__version__,
        **{package: version(package) for package in ("torch", "numpy", "scipy")},
        "date": date.today().isoformat(),
    }


def _cpu_model() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
