"""Tiers from labels: what a row's label and list say is what comes out, however it is passed."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tierrank import metrics
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import stable_order


def tiers_by_hand(labels, lists):
    """[[[row, ...] for each tier] for each list], in plain Python."""
    result = []
    for name in dict.fromkeys(lists):
        rows = [i for i, other in enumerate(lists) if other == name]
        grades = sorted({labels[i] for i in rows}, reverse=True)
        result.append([[i for i in rows if labels[i] == grade] for grade in grades])
    return result


def written(tiers):
    items = tiers.items.tolist()
    borders, lists = tiers.tier_offsets.tolist(), tiers.list_offsets.tolist()
    every = [items[a:b] for a, b in itertools.pairwise(borders)]
    return [every[a:b] for a, b in itertools.pairwise(lists)]


LABELS = st.one_of(
    st.integers(0, 4),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 3, width=16),
    st.booleans(),
)


@given(
    st.lists(st.tuples(LABELS, st.integers(-3, 3)), max_size=20),
    st.sampled_from([int, str, float, lambda q: (q, "x")]),
)
def test_rows_with_a_qid_become_the_lists_and_tiers_that_the_labels_say(pairs, name):
    labels, qid = [label for label, _ in pairs], [name(q) for _, q in pairs]
    as_array = np.empty(len(qid), dtype=object)
    as_array[:] = qid
    values = np.array([float(label) for label in labels])
    tiers = Tiers.from_labels(values, qid=as_array)
    assert written(tiers) == tiers_by_hand(values.tolist(), qid)
    assert list(tiers.keys) == list(dict.fromkeys(qid))
    assert tiers.score_shape == (len(labels),)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 3)), max_size=20))
def test_integer_labels_are_compared_exactly_however_large(pairs):
    labels, qid = [label for label, _ in pairs], [q for _, q in pairs]
    tiers = Tiers.from_labels(np.array(labels, dtype=np.int64), qid=np.array(qid, dtype=np.int64))
    assert written(tiers) == tiers_by_hand(labels, qid)


def test_unsigned_labels_beyond_int64():
    labels = np.array([2**64 - 1, 0, 2**64 - 1, 2**64 - 2], dtype=np.uint64)
    assert written(Tiers.from_labels(labels)) == [[[0, 2], [3], [1]]]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=6))
def test_lengths_are_consecutive_rows(lists):
    flat = [label for one in lists for label in one]
    tiers = Tiers.from_labels(flat, lengths=[len(one) for one in lists])
    number = [i for i, one in enumerate(lists) for _ in one]
    assert written(tiers) == tiers_by_hand(flat, number)
    assert tiers.keys is None
    assert tiers == Tiers.from_labels(
        flat, lengths=torch.tensor([len(one) for one in lists]).long()
    )


@pytest.mark.parametrize(
    "qid",
    [
        [1, "1", 1, 2],
        (1, "1", 1, b"1"),
        [2**53, 2**53 + 1, 1.5, 2**53],
        [-1, 2**63, 2**63 + 1, -1],
        ["a", "b", "a", "c"],
        [0.5, 1.5, 0.5, 2.5],
    ],
)
def test_keys_in_a_list_are_as_distinct_as_python_holds_them(qid):
    """Of a list of several types, numpy makes strings or floats, in which some become equal."""
    labels, scores = [0, 1, 1, 0], [4.0, 3.0, 2.0, 1.0]
    tiers = Tiers.from_labels(labels, qid=qid)
    assert list(tiers.keys) == list(dict.fromkeys(qid))
    assert written(tiers) == tiers_by_hand(labels, list(qid))
    assert len(metrics.ndcg(scores, labels, qid=qid, reduction="none")) == len(set(qid))


@pytest.mark.parametrize("absent", [None, math.nan])
def test_a_key_that_is_missing_among_words_is_no_word(absent):
    with pytest.raises(ValueError, match=r"qid\[1\] is missing"):
        Tiers.from_labels([0, 1, 2], qid=["a", absent, "a"])
    with pytest.raises(ValueError, match=r"qid\[1\] is missing"):
        metrics.ndcg([1.0, 2.0, 3.0], [0, 1, 2], qid=["a", absent, "a"])


def test_without_qid_and_lengths_all_rows_are_one_list():
    assert written(Tiers.from_labels([1, 3, 1])) == [[[1], [0, 2]]]


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.lists(
                st.one_of(st.none(), st.integers(0, 3)), min_size=width, max_size=width
            ).filter(any_real),
            min_size=1,
            max_size=6,
        )
    )
)
def test_padded_lists_with_holes_anywhere(rows):
    width = len(rows[0])
    labels = np.array([[np.nan if x is None else x for x in row] for row in rows])
    tiers = Tiers.from_labels(labels, mask=~np.isnan(labels))
    expected = []
    for number, row in enumerate(rows):
        grades = sorted({x for x in row if x is not None}, reverse=True)
        expected.append(
            [[number * width + j for j, x in enumerate(row) if x == grade] for grade in grades]
        )
    assert written(tiers) == expected
    assert tiers.score_shape == labels.shape


def any_real(row):
    return any(x is not None for x in row)


def test_padded_lists_without_a_mask():
    tiers = Tiers.from_labels([[0, 1], [2, 2]])
    assert written(tiers) == [[[1], [0]], [[2, 3]]]


def test_padding_that_is_named_by_its_label_is_no_item():
    labels = np.array([[2, -1, 0, 1], [0, 1, -1, -1]])
    padded = Tiers.from_labels(labels, ignore_label=-1)
    assert padded == Tiers.from_labels(labels, mask=labels >= 0)
    assert padded == Tiers.from_labels(padded.to_labels(), ignore_label=-1)
    both = Tiers.from_labels(labels, ignore_label=-1, mask=labels != 1)
    assert both == Tiers.from_labels(labels, mask=(labels == 0) | (labels == 2))
    other = Tiers.from_labels(torch.tensor([[3.0, 7.5], [7.5, 1.0]]), ignore_label=7.5)
    assert other.to_rankings() == [[0], [3]]


@pytest.mark.parametrize(
    ("labels", "mask", "expected"),
    [
        ([[1, 0, -1]], [[True, True, True]], [[0, 1, 2]]),  # a mask says that all are real
        ([[1, -1, -2]], None, [[0, 1, 2]]),  # nobody pads with two numbers
        ([[1.0, -1.0, -0.5]], None, [[0, 2, 1]]),
        ([[-1, -1]], None, [[(0, 1)]]),
        ([1, 0, -1], None, [[0, 1, 2]]),  # flat rows have no padding
    ],
)
def test_minus_one_is_a_label_where_it_cannot_be_padding(labels, mask, expected):
    assert Tiers.from_labels(labels, mask=mask).to_rankings() == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int8])
def test_tensors_of_any_type(dtype):
    labels = torch.tensor([1, 0, 2, 0], dtype=dtype)
    qid = torch.tensor([5, 5, 3, 3])
    tiers = Tiers.from_labels(labels, qid=qid)
    assert written(tiers) == [[[0], [1]], [[2], [3]]]
    assert tiers.keys.tolist() == [5, 3]


@pytest.mark.parametrize("make", [list, np.array, torch.tensor])
def test_flags_are_labels(make):
    assert written(Tiers.from_labels(make([False, True, False]))) == [[[1], [0, 2]]]


def test_a_tensor_that_needs_a_gradient_is_no_obstacle():
    labels = torch.tensor([1.0, 0.0], requires_grad=True)
    assert written(Tiers.from_labels(labels)) == [[[0], [1]]]


def test_pandas_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": [1, 0, 2], "q": ["b", "b", "a"]}, index=[7, 8, 9])
    tiers = Tiers.from_labels(frame["y"], qid=frame["q"])
    assert written(tiers) == [[[0], [1]], [[2]]]
    assert list(tiers.keys) == ["b", "a"]
    nullable = Tiers.from_labels(frame["y"].astype("Int64"), qid=frame["q"].astype("category"))
    assert nullable == tiers
    with pytest.raises(ValueError, match=r"labels\[1\] is NaN"):
        Tiers.from_labels(pd.Series([1, None, 2], dtype="Int64"))
    with pytest.raises(ValueError, match=r"labels\[0\] is NaN"):
        Tiers.from_labels(pd.Series([None, True], dtype="boolean"))
    with pytest.raises(ValueError, match=r"qid\[2\] is missing"):
        Tiers.from_labels(frame["y"], qid=pd.Series(["a", "b", pd.NA], dtype=object))


@pytest.mark.parametrize(
    "qid",
    [
        np.array(["2020-01-02", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        np.array([0.5, -1.0, 0.5]),
        np.array([True, False, True]),
        np.array([b"x", b"a", b"x"]),
        np.array([2**64 - 1, 0, 2**64 - 1], dtype=np.uint64),
        np.array([10**15, -(10**15), 10**15]),
        [("a", 1), ("a", 2), ("a", 1)],
    ],
)
def test_any_qid_that_can_be_told_apart(qid):
    if isinstance(qid, list):  # numpy would make two columns of the tuples
        qid, names = np.empty(3, dtype=object), qid
        qid[:] = names
    tiers = Tiers.from_labels([0, 0, 1], qid=qid)
    assert written(tiers) == [[[2], [0]], [[1]]]
    assert list(tiers.keys) == [qid[0], qid[1]]
    assert tiers.keys.dtype == qid.dtype


def test_nothing_at_all_is_an_empty_tiers():
    assert len(Tiers.from_labels([])) == 0
    assert len(Tiers.from_labels([], qid=[])) == 0
    assert len(Tiers.from_labels([], lengths=[])) == 0
    assert Tiers.from_labels(np.zeros((0, 4))).score_shape == (0, 4)


def test_the_labels_of_the_user_stay_as_they_are():
    labels, qid = np.array([1, 0, 2]), np.array([1, 0, 1])
    tiers = Tiers.from_labels(labels, qid=qid)
    labels[:], qid[:] = 0, 0
    assert written(tiers) == [[[2], [0]], [[1]]]
    assert tiers.keys.tolist() == [1, 0]


@given(st.lists(st.integers(0, 5), max_size=20), st.sampled_from([6, 1 << 62]))
def test_the_order_of_equal_keys_is_kept_for_any_number_of_keys(keys, n_keys):
    order = stable_order(np.array(keys, dtype=np.int64), n_keys)
    expected = np.argsort(np.array(keys, dtype=np.int64), kind="stable").tolist()
    assert (expected if order is None else order.tolist()) == expected


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("kind", ["grades", "continuous", "wide"])
def test_a_large_table_agrees_with_a_sort_by_numpy(shuffled, kind):
    rng = np.random.default_rng(0)
    n = 200_000
    labels = {
        "grades": rng.integers(0, 5, n),
        "continuous": rng.normal(size=n).round(2),
        "wide": rng.integers(-(2**60), 2**60, n),
    }[kind]
    qid = np.repeat(np.arange(n // 50), 50)
    if shuffled:
        qid = rng.permutation(qid)
    tiers = Tiers.from_labels(labels, qid=qid)
    rank = {key: i for i, key in enumerate(tiers.keys.tolist())}
    lists = np.array([rank[q] for q in qid.tolist()])
    assert np.array_equal(tiers.items.numpy(), np.lexsort((np.arange(n), -labels, lists)))
    assert int(tiers.lengths.min()) == int(tiers.lengths.max()) == 50


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, NAN, 1]}, r"labels\[1\] is NaN .* leave the row out"),
        ({"labels": [0, 1, -INF]}, r"labels\[2\] is infinite"),
        ({"labels": [1, None]}, r"labels\[1\] is NaN"),
        ({"labels": [[0, 1], [NAN, 1]]}, r"labels\[1, 0\] is NaN .* mask it out"),
        (
            {"labels": [[NAN, 1], [0, NAN]], "mask": [[False, True], [True, True]]},
            r"labels\[1, 1\] is NaN",
        ),
        ({"labels": ["a", "b"]}, "labels must be integers, floats or booleans"),
        ({"labels": [1j]}, "labels must be integers"),
        ({"labels": np.array([object()])}, "labels must be numbers"),
        ({"labels": [[1, 2], [3]]}, "labels cannot be read as an array"),
        ({"labels": 3}, r"labels have shape \(\)"),
        ({"labels": np.zeros((2, 2, 2))}, r"labels have shape \(2, 2, 2\)"),
        ({"labels": [1, 2], "qid": [1, 2], "lengths": [2]}, "give one of them"),
        ({"labels": [1, 2], "qid": [1]}, r"qid has shape \(1,\), but there are 2 labels"),
        ({"labels": [1, 2], "qid": [[1], [1]]}, "give one qid a row"),
        ({"labels": [1, 2], "qid": [1, NAN]}, r"qid\[1\] is missing"),
        ({"labels": [1, 2], "qid": [None, "a"]}, r"qid\[0\] is missing"),
        ({"labels": [1, 2], "qid": np.array([{}, {}])}, "qid must be hashable"),
        ({"labels": [1, 2], "qid": np.array(["NaT", 0], "datetime64[s]")}, r"qid\[0\] is missing"),
        ({"labels": [1, 2], "lengths": [3, -1]}, r"lengths\[1\] = -1 is negative"),
        ({"labels": [1, 2], "lengths": [2, 0]}, r"lengths\[1\] = 0 is an empty list"),
        ({"labels": [1, 2], "lengths": [1]}, "sum to 1, but there are 2 labels"),
        ({"labels": [1, 2], "lengths": [1.0, 1.0]}, "lengths must be 1-D integers"),
        ({"labels": [1, 2], "lengths": 2}, "lengths must be 1-D integers"),
        ({"labels": [1, 2], "mask": [True, True]}, "mask is for 2-D labels"),
        ({"labels": [1, -1], "ignore_label": -1}, "ignore_label is for 2-D labels"),
        ({"labels": [[1, -1]], "ignore_label": "x"}, "ignore_label is the label of padding"),
        (
            {"labels": [[1, 0, -1], [2, -1, -1]]},
            r"labels\[0, 2\] is -1 \(3 such labels .* ignore_label=-1, or give mask=",
        ),
        ({"labels": torch.tensor([[1.0, 0.5], [0.0, -1.0]])}, r"labels\[1, 1\] is -1 .* padding"),
        (
            {"labels": [[1, 0], [-1, -1]], "ignore_label": -1},
            r"labels\[1\]: the list has no items \(all are masked\)",
        ),
        ({"labels": [[1, 2]], "qid": [1]}, "qid and lengths have no place"),
        ({"labels": [[1, 2]], "lengths": [2]}, "qid and lengths have no place"),
        ({"labels": [[1, 2]], "mask": [[True]]}, r"mask must be boolean .* \(1, 2\)"),
        ({"labels": [[1, 2]], "mask": [[1, 1]]}, "mask must be boolean"),
        (
            {"labels": [[1, 2], [3, 4]], "mask": [[True, True], [False, False]]},
            r"labels\[1\]: the list has no items \(all are masked\)",
        ),
        ({"labels": np.zeros((2, 0))}, r"labels\[0\]: the list has no items"),
    ],
)
def test_bad_input_is_refused_and_the_message_says_where(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tiers.from_labels(**arguments)
