"""Where observations were shown, and what that does to their scores: w[row] + b[position]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError

MOST_POSITIONS = 100_000  # a larger number is an identifier, or a time


@dataclass(frozen=True)
class Shown:
    """Which row each observation is about, and where it was shown.

    Attributes
    ----------
    rows
        [observations] numbers of rows of X; None: the observations are the rows
    positions
        [observations] places from 1; None: they are not known, or do not matter
    n_positions
        how many there are
    """

    rows: AnyArray | None = None
    positions: AnyArray | None = None
    n_positions: int = 0

    def known(self) -> list[AnyArray]:
        """What is not None."""
        return [each for each in (self.rows, self.positions) if each is not None]

    def spread(self, by_row: AnyArray, biases: AnyArray | None) -> AnyArray:
        """[observations] w[row] + b[position], from [rows] and [positions]."""
        found = by_row if self.rows is None else by_row[self.rows]
        if self.positions is None or biases is None:
            return found
        return np.asarray(found + biases[self.positions - 1])

    def by_row(self, by_observation: AnyArray, rows: int) -> AnyArray:
        """[rows] sums over the observations of each."""
        if self.rows is None:
            return by_observation
        return np.bincount(self.rows, by_observation, rows)

    def by_position(self, by_observation: AnyArray) -> AnyArray:
        """[positions] sums over the observations of each; empty where none are known."""
        if self.positions is None:
            return np.zeros(0)
        return np.bincount(self.positions - 1, by_observation, self.n_positions)


ONCE_EACH = Shown()
"""Every row is observed once, and nobody knows where."""


def checked_shown(rows: Any, positions: Any, observations: int, n_rows: int) -> Shown:
    """What `fit` was told, as whole numbers in range.

    Raises
    ------
    ArgumentError
        naming the argument, and the first observation that is wrong
    """
    kept = None if rows is None else _whole("rows", rows, observations, 0, n_rows - 1)
    if positions is None:
        return Shown(kept)
    places = _whole("positions", positions, observations, 1, MOST_POSITIONS)
    return Shown(kept, places, int(places.max(initial=1)))


def _whole(name: str, given: Any, number: int, least: int, most: int) -> AnyArray:
    values = np.asarray(given)
    if values.shape != (number,):
        raise ArgumentError(
            Argument(name),
            f" has shape {list(values.shape)}, but there are {number:,} labels: give one a label.",
        )
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            Argument(name), f" holds no numbers, but {values.dtype}: give whole numbers."
        ) from None
    wrong = ~((numbers >= least) & (numbers <= most) & (numbers == np.floor(numbers)))
    if wrong.any():
        at = int(wrong.argmax())
        raise ArgumentError(
            Argument(name),
            f" is {values[at]} for observation {at} (counted from 0): give whole numbers, "
            f"{least:,} to {most:,}.",
        )
    return numbers.astype(np.int64)


def biases_of(before: Any, positions: int) -> AnyArray:
    """[positions] biases to begin with: those of a ranker before, as far as it has some, else 0."""
    found = np.zeros(positions)
    known = getattr(before, "position_bias_", found)[:positions]
    found[: len(known)] = known
    found[len(known) :] = known[-1] if len(known) else 0.0
    return found
