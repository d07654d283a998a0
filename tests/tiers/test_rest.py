import numpy as np
import pytest

import tierrank as tr
from tierrank.tiers.selection import equal_lists, with_rest_written


def test_a_written_rest_is_the_same_likelihood():
    rankings = [["a", ("b", "c")], [], ["e"], ["a", "b", "c", "d", "e"]]
    tiers = tr.Tiers.from_rankings(rankings, items=list("abcde"), rest="last")
    written = with_rest_written(tiers)
    assert not written.rest
    assert (written.lengths == 5).all()
    scores = np.random.default_rng(0).normal(size=5)
    np.testing.assert_allclose(tr.log_prob(scores, written), tr.log_prob(scores, tiers))


def test_lists_without_a_rest_stay_as_they_are():
    tiers = tr.Tiers.from_rankings([["a", "b"]])
    assert with_rest_written(tiers) is tiers


def test_equal_lists_are_found_whatever_the_order_inside_a_tier():
    rankings = [["a", ("b", "c")], ["b", "a"], ["a", ("c", "b")], [("a", "b"), "c"], ["b", "a"]]
    first, which = equal_lists(tr.Tiers.from_rankings(rankings))
    assert first.tolist() == [0, 1, 3]
    assert which.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("items", [3, 10**6])
def test_all_rankings_of_four_are_told_apart(items):
    from itertools import permutations

    orders = (
        [list(order) for order in permutations([0, 1, 2, items - 1])]
        if items > 3
        else [list(order) for order in permutations(range(3))]
    )
    first, _ = equal_lists(tr.Tiers.from_rankings(orders * 2, items=items))
    assert first.tolist() == list(range(len(orders)))
