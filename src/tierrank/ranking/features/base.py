"""Feature steps: what they share (statistics of columns, a saved state), and chains of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tierrank._types import AnyArray, FloatArray
from tierrank.ranks import ALONE, Ranks

_BLOCK_NUMBERS = 1 << 20  # 8 MB in float64: long enough for fast products, short enough for any RAM


class ColumnStatistics(NamedTuple):
    """What is known of each column; NaN is left out, and a column of nothing else has 0 everywhere.

    Attributes
    ----------
    low, high
        [columns] smallest and largest value
    mean, deviation
        [columns] mean and standard deviation (divided by the number of rows); of a constant column
        exactly its value, and exactly 0
    """

    low: FloatArray
    high: FloatArray
    mean: FloatArray
    deviation: FloatArray


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut the rows into blocks of about a million numbers."""
    step = max(1, _BLOCK_NUMBERS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def dense_block(X: Any, rows: slice) -> FloatArray:
    """Give some rows of a dense or sparse matrix as float64."""
    block = X[rows].toarray() if sparse.issparse(X) else X[rows]
    return np.asarray(block, dtype=np.float64)


def unit_power(largest: FloatArray) -> FloatArray:
    """Power of two that brings a magnitude near 1: what is multiplied by it keeps every digit.

    Squares and differences of what was scaled so neither overflow nor vanish.
    """
    exponent = np.frexp(largest)[1]
    power: FloatArray = np.ldexp(1.0, -np.clip(exponent, -1000, 1000))  # beyond, it would overflow
    return power


RANKS = ContextVar("RANKS", default=ALONE)
"""Processes of which each has a part of the rows."""


@contextmanager
def parts_of(ranks: Ranks) -> Iterator[None]:
    """Let steps take what they are given for a part of the rows, of which other ranks have more."""
    token = RANKS.set(ranks)
    try:
        yield
    finally:
        RANKS.reset(token)


def summed(numbers: FloatArray) -> FloatArray:
    """[columns] the sum over all ranks."""
    found: FloatArray = RANKS.get().sum(torch.from_numpy(numbers)).numpy()
    return found


def largest(numbers: FloatArray) -> FloatArray:
    """[columns] the largest number of all ranks; −inf for what a rank has not."""
    found: FloatArray = RANKS.get().max(torch.from_numpy(numbers)).numpy()
    return found


def column_statistics(X: Any) -> ColumnStatistics:
    """Compute the statistics of a dense or CSR matrix of finite numbers and NaN, on all ranks."""
    return _of_sparse(X) if sparse.issparse(X) else _of_dense(X)


def _bounds_of_all(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of what the ranks found, inf and −inf where there is nothing; 0 where no rank has any."""
    low, high = -largest(-low), largest(high)
    return np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)


def _of_dense(X: AnyArray) -> ColumnStatistics:
    n_columns = X.shape[1]
    blocks = list(row_blocks(*X.shape))
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    count = np.zeros(n_columns)
    for rows in blocks:
        low = np.fmin(low, np.fmin.reduce(X[rows], axis=0))
        high = np.fmax(high, np.fmax.reduce(X[rows], axis=0))
        count += np.count_nonzero(~np.isnan(X[rows]), axis=0)
    low, high = _bounds_of_all(low, high)
    count = np.maximum(summed(count), 1)
    unit = unit_power(np.maximum(np.abs(low), np.abs(high)))
    total = np.zeros(n_columns)
    for rows in blocks:
        total += np.nansum(dense_block(X, rows) * unit, axis=0)
    mean = summed(total) / count
    # Squares of deviations from the mean, not of the values: those would cancel for 1e9 + tiny.
    first, second = np.zeros(n_columns), np.zeros(n_columns)
    for rows in blocks:
        away = dense_block(X, rows) * unit - mean
        first += np.nansum(away, axis=0)
        second += np.nansum(away * away, axis=0)
    return _finished(low, high, count, unit, mean, first, second)


def _of_sparse(X: Any) -> ColumnStatistics:
    rows, n_columns = X.shape
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    stored, kept = np.zeros(n_columns), np.zeros(n_columns)
    for column, value in _entries(X):
        np.minimum.at(low, column, value)
        np.maximum.at(high, column, value)
        kept += np.bincount(column, minlength=n_columns)
    for some in row_blocks(X.nnz, 1):
        stored += np.bincount(X.indices[some], minlength=n_columns)
    zeros = rows - stored
    low, high = (np.where(zeros > 0, beyond(bound, 0.0), bound)
                 for beyond, bound in ((np.minimum, low), (np.maximum, high)))  # fmt: skip
    low, high = _bounds_of_all(low, high)
    count = np.maximum(summed(kept + zeros), 1)
    unit = unit_power(np.maximum(np.abs(low), np.abs(high)))
    total = np.zeros(n_columns)
    for column, value in _entries(X):
        total += np.bincount(column, value * unit[column], minlength=n_columns)
    mean = summed(total) / count
    first, second = -zeros * mean, zeros * mean**2
    for column, value in _entries(X):
        away = value * unit[column] - mean[column]
        first += np.bincount(column, away, minlength=n_columns)
        second += np.bincount(column, away * away, minlength=n_columns)
    return _finished(low, high, count, unit, mean, first, second)


def _entries(X: Any) -> Iterator[tuple[AnyArray, FloatArray]]:
    """Columns and values of what a CSR matrix stores, without NaN, some at a time."""
    for some in row_blocks(X.nnz, 1):
        value = np.asarray(X.data[some], dtype=np.float64)
        present = ~np.isnan(value)
        yield X.indices[some][present], value[present]


def _finished(
    low: FloatArray,
    high: FloatArray,
    count: FloatArray,
    unit: FloatArray,
    mean: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> ColumnStatistics:
    """Mend the mean by what the deviations add up to, and undo the scaling."""
    shift = summed(first) / count
    variance = np.maximum(summed(second) / count - shift**2, 0.0)
    constant = low == high
    return ColumnStatistics(
        low,
        high,
        np.where(constant, low, (mean + shift) / unit),
        np.where(constant, 0.0, np.sqrt(variance) / unit),
    )


State = tuple[dict[str, Any], dict[str, AnyArray]]
Transformer = TypeVar("Transformer", bound="FeatureTransformer")


class FeatureTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A scikit-learn transformer of features that may look at the query, and that can be saved.

    A subclass says how it is called in a saved model (`state_name`) and which arrays it learns,
    and has `_check_parameters`, and perhaps `_check_learned`, beside `fit` and `transform`.
    """

    state_name: ClassVar[str]
    # What it learns, such as `mean_` under "mean": the dtype, and the length of each axis, which
    # may be that of the features, or any (None).
    learned: ClassVar[dict[str, tuple[type[np.generic], tuple[Any, ...]]]] = {}
    takes_sparse: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True  # NaN
    fills_missing: ClassVar[bool] = False  # NaN goes in and none comes out
    needs_labels: ClassVar[bool] = False  # for `fit`
    needs_qid: ClassVar[bool] = False
    """Whether `transform` must know which rows belong to the same query."""

    # The methods all take qid, so that a chain can call them alike; most have no use for it.
    __metadata_request__fit: ClassVar = {"qid": False}
    __metadata_request__transform: ClassVar = {"qid": False}

    n_features_in_: int

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Learn from the training rows."""

    @abstractmethod
    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Transform rows by what was learned."""

    def fit_transform(self, X: Any, y: Any = None, *, qid: Any = None) -> Any:
        """Fit to the rows, and transform them."""
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    @property
    def n_features_out_(self) -> int:
        """Number of columns that `transform` gives."""
        return self.n_features_in_

    def to_state(self) -> State:
        """Give all that a fitted transformer knows: what JSON can hold, and arrays.

        `from_state` builds an equal transformer from it.
        """
        check_is_fitted(self)
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        names = getattr(self, "feature_names_in_", None)
        info = {
            "name": self.state_name,
            "parameters": parameters,
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
        }
        return info, {name: getattr(self, f"{name}_") for name in self.learned}

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: dict[str, AnyArray]) -> Self:
        """Build the fitted transformer whose state this is; whatever does not fit is refused."""
        fields = {"name", "parameters", "n_features", "feature_names"}
        if not isinstance(info, dict) or set(info) != fields:
            raise cls._bad_state(f"its fields must be {sorted(fields)}")
        if info["name"] != cls.state_name:
            raise cls._bad_state(f"it is that of {info['name']!r}")
        expected = set(cls().get_params(deep=False))
        parameters = info["parameters"]
        if not isinstance(parameters, dict) or set(parameters) != expected:
            raise cls._bad_state(f"its parameters must be {sorted(expected)}")
        transformer = cls(**parameters)
        transformer._check_parameters()
        n_features, names = info["n_features"], info["feature_names"]
        if not isinstance(n_features, int) or isinstance(n_features, bool) or n_features < 1:
            raise cls._bad_state(f"n_features is {n_features!r}")
        transformer.n_features_in_ = n_features
        if names is not None:
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise cls._bad_state("feature_names must be a list of texts, or nothing")
            if len(names) != n_features:
                raise cls._bad_state(f"{len(names)} feature_names for {n_features} features")
            transformer.feature_names_in_ = np.array(names, dtype=object)
        transformer._check_tensors(tensors)
        for name, array in tensors.items():
            setattr(transformer, f"{name}_", array.copy())
        transformer._check_learned()
        return transformer

    @classmethod
    def _bad_state(cls, problem: str) -> ValueError:
        return ValueError(
            f"the saved state of {cls.__name__} is damaged or of another version: {problem}."
        )

    def _check_tensors(self, tensors: dict[str, AnyArray]) -> None:
        """Hold the arrays of a state against the dtype and shape of each."""
        if set(tensors) != set(self.learned):
            wanted = sorted(self.learned)
            raise self._bad_state(f"its arrays must be {wanted}, not {sorted(tensors)}")
        for name, (dtype, shape) in self.learned.items():
            array = tensors[name]
            wanted_shape = [self.n_features_in_ if axis == "features" else axis for axis in shape]
            fits = len(array.shape) == len(shape) and all(
                want is None or have == want
                for have, want in zip(array.shape, wanted_shape, strict=True)
            )
            if array.dtype != dtype or not fits:
                raise self._bad_state(f"{name} has dtype {array.dtype} and shape {array.shape}")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise self._bad_state(f"{name} has numbers that are not finite")

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse wrong parameters."""

    def _check_learned(self) -> None:
        """Refuse arrays of a saved state whose values do not hold together."""

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Check a matrix of features: float32 or float64, dense or CSR."""
        return self._checked(validate_data(self, X, reset=reset, **self._accepted(X)))

    def _read_labelled(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        """Check a matrix of features to fit to, and its labels."""
        X, y = validate_data(self, X, y, y_numeric=True, **self._accepted(X))
        return self._checked(X), y

    def _accepted(self, X: Any) -> dict[str, Any]:
        if sparse.issparse(X) and not self.takes_sparse:
            raise ValueError(
                f"{type(self).__name__} cannot take sparse data, because most zeros would become "
                "other numbers: pass X.toarray() if it fits into memory."
            )
        return {
            "accept_sparse": "csr" if self.takes_sparse else False,
            "dtype": (np.float64, np.float32),
            "ensure_all_finite": False,  # check_finite says where
            "ensure_min_samples": int(RANKS.get().size == 1),
        }

    def _checked(self, X: Any) -> Any:
        if sparse.issparse(X) and not X.has_canonical_format:
            X = X.copy()  # the caller's stays as it is
            X.sum_duplicates()
        check_finite(X, allow_nan=self.takes_missing)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self.takes_sparse
        tags.input_tags.allow_nan = self.takes_missing
        tags.target_tags.required = self.needs_labels
        return tags


def check_finite(X: Any, *, allow_nan: bool) -> None:
    """Refuse infinite numbers, and NaN unless it is allowed, saying where the first one is."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one number tells, nearly always
            return
    columns = 1 if values.ndim == 1 else values.shape[1]
    found, at = 0, -1
    for rows in row_blocks(len(values), columns):
        wrong = np.isinf(values[rows]) if allow_nan else ~np.isfinite(values[rows])
        if not found and wrong.any():
            at = rows.start * columns + int(np.argmax(wrong))
        found += int(wrong.sum())
    if not found:
        return
    if sparse.issparse(X):
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    nan = bool(np.isnan(values.flat[at]))
    cure = "give it a finite number first"
    if nan:
        cure = (
            'fill them in first, by Impute, a ranker\'s features=["impute", "standardize"], or, on '
            "the command line, --features impute --features standardize (or --missing 0)"
        )
    raise ValueError(
        f"X[{row}, {column}] is {'NaN' if nan else 'infinite'} ({found} such values in "
        f"all): {cure}."
    )


# -- chains of steps -----------------------------------------------------------------------------


TRANSFORMERS: dict[str, type[FeatureTransformer]] = {}
"""The transformers that travel with a saved model, by name."""


def travels(transformer: type[Transformer]) -> type[Transformer]:
    """Let a class of transformers travel with saved models."""
    TRANSFORMERS[transformer.state_name] = transformer
    return transformer


class Steps:
    """Transformers applied one after the other; none at all gives the features as they are.

    Parameters
    ----------
    steps
        transformers of this package, fitted or not; they are not copied
    """

    def __init__(self, steps: Iterable[FeatureTransformer] = ()) -> None:
        self.steps = list(steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"Steps({self.steps!r})"

    @property
    def needs_qid(self) -> bool:
        """Whether `transform` must know which rows belong to the same query."""
        return any(step.needs_qid for step in self.steps)

    @property
    def fills_missing(self) -> bool:
        """Whether NaN goes in and none comes out."""
        return any(step.fills_missing for step in self.steps)

    def fit_transform(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Fit each step to what those before it made of X, and give what the last one makes."""
        for step in self.steps:
            X = step.fit_transform(X, y, qid=qid)
        return X

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Apply the fitted steps."""
        for step in self.steps:
            X = step.transform(X, qid=qid)
        return X

    def to_state(self) -> State:
        """Give all that the fitted steps know: what JSON can hold, and arrays."""
        infos, tensors = [], {}
        for number, step in enumerate(self.steps):
            info, arrays = step.to_state()
            infos.append(info)
            tensors.update({f"{number}.{name}": array for name, array in arrays.items()})
        return {"steps": infos}, tensors

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: dict[str, AnyArray]) -> Self:
        """Build the fitted chain whose state this is; whatever does not fit is refused."""
        damaged = "the saved feature steps are damaged or of another version"
        infos = info.get("steps") if isinstance(info, dict) and set(info) == {"steps"} else None
        if not isinstance(infos, list):
            raise ValueError(f"{damaged}: there must be a list of steps.")
        arrays: list[dict[str, AnyArray]] = [{} for _ in infos]
        for key, array in tensors.items():
            owner, _, own_name = key.partition(".")
            if owner not in map(str, range(len(infos))):
                raise ValueError(f"{damaged}: the array {key!r} belongs to none of them.")
            arrays[int(owner)][own_name] = array
        steps: list[FeatureTransformer] = []
        for number, (each, own) in enumerate(zip(infos, arrays, strict=True)):
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or name not in TRANSFORMERS:
                raise ValueError(f"{damaged}: step {number} is {name!r}, not {_known()}.")
            step = TRANSFORMERS[name].from_state(each, own)
            if steps and step.n_features_in_ != steps[-1].n_features_out_:
                raise ValueError(
                    f"{damaged}: step {number} takes {step.n_features_in_} features, but the one "
                    f"before it gives {steps[-1].n_features_out_}."
                )
            steps.append(step.set_output(transform="default"))
        return cls(steps)


def steps_from(
    spec: str | FeatureTransformer | Sequence[str | FeatureTransformer] | None,
) -> list[FeatureTransformer]:
    """Make unfitted steps of what a user names.

    Parameters
    ----------
    spec
        None for no steps; or one of "impute", "standardize", "query-scale" and "second-order", a
        transformer of this package, or a sequence of them

    Returns
    -------
    list
        new transformers: those given are copied with their parameters, and stay as they are

    Examples
    --------
    >>> from tierrank.ranking.features import SecondOrder, steps_from
    >>> steps_from(["standardize", SecondOrder(threshold=0.1)])
    [Standardize(), SecondOrder(threshold=0.1)]
    """
    if spec is None:
        return []
    return [_step(each) for each in (spec if isinstance(spec, list | tuple) else [spec])]


def _step(spec: Any) -> FeatureTransformer:
    if isinstance(spec, str):
        if spec not in TRANSFORMERS:
            raise ValueError(f"unknown features {spec!r}: use {_known()}.")
        transformer = TRANSFORMERS[spec]()
    elif type(spec) in TRANSFORMERS.values():
        transformer = clone(spec)
    else:
        raise ValueError(
            f"{spec!r} is not a step that can be saved with a ranker: use {_known()}, or put "
            "other transformers before the ranker in a scikit-learn Pipeline."
        )
    # The next step, and the ranker, want arrays, whatever scikit-learn is set to.
    ready: FeatureTransformer = transformer.set_output(transform="default")
    return ready


def _known() -> str:
    return ", ".join(map(repr, TRANSFORMERS))
