"""The options `--dask` and `--workers`, and the cluster that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from tierrank.cli.options import note, option

ANSWER = 15  # seconds that a scheduler has
PANEL = "Cluster"


@dataclass(frozen=True)
class Cluster:
    """Who computes: this process, a Dask cluster that is there, or one that is started here."""

    # fmt: off
    dask: Annotated[str | None, option(
        "Compute on the Dask cluster whose scheduler is there, as in tcp://10.0.0.1:8786.",
        metavar="ADDRESS", panel=PANEL)] = None
    workers: Annotated[int | None, option(
        "Compute by so many Dask workers, which are started on this machine.", min=1, panel=PANEL,
    )] = None
    # fmt: on

    def __post_init__(self) -> None:
        if self.dask is not None and self.workers is not None:
            raise ValueError("--dask names a cluster, and --workers starts one: give one of them.")

    def __bool__(self) -> bool:
        return self.dask is not None or self.workers is not None

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the cluster, which ends with the context if it was started here."""
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise ImportError(
                '--dask and --workers need Dask: pip install "tierrank[distributed]"'
            ) from None
        if self.dask is not None:
            try:
                client = Client(self.dask, timeout=ANSWER)
            except (OSError, TimeoutError, ValueError) as error:
                raise ConnectionError(
                    f"{self.dask}: no Dask scheduler answered within {ANSWER} s. Is it running "
                    "there? `dask scheduler` starts one, `dask worker ADDRESS` a worker."
                ) from error
            with client:
                note(f"{_workers(len(client.nthreads()))}; dashboard: {client.dashboard_link}")
                yield client
            return
        with LocalCluster(
            n_workers=self.workers, processes=True, host="127.0.0.1", dashboard_address=":0"
        ) as cluster, Client(cluster) as client:  # fmt: skip
            note(f"{_workers(self.workers or 0)} here; dashboard: {client.dashboard_link}")
            yield client


def _workers(number: int) -> str:
    return f"{number} Dask worker{'s' * (number != 1)}"
