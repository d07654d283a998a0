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
    decay,
    exp,
    jit,
    log,
    lost,
    renormalise,
    slopes,
    whole_numbers,
)
from tierrank.plackett_luce.quadrature import CLAMP, MAX_STEPS, MODE_TOLERANCE

# Passes over items run to a multiple of LANES, over items that nothing beats (q = 1, r = 0), so
# that no pass ends in a slow remainder.
LANES = 16
INVINCIBLE = 1e30

# After so many items products and sums go over to float64: float32 never adds up more.
BLOCK = 2048


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
def block_slopes(strength, y):
    """Σ log q, Σ r and Σ dr/dx over some items, in their own kind of float."""
    log_q = strength[0] - strength[0]
    slope = log_q
    bend = log_q
    for a in range(len(strength)):
        part = slopes(strength[a] * y)
        log_q += part[0]
        slope += part[1]
        bend += part[2]
    return log_q, slope, bend


@jit()
def log_integrand_and_slopes(strength, size, y):
    """(F, F', F'') at e^x = y."""
    log_q, slope, bend = 0.0, 0.0, 0.0
    end = padded(size)
    for start in range(0, end, BLOCK):
        part = block_slopes(strength[start : min(start + BLOCK, end)], strength.dtype.type(y))
        log_q += part[0]
        slope += part[1]
        bend += part[2]
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
def bracket(strength, size, drop, tolerance):
    """The two ends between which F stays within `drop` of its maximum."""
    y = first_guess(strength, size)
    f, slope, bend = log_integrand_and_slopes(strength, size, y)
    for _ in range(MAX_STEPS):
        if slope * slope < MODE_TOLERANCE * MODE_TOLERANCE * -bend:
            break
        y -= slope * y / bend
        f, slope, bend = log_integrand_and_slopes(strength, size, y)
    mode = scalar_log(y)
    level = f - 0.5 * slope * slope / bend - drop
    width = sqrt(-2.0 * drop / bend)

    # To the right F falls much as y (e^t − 1 − t) + (−F'' − y) t²/2 does, with t = x − x*: the
    # first guess is where that has fallen by `drop`, and costs no pass over the items.
    t = width
    steady = -bend - y
    for _ in range(4):
        growth = exp(t)
        excess = y * (growth - 1.0 - t) + 0.5 * steady * t * t - drop
        t -= excess / (y * (growth - 1.0) + steady * t)
    right = mode + t
    for _ in range(MAX_STEPS):
        f, slope, bend = log_integrand_and_slopes(strength, size, exp(right))
        if abs(f - level) < tolerance:
            break
        right -= (f - level) / slope

    # To the left it may be a long flat stretch or a wall. F(0) − F(x) ≥ −x − 1 is the floor.
    floor = -drop - 1.5
    left = max(floor, mode - 1.15 * width)
    for _ in range(MAX_STEPS):
        f, slope, bend = log_integrand_and_slopes(strength, size, exp(left))
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
def multiply(strength, y, product, exponent, rounding):
    """Multiply every node's product · 2^exponent by the q of some items."""
    for a in range(len(strength)):
        s = strength[a]
        for k in range(len(y)):
            t, q, _ = decay(s * y[k])
            rounding[k] += lost(t, q)
            product[k], e = renormalise(product[k] * q)
            exponent[k] += e


@jit()
def multiply_and_keep(strength, y, product, exponent, rounding, r):
    """The same, keeping r."""
    for a in range(len(strength)):
        s = strength[a]
        for k in range(len(y)):
            t, q, r[a, k] = decay(s * y[k])
            rounding[k] += lost(t, q)
            product[k], e = renormalise(product[k] * q)
            exponent[k] += e


@jit()
def fill_ratios(strength, y, r):
    """r of some items once more, for tiers too large to have kept it."""
    for a in range(len(strength)):
        s = strength[a]
        for k in range(len(y)):
            _, _, r[a, k] = decay(s * y[k])


@jit()
def scratch(nodes, like):
    """Arrays for `integrate`: e^x and weight of each node; Σ log q, of a block and in all."""
    y, weight = np.empty(nodes, like.dtype), np.empty(nodes, like.dtype)
    product, rounding = np.empty(nodes, like.dtype), np.empty(nodes, like.dtype)
    block_exponent = whole_numbers(y[0], nodes)
    log_q, exponent = np.empty(nodes), np.empty(nodes, np.int64)
    return y, weight, product, block_exponent, rounding, log_q, exponent


@jit(sums=True)
def integrate(strength, size, rule, points, log_weights, arrays, r):
    """log P(tier > below). Leaves e^x and normalised weights of the nodes in `arrays`, r in `r`.

    r is kept when it has room for the whole tier.
    """
    y, weight, product, block_exponent, rounding, log_q, exponent = arrays
    nodes = len(points)
    drop, tolerance = rule
    left, right = bracket(strength, size, drop, tolerance)
    middle = 0.5 * (left + right)
    half = 0.5 * (right - left)
    for k in range(nodes):
        y[k] = exp(middle + half * points[k])
        log_q[k] = 0.0
        exponent[k] = 0
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        product[:] = 1.0
        rounding[:] = 0.0
        block_exponent[:] = 0
        if len(r) >= size:
            multiply_and_keep(
                strength[start:stop], y, product, block_exponent, rounding, r[start:stop]
            )
        else:
            multiply(strength[start:stop], y, product, block_exponent, rounding)
        for k in range(nodes):
            log_q[k] += log(np.float64(product[k])) + rounding[k]
            exponent[k] += block_exponent[k]

    # relative to one node's exponent, which is large and common to all: no digit is lost to it
    reference = exponent[nodes // 2]
    largest = -np.inf
    for k in range(nodes):
        x = middle + half * points[k]
        log_q[k] += x - exp(x) + log_weights[k] + (exponent[k] - reference) * LN2
        largest = max(largest, log_q[k])
    total = 0.0
    for k in range(nodes):
        log_q[k] = exp(log_q[k] - largest)
        total += log_q[k]
    for k in range(nodes):
        weight[k] = log_q[k] / total
    return largest + scalar_log(total * half) + reference * LN2


@jit(sums=True)
def weighted_mean(weight, r, a):
    """E[r] of item a over the nodes: ∂ log P / ∂ d_a."""
    mean = weight[0] * r[a, 0]
    for k in range(1, len(weight)):
        mean += weight[k] * r[a, k]
    return mean
