"""Rankings: lists with weights, and what is refused."""

import numpy as np
import pytest

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
