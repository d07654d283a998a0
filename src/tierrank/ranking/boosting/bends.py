"""Diagonals of Hessians, compiled: for losses made of log-sum-exps in stages, and of pairs.

Rows are sorted by list and tier, best first; `tier_offsets` are ranges of rows, `list_offsets`
ranges of tiers.
"""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from tierrank.compilation import announce, compiled, digest

SOURCES = digest([Path(__file__)])
BRESLOW, EFRON, ONE_DRAW = 0, 1, 2  # how often, and from what, a tier's items are drawn
RANKNET, RAO_KUPPER, DAVIDSON = 0, 1, 2

announce(__file__, SOURCES, "compiling second derivatives for this CPU, this once")


def jit(function: Any) -> Any:
    """Compile without the GIL, so that threads can share the lists."""
    return compiled(function, sources=SOURCES, nogil=True, error_model="numpy")


@jit
def stage_bends(
    rows: Any, tier_offsets: Any, list_offsets: Any, kind: int, lo: int, hi: int, lse: Any, out: Any
) -> None:
    """∂²/∂w² of Σ_m Σ_l log A_ml over lists lo:hi, for the sums A that items are drawn from.

    With R_m all of tier m and below, A_ml is Σ_{R_m} e^w: once for each of the tier's n items
    (`BRESLOW`: PL-LB), or once (`ONE_DRAW`: PMOP-FD); or less (l/n) Σ_{S_m} e^w for l < n
    (`EFRON`). An item with the share s of A adds s (1 − s). Relative to lse(R_m), that is
    e^w Σ 1/A − e^2w Σ 1/A², and the two sums are carried down, as the lse shrinks.
    """
    for i in range(lo, hi):
        first, last = list_offsets[i], list_offsets[i + 1] - 1
        running = -np.inf
        for m in range(last, first - 1, -1):
            largest = running
            for row in rows[tier_offsets[m] : tier_offsets[m + 1]]:
                largest = max(largest, row)
            total = exp(running - largest)
            for row in rows[tier_offsets[m] : tier_offsets[m + 1]]:
                total += exp(row - largest)
            running = largest + log(total)
            lse[m] = running
        owed, owed_square = 0.0, 0.0
        for m in range(first, last + 1):
            start, stop = tier_offsets[m], tier_offsets[m + 1]
            size = stop - start
            own, own_square, low, low_square = 0.0, 0.0, 0.0, 0.0
            if m < last:
                tier_share = 0.0
                for row in rows[start:stop]:
                    tier_share += exp(row - lse[m])
                for drawn in range(1 if kind == ONE_DRAW else size):
                    gone = drawn / size if kind == EFRON else 0.0
                    left = 1.0 - gone * tier_share
                    own += (1.0 - gone) / left
                    own_square += ((1.0 - gone) / left) ** 2
                    low += 1.0 / left
                    low_square += 1.0 / left**2
            for place in range(start, stop):
                share = exp(rows[place] - lse[m])
                out[place] = share * (owed + own) - share * share * (owed_square + own_square)
            if m < last:
                shrink = exp(lse[m + 1] - lse[m])
                owed = (owed + low) * shrink
                owed_square = (owed_square + low_square) * shrink * shrink


@jit
def sigmoid_slope(x: float) -> Any:
    """σ(x) (1 − σ(x))."""
    e = exp(-abs(x))
    return e / (1.0 + e) ** 2


@jit
def pair_bend(kind: int, d: float, tied: bool, parameter: float) -> Any:
    """∂²loss/∂d² of a pair of items, the first of which is not worse; d is how far it is above."""
    if kind == RANKNET:
        return 0.0 if tied else sigmoid_slope(d)
    if kind == RAO_KUPPER:  # the parameter is log θ
        slope = sigmoid_slope(d - parameter)
        return slope + sigmoid_slope(d + parameter) if tied else slope
    # Davidson: the variance of ½, −½ and 0 with weights e^{d/2}, e^{−d/2} and e^β
    half = 0.5 * abs(d)
    largest = max(half, parameter)
    up, down, tie = exp(half - largest), exp(-half - largest), exp(parameter - largest)
    total = up + down + tie
    mean = 0.5 * (up - down) / total
    return 0.25 * (up + down) / total - mean * mean


@jit
def pair_bends(
    rows: Any, tier_offsets: Any, list_offsets: Any, kind: int, parameter: float, lo: int, hi: int,
    out: Any,
) -> None:  # fmt: skip
    """∂²/∂w² of a sum over the pairs of lists lo:hi."""
    for i in range(lo, hi):
        end = tier_offsets[list_offsets[i + 1]]
        out[tier_offsets[list_offsets[i]] : end] = 0.0
        for m in range(list_offsets[i], list_offsets[i + 1]):
            tier_end = tier_offsets[m + 1]
            for a in range(tier_offsets[m], tier_end):
                for b in range(tier_end if kind == RANKNET else a + 1, end):
                    bend = pair_bend(kind, rows[a] - rows[b], b < tier_end, parameter)
                    out[a] += bend
                    out[b] += bend
