"""Checks of the fields of a `Tiers`, and what makes two of them equal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tierrank.tiers.arrays import range_numbers

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers


def check_fields(tiers: Tiers) -> None:
    """Refuse fields that do not fit together; cheap beside building them."""
    items, tier_offsets, list_offsets = tiers.items, tiers.tier_offsets, tiers.list_offsets
    for name, tensor in (
        ("items", items),
        ("tier_offsets", tier_offsets),
        ("list_offsets", list_offsets),
    ):
        if tensor.dtype != torch.int64 or tensor.dim() != 1 or tensor.device != items.device:
            raise ValueError(
                f"{name} must be a 1-D int64 tensor on the device of the items, "
                f"not {tensor.dtype} with shape {tuple(tensor.shape)} on {tensor.device}."
            )
    if items.is_meta:  # a tensor without values: only its shape is known
        return
    _check_offsets("tier_offsets", tier_offsets, len(items), at_least=1)
    # A list without a written tier still has the rest.
    _check_offsets("list_offsets", list_offsets, len(tier_offsets) - 1, at_least=not tiers.rest)
    n_lists = len(list_offsets) - 1
    if tiers.keys is not None and len(tiers.keys) != n_lists:
        raise ValueError(f"there are {len(tiers.keys)} keys for {n_lists} lists.")
    if tiers.labels is not None and tiers.labels.shape != (len(tier_offsets) - 1,):
        raise ValueError(
            f"there are {len(tier_offsets) - 1} tiers, but labels of shape "
            f"{tuple(tiers.labels.shape)}: give one a tier."
        )
    _check_kind(tiers, n_lists)


def _check_kind(tiers: Tiers, n_lists: int) -> None:
    if (tiers.score_shape is None) == (tiers.n_items is None):
        raise ValueError("give score_shape (items are rows) or n_items (a catalogue), not both.")
    if tiers.score_shape is None:
        size = tiers.n_items or 0
        if tiers.names is not None and len(tiers.names) != size:
            raise ValueError(f"there are {len(tiers.names)} names for {size} catalogue items.")
        if size == 0 and n_lists:
            raise ValueError(f"the catalogue is empty, but there are {n_lists} lists.")
    else:
        size = math.prod(tiers.score_shape)
        if tiers.rest or tiers.names is not None:
            raise ValueError("rest and names are for catalogues, not for items that are rows.")
        if len(tiers.score_shape) == 1 and size != len(tiers.items):
            raise ValueError(f"{size} rows, but {len(tiers.items)} of them in lists.")
        if len(tiers.score_shape) == 2 and tiers.score_shape[0] != n_lists:
            raise ValueError(f"{n_lists} lists in padded scores of shape {tiers.score_shape}.")
    if len(tiers.items):
        low, high = (int(bound) for bound in torch.stack(tiers.items.aminmax()).tolist())
        if low < 0 or high >= size:
            raise ValueError(f"items are {low} to {high}, outside of 0 to {size - 1}.")


def _check_offsets(name: str, offsets: Tensor, end: int, at_least: int) -> None:
    borders = offsets.cpu().numpy()  # by torch, each of these looks costs several times as much
    if len(borders) == 0 or borders[0] != 0 or borders[-1] != end:
        raise ValueError(f"{name} must begin with 0 and end with {end}.")
    sizes = borders[1:] - borders[:-1]
    if len(sizes) and sizes.min() < at_least:
        at = int(sizes.argmin())
        raise ValueError(
            f"{name}[{at}:{at + 2}] = {borders[at : at + 2].tolist()}: "
            f"offsets must grow{' by at least 1' if at_least else ', or stay'}."
        )


def same_tiers(one: Tiers, two: Tiers) -> bool:
    """Whether both have the same lists with the same tiers, seen as sets of items."""
    if (
        (one.score_shape, one.n_items, one.rest) != (two.score_shape, two.n_items, two.rest)
        or one.names != two.names
        or (one.keys is None) != (two.keys is None)
    ):
        return False
    if one.keys is not None and two.keys is not None and not np.array_equal(one.keys, two.keys):
        return False
    two = two.to(one.device)
    if not torch.equal(one.tier_offsets, two.tier_offsets) or not torch.equal(
        one.list_offsets, two.list_offsets
    ):
        return False
    return torch.equal(one.items, two.items) or torch.equal(_canonical(one), _canonical(two))


def _canonical(tiers: Tiers) -> Tensor:
    """The pairs (tier, item) as sorted integers."""
    tier = range_numbers(tiers.tier_sizes)
    size = int(tiers.items.max()) + 1
    return (tier * size + tiers.items).sort().values
