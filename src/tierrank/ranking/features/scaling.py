"""Features in other units: missing ones filled in, standardised, or scaled within the query."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.cache import empty_like, like
from tierrank.ranking.features.base import (
    FeatureTransformer,
    column_statistics,
    largest,
    row_blocks,
    travels,
    unit_power,
)
from tierrank.tiers.arrays import (
    as_keys,
    group_rows,
    list_of_entry,
    offsets,
    run_starts,
    stable_order,
)


@travels
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
    fills_missing: ClassVar[bool] = True
    learned: ClassVar = {"values": (np.float64, ("features",)), "indicated": (np.int64, (None,))}

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
            missing = np.zeros(matrix.shape[1], dtype=bool)
            for rows in row_blocks(*matrix.shape):
                missing |= np.isnan(matrix[rows]).any(axis=0)
            somewhere = largest(missing.astype(np.float64))
            self.indicated_ = np.flatnonzero(somewhere).astype(np.int64)
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
            data = empty_like(matrix.data)
            for some in row_blocks(len(data), 1):
                values, columns = matrix.data[some], matrix.indices[some]
                data[some] = np.where(np.isnan(values), self.values_[columns], values)
            return like(matrix, data)
        out = empty_like(matrix, (len(matrix), self.n_features_out_))
        for rows in row_blocks(*out.shape):
            missing = np.isnan(matrix[rows])
            out[rows, : self.n_features_in_] = np.where(missing, self.values_, matrix[rows])
            out[rows, self.n_features_in_ :] = missing[:, self.indicated_]
        return out

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

    def _check_learned(self) -> None:
        indicated, features = self.indicated_, self.n_features_in_
        increasing = bool((np.diff(indicated) > 0).all())
        if not increasing or (len(indicated) and not 0 <= indicated[0] <= indicated[-1] < features):
            raise self._bad_state("indicated must be increasing numbers of features")


@travels
class Standardize(FeatureTransformer):
    """Bring every feature to mean 0 and standard deviation 1 over the training rows.

        z = (x − mean) / deviation

    This is how Tran, Phung and Venkatesh (2010, section 5.1) prepare their features. NaN counts as
    missing: the statistics leave it out, and it stays NaN. A feature that is constant in the
    training rows is only centred, so it becomes 0. scikit-learn's `StandardScaler` gives the same
    numbers; ours has a state that is saved without pickle, and does not take 1e9 + tiny for a
    constant.

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
    learned: ClassVar = {"mean": (np.float64, ("features",)), "scale": (np.float64, ("features",))}

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
            data = empty_like(matrix.data)
            for some in row_blocks(len(data), 1):
                columns = matrix.indices[some]
                with np.errstate(over="ignore"):
                    data[some] = matrix.data[some] / self.scale_[columns]
                _check_no_overflow(data[some], columns)
            return like(matrix, data)
        out = empty_like(matrix)
        columns = np.arange(matrix.shape[1])
        for rows in row_blocks(*matrix.shape):
            with np.errstate(over="ignore"):
                out[rows] = self.scaled(matrix[rows], columns)
            _check_no_overflow(out[rows], columns)
        return out

    def scaled(self, values: AnyArray, columns: AnyArray) -> AnyArray:
        """Values of these columns, which broadcast with them, standardised in float64."""
        # Halves, where the difference of two numbers might be larger than any number.
        half = np.where(np.abs(self.mean_) > 1e290, 0.5, 1.0)
        mean, scale = self.mean_ * half, self.scale_ * half
        return np.asarray((values * half[columns] - mean[columns]) / scale[columns])

    def _check_parameters(self) -> None:
        if not (isinstance(self.mean, bool | np.bool_) or self.mean == "auto"):
            raise ValueError(f"mean must be True, False or 'auto', not {self.mean!r}.")
        if not isinstance(self.scale, bool | np.bool_):
            raise ValueError(f"scale must be True or False, not {self.scale!r}.")

    def _check_learned(self) -> None:
        if (self.scale_ <= 0).any():
            raise self._bad_state("scale must be positive")


def _check_no_overflow(values: AnyArray, columns: AnyArray) -> None:
    """Refuse a value so far from the training rows that its standardised form is infinite."""
    wrong = np.isinf(values)
    if wrong.any():
        column = np.broadcast_to(columns, values.shape)[wrong][0]
        raise ValueError(
            f"a value of feature {column} is too large for {values.dtype} once standardised: it is "
            "very far from the rows that Standardize was fitted to; check it, or use float64."
        )


Method = Literal["minmax", "standard", "rank"]


