"""Models saved as a folder of JSON and safetensors: no pickle, nothing that runs when loaded."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tierrank import storage
from tierrank.storage import Arrays, StorageError

# The classes that a saved model may name, and where they are: nothing else is ever imported.
SAVABLE = {
    "LinearRanker": "tierrank.ranking.linear",
    "NeuralRanker": "tierrank.ranking.neural",
    "BoostedRanker": "tierrank.ranking.boosted",
    "ExtremeRanker": "tierrank.extreme.ranker",
    "RankAggregator": "tierrank.aggregation.aggregator",
    "PairedTies": "tierrank.aggregation.paired",
    "FeatureAggregator": "tierrank.aggregation.covariates",
}


class Savable(Protocol):
    """What `save` asks of a model; its class also has `from_state`."""

    def to_state(self) -> tuple[dict[str, Any], Arrays]: ...


def save(model: Savable, folder: Path | str) -> Path:
    """Save a fitted model as a folder, in place of what was saved there before.

    Killed at any moment, it leaves the old model or the new one. Other processes may load from the
    folder meanwhile, or save to it. A plot or a note of yours in it is left alone. What the disk
    does not take is an `OSError` that names the folder.

    Examples
    --------
    >>> import tempfile, numpy as np, tierrank as tr
    >>> X = np.array([[1.0], [0.0], [2.0], [0.5]])
    >>> ranker = tr.LinearRanker(l2=0.1).fit(X, [1, 0, 1, 0], qid=[7, 7, 8, 8])
    >>> folder = tr.save(ranker, tempfile.mkdtemp())
    >>> bool((tr.load(folder).predict(X) == ranker.predict(X)).all())
    True
    """
    name = type(model).__name__
    if name not in SAVABLE:
        raise TypeError(f"only {', '.join(SAVABLE)} can be saved, not a {name}")
    info, tensors = model.to_state()
    path = Path(folder)
    storage.write(path, "model", {"estimator": name, **info}, tensors)
    return path


def load(folder: Path | str) -> Any:
    """Load a model that `save` wrote; a damaged or foreign folder raises a `StorageError`."""
    path = Path(folder)
    info, tensors = storage.read(path, "model")
    name = info.pop("estimator", None) if isinstance(info, dict) else None
    if not isinstance(name, str) or name not in SAVABLE:
        kind = ascii(name)[:80]
        raise StorageError(f"{path}: holds a model of kind {kind}, which this tierrank lacks")
    estimator = getattr(import_module(SAVABLE[name]), name)
    try:
        return estimator.from_state(info, tensors)
    except ImportError:
        raise  # a library that the model needs is not installed
    except Exception as error:  # of any kind: it is a stranger who chose what is in it
        raise StorageError(f"{path}: does not hold together as a {name}: {error}") from error
