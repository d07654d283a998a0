"""Games of two sides: who met, how it ended, and how often; and tables of them.

A row of a table has two sides, and a winner, two scores, or counts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.data.files import expands, shown
from tierrank.data.rankings.container import (
    Packed,
    Rankings,
    check_beside,
    checked_weights,
    left_over,
    refuse_nothing,
    rows_by,
    short,
    small,
    taken,
)
from tierrank.data.rankings.usual_names import complete
from tierrank.data.tables.columns import BadColumn
from tierrank.data.tables.opening import Sides, Table, TableFormat, open_table
from tierrank.errors import Argument, ArgumentError, Column
from tierrank.names import counted
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import is_missing, offsets, preview
from tierrank.tiers.catalogue import Catalogue, catalogue_of, read_catalogue

OutcomeArray = npt.NDArray[np.int8]

FIRST, TIE, SECOND = 1, 0, -1
OUTCOMES = {"first": FIRST, "tie": TIE, "second": SECOND}


@dataclass(frozen=True, eq=False, repr=False)
class Games:
    """Games of two sides: who met, and how it ended.

    ``len(games)`` is the number of rows; a row may stand for several games, as its weight says.
    The order of the two sides is kept: the first may have played at home, or have been shown on
    the left. The arrays are read-only copies.

    Parameters
    ----------
    names : tuple
        Names of the sides: strings, numbers, or a tuple of players for a team.
    first, second : ndarray of int
        [games] numbers of the two sides.
    outcome : ndarray of int
        [games] int8: 1 the first won, 0 a tie, -1 the second won.
    weights : ndarray of float
        [games] positive and finite: how often.
    neutral : ndarray of bool, optional
        [games] booleans: where the first had no advantage of being it; None if nothing says so.
    read_as : str
        What was taken for what in the table that they come from, if columns were found by name.
    beside : mapping
        [games] further columns of the table by name, as `read_games(…, keep=[…])` keeps them: who
        voted, when, on what. What puts equal games together forgets them.

    See Also
    --------
    read_games : From a table.
    Rankings : Lists of any length.
    tierrank.PairedTies : Worths of the sides, with ties and an advantage of the first.

    Examples
    --------
    >>> from tierrank.data import Games
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
    beside: Mapping[str, AnyArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = read_catalogue(self.names)
        if names is None:
            raise ValueError("names is None: give the names of the sides.")
        rows = len(np.atleast_1d(self.first))
        fields: dict[str, Any] = {
            "first": _integers(self.first, "first", rows, 0, names.size - 1),
            "second": _integers(self.second, "second", rows, 0, names.size - 1),
            "outcome": _integers(self.outcome, "outcome", rows, SECOND, FIRST).astype(np.int8),
            "weights": checked_weights(self.weights, rows, "game"),
        }
        if self.neutral is not None:
            fields["neutral"] = _booleans(self.neutral, rows)
        check_beside(self.beside, rows, "game")
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
        rows : iterable of tuple
            (one side, the other, outcome), where the outcome is "first", "second" or "tie", or
            1, -1 or 0; anything else is an error.
        names : iterable, optional
            Of all sides; without it, those that occur, in order of first appearance, or in their
            own if they are the integers 0 .. N - 1.
        weights : array_like, optional
            [rows] how often; None for once.

        Returns
        -------
        Games
            A row each, in the same order.

        Raises
        ------
        ValueError
            An outcome is none of these, a side plays itself, or a weight is not positive.

        See Also
        --------
        read_games : From a table.

        Examples
        --------
        >>> from tierrank.data import Games
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

        Returns
        -------
        Rankings
            Lists of two, in the order of the games.

        See Also
        --------
        tierrank.PairedTies : Ties that mean that two sides are about equal.

        Examples
        --------
        >>> from tierrank.data import Games
        >>> Games.from_rows([("ann", "bob", "second"), ("bob", "cy", "tie")]).to_rankings()
        Rankings(2 lists of weight 2, 3 items)
          1 × bob > ann
          1 × {bob, cy}
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
        return Rankings(tiers, self.weights, self.read_as, self.beside)

    def without(self, items: Iterable[Any]) -> Games:
        """Leave some sides out, with the games that they played.

        Parameters
        ----------
        items : iterable
            Names of sides.

        Returns
        -------
        Games
            What is left.

        Raises
        ------
        ValueError
            There is no such side.

        See Also
        --------
        by : Games of each value of a column.

        Examples
        --------
        >>> from tierrank.data import Games
        >>> games = Games.from_rows([("ann", "bob", "first"), ("bob", "cy", "tie")])
        >>> games.without(["ann"])
        Games(1 game of 2 sides: the first won 0, the second won 0, 1 tied)
        """
        stays, number = left_over(self.names, items)
        kept = self.of(np.flatnonzero(stays[self.first] & stays[self.second]))
        names = tuple(itertools.compress(self.names, stays))
        return replace(kept, names=names, first=number[kept.first], second=number[kept.second])

    def together(self) -> Games:
        """Count equal games together: same sides, same end.

        Returns
        -------
        Games
            The different games, each with the weight of all its equals.

        See Also
        --------
        by : Games of each value of a column.

        Examples
        --------
        >>> from tierrank.data import Games
        >>> games = Games.from_rows([("ann", "bob", 1), ("ann", "bob", 1), ("bob", "ann", 1)])
        >>> games.together()
        Games(2 rows of weight 3, 2 sides: the first won 3, the second won 0, 0 tied)
        """
        sides, grounds = len(self.names), 1 if self.neutral is None else 2
        kind = self.first * sides
        kind += self.second
        kind *= 3
        kind += self.outcome
        kind += 1
        if self.neutral is not None:
            kind *= 2
            kind += self.neutral
        weights = None if bool((self.weights == 1).all()) else self.weights
        if 3 * grounds * sides**2 <= 8 * len(self):  # to count so few kinds takes no order
            counts: AnyArray = np.bincount(kind, weights)
            kinds: IntArray = np.flatnonzero(counts)
            counts = counts[kinds]
        else:
            kinds, which = np.unique(kind, return_inverse=True)
            counts = np.bincount(which, weights, len(kinds))
        rest, ground = np.divmod(kinds, grounds)
        pair, end = np.divmod(rest, 3)
        first, second = np.divmod(pair, sides)
        return self._with(
            first=first,
            second=second,
            outcome=(end - 1).astype(np.int8),
            weights=counts.astype(np.float64),
            neutral=None if self.neutral is None else ground == 1,
            beside={},
        )

    def either_way(self) -> Games:
        """The different games, whoever was named first: for models in which that is no advantage.

        Examples
        --------
        >>> games = Games.from_rows([("ann", "bob", 1), ("bob", "ann", -1), ("bob", "ann", 1)])
        >>> games.either_way()
        Games(2 rows of weight 3, 2 sides: the first won 2, the second won 1, 0 tied)
        """
        return self.lower_first().together()

    def lower_first(self) -> Games:
        """The same games, the side of the lower number first; grounds and columns are forgotten."""
        turned = self.first > self.second
        return self._with(
            first=np.minimum(self.first, self.second),
            second=np.maximum(self.first, self.second),
            outcome=np.where(turned, -self.outcome, self.outcome),
            neutral=None,
            beside={},
        )

    def of(self, rows: IntArray) -> Games:
        """Take some rows alone.

        Parameters
        ----------
        rows : ndarray of int
            Their numbers, from 0.

        Returns
        -------
        Games
            These rows, with the same names.

        See Also
        --------
        by : Games of each value of a column.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.data import Games
        >>> games = Games.from_rows([("ann", "bob", "first"), ("bob", "ann", "tie")])
        >>> games.of(np.array([1]))
        Games(1 game of 2 sides: the first won 0, the second won 0, 1 tied)
        """
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            outcome=self.outcome[rows],
            weights=self.weights[rows],
            neutral=None if self.neutral is None else self.neutral[rows],
            beside=taken(self.beside, rows),
        )

    def by(self, column: str) -> dict[Any, Games]:
        """Split the games by a column beside them.

        Sides that have no game in a part are left out of it.

        Parameters
        ----------
        column : str
            A name in `beside`.

        Returns
        -------
        dict
            Games by each value of the column, those of the most weight first.

        Raises
        ------
        ValueError
            There is no such column; the message says which there are.

        See Also
        --------
        read_games : Keeps columns by ``keep=``.

        Examples
        --------
        >>> import polars as pl
        >>> from tierrank.data import read_games
        >>> rows = pl.DataFrame(
        ...     {"a": ["x", "y"], "b": ["y", "z"], "winner": ["x", "z"], "in": [1, 2]}
        ... )
        >>> [(kind, part.names) for kind, part in read_games(rows, keep=["in"]).by("in").items()]
        [(1, ('x', 'y')), (2, ('y', 'z'))]
        """
        parts = {}
        for value, rows in rows_by(self.beside, column, self.weights).items():
            part = self.of(rows)
            played = np.zeros(len(self.names), dtype=bool)
            played[part.first] = played[part.second] = True
            absent = list(itertools.compress(self.names, ~played))
            parts[value] = part.without(absent) if absent else part
        return parts

    def hashes(self) -> AnyArray:
        """[games] uint64, of the same sides in either order the same."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return np.asarray((low * 31 + high).astype(np.uint64))

    def named(self, names: tuple[Any, ...]) -> Games:
        """Give the sides other names.

        Parameters
        ----------
        names : tuple
            The new names, in order of the sides.

        Returns
        -------
        Games
            The same games.

        See Also
        --------
        items : The names they have.

        Examples
        --------
        >>> from tierrank.data import Games
        >>> Games.from_rows([(0, 1, "first")]).named(("ann", "bob")).names
        ('ann', 'bob')
        """
        return replace(self, names=names)

    def recoded(self, code: IntArray, size: int) -> Games:
        """The same with names 0 .. size − 1, where sides have other numbers."""
        names = tuple(range(size))
        if np.array_equal(code, np.arange(len(self.names))):
            return self._with(names=names)
        code = code.astype(np.int64, copy=False)
        first, second = code[self.first], code[self.second]
        return self._with(names=names, first=first, second=second)

    def _with(self, **fields: Any) -> Games:
        """The same with other fields, which are known to be as they should be."""
        games = copy(self)
        for name, values in fields.items():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False
            object.__setattr__(games, name, values)
        return games

    @property
    def entries(self) -> int:
        """Number of sides of all rows."""
        return 2 * len(self)

    def packed(self) -> Packed:
        """The same in little memory; the names are numbers there."""
        sides = [small(self.first), small(self.second)]
        return Packed(
            type(self), len(self.names), sides, [self.outcome], self.weights, self.neutral
        )

    @classmethod
    def unpacked(
        cls, sides: int, arrays: Sequence[Any], weights: FloatArray, neutral: BoolArray | None
    ) -> Games:
        """Undo `packed`."""
        first, second, outcome = arrays
        return cls(tuple(range(sides)), first, second, outcome, weights, neutral)

    @classmethod
    def concatenate(cls, parts: Sequence[Games]) -> Games:
        """Put the games of several parts behind each other.

        Parameters
        ----------
        parts : sequence of Games
            All with the same sides.

        Returns
        -------
        Games
            All their rows.

        Raises
        ------
        ValueError
            The sides of two parts differ.

        See Also
        --------
        together : Counts equal games together.

        Examples
        --------
        >>> from tierrank.data import Games
        >>> games = Games.from_rows([("ann", "bob", "first")])
        >>> Games.concatenate([games, games]).together()
        Games(1 row of weight 2, 2 sides: the first won 2, the second won 0, 0 tied)
        """
        other = next((n for n, part in enumerate(parts) if part.names != parts[0].names), None)
        if other is not None:
            raise ValueError(
                f"part {other} has other sides than part 0, and its numbers would be taken for "
                "those: give parts of one reading"
            )
        first, second, outcome, weights = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("first", "second", "outcome", "weights")
        )
        neutral = None
        if any(part.neutral is not None for part in parts):
            neutral = np.concatenate(
                [np.zeros(len(p), bool) if p.neutral is None else p.neutral for p in parts]
            )
        return parts[0]._with(
            first=first, second=second, outcome=outcome, weights=weights, neutral=neutral,
            read_as="", beside={},
        )  # fmt: skip

    def __repr__(self) -> str:
        rows, total = len(self), float(self.weights.sum())
        sides = counted(len(self.names), "side")
        if bool((self.weights == 1).all()):
            many = f"{counted(rows, 'game')} of {sides}"
        else:
            many = f"{counted(rows, 'row')} of weight {short(total)}, {sides}"
        won, lost, tied = (
            short(float(self.weights[self.outcome == outcome].sum()))
            for outcome in (FIRST, SECOND, TIE)
        )
        read = f"\n  read as: {self.read_as}" if self.read_as else ""
        return f"Games({many}: the first won {won}, the second won {lost}, {tied} tied){read}"


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
    if rows and (found.min() < low or found.max() > high):
        row = int(((found < low) | (found > high)).argmax())
        raise ValueError(f"game {row}: {what} is {found[row]}, outside of {low} to {high}.")
    return found.astype(np.int64)


def _booleans(values: Any, rows: int) -> BoolArray:
    found = np.array(values)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise ValueError(
            f"neutral is {found.dtype} of shape {found.shape}: give {rows} booleans, one a game."
        )
    return found


# Tables -------------------------------------------------------------------------------------------


WinnerAs = Literal["either", "name", "side"]

TIE_WORDS = (
    "tie", "tied", "draw", "drawn", "equal", "both", "bothbad", "both_bad", "tie (bothbad)",
)  # fmt: skip
SIDE_WORDS = (
    ("first", "second"), ("a", "b"), ("left", "right"), ("model_a", "model_b"), ("home", "away"),
)  # fmt: skip

PLAIN_TIES = ("tie", "tied", "draw", "drawn", "equal")  # that need no remark
NEITHER = "(neither)"  # the item that wins where both sides are said to lose

_UNKNOWN, _DROPPED, _BOTH_LOSE = 2, 3, 4


@expands
def read_games(
    source: str | PathLike[str] | Any,
    *,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    first_score: str | None = None,
    second_score: str | None = None,
    wins: tuple[str, str] | None = None,
    ties: str | None = None,
    weight: str | None = None,
    neutral: str | None = None,
    winner_as: WinnerAs = "either",
    tie_words: Sequence[str] = TIE_WORDS,
    drop_words: Sequence[str] = (),
    both_lose: Sequence[str] = (),
    keep: Sequence[str] = (),
    keep_items: Sequence[str] = (),
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Any:
    """Read games of two sides from a table: who met, and how it ended.

    How it ended is said in one of three ways: a winner, two scores, or how often each side won.
    Names of sides are integers if all are whole numbers, else strings; they come in order of first
    appearance.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    first, second : str, optional
        The columns of the two sides. Without them, the pair that is there of these: first and
        second, a and b, left and right, model_a and model_b, home_team and away_team, home and
        away; or else of two columns that are called alike, such as player1 and player2.
    winner : str, optional
        The column that names the winner: by name, by side (first or second, a or b, left or right,
        model_a or model_b, home or away, or what the two columns are called), or by a word for a
        tie. Any other word is an error, and so is one that could mean both sides.
    loser : str, optional
        With `winner`, the two columns that name who won and who lost: they are the sides.
    first_score, second_score : str, optional
        The columns of two scores: the higher wins, equal ones tie.
    wins : tuple of str, optional
        The two columns that count how often the first and the second side won: such a row becomes
        up to three, with these counts as weights.
    ties : str, optional
        The column that counts ties, beside `wins`.
        Without any of winner, scores and wins, the first of these that is there: winner; home_score
        and away_score, first_score and second_score; wins_first, wins_second and, if there, ties;
        or else what is called alike, such as score1 and score2.
    weight : str, optional
        The column that says how often a row was seen.
    neutral : str, optional
        The column of true and false that says where the first side had no advantage of being it.
    winner_as : {"either", "name", "side"}
        "name" or "side" if winners are only written so; "either" takes both.
    tie_words : sequence of str
        Words for a tie, in the column of winners; upper and lower case are the same. "bothbad" is
        among those that are known without it; `read_as` of the games says how many said so.
    drop_words : sequence of str
        Words, in the same column, of games that are left out: "invalid", "skip". One that would
        otherwise be a word for a tie is none then.
    both_lose : sequence of str
        Words that say that neither side is good enough: "bothbad". If there are any, every row is
        a choice out of three, the two sides and an item "(neither)", and what is read are not
        games but `Rankings`, a list of the three a row: the winner over the other two; both sides,
        if they tie, over neither; or neither over both. So "(neither)" has a worth of its own, as
        the option to take nothing has in models of discrete choice: a side that is below it is
        more often refused than taken.
    keep, keep_items : sequence of str
        Further columns that go along as `beside` of the games (of lists, the latter vary within).
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Games or Rankings
        The games; rankings with `both_lose`.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    read_rankings : Any table or file, and says what it took for what.
    Games : What it gives.
    tierrank.PairedTies : Worths from games.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import read_games
    >>> votes = pl.DataFrame(
    ...     {
    ...         "model_a": ["gull", "wren", "wren"],
    ...         "model_b": ["wren", "crow", "gull"],
    ...         "winner": ["model_a", "tie (bothbad)", "wren"],
    ...     }
    ... )
    >>> read_games(votes)
    Games(3 games of 3 sides: the first won 2, the second won 0, 1 tied)
      read as: 1 game said "tie (bothbad)", taken as a tie
    >>> read_games(votes, both_lose=["tie (bothbad)"])
    Rankings(3 lists of weight 3, 4 items)
      1 × gull > {wren, (neither)}
      1 × (neither) > {wren, crow}
      ... 1 more
      read as: 1 game said "tie (bothbad)", taken as a win of (neither) over both
    >>> matches = pl.DataFrame(
    ...     {
    ...         "home_team": ["Roma", "Ajax"],
    ...         "away_team": ["Ajax", "Roma"],
    ...         "home_score": [2, 1],
    ...         "away_score": [0, 1],
    ...     }
    ... )
    >>> read_games(matches).outcome
    array([1, 0], dtype=int8)
    """
    if winner_as not in get_args(WinnerAs):
        known = get_args(WinnerAs)
        raise ArgumentError(Argument("winner_as"), f" is one of {known}, not {winner_as!r}.")
    meanings = OutcomeWords.of(tie_words, drop_words, both_lose)
    named = {
        "first": first, "second": second, "winner": winner, "loser": loser,
        "first_score": first_score, "second_score": second_score, "wins": wins, "ties": ties,
        "weight": weight, "neutral": neutral,
    }  # fmt: skip
    with open_table(source, format, separator) as table:
        columns = _choose(table, named)
        table.load(*columns.all())
        sides = table.sides(columns.first, columns.second)
        table.check(
            sides.first == sides.second,
            columns.second,
            "a side plays against itself: leave the row out, or name its sides.",
        )
        rows: Any = slice(None)
        weights = np.ones(table.rows)
        if columns.weight is not None:
            weights = table.weights(columns.weight)
        said = ""
        if columns.winner is None and (drop_words or both_lose):
            words = Argument("drop_words" if drop_words else "both_lose")
            table.refuse(words, " are words in a column of winners, and there is none.")
        if columns.wins is not None:
            rows, outcome, weights = _counted(table, columns.wins, columns.ties)
        elif columns.scores is not None:
            outcome = _by_scores(table, columns.scores)
        elif columns.winner is not None:
            names = (table.names[columns.first], table.names[columns.second])
            winners = _Winners(columns.winner, winner_as, meanings, names)
            outcome, said = _by_winner(table, sides, winners)
            dropped = outcome == _DROPPED
            if dropped.any():
                rows = np.flatnonzero(~dropped)
            outcome, weights = outcome[rows], weights[rows]
        else:
            outcome = np.full(table.rows, FIRST, dtype=np.int8)  # the winner's column is first
        if table.rows and not len(outcome):
            why: tuple[object, ...] = ("all counts are 0: there is no game.",)
            if columns.wins is None:
                why = "every game is left out by ", Argument("drop_words"), "."
            refuse_nothing(table, *why, items=sides.names, read_as=said)
        away = None if columns.neutral is None else _truth(table, columns.neutral)[rows]
        kept = [*((name, "keep") for name in keep), *((name, "keep_items") for name in keep_items)]
        beside = {name: np.array(table.cells(name, how)[rows]) for name, how in kept}
        both = sides.first[rows], sides.second[rows]
        if both_lose:
            if away is not None:
                table.refuse(Argument("both_lose"), " makes lists, which know no neutral ground.")
            if keep_items:
                what = " makes lists of three items, of which a row says nothing one by one."
                table.refuse(Argument("both_lose"), what)
            return _choices(sides.names, *both, outcome, weights, said, beside)
    return Games(sides.names, *both, outcome, weights, away, said, beside)


def _choices(
    names: Sequence[Any],
    first: IntArray,
    second: IntArray,
    outcome: OutcomeArray,
    weights: FloatArray,
    said: str,
    beside: Mapping[str, AnyArray],
) -> Rankings:
    """Lists of three: what was taken, both sides of a tie, over what was not; or neither over both.

    A vote of this kind is a choice out of {first, second, neither}: under Plackett-Luce each is
    taken with a probability proportional to its worth.
    """
    if NEITHER in names:
        raise ValueError(f"a side is called {NEITHER}, as the option to take neither is: rename it")
    neither = np.full_like(first, len(names))
    # the three items in the order of each outcome
    orders = {
        FIRST: (first, second, neither),
        SECOND: (second, first, neither),
        TIE: (first, second, neither),
        _BOTH_LOSE: (neither, first, second),
    }
    items = np.empty((len(first), 3), dtype=np.int64)
    for ended, order in orders.items():
        which = outcome == ended
        items[which] = np.stack(order, axis=1)[which]
    starts = 3 * np.arange(len(first))
    cuts = np.stack([starts, starts + np.where(outcome == TIE, 2, 1)], axis=1).ravel()
    tiers = Tiers(
        items=torch.from_numpy(items.ravel()),
        tier_offsets=torch.from_numpy(np.append(cuts, 3 * len(first))),
        list_offsets=torch.from_numpy(2 * np.arange(len(first) + 1)),
        n_items=len(names) + 1,
        names=(*names, NEITHER),
    )
    return Rankings(tiers, weights, said, beside)


# Which columns ------------------------------------------------------------------------------------


class _PairColumns(NamedTuple):
    """Positions of the columns; winner, scores or wins say how a game ended, or the first won."""

    first: int
    second: int
    winner: int | None
    scores: tuple[int, int] | None
    wins: tuple[int, int] | None
    ties: int | None
    weight: int | None
    neutral: int | None

    def all(self) -> tuple[int, ...]:
        """Every column that is read."""
        single = (self.first, self.second, self.winner, self.ties, self.weight, self.neutral)
        both = (*(self.scores or ()), *(self.wins or ()))
        return tuple(i for i in (*single, *both) if i is not None)


def _choose(table: Table, named: Mapping[str, Any]) -> _PairColumns:
    """Find the columns, by the names that were given or by those that people use."""
    given = {part for part, value in named.items() if value is not None}
    if len(given & {"first", "second"}) == 1:
        both = "pass both of ", Column("first"), " and ", Column("second")
        table.refuse(*both, ", the columns of the two sides.")
    if len(given & {"first_score", "second_score"}) == 1:
        table.refuse("pass both of ", Column("first_score"), " and ", Column("second_score"), ".")
    if len(given & {"winner", "first_score", "wins"}) > 1:
        table.refuse("winner, scores and wins each say how a game ended: pass one of them.")
    if "ties" in given and "wins" not in given:
        table.refuse(Column("ties"), " counts ties beside wins: pass ", Column("wins"), " too.")
    if "loser" in given:
        if "winner" not in given or given & {"first", "second"}:
            with_winner = Column("loser"), " goes with ", Column("winner")
            table.refuse(*with_winner, ", and they are the sides: leave out the others.")
        found = {"first": named["winner"], "second": named["loser"]}
    else:
        parts = {part: named[part] for part in named if part not in ("loser", "weight", "neutral")}
        found = dict(complete(table, "games", parts))
    found |= {"weight": named["weight"], "neutral": named["neutral"]}

    def find(part: str) -> int | None:
        name = found.get(part)
        return None if name is None else table.find(name, part)

    wins = found.get("wins")
    if wins is not None and (isinstance(wins, str) or len(wins) != 2):
        table.refuse(f"wins names two columns, those of the first and second, not {wins!r}.")
    columns = _PairColumns(
        first=table.find(str(found["first"]), "first"),
        second=table.find(str(found["second"]), "second"),
        winner=find("winner"),
        scores=_both(find("first_score"), find("second_score")),
        wins=None if wins is None else (table.find(wins[0], "wins"), table.find(wins[1], "wins")),
        ties=find("ties"),
        weight=find("weight"),
        neutral=find("neutral"),
    )
    if columns.wins is not None and columns.weight is not None:
        table.refuse("weight and wins both say how often: pass one of them.")
    table.refuse_twice(columns.all())
    return columns


def _both(one: int | None, two: int | None) -> tuple[int, int] | None:
    return None if one is None or two is None else (one, two)


# How a game ended ---------------------------------------------------------------------------------


def _truth(table: Table, position: int) -> BoolArray:
    values, what = table.floats_or_fault(position), "write true or false (or 1 or 0)"
    if isinstance(values, BadColumn):
        table.refuse(f"{what}: the neutral column {values.why}", row=values.row, at=position)
    table.check(~np.isin(values, (0, 1)), position, f"{what} for neutral ground.")
    return np.asarray(values == 1)


def _by_scores(table: Table, positions: tuple[int, int]) -> OutcomeArray:
    """[rows] the higher score wins."""
    one, two = table.in_order(positions, "score")
    for scores, position in ((one, positions[0]), (two, positions[1])):
        table.check(
            ~np.isfinite(scores),
            position,
            "the score is missing or infinite: leave out games that were not played.",
        )
    return np.sign(one - two).astype(np.int8)


def _counted(
    table: Table, wins: tuple[int, int], ties: int | None
) -> tuple[IntArray, OutcomeArray, FloatArray]:
    """From counts a row to a row an outcome that was seen: its row, the outcome, how often."""
    ends = {FIRST: wins[0], SECOND: wins[1]} | ({} if ties is None else {TIE: ties})
    counts = np.empty((table.rows, len(ends)))
    for column, position in zip(counts.T, ends.values(), strict=True):
        column[:] = table.floats(position, "count")
        table.check(
            ~(np.isfinite(column) & (column >= 0)),
            position,
            "the count is missing, negative or infinite: give how often it ended so, or 0.",
        )
    rows, places = np.nonzero(counts)
    return rows, np.array(list(ends), dtype=np.int8)[places], counts[rows, places]


class OutcomeWords(NamedTuple):
    """Words that name neither side: what becomes of them, in plain lower case."""

    ties: tuple[str, ...]
    dropped: tuple[str, ...]
    both_lose: tuple[str, ...]

    @classmethod
    def of(
        cls, tie_words: Sequence[str], drop_words: Sequence[str], both_lose: Sequence[str]
    ) -> OutcomeWords:
        """From the arguments of `read_games`; refuses a word that is to mean two things."""
        given = {"tie_words": tie_words, "drop_words": drop_words, "both_lose": both_lose}
        for name, words in given.items():
            if isinstance(words, str):
                raise ArgumentError(
                    Argument(name), f" is a list of words, not one string: [{words!r}]."
                )
        ties, dropped, lost = (tuple(map(_plain, map(str, words))) for words in given.values())
        twice = {*dropped} & {*lost}
        if tuple(tie_words) != TIE_WORDS:
            twice |= {*ties} & {*dropped, *lost}
        if twice:
            raise ArgumentError(
                f"the word {min(twice)!r} is to mean two things: name it in one of ",
                Argument("tie_words"), ", ", Argument("drop_words"), " and ", Argument("both_lose"),
            )  # fmt: skip
        return cls(tuple(word for word in ties if word not in {*dropped, *lost}), dropped, lost)

    def said(self, counts: Mapping[str, int]) -> Said:
        """What became of words that are no plain ties, by how often each was said."""
        found = []
        for word, number in sorted(counts.items()):
            games = f'{counted(number, "game")} said "{word}", '
            plain = _plain(word)
            if plain in self.dropped:
                found.append(f"{games}left out")
            elif plain in self.both_lose:
                wins = "a win" if number == 1 else "wins"
                found.append(f"{games}taken as {wins} of {NEITHER} over both")
            elif plain in self.ties and plain not in PLAIN_TIES:
                found.append(f"{games}taken as {'a tie' if number == 1 else 'ties'}")
        # a word that was asked for and is nowhere may be a slip of the pen
        there, usual = {*map(_plain, counts)}, {*map(_plain, TIE_WORDS)}
        asked = [*self.dropped, *self.both_lose, *(w for w in self.ties if w not in usual)]
        found += [f'no game said "{word}"' for word in asked if word not in there]
        remark = Said("; ".join(found))
        remark.words, remark.counts = self, counts
        return remark


class Said(str):
    """A remark on words for outcomes, which knows what it is about, so that several add up."""

    __slots__ = ("counts", "words")
    words: OutcomeWords
    counts: Mapping[str, int]

    @classmethod
    def together(cls, remarks: Sequence[str]) -> str:
        """One of all parts of a table."""
        said = [each for each in remarks if isinstance(each, Said)]
        counts: Counter[str] = Counter()
        for each in said:
            counts.update(each.counts)
        return said[0].words.said(counts) if said else ""


class _Winners(NamedTuple):
    """The column of winners, and how they are written."""

    position: int
    written_as: WinnerAs
    words: OutcomeWords
    column_names: tuple[str, str]  # of the two sides, which are words for them too


def _by_winner(table: Table, sides: Sides, how: _Winners) -> tuple[OutcomeArray, str]:
    """[rows] who won, and what was said of it by other words than plain ones.

    A word that is unknown, or that means two things, is refused.
    """
    winner = table.keys(how.position, "winner", missing=())  # None may be a word for a tie
    known = _vocabulary(how)
    number = {str(name): i for i, name in enumerate(sides.names)}
    words = [str(word) for word in winner.keys.tolist()]
    said = np.array([known.get(_plain(word), _UNKNOWN) for word in words], dtype=np.int8)
    by_word = said[winner.codes]
    by_name = np.full(table.rows, _UNKNOWN, dtype=np.int8)
    names = {_plain(name) for name in number}
    if how.written_as != "side" and not names.isdisjoint(map(_plain, words)):
        named = np.array([number.get(word, -1) for word in words], dtype=np.int64)[winner.codes]
        by_name[named == sides.first] = FIRST
        by_name[named == sides.second] = SECOND
        # A word that is also a name, be it of a side that did not play here: which is meant?
        like_a_name = np.array([_plain(word) in names for word in words])[winner.codes]
        two_things = (by_word != _UNKNOWN) & like_a_name & (by_word != by_name)
        if two_things.any():
            row = int(two_things.argmax())
            table.refuse(*_ambiguous(words[winner.codes[row]]), row=row, at=how.position)
    found: OutcomeArray = np.where(by_name == _UNKNOWN, by_word, by_name)
    unknown = found == _UNKNOWN
    if unknown.any():
        row = int(unknown.argmax())
        two = tuple(str(sides.names[side[row]]) for side in (sides.first, sides.second))
        what = _strange(words[winner.codes[row]], two, how.written_as, known)
        table.refuse(*what, row=row, at=how.position)
    often = np.bincount(winner.codes[by_name == _UNKNOWN], minlength=len(words))
    return found, how.words.said({w: int(n) for w, n in zip(words, often, strict=True) if n})


def _vocabulary(how: _Winners) -> dict[str, int]:
    """What each word means; one that would mean two things, as with columns b and a, is none."""
    meanings: dict[str, set[int]] = {}
    pairs = [] if how.written_as == "name" else [*SIDE_WORDS, how.column_names]
    ends = (TIE, _DROPPED, _BOTH_LOSE)
    words = [(word, end) for said, end in zip(how.words, ends, strict=True) for word in said]
    words += [said for one, two in pairs for said in ((one, FIRST), (two, SECOND))]
    for word, outcome in words:
        meanings.setdefault(_plain(word), set()).add(outcome)
    return {word: meant.pop() for word, meant in meanings.items() if len(meant) == 1}


def _plain(word: str) -> str:
    return word.strip().lower()


def _ambiguous(word: str) -> tuple[object, ...]:
    return (
        f"the winner {shown(word)} is the name of a side, and also a word for a side or for a tie: "
        "rename the side, or pass ",
        Argument("winner_as", "name"),
        " or ",
        Argument("winner_as", "side"),
        ", or other ",
        Argument("tie_words"),
        ".",
    )


def _strange(
    word: str, names: tuple[str, ...], written_as: WinnerAs, known: dict[str, int]
) -> tuple[object, ...]:
    ways = []
    if written_as != "side":
        ways.append(f"the name of a side ({shown(names[0])}, {shown(names[1])})")
    ways += [
        f"a word for {what} ({', '.join(w for w, meant in known.items() if meant == outcome)})"
        for what, outcome in (("the first", FIRST), ("the second", SECOND), ("a tie", TIE))
        if outcome in known.values()
    ]
    return (
        f"the winner is {shown(word)}, which is not {', nor '.join(ways)}: mend it, or say what it "
        "means: ",
        Argument("tie_words", (word,)), " (a tie), ",
        Argument("drop_words", (word,)), " (leave such games out), or ",
        Argument("both_lose", (word,)), " (neither is good enough).",
    )  # fmt: skip
