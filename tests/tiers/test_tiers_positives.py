"""Tiers from a sparse matrix: what is set over all the rest, and never a dense array."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tierrank.tiers import Tiers


def positives_by_hand(dense):
    return [[tuple(np.flatnonzero(row).tolist())] if row.any() else [] for row in dense]


def as_ties(tiers):
    return [[t if isinstance(t, tuple) else (t,) for t in one] for one in tiers.to_rankings()]


DENSE = st.tuples(st.integers(0, 5), st.integers(1, 6)).flatmap(
    lambda shape: st.lists(
        st.sampled_from([0, 0, 1, 3]), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    ).map(lambda flat: np.array(flat, dtype=np.int64).reshape(shape))
)


@given(
    DENSE,
    st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]),
    st.sampled_from([bool, np.int8, np.uint16, np.float32, np.float64]),
    st.booleans(),
)
def test_any_format_and_type_gives_the_same_lists(dense, form, dtype, old_style):
    matrix = (sparse.coo_matrix if old_style else sparse.coo_array)(dense.astype(dtype))
    tiers = Tiers.from_positives(matrix.asformat(form))
    assert as_ties(tiers) == positives_by_hand(dense)
    assert (tiers.n_items, tiers.rest, tiers.names) == (dense.shape[1], True, None)
    found = (dense > 0).sum(axis=1)
    assert tiers.lengths.tolist() == found.tolist()
    both = (found > 0) & (found < dense.shape[1])
    assert tiers.n_tiers.tolist() == (1 + both).tolist()


@pytest.mark.parametrize("convert", ["to_sparse_csr", "to_sparse_csc", "to_sparse_coo"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_sparse_tensors(convert, dtype):
    dense = torch.tensor([[0, 1, 0], [0, 0, 0], [2, 0, 1]], dtype=dtype)
    tiers = Tiers.from_positives(getattr(dense, convert)())
    assert as_ties(tiers) == [[(1,)], [], [(0, 2)]]


def test_a_row_that_sets_everything_has_one_tier():
    tiers = Tiers.from_positives(sparse.csr_array([[1, 1], [1, 0], [0, 0]]))
    assert tiers.n_tiers.tolist() == [1, 2, 1]


def test_what_is_stored_twice_is_summed_and_stored_zeros_are_none():
    values = np.array([1, 1, 0, 100, 100, 2, -2], dtype=np.int8)
    rows, columns = [0, 0, 0, 1, 1, 1, 1], [2, 2, 1, 0, 0, 3, 3]
    indptr = [0, 3, 7]
    csr = sparse.csr_array((values, np.array(columns), np.array(indptr)), shape=(2, 4))
    csc = sparse.csc_array((values, np.array(columns), np.array(indptr)), shape=(4, 2)).T
    coo = sparse.coo_array((values, (rows, columns)), shape=(2, 4))
    bsr = sparse.bsr_array((values[:, None, None], np.array(columns), np.array(indptr)))
    for matrix in (csr, csc, coo, bsr):
        assert as_ties(Tiers.from_positives(matrix)) == [[(2,)], [(0,)]]
        assert matrix.data.ravel().tolist() == values.tolist()  # not changed
    index = torch.tensor([rows, columns])
    tensor = torch.sparse_coo_tensor(index, torch.from_numpy(values), (2, 4), check_invariants=True)
    assert as_ties(Tiers.from_positives(tensor)) == [[(2,)], [(0,)]]


def test_the_matrix_of_the_user_stays_as_it_is():
    values, columns, starts = np.array([1.0, 0.0, 1.0]), np.array([3, 2, 1]), np.array([0, 3])
    matrix = sparse.csr_array((values, columns, starts), shape=(1, 4), copy=True)
    tiers = Tiers.from_positives(matrix)
    assert matrix.indices.tolist() == [3, 2, 1]
    assert matrix.data.tolist() == [1, 0, 1]
    matrix.indices[:] = 0
    assert tiers.items.tolist() == [1, 3]
    sorted_already = sparse.csr_array(np.eye(3, dtype=np.int64))
    sorted_already.indices = sorted_already.indices.astype(np.int64)
    tiers = Tiers.from_positives(sorted_already)
    sorted_already.indices[:] = 0
    assert tiers.items.tolist() == [0, 1, 2]


def test_a_million_by_a_million_is_no_trouble():
    rng = np.random.default_rng(0)
    n = 1_000_000
    rows, columns = rng.integers(0, n, 200_000), rng.integers(0, n, 200_000)
    matrix = sparse.coo_array((np.ones(200_000, dtype=np.float32), (rows, columns)), shape=(n, n))
    tiers = Tiers.from_positives(matrix)
    assert len(tiers) == tiers.n_items == n
    assert int((tiers.n_tiers == 2).sum()) == len(np.unique(rows))


def test_round_trip_by_rankings():
    tiers = Tiers.from_positives(sparse.csr_array([[0, 1, 1], [0, 0, 0], [1, 1, 1]]))
    assert Tiers.from_rankings(tiers.to_rankings(), items=3, rest="last") == tiers


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (sparse.csr_array([[0, 1.0], [float("nan"), 0]]), "row 1, column 0: the value is nan"),
        (sparse.csr_array([[0, -2], [1, 0]]), "row 0, column 1: the value is -2"),
        (sparse.csr_array([[0, float("inf")]]), "row 0, column 1: the value is inf"),
        (sparse.coo_array(([1.0, -3.0], ([1, 1], [2, 2])), shape=(2, 3)), "row 1, column 2: .*-2"),
        (sparse.csr_array([[1j]]), "real numbers or booleans"),
        (sparse.csr_array((2, 0)), "the matrix has no columns"),
        (np.eye(2), "takes a sparse matrix, not ndarray"),
        (torch.eye(2), "takes a sparse matrix, not Tensor"),
        ([[0, 1]], "takes a sparse matrix, not list"),
        (sparse.coo_array(np.array([0, 1, 0])), r"must be \[lists, items\]"),
        (torch.zeros(2, 2, 2).to_sparse(), "is not a sparse"),
    ],
)
def test_bad_input_is_refused_and_the_message_says_where(matrix, message):
    with pytest.raises(ValueError, match=message):
        Tiers.from_positives(matrix)
