"""The likelihood of tiers and its gradient, compiled for the CPU: ragged, without padding.

One list is worked through in stages, each a loop over a range of segments, lists or tiers, so
that `driver.py` can give ranges to threads:

    segments   lse of the last tier, which is not written down: the rows `order` does not name
    lists      lse of everything below each upper tier, from the bottom up
    tiers      the integral, and its derivatives
    lists      what items owe to the tiers above them, from the top down
    segments   the same for the last tier

What runs once a node and item is in the scores' own kind of float, everything else, long sums
and products among it, in float64. A log-sum-exp is kept as a pair (maximum, log of the
sum relative to it), because their sum would lose what sets apart scores near ±1e4.
"""

from __future__ import annotations

from math import log, log1p

import numpy as np

from tierrank.plackett_luce.kernels.elementary import exp, is_finite, jit
from tierrank.plackett_luce.kernels.integral import (
    BLOCK,
    fill_ratios,
    integrate,
    padded,
    scratch,
    strengths,
    weighted_mean,
)

# r, one number a node and an item, is kept for a whole tier up to this many bytes a thread;
# beyond that it is computed a second time, block by block.
SCRATCH_BYTES = 1 << 20
FEW = 5  # items of a tier that are summed over their subsets, without an integral
NOTHING = -np.inf


@jit(sums=True)
def all_finite(scores):
    bad = 0
    for i in range(len(scores)):
        bad += 0 if is_finite(np.float64(scores[i])) else 1
    return bad == 0


@jit(sums=True)
def last_tier_max(scores, upper):
    largest = NOTHING
    for i in range(len(scores)):
        w = NOTHING if upper[i] else np.float64(scores[i])
        largest = max(largest, w)
    return largest


@jit(sums=True)
def last_tier_sum(scores, upper, largest):
    """Σ e^(w − largest) over part of a last tier, in the scores' own kind of float."""
    nothing = largest - largest
    total = nothing
    for i in range(len(scores)):
        e = exp(scores[i] - largest)
        total += nothing if upper[i] else e
    return total


@jit(sums=True)
def last_tier_terms(scores, upper, largest, gradient):
    """The same, with each term left in `gradient` for the way back."""
    nothing = largest - largest
    total = nothing
    for i in range(len(scores)):
        e = exp(scores[i] - largest)
        e = nothing if upper[i] else e
        gradient[i] = e
        total += e
    return total


@jit()
def reduce_segments(scores, upper, bounds, lo, hi, segment_max, segment_sum, gradient):
    """Stage 1: (maximum, sum) of the last tier's part of every segment; NaN where not finite."""
    for s in range(lo, hi):
        # Slices, here and below: numba allows for negative indices, and an index counted from
        # an unknown start keeps LLVM from vectorising.
        rows = slice(bounds[s], bounds[s + 1])
        if not all_finite(scores[rows]):
            segment_max[s] = np.nan
            segment_sum[s] = np.nan
            continue
        segment_max[s] = last_tier_max(scores[rows], upper[rows])
        segment_sum[s] = 0.0
        if segment_max[s] == NOTHING:
            continue
        largest = scores.dtype.type(segment_max[s])
        for start in range(bounds[s], bounds[s + 1], BLOCK):
            part = slice(start, min(start + BLOCK, bounds[s + 1]))
            if len(gradient):
                terms = gradient[part]
                segment_sum[s] += last_tier_terms(scores[part], upper[part], largest, terms)
            else:
                segment_sum[s] += last_tier_sum(scores[part], upper[part], largest)


@jit(sums=True)
def tier_logsumexp(scores, rows):
    largest = NOTHING
    for i in range(len(rows)):
        largest = max(largest, np.float64(scores[rows[i]]))
    total = 0.0
    for i in range(len(rows)):
        total += exp(np.float64(scores[rows[i]]) - largest)
    return largest, total


@jit()
def merge(max_a, sum_a, max_b, sum_b):
    """The log-sum-exp of two: (maximum, sum relative to it)."""
    if max_a >= max_b:
        return max_a, sum_a + (sum_b * exp(max_b - max_a) if sum_b > 0.0 else 0.0)
    return max_b, sum_b + (sum_a * exp(max_a - max_b) if sum_a > 0.0 else 0.0)


