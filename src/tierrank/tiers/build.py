"""Tiers over a catalogue: from rankings, from a sparse matrix of positives, from preferences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import (
    Parts,
    device_of,
    list_of_entry,
    offsets,
    preview,
    range_at,
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
from tierrank.tiers.display import is_tie
from tierrank.tiers.graph import CycleError, Graphs, exact_tiers, layer_tiers

# Rankings -----------------------------------------------------------------------------------------

_RANKING = (
    "A ranking is a sequence of items, best first, and a tie in it is a tuple or a set; "
    "for a single ranking write [ranking]."
)


def parts_from_rankings(rankings: Any, items: Any, rest: str) -> Parts:
    """Build the fields of `Tiers.from_rankings`, which says what the arguments mean."""
    if rest not in ("absent", "last"):
        raise ValueError(f'rest must be "absent" or "last", not {rest!r}.')
    stated = read_catalogue(items)
    strict = _integer_table(rankings)
    if strict is not None:
        per_list = np.full(len(strict), strict.shape[1])
        tier_sizes = np.ones(strict.size, dtype=np.int64)
        borders = offsets(per_list)
        codes, catalogue = encode_array(strict.ravel(), borders, stated)
    else:
        lists = lists_of(rankings, "ranking", _RANKING)
        per_list = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        names, tier_sizes = _untie(flatten(lists), offsets(per_list))
        borders = offsets(tier_sizes)[offsets(per_list)]
        codes, catalogue = encode(names, borders, stated)
    if rest == "absent" and not per_list.all():
        raise ValueError(
            f"list {int(np.argmin(per_list != 0))}: the ranking is empty. Leave it out."
        )
    tier_offsets = offsets(tier_sizes)
    _refuse_twice(codes, borders, tier_offsets, catalogue)
    return Parts(
        items=codes,
        tier_offsets=tier_offsets,
        list_offsets=offsets(per_list),
        n_items=catalogue.size,
        rest=rest == "last",
        names=catalogue.names,
        device=device_of(rankings),
    )


def _integer_table(rankings: Any) -> AnyArray | None:
    """A 2-D array of integers (a data frame of them as well), or None."""
    if not isinstance(rankings, Tensor | np.ndarray) and not hasattr(rankings, "to_numpy"):
        return None
    table = to_numpy(rankings, "rankings")
    return table if table.ndim == 2 and table.dtype.kind in "iu" else None


def _untie(entries: list[Any], borders: IntArray) -> tuple[list[Any], IntArray]:
    """Give the names of all items, and the size of every tier."""
    if not any(issubclass(kind, tuple | set | frozenset) for kind in set(map(type, entries))):
        return entries, np.ones(len(entries), dtype=np.int64)
    ties = [_in_order(entry) if is_tie(entry) else (entry,) for entry in entries]
    sizes = np.fromiter(map(len, ties), dtype=np.int64, count=len(ties))
    if not sizes.all():
        at = int(np.argmin(sizes != 0))
        number = range_at(borders, at)
        raise ValueError(
            f"list {number}: the tie at place {at - borders[number]} is empty. Leave it out."
        )
    return flatten(ties), sizes


def _in_order(tie: Any) -> Any:
    """Sort a set: its own order changes from one run of Python to the next."""
    if isinstance(tie, tuple):
        return tie
    try:
        return sorted(tie)
    except TypeError:
        return sorted(tie, key=lambda name: (type(name).__name__, repr(name)))


def _refuse_twice(
    codes: IntArray, borders: IntArray, tier_offsets: IntArray, catalogue: Catalogue
) -> None:
    keys = entry_keys(codes, borders, catalogue.size)
    in_order = np.sort(keys)
    same = in_order[1:] == in_order[:-1]
    if not same.any():
        return
    key = in_order[int(np.argmax(same))]
    tiers = np.searchsorted(tier_offsets, np.flatnonzero(keys == key), side="right")
    problem = "twice in one tie" if tiers[0] == tiers[1] else "in two tiers"
    raise ValueError(
        f"list {key // catalogue.size}: item {preview(catalogue.name(int(key % catalogue.size)))} "
        f"is {problem}. Name each item once."
    )


# Positives ----------------------------------------------------------------------------------------


def parts_from_positives(matrix: Any) -> Parts:
    """Build the fields of `Tiers.from_positives`, which says what the argument means."""
    csr = _canonical_csr(matrix)
    n_lists, n_items = csr.shape
    if n_lists and not n_items:
        raise ValueError("the matrix has no columns: there are no items to rank.")
    row_offsets = csr.indptr.astype(np.int64)
    columns = csr.indices.astype(np.int64)  # a copy, always: the matrix remains the user's
    values: AnyArray = csr.data
    _check_values(values, columns, row_offsets)
    if not values.all():
        positive = values != 0
        row_offsets = offsets(np.bincount(list_of_entry(row_offsets)[positive], minlength=n_lists))
        columns = columns[positive]
    # One tier for every row that has a positive, so their starts are the tiers' borders.
    has_positive = np.diff(row_offsets) > 0
    return Parts(
        items=columns,
        tier_offsets=np.append(row_offsets[:-1][has_positive], len(columns)),
        list_offsets=offsets(has_positive),
        n_items=int(n_items),
        rest=True,
        device=device_of(matrix),
    )


def _canonical_csr(matrix: Any) -> Any:
    """Rows of sorted columns, each stored once; a new matrix unless it is so already."""
    from scipy import sparse  # takes a while to import, so only where it is used

    if isinstance(matrix, Tensor) and matrix.layout != torch.strided:
        matrix = _from_torch(matrix, sparse)
    if not sparse.issparse(matrix):
        raise ValueError(
            f"from_positives takes a sparse matrix, not {type(matrix).__name__}: "
            "wrap a dense one in scipy.sparse.csr_array(matrix)."
        )
    if matrix.ndim != 2:
        raise ValueError(f"the matrix must be [lists, items], not of shape {matrix.shape}.")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"the matrix must hold real numbers or booleans, not {matrix.dtype}.")
    if matrix.format == "csr" and matrix.has_canonical_format:
        return matrix
    # Widened, or the sum of what is stored twice could overflow and seem negative; and not by
    # astype, which first sums what is stored twice, slowly, in the matrix of the user.
    wide = np.result_type(matrix.dtype, np.int64)
    if matrix.format in ("csr", "csc"):
        csr = matrix.tocsr(copy=True)
        csr.data = csr.data.astype(wide)
    else:
        coo = matrix.tocoo()
        csr = sparse.csr_array((coo.data.astype(wide), (coo.row, coo.col)), shape=matrix.shape)
    csr.sum_duplicates()
    return csr


def _from_torch(tensor: Tensor, sparse: Any) -> Any:
    shape = tuple(tensor.shape)
    tensor = tensor.detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):  # not known to numpy, or to scipy
        tensor = tensor.float()
    if tensor.layout == torch.sparse_coo and tensor.dense_dim() == 0 and tensor.dim() == 2:
        index = tensor._indices().numpy()  # as stored: scipy sums what is stored twice
        return sparse.coo_array((tensor._values().numpy(), (index[0], index[1])), shape=shape)
    if tensor.layout == torch.sparse_csr and tensor.dim() == 2:
        pieces = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        return sparse.csr_array(tuple(piece.numpy() for piece in pieces), shape=shape)
    if tensor.layout == torch.sparse_csc and tensor.dim() == 2:
        pieces = (tensor.values(), tensor.row_indices(), tensor.ccol_indices())
        return sparse.csc_array(tuple(piece.numpy() for piece in pieces), shape=shape)
    raise ValueError(
        f"a sparse tensor with layout {tensor.layout} and shape {shape} is not a sparse "
        "[lists, items] matrix: convert it with .to_sparse_csr()."
    )


def _check_values(values: AnyArray, columns: IntArray, row_offsets: IntArray) -> None:
    if values.dtype.kind in "bu" or not len(values):
        return
    if values.min() >= 0 and np.isfinite(values.max()):  # false for NaN as well
        return
    at = int(np.argmax(~((values >= 0) & np.isfinite(values))))
    raise ValueError(
        f"row {range_at(row_offsets, at)}, column {columns[at]}: the value is {values[at]}. A "
        "positive must be a finite number above zero: drop the entry, or mark it as you mean it."
    )


# Preferences --------------------------------------------------------------------------------------

_PREFERENCES = (
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
    lists = lists_of(pairs, "preference", _PREFERENCES)
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
    number = range_at(borders, 2 * at)
    raise ValueError(
        f"list {number}: {preview(flat[at])} at place {at - borders[number] // 2} is not a pair "
        f"(winner, loser). {_PREFERENCES}"
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
