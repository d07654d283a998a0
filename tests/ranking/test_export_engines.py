"""Exports that search engines and other libraries read: they score rows as the ranker does.

XGBoost, LightGBM and treelite read their files themselves; `engines` has what the others compute.
"""

import json
import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import tierrank as tr
from engines import READERS, by_lightgbm, by_ranklib, by_solr, hard_rows, make_rows, precision
from tierrank.names import EXPORTS
from tierrank.ranking import export_solr, export_trees
from tierrank.ranking.export import ExportError
from tierrank.ranking.features import Impute, QueryScale, SecondOrder, Standardize
from tierrank.ranking.forest import NAN, NOTHING, ZERO, Forest

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
treelite = pytest.importorskip("treelite")

TREE_FORMATS = [name for name in EXPORTS if name != "onnx"]
STEPS = {
    "none": None,
    "standardize": "standardize",
    "twice": ["standardize", Standardize(mean=False)],
    "impute": ["impute", "standardize"],
    "impute later": ["standardize", Impute(0.5)],
    "indicator": [Impute("low", indicator=True), Standardize()],
}


def boosted(library="lightgbm", missing=0.15, **options):
    options = {"trees": 20, "random_state": 0, "threads": 1, **options}
    if library == "lightgbm":
        options.setdefault("min_rows_per_leaf", 3)
    X, y, qid = make_rows(missing=missing)
    return tr.BoostedRanker(library=library, **options).fit(X, y, qid=qid)


def linear(**options):
    X, y, qid = make_rows(missing=options.pop("missing", 0.0))
    return tr.LinearRanker(l2=0.01, tol=1e-3, **options).fit(X, y, qid=qid)


def neural(**options):
    X, y, qid = make_rows(missing=options.pop("missing", 0.0))
    options = {"hidden": (8, 4), "max_epochs": 2, "random_state": 0, **options}
    return tr.NeuralRanker(**options).fit(X, y, qid=qid)


def with_forest(forest, steps=None):
    """A ranker that is fitted, with other trees than its own."""
    X = np.random.default_rng(0).normal(size=(60, forest.n_features))
    ranker = tr.BoostedRanker(trees=1, threads=1, random_state=0, features=steps)
    ranker.fit(X, X[:, 0] > 0, group=[20] * 3)
    ranker.forest_ = forest
    return ranker


def stump(threshold, *, feature=0, missing=NAN, default_left=False, n_features=2):
    """One split: 1 goes left, 2 goes right."""
    inner = np.array([True, False, False])
    arrays = {
        "tree_offsets": [0, 3],
        "feature": np.where(inner, feature, 0),
        "threshold": np.where(inner, threshold, 0.0),
        "left": [1, 0, 0],
        "missing": np.where(inner, missing, 0),
        "default_left": inner & default_left,
        "value": [0.0, 1.0, 2.0],
        "gain": np.zeros(3),
    }
    return Forest.concatenate(n_features, [{k: np.asarray(v) for k, v in arrays.items()}])


def exported(ranker, folder, to, **options):
    """The file, and rows to score with what the ranker gives them."""
    path = tr.export(
        ranker, folder / f"ranker{EXPORTS[to]}", to, missing_as_zero=to == "ranklib", **options
    )
    X = hard_rows(ranker, make_rows(10_000)[0].astype(precision(to)[0]))
    if to == "ranklib":
        X = np.nan_to_num(X)
    return path, X, ranker.predict(X)


# -- every format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_ten_thousand_rows_score_alike_in_every_format(library, steps, tmp_path):
    ranker = boosted(library, features=STEPS[steps])
    for to in TREE_FORMATS:
        path, X, expected = exported(ranker, tmp_path, to)
        largest = np.abs(expected).max() * precision(to)[1]
        np.testing.assert_allclose(READERS[to](path, X), expected, rtol=0, atol=largest)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("to", ["xgboost-json", "xgboost-ubj", "lightgbm"])