@jit()
def climb(
    scores, bottom, order, tier_offsets, list_offsets, segment_offsets, segment_max, segment_sum,
    lo, hi, usable, below_max, below_log,
):  # fmt: skip
    """Stage 2: for every upper tier of lists lo:hi, the lse of all that stands below it.

    `below_log` is −inf where nothing is below, and NaN in a list that is not `usable`, because
    one of its scores is not finite.
    """
    for i in range(lo, hi):
        usable[i] = True
        largest, total = bottom[i], (1.0 if bottom[i] > NOTHING else 0.0)
        for s in range(segment_offsets[i], segment_offsets[i + 1]):
            usable[i] &= not np.isnan(segment_sum[s])
            if not usable[i]:
                total = np.nan
                break
            largest, total = merge(largest, total, segment_max[s], segment_sum[s])
        for j in range(list_offsets[i + 1] - 1, list_offsets[i] - 1, -1):
            below_max[j] = largest
            below_log[j] = log(total) if total != 0.0 else NOTHING
            if np.isnan(total):
                continue
            rows = order[tier_offsets[j] : tier_offsets[j + 1]]
            tier_max, tier_sum = tier_logsumexp(scores, rows)
            largest, total = merge(largest, total, tier_max, tier_sum)


@jit()
def single_item(d):
    """log P = −log(1 + e^−d) of a tier of one, and its slope."""
    if d > 0.0:
        e = exp(-d)
        return -log1p(e), e / (1.0 + e)
    e = exp(d)
    return d - log1p(e), 1.0 / (1.0 + e)


@jit()
def few_items(strength, size, chance, blame, slope):
    """log P of a tier of at most FEW items, and its slopes, by summing over subsets.

    The items of a subset S are all drawn before those below with probability

        chance(S) = Σ_{a∈S} D_a chance(S \\ a) / (1 + Σ_{a∈S} D_a),    D = strength,

    every term positive: exact to rounding, and cheaper than the integral for its 2^n steps.
    `blame` is the derivative of chance(all) in chance(S), from the full set down.
    """
    subsets = 1 << size
    chance[0] = 1.0
    blame[0] = 0.0
    for s in range(1, subsets):
        total, drawn = 1.0, 0.0
        for a in range(size):
            if s >> a & 1:
                total += strength[a]
                drawn += strength[a] * chance[s ^ (1 << a)]
        chance[s] = drawn / total
        blame[s] = 0.0
    for a in range(size):
        slope[a] = 0.0
    blame[subsets - 1] = 1.0 / chance[subsets - 1]
    for s in range(subsets - 1, 0, -1):
        total = 1.0
        for a in range(size):
            total += strength[a] if s >> a & 1 else 0.0
        share = blame[s] / total
        for a in range(size):
            if s >> a & 1:
                others = s ^ (1 << a)
                slope[a] += share * strength[a] * (chance[others] - chance[s])
                blame[others] += share * strength[a]
    return log(chance[subsets - 1])


