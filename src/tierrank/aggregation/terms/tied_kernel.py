"""Lists with small ties under worths that all of them share: second derivatives that are kept.

A tier A of n items over everything below it, whose worth is T, has log P(A > below) as a function
of d_a = w_a − log T. `tiers` computes for each tier its value, its slopes ∂/∂d and, where wanted,
its n × n matrix M of second derivatives. With σ the shares of what is below, v̄ = σ·v, u = v − v̄,
pull = Σ slopes,

    gradient      above: slope_a                  below: −σ_b pull
    (H v)         above: (M u)_a                  below: −σ_b (1ᵀM u + pull (v_b − v̄))

so that a product with H costs n² operations a tier, and no integral. An item below several tiers
sums the second column over them, carried down a list as two numbers. All this is of the
log-likelihood; the caller turns the sign.
"""

from __future__ import annotations

from functools import partial
from math import log
from pathlib import Path

import numpy as np

from tierrank.compilation import announce, compiled, digest
from tierrank.plackett_luce.kernels import elementary
from tierrank.plackett_luce.kernels.compiled import FEW, few_items, single_item
from tierrank.plackett_luce.kernels.curvature import own_bend
from tierrank.plackett_luce.kernels.integral import (
    INVINCIBLE,
    integrate,
    padded,
    scratch,
    weighted_mean,
)

SOURCES = digest([Path(__file__), *Path(elementary.__file__).parent.glob("*.py")])
jit = partial(compiled, sources=SOURCES, nogil=True, error_model="numpy")
SUMS = elementary.ELEMENTWISE | {"reassoc"}  # lets LLVM vectorise a sum

announce(__file__, SOURCES, "compiling the fit of lists with ties: takes ten seconds, this once")


@jit
def sums_below(worth, items, tier_offsets, list_offsets, below):
    """[tiers] worth of all that stands below a tier in its list; 0 for the last one."""
    for i in range(len(list_offsets) - 1):
        total = 0.0
        for j in range(list_offsets[i + 1] - 1, list_offsets[i] - 1, -1):
            below[j] = total
            for p in range(tier_offsets[j], tier_offsets[j + 1]):
                total += worth[items[p]]


@partial(compiled, sources=SOURCES, nogil=True, error_model="numpy", fastmath=SUMS)
def covariance(weight, one, mean, other, other_mean):
    """E[(one − mean) (other − mean)] over the nodes."""
    total = 0.0
    for k in range(len(weight)):
        total += weight[k] * ((one[k] - mean) * (other[k] - other_mean))
    return total


@jit
def tiers(
    worth, items, tier_offsets, below, matrix_offsets, rule, points, log_weights, lo, hi,
    value, slopes, matrices,
):  # fmt: skip
    """Value and slopes of the tiers lo:hi, and their matrices unless `matrices` is empty."""
    largest = 1
    for j in range(lo, hi):
        largest = max(largest, tier_offsets[j + 1] - tier_offsets[j])
    strength = np.empty(padded(largest))
    arrays = scratch(len(points), strength)
    r = np.empty((largest, len(points)))
    chance, blame = np.empty(1 << FEW), np.empty(1 << FEW)
    slope, bend = np.empty((1 << FEW, FEW)), np.empty((1 << FEW, FEW, FEW))
    wanted = len(matrices) > 0
    for j in range(lo, hi):
        start, size = tier_offsets[j], tier_offsets[j + 1] - tier_offsets[j]
        own = slopes[start : start + size]
        value[j] = 0.0
        if below[j] == 0.0:  # the last tier
            own[:] = 0.0
            continue
        for a in range(size):
            strength[a] = worth[items[start + a]] / below[j]
        out = matrices[matrix_offsets[j] : matrix_offsets[j + 1]].reshape(-1, size)
        if size == 1:
            value[j], own[0] = single_item(log(strength[0]))
            if wanted:
                out[0, 0] = -own[0] * (1.0 - own[0])
        elif size <= FEW and wanted:
            value[j] = few_bends(strength, size, chance, slope, bend, own, out)
        elif size <= FEW:
            value[j] = few_items(strength, size, chance, blame, own)
        else:
            strength[size : padded(size)] = INVINCIBLE
            value[j] = integrate(strength, size, rule, points, log_weights, arrays, r)
            y, weight = arrays[0], arrays[1]
            for a in range(size):
                own[a] = weighted_mean(weight, r, a)
            if wanted:
                for a in range(size):
                    for b in range(a):
                        out[a, b] = out[b, a] = covariance(weight, r[a], own[a], r[b], own[b])
                    spread = covariance(weight, r[a], own[a], r[a], own[a])
                    out[a, a] = own_bend(weight, strength[a], y, r, a) + spread


