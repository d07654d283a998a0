"""Rankers as Solr's learning to rank takes them: a model in JSON, and the features it names.

Trees become a MultipleAdditiveTreesModel, a linear ranker a LinearModel, a network a
NeuralNetworkModel. All of these compute in float32. Standardising is folded into thresholds of
trees; for the others Solr has its own, (x − avg) / std before the weights, which keeps the digits
that weights of raw features would lose to cancellation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from tierrank._types import AnyArray
from tierrank.errors import Argument
from tierrank.ranking.export import ExportError
from tierrank.ranking.export_trees import (
    LARGEST,
    SLACK,
    Scorer,
    from_nested,
    nested,
    refuse_step,
    rounded,
)
from tierrank.ranking.features import Impute, Standardize
from tierrank.ranking.forest import Forest

MODELS = "org.apache.solr.ltr.model."
NORMALIZER = "org.apache.solr.ltr.norm.StandardNormalizer"
FIELD_VALUE = "org.apache.solr.ltr.feature.FieldValueFeature"


def features_file(names: Sequence[str], defaults: AnyArray) -> bytes:
    """Entries for Solr's feature store: each the value of a field, to be replaced as it fits."""
    entries = [
        {
            "name": name,
            "class": FIELD_VALUE,
            "params": {"field": name, "defaultValue": str(np.float32(default))},
        }
        for name, default in zip(names, defaults, strict=True)
    ]
    return _text(entries).replace('"nan"', '"NaN"').encode()


