"""Sums over pairs of a list, compiled for the CPU: value and slopes in one pass, in tiles.

A pair is an item i and an item j further down its list, with x = w_j − w_i. Each kind of pair is
a function of x and one parameter, and gives (loss, ∂loss/∂x, ∂loss/∂parameter). A loss is a sum
of positive parts, so that no digits are lost, wherever the scores and the parameter lie.

What runs once a pair is in the scores' own kind of float. After a tile, of at most ROWS items i
and COLUMNS items j, the sums go over to float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from tierrank.compilation import compiled, digest
from tierrank.plackett_luce.kernels import elementary
from tierrank.plackett_luce.kernels.elementary import (
    ELEMENTWISE,
    FLOAT32,
    FLOAT64,
    LN2,
    exp,
    for_both,
)

SOURCES = digest([Path(__file__), Path(elementary.__file__)])
jit = partial(compiled, sources=SOURCES, nogil=True, error_model="numpy", fastmath=ELEMENTWISE)
# `reassoc` vectorises sums, and is for nothing else: it would turn (w_j − w_i) + c into
# w_j + (c − w_i), which for scores of 1e4 leaves few digits of a float32.
SUMS: Any = {"error_model": "numpy", "fastmath": ELEMENTWISE | {"reassoc"}}
# a pair's function is too long for LLVM to inline it by itself, and a call is not vectorised
OPTIONS: Any = {**elementary.OPTIONS, "forceinline": True}

ROWS, COLUMNS = 64, 512

# Loops run to a multiple of LANES, so that none ends in a slow remainder: over whatever stands
# behind the range, times 0.
LANES = 8


# log(1 + x) ------------------------------------------------------------------------------------
#
# For 0 ≤ x ≤ 2, with all digits of a small x. With 1 + x = 2^e (1 + f), e = 0 or 1,
# log(1 + f) = 2 atanh(z), z = f/(2 + f), |z| ≤ 1/5: z times a polynomial in u = z² (Chebyshev
# fits; relative errors of 1e-19 and 2e-9 before rounding).


def _float64_atanh(u):
    p = 0.13859266262922756
    p = p * u + 0.13170842135182226
    p = p * u + 0.15391304916792625
    p = p * u + 0.18181658708249215
    p = p * u + 0.22222224448051128
    p = p * u + 0.2857142855401201
    p = p * u + 0.40000000000068175
    p = p * u + 0.6666666666666656
    return p * u + 2.0


def _float32_atanh(u):
    p = np.float32(0.30437402613105163)
    p = p * u + np.float32(0.3995257315084188)
    p = p * u + np.float32(0.6666704915197339)
    return p * u + np.float32(1.9999999952020506)


ATANH = {
    np.float64: register_jitable(**OPTIONS)(_float64_atanh),
    np.float32: register_jitable(**OPTIONS)(_float32_atanh),
}


def log1p_and_inverse(x):
    """log(1 + x) and 1/(1 + x)."""
    raise NotImplementedError("for compiled code")


@for_both(log1p_and_inverse)
def _log1p_and_inverse(kind):
    half, one, two, three, ln2, nothing = (kind.real(c) for c in (0.5, 1, 2, 3, LN2, 0))
    atanh = ATANH[kind.real]

    def implementation(x):
        large = x > half
        f = x - one if large else x  # this and the next are doubled if e = 1
        f_and_two = x + three if large else x + two
        total = one + x
        q = one / (total * f_and_two)  # the one division for both results
        z = f * total * q
        return z * atanh(z * z) + (ln2 if large else nothing), f_and_two * q

    return implementation


# Kinds of pairs --------------------------------------------------------------------------------


def softplus(x):
    """log(1 + e^x) and its slope."""
    raise NotImplementedError("for compiled code")


@for_both(softplus)
def _softplus(kind):
    nothing = kind.real(0)

    def implementation(x):
        e = exp(-abs(x))
        log1p, inverse = log1p_and_inverse(e)
        return max(x, nothing) + log1p, inverse if x > nothing else e * inverse

    return implementation


@register_jitable(**OPTIONS)
def rao_kupper_win(own, other, c):
    """−log P(i above j) = softplus(x + c), with c = log θ; RankNet is c = 0."""
    loss, slope = softplus((other - own) + c)
    return loss, slope, slope


@register_jitable(**OPTIONS)
def rao_kupper_tie(own, other, c):
    """−log P(tie) + log(1 − θ^−2) = softplus(x − c) + softplus(−x − c)."""
    x = other - own
    loss, slope = softplus(x - c)
    mirrored, back = softplus(-x - c)
    return loss + mirrored, slope - back, -(slope + back)


def for_pairs(declared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Overload a function of a pair by what a maker makes of that kind of float."""

    def register(maker: Callable[..., Any]) -> Callable[..., Any]:
        @overload(declared, jit_options=OPTIONS)
        def choose(own, other, beta):
            return maker((FLOAT32 if own == types.float32 else FLOAT64).real)

        return maker

    return register


