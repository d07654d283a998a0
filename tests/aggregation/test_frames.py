"""Frames of pandas, polars and pyarrow in `fit` of all aggregators, with columns by name."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierrank as tr
from tierrank.data import UnclearTable

MAKERS = [pd.DataFrame, pl.DataFrame, pa.table]
LISTS = [["ann", ("bob", "cy")], [("ann", "bob"), "cy"], ["cy", "ann", "bob"], ["bob", "cy"]]
ROWS = [
    (race, item, place)
    for race, ranking in enumerate(LISTS)
    for place, tier in enumerate(ranking, 1)
    for item in (tier if isinstance(tier, tuple) else (tier,))
]
RACE, DRIVER, POSITION = (list(column) for column in zip(*ROWS, strict=True))
GAMES = [("ann", "bob", 1), ("bob", "cy", 0), ("cy", "ann", 1), ("bob", "ann", -1)]
GAMES += [(two, one, end) for one, two, end in GAMES]
WHITE, BLACK, OUTCOME = (list(column) for column in zip(*GAMES, strict=True))
WON = [{1: white, 0: "draw", -1: black}[end] for white, black, end in GAMES]


@pytest.fixture(params=MAKERS, ids=["pandas", "polars", "pyarrow"])
def make(request):
    return request.param


def test_lists_of_a_frame_give_the_worths_of_the_plain_lists(make):
    frame = make({"race": RACE, "driver": DRIVER, "position": POSITION, "laps": [9] * len(RACE)})
    expected = tr.RankAggregator().fit(LISTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing to say where all columns are named
        fitted = tr.RankAggregator().fit(frame, list="race", item="driver", rank="position")
    assert fitted.items_ == expected.items_
    np.testing.assert_array_equal(fitted.log_worths_, expected.log_worths_)
    with pytest.warns(UserWarning, match="list race, item driver, rank position") as caught:
        found = tr.RankAggregator().fit(frame)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found.log_worths_, expected.log_worths_)


def test_games_of_a_frame_give_the_worths_of_the_plain_games(make):
    neutral = [False, True, False, False] * 2
    frame = make({"white": WHITE, "black": BLACK, "won": WON, "away": neutral})
    named = {"first": "white", "second": "black", "winner": "won"}
    for home in (False, True):
        model = tr.PairedTies(home=home, prior="gaussian")
        expected = model.fit(GAMES).log_worths_
        np.testing.assert_array_equal(model.fit(frame, **named).log_worths_, expected)
    expected = model.fit(GAMES, neutral=np.array(neutral)).log_worths_
    np.testing.assert_array_equal(model.fit(frame, **named, neutral="away").log_worths_, expected)
    with pytest.warns(
        UserWarning, match="a game of two sides: first white, second black, winner won"
    ):
        model.fit(frame)


def test_features_go_with_the_items_of_a_frame(make):
    frame = make({"list": RACE, "item": DRIVER, "rank": POSITION})
    features = {"ann": [1.0], "bob": [0.5], "cy": [-0.3]}
    expected = tr.FeatureAggregator(l2=0.1).fit(LISTS, features)
    fitted = tr.FeatureAggregator(l2=0.1).fit(
        frame, features, list="list", item="item", rank="rank"
    )
    np.testing.assert_array_equal(fitted.log_worths_, expected.log_worths_)


def test_a_wide_frame_is_ranks(make):
    ranks = {"ann": [1, 2, 1], "bob": [2, 1, 0], "cy": [3, 3, 2], "dot": [0, 1, 1]}
    expected = tr.RankAggregator(prior="gaussian").fit(
        [["ann", "bob", "cy"], [("bob", "dot"), "ann", "cy"], [("ann", "dot"), "cy"]]
    )
    named = {"kind": "wide", "item": list(ranks)}
    fitted = tr.RankAggregator(prior="gaussian").fit(make(ranks), **named)
    worths = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
    for item, worth in zip(expected.items_, expected.log_worths_, strict=True):
        assert worths[item] == pytest.approx(worth, abs=1e-9)


def test_a_frame_with_numbers_for_names_says_by_kind_what_its_cells_are():
    cells = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    frame = pd.DataFrame(cells)
    for model in (tr.RankAggregator(), tr.PairedTies()):
        with pytest.raises(ValueError, match=r'kind="wide" .* kind="orders" .* \.to_numpy\(\)'):
            model.fit(frame)
    with pytest.warns(UserWarning, match="best first, a cell an item: item 0, 1, 2"):
        fitted = tr.RankAggregator().fit(frame, kind="orders")
    np.testing.assert_array_equal(fitted.log_worths_, tr.RankAggregator().fit(cells).log_worths_)
    with pytest.warns(UserWarning, match="a column an item, a cell its rank: item 0, 1, 2"):
        fitted = tr.RankAggregator().fit(pd.DataFrame(cells + 1), kind="wide")
    expected = tr.RankAggregator().fit([[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    assert fitted.items_ == expected.items_ == (0, 1, 2)
    np.testing.assert_allclose(fitted.log_worths_, expected.log_worths_, atol=1e-9)


def test_weights_stand_in_the_frame_or_beside_it_and_not_in_both(make):
    rows = {"list": RACE, "item": DRIVER, "rank": POSITION}
    weights = [2.0, 3.0, 1.0, 4.0]
    named = {"list": "list", "item": "item", "rank": "rank", "kind": "items"}
    beside = tr.RankAggregator().fit(make(rows), weights=weights, **named)
    weighted = make(rows | {"weight": [weights[race] for race in RACE]})
    inside = tr.RankAggregator().fit(weighted, **named, weight="weight")
    np.testing.assert_array_equal(inside.log_worths_, beside.log_worths_)
    for model in (tr.RankAggregator(), tr.PairedTies()):
        with pytest.raises(ValueError, match="leave out weights=, or that column"):
            model.fit(weighted, weights=weights, **named)


def test_a_rest_of_games_is_refused(make):
    frame = make({"white": WHITE, "black": BLACK, "won": WON})
    named = {"first": "white", "second": "black", "winner": "won"}
    with pytest.raises(ValueError, match="a game has two sides"):
        tr.RankAggregator().fit(frame, **named, rest="last")


def test_a_frame_that_says_nothing_is_refused_with_what_to_write(make):
    with pytest.raises(UnclearTable, match="list='COLUMN', item='COLUMN', rank='COLUMN'"):
        tr.RankAggregator().fit(make({"p": ["x"], "q": ["y"]}))


def test_columns_of_what_is_no_frame_are_refused():
    for model in (tr.RankAggregator(), tr.PairedTies()):
        with pytest.raises(ValueError, match="rank: columns are for frames, not for"):
            model.fit(LISTS, rank="rank")
        with pytest.raises(ValueError, match=r"sample_weight: .* weights="):
            model.fit(LISTS, sample_weight=[1.0])
