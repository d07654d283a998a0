"""Games of two sides: who met, how it ended, and how often."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tierrank._types import BoolArray, FloatArray, IntArray
from tierrank.data.rankings.container import Rankings, left_over, short
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, preview
from tierrank.tiers.catalogue import Catalogue, catalogue_of, is_missing, read_catalogue

OutcomeArray = npt.NDArray[np.int8]

FIRST, TIE, SECOND = 1, 0, -1
OUTCOMES = {"first": FIRST, "tie": TIE, "second": SECOND}


@dataclass(frozen=True, eq=False, repr=False)
class Games:
    """Games of two sides: who met, and how it ended.

    ``len(games)`` is the number of rows; a row may stand for several games, as its weight says.
    The order of the two sides is kept: the first may have played at home, or have been shown on
    the left. The arrays are read-only copies.

    Attributes
    ----------
    names
        of the sides: strings, numbers, or a tuple of players for a team
    first, second
        [games] numbers of the two sides
    outcome
        [games] int8: 1 the first won, 0 a tie, -1 the second won
    weights
        [games] positive and finite: how often
    neutral
        [games] booleans: where the first had no advantage of being it; None if nothing says so
    read_as
        what was taken for what in the table that they come from, if columns were found by name

    Examples
    --------
    >>> games = Games.from_rows([("ann", "bob", "first"), ("bob", "cy", "tie"), ("cy", "ann", -1)])
    >>> games
    Games(3 games of 3 sides: the first won 1, the second won 1, 1 tied)
    >>> games.to_rankings().tiers.to_rankings()
    [['ann', 'bob'], [('bob', 'cy')], ['ann', 'cy']]
    """

    names: tuple[Any, ...]
    first: IntArray
    second: IntArray
    outcome: OutcomeArray
    weights: FloatArray
    neutral: BoolArray | None = None
    read_as: str = ""

    def __post_init__(self) -> None:
        names = read_catalogue(self.names)
        if names is None:
            raise ValueError("names is None: give the names of the sides.")
        rows = len(np.atleast_1d(self.first))
        fields: dict[str, Any] = {
            "first": _integers(self.first, "first", rows, 0, names.size - 1),
            "second": _integers(self.second, "second", rows, 0, names.size - 1),
            "outcome": _integers(self.outcome, "outcome", rows, SECOND, FIRST).astype(np.int8),
            "weights": _positive(self.weights, rows),
        }
        if self.neutral is not None:
            fields["neutral"] = _booleans(self.neutral, rows)
        same = fields["first"] == fields["second"]
        if same.any():
            row = int(same.argmax())
            side = preview(names.name(int(fields["first"][row])))
            raise ValueError(
                f"game {row}: {side} plays against itself. Leave the game out, or name its sides."
            )
        for name, values in fields.items():
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        object.__setattr__(self, "names", tuple(names.items))

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Any, Any, Any]],
        *,
        names: Iterable[Any] | None = None,
        weights: Any = None,
    ) -> Games:
        """Build from rows of two sides and an outcome.

        Parameters
        ----------
        rows
            (one side, the other, outcome), where the outcome is "first", "second" or "tie", or
            1, -1 or 0; anything else is an error
        names
            of all sides; without it, those that occur, in order of first appearance, or in their
            own if they are the integers 0 .. N - 1
        weights
            [rows] how often; None for once

        Examples
        --------
        >>> Games.from_rows([("ann", "bob", 1), ("ann", "bob", 0)], weights=[7, 2])
        Games(2 rows of weight 9, 2 sides: the first won 7, the second won 0, 2 tied)
        """
        sides: list[Any] = []
        outcomes: list[int] = []
        for number, row in enumerate(rows):
            if isinstance(row, str | bytes) or not isinstance(row, Iterable):
                raise ValueError(f"row {number} is {preview(row)}: {_ROW}")
            cells = tuple(row)
            if len(cells) != 3:
                raise ValueError(f"row {number} has {len(cells)} cells: {_ROW}")
            sides += cells[:2]
            outcomes.append(_outcome(cells[2], number))
        codes, catalogue = _encode(sides, read_catalogue(names))
        found = np.array(outcomes, dtype=np.int8)
        return cls(
            tuple(catalogue.items),
            codes[::2],
            codes[1::2],
            found,
            np.ones(len(found)) if weights is None else weights,
        )

    @property
    def items(self) -> tuple[Any, ...]:
        """The names of the sides, as in `Rankings`."""
        return self.names

    def __len__(self) -> int:
        return len(self.outcome)

    def to_rankings(self) -> Rankings:
        """Give a list a game, winner first; a tie is a list of one tier.

        A list of one tier says nothing to a Plackett-Luce likelihood, where ties are orders that
        were not seen. If a tie means that two sides are about equal, fit `PairedTies` instead.
        """
        tied = self.outcome == TIE
        lost = self.outcome == SECOND
        items = np.empty(2 * len(self), dtype=np.int64)
        items[::2] = np.where(lost, self.second, self.first)
        items[1::2] = np.where(lost, self.first, self.second)
        starts = np.ones((len(self), 2), dtype=bool)  # whether a tier starts here
        starts[:, 1] = ~tied
        tiers = Tiers(
            items=torch.from_numpy(items),
            tier_offsets=torch.from_numpy(np.append(np.flatnonzero(starts), len(items))),
            list_offsets=torch.from_numpy(offsets(np.where(tied, 1, 2))),
            n_items=len(self.names),
            names=self.names,
        )
        return Rankings(tiers, self.weights, self.read_as)

    def without(self, items: Iterable[Any]) -> Games:
        """The same without some sides, and without the games that they played.

        Examples
        --------
        >>> games = Games.from_rows([("ann", "bob", "first"), ("bob", "cy", "tie")])
        >>> games.without(["ann"])
        Games(1 game of 2 sides: the first won 0, the second won 0, 1 tied)
        """
        stays, number = left_over(self.names, items)
        kept = stays[self.first] & stays[self.second]
        return replace(
            self,
            names=tuple(itertools.compress(self.names, stays)),
            first=number[self.first[kept]],
            second=number[self.second[kept]],
            outcome=self.outcome[kept],
            weights=self.weights[kept],
            neutral=None if self.neutral is None else self.neutral[kept],
        )

    def __repr__(self) -> str:
        rows, total = len(self), float(self.weights.sum())
        sides = f"{len(self.names):,} side{'s' * (len(self.names) != 1)}"
        if bool((self.weights == 1).all()):
            counted = f"{rows:,} game{'s' * (rows != 1)} of {sides}"
        else:
            counted = f"{rows:,} row{'s' * (rows != 1)} of weight {short(total)}, {sides}"
        won, lost, tied = (
            short(float(self.weights[self.outcome == outcome].sum()))
            for outcome in (FIRST, SECOND, TIE)
        )
        read = f"\n  read as: {self.read_as}" if self.read_as else ""
        return f"Games({counted}: the first won {won}, the second won {lost}, {tied} tied){read}"


_ROW = "a row is (one side, the other, outcome)."


def _outcome(word: Any, row: int) -> int:
    if isinstance(word, str) and word in OUTCOMES:
        return OUTCOMES[word]
    whole = isinstance(word, int | np.integer) and not isinstance(word, bool)
    if whole and word in (FIRST, TIE, SECOND):
        return int(word)
    raise ValueError(
        f"row {row}: the outcome is {preview(word)}, which is not one of 'first', 'second' and "
        "'tie', or 1, -1 and 0."
    )


def _encode(sides: list[Any], stated: Catalogue | None) -> tuple[IntArray, Catalogue]:
    """Give the number of every side, and all names."""
    try:
        known = dict.fromkeys(sides)
    except TypeError as error:
        raise ValueError(
            f"a side cannot be a name ({error}): give numbers or strings, and a tuple for a team."
        ) from None
    missing = next((i for i, side in enumerate(sides) if is_missing(side)), None)
    if missing is not None:
        raise ValueError(f"row {missing // 2}: the name of a side is missing: {_ROW}")
    if stated is None:
        stated = catalogue_of(known)
    number = {name: i for i, name in enumerate(stated.items)}
    codes = np.fromiter((number.get(side, -1) for side in sides), np.int64, len(sides))
    if len(codes) and codes.min() < 0:
        at = int(codes.argmin())
        raise ValueError(f"row {at // 2}: {preview(sides[at])} is not among the names.")
    return codes, stated


def _integers(values: Any, what: str, rows: int, low: int, high: int) -> IntArray:
    found = np.asarray(values)
    if found.shape != (rows,) or (rows and found.dtype.kind not in "iu"):
        raise ValueError(
            f"{what} must be {rows} integers, one a game, not {found.dtype} with shape "
            f"{found.shape}."
        )
    wrong = (found < low) | (found > high)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"game {row}: {what} is {found[row]}, outside of {low} to {high}.")
    return found.astype(np.int64)


def _booleans(values: Any, rows: int) -> BoolArray:
    found = np.array(values)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise ValueError(
            f"neutral is {found.dtype} of shape {found.shape}: give {rows} booleans, one a game."
        )
    return found


def _positive(weights: Any, rows: int) -> FloatArray:
    try:
        found = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers, one a game: {error}.") from None
    if found.shape != (rows,):
        raise ValueError(f"weights must be {rows} numbers, one a game, not {found.shape}.")
    bad = ~(np.isfinite(found) & (found > 0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"game {row}: the weight is {found[row]}: weights are positive and finite. Leave out "
            "games that were not played."
        )
    return found
