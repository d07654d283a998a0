"""The rest, written out: what a list of a catalogue leaves unsaid as a tier like the others."""

from __future__ import annotations

import numpy as np
import torch

from tierrank.tiers.container import Tiers


def with_rest_written(tiers: Tiers) -> Tiers:
    """The same lists without a rest: in its place, their last tier names every other item.

    Takes memory for lists × items.

    Examples
    --------
    >>> tiers = Tiers.from_rankings([["a"], ["c", "b"]], items=["a", "b", "c"], rest="last")
    >>> with_rest_written(tiers).to_rankings()
    [['a', ('b', 'c')], ['c', 'b', 'a']]
    """
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
