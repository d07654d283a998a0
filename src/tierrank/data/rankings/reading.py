"""One door for all files of rankings; what a table holds is found out here.

By the names of its columns (`usual_names`), and by whether their values bear it out.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tierrank.data.files import DataFileError, expands, without_compression
from tierrank.data.rankings.container import FEW, NothingThere, PartedRankings, Rankings
from tierrank.data.rankings.games import Games, Said, read_games
from tierrank.data.rankings.item_pairs import read_paired_ranks, read_preferences
from tierrank.data.rankings.jsonl import read_jsonl_rankings, write_jsonl_rankings
from tierrank.data.rankings.long_tables import read_long_rankings, write_long_rankings
from tierrank.data.rankings.preflib import SUFFIXES as PREFLIB_TYPES
from tierrank.data.rankings.preflib import PrefLib
from tierrank.data.rankings.preflib_text import read_with, write_preflib
from tierrank.data.rankings.streaming import Pieces, in_pieces, read_streamed
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
from tierrank.data.rankings.wide_tables import read_pass_fail, read_wide_rankings
from tierrank.data.tables.columns import BadColumn, exact_number, is_numbered
from tierrank.data.tables.opening import Table, TableFormat, open_table
from tierrank.errors import Argument, Column
from tierrank.names import TableKind as Kind
from tierrank.names import check_ranking_format, check_table_kind
from tierrank.tiers.arrays import frame_library, is_dask, preview

FileFormat = Literal["preflib", "jsonl"] | TableFormat
RankingsFormat = Literal["auto"] | FileFormat

_BY_SUFFIX: dict[str, FileFormat] = {
    **dict.fromkeys(PREFLIB_TYPES, "preflib"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


def read_rankings(
    source: str | PathLike[str] | Any,
    *,
    format: RankingsFormat = "auto",
    kind: Kind | None = None,
    strict: bool = False,
    max_expansion: float | None = None,
    client: Any = None,
    **columns: Any,
) -> Any:
    r"""Read rankings from a file of any format, or from a frame.

    .soc, .soi, .toc, .toi and .cat are PrefLib's (`read_preflib`); .jsonl and .ndjson JSON lines
    (`read_jsonl_rankings`); .csv, .tsv and .parquet tables, as are frames; .gz, .xz and .bz2 are
    looked through.

    What a row of a table is, is said by `kind`, or follows from the columns that are named, or
    from what the columns are called and hold; then `read_as` of the result says what was taken for
    what. Where more than one reading is likely, or none, an error shows them.

    Parameters
    ----------
    source : path-like or DataFrame
        A path, or a frame of pandas or polars, or a pyarrow table. A folder or a pattern of Parquet
        files of one schema, and a large file of Parquet or CSV (more than two million rows, or 40
        MB) are read piece by piece: lists have no keys then, and equal ones are counted together.
        If they still have more than ten million items, what comes back are `PartedRankings`.
    format : {"auto", "preflib", "jsonl", "csv", "tsv", "parquet"}
        "preflib", "jsonl", "csv", "tsv" or "parquet", where the name does not tell.
    kind : str, optional
        What a row of a table is: "items", an item of a list (`read_long_rankings`); "games", a
        game of two sides (`read_games`), of which each becomes a list; "preferences", one item
        over another (`read_preferences`); "paired-ranks", two items with their ranks
        (`read_paired_ranks`); "wide", a ranking with a column an item, or "orders", with a column
        a place (`read_wide_rankings`); "pass-fail", an item or a task (`read_pass_fail`).
    strict : bool
        True to refuse PrefLib files that `read_preflib` reads with a warning.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.
    client : Client, optional
        That of a Dask cluster, on whose workers the lists are to lie. Then `source` is a DataFrame
        of Dask, or files of Parquet that all workers can open: a path, a pattern, a folder, or
        several paths. What comes back are `PartedRankings`, which the aggregators fit.
    **columns
        Columns by the part they play, and other options of these readers: list, item, rank and
        score; first, second, winner, first_score, …; winner and loser; weight. Without `weight`,
        the column that is called so says how often a list was given, if there is one.
        ``keep=["voter", "date"]`` keeps further columns of lists or games in `Rankings.beside`,
        ``keep_items=[…]`` those that vary within a list in `Rankings.beside_items`.

    Returns
    -------
    Rankings
        The lists, each with how often it was given.

    Raises
    ------
    DataFileError
        A `ValueError` that names the file and the line, and says what to do.
    UnclearTable
        A `ValueError` that shows how the table may be read.

    See Also
    --------
    read_games : Games as games, not as lists.
    write_rankings : Writes such files.
    tierrank.RankAggregator : Worths of the items.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_rankings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "races.csv")
    ...     _ = file.write_text(
    ...         "raceId,driverId,position\n1,ann,1\n1,bob,2\n1,cy,2\n2,cy,1\n2,ann,2\n"
    ...     )
    ...     read_rankings(file)
    Rankings(2 lists of weight 2, 3 items)
      1 × ann > {bob, cy}
      1 × cy > ann
      read as: a row is an item of a list: list raceId, item driverId, rank position
    """
    if client is not None or is_dask(source):
        from tierrank.data.rankings.dask import read_parted

        return read_parted(
            source, client=client, format=format, kind=kind, strict=strict,
            max_expansion=max_expansion, **columns,
        )  # fmt: skip
    found = read_lists_or_games(
        source, format=format, kind=kind, strict=strict, max_expansion=max_expansion, **columns
    )
    return found.to_rankings() if isinstance(found, Games) else found  # or in parts


@expands
def read_lists_or_games(
    source: str | PathLike[str] | Any,
    *,
    format: RankingsFormat = "auto",
    kind: Kind | None = None,
    strict: bool = False,
    max_expansion: float | None = None,
    either_way: bool = False,
    **columns: Any,
) -> Any:
    """Do the same as `read_rankings`, but games stay games: who is named first may matter.

    With `either_way` it does not, and games that are read piece by piece are equal then.
    """
    check_ranking_format(format)
    check_table_kind(kind)
    named = named_parts(columns)
    table_format: Any = None
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not path.is_dir():
            table_format = format_of(path) if format == "auto" else format
        if table_format in ("preflib", "jsonl"):
            if named or kind is not None:
                given = all_of(named) or [Argument("kind")]
                raise DataFileError(path, None, *given, ": that is for tables alone, leave it out.")
            if table_format == "jsonl":
                return read_jsonl_rankings(path)
            return read_with(path, strict=strict, stacklevel=4).rankings
        files = in_pieces(path)
        if kept := [part for part in _KEPT if part in named]:  # of every list: so all at once
            if files not in ([], [path]):
                what = ": lists of several files have no columns beside them. Give one file."
                raise DataFileError(path, None, *all_of(kept), what)
        elif files:
            found = _streamed(path, files, table_format, kind, named, either_way)
            if found is not None:
                return found
    with open_table(source, table_format, named.pop("separator", None)) as table:
        return read_as_detected(table, kind, named)


def _streamed(
    path: Path,
    files: Sequence[Path],
    format: Any,
    kind: Kind | None,
    named: Mapping[str, Any],
    either_way: bool,
) -> Any:
    """Read large tables piece by piece; None where that cannot be."""
    named = dict(named)
    pieces = Pieces(files, format, named.pop("separator", None))
    first = next(pieces.of(pieces.names), None)
    if first is None:
        raise DataFileError(path, None, "there are columns but no row: give at least one.")
    way = detected(pieces.table(first), kind, named)
    said: list[str] = []

    def read(table: Table) -> Rankings | Games:
        try:
            found = READERS[way.kind](table, **way.columns)
        except NothingThere as none:
            said.append(none.read_as)
            raise
        said.append(found.read_as)
        return found

    found = read_streamed(pieces, way, read, either_way=either_way)
    if found is None:
        return None
    return _said(replace(found, read_as=Said.together(said)), way)


_KEPT = ("keep", "keep_items")  # options that are several columns, which play no part
_WORDS = ("tie_words", "drop_words", "both_lose")  # that are no columns at all


def named_parts(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns and options that were given, each as its reader takes it."""
    return {part: _given(part, value) for part, value in columns.items() if value is not None}


