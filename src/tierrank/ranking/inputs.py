"""What rankers are given: rows of features, their labels, and which rows form a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank.tiers import Tiers
from tierrank.tiers.labels import as_keys, checked_lengths

Array = np.ndarray[Any, Any]

THEIR_WORDS = {
    "n_estimators": "trees", "num_iterations": "trees", "num_boost_round": "trees",
    "num_trees": "trees", "iterations": "trees", "eta": "learning_rate",
    "num_leaves": "leaves", "max_leaves": "leaves", "max_depth": "depth",
    "min_child_samples": "min_rows_per_leaf", "min_data_in_leaf": "min_rows_per_leaf",
    "min_child_weight": "min_hessian_per_leaf", "min_sum_hessian_in_leaf": "min_hessian_per_leaf",
    "reg_lambda": "l2", "lambda_l2": "l2", "l2_leaf_reg": "l2",
    "subsample": "row_fraction", "bagging_fraction": "row_fraction",
    "colsample_bytree": "feature_fraction", "max_bin": "bins",
    "early_stopping_rounds": "patience", "early_stopping_round": "patience",
    "eval_metric": "metric", "n_jobs": "threads", "num_threads": "threads", "nthread": "threads",
    "seed": "random_state",
    "reg_alpha": "library_params", "lambda_l1": "library_params", "gamma": "library_params",
    "min_split_gain": "library_params", "min_gain_to_split": "library_params",
}  # fmt: skip
"""What LightGBM, XGBoost and CatBoost call the arguments of our rankers."""

THEIR_FIT_WORDS = {
    "sample_weight": "weights, one a list, in order of first appearance",
    "eval_group": "eval_set=[(X, y, qid)]",
    "eval_qid": "eval_set=[(X, y, qid)]",
    "groups": "qid, one a row, or group, one size a list",
    "eval_metric": "the constructor's metric",
    "eval_at": "the constructor's metric, as in metric='ndcg@5'",
    "early_stopping_rounds": "the constructor's patience",
    "callbacks": "watch, which is called after every step",
    "verbose": "watch, which is called after every step",
}
"""What they call the arguments of `fit`, and what to write."""


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
        try:
            return None, checked_lengths(np.asarray(group), rows, "rows of X")
        except ValueError as error:
            raise ValueError(
                f"group: {error} (Cross-validation cuts data by row, which sizes of lists do not "
                "survive: give it qid, one a row.)"
            ) from None
    if qid is not None:
        values = as_keys(qid)
        if values.shape != (rows,):
            raise ValueError(
                f"qid has shape {list(values.shape)}, but X has {rows} rows: give one a row. "
                "(For sizes of lists, use group.)"
            )
        return values, None
    return None, None


def no_lists(call: str) -> ValueError:
    """What to say of a call that leaves open which rows form a list: all of them hardly do."""
    sizes = ", or group=[…] for lists of consecutive rows ([len(X)] if all are one list)"
    return ValueError(
        f"which rows form a list? Write {call}, where qid has the list of each row"
        f"{sizes if '=qid' in call else ''}; or name a column of X that says it by the "
        "constructor's query_column. Through cross_val_score, GridSearchCV and pipelines, qid "
        "comes by sklearn.set_config(enable_metadata_routing=True) and params={'qid': qid} or "
        "qid=qid: see docs/scikit-learn.md."
    )


def row_queries(rows: int, qid: Any, lengths: Array | None) -> Array:
    """[rows] a query of each row, whichever way the lists were given; all 0 if they were not."""
    if qid is not None:
        return as_keys(qid)
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