@jit
def few_bends(strength, size, chance, slope, bend, own, out):
    """log P of at most FEW items with two derivatives, by the recursion of `few_items`.

    chance(S) = N(S) / (1 + Σ_S D), N(S) = Σ_{a∈S} D_a chance(S \\ a), and D_a = e^{d_a} is its own
    derivative: so numerator and quotient are differentiated twice as they are built.
    """
    subsets = 1 << size
    chance[0] = 1.0
    slope[0, :size] = 0.0
    bend[0, :size, :size] = 0.0
    for s in range(1, subsets):
        total, drawn = 1.0, 0.0
        slope[s, :size] = 0.0
        bend[s, :size, :size] = 0.0
        for a in range(size):
            if s >> a & 1:
                d, o = strength[a], s ^ (1 << a)
                total += d
                drawn += d * chance[o]
                slope[s, a] += d * chance[o]
                bend[s, a, a] += d * chance[o]
                for b in range(size):
                    slope[s, b] += d * slope[o, b]
                    bend[s, a, b] += d * slope[o, b]
                    bend[s, b, a] += d * slope[o, b]
                    for c in range(size):
                        bend[s, b, c] += d * bend[o, b, c]
        chance[s] = drawn / total
        for b in range(size):
            there = strength[b] if s >> b & 1 else 0.0
            slope[s, b] = (slope[s, b] - chance[s] * there) / total
        for b in range(size):
            of_b = strength[b] if s >> b & 1 else 0.0
            for c in range(size):
                of_c = strength[c] if s >> c & 1 else 0.0
                less = (
                    slope[s, b] * of_c + slope[s, c] * of_b + (chance[s] * of_b if b == c else 0.0)
                )
                bend[s, b, c] = (bend[s, b, c] - less) / total
    whole = subsets - 1
    for a in range(size):
        own[a] = slope[whole, a] / chance[whole]
    for a in range(size):
        for b in range(size):
            out[a, b] = bend[whole, a, b] / chance[whole] - own[a] * own[b]
    return log(chance[whole])


@jit
def entry_gradients(worth, items, tier_offsets, list_offsets, below, slopes, out):
    """∂ log P/∂w of every entry of every list, as if it had been seen once."""
    for i in range(len(list_offsets) - 1):
        owed = 0.0  # Σ pull / T of the tiers above
        for j in range(list_offsets[i], list_offsets[i + 1]):
            pull = 0.0
            for p in range(tier_offsets[j], tier_offsets[j + 1]):
                out[p] = slopes[p] - worth[items[p]] * owed
                pull += slopes[p]
            if below[j] > 0.0:
                owed += pull / below[j]


@jit
def product(
    worth, items, tier_offsets, list_offsets, counts, below, slopes, matrix_offsets, matrices,
    vector, means, out,
):  # fmt: skip
    """Add count · H · vector to `out`; `means` is room for a number a tier."""
    for i in range(len(list_offsets) - 1):
        running, count = 0.0, counts[i]
        for j in range(list_offsets[i + 1] - 1, list_offsets[i] - 1, -1):
            means[j] = running / below[j] if below[j] > 0.0 else 0.0
            for p in range(tier_offsets[j], tier_offsets[j + 1]):
                running += worth[items[p]] * vector[items[p]]
        owed, push = 0.0, 0.0  # Σ pull / T, and Σ (1ᵀM u − pull v̄) / T, of the tiers above
        for j in range(list_offsets[i], list_offsets[i + 1]):
            start, stop = tier_offsets[j], tier_offsets[j + 1]
            size, first = stop - start, matrix_offsets[j]
            pull, along = 0.0, 0.0
            for p in range(start, stop):
                item = items[p]
                moved = -worth[item] * (push + owed * vector[item])
                if below[j] > 0.0:
                    row = first + (p - start) * size
                    own = 0.0
                    for q in range(size):
                        own += matrices[row + q] * (vector[items[start + q]] - means[j])
                    moved += own
                    along += own
                    pull += slopes[p]
                out[item] += count * moved
            if below[j] > 0.0:
                owed += pull / below[j]
                push += (along - pull * means[j]) / below[j]