def _given(part: str, value: Any) -> Any:
    if part in _KEPT:
        return (value,) if isinstance(value, str) else tuple(value)
    alone = part not in _WORDS and isinstance(value, list | tuple) and len(value) == 1
    return value[0] if alone else value  # one column that stands in a list by itself


def of_frame(
    data: Any,
    columns: Mapping[str, Any],
    weights: Any = None,
    *,
    parted: bool = False,
    keep: Sequence[str] = (),
    keep_items: Sequence[str] = (),
    either_way: bool = False,
) -> Any:
    """What an estimator's `fit` is given: a frame becomes lists or games, all else stays.

    Columns that were not named are told in a warning, as nobody sees the lists themselves.
    `weights` are those that `fit` is given beside it, which may not be in the frame as well.
    `keep` and `keep_items` are columns that must come along, or be beside the lists already. Lists
    on a cluster come here once equal ones are counted together, unless they are many and may stay
    there, `parted`; games with `either_way` by pairs of sides, whoever was named first.
    """
    if is_dask(data):
        data, columns = read_rankings(data, **columns), {}
        if data.read_as:
            warnings.warn(f"the frame was taken so: {data.read_as}", stacklevel=3)
    if isinstance(data, PartedRankings):
        if weights is not None:
            raise ValueError("lists on a cluster have weights in a column: leave out weights=")
        if keep or keep_items:
            raise ValueError(
                f"{', '.join([*keep, *keep_items])}: lists in parts have no columns beside them. "
                "Read one file with keep=[…], in one process"
            )
        if parted and data.entries > FEW:
            return data
        return data.gather(either_way=either_way)
    if frame_library(data) is None:
        if columns:
            weighted = any("weight" in name for name in columns)
            hint = " Numbers beside it that say how often are weights=." if weighted else ""
            raise ValueError(
                f"{', '.join(columns)}: columns are for frames, not for {preview(data)}.{hint}"
            )
        _check_kept(data, "beside", "keep", keep)
        _check_kept(data, "beside_items", "keep_items", keep_items)
        return data
    if not columns and is_numbered(data):
        raise ValueError(
            "the columns of the frame are numbers, which do not say what it holds: pass "
            'kind="wide" if a column is an item and a cell its rank, kind="orders" if a cell is '
            "an item, best first, or .to_numpy() of the frame for the array that it is."
        )
    kept: dict[str, Any] = {
        name: names for name, names in zip(_KEPT, (keep, keep_items), strict=True) if names
    }
    found = read_lists_or_games(data, **columns, **kept)
    if weights is not None and (found.weights != 1).any():
        raise ValueError(
            "the frame says how often each was seen (a column weight, or counts), and so does "
            "weights=: leave out weights=, or that column of the frame."
        )
    if found.read_as:
        warnings.warn(f"the frame was taken so: {found.read_as}", stacklevel=3)
    return found


