"""Tiers from rankings: names, ties, catalogues, the rest, and the way back."""

import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tierrank.tiers import Tiers

NAMES = ["ann", "bob", "cy", 7, 2.5, ("a", "pair"), frozenset({1})]


@st.composite
def rankings(draw):
    """Lists of tiers of the names above, each tier a list of names."""
    lists = []
    for _ in range(draw(st.integers(0, 5))):
        names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
        cuts = draw(st.sets(st.integers(1, len(names)), max_size=4)) | {0, len(names)}
        borders = sorted(cuts)
        lists.append([names[a:b] for a, b in itertools.pairwise(borders)])
    return lists


def write(tier, bare, kind):
    """A tier as a user may write it: one item bare, or a tie of any type."""
    can_be_bare = len(tier) == 1 and not isinstance(tier[0], tuple | frozenset)
    return tier[0] if bare and can_be_bare else kind(tier)


@given(rankings(), st.booleans(), st.sampled_from([tuple, set, frozenset]), st.booleans())
def test_what_goes_in_comes_out(lists, bare, kind, rest):
    given_ = [[write(tier, bare, kind) for tier in one] for one in lists]
    word = "last" if rest else "absent"
    tiers = Tiers.from_rankings(given_, items=NAMES, rest=word)
    assert [[set(t) if is_tie(t) else {t} for t in one] for one in tiers.to_rankings()] == [
        [set(tier) for tier in one] for one in lists
    ]
    assert tiers.names == tuple(NAMES)
    assert tiers == Tiers.from_rankings(tiers.to_rankings(), items=NAMES, rest=word)
    sizes = [sum(map(len, one)) for one in lists]
    assert tiers.lengths.tolist() == sizes
    assert tiers.n_tiers.tolist() == [
        len(one) + (rest and size < len(NAMES)) for one, size in zip(lists, sizes, strict=True)
    ]


def is_tie(entry):
    return isinstance(entry, tuple | set | frozenset)


def test_without_items_the_catalogue_is_the_names_in_order_of_appearance():
    tiers = Tiers.from_rankings(iter([("cy", ["ann"][0]), ("bob", "cy")]))
    assert tiers.names == ("cy", "ann", "bob")
    assert tiers.items.tolist() == [0, 1, 2, 0]
    assert tiers.n_items == 3
    assert not tiers.rest


def test_items_of_a_tuple_stay_in_order_and_those_of_a_set_are_sorted():
    # The order of a set of strings changes from one run to the next; results must not.
    tiers = Tiers.from_rankings([[("c", "a", "b")], [{"c", "a", "b"}]])
    assert tiers.to_rankings() == [[("c", "a", "b")], [("a", "b", "c")]]
    assert Tiers.from_rankings([[{8, 1}]]).names == (1, 8)  # python's own order is 8, 1
    assert Tiers.from_rankings([[{"b", 1, "a"}]]).names == (1, "a", "b")


def test_a_number_of_items_is_a_catalogue_of_numbers():
    for items in (5, np.int64(5), range(5)):
        tiers = Tiers.from_rankings(
            [[3, (0, np.int32(4))], np.array([1])], items=items, rest="last"
        )
        assert tiers.names is None
        assert tiers.n_items == 5
        assert tiers.to_rankings() == [[3, (0, 4)], [1]]


def test_an_item_in_the_catalogue_that_no_list_names_counts_for_the_rest():
    tiers = Tiers.from_rankings([["a", "b"], ["b"], []], items=["a", "b", "c"], rest="last")
    assert tiers.n_tiers.tolist() == [3, 2, 1]
    assert tiers.lengths.tolist() == [2, 1, 0]
    full = Tiers.from_rankings([["a", ("b", "c")]], rest="last")
    assert full.n_tiers.tolist() == [2]


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_a_table_of_integers_holds_strict_rankings(make):
    tiers = Tiers.from_rankings(make([[2, 0, 5], [1, 5, 2]]))
    assert (tiers.n_items, tiers.names) == (6, None)
    assert tiers.to_rankings() == [[2, 0, 5], [1, 5, 2]]
    assert tiers.tier_sizes.tolist() == [1] * 6
    named = Tiers.from_rankings(make([[20, 10]]), items=[10, 20, 30], rest="last")
    assert named.items.tolist() == [1, 0]
    assert named == Tiers.from_rankings([[20, 10]], items=[10, 20, 30], rest="last")


