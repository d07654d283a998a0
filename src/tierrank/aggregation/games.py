"""What is fitted: players, the sides they make up, and every kind of game with its count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.lists import how_often
from tierrank.aggregation.votes import read_clusters, read_covariates
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, preview
from tierrank.tiers.catalogue import catalogue_of, read_catalogue

COLUMNS = ("first", "second", "outcome", "at_home", "weights", "covariates", "clusters")  # [games]


@dataclass(frozen=True, eq=False)
class Fixtures:
    """Games between sides, each kind once.

    Attributes
    ----------
    players
        names of those who are estimated
    members, borders
        [members] player numbers of all sides, and [sides + 1] the ranges of them, one a side
    first, second
        [games] side numbers
    outcome
        [games] 1 the first won, 0 a tie, −1 the second won
    at_home
        [games] 1.0 if the first side has the advantage of being the first, else 0.0
    weights
        [games] how often
    covariates
        [games, covariates] what adds to the lead of the first side, besides; None: nothing does
    clusters
        [games, kinds of clusters] numbers of those that a game is in: who voted; None: unknown
    """

    players: tuple[Any, ...]
    members: IntArray
    borders: IntArray
    first: IntArray
    second: IntArray
    outcome: IntArray
    at_home: FloatArray
    weights: FloatArray
    covariates: FloatArray | None = None
    clusters: IntArray | None = None

    @property
    def x(self) -> FloatArray:
        """[games, covariates], of which there may be none."""
        return np.empty((len(self.first), 0)) if self.covariates is None else self.covariates

    @property
    def has_teams(self) -> bool:
        """Whether some side has several players."""
        return len(self.members) > len(self.borders) - 1

    def without_ties(self) -> Fixtures:
        """Only the games that somebody won."""
        return self._select(self.outcome != 0)

    def counted(self) -> Fixtures:
        """The same games, each kind once; who is named first matters only at home.

        Who voted is forgotten. Games with covariates stay as they are, one by one.
        """
        if self.covariates is not None:
            return self
        swap = (self.at_home == 0) & (self.first > self.second)
        first = np.where(swap, self.second, self.first)
        second = np.where(swap, self.first, self.second)
        outcome = np.where(swap, -self.outcome, self.outcome)
        sides = len(self.borders) - 1
        key = ((first * sides + second) * 2 + (self.at_home > 0)) * 3 + outcome + 1
        turned = replace(self, first=first, second=second, outcome=outcome, clusters=None)
        if (key[1:] > key[:-1]).all():  # as `Games.either_way` leaves them
            return turned
        _, where, kind = np.unique(key, return_index=True, return_inverse=True)
        counts = np.bincount(kind, weights=self.weights, minlength=len(where))
        return replace(turned._select(where), weights=counts.astype(np.float64))

    def meetings(self) -> tuple[IntArray, IntArray]:
        """Give a game of each meeting, and [games] the number of each one's.

        A meeting are games of the same two sides on the same ground; with covariates, one game.
        """
        each = np.arange(len(self.first))
        if self.covariates is not None:
            return each, each
        key = 2 * (self.first * (len(self.borders) - 1) + self.second) + (self.at_home > 0)
        starts = np.ones(len(key), dtype=bool)
        starts[1:] = key[1:] != key[:-1]
        if (key[1:] >= key[:-1]).all():  # in this order, as `counted` leaves them
            return np.flatnonzero(starts), np.cumsum(starts) - 1
        _, some, meeting = np.unique(key, return_index=True, return_inverse=True)
        return (each, each) if len(some) == len(each) else (some, meeting)

    def with_counts(self, counts: FloatArray) -> Fixtures:
        """The same games played otherwise often; those never played are left out."""
        there = np.flatnonzero(counts)
        return replace(self._select(there), weights=counts[there])

    def over(self, items: Any) -> Fixtures:
        """The same games of the players that `items` names, in its order, some perhaps in none."""
        stated = read_catalogue(items)
        assert stated is not None
        number = {name: code for code, name in enumerate(stated.items)}
        unknown = next((player for player in self.players if player not in number), None)
        if unknown is not None:
            raise ValueError(
                f"items= lacks {preview(unknown)}, who is in the games: name all who play, or "
                "leave those games out"
            )
        codes = np.array([number[player] for player in self.players], dtype=np.int64)
        return replace(self, players=tuple(stated.items), members=codes[self.members])

    def to_games(self) -> Games:
        """The games between single players."""
        player = self.members  # of every side, which has one
        outcome = self.outcome.astype(np.int8)
        return Games(self.players, player[self.first], player[self.second], outcome, self.weights)

    def _select(self, which: AnyArray) -> Fixtures:
        return replace(
            self,
            **{
                name: getattr(self, name)[which]
                for name in COLUMNS
                if getattr(self, name) is not None
            },
        )


def read_fixtures(
    games: Any,
    weights: Any,
    neutral: Any,
    *,
    home: bool,
    items: Any = None,
    covariates: Sequence[str | Sequence[str]] | None = None,
    clusters: Any = None,
) -> Fixtures:
    """Read what `PairedTies.fit` takes: games, rows of them, or lists of two items."""
    beside = getattr(games, "beside", {})
    if isinstance(games, Rankings | Tiers):
        if home:
            raise ValueError(
                "rankings do not say which of two items was the first: for home=True give `Games`, "
                "or rows of (first, second, outcome)"
            )
        if covariates:
            raise ValueError(
                "rankings do not say which of two items was the first, whose lead covariates add "
                "to: give `Games`, or fit a RankAggregator"
            )
        games = _games_of(games)
    elif not isinstance(games, Games):
        games = Games.from_rows(games)
    if neutral is None and home:
        neutral = games.neutral
    given = how_often(games.weights, weights, "game")
    if not given.any():
        raise ValueError("there are no games: give at least one, of a weight above 0")
    away = _neutral(neutral, len(games), home)
    players, members, borders, side = _players_of(games.names)
    read = Fixtures(
        players,
        members,
        borders,
        side[games.first],
        side[games.second],
        games.outcome.astype(np.int64),
        (~away).astype(np.float64),
        given,
        read_covariates(covariates, beside, len(games), "game"),
        read_clusters(clusters, beside, len(games), "game"),
    )
    _refuse_shared_players(read)
    read = read._select(given > 0)
    return read if items is None else read.over(items)


def fixtures_of_table(wins: Any, ties: Any, names: Sequence[Any] | None) -> Fixtures:
    """Read tables [N, N] of how often i beat j, and of how often i and j tied."""
    won = _table(wins, "wins")
    items = len(won)
    tied = np.zeros_like(won) if ties is None else _table(ties, "ties")
    if tied.shape != won.shape:
        raise ValueError(f"wins are {won.shape}, ties {tied.shape}: give tables of the same items")
    if (tied != tied.T).any():
        i, j = np.argwhere(tied != tied.T)[0]
        raise ValueError(
            f"ties[{i}, {j}] is {tied[i, j]:g} and ties[{j}, {i}] is {tied[j, i]:g}: a tie is one "
            "of both, so the table must be symmetric"
        )
    known = tuple(range(items)) if names is None else tuple(names)
    if len(known) != items:
        raise ValueError(f"there are {len(known)} names for tables of {items} items")
    i, j = np.nonzero(won)
    a, b = np.nonzero(np.triu(tied))
    games = Games(
        known,
        np.concatenate([i, a]),
        np.concatenate([j, b]),
        np.repeat([1, 0], [len(i), len(a)]).astype(np.int8),
        np.concatenate([won[i, j], tied[a, b]]),
    )
    return read_fixtures(games, None, None, home=False)


def side_of(name: Any) -> tuple[Any, ...]:
    """Give the players of a side: a tuple or a frozenset is a team, all else one player."""
    if not isinstance(name, tuple | frozenset):
        return (name,)
    if not name:
        raise ValueError("a side is an empty team: a team has at least one player")
    if len(set(name)) < len(name):
        raise ValueError(f"team {preview(name)} has a player twice: name each once")
    return tuple(name)


def _players_of(names: tuple[Any, ...]) -> tuple[tuple[Any, ...], IntArray, IntArray, IntArray]:
    """Players, the members of every side and their ranges, and the side that each name means.

    A team is who plays in it: the order of its players says nothing, and a team of one is its
    player.
    """
    teams = [side_of(name) for name in names]
    found = dict.fromkeys(player for team in teams for player in team)
    several = any(len(team) > 1 for team in teams)  # else the sides are the players, in their order
    every = catalogue_of(found).items if several else found
    players = {player: number for number, player in enumerate(every)}
    codes = [tuple(sorted(players[player] for player in team)) for team in teams]
    sides = {team: number for number, team in enumerate(dict.fromkeys(codes))}
    members = np.array([player for team in sides for player in team], dtype=np.int64)
    number = np.array([sides[team] for team in codes], dtype=np.int64)
    return tuple(players), members, offsets([len(team) for team in sides]), number


def _refuse_shared_players(fixtures: Fixtures) -> None:
    """A player on both sides of a game would play against itself."""
    if not fixtures.has_teams:
        return  # Games refuses a side that meets itself
    from scipy.sparse import csr_array

    sides = len(fixtures.borders) - 1
    belongs = csr_array(
        (np.ones(len(fixtures.members)), fixtures.members, fixtures.borders),
        shape=(sides, len(fixtures.players)),
    )
    shared = belongs[fixtures.first].multiply(belongs[fixtures.second]).tocoo()
    if shared.nnz:
        player = preview(fixtures.players[int(shared.col[0])])
        raise ValueError(f"game {shared.row[0]}: {player} plays on both sides. Name each on one.")


def _games_of(rankings: Rankings | Tiers) -> Games:
    tiers = rankings.tiers if isinstance(rankings, Rankings) else rankings
    weights = rankings.weights if isinstance(rankings, Rankings) else np.ones(len(tiers))
    if tiers.n_items is None or tiers.rest:
        raise ValueError(
            "games are lists of two items of a catalogue, as Tiers.from_rankings gives them, "
            'without a rest (rest="absent")'
        )
    lengths = tiers.lengths.cpu().numpy()
    if (lengths != 2).any():
        at = int(np.argmax(lengths != 2))
        raise ValueError(
            f"list {at} has {lengths[at]} items, and a game has two sides: longer lists are for "
            "RankAggregator"
        )
    pairs = tiers.items.cpu().numpy().reshape(-1, 2)
    won = (tiers.n_tiers == 2).cpu().numpy().astype(np.int8)
    names = tuple(range(tiers.n_items)) if tiers.names is None else tiers.names
    return Games(names, pairs[:, 0], pairs[:, 1], won, weights)


def _neutral(neutral: Any, games: int, home: bool) -> AnyArray:
    if neutral is None:
        return np.full(games, not home)
    if not home:
        raise ValueError("neutral= says where there is no home advantage: it goes with home=True")
    found = np.asarray(neutral)
    if found.dtype != np.bool_ or found.shape != (games,):
        raise ValueError(
            f"neutral is {found.dtype} of shape {found.shape}: give {games} booleans, one a game"
        )
    return found


def _table(table: Any, what: str) -> FloatArray:
    found = np.asarray(table, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise ValueError(f"{what} have shape {found.shape}: give a table [items, items]")
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(f"{what}[{i}, {j}] is {found[i, j]}: counts are finite and not negative")
    if np.diag(found).any():
        at = int(np.flatnonzero(np.diag(found))[0])
        raise ValueError(f"{what}[{at}, {at}] is {found[at, at]:g}: nobody plays against itself")
    return found
