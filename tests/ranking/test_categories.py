"""Categories: splits that say what the libraries say, words that keep their meaning."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import tierrank as tr
from tierrank.data import RankingData, read, read_folds, write_table
from tierrank.ranking.forest import Forest, lightgbm_forest, xgboost_forest

COLUMNS = [1, 3]
KINDS = ["c" if column in COLUMNS else "q" for column in range(5)]


def coded_rows(categories, missing, seed=0, n=1500):
    """Numbers, and two columns of codes; missing everywhere if asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, categories, n)
    X[:, 3] = rng.integers(0, 3, n) ** 2
    effect = rng.normal(size=categories)
    y = effect[X[:, 1].astype(int)] + X[:, 0] * (X[:, 3] == 1) + 0.1 * rng.normal(size=n)
    if missing:
        absent = rng.random(X.shape) < 0.15
        y += absent[:, 1]
        X[absent] = np.nan
    return X, y


def other_rows(X, seed=1):
    """The same, and codes that nobody saw, negative, huge and missing ones."""
    rng = np.random.default_rng(seed)
    other = X.copy()
    for code in (np.nan, 5, 2, -1, -7, 5000, 2.0**25, 2.0**40):
        other[rng.random(X.shape) < 0.05] = code
    return np.concatenate([X, other])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [1, 2, 4, 40, 1000])
@pytest.mark.parametrize("onehot", [1, 4, 2000])
def test_a_forest_splits_categories_as_lightgbm_does(categories, missing, onehot):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X, y = coded_rows(categories, missing)
    params = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}
    params |= {"min_data_in_leaf": 3, "max_cat_to_onehot": onehot, "max_cat_threshold": 500}
    rows = lightgbm.Dataset(X, y, categorical_feature=COLUMNS)
    booster = lightgbm.train(params, rows, num_boost_round=8)
    forest = lightgbm_forest(booster.model_to_string(), 5)
    assert forest.splits_categories
    assert set(forest.feature[forest.category_counts > 0]) <= set(COLUMNS)
    every = other_rows(X)
    for some in (every, every.astype(np.float32), np.asfortranarray(every)):
        np.testing.assert_array_equal(forest.predict(some), booster.predict(some))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [1, 2, 4, 40, 1000])
@pytest.mark.parametrize("onehot", [1, 4, 2000])
def test_a_forest_splits_categories_as_xgboost_does(categories, missing, onehot):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y = coded_rows(categories, missing)
    how = {"feature_types": KINDS, "enable_categorical": True}
    params = {"base_score": 0.0, "nthread": 1, "max_cat_to_onehot": onehot, "tree_method": "hist"}
    booster = xgboost.train(params, xgboost.QuantileDMatrix(X, y, **how), num_boost_round=8)
    forest = xgboost_forest(json.loads(bytes(booster.save_raw("json"))), 5, zero_is_missing=False)
    assert forest.splits_categories
    every = other_rows(X)
    said = booster.predict(xgboost.DMatrix(every, **how), output_margin=True)
    np.testing.assert_allclose(forest.predict(every), said, rtol=1e-5, atol=1e-5)
    leaves = booster.predict(xgboost.DMatrix(every, **how), iteration_range=(0, 1))
    np.testing.assert_array_equal(forest.first(1).predict(every).astype(np.float32), leaves)


def by_hand(**changes):
    """Codes 1 and 4 of feature 0 go left; then feature 1 is split, by codes at the right."""
    arrays = {
        "tree_offsets": [0, 5, 8],
        "feature": [0, 0, 1, 0, 0, 1, 0, 0],
        "threshold": np.zeros(8),
        "left": [1, 0, 3, 0, 0, 6, 0, 0],
        "missing": [2, 0, 2, 0, 0, 0, 0, 0],
        "default_left": [False, False, True, False, False, False, False, False],
        "value": [0, 1, 0, 10, 100, 0, 1000, 2000],
        "gain": np.zeros(8),
        "category_counts": [2, 0, 1, 0, 0, 0, 0, 0],
        "categories": [1, 4, 0],
    } | changes  # fmt: skip
    kinds = Forest.KINDS | Forest.OF_CATEGORIES
    return {name: np.array(values, kinds[name]) for name, values in arrays.items()}


