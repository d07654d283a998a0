"""Two columns of names that are names of the same things."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.data.rankings.columns import Fetched, Keys
from tierrank.tiers.catalogue import catalogue_of


class Sides(NamedTuple):
    """The two sides of every row, by number, and their names in the order of `catalogue_of`."""

    first: IntArray  # [rows]
    second: IntArray  # [rows]
    names: tuple[Any, ...]


def read_sides(fetched: Fetched, first: int, second: int) -> Sides:
    """Read both columns: integers if all names of both are whole numbers, else strings."""
    columns = [fetched.keys(position, "side") for position in (first, second)]
    whole = all(column.keys.dtype.kind == "i" for column in columns)
    codes = np.empty(2 * fetched.rows, dtype=np.int64)
    number: dict[Any, int] = {}
    for i, column in enumerate(columns):
        names = column.keys.tolist() if whole else map(str, column.keys.tolist())
        numbers = [number.setdefault(name, len(number)) for name in names]
        codes[i::2] = np.array(numbers, dtype=np.int64)[column.codes]
    both = Keys(codes, _objects(list(number))).renumbered()  # a row's first side before its second
    catalogue = catalogue_of(both.keys.tolist())
    if catalogue.names is None:  # the names are their numbers
        numbered = both.keys.astype(np.int64)[both.codes]
        return Sides(numbered[::2], numbered[1::2], tuple(catalogue.items))
    return Sides(both.codes[::2], both.codes[1::2], catalogue.names)


def _objects(values: list[Any]) -> AnyArray:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
