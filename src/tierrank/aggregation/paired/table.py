"""The table that shows who is how good, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tierrank._types import FloatArray


@dataclass(frozen=True)
class PairedTable:
    """Log-worths with standard errors and intervals, best first; printed, a table.

    Attributes
    ----------
    items
        [items] names, best first
    log_worths, standard_errors, lower, upper
        [items] estimates, centred, and the ends of their intervals
    worths
        [items] that sum to 1
    parameters
        the parameters of ties (on the log scale) and of the first side, as
        (name, estimate, standard error, lower, upper)
    level
        how often such an interval holds the true value
    note
        what was fitted, in a line
    """

    items: tuple[Any, ...]
    log_worths: FloatArray
    standard_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    worths: FloatArray
    parameters: tuple[tuple[str, float, float, float, float], ...]
    level: float
    note: str

    def __str__(self) -> str:
        tails = (1 - self.level) / 2
        heads = ["item", "log-worth", "std err", f"[{tails:.4g}", f"{1 - tails:.4g}]", "worth"]
        numbers = zip(
            self.log_worths, self.standard_errors, self.lower, self.upper, self.worths, strict=True
        )
        rows = [
            [str(name), *(f"{value:.4f}" for value in row)]
            for name, row in zip(self.items, numbers, strict=True)
        ]
        rows += [[name, *(f"{value:.4f}" for value in row), ""] for name, *row in self.parameters]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [heads, *rows]
        ]
        return "\n".join([self.note, *lines])

    __repr__ = __str__