def test_arrays_inside_give_ordinary_numbers_as_names():
    tiers = Tiers.from_rankings([np.array([30, 10]), torch.tensor([10, 20])])
    assert tiers.names == (30, 10, 20)
    assert {type(name) for name in tiers.names} == {int}
    words = Tiers.from_rankings(np.array([["b", "a"], ["a", "b"]]))
    assert words.to_rankings() == [["b", "a"], ["a", "b"]]


def test_data_frames():
    pd = pytest.importorskip("pandas")
    tiers = Tiers.from_rankings(pd.DataFrame({"first": [1, 0], "second": [0, 2]}), items=3)
    assert tiers.to_rankings() == [[1, 0], [0, 2]]
    assert Tiers.from_rankings([pd.Series(["x", "y"])]).to_rankings() == [["x", "y"]]
    assert Tiers.from_rankings([["x"]], items=pd.Index(["x", "y"])).names == ("x", "y")


def test_the_table_of_the_user_stays_as_it_is():
    table = np.array([[1, 0]])
    tiers = Tiers.from_rankings(table)
    table[:] = 0
    assert tiers.items.tolist() == [1, 0]


def test_no_rankings_are_an_empty_tiers():
    assert len(Tiers.from_rankings([])) == 0
    assert Tiers.from_rankings([], items=4, rest="last").n_items == 4


