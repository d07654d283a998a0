"""What happens between two steps of a fit: the curve, those who watch, Ctrl-C, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tierrank.storage import Arrays
from tierrank.training.checkpoint import Checkpoint
from tierrank.training.interruption import Interruption
from tierrank.training.progress import History, Watch

Array = np.ndarray[Any, Any]


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
        start: Array,
        *,
        total: int,
        measure: Callable[[Array], float] | None,
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
    def kept(self) -> Array:
        """The point that is the result, as far as one knows."""
        by_metric = self._patience is not None and self.history.best_step is not None
        return self.best if by_metric else self.point

    @property
    def out_of_patience(self) -> bool:
        """Whether the metric has not improved for too long."""
        waited = self.history.since_best() if self.history.steps else 0
        return self._patience is not None and waited >= self._patience

    def step(self, point: Array, loss: float) -> bool:
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

    def _measured(self, number: int, point: Array) -> float | None:
        if self._measure is None or (number % self._every and number != self._total):
            return None
        return self._measure(point)
