"""The types of PrefLib files, and which lists they may hold."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from tierrank.tiers import Tiers

DataType = Literal["soc", "soi", "toc", "toi", "cat"]
DATA_TYPES: tuple[DataType, ...] = get_args(DataType)
SUFFIXES: dict[str, DataType] = {f".{data_type}": data_type for data_type in DATA_TYPES}

_STRICT = ("soc", "soi")
_COMPLETE = ("soc", "toc")


def known_type(text: str) -> DataType | None:
    """The type of this name, in either case, or None."""
    return SUFFIXES.get(f".{text.lower()}")


def type_of(tiers: Tiers) -> DataType:
    """The narrowest type that holds these lists: strict or with ties, complete or not."""
    strict = bool((tiers.tier_sizes.numpy() == 1).all())
    if bool((tiers.lengths.numpy() == tiers.n_items).all()):
        return "soc" if strict else "toc"
    return "soi" if strict else "toi"


def type_fault(tiers: Tiers, data_type: DataType) -> tuple[int, str] | None:
    """The first list that a file of this type may not hold, and what is wrong with it."""
    if data_type in _STRICT:
        tied = np.flatnonzero(tiers.tier_sizes.numpy() > 1)
        if len(tied):
            number = int(np.searchsorted(tiers.list_offsets.numpy(), tied[0], side="right")) - 1
            return number, (
                f"there is a tie, but {data_type} is for strict orders: make it "
                f"{'toc' if data_type == 'soc' else 'toi'}."
            )
    if data_type in _COMPLETE:
        missing = (tiers.n_items or 0) - tiers.lengths.numpy()
        if missing.any():
            number = int((missing != 0).argmax())
            return number, (
                f"{missing[number]} of {tiers.n_items} alternatives are missing, but {data_type} "
                f"is for complete orders: make it {'soi' if data_type == 'soc' else 'toi'}."
            )
    return None
