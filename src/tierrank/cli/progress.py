"""How a fit goes on: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tierrank.cli.messages import stderr
from tierrank.training import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

SECONDS_BETWEEN_LINES = 5.0
BAR = 16  # characters


class FitDisplay:
    """Shows the steps of fits, one after the other; `watch` is for `Ranker.fit`.

    Parameters
    ----------
    metric
        the name of the validation metric
    fits
        how many fits there are in all; with more than one, they have a bar of their own
    """

    def __init__(self, metric: str, fits: int = 1) -> None:
        self.metric = metric
        self.fits = fits
        self._console = stderr()
        self._bars: Bars | None = None
        self._overall: Any = None
        self._current: Any = None
        self._what = ""
        self._metric: float | None = None
        self._best: float | None = None
        self._best_step: int | None = None
        self._begun = self._said = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars = self._new_bars()
            if self.fits > 1:
                self._overall = self._bars.add_task("all fits", total=self.fits, values="")
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def begin(self, what: str) -> None:
        """A fit begins."""
        self._what = what
        self._metric = self._best = self._best_step = None
        self._begun = time.monotonic()
        self._said = self._begun
        if self._bars is not None:
            if self._current is not None:
                self._bars.remove_task(self._current)
            self._current = self._bars.add_task(what, total=None, values="")

    def end(self, line: str) -> None:
        """A fit of several has ended; the line says how."""
        if self._bars is not None:
            self._bars.advance(self._overall)
        else:
            self._console.print(line, markup=False, soft_wrap=True)

    def watch(self, step: Progress) -> None:
        """Show a step, or how far the next one is."""
        if step.step is None:
            self._metric = step.metric
        if step.best != self._best:  # a fit that is taken up again has a best from before
            self._best = step.best
            self._best_step = step.done if step.metric == step.best else None
        if self._bars is not None:
            done = step.done + begun_share(step)
            self._bars.update(self._current, completed=done, total=step.total, **self._fields(step))
            return
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            self._console.print(self._line(step, now - self._begun), markup=False, soft_wrap=True)

    def _new_bars(self) -> Bars:
        return _bars(self._console)

    def _fields(self, step: Progress) -> dict[str, Any]:
        """What the bar of a fit shows besides its name and length."""
        room = self._console.width - len(self._what) - len(f"{step.total}") * 2 - BAR - 14
        return {"values": "  ".join(self._values(step, room))}

    def _values(self, step: Progress, room: int = 1000) -> list[str]:
        """Batches, loss, metric and best metric, as many from the end as there is room for.

        On the way to the next step, the metric is that of the last one.
        """
        parts = []
        if step.step is not None:
            parts.append(f"batch {step.step[0]:,} of {step.step[1]:,}")
        if step.loss is not None:
            parts.append(f"loss {step.loss:.4f}")
        if self._metric is not None:
            parts.append(f"{self.metric} {self._metric:.4f}")
        if step.best is not None:
            place = "" if self._best_step is None else f" at {self._best_step:,}"
            parts.append(f"best {step.best:.4f}{place}")
        return fitting(parts, room)

    def _line(self, step: Progress, seconds: float) -> str:
        return (
            f"{self._what}: {step.unit} {step.done:,} of at most {step.total:,}  "
            f"{'  '.join(self._values(step))}  {duration(seconds)}"
        )


def begun_share(step: Progress) -> float:
    """Which part of the next step is done."""
    return 0.0 if step.step is None else step.step[0] / step.step[1]


def fitting(parts: list[str], room: int) -> list[str]:
    """As many from the end as there is room for, with two blanks between."""
    first = 0
    while first < len(parts) and len("  ".join(parts[first:])) > room:
        first += 1
    return parts[first:]


def duration(seconds: float) -> str:
    """A time span as people say it: 0.42 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _bars(console: Any) -> Bars:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR),
        MofNCompleteColumn(),
        TextColumn("{task.fields[values]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
    )
