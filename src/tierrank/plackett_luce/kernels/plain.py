"""The likelihood of tiers and its derivatives in plain torch: any device, the same numbers.

The same stages as `native/lists.hpp`, each over all lists at once. Arrays of (items, nodes) are
made block by block, so that memory grows with the items only. The arithmetic is in float64 here
too, but for devices that have none.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank.plackett_luce.inputs import why_nan, wide_dtype
from tierrank.plackett_luce.kernels.ragged import Groups, TierSums, neighbours, scan
from tierrank.plackett_luce.quadrature import (
    CLAMP,
    MAX_STEPS,
    MODE_TOLERANCE,
    Rule,
    gauss_legendre,
    rule_for,
)

BLOCK = 1 << 22  # numbers in one (items, nodes) array


class Below:
    """What stands below each upper tier, and who pays to whom.

    An item below several tiers pays to each of them by its softmax share; it is enough to know
    its share of the tier just above it (`payers`), since shares of tiers further up follow by
    the scans.
    """

    def __init__(self, scores: Tensor, bottom: Tensor, layout: tuple[Tensor, ...]) -> None:
        _, self.order, _, list_offsets = layout
        self.scores, self.bottom = scores, bottom
        sums = TierSums(scores, bottom, layout)
        self.tier, self.tier_list, self.row_list = sums.tier, sums.tier_list, sums.row_list
        self.upwards, self.downwards = sums.upwards, neighbours(sums.tiers_above, -1)
        self.largest, self.log_total = sums.below.largest, sums.below.total.log()
        self.alone = self.largest == -torch.inf  # nothing below: no term

        lowest, has_tiers = list_offsets[1:] - 1, list_offsets.diff() > 0
        later = sums.tiers_above[self.tier.of] > 0
        last = (sums.in_last & has_tiers[self.row_list]).nonzero()[:, 0]
        self.payers = torch.cat([self.order[later], last])
        self.paid = torch.cat([self.tier.of[later] - 1, lowest[self.row_list[last]]])
        self.share = self._share(scores[self.payers], self.paid)
        self.bottoms = ((bottom > -torch.inf) & has_tiers).nonzero()[:, 0]
        self.bottom_paid = lowest[self.bottoms]
        self.bottom_share = self._share(bottom[self.bottoms], self.bottom_paid)

    def _share(self, score: Tensor, tier: Tensor) -> Tensor:
        return ((score - self.largest[tier]) - self.log_total[tier]).exp()

    def weight(self, tier_weights: Tensor | None) -> Tensor:
        """[upper tiers] how much each tier's term counts; no weights are all 1."""
        if tier_weights is None or not len(tier_weights):
            return torch.ones_like(self.largest)
        return _widened(tier_weights)

    def log_ratio(self, partner: Tensor) -> Tensor:
        """lse below this tier minus lse below its partner."""
        ratio = (self.largest - self.largest[partner]) + (self.log_total - self.log_total[partner])
        return torch.where(self.alone, -torch.inf, ratio)

    def owed(self, pull: Tensor, power: int = 1) -> Tensor:
        """Σ over this tier and those above it of pull · e^{power (lse here − lse there)}."""
        return scan(pull, self.downwards, lambda there: (power * self.log_ratio(there)).exp())

    def mean(self, vector: Tensor, bottom_vector: Tensor) -> Tensor:
        """The softmax mean of a vector over everything below each tier."""
        added = torch.zeros_like(self.largest)
        added.index_add_(0, self.paid, self.share * vector[self.payers])
        added.index_add_(0, self.bottom_paid, self.bottom_share * bottom_vector[self.bottoms])
        return scan(
            added,
            self.upwards,
            lambda there: torch.where(self.alone[there], 0.0, (-self.log_ratio(there)).exp()),
        )

    def strength(self) -> tuple[Tensor, Tensor]:
        """d of every upper item, held in ±CLAMP, and what log P of each tier lost by that."""
        d = (self.scores[self.order] - self.largest[self.tier.of]) - self.log_total[self.tier.of]
        d = torch.where(self.alone[self.tier.of], 0.0, d)
        return d.clamp(-CLAMP, CLAMP), self.tier.sum((d + CLAMP).clamp(max=0.0))


