"""The likelihood's view: one range of rows a list, and all tiers but the last as places in it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tierrank.tiers import Tiers


def unfold(layout, n_scores):
    """[[tier, ..., last tier] for each list] of flat score indices, the last being what remains."""
    rows = torch.arange(n_scores) if layout.rows is None else layout.rows
    rows, order = rows.tolist(), layout.order.tolist()
    lists = []
    for number in range(len(layout.row_offsets) - 1):
        low, high = layout.row_offsets[number : number + 2].tolist()
        remain = set(range(low, high))
        tiers = []
        for tier in range(*layout.list_offsets[number : number + 2].tolist()):
            start, end = layout.tier_offsets[tier : tier + 2].tolist()
            places = order[start:end]
            assert remain >= set(places), "a place outside of the list, or twice"
            remain -= set(places)
            tiers.append([rows[place] for place in places])
        lists.append([*tiers, [rows[place] for place in sorted(remain)]])
    assert layout.tier_offsets[-1] == len(order)
    return lists


def written(tiers):
    return [[list(t) if isinstance(t, tuple) else [t] for t in one] for one in tiers.to_rankings()]


LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=15)


@given(LABELS)
def test_rows(pairs):
    labels, qid = [y for y, _ in pairs], [q for _, q in pairs]
    tiers = Tiers.from_labels(labels, qid=np.array(qid, dtype=int))
    layout = tiers.layout()
    assert unfold(layout, len(labels)) == written(tiers)
    grouped = [q for key in dict.fromkeys(qid) for q in qid if q == key]
    assert (layout.rows is None) == (qid == grouped)
    if layout.rows is not None:
        assert layout.rows.tolist() == tiers.rows(slice(None)).tolist()


def test_rows_of_lists_that_follow_each_other_need_no_copy():
    for given_ in ({"qid": [3, 3, 1]}, {"lengths": [1, 2]}, {}):
        tiers = Tiers.from_labels([1, 0, 2], **given_)
        assert tiers.layout().rows is None
    shuffled = Tiers.from_labels([1, 0, 2, 1], qid=[0, 1, 0, 1])
    assert shuffled.layout().rows.tolist() == [0, 2, 1, 3]
    assert shuffled.layout().order.tolist() == [1, 3]
    assert shuffled[:].layout().rows is None


@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False))
def test_padded(n, width, random):
    labels = np.array([[random.randrange(3) for _ in range(width)] for _ in range(n)])
    mask = np.array([[random.random() < 0.6 for _ in range(width)] for _ in range(n)])
    mask[:, 0] |= ~mask.any(axis=1)
    tiers = Tiers.from_labels(labels, mask=mask)
    layout = tiers.layout()
    assert unfold(layout, labels.size) == written(tiers)
    assert (layout.rows is None) == mask.all()
    if layout.rows is not None:
        assert layout.rows.tolist() == np.flatnonzero(mask).tolist()
    assert Tiers.from_labels(labels).layout().rows is None


@given(st.integers(0, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_positives_over_the_rest_with_scores_of_their_own(n, width, random):
    dense = np.array([[random.random() < 0.5 for _ in range(width)] for _ in range(n)])
    tiers = Tiers.from_positives(sparse.csr_array(dense.reshape(n, width)))
    layout = tiers.layout()
    expected = []
    for number, row in enumerate(dense):
        items = number * width + np.arange(width)
        parts = [items[row].tolist(), items[~row].tolist()]
        expected.append([part for part in parts if part])
    assert layout.rows is None
    assert layout.row_offsets.tolist() == [i * width for i in range(n + 1)]
    assert unfold(layout, n * width) == expected


def test_positives_over_the_rest_with_shared_scores():
    tiers = Tiers.from_positives(sparse.csr_array([[0, 1, 1], [0, 0, 0], [1, 1, 1]]))
    layout = tiers.layout(per_list=False)
    assert layout.rows.tolist() == [1, 2, 0, 1, 2]
    assert layout.row_offsets.tolist() == [0, 2, 2, 5]
    assert layout.order.tolist() == [0, 1, 2, 3, 4]
    assert layout.tier_offsets.tolist() == [0, 2, 5]
    assert layout.list_offsets.tolist() == [0, 1, 1, 2]


RANKINGS = [[4, (0, 1)], [2], [(3, 1), 2, (0, 4)]]


def test_rankings_without_a_rest():
    tiers = Tiers.from_rankings(RANKINGS, items=5)
    shared = tiers.layout(per_list=False)
    assert shared.rows.tolist() == tiers.items.tolist()
    assert shared.row_offsets.tolist() == [0, 3, 4, 9]
    assert shared.order.tolist() == [0, 4, 5, 6]
    assert unfold(shared, 5) == written(tiers)
    own = tiers.layout()
    assert own.rows.tolist() == [4, 0, 1, 7, 13, 11, 12, 10, 14]
    assert all(map(torch.equal, own[1:], shared[1:]))


def test_rankings_with_a_rest():
    tiers = Tiers.from_rankings(RANKINGS, items=5, rest="last")
    own = tiers.layout()
    assert own.rows is None
    assert unfold(own, 15) == [
        [[4], [0, 1], [2, 3]],
        [[7], [5, 6, 8, 9]],
        [[13, 11], [12], [10, 14]],  # names every item: its last tier is the one written last
    ]
    shared = tiers.layout(per_list=False)
    assert shared.rows.tolist() == tiers.items.tolist()
    assert shared.order.tolist() == list(range(9))
    assert torch.equal(shared.tier_offsets, tiers.tier_offsets)
    assert torch.equal(shared.list_offsets, tiers.list_offsets)


def test_it_is_made_once():
    tiers = Tiers.from_rankings(RANKINGS, items=5)
    assert tiers.layout() is tiers.layout(per_list=True)
    assert tiers.layout(False) is tiers.layout(per_list=False)
    assert tiers.layout() is not tiers.layout(False)
    rows = Tiers.from_labels([1, 0])
    assert rows.layout() is rows.layout(per_list=False)


@pytest.mark.parametrize("per_list", [True, False])
@pytest.mark.parametrize(
    "empty",
    [
        Tiers.from_labels([]),
        Tiers.from_labels(np.zeros((0, 3))),
        Tiers.from_rankings([], items=3),
        Tiers.from_rankings([], items=3, rest="last"),
        Tiers.from_positives(sparse.csr_array((0, 3))),
    ],
)
def test_of_no_lists(empty, per_list):
    layout = empty.layout(per_list)
    assert layout.row_offsets.tolist() == [0]
    assert layout.order.tolist() == []
    assert layout.tier_offsets.tolist() == [0]
    assert layout.list_offsets.tolist() == [0]


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_large_one_agrees_with_the_tiers(shuffled):
    rng = np.random.default_rng(0)
    n = 100_000
    qid = np.repeat(np.arange(n // 20), 20)
    qid = rng.permutation(qid) if shuffled else qid
    tiers = Tiers.from_labels(rng.integers(0, 4, n), qid=qid)
    layout = tiers.layout()
    rows = torch.arange(n) if layout.rows is None else layout.rows
    last = tiers.list_offsets[1:] - 1
    upper = torch.ones(len(tiers.tier_sizes), dtype=torch.bool)
    upper[last] = False
    keep = upper.repeat_interleave(tiers.tier_sizes)
    assert torch.equal(rows[layout.order], tiers.items[keep])
    assert torch.equal(layout.row_offsets.diff(), tiers.lengths)
    assert (layout.rows is None) == (not shuffled)
