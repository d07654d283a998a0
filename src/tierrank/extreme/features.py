"""How entries of X are weighted before the network sees them: tf-idf, unit rows, or as they are.

    tf-idf   x_f · idf_f, with idf_f = 1 + log((1 + rows) / (1 + rows that have f)), then as l2
    l2       x / ‖x‖

which is what scikit-learn's `TfidfTransformer` does, to rounding. Rows are weighted when a batch is
loaded, so that X stays as it was given, also where it is mapped from a file.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError

Weighting = Literal["tf-idf", "l2", "raw"]
Name = Literal["auto", "tf-idf", "l2", "raw"]

DENSE = 0.5  # share of entries from which on a matrix is a dense one
AT_ONCE = 1 << 22  # values that are looked at together


class Features:
    """A weighting of entries, and what it learned of the training rows.

    Parameters
    ----------
    weighting
        "tf-idf", "l2" or "raw"
    idf
        [features] float32 factors of tf-idf; None with the others
    reason
        why it was chosen, in a few words
    """

    def __init__(self, weighting: Weighting, idf: AnyArray | None = None, reason: str = "") -> None:
        self.weighting, self.idf, self.reason = weighting, idf, reason

    @classmethod
    def learned(cls, X: Any, name: Name) -> Features:
        """The weighting of this name for [rows, features] CSR training rows; "auto" looks at them.

        Values that are whole numbers, not all the same, are counts: tf-idf. Where all that is
        stored is the same number, features are there or not; that, and a matrix of which half or
        more is filled, stays as given. Other sparse values: rows of length 1.
        """
        weighting, reason = (name, "asked for") if name != "auto" else _judged(X)
        if weighting != "tf-idf":
            return cls(weighting, None, reason)
        have = np.zeros(X.shape[1], np.int64)
        for start in range(0, X.nnz, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            have += np.bincount(X.indices[some][X.data[some] != 0], minlength=X.shape[1])
        idf = 1 + np.log((1 + X.shape[0]) / (1 + have))
        return cls("tf-idf", idf.astype(np.float32), reason)

    @classmethod
    def saved(cls, weighting: Any, idf: AnyArray | None, reason: str, n_features: int) -> Features:
        """From what was written down; raises a ValueError if it does not fit."""
        if weighting not in get_args(Weighting) or (idf is None) != (weighting != "tf-idf"):
            raise ValueError(f"there is no weighting of features {weighting!r} as it is written")
        if idf is not None and not (
            idf.dtype == np.float32 and idf.shape == (n_features,) and (idf >= 1).all()
            and np.isfinite(idf).all()
        ):  # fmt: skip
            raise ValueError(f"the idf are not {n_features} finite numbers of at least 1")
        return cls(weighting, idf, reason)

    def __call__(self, rows: Any) -> Any:
        """Some rows of X, weighted; they stay as they are."""
        if self.weighting == "raw":
            return rows
        values = rows.data if self.idf is None else rows.data * self.idf[rows.indices]
        sizes = np.diff(rows.indptr)
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        squares = np.bincount(of_row, np.square(values, dtype=np.float64), minlength=len(sizes))
        norms = np.sqrt(np.where(squares > 0, squares, 1.0))
        values = (values / norms[of_row]).astype(np.float32)
        return csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)

    @property
    def sentence(self) -> str:
        """What is done, and why."""
        return f"features: {self.weighting} ({self.reason})"


def check_features(name: Any) -> None:
    """Refuse a weighting that there is not."""
    if name not in get_args(Name):
        what = f' is "auto", "tf-idf", "l2" or "raw", not {name!r}'
        raise ArgumentError(Argument("features"), what)


def _judged(X: Any) -> tuple[Weighting, str]:
    """What suits these rows, and why."""
    rows, features = X.shape
    if X.nnz >= DENSE * rows * features:
        return "raw", "dense"
    first, same, whole = X.data[0] if X.nnz else 1, True, True
    for start in range(0, X.nnz, AT_ONCE):
        values = X.data[start : start + AT_ONCE]
        same = same and bool((values == first).all())
        whole = whole and bool((values >= 0).all() and (values == np.rint(values)).all())
        if not (same or whole):
            return "l2", "sparse, real values"
    return ("raw", "there or not") if same else ("tf-idf", "counts")
