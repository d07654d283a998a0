"""Products of two features that go with the label (paper 002, section 5.1)."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tierrank._types import IntArray
from tierrank.ranking.features.base import FeatureTransformer
from tierrank.ranking.features.columns import AnyArray, FloatArray, row_blocks
from tierrank.ranking.features.correlation import product_correlations


class SecondOrder(FeatureTransformer):
    """Add the products of two features whose correlation with the label is beyond a threshold.

    Paper 002 takes "the Cartesian product of first-order features", and keeps what has a Pearson
    correlation with the label beyond ±0.15 over all training rows. Here these are the products
    x_i x_j with i ≤ j: every unordered pair once, squares included. The paper standardises
    first (`Standardize`), which changes the products and so what is chosen. `fit` takes
    O(rows · features²) time and O(features²) memory: no product is ever held for all rows.

    Parameters
    ----------
    threshold
        a product is chosen if its absolute correlation is larger, from 0 to 1
    include_first
        whether the features themselves come first in what `transform` gives
    max_features
        keep only this many products, those of largest absolute correlation; None for all

    Attributes
    ----------
    pairs_
        [products, 2] the chosen (i, j) with i ≤ j, in increasing order of i, then j
    correlations_
        [products] Pearson correlation of each with the label. A constant product has none, and is
        never chosen.

    Examples
    --------
    >>> X = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> products = SecondOrder().fit(X, [1, 0, 0, 1])
    >>> products.pairs_, products.correlations_
    (array([[0, 1]]), array([1.]))
    >>> products.transform([[2.0, 3.0]])
    array([[2., 3., 6.]])
    """

    state_name: ClassVar[str] = "second-order"

    pairs_: IntArray
    correlations_: FloatArray

    def __init__(
        self,
        threshold: float = 0.15,
        include_first: bool = True,
        max_features: int | None = None,
    ) -> None:
        self.threshold = threshold
        self.include_first = include_first
        self.max_features = max_features

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Choose the products by their correlation with the labels y; qid is not used.

        Parameters
        ----------
        X
            [rows, features] finite numbers, dense or CSR
        y
            [rows] labels
        """
        self._check_parameters()
        matrix, labels = self._read_labelled(X, y)
        correlations = product_correlations(matrix, labels)
        strength = np.triu(np.abs(correlations))
        first, second = np.nonzero(strength > self.threshold)
        if self.max_features is not None and len(first) > self.max_features:
            strongest = np.argsort(-strength[first, second], kind="stable")[: self.max_features]
            strongest.sort()  # back to the order of the pairs
            first, second = first[strongest], second[strongest]
        if not len(first) and not self.include_first:
            raise ValueError(
                f"no product has an absolute correlation with y above {self.threshold}, and without"
                " include_first no feature is left: lower the threshold."
            )
        self.pairs_ = np.column_stack([first, second]).astype(np.int64)
        self.correlations_ = correlations[first, second]
        return self

    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Give the features, if included, and the chosen products beside them.

        Returns
        -------
        array or CSR, of the kind and dtype of X
        """
        check_is_fitted(self)
        matrix = self._read(X, reset=False)
        if sparse.issparse(matrix):
            return self._of_sparse(matrix)
        out = np.empty((len(matrix), self.n_features_out_), dtype=matrix.dtype)
        products_from = matrix.shape[1] if self.include_first else 0
        if self.include_first:
            out[:, :products_from] = matrix
        first, second = self.pairs_.T
        with np.errstate(over="ignore"):
            for rows in row_blocks(len(matrix), self.n_features_out_):
                products = out[rows, products_from:]
                np.multiply(matrix[rows][:, first], matrix[rows][:, second], out=products)
                self._check_no_overflow(products)
        return out

    def _of_sparse(self, X: Any) -> Any:
        parts = []
        first, second = self.pairs_.T
        for rows in row_blocks(X.shape[0], self.n_features_out_):
            by_column = X[rows].tocsc()
            with np.errstate(over="ignore"):
                products = by_column[:, first].multiply(by_column[:, second]).tocsr()
            self._check_no_overflow(products)
            parts.append(sparse.hstack([by_column, products] if self.include_first else [products]))
        return sparse.vstack(parts, format="csr", dtype=X.dtype)

    def _check_no_overflow(self, products: Any) -> None:
        is_sparse = sparse.issparse(products)
        wrong = np.isinf(products.data if is_sparse else products)
        if wrong.any():
            column = products.indices[wrong][0] if is_sparse else np.argwhere(wrong)[0, 1]
            i, j = self.pairs_[column]
            raise ValueError(
                f"the product of features {i} and {j} is too large for {products.dtype}: "
                "put Standardize before SecondOrder, or use float64."
            )

    @property
    def n_features_out_(self) -> int:
        """Number of columns that `transform` gives."""
        return len(self.pairs_) + (self.n_features_in_ if self.include_first else 0)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns that `transform` gives: `a b` for a product, `a^2` for a square."""
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        products = [f"{names[i]}^2" if i == j else f"{names[i]} {names[j]}" for i, j in self.pairs_]
        return np.array([*(names if self.include_first else ()), *products], dtype=object)

    def _check_parameters(self) -> None:
        threshold: Any = self.threshold
        is_number = isinstance(threshold, float | int | np.number)
        if not is_number or not 0 <= threshold <= 1:
            raise ValueError(f"threshold is a correlation from 0 to 1, not {threshold!r}.")
        if not isinstance(self.include_first, bool | np.bool_):
            raise ValueError(f"include_first must be True or False, not {self.include_first!r}.")
        if self.max_features is not None:
            try:
                enough = operator.index(self.max_features) >= 1
            except TypeError:
                enough = False
            if not enough:
                raise ValueError(
                    f"max_features is a number of products from 1, or None for all, "
                    f"not {self.max_features!r}."
                )

    def _tensors(self) -> dict[str, AnyArray]:
        return {"pairs": self.pairs_, "correlations": self.correlations_}

    def _set_tensors(self, tensors: dict[str, AnyArray]) -> None:
        self._check_tensors(
            tensors, {"pairs": (np.int64, (None, 2)), "correlations": (np.float64, (None,))}
        )
        pairs, correlations = tensors["pairs"], tensors["correlations"]
        if len(pairs) != len(correlations):
            raise self._bad_state(f"{len(pairs)} pairs, but {len(correlations)} correlations")
        first, second = pairs.T
        if (first < 0).any() or (first > second).any() or (second >= self.n_features_in_).any():
            raise self._bad_state(f"pairs must be of two of {self.n_features_in_} features, i ≤ j")
        step_first, step_second = np.diff(first), np.diff(second)
        if not ((step_first > 0) | ((step_first == 0) & (step_second > 0))).all():
            raise self._bad_state("pairs must increase")
        if (np.abs(correlations) > 1).any():
            raise self._bad_state("a correlation is beyond 1")
        if self.max_features is not None and len(pairs) > self.max_features:
            raise self._bad_state(f"{len(pairs)} pairs, but max_features is {self.max_features}")
        if not len(pairs) and not self.include_first:
            raise self._bad_state("it has no pairs, and does not include the features")
        self.pairs_, self.correlations_ = pairs.copy(), correlations.copy()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