@jit
def diagonal(
    worth, items, tier_offsets, list_offsets, counts, below, slopes, matrix_offsets, matrices, out
):
    """Add count · the diagonal of H to `out`: −σ_b pull + σ_b² (1ᵀM 1 + pull) for what is below."""
    for i in range(len(list_offsets) - 1):
        owed, square = 0.0, 0.0
        for j in range(list_offsets[i], list_offsets[i + 1]):
            start, stop = tier_offsets[j], tier_offsets[j + 1]
            size, first = stop - start, matrix_offsets[j]
            pull, whole = 0.0, 0.0
            for p in range(start, stop):
                e = worth[items[p]]
                found = e * (e * square - owed)
                if below[j] > 0.0:
                    row = first + (p - start) * size
                    found += matrices[row + p - start]
                    for q in range(size):
                        whole += matrices[row + q]
                    pull += slopes[p]
                out[items[p]] += counts[i] * found
            if below[j] > 0.0:
                owed += pull / below[j]
                square += (whole + pull) / (below[j] * below[j])


@jit
def matrix(
    worth, items, tier_offsets, list_offsets, counts, below, slopes, matrix_offsets, matrices, out
):
    """Add count · H to `out` [items, items], but each pair once, and half of the diagonal.

    The caller adds the transpose: rows are written as they lie in memory. For p over q in a list,
    the tiers above both give e_p e_q square, and p's own tier −(M 1)_p σ_q. A last tier of most of
    the catalogue is every pair but those with an item above it: far fewer.
    """
    shared = 0.0
    for i in range(len(list_offsets) - 1):
        owed, square, count = 0.0, 0.0, counts[i]
        first, end = tier_offsets[list_offsets[i]], tier_offsets[list_offsets[i + 1]]
        for j in range(list_offsets[i], list_offsets[i + 1]):
            start, stop = tier_offsets[j], tier_offsets[j + 1]
            size, last = stop - start, below[j] == 0.0
            most = last and end - first == len(worth) and 2 * size > len(worth)
            pull, whole = 0.0, 0.0
            for p in range(start, stop):
                e, into = worth[items[p]], out[items[p]]
                row = matrix_offsets[j] + (p - start) * size
                along = 0.0
                into[items[p]] -= 0.5 * count * e * owed
                if not most:
                    add_pairs(worth, items, p, stop, count * e * square, into)
                if last:
                    continue
                for q in range(size):
                    along += matrices[row + q]
                    into[items[start + q]] += 0.5 * count * matrices[row + q]
                pull += slopes[p]
                whole += along
                for q in range(stop, end):
                    into[items[q]] += count * (e * square - along / below[j]) * worth[items[q]]
            if most:
                shared += count * square
                for p in range(first, start):
                    out_of = -count * worth[items[p]] * square
                    add_pairs(worth, items, p, end, out_of, out[items[p]])
            if not last:
                owed += pull / below[j]
                square += (whole + pull) / (below[j] * below[j])
    if shared != 0.0:
        every = np.arange(len(worth))
        for p in range(len(worth)):
            add_pairs(worth, every, p, len(worth), shared * worth[p], out[p])


@jit
def add_pairs(worth, items, p, stop, factor, into):
    """Add factor · e_q for the items of p:stop to p's row, half of it for p itself."""
    into[items[p]] += 0.5 * factor * worth[items[p]]
    for q in range(p + 1, stop):
        into[items[q]] += factor * worth[items[q]]