@travels
class QueryScale(FeatureTransformer):
    """Scale each feature within its query.

    Features such as BM25 have another level in every query; what counts is how a document compares
    with the others of its query. Nothing is learned in `fit` but the number of features. NaN counts
    as missing: the others are scaled as if it was not there, and it stays NaN. A feature that is
    constant in a query is 0 there, by every method.

    Parameters
    ----------
    method
        "minmax": (x − min) / (max − min), from 0 to 1, which is the query-level normalisation of
        LETOR 4.0; "standard": (x − mean) / deviation; "rank": the share of the query's other rows
        that are below, where a tie counts as half

    Examples
    --------
    >>> X = [[1.0], [3.0], [2.0], [50.0], [40.0]]
    >>> QueryScale().fit_transform(X, qid=["a", "a", "a", "b", "b"]).ravel()
    array([0. , 1. , 0.5, 1. , 0. ])
    """

    state_name: ClassVar[str] = "query-scale"
    takes_sparse: ClassVar[bool] = False
    needs_qid: ClassVar[bool] = True
    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__transform: ClassVar = {"qid": True}

    def __init__(self, method: Method = "minmax") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Note the number of features, and check the input; y is not used."""
        self._check_parameters()
        matrix = self._read(X, reset=True)
        if qid is not None:
            _group(qid, len(matrix))
        return self

    def transform(self, X: Any, *, qid: Any = None) -> AnyArray:
        """Scale the rows of each query.

        Parameters
        ----------
        X
            [rows, features]
        qid
            [rows] the query of each row, adjacent or not

        Returns
        -------
        array
            [rows, features] in the order and dtype of X
        """
        check_is_fitted(self)
        if qid is None:
            raise ValueError(
                "QueryScale needs the query of each row: write transform(X, qid=qid), or let a "
                'ranker do it (features="query-scale"). A Pipeline hands qid on after '
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        matrix = self._read(X, reset=False)
        queries = _group(qid, len(matrix))
        scale = {"minmax": _minmax, "standard": _standard, "rank": _rank}[self.method]
        out = empty_like(matrix)
        for columns in row_blocks(matrix.shape[1], len(matrix)):  # queries are whole in a column
            block = np.asarray(matrix[:, columns], dtype=np.float64)
            if queries.order is None:
                out[:, columns] = scale(block, queries)
            else:
                out[queries.order, columns] = scale(block[queries.order], queries)
        return out

    def _check_parameters(self) -> None:
        if not isinstance(self.method, str) or self.method not in get_args(Method):
            raise ValueError(
                f"unknown method {self.method!r}: use {', '.join(map(repr, get_args(Method)))}."
            )


class _Queries(NamedTuple):
    """Which rows belong together once `order` has put them side by side (None: they are)."""

    order: IntArray | None
    borders: IntArray

    @property
    def starts(self) -> IntArray:
        return self.borders[:-1]

    @property
    def of_row(self) -> IntArray:
        return list_of_entry(self.borders)


def _group(qid: Any, rows: int) -> _Queries:
    keys = as_keys(qid)
    if keys.shape != (rows,):
        raise ValueError(f"qid has shape {keys.shape}, but X has {rows} rows: give one qid a row.")
    query_of_row, names = group_rows(keys, rows)
    order = stable_order(query_of_row, len(names))
    return _Queries(order, offsets(np.bincount(query_of_row, minlength=len(names))))


def _bounds(x: FloatArray, queries: _Queries) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each query and column; NaN where there is none."""
    return np.fmin.reduceat(x, queries.starts), np.fmax.reduceat(x, queries.starts)


def _minmax(x: FloatArray, queries: _Queries) -> FloatArray:
    low, high = _bounds(x, queries)
    unit = unit_power(np.nan_to_num(np.maximum(np.abs(low), np.abs(high))))
    low, high = low * unit, high * unit
    width = high - low
    width[~(width > 0)] = 1.0
    of_row = queries.of_row
    x = x * unit[of_row]
    x -= low[of_row]
    x /= width[of_row]
    return x


def _standard(x: FloatArray, queries: _Queries) -> FloatArray:
    low, high = _bounds(x, queries)
    unit = unit_power(np.nan_to_num(np.maximum(np.abs(low), np.abs(high))))
    of_row = queries.of_row
    x = x * unit[of_row]
    missing = np.isnan(x)
    count = np.maximum(np.add.reduceat(~missing, queries.starts, dtype=np.float64), 1)

    def mean(values: FloatArray) -> FloatArray:
        total: FloatArray = np.add.reduceat(np.where(missing, 0.0, values), queries.starts)
        return total / count

    x -= mean(x)[of_row]
    x -= mean(x)[of_row]  # what rounding left
    deviation = np.sqrt(mean(x * x))
    deviation[deviation == 0] = 1.0
    x /= deviation[of_row]
    x[(low == high)[of_row] & ~missing] = 0.0
    return x


def _rank(x: FloatArray, queries: _Queries) -> FloatArray:
    low, high = _bounds(x, queries)
    present = np.add.reduceat(~np.isnan(x), queries.starts, dtype=np.float64)
    others = np.maximum(present - 1, 1)
    of_row = queries.of_row
    within = np.arange(len(x)) - queries.starts[of_row]
    out = np.empty_like(x)
    for column in range(x.shape[1]):
        order = np.lexsort((x[:, column], of_row))  # NaN comes last in its query
        value = x[order, column]
        is_first = np.zeros(len(x), dtype=bool)
        is_first[run_starts(value)] = True
        is_first[queries.starts] = True
        first = np.flatnonzero(is_first)
        size = np.diff(first, append=len(x))
        # A run of ties at places f … f + size − 1 (from 0) has f below and size − 1 beside it.
        below = within[first] + (size - 1) / 2
        out[order, column] = np.repeat(below, size) / others[of_row, column]
    out[(low == high)[of_row]] = 0.0
    out[np.isnan(x)] = np.nan
    return out