def test_many_rankings_at_once():
    rng = np.random.default_rng(1)
    table = rng.random((20_000, 10)).argsort(axis=1)
    as_lists = [[*row[:4], tuple(row[4:6]), {*row[6:]}] for row in table.tolist()]
    tiers = Tiers.from_rankings(as_lists, items=10)
    assert tiers.tier_sizes.reshape(-1, 6).unique(dim=0).tolist() == [[1, 1, 1, 1, 2, 4]]
    assert np.array_equal(tiers.items.reshape(-1, 10)[:, :6].numpy(), table[:, :6])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rankings": [["a"], ["b", "a", "b"]]}, "list 1: item 'b' is in two tiers"),
        ({"rankings": [["a", ("b", "a")]]}, "list 0: item 'a' is in two tiers"),
        ({"rankings": [[("a", "a")]]}, "list 0: item 'a' is twice in one tie"),
        ({"rankings": np.array([[0, 1], [1, 1]])}, "list 1: item 1 is in two tiers"),
        ({"rankings": [["a"], ["x"]], "items": ["a", "b"]}, "list 1: item 'x' is not in the cat"),
        ({"rankings": [[0], [1, 3]], "items": 3}, "list 1: item 3 is not .* integers 0 to 2"),
        ({"rankings": [[0, "a"]], "items": 3}, "list 0: item 'a' is not in the catalogue"),
        ({"rankings": [[0, 2.0]], "items": 3}, "list 0: item 2.0 is not in the catalogue"),
        ({"rankings": [[0, True]], "items": 3}, "list 0: item True is not in the catalogue"),
        ({"rankings": [[0, 10**30]], "items": 3}, "list 0: item 10+ is not in the catalogue"),
        ({"rankings": np.array([[0, -1]])}, "list 0: item -1 is not in the catalogue"),
        ({"rankings": np.array([[0, 7]]), "items": 3}, "list 0: item 7 is not in the catalogue"),
        ({"rankings": [["a"], []]}, "list 1: the ranking is empty"),
        ({"rankings": np.zeros((2, 0), dtype=int)}, "list 0: the ranking is empty"),
        ({"rankings": [["a"], ["b", ()]]}, "list 1: the tie at place 1 is empty"),
        ({"rankings": [[set()]], "rest": "last"}, "list 0: the tie at place 0 is empty"),
        ({"rankings": ["ab", "cd"]}, "list 0: 'ab' is not a sequence .* write \\[ranking\\]"),
        ({"rankings": "ab"}, "rankings must be one sequence a list"),
        ({"rankings": 3}, "rankings must be one sequence a list"),
        ({"rankings": [["a"], 3]}, "list 1: 3 is not a sequence"),
        ({"rankings": np.array([2, 1])}, "list 0: .*2.* is not a sequence"),
        ({"rankings": torch.tensor([2, 1])}, "list 0: .*2.* is not a sequence"),
        ({"rankings": [{"a", "b"}]}, "list 0: .* has no order"),
        ({"rankings": [{"a": 1}]}, "list 0: .* has no order"),
        ({"rankings": [["a"], ["a", ["b"]]]}, "list 1: item \\['b'\\] .* not hashable"),
        ({"rankings": [["a", ["b"]]], "items": ["a"]}, "list 0: item \\['b'\\] .* not hashable"),
        ({"rankings": [["a"], [1.0, float("nan")]]}, "list 1: nan is a missing"),
        ({"rankings": [["a"], ["b", Decimal("nan")]]}, "list 1: .*NaN.* is a missing"),
        ({"rankings": [["a", pd.NaT]]}, "list 0: NaT is a missing"),
        ({"rankings": [["a"], ["b", pd.NA]]}, "list 1: <NA> is a missing"),
        ({"rankings": [["a", ("b", None)]]}, "list 0: None is a missing"),
        ({"rankings": [["a", np.datetime64("NaT")]]}, "list 0: .*NaT.* is a missing"),
        ({"rankings": [["a"]], "items": ["a", float("nan")]}, "items: nan is a missing"),
        (
            {"rankings": [["a"]], "items": ["a", "b", "a"]},
            r"items\[0\] and items\[2\] are both 'a'",
        ),
        ({"rankings": [["a"]], "items": "ab"}, "items must be a sequence of names"),
        ({"rankings": [["a"]], "items": {"a"}}, "items must be a sequence of names"),
        ({"rankings": [["a"]], "items": True}, "items must be a sequence of names"),
        ({"rankings": [["a"]], "items": 2.0}, "items must be a sequence of names"),
        ({"rankings": [["a"]], "items": [["a"]]}, "items must be hashable"),
        ({"rankings": [["a"]], "items": -1}, "cannot be negative"),
        ({"rankings": [["a"]], "rest": "first"}, 'rest must be "absent" or "last"'),
        ({"rankings": [[]], "items": 0, "rest": "last"}, "the catalogue is empty"),
        ({"rankings": np.array([[2**61], [0], [0]])}, "too large for 3 lists"),
    ],
)
def test_bad_input_is_refused_and_the_message_names_the_list_and_the_item(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tiers.from_rankings(**arguments)


@pytest.mark.parametrize("kind", [int, np.int32, np.uint8])
def test_items_that_are_the_integers_from_0_on_are_their_own_numbers(kind):
    """As in choix: whoever came first, score 2 is that of item 2."""
    rankings = [[2, (0, 1)], [3, 2, 0]]
    tiers = Tiers.from_rankings(
        [[tuple(map(kind, e)) if isinstance(e, tuple) else kind(e) for e in r] for r in rankings]
    )
    assert (tiers.n_items, tiers.names) == (4, None)
    assert tiers.items.tolist() == [2, 0, 1, 3, 2, 0]
    assert tiers.to_rankings() == rankings
    pairs = Tiers.from_preferences([[(2, 0), (2, 1)], [(3, 2)]])
    assert pairs.names is None
    assert pairs.to_rankings() == [[2, (0, 1)], [3, 2]]


@pytest.mark.parametrize(
    "rankings",
    [
        [[2, 1], [1, 3]],  # not from 0 on
        [[2, 0]],  # one is missing
        [["1", "0"]],
        [[1.0, 0.0]],
        [[True, False]],
        [[1, 0, "a"]],
        [[1, -1, 0]],
    ],
)
def test_all_other_names_come_in_the_order_in_which_they_appear(rankings):
    names = Tiers.from_rankings(rankings).names
    assert names == tuple(dict.fromkeys(name for ranking in rankings for name in ranking))


def test_a_stated_catalogue_keeps_its_order():
    assert Tiers.from_rankings([[0, 1]], items=[1, 0]).names == (1, 0)


@pytest.mark.parametrize(
    "items", [3, range(3), [0, 1, 2], (0, 1, 2), np.arange(3), list(np.arange(3))]
)
def test_the_integers_from_0_on_are_the_same_catalogue_stated_or_not(items):
    stated = Tiers.from_rankings([[2, 1, 0]], items=items)
    assert stated.names is None
    joined = Tiers.concat([Tiers.from_rankings([[0, 1, 2]]), stated])
    assert joined.to_rankings() == [[0, 1, 2], [2, 1, 0]]


@pytest.mark.parametrize("items", [[False, True], [0.0, 1.0], ["0", "1"], [1, 2], []])
def test_stated_names_of_another_kind_stay_names(items):
    names = Tiers.from_rankings([list(items)] if items else [], items=items).names
    assert names == tuple(items)
    assert list(map(type, names)) == list(map(type, items))
