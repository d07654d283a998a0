"""A perceptron of any depth, one score a row, and weights that were saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tierrank.errors import check_count
from tierrank.storage import Arrays

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}
NORMALISATIONS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


def perceptron(
    width: int,
    hidden: Sequence[int] = (),
    *,
    activation: str = "relu",
    dropout: float = 0.0,
    normalisation: str | None = None,
) -> nn.Sequential:
    """Layers that take [rows, width] and give [rows, 1] scores.

    For each hidden layer Linear, LayerNorm or BatchNorm1d (if any), activation, Dropout (if any);
    then a Linear of one output. That one has no bias, as only differences between scores mean
    anything.

    Parameters
    ----------
    width
        numbers of a row
    hidden
        widths of the hidden layers; none: a linear scorer
    activation
        "relu", "gelu", "silu", "elu" or "tanh"
    dropout
        probability with which a hidden number is 0 in training
    normalisation
        "layer", "batch" or None, before each activation
    """
    layers: list[nn.Module] = []
    for next_width in hidden:
        layers.append(nn.Linear(width, next_width))
        if normalisation is not None:
            layers.append(NORMALISATIONS[normalisation](next_width))
        layers.append(ACTIVATIONS[activation]())
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        width = next_width
    layers.append(nn.Linear(width, 1, bias=False))
    return nn.Sequential(*layers)


def check_perceptron(
    hidden: Any, activation: Any, dropout: Any = 0.0, normalisation: Any = None
) -> None:
    """Refuse what no perceptron can be made of."""
    if isinstance(hidden, str) or not isinstance(hidden, Sequence | np.ndarray):
        raise ValueError(f"hidden is a sequence of widths, such as (64, 32), not {hidden!r}")
    for width in hidden:
        check_count("a hidden width", width)
    if activation not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"activation is one of {known}, not {activation!r}")
    if normalisation is not None and normalisation not in NORMALISATIONS:
        raise ValueError(f'normalisation is "layer", "batch" or None, not {normalisation!r}')
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(f"dropout is a number from 0 to below 1, not {dropout!r}")


def load_weights(network: nn.Module, arrays: Arrays) -> None:
    """Give a network (which may be on torch's meta device) the weights of a saved one.

    Nothing is allocated before names, shapes and types are found to fit.
    """
    expected = network.state_dict()
    if set(arrays) != set(expected):
        other = sorted(set(arrays) ^ set(expected))
        raise ValueError(f"the weights are not those of this network: {', '.join(other[:3])}")
    for name, wanted in expected.items():
        array = arrays[name]
        whole = np.int64 if wanted.dtype == torch.int64 else np.float32
        if array.shape != tuple(wanted.shape) or array.dtype != whole:
            raise ValueError(
                f"{name} is {array.dtype} of shape {list(array.shape)}, but the network needs "
                f"{np.dtype(whole)} of shape {list(wanted.shape)}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
        if name.endswith("running_var") and (array < 0).any():
            raise ValueError(f"{name} has negative variances")
    weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    network.load_state_dict(weights, assign=True)
