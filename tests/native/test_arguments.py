"""What the compiled core is given is checked before it is followed: an error, never a crash."""

import numpy as np
import pytest

from tierrank import _native


def integers(*values):
    return np.array(values, dtype=np.int64)


def letor_arrays(rows, entries):
    return {
        "labels": np.empty(rows),
        "qids": np.empty(rows, dtype=np.int64),
        "spans": np.empty((rows, 3), dtype=np.int64),
        "comments": np.empty((0, 2), dtype=np.int64),
        "row_ends": np.empty(rows + 1, dtype=np.int64),
        "indices": np.empty(entries, dtype=np.int32),
        "values": np.empty(entries),
    }


def xc_arrays(rows, entries, labels):
    return {
        "label_ends": np.empty(rows + 1, dtype=np.int64),
        "labels": np.empty(labels, dtype=np.int32),
        "row_ends": np.empty(rows + 1, dtype=np.int64),
        "indices": np.empty(entries, dtype=np.int32),
        "values": np.empty(entries, dtype=np.float32),
    }


XC = {"start": 0, "with_labels": True, "base": 0, "n_features": 9, "n_labels": 9}


@pytest.mark.parametrize(
    "text", [b"1", b"1 1:2", b"1 qid:3 1:2\n1 qi", b"1 1:nul", b"2 1:in", b"-"]
)
def test_a_text_must_end_with_a_newline(text):
    with pytest.raises(ValueError, match="end with a newline"):
        _native.scan_letor(text, 0.0, **letor_arrays(5, 5))
    with pytest.raises(ValueError, match="end with a newline"):
        _native.scan_xc(text, **XC, **xc_arrays(5, 5, 5))


def test_an_empty_text_has_no_rows():
    assert _native.scan_letor(b"", 0.0, **letor_arrays(0, 0)).rows == 0
    assert _native.scan_xc(b"", **XC, **xc_arrays(0, 0, 0)).rows == 0
    assert _native.tally_xc(b"", 0) == (0, 0, 0)


@pytest.mark.parametrize(("rows", "entries"), [(0, 4), (1, 4), (2, 0), (2, 2)])
def test_arrays_that_are_too_short_for_a_text_are_refused(rows, entries):
    with pytest.raises(ValueError, match="more than there is room for"):
        _native.scan_letor(b"1 1:1 2:2\n2 1:1 2:2\n", 0.0, **letor_arrays(rows, entries))
    with pytest.raises(ValueError, match="more than there is room for"):
        _native.scan_xc(b"1 1:1 2:2\n2 1:1 2:2\n", **XC, **xc_arrays(rows, entries, 2))
    with pytest.raises(ValueError, match="more than there is room for"):
        _native.scan_xc(b"1,2 1:1\n", **XC, **xc_arrays(1, 1, 1))


@pytest.mark.parametrize("start", [-1, 5])
def test_rows_start_inside_of_the_text(start):
    with pytest.raises(ValueError, match="outside of the text"):
        _native.tally_xc(b"1:2\n", start)
    with pytest.raises(ValueError, match="outside of the text"):
        _native.scan_xc(b"1:2\n", **(XC | {"start": start}), **xc_arrays(5, 5, 5))


def test_arrays_of_another_type_are_refused_and_not_filled_as_copies():
    arrays = letor_arrays(1, 1) | {"values": np.empty(1, dtype=np.float32)}
    with pytest.raises(TypeError):
        _native.scan_letor(b"1 1:2\n", 0.0, **arrays)


@pytest.mark.parametrize(("index", "base"), [(0, 1), (3, 0), (-1, 0)])
def test_spreading_stays_inside_of_the_matrix(index, base):
    with pytest.raises(ValueError, match="outside of the matrix"):
        _native.spread(
            integers(0, 1), np.array([index], dtype=np.int32), base, np.ones(1), np.zeros((1, 3))
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"below": integers(2)}, "out of its graph"),
        ({"below": integers(-1)}, "out of its graph"),
        ({"edge_offsets": integers(0, 2, 1)}, "edge_offsets"),
        ({"edge_offsets": integers(0, 1)}, "edge_offsets"),
        ({"node_offsets": integers(0, 3)}, "node_offsets"),
        ({"waiting": integers(0)}, "one number a node"),
    ],
)
def test_edges_stay_inside_of_their_graph(changes, message):
    fields = {
        "node_offsets": integers(0, 2),
        "edge_offsets": integers(0, 1, 1),
        "below": integers(1),
        "waiting": integers(0, 1),
        "order": integers(0, 0),
        "layer": integers(0, 0),
    }
    assert _native.kahn(**fields) == -1
    with pytest.raises(ValueError, match=message):
        _native.kahn(**(fields | {"waiting": integers(0, 1)} | changes))


