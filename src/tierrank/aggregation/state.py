"""Fitted aggregators as JSON and arrays, and back: what all of them write, and check when read.

A stranger may have written what is read, so nothing is believed: a `ValueError` says what does not
hold together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from tierrank._types import FloatArray
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.terms import GaussianPrior, PseudoItem
from tierrank.storage import Arrays, check_arrays
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import preview
from tierrank.training.covariance import Kind

MOST_SAVED = 2000  # items whose covariance is saved with them
KINDS: tuple[Kind, ...] = ("information", "sandwich")
# how a fit went: numbers, and others
NUMBERS = ("log_likelihood_", "aic_", "gradient_norm_", "seconds_", "n_iter_")
FACTS = (*NUMBERS, "converged_", "stopped_by_", "solver_", "objective_values_")


def plain_name(name: Any) -> str | int:
    """A name as JSON keeps it."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise ValueError(
        f"item {preview(name)} is a {type(name).__name__}: a saved model has names that are "
        "strings or integers"
    )


def plain_setting(value: Any) -> Any:
    """A setting as JSON keeps it."""
    if isinstance(value, dict):
        return {name: plain_setting(part) for name, part in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, GaussianPrior | PseudoItem):
        (size,) = vars(value).values()
        short, _, digits = str(value).partition(":")
        return f"{short}:{digits if float(digits) == size else repr(float(size))}"
    if isinstance(value, list | tuple):
        return [plain_setting(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"the setting {value!r} cannot be saved: only numbers and words can")


def kinds_of(fitted: Any) -> tuple[Kind, ...]:
    """Of covariances of items that are saved."""
    return () if fitted.uncertainty is None or len(fitted.items_) > MOST_SAVED else KINDS


def facts_of(fitted: Any) -> dict[str, Any]:
    """How a fit went."""
    return {name: getattr(fitted, name) for name in FACTS}


def set_facts(fitted: Any, given: Mapping[str, Any]) -> None:
    """Undo `facts_of`: words, numbers, or lists of numbers; or nothing."""
    for name in FACTS:
        for value in given[name] if name == "objective_values_" else [given[name]]:
            words = name in ("solver_", "stopped_by_")
            if value is not None and not isinstance(value, str if words else int | float):
                raise ValueError(f"{name} is {value!r}")
            if not words:
                float(value or 0)  # no integer beyond all floats
    vars(fitted).update({name: given[name] for name in FACTS})


def counts_of(lists: CountedLists) -> dict[str, Any]:
    """What is kept of lists: how many there were."""
    return {"seen": lists.seen, "total": lists.total, "silent": lists.silent}


def lists_from(items: tuple[Any, ...], about: Mapping[str, Any]) -> CountedLists:
    """Undo `counts_of`: no lists, but how many there were."""
    nothing = torch.zeros(1, dtype=torch.int64)
    empty = Tiers(
        items=nothing[:0], tier_offsets=nothing, list_offsets=nothing, n_items=len(items),
        names=items,
    )  # fmt: skip
    return CountedLists(
        empty, np.zeros(0), int(about["seen"]), float(about["total"]), float(about["silent"])
    )


def names_from(given: Any, what: str, kinds: tuple[type, ...] = (str, int)) -> tuple[Any, ...]:
    """Names of items or features, no two alike."""
    if not isinstance(given, list) or not given or not all(type(name) in kinds for name in given):
        raise ValueError(f"{what}s are strings or integers, at least one")
    if len(set(given)) < len(given):
        raise ValueError(f"an {what} is there twice")
    return tuple(given)


def checked_arrays(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Copies; refuses what `check_arrays` does, and negative variances."""
    check_arrays(arrays, shapes)
    for name, array in arrays.items():
        square = array.ndim == 2 and name not in ("features", "curves", "log_worths")
        if square and (np.diag(array) < 0).any():
            raise ValueError(f"{name} has variances that are negative")
    return {name: array.copy() for name, array in arrays.items()}


def covariances_from(arrays: Arrays) -> dict[str, FloatArray]:
    """Those that are there, by kind; nobody may write on them, as they are kept and handed out."""
    found: dict[str, FloatArray] = {kind: arrays[kind] for kind in KINDS if kind in arrays}
    for matrix in found.values():
        matrix.flags.writeable = False
    return found
