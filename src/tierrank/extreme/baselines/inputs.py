"""What the baselines are given: features and labels, checked and brought into shape."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from tierrank.training.settings import check_count

Array = np.ndarray[Any, Any]

LARGEST = 1e100  # the squares of larger features may not be finite


def checked_labels(Y: Any, rows: int) -> Any:
    """[rows, labels] CSR of 1.0 where a row has a label: where Y has anything but 0.

    Y itself is not changed.
    """
    if not sparse.issparse(Y) and getattr(Y, "ndim", 2) != 2:
        raise ValueError(f"Y is [rows, labels], best a scipy sparse matrix, not {Y.ndim}-D")
    Y = sparse.csr_matrix(check_array(Y, accept_sparse="csr", input_name="Y"), copy=True)
    if Y.shape[0] != rows:
        raise ValueError(f"Y has {Y.shape[0]:,} rows, but X has {rows:,}: give one for each")
    Y.sum_duplicates()
    Y.eliminate_zeros()
    Y.data = np.ones(Y.nnz)
    if Y.nnz == 0:
        raise ValueError("there is nothing to learn: no row of Y has a label")
    return Y


def checked_k(k: Any, labels: int) -> int:
    """How many labels a row are wanted."""
    check_count("k", k)
    number = operator.index(k)
    if number > labels:
        raise ValueError(f"k is {number}, but the model knows {labels} labels: ask for fewer")
    return number


def prepared(X: Any, *, normalize: bool, intercept: bool) -> Any:
    """X as CSR float64: rows of length 1 if wished, and then a column of ones if wished."""
    rows = sparse.csr_matrix(X, dtype=np.float64)
    if rows.nnz and max(rows.data.max(), -rows.data.min()) > LARGEST:
        raise ValueError(f"X has values beyond {LARGEST:g}: scale the features")
    if normalize:
        rows = unit_rows(rows)
    if intercept:
        ones = sparse.csr_matrix(np.ones((rows.shape[0], 1)))
        rows = sparse.hstack([rows, ones], format="csr")
    return rows


def unit_rows(rows: Any) -> Any:
    """A CSR matrix with each row divided by its length; empty rows stay as they are."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_matrix(sparse.diags_array(scale) @ rows)
