"""Features of items in all forms, items that no list names, and bad input."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tierrank as tr
from tierrank.aggregation.covariates import FeatureAggregator, ItemWorths
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games

RANKINGS = [["ann", ("bob", "cy")], ["bob", "ann", "dan"], ["cy", "dan", "ann"], ["dan", "bob"]]
VECTORS = {"ann": [1.0, 2.0], "bob": [0.5, -1.0], "cy": [-1.0, 0.0], "dan": [0.0, 1.0]}


@pytest.fixture
def expected():
    return FeatureAggregator().fit(RANKINGS, VECTORS)


def frame_of(library, **columns):
    return pytest.importorskip(library).DataFrame(columns)


def test_a_mapping_may_have_other_items_in_any_order(expected):
    more = {"zoe": [np.nan, 1.0], **dict(reversed(VECTORS.items()))}
    fitted = FeatureAggregator().fit(RANKINGS, more)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.items_ == ("ann", "bob", "cy", "dan")
    assert fitted.feature_names_ == ("x0", "x1")


def test_vectors_may_have_names(expected):
    named = {name: {"age": a, "height": b} for name, (a, b) in VECTORS.items()}
    named["cy"] = dict(reversed(named["cy"].items()))
    fitted = FeatureAggregator().fit(RANKINGS, named)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.feature_names_ == ("age", "height")


@pytest.mark.parametrize("kind", [np.array, torch.tensor, list])
def test_rows_of_an_array_go_by_the_catalogue(expected, kind):
    rows = kind(list(VECTORS.values()))
    for fitted in (
        FeatureAggregator().fit(RANKINGS, rows, items=list(VECTORS)),
        FeatureAggregator().fit(tr.Tiers.from_rankings(RANKINGS), rows),
        FeatureAggregator().fit(Rankings.from_rankings(RANKINGS), rows),
    ):
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)


def test_rows_of_an_array_need_a_catalogue_in_order():
    with pytest.raises(ValueError, match="which item each row is by items="):
        FeatureAggregator().fit(RANKINGS, np.array(list(VECTORS.values())))


def test_games_are_rankings_of_two():
    games = Games.from_rows([("ann", "bob", "first"), ("bob", "ann", "first"), ("cy", "bob", 1)])
    fitted = FeatureAggregator(l2=0.1).fit(games, VECTORS)
    plain = FeatureAggregator(l2=0.1)
    plain.fit([["ann", "bob"], ["bob", "ann"], ["cy", "bob"]], VECTORS)
    np.testing.assert_allclose(fitted.coef_, plain.coef_)


def test_pandas_has_the_items_as_its_index_or_in_a_column(expected):
    numbers = np.array(list(VECTORS.values())).T
    frame = frame_of("pandas", who=list(VECTORS), age=numbers[0], height=numbers[1])
    for fitted in (
        FeatureAggregator().fit(RANKINGS, frame.set_index("who")),
        FeatureAggregator(item_column="who").fit(RANKINGS, frame.iloc[::-1]),
    ):
        np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-12)
        assert fitted.feature_names_ == ("age", "height")
        columns_swapped = frame[["height", "who", "age"]].set_index("who")
        np.testing.assert_allclose(fitted.predict(columns_swapped), fitted.log_worths_)
        assert fitted.worths_of(columns_swapped).items_ == tuple(VECTORS)
    with pytest.raises(ValueError, match=r"lack 4 of 4 items: 'ann'.*They have 0, 1"):
        FeatureAggregator().fit(RANKINGS, frame[["age", "height"]])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_polars_and_pyarrow_have_them_in_a_column(expected, library):
    numbers = np.array(list(VECTORS.values())).T
    columns = {"who": list(VECTORS), "age": numbers[0], "height": numbers[1]}
    module = pytest.importorskip(library)
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    fitted = FeatureAggregator(item_column="who").fit(RANKINGS, frame)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(frame), fitted.log_worths_)
    assert fitted.worths_of(frame).ranking() == fitted.ranking()
    nameless = frame.drop_columns(["who"]) if library == "pyarrow" else frame.drop("who")
    np.testing.assert_allclose(fitted.predict(nameless), fitted.log_worths_)


# -- items that no list names ----------------------------------------------------------------


def test_items_of_the_fit_get_their_log_worths_again(expected):
    np.testing.assert_allclose(expected.predict(VECTORS), expected.log_worths_, atol=1e-14)
    scores, errors = expected.predict(VECTORS, return_std=True)
    np.testing.assert_allclose(scores, expected.log_worths_, atol=1e-14)
    np.testing.assert_allclose(errors, expected.standard_errors_)
    assert expected.log_worths_.mean() == pytest.approx(0, abs=1e-14)
    assert expected.worths_.sum() == pytest.approx(1)


def test_new_items_are_scored_by_their_features(expected):
    new = {"eve": [2.0, 2.0], "fay": [1.0, 1.0], "gus": [3.0, -2.0]}
    rows = np.array(list(new.values()))
    worths = expected.worths_of(new)
    assert isinstance(worths, ItemWorths)
    assert worths.items_ == ("eve", "fay", "gus")
    scores = expected.predict(rows)
    np.testing.assert_allclose(np.diff(scores), np.diff(rows @ expected.coef_))
    np.testing.assert_allclose(worths.log_worths_, scores - scores.mean())
    odds = np.exp((rows[0] - rows[2]) @ expected.coef_)
    assert worths.predict_proba("eve", "gus") == pytest.approx(odds / (1 + odds))
    contrast = rows - rows.mean(axis=0)
    np.testing.assert_allclose(
        worths.covariance(), contrast @ expected.coef_covariance_ @ contrast.T, atol=1e-14
    )
    np.testing.assert_allclose(worths.standard_errors_, np.sqrt(np.diag(worths.covariance())))
    np.testing.assert_allclose(
        worths.covariance(["gus", "eve"]), worths.covariance()[np.ix_([2, 0], [2, 0])]
    )
    assert worths.expected_ranks(draws=20).estimate.sum() == pytest.approx(6)
    assert worths.summary().items == tuple(worths.ranking())
    assert expected.worths_of(rows).items_ == (0, 1, 2)


def test_the_summary_has_coefficients_and_items(expected):
    summary = expected.summary(level=0.9, top=2)
    text = str(summary)
    assert text.startswith("FeatureAggregator, linear, pl-partition, information: 4 items, 4 lists")
    assert "the first 2 of 4 items" in text
    assert repr(summary) == text
    assert summary.coefficients.features == ["x0", "x1"]
    np.testing.assert_array_equal(summary.coefficients.coef, expected.coef_)
    assert summary.items == tuple(expected.ranking()[:2])
    intervals = expected.intervals(0.9)
    order = [expected.items_.index(item) for item in summary.items]
    np.testing.assert_allclose(summary.lower, intervals.low[order])


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"ann": [1.0, 2.0], "bob": [0.0, 1.0]}, r"lack 2 of 4 items: 'cy', 'dan'"),
        ({**VECTORS, "cy": [np.nan, 0.0]}, r"item 'cy': feature 0 is nan"),
        ({**VECTORS, "cy": [0.0, np.inf]}, r"item 'cy': feature 1 is inf"),
        ({**VECTORS, "cy": [0.0]}, r"item 'cy': features are a vector of 2 numbers"),
        ({**VECTORS, "cy": ["a", "b"]}, r"item 'cy': features are a vector of 2 numbers, not <U1"),
        ({**VECTORS, "cy": {"a": 1, "b": 2}}, "item 'cy' has the features"),
        ({name: {"a": 1.0} if name == "ann" else {"b": 2.0} for name in VECTORS}, "'bob' has the"),
        ({name: [] for name in VECTORS}, "there are none"),
        ({}, "there are none"),
        ("ann", "features are numbers"),
    ],
)
def test_bad_features_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        FeatureAggregator().fit(RANKINGS, features)


def test_bad_arrays_and_frames_are_refused():
    items = list(VECTORS)
    with pytest.raises(ValueError, match="3 rows for 4 items"):
        FeatureAggregator().fit(RANKINGS, np.zeros((3, 2)), items=items)
    with pytest.raises(ValueError, match="features are numbers"):
        FeatureAggregator().fit(RANKINGS, np.zeros(4), items=items)
    frame = frame_of("pandas", who=[*items[:3], "ann"], age=[1.0, 2.0, 3.0, 4.0])
    named = FeatureAggregator(item_column="who")
    with pytest.raises(ValueError, match="item 'ann' has two rows"):
        named.fit(RANKINGS, frame)
    with pytest.raises(ValueError, match=r"feature 'who' .*not"):
        FeatureAggregator().fit(RANKINGS, frame)
    with pytest.raises(ValueError, match="no columns 'name', which item_column names"):
        FeatureAggregator(item_column="name").fit(RANKINGS, frame)
    holed = frame_of("pandas", who=items, age=[1.0, None, 3.0, 4.0])
    with pytest.raises(ValueError, match="item 'bob': feature 'age' is nan"):
        named.fit(RANKINGS, holed)


def test_predictions_want_the_features_of_the_fit(expected):
    with pytest.raises(ValueError, match="3 features an item, but the fit had 2"):
        expected.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="row 1: feature 'x1' is nan"):
        expected.predict(np.array([[0.0, 0.0], [0.0, np.nan]]))
    named = FeatureAggregator(l2=1).fit(
        RANKINGS, {name: {"a": v[0]} for name, v in VECTORS.items()}
    )
    with pytest.raises(ValueError, match="features that are not there: 'a'"):
        named.predict({"eve": {"b": 1.0}})
    with pytest.raises(NotFittedError):
        FeatureAggregator().predict(VECTORS)
    with pytest.raises(ValueError, match="no item 'eve'"):
        expected.predict_proba("eve", "ann")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "tree"}, '"linear" or "neural"'),
        ({"objective": "davidson"}, "PairedTies"),
        ({"objective": "pmop-mh"}, "random"),
        ({"uncertainty": "none"}, "uncertainty is"),
        ({"l2": -1}, "l2 is a number above 0 or 0"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"patience": 0}, "patience"),
        ({"max_iter": 0}, "max_iter"),
        ({"hidden": (0,)}, "hidden width"),
        ({"activation": "cos"}, "activation is one of"),
        ({"validation_fraction": 1.0}, "validation_fraction is below 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FeatureAggregator(**settings).fit(RANKINGS, VECTORS)


def test_lists_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="no list says anything"):
        FeatureAggregator().fit([[("ann", "bob")]], VECTORS)


def test_a_fit_that_was_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted = FeatureAggregator(max_iter=1).fit(RANKINGS, VECTORS)
    assert not fitted.converged_
    assert fitted.n_iter_ == 1


def test_it_is_an_estimator_and_can_be_watched():
    told = []
    fitted = clone(FeatureAggregator(l2=0.5)).fit(RANKINGS, VECTORS, watch=told.append)
    assert fitted.l2 == 0.5
    assert [progress.done for progress in told] == list(range(1, fitted.n_iter_ + 1))
    losses = [progress.loss for progress in told]
    assert losses == sorted(losses, reverse=True)
