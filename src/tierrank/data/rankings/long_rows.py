"""The rows of a table in long form: which list, which item, which place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from tierrank._types import IntArray
from tierrank.data.rankings.columns import Fetched, Keys
from tierrank.data.rankings.grouped import Entries, without_repeats
from tierrank.data.rankings.missing_ranks import ranks_and_actions
from tierrank.data.tables.assembly import FloatArray
from tierrank.data.text import shown
from tierrank.tiers.catalogue import Catalogue, catalogue_of
from tierrank.tiers.labels import group_rows

_BETWEEN_KEYS = " / "


class LongColumns(NamedTuple):
    """Positions of the columns; `lower` is whether a lower value is better, as for ranks."""

    lists: tuple[int, ...]
    item: int
    value: int
    lower: bool
    weight: int | None

    @property
    def what(self) -> str:
        """How an error calls the value."""
        return "rank" if self.lower else "score"

    def all(self) -> tuple[int, ...]:
        """Every column that is read."""
        weight = () if self.weight is None else (self.weight,)
        return (*self.lists, self.item, self.value, *weight)


def read_rows(
    fetched: Fetched,
    columns: LongColumns,
    stated: Catalogue | None,
    without_rank: Mapping[str, str],
    keep_best: bool,
) -> tuple[Entries, FloatArray]:
    """Give the entries and [lists] weights; every fault is said with the line that has it."""
    values, dropped = ranks_and_actions(fetched, columns.value, columns.what, without_rank)
    if not columns.lower:
        np.negative(values, out=values, where=np.isfinite(values))  # who is last stays at infinity
    every_list = _lists(fetched, columns.lists)
    weights = _weights(fetched, columns.weight, every_list)
    names = fetched.keys(columns.item, "item")
    rows = np.flatnonzero(~dropped)
    if not len(rows):
        fetched.refuse(None, columns.value, f"no row has a {columns.what}: nothing is left.")

    def refuse(at: int, what: str) -> NoReturn:
        fetched.refuse(int(rows[at]), columns.item, what)

    lists = every_list.of(rows)
    items, catalogue = _items(names.of(rows), stated, refuse)
    entries = Entries(lists.codes, items, values[rows], lists.keys, catalogue)
    entries = without_repeats(entries, keep_best, refuse)
    return entries, weights[rows[lists.first_rows()]]


def _lists(fetched: Fetched, positions: Sequence[int]) -> Keys:
    """Number the lists in order of first appearance, and give what they are called."""
    columns = [fetched.keys(at, "list") for at in positions]
    if len(columns) == 1:
        return columns[0]
    together = columns[0].codes
    for column in columns[1:]:
        together = together * len(column.keys) + column.codes
        together = group_rows(together, fetched.rows)[0]  # small again, so that none overflows
    lists = Keys(together, np.empty(int(together.max()) + 1, dtype=object))
    first = lists.first_rows()
    words = [column.keys[column.codes[first]].tolist() for column in columns]
    lists.keys[:] = [_BETWEEN_KEYS.join(map(str, parts)) for parts in zip(*words, strict=True)]
    same, often = Counter(lists.keys.tolist()).most_common(1)[0]
    if often > 1:
        fetched.refuse(
            None,
            positions[0],
            f"two lists would be called {shown(same)}: rename one, without {_BETWEEN_KEYS!r}.",
        )
    return lists


def _weights(fetched: Fetched, position: int | None, lists: Keys) -> FloatArray:
    """[rows] the weight of the row's list, which all its rows agree on."""
    if position is None:
        return np.ones(fetched.rows)
    values = fetched.weights(position)
    fetched.check(
        values != values[lists.first_rows()][lists.codes],
        position,
        "the weight differs from that of an earlier row of the same list: it is the list's, so "
        "give all its rows the same.",
    )
    return values


def _items(
    names: Keys, stated: Catalogue | None, refuse: Callable[[int, str], NoReturn]
) -> tuple[IntArray, Catalogue]:
    """Number the items: as the catalogue says, or as `catalogue_of` does."""
    found = tuple(names.keys.tolist())
    stated = catalogue_of(found) if stated is None else stated
    if any(isinstance(name, str) for name in stated.names or ()):
        found = tuple(map(str, found))  # words that all happen to be numbers
    number = {name: i for i, name in enumerate(stated.items)}
    numbers = np.fromiter((number.get(name, -1) for name in found), np.int64, len(found))
    if numbers.min() < 0:
        unknown = int(numbers.argmin())
        at = int((names.codes == unknown).argmax())
        refuse(at, f"the item {shown(found[unknown])} is not in the catalogue that items= gives.")
    return numbers[names.codes], stated
