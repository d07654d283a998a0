"""How long work goes on: bars on a terminal, plain lines elsewhere.

`FitDisplay` is for fits, `TrainingDisplay` for those over labels, which take hours and say how fast
they are; `RowsDisplay` for predictions.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from tierrank.cli.options import process_number, stderr
from tierrank.names import counted
from tierrank.training import Progress

SECONDS_BETWEEN_LINES = 5.0
SECONDS_LOOKED_BACK = 30.0  # to see how fast it goes
SHORT_EPOCH = 10.0  # seconds: the end of a shorter one is no news
BAR = 16  # characters

_MINE = Path("/proc/self/statm")
_VALUES = TextColumn("{task.fields[values]}")


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

    def __exit__(self, *_: object) -> None:
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
        """Show a step, or how far the next one is; a run with another name begins anew."""
        if step.run is not None and step.run != self._what:
            self.begin(step.run)
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
        left = TimeRemainingColumn(elapsed_when_finished=True)
        return _bars(self._console, MofNCompleteColumn(), _VALUES, left)

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


class Speed:
    """How fast a number has grown in the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, number: float) -> None:
        """Note the number as it is now."""
        now = time.monotonic()
        self._seen.append((now, number))
        while len(self._seen) > 2 and now - self._seen[1][0] >= SECONDS_LOOKED_BACK:
            self._seen.popleft()

    @property
    def a_second(self) -> float | None:
        """None if it is too early to tell."""
        if len(self._seen) < 2 or self._seen[-1][0] <= self._seen[0][0]:
            return None
        (begun, first), (now, last) = self._seen[0], self._seen[-1]
        return (last - first) / (now - begun) or None


class TrainingDisplay(FitDisplay):
    """Shows the runs of an `ExtremeRanker`'s fit, one after the other.

    Rows a second are those of the training data that are learned from; labels a second are the
    scores of labels that this takes: each row's, for all labels or for those that are drawn.

    Parameters
    ----------
    metric
        the name of the validation metric
    runs
        how many there are at most
    rows
        in an epoch
    labels
        that a row's score is computed for
    """

    def __init__(self, metric: str, *, runs: int, rows: float, labels: float) -> None:
        super().__init__(metric)
        self.runs, self.rows, self.labels = runs, rows, labels
        self._runs_left = runs
        self._speed = Speed()
        self._last: Progress | None = None

    def begin(self, what: str) -> None:
        """A run begins; of the one before it, one line remains."""
        if self._last is not None:
            self._console.print(self._end_line(self._last), markup=False, soft_wrap=True)
            self._last = None
        self._runs_left = max(self._runs_left - 1, 0)
        self._speed = Speed()
        super().begin(what)

    def watch(self, step: Progress) -> None:
        """Show how far a run is."""
        name = step.run or "training"
        if name != self._what:
            self.begin(name)
        self._speed.note(step.done + begun_share(step))
        self._last = step
        super().watch(step)

    def _new_bars(self) -> Bars:
        return _bars(self._console, _VALUES, kind=_Lines)

    def _fields(self, step: Progress) -> dict[str, Any]:
        room = self._console.width
        below = [self._values(step, room), fitting(self._pace(step), room)]
        return {"values": _epoch(step), "below": "\n".join(map("  ".join, below))}

    def _line(self, step: Progress, seconds: float) -> str:
        parts = [_epoch(step), *self._values(step), *self._pace(step), duration(seconds)]
        return f"{self._what}: {'  '.join(parts)}"

    def _pace(self, step: Progress) -> list[str]:
        """Rows and labels a second, memory, and how long it may go on."""
        parts = []
        epochs = self._speed.a_second
        if epochs is not None:
            rows = epochs * self.rows
            parts += [f"rows/s {amount(rows)}", f"labels/s {amount(rows * self.labels)}"]
        if (held := in_use()) is not None:
            parts.append(f"memory {size(held)}")
        if epochs is not None:
            done = begun_share(step)
            in_all = step.total - step.done - done + self._runs_left * step.total
            left = f"≤ {about(in_all / epochs)}"
            if done and 1 / epochs >= SHORT_EPOCH:
                left = f"epoch {about((1 - done) / epochs)}, all {left}"
            parts.append(f"left: {left}")
        return parts

    def _end_line(self, step: Progress) -> str:
        parts = [
            counted(step.done, step.unit),
            *self._values(step),
            duration(time.monotonic() - self._begun),
        ]
        return f"{self._what}: {'  '.join(parts)}"


