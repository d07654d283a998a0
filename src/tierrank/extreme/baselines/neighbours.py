"""Rows that are near by their labels, found exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tierrank.extreme.baselines.inputs import unit_rows
from tierrank.extreme.baselines.top_labels import best_columns, blocks

Array = np.ndarray[Any, Any]


def label_similarities(Y: Any, count: int) -> Any:
    """Cosines between the label vectors of rows, where one is among the other's nearest.

    Parameters
    ----------
    Y
        [rows, labels] CSR, every row with a label
    count
        how many nearest each row has, itself among them; rows that share no label are not near

    Returns
    -------
    similarities
        [rows, rows] symmetric CSR with sorted indices and a full diagonal
    """
    unit = unit_rows(Y)
    rows = unit.shape[0]
    count = min(count, rows)
    transposed = unit.T.tocsr()
    parts = []
    for block in blocks(rows, rows):
        cosines = (unit[block] @ transposed).toarray()
        own = (np.arange(len(cosines)), np.arange(rows)[block])
        cosines[own] = np.inf  # first, whatever the rounding and however many are alike
        near = best_columns(cosines, count)
        cosines[own] = 1.0
        values = np.take_along_axis(cosines, near, axis=1)
        starts = np.arange(0, values.size + 1, count)
        parts.append(
            sparse.csr_matrix((values.ravel(), near.ravel(), starts), shape=(len(near), rows))
        )
    directed = sparse.vstack(parts, format="csr")
    directed.eliminate_zeros()
    similarities = directed.maximum(directed.T).tocsr()
    similarities.sort_indices()
    return similarities
