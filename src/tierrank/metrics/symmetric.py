"""Mean products over subsets of tied rows, which the expected ERR is made of.

For a_1 … a_m in [0, 1], A_j is the mean of the products over all subsets of j of them: the
elementary symmetric polynomial e_j / C(m, j). One more number a changes it by

    A_j  ←  (m − j)/m · A_j  +  j/m · a · A_{j−1}          (m counts the new one)

a convex combination, so that nothing overflows or cancels. Maclaurin's inequality A_j ≤ A_1^j
says after which j all that is left is nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tierrank._types import IntArray
from tierrank.metrics.inputs import FloatArray
from tierrank.metrics.ranked import Ranked
from tierrank.tiers.arrays import list_of_entry, offsets

_NOTHING = 1e-18
# Numbers in a table of one block of ties: small enough for the processor's cache.
_BLOCK = 1 << 15


class MeanProducts(NamedTuple):
    """[rows] A_j and A_{j+1} at the j-th place (from 0) of every tie."""

    before: FloatArray
    after: FloatArray


def mean_products(going_on: FloatArray, ranked: Ranked, k: int | None) -> MeanProducts:
    """The A_j of every tie of [rows] numbers; those that no measure at k needs are left at 1."""
    mean = ranked.tie_sums(going_on) / ranked.tie_sizes
    depth = _depth(mean, ranked, k)
    # A tie of one row has A_0 = 1 and A_1 = a; where all are 1, so is every A_j.
    result = MeanProducts(np.ones_like(going_on), np.ones_like(going_on))
    single = ranked.tie_starts[ranked.tie_sizes == 1]
    result.after[single] = going_on[single]
    wide = np.flatnonzero((ranked.tie_sizes > 1) & (depth > 0) & (mean < 1))
    wide = wide[np.argsort(-ranked.tie_sizes[wide], kind="stable")]
    for block in _blocks(wide, depth):
        starts, sizes = ranked.tie_starts[block], ranked.tie_sizes[block]
        table = _table(going_on, starts, sizes, int(depth[block].max()))
        reach = np.minimum(sizes, len(table) - 1)
        which = list_of_entry(offsets(reach))
        place = np.arange(len(which)) - np.repeat(offsets(reach)[:-1], reach)
        row = starts[which] + place
        result.before[row] = table[place, which]
        result.after[row] = table[place + 1, which]
    return result


def _depth(mean: FloatArray, ranked: Ranked, k: int | None) -> IntArray:
    """[ties] after how many places the products no longer matter."""
    with np.errstate(divide="ignore"):
        vanished = np.ceil(np.log(_NOTHING) / np.log(np.minimum(mean, 1 - 1e-15)))
    depth: IntArray = np.minimum(vanished, ranked.tie_sizes).astype(np.int64)
    if k is not None:
        depth = np.minimum(depth, np.maximum(k + 1 - ranked.rank[ranked.tie_starts], 0))
    return depth


def _blocks(ties: IntArray, depth: IntArray) -> list[IntArray]:
    """Cut the ties, largest first, so that each block's table is small."""
    cells = np.cumsum(depth[ties] + 1)
    return np.split(ties, np.flatnonzero(np.diff(cells // _BLOCK)) + 1) if len(ties) else []


def _table(going_on: FloatArray, starts: IntArray, sizes: IntArray, depth: int) -> FloatArray:
    """[depth + 1, ties] A_0 … A_depth of ties whose sizes descend; 0 beyond the size."""
    # The longer side lies side by side in memory: numpy's inner loops run along it.
    table = np.zeros((depth + 1, len(starts)), order="C" if len(starts) > depth else "F")
    table[0] = 1.0
    places = np.arange(depth + 1)[:, None]
    active = np.searchsorted(-sizes, -np.arange(1, int(sizes[0]) + 1), side="right")
    for m, n_active in enumerate(active.tolist(), start=1):
        top = min(m, depth)
        a = going_on[starts[:n_active] + m - 1]
        share = places[1 : top + 1] / m
        old, lower = table[1 : top + 1, :n_active], table[:top, :n_active]
        table[1 : top + 1, :n_active] = old * (1 - share) + lower * a * share
    return table
