"""Exports to ONNX: whatever onnxruntime makes of them is what the ranker predicts."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import tierrank as tr
from engines import make_rows
from tierrank.ranking import export
from tierrank.ranking.export import to_onnx
from tierrank.ranking.features import Impute, QueryScale, SecondOrder, Standardize
from tierrank.ranking.forest import NAN, NOTHING, ZERO, Forest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

DTYPES = ["float32", "float64"]
STEPS = {
    "none": None,
    "standardize": "standardize",
    "products": ["standardize", SecondOrder(threshold=0.02)],
    "products alone": SecondOrder(threshold=0.02, include_first=False),
    "no products": SecondOrder(threshold=1.0),
    "minmax": QueryScale("minmax"),
    "standard": QueryScale("standard"),
    "rank": QueryScale("rank"),
    "all": [QueryScale("rank"), SecondOrder(threshold=0.02), Standardize(), QueryScale("standard")],
}


def linear(**options):
    return tr.LinearRanker(l2=0.01, tol=1e-3, **options)


def neural(**options):
    options = {"hidden": (8, 4), "max_epochs": 2, "random_state": 0, **options}
    return tr.NeuralRanker(**options)


def boosted(library="lightgbm", **options):
    pytest.importorskip(library)
    options = {"trees": 30, "random_state": 0, "threads": 1, **options}
    if library == "lightgbm":
        options.setdefault("min_rows_per_leaf", 3)
    return tr.BoostedRanker(library=library, **options)


def fitted(ranker, missing=0.0):
    X, y, qid = make_rows(missing=missing)
    return ranker.fit(X, y, qid=qid)


def scores_of(ranker, X):
    """What a ranker gives to rows of one list, as they are in a call of the exported file."""
    return ranker.predict(X, group=[len(X)])


def run(path, X):
    (scores,) = onnxruntime.InferenceSession(path).run(["scores"], {"features": X})
    return scores


def check_export(ranker, folder, dtypes=DTYPES, missing=0.0):
    """The exported file gives what predict gives, to lists of any length."""
    for dtype in dtypes:
        path = to_onnx(ranker, folder / f"{dtype}.onnx", dtype=dtype)
        X = make_rows(1000, missing)[0].astype(dtype)
        double = dtype == "float64" and not isinstance(ranker, tr.NeuralRanker)
        tolerance = np.abs(scores_of(ranker, X)).max() * (1e-10 if double else 1e-5)
        for rows in (1, 2, 7, 1000):
            scores = run(path, X[:rows])
            assert scores.dtype == dtype
            np.testing.assert_allclose(scores, scores_of(ranker, X[:rows]), rtol=0, atol=tolerance)
        assert run(path, X[:0]).shape == (0,)


# -- every ranker, every step ---------------------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_a_linear_ranker_scores_alike_with_all_its_steps(steps, tmp_path):
    check_export(fitted(linear(features=STEPS[steps])), tmp_path)


@pytest.mark.parametrize("indicator", [False, True])
def test_what_is_missing_is_filled_in_as_the_ranker_does(indicator, tmp_path):
    steps = [QueryScale("rank"), Impute("high", indicator=indicator), Standardize()]
    check_export(fitted(linear(features=steps), missing=0.2), tmp_path, missing=0.2)


@pytest.mark.parametrize(
    ("activation", "normalisation"),
    [("relu", "layer"), ("gelu", "batch"), ("silu", None), ("elu", "layer"), ("tanh", "batch")],
)
def test_a_network_scores_alike(activation, normalisation, tmp_path):
    ranker = neural(activation=activation, normalisation=normalisation, dropout=0.2)
    check_export(fitted(ranker), tmp_path)


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4)])
def test_attention_takes_the_rows_of_a_call_for_one_list(layers, heads, tmp_path):
    ranker = fitted(neural(attention_layers=layers, attention_width=8, attention_heads=heads))
    check_export(ranker, tmp_path)
    X, _, qid = make_rows()
    X = X.astype(np.float32)
    together = ranker.predict(X, qid=qid)
    for query in range(5):
        scores = run(tmp_path / "float32.onnx", X[qid == query])
        np.testing.assert_allclose(scores, together[qid == query], rtol=0, atol=1e-5)


@pytest.mark.parametrize("steps", ["none", "all"])
def test_a_network_scores_alike_with_and_without_steps(steps, tmp_path):
    check_export(fitted(neural(features=STEPS[steps], hidden=())), tmp_path)


@pytest.mark.parametrize("steps", ["none", "standardize", "minmax", "standard", "rank"])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_trees_score_alike_with_missing_values(library, steps, tmp_path):
    ranker = fitted(boosted(library, features=STEPS[steps]), missing=0.15)
    check_export(ranker, tmp_path, missing=0.15)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_missing_values_that_the_training_rows_did_not_have_score_alike(library, tmp_path):
    check_export(fitted(boosted(library)), tmp_path, missing=0.3)


def test_trees_score_alike_on_products(tmp_path):
    check_export(fitted(boosted(features=STEPS["products"])), tmp_path)


def test_zeros_that_count_as_missing_score_alike(tmp_path):
    ranker = fitted(boosted(library_params={"zero_as_missing": True}), missing=0.1)
    assert (ranker.forest_.missing == ZERO).any()
    check_export(ranker, tmp_path, missing=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_feature_is_enough(dtype, tmp_path):
    X, y, qid = make_rows()
    for ranker in (linear(), neural(), boosted()):
        ranker.fit(X[:, :1], y, qid=qid)
        path = to_onnx(ranker, tmp_path / "ranker.onnx", dtype=dtype)
        x = X[:, :1].astype(dtype)
        np.testing.assert_allclose(run(path, x), scores_of(ranker, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["minmax", "standard", "rank"])
def test_numbers_near_the_ends_of_float64_are_scaled_alike(method, tmp_path):
    X, y, qid = make_rows()
    X = X * [1e300, 1e-300, 1e200, 1e-200, 1.0]
    ranker = linear(features=QueryScale(method)).fit(X, y, qid=qid)
    path = to_onnx(ranker, tmp_path / "ranker.onnx", dtype="float64")
    np.testing.assert_allclose(run(path, X), scores_of(ranker, X), rtol=1e-9, atol=1e-12)


def test_constant_columns_and_lists_of_equal_rows_are_scaled_alike(tmp_path):
    for method in ("minmax", "standard", "rank"):
        ranker = fitted(linear(features=QueryScale(method)))
        path = to_onnx(ranker, tmp_path / "ranker.onnx")
        X = np.tile(np.float32([[3.3, 0.1, 7.0, -1.0, 0.0]]), (9, 1))
        assert (run(path, X) == 0).all()
        X[4:, 0] = 5.0
        np.testing.assert_allclose(run(path, X), scores_of(ranker, X), rtol=1e-6)


# -- forests --------------------------------------------------------------------------------------


def random_tree(rng, depth, kinds):
    """A tree of random splits on 4 features, at thresholds with one decimal."""
    left, level = [0], [0]
    for node in range(2**depth - 1):
        if node < len(left) and level[node] < depth and rng.random() < 0.85:
            left[node] = len(left)
            left += [0, 0]
            level += [level[node] + 1] * 2
    nodes = len(left)
    inner = np.array(left) > 0
    return {
        "tree_offsets": np.array([0, nodes]),
        "feature": np.where(inner, rng.integers(0, 4, nodes), 0),
        "threshold": np.where(inner, rng.normal(size=nodes).round(1), 0.0),
        "left": np.array(left),
        "missing": rng.choice(kinds, nodes),
        "default_left": rng.random(nodes) < 0.5,
        "value": np.where(inner, 0.0, rng.normal(size=nodes)),
        "gain": np.zeros(nodes),
    }


def walk(forest, row):
    """The sum of the leaves that a row comes to, by the words of Forest's docstring."""
    total = 0.0
    for root in forest.tree_offsets[:-1]:
        node = int(root)
        while forest.left[node]:
            x = float(row[forest.feature[node]])
            kind = forest.missing[node]
            absent = {NOTHING: False, ZERO: np.isnan(x) or abs(x) < 1e-35, NAN: np.isnan(x)}[kind]
            left = (
                forest.default_left[node]
                if absent
                else (np.nan_to_num(x, nan=0.0) <= forest.threshold[node])
            )
            node = int(forest.left[node]) + (0 if left else 1)
        total += forest.value[node]
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("depth", [0, 1, 6])
@pytest.mark.parametrize("kinds", [[NOTHING], [ZERO], [NAN], [NOTHING, ZERO, NAN]])
def test_a_forest_sends_every_row_where_a_walk_by_hand_does(kinds, depth, dtype, tmp_path):
    rng = np.random.default_rng(depth)
    forest = Forest.concatenate(4, [random_tree(rng, depth, kinds) for _ in range(15)])
    X = rng.normal(size=(120, 4)).round(1)  # many of them on a threshold
    on = rng.random(X.shape) < 0.3
    X = np.where(on, np.nextafter(X, np.inf), X)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.05] = -1e-36
    X = X.astype(dtype)
    ranker = _with_forest(forest)
    path = to_onnx(ranker, tmp_path / "forest.onnx", dtype=dtype)
    expected = [walk(forest, row) for row in X]
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(run(path, X), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_tree_gives_zeros(dtype, tmp_path):
    path = to_onnx(_with_forest(Forest.empty(4)), tmp_path / "forest.onnx", dtype=dtype)
    assert run(path, np.ones((3, 4), dtype)).tolist() == [0.0, 0.0, 0.0]


def _with_forest(forest):
    """A ranker that is fitted, with other trees than its own."""
    X, y, qid = make_rows()
    ranker = boosted(trees=1).fit(X[:, : forest.n_features], y, qid=qid)
    ranker.forest_ = forest
    return ranker


# -- files ----------------------------------------------------------------------------------------


def rankers():
    return {
        "linear": linear(features=[QueryScale("rank"), SecondOrder(threshold=0.02)]),
        "scaled": linear(features=QueryScale("standard")),
        "neural": neural(attention_layers=1, attention_width=8, attention_heads=2),
        "boosted": boosted(),
    }


@pytest.mark.parametrize("name", ["linear", "scaled", "neural", "boosted"])
def test_the_operators_mean_the_same_to_the_reference_of_onnx(name, tmp_path):
    """onnx has a plain numpy evaluator, so no quirk of onnxruntime is needed."""
    from onnx.reference import ReferenceEvaluator

    ranker = fitted(rankers()[name])
    X = make_rows(60)[0]
    path = to_onnx(ranker, tmp_path / "ranker.onnx", dtype="float64")
    (scores,) = ReferenceEvaluator(str(path)).run(None, {"features": X})
    largest = np.abs(scores).max()
    tolerance = 1e-5 if name == "neural" else 1e-10
    np.testing.assert_allclose(scores, scores_of(ranker, X), rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("name", ["linear", "neural", "boosted"])
def test_a_model_that_was_saved_and_loaded_has_the_same_export(name, tmp_path):
    ranker = fitted(rankers()[name])
    first = to_onnx(ranker, tmp_path / "first.onnx")
    second = to_onnx(tr.load(tr.save(ranker, tmp_path / "model")), tmp_path / "second.onnx")
    assert first.read_bytes() == second.read_bytes()


def test_another_process_needs_only_onnxruntime(tmp_path):
    ranker = fitted(rankers()["boosted"])
    path = to_onnx(ranker, tmp_path / "ranker.onnx")
    X = make_rows(20)[0].astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    script = (
        "import sys, numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession(sys.argv[1])\n"
        "scores = session.run(None, {'features': numpy.load(sys.argv[2])})[0]\n"
        "assert 'tierrank' not in sys.modules and 'torch' not in sys.modules\n"
        "print(*scores.tolist())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path / "rows.npy"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [float(score) for score in ran.stdout.split()]
    np.testing.assert_allclose(found, scores_of(ranker, X), rtol=1e-5)


def test_the_file_says_what_it_is(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, qid = make_rows()
    table = pandas.DataFrame(X, columns=["bm25", "länge", "c", "d", "e"]).assign(query=qid)
    ranker = linear(features=QueryScale(), query_column="query").fit(table, y)
    model = onnx.load(to_onnx(ranker, tmp_path / "ranker.onnx"))
    assert (model.producer_name, model.producer_version) == ("tierrank", tr.__version__)
    notes = {each.key: each.value for each in model.metadata_props}
    assert json.loads(notes["feature_names"]) == ["bm25", "länge", "c", "d", "e"]
    assert notes["estimator"] == "LinearRanker"
    assert json.loads(notes["one_list_a_call"]) is True
    assert "All rows of a call are one list" in model.doc_string
    (features,), (scores,) = model.graph.input, model.graph.output
    dims = [each.dim_param or each.dim_value for each in features.type.tensor_type.shape.dim]
    assert (features.name, dims) == ("features", ["rows", 5])
    dims = [each.dim_param or each.dim_value for each in scores.type.tensor_type.shape.dim]
    assert (scores.name, dims) == ("scores", ["rows"])


def test_rows_that_do_not_depend_on_their_list_are_scored_by_themselves(tmp_path):
    model = onnx.load(to_onnx(fitted(linear()), tmp_path / "ranker.onnx"))
    notes = {each.key: each.value for each in model.metadata_props}
    assert json.loads(notes["one_list_a_call"]) is False
    assert "one list" not in model.doc_string


def test_folders_on_the_way_are_made_and_a_file_is_replaced(tmp_path):
    path = tmp_path / "new" / "ranker.onnx"
    assert to_onnx(fitted(linear()), str(path)) == path
    before = path.read_bytes()
    to_onnx(fitted(linear(features=None)), path)
    assert path.read_bytes() != before
    assert os.listdir(path.parent) == ["ranker.onnx"]  # noqa: PTH208 - hidden files too


# -- what is refused ------------------------------------------------------------------------------


def test_an_export_with_other_scores_is_never_written(tmp_path, monkeypatch):
    ranker = fitted(linear())
    old = to_onnx(ranker, tmp_path / "ranker.onnx").read_bytes()
    own = export.own_scores
    monkeypatch.setattr(export, "own_scores", lambda model, X: own(model, X) * 1.001)
    with pytest.raises(ValueError, match="gives other scores than the ranker"):
        to_onnx(ranker, tmp_path / "ranker.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["ranker.onnx"]
    assert (tmp_path / "ranker.onnx").read_bytes() == old


def test_trees_with_one_threshold_that_is_off_by_a_bit_are_noticed(tmp_path, monkeypatch):
    ranker = fitted(boosted(trees=3))
    arrays = ranker.forest_.arrays()
    threshold = arrays["threshold"].copy()
    threshold[0] = np.nextafter(threshold[0], -np.inf)
    other = Forest.from_arrays(5, {**arrays, "threshold": threshold})
    monkeypatch.setattr(export, "own_scores", lambda model, X: other.predict(X))
    with pytest.raises(ValueError, match="gives other scores"):
        to_onnx(ranker, tmp_path / "ranker.onnx", dtype="float64")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("make", [linear, neural, boosted])
def test_a_ranker_that_is_not_fitted_is_refused(make, tmp_path):
    with pytest.raises(NotFittedError):
        to_onnx(make(), tmp_path / "ranker.onnx")
    assert not any(tmp_path.iterdir())


def test_what_is_no_ranker_is_refused(tmp_path):
    with pytest.raises(ValueError, match="only rankers can be exported to ONNX, not a Standardize"):
        to_onnx(Standardize(), tmp_path / "ranker.onnx")


def test_a_ranker_of_another_kind_is_refused(tmp_path):
    class OwnRanker(tr.LinearRanker):
        pass

    ranker = fitted(linear())
    ranker.__class__ = OwnRanker
    with pytest.raises(ValueError, match="a OwnRanker cannot be exported"):
        to_onnx(ranker, tmp_path / "ranker.onnx")


def test_other_types_of_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match='dtype is "float32" or "float64", not \'float16\''):
        to_onnx(fitted(linear()), tmp_path / "ranker.onnx", dtype="float16")


def test_a_folder_is_no_place_for_the_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        to_onnx(fitted(linear()), tmp_path)


def test_features_beyond_float32_want_float64(tmp_path):
    X, y, qid = make_rows()
    X = X * 1e50
    ranker = linear().fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="feature 0 has values that are too large for float32"):
        to_onnx(ranker, tmp_path / "ranker.onnx")
    assert not any(tmp_path.iterdir())
    path = to_onnx(ranker, tmp_path / "ranker.onnx", dtype="float64")
    np.testing.assert_allclose(run(path, X), scores_of(ranker, X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("library", ["onnx", "onnxruntime"])
def test_a_missing_library_is_named_with_what_installs_it(library, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", lambda name: None if name == library else name)
    with pytest.raises(ValueError, match=rf'{library}, .*: pip install "tierrank\[export\]"'):
        to_onnx(fitted(linear()), tmp_path / "ranker.onnx")


def test_importing_the_module_loads_neither_library():
    script = (
        "import sys, tierrank.ranking.export\n"
        "print({'onnx', 'onnxruntime', 'sklearn'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
