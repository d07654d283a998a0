"""An export is run beside the model before anybody sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.ranking.base import Ranker
from tierrank.ranking.export.graph import Array
from tierrank.ranking.features import Impute, SecondOrder, Standardize

ROWS = 64
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
"""Of the largest score. A wrong operator is off by far more, the rounding of sums by far less."""


class ExportError(ValueError):
    """A model that cannot be exported, or whose export does not give its scores."""


def check_scores(model: Ranker, data: bytes, dtype: np.dtype[Any], tolerance: float) -> None:
    """Run the exported model with onnxruntime on a list and on one row, and compare."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ExportError(
            f"onnxruntime {onnxruntime.__version__} cannot run this model: {error}. Upgrade it "
            '(pip install -U onnxruntime), or export with dtype="float32".'
        ) from error
    rows = example_rows(model, dtype)
    largest = 0.0
    for some in (rows, rows[:1]):
        (found,) = session.run(["scores"], {"features": some})
        expected = own_scores(model, some)
        largest = np.abs(expected).max(initial=largest, where=np.isfinite(expected))
        _compare(found, expected, tolerance * largest)


def _compare(found: Array, expected: Array, tolerance: float) -> None:
    """Refuse scores that differ by more than the tolerance."""
    near = np.isclose(found, expected, rtol=0, atol=tolerance, equal_nan=True)
    if not near.all():
        row = int(np.argmin(near))
        raise ExportError(
            f"the exported model gives other scores than the ranker ({found[row]} instead of "
            f"{expected[row]}), so it was not written. Please report this, with the versions of "
            "tierrank, onnx and onnxruntime."
        )


def own_scores(model: Ranker, X: Array) -> Array:
    """[rows] what the ranker itself gives to rows of one list."""
    queries = np.zeros(len(X), dtype=np.int64)
    return model._scores(model.steps_.transform(X, queries), queries)


def example_rows(model: Ranker, dtype: np.dtype[Any]) -> Array:
    """[rows, features] like those the model was made for, as far as it still knows them.

    Around the means of a `Standardize`; near the thresholds of trees, and on them; some rows equal,
    some values 0, and some missing, if the ranker takes that.
    """
    rng = np.random.default_rng(0)
    n_features = int(model.n_features_in_)
    rows = rng.normal(size=(ROWS, n_features))
    steps = model.steps_.steps
    forest = getattr(model, "forest_", None)
    if forest is not None and all(isinstance(step, Standardize) for step in steps):
        usual = ~forest.is_leaf & (np.abs(forest.threshold) < 1e30)  # some stand for infinity
        for feature in np.unique(forest.feature[usual]):
            here = rng.random(ROWS) < 0.7
            own = forest.threshold[usual & (forest.feature == feature)]
            rows[here, feature] = rng.choice(own, int(here.sum()))
    for step in reversed(steps):
        if isinstance(step, Standardize) and step.n_features_in_ == n_features:
            rows = rows * step.scale_ + step.mean_
    rows[rng.random(rows.shape) < 0.05] = 0.0
    rows[1] = rows[0]
    # Up to the first step that refuses NaN or fills it in, whichever it is.
    first = next((step for step in steps if isinstance(step, SecondOrder | Impute)), None)
    if isinstance(first, Impute) or (first is None and model.allows_missing):
        rows[rng.random(rows.shape) < 0.1] = np.nan
    with np.errstate(over="ignore"):
        rows = rows.astype(dtype)
    if np.isinf(rows).any():
        feature = int(np.argwhere(np.isinf(rows))[0, 1])
        raise ExportError(
            f"feature {feature} has values that are too large for float32: export with "
            'dtype="float64"'
        )
    return rows
