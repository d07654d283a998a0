"""Scores and tiers as the operators take them: flat rows, list by list."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.plackett_luce import operators
from tierrank.plackett_luce.inputs import NonFiniteScore, wide_dtype
from tierrank.plackett_luce.kernels import fused_for, kernel_for
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
        flat = values if values.dim() == 1 else values.reshape(-1)
        self.rows = flat if self.gather is None else flat.index_select(0, self.gather)
        self.rest: Rest | None = None
        if tiers.rest and not self.own and len(tiers):
            bad = ~values.isfinite()
            if bad.any():
                raise self.not_finite(int(bad.nonzero()[0, 0]))
            wide = values.to(wide_dtype(values.device))
            self.rest = Rest(wide, tiers.items, self.layout[0])

    @property
    def bottom(self) -> Tensor:
        if self.rest is not None:
            return self.rest.log_sum
        wide = wide_dtype(self.values.device)
        return self.values.new_full((len(self.tiers),), -torch.inf, dtype=wide)

    def _problem(self, tier_weights: Tensor | None) -> tuple[Any, ...]:
        bottom = None if self.rest is None else self.rest.log_sum
        return self.rows, bottom, self.layout, tier_weights

    def log_prob(self, tier_weights: Tensor | None = None) -> Tensor:
        """[lists] log-probabilities; complaints are in the caller's indices.

        `tier_weights` are those of the upper tiers, from `upper_tier_weights`; all 1 if not given.
        """
        problem = self._problem(tier_weights)
        # what the bottom depends on are scores too: if it is to be differentiated, so are the rows
        differentiated = torch.is_grad_enabled() and self.rows.requires_grad
        if torch.compiler.is_compiling():
            if fused_for(self.rows.device):
                from tierrank.plackett_luce.kernels.fused import in_graph

                tables = self.tiers.tables(self.own)
                return in_graph(self.rows, self.bottom, tables, tier_weights, differentiated)
            return operators.log_prob(*operators.problem_of(*problem), differentiated)[0]
        try:
            if differentiated:
                return operators.EagerLogProb.apply(*problem)  # type: ignore[no-any-return, no-untyped-call]
            kernel = kernel_for(self.rows.device)
            return kernel.log_prob_and_gradient(*problem, False)[0]  # type: ignore[no-any-return]
        except NonFiniteScore as error:
            raise self._located(error) from None

    def bottom_gradient(self, tier_weights: Tensor | None = None) -> Tensor:
        """[lists] the derivatives by what stands below the lists."""
        problem = self.rows, self.bottom, self.layout, tier_weights
        kernel = kernel_for(self.rows.device)
        return kernel.log_prob_and_gradient(*problem, True)[2]  # type: ignore[no-any-return]

    def derivatives(self, tier_weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """[lists] values, [rows] gradients and the Hessians' diagonals: constants, in one pass."""
        try:
            kernel = kernel_for(self.rows.device)
            return kernel.derivatives(*self._problem(tier_weights))  # type: ignore[no-any-return]
        except NonFiniteScore as error:
            raise self._located(error) from None

    def scaled(self, rows: Tensor, by_list: Tensor) -> Tensor:
        """[rows] every row times the number of its list."""
        return kernel_for(rows.device).scale_lists(rows, self.layout[0], by_list)  # type: ignore[no-any-return]

    def check_finite(self) -> None:
        """The complaint that `log_prob` would make."""
        if not torch.compiler.is_compiling() and not self.rows.isfinite().all():
            raise self._located(NonFiniteScore.find(self.rows, self.layout[0]))

    def _located(self, error: NonFiniteScore) -> ValueError:
        flat = error.position if self.gather is None else int(self.gather[error.position])
        return self.not_finite(flat, f", in list {error.list_number},")
