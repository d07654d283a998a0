"""One door for all files of rankings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from tierrank.data.files import DataFileError, expands, without_compression
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.detection import all_of, read_as_detected
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.jsonl import read_jsonl_rankings, write_jsonl_rankings
from tierrank.data.rankings.long_tables import write_long_rankings
from tierrank.data.rankings.preflib import SUFFIXES as PREFLIB_TYPES
from tierrank.data.rankings.preflib import PrefLib
from tierrank.data.rankings.preflib_text import read_with, write_preflib
from tierrank.data.tables.frames import is_frame, is_numbered
from tierrank.data.tables.opening import TableFormat, open_table
from tierrank.errors import Argument
from tierrank.names import TableKind as Kind
from tierrank.names import check_ranking_format, check_table_kind
from tierrank.tiers.arrays import preview

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
    **columns: Any,
) -> Rankings:
    """Read rankings from a file of any format, or from a frame.

    .soc, .soi, .toc, .toi and .cat are PrefLib's (`read_preflib`); .jsonl and .ndjson JSON lines
    (`read_jsonl_rankings`); .csv, .tsv and .parquet tables, as are frames; .gz, .xz and .bz2 are
    looked through.

    What a row of a table is, is said by `kind`, or follows from the columns that are named, or
    from what the columns are called and hold; then `read_as` of the result says what was taken for
    what. Where more than one reading is likely, or none, an error shows them.

    Parameters
    ----------
    source
        a path, or a frame of pandas or polars, or a pyarrow table
    format
        "preflib", "jsonl", "csv", "tsv" or "parquet", where the name does not tell
    kind
        what a row of a table is: "items", an item of a list (`read_long_rankings`); "games", a
        game of two sides (`read_games`), of which each becomes a list; "preferences", one item
        over another (`read_preferences`); "paired-ranks", two items with their ranks
        (`read_paired_ranks`); "wide", a ranking with a column an item, or "orders", with a column
        a place (`read_wide_rankings`)
    strict
        True to refuse PrefLib files that `read_preflib` reads with a warning
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it
    columns
        columns by the part they play, and other options of these readers: list, item, rank and
        score; first, second, winner, first_score, …; winner and loser; weight. Without `weight`,
        the column that is called so says how often a list was given, if there is one.

    Raises
    ------
    DataFileError
        a `ValueError` that names the file and the line, and says what to do
    UnclearTable
        a `ValueError` that shows how the table may be read

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "races.csv")
    ...     _ = file.write_text(
    ...         "raceId,driverId,position\\n1,ann,1\\n1,bob,2\\n1,cy,2\\n2,cy,1\\n2,ann,2\\n"
    ...     )
    ...     read_rankings(file)
    Rankings(2 lists of weight 2, 3 items)
      1 × ann > {bob, cy}
      1 × cy > ann
      read as: a row is an item of a list: list raceId, item driverId, rank position
    """
    found = read_lists_or_games(
        source, format=format, kind=kind, strict=strict, max_expansion=max_expansion, **columns
    )
    return found.to_rankings() if isinstance(found, Games) else found


@expands
def read_lists_or_games(
    source: str | PathLike[str] | Any,
    *,
    format: RankingsFormat = "auto",
    kind: Kind | None = None,
    strict: bool = False,
    max_expansion: float | None = None,
    **columns: Any,
) -> Rankings | Games:
    """Do the same as `read_rankings`, but games stay games: who is named first may matter."""
    check_ranking_format(format)
    check_table_kind(kind)
    named = {part: _single(value) for part, value in columns.items() if value is not None}
    table_format: Any = None
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_dir():
            raise DataFileError(path, None, "is a folder: give one of its files.")
        table_format = format_of(path) if format == "auto" else format
        if table_format in ("preflib", "jsonl"):
            if named or kind is not None:
                given = all_of(named) or [Argument("kind")]
                raise DataFileError(path, None, *given, ": that is for tables alone, leave it out.")
            if table_format == "jsonl":
                return read_jsonl_rankings(path)
            return read_with(path, strict=strict, stacklevel=4).rankings
    with open_table(source, table_format, named.pop("separator", None)) as table:
        return read_as_detected(table, kind, named)


def of_frame(data: Any, columns: Mapping[str, Any], weights: Any = None) -> Any:
    """What an estimator's `fit` is given: a frame becomes lists or games, all else stays.

    Columns that were not named are told in a warning, as nobody sees the lists themselves.
    `weights` are those that `fit` is given beside it, which may not be in the frame as well.
    """
    if not is_frame(data):
        if columns:
            weighted = any("weight" in name for name in columns)
            hint = " Numbers beside it that say how often are weights=." if weighted else ""
            raise ValueError(
                f"{', '.join(columns)}: columns are for frames, not for {preview(data)}.{hint}"
            )
        return data
    if not columns and is_numbered(data):
        raise ValueError(
            "the columns of the frame are numbers, which do not say what it holds: pass "
            'kind="wide" if a column is an item and a cell its rank, kind="orders" if a cell is '
            "an item, best first, or .to_numpy() of the frame for the array that it is."
        )
    found = read_lists_or_games(data, **columns)
    if weights is not None and (found.weights != 1).any():
        raise ValueError(
            "the frame says how often each was seen (a column weight, or counts), and so does "
            "weights=: leave out weights=, or that column of the frame."
        )
    if found.read_as:
        warnings.warn(f"the frame was taken so: {found.read_as}", stacklevel=3)
    return found


def _single(value: Any) -> Any:
    """One column that stands in a list by itself."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


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
            f"{', '.join(_BY_SUFFIX)} (also with .gz, .xz or .bz2 behind), or give ",
            Argument("format"),
            " when you read.",
        )
    return _BY_SUFFIX[suffix]
