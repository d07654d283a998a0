"""Products of two features that go with the label."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.cache import empty_like, folder_of
from tierrank.ranking.features.base import (
    RANKS,
    FeatureTransformer,
    column_statistics,
    dense_block,
    row_blocks,
    travels,
    unit_power,
)

# A column whose mean is this many deviations from 0 is centred. Others are not: their zeros, and
# so products that are 0 in every row, stay exact.
_FAR_FROM_ZERO = 10.0

# A variance that is so much smaller than what it is the difference of has lost too many digits.
_CANCELLED = 1e-6


def product_correlations(X: Any, y: AnyArray) -> FloatArray:
    """Pearson correlation of x_i x_j with y, for all i and j.

    With z = (x − c) / s, where c is 0 or the mean of a column far from 0, and a = c / s,

        x_i x_j / (s_i s_j) = z_i z_j + a_j z_i + a_i z_j + a_i a_j,

    so the variance of a product and its covariance with y follow from the means over the rows of
    z_i z_j, z_i² z_j², z_i z_j y and z_i² z_j: matrix products, each of a block of rows at a time.
    The few pairs for which the terms cancel are computed from the products themselves.

    Parameters
    ----------
    X
        [rows, features] finite, dense or CSR
    y
        [rows] finite

    Returns
    -------
    array
        [features, features] symmetric; 0 where the product, or y, is constant
    """
    rows, n_features = X.shape
    label = _unit_label(y)
    if not label.any():
        return np.zeros((n_features, n_features))
    known = column_statistics(X)
    centre = np.where(np.abs(known.mean) > _FAR_FROM_ZERO * known.deviation, known.mean, 0.0)
    scale = np.maximum(known.deviation, np.abs(known.mean - centre))
    scale[~(scale > 0)] = 1.0  # zero throughout, or constant and centred: z is 0
    # Numbers near 1 before anything is subtracted, divided or squared.
    unit = unit_power(np.maximum(np.abs(known.low), np.abs(known.high)))
    centre, scale = centre * unit, scale * unit
    offset = centre / scale
    far = np.flatnonzero(offset)

    z_mean, zy_mean = np.zeros(n_features), np.zeros(n_features)
    zz, zzzz, zzy = (np.zeros((n_features, n_features)) for _ in range(3))
    zz_far = np.zeros((n_features, len(far)))  # z_i² z_j, for the j that are far
    for block in row_blocks(rows, n_features):
        z = (dense_block(X, block) * unit - centre) / scale
        square = z * z
        z_mean += z.sum(axis=0)
        zy_mean += label[block] @ z
        zz += z.T @ z
        zzzz += square.T @ square
        zzy += z.T @ (z * label[block, None])
        if len(far):
            zz_far += square.T @ z[:, far]
    for total in (z_mean, zy_mean, zz, zzzz, zzy, zz_far):
        total /= rows

    variance = zzzz - zz * zz
    magnitude = zzzz + zz * zz
    covariance = zzy + offset * zy_mean[:, None] + offset[:, None] * zy_mean
    if len(far):
        z_variance = np.diag(zz) - z_mean**2
        z_covariance = zz - np.outer(z_mean, z_mean)
        cross = np.zeros_like(zz)  # a_j Cov(z_i z_j, z_i)
        cross[:, far] = offset[far] * (zz_far - zz[:, far] * z_mean[:, None])
        alone = offset**2 * z_variance[:, None]  # a_j² Var(z_i)
        both = 2 * np.outer(offset, offset) * z_covariance
        variance += alone + alone.T + both + 2 * (cross + cross.T)
        magnitude += alone + alone.T + np.abs(both) + 2 * (np.abs(cross) + np.abs(cross.T))
    correlation = np.zeros_like(zz)
    sure = variance > _CANCELLED * magnitude
    correlation[sure] = covariance[sure] / np.sqrt(variance[sure])
    unsure = np.argwhere(np.triu(~sure & (magnitude > 0)))
    _fill_in(correlation, unsure, X, unit, label)
    clipped: FloatArray = np.clip(correlation, -1.0, 1.0)
    return clipped


def _unit_label(y: AnyArray) -> FloatArray:
    """The label with mean 0 and standard deviation 1; 0 throughout if it is constant."""
    known = column_statistics(np.asarray(y, dtype=np.float64)[:, None])
    unit = unit_power(np.maximum(np.abs(known.low), np.abs(known.high)))
    away: FloatArray = np.asarray(y, dtype=np.float64) * unit - known.mean * unit
    away /= np.where(known.deviation > 0, known.deviation * unit, 1.0)
    away -= away.mean()
    return away


def _fill_in(
    correlation: FloatArray, pairs: IntArray, X: Any, unit: FloatArray, label: FloatArray
) -> None:
    """Correlations of a few pairs by the definition, two passes over their products."""
    rows, n_features = X.shape
    noise = np.finfo(X.dtype).eps
    # As many pairs at once as there are features: then a block of products is one of rows too.
    for start in range(0, len(pairs), n_features):
        first, second = pairs[start : start + n_features].T
        total, peak = np.zeros(len(first)), np.zeros(len(first))
        covariance, square, rest = (np.zeros(len(first)) for _ in range(3))
        for block in row_blocks(rows, n_features):
            x = dense_block(X, block) * unit
            product = x[:, first] * x[:, second]
            total += product.sum(axis=0)
            np.maximum(peak, np.abs(product).max(axis=0), out=peak)
        mean = total / rows
        for block in row_blocks(rows, n_features):
            x = dense_block(X, block) * unit
            away = x[:, first] * x[:, second] - mean
            rest += away.sum(axis=0)
            square += (away * away).sum(axis=0)
            covariance += label[block] @ away
        deviation = np.sqrt(np.maximum(square / rows - (rest / rows) ** 2, 0.0))
        varies = deviation > noise * peak  # below that, it is how products were rounded
        value = np.where(varies, covariance / rows / np.where(varies, deviation, 1.0), 0.0)
        correlation[first, second] = correlation[second, first] = value


@travels
class SecondOrder(FeatureTransformer):
    """Add the products of two features whose correlation with the label is beyond a threshold.

    Tran, Phung and Venkatesh (2010, section 5.1) take "the Cartesian product of first-order
    features", and keep what has a Pearson correlation with the label beyond ±0.15 over all training
    rows. Here these are the products x_i x_j with i ≤ j: every unordered pair once, squares
    included. They standardise first (`Standardize`), which changes the products and so what is
    chosen. `fit` takes O(rows · features²) time and O(features²) memory: no product is ever held
    for all rows.

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
    learned: ClassVar = {"pairs": (np.int64, (None, 2)), "correlations": (np.float64, (None,))}
    takes_missing: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True

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
        if RANKS.get().size > 1:
            what = "needs all rows in one process: leave it out, or transform X first"
            raise ValueError(f"{self!r} {what}")
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
        out = empty_like(matrix, (len(matrix), self.n_features_out_))
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
        if folder_of(X) is not None:
            raise ValueError(
                "products of sparse rows would be held in memory, and these rows are on the disk "
                "because they are too many: leave out second-order, or read them without a cache."
            )
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

    def _check_learned(self) -> None:
        pairs, correlations = self.pairs_, self.correlations_
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
