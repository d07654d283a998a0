"""Rankings in parts, which stay on the workers of a Dask cluster.

A part is read where it lies, and its equal lists are counted together at once. The names that the
parts found are then put into one catalogue, and equal lists of all parts meet: each part deals its
lists out into bins by a hash, and a bin of all parts together is a part of the result. Rows of one
list that lie in several partitions meet before, by Dask's shuffle.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray
from tierrank.data.cluster import client_of, gathered, parquet
from tierrank.data.rankings.container import (
    NothingThere,
    Packed,
    PartedRankings,
    Rankings,
    dealt,
    same_kind,
    together,
)
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import READERS, detected, named_parts
from tierrank.data.tables.opening import frame_table, open_table
from tierrank.errors import Argument, ArgumentError
from tierrank.names import TableKind, check_table_kind
from tierrank.tiers.arrays import is_dask
from tierrank.tiers.catalogue import Catalogue, catalogue_of, read_catalogue

LOOKED_AT = 10_000  # rows of a first partition that tell what all of them hold
BINS = 2  # for every thread of the cluster, and more where lists are many:
BIN = 2_000_000  # entries of a bin, about


class About(NamedTuple):
    """What a partition has: names of items, lists, entries of the different ones; or games."""

    items: AnyArray
    seen: int
    entries: int
    of_games: bool


def read_parted(
    source: str | PathLike[str] | Sequence[str | PathLike[str]] | Any,
    *,
    client: Any = None,
    format: str = "auto",
    kind: TableKind | None = None,
    strict: bool = False,
    max_expansion: float | None = None,
    items: Any = None,
    **columns: Any,
) -> PartedRankings:
    """Read rankings where they lie: files of Parquet, or a DataFrame of Dask.

    Parameters
    ----------
    source
        a Dask DataFrame; or files of Parquet, which all workers can open: a path, a pattern such
        as "votes/part-?.parquet", a folder, or several of them
    client
        of the cluster; None: the one that is there
    kind, columns
        as in `tierrank.data.read_rankings`. What is not named is found in the first rows.
    items
        the catalogue; None: the names that there are, as in `tierrank.data.read_rankings`
    format, strict, max_expansion
        of files that are no Parquet: refused
    """
    check_table_kind(kind)
    for name, given in (
        ("format", format not in ("auto", "parquet")), ("strict", strict),
        ("max_expansion", max_expansion is not None),
        ("separator", columns.get("separator") is not None),
        ("keep", bool(columns.get("keep"))), ("keep_items", bool(columns.get("keep_items"))),
    ):  # fmt: skip
        if given:
            what = " is not for a cluster, whose workers read Parquet: leave it out."
            if name.startswith("keep"):
                what = ": lists on a cluster have no columns beside them. Read one file, without it"
            raise ArgumentError(Argument(name), what)
    client = client_of(client)
    frame: Any = source if is_dask(source) else parquet(source)
    named = named_parts(columns)
    with open_table(frame.head(LOOKED_AT, npartitions=-1), None, None) as table:
        way = detected(table, kind, named)
        if way.kind == "pass-fail":
            table.refuse("a matrix of passes is read in one process: give it without a cluster.")
    stated, names = read_catalogue(items), None
    lists = way.columns.get("list")
    if way.kind in ("items", "preferences", "paired-ranks") and lists is not None:
        called = [lists] if isinstance(lists, str) else list(lists)
        if not _whole(client, frame[called]):
            if stated is None:  # in order of appearance, which a shuffle forgets
                sides = [way.columns[part] for part in _ITEMS if part in way.columns]
                names = client.map(_names_in_order, client.compute(frame[sides].to_delayed()))
            frame = frame.shuffle(on=called)
    read = client.map(_read, client.compute(frame.to_delayed()), reading=(way.kind, way.columns))
    found = [each for each in gathered(client, client.map(_about, read)) if each is not None]
    if stated is None:
        known = (
            [each.items.tolist() for each in found] if names is None else gathered(client, names)
        )
        stated = catalogue_of(_joined(known))
    catalogue = client.submit(Catalogue, *stated)
    threads = sum(client.nthreads().values())
    bins = max(1, BINS * threads, sum(each.entries for each in found) // BIN)
    dealt = client.map(_dealt, read, catalogue=catalogue, bins=bins)
    del read
    parts = [
        client.submit(_together, [client.submit(_of_bin, one, number) for one in dealt])
        for number in range(bins)
    ]
    del dealt
    entries = sum(gathered(client, client.map(_entries, parts)))
    return PartedRankings(
        client, parts, tuple(stated.items), sum(each.seen for each in found), entries,
        any(each.of_games for each in found), str(way) if way.guessed else "",
    )  # fmt: skip


_ITEMS = ("item", "winner", "loser", "first", "second")  # columns that name the items of lists


def _whole(client: Any, lists: Any) -> bool:
    """Whether no list lies in two partitions: from the first to the last name, none overlap."""
    if len(lists.columns) > 1:
        return False
    ends = gathered(client, client.map(_ends, client.compute(lists.to_delayed())))
    try:
        in_order = sorted(each for each in ends if each is not None)
    except TypeError:  # numbers and words
        return False
    return all(one[1] < two[0] for one, two in itertools.pairwise(in_order))


def _ends(frame: Any) -> tuple[Any, Any] | None:
    """The least and the largest name of a partition's lists; None: there is no row."""
    names = frame.iloc[:, 0].dropna()
    return (names.min(), names.max()) if len(names) else None


