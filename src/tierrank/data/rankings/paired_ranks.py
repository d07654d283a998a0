"""Rankings that are written as pairs: in every row two items of a list, each with its rank."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tierrank.data.files import expands
from tierrank.data.rankings.columns import Keys, open_table
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.detection import complete
from tierrank.data.rankings.grouped import Entries
from tierrank.data.rankings.sides import Sides, read_sides
from tierrank.data.tables.assembly import FloatArray
from tierrank.data.tables.reader import TableFormat
from tierrank.data.text import shown
from tierrank.tiers.arrays import preview, to_numpy
from tierrank.tiers.catalogue import Catalogue, encode, plain_list
from tierrank.tiers.labels import group_rows


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
        fetched = table.fetch(*places)
        lists = fetched.keys(places[0], "list")
        sides = read_sides(fetched, places[1], places[2])
        ranks = np.stack(fetched.in_order(places[3:], "rank"), axis=1)
        return _rankings(lists, sides, ranks, lambda row, side, what: fetched.refuse(
            row, places[3 + side], what
        ))  # fmt: skip


def rankings_from_paired_ranks(
    list: Any, first: Any, first_rank: Any, second: Any, second_rank: Any
) -> Rankings:
    """Do the same as `read_paired_ranks` with five columns that are at hand, as arrays or lists.

    Parameters
    ----------
    list
        [rows] which rows belong together: numbers or strings
    first, second
        [rows] the two items, of any type that can be a name
    first_rank, second_rank
        [rows] their ranks

    Examples
    --------
    >>> rankings_from_paired_ranks([7, 7], ["a", "a"], [2, 2], ["b", "c"], [1, 2])
    Rankings(1 list of weight 1, 3 items)
      1 × b > {a, c}
    """
    ranks = np.stack([_numbers(first_rank, "first_rank"), _numbers(second_rank, "second_rank")], 1)
    rows = len(ranks)
    if not rows:
        raise ValueError("there are no rows: give at least one.")
    columns = [plain_list(first), plain_list(second)]
    for what, names in zip(("first", "second"), columns, strict=True):
        if len(names) != rows:
            raise ValueError(f"{what} has {len(names)} names for {rows} ranks: give one a row.")
    names = [name for pair in zip(*columns, strict=True) for name in pair]
    codes, catalogue = encode(names, 2 * np.arange(rows + 1), None)
    lists = Keys(*group_rows(to_numpy(list, "list"), rows))

    def refuse(row: int, side: int, what: str) -> NoReturn:
        raise ValueError(f"row {row}: {what}")

    sides = Sides(codes[::2], codes[1::2], tuple(catalogue.items))
    return _rankings(lists, sides, ranks, refuse)


def _numbers(values: Any, what: str) -> FloatArray:
    found = to_numpy(values, what)
    if found.ndim != 1 or (found.dtype.kind not in "iuf" and len(found)):
        raise ValueError(f"{what} must be numbers, one a row, not {preview(values)}.")
    return found.astype(np.float64)


def _rankings(
    lists: Keys, sides: Sides, ranks: FloatArray, refuse: Callable[[int, int, str], NoReturn]
) -> Rankings:
    """Take each item of each list once; `refuse` has a row, which side it concerns, and why."""

    def check(wrong: npt.NDArray[np.bool_], why: Callable[[int], str]) -> None:
        if wrong.any():
            at = int(wrong.argmax())
            refuse(at // 2, at % 2, why(at))

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
    tiers = Entries(list_of[kept], items[kept], values[kept], lists.keys, catalogue).tiers(False)
    return Rankings(tiers, np.ones(len(tiers)))
