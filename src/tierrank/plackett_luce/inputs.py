"""Scores as callers give them: torch or numpy, and back to what they came as."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import transforms


class Scores:
    """The caller's scores as a torch tensor of float32 or float64, and the way back."""

    def __init__(self, scores: Any) -> None:
        self.is_torch = isinstance(scores, Tensor)
        values = scores if self.is_torch else _from_numpy(scores)
        if values.dtype in (torch.float16, torch.bfloat16):
            values = values.float()
        if values.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"scores are float32, float64 or half precision, not {values.dtype}: use .float()"
            )
        self.values: Tensor = values

    def same_kind(self, result: Tensor) -> Any:
        """The result as torch or numpy, as the scores came."""
        return result if self.is_torch else result.detach().numpy()


def can_look() -> bool:
    """Whether tensors have values to look at: not while they are compiled or transformed."""
    return not (torch.compiler.is_compiling() or transforms.active())


def check_finite(
    values: Tensor,
    items: Tensor | None = None,
    *,
    what: str = "scores",
    holes: Tensor | None = None,
) -> None:
    """Refuse NaN and infinite numbers, by index, but for those in holes.

    `items` says which item the last axis holds.
    """
    bad = ~values.detach().isfinite()
    if holes is not None:
        bad = bad & ~holes
    if bad.any():
        index = bad.nonzero()[0].tolist()
        value = float(values.detach()[tuple(index)])
        if items is not None:
            index[-1] = int(items[index[-1]])
        raise ValueError(f"{what} must be finite, but {what}{index} is {value}")


class NonFiniteScore(ValueError):
    """A score is NaN or infinite: `position` among the rows, list by list."""

    def __init__(self, list_number: int, position: int, value: float) -> None:
        super().__init__(
            f"the scores must be finite, but in list {list_number} the one at row {position} "
            f"is {value}"
        )
        self.list_number, self.position, self.value = list_number, position, value

    def __reduce__(self) -> tuple[Any, ...]:  # another process may have raised it
        return type(self), (self.list_number, self.position, self.value)

    @classmethod
    def find(cls, scores: Tensor, row_offsets: Tensor) -> NonFiniteScore:
        position = int((~scores.isfinite()).nonzero()[0, 0])
        list_number = int(torch.searchsorted(row_offsets, position, right=True)) - 1
        return cls(list_number, position, float(scores.detach()[position]))


def why_nan(scores: Tensor, row_offsets: Tensor, tier_weights: Tensor | None) -> ValueError:
    """The complaint about a log-probability that is NaN."""
    if tier_weights is not None and not tier_weights.isfinite().all():
        # checked before, but not inside torch.compile
        return ValueError("tier weights must be finite and not negative, but one is not finite")
    return NonFiniteScore.find(scores, row_offsets)


def wide_dtype(device: torch.device) -> torch.dtype:
    """The float in which long sums are taken: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def list_weights(weights: Any, like: Tensor) -> Tensor:
    """[lists] checked weights of lists, of the kind of `like` [lists]; all 1 if there are none."""
    if weights is None:
        return torch.ones_like(like)
    values = Scores(weights).values.to(like)
    if values.shape != like.shape:
        raise ValueError(f"{len(like)} lists need as many weights, not {list(values.shape)}")
    if can_look() and not ((values >= 0) & values.isfinite()).all():
        raise ValueError("weights of lists must be finite and not negative")
    return values


def _from_numpy(scores: Any) -> Tensor:
    array = np.asarray(scores)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"scores are real numbers, not {array.dtype}")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    # a copy where torch could not share the memory as it is (read-only, reversed, big-endian)
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))