def _text(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


# -- trees ----------------------------------------------------------------------------------------


def units(forest: Forest) -> AnyArray:
    """[features] float32 powers of two in which Solr is to see a feature: 1 where that will do.

    Adding the slack loses digits of thresholds near 0. In a unit in which all of a feature's are
    64 or larger, the slack is less than half of their last digit, and no number goes another way.
    (Thresholds below 1e-30, as 1e-35 is LightGBM's for what is not 0, are taken for 0.)
    """
    found = np.ones(forest.n_features, np.float32)
    cut = np.where(np.abs(forest.threshold) < 1e-30, 0.0, rounded(forest.threshold))
    lost = ~forest.is_leaf & (before_slack(cut) + SLACK != cut)
    for feature in np.unique(forest.feature[lost]):
        own = np.abs(cut[~forest.is_leaf & (forest.feature == feature) & (cut != 0)])
        found[feature] = np.ldexp(np.float32(1), int(np.frexp(own.min())[1]) - 7)
    return found


def before_slack(cut: AnyArray) -> AnyArray:
    """[nodes] the float32 that Solr, adding its slack, makes the cut, or the last one before it."""
    nearest = cut.astype(np.float32) - SLACK
    ulp = np.spacing(np.minimum(np.abs(nearest), LARGEST / 2))
    with np.errstate(over="ignore"):
        tried = rounded(np.stack([nearest + step * ulp for step in range(-2, 3)]))
    made = np.where(tried + SLACK <= cut, tried + SLACK, -np.inf)
    return np.asarray(np.take_along_axis(tried, made.argmax(axis=0)[None], axis=0)[0])


def trees(forest: Forest, names: Sequence[str], name: str) -> bytes:
    """A MultipleAdditiveTreesModel; Solr knows missing values from 9.2."""
    unit, value = units(forest), rounded(forest.value)
    with np.errstate(over="ignore"):
        threshold = before_slack(rounded(rounded(forest.threshold) / unit[forest.feature]))

    def split(node: int, left: Any, right: Any) -> dict[str, Any]:
        return {
            "feature": names[forest.feature[node]],
            "threshold": str(threshold[node]),
            "missing": "left" if forest.default_left[node] else "right",
            "left": left,
            "right": right,
        }

    roots = nested(forest, split, lambda node: {"value": str(value[node])})
    params = {
        "isNullSameAsZero": False,
        "trees": [{"weight": "1.0", "root": root} for root in roots],
    }
    norms = _normalizers(np.zeros_like(unit), unit)
    features = [{"name": each, **norm} for each, norm in zip(names, norms, strict=True)]
    return _model("MultipleAdditiveTreesModel", name, features, params)


def _normalizers(avg: AnyArray, std: AnyArray) -> list[dict[str, Any]]:
    """What a feature's entry has beside its name, so that Solr takes (x − avg) / std of it."""
    return [
        {"norm": {"class": NORMALIZER, "params": {"avg": str(a), "std": str(s)}}}
        if a != 0 or s != 1
        else {}
        for a, s in zip(avg, std, strict=True)
    ]


def _model(kind: str, name: str, features: list[dict[str, Any]], params: Any) -> bytes:
    model = {"class": MODELS + kind, "name": name, "features": features, "params": params}
    return _text(model).encode()


# -- linear rankers and networks ------------------------------------------------------------------


def scaling(model: Any) -> tuple[list[dict[str, Any]], AnyArray, AnyArray, AnyArray]:
    """Normalizers by feature, [features] mean, deviation, and what stands for a missing value."""
    n_features = int(model.n_features_in_)
    mean, deviation, default = np.zeros(n_features), np.ones(n_features), np.zeros(n_features)
    for step in model.steps_.steps:
        refuse_step(step, "solr")
        if isinstance(step, Impute):
            if len(step.indicated_):
                raise ExportError(
                    "solr cannot carry the step Impute(indicator=True) for linear rankers and "
                    "networks: train with indicator=False, or use ", Argument("to", "onnx"),
                )  # fmt: skip
            default = mean + deviation * step.values_
        elif isinstance(step, Standardize):
            mean, deviation = mean + deviation * step.mean_, deviation * step.scale_
    avg, std = rounded(mean), rounded(deviation)
    if not (std > 0).all() or (np.abs(mean) > LARGEST).any() or (deviation > LARGEST).any():
        wrong = int(np.argmin((std > 0) & (np.abs(mean) <= LARGEST) & (deviation <= LARGEST)))
        raise ExportError(
            f"solr computes in float32, in which the mean or deviation of feature {wrong} is "
            "infinite or 0: train on the feature in another unit."
        )
    return _normalizers(avg, std), mean, deviation, default


def linear(model: Any, names: Sequence[str], name: str) -> bytes:
    """A LinearModel."""
    norms, _, deviation, _ = scaling(model)
    weights = model.coef_ * rounded(deviation) / deviation  # what rounding the deviation changed
    features = [{"name": each, **norm} for each, norm in zip(names, norms, strict=True)]
    params = {"weights": dict(zip(names, weights.tolist(), strict=True))}
    return _model("LinearModel", name, features, params)


def network(model: Any, names: Sequence[str], name: str) -> bytes:
    """A NeuralNetworkModel: batch normalisation becomes part of the layer before it."""
    if len(model.scorers_) > 1:
        raise ExportError(
            f"solr's network is one, and this ranker the mean of {len(model.scorers_)}: train ",
            "without ", Argument("members"), ", or export to ", Argument("to", "onnx"),
        )  # fmt: skip
    if model.scorer_.scores_lists:
        raise ExportError(
            "solr cannot carry attention over a list (attention_layers > 0): it scores documents "
            "one by one. Train with attention_layers=0, or use ", Argument("to", "onnx"),
        )  # fmt: skip
    norms, mean, deviation, _ = scaling(model)
    layers: list[dict[str, Any]] = []
    for layer in model.scorer_.layers:
        match layer:
            case nn.Linear():
                weight = _numbers(layer.weight)
                bias = np.zeros(len(weight)) if layer.bias is None else _numbers(layer.bias)
                if not layers:  # what rounding the mean and the deviation changed
                    scaled = (rounded(mean) - mean) / deviation
                    bias, weight = bias + weight @ scaled, weight * rounded(deviation) / deviation
                layers.append({"matrix": weight, "bias": bias, "activation": "identity"})
            case nn.BatchNorm1d():
                scale = _numbers(layer.weight) / np.sqrt(_numbers(layer.running_var) + layer.eps)
                before = layers[-1]
                before["matrix"] = before["matrix"] * scale[:, None]
                before["bias"] = (before["bias"] - _numbers(layer.running_mean)) * scale
                before["bias"] = before["bias"] + _numbers(layer.bias)
            case nn.ReLU():
                layers[-1]["activation"] = "relu"
            case nn.Tanh():
                layers[-1]["activation"] = "tanh"
            case nn.Dropout():
                pass
            case nn.LayerNorm():
                raise ExportError(
                    'solr cannot carry normalisation="layer": train with "batch" or None, or use ',
                    Argument("to", "onnx"),
                )
            case _:
                raise ExportError(
                    f"solr cannot carry the activation {type(layer).__name__}: train with "
                    'activation="relu" or "tanh", or use ', Argument("to", "onnx"),
                )  # fmt: skip
    for each in layers:
        each["matrix"], each["bias"] = each["matrix"].tolist(), each["bias"].tolist()
    features = [{"name": each, **norm} for each, norm in zip(names, norms, strict=True)]
    return _model("NeuralNetworkModel", name, features, {"layers": layers})


def _numbers(tensor: Any) -> AnyArray:
    return np.asarray(tensor.detach().cpu().numpy(), np.float64)


# -- what Solr makes of it ------------------------------------------------------------------------


def from_solr(data: bytes, names: Sequence[str]) -> Scorer:
    """By the public definition of the three models, in numbers as precise as theirs or more so."""
    model = json.loads(data)
    params, kind = model["params"], model["class"].removeprefix(MODELS)
    place = {feature["name"]: number for number, feature in enumerate(model["features"])}
    norms = [feature.get("norm", {}).get("params", {}) for feature in model["features"]]
    avg = np.array([norm.get("avg", 0) for norm in norms], np.float32)
    std = np.array([norm.get("std", 1) for norm in norms], np.float32)
    if kind == "MultipleAdditiveTreesModel":

        def look(node: dict[str, Any]) -> Any:
            if "feature" not in node:
                return float(np.float32(node["value"]))
            cut = np.float32(node["threshold"]) + SLACK
            missing_left = node["missing"] == "left"
            return (place[node["feature"]], float(cut), missing_left, node["left"], node["right"])

        roots = [tree["root"] for tree in params["trees"]]
        forest = from_nested(len(names), roots, look)
        with np.errstate(over="ignore"):
            return lambda X: forest.predict((X - avg) / std)
    layers = params.get("layers")
    if layers is None:
        weights = [params["weights"][feature] for feature in place]
        layers = [{"matrix": [weights], "bias": [0.0], "activation": "identity"}]

    def score(X: AnyArray) -> AnyArray:
        x = (X.astype(np.float32) - avg) / std
        for layer in layers:
            x = x @ np.array(layer["matrix"], np.float32).T + np.array(layer["bias"], np.float32)
            if layer["activation"] == "relu":
                x = np.maximum(x, 0)
            elif layer["activation"] == "tanh":
                x = np.tanh(x)
        return np.asarray(x[:, 0])

    return score
