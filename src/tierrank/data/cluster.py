"""The Dask cluster that somebody else has started: is it there, and of our version?"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from os import PathLike, fspath
from typing import Any


def is_dask(data: Any) -> bool:
    """Whether it is a collection of Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def parquet(source: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Any:
    """A Dask DataFrame of Parquet that all workers can open: files, folders or patterns."""
    from dask.dataframe import read_parquet

    several = isinstance(source, list | tuple)
    paths: Any = [fspath(path) for path in source] if several else fspath(source)  # type: ignore[arg-type, union-attr]
    try:
        return read_parquet(paths)
    except (OSError, ValueError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"{paths} cannot be read as Parquet: {line}") from error


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