class Nodes:
    """The quadrature of every tier: log P, and [tiers, nodes] e^x and normalised weights."""

    def __init__(self, below: Below, rule: Rule) -> None:
        self.tier = tier = below.tier
        points, log_weights = (
            torch.tensor(part).to(below.scores) for part in gauss_legendre(rule.nodes)
        )
        d, lost = below.strength()
        self.strength = d.exp()
        left, right = bracket(self.strength, tier, rule.drop, rule.tolerance)
        half = 0.5 * (right - left)
        x = 0.5 * (left + right)[:, None] + half[:, None] * points
        self.y = x.exp()
        # Σ log q less its like at the middle, which may be large and is common to all nodes
        weak = (0.5 * (left + right)[tier.of] + d).clamp(max=0.0)
        leaves, leaf_of = tier.leaves(x)
        for block in self._blocks():
            log_q = log1mexp(self.strength[block, None] * self.y[tier.of[block]])
            leaves.index_add_(0, leaf_of[block], log_q - weak[block, None])
        f = x - self.y + log_weights + tier.collect(leaves)
        log_total = torch.logsumexp(f, 1)
        log_prob = log_total + half.log() + tier.sum(weak) + lost
        one_item = tier.sum(torch.ones_like(d)) == 1
        log_prob = torch.where(one_item, logsigmoid(tier.sum(d) + lost), log_prob)
        self.single = (one_item & ~below.alone)[tier.of]
        self.slope_if_single = torch.sigmoid(-d)
        self.log_prob = torch.where(below.alone, 0.0, log_prob)
        weight = torch.softmax(f, 1)
        self.weight = torch.where(below.alone[:, None], 0.0, weight)

    def _blocks(self) -> Iterator[slice]:
        size = max(1, BLOCK // self.y.shape[1])
        items = len(self.strength)
        return (slice(i, min(i + size, items)) for i in range(0, items, size))

    def ratios(self) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Blocks of items: which, their tiers, and z and r at every node."""
        for block in self._blocks():
            of = self.tier.of[block]
            z = self.strength[block, None] * self.y[of]
            yield block, of, z, ratio(z)


def ratio(z: Tensor) -> Tensor:
    """r = z / (e^z − 1) for z > 0, without overflow."""
    return z * (-z).exp() / -torch.expm1(-z)


def log1mexp(z: Tensor) -> Tensor:
    """log(1 − e^−z) for z > 0, with all digits at either end."""
    return torch.where(z < 0.7, torch.log(-torch.expm1(-z)), torch.log1p(-torch.exp(-z)))


def bracket(strength: Tensor, tier: Groups, drop: float, tolerance: float) -> tuple[Tensor, Tensor]:
    """As `native/integral.hpp`, for all tiers at once: those that are done stand still."""

    def at(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = x.exp()
        z = strength * y[tier.of]
        r = ratio(z)
        sums = tier.sum(torch.stack([torch.log(-torch.expm1(-z)), r, r * (1 - z - r)], 1))
        return x - y + sums[:, 0], 1 - y + sums[:, 1], sums[:, 2] - y

    size, total = tier.sum(torch.stack([torch.ones_like(strength), strength], 1)).unbind(1)
    mean = (total / size).clamp(max=1e4)
    linear = 0.5 - 0.25 * mean
    x = torch.log((1 + size) / (linear + (linear**2 + 0.5 * mean * (1 + size)).sqrt()))
    f, slope, bend = at(x)
    for _ in range(MAX_STEPS):
        moving = slope * slope >= MODE_TOLERANCE**2 * -bend
        if not moving.any():
            break
        x = torch.where(moving, x + torch.log1p(-slope / bend), x)
        f, slope, bend = at(x)
    mode, y = x, x.exp()
    level = f - 0.5 * slope * slope / bend - drop
    width, steady = (-2 * drop / bend).sqrt(), -bend - y

    t = width
    for _ in range(4):
        excess = y * (t.exp() - 1 - t) + 0.5 * steady * t * t - drop
        t = t - excess / (y * (t.exp() - 1) + steady * t)
    right = mode + t
    for _ in range(MAX_STEPS):
        f, slope, _ = at(right)
        moving = (f - level).abs() >= tolerance
        if not moving.any():
            break
        right = torch.where(moving, right - (f - level) / slope, right)

    floor = -drop - 1.5
    left = (mode - 1.15 * width).clamp(min=floor)
    for _ in range(MAX_STEPS):
        f, slope, bend = at(left)
        excess = level - f
        moving = excess.abs() >= tolerance
        if not moving.any():
            break
        root = (slope * slope + 2 * bend * excess).sqrt()  # NaN where the parabola has no root
        step = torch.where(root >= 0, 2 * excess / (slope + root), excess / slope)
        left = torch.where(moving, (left + step).clamp(min=floor), left)
    return left, right


def log_prob_and_gradient(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """As `native.log_prob_and_gradient`."""
    dtype, rule = scores.dtype, rule_for(scores.dtype)
    scores = _widened(scores)
    bottom = _nothing(scores, layout) if bottom is None else _widened(bottom)
    below = Below(scores, bottom, layout)
    nodes, weight = Nodes(below, rule), below.weight(tier_weights)
    log_prob = torch.zeros_like(bottom).index_add_(0, below.tier_list, weight * nodes.log_prob)
    log_prob[below.row_list[~scores.isfinite()]] = torch.nan
    if log_prob.isnan().any():
        raise why_nan(scores, layout[0], tier_weights)
    if not with_gradient:
        return log_prob.to(dtype), None, None

    slope = torch.empty_like(nodes.strength)
    for block, of, _, r in nodes.ratios():
        slope[block] = (nodes.weight[of] * r).sum(1)
    slope = torch.where(nodes.single, nodes.slope_if_single, slope) * weight[below.tier.of]
    owed = below.owed(below.tier.sum(slope))
    gradient, bottom_gradient = torch.zeros_like(scores), torch.zeros_like(bottom)
    gradient[below.order] = slope
    gradient.index_add_(0, below.payers, -below.share * owed[below.paid])
    bottom_gradient[below.bottoms] = -below.bottom_share * owed[below.bottom_paid]
    return log_prob.to(dtype), gradient.to(dtype), bottom_gradient.to(dtype)


def derivatives(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """As `native.derivatives`."""
    value, gradient, _ = log_prob_and_gradient(scores, bottom, layout, tier_weights, True)
    assert gradient is not None
    return value, gradient, curvature_product(scores, bottom, layout, tier_weights, None, None)[0]


def curvature_product(
    scores: Tensor,
    bottom: Tensor | None,
    layout: tuple[Tensor, ...],
    tier_weights: Tensor | None,
    vector: Tensor | None,
    bottom_vector: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """As `native.curvature_product`; the formulas stand in `native/hessian.hpp`."""
    dtype, rule = scores.dtype, rule_for(scores.dtype)
    scores = _widened(scores)
    bottom = _nothing(scores, layout) if bottom is None else _widened(bottom)
    diagonal = vector is None or bottom_vector is None
    v = torch.zeros_like(scores) if vector is None else _widened(vector)
    v_bottom = torch.zeros_like(bottom) if bottom_vector is None else _widened(bottom_vector)
    below = Below(scores, bottom, layout)
    nodes, tier = Nodes(below, rule), below.tier
    mean = below.mean(v, v_bottom)
    u = torch.ones_like(nodes.strength) if diagonal else v[below.order] - mean[tier.of]

    leaves, leaf_of = tier.leaves(nodes.y)
    for block, _, _, r in nodes.ratios():
        leaves.index_add_(0, leaf_of[block], r * u[block, None])
    along = tier.collect(leaves)  # Σ_b r_b u_b at every node, then centred
    along = along - (nodes.weight * along).sum(1, keepdim=True)
    slope, product, own = (torch.empty_like(u) for _ in range(3))
    for block, of, z, r in nodes.ratios():
        weight = nodes.weight[of]
        slope[block] = (weight * r).sum(1)
        bend = (weight * r * (1 - z - r)).sum(1)
        product[block] = own[block] = bend * u[block] + (weight * r * along[of]).sum(1)
        if diagonal:
            own[block] = bend + (weight * (r - slope[block, None]) ** 2).sum(1)
    bend = -nodes.slope_if_single * (1 - nodes.slope_if_single) * u
    slope = torch.where(nodes.single, nodes.slope_if_single, slope)
    product, own = (torch.where(nodes.single, bend, part) for part in (product, own))
    by_item = below.weight(tier_weights)[tier.of]
    slope, product, own = (by_item * part for part in (slope, product, own))
    pull, push = tier.sum(slope), tier.sum(product)
    owed = below.owed(pull)
    more = below.owed(push + pull, power=2) if diagonal else below.owed(push - pull * mean)

    def cost(share: Tensor, paid: Tensor, v: Tensor) -> Tensor:
        if diagonal:
            return share * (share * more[paid] - owed[paid])
        return -share * (more[paid] + owed[paid] * v)

    out, bottom_out = torch.zeros_like(scores), torch.zeros_like(bottom)
    out[below.order] = own
    out.index_add_(0, below.payers, cost(below.share, below.paid, v[below.payers]))
    bottom_out[below.bottoms] = cost(below.bottom_share, below.bottom_paid, v_bottom[below.bottoms])
    return out.to(dtype), bottom_out.to(dtype)


def scale_lists(rows: Tensor, row_offsets: Tensor, by_list: Tensor) -> Tensor:
    """[rows] every row times the number of its list."""
    return rows * by_list.repeat_interleave(row_offsets.diff(), output_size=len(rows)).to(rows)


def _nothing(scores: Tensor, layout: tuple[Tensor, ...]) -> Tensor:
    return scores.new_full((len(layout[0]) - 1,), -torch.inf)


def _widened(values: Tensor) -> Tensor:
    return values.to(wide_dtype(values.device))
