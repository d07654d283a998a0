"""Keys of queries, lists or items from a column of any type: integers, or else strings."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank.data.tables.csv_numbers import MISSING
from tierrank.data.text import shown
from tierrank.tiers.catalogue import is_missing

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_EXACT = 2**53
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


class BadKey(NamedTuple):
    """Which of the distinct values cannot be a key, and why."""

    code: int
    why: str


def keys_of(distinct: Sequence[Any], what: str = "query") -> npt.NDArray[Any] | BadKey:
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
) -> npt.NDArray[Any] | BadKey:
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


def _strings(words: Sequence[str]) -> npt.NDArray[Any]:
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
    return isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT
