"""From one loss a list to what is asked for."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from tierrank.plackett_luce.inputs import Scores

Reduction = Literal["mean", "sum", "none"]


def reduce(losses: Tensor, weights: Any, reduction: Reduction) -> Tensor:
    """Weight the [lists] losses and take their mean (by total weight), their sum, or neither."""
    weighted = losses
    total: float | Tensor = len(losses)
    if weights is not None:
        by_list = Scores(weights).values.to(losses)
        if by_list.shape != losses.shape:
            raise ValueError(f"{len(losses)} lists need as many weights, not {list(by_list.shape)}")
        if not ((by_list >= 0) & by_list.isfinite()).all():
            raise ValueError("weights of lists must be finite and not negative")
        weighted, total = losses * by_list, by_list.sum()
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        if len(losses) == 0 or (isinstance(total, Tensor) and not torch.any(total > 0)):
            raise ValueError("there is no mean over no lists (or lists that all weigh 0)")
        return weighted.sum() / total
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
