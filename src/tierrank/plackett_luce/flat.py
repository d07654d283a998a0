"""Scores and tiers as the operators take them: flat rows, list by list."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import operators
from tierrank.plackett_luce.inputs import wide_dtype
from tierrank.plackett_luce.rest import Rest
from tierrank.tiers import Tiers


class FlatLists:
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
        if values.device != tiers.device:
            raise ValueError(
                f"the scores are on {values.device} and the tiers on {tiers.device}: "
                f'use tiers.to("{values.device}")'
            )
        # scores shared by one list are that list's own
        per_list = _has_own_scores(values, tiers) or len(tiers) == 1
        self._values, self._tiers = values, tiers
        self.gather, *layout = tiers.layout(per_list)
        self.layout = tuple(layout)
        flat = values.reshape(-1)
        self.rows = flat if self.gather is None else flat.index_select(0, self.gather)
        wide = wide_dtype(values.device)
        self.bottom = values.new_full((len(tiers),), -torch.inf, dtype=wide)
        self.rest: Rest | None = None
        if tiers.rest and not per_list and len(tiers):
            bad = ~values.isfinite()
            if bad.any():
                raise self._not_finite(int(bad.nonzero()[0, 0]))
            self.rest = Rest(values.to(wide), tiers.items, layout[0])
            self.bottom = self.rest.log_sum

    def log_prob(self, with_gradient: bool) -> tuple[Tensor, Tensor, Tensor]:
        """`operators.log_prob` of these lists; complaints are in the caller's indices."""
        arguments = (self.rows, self.bottom, *self.layout, with_gradient)
        if torch.compiler.is_compiling():
            return operators.log_prob(*arguments)
        try:
            return operators.log_prob(*arguments)
        except operators.NonFiniteScore as error:
            raise self._located(error) from None

    def check_finite(self) -> None:
        """The complaint that `log_prob` would make."""
        if not torch.compiler.is_compiling() and not self.rows.isfinite().all():
            raise self._located(operators.NonFiniteScore.find(self.rows, self.layout[0]))

    def _located(self, error: operators.NonFiniteScore) -> ValueError:
        flat = error.position if self.gather is None else int(self.gather[error.position])
        return self._not_finite(flat, f", in list {error.list_number},")

    def _not_finite(self, flat: int, where: str = "") -> ValueError:
        index = [int(i) for i in np.unravel_index(flat, tuple(self._values.shape))]
        names = self._tiers.names
        item = "" if names is None else f" (item {names[index[-1]]!r})"
        value = float(self._values.detach()[tuple(index)])
        return ValueError(f"scores must be finite, but scores{index}{item}{where} is {value}")


def _has_own_scores(values: Tensor, tiers: Tiers) -> bool:
    """Whether every list has scores of its own; an error if the shape fits neither way."""
    shape = tuple(values.shape)
    if tiers.score_shape is not None:
        if shape == tiers.score_shape:
            return True
        raise ValueError(
            f"the tiers were built from labels of shape {list(tiers.score_shape)}, so the "
            f"scores need that shape, not {list(shape)}"
        )
    if shape == (tiers.n_items,):
        return False
    if shape == (len(tiers), tiers.n_items):
        return True
    raise ValueError(
        f"{len(tiers)} lists over {tiers.n_items} items need scores of shape [{tiers.n_items}], "
        f"shared by all lists, or [{len(tiers)}, {tiers.n_items}], not {list(shape)}"
    )
