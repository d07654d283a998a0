"""What a table of rankings holds: found out by the names of its columns, and by their values."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.long_tables import read_long_rankings
from tierrank.data.rankings.pair_tables import read_games
from tierrank.data.rankings.paired_ranks import read_paired_ranks
from tierrank.data.rankings.preferences import read_preferences
from tierrank.data.rankings.usual_names import (
    KINDS,
    PARTS,
    Reading,
    complete,
    has_three_sides,
    is_part,
    is_place,
    missing_parts,
    readings,
    unclear,
    wide_or_orders,
    with_season,
)
from tierrank.data.rankings.wide_tables import read_wide_rankings
from tierrank.data.tables.columns import BadColumn, exact_number
from tierrank.data.tables.opening import Table
from tierrank.errors import Column
from tierrank.names import TableKind as Kind

_READERS: dict[Kind, Callable[..., Rankings | Games]] = {
    "items": read_long_rankings,
    "games": read_games,
    "preferences": read_preferences,
    "paired-ranks": read_paired_ranks,
    "wide": read_wide_rankings,
    "orders": partial(read_wide_rankings, cells="items"),
}
_OPTIONS = {kind: set(inspect.signature(read).parameters) for kind, read in _READERS.items()}
_SEVERAL = {"items": {"list"}, "wide": {"item"}, "orders": {"item"}}  # parts of several columns

_LEAST_WIDE = 3  # columns of a wide table that is recognised
_SURE_CELLS = 20  # beyond two a row, that are ranks: by chance in less than 1 of 1,000 tables
_MOST_TWICE = 0.1  # share of rows that an item's second place in a list may be
_UNLIKELY = (
    "the columns have usual names, but their values are not as usual (ranks from 1 to the length "
    "of the list, an item once in a list, somebody on both sides of games)"
)


def read_as_detected(table: Table, kind: Kind | None, named: Mapping[str, Any]) -> Rankings | Games:
    """Read a table as what it surely is, or refuse it with what it may be.

    Parameters
    ----------
    kind
        what a row is, if that is said
    named
        columns by the part they play, and other options of the readers
    """
    kinds = [each for each in ([kind] if kind else KINDS) if _takes(each, named)]
    if not kinds:
        table.refuse(*_clash(kind, named))
    asked = len(kinds) == 1
    in_rows = [each for each in kinds if each in PARTS]
    ways = [way for each in in_rows or kinds for way in readings(table, each, named)]
    sure = [way for way in ways if way.certain]
    if len(sure) == 1 or (len(ways) == 1 and asked):
        return _read(table, (sure or ways)[0], named, asked)
    likely = []
    if in_rows:
        likely = [way for each in sure or ways if (way := _tried(table, each)) is not None]
    if not likely and not (named and in_rows):
        likely = _likely_wide(table, named)
    if len(likely) == 1 and likely[0].certain:
        return _read(table, likely[0], named, asked)
    if not likely and len(ways) == 1:
        _READERS[ways[0].kind](table, **ways[0].columns)  # which says what is wrong, if it is that
        raise unclear(table, ways, _UNLIKELY)
    if not likely and not ways:
        if has_three_sides(table):
            raise unclear(table, wide_or_orders(table, named))
        almost = [each for each in in_rows if each != "preferences"]
        almost = [each for each in almost if missing_parts(table, each, named) == 1]
        if len(almost) == 1:
            complete(table, almost[0], named)  # which says what is missing
    raise unclear(table, likely or ways)


def _read(table: Table, way: Reading, named: Mapping[str, Any], asked: bool) -> Rankings | Games:
    """Read it so, and say what was taken for what unless all of it was asked for."""
    if way.kind == "preferences" and not asked:
        way = _or_games(table, way, named)
    columns = dict(way.columns)
    if "weight" in _OPTIONS[way.kind] and "wins" not in columns and table.has("weight"):
        columns.setdefault("weight", "weight")  # counts count the games themselves
    way = replace(way, columns=columns)
    found = _READERS[way.kind](table, **columns)
    guessed = {part for part, value in columns.items() if value is not None} - set(named)
    return replace(found, read_as=str(way)) if guessed or not asked else found


def _or_games(table: Table, way: Reading, named: Mapping[str, Any]) -> Reading:
    """Preferences, or the games that they are: seen more than once, or won in a circle."""
    won = {part: way.columns[part] for part in ("winner", "loser")}
    games = Reading("games", won)
    if way.columns.get("list") is not None:
        if table.has("weight") and "list" not in named:  # of a game, or of a list?
            raise unclear(table, [games, way])
        return way
    played = read_games(table, **won)
    if table.has("weight") or len({*zip(played.first, played.second, strict=True)}) < len(played):
        return games
    try:
        read_preferences(table, list=None, **won)
    except ValueError:  # one list has no cycle, games may well have
        return games
    return way


def _tried(table: Table, way: Reading) -> Reading | None:
    """The same if the values of the columns bear it out, with what it takes to read them."""
    extras: list[dict[str, str]] = [{}]
    if way.kind == "items":
        last, best = {"missing_rank": "last"}, {"twice": "best"}
        extras += [each for each in (last, best, last | best) if not set(each) & set(way.columns)]
    for extra in extras:
        columns = {**way.columns, **extra}
        with suppress(ValueError):
            if _bears_out(table, way, _READERS[way.kind](table, **columns)):
                return replace(way, columns=columns, certain=not extra)
    yearly = with_season(table, way)
    return None if yearly is None else _tried(table, yearly)


def _bears_out(table: Table, reading: Reading, found: Rankings | Games) -> bool:
    """Whether what was read looks as such data do: lists of several, ranks 1, 2, 3, …"""
    if isinstance(found, Games):  # somebody is the first here and the second there
        return bool(np.isin(found.first, found.second).any())
    if reading.kind == "preferences":  # and somebody who wins here loses there
        sides = [table.names.index(reading.columns[part]) for part in ("winner", "loser")]
        won, lost = (set(table.distinct(side, "item").values) for side in sides)
        return not won.isdisjoint(lost)
    if reading.kind != "items":
        return True
    longest = 2 * int(found.tiers.lengths.max())
    if len(found.tiers.items) < max((1 - _MOST_TWICE) * table.rows, 2 * len(found)):
        return False
    if (rank := reading.columns.get("rank")) is None:
        return True
    at = table.names.index(rank)
    cells = [exact_number(cell) for cell in table.distinct(at, "rank").values]
    ranks = [cell for cell in cells if cell is not None and cell == cell]
    return all(1 <= cell <= longest and cell == int(cell) for cell in ranks)


def _likely_wide(table: Table, named: Mapping[str, Any]) -> list[Reading]:
    """Readings of a table whose columns are items, or places: by the cells alone.

    Ranks are 1, 2, … in every row, with ties, and gaps behind ties if any; three columns or more,
    and none that is called like a part of another kind. Where the columns are called as places
    are, the cells may as well be items; and a few rows may be ranks by chance.
    """
    by_rank, by_place = wide_or_orders(table, named)
    names = by_rank.columns["item"]
    if len(names) < _LEAST_WIDE or any(map(is_part, names)):
        return []
    at = [table.names.index(name) for name in names]
    table.load(*at)
    places = all(map(is_place, names))
    columns = [table.floats_or_fault(position) for position in at]
    if any(isinstance(column, BadColumn) for column in columns):
        return [by_place] if places else []
    cells = np.stack([np.asarray(column) for column in columns], axis=1)
    ranks = np.sort(np.where(cells > 0, cells, np.inf), axis=1)  # what is not ranked at the end
    before, after, place = ranks[:, :-1], ranks[:, 1:], np.arange(2, len(names) + 1)
    tied, done = after == before, np.isinf(after)
    dense = (tied | (after == before + 1) | done).all(axis=1)
    gapped = (tied | (after == place) | done).all(axis=1)
    proper = (ranks[:, 0] == 1) & (dense | gapped)
    if (cells < 0).any() or not np.isfinite(after[~tied]).any():
        return []
    if proper.all():
        # Half of all rows of 1, 2 and 3 are ranks by chance, and far fewer of more columns.
        certain = len(cells) * (len(names) - 2) >= _SURE_CELLS
        certain &= by_rank.columns["list"] in (named.get("list"), "list")
        return [by_rank, by_place] if places else [replace(by_rank, certain=certain)]
    return [by_place] if places and not (tied & ~done).any() else []


def _takes(kind: Kind, named: Mapping[str, Any]) -> bool:
    """Whether all that is named has a meaning for this kind; only some take several columns."""
    several = {part for part in ("list", "item") if not isinstance(named.get(part, ""), str)}
    return set(named) <= _OPTIONS[kind] and several <= _SEVERAL.get(kind, set())


def _clash(kind: Kind | None, named: Mapping[str, Any]) -> tuple[object, ...]:
    """What to say of columns that no table has together."""
    for part in named:
        if not any(part in options for options in _OPTIONS.values()):
            raise TypeError(f"there is no option {part!r} for tables of rankings")
    if kind is not None:
        wrong = [part for part in named if not _takes(kind, {part: named[part]})]
        return f"{KINDS[kind]}, and ", *all_of(wrong), " is not for that: leave it out."
    for one, two in itertools.combinations(named, 2):
        meant = [next(k for k in KINDS if _takes(k, {part: named[part]})) for part in (one, two)]
        if not any(_takes(each, {part: named[part] for part in (one, two)}) for each in KINDS):
            return (
                Column(one), f" is for a table where {KINDS[meant[0]]}, ", Column(two),
                f" for one where {KINDS[meant[1]]}: leave one of them out.",
            )  # fmt: skip
    return "no table has all of ", *all_of(named), ": leave one of them out."


def all_of(parts: Iterable[str]) -> list[object]:
    """Columns in a row, for an error in parts."""
    listed: list[object] = []
    for part in parts:
        listed += [", ", Column(part)] if listed else [Column(part)]
    return listed
