"""Tiers from preferences: pairs of a winner and a loser, an acyclic graph a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor

from tierrank.tiers.arrays import (
    IntArray,
    Parts,
    offsets,
    preview,
    run_starts,
    stable_order,
    to_numpy,
)
from tierrank.tiers.catalogue import (
    Catalogue,
    encode,
    encode_array,
    entry_keys,
    flatten,
    lists_of,
    read_catalogue,
)
from tierrank.tiers.graph import CycleError, Graphs, exact_tiers, layer_tiers

_HINT = (
    "Give one sequence of (winner, loser) pairs a list; "
    "for the pairs of a single list write [pairs]."
)
_SHOWN = 10  # items of a cycle in an error message


def parts_from_preferences(pairs: Any, items: Any, method: str) -> Parts:
    """Build the fields of `Tiers.from_preferences`, which says what the arguments mean."""
    if method not in ("exact", "layers"):
        raise ValueError(f'method must be "exact" or "layers", not {method!r}.')
    codes, borders, catalogue = _encode_pairs(pairs, read_catalogue(items))
    keys = entry_keys(codes, borders, catalogue.size)
    graphs, nodes = _graphs(keys, len(borders) - 1, catalogue.size)
    try:
        tier = exact_tiers(graphs) if method == "exact" else layer_tiers(graphs)
    except CycleError as error:
        raise ValueError(_cycle_message(nodes[error.cycle], catalogue)) from None
    n_tiers = int(tier.max()) + 1 if len(tier) else 0
    order = stable_order(tier, n_tiers)
    if order is not None:
        nodes, tier = nodes[order], tier[order]
    tier_offsets = offsets(np.bincount(tier, minlength=n_tiers))
    # Every list is a range of nodes and its borders are borders of tiers, too.
    return Parts(
        items=nodes % max(catalogue.size, 1),
        tier_offsets=tier_offsets,
        list_offsets=np.searchsorted(tier_offsets, graphs.node_offsets),
        n_items=catalogue.size,
        names=catalogue.names,
    )


def _encode_pairs(pairs: Any, stated: Catalogue | None) -> tuple[IntArray, IntArray, Catalogue]:
    """Winner, loser, winner, loser, ... of all lists; the ranges of the lists; the catalogue."""
    if isinstance(pairs, Iterable) and not isinstance(pairs, str | bytes):
        # Tensors and data frames, of numbers or of names, are taken as numpy arrays.
        pairs = [
            to_numpy(one, "pairs") if isinstance(one, Tensor) or hasattr(one, "to_numpy") else one
            for one in pairs
        ]
    if isinstance(pairs, list) and pairs and all(map(_is_integer_table, pairs)):
        borders = 2 * offsets([len(table) for table in pairs])
        _refuse_empty(borders)
        ends = np.concatenate([table.astype(np.int64) for table in pairs]).reshape(-1)
        codes, catalogue = encode_array(ends, borders, stated)
        return codes, borders, catalogue
    lists = lists_of(pairs, "preference", _HINT)
    borders = 2 * offsets([len(one) for one in lists])
    _refuse_empty(borders)
    flat = flatten(lists)
    if any(issubclass(kind, np.ndarray | Tensor) for kind in set(map(type, flat))):
        flat = [pair.tolist() if isinstance(pair, np.ndarray | Tensor) else pair for pair in flat]
    _refuse_no_pair(flat, borders)
    codes, catalogue = encode(flatten(flat), borders, stated)
    return codes, borders, catalogue


def _is_integer_table(one: Any) -> bool:
    return (
        isinstance(one, np.ndarray)
        and one.ndim == 2
        and one.shape[1] == 2
        and one.dtype.kind in "iu"
    )


def _refuse_empty(borders: IntArray) -> None:
    sizes = np.diff(borders)
    if not sizes.all():
        raise ValueError(
            f"list {int(np.argmin(sizes != 0))}: there are no preferences. Leave the list out."
        )


def _refuse_no_pair(flat: list[Any], borders: IntArray) -> None:
    if all(issubclass(kind, tuple | list) for kind in set(map(type, flat))) and (
        set(map(len, flat)) <= {2}
    ):
        return
    at = next(i for i, p in enumerate(flat) if not isinstance(p, tuple | list) or len(p) != 2)
    number = int(np.searchsorted(borders, 2 * at, side="right")) - 1
    raise ValueError(
        f"list {number}: {preview(flat[at])} at place {at - borders[number] // 2} is not a pair "
        f"(winner, loser). {_HINT}"
    )


def _graphs(keys: IntArray, n_lists: int, size: int) -> tuple[Graphs, IntArray]:
    """Number the items that occur, list by list, and give the distinct edges between them.

    Also gives the key (list, item) of every node.
    """
    nodes, ends = np.unique(keys, return_inverse=True)
    above, below = ends.reshape(-1, 2).T
    edges = np.sort(above * len(nodes) + below)  # np.unique would hash, which takes longer
    edges = edges[run_starts(edges)]
    graphs = Graphs(
        node_offsets=np.searchsorted(nodes, np.arange(n_lists + 1, dtype=np.int64) * size),
        above=edges // max(len(nodes), 1),
        below=edges % max(len(nodes), 1),
    )
    return graphs, nodes


def _cycle_message(cycle: IntArray, catalogue: Catalogue) -> str:
    """Name the list and the cycle, from the item that comes first in the catalogue."""
    items = np.roll(cycle % catalogue.size, -int(np.argmin(cycle))).tolist()
    items.append(items[0])
    shown = [str(catalogue.name(item)) for item in items]
    if len(shown) > _SHOWN + 1:
        half = _SHOWN // 2
        hidden = len(shown) - 2 * half
        shown = [*shown[:half], f"... {hidden} more ...", *shown[-half:]]
    return (
        f"list {cycle[0] // catalogue.size}: the preferences form a cycle: {' > '.join(shown)}. "
        "Leave out at least one of them."
    )
