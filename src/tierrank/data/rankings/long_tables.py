"""Rankings in long form: a row an item of a list, with its rank or score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, get_args

from tierrank.data.files import expands
from tierrank.data.rankings.columns import OpenTable, open_table
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.detection import complete
from tierrank.data.rankings.long_rows import LongColumns, read_rows
from tierrank.data.rankings.long_writer import write_long_rankings
from tierrank.data.rankings.missing_ranks import MissingRank, checked_option
from tierrank.data.tables.reader import TableFormat
from tierrank.data.text import shown
from tierrank.tiers.catalogue import read_catalogue

__all__ = ["read_long_rankings", "write_long_rankings"]

Twice = Literal["error", "best"]


@expands
def read_long_rankings(
    source: str | PathLike[str] | Any,
    *,
    list: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    items: Any = None,
    rest: Literal["absent", "last"] = "absent",
    missing_rank: MissingRank = "error",
    twice: Twice = "error",
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read rankings from a table with a row for every item of every list.

    Rows of a list need not be adjacent; lists come in order of first appearance and `keys` of the
    tiers has what they are called. Lists, and items too, are integers if all are whole numbers
    (in CSV: written as 7, not as 07 or 7.0), else strings.

    Parameters
    ----------
    source
        a path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table
    list
        the column that says which list a row belongs to; or several, which do so together: then a
        list is called by all of them, such as "1950 / monaco"
    item
        the column of item names
    rank, score
        the column that orders a list; one of the two. A lower rank is better, a higher score is
        better, equal ones tie, gaps do not matter. Integers and decimals of any length are
        compared exactly.
        What is not named is the column called list, item, rank or score; else the only one with
        a usual name for it, such as race, driver and position.
    weight
        the column that says how often a list was given, the same in all rows of a list
    items
        the catalogue: a sequence of names, or N for the integers 0 .. N - 1. Without it, the
        names in order of first appearance, or in their own if they are the integers 0 .. N - 1.
    rest
        where a list stands with the items it does not name: "absent" (nowhere), or "last" (they
        are tied behind those it names)
    missing_rank
        what to do with a row that has no rank (or score): "error"; "drop" to leave it out; "last"
        to put it behind all others of its list, tied. Missing is an empty cell, NA and the like,
        and for the last two also a word for those who are not classified: DNF, DNS, DNQ, DNPQ,
        DNP, DSQ, DQ, EX, NC, RET, WD. Or a mapping from words to "drop" or "last", with "" for
        what is missing: ``{"DNF": "last", "DNS": "drop"}``. Any other word is an error.
    twice
        what to do with an item that a list has twice: "error", or "best" to keep its best place
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
    >>> races = pl.DataFrame(
    ...     {
    ...         "race": ["rome", "rome", "oslo", "rome", "oslo"],
    ...         "runner": ["ann", "bob", "cy", "cy", "ann"],
    ...         "place": [1, 2, 1, 2, None],
    ...     }
    ... )
    >>> read_long_rankings(
    ...     races, list="race", item="runner", rank="place", missing_rank="last"
    ... ).tiers
    Tiers(2 lists, catalogue of 3 items, 2 tiers a list)
      'rome': ann > {bob, cy}
      'oslo': cy > ann
    """
    without_rank = checked_option(missing_rank)
    if twice not in get_args(Twice):
        raise ValueError(f'twice is "error" or "best", not {twice!r}.')
    if rest not in ("absent", "last"):
        raise ValueError(f'rest is "absent" or "last", not {rest!r}.')
    stated = read_catalogue(items)
    named = {"list": list, "item": item, "rank": rank, "score": score}
    with open_table(source, format, separator) as table:
        columns = _find(table, complete(table, "items", named), weight)
        entries, weights = read_rows(
            table.fetch(*columns.all()), columns, stated, without_rank, twice == "best"
        )
    return Rankings(entries.tiers(rest == "last"), weights)


def _find(table: OpenTable, chosen: Mapping[str, Any], weight: str | None) -> LongColumns:
    """Find the columns by name."""
    rank, score = chosen.get("rank"), chosen.get("score")
    if rank is not None and score is not None:
        table.refuse(
            f"rank {shown(rank)} and score {shown(score)} would both order the lists: pass one "
            "of rank= and score=."
        )
    lists = chosen["list"]
    names = (lists,) if isinstance(lists, str) else tuple(lists)
    if not names:
        table.refuse("list names no column: give one, or several.")
    value = score if rank is None else rank
    columns = LongColumns(
        tuple(table.find(name, "list") for name in names),
        table.find(chosen["item"], "item"),
        table.find(str(value), "score" if rank is None else "rank"),
        rank is not None,
        None if weight is None else table.find(weight, "weight"),
    )
    table.refuse_twice(columns.all())
    return columns
