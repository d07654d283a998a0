"""The Plackett-Luce model: exact log-probabilities of tiers, their Hessian, and draws from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import operators, transforms
from tierrank.plackett_luce.kernels import fused_for, kernel_for
from tierrank.plackett_luce.kernels.integral import in_graph
from tierrank.plackett_luce.lists import (
    FlatLists,
    NonFiniteScore,
    Scores,
    check_finite,
    list_weights,
    upper_tier_weights,
    wide_dtype,
)
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_generator

BLOCK = 1 << 24  # noisy scores held at once
GAP = 100.0  # further apart, the order is certain: e^−100 is 4e-44


def log_prob(scores: Any, tiers: Tiers, *, tier_weights: Any = None) -> Any:
    r"""Exact log-probability of every list's tiers under the Plackett-Luce model.

    Summed over all orders inside the tiers, as if each had been observed:

    .. math:: \log P(S_1 > \dots > S_M) = \sum_{m<M} \log P(S_m > S_{m+1} \cup \dots \cup S_M)

    Each term is one integral, computed to rounding in time linear in the tier: `integral` has the
    derivation, and `native/integral.hpp` what the CPU does.
    With tier weights α, constants, the terms count more or less, and the sum is no longer the
    log of a probability:

    .. math:: \sum_{m<M} \alpha_m \log P(S_m > S_{m+1} \cup \dots \cup S_M)

    Parameters
    ----------
    scores : array_like
        One score an item, the log of its worth up to a constant, torch or numpy; as `tiers`
        was built: ``[rows]`` or padded ``[lists, width]`` from labels; ``[items]``, shared by
        all lists, or ``[lists, items]`` from a catalogue. Half precision is computed, and
        given back, in float32. What stands in padding is never looked at.
    tiers : Tiers
        The lists, on the same device.
    tier_weights : array_like, optional
        ``[len(tiers.tier_sizes)]`` an α for every written tier, by list, best first; torch or
        numpy, finite and not negative, all 1 if not given. The last tier of a list has no term,
        so its weight has no effect. (Where a catalogue's rest is the last tier, it is not
        written: then it has no weight, and those of all written tiers count).

    Returns
    -------
    Tensor or ndarray
        [lists] log-probabilities, of the kind that the scores are; 0 for a list of one tier. Twice
        differentiable. Relative to ``max(1, |log P|)``, errors stay below 1e-12 in float64 and 1e-5
        in float32.

    Raises
    ------
    ValueError
        A score of a list is NaN or infinite, a tier weight is that or negative, or one of them
        has the wrong shape.

    See Also
    --------
    log_prob_above : One set of items above another.
    Curvature : Second derivatives, without autograd.
    sample : Rankings drawn from the model.
    tierrank.losses.pl_partition : Minus the mean of it, to minimise.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tiers = tr.Tiers.from_labels([2, 1, 1, 0])
    >>> tr.log_prob(np.zeros(4), tiers)  # one of 12 equally probable ways to split four
    array([-2.48490665])
    >>> tr.log_prob(np.zeros(4), tiers, tier_weights=[1, 0, 0])  # only who is first: log 1/4
    array([-1.38629436])
    """
    given = Scores(scores)
    values = given.values
    if given.is_torch and transforms.active():
        return transforms.through(lambda w: log_prob(w, tiers, tier_weights=tier_weights), values)
    lists = FlatLists(values, tiers)
    if tier_weights is not None:
        tier_weights = upper_tier_weights(tier_weights, tiers, lists.own)
    problem = lists.problem(tier_weights)
    # what the bottom depends on are scores too: if it is to be differentiated, so are the rows
    differentiated = torch.is_grad_enabled() and lists.rows.requires_grad
    if torch.compiler.is_compiling():
        if fused_for(values.device):
            tables = tiers.tables(lists.own)
            value = in_graph(lists.rows, lists.bottom, tables, tier_weights, differentiated)
        else:
            value = operators.log_prob(*operators.problem_of(*problem), differentiated)[0]
        return given.same_kind(value)
    try:
        if differentiated:
            value = operators.EagerLogProb.apply(*problem)  # type: ignore[no-untyped-call]
        else:
            value = kernel_for(values.device).log_prob_and_gradient(*problem, False)[0]
    except NonFiniteScore as error:
        raise lists.located(error) from None
    return given.same_kind(value)


def log_prob_above(scores: Any, above: Any, below: Any) -> Any:
    """Log-probability that every item of `above` precedes every item of `below`.

    Proposition 1 of Ma et al. (2021), for any two disjoint sets; what is in neither does not
    matter. Either set may be empty: then nothing is claimed, and the log-probability is 0.

    Parameters
    ----------
    scores : array_like
        [..., items], torch or numpy.
    above, below : array_like
        Indices of items, or boolean masks [items].

    Returns
    -------
    Tensor or ndarray
        [...] log P(A > B).

    Raises
    ------
    ValueError
        An item is in both sets or does not exist, or a score is NaN or infinite.

    See Also
    --------
    log_prob : Whole lists of tiers.
    RankAggregator : Its `predict_proba` has an interval, too.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> tr.log_prob_above(np.log([3.0, 2.0, 1.0]), [0], [2])  # log 3/4
    array(-0.28768207)
    """
    given = Scores(scores)
    values = given.values
    if given.is_torch and transforms.active():
        return transforms.through(lambda w: log_prob_above(w, above, below), values)
    if values.dim() == 0:
        raise ValueError("scores are [..., items], not a single number")
    a, b = (_indices(part, values.shape[-1], values.device) for part in (above, below))
    both = torch.isin(a, b)
    if both.any():
        raise ValueError(f"item {int(a[both][0])} is both above and below: make the sets disjoint")
    shape = values.shape[:-1]
    named = torch.cat([a, b])
    chosen = values.index_select(-1, named)
    check_finite(chosen, named)
    if len(a) == 0 or len(b) == 0:
        return given.same_kind(0.0 * chosen.sum(-1))
    labels = torch.tensor([1] * len(a) + [0] * len(b), device=values.device)
    chosen = chosen.reshape(-1, len(labels))
    tiers = Tiers.from_labels(labels.expand(len(chosen), -1))
    return given.same_kind(log_prob(chosen, tiers).reshape(shape))


def _indices(part: Any, items: int, device: torch.device) -> Tensor:
    """A set of items as unique indices."""
    if isinstance(part, (set, frozenset)):
        part = sorted(part)
    index = part if isinstance(part, Tensor) else torch.from_numpy(np.asarray(part))
    index = index.to(device)
    if index.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=device)
    if index.dim() != 1:
        raise ValueError(f"a set of items is a 1-D array, not of shape {list(index.shape)}")
    if index.dtype == torch.bool:
        if len(index) != items:
            raise ValueError(f"a mask over {items} items needs that length, not {len(index)}")
        return index.nonzero()[:, 0]
    if index.is_floating_point() or index.is_complex():
        raise ValueError(f"items are integer indices or a boolean mask, not {index.dtype}")
    wrong = (index < 0) | (index >= items)
    if wrong.any():
        raise ValueError(f"item {int(index[wrong][0])} is not among 0 … {items - 1}")
    unique: Tensor = index.long().unique()
    if len(unique) != len(index):
        raise ValueError("an item is named twice in a set")
    return unique


class Curvature:
    """The Hessian of Σ_l weight_l · log_prob_l in the scores, never written out.

    It is negative semidefinite: minus it is the observed information, and a boosting hessian.

    Parameters
    ----------
    scores : array_like
        A score an item, as in `log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists], all 1 if not given.
    tier_weights : array_like, optional
        [written tiers] as in `log_prob`, all 1 if not given.

    See Also
    --------
    log_prob : The function itself.
    tierrank.losses.pl_partition : The loss.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> curvature = tr.Curvature(np.zeros(3), tr.Tiers.from_labels([1, 0, 0]))
    >>> curvature.diagonal()  # −p (1 − p) with p = 1/3
    array([-0.22222222, -0.22222222, -0.22222222])
    >>> curvature @ np.array([1.0, 0.0, 0.0])
    array([-0.22222222,  0.11111111,  0.11111111])
    """

    def __init__(
        self, scores: Any, tiers: Tiers, weights: Any = None, tier_weights: Any = None
    ) -> None:
        self._given = Scores(scores)
        self._values = self._given.values.detach()
        self._lists = lists = FlatLists(self._values, tiers)
        lists.check_finite()
        self._tier_weights = upper_tier_weights(tier_weights, tiers, lists.own)
        if lists.rest is not None:
            self._bottom_gradient = operators.log_prob(
                lists.rows, lists.bottom, *lists.layout, self._tier_weights, True
            )[2]
        self._weights = list_weights(weights, lists.bottom)

    def diagonal(self) -> Any:
        """Compute the diagonal.

        Returns
        -------
        Tensor or ndarray
            In the shape of the scores; never positive.

        See Also
        --------
        tierrank.log_prob : The function itself.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> tr.Curvature(np.zeros(3), tr.Tiers.from_labels([1, 0, 0])).diagonal()  # −p (1 − p)
        array([-0.22222222, -0.22222222, -0.22222222])
        """
        lists, rest = self._lists, self._lists.rest
        own, bottom = operators.hessian_diagonal(
            lists.rows, lists.bottom, lists.layout, self._tier_weights
        )
        diagonal = self._to_scores(own)
        if rest is not None:
            # the bottom is an lse over the rest: with softmax s, ∂ = s and ∂² = s (1 − s)
            slope = (self._weights * self._bottom_gradient).to(rest.worth)
            second = (self._weights * bottom).to(rest.worth)
            diagonal += rest.spread(slope) + rest.spread(second - slope, power=2)
        return self._given.same_kind(diagonal)

    def __matmul__(self, vector: Any) -> Any:
        """The Hessian times a vector that has the shape of the scores."""
        v = Scores(vector).values.to(self._values)
        if v.shape != self._values.shape:
            raise ValueError(
                f"the vector needs the scores' shape {list(self._values.shape)}, "
                f"not {list(v.shape)}"
            )
        lists, rest = self._lists, self._lists.rest
        flat = v.reshape(-1)
        rows = flat if lists.gather is None else flat.index_select(0, lists.gather)
        mean = torch.zeros_like(lists.bottom) if rest is None else rest.mean(flat.to(rest.worth))
        own, bottom = operators.hessian_product(
            lists.rows, lists.bottom, *lists.layout, self._tier_weights, rows, mean.to(lists.bottom)
        )
        product = self._to_scores(own)
        if rest is not None:
            slope = (self._weights * self._bottom_gradient).to(rest.worth)
            push = (self._weights * bottom).to(rest.worth) - slope * mean
            product += rest.spread(push) + flat * rest.spread(slope)
        return self._given.same_kind(product)

    def _to_scores(self, by_row: Tensor) -> Tensor:
        """Weight the rows by their lists and add them up where they came from."""
        lists = self._lists
        weighted = by_row * self._weights.to(by_row).repeat_interleave(lists.layout[0].diff())
        if lists.gather is None:
            return weighted.reshape(self._values.shape)
        flat = torch.zeros_like(self._values).reshape(-1)
        return flat.index_add_(0, lists.gather, weighted).reshape(self._values.shape)


def sample(
    scores: Any,
    n: int,
    *,
    k: int | None = None,
    generator: torch.Generator | int | None = None,
) -> Any:
    """Draw `n` rankings from the Plackett-Luce model of `scores`.

    Parameters
    ----------
    scores : array_like
        [items], or [lists, items] for a model a list; torch or numpy. A constant added to all
        scores of a list changes nothing, however large it is.
    n : int
        How many rankings to draw.
    k : int, optional
        Draw only the first k places, without sorting the others. Default: all.
    generator : Generator or int, optional
        A torch generator or an integer seed; without one, torch's global generator is used.

    Returns
    -------
    Tensor or ndarray
        [n, k] or [n, lists, k] indices of items, best first, of the kind that `scores` is.

    See Also
    --------
    log_prob : How probable a ranking is.
    tierrank.data.synthetic.simulate : Worths and tiers, drawn.

    Examples
    --------
    >>> import tierrank as tr, torch
    >>> tr.sample(torch.tensor([9.0, 0.0, 4.5]), 2, generator=0)
    tensor([[0, 2, 1],
            [0, 2, 1]])
    """
    given = Scores(scores)
    values = given.values.detach()
    if values.dim() not in (1, 2):
        raise ValueError(f"scores are [items] or [lists, items], not of shape {list(values.shape)}")
    check_finite(values)
    items = values.shape[-1]
    places = items if k is None else k
    if not 0 <= places <= items:
        raise ValueError(f"k = {k} places cannot be filled from {items} items")
    if n < 0:
        raise ValueError(f"the number of rankings n = {n} is negative")
    generator = as_generator(generator, values.device)

    near = _brought_near(values.to(wide_dtype(values.device)))
    rankings = torch.empty((n, *values.shape[:-1], places), dtype=torch.int64, device=values.device)
    draws = max(1, BLOCK // max(1, values.numel()))
    for start in range(0, n, draws):
        rankings[start : start + draws] = _race(near, min(draws, n - start), places, generator)
    return given.same_kind(rankings)


def _race(values: Tensor, n: int, places: int, generator: torch.Generator | None) -> Tensor:
    """−log of an exponential is Gumbel: item i arrives first with probability ∝ e^w_i."""
    waiting = torch.empty((n, *values.shape), dtype=values.dtype, device=values.device)
    waiting.exponential_(generator=generator).log_()
    noisy = torch.sub(values, waiting, out=waiting)
    if places == values.shape[-1]:
        return noisy.argsort(-1, descending=True)
    return noisy.topk(places, -1).indices


def _brought_near(values: Tensor) -> Tensor:
    """[..., items] scores that draw the same rankings, and are small enough to take noise.

    Noise that is added to a score near 1e15 is rounded away, and ties are then broken by index.
    So the best score becomes 0, and of a gap above GAP no more than GAP is left: across it no two
    items ever change places (once in e^GAP). What remains is at most GAP · items, which leaves
    the noise an error of 1e-14 · items.
    """
    if not values.numel():
        return values
    best = values.amax(-1, keepdim=True)
    if (best - values.amin(-1, keepdim=True)).max() <= GAP:
        return values - best
    falling, order = values.sort(-1, descending=True)
    place = torch.arange(values.shape[-1], device=values.device)
    after_gap = torch.zeros_like(falling, dtype=torch.bool)
    after_gap[..., 1:] = falling[..., :-1] - falling[..., 1:] > GAP
    top = torch.where(after_gap, place, 0).cummax(-1).values  # the first of those without a gap
    depth = falling.gather(-1, top) - falling
    shift = torch.where(after_gap, GAP + depth.roll(1, -1), 0.0).cumsum(-1)
    return torch.empty_like(values).scatter_(-1, order, -(depth + shift))
