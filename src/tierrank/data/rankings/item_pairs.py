"""Lists that are written two items a row: which of them won, or the rank of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from tierrank._types import BoolArray, FloatArray, IntArray
from tierrank.data.files import expands, shown
from tierrank.data.rankings.container import Entries, Rankings
from tierrank.data.rankings.usual_names import complete
from tierrank.data.tables.opening import Keys, Sides, Table, TableFormat, open_table
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets
from tierrank.tiers.catalogue import Catalogue

Method = Literal["exact", "layers"]


@expands
def read_preferences(
    source: str | PathLike[str] | Any,
    *,
    list: str | None = "list",
    winner: str = "winner",
    loser: str = "loser",
    method: Method = "exact",
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read pairwise preferences, and give the ordered partition of each list.

    Rows of a list need not be adjacent, and a row may stand there twice. Names are integers if all
    are whole numbers, else strings; items and lists come in order of first appearance, items that
    are the integers 0 .. N - 1 in their own.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    list : str or None
        The column that says which list a row belongs to; None if all rows are of one list.
    winner, loser : str
        The columns of the two items.
    method : {"exact", "layers"}
        As in `Tiers.from_preferences`.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        An ordered partition a list.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    tierrank.Tiers.from_preferences : Of pairs in memory.
    read_games : Games that are observations each.

    Examples
    --------
    >>> import pandas as pd
    >>> from tierrank.data import read_preferences
    >>> tastings = pd.DataFrame(
    ...     {
    ...         "judge": ["kim", "kim", "lee", "kim"],
    ...         "better": ["red", "red", "rosé", "white"],
    ...         "worse": ["white", "rosé", "red", "rosé"],
    ...     }
    ... )
    >>> read_preferences(tastings, list="judge", winner="better", loser="worse").tiers
    Tiers(2 lists, catalogue of 3 items, 2 to 3 tiers a list)
      'kim': red > white > rosé
      'lee': rosé > red
    """
    if method not in get_args(Method):
        raise ValueError(f'method is "exact" or "layers", not {method!r}.')
    with open_table(source, format, separator) as table:
        at_list = None if list is None else table.find(list, "list")
        at_winner, at_loser = table.find(winner, "winner"), table.find(loser, "loser")
        positions = (at_winner, at_loser) if at_list is None else (at_list, at_winner, at_loser)
        table.refuse_twice(positions)
        table.load(*positions)
        sides = table.sides(at_winner, at_loser)
        table.check(
            sides.first == sides.second,
            at_loser,
            "winner and loser are the same item: leave the row out.",
        )
        lists = None if at_list is None else table.keys(at_list, "list")
        pairs = _by_list(sides, lists)
        try:
            tiers = Tiers.from_preferences(pairs, items=len(sides.names), method=method)
        except ValueError:  # nothing else can be wrong with numbers
            _refuse_cycle(table, at_winner, sides, lists, pairs)
    keys = None if lists is None else lists.keys
    return Rankings(replace(tiers, names=sides.names, keys=keys), np.ones(len(tiers)))


def _by_list(sides: Sides, lists: Keys | None) -> list[IntArray]:
    """[rows, 2] numbers of winner and loser, an array a list."""
    pairs = np.stack([sides.first, sides.second], axis=1)
    if lists is None:
        return [pairs]
    borders = offsets(np.bincount(lists.codes, minlength=len(lists.keys)))
    pairs = pairs[np.argsort(lists.codes, kind="stable")]
    return np.split(pairs, borders[1:-1])


def _refuse_cycle(
    table: Table, position: int, sides: Sides, lists: Keys | None, pairs: list[IntArray]
) -> NoReturn:
    """Name the items of a cycle, the list it is in, and the line where that begins."""
    low, high = 0, len(pairs)
    while high - low > 1:  # the first list with a cycle is one of low .. high - 1
        middle = (low + high) // 2
        if _fault(pairs[low:middle], len(sides.names)) is None:
            low = middle
        else:
            high = middle
    named = [(sides.names[i], sides.names[j]) for i, j in pairs[low].tolist()]
    what = str(_fault([named], sides.names)).partition(": ")[2]  # without the number of the list
    if lists is None:
        table.refuse(what)
    what = f"in the list {shown(lists.keys[low])}, which begins here, {what}"
    table.refuse(what, row=int((lists.codes == low).argmax()), at=position)


