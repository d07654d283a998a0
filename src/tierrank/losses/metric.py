"""Objectives that stand for a metric of the first places: NDCG, and others by swaps of pairs.

A grade is a tier's label, where the tiers were built from labels; else it is the number of tiers
below it (`Tiers.grades`), and 0 for a rest. The gain of a grade g is 2^g − 1 (``gain="exp2"``) or
g ("linear"), as in `tierrank.metrics`; negative grades have none, and are refused. Gains are
divided by the DCG of the best order, so no grade is too large. In a list of one tier, or without
any gain, every order is as good: its loss is 0.

All of them take ``likelihood=λ``: minus λ times the log-probability of the tiers under the
Plackett-Luce model is added, the loss of `pl_partition`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tierrank import _native
from tierrank._types import FloatArray
from tierrank.errors import Argument, ArgumentError
from tierrank.losses.likelihood import pl_partition
from tierrank.losses.lists import TierOrder
from tierrank.losses.objective import Reduction, native_computes, objective, reduced
from tierrank.plackett_luce.kernels import kernel_for
from tierrank.plackett_luce.lists import FlatLists, Scores, upper_tier_weights
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_generator, repeat

Gain = Literal["exp2", "linear"]
Weighting = Literal["ndcg-loss1", "ndcg-loss2", "ndcg-loss2++", "lambdarank", "ranknet"]
SwapMetric = Literal["ndcg", "map", "mrr", "precision"]

CELLS = 1 << 22  # numbers at once, of what the formulas in torch write out
ALL = 1 << 62  # places


# -- LambdaLoss: pairs, weighted by what they mean for the metric ---------------------------------


@objective
def lambda_loss(
    scores: Any,
    tiers: Tiers,
    *,
    weighting: Weighting = "ndcg-loss2++",
    metric: SwapMetric = "ndcg",
    k: int | None = None,
    gain: Gain = "exp2",
    relevant: float = 1.0,
    sigma: float = 1.0,
    mu: float = 10.0,
    likelihood: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Logistic pairs, weighted by a metric at the present order (LambdaLoss; Wang et al., 2018).

        loss = Σ_{i in a better tier than j} ω_ij log2(1 + e^{−σ (w_i − w_j)})

    With r_i the place of i by falling score, G_i its gain over the best DCG, D(r) = log2(1 + r):

        lambdarank    ω = ``|1/D(r_i) − 1/D(r_j)| · |G_i − G_j|``, what a swap changes in NDCG
        ndcg-loss2    ω = (1/D(m) − 1/D(m + 1)) ``|G_i − G_j|``,  m = ``|r_i − r_j|``
        ndcg-loss2++  ω = μ times that of ndcg-loss2 + that of lambdarank
        ndcg-loss1    ω = G_i / D(r_i) on all pairs of i with others, also of its own tier
        ranknet       ω = 1

    (their equations 12 to 16; ndcg-loss1 and 2 bound the cost of NDCG from above.) Other metrics
    than "ndcg" go with weighting="lambdarank": ω is what a swap of i and j changes in them (Donmez,
    Svore and Burges, 2009). With LambdaLoss the weights are constants: the gradient is that of the
    pairs, and the value jumps where items change places. Of equal scores the worse tier counts as
    placed first, and items of equal score and tier as placed in every order, each equally often.
    Takes time proportional to the pairs that count, memory to the items.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weighting : {"ndcg-loss1", "ndcg-loss2", "ndcg-loss2++", "lambdarank", "ranknet"}
        Of pairs, as above.
    metric : {"ndcg", "map", "mrr", "precision"}
        "ndcg", "map" (average precision), "mrr" (reciprocal rank), or "precision" at k.
    k : int, optional
        NDCG@k, and P@k (10, if None); a pair with neither item in the first k places counts for
        nothing.
    gain : {"exp2", "linear"}
        Of a grade g: "exp2", 2^g − 1, or "linear", g.
    relevant : float
        The least grade of a relevant item, for the metrics that know only these.
    sigma : float
        How steep the logistic loss is, σ.
    mu : float
        The factor μ of ndcg-loss2++.
    likelihood : float
        Adds so many times the loss of `pl_partition`.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    ranknet : Logistic pairs.
    expected_ndcg : Expected NDCG, exactly.
    approx_ndcg : NDCG at smooth ranks.

    Examples
    --------
    >>> import tierrank as tr
    >>> tiers = tr.Tiers.from_labels([1, 0])  # a swap changes NDCG by 1 − 1/log2(3) = 0.369
    >>> float(tr.losses.lambda_loss([0.0, 0.0], tiers, weighting="lambdarank"))  # · log2(2)
    0.3690702464
    """
    given = Scores(scores)
    kernel, formula, lists = _pairs(given.values, tiers, weighting, metric, k, gain, relevant,
                                    sigma, mu)  # fmt: skip
    losses = _by_list(lists, kernel, formula)
    return _finished(given, losses, tiers, likelihood, weights, reduction)


