"""Whether peers of one name compute one thing: value and gradient beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from contenders import Contender, ours
from lists import best_first
from measure import Column, Table, error


class Difference(NamedTuple):
    """The largest between a peer's entries and ours, relative to our largest entry."""

    value: float
    gradient: float


def differences(peers: Iterable[Contender]) -> dict[str, Difference]:
    """Of the peers that should equal an objective, on 100 lists of 10 items without ties.

    The items lie in their order, so that it does not matter whether a peer sorts them first.
    """
    lists = best_first(100, *[1] * 10)
    found = {}
    for peer in peers:
        if peer.same_as and peer.limit(10):
            mine, theirs = (one.build(lists)() for one in (ours(peer.same_as), peer))
            found[f"{peer.name} and {peer.same_as}"] = Difference(*map(_relative, mine, theirs))
    return found


def _relative(mine: Any, theirs: Any) -> float:
    mine, theirs = (np.ravel(part.tolist()) for part in (mine, theirs))  # from torch or jax
    return float(np.abs(theirs - mine).max() / np.abs(mine).max())


def table(found: Mapping[str, Difference]) -> Table:
    columns = [Column("float32, no ties"), *(Column(name, error) for name in Difference._fields)]
    rows = [[name, *difference] for name, difference in found.items()]
    return Table("Do peers agree? Largest differences, relative", columns, rows)
