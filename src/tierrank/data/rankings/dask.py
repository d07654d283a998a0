"""Rankings in parts, which stay on the workers of a Dask cluster.

A part is read where it lies, and its equal lists are counted together at once. The names that the
parts found are then put into one catalogue, and equal lists of all parts meet: each part deals its
lists out into bins by a hash, and a bin of all parts together is a part of the result. Rows of one
list that lie in several partitions meet before, by Dask's shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import torch

from tierrank.data.cluster import client_of, is_dask, parquet
from tierrank.data.rankings.container import PartedRankings, Rankings, together
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import READERS, detected, single
from tierrank.data.tables.opening import open_table
from tierrank.names import TableKind, check_table_kind
from tierrank.tiers.catalogue import Catalogue, catalogue_of, read_catalogue
from tierrank.tiers.selection import list_hashes

Part: TypeAlias = tuple[Rankings | Games, int]  # different lists, and how many there were

LOOKED_AT = 10_000  # rows of a first partition that tell what all of them hold
BINS = 2  # for every thread of the cluster


def read_parted(
    source: str | PathLike[str] | Sequence[str | PathLike[str]] | Any,
    *,
    client: Any = None,
    kind: TableKind | None = None,
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
    """
    check_table_kind(kind)
    client = client_of(client)
    frame: Any = source if is_dask(source) else parquet(source)
    named = {part: single(value) for part, value in columns.items() if value is not None}
    with open_table(frame.head(LOOKED_AT, npartitions=-1), None, None) as table:
        way = detected(table, kind, named)
    stated, names = read_catalogue(items), None
    lists = way.columns.get("list")
    if way.kind in ("items", "preferences") and lists is not None:
        if stated is None:  # in order of appearance, which a shuffle forgets
            sides = [way.columns[part] for part in _ITEMS if part in way.columns]
            names = client.map(_names_in_order, client.compute(frame[sides].to_delayed()))
        frame = frame.shuffle(on=[lists] if isinstance(lists, str) else list(lists))
    read = client.map(_read, client.compute(frame.to_delayed()), reading=(way.kind, way.columns))
    found = client.gather(client.map(_about, read))
    if stated is None:
        stated = catalogue_of(_joined([each[0] for each in found] if names is None
                                      else client.gather(names)))  # fmt: skip
    bins = max(1, BINS * sum(client.nthreads().values()))
    catalogue = client.submit(Catalogue, *stated)
    dealt = client.map(_dealt, read, catalogue=catalogue, bins=bins)
    parts = [
        client.submit(together, [client.submit(_of_bin, one, number) for one in dealt])
        for number in range(bins)
    ]
    entries = sum(client.gather(client.map(_entries, parts)))
    return PartedRankings(
        client, parts, tuple(stated.items), sum(each[1] for each in found), entries,
        any(each[2] for each in found), str(way) if way.guessed else "",
    )  # fmt: skip


_ITEMS = ("item", "winner", "loser")  # columns that name the items of lists


def _names_in_order(frame: Any) -> tuple[Any, ...]:
    """The items that a partition names, in order of first appearance."""
    return tuple(dict.fromkeys(frame.to_numpy(dtype=object).reshape(-1).tolist()))


def _joined(names: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """All names in order. What one partition takes for a number may be a word in another."""
    known = dict.fromkeys(name for part in names for name in part)
    if any(isinstance(name, str) for name in known):
        known = dict.fromkeys(map(str, known))
    return tuple(known)


def _read(frame: Any, reading: tuple[TableKind, dict[str, Any]]) -> Part | None:
    """What a partition holds, equal lists together, and how many there were; None: no rows."""
    if not len(frame):
        return None
    kind, columns = reading
    found = READERS[kind](frame, **columns)
    return found.together(), len(found)


def _about(part: Part | None) -> tuple[tuple[Any, ...], int, bool]:
    """The names, how many lists, and whether they are games."""
    if part is None:
        return (), 0, False
    return part[0].items, part[1], isinstance(part[0], Games)


def _dealt(part: Part | None, catalogue: Catalogue, bins: int) -> list[Rankings | Games | None]:
    """The lists over a catalogue, as many parts of them as there are bins, by a hash."""
    if part is None:
        return [None] * bins
    lists = _over(part[0], catalogue)
    if isinstance(lists, Games):
        at = (lists.first * 31 + lists.second) % bins
        return [lists.of(np.flatnonzero(at == number)) for number in range(bins)]
    hashed = list_hashes(lists.tiers)["a"] % np.uint64(bins)
    return [lists.of(np.flatnonzero(hashed == number)) for number in range(bins)]


def _over(lists: Rankings | Games, catalogue: Catalogue) -> Rankings | Games:
    """The same over the numbers of a catalogue."""
    number = {name: code for code, name in enumerate(catalogue.items)}
    words = any(isinstance(name, str) for name in number)
    names = [str(name) if words else name for name in lists.items]
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:
        raise ValueError(f"the item {unknown!r} is not among the items that were stated")
    code = np.array([number[name] for name in names], dtype=np.int64)
    if isinstance(lists, Games):
        first, second = code[lists.first], code[lists.second]
        return replace(lists, names=tuple(range(catalogue.size)), first=first, second=second)
    items = torch.from_numpy(code[lists.tiers.items.numpy()])
    tiers = replace(lists.tiers, items=items, n_items=catalogue.size, names=None)
    return replace(lists, tiers=tiers)


def _of_bin(dealt: list[Any], number: int) -> Any:
    return dealt[number]


def _entries(part: Rankings | Games | None) -> int:
    if part is None:
        return 0
    return 2 * len(part) if isinstance(part, Games) else len(part.tiers.items)
