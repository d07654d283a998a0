"""PrefLib files from rankings."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.data.files import without_compression, writing
from tierrank.data.rankings.preflib.checks import SUFFIXES
from tierrank.data.rankings.preflib.container import PrefLib
from tierrank.data.rankings.preflib.header import header_lines

_LISTS_AT_A_TIME = 1 << 16
ObjectArray = npt.NDArray[np.object_]


def write_preflib(preflib: PrefLib, path: str | PathLike[str]) -> None:
    """Write a PrefLib file.

    What `read_preflib` gave is written as it was: the lines of the header that are still true, in
    their order, and the orders as they were spelt. (Blanks in unusual places, empty lines and the
    line ends of Windows are not kept.) The file is written beside and renamed.

    Parameters
    ----------
    preflib
        the rankings with their header; `PrefLib.from_rankings` makes one
    path
        the file; compressed if the name ends in .gz, .xz or .bz2
    """
    path = Path(path)
    suffix = SUFFIXES.get(without_compression(path).suffix.lower())
    if suffix is not None and suffix != preflib.data_type:
        raise ValueError(
            f"{path}: the data type is {preflib.data_type}: let the name end in "
            f".{preflib.data_type}."
        )
    with writing(path) as file:
        for line in header_lines(preflib):
            file.write(f"{line}\n".encode(errors="surrogateescape"))
        for lines in _orders(preflib):
            file.write(lines.encode())


def _orders(preflib: PrefLib) -> Iterator[str]:
    """The lines of the orders, many at a time."""
    tiers = preflib.orders
    words = np.array([str(number + 1) for number in range(tiers.n_items or 0)], dtype=object)
    items, tier_offsets = tiers.items.cpu().numpy(), tiers.tier_offsets.cpu().numpy()
    list_offsets = tiers.list_offsets.cpu().numpy()
    before, after = _around_tiers(preflib)
    for start in range(0, len(tiers), _LISTS_AT_A_TIME):
        end = min(start + _LISTS_AT_A_TIME, len(tiers))
        first_tier, end_tier = int(list_offsets[start]), int(list_offsets[end])
        borders = tier_offsets[first_tier : end_tier + 1]
        pieces: ObjectArray = np.empty((int(borders[-1] - borders[0]), 3), dtype=object)
        pieces[:, 0] = ""
        pieces[:, 1] = words[items[borders[0] : borders[-1]]]
        pieces[:, 2] = preflib.style.in_ties
        pieces[borders[:-1] - borders[0], 0] = before[first_tier:end_tier]
        pieces[borders[1:] - 1 - borders[0], 2] = after[first_tier:end_tier]
        yield "".join(pieces.ravel().tolist())


def _around_tiers(preflib: PrefLib) -> tuple[ObjectArray, ObjectArray]:
    """[tiers] what stands before and behind each: braces, separators, counts and line ends."""
    tiers = preflib.orders
    list_offsets = tiers.list_offsets.cpu().numpy()
    sizes = tiers.tier_sizes.cpu().numpy()
    separator = preflib.style.between_tiers
    braced = sizes > 1
    spelt = np.array(preflib.style.braced, dtype=np.int64)
    braced[spelt[spelt < len(sizes)]] = True
    before: ObjectArray = np.where(braced, "{", "").astype(object)
    after: ObjectArray = np.where(braced, "}", "").astype(object)
    first, last = list_offsets[:-1], list_offsets[1:] - 1
    is_last = np.zeros(len(sizes), dtype=bool)
    is_last[last] = True
    if preflib.tier_categories is not None:
        before, after = _with_empty(preflib, first, last, before, after)
    after += np.where(is_last, "\n", separator).astype(object)
    counts: list[Any] = preflib.counts.tolist()
    before[first] = np.array([f"{count}: " for count in counts], dtype=object) + before[first]
    return before, after


def _with_empty(
    preflib: PrefLib, first: Any, last: Any, before: ObjectArray, after: ObjectArray
) -> tuple[ObjectArray, ObjectArray]:
    """Empty braces for the categories between two tiers of a list, and at its ends."""
    categories = preflib.tier_categories
    assert categories is not None
    separator = preflib.style.between_tiers
    left_out = np.diff(categories, prepend=-1) - 1
    left_out[first] = categories[first]
    behind = np.zeros_like(categories)
    behind[last] = len(preflib.categories) - 1 - categories[last]
    many = range(len(preflib.categories))
    ahead = np.array([f"{{}}{separator}" * n for n in many], dtype=object)
    trailing = np.array([f"{separator}{{}}" * n for n in many], dtype=object)
    return ahead[left_out] + before, after + trailing[behind]