def _fault(pairs: list[Any], items: Any) -> ValueError | None:
    try:
        Tiers.from_preferences(pairs, items=items)
    except ValueError as error:
        return error
    return None


# Ranks --------------------------------------------------------------------------------------------


@expands
def read_paired_ranks(
    source: str | PathLike[str] | Any,
    *,
    list: str | None = None,
    first: str | None = None,
    first_rank: str | None = None,
    second: str | None = None,
    second_rank: str | None = None,
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read rankings whose items are written two by two, as the translation judgements of WMT.

    A judge who ranks five systems gives ten such rows. They are one observation, not ten: fitting
    the ranking counts it once. Lower ranks are better, equal ones tie; an item has the same rank
    in all rows of a list, or that is an error.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    list : str, optional
        The column that says which rows belong together.
    first : str, optional
        The column of the first item of a row.
    first_rank : str, optional
        The column of its rank.
    second : str, optional
        The column of the second item.
    second_rank : str, optional
        The column of its rank. What is not named is found by the usual names, such as
        rankingID, system1Id, system2Id, system1rank and system2rank.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        One ranking a list.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    read_long_rankings : A row an item.
    read_preferences : A row says which of two is better.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import read_paired_ranks
    >>> judged = pl.DataFrame(
    ...     {
    ...         "id": [7, 7, 7],
    ...         "one": ["a", "a", "b"],
    ...         "two": ["b", "c", "c"],
    ...         "rank1": [2, 2, 1],
    ...         "rank2": [1, 2, 2],
    ...     }
    ... )
    >>> read_paired_ranks(
    ...     judged, list="id", first="one", first_rank="rank1", second="two", second_rank="rank2"
    ... ).tiers
    Tiers(1 list, catalogue of 3 items, 2 tiers)
      7: b > {a, c}
    """
    named = {
        "list": list,
        "first": first,
        "second": second,
        "first_rank": first_rank,
        "second_rank": second_rank,
    }
    with open_table(source, format, separator) as table:
        chosen = complete(table, "paired-ranks", named)
        places = [table.find(str(chosen[part]), part) for part in named]
        table.refuse_twice(places)
        table.load(*places)
        lists = table.keys(places[0], "list")
        sides = table.sides(places[1], places[2])
        ranks = np.stack(table.in_order(places[3:], "rank"), axis=1)
        entries = _entries(table, lists, sides, ranks, places[3:])
    tiers = entries.tiers(False)
    return Rankings(tiers, np.ones(len(tiers)))


def _entries(
    table: Table, lists: Keys, sides: Sides, ranks: FloatArray, rank_columns: Sequence[int]
) -> Entries:
    """Take each item of each list once."""

    def check(wrong: BoolArray, why: Callable[[int], str]) -> None:
        if wrong.any():
            at = int(wrong.argmax())
            table.refuse(why(at), row=at // 2, at=rank_columns[at % 2])

    check(
        np.repeat(sides.first == sides.second, 2),
        lambda _: "an item is compared with itself: leave the row out.",
    )
    values = ranks.ravel()  # the first of row 0, the second of row 0, the first of row 1, …
    items = np.stack([sides.first, sides.second], axis=1).ravel()
    check(~np.isfinite(values), lambda _: "the rank is missing or infinite: give a number.")
    list_of = np.repeat(lists.codes, 2)
    _, first, same = np.unique(
        list_of * len(sides.names) + items, return_index=True, return_inverse=True
    )
    earlier = values[first][same.reshape(-1)]
    check(
        values != earlier,
        lambda at: (
            f"the item {shown(sides.names[items[at]])} has rank {values[at]:g} here and "
            f"{earlier[at]:g} in an earlier row of the same list: a list is one ranking."
        ),
    )
    kept = np.sort(first)
    catalogue = Catalogue(len(sides.names), sides.names)
    return Entries(list_of[kept], items[kept], values[kept], lists.keys, catalogue)