def _names_in_order(frame: Any) -> tuple[Any, ...]:
    """The items that a partition names, in order of first appearance."""
    return tuple(dict.fromkeys(frame.to_numpy(dtype=object).reshape(-1).tolist()))


def _joined(names: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """All names in order."""
    return tuple(dict.fromkeys(same_kind(dict.fromkeys(name for part in names for name in part))))


def _read(frame: Any, reading: tuple[TableKind, dict[str, Any]]) -> tuple[Packed, About] | None:
    """What a partition holds, equal lists together; None: nothing."""
    if not len(frame):
        return None
    kind, columns = reading
    table = frame_table(frame)
    table.is_part = True
    try:
        found = READERS[kind](table, **columns)
    except NothingThere:
        return None
    lists = found.together()
    items = np.empty(len(lists.items), dtype=object)
    items[:] = lists.items
    whole = all(type(name) is int for name in lists.items)
    about = About(items.astype(np.int64) if whole else items, len(found), lists.entries,
                  isinstance(lists, Games))  # fmt: skip
    return lists.packed(), about


def _about(part: tuple[Packed, About] | None) -> About | None:
    return None if part is None else part[1]


def _dealt(
    part: tuple[Packed, About] | None, catalogue: Catalogue, bins: int
) -> Sequence[Packed | None]:
    """The lists over a catalogue, as many parts of them as there are bins, by a hash."""
    if part is None:
        return [None] * bins
    lists = _over(part[0].unpacked(), part[1].items.tolist(), catalogue)
    return dealt(lists, bins)


def _together(parts: list[Packed | None]) -> Packed | None:
    """All of them, equal ones together."""
    found = together([part.unpacked() for part in parts if part is not None])
    return None if found is None else found.packed()


def _over(lists: Rankings | Games, names: Sequence[Any], catalogue: Catalogue) -> Rankings | Games:
    """The same over the numbers of a catalogue."""
    number = {name: code for code, name in enumerate(catalogue.items)}
    words = any(isinstance(name, str) for name in catalogue.names or ())
    called = list(map(str, names)) if words else names
    unknown = next((name for name in called if name not in number), None)
    if unknown is not None:
        raise ValueError(f"the item {unknown!r} is not among the items that were stated")
    return lists.recoded(np.array([number[name] for name in called]), catalogue.size)


def _of_bin(dealt: list[Any], number: int) -> Any:
    return dealt[number]


def _entries(part: Packed | None) -> int:
    return 0 if part is None else part.entries
