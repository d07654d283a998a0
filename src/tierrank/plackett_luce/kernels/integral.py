"""The integral of a tier over what is below it, in torch: the twin of `native/integral.hpp`.

For a tier A over everything below it, B, with d_a = w_a − lse(w_B),

    P(A > B) = ∫ exp F(x) dx,    F(x) = x − eˣ + Σ_{a∈A} log(1 − exp(−e^{x + d_a})),

over the real line. It is proposition 1 of Ma et al. (2021) after u = exp(−eˣ). The integrand
is entire and log-concave, so it has one mode, 0 ≤ x* ≤ log(1 + |A|) because F'(x*) = 0 reads
eˣ = 1 + Σ r_a with

    r(z) = z / (e^z − 1),    z_a = e^{x + d_a},    ∂F/∂d_a = r(z_a),    dr/dx = r (1 − z − r).

Three steps give it, for all tiers of a table at once (`Nodes`):

1. `mode`: Newton on φ(y) = 1 + Σ r(y e^{d_a}) − y in y = eˣ, which is convex and falls.
2. `ends`: Newton on F(x) = F(x*) − drop, to each side. The fall needs to be right only to
   about `tolerance`.
3. Gauss-Legendre with `nodes` nodes between the two ends. With z₀ = e^{x₀ + d} at the left end
   x₀, y = eˣ and E = y/y₀ − 1 ≥ 0 at a node,

       A = 1 − exp(−z₀ E),    ρ = 1/(exp(z₀) − 1),
       log q(z) − log q(z₀) = log(1 + ρ A),    r(z) = r(z₀) (1 + E) (1 − A) / (1 + ρ A),

   for q(z) = 1 − e^−z: two elementary functions an item and node, and every difference keeps all
   its digits, so that ten thousand equal items may round the same way.

Few nodes suffice, because on its bracket the integrand looks like a Gaussian bump whatever the
size of the tier: that is what makes the likelihood linear. `drop` balances what is cut off
(e^−drop) against how wide the bracket is for its nodes.

All of it is static: the shapes follow from the table, and a search takes a fixed number of steps,
unless looking whether all have arrived costs nothing (on the CPU, outside `torch.compile`). What is
done for every item and node is done in the scores' own kind of float.

Tiers of few items need no integral: `few_items` sums over their subsets.

Below it stands the likelihood of whole lists and its derivatives, in plain torch: any device, the
same numbers as `kernels`. The stages are those of `native/lists.hpp`, each over all lists at once,
by the tables of `tiers/layout.py`. Log-sum-exps and all that is done once a tier are in float64
here too, but for devices that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank.plackett_luce.lists import can_look, why_nan, wide_dtype
from tierrank.plackett_luce.tier_sums import TierSums, scan
from tierrank.tiers.layout import Slots, Tables, tables_of


class Rule(NamedTuple):
    """Gauss-Legendre `nodes` on a bracket where log-integrand has fallen by `drop`.

    `end_steps` are Newton's to the ends of the bracket, of which a graph takes all.
    """

    nodes: int
    drop: float
    tolerance: float
    end_steps: int


# Worst error of log P relative to max(1, |log P|), over tiers of 2 to 10,000 items and
# d in [−40, 40], equal and mixed: 1.5e-6 with the first and 2e-14 with the second.
SINGLE = Rule(nodes=24, drop=13.5, tolerance=1.0, end_steps=6)
DOUBLE = Rule(nodes=96, drop=34.0, tolerance=3.0, end_steps=8)

# Beyond ±CLAMP an item is as good as infinitely weak or strong: 1 − exp(−z) is z, or 1, to
# far below rounding (e^−40 relative, with e^x ≤ e^20).
CLAMP = 60.0

# A mode is good enough when the slope left over would move it by this many widths.
MODE_TOLERANCE = 0.2

# Newton's steps to the mode, of which a graph takes all.
MODE_STEPS = 6


def rule_for(dtype: torch.dtype) -> Rule:
    """The rule whose error is below the rounding (float64) or the promise (float32) of dtype."""
    return DOUBLE if dtype == torch.float64 else SINGLE


def _legendre(nodes: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes on [−1, 1] and the logarithms of their weights, as a graph takes constants."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return tuple(points.tolist()), tuple(np.log(weights).tolist())


LEGENDRE = {rule.nodes: _legendre(rule.nodes) for rule in (SINGLE, DOUBLE)}

INVINCIBLE = 1e30  # e^d of an item that nothing beats, as in empty slots: q = 1, r = 0
BLOCK = 1 << 16  # numbers in one (items, nodes) array on the CPU: they stay in its cache
LARGE_BLOCK = 1 << 26  # elsewhere
KEPT = 1 << 24  # numbers in all such arrays that may be kept for the slopes


class Strengths(NamedTuple):
    """Tiers of a table: [rows, width] d and e^d, the latter as a float of the scores' kind."""

    slots: Slots
    d: Tensor
    strength: Tensor
    size: Tensor  # [tiers]

    @classmethod
    def of(cls, slots: Slots, d: Tensor, kind: torch.dtype) -> Strengths:
        """From [rows, width] d within ±60."""
        strength = torch.where(slots.filled, d.exp(), INVINCIBLE).to(kind)
        return cls(slots, d, strength, slots.sum(slots.filled.to(d)))

    @property
    def kind(self) -> torch.dtype:
        return self.strength.dtype

    def total(self, by_row: Tensor) -> Tensor:
        """[tiers, ...] Σ of [rows, ...], in float64."""
        return self.slots.sum_rows(by_row.to(self.d))

    def at(self, y: Tensor) -> Tensor:
        """[rows, width, points] z of every item, at [tiers, points] y = eˣ."""
        return self.strength.unsqueeze(2) * self.slots.spread(y.to(self.kind)).unsqueeze(1)


