"""Rankers as ONNX: one file that scores rows wherever onnxruntime runs, without this package."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tierrank._types import AnyArray

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker
    from tierrank.ranking.onnx_graph import Graph

ROWS = 64
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
"""Of the largest score. A wrong operator is off by far more, the rounding of sums by far less."""


class ExportError(ValueError):
    """A model that cannot be exported, or whose export does not give its scores."""


def to_onnx(
    model: Any, path: Path | str, *, dtype: Literal["float32", "float64"] = "float32"
) -> Path:
    """Write a fitted ranker, with its feature steps, as an ONNX file.

    The file takes `features` [rows, features] and gives `scores` [rows], which equal `predict` of
    the same rows. Where a score depends on the rest of its list (`QueryScale`, attention), all rows
    of a call are one list. Before the file is put in place, onnxruntime runs it beside the ranker:
    what gives other scores is never written.

    Parameters
    ----------
    model
        a fitted `LinearRanker`, `NeuralRanker` or `BoostedRanker`
    path
        the file to write; one that is there is replaced at once
    dtype
        of `features` and `scores`. "float32" is what servers send; what the ranker computes in
        float64 (all but the layers of a network) is in float64 inside. "float64" is for features
        that need more than seven digits; trees then need a runtime that knows ai.onnx.ml 5.

    Examples
    --------
    >>> import tempfile, numpy as np, onnxruntime, tierrank as tr
    >>> from tierrank.ranking.export import to_onnx
    >>> X = np.array([[1.0], [0.0], [2.0], [0.5]], dtype=np.float32)
    >>> ranker = tr.LinearRanker(l2=0.1).fit(X, [1, 0, 1, 0], qid=[7, 7, 8, 8])
    >>> path = to_onnx(ranker, tempfile.mkdtemp() + "/ranker.onnx")
    >>> (scores,) = onnxruntime.InferenceSession(path).run(None, {"features": X})
    >>> bool(np.allclose(scores, ranker.predict(X), rtol=1e-6))
    True
    """
    for library in ("onnx", "onnxruntime"):
        if find_spec(library) is None:
            raise ValueError(
                f"the export to ONNX needs {library}, which is not installed: "
                'pip install "tierrank[export]"'
            )
    import onnx
    from sklearn.utils.validation import check_is_fitted

    from tierrank.ranking.base import Ranker
    from tierrank.ranking.onnx_graph import Graph
    from tierrank.storage import replace_file

    if not isinstance(model, Ranker):
        raise ExportError(f"only rankers can be exported to ONNX, not a {type(model).__name__}")
    if dtype not in TOLERANCE:
        raise ExportError(f'dtype is "float32" or "float64", not {dtype!r}')
    check_is_fitted(model)
    target = Path(path)
    if target.is_dir():
        raise ExportError(f"{target}: is a folder; give the name of a file, such as ranker.onnx")
    graph = Graph(int(model.n_features_in_), dtype)
    column, precision = _scorer(graph, model)
    proto = graph.model(column, _about(model), _notes(model))
    try:
        onnx.checker.check_model(proto, full_check=True)
    except onnx.checker.ValidationError as error:
        raise ExportError(f"onnx {onnx.__version__} refuses the export: {error}") from error
    data = proto.SerializeToString()
    check_scores(model, data, np.dtype(dtype), max(TOLERANCE[dtype], TOLERANCE[precision]))
    replace_file(target, data)
    return target


def _scorer(graph: Graph, model: Any) -> tuple[str, str]:
    """Add steps and model: the scores, [rows, 1], and the precision they are computed in."""
    from tierrank.ranking.onnx_graph import add_forest, add_network, add_steps

    x = add_steps(graph, graph.features, model.steps_)
    kind = type(model).__name__
    if kind == "LinearRanker":
        coefficients = graph.constant(np.reshape(model.coef_, (-1, 1)))
        # No MatMul: onnxruntime would merge it with the scale of one feature, in float32.
        return graph.op("Gemm", graph.widened(x), coefficients), "float64"
    if kind == "NeuralRanker":
        return add_network(graph, x, model.scorer_), "float32"
    if kind == "BoostedRanker":
        return add_forest(graph, x, model.forest_), "float64"
    raise ExportError(f"a {kind} cannot be exported to ONNX")


def _scores_lists(model: Any) -> bool:
    return bool(model.scores_lists or model.steps_.needs_qid)


def _about(model: Any) -> str:
    text = (
        f"{type(model).__name__} of tierrank, trained with {model.objective}. scores: one a row, "
        "higher is better; only differences between rows of the same list mean anything."
    )
    if _scores_lists(model):
        text += " All rows of a call are one list."
    return text


def _notes(model: Any) -> dict[str, str]:
    notes = {
        "estimator": type(model).__name__,
        "objective": str(model.objective),
        "one_list_a_call": json.dumps(_scores_lists(model)),
    }
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        notes["feature_names"] = json.dumps([str(name) for name in names], ensure_ascii=False)
    return notes


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


def _compare(found: AnyArray, expected: AnyArray, tolerance: float) -> None:
    """Refuse scores that differ by more than the tolerance."""
    near = np.isclose(found, expected, rtol=0, atol=tolerance, equal_nan=True)
    if not near.all():
        row = int(np.argmin(near))
        raise ExportError(
            f"the exported model gives other scores than the ranker ({found[row]} instead of "
            f"{expected[row]}), so it was not written. Please report this, with the versions of "
            "tierrank, onnx and onnxruntime."
        )


def own_scores(model: Ranker, X: AnyArray) -> AnyArray:
    """[rows] what the ranker itself gives to rows of one list."""
    queries = np.zeros(len(X), dtype=np.int64)
    return model._scores(model.steps_.transform(X, queries), queries)


def example_rows(model: Ranker, dtype: np.dtype[Any]) -> AnyArray:
    """[rows, features] like those the model was made for, as far as it still knows them.

    Around the means of a `Standardize`; near the thresholds of trees, and on them; some rows equal,
    some values 0, and some missing, if the ranker takes that.
    """
    from tierrank.ranking.features import Impute, SecondOrder, Standardize

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
