"""What every fit has, whatever learns: a curve, those who watch, checkpoints, Ctrl-C and a seed.

`Learned` answers for what a fit sets where there was no fit yet.
"""

from __future__ import annotations

import hashlib
import json
import operator
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tierrank import storage
from tierrank._types import AnyArray
from tierrank.errors import check_count
from tierrank.storage import Arrays

SAVINGS_BETWEEN = 10  # so keeping states takes a tenth of a fit's time, at most about


@dataclass(frozen=True)
class Progress:
    """How far a fit is: after a step, or on the way to the next one.

    Attributes
    ----------
    done, total
        steps so far, and at most
    unit
        what a step is: "iteration", "epoch" or "tree"
    loss
        mean loss a training list, or None if it was not computed
    metric
        validation metric after this step, or None without validation data
    best
        best validation metric so far
    step
        on the way to the next epoch: batches taken of it, and how many it has. `loss` is then what
        the epoch's will be if it goes on like this, and there is no `metric`. After an epoch: None.
    run
        which of the several trainings that make up a fit this is, in words; None: there is one
    """

    done: int
    total: int
    unit: str
    loss: float | None = None
    metric: float | None = None
    best: float | None = None
    step: tuple[int, int] | None = None
    run: str | None = None


Watch = Callable[[Progress], None]


def only_whole_steps(watch: Watch) -> Watch:
    """A watch that passes on what comes after a step, and nothing of what comes on the way."""

    def passing_on(progress: Progress) -> None:
        if progress.step is None:
            watch(progress)

    return passing_on


def named(watch: Watch | None, run: str) -> Watch | None:
    """A watch that is told which of several trainings a step belongs to."""
    if watch is None:
        return None

    def told(progress: Progress) -> None:
        watch(replace(progress, run=run))

    return told


@dataclass
class History:
    """The training curve: one entry a step, and which step was best on the validation data.

    Attributes
    ----------
    unit
        what a step is: "iteration", "epoch" or "tree"
    metric_name
        the validation metric, for instance "ndcg@10"
    steps, loss, metric
        [entries] step number (from 1; a model that is continued has an entry of its own before,
        with its trees or 0), mean training loss, validation metric (None: not there)
    best_step, best_metric
        the first step with the best validation metric, or None without validation data
    refit
        if the model was then learned once more, from training and validation rows, the steps of
        that: the curve and `best_metric` are of the model before, as no rows are left to measure
        the new one. None: it was not.
    """

    unit: str
    metric_name: str
    steps: list[int] = field(default_factory=list)
    loss: list[float | None] = field(default_factory=list)
    metric: list[float | None] = field(default_factory=list)
    best_step: int | None = None
    best_metric: float | None = None
    refit: int | None = None

    def add(self, step: int, loss: float | None, metric: float | None) -> bool:
        """Note a step; say whether its metric is better than all before."""
        self.steps.append(step)
        self.loss.append(loss)
        self.metric.append(metric)
        if metric is None or (self.best_metric is not None and metric <= self.best_metric):
            return False
        self.best_step, self.best_metric = step, metric
        return True

    def since_best(self) -> int:
        """Steps since the best one; 0 without validation data."""
        return 0 if self.best_step is None else self.steps[-1] - self.best_step

    def progress(self, total: int) -> Progress:
        """The last step, for those who watch."""
        return Progress(
            self.steps[-1], total, self.unit, self.loss[-1], self.metric[-1], self.best_metric
        )

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> History:
        """From what `to_json` gave."""
        return cls(**saved)


class Interruption:
    """Turns the first Ctrl-C into a flag, so that a step is never cut in two; the second one cuts.

        with Interruption() as interruption:
            for step in steps:
                ...
                if interruption.asked:
                    keep the state
                    raise KeyboardInterrupt

    Off the main thread, where Python gives nobody a signal, the flag stays down.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Checkpoint:
    """A folder that keeps the state of a fit.

    Parameters
    ----------
    folder
        where to keep it; None: nowhere, and all methods do nothing
    identity
        what the fit is of: settings and data, JSON-able. A state of another fit is refused.
    every
        seconds between two states that are kept; if keeping one takes long, ten times as long as
        that. 0: keep all, whatever it takes.
    """

    def __init__(
        self, folder: Path | str | None, identity: Mapping[str, Any], *, every: float = 20.0
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.identity = json.loads(json.dumps(identity))
        self.every = every
        self._wait = every
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """The state that was kept, or None if there is none."""
        if self.folder is None or not storage.exists(self.folder, "checkpoint"):
            return None
        content, tensors = storage.read(self.folder, "checkpoint")
        if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
            raise storage.StorageError(
                f"{self.folder}: holds no state of a fit. Remove it, and begin anew."
            )
        if content["identity"] != self.identity:
            other = ", ".join(_differing(content["identity"], self.identity))
            raise storage.StorageError(
                f"{self.folder}: holds a checkpoint of another fit (what differs: {other}). "
                "Continue with what it was begun with, or remove the folder."
            )
        return content["state"], tensors

    @property
    def due(self) -> bool:
        """Whether it is time to keep the state."""
        return self.folder is not None and time.monotonic() - self._last >= self._wait

    def save(self, state: Mapping[str, Any], tensors: Arrays) -> None:
        """Keep a state in place of the last one."""
        if self.folder is not None:
            content = {"identity": self.identity, "state": state}
            begun = time.monotonic()
            storage.write(self.folder, "checkpoint", content, tensors)
            self._last = time.monotonic()
            if self.every > 0:
                self._wait = max(self.every, SAVINGS_BETWEEN * (self._last - begun))


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of what two fits do not share; of settings, which."""
    found = []
    for key in sorted({*one, *other}):
        old, new = one.get(key), other.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differing(old, new)
        elif old != new:
            found.append(key)
    return found


