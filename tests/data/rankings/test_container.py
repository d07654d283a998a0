"""Rankings: lists with weights, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierrank.data.rankings import Rankings
from tierrank.tiers import Tiers

LISTS = [["ann", ("bob", "cy")], ["cy", "ann"], ["bob"]]


def test_lists_weights_and_items_are_as_given():
    rankings = Rankings.from_rankings(LISTS, weights=[3, 0.5, 1])
    assert rankings.tiers == Tiers.from_rankings(LISTS)
    assert rankings.weights.tolist() == [3.0, 0.5, 1.0]
    assert rankings.weights.dtype == np.float64
    assert (rankings.items, len(rankings)) == (("ann", "bob", "cy"), 3)


def test_without_weights_every_list_was_given_once():
    assert Rankings.from_rankings(LISTS).weights.tolist() == [1.0, 1.0, 1.0]


def test_items_without_names_are_numbers():
    rankings = Rankings.from_rankings([[2, 0], []], items=4, rest="last")
    assert rankings.items == (0, 1, 2, 3)
    assert rankings.tiers.rest


def test_weights_are_a_copy_that_nobody_changes():
    weights = np.array([1.0, 2.0, 3.0])
    rankings = Rankings.from_rankings(LISTS, weights=weights)
    weights[0] = 7
    assert rankings.weights[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        rankings.weights[0] = 7


def test_the_repr_shows_the_first_lists_with_their_weights():
    tiers = Tiers.from_rankings(LISTS)
    assert repr(Rankings(tiers, np.array([1000, 2.5, 1]))).splitlines() == [
        "Rankings(3 lists of weight 1003.5, 3 items)",
        "  1,000 × ann > {bob, cy}",
        "    2.5 × cy > ann",
        "  ... 1 more",
    ]
    one = Rankings.from_rankings([["a: b"]])
    assert repr(one) == "Rankings(1 list of weight 1, 1 item)\n  1 × a: b"
    assert repr(one.__class__(one.tiers[:0], [])) == "Rankings(0 lists of weight 0, 1 item)"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"weights have shape \(2,\), but there are 3 lists"),
        ([[1, 2, 3]], r"weights have shape \(1, 3\)"),
        ([1, 0, 1], "the weight of list 1 is 0.0: weights are positive"),
        ([1, 1, -2], "the weight of list 2 is -2.0"),
        ([np.nan, 1, 1], "the weight of list 0 is nan"),
        ([1, np.inf, 1], "the weight of list 1 is inf"),
        (["x", 1, 1], "weights must be numbers"),
        ([[1], 2, 3], "weights must be numbers"),
    ],
)
def test_weights_that_are_no_counts_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        Rankings.from_rankings(LISTS, weights=weights)


def test_rows_of_labels_are_refused():
    with pytest.raises(ValueError, match="over a catalogue of items"):
        Rankings(Tiers.from_labels([1, 0]), [1.0])
    with pytest.raises(ValueError, match="over a catalogue of items"):
        Rankings(LISTS, [1.0, 1.0, 1.0])


def without_by_hand(rankings, weights, gone):
    """Take the items out one list at a time; what compares nothing then goes."""
    left = []
    for ranking, weight in zip(rankings, weights, strict=True):
        tiers = [[item for item in tier if item not in gone] for tier in ranking]
        tiers = [tuple(tier) if len(tier) > 1 else tier[0] for tier in tiers if tier]
        if sum(len(tier) if isinstance(tier, tuple) else 1 for tier in tiers) > 1:
            left.append((tiers, weight))
    return left


@given(st.data())
def test_without_some_items_the_rest_of_each_list_stays(data):
    rankings = []
    for _ in range(data.draw(st.integers(1, 6))):
        order = data.draw(st.permutations("abcde"))[: data.draw(st.integers(1, 5))]
        cuts = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
        tiers = [[order[0]]]
        for item, cut in zip(order[1:], cuts, strict=False):
            if cut:
                tiers.append([item])
            else:
                tiers[-1].append(item)
        rankings.append(tiers)
    gone = data.draw(st.sets(st.sampled_from("abcde")))
    weights = list(range(1, len(rankings) + 1))
    whole = Rankings.from_rankings(
        [[tuple(tier) for tier in one] for one in rankings], items=list("abcde"), weights=weights
    )
    left = whole.without(gone)
    expected = without_by_hand(rankings, weights, gone)
    assert left.tiers.to_rankings() == [tiers for tiers, _ in expected]
    assert left.weights.tolist() == [weight for _, weight in expected]
    assert left.items == tuple(item for item in "abcde" if item not in gone)


def test_of_lists_with_a_rest_those_stay_that_still_name_an_item():
    votes = Rankings.from_rankings([["a"], ["b", "a"], ["d"]], items=list("abcd"), rest="last")
    left = votes.without(["d"])
    assert (left.tiers.rest, left.items) == (True, ("a", "b", "c"))
    assert left.tiers.to_rankings() == [["a"], ["b", "a"]]


def test_numbered_items_keep_their_numbers_and_keys_go_with_their_lists():
    tiers = replace(Tiers.from_rankings([[0, 1], [2, 0], [1, 2, 0]], items=3), keys=np.arange(3))
    left = Rankings(tiers, [1, 1, 1]).without([1])
    assert (left.items, left.tiers.keys.tolist()) == ((0, 2), [1, 2])
    assert left.tiers.to_rankings() == [[2, 0], [2, 0]]


def test_an_item_that_is_not_there_cannot_be_left_out():
    with pytest.raises(ValueError, match=r"no item 'anna' to leave out\. Did you mean 'ann'"):
        Rankings.from_rankings([["ann", "bob"]]).without(["anna"])
