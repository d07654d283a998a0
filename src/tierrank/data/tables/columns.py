"""Columns of tables: cells that are numbers, cells that are keys, and what is wrong with others.

Wherever a table is, it gives its `Columns` by position; `opening` makes more of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import DataFileError, shown
from tierrank.tiers.catalogue import is_missing

MISSING = ("", "NA", "N/A", "n/a", "NULL", "null", "Null", "NaN", "nan", "None", "<NA>")
EXACT_INTEGERS = 2**53  # that a float64 holds

_BLANKS = " \t"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMED = re.compile(r"[+-]?(?:(inf|infinity)|nan)", re.IGNORECASE)
_TRUTH = {"true": 1.0, "false": 0.0}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


class TableError(DataFileError):
    """A table that cannot be read: says which, where in it, what is wrong and what to do."""


class BadColumn(NamedTuple):
    """A column that does not serve: why, and in which row, counted from 0, if in one.

    `large` if it is an integer that a float64 would change.
    """

    why: str
    row: int | None = None
    large: bool = False

    @classmethod
    def with_integer(cls, value: int, row: int) -> BadColumn:
        """For an integer that a float64 would change."""
        return cls(f"has {value}, over 2^53, which a float64 cannot hold: scale it.", row, True)


class Distinct(NamedTuple):
    """[rows] numbers of the distinct values of a column, and these values."""

    codes: IntArray
    values: list[Any]


class Columns(Protocol):
    """Columns by position, as numbers and as the values that there are.

    Attributes
    ----------
    names
        of all columns of the table
    rows
        how many there are
    """

    names: Sequence[str]
    rows: int

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is missing; `what` is for the error."""

    def decimal(self, position: int) -> bool:
        """Whether its numbers may be decimals that a float64 rounds."""


# Numbers ------------------------------------------------------------------------------------------


def numbers(cells: Sequence[str]) -> FloatArray | BadColumn:
    """Read words: numbers throughout, or true and false throughout; NaN for what is missing."""
    said = (word for cell in cells if (word := cell.strip(_BLANKS)) not in MISSING)
    read = _truth if next(said, "").lower() in _TRUTH else _number
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        word = cell.strip(_BLANKS)
        value = math.nan if word in MISSING else read(word)
        if isinstance(value, str):
            return BadColumn(value, row)
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


def order_of(exact: Sequence[Any]) -> FloatArray:
    """The place of each number in the order of all, equal ones alike; NaN and infinities stay."""
    order = sorted({value for value in exact if math.isfinite(value)})
    number = {value: float(place) for place, value in enumerate(order)}
    return np.array([number.get(value, value) for value in exact], dtype=np.float64)


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


# Keys ---------------------------------------------------------------------------------------------


class BadKey(NamedTuple):
    """Which of the distinct values cannot be a key, and why."""

    code: int
    why: str


def keys_of(distinct: Sequence[Any], what: str = "query") -> AnyArray | BadKey:
    """Give a key for each of the distinct values of a column; `what` is what errors call one.

    int64 where all are whole numbers that fit, else an object array of strings: a column of
    such an array shares one string between all rows of a query.
    """
    if set(map(type, distinct)) == {str}:  # nothing to convert, and none look the same
        empty = next((code for code, word in enumerate(distinct) if not word.strip()), None)
        return _strings(distinct) if empty is None else BadKey(empty, _empty(what))
    for code, value in enumerate(distinct):
        if is_missing(value):
            return BadKey(code, f"the {what} is missing: give every row one.")
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return BadKey(code, f"the {what} is {value}: give a number or a word.")
        if isinstance(value, str) and not value.strip():
            return BadKey(code, _empty(what))
    if all(map(_is_whole, distinct)):
        return np.array([int(value) for value in distinct], dtype=np.int64)
    words: dict[str, Any] = {}
    for code, value in enumerate(distinct):
        word = value if isinstance(value, str) else str(value)
        if word in words:
            other = words[word]
            return BadKey(
                code,
                f"the {_several(what)} {other!r} ({type(other).__name__}) and {value!r} "
                f"({type(value).__name__}) look the same: give the column one type.",
            )
        words[word] = value
    return _strings(list(words))


def keys_of_words(
    distinct: Sequence[str], what: str = "query", missing: Container[str] = MISSING
) -> AnyArray | BadKey:
    """The same for text: words such as 7 are numbers if all are; 07 and 7.0 are words.

    A word that stands for a missing value is no key: all rows that lack one would be of one kind.
    """
    if all(_WHOLE.fullmatch(word) and _fits(int(word)) for word in distinct):
        return keys_of([int(word) for word in distinct], what)
    for code, word in enumerate(map(str.strip, distinct)):
        if word and word in missing:
            return BadKey(
                code,
                f"the {what} is {word}, which stands for a missing value: give every row one. "
                "(Where one is really called so, Parquet can tell.)",
            )
    return keys_of(distinct, what)


def bad_type(kind: object, what: str = "query") -> str:
    """What to say about a column whose values cannot be keys."""
    return f"the {what} column is of type {shown(kind)}: give numbers, strings or dates."


def _strings(words: Sequence[str]) -> AnyArray:
    keys = np.empty(len(words), dtype=object)
    keys[:] = words
    return keys


def _empty(what: str) -> str:
    return f"the {what} is empty: give every row one."


def _several(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"


def _fits(value: int) -> bool:
    return _SMALLEST <= value <= _LARGEST


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | np.integer):
        return _fits(int(value))
    # pandas makes floats of integers when one is missing
    return isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_INTEGERS
