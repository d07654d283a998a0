"""Gradient-boosted trees with the objectives of this package, grown by LightGBM or XGBoost."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from tierrank.ranking.base import Ranker
from tierrank.ranking.boosting.derivatives import BoostingObjective
from tierrank.ranking.boosting.forest import Forest
from tierrank.ranking.boosting.loop import Boosting, Standing
from tierrank.ranking.boosting.settings import Grower, TreeSettings
from tierrank.ranking.inputs import Array, TrainingRows
from tierrank.storage import Arrays
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.settings import check_count, seed_from


class BoostedRanker(Ranker):
    """Score rows by a sum of regression trees, each a step down the objective.

    Every tree is fitted to the gradient and the Hessian diagonal of the objective, both exact for
    the likelihoods (docs/boosted.md says what stands for the Hessian elsewhere). With an
    `eval_set`, the trees up to the best validation metric are kept.

    Missing values (NaN) may be anywhere in X, and go where the training rows say. The fitted
    model is a `Forest`, plain arrays: to predict, save or load it takes neither library.

    Parameters
    ----------
    objective, objective_params
        a name of `tierrank.losses.OBJECTIVES`, and its options
    library
        what grows the trees: "lightgbm" or "xgboost"
    trees
        how many at most
    learning_rate
        by what the leaves of each are multiplied
    leaves, depth
        the most leaves of a tree, and the longest way to one (None: no limit)
    min_rows_per_leaf
        rows in a leaf at least; 20 if not given. XGBoost has no such limit.
    min_hessian_per_leaf
        sum of the Hessian over the rows of a leaf, at least
    l2
        penalty on the squares of the leaves
    row_fraction, feature_fraction
        the share of rows and of features that each tree sees, drawn at random
    patience
        stop after so many trees without a better validation metric (None: never)
    bins
        values of a feature are put into so many bins
    library_params
        further parameters, under the library's own names
    features, metric, query_column, random_state
        as in the other rankers
    threads
        for the library and for the objective (None: torch's number)

    Attributes
    ----------
    forest_
        the trees, a `tierrank.ranking.boosting.forest.Forest`
    feature_importances_
        [features, after the feature steps] shares in the gain of all splits
    objective_state_
        the objective's own parameters, where it learns some

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=400), [0, 1])
    >>> ranker = tr.BoostedRanker(trees=20, random_state=0).fit(X, y, group=[10] * 40)
    >>> len(ranker.forest_), int(ranker.feature_importances_.argmax())
    (20, 0)
    """

    allows_missing: ClassVar[bool] = True

    forest_: Forest
    objective_state_: dict[str, float]

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        library: Literal["lightgbm", "xgboost"] = "lightgbm",
        trees: int = 500,
        learning_rate: float = 0.05,
        leaves: int = 31,
        depth: int | None = None,
        min_rows_per_leaf: int | None = None,
        min_hessian_per_leaf: float = 1e-3,
        l2: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        patience: int | None = 50,
        bins: int = 255,
        library_params: dict[str, Any] | None = None,
        features: Any = None,
        metric: str = "ndcg@10",
        threads: int | None = None,
        query_column: str | int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.objective_params = objective_params
        self.library = library
        self.trees = trees
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.depth = depth
        self.min_rows_per_leaf = min_rows_per_leaf
        self.min_hessian_per_leaf = min_hessian_per_leaf
        self.l2 = l2
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.bins = bins
        self.library_params = library_params
        self.features = features
        self.metric = metric
        self.threads = threads
        self.query_column = query_column
        self.random_state = random_state

    @property
    def feature_importances_(self) -> Array:
        """[features, after the feature steps] shares in the gain of all splits."""
        return self.forest_.importances()

    # -- learning -----------------------------------------------------------------------------

    def _learn(
        self,
        train: TrainingRows,
        valid: TrainingRows | None,
        checkpoint: Checkpoint,
        watch: Watch | None,
    ) -> None:
        settings = self._settings()
        check_count("trees", self.trees)
        if self.patience is not None:
            check_count("patience", self.patience)
        metric = None if valid is None else self._metric_on(valid)
        with _torch_threads(settings.threads):
            kept = checkpoint.load()
            seed = seed_from(self.random_state) if kept is None else kept[0]["seed"]
            objective = BoostingObjective(self._objective(), train.tiers, train.weights, seed)
            grower = self._grower(train.X, None if valid is None else valid.X, settings)
            boosting = Boosting(grower, objective, self.trees, self.patience, metric, seed)
            if kept is None:
                standing = Standing(
                    Forest.empty(train.X.shape[1]),
                    np.zeros(train.X.shape[0]),
                    None if valid is None else np.zeros(valid.X.shape[0]),
                    History("tree", self._metric().name).to_json(),
                    objective.parameters,
                )
            else:
                standing = Standing.from_saved(*kept)
            standing, interrupted = boosting.run(standing, checkpoint, watch)
        self._take(standing)
        if interrupted:
            raise KeyboardInterrupt
        if self.forest_.is_leaf.all():
            warnings.warn(
                "no split was possible, so all scores are equal: are the features constant, or "
                "min_rows_per_leaf and min_hessian_per_leaf too large for so few rows?",
                UserWarning,
                stacklevel=3,
            )

    def _take(self, standing: Standing) -> None:
        """Learn what a fit has come to, up to its best tree."""
        self.history_ = History.from_json(standing.history)
        best = self.history_.best_step
        self.forest_ = standing.forest if best is None else standing.forest.first(best)
        self.objective_state_ = standing.parameters

    def _grower(self, X: Any, valid_X: Any, settings: TreeSettings) -> Grower:
        if self.library == "lightgbm":
            from tierrank.ranking.boosting.lightgbm_trees import LightGBMTrees

            return LightGBMTrees(X, valid_X, settings)
        if self.library == "xgboost":
            from tierrank.ranking.boosting.xgboost_trees import XGBoostTrees

            return XGBoostTrees(X, valid_X, settings)
        raise ValueError(f'library is "lightgbm" or "xgboost", not {self.library!r}')

    def _settings(self) -> TreeSettings:
        return TreeSettings(
            learning_rate=self.learning_rate,
            leaves=self.leaves,
            depth=self.depth,
            min_rows_per_leaf=self.min_rows_per_leaf,
            min_hessian_per_leaf=self.min_hessian_per_leaf,
            l2=self.l2,
            row_fraction=self.row_fraction,
            feature_fraction=self.feature_fraction,
            bins=self.bins,
            threads=torch.get_num_threads() if self.threads is None else self.threads,
            library_params=self.library_params or {},
        )

    # -- what was learned ---------------------------------------------------------------------

    def _scores(self, X: Any, queries: Array) -> Array:
        return self.forest_.predict(X)

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        info = {"n_features": self.forest_.n_features, "objective_state": self.objective_state_}
        return info, self.forest_.arrays()

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        self.forest_ = Forest.from_arrays(info["n_features"], tensors)
        if self.forest_.n_features != self._width:
            raise ValueError(
                f"the forest looks at {self.forest_.n_features} features, of {self._width} there "
                "are"
            )
        state = info["objective_state"]
        self.objective_state_ = {str(name): float(value) for name, value in state.items()}


@contextmanager
def _torch_threads(number: int) -> Iterator[None]:
    """Let torch, and our own code with it, use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
