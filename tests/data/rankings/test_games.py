"""Games of two sides: what they hold, what they refuse, and the lists they become."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierrank.data.rankings.games import Games

ROWS = [("ann", "bob", "first"), ("bob", "cy", "tie"), ("cy", "ann", "second"), ("bob", "ann", 1)]


def test_rows_become_numbers_in_order_of_first_appearance():
    games = Games.from_rows(ROWS)
    assert games.names == games.items == ("ann", "bob", "cy")
    assert games.first.tolist() == [0, 1, 2, 1]
    assert games.second.tolist() == [1, 2, 0, 0]
    assert (games.outcome.tolist(), games.outcome.dtype) == ([1, 0, -1, 1], np.int8)
    assert (games.weights.tolist(), len(games)) == ([1, 1, 1, 1], 4)
    assert repr(games) == "Games(4 games of 3 sides: the first won 2, the second won 1, 1 tied)"


def test_words_and_numbers_of_an_outcome_mean_the_same():
    numbers = {"first": 1, "second": -1, "tie": 0}
    by_number = Games.from_rows([(a, b, numbers.get(end, end)) for a, b, end in ROWS])
    by_numpy = Games.from_rows(
        [(a, b, np.int64(end)) for (a, b, _), end in zip(ROWS, [1, 0, -1, 1], strict=True)]
    )
    expected = Games.from_rows(ROWS).outcome.tolist()
    assert by_number.outcome.tolist() == by_numpy.outcome.tolist() == expected


def test_names_can_be_stated_and_teams_are_tuples():
    team = ("ann", "bob")
    games = Games.from_rows([(team, "cy", 1)], names=["cy", "dee", team], weights=[2.5])
    assert games.names == ("cy", "dee", team)
    assert (games.first.tolist(), games.second.tolist()) == ([2], [0])
    assert "1 row of weight 2.5" in repr(games)
    assert games.to_rankings().items == games.names


def test_a_game_is_a_list_and_a_tie_a_list_of_one_tier():
    rankings = Games.from_rows(ROWS, weights=[3, 1, 2, 1]).to_rankings()
    assert rankings.tiers.to_rankings() == [
        ["ann", "bob"], [("bob", "cy")], ["ann", "cy"], ["bob", "ann"],
    ]  # fmt: skip
    assert rankings.weights.tolist() == [3, 1, 2, 1]
    assert rankings.items == ("ann", "bob", "cy")
    assert not rankings.tiers.rest


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, 0, -1])).filter(
            lambda row: row[0] != row[1]
        ),
        min_size=1,
        max_size=20,
    )
)
def test_lists_say_what_the_rows_said(rows):
    found = Games.from_rows(rows, names=range(6)).to_rankings().tiers.to_rankings()
    for (one, two, end), ranking in zip(rows, found, strict=True):
        assert ranking == {1: [one, two], -1: [two, one], 0: [(one, two)]}[end]


def test_no_games_are_no_lists():
    games = Games.from_rows([])
    assert (len(games), games.names) == (0, ())
    assert len(games.to_rankings()) == 0


def test_arrays_are_copies_that_nobody_changes():
    first = np.array([0, 1])
    games = Games(("a", "b"), first, np.array([1, 0]), np.array([1, 0]), np.ones(2))
    first[0] = 1
    assert games.first.tolist() == [0, 1]
    for values in (games.first, games.second, games.outcome, games.weights):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


@pytest.mark.parametrize("outcome", ["win", "First", "", None, 2, True, 1.0, math.nan, [1]])
def test_an_outcome_that_is_none_of_the_three_is_refused(outcome):
    with pytest.raises(ValueError, match=r"row 1: the outcome is .* 'first', 'second' and 'tie'"):
        Games.from_rows([("a", "b", 1), ("a", "b", outcome)])


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([("a", "b")], {}, r"row 0 has 2 cells: a row is \(one side, the other, outcome\)"),
        (["abc"], {}, "row 0 is 'abc'"),
        ([3], {}, "row 0 is 3"),
        ([("a", "b", 1), ("a", "a", 0)], {}, "game 1: 'a' plays against itself"),
        ([(["a"], "b", 1)], {}, "cannot be a name .*tuple for a team"),
        ([("a", None, 1)], {}, "row 0: the name of a side is missing"),
        ([("a", "b", 1), (math.nan, "b", 1)], {}, "row 1: the name of a side is missing"),
        ([("a", pd.NA, 1)], {}, "row 0: the name of a side is missing"),
        ([("a", pd.NaT, 1)], {}, "row 0: the name of a side is missing"),
        ([("a", Decimal("nan"), 1)], {}, "row 0: the name of a side is missing"),
        ([("a", ("b", None), 1)], {}, "row 0: the name of a side is missing"),
        ([("a", "b", 1)], {"names": ["a", "b", pd.NA]}, "items: <NA> is a missing value"),
        ([("a", "b", 1)], {"names": ["a"]}, "row 0: 'b' is not among the names"),
        ([("a", "b", 1)], {"names": ["a", "b", "a"]}, "are both 'a'"),
        ([("a", "b", 1)], {"weights": [0]}, "the weight of game 0 is 0.0"),
        ([("a", "b", 1)], {"weights": [math.inf]}, "the weight of game 0 is inf"),
        (
            [("a", "b", 1)],
            {"weights": [1, 1]},
            r"weights have shape \(2,\), but there are 1 games: give one a game",
        ),
        ([("a", "b", 1)], {"weights": ["x"]}, "weights must be numbers"),
    ],
)
def test_bad_rows_are_refused_with_their_number(rows, options, message):
    with pytest.raises(ValueError, match=message):
        Games.from_rows(rows, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": [0, 2]}, "game 1: first is 2, outside of 0 to 1"),
        ({"second": [-1, 0]}, "game 0: second is -1, outside"),
        ({"outcome": [1, 2]}, "game 1: outcome is 2, outside of -1 to 1"),
        ({"outcome": [1.0, 0.0]}, "outcome must be 2 integers"),
        ({"second": [1]}, "second must be 2 integers"),
        ({"names": "ab"}, "items must be a sequence of names"),
        ({"names": None}, "names is None"),
        ({"names": ("a", float("nan"))}, "items: nan is a missing value"),
        ({"neutral": [1, 0]}, "neutral is int64 of shape .*: give 2 booleans"),
        ({"neutral": [True]}, "neutral is bool of shape .*: give 2 booleans"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(change, message):
    fields = {
        "names": ("a", "b"), "first": [0, 1], "second": [1, 0], "outcome": [1, 0],
        "weights": [1, 1],
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        Games(**(fields | change))


@given(st.data())
def test_without_some_sides_only_the_games_of_others_stay(data):
    sides = st.sampled_from("abcde")
    rows = data.draw(st.lists(st.tuples(sides, sides, st.sampled_from([1, 0, -1])), max_size=20))
    rows = [row for row in rows if row[0] != row[1]]
    gone = data.draw(st.sets(sides))
    neutral = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    whole = Games.from_rows(rows, names=list("abcde"), weights=np.arange(1, len(rows) + 1))
    whole = replace(whole, neutral=neutral.astype(bool))
    left = whole.without(gone)
    kept = [i for i, row in enumerate(rows) if not gone & set(row[:2])]
    named = [left.names[i] for i in left.first], [left.names[i] for i in left.second]
    assert list(zip(*named, left.outcome.tolist(), strict=True)) == [rows[i] for i in kept]
    assert left.weights.tolist() == [i + 1 for i in kept]
    assert left.neutral.tolist() == [neutral[i] for i in kept]
    assert left.names == tuple(name for name in "abcde" if name not in gone)


def test_sides_that_are_the_integers_from_0_on_are_their_own_numbers():
    games = Games.from_rows([(2, 1, "first"), (1, 0, "tie")])
    assert games.names == (0, 1, 2)
    assert (games.first.tolist(), games.second.tolist()) == ([2, 1], [1, 0])
    assert Games.from_rows([(2, 1, "first")]).names == (2, 1)
    assert Games.from_rows([(1, 0, "first")], names=[1, 0]).names == (1, 0)


def test_parts_with_other_sides_are_not_put_together():
    one = Games.from_rows([("ann", "bob", 1)])
    assert len(Games.concatenate([one, Games.from_rows([("ann", "bob", -1)])])) == 2
    for rows in ([("x", "y", 1)], [("ann", "bob", 1), ("bob", "cy", 1)]):
        with pytest.raises(ValueError, match="part 1 has other sides than part 0"):
            Games.concatenate([one, Games.from_rows(rows)])