def codes(counts, categories):
    return {
        "category_counts": np.array(counts, dtype=np.int32),
        "categories": np.array(categories, dtype=np.int32),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": np.array([0, 0, 1], dtype=np.int32)}, "not below it"),
        ({"left": np.array([2, 0, 0], dtype=np.int32)}, "not below it"),
        ({"left": np.array([-1, 0, 0], dtype=np.int32)}, "not below it"),
        ({"feature": np.array([2, 0, 0], dtype=np.int32)}, "column that is not there"),
        ({"tree_offsets": integers(0, 4)}, "tree_offsets"),
        ({"out": np.zeros(3)}, "one score a row"),
        ({"categories": np.zeros(0, np.int32)}, "or neither"),
        (codes([2, 0], [0, 1]), "one entry a node"),
        (codes([2, 0, 0], [0]), "go with the categories"),
        (codes([1, 0, 0], [0, 1]), "go with the categories"),
        (codes([-1, 0, 0], []), "go with the categories"),
        (codes([0, 1, 0], [0]), "go with the categories"),
        (codes([2, 0, 0], [1, 1]), "must rise"),
    ],
)
def test_walks_stay_inside_of_their_forest(changes, message):
    fields = {
        "X": np.array([[0.0, 9.0], [2.0, 9.0]]),
        "tree_offsets": integers(0, 3),
        "feature": np.zeros(3, dtype=np.int32),
        "threshold": np.array([1.0, 0.0, 0.0]),
        "left": np.array([1, 0, 0], dtype=np.int32),
        "missing": np.zeros(3, dtype=np.uint8),
        "default_left": np.zeros(3, dtype=bool),
        "value": np.array([0.0, 5.0, 7.0]),
        "out": np.zeros(2),
    }
    _native.forest_scores(**fields, threads=1)
    assert fields["out"].tolist() == [5.0, 7.0]
    with pytest.raises(ValueError, match=message):
        _native.forest_scores(**(fields | changes), threads=1)


@pytest.mark.parametrize(
    ("indices", "indptr", "message"),
    [([2], [0, 1], "outside"), ([-1], [0, 1], "outside"), ([0], [0, 2], "indptr")],
)
def test_entries_of_a_sparse_matrix_stay_inside_of_it(indices, indptr, message):
    with pytest.raises(ValueError, match=message):
        _native.sparse_forest_scores(
            np.ones(1),
            np.array(indices, dtype=np.int32),
            np.array(indptr, dtype=np.int32),
            2,
            integers(0, 1),
            np.zeros(1, dtype=np.int32),
            np.zeros(1),
            np.zeros(1, dtype=np.int32),
            np.zeros(1, dtype=np.uint8),
            np.zeros(1, dtype=bool),
            np.ones(1),
            np.zeros(1),
            threads=2,
        )


def test_lists_that_do_not_begin_with_the_shortest_need_room_that_is_not_there():
    entries = np.array([0, 1, 2, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="begin with the shortest"):
        _native.nest_lists(
            integers(0, 1),
            integers(0, 3, 4),
            entries,
            *(np.empty(n, dtype=np.int32) for n in (4, 2, 1, 1)),
        )


def test_draws_come_from_a_bit_generator_and_stay_inside():
    generator = np.random.default_rng(0).bit_generator
    fields = {
        "offsets": integers(0, 1),
        "topics": integers([0]),
        "running_weights": np.ones((1, 1)),
        "topic_offsets": integers(0, 1),
        "members": np.zeros(1, dtype=np.int32),
        "running_worths": np.array([0.0, 1.0]),
        "last_place": integers(-1),
        "items": np.empty(1, dtype=np.int32),
        "times": np.empty(1, dtype=np.float32),
    }
    _native.draw_rows(generator.capsule, **fields)
    assert fields["items"].tolist() == [0]
    changes = {
        "a topic that is not there": {"topics": integers([1])},
        "a member that is not there": {"members": np.ones(1, dtype=np.int32)},
        "no members": {"topics": integers([1]), "topic_offsets": integers(0, 1, 1)},
        "places that are not there": {"offsets": integers(0, 2)},
        "beyond the rows": {"last_place": integers(5)},
    }
    for message, change in changes.items():
        with pytest.raises(ValueError, match=message):
            _native.draw_rows(generator.capsule, **(fields | change))


def test_inner_products_stay_inside_of_the_matrix():
    out = np.empty(2)
    Z = np.array([[1.0, 2.0], [3.0, 4.0]])
    _native.inner_products(integers(0, 1, 2), integers(1, 0), Z, out, 1)
    assert out.tolist() == [11.0, 11.0]
    with pytest.raises(ValueError, match="outside"):
        _native.inner_products(integers(0, 1, 2), integers(1, 2), Z, out, 1)