def expm1(x: Tensor) -> Tensor:
    """e^x − 1 with all digits, in a graph too: for the CPU, torch.compile subtracts 1 from e^x.

    What e^x lost to rounding before the subtraction is then found again by log1p.
    """
    if x.device.type != "cpu" or can_look():
        return torch.expm1(x)
    rough = torch.exp(x) - 1
    mended = torch.where(rough < -0.5, rough, rough * x / torch.log1p(rough))
    return torch.where(rough == 0, x, mended)


def mode(tiers: Strengths) -> tuple[Tensor, Tensor, Tensor]:
    """[tiers] y = eˣ near the mode of F, and F' and F'' there.

    Newton's method on y = 1 + Σ r, or on its logarithm, whichever goes further: the first is
    convex and never overshoots, the second is nearly straight where r falls exponentially.
    """
    n, d = tiers.size, tiers.strength

    def slopes(y: Tensor) -> tuple[Tensor, Tensor]:
        z = tiers.at(y.unsqueeze(1)).squeeze(2)
        r = z * torch.exp(-z) / -expm1(-z)
        drawn, second = tiers.total(torch.stack([r, r * (1 - z - r)], 2).sum(1)).unbind(1)
        return 1 - y + drawn, second - y

    # the root of y = 1 + n/(1 + z/2), because r(z) is near 1/(1 + z/2)
    p = tiers.total(torch.where(tiers.slots.filled, d / (1 + d), 0.0).sum(1)) / n
    mean = (p / (1 - p).clamp(min=1e-4)).clamp(max=1e4)
    linear = 0.5 - 0.25 * mean
    y = (1 + n) / (linear + (linear**2 + 0.5 * mean * (1 + n)).sqrt())
    y = torch.minimum(y.clamp(min=1.0), 1 + n)
    slope, second = slopes(y)
    for _ in range(MODE_STEPS):
        moving = slope * slope >= MODE_TOLERANCE**2 * -second
        if _all_arrived(moving):
            break
        drawn = slope + y  # 1 + Σ r, whose derivative in x is second + y
        in_logs = (drawn / y).log() / (1 - (second + y) / drawn)
        y = torch.where(moving, y * (1 + torch.maximum(-slope / second, in_logs)), y)
        slope, second = slopes(y)
    return y, slope, second


