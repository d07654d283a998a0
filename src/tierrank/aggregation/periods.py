"""Times as numbers of periods: days, weeks, calendar months or plain numbers, so many a step."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers.arrays import preview

SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}
MONTHS = {"m": 1, "y": 12}
FAR = 1e11  # seconds: the year 5138
MOST = 2**31  # periods from the first to the last: what is beyond is a step in a wrong unit


@dataclass(frozen=True)
class Step:
    """How long a period is: so many seconds or calendar months of dates, or a plain number."""

    size: float
    unit: str = ""  # "s" or "month"; "" of plain numbers

    @property
    def of_dates(self) -> bool:
        """Whether times are dates."""
        return bool(self.unit)


def step_from(step: Any) -> Step:
    """What a user means by "30d", "2w", "12h", "1m" (a calendar month), "1y", or a number."""
    if isinstance(step, str):
        match = re.fullmatch(r"\s*(\d+)?\s*([hdwmy])\s*", step.lower())
        count = int(match[1] or 1) if match else 0
        if match is not None and count > 0:
            unit = match[2]
            if unit in SECONDS:
                return Step(count * SECONDS[unit], "s")
            return Step(count * MONTHS[unit], "month")
    elif isinstance(step, int | float | np.number) and step is not True and 0 < step < math.inf:
        return Step(float(step))
    raise ArgumentError(
        Argument("step"), f" is {step!r}: give a number of hours, days, weeks, calendar months or "
        "years, as in ", Argument("step", "12h"), ", ", Argument("step", "30d"), ", ",
        Argument("step", "2w"), ", ", Argument("step", "1m"), " or ", Argument("step", "1y"),
        "; of times that are plain numbers, a number above 0",
    )  # fmt: skip


@dataclass(frozen=True)
class Calendar:
    """Periods of equal length from the first time on, by number: 0, 1, ….

    Those of months are months of the calendar.

    Attributes
    ----------
    step
        how long a period is
    origin
        where period 0 begins: seconds since 1970, months since then, or a plain number
    """

    step: Step
    origin: float

    @classmethod
    def of(cls, times: Any, step: Any) -> tuple[Calendar, IntArray]:
        """The calendar that begins with the first of these times, and the period of each."""
        chosen = step_from(step)
        values = _numbers(times, chosen)
        if not len(values):
            raise ValueError("there are no times: give at least one list or game")
        start = float(values.min())
        if chosen.unit == "month":
            start = float(start // chosen.size * chosen.size)
        elif chosen.unit == "s" and chosen.size % 86_400 == 0:
            start = float(start // 86_400 * 86_400)  # days begin at midnight
        calendar = cls(chosen, start)
        last = (values.max() - start) / chosen.size
        if last > MOST:
            raise ArgumentError(
                Argument("step"), f"={step!r} makes {last:.3g} periods from the first time to the "
                "last: take a longer one",
            )  # fmt: skip
        return calendar, calendar._periods(values)

    def positions(self, times: Any) -> IntArray:
        """[times] the periods of other times, which may be before the first or after the last."""
        return self._periods(_numbers(times, self.step))

    def _periods(self, values: AnyArray) -> IntArray:
        return np.floor((values - self.origin) / self.step.size).astype(np.int64)

    def label(self, position: int) -> str | float:
        """When a period begins: a date in ISO's form, or a number."""
        if not self.step.of_dates:
            value = self.origin + position * self.step.size
            return int(value) if value == int(value) else value
        at = int(self.origin + position * self.step.size)
        if self.step.unit == "month":
            return f"{1970 + at // 12:04d}-{at % 12 + 1:02d}"
        form = "D" if at % 86_400 == 0 and self.step.size % 86_400 == 0 else "m"
        return str(np.datetime64(at, "s").astype(f"datetime64[{form}]"))


def first_and_last(times: AnyArray) -> tuple[str, str]:
    """Days in ISO's form, or plain numbers."""
    if times.dtype.kind in "iufb":
        return f"{times.min():,.10g}", f"{times.max():,.10g}"
    days = (times if times.dtype.kind == "M" else _dates(times)).astype("datetime64[D]")
    return str(days.min()), str(days.max())


def _numbers(times: Any, step: Step) -> AnyArray:
    """[times] seconds or months since 1970, or plain numbers."""
    values = np.asarray(times) if not isinstance(times, str | date) else np.array([times], object)
    if values.ndim != 1:
        raise ValueError(f"times are one a list or game, not of shape {values.shape}")
    if values.dtype.kind in "iufb":
        if step.of_dates:
            raise ArgumentError(
                f"times are plain numbers, such as {values[:1].tolist()[0] if len(values) else 0}: "
                "give ", Argument("step"), " as a number, of the same unit, not as one of days",
            )  # fmt: skip
        found = values.astype(np.float64)
    elif step.of_dates:
        found = values if values.dtype.kind == "M" else _dates(values)
        unit = "datetime64[M]" if step.unit == "month" else "datetime64[s]"
        gone = np.isnat(found)
        found = found.astype(unit).astype(np.float64)
        found[gone] = np.nan
    else:
        found = _floats(values)
    wrong = ~np.isfinite(found)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"time {at} is {preview(values[at])}: each list or game needs one. Leave it out."
        )
    return found


def _dates(values: AnyArray) -> AnyArray:
    """Texts in ISO's form, or dates and times of Python, in UTC where they have a zone."""
    texts, which = np.unique(values.astype(str), return_inverse=True)
    found = np.empty(len(texts), dtype="datetime64[us]")
    for number, text in enumerate(texts.tolist()):
        if text in ("", "None", "nan", "NaN", "NaT", "<NA>"):
            found[number] = np.datetime64("NaT")
            continue
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            at = int(np.argmax(which == number))
            raise ArgumentError(
                f"time {at} is {preview(values[at])}, which is no date in ISO's form, such as "
                "2026-11-18 or 2026-11-18T15:30; for plain numbers, give ", Argument("step"),
                " as a number",
            ) from None  # fmt: skip
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        found[number] = np.datetime64(moment)
    return found[which]


def _floats(values: AnyArray) -> AnyArray:
    if values.dtype.kind == "M":
        raise ArgumentError(
            "times are dates: give ", Argument("step", "30d"), ", or so many hours, weeks, months"
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        texts = values.astype(str).tolist()
        at = next(number for number, text in enumerate(texts) if not _is_number(text))
        raise ArgumentError(
            f"time {at} is {preview(values[at])}, which is no number: of dates, give ",
            Argument("step", "30d"), ", or so many hours, weeks, months",
        ) from None  # fmt: skip


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
