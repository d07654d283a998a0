"""Many small computations, one by one or in several processes; what is done is not done again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from command import Progress
from processes import in_processes

from tierrank.storage import replace_file

Settings = Mapping[str, Any]  # what to compute: all that decides about the result, as JSON takes it
Result = Mapping[str, Any]
Perform = Callable[[Settings], Result]  # a function of a module, for processes to find


class Store:
    """Finished results in a folder, a JSON file each, named by what was computed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cells"

    def path(self, cell: Settings) -> Path:
        """Where the result of a cell is."""
        text = json.dumps(cell, sort_keys=True, ensure_ascii=False)
        words = re.sub(r"[^a-z0-9]+", "-", title(cell).lower()).strip("-")
        return self.folder / f"{words}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"

    def read(self, cell: Settings) -> Result | None:
        """What was computed before; None if it was not."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            return dict(json.loads(path.read_text())["result"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is no result of this program: remove it") from None

    def write(self, cell: Settings, result: Result) -> None:
        """Keep a result, whole or not at all."""
        text = json.dumps({"cell": cell, "result": result}, indent=1, ensure_ascii=False)
        replace_file(self.path(cell), f"{text}\n".encode())


def title(cell: Settings) -> str:
    """For those who wait for it: names as they are, and numbers with their names."""
    parts = (
        value if isinstance(value, str) else f"{name} {value:,}"
        for name, value in cell.items()
        if isinstance(value, int | str)
    )
    return ", ".join(parts)


def run_cells(
    cells: Iterable[Settings], perform: Perform, store: Store, jobs: int = 1
) -> list[Result]:
    """Compute what is not kept yet, and give all results, in the order of the cells.

    A cell that fails does not keep the others from being computed; then the failures are raised.
    """
    if jobs < 1:
        raise ValueError(f"--jobs is how many run at once, 1 or more, not {jobs}")
    asked = list(cells)
    known = {i: store.read(cell) for i, cell in enumerate(asked)}
    todo = [i for i, result in known.items() if result is None]
    failures: list[str] = []
    with Progress(len(asked)) as progress:
        if len(todo) < len(asked):
            progress.done = len(asked) - len(todo) - 1
            progress.step("done before")
        work = _one_by_one if jobs == 1 or len(todo) < 2 else in_processes
        try:
            for i, result in work([(i, asked[i]) for i in todo], perform, jobs):
                if isinstance(result, ValueError):
                    failures.append(f"{title(asked[i])}: {result}")
                    progress.step(failures[-1])
                    continue
                store.write(asked[i], result)
                known[i] = result
                progress.step(title(asked[i]))
        except KeyboardInterrupt:
            print(f"\nStopped. What is done is in {store.folder}; the same command goes on.")
            raise SystemExit(130) from None
    if failures:
        raise ValueError("\n".join(["these failed:", *failures]))
    return [result for result in known.values() if result is not None]


Numbered = Sequence[tuple[int, Settings]]
Outcomes = Iterator[tuple[int, Result | ValueError]]


def _one_by_one(todo: Numbered, perform: Perform, jobs: int) -> Outcomes:
    for i, cell in todo:
        try:
            yield i, perform(cell)
        except ValueError as error:
            yield i, error
