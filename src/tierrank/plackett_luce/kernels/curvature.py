"""Second derivatives of the likelihood, compiled: H·v and the diagonal of H, list by list.

In d, one tier's Hessian is a diagonal plus the covariance of r over the nodes,

    H_ab = δ_ab E[r_a (1 − z_a − r_a)] + E[r_a r_b] − E[r_a] E[r_b],

of rank at most `nodes`. With d_a = w_a − lse(below), σ the softmax of what is below, v̄ = σ·v,
u = v − v̄, pull = Σ E[r_a]:

    above   (H v)_a =  (H u)_a
    below   (H v)_b = −σ_b (1ᵀH u + pull (v_b − v̄))
    below    H_bb   = −pull σ_b + (1ᵀH 1 + pull) σ_b²

and the items below sum that over the tiers above them, carried down as in `compiled.descend`.
A tier's weight multiplies its H, and so H u, 1ᵀH u and pull: all of the above is linear in these.
"""

from __future__ import annotations

import numpy as np

from tierrank.plackett_luce.kernels.compiled import (
    NOTHING,
    scratch_items,
    single_item,
    weigh_tiers,
    without_weight,
)
from tierrank.plackett_luce.kernels.elementary import exp, jit
from tierrank.plackett_luce.kernels.integral import (
    fill_ratios,
    integrate,
    padded,
    scratch,
    strengths,
    weighted_mean,
)


@jit(sums=True)
def means_below(
    scores, vector, bottom, bottom_vector, upper, order, tier_offsets, list_offsets, row_offsets,
    below_max, below_log, lo, hi, mean,
):  # fmt: skip
    """v̄ under every upper tier of lists lo:hi, from the bottom up."""
    for i in range(lo, hi):
        first, end = list_offsets[i], list_offsets[i + 1]
        if first == end or np.isnan(below_log[end - 1]):
            continue
        largest, log_total = below_max[end - 1], below_log[end - 1]
        running = 0.0
        if log_total > NOTHING:
            for row in range(row_offsets[i], row_offsets[i + 1]):
                share = exp((np.float64(scores[row]) - largest) - log_total)
                running += 0.0 if upper[row] else share * vector[row]
            if bottom[i] > NOTHING:
                running += exp((bottom[i] - largest) - log_total) * bottom_vector[i]
        mean[end - 1] = running
        for j in range(end - 1, first, -1):
            above_max, above_log = below_max[j - 1], below_log[j - 1]
            if below_log[j] > NOTHING:
                running *= exp((below_max[j] - above_max) + (below_log[j] - above_log))
            for row in order[tier_offsets[j] : tier_offsets[j + 1]]:
                share = exp((np.float64(scores[row]) - above_max) - above_log)
                running += share * vector[row]
            mean[j - 1] = running


@jit(sums=True)
def own_bend(weight, strength, y, r, a):
    """E[r (1 − z − r)] of one item."""
    bend = 0.0
    for k in range(len(weight)):
        ratio = np.float64(r[a, k])
        bend += weight[k] * ratio * (1.0 - np.float64(strength) * y[k] - ratio)
    return bend


@jit(sums=True)
def weighted_cross(weight, r, a, other):
    """E[r_a · other] for one item and a number a node."""
    cross = 0.0
    for k in range(len(weight)):
        cross += weight[k] * r[a, k] * other[k]
    return cross


@jit(sums=True)
def weighted_variance(weight, r, a, mean):
    variance = 0.0
    for k in range(len(weight)):
        variance += weight[k] * (r[a, k] - mean) ** 2
    return variance


@jit()
def add_scaled(total, factor, r, a):
    for k in range(len(total)):
        total[k] += factor * r[a, k]