def lambda_loss_hessian(
    rows: FloatArray,
    tiers: Tiers,
    *,
    weighting: Weighting = "ndcg-loss2++",
    metric: SwapMetric = "ndcg",
    k: int | None = None,
    gain: Gain = "exp2",
    relevant: float = 1.0,
    sigma: float = 1.0,
    mu: float = 10.0,
    likelihood: float = 0.0,
) -> FloatArray:
    """Diagonal of the Hessian where the weights are constants: Σ ω σ² p (1 − p) / log 2."""
    values = torch.empty(len(rows), dtype=torch.float64)
    values[tiers.items] = torch.from_numpy(np.ascontiguousarray(rows))
    kernel, _, lists = _pairs(values, tiers, weighting, metric, k, gain, relevant, sigma, mu)
    second = np.empty(len(rows))
    kernel(lists.rows, None, second)
    if likelihood:
        flat = FlatLists(values, tiers)
        problem = flat.problem(upper_tier_weights(None, tiers, True))
        diagonal = -kernel_for(flat.rows.device).derivatives(*problem)[2]
        if flat.gather is not None:
            diagonal = torch.empty_like(diagonal).index_copy_(0, flat.gather, diagonal)
        second += likelihood * diagonal.numpy()[tiers.items.numpy()]
    return second


def _pairs(
    values: Tensor,
    tiers: Tiers,
    weighting: Weighting,
    metric: SwapMetric,
    k: int | None,
    gain: Gain,
    relevant: float,
    sigma: float,
    mu: float,
) -> tuple[Kernel, Formula, _GainedLists]:
    """LambdaLoss by the native core and in torch, and the lists that both take."""
    _choice("weighting", weighting, Weighting)
    _choice("metric", metric, SwapMetric)
    _positive("sigma", sigma)
    _positive("mu", mu)
    if metric != "ndcg" and weighting != "lambdarank":
        raise ArgumentError(
            f"{weighting} is made for NDCG; for {metric} use ", Argument("weighting", "lambdarank")
        )
    if metric == "precision" and k is None:
        k = 10
    most = _places(k)
    lists = _GainedLists(values, tiers, gain, most)
    gains = lists.gains if metric == "ndcg" else lists.relevant(relevant)
    tier_of = tiers.kept("tier of row", lambda: lists.tier_of)

    def kernel(rows: Tensor, gradient: FloatArray | None, hessian: FloatArray | None) -> FloatArray:
        value = np.empty(len(lists.list_offsets) - 1)
        _native.lambda_loss(
            weighting, metric, most, float(sigma), float(mu), lists.list_offsets.numpy(),
            tier_of.numpy(), rows.numpy(), gains.numpy(), torch.get_num_threads(), value, gradient,
            hessian,
        )  # fmt: skip
        return value

    def formula(rows: Tensor) -> Tensor:
        options = weighting, metric, most, sigma, mu
        return _by_blocks(lists, rows, (gains, tier_of), 2, partial(_lambda_formula, *options))

    return kernel, formula, lists


