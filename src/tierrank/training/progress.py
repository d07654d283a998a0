"""What a fit says of itself while it runs, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


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
