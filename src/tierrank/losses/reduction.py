"""From one loss a list to what is asked for."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from tierrank.plackett_luce.inputs import Scores, can_look, list_weights

Reduction = Literal["mean", "sum", "none"]


def finish(given: Scores, losses: Tensor, weights: Any, reduction: Reduction) -> Any:
    """What every objective ends with: [lists] losses, reduced, and of the scores' kind."""
    return given.same_kind(reduce(losses.to(given.values.dtype), weights, reduction))


def reduce(losses: Tensor, weights: Any, reduction: Reduction) -> Tensor:
    """Weight the [lists] losses and take their mean (by total weight), their sum, or neither."""
    weighted = losses
    total: int | Tensor = len(losses)
    if weights is not None:
        by_list = list_weights(weights, losses.detach())
        weighted, total = losses * by_list, by_list.sum()
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        if (isinstance(total, int) or can_look()) and not total > 0:
            raise ValueError("there is no mean over no lists, or over lists that all weigh 0")
        return weighted.mean() if weights is None else weighted.sum() / total
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
