"""Rankings that are written as pairs: in every row two items of a list, each with its rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from tierrank._types import BoolArray, FloatArray
from tierrank.data.files import expands
from tierrank.data.rankings.container import Entries, Rankings
from tierrank.data.rankings.usual_names import complete
from tierrank.data.tables.opening import Keys, Sides, Table, TableFormat, open_table
from tierrank.data.text import shown
from tierrank.tiers.catalogue import Catalogue


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
    source, format, separator
        as for `read_long_rankings`
    list
        the column that says which rows belong together
    first, second
        the columns of the two items
    first_rank, second_rank
        the columns of their ranks. What is not named is found by the usual names, such as
        rankingID, system1Id, system2Id, system1rank and system2rank.
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it

    Examples
    --------
    >>> import polars as pl
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