@jit()
def tier_curvature(
    scores, vector, order, tier_offsets, tier_weights, below_max, below_log, mean, lo, hi, rule,
    points, log_weights, diagonal, pull, push, out,
):  # fmt: skip
    """H u of every tier lo:hi into `out`, 1ᵀH u into `push`; with `diagonal`, H_aa and 1ᵀH 1.

    All are times the tier's weight, if there are weights.
    """
    nodes = len(points)
    largest, kept = scratch_items(tier_offsets, lo, hi, nodes, scores.itemsize)
    strength, u = np.empty(padded(largest), scores.dtype), np.empty(largest)
    arrays = scratch(nodes, scores)
    y, weight = arrays[0], arrays[1]
    along = np.empty(nodes)  # Σ_b r_b u_b at every node
    r = np.empty((kept, nodes), scores.dtype)
    for j in range(lo, hi):
        start, stop = tier_offsets[j], tier_offsets[j + 1]
        size = stop - start
        pull[j] = 0.0
        push[j] = 0.0
        if not np.isfinite(below_log[j]) or without_weight(tier_weights, j):
            for i in range(start, stop):
                out[order[i]] = 0.0
            continue
        for a in range(size):
            u[a] = 1.0 if diagonal else vector[order[start + a]] - mean[j]
        if size == 1:
            row = order[start]
            d = (np.float64(scores[row]) - below_max[j]) - below_log[j]
            pull[j] = single_item(d)[1]
            push[j] = -pull[j] * (1.0 - pull[j]) * u[0]
            out[row] = push[j]
            continue
        strengths(scores, order[start:stop], below_max[j], below_log[j], strength)
        integrate(strength, size, rule, points, log_weights, arrays, r)
        along[:] = 0.0
        for first in range(0, size, kept):
            last = min(first + kept, size)
            if size > kept:
                fill_ratios(strength[first:last], y, r)
            for a in range(last - first):
                add_scaled(along, u[first + a], r, a)
        along_mean = 0.0
        for k in range(nodes):
            along_mean += weight[k] * along[k]
        for k in range(nodes):
            along[k] -= along_mean
        for first in range(0, size, kept):
            last = min(first + kept, size)
            if size > kept:
                fill_ratios(strength[first:last], y, r)
            for a in range(last - first):
                slope = weighted_mean(weight, r, a)
                bend = own_bend(weight, strength[first + a], y, r, a)
                product_a = bend * u[first + a] + weighted_cross(weight, r, a, along)
                pull[j] += slope
                push[j] += product_a
                if diagonal:
                    product_a = bend + weighted_variance(weight, r, a, slope)
                out[order[start + first + a]] = product_a
    weigh_tiers(tier_weights, order, tier_offsets, lo, hi, push, pull, out)


@jit()
def charge_curvature(
    scores, vector, bottom, bottom_vector, upper, order, tier_offsets, list_offsets, row_offsets,
    below_max, below_log, mean, pull, push, lo, hi, diagonal, out, bottom_out,
):  # fmt: skip
    """Add to every item of lists lo:hi what it owes to the tiers above it."""
    for i in range(lo, hi):
        owed, owed_more = 0.0, 0.0  # pull; and 1ᵀH u − pull v̄, or 1ᵀH 1 + pull
        reached_max, reached_log = 0.0, 0.0
        for j in range(list_offsets[i], list_offsets[i + 1]):
            if owed != 0.0:
                for row in order[tier_offsets[j] : tier_offsets[j + 1]]:
                    share = exp((np.float64(scores[row]) - reached_max) - reached_log)
                    v = 0.0 if diagonal else vector[row]
                    out[row] += charge(share, owed, owed_more, v, diagonal)
                shrink = exp((below_max[j] - reached_max) + (below_log[j] - reached_log))
                owed *= shrink
                owed_more *= shrink * shrink if diagonal else shrink
            owed += pull[j]
            owed_more += push[j] + pull[j] * (1.0 if diagonal else -mean[j])
            reached_max, reached_log = below_max[j], below_log[j]
        for row in range(row_offsets[i], row_offsets[i + 1]):
            if not upper[row]:
                share = exp((np.float64(scores[row]) - reached_max) - reached_log)
                v = 0.0 if diagonal else vector[row]
                out[row] = charge(share, owed, owed_more, v, diagonal) if owed != 0.0 else 0.0
        bottom_out[i] = 0.0
        if owed != 0.0 and bottom[i] > NOTHING:
            share = exp((bottom[i] - reached_max) - reached_log)
            v = 0.0 if diagonal else bottom_vector[i]
            bottom_out[i] = charge(share, owed, owed_more, v, diagonal)


@jit()
def charge(share, owed, owed_more, v, diagonal):
    if diagonal:
        return share * (share * owed_more - owed)
    return -share * (owed_more + owed * v)
