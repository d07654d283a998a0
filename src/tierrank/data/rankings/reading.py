"""One door for all files of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from tierrank.data.files import DataFileError, expands, without_compression
from tierrank.data.rankings.columns import open_table
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.errors import Doubts
from tierrank.data.rankings.jsonl import read_jsonl_rankings, write_jsonl_rankings
from tierrank.data.rankings.long_tables import read_long_rankings
from tierrank.data.rankings.long_writer import write_long_rankings
from tierrank.data.rankings.pair_tables import read_games
from tierrank.data.rankings.preferences import read_preferences
from tierrank.data.rankings.preflib import PrefLib, write_preflib
from tierrank.data.rankings.preflib.checks import SUFFIXES as PREFLIB_TYPES
from tierrank.data.rankings.preflib.reader import read_with
from tierrank.data.tables.reader import TableFormat

FileFormat = Literal["preflib", "jsonl"] | TableFormat
RankingsFormat = Literal["auto"] | FileFormat
FORMATS = ("auto", "preflib", "jsonl", *get_args(TableFormat))

_BY_SUFFIX: dict[str, FileFormat] = {
    **dict.fromkeys(PREFLIB_TYPES, "preflib"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@expands
def read_rankings(
    path: str | PathLike[str],
    *,
    format: RankingsFormat = "auto",
    list: str | Sequence[str] = "list",
    item: str = "item",
    rank: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    max_expansion: float | None = None,
    strict: bool = False,
    **options: Any,
) -> Rankings:
    """Read a file of rankings, in whatever format its name says.

    .soc, .soi, .toc, .toi and .cat are PrefLib's (`read_preflib`); .jsonl and .ndjson JSON lines
    (`read_jsonl_rankings`); .csv, .tsv and .parquet tables, either with a row an item of a list
    (`read_long_rankings`), with a row a game of two sides (`read_games`), or with a row a
    preference (`read_preferences`); .gz, .xz and .bz2 are looked through.

    Parameters
    ----------
    path
        the file
    format
        "preflib", "jsonl", "csv", "tsv" or "parquet", where the name does not tell
    list, item, rank, score
        columns of a table with a row an item
    first, second, winner
        columns of a table with a row a game
    loser
        with `winner` and `list`, the columns of a table with a row a preference. If no column is
        named, a table with columns `list` and `item` has a row an item, one with `winner` and
        `loser` a row a preference, and any other a row a game.
    weight
        the column of a table that says how often a list was given; without it, the one that is
        called "weight", if there is one
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it
    strict
        True to refuse PrefLib files that `read_preflib` reads with a warning
    options
        others of `read_long_rankings` or `read_games`, such as missing_rank or first_score

    Raises
    ------
    DataFileError
        a `ValueError` that names the file and the line, and says what to do

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.jsonl")
    ...     _ = file.write_text('["ann", ["bob", "cy"]]\\n["cy", "ann"]\\n')
    ...     read_rankings(file)
    Rankings(2 lists of weight 2, 3 items)
      1 × ann > {bob, cy}
      1 × cy > ann
    """
    path = Path(path)
    if format not in FORMATS:
        raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}.")
    if path.is_dir():
        raise DataFileError(path, None, "is a folder: give one of its files.")
    kind = format_of(path) if format == "auto" else format
    named_list = list != "list" and loser is None  # preferences have lists too
    named_items = named_list or (item, rank, score) != ("item", None, None)
    preferred = winner or "winner", loser or "loser"
    named_games = (first, second, winner, loser) != (None, None, None, None)
    if kind == "preflib" or kind == "jsonl":
        if named_items or named_games or weight is not None or options:
            what = "columns and their options are for tables alone: leave them out."
            raise DataFileError(path, None, what)
        if kind == "jsonl":
            return read_jsonl_rankings(path)
        return read_with(path, Doubts(strict=strict), stacklevel=2).rankings
    if named_items and named_games:
        raise DataFileError(
            path,
            None,
            "name list, item, rank or score for a table with a row an item, or first, second and "
            "winner for one with a row a game, but not both.",
        )
    # Opened only to look at the names of its columns, before it is known what to read.
    with open_table(path, kind, options.get("separator")) as table:
        if loser is not None or (
            not named_items and (first, second) == (None, None) and table.has(*preferred)
        ):
            named = list if isinstance(list, str) and table.has(list) else None
            return read_preferences(
                path, list=named, winner=preferred[0], loser=preferred[1], format=kind, **options
            )
        long = named_items or (not named_games and table.has(*_names(list), item))
        if weight is None and table.has("weight"):
            weight = "weight"
    if long:
        return read_long_rankings(
            path, list=list, item=item, rank=rank, score=score, weight=weight, format=kind,
            **options,
        )  # fmt: skip
    return read_games(
        path, first=first, second=second, winner=winner, weight=weight, format=kind, **options
    ).to_rankings()


def write_rankings(rankings: Rankings, path: str | PathLike[str]) -> None:
    """Write rankings into a file, in the format that its name says.

    .soc, .soi, .toc and .toi give PrefLib's format, where equal lists are counted together;
    .jsonl and .ndjson JSON lines; .csv, .tsv and .parquet a table with a row an item. JSON lines
    keep everything but the keys of the lists; the other writers say what they leave out. The file
    is compressed if the name ends in .gz, .xz or .bz2, and is written beside and renamed.

    Examples
    --------
    >>> import pathlib, tempfile
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
            f"{', '.join(_BY_SUFFIX)} (also with .gz, .xz or .bz2 behind), or give the format when "
            "you read.",
        )
    return _BY_SUFFIX[suffix]


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
