"""Rankings as PrefLib writes them: every order once with its count, and nothing left unwritten."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from tierrank.data.rankings.container import Rankings
from tierrank.tiers import Tiers


def distinct_orders(rankings: Rankings) -> Rankings:
    """Count equal lists together; they stand where the first of them stood."""
    tiers = rankings.tiers
    items, tier_ends = tiers.items.numpy(), tiers.tier_offsets.numpy()
    tier_of_entry = np.repeat(np.arange(len(tier_ends) - 1), np.diff(tier_ends))
    in_order = items[np.lexsort((items, tier_of_entry))]  # a tie has no order
    list_ends = tiers.list_offsets.numpy()
    sizes = np.diff(tier_ends)
    numbers: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    code = np.empty(len(tiers), dtype=np.int64)
    for i, (start, end) in enumerate(pairwise(list_ends)):
        key = (in_order[tier_ends[start] : tier_ends[end]].tobytes(), sizes[start:end].tobytes())
        code[i] = numbers.setdefault(key, len(numbers))
        if len(numbers) > len(first):
            first.append(i)
    if len(first) == len(tiers):
        return rankings
    weights = np.bincount(code, weights=rankings.weights).astype(np.float64)
    return Rankings(tiers[torch.tensor(first)], weights)


def with_rest_written(tiers: Tiers) -> Tiers:
    """The same lists with the rest as a tier like the others."""
    if not tiers.rest:
        return tiers
    n_lists, n_items = len(tiers), tiers.n_items or 0
    lengths = tiers.lengths.numpy()
    written_list = np.repeat(np.arange(n_lists), lengths)
    in_rest = np.ones((n_lists, n_items), dtype=bool)
    in_rest[written_list, tiers.items.numpy()] = False
    rest_list, rest_items = np.nonzero(in_rest)
    order = np.argsort(np.append(written_list, rest_list), kind="stable")
    rest_size = n_items - lengths
    per_list = np.diff(tiers.list_offsets.numpy())
    # Behind the last tier of every list that does not name all items, insert one.
    sizes = np.insert(
        tiers.tier_sizes.numpy(),
        tiers.list_offsets.numpy()[1:][rest_size > 0],
        rest_size[rest_size > 0],
    )
    return Tiers(
        items=torch.from_numpy(np.append(tiers.items.numpy(), rest_items)[order]),
        tier_offsets=torch.from_numpy(np.append(0, np.cumsum(sizes))),
        list_offsets=torch.from_numpy(np.append(0, np.cumsum(per_list + (rest_size > 0)))),
        n_items=n_items,
        names=tiers.names,
    )