def _lambda_formula(
    weighting: Weighting,
    metric: SwapMetric,
    k: int,
    sigma: float,
    mu: float,
    block: _Block,
    scores: Tensor,
    gains: Tensor,
    tier: Tensor,
) -> Tensor:
    """[lists] LambdaLoss of a block, all pairs written out; a is the place above b."""
    width = scores.shape[1]
    falling = torch.where(block.inside, scores.detach(), -torch.inf).flip(1)
    order = width - 1 - falling.argsort(dim=1, descending=True, stable=True)
    scores, gains, tier, inside = (
        each.gather(1, order) for each in (scores, gains, tier, block.inside)
    )
    inside = inside.clone()
    scores = _mean_of_equals(torch.where(inside, scores, 0.0), tier)
    place = torch.arange(1, width + 1, device=scores.device).to(scores.dtype)
    discount = _discounts(width, k, scores)
    gap = (gains[:, :, None] - gains[:, None, :]).abs()
    distance = (place[None, :] - place[:, None]).clamp(min=1)
    nearness = 1 / torch.log2(1 + distance) - 1 / torch.log2(2 + distance)
    swap = torch.zeros_like(gap)
    if weighting in ("lambdarank", "ndcg-loss2++"):
        alpha, beta = _swap_differences(metric, gains, place, discount, k)
        swap = alpha[:, :, None] - beta[:, None, :]
    weight = {
        "ranknet": lambda: torch.ones_like(gap),
        "lambdarank": lambda: swap * gap,
        "ndcg-loss2": lambda: nearness * gap,
        "ndcg-loss2++": lambda: (mu * nearness + swap) * gap,
        "ndcg-loss1": lambda: torch.zeros_like(gap),
    }[weighting]()
    right, wrong = tier[:, :, None] < tier[:, None, :], tier[:, :, None] > tier[:, None, :]
    for_a, for_b = torch.where(right, weight, 0.0), torch.where(wrong, weight, 0.0)
    if weighting == "ndcg-loss1":
        own = gains * discount
        for_a, for_b = own[:, :, None].expand_as(gap), own[:, None, :].expand_as(gap)
    counts = (inside[:, :, None] & inside[:, None, :]).triu(1) & (place <= k)[:, None]
    ahead = sigma * (scores[:, :, None] - scores[:, None, :])
    losses = for_a * softplus(-ahead) + for_b * softplus(ahead)
    return torch.where(counts, losses, 0.0).sum((1, 2)) / math.log(2)


def _mean_of_equals(scores: Tensor, tier: Tensor) -> Tensor:
    """The scores, equal ones of a tier as their mean: so each gets the mean of the slopes."""
    new = torch.ones_like(scores, dtype=torch.bool)
    fixed = scores.detach()
    new[:, 1:] = (fixed[:, 1:] != fixed[:, :-1]) | (tier[:, 1:] != tier[:, :-1])
    run = new.long().cumsum(1) - 1
    size = torch.zeros_like(fixed).scatter_add(1, run, torch.ones_like(fixed))
    mean = torch.zeros_like(scores).scatter_add(1, run, scores) / size.clamp(min=1)
    return mean.gather(1, run)


