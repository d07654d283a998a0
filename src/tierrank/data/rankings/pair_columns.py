"""Which columns of a table are the two sides, and which say how a game ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tierrank.data.rankings.columns import OpenTable
from tierrank.data.rankings.detection import complete

Pair = tuple[str | None, str | None]


class PairColumns(NamedTuple):
    """Positions of the columns; winner, scores or wins say how a game ended, or the first won."""

    first: int
    second: int
    words: tuple[str, str]  # what the columns of the sides are called
    winner: int | None = None
    scores: tuple[int, int] | None = None
    wins: tuple[int, int] | None = None
    ties: int | None = None
    weight: int | None = None
    neutral: int | None = None

    def named(self) -> tuple[int, ...]:
        """Every column that is read."""
        single = (self.first, self.second, self.winner, self.ties, self.weight, self.neutral)
        both = (*(self.scores or ()), *(self.wins or ()))
        return tuple(i for i in (*single, *both) if i is not None)


class Wanted(NamedTuple):
    """Columns by name, as the user gave them."""

    sides: Pair
    winner: str | None
    scores: Pair
    wins: tuple[str, str] | None
    ties: str | None
    weight: str | None
    neutral: str | None
    loser: str | None

    def named(self) -> dict[str, Any]:
        """Those that say who met and how it ended, as `read_games` calls them."""
        (first, second), (first_score, second_score) = self.sides, self.scores
        return {
            "first": first, "second": second, "winner": self.winner, "first_score": first_score,
            "second_score": second_score, "wins": self.wins, "ties": self.ties,
        }  # fmt: skip


def choose(table: OpenTable, wanted: Wanted) -> PairColumns:
    """Find the columns, by the names that were given or by those that people use."""
    if (wanted.sides[0] is None) != (wanted.sides[1] is None):
        table.refuse("pass both of first= and second=, the columns of the two sides.")
    if (wanted.scores[0] is None) != (wanted.scores[1] is None):
        table.refuse("pass both of first_score= and second_score=.")
    given = [wanted.winner, wanted.scores[0], wanted.wins]
    if sum(option is not None for option in given) > 1:
        table.refuse("winner, scores and wins each say how a game ended: pass one of them.")
    if wanted.ties is not None and wanted.wins is None:
        table.refuse("ties= counts ties beside wins: pass wins= too.")
    won = wanted.loser is not None
    if won and (wanted.winner is None or wanted.sides != (None, None)):
        table.refuse("loser= goes with winner=, and they are the sides: leave out the others.")
    found: Mapping[str, Any] = {"first": wanted.winner, "second": wanted.loser}
    if not won:
        found = complete(table, "games", wanted.named())
    first, second = str(found["first"]), str(found["second"])
    scores = (found.get("first_score"), found.get("second_score"))
    wanted = wanted._replace(
        winner=found.get("winner"), scores=scores, wins=found.get("wins"), ties=found.get("ties")
    )
    columns = PairColumns(
        table.find(first, "first"),
        table.find(second, "second"),
        (first, second),
        weight=None if wanted.weight is None else table.find(wanted.weight, "weight"),
        neutral=None if wanted.neutral is None else table.find(wanted.neutral, "neutral"),
    )
    columns = columns if won else _result(table, wanted, columns)
    if columns.wins is not None and columns.weight is not None:
        table.refuse("weight and wins both say how often: pass one of them.")
    table.refuse_twice(columns.named())
    return columns


def _result(table: OpenTable, wanted: Wanted, columns: PairColumns) -> PairColumns:
    if wanted.winner is not None:
        return columns._replace(winner=table.find(wanted.winner, "winner"))
    one, two = wanted.scores
    if one is not None and two is not None:
        found = (table.find(one, "first_score"), table.find(two, "second_score"))
        return columns._replace(scores=found)
    if wanted.wins is None or isinstance(wanted.wins, str) or len(wanted.wins) != 2:
        table.refuse(f"wins names two columns, those of the first and second, not {wanted.wins!r}.")
    return columns._replace(
        wins=(table.find(wanted.wins[0], "wins"), table.find(wanted.wins[1], "wins")),
        ties=None if wanted.ties is None else table.find(wanted.ties, "ties"),
    )