def test_treelite_scores_alike(to, library, tmp_path):
    ranker = boosted(library, features="standardize")
    path, X, expected = exported(ranker, tmp_path, to)
    if to == "lightgbm":
        model = treelite.frontend.load_lightgbm_model(path)
    elif to == "xgboost-json":
        model = treelite.frontend.load_xgboost_model(path, format_choice="json")
    else:
        model = treelite.frontend.load_xgboost_model(path, format_choice="ubjson")
    found = treelite.gtil.predict(model, X).ravel()
    largest = np.abs(expected).max() * precision(to)[1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=largest)


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_no_tree_and_trees_without_a_split_are_numbers(to, tmp_path):
    leaf = {k: np.zeros(1, kind) for k, kind in Forest.KINDS.items()}
    leaf |= {"tree_offsets": np.array([0, 1]), "value": np.array([0.5])}
    alone = Forest.concatenate(2, [leaf, stump(0.0).arrays(), leaf])
    X = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    for forest, scores in ((Forest.empty(2), [0.0] * 3), (alone, [2.0, 2.0, 3.0])):
        path = tr.export(
            with_forest(forest), tmp_path / f"m{EXPORTS[to]}", to, missing_as_zero=to == "ranklib"
        )
        assert READERS[to](path, X).tolist() == scores


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_a_split_on_a_standardised_feature_is_between_the_same_two_numbers(to, tmp_path):
    dtype = precision(to)[0]
    means, scales, thresholds = [0.0, 0.3, -1e5, 1e30, 1e-30], [1.0, 1 / 3, 1e6], [0.0, 0.1, -2.5]
    units = [(mean, scale) for mean in means for scale in scales]
    splits = [(feature, t) for feature in range(len(units)) for t in thresholds]
    trees = [stump(t, feature=feature, n_features=len(units)).arrays() for feature, t in splits]
    ranker = with_forest(Forest.concatenate(len(units), trees), "standardize")
    step = ranker.steps_.steps[0]
    step.mean_[:], step.scale_[:] = np.transpose(units)
    path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to, missing_as_zero=to == "ranklib")
    rows = []
    for feature, threshold in splits:  # one feature moves through 21 numbers around its threshold
        near = np.full(21, threshold * step.scale_[feature] + step.mean_[feature], dtype)
        for away in range(1, 11):
            near[10 + away] = np.nextafter(near[9 + away], np.array(np.inf, dtype))
            near[10 - away] = np.nextafter(near[11 - away], np.array(-np.inf, dtype))
        near = near[(np.abs(near) >= 1e-30) | (near == 0)]
        X = np.zeros((len(near), len(units)), dtype)
        X[:, feature] = near
        rows.append(X)
    X = np.concatenate(rows)
    expected = ranker.predict(X)
    assert len(np.unique(expected)) > 2
    assert READERS[to](path, X).tolist() == expected.tolist()


# -- missing values -------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [name for name in TREE_FORMATS if name != "ranklib"])
@pytest.mark.parametrize("default_left", [False, True])
@pytest.mark.parametrize(("missing", "threshold"), [(NAN, -1.0), (NOTHING, -1.0), (NOTHING, 1.0)])
def test_what_is_missing_goes_where_it_did(missing, threshold, default_left, to, tmp_path):
    forest = stump(threshold, missing=missing, default_left=default_left)
    ranker = with_forest(forest)
    path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)
    X = np.array([[np.nan, 0.0], [0.0, np.nan], [-3.0, np.nan]], np.float32)
    assert READERS[to](path, X).tolist() == ranker.predict(X).tolist()


