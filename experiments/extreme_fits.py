"""Fits of an experiment: each is done once, and kept in a folder.

A finished fit is a small JSON with the labels that it predicts for the test rows. Fits that are cut
short leave a state, from which the same command goes on.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from extreme_data import DataSet
from leml import Leml
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
