"""The best labels of each row, without the scores of all labels for all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]

BLOCK = 2**22  # scores held at once


def blocks(rows: int, columns: int) -> list[slice]:
    """Slices of rows, so that rows × columns of one are about `BLOCK` numbers, 1 row at least."""
    height = max(1, BLOCK // max(1, columns))
    return [slice(begin, min(begin + height, rows)) for begin in range(0, rows, height)]


def best_columns(scores: Array, k: int) -> Array:
    """[rows, k] columns with the highest scores, best first.

    Of equal ones that are found, the first is first; which are found at the k-th place is open.
    """
    if k < scores.shape[1]:
        found = np.sort(np.argpartition(scores, -k, axis=1)[:, -k:], axis=1)
    else:
        found = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def best_of_products(left: Array, right: Array, k: int) -> tuple[Array, Array]:
    """[rows, k] columns of left · rightᵀ with the highest numbers, best first, and these.

    Parameters
    ----------
    left
        [rows, rank]
    right
        [labels, rank]
    k
        at most the number of labels
    """
    labels = np.empty((len(left), k), dtype=np.int64)
    scores = np.empty((len(left), k))
    for block in blocks(len(left), len(right)):
        product = left[block] @ right.T
        labels[block] = best_columns(product, k)
        scores[block] = np.take_along_axis(product, labels[block], axis=1)
    return labels, scores


def best_of_sparse(scores: Any, k: int, frequency: Array) -> tuple[Array, Array]:
    """[rows, k] labels with the highest scores, best first, and these; scores are not negative.

    Of equal scores the more frequent label is first, and labels without a score have 0: a row with
    fewer than k scores goes on with the labels that are most frequent of all.

    Parameters
    ----------
    scores
        [rows, labels] scipy sparse
    k
        at most the number of labels
    frequency
        [labels] how many rows have each
    """
    rows = scores.shape[0]
    frequent = np.argsort(-frequency, kind="stable")
    place = np.empty_like(frequent)
    place[frequent] = np.arange(len(frequent))
    # every row gets the k most frequent labels, with 0 if they had no score: enough to fill it up
    given = scores.tocoo()
    row = np.concatenate([given.row, np.repeat(np.arange(rows), k)])
    label = np.concatenate([given.col, np.tile(frequent[:k], rows)])
    value = np.concatenate([given.data, np.zeros(rows * k)])
    filled = sparse.coo_array((value, (row, label)), shape=scores.shape).tocsr()
    row = np.repeat(np.arange(rows), np.diff(filled.indptr))
    order = np.lexsort((place[filled.indices], -filled.data, row))
    chosen = order[filled.indptr[:-1, None] + np.arange(k)]
    return filled.indices[chosen].astype(np.int64), filled.data[chosen]