@jit()
def scratch_items(tier_offsets, lo, hi, nodes, itemsize):
    """(largest tier, items whose r is kept at once) for the tiers lo:hi."""
    largest = 1
    for j in range(lo, hi):
        largest = max(largest, tier_offsets[j + 1] - tier_offsets[j])
    return largest, min(largest, max(1, SCRATCH_BYTES // (nodes * itemsize)))


@jit()
def without_weight(tier_weights, j):
    """Whether tier j counts nothing, so that it need not be integrated."""
    return len(tier_weights) > 0 and tier_weights[j] == 0.0


@jit()
def weigh_tiers(tier_weights, order, tier_offsets, lo, hi, term, pull, by_row):
    """Multiply what the tiers lo:hi gave by their weights; no weights are all 1.

    `term` and `pull` have a number a tier, `by_row` one a row, or is empty. Whatever the later
    stages make of these is linear in them.
    """
    if len(tier_weights) == 0:
        return
    for j in range(lo, hi):
        weight = tier_weights[j]
        term[j] *= weight
        pull[j] *= weight
        if len(by_row):
            for row in order[tier_offsets[j] : tier_offsets[j + 1]]:
                by_row[row] *= weight


@jit()
def integrate_tiers(
    scores, order, tier_offsets, tier_weights, below_max, below_log, lo, hi, rule, points,
    log_weights, term, pull, gradient,
):  # fmt: skip
    """Stage 3: log P of every tier lo:hi, Σ ∂/∂d in `pull`, and ∂/∂d itself in `gradient`.

    All are times the tier's weight, if there are weights.
    """
    nodes = len(points)
    with_gradient = len(gradient) > 0
    largest, kept = scratch_items(tier_offsets, lo, hi, nodes, scores.itemsize)
    strength = np.empty(padded(largest), scores.dtype)
    arrays = scratch(nodes, scores)
    y, weight = arrays[0], arrays[1]
    r = np.empty((kept if with_gradient else 0, nodes), scores.dtype)
    chance, blame, slope = np.empty(1 << FEW), np.empty(1 << FEW), np.empty(FEW)
    for j in range(lo, hi):
        start, stop = tier_offsets[j], tier_offsets[j + 1]
        size = stop - start
        pull[j] = 0.0
        # not finite: one of the list's scores is not, or nothing is below
        if not np.isfinite(below_log[j]) or without_weight(tier_weights, j):
            term[j] = np.nan if np.isnan(below_log[j]) else 0.0
            if with_gradient:
                for i in range(start, stop):
                    gradient[order[i]] = 0.0
            continue
        if size == 1:
            row = order[start]
            d = (np.float64(scores[row]) - below_max[j]) - below_log[j]
            term[j], pull[j] = single_item(d)
            if with_gradient:
                gradient[row] = pull[j]
            continue
        lost = strengths(scores, order[start:stop], below_max[j], below_log[j], strength)
        if size <= FEW:
            term[j] = lost + few_items(strength, size, chance, blame, slope)
            if with_gradient:
                for a in range(size):
                    gradient[order[start + a]] = slope[a]
                    pull[j] += slope[a]
            continue
        term[j] = lost + integrate(strength, size, rule, points, log_weights, arrays, r)
        if with_gradient:
            missing = 0.0
            for first in range(0, size, kept):
                last = min(first + kept, size)
                if size > kept:
                    fill_ratios(strength[first:last], y, r)
                for a in range(last - first):
                    g = np.float64(weighted_mean(weight, r, a))
                    gradient[order[start + first + a]] = g
                    # Kahan's sum: ten thousand equal slopes would all round the same way
                    added = g - missing
                    summed = pull[j] + added
                    missing = (summed - pull[j]) - added
                    pull[j] = summed
    weigh_tiers(tier_weights, order, tier_offsets, lo, hi, term, pull, gradient)


@jit()
def descend(
    scores, bottom, order, tier_offsets, list_offsets, below_max, below_log, usable, term, pull,
    lo, hi, log_prob, gradient, bottom_gradient, last_owes,
):  # fmt: skip
    """Stage 4: sum the terms of lists lo:hi, and charge every item for the tiers above it.

    An item below tiers 1 … m has ∂/∂w = −Σ_m pull_m e^(w − lse below m). The sum is carried
    down as `owed`, relative to the lse below the tier reached, which only shrinks.
    """
    for i in range(lo, hi):
        value = 0.0
        owed = 0.0
        reached_max, reached_log = 0.0, 0.0
        for j in range(list_offsets[i], list_offsets[i + 1]):
            value += term[j]
            if len(gradient) == 0:
                continue
            if owed != 0.0:
                for row in order[tier_offsets[j] : tier_offsets[j + 1]]:
                    gradient[row] -= owed * exp(
                        (np.float64(scores[row]) - reached_max) - reached_log
                    )
                owed *= exp((below_max[j] - reached_max) + (below_log[j] - reached_log))
            owed += pull[j]
            reached_max, reached_log = below_max[j], below_log[j]
        log_prob[i] = value if usable[i] else np.nan
        if len(gradient):
            last_owes[i] = owed
            bottom_gradient[i] = 0.0
            if owed != 0.0 and bottom[i] > NOTHING:
                bottom_gradient[i] = -owed * exp((bottom[i] - reached_max) - reached_log)


@jit()
def charge_last_tier(
    upper, bounds, segment_list, list_offsets, segment_max, below_max, below_log, last_owes,
    lo, hi, gradient,
):  # fmt: skip
    """Stage 5: the last tier's gradient, −owed · e^(w − lse), from the e^(w − max) of stage 1."""
    for s in range(lo, hi):
        i = segment_list[s]
        owed = last_owes[i]
        factor = 0.0
        if owed != 0.0 and segment_max[s] > NOTHING:
            j = list_offsets[i + 1] - 1
            factor = -owed * exp((segment_max[s] - below_max[j]) - below_log[j])
        rows = slice(bounds[s], bounds[s + 1])
        scale_unless(gradient[rows], gradient.dtype.type(factor), upper[rows])


@jit()
def scale_unless(values, factor, skip):
    for i in range(len(values)):
        scaled = values[i] * factor
        values[i] = values[i] if skip[i] else scaled


@jit()
def scale_lists(rows, row_offsets, by_list, lo, hi, out):
    """Every row of lists lo:hi times the number of its list."""
    for i in range(lo, hi):
        part = slice(row_offsets[i], row_offsets[i + 1])
        scale_into(out[part], rows[part], by_list[i])


@jit()
def scale_into(out, values, factor):
    for i in range(len(values)):
        out[i] = values[i] * factor