def _check_kept(data: Any, where: str, how: str, names: Sequence[str]) -> None:
    """Refuse lists or games without the columns that are needed beside them."""
    there = getattr(data, where, {})
    absent = [name for name in names if name not in there]
    if absent:
        known = f"only {', '.join(there)}" if there else "no column"
        raise ValueError(
            f"{', '.join(map(repr, absent))}: {preview(data)} has {known} beside it. Read the "
            f"table with {how}={list(names)!r}, or give its frame to fit"
        )


def write_rankings(rankings: Rankings, path: str | PathLike[str]) -> None:
    """Write rankings into a file, in the format that its name says.

    .soc, .soi, .toc and .toi give PrefLib's format, where equal lists are counted together;
    .jsonl and .ndjson JSON lines; .csv, .tsv and .parquet a table with a row an item. JSON lines
    keep everything but the keys of the lists; the other writers say what they leave out. The file
    is compressed if the name ends in .gz, .xz or .bz2, and is written beside and renamed.

    Parameters
    ----------
    rankings : Rankings
        What to write.
    path : path-like
        Where to; the end of the name says the format.

    Raises
    ------
    ValueError
        The name is of none of these formats, or the format does not hold these lists.

    See Also
    --------
    read_rankings : Reads them again.
    write_preflib : With a header.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import Rankings, write_rankings
    >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")]], weights=[3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.toc")
    ...     write_rankings(votes, file)
    ...     print(file.read_text().splitlines()[-1])
    3: 1,{2,3}
    """
    path = Path(path)
    format = format_of(path)
    if format == "jsonl":
        write_jsonl_rankings(rankings, path)
    elif format == "preflib":
        name = without_compression(path)
        data_type = PREFLIB_TYPES[name.suffix.lower()]
        if data_type == "cat":
            raise DataFileError(
                path,
                None,
                "categories have names: make a PrefLib.from_rankings(…, data_type='cat', "
                "categories=…) and write that with write_preflib.",
            )
        preflib = PrefLib.from_rankings(rankings, data_type=data_type, file_name=name.name)
        write_preflib(preflib, path)
    else:
        write_long_rankings(rankings, path)


