"""What the measures of labels begin with: checked predictions, relevant labels and weights."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.metrics.inputs import FloatArray
from tierrank.tiers.arrays import to_numpy


class Relevant(NamedTuple):
    """The relevant labels of every row.

    Attributes
    ----------
    labels
        [entries] row after row; ascending in a row, and each once
    borders
        [rows + 1] row i has the entries borders[i] … borders[i + 1] − 1
    n_labels
        how many labels there are, relevant anywhere or not
    """

    labels: AnyArray
    borders: IntArray
    n_labels: int

    @property
    def counts(self) -> IntArray:
        """[rows] how many labels are relevant."""
        return np.diff(self.borders)


def read_relevant(Y: Any) -> Relevant:
    """Check a sparse matrix of relevant labels; share its arrays where they will do."""
    from scipy import sparse  # takes a while to import, so only where it is used

    if not sparse.issparse(Y):
        raise ValueError(
            f"Y must be a scipy sparse matrix [rows, labels], not {type(Y).__name__}: "
            "wrap a dense one in scipy.sparse.csr_array(Y)."
        )
    if Y.ndim != 2:
        raise ValueError(f"Y must be [rows, labels], not of shape {Y.shape}.")
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"Y must hold real numbers or booleans, not {Y.dtype}.")
    if not Y.shape[0]:
        raise ValueError("Y has no rows, so there is nothing to measure.")
    if Y.format != "csr" or not Y.has_canonical_format:
        Y = _sorted_rows(Y, sparse)
    else:
        _check_values(Y)
    labels, borders = Y.indices, Y.indptr.astype(np.int64)
    if not Y.data.all():
        relevant = Y.data != 0
        labels, borders = labels[relevant], np.append(0, np.cumsum(relevant))[borders]
    return Relevant(labels, borders, int(Y.shape[1]))


def _sorted_rows(Y: Any, sparse: Any) -> Any:
    """A new CSR matrix of booleans: labels ascend in a row, and each is stored once."""
    coo = Y.tocoo(copy=False)
    _check_values(coo)
    # Of booleans, because the sum of numbers that are stored twice may overflow to zero.
    csr = sparse.csr_array((coo.data != 0, (coo.row, coo.col)), shape=Y.shape)
    csr.sum_duplicates()
    return csr


def _check_values(Y: Any) -> None:
    values: AnyArray = Y.data
    if values.dtype.kind in "bu" or not len(values):
        return
    if values.min() >= 0 and np.isfinite(values.max()):  # false for NaN as well
        return
    at = int(np.argmax(~((values >= 0) & np.isfinite(values))))
    coo = Y.tocoo(copy=False)
    raise ValueError(
        f"Y, row {coo.row[at]}, label {coo.col[at]}: the value is {values[at]}. What is relevant "
        "has a finite number above zero: drop the entry, or mark it as you mean it."
    )


def read_top(top: Any, relevant: Relevant, k: int) -> IntArray:
    """[rows, columns] the predictions, checked; of the columns, at least k."""
    numbers = to_numpy(top, "top")
    if numbers.ndim != 2:
        raise ValueError(
            f"top has shape {numbers.shape}: give [rows, k] label numbers, best first."
        )
    if numbers.dtype.kind not in "iu":
        raise ValueError(
            f"top must be label numbers, which are whole, not {numbers.dtype}: of scores, take the "
            "numbers of the k highest, best first, as torch.topk(scores, k).indices does."
        )
    rows, columns = numbers.shape
    if rows != len(relevant.counts):
        raise ValueError(f"top has {rows} rows, but Y has {len(relevant.counts)}: give the same.")
    if columns < k:
        raise ValueError(
            f"top has {columns} columns, but k is {k}: predict at least {k} labels a row, and "
            "write −1 where there is no more."
        )
    if numbers.dtype.kind == "u":
        _refuse(numbers >= relevant.n_labels, numbers, _out_of_range(relevant))
    numbers = numbers.astype(np.int64, copy=False)
    _refuse((numbers < -1) | (numbers >= relevant.n_labels), numbers, _out_of_range(relevant))
    after_end = np.zeros(numbers.shape, dtype=bool)
    np.logical_and(numbers[:, :-1] < 0, numbers[:, 1:] >= 0, out=after_end[:, 1:])
    _refuse(after_end, numbers, "stands after a −1, which ends a row: write −1 only at the end")
    ascending = np.sort(numbers, axis=1)
    again = np.zeros(numbers.shape, dtype=bool)
    np.logical_and(ascending[:, :-1] == ascending[:, 1:], ascending[:, 1:] >= 0, out=again[:, 1:])
    _refuse(again, ascending, "is predicted more than once: give each label once a row")
    return numbers


def _out_of_range(relevant: Relevant) -> str:
    return f"is out of range: labels are 0 to {relevant.n_labels - 1}, and −1 ends a row"


def _refuse(bad: AnyArray, numbers: AnyArray, problem: str) -> None:
    if bad.any():
        row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise ValueError(
            f"top, row {row}: label {numbers[row, column]} {problem} "
            f"({int(bad.any(axis=1).sum())} such rows in all)."
        )


def read_weights(inverse_propensity: Any, n_labels: int) -> FloatArray:
    """[labels] inverse propensities, checked."""
    if inverse_propensity is None:
        raise ValueError(
            "propensity-scored measures need inverse_propensity, one number a label: take "
            "tierrank.metrics.labels.inverse_propensity(Y) of the training labels."
        )
    weights = to_numpy(inverse_propensity, "inverse_propensity")
    if weights.shape != (n_labels,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"inverse_propensity must be one number for each of the {n_labels} labels of Y, "
            f"not {weights.dtype} of shape {weights.shape}."
        )
    weights = weights.astype(np.float64, copy=False)
    if not (good := (weights >= 1) & (weights < np.inf)).all():
        at = int(np.argmin(good))
        raise ValueError(
            f"inverse_propensity[{at}] = {weights[at]:g} ({int((~good).sum())} such labels in "
            "all): 1 / p of a probability p is finite and at least 1. Are these the p themselves?"
        )
    return weights


def checked_places(k: Any) -> int:
    """A number of places from 1 on."""
    try:
        places = operator.index(k)
    except TypeError:
        places = 0
    if places < 1:
        raise ValueError(f"k is a number of places from 1 on, not {k!r}.")
    return places
