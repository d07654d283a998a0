"""The Dask cluster that somebody else has started: is it there, and of our version?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tierrank.data.tables.columns import one_schema

LOOK_AGAIN = 1.0  # seconds between two looks at whether all workers are still there
NOBODY = 60.0  # seconds without any worker after which nobody is waited for


def parquet(source: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Any:
    """A Dask DataFrame of Parquet that all workers can open: files, folders or patterns."""
    from dask.dataframe import read_parquet

    several = isinstance(source, list | tuple)
    paths: list[str] = [fspath(path) for path in source] if several else [fspath(source)]  # type: ignore[arg-type, union-attr]
    try:
        frame = read_parquet(paths if several else paths[0])
    except (OSError, ValueError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"{', '.join(paths)} cannot be read as Parquet: {line}") from error
    one_schema([file for path in paths if "://" not in path for file in parquet_files(Path(path))])
    return frame


def in_two(names: Sequence[Iterable[Any]]) -> tuple[Any, int, int] | None:
    """A name that stands in two parts, and in which; None if there is none.

    Parameters
    ----------
    names
        of each part, its queries
    """
    first: dict[Any, int] = {}
    for number, part in enumerate(names):
        for name in part:
            if first.setdefault(name, number) != number:
                return name, first[name], number
    return None


def parquet_files(path: Path) -> list[Path]:
    """The files that a path of Parquet stands for: a file, a folder, or a pattern."""
    if path.is_dir():
        return sorted(path.rglob("*.parquet"))
    return [path] if path.exists() else sorted(path.parent.glob(path.name))


class OneProcess:
    """This process in the place of a cluster: what is asked for is done at once, by its threads."""

    def map(self, function: Callable[..., Any], *each: Iterable[Any], **given: Any) -> list[Any]:
        """What a function gives for each; `given` is the same for all."""
        import torch

        given.pop("pure", None)
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            return list(pool.map(partial(function, **given), *each))

    def submit(self, function: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
        """What a function gives."""
        given.pop("pure", None)
        return function(*arguments, **given)

    def gather(self, found: Any) -> Any:
        """What was found: it is here."""
        return found

    def nthreads(self) -> dict[str, int]:
        """One worker."""
        return {"here": 1}


def client_of(given: Any = None, *, packages: Sequence[str] = ()) -> Any:
    """The client given, or the one that is there; refuses workers of another version.

    Parameters
    ----------
    packages
        what must be of the same version there and here, beside tierrank, Dask and numpy
    """
    try:
        from distributed import Client, get_client
    except ImportError:
        raise ImportError(
            'Dask is not installed, or only a part of it: pip install "tierrank[distributed]"'
        ) from None
    client = given
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client: start one first, for instance "
                "client = dask.distributed.Client(), and pass client=client"
            ) from None
    if not isinstance(client, Client):
        raise ValueError(f"client is a dask.distributed.Client, not a {type(client).__name__}")
    if client.status != "running":
        raise ValueError(f"the Dask client is {client.status}: make a new one")
    check_versions(client, packages)
    return client


def check_versions(client: Any, packages: Sequence[str] = ()) -> None:
    """Refuse workers, if any, whose tierrank, Dask, numpy or `packages` are not the client's."""
    checked = ("tierrank", "dask", "distributed", "numpy", *packages)
    ours = versions(checked)
    # a worker that has just died does not answer, and is passed over
    for address, theirs in client.run(versions, checked, on_error="ignore").items():
        for package, version in ours.items():
            if theirs[package] != version:
                raise ValueError(
                    f"the worker at {address} has {package} {theirs[package]}, and here it is "
                    f"{version}: install the same version there"
                )


def versions(packages: Sequence[str]) -> dict[str, str | None]:
    """Of each package, or None where it is not installed."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = str(import_module(package).__version__)
        except ImportError:
            found[package] = None
    return found


def workers_of(client: Any) -> list[str]:
    """Addresses of those that are there."""
    try:
        return list(client.nthreads())
    except (OSError, RuntimeError, ValueError, TimeoutError) as error:
        raise ConnectionError(
            f"the scheduler of the Dask cluster is gone ({type(error).__name__}): start it, make "
            "a new client and fit again"
        ) from error


def gathered(client: Any, futures: Sequence[Any], *, keep: bool = False) -> list[Any]:
    """What the futures come to, unless there is nobody left to work on them."""
    if isinstance(client, OneProcess):
        return list(futures)
    from concurrent.futures import CancelledError

    from distributed import KilledWorker, wait

    last_seen = time.monotonic()
    while True:
        try:
            wait(futures, timeout=LOOK_AGAIN)
            break
        except TimeoutError:
            if workers_of(client):
                last_seen = time.monotonic()
            if time.monotonic() - last_seen > NOBODY:
                raise ConnectionError("the Dask cluster has no workers: start some") from None
        except CancelledError as error:
            raise ConnectionError("the scheduler of the Dask cluster is gone: start it") from error
    try:
        return [] if keep else list(client.gather(list(futures)))
    except KilledWorker as error:
        raise ConnectionError(
            f"workers of the Dask cluster ended while they read the rows ({error.task}): give "
            "them more memory, or the rows in smaller partitions"
        ) from error
