"""Work shared out among processes of one thread each, and given back as it comes to an end."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILLED = "a process was killed; if memory ran out, give fewer --jobs"

# a fork would inherit torch's threads
CONTEXT = multiprocessing.get_context("spawn")

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(
    todo: Sequence[tuple[int, Job]],
    perform: Callable[[Job], Result],
    jobs: int,
    *,
    begin: Callable[..., None] = torch.set_num_threads,
    arguments: tuple[Any, ...] = (1,),
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Result | ValueError]]:
    """Do numbered jobs, so many at once; a job that fails gives its error.

    Parameters
    ----------
    todo
        jobs with their numbers
    perform
        does one; a function of a module, for processes to find
    jobs
        how many at once
    begin, arguments
        what a process does first
    meanwhile
        called twice a second while others work
    """
    pool = ProcessPoolExecutor(
        min(jobs, len(todo)), mp_context=CONTEXT, initializer=begin, initargs=arguments
    )
    waiting, running = deque(todo), dict[Future[Result], int]()
    try:
        while waiting or running:
            # no more than there are processes, for what is handed out cannot be taken back
            while waiting and len(running) < jobs:
                number, job = waiting.popleft()
                try:
                    with one_thread():
                        running[pool.submit(perform, job)] = number
                except BrokenProcessPool:
                    yield number, ValueError(KILLED)
            patience = None if meanwhile is None else 0.5
            ended, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
            if meanwhile is not None:
                meanwhile()
            for future in ended:
                yield running.pop(future), _outcome(future)
    finally:
        pool.shutdown(cancel_futures=True)


def _outcome(future: Future[Result]) -> Result | ValueError:
    try:
        return future.result()
    except ValueError as error:
        return error
    except BrokenProcessPool:
        return ValueError(KILLED)


@contextmanager
def one_thread() -> Iterator[None]:
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
