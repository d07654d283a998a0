"""A fitted `FeatureAggregator` as JSON and arrays, and back: without the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tierrank._types import FloatArray
from tierrank.aggregation.covariates import fitting
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.state import checked_facts
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training import History
from tierrank.training.perceptron import load_weights, perceptron

if TYPE_CHECKING:
    from tierrank.aggregation.covariates.estimator import FeatureAggregator

FACTS = (
    "log_likelihood_", "aic_", "solver_", "n_iter_", "converged_", "stopped_by_",
    "objective_values_", "gradient_norm_",
)  # fmt: skip
WEIGHTS = "network."


def of_aggregator(fitted: FeatureAggregator) -> tuple[dict[str, Any], Arrays]:
    """What `tierrank.save` writes."""
    names = [name.item() if isinstance(name, np.generic) else name for name in fitted.items_]
    if not all(type(name) in (str, int) for name in names):
        raise ValueError("only items whose names are strings or integers can be saved")
    lists = fitted.lists_
    info: dict[str, Any] = {
        "parameters": {**fitted.get_params(), "hidden": [int(width) for width in fitted.hidden]},
        "items": names,
        "features": list(fitted.feature_names_),
        "named": fitted._named,
        "fit": {name: getattr(fitted, name) for name in (*FACTS, "seconds_")},
        "lists": {"seen": lists.seen, "total": lists.total, "silent": lists.silent},
    }
    arrays = {
        "features": fitted._features, "mean": fitted._scaling.mean, "scale": fitted._scaling.scale,
    }  # fmt: skip
    if fitted.model == "neural":
        info["history"] = fitted.history_.to_json()
        weights = fitted.network_.state_dict()
        arrays.update({WEIGHTS + name: value.numpy() for name, value in weights.items()})
        return info, arrays
    arrays["coef"] = fitted.coef_
    for kind in ("information", "sandwich"):
        try:
            matrix = fitted.coef_covariance(kind)
        except ValueError:  # this fit has none
            continue
        if np.isfinite(matrix).all() and np.diag(matrix).all():  # else beyond float64
            arrays[kind] = matrix
    return info, arrays


def fill(fitted: FeatureAggregator, info: dict[str, Any], arrays: Arrays) -> None:
    """Set what `of_aggregator` gave; a `ValueError` where it does not hold together."""
    fitting.check(fitted)
    items, names = _names(info["items"], (str, int)), _names(info["features"], (str,))
    width = len(names)
    weights = {
        name.removeprefix(WEIGHTS): arrays.pop(name)
        for name in list(arrays) if name.startswith(WEIGHTS)
    }  # fmt: skip
    shapes = {"features": (len(items), width), "mean": (width,), "scale": (width,)}
    if fitted.model == "linear":
        shapes |= {"coef": (width,), "information": (width, width), "sandwich": (width, width)}
    for name, array in arrays.items():
        if name not in shapes or array.shape != shapes[name] or array.dtype != np.float64:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
    if not (arrays["scale"] > 0).all():
        raise ValueError("scale has numbers that are not positive")
    scaling = fitting.Scaling(arrays["mean"].copy(), arrays["scale"].copy())
    attributes = checked_facts(info["fit"], FACTS)
    covariances: dict[str, FloatArray] = {}
    if fitted.model == "linear":
        attributes["coef_"] = arrays["coef"].copy()
        for kind in ("information", "sandwich"):
            if kind in arrays:
                covariances[kind] = arrays[kind] * scaling.unit * scaling.unit[:, None]
                if (np.diag(covariances[kind]) < 0).any():
                    raise ValueError(f"{kind} has variances that are negative")
    else:
        with torch.device("meta"):
            network = perceptron(width, fitted.hidden, activation=fitted.activation)
        load_weights(network, weights)
        attributes["network_"] = network
        attributes["history_"] = History.from_json(info["history"])
    fitted.items_, fitted.feature_names_ = items, names
    fitted._named = bool(info["named"])
    fitted._take(fitting.Fit(scaling, attributes, None, covariances), arrays["features"].copy())
    fitted.seconds_ = float(info["fit"]["seconds_"])
    fitted.lists_ = _no_lists(items, info["lists"])


def _names(given: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    if not isinstance(given, list) or not given or not all(type(name) in kinds for name in given):
        raise ValueError("items or features are no list of names")
    if len(set(given)) < len(given):
        raise ValueError("two items or features have one name")
    return tuple(given)


def _no_lists(items: tuple[Any, ...], about: dict[str, Any]) -> CountedLists:
    """What is known of the lists: how many there were."""
    nothing = torch.zeros(1, dtype=torch.int64)
    empty = Tiers(
        items=nothing[:0], tier_offsets=nothing, list_offsets=nothing, n_items=len(items),
        names=items,
    )  # fmt: skip
    return CountedLists(
        empty, np.zeros(0), int(about["seen"]), float(about["total"]), float(about["silent"])
    )