class RowsDisplay:
    """Shows how many of some rows are done, and how long the others will take.

    Parameters
    ----------
    what
        is done with them, in a word
    rows
        how many there are
    silent
        whether to show nothing, as where results go to the same terminal
    """

    def __init__(self, what: str, rows: int, *, silent: bool = False) -> None:
        self.what, self.rows, self.silent = what, rows, silent
        self._console = stderr()
        self._speed = Speed()
        self._bars: Bars | None = None
        self._task: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._speed.note(0)
        if self._console.is_terminal and not self.silent:
            # What goes to a pipe must not end up beside the bar.
            self._bars = _bars(self._console, _VALUES, redirect_stdout=False)
            self._task = self._bars.add_task(self.what, total=self.rows, values="")
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def show(self, done: int) -> None:
        """So many rows are done."""
        self._speed.note(done)
        if self._bars is not None:
            values = "  ".join(self._values(done))
            self._bars.update(self._task, completed=done, values=values)
            return
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES and not self.silent:
            self._said = now
            line = f"{self.what}: {'  '.join(self._values(done))}"
            self._console.print(line, markup=False, soft_wrap=True)

    def _values(self, done: int) -> list[str]:
        parts = [f"{done:,} of {self.rows:,} rows"]
        if (rate := self._speed.a_second) is not None:
            parts.append(f"rows/s {amount(rate)}")
            parts.append(f"left: {about((self.rows - done) / rate)}")
        if (held := in_use()) is not None:
            parts.append(f"memory {size(held)}")
        return parts


class ConversionDisplay(RowsDisplay):
    """Shows how much of a file has been read into arrays on the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"converting {path.name}", path.stat().st_size)

    def _values(self, done: int) -> list[str]:
        parts = [f"{size(done)} of {size(self.rows)}"]
        if (rate := self._speed.a_second) is not None:
            parts += [f"{size(rate)}/s", f"left: {about((self.rows - done) / rate)}"]
        return parts


@contextmanager
def converting() -> Iterator[None]:
    """Show the conversions of files, one after the other; of several processes, the first does."""
    from tierrank.data.cache import watching

    with ExitStack() as shown:
        display: dict[Path, ConversionDisplay] = {}

        def watch(path: Path, share: float) -> None:
            if path not in display:
                shown.close()
                display[path] = shown.enter_context(ConversionDisplay(path))
            display[path].show(round(share * display[path].rows))

        with watching(watch) if process_number() == 0 else nullcontext():
            yield


class _Lines(Bars):
    """A bar, and below it what there is to say."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            yield Text(task.fields.get("below", ""), no_wrap=True, overflow="ellipsis")


def _bars(
    console: Any, *columns: ProgressColumn, kind: type[Bars] = Bars, **more: bool
) -> Bars:  # fmt: skip
    first = (TextColumn("{task.description}"), BarColumn(bar_width=BAR))
    return kind(*first, *columns, console=console, transient=True, **more)  # type: ignore[arg-type]


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


def _epoch(step: Progress) -> str:
    """Which epoch it is: the one that has ended, or that is on its way."""
    return f"{step.unit} {step.done + (step.step is not None):,} of at most {step.total:,}"


def amount(number: float) -> str:
    """A number to be seen at a glance: 0.52, 18.3, 734, 12,400, 1.83 M, 2.05 G."""
    for least, unit in ((1e9, " G"), (1e6, " M")):
        if number >= least:
            return f"{number / least:.3g}{unit}"
    if number >= 100:
        digits = 10 ** max(len(str(int(number))) - 3, 0)
        return f"{round(number / digits) * digits:,}"
    return f"{number:.3g}"


def about(seconds: float) -> str:
    """A time to come, which is never known to the second: 42 s, 12 min, 3.5 h, 2.1 days."""
    for unit, least, digits in (("days", 86400, 1), ("h", 3600, 1), ("min", 60, 0)):
        if seconds >= 1.5 * least:
            return f"{seconds / least:.{digits}f} {unit}"
    return f"{seconds:.0f} s"


def in_use() -> int | None:
    """Bytes that this process holds now, or has held at most; None where neither is known."""
    try:
        return int(_MINE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def size(count: float) -> str:
    """Bytes as people say them: 45.2 kB, 512 MB, 1.25 GB."""
    for least, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * least:
            return f"{count / least:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
