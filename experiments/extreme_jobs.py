"""Many fits, one by one or in several processes; what is done is not done again."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from queue import Empty
from typing import Any

import torch
from command import Progress
from extreme_data import DataSet, Source
from extreme_fits import Done, Fit, Store, perform

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


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


KILLED = "a process was killed; if memory ran out, give fewer --jobs"

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
    """As they come to an end."""
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
    queue = context.Queue()
    pool = ProcessPoolExecutor(
        min(jobs, len(todo)),
        mp_context=context,
        initializer=_begin,
        initargs=(source, store, queue),
    )
    waiting, running = deque(todo), dict[Future[Done], int]()
    try:
        while waiting or running:
            # no more than there are processes, for what is handed out cannot be taken back
            while waiting and len(running) < jobs:
                i, fit = waiting.popleft()
                try:
                    with _one_thread():
                        running[pool.submit(_perform, fit)] = i
                except BrokenProcessPool:
                    yield i, ValueError(KILLED)
            ended, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            with suppress(Empty):
                while True:
                    progress.say(queue.get_nowait())
            for future in ended:
                yield running.pop(future), _result(future)
    finally:
        pool.shutdown(cancel_futures=True)


def _result(future: Future[Done]) -> Result:
    try:
        return future.result()
    except ValueError as error:
        return error
    except BrokenProcessPool:
        return ValueError(KILLED)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Environment variables that libraries look at when they are loaded."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_worker: dict[str, Any] = {}


def _begin(source: Source, store: Store, queue: Any) -> None:
    """What a process does first."""
    torch.set_num_threads(1)
    _worker.update(data=source.load(), store=store, queue=queue)


def _perform(fit: Fit) -> Done:
    return perform(fit, _worker["data"], _worker["store"], _worker["queue"].put)
