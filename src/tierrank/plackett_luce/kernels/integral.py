"""The integral of quadrature.py for one tier, compiled: bracket, nodes, weights.

Names as there: d_a = w_a − lse(below), strength = e^d, z = strength · e^x, q = 1 − e^−z,
r = z / (e^z − 1). Nodes are the inner loop, so a tier of three items fills the vector unit as
well as one of a thousand.
"""

from __future__ import annotations

from math import log as scalar_log
from math import sqrt

import numpy as np

from tierrank.plackett_luce.kernels.elementary import (
    LN2,
    MANTISSA,
    ONE,
    bits_of,
    decay,
    exp,
    from_bits,
    jit,
    log,
    rough_log,
)
from tierrank.plackett_luce.quadrature import CLAMP, MAX_STEPS, MODE_TOLERANCE

# Passes over items run to a multiple of LANES, over items that nothing beats (q = 1, r = 0), so
# that no pass ends in a slow remainder.
LANES = 8
INVINCIBLE = 1e30


@jit()
def padded(size):
    return (size + LANES - 1) // LANES * LANES


@jit(sums=True)
def strengths(scores, rows, below_max, below_log, strength):
    """Fill `strength` with e^d, d held in ±CLAMP; return what log P lost by holding it.

    Below −CLAMP the factor 1 − e^−z is z itself, so log P keeps its linear part d + CLAMP.
    """
    lost = 0.0
    for a in range(len(rows)):
        d = (np.float64(scores[rows[a]]) - below_max) - below_log
        lost += min(d + CLAMP, 0.0)
        strength[a] = exp(min(max(d, -CLAMP), CLAMP))
    strength[len(rows) : padded(len(rows))] = INVINCIBLE
    return lost


@jit(sums=True)
def log_integrand_and_slopes(strength, size, y, like):
    """(F, F', F'') at e^x = y."""
    log_q = 0.0
    slope = 0.0
    bend = 0.0
    for a in range(padded(size)):
        z = strength[a] * y
        t, q = decay(z, like)
        r = z * t / q
        log_q += rough_log(q)
        slope += r
        bend += r * (1.0 - z - r)
    return scalar_log(y) - y + log_q, 1.0 - y + slope, bend - y


@jit(sums=True)
def first_guess(strength, size):
    """e^x near the mode: the root of y = 1 + n / (1 + z/2), z = y · mean strength.

    r(z) is near 1 / (1 + z/2). Saves two passes over the items on average.
    """
    total = 0.0
    for a in range(size):
        total += strength[a]
    mean = min(total / size, 1e4)  # beyond, the root is 1, and the formula would cancel
    linear = 0.5 - 0.25 * mean
    return (1.0 + size) / (linear + sqrt(linear * linear + 0.5 * mean * (1.0 + size)))


@jit()
def bracket(strength, size, drop, tolerance, like):
    """The two ends between which F stays within `drop` of its maximum."""
    y = first_guess(strength, size)
    f, slope, bend = log_integrand_and_slopes(strength, size, y, like)
    for _ in range(MAX_STEPS):
        if slope * slope < MODE_TOLERANCE * MODE_TOLERANCE * -bend:
            break
        y -= slope * y / bend
        f, slope, bend = log_integrand_and_slopes(strength, size, y, like)
    mode = scalar_log(y)
    level = f - 0.5 * slope * slope / bend - drop
    width = sqrt(-2.0 * drop / bend)

    # To the right F falls at least as y (e^t − 1 − t) + (−F'' − y) t²/2 with t = x − x*: start
    # where that falls by `drop`, which costs no pass over the items.
    t = width
    steady = -bend - y
    for _ in range(4):
        growth = exp(t)
        excess = y * (growth - 1.0 - t) + 0.5 * steady * t * t - drop
        t -= excess / (y * (growth - 1.0) + steady * t)
    right = mode + t
    for _ in range(MAX_STEPS):
        f, slope, bend = log_integrand_and_slopes(strength, size, exp(right), like)
        if abs(f - level) < tolerance:
            break
        right -= (f - level) / slope

    # To the left it may be a long flat stretch or a wall. F(0) − F(x) ≥ −x − 1 is the floor.
    floor = -drop - 1.5
    left = max(floor, mode - 1.15 * width)
    for _ in range(MAX_STEPS):
        f, slope, bend = log_integrand_and_slopes(strength, size, exp(left), like)
        excess = level - f
        if abs(excess) < tolerance:
            break
        # the nearer root of slope·h + bend·h²/2 = excess, or Newton's step where there is none
        discriminant = slope * slope + 2.0 * bend * excess
        step = excess / slope
        if discriminant > 0.0:
            step = 2.0 * excess / (slope + sqrt(discriminant))
        left = max(floor, left + step)
    return left, right


@jit()
def multiply(strength, y, product, exponent, like):
    """Multiply every node's product · 2^exponent by one item's q."""
    for k in range(len(y)):
        _, q = decay(strength * y[k], like)
        bits = bits_of(product[k] * q)
        exponent[k] += (bits >> 52) - 1023
        product[k] = from_bits((bits & MANTISSA) | ONE)


@jit()
def multiply_and_keep(strength, y, product, exponent, r):
    """The same, keeping r."""
    for k in range(len(y)):
        z = strength * y[k]
        t, q = decay(z, r)
        r[k] = z * t / q
        bits = bits_of(product[k] * q)
        exponent[k] += (bits >> 52) - 1023
        product[k] = from_bits((bits & MANTISSA) | ONE)


@jit()
def ratios(strength, y, r):
    """r of one item at every node."""
    for k in range(len(y)):
        z = strength * y[k]
        t, q = decay(z, r)
        r[k] = z * t / q


@jit()
def fill_ratios(strength, y, r):
    """r of some items once more, for tiers too large to have kept it."""
    for a in range(len(strength)):
        ratios(strength[a], y, r[a * len(y) : (a + 1) * len(y)])


@jit(sums=True)
def integrate(strength, size, rule, points, log_weights, y, weight, product, exponent, r):
    """log P(tier > below). Leaves e^x in `y`, normalised node weights in `weight`, r in `r`.

    r is kept when it has room for the whole tier.
    """
    nodes = len(points)
    drop, tolerance = rule
    left, right = bracket(strength, size, drop, tolerance, r)
    middle = 0.5 * (left + right)
    half = 0.5 * (right - left)
    for k in range(nodes):
        y[k] = exp(middle + half * points[k])
        product[k] = 1.0
        exponent[k] = 0
    if len(r) >= size * nodes:
        for a in range(size):
            multiply_and_keep(strength[a], y, product, exponent, r[a * nodes : (a + 1) * nodes])
    else:
        for a in range(size):
            multiply(strength[a], y, product, exponent, r)

    # relative to one node's exponent, which is large and common to all: no digit is lost to it
    reference = exponent[nodes // 2]
    largest = -np.inf
    for k in range(nodes):
        f = middle + half * points[k] - y[k] + log(product[k]) + log_weights[k]
        f += (exponent[k] - reference) * LN2
        weight[k] = f
        largest = max(largest, f)
    total = 0.0
    for k in range(nodes):
        weight[k] = exp(weight[k] - largest)
        total += weight[k]
    for k in range(nodes):
        weight[k] /= total
    return largest + scalar_log(total * half) + reference * LN2


@jit(sums=True)
def weighted_mean(weight, r):
    """E[r] of one item over the nodes: ∂ log P / ∂ d."""
    mean = 0.0
    for k in range(len(weight)):
        mean += weight[k] * r[k]
    return mean
