"""Tiers of few items in plain torch: summed over their subsets, without an integral.

The items of a subset S are all drawn before those below with probability

    chance(S) = Σ_{a∈S} D_a chance(S \\ a) / (1 + Σ_{a∈S} D_a),    D_a = e^{d_a},

every term positive: exact to rounding. Written out subset by subset, so that `torch.compile`
makes one kernel of it. A factor min(D_a, 1) of every item is kept apart, as its logarithm:
whatever the scores, the rest neither overflows nor vanishes.
"""

from __future__ import annotations

import torch
from torch import Tensor


def few_items(d: Tensor, with_slopes: bool) -> tuple[Tensor, Tensor]:
    """[tiers] log P of tiers [tiers, n] of n items each, and [tiers, n] ∂ log P/∂d."""
    n = d.shape[1]
    worths, by_one = d.exp().unbind(1), d.clamp(min=0.0).exp().unbind(1)  # D, D / min(D, 1)
    subsets = range(1, 1 << n)
    members = {s: [a for a in range(n) if s >> a & 1] for s in subsets}
    total, chance = {0: torch.ones_like(d[:, 0])}, {0: torch.ones_like(d[:, 0])}
    for s in subsets:
        top = members[s][-1]
        total[s] = total[s ^ 1 << top] + worths[top]
        drawn = by_one[top] * chance[s ^ 1 << top]
        for a in members[s][:-1]:
            drawn = torch.addcmul(drawn, by_one[a], chance[s ^ 1 << a])
        chance[s] = drawn / total[s]
    everyone = subsets[-1]
    log_prob = chance[everyone].log() + d.clamp(max=0.0).sum(1)
    if not with_slopes:
        return log_prob, d.new_empty(0)

    # ∂ log P/∂d_a = 1 − Σ_{S∋a} visits(S) D_a / total(S), where visits(S) is how probable it is
    # that S is left over at some time: blame(S) chance(S), blame = ∂ log chance(all)/∂ chance(S)
    blame, met = {everyone: 1 / chance[everyone]}, dict.fromkeys(range(n), d.new_zeros(()))
    for s in reversed(subsets):
        share = blame[s] / total[s]
        visits = share * chance[s]
        for a in members[s]:
            others = s ^ 1 << a
            part = share * by_one[a]
            blame[others] = blame[others] + part if others in blame else part
            met[a] = met[a] + visits
    return log_prob, torch.stack([1 - worths[a] * met[a] for a in range(n)], 1)