def test_ranklib_takes_missing_for_zero_and_says_so_where_trees_do_not(tmp_path):
    X = np.array([[np.nan, 0.0], [-3.0, np.nan]])
    for default_left, threshold in ((True, 0.5), (False, -0.5)):
        ranker = with_forest(stump(threshold, default_left=default_left))
        path = tr.export(ranker, tmp_path / "m.xml")
        assert by_ranklib(path, X).tolist() == ranker.predict(X).tolist()
    ranker = with_forest(stump(0.5, feature=1))
    with pytest.raises(ExportError, match=r"1 splits, such as one on feature 1, .*missing_as_zero"):
        tr.export(ranker, tmp_path / "other.xml")
    assert not (tmp_path / "other.xml").exists()
    path = tr.export(ranker, tmp_path / "other.xml", missing_as_zero=True)
    assert by_ranklib(path, X).tolist() == ranker.predict(np.nan_to_num(X)).tolist()


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_zeros_that_are_missing_and_go_where_their_value_goes_are_carried(to, tmp_path):
    X = np.array([[-1.0, 0.0], [0.0, 0.0], [np.nan, 0.0], [1.0, 0.0]])
    for threshold, default_left in ((0.5, True), (0.0, True), (-0.5, False)):
        forest = stump(threshold, missing=ZERO, default_left=default_left)
        ranker = with_forest(forest)
        path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)
        assert READERS[to](path, X).tolist() == ranker.predict(X).tolist()


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_zeros_that_go_elsewhere_are_for_lightgbm_alone(to, tmp_path):
    ranker = with_forest(stump(0.5, missing=ZERO, default_left=False))
    if to == "lightgbm":
        path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)
        X = np.array([[-1.0, 0.0], [0.0, 0.0], [np.nan, 0.0], [1.0, 0.0]])
        assert by_lightgbm(path, X).tolist() == ranker.predict(X).tolist()
        ranker = with_forest(stump(0.5, missing=ZERO, default_left=False), "standardize")
    with pytest.raises(ExportError, match=rf"{to} cannot carry trees that take zeros for missing"):
        tr.export(ranker, tmp_path / f"other{EXPORTS[to]}", to)
    assert not (tmp_path / f"other{EXPORTS[to]}").exists()


def test_solr_fills_in_what_the_ranker_fills_in(tmp_path):
    for steps in (["impute", "standardize"], ["standardize", Impute(0.5)]):
        for ranker in (linear(features=steps, missing=0.2), neural(features=steps, missing=0.2)):
            path = tr.export(ranker, tmp_path / "ranker.json", "solr")
            entries = json.loads((tmp_path / "ranker.features.json").read_text())
            default = np.float32([entry["params"]["defaultValue"] for entry in entries])
            X = make_rows(1000, missing=0.15)[0].astype(np.float32)
            found = by_solr(path, np.where(np.isnan(X), default, X))
            expected = ranker.predict(X)
            if isinstance(ranker, tr.LinearRanker):  # up to a constant
                found, expected = found - found[0], expected - expected[0]
            largest = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * largest)


# -- categories -----------------------------------------------------------------------------------


