"""Rows of indices in flat arrays: sorted, and none twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]


def first_repeated(row_ends: IntArray, indices: IntArray) -> tuple[int, int] | None:
    """Find the first index that stands twice in its row, in rows that ascend.

    Returns
    -------
    the row and the index, or None if no index does
    """
    same = np.append(False, indices[1:] == indices[:-1])
    same[row_ends[:-1][np.diff(row_ends) > 0]] = False  # the first of a row
    if not same.any():
        return None
    entry = int(same.argmax())
    return int(np.searchsorted(row_ends, entry, side="right")) - 1, int(indices[entry])
