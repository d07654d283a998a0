"""Numbers where features are missing."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from tierrank.ranking.features.base import FeatureTransformer
from tierrank.ranking.features.columns import AnyArray, FloatArray, column_statistics


class Impute(FeatureTransformer):
    """Put a number in place of every NaN: one for all features, or each feature's own.

    A feature that is missing in all training rows gets 0, unless a number is given. A ranker that
    needs every feature, as the linear and the neural ones do, takes rows with NaN if this is among
    its steps.

    Parameters
    ----------
    value
        a number; or "mean", "low" or "high": the mean, smallest or largest value of the feature in
        the training rows
    indicator
        whether to add a feature of 0 and 1 for each one that was missing somewhere in the training
        rows (dense data only)

    Attributes
    ----------
    values_
        [features] what is put in
    indicated_
        [indicators] the features that have an indicator, in order

    Examples
    --------
    >>> nan = float("nan")
    >>> Impute("high", indicator=True).fit_transform([[1.0, nan], [3.0, 5.0], [nan, 6.0]])
    array([[1., 6., 0., 1.],
           [3., 5., 0., 0.],
           [3., 6., 1., 0.]])
    """

    state_name: ClassVar[str] = "impute"

    values_: FloatArray
    indicated_: AnyArray

    def __init__(
        self, value: float | Literal["mean", "low", "high"] = "mean", indicator: bool = False
    ) -> None:
        self.value = value
        self.indicator = indicator

    @property
    def n_features_out_(self) -> int:
        """Number of columns that `transform` gives."""
        return self.n_features_in_ + len(self.indicated_)

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Learn what to put in; y and qid are not used."""
        self._check_parameters()
        matrix = self._read(X, reset=True)
        if isinstance(self.value, str):
            self.values_ = getattr(column_statistics(matrix), self.value).astype(np.float64)
        else:
            self.values_ = np.full(matrix.shape[1], float(self.value))
        self.indicated_ = np.empty(0, dtype=np.int64)
        if self.indicator:
            self._refuse_sparse(matrix)
            self.indicated_ = np.flatnonzero(np.isnan(matrix).any(axis=0)).astype(np.int64)
        return self

    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Fill in what is missing; qid is not used.

        Returns
        -------
        array or CSR, of the kind and dtype of X
        """
        check_is_fitted(self)
        matrix = self._read(X, reset=False)
        if sparse.issparse(matrix):
            if len(self.indicated_):
                self._refuse_sparse(matrix)
            out = matrix.copy()
            out.data = np.where(np.isnan(out.data), self.values_[out.indices], out.data)
            out.data = out.data.astype(matrix.dtype)
            return out
        missing = np.isnan(matrix)
        out = np.where(missing, self.values_.astype(matrix.dtype), matrix)
        if not len(self.indicated_):
            return out
        return np.hstack([out, missing[:, self.indicated_].astype(matrix.dtype)])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the features, and of the indicators: "missing NAME"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        indicators = [f"missing {name}" for name in names[self.indicated_]]
        return np.array([*names, *indicators], dtype=object)

    @staticmethod
    def _refuse_sparse(matrix: Any) -> None:
        if sparse.issparse(matrix):
            raise ValueError(
                "indicators of what is missing are for dense data: use indicator=False, or pass "
                "X.toarray() if it fits into memory."
            )

    def _check_parameters(self) -> None:
        value = self.value
        named = isinstance(value, str) and value in ("mean", "low", "high")
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not named and not (number and np.isfinite(value)):
            raise ValueError(f"value must be a number, 'mean', 'low' or 'high', not {value!r}.")
        if not isinstance(self.indicator, bool | np.bool_):
            raise ValueError(f"indicator must be True or False, not {self.indicator!r}.")

    def _tensors(self) -> dict[str, AnyArray]:
        return {"values": self.values_, "indicated": self.indicated_}

    def _set_tensors(self, tensors: dict[str, AnyArray]) -> None:
        features = self.n_features_in_
        self._check_tensors(
            tensors, {"values": (np.float64, (features,)), "indicated": (np.int64, (None,))}
        )
        indicated = tensors["indicated"]
        increasing = bool((np.diff(indicated) > 0).all())
        if not increasing or (len(indicated) and not 0 <= indicated[0] <= indicated[-1] < features):
            raise self._bad_state("indicated must be increasing numbers of features")
        self.values_, self.indicated_ = tensors["values"].copy(), indicated.copy()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
