"""What a fit says of itself while it runs, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Progress:
    """One step of a fit.

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
    """

    done: int
    total: int
    unit: str
    loss: float | None = None
    metric: float | None = None
    best: float | None = None


Watch = Callable[[Progress], None]


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
        [entries] step number (from 1), mean training loss, validation metric (None: not there)
    best_step, best_metric
        the first step with the best validation metric, or None without validation data
    """

    unit: str
    metric_name: str
    steps: list[int] = field(default_factory=list)
    loss: list[float | None] = field(default_factory=list)
    metric: list[float | None] = field(default_factory=list)
    best_step: int | None = None
    best_metric: float | None = None

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
