"""What is kept of a fitted `PairedTies`: JSON and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.aggregation.priors import prior_from
from tierrank.storage import Arrays
from tierrank.tiers.arrays import preview

if TYPE_CHECKING:
    from tierrank.aggregation.paired.estimator import PairedTies

NUMBERS = ("log_likelihood", "n_parameters", "n_games")


def write_state(fitted: PairedTies) -> tuple[dict[str, Any], Arrays]:
    """Settings and results of a fitted estimator."""
    params = dict(fitted.get_params(deep=False))
    if params["prior"] is not None:
        params["prior"] = _spelled(prior_from(params["prior"]))
    params["tol"], params["max_iter"] = float(params["tol"]), int(params["max_iter"])
    info = {
        "params": params,
        "items": [_plain(name) for name in fitted.items_],
        "extras": fitted._extras,
        "n_iter": fitted.n_iter_,
        "converged": fitted.converged_,
        **{name: float(getattr(fitted, f"{name}_")) for name in NUMBERS},
    }
    return info, {"log_worths": fitted.log_worths_, "covariance": fitted.covariance_}


def read_state(fitted: PairedTies, info: dict[str, Any], tensors: Arrays) -> None:
    """Set the results that `write_state` wrote down, if they hold together."""
    items = info["items"]
    if not items or not all(type(name) in (str, int) for name in items):
        raise ValueError("items are strings or integers, at least one")
    if len(set(items)) < len(items):
        raise ValueError("an item is there twice")
    expected = ["tie"] * (fitted.model != "bradley-terry") + ["home"] * fitted.home
    extras = {name: float(info["extras"][name]) for name in expected}
    if len(info["extras"]) != len(extras):
        raise ValueError(f"the parameters are {expected}, not {sorted(info['extras'])}")
    size = len(items) + len(extras)
    shapes = {"log_worths": (len(items),), "covariance": (size, size)}
    if tensors.keys() != shapes.keys():
        raise ValueError(f"there are {sorted(tensors)} in place of {sorted(shapes)}")
    for name, array in tensors.items():
        if array.shape != shapes[name] or array.dtype != np.float64:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
    if (np.diag(tensors["covariance"]) < 0).any():
        raise ValueError("covariance has variances that are negative")
    numbers = {name: float(info[name]) for name in NUMBERS}
    if not np.isfinite([*extras.values(), *numbers.values()]).all():
        raise ValueError("the results have numbers that are not finite")
    fitted.items_ = tuple(items)
    fitted._extras, fitted._fixtures = extras, None
    fitted.log_worths_ = tensors["log_worths"].copy()
    fitted.covariance_ = tensors["covariance"].copy()
    for name, number in numbers.items():
        setattr(fitted, f"{name}_", number)
    fitted.n_iter_, fitted.converged_ = int(info["n_iter"]), bool(info["converged"])


def _plain(name: Any) -> str | int:
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise ValueError(
        f"item {preview(name)} is a {type(name).__name__}: a saved model has names that are "
        "strings or integers"
    )


def _spelled(prior: Any) -> str:
    """As the constructor takes it, with all digits of its size."""
    kind = str(prior).partition(":")[0]
    (size,) = vars(prior).values()
    return f"{kind}:{float(size)!r}"
