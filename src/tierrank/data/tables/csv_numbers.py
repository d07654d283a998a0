"""Numbers in cells of text, one by one: for columns that pyarrow could not read, or not surely."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank.data.text import shown

MISSING = ("", "NA", "N/A", "n/a", "NULL", "null", "Null", "NaN", "nan", "None", "<NA>")

_BLANKS = " \t"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMED = re.compile(r"[+-]?(?:(inf|infinity)|nan)", re.IGNORECASE)
_TRUTH = {"true": 1.0, "false": 0.0}


class BadCell(NamedTuple):
    """Which row, counted from 0, has no number, and why."""

    row: int
    why: str


def numbers(cells: Sequence[str]) -> npt.NDArray[np.float64] | BadCell:
    """Read a column: numbers throughout, or true and false throughout; NaN for what is missing."""
    read = _truth if _is_truth(cells) else _number
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        word = cell.strip(_BLANKS)
        value = math.nan if word in MISSING else read(word)
        if isinstance(value, str):
            return BadCell(row, value)
        values[row] = value
    return values


def exact_number(cell: Any) -> Any:
    """The number of a cell to the last digit, NaN for what is missing; None if it is no number."""
    if cell is None:
        return math.nan
    if not isinstance(cell, str):
        return cell if isinstance(cell, Real | Decimal) else None
    word = cell.strip(_BLANKS)
    value = math.nan if word in MISSING else _number(word)
    if isinstance(value, str):
        return None
    return Decimal(word) if math.isfinite(value) else value


def places(exact: Sequence[Any]) -> npt.NDArray[np.float64]:
    """The place of each number in the order of all, equal ones alike; NaN and infinities stay."""
    order = sorted({value for value in exact if math.isfinite(value)})
    number = {value: float(place) for place, value in enumerate(order)}
    return np.array([number.get(value, value) for value in exact], dtype=np.float64)


def _is_truth(cells: Sequence[str]) -> bool:
    """Whether the first cell that says something says true or false."""
    words = (cell.strip(_BLANKS) for cell in cells)
    first = next((word for word in words if word not in MISSING), "")
    return first.lower() in _TRUTH


def _truth(word: str) -> float | str:
    known = _TRUTH.get(word.lower())
    return f"has {shown(word)} after true or false: write one kind." if known is None else known


def _number(word: str) -> float | str:
    if _DECIMAL.fullmatch(word):
        value = float(word)
        if math.isinf(value):
            return f"has {shown(word)}, too large for a float64: scale it down."
        return value
    if (named := _NAMED.fullmatch(word)) is None:
        return f"has {shown(word)}, which is not a number."
    if named[1] is None:
        return math.nan
    return -math.inf if word.startswith("-") else math.inf
