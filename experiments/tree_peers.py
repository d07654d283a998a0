"""The rankers that LightGBM and XGBoost bring along, under our protocol.

They learn, stop and predict by the same interface as ours, so that one loop can judge them all:
the validation metric is ours, and the trees up to its best are kept.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from tierrank import metrics
from tierrank.tiers.labels import group_rows
from tierrank.training import History


class TreePeer(BaseEstimator):
    """Boosted trees with an objective of the library's own; rows are sorted by query for it."""

    def __init__(
        self,
        objective: str = "",
        *,
        trees: int = 500,
        learning_rate: float = 0.05,
        leaves: int = 31,
        min_rows_per_leaf: int = 20,
        l2: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        patience: int = 50,
        metric: str = "ndcg@10",
        threads: int = 1,
        random_state: int = 0,
    ) -> None:
        self.objective = objective
        self.trees = trees
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.min_rows_per_leaf = min_rows_per_leaf
        self.l2 = l2
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.metric = metric
        self.threads = threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, qid: Any, eval_set: Any, watch: Any = None) -> Self:
        """Learn, and stop by the validation rows."""
        train, valid = _sorted(X, y, qid), _sorted(*eval_set)
        measure = metrics.from_name(self.metric)

        def judge(scores: Any) -> float:
            return float(measure(scores, valid[1], lengths=valid[2]))

        self.history_ = History("tree", self.metric)
        self.history_.best_step = self._grow(train, valid, judge)
        return self

    def _grow(self, train: Any, valid: Any, judge: Any) -> int:
        """Learn; give the best number of trees."""
        raise NotImplementedError


class LightGBMPeer(TreePeer):
    """LightGBM with `lambdarank` or `rank_xendcg`."""

    def _grow(self, train: Any, valid: Any, judge: Any) -> int:
        import lightgbm

        params = {
            "objective": self.objective,
            "metric": "None",
            "verbosity": -1,
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_rows_per_leaf,
            "lambda_l2": self.l2,
            "bagging_fraction": self.row_fraction,
            "bagging_freq": 1 if self.row_fraction < 1 else 0,
            "feature_fraction": self.feature_fraction,
            "num_threads": self.threads,
            "seed": self.random_state,
            "deterministic": True,
            "force_col_wise": True,
        }
        rows = lightgbm.Dataset(train[0], train[1], group=train[2])
        held = lightgbm.Dataset(valid[0], valid[1], group=valid[2], reference=rows)
        self._booster = lightgbm.train(
            params,
            rows,
            num_boost_round=self.trees,
            valid_sets=[held],
            feval=lambda scores, data: ("metric", judge(scores), True),
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )
        return int(self._booster.best_iteration)

    def predict(self, X: Any, *, qid: Any = None) -> Any:
        """[rows] scores."""
        return self._booster.predict(X, num_iteration=self.history_.best_step)


class XGBoostPeer(TreePeer):
    """XGBoost with `rank:ndcg`."""

    def _grow(self, train: Any, valid: Any, judge: Any) -> int:
        import xgboost

        params = {
            "objective": self.objective,
            "disable_default_eval_metric": True,
            "verbosity": 0,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "lambda": self.l2,
            "subsample": self.row_fraction,
            "colsample_bytree": self.feature_fraction,
            "nthread": self.threads,
            "seed": self.random_state,
        }
        rows = xgboost.QuantileDMatrix(train[0], train[1], group=train[2])
        held = xgboost.DMatrix(valid[0], valid[1], group=valid[2])
        self._booster = xgboost.train(
            params,
            rows,
            num_boost_round=self.trees,
            evals=[(held, "valid")],
            custom_metric=lambda scores, data: ("metric", judge(scores)),
            maximize=True,
            early_stopping_rounds=self.patience,
            verbose_eval=False,
        )
        return int(self._booster.best_iteration) + 1

    def predict(self, X: Any, *, qid: Any = None) -> Any:
        """[rows] scores."""
        import xgboost

        rows = xgboost.DMatrix(X)
        best = self.history_.best_step
        return self._booster.predict(rows, iteration_range=(0, best), output_margin=True)


def _sorted(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Rows by query, and how many each query has."""
    query, keys = group_rows(qid, len(y))
    order = np.argsort(query, kind="stable")
    return X[order], y[order], np.bincount(query, minlength=len(keys))
