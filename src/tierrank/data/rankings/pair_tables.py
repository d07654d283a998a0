"""Games from tables: a row two sides, and a winner, two scores, or counts."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from tierrank._types import IntArray
from tierrank.data.files import expands
from tierrank.data.rankings.columns import Fetched, open_table
from tierrank.data.rankings.games import FIRST, SECOND, TIE, Games, OutcomeArray
from tierrank.data.rankings.pair_columns import Wanted, choose
from tierrank.data.rankings.sides import read_sides
from tierrank.data.rankings.winners import TIE_WORDS, WinnerAs, Winners, outcomes
from tierrank.data.tables.assembly import BadColumn, FloatArray
from tierrank.data.tables.reader import TableFormat


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
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Games:
    """Read games of two sides from a table: who met, and how it ended.

    How it ended is said in one of three ways: a winner, two scores, or how often each side won.
    Names of sides are integers if all are whole numbers, else strings; they come in order of first
    appearance.

    Parameters
    ----------
    source
        a path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table
    first, second
        the columns of the two sides. Without them, the pair that is there of these: first and
        second, a and b, left and right, model_a and model_b, home_team and away_team, home and
        away; or else of two columns that are called alike, such as player1 and player2.
    winner
        the column that names the winner: by name, by side (first or second, a or b, left or right,
        model_a or model_b, home or away, or what the two columns are called), or by a word for a
        tie. Any other word is an error, and so is one that could mean both sides.
    loser
        with `winner`, the two columns that name who won and who lost: they are the sides
    first_score, second_score
        the columns of two scores: the higher wins, equal ones tie
    wins, ties
        the two columns that count how often the first and the second side won, and the one that
        counts ties: such a row becomes up to three, with these counts as weights.
        Without any of winner, scores and wins, the first of these that is there: winner; home_score
        and away_score, first_score and second_score; wins_first, wins_second and, if there, ties;
        or else what is called alike, such as score1 and score2.
    weight
        the column that says how often a row was seen
    neutral
        the column of true and false that says where the first side had no advantage of being it
    winner_as
        "name" or "side" if winners are only written so; "either" takes both
    tie_words
        words for a tie, in the column of winners; upper and lower case are the same
    format, separator
        as for `read_table`
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it

    Raises
    ------
    TableError
        a `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row

    Examples
    --------
    >>> import polars as pl
    >>> votes = pl.DataFrame(
    ...     {
    ...         "model_a": ["gull", "wren", "wren"],
    ...         "model_b": ["wren", "crow", "gull"],
    ...         "winner": ["model_a", "tie (bothbad)", "wren"],
    ...     }
    ... )
    >>> read_games(votes)
    Games(3 games of 3 sides: the first won 2, the second won 0, 1 tied)
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
        raise ValueError(f"winner_as is one of {get_args(WinnerAs)}, not {winner_as!r}.")
    if isinstance(tie_words, str):
        raise ValueError(f"tie_words is a list of words, not one string: [{tie_words!r}].")
    scores = (first_score, second_score)
    wanted = Wanted((first, second), winner, scores, wins, ties, weight, neutral, loser)
    with open_table(source, format, separator) as table:
        columns = choose(table, wanted)
        fetched = table.fetch(*dict.fromkeys(columns.named()))
        sides = read_sides(fetched, columns.first, columns.second)
        fetched.check(
            sides.first == sides.second,
            columns.second,
            "a side plays against itself: leave the row out, or name its sides.",
        )
        rows, weights = np.arange(fetched.rows), np.ones(fetched.rows)
        if columns.weight is not None:
            weights = fetched.weights(columns.weight)
        if columns.wins is not None:
            rows, outcome, weights = _counted(fetched, columns.wins, columns.ties)
        elif columns.scores is not None:
            outcome = _by_scores(fetched, columns.scores)
        elif columns.winner is not None:
            winners = Winners(columns.winner, winner_as, tie_words, columns.words)
            outcome = outcomes(fetched, sides, winners)
        else:
            outcome = np.full(fetched.rows, FIRST, dtype=np.int8)  # the winner's column is first
        away = None if columns.neutral is None else _truth(fetched, columns.neutral)[rows]
    return Games(sides.names, sides.first[rows], sides.second[rows], outcome, weights, away)


def _truth(fetched: Fetched, position: int) -> npt.NDArray[np.bool_]:
    values, what = fetched.floats_or_fault(position), "write true or false (or 1 or 0)"
    if isinstance(values, BadColumn):
        fetched.refuse(values.row, position, f"{what}: the neutral column {values.why}")
    fetched.check(~np.isin(values, (0, 1)), position, f"{what} for neutral ground.")
    return np.asarray(values == 1)


def _by_scores(fetched: Fetched, positions: tuple[int, int]) -> OutcomeArray:
    """[rows] the higher score wins."""
    one, two = fetched.in_order(positions, "score")
    for scores, position in ((one, positions[0]), (two, positions[1])):
        fetched.check(
            ~np.isfinite(scores),
            position,
            "the score is missing or infinite: leave out games that were not played.",
        )
    return np.sign(one - two).astype(np.int8)


def _counted(
    fetched: Fetched, wins: tuple[int, int], ties: int | None
) -> tuple[IntArray, OutcomeArray, FloatArray]:
    """From counts a row to a row an outcome that was seen: its row, the outcome, how often."""
    ends = {FIRST: wins[0], SECOND: wins[1]} | ({} if ties is None else {TIE: ties})
    counts = np.empty((fetched.rows, len(ends)))
    for column, position in zip(counts.T, ends.values(), strict=True):
        column[:] = fetched.floats(position, "count")
        fetched.check(
            ~(np.isfinite(column) & (column >= 0)),
            position,
            "the count is missing, negative or infinite: give how often it ended so, or 0.",
        )
    rows, places = np.nonzero(counts)
    if not len(rows):
        fetched.refuse(None, wins[0], "all counts are 0: there is no game.")
    return rows, np.array(list(ends), dtype=np.int8)[places], counts[rows, places]
