"""Strict lists under worths that all of them share: no integral, and no exponential an entry.

Place p of a list of k takes one item over those below it. With e = exp(w), the running sum
T_p = Σ_{q ≥ p} e_q from the bottom, c the list's count, and sums over places p ≤ q but the last,

    loss     = c Σ (log T_p − w_p)
    ∂/∂w_q   = e_q A_q − c [q < k],                  A_q = c Σ 1/T_p
    (H v)_q  = e_q (v_q A_q − B_q),                  B_q = c Σ (Σ_{r ≥ p} e_r v_r) / T_p²
    H_qq     = e_q A_q − e_q² D_q,                   D_q = c Σ 1/T_p²
    H_qr     = −e_q e_r D_q for r below q.

1/T is kept from the value for the products with H, which then cost a few operations an entry.
"""

from __future__ import annotations

from functools import partial
from math import log
from pathlib import Path

from tierrank.compilation import announce, compiled, digest

SOURCES = digest([Path(__file__)])
jit = partial(compiled, sources=SOURCES, nogil=True, error_model="numpy")

announce(__file__, SOURCES, "compiling the fit of strict rankings: takes a few seconds, this once")


@jit
def value_and_gradient(worth, items, offsets, counts, inverse, gradient):
    """Σ c log T over all places but the last of each list; fills `inverse`, adds to `gradient`."""
    value = 0.0
    for i in range(len(counts)):
        start, end, count = offsets[i], offsets[i + 1], counts[i]
        total = worth[items[end - 1]]
        inverse[end - 1] = 0.0  # the last place is no choice
        logs = 0.0
        for p in range(end - 2, start - 1, -1):
            total += worth[items[p]]
            inverse[p] = 1.0 / total
            logs += log(total)
        value += count * logs
        owed = 0.0
        for p in range(start, end):
            owed += inverse[p]
            gradient[items[p]] += count * worth[items[p]] * owed
    return value


@jit
def product(worth, items, offsets, counts, inverse, vector, below, out):
    """Add H · vector to `out`; `below` is room for as many numbers as the longest list has."""
    for i in range(len(counts)):
        start, end, count = offsets[i], offsets[i + 1], counts[i]
        running = 0.0
        for p in range(end - 1, start - 1, -1):
            running += worth[items[p]] * vector[items[p]]
            below[p - start] = running
        owed, push = 0.0, 0.0
        for p in range(start, end):
            owed += inverse[p]
            push += below[p - start] * inverse[p] * inverse[p]
            item = items[p]
            out[item] += count * worth[item] * (vector[item] * owed - push)


@jit
def diagonal(worth, items, offsets, counts, inverse, out):
    """Add the diagonal of H to `out`."""
    for i in range(len(counts)):
        owed, squares = 0.0, 0.0
        for p in range(offsets[i], offsets[i + 1]):
            owed += inverse[p]
            squares += inverse[p] * inverse[p]
            e = worth[items[p]]
            out[items[p]] += counts[i] * e * (owed - e * squares)


@jit
def matrix(worth, items, offsets, counts, inverse, out):
    """Add H to `out` [items, items], but each pair once, and half of the diagonal.

    The caller adds the transpose: rows are written as they lie in memory.
    """
    for i in range(len(counts)):
        owed, squares = 0.0, 0.0
        for p in range(offsets[i], offsets[i + 1]):
            owed += inverse[p]
            squares += inverse[p] * inverse[p]
            e, into = worth[items[p]], out[items[p]]
            into[items[p]] += 0.5 * counts[i] * e * (owed - e * squares)
            pull = counts[i] * e * squares
            for q in range(p + 1, offsets[i + 1]):
                into[items[q]] -= pull * worth[items[q]]


@jit
def entry_gradients(worth, items, offsets, inverse, out):
    """∂loss/∂w of every entry of every list, as if it had been seen once."""
    for i in range(len(offsets) - 1):
        owed = 0.0
        for p in range(offsets[i], offsets[i + 1]):
            owed += inverse[p]
            out[p] = worth[items[p]] * owed - (1.0 if p < offsets[i + 1] - 1 else 0.0)
