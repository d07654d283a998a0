import numpy as np
import pytest

import tierrank as tr
from tierrank.aggregation.lists import distinct, largest_ties, weighted_lists
from tierrank.data.rankings.container import Rankings


def count_lists(rankings, *arguments, ties_speak=False, **options):
    return distinct(*weighted_lists(rankings, *arguments, **options), ties_speak=ties_speak)


def test_equal_lists_are_counted_once_whatever_the_order_inside_a_tie():
    rankings = [["a", ("b", "c")], ["a", ("c", "b")], ["b", "a"], ["a", ("b", "c")]]
    lists = count_lists(rankings, weights=[1, 2, 0.5, 4])
    assert lists.tiers.to_rankings() == [["a", ("b", "c")], ["b", "a"]]
    assert lists.counts.tolist() == [7.0, 0.5]
    assert (lists.seen, lists.total, lists.silent) == (4, 7.5, 0.0)


def test_the_same_items_in_other_tiers_are_another_list():
    lists = count_lists([["a", "b", "c"], ["a", ("b", "c")], [("a", "b"), "c"], ["b", "a", "c"]])
    assert len(lists.tiers) == 4


def test_lists_of_one_tie_say_nothing_and_are_noted():
    lists = count_lists([[("a", "b")], ["a", "b"]], weights=[3, 1])
    assert lists.tiers.to_rankings() == [["a", "b"]]
    assert lists.silent == 3.0
    assert len(count_lists([[("a", "b")], ["a", "b"]], ties_speak=True).tiers) == 2


def test_counting_agrees_with_a_dictionary_on_many_lists():
    random = np.random.default_rng(0)
    rankings = [random.permutation(4)[: random.integers(2, 5)].tolist() for _ in range(2000)]
    lists = count_lists(rankings, items=4)
    counts: dict[tuple, int] = {}
    for ranking in rankings:
        counts[tuple(ranking)] = counts.get(tuple(ranking), 0) + 1
    found = dict(zip(map(tuple, lists.tiers.to_rankings()), lists.counts.tolist(), strict=True))
    assert found == counts


def test_lists_with_a_rest_are_counted_too():
    tiers = tr.Tiers.from_rankings([["a"], [], ["a"]], items=["a", "b", "c"], rest="last")
    lists = distinct(tiers, np.ones(3))
    assert lists.counts.tolist() == [2.0]
    assert lists.silent == 1.0


def test_weights_of_rankings_and_of_the_call_multiply():
    rankings = tr.data.Rankings.from_rankings([["a", "b"], ["b", "a"]], weights=[3, 1])
    assert count_lists(rankings, weights=[2, 5]).counts.tolist() == [6.0, 5.0]


def test_weights_may_be_whole_numbers_of_pandas_that_could_be_missing():
    pd = pytest.importorskip("pandas")
    weights = pd.Series([3, 1], dtype="Int64")
    assert count_lists([["a", "b"], ["b", "a"]], weights=weights).counts.tolist() == [3.0, 1.0]
    with pytest.raises(ValueError, match=r"weights\[1\] is nan"):
        count_lists([["a", "b"], ["b", "a"]], weights=pd.Series([3, None], dtype="Int64"))


def test_weight_zero_leaves_a_list_out_but_keeps_its_items():
    lists = count_lists([["a", "b"], ["c", "a"]], weights=[1, 0])
    assert lists.items == ("a", "b", "c")
    assert len(lists.tiers) == 1


@pytest.mark.parametrize("weights", [[1], [1, -1], [1, np.nan], [1, np.inf], ["a", "b"], [[1, 2]]])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        count_lists([["a", "b"], ["b", "a"]], weights=weights)


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_weights_whose_squares_leave_the_range_of_numbers_are_refused(weight):
    with pytest.raises(ValueError, match="how often"):
        count_lists([["a", "b"], ["b", "a"]], weights=[weight, weight])


def test_rows_of_labels_are_refused_with_advice():
    with pytest.raises(ValueError, match="from_rankings"):
        count_lists(tr.Tiers.from_labels([1, 0]))


def test_the_largest_tie_of_a_list_is_told_apart_from_its_last_tier():
    rankings = [["a", "b"], ["a", ("b", "c")], [("a", "b"), "c"], [("a", "b", "c")]]
    upper, last = largest_ties(tr.Tiers.from_rankings(rankings))
    assert upper.tolist() == [1, 1, 2, 0]
    assert last.tolist() == [1, 2, 1, 3]
    rest = tr.Tiers.from_rankings([["a", "b"]], items=["a", "b", "c"], rest="last")
    assert min(*largest_ties(rest)[0], *largest_ties(rest)[1]) > 10**9


def test_what_was_read_can_be_given_a_catalogue_and_a_rest_afterwards():
    """An approval ballot names who is approved of; the others are tied behind them."""
    ballots = [["b", "a"], [("c", "b")]]
    read = Rankings.from_rankings(ballots, weights=[3, 2])
    for given in (read, read.tiers):
        lists = count_lists(given, rest="last")
        expected = count_lists(ballots, weights=[3, 2], rest="last")
        assert lists.tiers.to_rankings() == expected.tiers.to_rankings()
        assert lists.tiers.rest
    lists = count_lists(read, items=["a", "b", "c", "d"])
    assert lists.items == ("a", "b", "c", "d")
    assert lists.tiers.to_rankings() == [["b", "a"]]
    assert lists.silent == 2.0
    both = count_lists(read, items=["d", "c", "b", "a"], rest="last")
    assert both.items == ("d", "c", "b", "a")
    assert both.tiers.full_lengths.tolist() == [4, 4]
    assert both.counts.tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="list 1: item 'c' is not in the catalogue"):
        count_lists(read, items=["a", "b"])
    with pytest.raises(ValueError, match='rest must be "absent" or "last"'):
        count_lists(read, rest="first")
