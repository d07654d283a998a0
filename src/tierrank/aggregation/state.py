"""A fitted aggregator as JSON and arrays, and back: its estimates, without the lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.priors import GaussianPrior, PseudoItem
from tierrank.storage import Arrays
from tierrank.tiers import Tiers

if TYPE_CHECKING:
    from tierrank.aggregation.aggregator import RankAggregator

MOST_SAVED = 2000  # items whose covariance is saved with them

_NUMBERS = ("log_likelihood_", "aic_", "gradient_norm_", "seconds_", "n_iter_")
_OTHERS = ("converged_", "stopped_by_", "solver_", "objective_values_")


def of_aggregator(fitted: RankAggregator) -> tuple[dict[str, Any], Arrays]:
    """What `tierrank.save` writes."""
    names = [name.item() if isinstance(name, np.generic) else name for name in fitted.items_]
    if not all(type(name) in (str, int) for name in names):
        raise ValueError("only items whose names are strings or integers can be saved")
    lists = fitted.lists_
    info = {
        "parameters": {name: _plain(value) for name, value in fitted.get_params().items()},
        "items": names,
        "fit": {name: getattr(fitted, name) for name in (*_NUMBERS, *_OTHERS)},
        "lists": {"seen": lists.seen, "total": lists.total, "silent": lists.silent},
    }
    arrays = {"log_worths": fitted.log_worths_}
    if len(names) <= MOST_SAVED:
        for kind in ("information", "sandwich"):
            try:
                arrays[kind] = fitted.covariance(kind=kind)
            except ValueError:  # this objective has none
                continue
    return info, arrays


def _plain(value: Any) -> Any:
    """A setting as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, GaussianPrior | PseudoItem):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"the setting {value!r} cannot be saved: only numbers and words can")


def checked_facts(given: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """What a fit says of itself, by name: words, numbers, or lists of numbers; or nothing."""
    for name in names:
        for value in given[name] if name == "objective_values_" else [given[name]]:
            words = name in ("solver_", "stopped_by_")
            if value is not None and not isinstance(value, str if words else int | float):
                raise ValueError(f"{name} is {value!r}")
            if not words:
                float(value or 0)  # no integer beyond all floats
    return {name: given[name] for name in names}


def fill(fitted: RankAggregator, info: dict[str, Any], arrays: Arrays) -> None:
    """Set what `of_aggregator` gave; a `ValueError` where it does not hold together."""
    fitted._check()
    names = info["items"]
    if not isinstance(names, list) or not all(type(name) in (str, int) for name in names):
        raise ValueError("the items are no list of names")
    size = len(names)
    if len(set(names)) < size:
        raise ValueError("two items have one name")
    shapes = {"log_worths": (size,), "information": (size, size), "sandwich": (size, size)}
    for name, array in arrays.items():
        if name not in shapes or array.shape != shapes[name] or array.dtype != np.float64:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
    fitted.items_ = tuple(names)
    fitted.log_worths_ = arrays.pop("log_worths").copy()
    fitted._covariances = {kind: matrix.copy() for kind, matrix in arrays.items()}
    for matrix in fitted._covariances.values():
        matrix.flags.writeable = False
    fitted._numbers_of = fitted._connectivity = None
    for name, value in checked_facts(info["fit"], (*_NUMBERS, *_OTHERS)).items():
        setattr(fitted, name, value)
    about = info["lists"]
    nothing = torch.zeros(1, dtype=torch.int64)
    empty = Tiers(
        items=nothing[:0], tier_offsets=nothing, list_offsets=nothing, n_items=size,
        names=fitted.items_,
    )  # fmt: skip
    fitted.lists_ = replace(
        CountedLists(empty, np.zeros(0), 0, 0.0, 0.0),
        seen=int(about["seen"]), total=float(about["total"]), silent=float(about["silent"]),
    )  # fmt: skip
