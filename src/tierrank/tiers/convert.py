"""From tiers back to labels and to rankings."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tierrank.tiers.ragged import repeat

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers


def labels_of(tiers: Tiers) -> Tensor:
    """Number the tiers of each list from the bottom, in the shape of the scores."""
    if tiers.score_shape is None:
        raise ValueError(
            f"labels for every list and item would be a dense array of {len(tiers)} by "
            f"{tiers.n_items}: use to_rankings() for Tiers over a catalogue."
        )
    n_tiers = tiers.list_offsets.diff()
    from_bottom = repeat(tiers.list_offsets[1:] - 1, n_tiers)
    from_bottom -= torch.arange(len(from_bottom), device=tiers.device)
    labels = torch.full(tiers.score_shape, -1, dtype=torch.int64, device=tiers.device)
    labels.view(-1)[tiers.items] = repeat(from_bottom, tiers.tier_sizes)
    return labels


def rankings_of(tiers: Tiers) -> list[list[Any]]:
    """Write the tiers of each list out, best first."""
    items: list[Any] = tiers.items.tolist()
    if tiers.names is not None:
        items = list(map(tiers.names.__getitem__, items))
    borders = tiers.tier_offsets.tolist()
    lists = tiers.list_offsets.tolist()
    written = [
        items[start] if end - start == 1 and not is_tie(items[start]) else tuple(items[start:end])
        for start, end in pairwise(borders)
    ]
    return [written[start:end] for start, end in pairwise(lists)]


def is_tie(entry: object) -> bool:
    """Whether an entry of a ranking stands for tied items, and is not a name itself."""
    return isinstance(entry, tuple | set | frozenset)
