"""Many fits, one by one or in several processes; what is done is not done again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from queue import Empty
from typing import Any

import torch
from command import Progress
from extreme_data import DataSet, Source
from extreme_fits import Done, Fit, Store, perform
from processes import CONTEXT, in_processes


def run_fits(
    fits: Iterable[Fit], source: Source, data: DataSet, store: Store, jobs: int
) -> list[Done]:
    """Do those that are not done yet, and give all, in their order.

    A fit that fails does not keep the others from being done; then the failures are raised.
    """
    if jobs < 1:
        raise ValueError(f"--jobs is how many fits run at once, 1 or more, not {jobs}")
    asked = list(fits)
    known = {i: store.read(fit) for i, fit in enumerate(asked)}
    todo = [i for i, done in known.items() if done is None]
    failures: list[str] = []
    with Progress(len(asked)) as progress:
        for i in set(known) - set(todo):
            progress.step(f"{asked[i].title}: done before")
        work = _one_by_one if jobs == 1 or len(todo) < 2 else _in_processes
        try:
            for i, result in work(
                [(i, asked[i]) for i in todo], source, data, store, jobs, progress
            ):
                if isinstance(result, Done):
                    known[i] = result
                    progress.step(f"{asked[i].title}: {result.seconds:.0f} s")
                else:
                    failures.append(f"{asked[i].title}: {result}")
                    progress.step(f"{failures[-1]}")
        except KeyboardInterrupt:
            print(f"\nStopped. What is done is in {store.folder}; the same command goes on.")
            raise SystemExit(130) from None
    if failures:
        raise ValueError("\n".join(["these fits failed:", *failures]))
    return [done for done in known.values() if done is not None]


Result = Done | ValueError
Numbered = Sequence[tuple[int, Fit]]


def _one_by_one(
    todo: Numbered, source: Source, data: DataSet, store: Store, jobs: int, progress: Progress
) -> Iterable[tuple[int, Result]]:
    for i, fit in todo:
        progress.say(fit.title)
        try:
            yield i, perform(fit, data, store, progress.say)
        except ValueError as error:
            yield i, error


def _in_processes(
    todo: Numbered, source: Source, data: DataSet, store: Store, jobs: int, progress: Progress
) -> Iterable[tuple[int, Result]]:
    queue = CONTEXT.Queue()

    def tell() -> None:
        with suppress(Empty):
            while True:
                progress.say(queue.get_nowait())

    start = (source, store, queue)
    return in_processes(todo, _perform, jobs, begin=_begin, arguments=start, meanwhile=tell)


_worker: dict[str, Any] = {}


def _begin(source: Source, store: Store, queue: Any) -> None:
    """What a process does first."""
    torch.set_num_threads(1)
    _worker.update(data=source.load(), store=store, queue=queue)


def _perform(fit: Fit) -> Done:
    return perform(fit, _worker["data"], _worker["store"], _worker["queue"].put)