def test_codes_go_left_if_they_are_named_and_nan_where_it_is_sent():
    forest = Forest.from_arrays(2, by_hand())
    X = np.array([[1, 0], [4, 7], [0, 0], [2, 1], [np.nan, np.nan], [-1, -1], [9e99, 0], [1.5, 0]])
    expected = [1, 1, 10, 100, 10, 100, 10, 1]
    second = np.where(np.nan_to_num(X[:, 1]) <= 0, 1000, 2000)
    np.testing.assert_array_equal(forest.predict(X), expected + second)
    np.testing.assert_array_equal(forest.predict(csr_array(X)), forest.predict(X))


def test_parts_of_a_forest_with_categories_add_up_to_it():
    X = coded_rows(6, True)[0][:, [1, 3]]
    forest = Forest.from_arrays(2, by_hand())
    plain = {name: array for name, array in by_hand().items() if name in Forest.KINDS}
    plain["missing"][:] = 0
    without = Forest.from_arrays(2, plain)
    assert forest.first(1).categories.tolist() == [1, 4, 0]
    assert not forest.between(1, 2).splits_categories
    joined = without.followed_by(forest).followed_by(forest.between(1, 2)).followed_by(forest)
    assert joined.categories.tolist() == [1, 4, 0, 1, 4, 0]
    expected = without.predict(X) + 2 * forest.predict(X) + forest.between(1, 2).predict(X)
    np.testing.assert_array_equal(joined.predict(X), expected)
    middle = joined.between(2, 5)
    np.testing.assert_array_equal(
        middle.predict(X), forest.predict(X) + forest.between(1, 2).predict(X)
    )
    assert set(without.arrays()) == set(Forest.KINDS)  # as it was saved before there were any
    again = Forest.from_arrays(2, joined.arrays())
    np.testing.assert_array_equal(again.predict(X), joined.predict(X))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"categories": [1, 4, -1]}, "below 0"),
        ({"categories": [4, 1, 0]}, "do not rise"),
        ({"categories": [1, 1, 0]}, "do not rise"),
        ({"categories": [1, 4]}, "do not go with"),
        ({"category_counts": [2, 0, 1]}, "do not go with"),
        ({"category_counts": [4, 0, -1, 0, 0, 0, 0, 0]}, "do not go with"),
        ({"category_counts": [2, 1, 0, 0, 0, 0, 0, 0]}, "at a leaf"),
        ({"missing": [1, 0, 2, 0, 0, 0, 0, 0]}, "where 0 is missing"),
        ({"missing": [0, 0, 2, 0, 0, 0, 0, 0]}, "where 0 is missing"),
    ],
)
def test_categories_that_do_not_hold_together_are_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        Forest.from_arrays(2, by_hand(**changes))
    arrays = by_hand()
    arrays["categories"] = arrays["categories"].astype(np.int64)
    with pytest.raises(ValueError, match="holds int64, not int32"):
        Forest.from_arrays(2, arrays)


# The ranker -----------------------------------------------------------------------------------

COLORS = np.array(["teal", "red", "07", "blue", "ochre", "7"])


