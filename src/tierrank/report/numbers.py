"""Numbers as they stand in print, and the axis and the decimals that items need."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tierrank.report.content import ItemRow

MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"

_MARGIN = 0.04  # of the axis, on each side, so that a label at its end is not cut off
_MOST_STEPS = 8


def number(value: float | None, decimals: int) -> str:
    """A number with its sign as in print; nothing where there is none."""
    if value is None:
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= 1e9:
        return significant(value)
    written = f"{value:,.{decimals}f}"
    if not float(written.replace(",", "")):
        written = written.lstrip("-")  # no "−0.00"
    return written.replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """A number to some digits, however large or small it is."""
    written = f"{value:#.{digits}g}" if value else "0"
    return written.rstrip(".").replace("-", MINUS)


def digits(value: float) -> str:
    """Four decimals, or four digits of what is smaller or larger."""
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e4:
        return significant(value, 4)
    return number(value, 4)


def amount(value: float) -> str:
    """A number of any size, short: whole ones whole."""
    if abs(value) >= 1e9 or 0 < abs(value) < 0.1:
        return significant(value, 4)
    return number(value, 0 if value == int(value) else 2)


def percent(value: float, decimals: int = 0) -> str:
    """A probability in percent, which is 0 or 100 only if it is exactly that."""
    least = 10.0**-decimals
    if 0 < 100 * value <= least / 2:
        return f"<{least:g}"
    if value < 1 and 100 * value >= 100 - least / 2:
        return f">{100 - least:g}"
    return f"{100 * value:.{decimals}f}"


def counted(many: int, one: str) -> str:
    """`1 item`, `1,200 items`."""
    return f"{many:,}{NO_BREAK}{one}{'s' * (many != 1)}"


def share(part: float) -> str:
    """A part of a whole as CSS and SVG write it."""
    return f"{100 * part:.3f}".rstrip("0").rstrip(".") + "%"


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{1000 * seconds:.3g}{NO_BREAK}ms"
    if seconds < 120:
        return f"{seconds:.3g}{NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    long, short = (f"{hours}{NO_BREAK}h", f"{minutes}{NO_BREAK}min")
    return f"{long} {short}" if hours else f"{short} {rest}{NO_BREAK}s"


def decimals_of(rows: Sequence[ItemRow]) -> int:
    """Decimals that show two digits of the usual standard error, or of the spread without one."""
    errors = [row.standard_error for row in rows if row.standard_error]
    errors = [error for error in errors if math.isfinite(error)]
    size = statistics.median(errors) if errors else rows[0].log_worth - rows[-1].log_worth
    if size <= 0:
        return 2
    return min(max(2, 1 - math.floor(math.log10(size))), 6)


@dataclass(frozen=True)
class Axis:
    """A straight line of numbers from `low` to `high`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    tick_decimals: int

    def place(self, value: float) -> float:
        """Where a value stands, as a share of the axis; what is beyond stands at the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.low <= value <= self.high

    def labels(self) -> list[tuple[float, str]]:
        """Place and text of each tick."""
        return [(self.place(tick), number(tick, self.tick_decimals)) for tick in self.ticks]


def axis_of(rows: Sequence[ItemRow]) -> Axis:
    """An axis that holds all log-worths, and the intervals unless they dwarf the log-worths.

    One item that hardly anybody saw has an interval many times as long as the ranking. If the axis
    held it, all others would be one dot; so it goes off the axis, and the plot says so.
    """
    least, most = rows[-1].log_worth, rows[0].log_worth
    lengths = [
        row.high - row.low
        for row in rows
        if row.low is not None and row.high is not None and math.isfinite(row.high - row.low)
    ]
    typical = statistics.median(lengths) if lengths else 0.0
    reach = max(0.5 * (most - least), 2 * typical)
    low = max(min([least, *(row.low for row in rows if row.low is not None)]), least - reach)
    high = min(max([most, *(row.high for row in rows if row.high is not None)]), most + reach)
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):  # one item, or all alike
        low, high = low - 1, high + 1
    margin = _MARGIN / (1 - 2 * _MARGIN) * (high - low)
    step = _step(high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(step * place for place in range(first, last + 1))
    return Axis(low - margin, high + margin, ticks, max(0, -math.floor(math.log10(step) + 1e-9)))


def _step(span: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that gives few enough ticks."""
    power = 10.0 ** math.floor(math.log10(span / _MOST_STEPS))
    return next(power * each for each in (1, 2, 5, 10) if span / (power * each) <= _MOST_STEPS)
