"""Fits of an experiment, alone or in several processes: each is done once, and kept in a folder.

A finished fit is a small JSON with the labels that it predicts for the test rows. Fits that are cut
short leave a state, from which the same command goes on.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import torch
from command import Progress
from extreme_data import DataSet, Source
from leml import Leml
from processes import CONTEXT, in_processes
from sleec import Sleec

from tierrank import storage
from tierrank.extreme.ranker import ExtremeRanker
from tierrank.training import Progress as FitProgress

DEPTH = 10  # labels that are kept for each row

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Reading:
    """One way to predict with what was fitted: a row of a table.

    Attributes
    ----------
    name
        of the row
    networks
        how many of the networks take part, from the first; None: all
    propensity
        as in `ExtremeRanker.predict`
    """

    name: str
    networks: int | None = None
    propensity: float = 0.0


@dataclass(frozen=True)
class Fit:
    """Something to fit once.

    Attributes
    ----------
    kind
        "network", "midpoint", "leml" or "sleec"
    seed
        its random_state
    settings
        its other arguments, as JSON takes them
    readings
        what is predicted with it
    """

    kind: str
    seed: int
    settings: Mapping[str, Any]
    readings: tuple[Reading, ...]

    @property
    def title(self) -> str:
        """For those who wait for it."""
        return f"{self.readings[0].name}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Done:
    """A finished fit: what it predicts, how long it took, and what it says of itself."""

    fit: Fit
    top: Mapping[str, np.ndarray[Any, Any]]  # [test rows, DEPTH] by reading
    seconds: float
    found: Mapping[str, Any]


class Store:
    """The finished fits to one data set, in a folder.

    Settings and data are part of a fit's file name, so fits of other settings or data may be in
    the same folder, and are never taken for these.
    """

    def __init__(self, folder: Path, data: DataSet) -> None:
        self.folder = folder / "fits"
        self.states = folder / "states"
        self.data = data.digest()

    def key(self, fit: Fit) -> str:
        """The name of a fit's file."""
        identity = {"data": self.data, **asdict(fit)}
        text = json.dumps(identity, sort_keys=True, ensure_ascii=False).encode()
        words = re.sub(r"[^a-z0-9]+", "-", fit.readings[0].name.lower()).strip("-")
        return f"{words}-{fit.seed}-{hashlib.sha256(text).hexdigest()[:12]}"

    def read(self, fit: Fit) -> Done | None:
        """A fit that was finished before."""
        key = self.key(fit)
        if not storage.exists(self.folder, key):
            return None
        content, arrays = storage.read(self.folder, key)
        top = {reading.name: arrays[str(i)] for i, reading in enumerate(fit.readings)}
        return Done(fit, top, content["seconds"], content["found"])

    def write(self, done: Done) -> None:
        """Keep a finished fit, and let go of its state."""
        key = self.key(done.fit)
        content = {"fit": asdict(done.fit), "data": self.data, "found": done.found}
        arrays = {
            str(i): done.top[reading.name].astype(np.int32)
            for i, reading in enumerate(done.fit.readings)
        }
        storage.write(self.folder, key, {**content, "seconds": done.seconds}, arrays)
        shutil.rmtree(self.states / key, ignore_errors=True)


def perform(fit: Fit, data: DataSet, store: Store, tell: Tell) -> Done:
    """Fit, predict for the test rows, and keep it."""

    def watch(progress: FitProgress) -> None:
        tell(f"{fit.title}: {_in_words(progress)}")

    state = store.states / store.key(fit)
    start = time.perf_counter()
    model, found = _fitted(fit, data, state, watch)
    seconds = round(time.perf_counter() - start, 2)
    k = min(DEPTH, data.train.n_labels)
    top = {reading.name: _predicted(model, reading, data, k) for reading in fit.readings}
    done = Done(fit, top, seconds, found)
    store.write(done)
    return done


def _fitted(
    fit: Fit, data: DataSet, state: Path, watch: Callable[[FitProgress], None]
) -> tuple[Any, dict[str, Any]]:
    """The model, and what is to be said of it."""
    X, Y = data.train.X, data.train.Y
    if fit.kind in ("leml", "sleec"):
        maker = Leml if fit.kind == "leml" else Sleec
        return maker(random_state=fit.seed, **fit.settings).fit(X, Y, watch=watch), {}
    if fit.kind == "midpoint":
        from extreme_midpoint import fit_midpoint

        return fit_midpoint(fit.settings, fit.seed, data.train, state, watch)
    ranker = ExtremeRanker(random_state=fit.seed, **fit.settings)
    ranker.fit(X, Y, checkpoint=state, watch=watch)
    return ranker, training_facts(ranker)


def training_facts(ranker: ExtremeRanker) -> dict[str, Any]:
    """What was chosen by validation."""
    return {
        "learning rate": ranker.learning_rate_,
        "epoch": ranker.history_.best_step,
        "validation": ranker.history_.best_metric,
        "trials": ranker.trials_,
    }


def _predicted(model: Any, reading: Reading, data: DataSet, k: int) -> Any:
    if not isinstance(model, ExtremeRanker):
        return model.predict(data.test.X, k=k)
    networks = model.networks_
    try:
        model.networks_ = networks[: reading.networks]
        return model.predict(data.test.X, k=k, propensity=reading.propensity)
    finally:
        model.networks_ = networks


def _in_words(progress: FitProgress) -> str:
    parts = [progress.run or "", f"{progress.unit} {progress.done}"]
    if progress.metric is not None:
        parts.append(f"{progress.metric:.4f}")
    return ", ".join(filter(None, parts))


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
