"""The rankers that LightGBM, XGBoost and CatBoost bring along, under the protocol of ours.

They learn, stop and predict by the same interface, so that one loop judges them all: the validation
metric is ours and the trees up to its best are kept; and what surrounds a model, a refit and an
average over members, is to be had here too, so that a comparison is about what it says it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from tierrank import metrics
from tierrank._types import AnyArray, FloatArray
from tierrank.names import did_you_mean
from tierrank.ranking.boosted import by_size
from tierrank.ranking.members import times_drawn, together, will_refit
from tierrank.tiers.arrays import group_rows
from tierrank.training import History, Watch
from tierrank.training.progress import member_seed, seed_from

PEERS = {
    "lightgbm": ("lambdarank", "rank_xendcg"),
    "xgboost": ("rank:ndcg", "rank:pairwise"),
    "catboost": ("YetiRank", "QuerySoftMax"),
}
ALL = tuple(f"{library}:{objective}" for library, own in PEERS.items() for objective in own)

Judge = Callable[[AnyArray], float]
Model = Any  # what a library trained


@dataclass(frozen=True)
class Rows:
    """Rows query by query, as these libraries want them.

    Attributes
    ----------
    X, y
        [rows, features] and [rows]
    lengths
        [queries] rows of each
    """

    X: Any
    y: AnyArray
    lengths: AnyArray

    @classmethod
    def by_query(cls, X: Any, y: Any, qid: Any) -> Rows:
        """Bring the rows of each query together, queries in order of first appearance."""
        y = np.asarray(y)
        query, keys = group_rows(qid, len(y))
        order = np.argsort(query, kind="stable")
        return cls(X[order], y[order], np.bincount(query, minlength=len(keys)))

    def __len__(self) -> int:
        return len(self.y)

    def drawn(self, seed: int) -> Rows:
        """As many queries, drawn with replacement."""
        starts = np.cumsum(self.lengths) - self.lengths
        low, high = (least.reduceat(self.y, starts) for least in (np.minimum, np.maximum))
        times = times_drawn(low < high, seed)
        lengths = np.repeat(self.lengths, times)
        first = np.cumsum(lengths) - lengths
        rows = np.arange(lengths.sum()) + np.repeat(np.repeat(starts, times) - first, lengths)
        return Rows(self.X[rows], self.y[rows], lengths)


class TreePeer(BaseEstimator):  # type: ignore[misc]
    """Boosted trees with an objective of the library's own.

    Parameters
    ----------
    objective
        the library's name of it
    trees, learning_rate, leaves, min_rows_per_leaf, l2, row_fraction, feature_fraction, patience
        as in `BoostedRanker`, "auto" too. XGBoost has no least number of rows in a leaf. CatBoost
        grows its own kind of trees, symmetric ones, as deep as have so many leaves or fewer.
    refit, members, metric, threads, random_state
        as in `BoostedRanker`
    """

    library: str
    _keeps_best = True  # of the trees, with an eval_set

    def __init__(
        self,
        objective: str = "",
        *,
        trees: int = 500,
        learning_rate: float = 0.05,
        leaves: int | Literal["auto"] = "auto",
        min_rows_per_leaf: int | Literal["auto"] = "auto",
        l2: float = 1.0,
        row_fraction: float | Literal["auto"] = "auto",
        feature_fraction: float | Literal["auto"] = "auto",
        patience: int = 50,
        refit: bool | Literal["auto"] = False,
        members: int = 1,
        metric: str = "ndcg@10",
        threads: int | None = None,
        random_state: int | None = 0,
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
        self.refit = refit
        self.members = members
        self.metric = metric
        self.threads = threads
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, qid: Any, eval_set: Any = None, watch: Watch | None = None
    ) -> Self:
        """Learn; stop by the validation rows if there are some, and learn once more from all."""
        refits = will_refit(self, validated=eval_set is not None, clicks=False)
        rows = Rows.by_query(X, y, qid)
        self._by_size = by_size(len(rows))
        valid = None if eval_set is None else Rows.by_query(*eval_set)
        seed, trees = seed_from(self.random_state), self.trees
        self.history_, *first = self._grown(rows, valid, trees, seed, watch)
        self._models: list[Any] = [first]
        if valid is not None and refits:
            trees = max(1, round(first[1] * (len(rows) + len(valid)) / len(rows)))
            every = together(((X, y), (qid, None)), (tuple(eval_set[:2]), (eval_set[2], None)))
            rows, valid, self._models = Rows.by_query(*every[0][0], every[0][1][0]), None, []
        draws = self._given("row_fraction") < 1 or self._given("feature_fraction") < 1
        for number in range(len(self._models), self.members):
            another = member_seed(seed, number)
            own = rows if draws or not number else rows.drawn(another)
            self._models.append(self._grown(own, valid, trees, another, watch)[1:])
        return self

    def _grown(
        self, rows: Rows, valid: Rows | None, trees: int, seed: int, watch: Watch | None
    ) -> tuple[History, Model, int]:
        """How it went, what was learned, and how many of its trees are kept."""
        history = History("tree", self.metric)
        judge = None if valid is None else self._judge(valid, history, watch)
        model = self._train(rows, valid, trees, judge, seed)
        return history, model, trees if history.best_step is None else history.best_step

    def predict(self, X: Any, *, qid: Any = None) -> FloatArray:
        """[rows] scores, the mean over the members."""
        scores = [self._predict(model, X, kept) for model, kept in self._models]
        return np.asarray(np.mean(scores, axis=0), dtype=np.float64)

    def _given(self, name: str) -> Any:
        """A setting; "auto" is by the size of the training part, as in `BoostedRanker`."""
        value = getattr(self, name)
        return self._by_size[name] if value == "auto" else value

    def _judge(self, valid: Rows, history: History, watch: Watch | None) -> Judge:
        """Called with the validation rows' scores after each tree: notes and tells their metric."""
        measure = metrics.from_name(self.metric)

        def judge(scores: AnyArray) -> float:
            found = float(measure(np.asarray(scores), valid.y, lengths=valid.lengths))
            history.add(len(history.steps) + 1, None, found)
            if watch is not None:
                watch(history.progress(self.trees))
            return found

        return judge

    def _train(
        self, rows: Rows, valid: Rows | None, trees: int, judge: Judge | None, seed: int
    ) -> Model:
        """Learn, and give every tree's validation scores to the judge."""
        raise NotImplementedError

    def _predict(self, model: Model, X: Any, trees: int) -> AnyArray:
        """[rows] scores by the first trees."""
        raise NotImplementedError

    def _json_params(self) -> dict[str, Any]:
        return dict(self.get_params())

    def _threads(self) -> int:
        import torch

        return self.threads or torch.get_num_threads()