def by_color(library, missing):
    """A ranker with two columns of categories, and codes and numbers of 3,000 rows."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [6, 40], size=(600, 2))
    y = np.digitize(rng.normal(size=6)[codes[:, 0]] + rng.normal(size=40)[codes[:, 1]], [-1, 0, 1])
    table = pandas.DataFrame(codes, columns=["color", "shop"]).astype("category")
    table["size"] = rng.normal(size=600)
    table = table.mask(rng.random(table.shape) < missing)
    options = {"min_rows_per_leaf": 3} if library == "lightgbm" else {}
    ranker = tr.BoostedRanker(library=library, trees=15, threads=1, random_state=0, **options)
    ranker.fit(table, y, group=[20] * 30)
    X = np.column_stack([rng.integers(0, [6, 40], size=(3000, 2)), rng.normal(size=3000)])
    X[rng.random(X.shape) < 0.1] = np.nan
    return ranker, X.astype(np.float32)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("to", ["xgboost-json", "xgboost-ubj", "lightgbm"])
def test_categories_are_split_alike(to, library, tmp_path):
    ranker, X = by_color(library, missing=0.1 if library == "lightgbm" else 0.0)
    assert ranker.forest_.splits_categories
    path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)
    expected = ranker.forest_.predict(X)
    atol = 1e-6 * np.abs(expected).max()
    if to == "lightgbm":
        found = by_lightgbm(path, X.astype(np.float64))
        model = treelite.frontend.load_lightgbm_model(path)
    else:
        booster = xgboost.Booster(model_file=path)
        assert booster.feature_types == ["c", "c", "float"]
        found = booster.inplace_predict(X, validate_features=False)
        form = "json" if to == "xgboost-json" else "ubjson"
        model = treelite.frontend.load_xgboost_model(path, format_choice=form)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    X = X.astype(precision(to)[0])
    np.testing.assert_allclose(treelite.gtil.predict(model, X).ravel(), expected, rtol=0, atol=atol)


def test_missing_categories_that_go_left_are_not_for_lightgbm(tmp_path):
    ranker, X = by_color("xgboost", missing=0.2)
    assert (ranker.forest_.default_left & (ranker.forest_.category_counts > 0)).any()
    path = tr.export(ranker, tmp_path / "m.ubj")
    found = xgboost.Booster(model_file=path).inplace_predict(X, validate_features=False)
    np.testing.assert_allclose(found, ranker.forest_.predict(X), rtol=0, atol=1e-5)
    with pytest.raises(ExportError, match="lightgbm sends a missing category right"):
        tr.export(ranker, tmp_path / "m.txt")
    assert not (tmp_path / "m.txt").exists()


# -- Solr -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {}, {"normalisation": "batch", "activation": "tanh", "dropout": 0.2}, {"hidden": ()},
    {"features": None, "normalisation": "batch"},
])  # fmt: skip
def test_networks_score_alike_in_solr(options, tmp_path):
    ranker = neural(**options)
    path = tr.export(ranker, tmp_path / "network.json", "solr")
    X = make_rows(1000)[0].astype(np.float32)
    expected = ranker.predict(X)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(by_solr(path, X), expected, rtol=0, atol=2e-5 * largest)
    numbers = np.concatenate(
        [np.ravel(x["matrix"]) for x in json.loads(path.read_text())["params"]["layers"]]
    )
    assert numbers.dtype == np.float64  # to Solr, a number without a point is no Double


@pytest.mark.parametrize("steps", [None, "standardize"])
def test_linear_rankers_score_alike_in_solr_up_to_a_constant(steps, tmp_path):
    X, y, qid = make_rows()
    X[:, 1] += 1e6  # its deviation of 10 has a few digits of float32 left
    ranker = tr.LinearRanker(l2=0.01, tol=1e-3, features=steps)
    if steps is None:
        X = X[:, [0, 3, 4]]
    ranker.fit(X.astype(np.float32), y, qid=qid)
    path = tr.export(ranker, tmp_path / "linear.json", "solr")
    X = X.astype(np.float32)
    difference = by_solr(path, X) - ranker.predict(X)
    assert np.ptp(difference) < 1e-5 * np.ptp(ranker.predict(X))


def test_the_slack_that_solr_adds_to_thresholds_changes_no_decision(tmp_path):
    rng = np.random.default_rng(0)
    for size in (1e-12, 1e-7, 1e-6, 1e-5, 0.06, 1.0, 1e4):
        cuts = (rng.uniform(-2, 2, 50) * size).astype(np.float32)
        cuts[:4] = 0.0, 1e-35, -1.0, 1.0
        forest = Forest.concatenate(1, [stump(cut, n_features=1).arrays() for cut in cuts])
        ranker = with_forest(forest)
        path = tr.export(ranker, tmp_path / "m.json", "solr")
        infinite = np.full(50, np.inf, np.float32)
        X = np.concatenate([cuts, np.nextafter(cuts, infinite), np.nextafter(cuts, -infinite)])
        X = np.where(np.abs(X) < 1e-30, 0, X)[:, None]
        assert by_solr(path, X).tolist() == ranker.predict(X).tolist()


def test_solr_gets_features_beside_the_model(tmp_path):
    names = ["bm25", "länge", "c", "d", "e"]
    tr.export(boosted(), tmp_path / "ranker.json", "solr", feature_names=names)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ranker.features.json", "ranker.json",
    ]  # fmt: skip
    model = json.loads((tmp_path / "ranker.json").read_text())
    assert model["name"] == "ranker"
    assert [feature["name"] for feature in model["features"]] == names
    features = json.loads((tmp_path / "ranker.features.json").read_text())
    assert [feature["name"] for feature in features] == names
    assert features[1]["params"] == {"field": "länge", "defaultValue": "NaN"}


# -- names ----------------------------------------------------------------------------------------


def test_names_are_those_of_the_columns_or_given(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, qid = make_rows(missing=0.15)
    table = pandas.DataFrame(X, columns=list("abcde"))
    ranker = tr.BoostedRanker(trees=3, threads=1, random_state=0).fit(table, y, qid=qid)
    path = tr.export(ranker, tmp_path / "ranker.ubj")
    assert xgboost.Booster(model_file=path).feature_names == list("abcde")
    path = tr.export(ranker, tmp_path / "ranker.txt")
    assert lightgbm.Booster(model_file=path).feature_name() == list("abcde")
    path = tr.export(ranker, tmp_path / "d", "xgboost-dump", feature_names=list("vwxyz"))
    assert json.loads(path.read_text())[0]["split"] in "vwxyz"
    path = tr.export(boosted(), tmp_path / "ranker.ubj")
    assert xgboost.Booster(model_file=path).feature_names is None  # plain arrays go in


@pytest.mark.parametrize(("names", "to", "message"), [
    (["a"], "solr", "1 names for 5 features: give them by feature_names, one for each"),
    (list("abcda"), "solr", "two features are called 'a'"),
    (["a b", *"cdef"], "lightgbm", "lightgbm refuses the name 'a b', which has ' '"),
    (["a[0]", *"cdef"], "xgboost-json", r"refuses the name 'a\[0\]', which has '\['"),
    (["", *"cdef"], "xgboost-dump", "refuses the name '', which is empty"),
    ("abcde", "solr", "1 names for 5 features"),
])  # fmt: skip
def test_names_that_a_format_refuses_are_said(names, to, message, tmp_path):
    with pytest.raises(ExportError, match=message):
        tr.export(boosted(), tmp_path / "ranker", to, feature_names=names)
    assert not any(tmp_path.iterdir())


# -- a broken file --------------------------------------------------------------------------------


def a_bit_up(forest):
    threshold = forest.threshold.copy()
    root = int(forest.tree_offsets[2])
    threshold[root] = np.nextafter(np.float32(threshold[root]), np.float32(np.inf))
    return {"threshold": threshold}


BREAK = {
    "a threshold": a_bit_up,
    "a leaf": lambda forest: {"value": forest.value + 1e-3 * forest.is_leaf},
    "missing": lambda forest: {"default_left": ~forest.default_left},
    "children": lambda forest: {"value": np.where(forest.is_leaf, forest.value[::-1], 0.0)},
}


@pytest.mark.parametrize("what", BREAK)
@pytest.mark.parametrize("to", TREE_FORMATS)
def test_a_broken_file_never_appears(to, what, tmp_path, monkeypatch):
    if to == "ranklib" and what == "missing":
        pytest.skip("RankLib has no side for what is missing")
    module, name = {
        "lightgbm": (export_trees, "to_lightgbm"),
        "ranklib": (export_trees, "to_ranklib"),
        "solr": (export_solr, "trees"),
    }.get(to, (export_trees, "to_xgboost"))
    write = getattr(module, name)

    def broken(forest, names, **more):
        changed = {**forest.arrays(), **BREAK[what](forest)}
        return write(Forest.from_arrays(forest.n_features, changed), names, **more)

    monkeypatch.setattr(module, name, broken)
    with pytest.raises(ExportError, match="gives other scores than the ranker"):
        tr.export(boosted(), tmp_path / f"m{EXPORTS[to]}", to, missing_as_zero=to == "ranklib")
    assert not any(tmp_path.iterdir())


def test_a_fold_that_moves_a_threshold_is_noticed(tmp_path, monkeypatch):
    found = export_trees.largest_left
    monkeypatch.setattr(
        export_trees, "largest_left",
        lambda *given: np.nextafter(found(*given).astype(np.float32), np.float32(np.inf)),
    )  # fmt: skip
    with pytest.raises(ExportError, match="gives other scores"):
        tr.export(boosted(features="standardize"), tmp_path / "m.ubj")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("make", [linear, neural])
def test_broken_weights_never_appear(make, tmp_path, monkeypatch):
    ranker = make()
    scaling = export_solr.scaling

    def broken(model):
        norms, mean, deviation, default = scaling(model)
        norms[0]["norm"]["params"]["std"] = "1.001"
        return norms, mean, deviation, default

    monkeypatch.setattr(export_solr, "scaling", broken)
    with pytest.raises(ExportError, match="gives other scores"):
        tr.export(ranker, tmp_path / "m.json", "solr")
    assert not any(tmp_path.iterdir())


def test_a_file_is_replaced_at_once_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "new" / "ranker.txt"
    tr.export(boosted(), path)
    before = path.read_bytes()
    tr.export(boosted("xgboost"), str(path))
    assert path.read_bytes() != before
    assert os.listdir(path.parent) == ["ranker.txt"]  # noqa: PTH208 - hidden files too


def test_a_model_that_was_saved_and_loaded_has_the_same_export(tmp_path):
    ranker = boosted(features="standardize")
    again = tr.load(tr.save(ranker, tmp_path / "model"))
    for to in TREE_FORMATS:
        options = {"missing_as_zero": to == "ranklib"}
        first, second = (
            tr.export(r, tmp_path / f"m{EXPORTS[to]}", to, **options).read_bytes()
            for r in (ranker, again)
        )
        assert first == second


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("to", TREE_FORMATS)
@pytest.mark.parametrize("step", [QueryScale(), SecondOrder(threshold=0.02)])
def test_steps_that_a_format_cannot_carry_are_refused_by_name(step, to, tmp_path):
    name = type(step).__name__
    rankers = [boosted(features=["standardize", step], missing=0.0)]
    if to == "solr":
        rankers += [linear(features=step), neural(features=step)]
    for ranker in rankers:
        with pytest.raises(ExportError, match=rf'{to} cannot carry the step {name}, .*to="onnx"'):
            tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("options", "message"), [
    ({"attention_layers": 1, "attention_width": 8, "attention_heads": 2}, "attention over a list"),
    ({"normalisation": "layer"}, 'normalisation="layer"'),
    ({"activation": "gelu"}, "the activation GELU"),
    ({"features": [Impute(indicator=True), Standardize()], "missing": 0.2}, "indicator=True"),
])  # fmt: skip
def test_networks_that_solr_cannot_carry_are_refused(options, message, tmp_path):
    with pytest.raises(ExportError, match=f"solr cannot carry .*{message}"):
        tr.export(neural(**options), tmp_path / "m.json", "solr")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("to", [name for name in TREE_FORMATS if name != "solr"])
def test_formats_of_trees_refuse_other_rankers(to, tmp_path):
    for ranker in (linear(), neural()):
        with pytest.raises(
            ExportError, match=rf'{to} is a format of trees.*to="onnx" or to="solr"'
        ):
            tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to)


def test_wrong_calls_are_refused(tmp_path):
    ranker = boosted()
    for path, options, message in (
        ("m.bin", {}, r"ending says no format. Call the file something.onnx \(onnx\).*or say to"),
        ("m.json", {}, 'several formats end in .json; say which, by to="xgboost-json", to='),
        ("m.ubj", {"to": "xgbost-ubj"}, "to is one of onnx.*Did you mean 'xgboost-ubj'?"),
        ("m.ubj", {"dtype": "float64"}, 'dtype is for to="onnx" only'),
        ("m.ubj", {"missing_as_zero": True}, "missing_as_zero is for"),
        ("m.onnx", {"feature_names": list("abcde")}, "feature_names is for other formats"),
        ("", {}, "is a folder; give the name of a file"),
        ("", {"to": "solr"}, "is a folder; give the name of a file"),
    ):
        with pytest.raises(ValueError, match=message):
            tr.export(ranker, tmp_path / path, **options)
    with pytest.raises(NotFittedError):
        tr.export(tr.BoostedRanker(), tmp_path / "m.ubj")
    with pytest.raises(ValueError, match="only rankers can be exported to solr, not a RankAggreg"):
        tr.export(tr.RankAggregator(), tmp_path / "m", "solr")
    with pytest.raises(ValueError, match="only rankers can be exported to other formats, not a Ex"):
        tr.export(tr.ExtremeRanker(), tmp_path / "m.ubj")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("library", "to"), [("xgboost", "xgboost-ubj"), ("lightgbm", "lightgbm")])
def test_a_missing_library_is_named_with_what_installs_it(library, to, tmp_path, monkeypatch):
    from tierrank.ranking import export

    monkeypatch.setattr(export, "find_spec", lambda name: None if name == library else name)
    with pytest.raises(ValueError, match=rf'{library}, .*: pip install "tierrank\[boost\]"'):
        tr.export(boosted(), tmp_path / f"m{EXPORTS[to]}", to)


def test_a_ranker_of_another_kind_is_refused(tmp_path):
    class OwnRanker(tr.BoostedRanker):
        pass

    ranker = boosted()
    ranker.__class__ = OwnRanker
    with pytest.raises(ValueError, match="a OwnRanker cannot be exported to xgboost-ubj"):
        tr.export(ranker, tmp_path / "m.ubj")


@pytest.mark.parametrize("to", TREE_FORMATS)
def test_a_tree_of_any_depth_is_carried_or_refused(to, tmp_path):
    depth = 1500
    left = np.zeros(2 * depth + 1, int)
    left[0], left[2:-1:2] = 1, np.arange(3, 2 * depth, 2)
    inner = left > 0
    chain = {k: np.zeros(len(left), kind) for k, kind in Forest.KINDS.items()}
    chain |= {"tree_offsets": np.array([0, len(left)]), "left": left}
    chain |= {"threshold": np.where(inner, np.arange(len(left)), 0), "missing": inner * NAN}
    chain["value"] = np.where(inner, 0.0, np.arange(len(left)))
    ranker = with_forest(Forest.concatenate(1, [chain]))
    try:
        path = tr.export(ranker, tmp_path / f"m{EXPORTS[to]}", to, missing_as_zero=to == "ranklib")
    except ExportError as error:
        assert "too deep" in str(error)  # noqa: PT017 - newer Pythons may not mind
        assert not any(tmp_path.iterdir())
        return
    assert to in ("xgboost-json", "xgboost-ubj", "lightgbm", "ranklib")
    if to != "ranklib":  # whose reader in the tests is recursive
        X = np.arange(0, 3000, 7, dtype=np.float32)[:, None]
        assert READERS[to](path, X).tolist() == ranker.predict(X).tolist()


def test_numbers_that_float32_cannot_hold_are_said(tmp_path):
    X, y, qid = make_rows()
    trees = tr.BoostedRanker(trees=3, threads=1, row_fraction=1.0, feature_fraction=1.0).fit(
        X * 1e50, y, qid=qid
    )
    with pytest.raises(
        ValueError, match=r"compares float32 numbers, and a split of feature 0.*e\+"
    ):
        tr.export(trees, tmp_path / "m.ubj")
    path = tr.export(trees, tmp_path / "m.txt")
    assert by_lightgbm(path, X * 1e50).tolist() == trees.predict(X * 1e50).tolist()
    path.unlink()
    ranker = tr.LinearRanker(l2=0.01, tol=1e-3).fit(X * 1e50, y, qid=qid)
    with pytest.raises(ValueError, match=r"float32.*feature 0|feature 0.*float32"):
        tr.export(ranker, tmp_path / "m.json", "solr")
    assert not any(tmp_path.iterdir())
