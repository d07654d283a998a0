"""What an `ExtremeRanker` learned, as JSON and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tierrank.extreme.checks import check_shares
from tierrank.storage import Arrays
from tierrank.training import History
from tierrank.training.perceptron import load_weights
from tierrank.training.settings import check_count, check_size

if TYPE_CHECKING:
    from tierrank.extreme.ranker import ExtremeRanker


def state_of(ranker: ExtremeRanker, params: dict[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """A fitted ranker with these constructor arguments."""
    info = {
        "params": params,
        "n_features_in": ranker.n_features_in_,
        "n_labels": ranker.n_labels_,
        "n_rows": ranker.n_rows_,
        "networks": len(ranker.networks_),
        "learning_rate": ranker.learning_rate_,
        "trials": ranker.trials_,
        "history": ranker.history_.to_json(),
    }
    tensors: Arrays = {"label_counts": ranker.label_counts_.astype(np.int64)}
    for number, network in enumerate(ranker.networks_):
        for name, value in network.state_dict().items():
            tensors[f"{number}.{name}"] = value.cpu().numpy()
    return info, tensors


def restore(ranker: ExtremeRanker, info: dict[str, Any], tensors: Arrays) -> None:
    """Take on what was learned; raise a ValueError if it does not hold together."""
    check_shares(ranker)
    for name in ("n_features_in", "n_labels", "n_rows", "networks"):
        check_count(name, info[name])
    if info["networks"] > len(tensors):  # before a million networks are made
        raise ValueError(f"there are no weights of {info['networks']} networks")
    ranker.n_features_in_, ranker.n_labels_ = info["n_features_in"], info["n_labels"]
    ranker.n_rows_ = info["n_rows"]
    counts = tensors["label_counts"]
    if counts.dtype != np.int64 or counts.shape != (ranker.n_labels_,):
        raise ValueError(f"the counts of labels are {counts.dtype} of shape {counts.shape}")
    if counts.min() < 0 or counts.max() > ranker.n_rows_:
        raise ValueError("a label was counted on less than 0 or more than all rows")
    ranker.label_counts_ = counts
    check_size("learning_rate", info["learning_rate"])
    ranker.learning_rate_ = info["learning_rate"]
    ranker.trials_ = [dict(trial) for trial in info["trials"]]
    ranker.history_ = History.from_json(info["history"])
    ranker.networks_ = []
    for number in range(info["networks"]):
        with torch.device("meta"):
            network = ranker._network()
        prefix = f"{number}."
        own = {
            name.removeprefix(prefix): array
            for name, array in tensors.items()
            if name.startswith(prefix)
        }
        load_weights(network, own)
        ranker.networks_.append(network.eval())
    if len(tensors) != 1 + sum(len(each.state_dict()) for each in ranker.networks_):
        raise ValueError(f"there are weights of more than {info['networks']} networks")
