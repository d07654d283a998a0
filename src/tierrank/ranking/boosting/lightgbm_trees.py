"""Trees grown by LightGBM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tierrank.ranking.boosting.forest import Forest, tree_arrays
from tierrank.ranking.boosting.settings import TreeSettings
from tierrank.ranking.inputs import Array
from tierrank.storage import Arrays

# Named by arguments of the ranker, or leading to trees that a `Forest` cannot hold.
# fmt: off
OURS = {
    "objective", "objective_type", "app", "application", "loss", "metric", "metrics",
    "metric_types", "boosting", "boosting_type", "boost", "linear_tree", "linear_trees",
    "categorical_feature", "cat_feature", "categorical_column", "cat_column",
    "categorical_features", "num_iterations", "num_iteration", "n_iter", "num_tree",
    "num_trees", "num_round", "num_rounds", "nrounds", "num_boost_round", "n_estimators",
    "max_iter", "learning_rate", "shrinkage_rate", "eta", "num_leaves", "num_leaf",
    "max_leaves", "max_leaf", "max_leaf_nodes", "max_depth", "min_data_in_leaf",
    "min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf",
    "min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian",
    "min_child_weight", "lambda_l2", "reg_lambda", "lambda", "l2_regularization",
    "bagging_fraction", "sub_row", "subsample", "bagging", "feature_fraction", "sub_feature",
    "colsample_bytree", "max_bin", "max_bins", "num_threads", "num_thread", "nthread",
    "nthreads", "n_jobs", "seed", "random_seed", "random_state", "bagging_seed",
    "bagging_fraction_seed", "feature_fraction_seed", "extra_seed", "data_random_seed",
    "data_seed", "early_stopping_round", "early_stopping_rounds", "early_stopping",
    "n_iter_no_change", "num_class",
}
# fmt: on

ATTEMPTS = 10  # to find a split among rows and features that are drawn anew
DEFAULT_LEFT, MISSING_SHIFT = 2, 2  # bits of a node's decision_type


class LightGBMTrees:
    """A `Grower`.

    Histograms are built column by column: which way is faster LightGBM would find out by the
    clock, differently each time, and the other way copies all rows for every new booster.
    """

    def __init__(self, X: Any, valid_X: Any, settings: TreeSettings) -> None:
        try:
            import lightgbm
        except ImportError as error:
            raise ImportError(
                'library="lightgbm" needs lightgbm: pip install "tierrank[boost]"'
            ) from error
        self._library = lightgbm
        self._params = lightgbm_params(settings)
        self._n_features = X.shape[1]
        drawn = settings.row_fraction < 1 or settings.feature_fraction < 1
        self._attempts = ATTEMPTS if drawn else 1
        self._valid_rows = None
        self._booster: Any = None
        with self._refusals_explained():
            self._rows = lightgbm.Dataset(X, params=self._params).construct()
            if valid_X is not None:
                valid_rows = self._rows.create_valid(valid_X, params=self._params)
                self._valid_rows = valid_rows.construct()

    @contextmanager
    def _refusals_explained(self) -> Iterator[None]:
        try:
            yield
        except self._library.basic.LightGBMError as error:
            raise ValueError(f"LightGBM refuses: {error}. Are library_params right?") from error

    def start(self, scores: Array, valid_scores: Array | None, seed: int) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(3) >> 1
        names = ("bagging_seed", "feature_fraction_seed", "extra_seed")
        self._rows.set_init_score(scores)
        params = {**self._params, **dict(zip(names, map(int, seeds), strict=True))}
        with self._refusals_explained():
            self._booster = self._library.Booster(params, self._rows)
        if self._valid_rows is not None:
            self._valid_rows.set_init_score(valid_scores)
            self._booster.add_valid(self._valid_rows, "valid")

    def grow(self, gradient: Array, hessian: Array) -> bool:
        with self._refusals_explained():
            return any(
                not self._booster.update(fobj=lambda scores, rows: (gradient, hessian))
                for _ in range(self._attempts)
            )

    def scores(self) -> Array:
        return self._seen(self._booster.eval_train)

    def valid_scores(self) -> Array:
        return self._seen(self._booster.eval_valid)

    @staticmethod
    def _seen(evaluate: Any) -> Array:
        """The scores that LightGBM shows to a metric; its own array, which it will change."""
        seen: list[Array] = []

        def look(scores: Array, rows: Any) -> tuple[str, float, bool]:
            seen.append(scores)
            return "seen", 0.0, True

        evaluate(look)
        return seen[0].copy()

    def forest(self) -> Forest:
        return read_forest(self._booster.model_to_string(num_iteration=-1), self._n_features)


def lightgbm_params(settings: TreeSettings) -> dict[str, Any]:
    """The settings as LightGBM calls them."""
    params: dict[str, Any] = {
        "objective": "custom",
        "metric": "none",
        "verbosity": -1,
        "deterministic": True,
        "force_col_wise": True,
        "feature_pre_filter": False,
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "max_depth": -1 if settings.depth is None else settings.depth,
        "min_data_in_leaf": 20
        if settings.min_rows_per_leaf is None
        else settings.min_rows_per_leaf,
        "min_sum_hessian_in_leaf": settings.min_hessian_per_leaf,
        "lambda_l2": settings.l2,
        "bagging_fraction": settings.row_fraction,
        "bagging_freq": 1 if settings.row_fraction < 1 else 0,
        "feature_fraction": settings.feature_fraction,
        "max_bin": settings.bins,
        "num_threads": settings.threads,
    }
    given = settings.checked_params(OURS)
    if given.get("force_row_wise"):
        del params["force_col_wise"]
    return {**params, **given}


def read_forest(model: str, n_features: int) -> Forest:
    """The trees of a model as LightGBM writes it down, with every digit."""
    trees = [_read_tree(text) for text in model.split("\nTree=")[1:]]
    return Forest.concatenate(n_features, trees)


def _read_tree(text: str) -> Arrays:
    """One tree; LightGBM numbers its inner nodes, and apart from them its leaves, as ~number."""
    lines = dict(line.split("=", 1) for line in text.splitlines()[1:] if "=" in line)
    leaves = _numbers(lines["leaf_value"], np.float64)
    inner = len(leaves) - 1
    if int(lines["num_cat"]) or int(lines.get("is_linear", 0)):
        raise ValueError("LightGBM grew a tree with categories or linear leaves: turn that off")

    def of_nodes(name: str, kind: Any) -> Array:
        given = _numbers(lines[name], kind) if inner else np.zeros(0, kind)
        return np.concatenate([given, np.zeros(len(leaves), kind)])

    left, right = of_nodes("left_child", np.int64), of_nodes("right_child", np.int64)
    for children in (left, right):
        children[:] = np.where(children < 0, inner + ~children, children)
        children[inner:] = -1
    decision = of_nodes("decision_type", np.int64)
    return tree_arrays(
        left,
        right,
        np.concatenate([np.zeros(inner), leaves]),
        feature=of_nodes("split_feature", np.int64),
        threshold=of_nodes("threshold", np.float64),
        missing=(decision >> MISSING_SHIFT) & 3,
        default_left=(decision & DEFAULT_LEFT) > 0,
        gain=of_nodes("split_gain", np.float64),
    )


def _numbers(text: str, kind: Any) -> Array:
    return np.asarray(text.split(), dtype=kind)