def ends(tiers: Strengths, rule: Rule) -> tuple[Tensor, Tensor]:
    """[tiers] the two x between which F stays within `drop` of its maximum.

    Newton's method on the logarithm of how far F has fallen: in y where that goes to the right,
    because from there F falls as an exponential of y does, and else in x.
    """
    y, slope, second = mode(tiers)
    x, drop, floor = y.log(), rule.drop, -rule.drop - 1.5  # F(0) − F(x) ≥ −x − 1

    def at(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.exp()
        z = tiers.at(y)
        less = expm1(-z)
        logs, drawn = tiers.total(
            torch.stack([torch.log(-less), z * (1 + less) / -less], 3).sum(1)
        ).unbind(2)
        return x - y + logs, 1 - y + drawn

    top = at(x.unsqueeze(1))[0] - (0.5 * slope * slope / second).unsqueeze(1)
    width = (-2 * drop / second).sqrt()
    both = torch.stack([x - 1.15 * width, x + torch.log1p(width)], 1).clamp(min=floor)
    for _ in range(rule.end_steps):
        f, slope = at(both)
        fallen = (top - f).clamp(min=1e-3)
        moving = ((fallen - drop).abs() >= rule.tolerance) & ~((both <= floor) & (fallen < drop))
        if _all_arrived(moving):
            break
        step = (fallen / drop).log() * fallen / slope
        further = both + torch.where(step > 0, torch.log1p(step.clamp(min=0.0)), step)
        both = torch.where(moving, further.clamp(min=floor), both)
    left, right = both.unbind(1)
    return left, right


def _all_arrived(moving: Tensor) -> bool:
    """Whether a search is over, as far as looking costs nothing."""
    return moving.device.type == "cpu" and can_look() and not bool(moving.any())


class Nodes:
    """Gauss-Legendre of every tier: log P, and [tiers, nodes] normalised weights."""

    def __init__(self, tiers: Strengths, rule: Rule, with_slopes: bool) -> None:
        self.tiers = tiers
        slots, kind = tiers.slots, tiers.kind
        left, right = ends(tiers, rule)
        points, log_weights = (
            torch.tensor(part, dtype=left.dtype, device=left.device)
            for part in LEGENDRE[rule.nodes]
        )
        half = 0.5 * (right - left)
        start = left.exp()
        # rounded once, so that all that follows is of the same nodes
        self.growth = expm1(half.unsqueeze(1) * (points + 1)).to(kind)
        self._growth = slots.spread(self.growth).unsqueeze(1)
        growth = self.growth.to(left)

        z = torch.where(slots.filled, (slots.spread(left).unsqueeze(1) + tiers.d).exp(), INVINCIBLE)
        less = expm1(-z)
        t, q = torch.exp(-z), -less
        log_q = torch.where(z < 0.7, torch.log(q), torch.log1p(-t))
        self._minus_z, self._minus_odds = -z.to(kind), (-t / q).to(kind)
        self.z, self.r = z.to(kind), (z * t / q).to(kind)

        keep = with_slopes and can_look() and z.numel() * rule.nodes <= KEPT
        self._falls: list[Tensor] = []
        sums = []
        for block in self._blocks():
            rise, fall = self._rise_and_fall(block)
            sums.append(torch.log1p(rise).sum(1))
            if keep:
                self._falls.append(fall)
        logs = tiers.total(torch.cat(sums) if len(sums) > 1 else sums[0])

        f = torch.log1p(growth) - start.unsqueeze(1) * growth + logs + log_weights
        largest = f.amax(1, keepdim=True)
        weight = (f - largest).exp()
        total = weight.sum(1, keepdim=True)
        self.weight = weight / total
        self.log_prob = (
            (largest + total.log()).squeeze(1) + half.log() + (left - start) + slots.sum(log_q)
        )

    def slopes(self) -> Tensor:
        """[rows, width] ∂ log P/∂d = E[r] of every item."""
        by_node = self.tiers.slots.spread((self.weight * (1 + self.growth)).to(self.tiers.kind))
        means = []
        for i, block in enumerate(self._blocks()):
            fall = self._falls[i] if self._falls else self._rise_and_fall(block)[1]
            means.append((fall * by_node[block].unsqueeze(1)).sum(2))
        return self.r * (torch.cat(means) if len(means) > 1 else means[0])

    def ratios(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Blocks of rows: which, and [rows, width, nodes] z and r."""
        for block in self._blocks():
            z = self.z[block].unsqueeze(2) * (1 + self._growth[block])
            yield block, z, z * torch.exp(-z) / -expm1(-z)

    def _blocks(self) -> list[slice]:
        rows = len(self.z)
        if not can_look():  # in a graph, where such arrays are fused away
            return [slice(0, rows)]
        most = BLOCK if self.z.device.type == "cpu" else LARGE_BLOCK
        size = max(1, most // (self.z.shape[1] * self.growth.shape[1]))
        return [slice(i, min(i + size, rows)) for i in range(0, rows, size)]

    def _rise_and_fall(self, block: slice) -> tuple[Tensor, Tensor]:
        """ρ A and (1 − A) / (1 + ρ A)."""
        less = expm1(self._minus_z[block].unsqueeze(2) * self._growth[block])  # −A
        rise = self._minus_odds[block].unsqueeze(2) * less
        return rise, (1 + less) / (1 + rise)


def few_items(d: Tensor, with_slopes: bool) -> tuple[Tensor, Tensor]:
    r"""[tiers] log P of tiers [tiers, n] of n items each, and [tiers, n] ∂ log P/∂d.

    The items of a subset S are all drawn before those below with probability

        chance(S) = Σ_{a∈S} D_a chance(S \ a) / (1 + Σ_{a∈S} D_a),    D_a = e^{d_a},

    every term positive: exact to rounding. Written out subset by subset, so that `torch.compile`
    makes one kernel of it. A factor min(D_a, 1) of every item is kept apart, as its logarithm:
    whatever the scores, the rest neither overflows nor vanishes.
    """
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


# -- lists ----------------------------------------------------------------------------------------


class Below:
    """What stands below each upper tier, and who pays to whom.

    An item below several tiers pays to each of them by its softmax share; it is enough to know
    its share of the tier just above it, since shares of tiers further up follow by the scans.
    """

    def __init__(self, scores: Tensor, bottom: Tensor, tables: Tables) -> None:
        self.scores, self.bottom, self.tables = scores, bottom, tables
        sums = TierSums(scores, bottom, tables.layout, tables)
        self.largest, self.log_total = sums.below.largest, sums.below.total.log()
        self.alone = self.largest == -torch.inf  # nothing below: no term
        self.share = self._share(scores, tables.pays, tables.paid)
        self.bottom_share = self._share(bottom, tables.bottom_pays, tables.bottom_paid)

    def _share(self, score: Tensor, pays: Tensor, paid: Tensor) -> Tensor:
        share = ((score - self.largest[paid]) - self.log_total[paid]).exp()
        return torch.where(pays & (score > -torch.inf), share, 0.0)

    def weight(self, tier_weights: Tensor | None) -> Tensor:
        """[upper tiers] how much each tier's term counts: no weights are all 1, no term is 0."""
        weight = torch.ones_like(self.largest)
        if tier_weights is not None and len(tier_weights):
            weight = _widened(tier_weights)
        return torch.where(self.alone, 0.0, weight)

    def log_ratio(self, partner: Tensor) -> Tensor:
        """lse below this tier minus lse below its partner."""
        ratio = (self.largest - self.largest[partner]) + (self.log_total - self.log_total[partner])
        return torch.where(self.alone, -torch.inf, ratio)

    def owed(self, pull: Tensor, power: int = 1) -> Tensor:
        """Σ over this tier and those above it of pull · e^{power (lse here − lse there)}."""
        return scan(
            pull, self.tables.downwards, lambda there: (power * self.log_ratio(there)).exp()
        )

    def mean(self, vector: Tensor, bottom_vector: Tensor) -> Tensor:
        """The softmax mean of a vector over everything below each tier."""
        of, paid_rows = self.tables, self.share * vector
        by_tier = of.upper.sum(of.upper.take(paid_rows, 0.0))  # what a tier pays to the one above
        by_list = of.sum_last(paid_rows) + self.bottom_share * bottom_vector
        added = torch.where(of.lowest, by_list[of.tier_list], by_tier[of.next_tier])
        return scan(
            added,
            of.upwards,
            lambda there: torch.where(self.alone[there], 0.0, (-self.log_ratio(there)).exp()),
        )

    def strength(self, tiers: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        """[…, n] d of items with these scores, held in ±CLAMP, and what log P lost by that.

        `tiers` […] are the upper tiers that they are in. An item of −inf is an empty slot.
        """
        d = (score - self.largest[tiers].unsqueeze(-1)) - self.log_total[tiers].unsqueeze(-1)
        d = torch.where(self.alone[tiers].unsqueeze(-1), 0.0, d)
        return d.clamp(-CLAMP, CLAMP), (d + CLAMP).clamp(max=0.0)


def log_prob_and_gradient(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """As `kernels.log_prob_and_gradient`."""
    tables = tables_of(layout)
    result = by_tables(scores, bottom, tables, tier_weights, with_gradient)
    if result[0].isnan().any():
        raise why_nan(scores, layout[0], tier_weights)
    return result


def log_prob_and_pullback(
    scores: Tensor, bottom: Tensor | None, layout: tuple[Tensor, ...], tier_weights: Tensor | None
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor | None]]]:
    """As in `kernels`: what takes the derivatives by the values to scores and bottom."""
    value, gradient, by_bottom = log_prob_and_gradient(scores, bottom, layout, tier_weights, True)
    assert gradient is not None

    def pullback(by_value: Tensor) -> tuple[Tensor, Tensor | None]:
        to_bottom = None if bottom is None or by_bottom is None else by_bottom * by_value
        return scale_lists(gradient, layout[0], by_value), to_bottom

    return value, pullback


def by_tables(
    scores: Tensor,
    bottom: Tensor | None,
    of: Tables,
    tier_weights: Tensor | None,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The same, from what was made of the layout: static, so that a graph may hold it.

    A list with a score that is not finite has log-probability NaN.
    """
    kind = scores.dtype
    scores = _widened(scores)
    bottom = _nothing(scores, of.layout) if bottom is None else _widened(bottom)
    if of.n_tiers == 0:
        log_prob = torch.zeros_like(bottom)
        gradient, bottom_gradient = torch.zeros_like(scores), torch.zeros_like(bottom)
    else:
        below = Below(scores, bottom, of)
        weight = below.weight(tier_weights)
        terms, slopes = tier_terms(below, kind, with_gradient)
        log_prob = of.terms.sum(of.terms.take(weight * terms, 0.0))
    finite = of.all_in_list(scores.isfinite())
    log_prob = torch.where(finite, log_prob, torch.nan).to(kind)
    if not with_gradient:
        return log_prob, None, None
    if of.n_tiers:
        own = torch.where(of.in_last, 0.0, weight[of.row_tier] * slopes)
        owed = below.owed(of.upper.sum(of.upper.take(own, 0.0)))
        gradient = own - below.share * owed[of.paid]
        bottom_gradient = -below.bottom_share * owed[of.bottom_paid]
    return log_prob, gradient.to(kind), bottom_gradient.to(kind)


def tier_terms(below: Below, kind: torch.dtype, with_slopes: bool) -> tuple[Tensor, Tensor]:
    """[upper tiers] log P of each over what is below it; [rows] its slope in every item's d."""
    of, scores = below.tables, below.scores
    values, slopes = [], [scores.new_zeros(1)]
    for tiers, rows in of.few:
        d, lost = below.strength(tiers, scores[rows])
        if rows.shape[1] == 1:
            value, slope = logsigmoid(d.squeeze(1)), torch.sigmoid(-d)
        else:
            value, slope = few_items(d, with_slopes)
        values.append(value + lost.sum(1))
        slopes.append(slope.reshape(-1))
    if len(of.many):
        nodes, lost = tier_nodes(below, of.many, of.many_slots, rule_for(kind), kind, with_slopes)
        values.append(nodes.log_prob + lost)
        slopes.append(nodes.slopes().reshape(-1).to(scores) if with_slopes else slopes[0])
    log_prob = torch.cat(values)[of.place_of_tier]
    return log_prob, torch.cat(slopes)[of.place_of_row] if with_slopes else slopes[0]


def tier_nodes(
    below: Below, tiers: Tensor, slots: Slots, rule: Rule, kind: torch.dtype, with_slopes: bool
) -> tuple[Nodes, Tensor]:
    """The quadrature of these upper tiers, laid out in slots; and what log P lost to ±CLAMP."""
    d, lost = below.strength(tiers[slots.group], slots.take(below.scores, 0.0))
    table = Strengths.of(slots, torch.where(slots.filled, d, 0.0), kind)
    nodes = Nodes(table, rule, with_slopes)
    return nodes, slots.sum(torch.where(slots.filled, lost, 0.0))


def derivatives(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """As `kernels.derivatives`."""
    value, gradient, _ = log_prob_and_gradient(scores, bottom, layout, tier_weights, True)
    assert gradient is not None
    return value, gradient, hessian_product(scores, bottom, layout, tier_weights, None, None)[0]


def hessian_product(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    vector: Tensor | None,
    bottom_vector: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """As `kernels.hessian_product`; the formulas stand in `native/hessian.hpp`."""
    kind, of = scores.dtype, tables_of(layout)
    scores = _widened(scores)
    bottom = _nothing(scores, layout) if bottom is None else _widened(bottom)
    if of.n_tiers == 0:
        return torch.zeros_like(scores, dtype=kind), torch.zeros_like(bottom, dtype=kind)
    diagonal = vector is None or bottom_vector is None
    v = torch.zeros_like(scores) if vector is None else _widened(vector)
    v_bottom = torch.zeros_like(bottom) if bottom_vector is None else _widened(bottom_vector)
    below = Below(scores, bottom, of)
    mean = below.mean(v, v_bottom)
    u = torch.ones_like(v) if diagonal else v - mean[of.row_tier]
    weight = torch.where(of.in_last, 0.0, below.weight(tier_weights)[of.row_tier])
    slope, product, own = (
        weight * part for part in tier_hessians(below, rule_for(kind), u, diagonal)
    )
    pull, push = (of.upper.sum(of.upper.take(part, 0.0)) for part in (slope, product))
    owed = below.owed(pull)
    more = below.owed(push + pull, power=2) if diagonal else below.owed(push - pull * mean)

    def cost(share: Tensor, paid: Tensor, v: Tensor) -> Tensor:
        if diagonal:
            return share * (share * more[paid] - owed[paid])
        return -share * (more[paid] + owed[paid] * v)

    out = own + cost(below.share, of.paid, v)
    return out.to(kind), cost(below.bottom_share, of.bottom_paid, v_bottom).to(kind)


def tier_hessians(below: Below, rule: Rule, u: Tensor, diagonal: bool) -> tuple[Tensor, ...]:
    """[rows] E[r], M u and, if asked for, the diagonal of M, the Hessian of log P in d (else M u).

    By the integral for all sizes of tiers but one item, and in float64.
    """
    of, slots = below.tables, below.tables.upper
    every = torch.arange(of.n_tiers, device=u.device)
    nodes, _ = tier_nodes(below, every, slots, rule, u.dtype, with_slopes=False)
    by = slots.take(u, 0.0)
    sums = [(r * by[block].unsqueeze(2)).sum(1) for block, _, r in nodes.ratios()]
    along = slots.sum_rows(torch.cat(sums))  # Σ_b r_b u_b at every node, then centred
    along = slots.spread(along - (nodes.weight * along).sum(1, keepdim=True))
    shares = slots.spread(nodes.weight)
    parts = []
    for block, z, r in nodes.ratios():
        weight = shares[block].unsqueeze(1)
        slope = (weight * r).sum(2)
        second = (weight * r * (1 - z - r)).sum(2)
        product = own = second * by[block] + (weight * r * along[block].unsqueeze(1)).sum(2)
        if diagonal:
            own = second + (weight * (r - slope.unsqueeze(2)) ** 2).sum(2)
        parts.append(torch.stack([slope, product, own]))
    all_three = torch.cat(parts, 1).flatten(1).index_select(1, of.place_in_upper)

    d = (below.scores - below.largest[of.row_tier]) - below.log_total[of.row_tier]
    slope = torch.sigmoid(-d)
    second = -slope * torch.sigmoid(d) * u
    return torch.where(of.single_row, torch.stack([slope, second, second]), all_three).unbind(0)


def scale_lists(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    """[rows] every row times the number of its list."""
    return rows * by_list.repeat_interleave(row_offsets.diff(), output_size=len(rows)).to(rows)


def in_graph(
    scores: Tensor,
    bottom: Tensor,
    tables: Tables,
    tier_weights: Tensor | None,
    differentiated: bool,
) -> Tensor:
    """[lists] log-probabilities inside `torch.compile`, differentiable once if asked for.

    An operator is opaque to the compiler. Here it gets what the operator would compute, step by
    step, and makes few kernels of it. A kernel cannot raise: a list with a score that is not
    finite has log-probability NaN.
    """
    given = scores.detach(), bottom.detach()
    value, *gradients = by_tables(*given, tables, tier_weights, differentiated)
    if differentiated:
        value = _Known.apply(scores, bottom, value, *gradients, tables.row_list)  # type: ignore[no-untyped-call]
    return value


class _Known(torch.autograd.Function):
    """A value [lists] whose gradients are known already."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, bottom: Tensor, value: Tensor, *known: Tensor) -> Tensor:
        ctx.save_for_backward(*known)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, by_value: Tensor) -> tuple[Tensor | None, ...]:
        gradient, bottom_gradient, row_list = ctx.saved_tensors
        to_bottom = (bottom_gradient * by_value).to(bottom_gradient)
        return gradient * by_value[row_list], to_bottom, None, None, None, None


def _nothing(scores: Tensor, layout: tuple[Tensor, ...]) -> Tensor:
    return scores.new_full((len(layout[0]) - 1,), -torch.inf)


def _widened(values: Tensor) -> Tensor:
    return values.to(wide_dtype(values.device))
