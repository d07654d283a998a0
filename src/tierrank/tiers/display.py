"""Tiers written out: as a short text that shows what was understood, as labels, as rankings."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tierrank.tiers.arrays import repeat

if TYPE_CHECKING:
    from tierrank.tiers.container import Tiers

LISTS = 2  # shown
ITEMS = 5  # shown of a tie
WIDTH = 80  # about, of a list's line
NAME = 24  # characters of a name


def describe(tiers: Tiers) -> str:
    """Give the `repr`: a line of counts, then the first lists."""
    n_lists = len(tiers)
    if tiers.score_shape is None:
        shape = f"catalogue of {_count(tiers.n_items or 0, 'item')}"
    elif len(tiers.score_shape) == 1:
        shape = _count(tiers.score_shape[0], "row")
    else:
        shape = f"padded to {tiers.score_shape[1]:,}"
    facts = [_count(n_lists, "list"), shape]
    if n_lists:
        low, high = (int(n) for n in (tiers.n_tiers.min(), tiers.n_tiers.max()))
        span = f"{low:,} to {high:,} tiers" if low < high else _count(high, "tier")
        facts.append(span + (" a list" if n_lists > 1 else ""))
    if tiers.device.type != "cpu":
        facts.append(f"on {tiers.device}")
    lines = [f"Tiers({', '.join(facts)})"]
    lines += [f"  {_title(tiers, i)}: {_line(tiers, i)}" for i in range(min(n_lists, LISTS))]
    if n_lists > LISTS:
        lines.append(f"  ... {n_lists - LISTS:,} more")
    return "\n".join(lines)


def _title(tiers: Tiers, number: int) -> str:
    return (
        f"list {number}"
        if tiers.keys is None
        else _shown(repr(tiers.keys[number : number + 1].tolist()[0]))
    )


def _line(tiers: Tiers, number: int) -> str:
    """One list: a > {b, c} > the other 7, cut at about the width of a line."""
    first, end = (int(i) for i in tiers.list_offsets[number : number + 2])
    base = 0
    if tiers.score_shape is not None and len(tiers.score_shape) == 2:
        base = number * tiers.score_shape[1]  # show the column
    parts: list[str] = []
    for tier in range(first, end):
        if sum(map(len, parts)) + 3 * len(parts) > WIDTH:
            parts.append(f"... {_count(end - tier, 'more tier')}")
            break
        parts.append(_tier(tiers, tier, base))
    written = int(tiers.lengths[number])
    if tiers.rest and written < (tiers.n_items or 0):
        others = (tiers.n_items or 0) - written
        parts.append(f"the other {others:,}" if written else f"all {_count(others, 'item')}")
    return " > ".join(parts)


def _tier(tiers: Tiers, tier: int, base: int) -> str:
    start, end = (int(i) for i in tiers.tier_offsets[tier : tier + 2])
    shown = [
        _name(tiers, item - base) for item in tiers.items[start : min(end, start + ITEMS)].tolist()
    ]
    if end - start == 1:
        return shown[0]
    if end - start > ITEMS:
        shown.append(f"... {end - start - ITEMS:,} more")
    return "{" + ", ".join(shown) + "}"


def _name(tiers: Tiers, item: int) -> str:
    name: Any = item if tiers.names is None else tiers.names[item]
    return _shown(str(name) or repr(name))


def _shown(text: str) -> str:
    text = " ".join(text.split())  # a name may hold line breaks
    return text if len(text) <= NAME else text[: NAME - 3] + "..."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


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
