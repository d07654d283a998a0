"""What tiers keep of the labels they were built from, and the first places of lists."""

import numpy as np
import pytest
import torch

from tierrank import Tiers

LABELS, QID = [5, 0.5, 5, 2, 2, 0], ["a", "a", "a", "b", "b", "b"]


def test_tiers_keep_their_labels():
    tiers = Tiers.from_labels(LABELS, qid=QID)
    assert tiers.labels.dtype == torch.float64
    assert tiers.labels.tolist() == [5, 0.5, 2, 0]
    assert tiers.grades is tiers.labels
    assert Tiers.from_labels([True, False, True]).labels.tolist() == [1, 0]
    padded = Tiers.from_labels([[3, 9], [1, 1]], mask=[[True, False], [True, True]])
    assert padded.labels.tolist() == [3, 1]


def test_labels_follow_lists_that_are_taken_out_put_together_and_made_strict():
    tiers = Tiers.from_labels(LABELS, qid=QID)
    assert tiers[[1, 0]].labels.tolist() == [2, 0, 5, 0.5]
    assert tiers[1].labels.tolist() == [2, 0]
    assert Tiers.concat([tiers[1], tiers]).labels.tolist() == [2, 0, 5, 0.5, 2, 0]
    assert tiers.break_ties().labels.tolist() == [5, 5, 0.5, 2, 2, 0]
    assert tiers.to("meta").labels.shape == (4,)


def test_without_labels_a_grade_is_the_number_of_tiers_below():
    absent = Tiers.from_rankings([[0, (1, 2), 3], [2]], items=5)
    assert absent.labels is None
    assert absent.grades.tolist() == [2, 1, 0, 0]
    rest = Tiers.from_rankings([[0, (1, 2), 3], [2], [], [(0, 1, 2, 3, 4)]], items=5, rest="last")
    assert rest.grades.tolist() == [3, 2, 1, 1, 0]  # the rest has 0, and is none in the last list
    assert Tiers.concat([rest, rest]).labels is None


def test_labels_are_no_part_of_what_tiers_say():
    assert Tiers.from_labels([7, 3, 3]) == Tiers.from_labels([1, 0, 0])
    again = Tiers.from_labels(Tiers.from_labels([7, 3, 3]).to_labels())
    assert again.labels.tolist() == [1, 0]


def test_labels_of_another_number_are_refused():
    tiers = Tiers.from_labels([1, 0])
    fields = {"items": tiers.items, "tier_offsets": tiers.tier_offsets, "score_shape": (2,)}
    with pytest.raises(ValueError, match=r"2 tiers, but labels of shape \(3,\)"):
        Tiers(**fields, list_offsets=tiers.list_offsets, labels=torch.zeros(3))


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [[0, (1, 2, 3, 4, 5)], [(6, 7), (8, 9)], [10]]),
        (2, [[0, 1, (2, 3, 4, 5)], [(6, 7), (8, 9)], [10]]),
        (3, [[0, 1, (2, 3), (4, 5)], [(6, 7), 8, 9], [10]]),
        (5, [[0, 1, (2, 3), 4, 5], [(6, 7), 8, 9], [10]]),
        (99, [[0, 1, (2, 3), 4, 5], [(6, 7), 8, 9], [10]]),
    ],
)
def test_the_first_places_of_every_list(k, expected):
    tiers = Tiers.from_labels([5, 4, 3, 3, 2, 1, 3, 3, 2, 0, 1], lengths=[6, 4, 1])
    top = tiers.top(k)
    assert top.to_rankings() == expected
    assert len(top.labels) == len(top.tier_sizes)
    assert tiers.top(3).labels.tolist() == [5, 4, 3, 2, 3, 2, 0, 1]


def test_the_first_places_over_a_rest_leave_the_others_to_it():
    tiers = Tiers.from_rankings(
        [[(0, 1), 2], [2, (0, 3)], [], [(0, 1, 2, 3)]], items=4, rest="last"
    )
    assert tiers.top(1) == Tiers.from_rankings(
        [[(0, 1)], [2], [], [(0, 1, 2, 3)]], items=4, rest="last"
    )
    assert tiers.top(2) == Tiers.from_rankings(
        [[(0, 1)], [2, (0, 3)], [], [(0, 1, 2, 3)]], items=4, rest="last"
    )
    assert tiers.top(3) == tiers


def test_the_first_places_of_no_lists():
    assert len(Tiers.from_labels([]).top(3)) == 0


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_place_is_refused(k):
    with pytest.raises(ValueError, match=f"at least 1, not {k}"):
        Tiers.from_labels([1, 0]).top(k)
    with pytest.raises(TypeError):
        Tiers.from_labels([1, 0]).top(1.5)


def test_the_first_places_of_many_lists_are_those_of_each():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 9, size=40)
    tiers = Tiers.from_labels(rng.integers(0, 4, size=lengths.sum()), lengths=lengths)
    for k in (1, 2, 4):
        for number, ranking in enumerate(tiers.top(k).to_rankings()):
            kept, places = [], 0
            whole = tiers.to_rankings()[number]
            sizes = [len(tier) if isinstance(tier, tuple) else 1 for tier in whole]
            while len(kept) < len(whole) and places < k:
                places += sizes[len(kept)]
                kept.append(whole[len(kept)])
            left = sum(sizes[len(kept) :])
            assert ranking[: len(kept)] == kept
            assert len(ranking) == len(kept) + (left > 0)