class LightGBMPeer(TreePeer):
    """LightGBM with `lambdarank` or `rank_xendcg`."""

    library = "lightgbm"

    def _train(
        self, rows: Rows, valid: Rows | None, trees: int, judge: Judge | None, seed: int
    ) -> Model:
        import lightgbm

        params = {
            "objective": self.objective,
            "metric": "None",
            "verbosity": -1,
            "learning_rate": self.learning_rate,
            "num_leaves": self._given("leaves"),
            "min_data_in_leaf": self._given("min_rows_per_leaf"),
            "lambda_l2": self.l2,
            "bagging_fraction": self._given("row_fraction"),
            "bagging_freq": 1 if self._given("row_fraction") < 1 else 0,
            "feature_fraction": self._given("feature_fraction"),
            "num_threads": self._threads(),
            "seed": seed % 2**31,
            "deterministic": True,
            "force_col_wise": True,
        }
        data = lightgbm.Dataset(rows.X, rows.y, group=rows.lengths)
        if valid is None or judge is None:
            return lightgbm.train(params, data, num_boost_round=trees)
        held = lightgbm.Dataset(valid.X, valid.y, group=valid.lengths, reference=data)
        return lightgbm.train(
            params,
            data,
            num_boost_round=trees,
            valid_sets=[held],
            feval=lambda scores, _: ("metric", judge(scores), True),
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )

    def _predict(self, model: Model, X: Any, trees: int) -> AnyArray:
        return np.asarray(model.predict(X, num_iteration=trees, num_threads=self._threads()))


