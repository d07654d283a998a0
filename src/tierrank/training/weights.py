"""Weights that were saved, given back to a network after a look at them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tierrank.storage import Arrays


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
