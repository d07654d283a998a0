"""What rankers are given: rows of features, their labels, and which rows form a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank.tiers import Tiers
from tierrank.tiers.grouping import checked_lengths

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TrainingRows:
    """Rows ready to learn from.

    Attributes
    ----------
    X
        [rows, features], dense or CSR, after the feature steps
    y
        [rows] labels, float64
    tiers
        the lists, with one score a row
    weights
        [lists] how much each list counts, or None
    """

    X: Any
    y: Array
    tiers: Tiers
    weights: Array | None = None


def split_query_column(X: Any, column: str | int | None) -> tuple[Any, Any]:
    """Take the column that names the query out of X: the other columns, and the query of each row.

    It lets a table carry its queries through tools that know only X and y, as `GridSearchCV` does.
    """
    if column is None:
        return X, None
    if isinstance(column, str):
        names = getattr(X, "columns", None)
        if names is None:
            raise ValueError(
                f"query_column is the name {column!r}, but X has none: give a frame or a number"
            )
        if column not in list(names):
            raise ValueError(f"X has no column {column!r}, which query_column names")
        rest = X.drop(columns=column) if hasattr(X, "iloc") else X.drop(column)
        return rest, np.asarray(X[column])
    width = np.shape(X)[-1]
    whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if not whole or not -width <= column < width:
        raise ValueError(
            f"query_column is {column!r}: give the name of a column of X, or its number, 0 to "
            f"{width - 1}"
        )
    if hasattr(X, "columns"):
        return split_query_column(X, list(X.columns)[column])
    if hasattr(X, "tocsc"):
        columns = X.tocsc()
        keep = np.delete(np.arange(X.shape[1]), column)
        return columns[:, keep].tocsr(), columns[:, [column]].toarray()[:, 0]
    table = np.asarray(X)
    return np.delete(table, column, axis=1), table[:, column]


def list_keys(rows: int, qid: Any, group: Any) -> tuple[Any, Array | None]:
    """Check that at most one of qid and group is given, and that it fits the rows.

    Returns
    -------
    qid, lengths
        at most one of which is not None
    """
    if qid is not None and group is not None:
        raise ValueError("give qid (one a row) or group (one size a list), not both")
    if group is not None:
        return None, checked_lengths(np.asarray(group), rows, "rows of X")
    if qid is not None:
        values = np.asarray(qid)
        if values.shape != (rows,):
            raise ValueError(
                f"qid has shape {list(values.shape)}, but X has {rows} rows: give one a row. "
                "(For sizes of lists, use group.)"
            )
        return values, None
    return None, None


def row_queries(rows: int, qid: Any, lengths: Array | None) -> Array:
    """[rows] a query of each row, whichever way the lists were given; all 0 if they were not."""
    if qid is not None:
        return np.asarray(qid)
    if lengths is not None:
        return np.repeat(np.arange(len(lengths)), lengths)
    return np.zeros(rows, dtype=np.int64)


def checked_weights(weights: Any, tiers: Tiers) -> Array | None:
    """[lists] weights as float64, finite and not negative."""
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(tiers),):
        raise ValueError(
            f"weights have shape {list(values.shape)}, but there are {len(tiers)} lists: "
            "give one a list, in order of first appearance"
        )
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise ValueError("weights are finite, not negative, and not all 0")
    return values


def validation_set(eval_set: Any) -> tuple[Any, Any, Any] | None:
    """The X, y and qid of `eval_set`, which is (X, y, qid) or a list of just one such tuple."""
    if eval_set is None:
        return None
    if isinstance(eval_set, list):
        if len(eval_set) != 1:
            raise ValueError(
                f"eval_set has {len(eval_set)} sets: training stops by one, so give one (X, y, qid)"
            )
        eval_set = eval_set[0]
    if not isinstance(eval_set, Sequence) or len(eval_set) not in (2, 3):
        raise ValueError("eval_set is (X, y, qid), or a list with one such tuple")
    X, y, *qid = eval_set
    return X, y, qid[0] if qid else None
