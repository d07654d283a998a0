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


@jit()
def strengths(scores, rows, below_max, below_log, strength):
    """Fill `strength` with e^d, d held in ±CLAMP; return what log P lost by holding it.

    Below −CLAMP the factor 1 − e^−z is z itself, so log P keeps its linear part d + CLAMP.
    """
    missed = 0.0
    for a in range(len(rows)):
        d = (np.float64(scores[rows[a]]) - below_max) - below_log
        missed += min(d + CLAMP, 0.0)
        strength[a] = min(max(d, -CLAMP), CLAMP)
    exponentiate(strength, len(rows))
    strength[len(rows) : padded(len(rows))] = INVINCIBLE
    return missed


@jit()
def exponentiate(values, count):
    for a in range(count):
        values[a] = exp(values[a])


@jit(sums=True)
def block_slopes(strength, count, y):
    """Σ log q, Σ r and Σ dr/dx over the first items, in their own kind of float."""
    log_q = y - y
    slope = log_q
    bend = log_q
    for a in range(count):
        part = slopes(strength[a] * y)
        log_q += part[0]
        slope += part[1]
        bend += part[2]
    return log_q, slope, bend


@jit()
def log_integrand_and_slopes(strength, size, x, y):
    """(F, F', F'') at x, with y = e^x."""
    count = padded(size)
    log_q, slope, bend = block_slopes(strength, min(count, BLOCK), strength.dtype.type(y))
    f, slope, bend = x - y + log_q, 1.0 - y + slope, bend - y
    for start in range(BLOCK, count, BLOCK):
        more = block_slopes(strength[start:], min(count - start, BLOCK), strength.dtype.type(y))
        f, slope, bend = f + more[0], slope + more[1], bend + more[2]
    return f, slope, bend


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
    f, slope, bend = log_integrand_and_slopes(strength, size, 0.0, y)
    for _ in range(MAX_STEPS):
        if slope * slope < MODE_TOLERANCE * MODE_TOLERANCE * -bend:
            break
        y -= slope * y / bend
        f, slope, bend = log_integrand_and_slopes(strength, size, 0.0, y)
    mode = scalar_log(y)
    level = (mode + f) - 0.5 * slope * slope / bend - drop
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
        f, slope, bend = log_integrand_and_slopes(strength, size, right, exp(right))
        if abs(f - level) < tolerance:
            break
        right -= (f - level) / slope

    # To the left it may be a long flat stretch or a wall. F(0) − F(x) ≥ −x − 1 is the floor.
    floor = -drop - 1.5
    left = max(floor, mode - 1.15 * width)
    for _ in range(MAX_STEPS):
        f, slope, bend = log_integrand_and_slopes(strength, size, left, exp(left))
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
    x, log_q, exponent = np.empty(nodes), np.empty(nodes), np.empty(nodes, np.int64)
    return y, weight, product, block_exponent, rounding, x, log_q, exponent


# One loop a function: LLVM vectorises a loop over few arrays, and gives up on one over many.


@jit()
def place_nodes(points, middle, half, x, y):
    for k in range(len(points)):
        x[k] = middle + half * points[k]
        y[k] = exp(x[k])


@jit()
def add_logarithm(log_q, product, rounding):
    for k in range(len(log_q)):
        log_q[k] += log(np.float64(product[k])) + rounding[k]


@jit()
def add_whole(total, numbers):
    for k in range(len(total)):
        total[k] += numbers[k]


@jit()
def weigh(log_q, exponent, reference, x, log_weights):
    """From Σ log q to F plus the log of the node's weight, less reference · log 2."""
    for k in range(len(log_q)):
        f = x[k] - exp(x[k]) + log_weights[k] + log_q[k]
        log_q[k] = f + np.float64(np.int32(exponent[k] - reference)) * LN2


@jit()
def exponentiate_less(values, largest):
    for k in range(len(values)):
        values[k] = exp(values[k] - largest)


@jit(sums=True)
def total_of(values):
    total = 0.0
    for k in range(len(values)):
        total += values[k]
    return total


@jit()
def divide(values, divisor, out):
    for k in range(len(values)):
        out[k] = values[k] / divisor


@jit()
def integrate(strength, size, rule, points, log_weights, arrays, r):
    """log P(tier > below). Leaves e^x and normalised weights of the nodes in `arrays`, r in `r`.

    r is kept when it has room for the whole tier.
    """
    y, weight, product, block_exponent, rounding, x, log_q, exponent = arrays
    left, right = bracket(strength, size, rule[0], rule[1])
    half = 0.5 * (right - left)
    place_nodes(points, 0.5 * (left + right), half, x, y)
    log_q[:] = 0.0
    exponent[:] = 0
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
        add_logarithm(log_q, product, rounding)
        add_whole(exponent, block_exponent)

    # relative to one node's exponent, which is large and common to all: no digit is lost to it
    reference = exponent[len(points) // 2]
    weigh(log_q, exponent, reference, x, log_weights)
    largest = log_q.max()
    exponentiate_less(log_q, largest)
    total = total_of(log_q)
    divide(log_q, total, weight)
    return largest + scalar_log(total * half) + reference * LN2


@jit(sums=True)
def weighted_mean(weight, r, a):
    """E[r] of item a over the nodes: ∂ log P / ∂ d_a."""
    mean = weight[0] * r[a, 0]
    for k in range(1, len(weight)):
        mean += weight[k] * r[a, k]
    return mean
