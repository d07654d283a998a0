"""Tiers built: from labels; over a catalogue from rankings, positives or preferences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank._native import kahn
from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import (
    Parts,
    as_keys,
    checked_lengths,
    device_of,
    group_rows,
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

# Labels: rows with one grade each, higher is better ----------------------------------------------

# Integer labels in a range up to this are ranked by subtraction, others by sorting them first.
_NARROW = 1 << 16


def parts_from_labels(labels: Any, qid: Any, lengths: Any, mask: Any, ignore_label: Any) -> Parts:
    """Build the fields of `Tiers.from_labels`, which says what the arguments mean."""
    values = _numeric(labels)
    if values.ndim == 2:
        parts = _padded(values, qid, lengths, _real_items(values, mask, ignore_label))
    elif values.ndim == 1:
        if mask is not None or ignore_label is not None:
            name = "mask" if mask is not None else "ignore_label"
            raise ValueError(
                f"{name} is for 2-D labels: for flat labels, leave the rows out instead."
            )
        parts = _flat(values, qid, lengths)
    else:
        raise ValueError(
            f"labels have shape {values.shape}: give flat rows (1-D), or one list a row (2-D)."
        )
    return parts._replace(device=device_of(labels))


def _flat(values: AnyArray, qid: Any, lengths: Any) -> Parts:
    if qid is not None and lengths is not None:
        raise ValueError("qid and lengths both say which rows form a list: give one of them.")
    rows = len(values)
    keys: AnyArray | None = None
    if qid is not None:
        lists, keys = group_rows(as_keys(qid), rows)
        n_lists = len(keys)
    elif lengths is not None:
        sizes = checked_lengths(to_numpy(lengths, "lengths"), rows, "labels")
        lists, n_lists = list_of_entry(offsets(sizes)), len(sizes)
    else:
        lists, n_lists = np.zeros(rows, dtype=np.int64), min(rows, 1)
    _check_finite(values, None, (rows,))
    parts = _sort_into_tiers(values, lists, n_lists, None)
    return parts._replace(score_shape=(rows,), keys=keys)


def _real_items(values: AnyArray, mask: Any, ignore_label: Any) -> AnyArray | None:
    """Which of 2-D labels are no padding; None for all."""
    if mask is None and ignore_label is None:
        _refuse_padding(values)
        return None
    real = np.ones(values.shape, bool) if mask is None else to_numpy(mask, "mask")
    if real.shape != values.shape or real.dtype != np.bool_:
        raise ValueError(
            f"mask must be boolean with the labels' shape {values.shape} (True is a real "
            f"item), not {real.dtype} with shape {real.shape}."
        )
    if ignore_label is None:
        return real
    if not isinstance(ignore_label, int | float | np.number):
        raise ValueError(f"ignore_label is the label of padding, a number, not {ignore_label!r}.")
    return np.asarray(real & (values != ignore_label))


def _refuse_padding(values: AnyArray) -> None:
    """Others pad with −1; taken for a label it would be a worst tier, and nothing would tell."""
    if not values.size or values.min() != -1:
        return
    padding = values == -1
    if padding.all() or not (values[~padding] >= 0).all():
        return
    row, column = np.unravel_index(int(np.argmax(padding)), values.shape)
    raise ValueError(
        f"labels[{row}, {column}] is -1 ({int(padding.sum())} such labels in all), and the others "
        "are 0 or more: that looks like padding. Leave it out with ignore_label=-1, or give mask= "
        "(True is a real item; all True if -1 is a label like the others)."
    )


def _padded(values: AnyArray, qid: Any, lengths: Any, real: AnyArray | None) -> Parts:
    if qid is not None or lengths is not None:
        raise ValueError(
            "with 2-D labels each row is a list, so qid and lengths have no place: give a mask for "
            "the padding (with lengths: mask = np.arange(width) < lengths[:, None])."
        )
    n_lists, width = values.shape
    if real is None:
        sizes = np.full(n_lists, width)
        flat, entries = values.ravel(), None
    else:
        sizes = real.sum(axis=1)
        entries = np.flatnonzero(real)
        flat = values.ravel()[entries]
    if n_lists and not sizes.all():
        raise ValueError(
            f"labels[{int(np.argmin(sizes != 0))}]: the list has no items"
            f"{'' if real is None else ' (all are masked)'}. Leave the row out."
        )
    _check_finite(flat, entries, values.shape)
    parts = _sort_into_tiers(flat, list_of_entry(offsets(sizes)), n_lists, entries)
    return parts._replace(score_shape=(n_lists, width))


def _sort_into_tiers(
    values: AnyArray, lists: IntArray, n_lists: int, entries: IntArray | None
) -> Parts:
    """Sort by list, then by label with the best first, then by position."""
    rank, n_ranks = _descending_rank(values)
    if n_lists * n_ranks >= 1 << 62:  # pragma: no cover (more than 2 billion rows)
        raise ValueError(f"{n_lists} lists with {n_ranks} distinct labels are too many.")
    rank += lists * n_ranks
    key = rank
    order = stable_order(key, n_lists * n_ranks)
    if order is None:
        order = np.arange(len(key), dtype=np.int64)
    else:
        key = key[order]
    starts = run_starts(key)
    tiers_per_list = np.bincount(key[starts] // max(n_ranks, 1), minlength=n_lists)
    return Parts(
        items=order if entries is None else entries[order],
        tier_offsets=np.append(starts, len(key)),
        list_offsets=offsets(tiers_per_list),
        labels=values[order[starts]].astype(np.float64),
    )


def _descending_rank(values: AnyArray) -> tuple[IntArray, int]:
    """Rank of each label among all labels, the highest is 0, and the number of ranks."""
    if not len(values):
        return np.zeros(0, dtype=np.int64), 1
    low, high = values.min(), values.max()
    # Exact in Python's integers; grades read as floats (0.0, 1.0, ...) are ranked as integers too.
    narrow = int(high) - int(low) < _NARROW and abs(int(low)) < 1 << 52
    if narrow and (values.dtype.kind != "f" or bool(np.all(values == np.trunc(values)))):
        rank = values.astype(np.int64)
        np.subtract(int(high), rank, out=rank)
        return rank, int(high) - int(low) + 1
    distinct, ascending = np.unique(values, return_inverse=True)
    rank = len(distinct) - 1 - ascending.reshape(-1).astype(np.int64, copy=False)
    return rank, len(distinct)


def _numeric(labels: Any) -> AnyArray:
    values = to_numpy(labels, "labels")
    if values.dtype.kind == "O":  # pandas' nullable columns, lists with None: missing becomes NaN
        try:
            if hasattr(labels, "to_numpy"):
                values = labels.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"labels must be numbers, not {preview(values.ravel()[:3].tolist())}."
            ) from None
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"labels must be integers, floats or booleans (higher is better), not {values.dtype}."
        )
    return values


def _check_finite(values: AnyArray, entries: IntArray | None, shape: tuple[int, ...]) -> None:
    if values.dtype.kind != "f":
        return
    finite = np.isfinite(values)
    if finite.all():
        return
    at = int(np.argmin(finite))
    place = np.unravel_index(at if entries is None else int(entries[at]), shape)
    where = ", ".join(str(int(i)) for i in place)
    kind = "NaN" if np.isnan(values[at]) else "infinite"
    cure = "leave the row out" if len(shape) == 1 else "mask it out"
    raise ValueError(
        f"labels[{where}] is {kind} ({len(values) - int(finite.sum())} such labels in all): "
        f"{cure}, or give it a finite label."
    )


# Rankings -----------------------------------------------------------------------------------------

_RANKING = (
    "A ranking is a sequence of items, best first, and a tie in it is a tuple or a set; "
    "for a single ranking write [ranking]."
)


def is_tie(entry: object) -> bool:
    """Whether an entry of a ranking stands for tied items, and is not a name itself."""
    return isinstance(entry, tuple | set | frozenset)


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


# Graphs: the ordered partitions of acyclic ones, many at once, in linear time --------------------


class CycleError(Exception):
    """A graph has a cycle: `cycle` has its nodes, each above the next, the last above the first."""

    def __init__(self, cycle: list[int]) -> None:
        super().__init__(cycle)
        self.cycle = cycle


class Graphs(NamedTuple):
    """Several graphs side by side; nodes are numbered through, graph by graph."""

    node_offsets: IntArray  # [graphs + 1] ranges of nodes
    above: IntArray  # [edges] sorted, and no edge twice
    below: IntArray  # [edges]


def exact_tiers(graphs: Graphs) -> IntArray:
    """Number the tiers of the finest ordered partition that only claims what paths say.

    Put the nodes in any topological order. Whatever set of nodes is above all others is a prefix
    of it, and a prefix is one if every sink u of the prefix has an edge to every source v of what
    follows: no path from u to v could pass through another node. With the prefix of size p,

        u is such a sink     for  position(u) + 1  <= p <=  first successor's position of u
        v is such a source   for  last predecessor's position of v + 1  <= p <=  position(v)

    and an edge joins the two for the p in both ranges. Counting all three over p takes
    differences and one running sum; p is a cut if edges = sinks * sources.

    Returns
    -------
    [nodes] number of the tier of each node, numbered through graph by graph, best first
    """
    order, _ = _topological(graphs)
    n_nodes = len(order)
    position = np.empty_like(order)
    position[order] = np.arange(n_nodes, dtype=np.int64)
    sizes = np.diff(graphs.node_offsets)
    first_below = np.repeat(graphs.node_offsets[1:], sizes)
    last_above = np.repeat(graphs.node_offsets[:-1] - 1, sizes)
    np.minimum.at(first_below, graphs.above, position[graphs.below])
    np.maximum.at(last_above, graphs.below, position[graphs.above])

    sinks = _count_ranges(position + 1, first_below, n_nodes)
    sources = _count_ranges(last_above + 1, position, n_nodes)
    start, end = last_above[graphs.below] + 1, first_below[graphs.above]
    meet = start <= end
    edges = _count_ranges(start[meet], end[meet], n_nodes)
    is_cut = edges == sinks * sources
    is_cut[graphs.node_offsets] = True
    tier_at = np.cumsum(is_cut[:n_nodes], dtype=np.int64) - 1
    return tier_at[position]


def layer_tiers(graphs: Graphs) -> IntArray:
    """Number the layers: a node's layer is the number of edges of the longest path that ends there.

    Returns
    -------
    [nodes] number of the layer of each node, numbered through graph by graph, best first
    """
    _, layer = _topological(graphs)
    if not len(layer):
        return layer
    depths = np.maximum.reduceat(layer, graphs.node_offsets[:-1]) + 1
    return layer + np.repeat(offsets(depths)[:-1], np.diff(graphs.node_offsets))


def _count_ranges(starts: IntArray, ends: IntArray, n: int) -> IntArray:
    """For each of 0 .. n, how many of the ranges start <= p <= end hold it."""
    change = np.bincount(starts, minlength=n + 2) - np.bincount(ends + 1, minlength=n + 2)
    return np.cumsum(change[: n + 1], dtype=np.int64)


def _topological(graphs: Graphs) -> tuple[IntArray, IntArray]:
    """Give a topological order, graph by graph, and the longest path that ends in each node."""
    n_nodes = int(graphs.node_offsets[-1])
    edge_offsets = offsets(np.bincount(graphs.above, minlength=n_nodes))
    waiting = np.bincount(graphs.below, minlength=n_nodes).astype(np.int64)
    order = np.empty(n_nodes, dtype=np.int64)
    layer = np.empty(n_nodes, dtype=np.int64)
    # This pass is sequential: numpy has no words for it.
    stuck = kahn(graphs.node_offsets, edge_offsets, graphs.below, waiting, order, layer)
    if stuck >= 0:
        raise CycleError(_find_cycle(graphs, waiting))
    return order, layer


def _find_cycle(graphs: Graphs, waiting: IntArray) -> list[int]:
    """Walk upwards among the nodes that Kahn's algorithm left: there is always one above."""
    left = waiting > 0
    among = left[graphs.above] & left[graphs.below]
    one_above = np.full(len(waiting), -1, dtype=np.int64)
    one_above[graphs.below[among]] = graphs.above[among]
    # Later graphs were not visited, so start in the first that has a node left.
    node = int(graphs.below[among][0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = int(one_above[node])
    return path[seen[node] :][::-1]
