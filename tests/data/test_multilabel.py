"""Multi-label data: what the container holds, refuses and counts."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from tierrank.data import MultiLabelData

X = np.array([[0.5, 0, 2], [0, 0, 0], [1, 0, 0]])
Y = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


@pytest.fixture
def data():
    return MultiLabelData(sp.csr_matrix(X), sp.csr_matrix(Y))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint16, np.bool_])
def test_any_sparse_matrix_becomes_a_canonical_csr_of_float32(kind, dtype):
    given = sp.csr_matrix(Y.astype(dtype))
    data = MultiLabelData(given.asformat(kind), sp.csr_array(given).asformat(kind))
    for matrix in (data.X, data.Y):
        assert type(matrix) is sp.csr_matrix
        assert matrix.has_canonical_format
        assert (matrix.dtype, matrix.indices.dtype) == (np.float32, np.int32)
        np.testing.assert_array_equal(matrix.toarray(), Y)


def test_dense_arrays_may_be_given_too():
    data = MultiLabelData(X, Y.tolist())
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


def test_what_is_canonical_is_shared_and_what_is_not_stays_as_it_was():
    fine = sp.csr_matrix(X.astype(np.float32))
    assert np.shares_memory(MultiLabelData(fine, fine).X.data, fine.data)
    indices = np.array([2, 0, 2])
    messy = sp.csr_matrix((np.array([1.0, 5, 2]), indices, np.array([0, 3])), shape=(1, 3))
    data = MultiLabelData(messy, messy)
    assert data.X.toarray().tolist() == [[5, 0, 3]]
    assert messy.indices.tolist() == [2, 0, 2]
    assert messy.data.tolist() == [1, 5, 2]


def test_sums_of_small_integers_do_not_overflow():
    twice = sp.coo_matrix((np.array([200, 100], np.uint8), ([0, 0], [1, 1])), shape=(1, 2))
    assert MultiLabelData(twice, twice).Y.toarray().tolist() == [[0, 300]]


def test_an_irrelevant_label_is_not_stored_but_a_feature_of_0_is():
    zeros = sp.csr_matrix((np.array([0.0, 3]), [0, 1], [0, 1, 2]), shape=(2, 2))
    data = MultiLabelData(zeros, zeros)
    assert (data.X.nnz, data.Y.nnz, zeros.nnz) == (2, 1, 2)
    assert data.Y.toarray().tolist() == [[0, 0], [0, 3]]


def test_sizes_and_counts(data):
    assert (len(data), data.n_rows, data.n_features, data.n_labels) == (3, 3, 3, 4)
    assert data.describe()._asdict() == {
        "rows": 3, "features": 3, "labels": 4, "features_a_row": 1.0, "labels_a_row": 1.0,
        "rows_a_label": 0.75, "rows_without_feature": 1, "rows_without_label": 1,
        "labels_never_seen": 2,
    }  # fmt: skip
    assert repr(data) == (
        "MultiLabelData(3 rows, 3 features, 4 labels; 1.0 features and 1.0 labels a row)"
    )
    nothing = MultiLabelData(np.zeros((0, 1)), np.zeros((0, 0)))
    assert repr(nothing).startswith("MultiLabelData(0 rows, 1 feature, 0 labels; 0.0 features")
    assert nothing.describe().rows_a_label == 0


def test_it_cannot_be_changed(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = None


def test_the_labels_of_a_row_stand_over_the_rest(data):
    tiers = data.tiers()
    assert len(tiers) == 3
    assert str(tiers).splitlines()[1] == "  list 0: {0, 1} > the other 2"


@pytest.mark.parametrize(
    "rows",
    [[2, 0], (2, 0), np.array([2, 0], np.uint8), [2, 2, 1], [], [False, True, True]],
)
def test_rows_are_selected_by_number_or_mask(data, rows):
    some = data.select(rows)
    wanted = np.asarray(rows, dtype=bool if True in rows and 2 not in rows else int)
    np.testing.assert_array_equal(some.X.toarray(), X[wanted])
    np.testing.assert_array_equal(some.Y.toarray(), Y[wanted])
    assert (some.n_features, some.n_labels) == (3, 4)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 3], r"rows\[1\] is 3, but there are 3 rows, counted from 0"),
        ([-1], r"rows\[0\] is -1"),
        ([True, False], "2 booleans for 3 rows"),
        ([[0]], r"rows has shape \(1, 1\)"),
        ([0.0], "type float64"),
        (1, r"rows has shape \(\)"),
    ],
)
def test_rows_that_are_not_there_are_refused(data, rows, message):
    with pytest.raises(ValueError, match=message):
        data.select(rows)


def _broken(name):
    matrix = sp.csr_matrix(np.eye(3, dtype=np.float32))
    if name == "negative":
        matrix.indices[1] = -1
    elif name == "outside":
        matrix.indices[1] = 3
    else:
        matrix.indptr[1] = 3
    return matrix


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": X[:2]}, "X has 2 rows, but Y has 3"),
        ({"X": X[0]}, r"X has shape \(3,\)"),
        ({"Y": Y * 1j}, "Y is of type complex128"),
        ({"X": X.astype(object)}, "X is of type object"),
        ({"X": np.where(X == 2, np.nan, X)}, "X has nan at row 0, column 2"),
        ({"X": sp.csr_matrix(np.where(X == 1, -np.inf, X))}, "X has -inf at row 2, column 0"),
        ({"X": sp.csr_matrix(X * 1e300)}, r"X has 5e\+299 at row 0, column 0: .* float32"),
        ({"X": sp.csc_matrix(X * 1e300)}, "X has inf at row 0, column 0"),
        ({"Y": np.where(Y, -0.5, 0)}, "Y has -0.5 at row 0, label 0"),
        ({"X": _broken("negative")}, "X is no valid sparse matrix"),
        ({"Y": _broken("outside")}, "Y is no valid sparse matrix"),
        ({"Y": _broken("ends")}, "Y is no valid sparse matrix"),
    ],
)
def test_bad_matrices_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelData(**({"X": X, "Y": Y} | changed))
