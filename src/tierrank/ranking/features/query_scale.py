"""Features relative to the other rows of the same query."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tierrank._types import IntArray
from tierrank.ranking.features.base import FeatureTransformer
from tierrank.ranking.features.columns import AnyArray, FloatArray, row_blocks, unit_power
from tierrank.tiers.arrays import list_of_entry, offsets, run_starts, stable_order
from tierrank.tiers.labels import as_keys, group_rows

Method = Literal["minmax", "standard", "rank"]


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
        out: AnyArray = np.empty_like(matrix, order="C")
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

    def _tensors(self) -> dict[str, AnyArray]:
        return {}

    def _set_tensors(self, tensors: dict[str, AnyArray]) -> None:
        self._check_tensors(tensors, {})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


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