def davidson(own, other, beta):
    """What wins and ties share: log total, P(i above j), P(j above i), P(tie), and |x|/2 − β.

    total = (e^(x/2) + e^(−x/2) + v) / e^m is in [1, 3], m being the largest of ±x/2 and β = log v.
    """
    raise NotImplementedError("for compiled code")


@for_pairs(davidson)
def _davidson(real):
    half, nothing = real(0.5), real(0)

    def implementation(own, other, beta):
        x = other - own
        a = half * abs(x)
        lead = a - beta
        second = exp(-abs(lead))
        smallest = exp(-(a + max(a, beta)))
        log_total, inverse = log1p_and_inverse(second + smallest)
        favourite = inverse if lead > nothing else inverse * second
        tie = inverse * second if lead > nothing else inverse
        outsider = inverse * smallest
        i_above = outsider if x > nothing else favourite
        j_above = favourite if x > nothing else outsider
        return log_total, i_above, j_above, tie, lead

    return implementation


def davidson_win(own, other, beta):
    """−log P(i above j) = log total + max(β − |x|/2, 0) + max(x, 0)."""
    raise NotImplementedError("for compiled code")


@for_pairs(davidson_win)
def _davidson_win(real):
    half, nothing = real(0.5), real(0)

    def implementation(own, other, beta):
        log_total, _, j_above, tie, lead = davidson(own, other, beta)
        loss = log_total + (max(-lead, nothing) + max(other - own, nothing))
        return loss, j_above + half * tie, tie

    return implementation


def davidson_tie(own, other, beta):
    """−log P(tie) = log total + max(|x|/2 − β, 0)."""
    raise NotImplementedError("for compiled code")


@for_pairs(davidson_tie)
def _davidson_tie(real):
    half, nothing = real(0.5), real(0)

    def implementation(own, other, beta):
        log_total, i_above, j_above, _, lead = davidson(own, other, beta)
        loss = log_total + max(lead, nothing)
        return loss, half * (j_above - i_above), -(i_above + j_above)

    return implementation


# Sums ------------------------------------------------------------------------------------------


def along_row(pair, own, others, counts, parameter, pull):
    """Sums over the pairs of one i with a range of j; each ∂/∂x is added to `pull` as well."""
    raise NotImplementedError("for compiled code")


@overload(along_row, jit_options=SUMS)
def _along_row(pair, own, others, counts, parameter, pull):
    def implementation(pair, own, others, counts, parameter, pull):
        loss = own - own
        slope = loss
        by_parameter = loss
        for k in range(len(counts)):
            parts = pair(own, others[k], parameter)
            one_slope = counts[k] * parts[1]
            loss += counts[k] * parts[0]
            slope += one_slope
            by_parameter += counts[k] * parts[2]
            pull[k] += one_slope
        return loss, slope, by_parameter

    return implementation


def over_rows(pair: Callable[..., Any]) -> Callable[..., Any]:
    """Compile the sums over pairs of this kind."""

    def sums(scores, start, stop, lo, hi, parameter, loss, by_parameter, gradient):
        """Add up the pairs of items i = lo … hi − 1, each with j = start[i] … stop[i] − 1.

        `scores` has LANES numbers more than there are items. `start` never falls. `loss` and
        `by_parameter` are set, by item; `gradient` is added to, and its entry k is item lo + k.
        """
        counts = np.zeros(COLUMNS + LANES, scores.dtype)
        counts[:COLUMNS] = 1
        pull = np.empty(COLUMNS + LANES, scores.dtype)
        at = scores.dtype.type(parameter)
        first = lo
        while first < hi:
            end = stop[first]
            last = first
            while last < min(first + ROWS, hi) and stop[last] == end:
                loss[last] = 0.0
                by_parameter[last] = 0.0
                last += 1
            for left in range(start[first], end, COLUMNS):
                right = min(left + COLUMNS, end)
                pull[: right - left + LANES] = 0
                for i in range(first, last):
                    begin = max(start[i], left)
                    if begin >= right:
                        break
                    # slices: numba allows for negative indices, and an index counted from an
                    # unknown start keeps LLVM from vectorising
                    width = (right - begin + LANES - 1) // LANES * LANES
                    others = scores[begin : begin + width]
                    ones = counts[COLUMNS - (right - begin) :][:width]
                    part = along_row(pair, scores[i], others, ones, at, pull[begin - left :])
                    loss[i] += part[0]
                    gradient[i - lo] -= part[1]
                    by_parameter[i] += part[2]
                for k in range(right - left):
                    gradient[left - lo + k] += pull[k]
            first = last

    sums.__qualname__ = f"{pair.__name__}s"
    return jit(sums)


rao_kupper_wins = over_rows(rao_kupper_win)
rao_kupper_ties = over_rows(rao_kupper_tie)
davidson_wins = over_rows(davidson_win)
davidson_ties = over_rows(davidson_tie)
