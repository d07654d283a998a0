"""What a label is worth: 2^label − 1, the label itself, or a function of the user's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.metrics.inputs import FloatArray, Gain, Lists


def gains_of(lists: Lists, gain: Gain) -> FloatArray:
    """[rows] the gain of each label, finite."""
    labels = lists.labels.astype(np.float64, copy=False)
    if callable(gain):
        gains = _called(gain, labels)
    elif gain == "linear":
        gains = labels
    elif gain == "exp2":
        _refuse(lists, labels < 0, 'is negative, where gain="exp2" has no meaning: raise it to 0')
        with np.errstate(over="ignore"):
            gains = np.exp2(labels) - 1
    else:
        raise ValueError(f'gain is "exp2", "linear" or a function of the labels, not {gain!r}.')
    _refuse(lists, ~np.isfinite(gains), "has no finite gain: use smaller labels, or another gain")
    return gains


def gains_from_zero(lists: Lists, gain: Gain) -> FloatArray:
    """[rows] gains that are not negative, so that there is a best possible sum to divide by."""
    gains = gains_of(lists, gain)
    _refuse(lists, gains < 0, "has a negative gain, which cannot be normalised: raise it to 0")
    return gains


def _called(gain: Any, labels: FloatArray) -> FloatArray:
    gains = np.asarray(gain(labels.copy()), dtype=np.float64)
    if gains.shape != labels.shape:
        raise ValueError(
            f"gain must give one number a label: for labels of shape {labels.shape} it gave "
            f"shape {gains.shape}."
        )
    return gains


def _refuse(lists: Lists, bad: AnyArray, problem: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"labels[{lists.row_in_input(at)}] = {lists.labels[at]:g} {problem} "
            f"({int(bad.sum())} such labels in all)."
        )
