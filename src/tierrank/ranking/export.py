"""Rankers as files that score rows without this package: ONNX, and what search engines read.

Every file is read back, by the library it is for or by that library's public definition, and
scores example rows beside the ranker before it is put in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError
from tierrank.names import export_format

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker
    from tierrank.ranking.forest import Forest
    from tierrank.ranking.onnx_graph import Graph

ROWS = 64
TREE_ROWS = 512
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
"""Of the largest score. A wrong operator is off by far more, the rounding of sums by far less."""
TREE_TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
"""The same for trees, of the sum of their largest leaves: rounding is at most as large."""
NOT_IN_NAMES = {"xgboost": "[]<", "lightgbm": ' \t\r\n",:[]{}', "solr": "", "ranklib": ""}
"""What names of features may not have, by the first word of a format."""

Dtype = Literal["float32", "float64"]


class ExportError(ArgumentError):
    """A model that cannot be exported, or whose export does not give its scores."""


def export(
    model: Any,
    path: Path | str,
    to: str | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    missing_as_zero: bool = False,
    dtype: Dtype | None = None,
) -> Path:
    """Write a fitted ranker, with its feature steps, as a file that another program reads.

    Trees go into every format, whichever library grew them: steps are folded into thresholds, so
    that every row of the format's numbers (float32, but float64 for LightGBM) goes where it goes in
    `predict`. Linear rankers and networks go into "solr" and "onnx". Whatever a format cannot carry
    is refused by name. The file is read back before it is put in place, and scores example rows
    beside the ranker: what gives other scores is never written.

    Parameters
    ----------
    model : estimator
        A fitted `LinearRanker`, `NeuralRanker` or `BoostedRanker`.
    path : str or path
        The file to write; one that is there is replaced at once.
    to : str, optional
        "onnx"; "xgboost-json" or "xgboost-ubj", models of XGBoost; "xgboost-dump", the JSON of its
        trees that the learning-to-rank plugin and Vespa read; "lightgbm", its text; "ranklib", its
        XML; "solr", with a file of features beside it, NAME.features.json. None goes by the ending
        of the path: .onnx, .ubj, .txt (LightGBM) or .xml (RankLib).
    feature_names : sequence of str, optional
        What the engine calls the features, in the order of the columns. None takes the names of
        the columns that the ranker was fitted to, or f0, f1 and so on.
    missing_as_zero : bool
        "ranklib" takes what is missing for 0, and refuses trees that send it elsewhere. True
        accepts that: the file then scores a missing value as `predict` scores 0.
    dtype : {"float32", "float64"}, optional
        Of "onnx": see `to_onnx`.

    Returns
    -------
    path
        The file.

    Raises
    ------
    ValueError
        The format cannot carry what the ranker does; the message says what.

    See Also
    --------
    save : All of a model, for `load`.
    load : Load it again.

    Examples
    --------
    >>> import tempfile, numpy as np, xgboost, tierrank as tr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)).astype(np.float32)
    >>> y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1])
    >>> ranker = tr.BoostedRanker(trees=20, threads=1).fit(X, y, group=[20] * 15)
    >>> path = tr.export(ranker, tempfile.mkdtemp() + "/ranker.ubj")
    >>> scores = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(X))
    >>> bool(np.allclose(scores, ranker.predict(X), rtol=0, atol=1e-5))
    True
    """
    target = _target(model, path, to)
    to = export_format(to, path)
    if to == "onnx":
        if feature_names is not None:
            raise ExportError(
                Argument("feature_names"), " is for other formats than onnx, which has no use for "
                "names",
            )  # fmt: skip
        return to_onnx(model, path, dtype="float32" if dtype is None else dtype)
    if dtype is not None:
        raise ExportError(Argument("dtype"), " is for ", Argument("to", "onnx"), " only")
    if missing_as_zero and to != "ranklib":
        raise ExportError(
            Argument("missing_as_zero"), " is for ", Argument("to", "ranklib"), f": {to} can say "
            "where a missing value goes",
        )  # fmt: skip
    kind = type(model).__name__
    names = _feature_names(model, feature_names, to)
    beside: dict[Path, bytes] = {}
    if kind == "BoostedRanker":
        data, defaults = _trees(model, names, to, target.stem, missing_as_zero)
    elif kind in ("LinearRanker", "NeuralRanker") and to == "solr":
        data, defaults = _solr_weights(model, names, target.stem)
    elif kind not in ("LinearRanker", "NeuralRanker"):
        raise ExportError(f"a {kind} cannot be exported to {to}")
    else:
        raise ExportError(
            f"{to} is a format of trees, which a {kind} has none of: a BoostedRanker goes there, "
            "and this one to ", Argument("to", "onnx"), " or ", Argument("to", "solr"),
        )  # fmt: skip
    from tierrank.storage import replace_file

    if to == "solr":
        from tierrank.ranking.export_solr import features_file

        beside[target.with_suffix(".features.json")] = features_file(names, defaults)
    for place, content in {**beside, target: data}.items():
        replace_file(place, content)
    return target


def _target(model: Any, path: Path | str, to: str | None) -> Path:
    """Where to write, if this can be written there."""
    from sklearn.utils.validation import check_is_fitted

    from tierrank.ranking.base import Ranker

    if not isinstance(model, Ranker):
        name = "ONNX" if to == "onnx" else to or "other formats"
        raise ExportError(
            f"only rankers can be exported to {name}, not a {type(model).__name__}: a "
            "LinearRanker, NeuralRanker, BoostedRanker or BlendedRanker"
        )
    check_is_fitted(model)
    target = Path(path)
    if target.is_dir():
        raise ExportError(f"{target}: is a folder; give the name of a file, such as ranker.onnx")
    return target


def _feature_names(model: Any, given: Sequence[str] | None, to: str) -> list[str]:
    n_features = int(model.n_features_in_)
    if given is None:
        given = getattr(model, "feature_names_in_", [f"f{n}" for n in range(n_features)])
    names = [given] if isinstance(given, str) else [str(name) for name in given]
    advice = ("give them by ", Argument("feature_names"))
    if len(names) != n_features:
        raise ExportError(
            f"there are {len(names)} names for {n_features} features: ", *advice, ", one for each"
        )
    forbidden = NOT_IN_NAMES[to.partition("-")[0]]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ExportError(f"two features are called {name!r}: ", *advice)
        seen.add(name)
        wrong = [mark for mark in forbidden if mark in name]
        if wrong or not name:
            why = f"has {wrong[0]!r}" if wrong else "is empty"
            raise ExportError(f"{to} refuses the name {name!r}, which {why}: ", *advice)
    return names


# -- trees, and what Solr has of the others -------------------------------------------------------


def _trees(
    model: Any, names: list[str], to: str, title: str, missing_as_zero: bool
) -> tuple[bytes, AnyArray]:
    """The file of a forest, compared, and what stands for a missing value of each feature."""
    from tierrank.ranking import export_solr, export_trees

    own = to.partition("-")[0]
    if own in ("xgboost", "lightgbm") and find_spec(own) is None:
        raise ExportError(
            f"the export to {to} needs {own}, which reads it back, and is not installed: "
            'pip install "tierrank[boost]"'
        )
    forms: dict[str, tuple[Callable[..., bytes], Callable[..., export_trees.Scorer]]] = {
        "xgboost-json": (partial(export_trees.to_xgboost, form="json"), export_trees.from_xgboost),
        "xgboost-ubj": (partial(export_trees.to_xgboost, form="ubj"), export_trees.from_xgboost),
        "xgboost-dump": (partial(export_trees.to_xgboost, form="dump"), export_trees.from_dump),
        "lightgbm": (export_trees.to_lightgbm, export_trees.from_lightgbm),
        "ranklib": (export_trees.to_ranklib, export_trees.from_ranklib),
        "solr": (partial(export_solr.trees, name=title), export_solr.from_solr),
    }
    write, read = forms[to]
    precision: Dtype = "float64" if to == "lightgbm" else "float32"
    dtype = np.dtype(precision)
    forest = export_trees.folded(model.forest_, model.steps_, dtype.type, to)
    if to == "ranklib":
        forest = export_trees.missing_is_zero(forest, accepted=missing_as_zero)
    try:
        data = write(export_trees.with_a_tree(forest), names)
        score = read(data, names)
    except RecursionError as error:
        raise ExportError(f"a tree is too deep for {to}: train with a smaller depth") from error
    rows = rows_at_cuts(forest, dtype)
    for feature, words in model.categories_.items():
        known = np.random.default_rng(1).integers(0, len(words) + 1, len(rows))
        rows[:, feature] = np.where(np.isnan(rows[:, feature]), np.nan, known)
    rows[np.abs(rows) < 1e-30] = 0.0  # which they are to LightGBM and Solr
    if missing_as_zero:
        rows = np.nan_to_num(rows)
    expected = own_scores(model, rows)
    _compare(forest.predict(rows), expected, 0.0, to)
    most = np.maximum.reduceat(np.abs(forest.value), forest.tree_offsets[:-1]) if len(forest) else 0
    _compare(score(rows), expected, TREE_TOLERANCE[precision] * float(np.sum(most)), to)
    return data, np.full(forest.n_features, np.nan)


def rows_at_cuts(forest: Forest, dtype: np.dtype[Any]) -> AnyArray:
    """[rows, features] on the last number that a split sends left, the next, and around them.

    Some are missing, some 0, and two rows are equal.
    """
    from tierrank.ranking.export_trees import next_above

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(TREE_ROWS, forest.n_features)).astype(dtype)
    above = next_above(forest.threshold, dtype)
    usual = ~forest.is_leaf & (np.abs(forest.threshold) < 1e30)  # some stand for infinity
    for feature in np.unique(forest.feature[usual]):
        own = usual & (forest.feature == feature)
        cuts = np.concatenate([forest.threshold[own], above[own]]).astype(dtype)
        drawn = rng.choice(cuts, TREE_ROWS)
        near = drawn + (rng.normal(size=TREE_ROWS) * cuts.std(dtype=np.float64)).astype(dtype)
        rows[:, feature] = np.where(rng.random(TREE_ROWS) < 0.7, drawn, near)
    rows[rng.random(rows.shape) < 0.05] = 0.0
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[1] = rows[0]
    return rows


def _solr_weights(model: Any, names: list[str], title: str) -> tuple[bytes, AnyArray]:
    """The same of a linear ranker or a network."""
    from tierrank.ranking import export_solr

    is_linear = type(model).__name__ == "LinearRanker"
    data = (export_solr.linear if is_linear else export_solr.network)(model, names, title)
    defaults = export_solr.scaling(model)[3]
    rows = example_rows(model, np.dtype(np.float32))
    expected = own_scores(model, rows)
    given = np.where(np.isnan(rows), defaults.astype(np.float32), rows)
    found = export_solr.from_solr(data, names)(given)
    if is_linear:  # a LinearModel has no constant, which only differences of scores do without
        found = found + (expected - found).mean()
    _compare(found, expected, TOLERANCE["float32"] * float(np.abs(expected).max()), "solr")
    return data, defaults


# -- ONNX -----------------------------------------------------------------------------------------


def to_onnx(model: Any, path: Path | str, *, dtype: Dtype = "float32") -> Path:
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

    A column of categories takes their codes: the place of each, from 0, in `categories_`, which the
    file's metadata have too, and NaN for what is missing or is not there.

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

    from tierrank.ranking.onnx_graph import Graph
    from tierrank.storage import replace_file

    target = _target(model, path, "onnx")
    if dtype not in TOLERANCE:
        raise ExportError(f'dtype is "float32" or "float64", not {dtype!r}')
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


def _scorer(graph: Graph, model: Any, x: str | None = None) -> tuple[str, str]:
    """Add steps and model: the scores, [rows, 1], and the precision they are computed in."""
    from tierrank.ranking.onnx_graph import add_forest, add_network, add_steps, by_own_spread

    x = add_steps(graph, graph.features if x is None else x, model.steps_)
    kind = type(model).__name__
    if kind == "LinearRanker":
        coefficients = graph.constant(np.reshape(model.coef_, (-1, 1)))
        # No MatMul: onnxruntime would merge it with the scale of one feature, in float32.
        return graph.op("Gemm", graph.widened(x), coefficients), "float64"
    if kind == "NeuralRanker":
        columns = [add_network(graph, x, scorer) for scorer in model.scorers_]
        return columns[0] if len(columns) == 1 else graph.op("Mean", *columns), "float32"
    if kind == "BoostedRanker":
        return add_forest(graph, x, model.forest_), "float64"
    if kind == "BlendedRanker":
        parts = []
        for name, ranker in model.rankers_.items():
            column = graph.cast(_scorer(graph, ranker, x)[0], np.float64)
            if model.scaling_ == "query":
                column = by_own_spread(graph, column)
            factor = graph.constant(model.weights_[name] / model.scales_[name])
            parts.append(graph.op("Mul", column, factor))
        return graph.op("Sum", *parts), "float32"
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
    if getattr(model, "categories_", None):
        text += (
            " A column of categories takes their places, from 0, in the lists that the metadata "
            "have under categories, and NaN for others."
        )
    return text


def _notes(model: Any) -> dict[str, str]:
    notes = {
        "estimator": type(model).__name__,
        "objective": str(model.objective),
        "one_list_a_call": json.dumps(_scores_lists(model)),
    }
    names = getattr(model, "feature_names_in_", None)
    if categories := getattr(model, "categories_", None):
        notes["categories"] = json.dumps(categories, ensure_ascii=False)
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
        _compare(found, expected, tolerance * largest, "onnx and onnxruntime")


# -- the comparison -------------------------------------------------------------------------------


def _compare(found: AnyArray, expected: AnyArray, tolerance: float, readers: str) -> None:
    """Refuse scores that differ by more than the tolerance."""
    near = np.isclose(found, expected, rtol=0, atol=tolerance, equal_nan=True)
    if not near.all():
        row = int(np.argmin(near))
        raise ExportError(
            f"the exported model gives other scores than the ranker ({found[row]} instead of "
            f"{expected[row]}), so it was not written. Please report this, with the versions of "
            f"tierrank, {readers}."
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
        if forest.splits_categories:
            usual &= forest.category_counts == 0
        for feature in np.unique(forest.feature[usual]):
            here = rng.random(ROWS) < 0.7
            own = forest.threshold[usual & (forest.feature == feature)]
            rows[here, feature] = rng.choice(own, int(here.sum()))
    for step in reversed(steps):
        if isinstance(step, Standardize) and step.n_features_in_ == n_features:
            rows = rows * step.scale_ + step.mean_
    for feature, words in getattr(model, "categories_", {}).items():
        rows[:, feature] = rng.integers(-1, len(words) + 2, ROWS)
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
