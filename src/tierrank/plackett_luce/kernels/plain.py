"""The likelihood of tiers and its derivatives in plain torch: any device, the same numbers.

The same stages as `native/lists.hpp`, each over all lists at once, by the tables of
`tiers/layout.py`. Log-sum-exps and all that is done once a tier are in float64 here too, but for
devices that have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tierrank.plackett_luce.integral import CLAMP, Nodes, Rule, Strengths, few_items, rule_for
from tierrank.plackett_luce.lists import why_nan, wide_dtype
from tierrank.plackett_luce.tier_sums import TierSums, scan
from tierrank.tiers.layout import Slots, Tables, tables_of


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
