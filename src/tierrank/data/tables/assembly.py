"""From columns, wherever they come from, to ranking data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.choice import Choice
from tierrank.data.tables.keys import BadKey

FloatArray = npt.NDArray[np.float64]

EXACT_INTEGERS = 2**53


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

    codes: npt.NDArray[np.int64]
    values: list[Any]


class Columns(Protocol):
    """Columns by position, as numbers, as the values that there are, and as keys."""

    names: Sequence[str]
    rows: int

    def floats(self, position: int) -> FloatArray | BadColumn:
        """[rows] numbers, NaN for what is missing."""

    def distinct(self, position: int, what: str = "query") -> Distinct | BadColumn:
        """The distinct values of a column, None for what is missing; `what` is for the error."""

    def keys(self, position: int, what: str = "query") -> npt.NDArray[Any] | BadColumn:
        """[rows] keys; `what` is what errors call one."""

    def decimal(self, position: int) -> bool:
        """Whether its numbers may be decimals that a float64 rounds."""


def assemble(
    columns: Columns,
    choice: Choice,
    missing: float,
    refuse: Callable[[int | None, str], ValueError],
) -> RankingData:
    """Take the chosen columns; `refuse` makes the error for a row, counted from 0."""
    if not columns.rows:
        raise refuse(None, "there are columns but no row: give at least one.")

    def numbers(position: int, advice: str) -> FloatArray:
        found = columns.floats(position)
        if isinstance(found, BadColumn):
            raise refuse(found.row, f"{choice.role(position, columns.names)} {found.why}{advice}")
        return found

    y = np.zeros(columns.rows)
    if choice.label is not None:
        y[:] = numbers(choice.label, "")
        check_labels(y, refuse)
    X = np.empty((columns.rows, len(choice.features)))
    for target, position in zip(X.T, choice.features, strict=True):
        target[:] = numbers(position, " Convert it, or name the column in drop.")
    qid = columns.keys(choice.query)
    if isinstance(qid, BadColumn):
        raise refuse(qid.row, qid.why)
    if not np.isnan(missing):
        X[np.isnan(X)] = missing
    return RankingData(X, y, qid, feature_names=choice.names)


def check_labels(y: FloatArray, refuse: Callable[[int, str], ValueError]) -> None:
    """Refuse a label that is missing or infinite."""
    finite = np.isfinite(y)
    if not finite.all():
        row = int(finite.argmin())
        is_what = "missing" if np.isnan(y[row]) else "infinite"
        raise refuse(row, f"the label is {is_what}: labels are finite numbers, such as 0, 1 or 2.")


def spread(keys: npt.NDArray[Any] | BadKey, codes: npt.NDArray[Any]) -> Any:
    """From one key a distinct value to one a row; or the first row that has a bad one."""
    if isinstance(keys, BadKey):
        return BadColumn(keys.why, int((codes == keys.code).argmax()))
    return keys[codes]