class XGBoostPeer(TreePeer):
    """XGBoost with `rank:ndcg` or `rank:pairwise`."""

    library = "xgboost"

    def _train(
        self, rows: Rows, valid: Rows | None, trees: int, judge: Judge | None, seed: int
    ) -> Model:
        import xgboost

        params = {
            "objective": self.objective,
            "disable_default_eval_metric": True,
            "verbosity": 0,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": self._given("leaves"),
            "learning_rate": self.learning_rate,
            "lambda": self.l2,
            "subsample": self._given("row_fraction"),
            "colsample_bytree": self._given("feature_fraction"),
            "nthread": self._threads(),
            "seed": seed % 2**31,
        }
        data = xgboost.QuantileDMatrix(rows.X, rows.y, group=rows.lengths)
        if valid is None or judge is None:
            return xgboost.train(params, data, num_boost_round=trees, verbose_eval=False)
        held = xgboost.DMatrix(valid.X, valid.y, group=valid.lengths)
        return xgboost.train(
            params,
            data,
            num_boost_round=trees,
            evals=[(held, "valid")],
            custom_metric=lambda scores, _: ("metric", judge(scores)),
            maximize=True,
            early_stopping_rounds=self.patience,
            verbose_eval=False,
        )

    def _predict(self, model: Model, X: Any, trees: int) -> AnyArray:
        import xgboost

        rows = xgboost.DMatrix(X, nthread=self._threads())
        return np.asarray(model.predict(rows, iteration_range=(0, trees), output_margin=True))


class CatBoostPeer(TreePeer):
    """CatBoost with `YetiRank` or `QuerySoftMax`."""

    library = "catboost"

    def _train(
        self, rows: Rows, valid: Rows | None, trees: int, judge: Judge | None, seed: int
    ) -> Model:
        import catboost

        params: dict[str, Any] = {
            "loss_function": self.objective,
            "iterations": trees,
            "learning_rate": self.learning_rate,
            "depth": max(1, int(np.log2(self._given("leaves")))),
            "l2_leaf_reg": self.l2,
            "rsm": self._given("feature_fraction"),
            "thread_count": self._threads(),
            "random_seed": seed % 2**31,
            "verbose": False,
            "allow_writing_files": False,
        }
        if self._given("row_fraction") < 1:
            params |= {"bootstrap_type": "Bernoulli", "subsample": self._given("row_fraction")}
        data = catboost.Pool(rows.X, rows.y, group_id=_numbers(rows.lengths))
        if valid is None or judge is None:
            return catboost.CatBoost(params).fit(data)
        params |= {"od_type": "Iter", "od_wait": self.patience, "use_best_model": False}
        held = catboost.Pool(valid.X, valid.y, group_id=_numbers(valid.lengths))
        with _without_numba():
            params["eval_metric"] = _CatBoostMetric(judge, valid.y)
            return catboost.CatBoost(params).fit(data, eval_set=held)

    def _predict(self, model: Model, X: Any, trees: int) -> AnyArray:
        return np.asarray(model.predict(X, ntree_end=trees, thread_count=self._threads()))


class _CatBoostMetric:
    """What CatBoost asks of a metric: of training rows, too, which are of no interest."""

    def __init__(self, judge: Judge, y: AnyArray) -> None:
        self._judge, self._y = judge, np.asarray(y, dtype=np.float32)

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, _: float) -> float:
        return error

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        found = np.asarray(target, dtype=np.float32)
        if found.shape != self._y.shape or not np.array_equal(found, self._y):
            return 0.0, 1.0
        return self._judge(np.asarray(approxes[0])), 1.0


@contextmanager
def _without_numba() -> Iterator[None]:
    """Without CatBoost's word on a metric that numba, if installed, does not compile."""
    import warnings

    with warnings.catch_warnings():
        for message in ("Failed to optimize", "Can't optim", "Failed to import numba"):
            warnings.filterwarnings("ignore", message=message)
        yield


CLASSES: dict[str, type[TreePeer]] = {
    each.library: each for each in (LightGBMPeer, XGBoostPeer, CatBoostPeer)
}


def parse_peer(name: str) -> tuple[str, str]:
    """Library and objective that a name such as "xgboost:rank:ndcg" means; refuses others."""
    library, _, objective = name.partition(":")
    if objective not in PEERS.get(library, ()):
        guess = did_you_mean(name, ALL)
        raise ValueError(f"there is no peer {name!r}.{guess} It is one of {', '.join(ALL)}.")
    if find_spec(library) is None:
        raise ValueError(f"{name} needs {library}, which is not installed: {_install(library)}")
    return library, objective


def _install(library: str) -> str:
    return f"pip install {library}" if library == "catboost" else 'pip install "tierrank[boost]"'


def peer_from(name: str, **settings: Any) -> TreePeer:
    """An unfitted peer by its name.

    Examples
    --------
    >>> peer_from("lightgbm:lambdarank", leaves=15)
    LightGBMPeer(leaves=15, objective='lambdarank')
    """
    library, objective = parse_peer(name)
    return CLASSES[library](objective, **settings)


def _numbers(lengths: AnyArray) -> AnyArray:
    """[rows] the number of each row's query."""
    return np.repeat(np.arange(len(lengths)), lengths)