def _swap_differences(
    metric: SwapMetric, gains: Tensor, place: Tensor, discount: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """α and β [lists, places]: a swap of a with b below it changes the metric by α_a − β_b.

    Times ``|G_a − G_b|``; derived in `native/metric_pairs.hpp`.
    """
    if metric == "ndcg":
        return discount.expand_as(gains), discount.expand_as(gains)
    if metric == "precision":
        share = ((place <= k).to(gains.dtype) / k).expand_as(gains)
        return share, share
    hit = (gains > 0).to(gains.dtype)
    if metric == "map":
        count, total = hit.cumsum(1), (hit / place).cumsum(1)
        all_hits = hit.sum(1, keepdim=True).clamp(min=1)
        alpha, beta = (count + 1 - hit) / place - total, (count + hit) / place - total
        return alpha / all_hits, beta / all_hits
    places = torch.where(hit > 0, place, place[-1] + 1)
    first, second = torch.nn.functional.pad(places.sort(1).values, (0, 1), value=len(place) + 1)[
        :, :2
    ].unbind(1)
    first, second = first[:, None], second[:, None]
    later = torch.where(hit > 0, second, first)
    alpha = 1 / torch.where(place <= first, place, later)
    return alpha, 1 / torch.where(hit > 0, first, torch.minimum(place, second))


# -- ApproxNDCG: places that are smooth -----------------------------------------------------------


@objective
def approx_ndcg(
    scores: Any,
    tiers: Tiers,
    *,
    temperature: float = 1.0,
    gain: Gain = "exp2",
    likelihood: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """One minus NDCG at smooth ranks (ApproxNDCG; Qin et al., 2010).

        loss = 1 − Σ_i G_i / log2(1 + r_i),     r_i = 1 + Σ_{j≠i} 1/(1 + e^{(w_i − w_j)/T})

    with G the gains over the best DCG of the list. The lower the temperature T, the closer to
    NDCG, and the less there is to learn from scores that are far apart (the paper's α is 1/T).
    Not convex. Takes time proportional to the pairs, memory to the items.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    temperature : float
        T: the lower, the closer to NDCG and the less smooth.
    gain : {"exp2", "linear"}
        Of a grade g: "exp2", 2^g − 1, or "linear", g.
    likelihood : float
        Adds so many times the loss of `pl_partition`.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    neural_ndcg : NDCG after a smooth sort.
    expected_ndcg : Expected NDCG, exactly.
    lambda_loss : Pairs weighted by a metric.

    Examples
    --------
    >>> import tierrank as tr
    >>> float(tr.losses.approx_ndcg([0.0, 0.0], tr.Tiers.from_labels([1, 0])))  # 1 − 1/log2(2.5)
    0.2435292027
    """
    given = Scores(scores)
    _positive("temperature", temperature)
    lists = _GainedLists(given.values, tiers, gain, ALL)

    def kernel(rows: Tensor, gradient: FloatArray | None, _: None) -> FloatArray:
        value = np.empty(len(lists.list_offsets) - 1)
        _native.approx_ndcg(
            float(temperature), lists.list_offsets.numpy(), rows.numpy(), lists.gains.numpy(),
            torch.get_num_threads(), value, gradient,
        )  # fmt: skip
        return value

    def of_block(block: _Block, scores: Tensor, gains: Tensor) -> Tensor:
        ahead = (scores[:, None, :] - scores[:, :, None]) / temperature  # of j, before i
        others = block.inside[:, None, :] & ~torch.eye(
            scores.shape[1], dtype=torch.bool, device=scores.device
        )
        rank = 1 + torch.where(others, torch.sigmoid(ahead), 0.0).sum(2)
        return (gains / torch.log2(1 + rank)).sum(1)

    formula = partial(_by_blocks, lists, by_row=(lists.gains,), power=2, of_block=of_block)
    losses = lists.claims - _by_list(lists, kernel, formula)
    return _finished(given, losses, tiers, likelihood, weights, reduction)


# -- expected NDCG: of the model itself -----------------------------------------------------------


@objective
def expected_ndcg(
    scores: Any,
    tiers: Tiers,
    *,
    k: int | None = 10,
    gain: Gain = "exp2",
    likelihood: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """One minus the NDCG@k that the model expects, exactly (objective of Oosterhuis, 2021).

        loss = 1 − Σ_i G_i Σ_{r≤k} P(i at place r) / log2(1 + r)

    with G the gains over the best DCG@k of the list, and P the Plackett-Luce model with worths
    e^w. No sampling: given the time at which item i arrives, the others have arrived or not,
    independently, so that its place is one plus a Poisson-binomial number; the integral over
    that time is computed to 1e-12 (1e-7 for scores in float32), by `native/expected_dcg.hpp`.
    Smooth, and not convex: where scores are far apart and wrong, the gradient vanishes. Takes
    time proportional to items times k, for any scores.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    k : int or None
        NDCG@k; None for all places, where the time is proportional to the square of the items.
    gain : {"exp2", "linear"}
        Of a grade g: "exp2", 2^g − 1, or "linear", g.
    likelihood : float
        Adds so many times the loss of `pl_partition`.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    pl_rank : Its gradient, from draws.
    approx_ndcg : NDCG at smooth ranks.
    lambda_loss : Pairs weighted by a metric.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tiers = tr.Tiers.from_labels([1, 0])  # first with 3/4, else second: 1 − (3 + 1/log2(3))/4
    >>> float(tr.losses.expected_ndcg(np.log([3.0, 1.0]), tiers))
    0.0922675616
    """
    given = Scores(scores)
    most = _places(k)
    lists = _GainedLists(given.values, tiers, gain, most)
    fineness = 1.0 if given.values.dtype == torch.float64 else 1.5  # of the step between nodes

    def kernel(rows: Tensor, gradient: FloatArray | None, _: None) -> FloatArray:
        value = np.empty(len(lists.list_offsets) - 1)
        _native.expected_dcg(
            most, fineness, lists.list_offsets.numpy(), rows.numpy(), lists.gains.numpy(),
            torch.get_num_threads(), value, gradient,
        )  # fmt: skip
        return value

    of_block = partial(_expected_formula, most)
    formula = partial(_by_blocks, lists, by_row=(lists.gains,), power=1, of_block=of_block,
                      each=64 * min(most, 64))  # fmt: skip
    losses = lists.claims - _by_list(lists, kernel, formula)
    return _finished(given, losses, tiers, likelihood, weights, reduction)


GAP = 64.0  # scores further apart than this are as good as infinitely far: e^−64


def _expected_formula(k: int, block: _Block, scores: Tensor, gains: Tensor) -> Tensor:
    """[lists] Σ_i G_i E[1/log2(1 + place of i) up to k], as `native/expected_dcg.hpp` derives it.

    Nodes and items are written out; the items' polynomials are multiplied in pairs, in pairs of
    pairs, and so on.
    """
    width, inside = scores.shape[1], block.inside
    # gaps that mean the same as GAP are made that: so the nodes need not reach across
    lowest = torch.where(inside, scores.detach(), torch.inf).amin(1, keepdim=True)
    given, order = torch.where(inside, scores, lowest).sort(dim=1, descending=True)
    inside, gains = inside.gather(1, order), gains.gather(1, order)
    falls = (given[:, :-1] - given[:, 1:]).clamp(max=GAP)
    scores = torch.nn.functional.pad(-falls.cumsum(1), (1, 0))
    fixed = scores.detach()
    worths = torch.where(inside, fixed, -torch.inf).logsumexp(1)
    begin, end = -worths - 0.7, math.log(40.0) - fixed[:, -1]
    h = min(0.25, 0.65 / k**0.5) if k < width else 0.25
    nodes = int((float((end - begin).max()) + 4.6) / h) + 1
    v = h * torch.arange(nodes, device=scores.device).to(scores.dtype) - 3.6
    u = begin[:, None] + v - (-v).exp()
    z = (scores[:, None, :] + u[:, :, None]).clamp(max=50.0).exp()
    z = torch.where(inside[:, None, :], z, 0.0)  # [lists, nodes, items]
    out = (-z).exp()
    arrived = torch.stack([out, -torch.expm1(-z)], -1)[..., : min(k, 2)]
    now = torch.nn.functional.pad((gains[:, None, :] * z * out)[..., None], (0, min(k, 2) - 1))
    while arrived.shape[2] > 1:
        if arrived.shape[2] % 2:  # one more, that never arrives
            arrived = torch.nn.functional.pad(arrived, (0, 0, 0, 1))
            arrived[:, :, -1, 0] = 1.0
            now = torch.nn.functional.pad(now, (0, 0, 0, 1))
        a0, b0, a1, b1 = arrived[:, :, ::2], arrived[:, :, 1::2], now[:, :, ::2], now[:, :, 1::2]
        arrived, now = _product(a0, b0, k), _product(a1, b0, k) + _product(a0, b1, k)
    discount = _discounts(now.shape[-1], k, scores)
    return (now[:, :, 0] @ discount) @ (h * (1 + (-v).exp()))


def _product(a: Tensor, b: Tensor, most: int) -> Tensor:
    """Of polynomials along the last axis, up to so many coefficients."""
    n = a.shape[-1]
    slid = torch.nn.functional.pad(b, (n - 1, n - 1)).unfold(-1, n, 1)[..., :most, :]
    return (slid * a.flip(-1)[..., None, :]).sum(-1)


# -- NeuralNDCG: a sort that is smooth ------------------------------------------------------------


@objective
def neural_ndcg(
    scores: Any,
    tiers: Tiers,
    *,
    k: int | None = None,
    temperature: float = 1.0,
    scalings: int = 50,
    gain: Gain = "exp2",
    likelihood: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """One minus NDCG@k after a smooth sort (NeuralNDCG; Pobrotyn and Białobrzeski, 2021).

        loss = 1 − Σ_r Σ_j P_rj G_j / log2(1 + r)
        P_r = softmax over j of ((n + 1 − 2r) w_j − Σ_l ``|w_j − w_l|``)/T

    with P scaled `scalings` times to rows and columns of sum 1 (Sinkhorn). Read by columns instead
    of rows the double sum is the paper's transposed NeuralNDCG: the same number. Takes time
    and memory proportional to the square of the items, in torch on every device.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    k : int, optional
        NDCG@k: how many places count; None for all.
    temperature : float
        T: the lower, the closer to NDCG and the less smooth.
    scalings : int
        Steps of Sinkhorn's algorithm.
    gain : {"exp2", "linear"}
        Of a grade g: "exp2", 2^g − 1, or "linear", g.
    likelihood : float
        Adds so many times the loss of `pl_partition`.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    approx_ndcg : NDCG at smooth ranks.
    expected_ndcg : Expected NDCG, exactly.

    Examples
    --------
    >>> import tierrank as tr
    >>> tiers = tr.Tiers.from_labels([1, 0])  # equal scores are in either place by halves
    >>> float(tr.losses.neural_ndcg([0.0, 0.0], tiers))  # 1 − (1 + 1/log2(3))/2
    0.1845351232
    """
    given = Scores(scores)
    _positive("temperature", temperature)
    most, times = _places(k), _count("scalings", scalings, least=0)
    lists = _GainedLists(given.values, tiers, gain, most)

    def of_block(block: _Block, scores: Tensor, gains: Tensor) -> Tensor:
        pairs = block.inside[:, :, None] & block.inside[:, None, :]  # padding is below everybody
        apart = torch.where(pairs, (scores[:, :, None] - scores[:, None, :]).abs(), 0.0).sum(1)
        n = block.inside.sum(1)[:, None, None]
        place = torch.arange(1, scores.shape[1] + 1, device=scores.device).to(scores.dtype)
        raised = scores - torch.where(block.inside, scores.detach(), -torch.inf).amax(
            1, keepdim=True
        )
        logits = (
            (n + 1 - 2 * place[:, None]) * raised[:, None, :] - apart[:, None, :]
        ) / temperature
        nowhere = torch.finfo(logits.dtype).min
        sort = torch.where(pairs, logits, nowhere).softmax(2) * pairs
        by_row, by_column = block.inside.to(scores), block.inside.to(scores)
        for _ in range(times):
            by_column = 1 / (sort.mT @ by_row[:, :, None])[..., 0].clamp(min=1e-300)
            by_column = torch.where(block.inside, by_column, 0.0)
            by_row = 1 / (sort @ by_column[:, :, None])[..., 0].clamp(min=1e-300)
            by_row = torch.where(block.inside, by_row, 0.0)
        sorted_gains = by_row * (sort @ (by_column * gains)[:, :, None])[..., 0]
        return sorted_gains @ _discounts(scores.shape[1], most, scores)

    losses = lists.claims - _by_blocks(lists, lists.rows, (lists.gains,), 2, of_block)
    return _finished(given, losses, tiers, likelihood, weights, reduction)


# -- PL-Rank: expected NDCG by draws --------------------------------------------------------------


@objective
def pl_rank(
    scores: Any,
    tiers: Tiers,
    *,
    k: int | None = 10,
    samples: int = 16,
    gain: Gain = "exp2",
    likelihood: float = 0.0,
    generator: torch.Generator | int | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """The gradient of expected NDCG@k, estimated from drawn rankings (PL-Rank; Oosterhuis, 2021).

    With rankings y drawn from the Plackett-Luce model, and θ_r = 1/log2(1 + r) up to place k,

        gradient = −mean over y of Σ_r [ (Σ_{s>r} θ_s G_{y_s}) ∇ log P(y_r | y_<r)
                                        + θ_r Σ_j G_j ∇ P(j | y_<r) ],

    which is PL-Rank-2, unbiased for that of `expected_ndcg`. The value is only what has this
    gradient, and need not fall while a model improves. Takes n log n steps a draw.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    k : int or None
        NDCG@k: how many places count; None for all.
    samples : int
        How many rankings are drawn for each list.
    gain : {"exp2", "linear"}
        Of a grade g: "exp2", 2^g − 1, or "linear", g.
    likelihood : float
        Adds so many times the loss of `pl_partition`.
    generator : Generator or int, optional
        A torch generator or a seed; None for torch's global one.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    expected_ndcg : Expected NDCG, exactly.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> w = torch.zeros(2, requires_grad=True)
    >>> tr.losses.pl_rank(w, tr.Tiers.from_labels([1, 0]), generator=0).backward()
    >>> w.grad  # −(1 − 1/log2(3))/4, whatever is drawn: of two places the second has no choice
    tensor([-0.0923,  0.0923])
    """
    given = Scores(scores)
    most, draws = _places(k), _count("samples", samples)
    lists = _GainedLists(given.values, tiers, gain, most)
    source = as_generator(generator, lists.rows.device)
    noise = torch.empty((len(lists.rows), draws), dtype=lists.rows.dtype, device=lists.rows.device)
    gumbel = -noise.exponential_(generator=source).log()

    def of_block(block: _Block, scores: Tensor, gains: Tensor, gumbel: Tensor) -> Tensor:
        width = scores.shape[1]
        drawn = scores.detach()[..., None] + gumbel
        order = torch.where(block.inside[..., None], drawn, -torch.inf).argsort(1, descending=True)
        order = order.transpose(1, 2)  # [lists, draws, places]
        w, g, inside = (
            each[:, None, :].expand(-1, draws, -1).gather(2, order)
            for each in (scores, gains, block.inside)
        )
        top = torch.where(inside, w.detach(), -torch.inf).amax(2, keepdim=True)
        worth = torch.where(inside, (w - top).clamp(min=-690.0).exp(), 0.0)
        remain = worth.flip(2).cumsum(2).flip(2)  # of what is not placed before r
        remain = torch.where(inside, remain, 1.0)
        gained = (g * worth).flip(2).cumsum(2).flip(2)
        discount = _discounts(width, most, scores)
        here = discount * g
        later = here.sum(2, keepdim=True) - here.cumsum(2)
        chosen = torch.where(inside, worth, 1.0).log() - remain.log()
        return (later * chosen + discount * gained / remain).sum(2).mean(1)

    rewards = _by_blocks(lists, lists.rows, (lists.gains, gumbel), 1, of_block, each=draws)
    losses = lists.claims - rewards
    return _finished(given, losses, tiers, likelihood, weights, reduction)


# -- what they share ------------------------------------------------------------------------------

Kernel = Callable[..., FloatArray]  # of rows, and arrays for gradient and Hessian, or None
Formula = Callable[[Tensor], Tensor]  # [lists] from [rows]


class _GainedLists(TierOrder):
    """The lists, best tier first, with the gains of their items.

    Attributes
    ----------
    gains
        [rows] over the best DCG@k of the list; 0 where all orders are as good
    claims
        [lists] 0 where all orders are as good, else 1: the best NDCG
    """

    def __init__(self, values: Tensor, tiers: Tiers, gain: Gain, k: int) -> None:
        super().__init__(values, tiers)
        _choice("gain", gain, Gain)
        self.gains, self.claims = tiers.kept(("gains", gain, k), lambda: self._gained(gain, k))

    def _gained(self, gain: Gain, k: int) -> tuple[Tensor, Tensor]:
        grades = self.grades.to(self.rows.dtype)
        if len(grades) and float(grades.min()) < 0:
            tier = int(grades.argmin())
            raise ArgumentError(
                f"list {int(self.tier_list[tier])} has a tier of grade {float(grades[tier]):g}, "
                "and a negative grade has no gain: raise the labels to 0"
            )
        n_lists = len(self.list_offsets) - 1
        of_list = grades.new_zeros(n_lists)
        best = of_list.scatter_reduce(0, self.tier_list, grades, "amax")
        several = of_list.index_add(0, self.tier_list, torch.ones_like(grades)) > 1
        height = best[self.tier_list]
        if gain == "exp2":  # (2^g − 1) / 2^best
            gains = torch.exp2(grades - height) - torch.exp2(-height)
        else:
            gains = grades / torch.where(height > 0, height, 1.0)
        rows = repeat(gains, self.tier_offsets.diff())
        lengths = self.list_offsets.diff()
        place = torch.arange(len(rows), device=rows.device) - repeat(
            self.list_offsets[:-1], lengths
        )
        longest = int(lengths.max()) if n_lists else 0
        ideal = of_list.index_add(0, self.list_of, rows * _discounts(longest, k, rows)[place])
        claims = several & (ideal > 0)
        scale = torch.where(claims, 1 / torch.where(claims, ideal, 1.0), 0.0)
        return rows * scale[self.list_of], claims.to(rows.dtype)

    def relevant(self, least: float) -> Tensor:
        """[rows] 1 for a grade from `least` on, else 0."""
        hit = (self.grades >= least).to(self.rows.dtype)
        return repeat(hit, self.tier_offsets.diff())


class _Compiled(torch.autograd.Function):
    """[lists] by a kernel, and its gradient; by the formula where that is to be differentiated."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, lists: _GainedLists, kernel: Kernel, formula: Formula
    ) -> Tensor:
        gradient = np.empty(len(rows))
        value = kernel(rows.detach(), gradient, None)
        ctx.save_for_backward(rows)
        ctx.gradient, ctx.lists, ctx.formula = torch.from_numpy(gradient), lists, formula
        return torch.from_numpy(value)

    @staticmethod
    def backward(ctx: Any, by_list: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # a second derivative may be asked for
            (rows,) = ctx.saved_tensors
            value = ctx.formula(rows)
            (by_rows,) = torch.autograd.grad(value, rows, by_list, create_graph=True)
        else:
            by_rows = ctx.gradient * by_list[ctx.lists.list_of]
        return by_rows, None, None, None


def _by_list(lists: _GainedLists, kernel: Kernel, formula: Formula) -> Tensor:
    """[lists] by the kernel, where it computes, and by the formula elsewhere."""
    rows = lists.rows
    if not native_computes(rows):
        return formula(rows)
    if torch.is_grad_enabled() and rows.requires_grad:
        return _Compiled.apply(rows, lists, kernel, formula)  # type: ignore[no-any-return, no-untyped-call]
    return torch.from_numpy(kernel(rows.detach(), None, None))


class _Block:
    """Some lists of about the same length, padded.

    Attributes
    ----------
    index
        [lists, width] rows of each
    inside
        [lists, width] which of these are no padding
    """

    def __init__(self, list_offsets: Tensor, numbers: Tensor) -> None:
        start, end = list_offsets[numbers], list_offsets[numbers + 1]
        width = int((end - start).max())
        self.index = start[:, None] + torch.arange(width, device=start.device)
        self.inside = self.index < end[:, None]
        self.index = torch.where(self.inside, self.index, start[:, None])

    def of(self, by_row: Tensor) -> Tensor:
        """[lists, width, …] from [rows, …], with 0 for padding."""
        padded = by_row[self.index]
        inside = self.inside.view(*self.inside.shape, *(1,) * (by_row.dim() - 1))
        return torch.where(
            inside, padded, torch.zeros((), dtype=by_row.dtype, device=by_row.device)
        )


def _by_blocks(
    lists: _GainedLists,
    rows: Tensor,
    by_row: tuple[Tensor, ...],
    power: int,
    of_block: Callable[..., Tensor],
    each: int = 1,
) -> Tensor:
    """[lists] what `of_block` gives for blocks of padded lists, which write out n^power · each."""
    lengths = lists.list_offsets.diff()
    by_length = lengths.argsort(descending=True)
    parts: list[Tensor] = []
    at = 0
    while at < len(by_length):
        longest = int(lengths[by_length[at]])
        if longest == 0:
            parts.append(rows.new_zeros(len(by_length) - at))
            break
        fit = max(1, CELLS // (longest**power * each))
        similar = int((lengths[by_length[at : at + fit]] * 2 > longest).sum())
        block = _Block(lists.list_offsets, by_length[at : at + similar])
        parts.append(of_block(block, block.of(rows), *map(block.of, by_row)))
        at += similar
    if not parts:
        return rows.new_zeros(0)
    return torch.cat(parts)[by_length.argsort()]


def _discounts(width: int, k: int, like: Tensor) -> Tensor:
    """[width] 1/log2(1 + place) up to place k, then 0."""
    place = torch.arange(1, width + 1, device=like.device)
    return torch.where(place <= k, 1 / torch.log2(1 + place.to(like.dtype)), 0.0)


def _finished(
    given: Scores,
    losses: Tensor,
    tiers: Tiers,
    likelihood: float,
    weights: Any,
    reduction: Reduction,
) -> Any:
    """What every one of them ends with: the likelihood's share, and the reduction."""
    if not 0 <= likelihood < np.inf:
        raise ArgumentError(Argument("likelihood"), f" is a number from 0 on, not {likelihood!r}")
    if likelihood:
        losses = losses + likelihood * pl_partition(given.values, tiers, reduction="none")
    return reduced(given, losses, weights, reduction)


def _places(k: int | None) -> int:
    """How many places count."""
    return ALL if k is None else _count("k", k)


def _count(name: str, value: int, least: int = 1) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < least:
        raise ArgumentError(Argument(name), f" is a whole number from {least} on, not {value!r}")
    return min(count, ALL)


def _positive(name: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise ArgumentError(Argument(name), f" is a positive number, not {value!r}")


def _choice(name: str, value: Any, kind: Any) -> None:
    known = cast(tuple[str, ...], kind.__args__)
    if value not in known:
        words = ", ".join(f'"{one}"' for one in known)
        raise ArgumentError(Argument(name), f" is one of {words}, not {value!r}")
