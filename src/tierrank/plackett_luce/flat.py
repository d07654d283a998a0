"""Scores and tiers as the operators take them: flat rows, list by list."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce import operators
from tierrank.plackett_luce.inputs import wide_dtype
from tierrank.plackett_luce.kernels import fused_for
from tierrank.plackett_luce.kernels.fused import in_graph
from tierrank.plackett_luce.rest import Rest
from tierrank.plackett_luce.scored import ScoredLists
from tierrank.tiers import Tiers


class FlatLists(ScoredLists):
    """Rows of scores laid out list by list, and what stands below each list.

    Attributes
    ----------
    rows
        [rows] scores, so that each list is one range
    bottom
        [lists] lse of the catalogue's rest under shared scores, else −inf; in float64, because
        one number near ±1e4 must still tell scores apart
    layout
        row_offsets, order, tier_offsets and list_offsets of `Layout`
    gather
        row i is flat score gather[i]; None if row i is flat score i
    rest
        where the bottom comes from, if it is not −inf
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        super().__init__(values, tiers)
        self.gather, *layout = tiers.layout(self.own)
        self.layout = tuple(layout)
        flat = values.reshape(-1)
        self.rows = flat if self.gather is None else flat.index_select(0, self.gather)
        wide = wide_dtype(values.device)
        self.bottom = values.new_full((len(tiers),), -torch.inf, dtype=wide)
        self.rest: Rest | None = None
        if tiers.rest and not self.own and len(tiers):
            bad = ~values.isfinite()
            if bad.any():
                raise self.not_finite(int(bad.nonzero()[0, 0]))
            self.rest = Rest(values.to(wide), tiers.items, layout[0])
            self.bottom = self.rest.log_sum

    def log_prob(
        self, with_gradient: bool, tier_weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`operators.log_prob` of these lists; complaints are in the caller's indices.

        `tier_weights` are those of the upper tiers, from `upper_tier_weights`; all 1 if not given.
        """
        if tier_weights is None:
            tier_weights = self.bottom.new_empty(0)
        arguments: tuple[Any, ...] = (self.rows, self.bottom, *self.layout, tier_weights)
        if torch.compiler.is_compiling():
            if fused_for(self.rows.device):
                tables = self.tiers.tables(self.own)
                return in_graph(self.rows, self.bottom, tables, tier_weights, with_gradient)
            return operators.log_prob(*arguments, with_gradient)
        try:
            return operators.log_prob_eagerly(*arguments, with_gradient=with_gradient)
        except operators.NonFiniteScore as error:
            raise self._located(error) from None

    def derivatives(self, tier_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[lists] values, [rows] gradients and the Hessians' diagonals: constants, in one pass."""
        arguments = self.rows, self.bottom, self.layout, tier_weights
        try:
            return operators.derivatives(*arguments)
        except operators.NonFiniteScore as error:
            raise self._located(error) from None

    def check_finite(self) -> None:
        """The complaint that `log_prob` would make."""
        if not torch.compiler.is_compiling() and not self.rows.isfinite().all():
            raise self._located(operators.NonFiniteScore.find(self.rows, self.layout[0]))

    def _located(self, error: operators.NonFiniteScore) -> ValueError:
        flat = error.position if self.gather is None else int(self.gather[error.position])
        return self.not_finite(flat, f", in list {error.list_number},")
