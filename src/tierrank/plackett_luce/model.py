"""Exact log-probabilities of tiers under the Plackett-Luce model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import operators, transforms
from tierrank.plackett_luce.kernels import fused_for, kernel_for
from tierrank.plackett_luce.kernels.plain import in_graph
from tierrank.plackett_luce.lists import (
    FlatLists,
    NonFiniteScore,
    Scores,
    check_finite,
    upper_tier_weights,
)
from tierrank.tiers import Tiers


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