def frame(n=800, seed=0, missing=0.0):
    """Rows whose grade goes by colour, size and a shop that nobody can order."""
    rng = np.random.default_rng(seed)
    color, shop = rng.integers(0, 6, n), rng.integers(0, 30, n)
    effects = np.random.default_rng(99)
    size = rng.normal(size=n)
    total = effects.normal(size=6)[color] + effects.normal(size=30)[shop] + 0.3 * size
    table = pd.DataFrame({
        "size": size,
        "color": pd.Categorical(COLORS[color], categories=COLORS),
        "shop": pd.Categorical(shop * 10),
    })  # fmt: skip
    for name in table.columns:
        table.loc[rng.random(n) < missing, name] = None
    return table, np.digitize(total, [-1, 0, 1]), np.repeat(np.arange(n // 10), 10)


def ranker(library, **settings):
    pytest.importorskip(library, reason=f"{library} is not installed")
    settings = {"min_rows_per_leaf": 5} | settings if library == "lightgbm" else settings
    return tr.BoostedRanker(library=library, trees=15, random_state=0, threads=1, **settings)


LIBRARIES = pytest.mark.parametrize("library", ["lightgbm", "xgboost"])


@LIBRARIES
def test_a_category_is_the_same_however_it_comes(library):
    table, y, qid = frame(missing=0.1)
    fitted = ranker(library).fit(table, y, qid=qid)
    assert fitted.categories_[1] == tuple(sorted(COLORS))
    assert fitted.categories_[2][:3] == ("0", "10", "100")
    assert fitted.forest_.splits_categories
    scores = fitted.predict(table)
    permuted = table.assign(
        color=table.color.cat.reorder_categories(sorted(COLORS)),
        shop=table.shop.cat.add_categories([7]).cat.set_categories([7, *range(290, -1, -10)]),
    )
    plain = table.astype({"color": object, "shop": float})
    for other in (permuted, plain, pl.from_pandas(table), pl.from_pandas(plain),
                  pl.from_pandas(table).cast({"color": pl.Enum(COLORS)}),
                  pa.Table.from_pandas(table)):  # fmt: skip
        np.testing.assert_array_equal(fitted.predict(other), scores)
    again = ranker(library, categories=["color", 2])
    named = again.fit(pl.from_pandas(plain), y, qid=qid)  # text and floats, called categories
    np.testing.assert_array_equal(named.predict(table), scores)
    array = plain.to_numpy(dtype=object)
    by_number = ranker(library, categories=[1, 2]).fit(array, y, qid=qid)
    np.testing.assert_array_equal(by_number.predict(array), scores)
    assert not hasattr(by_number, "feature_names_in_")


@LIBRARIES
def test_an_order_of_categories_makes_no_other_trees(library):
    table, y, qid = frame()
    one = ranker(library).fit(table, y, qid=qid)
    table["color"] = table.color.cat.reorder_categories(COLORS[::-1])
    other = ranker(library).fit(table, y, qid=qid)
    for name, array in one.forest_.arrays().items():
        np.testing.assert_array_equal(array, other.forest_.arrays()[name])


@LIBRARIES
def test_an_unknown_category_counts_as_missing(library):
    table, y, qid = frame(missing=0.1)
    fitted = ranker(library).fit(table, y, qid=qid)
    unknown, missing = table.copy(), table.copy()
    unknown["color"], missing["color"] = "pink", None
    unknown["shop"], missing["shop"] = 12345, np.nan
    np.testing.assert_array_equal(fitted.predict(unknown), fitted.predict(missing))
    unused = table.assign(color=pd.Categorical(["pink"] * len(table), ["pink", *COLORS]))
    np.testing.assert_array_equal(fitted.predict(unused), fitted.predict(table.assign(color=None)))


@LIBRARIES
def test_a_refit_learns_the_categories_of_the_validation_rows_too(library, tmp_path):
    table, y, qid = frame()
    valid, valid_y, valid_qid = frame(400, seed=1)
    later = (valid.color == "red").to_numpy()
    valid["color"] = valid.color.cat.add_categories(["amber"]).where(~later, "amber")
    one_shop = pd.Categorical(np.where(valid_y > 1, 40, 110))  # known ones that tell the grade
    given = valid.assign(shop=one_shop), valid_y, valid_qid
    first = ranker(library).fit(table, y, qid=qid, eval_set=given)
    assert "amber" not in first.categories_[1]
    refitted = ranker(library, refit=True).fit(table, y, qid=qid, eval_set=given)
    assert refitted.categories_[1] == tuple(sorted([*COLORS, "amber"]))
    assert refitted.history_ == tr.load(tr.save(refitted, tmp_path)).history_
    whole = pd.concat([table.astype({"color": str, "shop": str}),
                       given[0].astype({"color": str, "shop": str})])  # fmt: skip
    settings = {"min_rows_per_leaf": 5} if library == "lightgbm" else {}
    by_hand = tr.BoostedRanker(
        library=library, trees=refitted.history_.refit, random_state=0, threads=1,
        categories=["color", "shop"], **settings,
    ).fit(whole, np.append(y, valid_y), qid=np.append(qid, valid_qid + 1000))  # fmt: skip
    np.testing.assert_allclose(refitted.predict(given[0]), by_hand.predict(given[0]), rtol=1e-6)
    shown = refitted.predict(given[0].assign(color=None))
    assert (refitted.predict(given[0])[later] != shown[later]).any()


@LIBRARIES
def test_trees_that_split_categories_stop_as_the_library_scores(library):
    """The metric is measured on the library's scores, and kept trees on ours: they are the same."""
    table, y, qid = frame(missing=0.1)
    valid, valid_y, valid_qid = frame(seed=1, missing=0.2)
    valid["color"] = valid.color.cat.add_categories("pink").where(valid.index % 7 > 0, "pink")
    fitted = ranker(library, patience=None).fit(
        table, y, qid=qid, eval_set=(valid, valid_y, valid_qid)
    )
    measured = fitted.score(valid, valid_y, qid=valid_qid)
    assert measured == pytest.approx(fitted.history_.best_metric, abs=1e-9)


@LIBRARIES
def test_categories_are_saved_resumed_and_gone_on_from(library, tmp_path):
    table, y, qid = frame(missing=0.1)
    fitted = ranker(library).fit(table, y, qid=qid, checkpoint=tmp_path / "checkpoint")
    again = ranker(library).fit(table, y, qid=qid, checkpoint=tmp_path / "checkpoint")
    scores = fitted.predict(table)
    np.testing.assert_array_equal(again.predict(table), scores)
    tr.save(fitted, tmp_path / "model")
    loaded = tr.load(tmp_path / "model")
    assert loaded.categories_ == fitted.categories_
    shuffled = table.assign(color=table.color.cat.reorder_categories(sorted(COLORS)))
    np.testing.assert_array_equal(loaded.predict(shuffled), scores)
    newer, newer_y, newer_qid = frame(seed=2)
    newer["color"] = newer.color.cat.add_categories("pink").where(newer.index % 9 > 0, "pink")
    more = ranker(library).fit(newer, newer_y, qid=newer_qid, init_model=tmp_path / "model")
    assert more.categories_ == fitted.categories_
    assert len(more.forest_) == 30
    np.testing.assert_array_equal(more.forest_.first(15).predict(
        np.column_stack([table["size"], *([np.nan] * len(table),) * 2])
    ), fitted.predict(table.assign(color=None, shop=None)))  # fmt: skip
    for columns in ([0, 1, 2], ["size"]):
        with pytest.raises(ValueError, match="'size' holds categories, but to init_model it held"):
            ranker(library, categories=columns).fit(table, y, qid=qid, init_model=fitted)


def test_a_saved_model_whose_categories_are_wrong_is_refused(tmp_path):
    table, y, qid = frame()
    fitted = ranker("lightgbm").fit(table, y, qid=qid)
    info, arrays = fitted.to_state()
    words = info["learned"]["categories"]
    for wrong, complaint in (
        ([], "no lists of text"),
        ({"1": "red"}, "no lists of text"),
        ({"1": [7]}, "no lists of text"),
        (words | {"9": ["red"]}, "of column 9 are none"),
        (words | {"1": ["red"] * 6}, "twice the same"),
        (words | {"1": ["red"]}, "column 1 that have no name"),
        ({}, "that have no name"),
    ):
        bad = info | {"learned": info["learned"] | {"categories": wrong}}
        with pytest.raises(ValueError, match=complaint):
            tr.BoostedRanker.from_state(bad, arrays)


@LIBRARIES
@pytest.mark.parametrize("values", [["a"] * 800, [None] * 800, [True, False] * 400,
                                    ["", " "] * 400, list(range(800)), [1e300, 0.5] * 400,
                                    ["Ω", "\n"] * 400], ids=range(7))  # fmt: skip
def test_odd_columns_are_columns_too(library, values):
    table, y, qid = frame()
    table["odd"] = pd.Series(values, dtype=object)
    fitted = ranker(library, categories=["odd"]).fit(
        table[["size", "odd"]], y, qid=qid, eval_set=(table[["size", "odd"]][:50], y[:50], qid[:50])
    )
    scores = fitted.predict(table[["size", "odd"]])
    assert np.isfinite(scores).all()
    assert len(fitted.categories_[1]) == len({value for value in values if value is not None})
    np.testing.assert_array_equal(fitted.predict(pl.from_pandas(
        table[["size"]].assign(odd=[None if value is None else str(value) for value in values])
    )) if values[0] != 1e300 else scores, scores)  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "change", "complaint"),
    [
        ({}, lambda t: t.astype({"color": object}), "'color' holds no numbers: name it in cat"),
        ({"categories": None}, lambda t: t, "'color' holds no numbers: name it in categories"),
        ({"categories": "color"}, lambda t: t, r"write \['color'\] for a column"),
        ({"categories": ["colour"]}, lambda t: t, "no such column: it has size, color, shop"),
        ({"categories": [3]}, lambda t: t, r"categories has 3, but X has the shape \[800, 3\]"),
        ({"categories": [-1]}, lambda t: t, "categories has -1"),
        ({"categories": [True]}, lambda t: t, "give names or numbers of columns"),
        ({"categories": ["x"]}, lambda t: t.to_numpy(), "its columns have no names"),
        ({"features": ["standardize"]}, lambda t: t, "which Standardize would take for amounts"),
        ({"categories": [0]}, lambda t: csr_array(np.ones((800, 2))), "X is sparse, where 0 is no"),
        ({"categories": ["size"]}, lambda t: t.assign(size=[{1}] * 800), "column 'size'"),
        ({"categories": ["size"]}, lambda t: t.assign(size=[1j] * 800), "has a complex: categ"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings, change, complaint):
    table, y, qid = frame()
    with pytest.raises(ValueError, match=complaint):
        ranker("lightgbm", **settings).fit(change(table), y, qid=qid)


def test_codes_in_place_of_categories_are_refused():
    table, y, qid = frame()
    table["color"] = table.color.cat.rename_categories({"07": "a", "7": "b"})
    fitted = ranker("lightgbm").fit(table, y, qid=qid)
    codes = table.assign(color=table.color.cat.codes)
    with pytest.raises(ValueError, match=r"has numbers such as .*such as 'a': give the"):
        fitted.predict(codes)
    with pytest.raises(ValueError, match="in the same order"):
        fitted.predict(table[["color", "size", "shop"]])
    with pytest.raises(ValueError, match="now missing"):
        fitted.predict(table[["size"]])
    with pytest.raises(ValueError, match="X is sparse"):
        fitted.predict(csr_array(np.ones((3, 3))))


def test_rows_on_the_disk_are_refused(tmp_path):
    _, y, qid = frame()
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=(800, 2))
    with pytest.raises(ValueError, match="column 1 holds categories, but X is mapped from a file"):
        ranker("lightgbm", categories=[1]).fit(rows, y, qid=qid)


@pytest.mark.parametrize("kind", [tr.LinearRanker, tr.NeuralRanker])
def test_rankers_that_take_numbers_say_what_to_do_with_text(kind):
    table, y, qid = frame()
    for rows in (table, pl.from_pandas(table), table.astype({"color": "str"})):
        with pytest.raises(ValueError, match="'color' holds no numbers: turn it into some"):
            kind().fit(rows, y, qid=qid)
    data = RankingData.from_frame(table.assign(label=y, qid=qid), categories="auto")
    with pytest.raises(ValueError, match="'color' holds categories, no numbers: turn it into"):
        kind().fit(data, data.y)


def test_the_queries_may_be_a_column_beside_categories():
    table, y, qid = frame()
    apart = ranker("lightgbm").fit(table, y, qid=qid)
    table.insert(0, "query", pd.Categorical(qid))
    together = ranker("lightgbm", query_column="query").fit(table, y)
    assert together.categories_ == apart.categories_
    np.testing.assert_array_equal(together.predict(table), apart.predict(table.iloc[:, 1:]))


@LIBRARIES
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_export_takes_codes(library, dtype, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from tierrank.ranking.export import to_onnx

    table, y, qid = frame(missing=0.1)
    table["size"] = table["size"].astype(dtype)
    fitted = ranker(library).fit(table, y, qid=qid)
    session = onnxruntime.InferenceSession(to_onnx(fitted, tmp_path / "m.onnx", dtype=dtype))
    notes = session.get_modelmeta().custom_metadata_map
    words = {int(at): each for at, each in json.loads(notes["categories"]).items()}
    assert {at: tuple(each) for at, each in words.items()} == fitted.categories_
    rows = np.full((len(table), 3), np.nan, dtype)
    rows[:, 0] = table["size"]
    for at, column in ((1, table.color), (2, table.shop)):
        code = {word: number for number, word in enumerate(words[at])}
        known = column.notna().to_numpy()
        rows[known, at] = [code[str(word)] for word in column[known]]
    (scores,) = session.run(None, {"features": rows})
    np.testing.assert_allclose(scores, fitted.predict(table), rtol=0, atol=1e-6)


@pytest.mark.parametrize("to", ["xgboost-dump", "ranklib", "solr"])
def test_formats_without_categories_refuse_them(to, tmp_path):
    table, y, qid = frame()
    fitted = ranker("lightgbm").fit(table, y, qid=qid)
    with pytest.raises(ValueError, match=f"split categories are not exported to {to}: use to="):
        tr.export(fitted, tmp_path / "model", to=to)
    assert not list(tmp_path.iterdir())


# Tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_tables_have_categories(name, tmp_path):
    table, y, qid = frame(missing=0.1)
    table = table.assign(label=y, qid=qid)
    path = tmp_path / name
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
    data = read(path, categories=["color", "shop"])
    assert set(data.categories) == {"color", "shop"}
    fitted = ranker("lightgbm").fit(data, data.y)
    assert fitted.feature_names_in_.tolist() == ["size", "color", "shop"]
    other = ranker("lightgbm").fit(table[["size", "color", "shop"]], y, qid=qid)
    scores = other.predict(table[["size", "color", "shop"]])
    assert fitted.categories_[1] == other.categories_[1]
    np.testing.assert_array_equal(fitted.predict(data), scores)
    later = data.select(data.y > 1)
    np.testing.assert_array_equal(fitted.predict(later), scores[data.y > 1])
    with pytest.raises(ValueError, match="which are not written"):
        write_table(tmp_path / "again.csv", data)
    with pytest.raises(ValueError, match="the columns are size, color, but the model was fitted"):
        fitted.predict(read(path, categories=["color"], features=["size", "color"]))
    without = read(path, features=["size", "shop"], categories=["shop"])
    numbers = ranker("lightgbm").fit(read(path, features=["size", "shop"]), y)
    with pytest.raises(ValueError, match="'shop' holds categories"):
        numbers.predict(without)


def test_a_table_says_which_of_its_columns_are_dictionaries(tmp_path):
    table, y, qid = frame()
    path = tmp_path / "rows.parquet"
    table.assign(label=y, qid=qid).to_parquet(path)
    assert set(read(path, categories="auto").categories) == {"color"}  # numbers come as numbers
    with pytest.raises(ValueError, match="boosted trees take it by categories"):
        read(path)
    for options, complaint in (
        ({"categories": "color"}, r"not one string: \['color'\]"),
        ({"categories": ["label"]}, "which is no feature"),
        ({"categories": ["hue"]}, "there is no column 'hue'"),
        ({"categories": ["color"], "cache": tmp_path / "cache"}, "are read into memory"),
    ):
        with pytest.raises(ValueError, match=complaint):
            read(path, **options)


def test_numbered_parts_have_one_dictionary_together(tmp_path):
    table, y, qid = frame()
    table = table.assign(label=y, qid=qid)
    for part in range(5):
        own = table[table.qid % 5 == part].sort_values("color", ascending=part % 2 == 0)
        own.to_csv(tmp_path / f"S{part + 1}.csv", index=False)
    train = read_folds(tmp_path, categories=["color"])[0].train
    assert train.categories["color"] == tuple(sorted(COLORS))
    codes = train.X[:, 1].astype(int)
    words = np.array(train.categories["color"])[codes]
    key = dict(zip(table["size"].round(9), table.color, strict=True))
    assert [key[size] for size in train.X[:, 0].round(9)] == words.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_line_trains_scores_and_measures_with_categories(suffix, tmp_path):
    table, y, qid = frame(missing=0.1)
    table = table.assign(label=y, qid=qid)
    later = table.assign(color=table.color.cat.reorder_categories(sorted(COLORS)))[::-1]
    later["color"] = later.color.cat.add_categories("pink").where(later.index % 9 > 0, "pink")
    for name, rows in (("train", table), ("later", later)):
        file = tmp_path / f"{name}.{suffix}"
        rows.to_csv(file, index=False) if suffix == "csv" else rows.to_parquet(file)
    train, later_file = tmp_path / f"train.{suffix}", tmp_path / f"later.{suffix}"
    model, scores = tmp_path / "model", tmp_path / "scores.txt"
    named = ["--categories", "color", "--categories", "shop"]
    run("train", train, "--out", model, "--valid", later_file, *named, "--set", "trees=8")
    run("predict", model, later_file, "--out", scores)
    loaded = tr.load(model)
    assert set(loaded.categories_) == {1, 2}
    columns = later[["size", "color", "shop"]]
    np.testing.assert_array_equal(np.loadtxt(scores), loaded.predict(columns))
    found = json.loads(run("evaluate", model, later_file, "--json").stdout)
    means = {each["metric"]: each["mean"] for each in found["results"]}
    assert means["ndcg@10"] == pytest.approx(loaded.score(columns, later.label, qid=later.qid))
    if suffix == "parquet":  # which says by itself that colours are categories
        run("train", train, "--out", tmp_path / "auto", "--set", "trees=3")
        assert set(tr.load(tmp_path / "auto").categories_) == {1}
    refused = run("train", train, "--out", tmp_path / "x", "--model", "linear", *named, fails=True)
    assert "--categories are for --model boosted" in refused.stderr
    refused = run("train", train, "--out", tmp_path / "x", "--model", "linear", fails=True)
    assert "leave the column out by --drop" in refused.stderr


def run(*arguments, fails=False):
    from typer.testing import CliRunner

    from tierrank.cli.options import app

    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert (done.exit_code != 0) == fails, done.output
    return done
