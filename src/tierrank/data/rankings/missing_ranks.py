"""Rows without a rank: cells that are empty, and words such as DNF."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tierrank.data.rankings.columns import Fetched
from tierrank.data.tables.assembly import BadColumn, FloatArray
from tierrank.data.tables.csv_numbers import MISSING, exact_number, places
from tierrank.data.text import shown

Action = Literal["drop", "last"]
MissingRank = Literal["error", "drop", "last"] | Mapping[str, Action]

# Not started, finished, qualified or prequalified, excluded and so on, as race results say it.
WORDS = ("DNF", "DNS", "DNQ", "DNPQ", "DNP", "DSQ", "DQ", "EX", "NC", "RET", "WD")


def checked_option(missing_rank: MissingRank) -> Mapping[str, str]:
    """Give the option as a mapping from words in capitals, "" for what is missing."""
    if isinstance(missing_rank, Mapping):
        for word, action in missing_rank.items():
            if not isinstance(word, str) or action not in ("drop", "last"):
                raise ValueError(
                    f'missing_rank maps words to "drop" or "last", not {word!r} to {action!r}.'
                )
        return {word.strip().upper(): action for word, action in missing_rank.items()}
    if missing_rank == "error":
        return {}
    if missing_rank not in ("drop", "last"):
        raise ValueError(
            'missing_rank is "error", "drop" or "last", or maps words to "drop" or "last", not '
            f"{missing_rank!r}."
        )
    return dict.fromkeys(("", *WORDS), missing_rank)


def ranks_and_actions(
    fetched: Fetched, position: int, what: str, actions: Mapping[str, str]
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Read ranks, or scores.

    Returns
    -------
    values
        [rows] finite, or infinity for a row that goes behind all others
    dropped
        [rows] whether to leave the row out
    """
    found = fetched.floats_or_fault(position)
    if not isinstance(found, BadColumn) and not fetched.rounds(position):
        words, codes = np.array([""], dtype=object), np.where(np.isnan(found), 0, -1)
        values = found.copy()
    else:
        values, codes, words = _values_and_words(fetched, position, what)
    fetched.check(
        np.isinf(values), position, f"the {what} is infinite: give a number, or leave the row out."
    )
    action = np.array([actions.get(word, "") for word in words] + ["number"], dtype=object)[codes]
    unknown = action == ""
    if unknown.any():
        row = int(unknown.argmax())
        fetched.refuse(row, position, _unknown(words[codes[row]], what, actions))
    values[action == "last"] = math.inf
    return values, action == "drop"


def _values_and_words(
    fetched: Fetched, position: int, what: str
) -> tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Values, NaN for what is a word; and which of the words, -1 for what is a number."""
    codes, cells = fetched.distinct(position, what)
    exact = [exact_number(cell) for cell in cells]
    if None in exact and not any(isinstance(cell, str) for cell in cells):
        fetched.floats(position, what)  # which says what is wrong
    values = places([math.nan if number is None else number for number in exact])
    words: dict[str, int] = {}
    word_of = np.full(len(cells), -1)
    for code in np.flatnonzero(np.isnan(values)).tolist():
        text = "" if cells[code] is None else str(cells[code]).strip()
        word = "" if text in MISSING else text.upper()
        word_of[code] = words.setdefault(word, len(words))
    known = np.array([*words, None], dtype=object)[:-1]
    return values[codes], word_of[codes], known


def _unknown(word: str, what: str, actions: Mapping[str, str]) -> str:
    if word:
        known = ", ".join(w for w in actions if w)
        nor = f" and not among the words for none ({known})" if known else ""
        return (
            f"the {what} is {shown(word)}, which is not a number{nor}: mend it, or say what to do "
            f"with such rows, as in missing_rank={{{word!r}: 'last'}} or "
            f"missing_rank={{{word!r}: 'drop'}}."
        )
    return (
        f"the {what} is missing: give one, or pass missing_rank='drop' to leave such rows out, or "
        "missing_rank='last' to put them behind the others."
    )