def format_of(path: Path) -> FileFormat:
    """Tell the format by the name."""
    suffix = without_compression(path).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise DataFileError(
            path,
            None,
            f"the name does not say how the file is written: let it end in one of "
            f"{', '.join(_BY_SUFFIX)} (also with .gz, .xz or .bz2 behind), or give ",
            Argument("format"),
            " when you read.",
        )
    return _BY_SUFFIX[suffix]


# What a table holds -------------------------------------------------------------------------------


READERS: dict[Kind, Callable[..., Rankings | Games]] = {
    "items": read_long_rankings,
    "games": read_games,
    "preferences": read_preferences,
    "paired-ranks": read_paired_ranks,
    "wide": read_wide_rankings,
    "orders": partial(read_wide_rankings, cells="items"),
    "pass-fail": read_pass_fail,
}
_OPTIONS = {kind: set(inspect.signature(read).parameters) for kind, read in READERS.items()}
_SEVERAL = {"items": {"list"}, "wide": {"item"}, "orders": {"item"}}  # parts of several columns

_LEAST_WIDE = 3  # columns of a wide table that is recognised
_SURE_CELLS = 20  # beyond two a row, that are ranks: by chance in less than 1 of 1,000 tables
_MOST_TWICE = 0.1  # share of rows that an item's second place in a list may be
_UNLIKELY = (
    "the columns have usual names, but their values are not as usual (ranks from 1 to the length "
    "of the list, an item once in a list, somebody on both sides of games)"
)


def read_as_detected(table: Table, kind: Kind | None, named: Mapping[str, Any]) -> Any:
    """Read a table as what it surely is, and say what was taken for what unless all was named."""
    way = detected(table, kind, named)
    found = READERS[way.kind](table, **way.columns)
    return _said(found, way)


def _said(found: Any, way: Reading) -> Any:
    """What was read, with what its columns were taken for, unless all of them were named."""
    if not way.guessed:
        return found
    return replace(found, read_as="; ".join(filter(None, (str(way), found.read_as))))


def detected(table: Table, kind: Kind | None, named: Mapping[str, Any]) -> Reading:
    """How to read a table that is surely so, or refuse it with what it may be.

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
        return _chosen(table, (sure or ways)[0], named, asked)
    likely = []
    if in_rows:
        likely = [way for each in sure or ways if (way := _tried(table, each)) is not None]
    if not likely and not (named and in_rows):
        likely = _likely_wide(table, named)
    if len(likely) == 1 and likely[0].certain:
        return _chosen(table, likely[0], named, asked)
    if not likely and len(ways) == 1:
        READERS[ways[0].kind](table, **ways[0].columns)  # which says what is wrong, if it is that
        raise unclear(table, ways, _UNLIKELY)
    if not likely and not ways:
        if has_three_sides(table):
            raise unclear(table, wide_or_orders(table, named))
        almost = [each for each in in_rows if each != "preferences"]
        almost = [each for each in almost if missing_parts(table, each, named) == 1]
        if len(almost) == 1:
            complete(table, almost[0], named)  # which says what is missing
    raise unclear(table, likely or ways)


def _chosen(table: Table, way: Reading, named: Mapping[str, Any], asked: bool) -> Reading:
    """This way, with the column of weights if there is one."""
    if way.kind == "preferences" and not asked:
        way = _or_games(table, way, named)
    columns = dict(way.columns)
    if "weight" in _OPTIONS[way.kind] and "wins" not in columns and table.has("weight"):
        columns.setdefault("weight", "weight")  # counts count the games themselves
    found = {part for part, value in columns.items() if value is not None} - set(named)
    return replace(way, columns=columns, guessed=bool(found) or not asked)


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
            if _bears_out(table, way, READERS[way.kind](table, **columns)):
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
    if _takes("pass-fail", named):
        (matrix,) = readings(table, "pass-fail", named)
        with suppress(ValueError):
            if len(read_pass_fail(table, **matrix.columns).items) >= _LEAST_WIDE:
                return [matrix]  # which is shown: nobody said that 1 is better than 0
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
