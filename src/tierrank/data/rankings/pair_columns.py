"""Which columns of a table are the two sides, and which say how a game ended."""

from __future__ import annotations

from typing import NamedTuple

from tierrank.data.rankings.columns import OpenTable
from tierrank.data.tables.errors import shown

SIDES = (
    ("first", "second"), ("a", "b"), ("left", "right"), ("model_a", "model_b"),
    ("home_team", "away_team"), ("home", "away"),
)  # fmt: skip
WINNER = "winner"
SCORES = (("home_score", "away_score"), ("first_score", "second_score"))
WINS = ("wins_first", "wins_second")
TIES = "ties"

Pair = tuple[str | None, str | None]


class PairColumns(NamedTuple):
    """Positions of the columns; one of winner, scores and wins says how a game ended."""

    first: int
    second: int
    words: tuple[str, str]  # what the columns of the sides are called
    winner: int | None = None
    scores: tuple[int, int] | None = None
    wins: tuple[int, int] | None = None
    ties: int | None = None
    weight: int | None = None

    def all(self) -> tuple[int, ...]:
        """Every column that is read."""
        single = (self.first, self.second, self.winner, self.ties, self.weight)
        chosen = (i for i in (*single, *(self.scores or ()), *(self.wins or ())) if i is not None)
        return tuple(dict.fromkeys(chosen))


class Wanted(NamedTuple):
    """Columns by name, as the user gave them."""

    sides: Pair
    winner: str | None
    scores: Pair
    wins: tuple[str, str] | None
    ties: str | None
    weight: str | None


def choose(table: OpenTable, wanted: Wanted) -> PairColumns:
    """Find the columns, by the names that were given or by those that people use."""
    first, second = _sides(table, wanted.sides)
    columns = PairColumns(
        table.find(first, "first"),
        table.find(second, "second"),
        (first, second),
        weight=None if wanted.weight is None else table.find(wanted.weight, "weight"),
    )
    columns = _result(table, _with_default(table, wanted), columns)
    if columns.wins is not None and columns.weight is not None:
        table.refuse("weight and wins both say how often: pass one of them.")
    named = [
        i for i in (*columns[:2], columns.winner, columns.ties, columns.weight) if i is not None
    ]
    named += [*(columns.scores or ()), *(columns.wins or ())]
    if len(set(named)) < len(named):
        same = next(i for n, i in enumerate(named) if i in named[:n])
        table.refuse(
            f"{shown(table.names[same])} is named for two things: each is a column of its own."
        )
    return columns


def _sides(table: OpenTable, sides: Pair) -> tuple[str, str]:
    first, second = sides
    if first is not None and second is not None:
        return first, second
    if first is not None or second is not None:
        table.refuse("pass both of first= and second=, the columns of the two sides.")
    found = next((pair for pair in SIDES if table.has(*pair)), None)
    if found is None:
        usual = "; ".join(f"{one} and {two}" for one, two in SIDES)
        table.refuse(
            f"there are no two columns for the sides ({usual}): pass first= and second=. The "
            f"columns are {_listed(table)}."
        )
    return found


def _with_default(table: OpenTable, wanted: Wanted) -> Wanted:
    """If nothing says how a game ended, take the usual columns."""
    if (wanted.scores[0] is None) != (wanted.scores[1] is None):
        table.refuse("pass both of first_score= and second_score=.")
    given = [wanted.winner, wanted.scores[0], wanted.wins]
    if sum(option is not None for option in given) > 1:
        table.refuse("winner, scores and wins each say how a game ended: pass one of them.")
    if wanted.ties is not None and wanted.wins is None:
        table.refuse("ties= counts ties beside wins: pass wins= too.")
    if any(option is not None for option in given):
        return wanted
    if table.has(WINNER):
        return wanted._replace(winner=WINNER)
    scores = next((pair for pair in SCORES if table.has(*pair)), None)
    if scores is not None:
        return wanted._replace(scores=scores)
    if table.has(*WINS):
        return wanted._replace(wins=WINS, ties=TIES if table.has(TIES) else None)
    table.refuse(
        "no column says how a game ended: pass winner=, or first_score= and second_score=, or "
        f"wins= (two columns) and ties=. The columns are {_listed(table)}."
    )


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


def _listed(table: OpenTable) -> str:
    return ", ".join(shown(name) for name in table.names)
