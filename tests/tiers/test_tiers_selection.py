"""Slices and sums: a part is what the part of the data would have built."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tierrank.tiers import Tiers


def selections(n):
    """Ways to select from n lists, each with the numbers that it means; no list twice."""
    numbers = st.permutations(range(n)).flatmap(
        lambda p: st.integers(0, n).map(lambda k: np.array(p[:k], dtype=np.int64))
    )
    flags = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda f: np.array(f, dtype=bool))
    return st.one_of(
        st.integers(-n, n - 1),
        st.slices(n),
        numbers,
        numbers.map(lambda a: a - n),
        numbers.map(torch.from_numpy),
        numbers.map(lambda a: a.tolist()),
        flags,
        flags.map(torch.from_numpy),
    )


def numbers(selection, n):
    selection = selection.numpy() if isinstance(selection, torch.Tensor) else selection
    selection = np.array(selection, dtype=int) if isinstance(selection, list) else selection
    return np.atleast_1d(np.arange(n)[selection])


def same(one, two):
    """Equal, and in the same order inside the tiers as well."""
    return one == two and torch.equal(one.items, two.items)


@st.composite
def rows_and_selection(draw):
    qid = np.array(draw(st.lists(st.integers(0, 5), min_size=1, max_size=20)))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=len(qid), max_size=len(qid))))
    return labels, qid, draw(selections(len(set(qid.tolist()))))


@given(rows_and_selection())
def test_selected_rows_build_the_selected_lists(data):
    labels, qid, selection = data
    tiers = Tiers.from_labels(labels, qid=qid)
    rows = tiers.rows(selection).numpy()
    chosen = tiers.keys[numbers(selection, len(tiers))]
    assert rows.tolist() == [i for key in chosen for i in np.flatnonzero(qid == key)]
    assert same(tiers[selection], Tiers.from_labels(labels[rows], qid=qid[rows]))
    assert tiers[selection].keys.tolist() == chosen.tolist()


@st.composite
def padded_and_selection(draw):
    n, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    labels = draw(st.lists(st.integers(0, 3), min_size=n * width, max_size=n * width))
    mask = draw(st.lists(st.booleans(), min_size=n * width, max_size=n * width))
    mask = np.array(mask).reshape(n, width)
    mask[:, 0] |= ~mask.any(axis=1)
    return np.array(labels).reshape(n, width), mask, draw(selections(n))


@given(padded_and_selection())
def test_selected_padded_rows_build_the_selected_lists(data):
    labels, mask, selection = data
    tiers = Tiers.from_labels(labels, mask=mask)[selection]
    chosen = numbers(selection, len(labels))
    assert same(tiers, Tiers.from_labels(labels[chosen], mask=mask[chosen]))


@given(padded_and_selection())
def test_selected_rows_of_a_matrix_build_the_selected_lists(data):
    labels, mask, selection = data
    matrix = sparse.csr_array(labels * mask)
    chosen = numbers(selection, len(labels))
    assert same(Tiers.from_positives(matrix)[selection], Tiers.from_positives(matrix[chosen]))


@given(selections(4))
def test_selected_rankings_keep_the_catalogue(selection):
    rankings = [["a", ("b", "c")], ["d"], [("c", "d"), "a", "b"], ["b", "a"]]
    tiers = Tiers.from_rankings(rankings)
    chosen = [rankings[i] for i in numbers(selection, 4)]
    assert same(tiers[selection], Tiers.from_rankings(chosen, items=tiers.names))


def test_a_list_may_be_taken_twice():
    tiers = Tiers.from_labels([1, 0, 5, 2], qid=["a", "b", "a", "b"])
    twice = tiers[[0, 0]]
    assert twice.keys.tolist() == ["a", "a"]
    assert twice.to_rankings() == [[1, 0], [3, 2]]
    assert tiers.rows([0, 0]).tolist() == [0, 2, 0, 2]


def test_lists_can_be_iterated():
    tiers = Tiers.from_labels([1, 0, 5, 2], lengths=[2, 2])
    assert [one.to_rankings() for one in tiers] == [[[0, 1]], [[0, 1]]]


@pytest.mark.parametrize(
    "selection", [2, -3, [0, 2], np.array([-3]), [True], [True, False, True], 1.0, [0.5], True,
                  "a", None, np.True_, torch.tensor([0.0]), [[0]], torch.zeros(1, 1).long()]
)  # fmt: skip
def test_what_is_not_there_is_an_index_error(selection):
    tiers = Tiers.from_labels([1, 0], lengths=[1, 1])
    with pytest.raises(IndexError, match="list"):
        tiers[selection]
    with pytest.raises(IndexError, match="list"):
        tiers.rows(selection)


def test_rows_are_for_flat_labels():
    with pytest.raises(ValueError, match=r"scores\[selection\]"):
        Tiers.from_labels([[1, 0]]).rows(0)
    with pytest.raises(ValueError, match=r"scores\[selection\]"):
        Tiers.from_rankings([["a"]]).rows(0)


@given(rows_and_selection(), rows_and_selection())
def test_concatenated_rows(one, two):
    parts = [Tiers.from_labels(y, qid=q) for y, q, _ in (one, two)]
    together = Tiers.from_labels(
        np.concatenate([one[0], two[0]]), qid=np.concatenate([one[1], two[1] + 100])
    )
    joined = Tiers.concat(parts)
    assert torch.equal(joined.items, together.items)
    assert torch.equal(joined.tier_offsets, together.tier_offsets)
    assert torch.equal(joined.list_offsets, together.list_offsets)
    assert joined.score_shape == together.score_shape
    assert joined.keys.tolist() == parts[0].keys.tolist() + parts[1].keys.tolist()


@given(padded_and_selection(), st.integers(0, 5))
def test_the_two_parts_of_a_cut_make_the_whole_again(data, cut):
    labels, mask, _ = data
    flat = Tiers.from_labels(labels[mask], lengths=mask.sum(axis=1))
    named = Tiers.from_rankings([["a", ("b", "c")], ["c"], ["b", "a"]], rest="last")
    for tiers in (Tiers.from_labels(labels, mask=mask), flat, named):
        assert same(Tiers.concat([tiers[:cut], tiers[cut:]]), tiers)
        assert same(Tiers.concat(iter([tiers])), tiers)


def test_keys_stay_only_if_all_parts_have_them():
    with_words = Tiers.from_labels([1, 0], qid=["a", "b"])
    with_numbers = Tiers.from_labels([1, 0], qid=[1, 2])
    assert Tiers.concat([with_words, with_numbers]).keys.tolist() == ["a", "b", 1, 2]
    assert Tiers.concat([with_words, Tiers.from_labels([1])]).keys is None


ROWS = Tiers.from_labels([1, 0])
PADDED = Tiers.from_labels([[1, 0]])
NAMED = Tiers.from_rankings([["a", "b"]])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "nothing to concatenate"),
        ([ROWS, PADDED], "part 0 has flat rows and part 1 has padded rows"),
        ([ROWS, ROWS, NAMED], "part 0 has flat rows and part 2 has catalogue items"),
        ([PADDED, Tiers.from_labels([[1, 0, 2]])], "width 2 and part 1 3: pad the labels"),
        ([NAMED, Tiers.from_rankings([["a", "c"]])], "different catalogues"),
        ([NAMED, Tiers.from_rankings([[0]], items=2)], "different catalogues"),
        ([NAMED, Tiers.from_rankings([["a", "b"]], rest="last")], "with the same rest="),
        ([ROWS, ROWS.to("meta")], "part 0 is on cpu and part 1 on meta"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Tiers.concat(parts)


def test_half_of_a_large_table():
    rng = np.random.default_rng(0)
    qid, labels = rng.integers(0, 4000, 200_000), rng.integers(0, 4, 200_000)
    tiers = Tiers.from_labels(labels, qid=qid)
    rows = tiers.rows(slice(None, None, -2)).numpy()
    assert same(tiers[::-2], Tiers.from_labels(labels[rows], qid=qid[rows]))
