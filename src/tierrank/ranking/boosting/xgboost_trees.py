"""Trees grown by XGBoost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tierrank.ranking.boosting.forest import NAN, ZERO, Forest, tree_arrays
from tierrank.ranking.boosting.settings import TreeSettings
from tierrank.ranking.inputs import Array
from tierrank.storage import Arrays

# Named by arguments of the ranker, or leading to trees that a `Forest` cannot hold.
# fmt: off
OURS = {
    "objective", "eval_metric", "disable_default_eval_metric", "base_score", "booster",
    "tree_method", "num_class", "num_target", "multi_strategy", "num_parallel_tree",
    "process_type", "updater", "learning_rate", "eta", "max_leaves", "max_depth",
    "min_child_weight", "lambda", "reg_lambda", "subsample", "colsample_bytree", "max_bin",
    "nthread", "n_jobs", "seed", "random_state", "seed_per_iteration", "enable_categorical",
    "feature_types",
}
# fmt: on


class XGBoostTrees:
    """A `Grower`. Scores, as all that XGBoost computes, are float32.

    XGBoost takes what a sparse matrix does not store for missing. So a forest that grew from a
    sparse matrix takes every 0 for missing, and one that grew from a dense one none: then it does
    not matter how the rows come that are to be scored.
    """

    def __init__(self, X: Any, valid_X: Any, settings: TreeSettings) -> None:
        try:
            import xgboost
        except ImportError as error:
            raise ImportError(
                'library="xgboost" needs xgboost: pip install "tierrank[boost]"'
            ) from error
        self._library = xgboost
        self._params = xgboost_params(settings)
        self._n_features = X.shape[1]
        self._sparse = hasattr(X, "indptr")
        threads = settings.threads
        self._rows = xgboost.QuantileDMatrix(
            self._same_kind(X), max_bin=settings.bins, nthread=threads
        )
        self._valid_rows = None
        if valid_X is not None:
            self._valid_rows = xgboost.DMatrix(self._same_kind(valid_X), nthread=threads)
        self._booster: Any = None
        self._trees = 0

    def _same_kind(self, X: Any) -> Any:
        """Sparse without stored zeros, or dense, as the training rows are."""
        if not self._sparse:
            return X.toarray() if hasattr(X, "indptr") else X
        from scipy.sparse import csr_array

        rows = csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows

    def start(self, scores: Array, valid_scores: Array | None, seed: int) -> None:
        self._rows.set_base_margin(scores.astype(np.float32))
        seen: list[Any] = [self._rows]
        if self._valid_rows is not None:
            assert valid_scores is not None
            self._valid_rows.set_base_margin(valid_scores.astype(np.float32))
            seen.append(self._valid_rows)
        params = {**self._params, "seed": seed & 0x7FFFFFFF}
        self._booster = self._library.Booster(params, seen)
        self._trees = 0

    def grow(self, gradient: Array, hessian: Array) -> bool:
        self._booster.boost(self._rows, self._trees, grad=gradient, hess=hessian)
        self._trees += 1
        return True

    def scores(self) -> Array:
        return self._margins(self._rows)

    def valid_scores(self) -> Array:
        return self._margins(self._valid_rows)

    def _margins(self, rows: Any) -> Array:
        """XGBoost keeps these, and adds the trees that are new."""
        return np.asarray(self._booster.predict(rows, output_margin=True))

    def forest(self) -> Forest:
        model = json.loads(bytes(self._booster.save_raw("json")))
        return read_forest(model, self._n_features, zero_is_missing=self._sparse)


def xgboost_params(settings: TreeSettings) -> dict[str, Any]:
    """The settings as XGBoost calls them."""
    if settings.min_rows_per_leaf is not None:
        raise ValueError(
            "min_rows_per_leaf is LightGBM's; XGBoost limits leaves by min_hessian_per_leaf only"
        )
    params: dict[str, Any] = {
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "verbosity": 0,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "seed_per_iteration": True,
        "learning_rate": settings.learning_rate,
        "max_leaves": settings.leaves,
        "max_depth": 0 if settings.depth is None else settings.depth,
        "min_child_weight": settings.min_hessian_per_leaf,
        "reg_lambda": settings.l2,
        "subsample": settings.row_fraction,
        "colsample_bytree": settings.feature_fraction,
        "max_bin": settings.bins,
        "nthread": settings.threads,
    }
    return {**params, **settings.checked_params(OURS)}


def read_forest(model: dict[str, Any], n_features: int, *, zero_is_missing: bool) -> Forest:
    """The trees of a model as XGBoost writes it as JSON, with every digit."""
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    missing = ZERO if zero_is_missing else NAN
    return Forest.concatenate(n_features, [_read_tree(tree, missing) for tree in trees])


def _read_tree(tree: dict[str, Any], missing: int) -> Arrays:
    if any(tree["split_type"]):
        raise ValueError("XGBoost grew a tree with categories: turn that off")
    left = np.asarray(tree["left_children"])
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)  # or a leaf's value
    return tree_arrays(
        left,
        np.asarray(tree["right_children"]),
        condition,
        feature=np.asarray(tree["split_indices"]),
        threshold=last_below(condition),
        missing=np.full(len(left), missing),
        default_left=np.asarray(tree["default_left"]) > 0,
        gain=np.asarray(tree["loss_changes"], dtype=np.float64),
    )


def last_below(limit: Array) -> Array:
    """The largest float64 that, rounded to float32, is below a float32: x < limit, as x ≤ result.

    It is half-way to the float32 before, or just under that where half-way is rounded up, which
    goes by the last bit.
    """
    with np.errstate(over="ignore"):  # nothing is below the smallest
        before = np.nextafter(limit, np.float32(-np.inf))
    half_way = 0.5 * (before.astype(np.float64) + limit)
    rounds_down = before.view(np.uint32) & 1 == 0
    return np.where(rounds_down, half_way, np.nextafter(half_way, -np.inf))
