"""Scores beside the tiers they belong to: checked once, for every view of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers


class ScoredLists:
    """Scores that fit the tiers, by device and shape.

    Attributes
    ----------
    values, tiers
        as given
    own
        whether every list has scores of its own, and does not share them with the others
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        check_is_tiers(tiers)
        if values.device != tiers.device:
            raise ValueError(
                f"the scores are on {values.device} and the tiers on {tiers.device}: "
                f'use tiers.to("{values.device}")'
            )
        self.values, self.tiers = values, tiers
        # scores shared by one list are that list's own
        self.own = _has_own_scores(values, tiers) or len(tiers) == 1

    @property
    def written(self) -> Tensor:
        """[entries] the flat index of the score of every written item, by list and tier."""
        if self.tiers.n_items is None or not self.own:
            return self.tiers.items
        return self.tiers.items + self.tiers.n_items * range_numbers(self.tiers.lengths)

    def not_finite(self, flat: int, where: str = "") -> ValueError:
        """The complaint about one score, named as the caller knows it."""
        index = [int(i) for i in np.unravel_index(flat, tuple(self.values.shape))]
        names = self.tiers.names
        item = "" if names is None else f" (item {names[index[-1]]!r})"
        value = float(self.values.detach()[tuple(index)])
        return ValueError(f"scores must be finite, but scores{index}{item}{where} is {value}")


def check_is_tiers(tiers: Any) -> None:
    """Refuse labels, or anything else, where tiers belong."""
    if not isinstance(tiers, Tiers):
        raise ValueError(
            f"tiers must be a Tiers, not {type(tiers).__name__}. From labels, write "
            "tr.Tiers.from_labels(labels, qid=…), or lengths=…; from padded 2-D labels, "
            "tr.Tiers.from_labels(labels, mask=…)."
        )


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