def digest(*arrays: Any) -> str:
    """A digest of what arrays hold: dense, sparse, or None."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        sparse = hasattr(array, "indptr")
        parts = (array.data, array.indices, array.indptr) if sparse else (array,)
        for part in parts:
            flat = np.ascontiguousarray(part)
            total.update(f"{flat.dtype.str}{flat.shape}".encode())
            named = flat.dtype.kind in "OUS"
            total.update(repr(flat.tolist()).encode() if named else flat.data)
    return total.hexdigest()


def member_seed(seed: int, member: int) -> int:
    """The seed of one of several models of a fit: for the first its own, then what follows."""
    if not member:
        return seed
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def seed_from(random_state: Any) -> int:
    """A seed: the given one, one drawn from a `RandomState`, or a fresh one for None."""
    if random_state is None:
        return secrets.randbits(32)
    if isinstance(random_state, np.random.RandomState):  # as scikit-learn allows
        return int(random_state.randint(2**31))
    check_count("random_state", random_state, least=0)
    return operator.index(random_state)


class Learned:
    """What `fit` sets, such as `coef_`, raises scikit-learn's `NotFittedError` before it.

    That is an `AttributeError` too, so `hasattr` is False as ever; and whatever asks for such an
    attribute, a property or a method, needs no check of its own.
    """

    # what a fit sets when it has come to its end; None: there is none that sets something before
    _last_learned: ClassVar[str | None] = None

    def __dir__(self) -> Iterable[str]:
        """All names, for TAB; scikit-learn's would ask for all values too, and compute them."""
        return object.__dir__(self)

    if not TYPE_CHECKING:  # a type checker would take it that every attribute is there

        def __getattr__(self, name: str) -> Any:
            """Called where there is no such attribute, or a property raised `AttributeError`."""
            learned = name.endswith("_") and not name.startswith("_")
            own, last = vars(self), self._last_learned
            if learned and not (last in own if last else any(each.endswith("_") for each in own)):
                from sklearn.exceptions import NotFittedError

                raise NotFittedError(
                    f"this {type(self).__name__} is not fitted yet, so it has no {name}: call fit"
                )
            return object.__getattribute__(self, name)  # raises what it raised before


class Tracker:
    """Follows a fit of one vector, its point.

    Parameters
    ----------
    history
        the curve so far
    start
        [parameters] the point after it
    total
        how many steps there are at most
    measure
        gives the validation metric of a point; None without validation data
    measure_every
        how many steps lie between two measurements
    patience
        steps without a better metric after which the fit ends, and the best point is kept; None
        keeps the last one
    watch
        called after each step
    checkpoint, interruption
        of the fit
    seed
        goes into the checkpoint
    arrays
        gives what else goes into the checkpoint

    Attributes
    ----------
    known
        the curve of a fit that is being replayed: its steps are not measured or shown again
    """

    def __init__(
        self,
        history: History,
        start: AnyArray,
        *,
        total: int,
        measure: Callable[[AnyArray], float] | None,
        measure_every: int,
        patience: int | None,
        watch: Watch | None,
        checkpoint: Checkpoint,
        interruption: Interruption,
        seed: int,
    ) -> None:
        self.history = history
        self.known = History(history.unit, history.metric_name)
        self.point = self.best = start
        self.arrays: Callable[[], Arrays] = dict
        self._total = total
        self._measure, self._every, self._patience = measure, measure_every, patience
        self._watch, self._seed = watch, seed
        self._checkpoint, self._interruption = checkpoint, interruption

    @property
    def kept(self) -> AnyArray:
        """The point that is the result, as far as one knows."""
        by_metric = self._patience is not None and self.history.best_step is not None
        return self.best if by_metric else self.point

    @property
    def out_of_patience(self) -> bool:
        """Whether the metric has not improved for too long."""
        waited = self.history.since_best() if self.history.steps else 0
        return self._patience is not None and waited >= self._patience

    def step(self, point: AnyArray, loss: float) -> bool:
        """Note a step; say whether patience ends the fit."""
        self.point = point
        number = (self.history.steps[-1] if self.history.steps else 0) + 1
        replayed = number <= len(self.known.steps)
        metric = self.known.metric[number - 1] if replayed else self._measured(number, point)
        if self.history.add(number, loss, metric):
            self.best = point
        if not replayed:
            if self._watch is not None:
                self._watch(self.history.progress(self._total))
            self.pause()
        return self.out_of_patience

    def pause(self) -> None:
        """Keep the state if it is time to; after a Ctrl-C, keep it and stop. Ends any replay."""
        self.known = History(self.history.unit, self.history.metric_name)
        if self._interruption.asked:
            self.save()
            raise KeyboardInterrupt
        if self._checkpoint.due:
            self.save()

    def save(self, *, finished: bool = False) -> None:
        """Keep the state."""
        state = {"seed": self._seed, "history": self.history.to_json(), "finished": finished}
        self._checkpoint.save(state, self.arrays())

    def _measured(self, number: int, point: AnyArray) -> float | None:
        if self._measure is None or (number % self._every and number != self._total):
            return None
        return self._measure(point)
