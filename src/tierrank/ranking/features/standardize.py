"""Zero mean and unit variance over the training rows."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tierrank.ranking.features.base import FeatureTransformer
from tierrank.ranking.features.columns import AnyArray, FloatArray, column_statistics, row_blocks


class Standardize(FeatureTransformer):
    """Bring every feature to mean 0 and standard deviation 1 over the training rows.

        z = (x − mean) / deviation

    This is how paper 002 (section 5.1) prepares its features. NaN counts as missing: the
    statistics leave it out, and it stays NaN. A feature that is constant in the training rows is
    only centred, so it becomes 0. scikit-learn's `StandardScaler` gives the same numbers; ours has
    a state that is saved without pickle, and does not take 1e9 + tiny for a constant.

    Parameters
    ----------
    mean
        whether to subtract the mean; "auto" does it unless the training rows are sparse, where it
        would fill every zero
    scale
        whether to divide by the standard deviation

    Attributes
    ----------
    mean_
        [features] what is subtracted (0 without `mean`)
    scale_
        [features] what is divided by (1 without `scale`, and for a constant feature)

    Examples
    --------
    >>> Standardize().fit_transform([[1.0, 5.0], [3.0, 5.0]])
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    state_name: ClassVar[str] = "standardize"

    mean_: FloatArray
    scale_: FloatArray

    def __init__(self, mean: bool | Literal["auto"] = "auto", scale: bool = True) -> None:
        self.mean = mean
        self.scale = scale

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Learn the mean and the standard deviation of each feature; y and qid are not used."""
        self._check_parameters()
        matrix = self._read(X, reset=True)
        is_sparse = sparse.issparse(matrix)
        if is_sparse and self.mean is not False and self.mean != "auto":
            raise ValueError(
                "sparse data cannot be centred without filling its zeros: use mean='auto' or "
                "mean=False to scale only, or pass X.toarray() if it fits into memory."
            )
        known = column_statistics(matrix)
        centred = bool(self.mean) and not is_sparse
        self.mean_ = known.mean if centred else np.zeros_like(known.mean)
        # A deviation may round to 0 where all the numbers are next to the smallest there is.
        scaled = (known.deviation > 0) & bool(self.scale)
        self.scale_ = np.where(scaled, known.deviation, 1.0)
        return self

    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Standardise rows by what was learned; qid is not used.

        Returns
        -------
        array or CSR, of the kind and dtype of X
        """
        check_is_fitted(self)
        matrix = self._read(X, reset=False)
        if sparse.issparse(matrix):
            if self.mean_.any():
                raise ValueError(
                    "this Standardize learned to centre, and sparse data cannot be centred without "
                    "filling its zeros: pass X.toarray(), or fit with mean=False."
                )
            out = matrix.copy()
            with np.errstate(over="ignore"):
                out.data = (out.data / self.scale_[out.indices]).astype(matrix.dtype)
            _check_no_overflow(out.data, out.indices)
            return out
        out = np.empty_like(matrix, order="C")
        # Halves, where the difference of two numbers might be larger than any number.
        half = np.where(np.abs(self.mean_) > 1e290, 0.5, 1.0)
        mean, scale = self.mean_ * half, self.scale_ * half
        for rows in row_blocks(*matrix.shape):
            with np.errstate(over="ignore"):
                out[rows] = (matrix[rows] * half - mean) / scale
            _check_no_overflow(out[rows], np.arange(matrix.shape[1]))
        return out

    def _check_parameters(self) -> None:
        if not (isinstance(self.mean, bool | np.bool_) or self.mean == "auto"):
            raise ValueError(f"mean must be True, False or 'auto', not {self.mean!r}.")
        if not isinstance(self.scale, bool | np.bool_):
            raise ValueError(f"scale must be True or False, not {self.scale!r}.")

    def _tensors(self) -> dict[str, AnyArray]:
        return {"mean": self.mean_, "scale": self.scale_}

    def _set_tensors(self, tensors: dict[str, AnyArray]) -> None:
        shape = (self.n_features_in_,)
        self._check_tensors(tensors, {"mean": (np.float64, shape), "scale": (np.float64, shape)})
        if (tensors["scale"] <= 0).any():
            raise self._bad_state("scale must be positive")
        self.mean_, self.scale_ = tensors["mean"].copy(), tensors["scale"].copy()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _check_no_overflow(values: AnyArray, columns: AnyArray) -> None:
    """Refuse a value so far from the training rows that its standardised form is infinite."""
    wrong = np.isinf(values)
    if wrong.any():
        column = np.broadcast_to(columns, values.shape)[wrong][0]
        raise ValueError(
            f"a value of feature {column} is too large for {values.dtype} once standardised: it is "
            "very far from the rows that Standardize was fitted to; check it, or use float64."
        )
