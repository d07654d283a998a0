"""Second derivatives of the log-likelihood, without autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce import operators
from tierrank.plackett_luce.lists import FlatLists, Scores, list_weights, upper_tier_weights
from tierrank.tiers import Tiers


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
