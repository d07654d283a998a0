"""Gradient-boosted trees with the objectives of this package, grown by LightGBM or XGBoost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Never, Protocol, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data

from tierrank._types import AnyArray
from tierrank.data.cache import folder_of
from tierrank.data.ranking_data import (
    RankingData,
    called,
    check_kind,
    chosen_columns,
    column_names,
    column_of,
    occurring,
    recoded,
    with_columns,
)
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.ranking.base import (
    Ranker,
    TrainingRows,
    ValidationRows,
    biases_of,
    split_query_column,
)
from tierrank.ranking.derivatives import BoostingObjective, Derivatives, ShownObjective
from tierrank.ranking.features import steps_from
from tierrank.ranking.forest import Forest, Grower, LightGBMTrees, TreeSettings, XGBoostTrees
from tierrank.ranking.linear_loss import fitted_biases
from tierrank.ranking.members import Refit, mean_of
from tierrank.storage import Arrays
from tierrank.tiers.arrays import is_dask
from tierrank.training import Checkpoint, History, Interruption, Watch
from tierrank.training.progress import seed_from

SEGMENT = 25
LEAVES = {20_000: 7, 200_000: 15}  # up to so many training rows; beyond, LightGBM's own 31
RUN_AWAY = 1e9  # no score that means anything is as large


class BoostedRanker(Ranker):
    """Score rows by a sum of regression trees, each a step down the objective.

    Every tree is fitted to the gradient and the Hessian diagonal of the objective, both exact for
    the likelihoods (docs/boosted.md says what stands for the Hessian elsewhere). With an
    `eval_set`, the trees up to the best validation metric are kept.

    Missing values (NaN) may be anywhere in X, and go where the training rows say. The fitted
    model is a `Forest`, plain arrays: to predict, save or load it takes neither library.

    Parameters
    ----------
    objective : str
        A name of `tierrank.losses.OBJECTIVES`.
    objective_params : dict, optional
        Its options.
    library : {"lightgbm", "xgboost"}
        What grows the trees.
    trees : int
        How many at most.
    learning_rate : float
        By what the leaves of each are multiplied.
    leaves : int or "auto"
        The most leaves of a tree. "auto", as in the next three, goes by the number of training
        rows: 7 up to 20,000, 15 up to 200,000, else 31. `settings_by_size_` says what it came to.
    depth : int, optional
        The longest way to a leaf; None: no limit.
    min_rows_per_leaf : int or "auto", optional
        Rows in a leaf at least; "auto": 50, or a fortieth of the rows if that is less; None: the
        library's own, 20. XGBoost has no such limit.
    min_hessian_per_leaf : float
        Sum of the Hessian over the rows of a leaf, at least.
    l2 : float
        Penalty on the squares of the leaves.
    row_fraction, feature_fraction : float or "auto"
        The share of rows and of features that each tree sees, drawn at random; "auto": 0.7 and 0.5.
    patience : int, optional
        Stop after so many trees without a better validation metric (None: never).
    position_smoothing : float
        As in `LinearRanker`. A step of Newton's method moves the biases between two trees, and at
        last they are made the best for the trees that are kept; their standard errors take the
        scores for known.
    refit : bool or "auto"
        Whether to grow all trees anew, from training and validation rows, once early stopping has
        told how many: as many as were best, times the rows there are to those there were. True
        needs an `eval_set`; "auto" does so if there is one. `history_` stays that of before.
    members : int
        Forests with seeds of their own, whose scores are averaged: `forest_` has all their trees.
        Where nothing is drawn (both fractions 1), all but the first learn from a bootstrap
        sample of the lists.
    bins : int
        Values of a feature are put into so many bins.
    library_params : dict, optional
        Further parameters, under the library's own names.
    categories : "auto" or sequence, optional
        Columns whose values are names rather than amounts: the trees split them into sets, as the
        library does by itself. "auto": columns of a frame whose type is categorical (pandas,
        polars) or a dictionary (pyarrow). Or a list of names or numbers of columns, of text or
        numbers. None: there are none. A category that no training row had counts as missing.
    features : str, transformer or list, optional
        Steps before the model, as in `LinearRanker`.
    metric : str
        What `score` and early stopping measure, a name of `tierrank.metrics`.
    threads : int, optional
        For the library and for the objective (None: torch's number).
    query_column : str or int, optional
        A column of X that says which list a row belongs to.
    random_state : int, optional
        A seed for all that is drawn.

    Attributes
    ----------
    forest_ : Forest
        The trees, a `tierrank.ranking.forest.Forest`.
    feature_importances_ : ndarray of float
        [features, after the feature steps] shares in the gain of all splits.
    objective_state_ : dict of float
        The objective's own parameters, where it learns some.
    settings_by_size_ : dict
        What was "auto", by name: the values that went by the number of training rows.
    categories_ : dict
        By number of column, the categories of the training rows: codes in the forest are places
        in this.
    history_ : History
        The training curve; `steps_`, `n_features_in_`, `feature_names_in_`, `position_bias_` and
        `position_standard_errors_` are as in the other rankers.

    See Also
    --------
    LinearRanker : A weight for each feature.
    NeuralRanker : Perceptrons, and attention over the list.
    BlendedRanker : All three in one score.
    export : Writes the trees for other programs.

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
    settings_by_size_: dict[str, Any]
    categories_: dict[int, tuple[str, ...]]
    _kept_categories: dict[int, tuple[str, ...]] | None = None
    _no_text: ClassVar[str] = (
        "name it in categories=[…] for trees that split its values into sets, or leave it out"
    )

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        library: Literal["lightgbm", "xgboost"] = "lightgbm",
        trees: int = 500,
        learning_rate: float = 0.05,
        leaves: int | Literal["auto"] = "auto",
        depth: int | None = None,
        min_rows_per_leaf: int | Literal["auto"] | None = "auto",
        min_hessian_per_leaf: float = 1e-3,
        l2: float = 1.0,
        row_fraction: float | Literal["auto"] = "auto",
        feature_fraction: float | Literal["auto"] = "auto",
        patience: int | None = 50,
        position_smoothing: float = 1.0,
        refit: Refit = False,
        members: int = 1,
        bins: int = 255,
        library_params: dict[str, Any] | None = None,
        categories: Sequence[str | int] | Literal["auto"] | None = "auto",
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
        self.position_smoothing = position_smoothing
        self.refit = refit
        self.members = members
        self.bins = bins
        self.library_params = library_params
        self.categories = categories
        self.features = features
        self.metric = metric
        self.threads = threads
        self.query_column = query_column
        self.random_state = random_state

    @property
    def feature_importances_(self) -> AnyArray:
        """[features, after the feature steps] shares in the gain of all splits."""
        return self.forest_.importances()

    # -- learning -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        weights: Any = None,
        positions: Any = None,
        rows: Any = None,
        eval_set: Any = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 20.0,
        watch: Watch | None = None,
        init_model: Self | Path | str | None = None,
        client: Any = None,
        shuffle: bool = True,
        **others: Never,
    ) -> Self:
        """Learn from labelled rows, of this process or of a Dask cluster.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame, RankingData or path-like
            [rows, features]: numpy, a pandas or polars frame, a scipy sparse matrix, or a
            `RankingData`, which may hold categories. Or a DataFrame or an Array of Dask; or, with a
            `client`, a folder, a file or a pattern of Parquet, which all workers can open.
        y : array_like or str
            [rows] labels, higher is better. On Dask: a collection with the partitions of X, or the
            name of a column of X, which is then no feature.
        qid : array_like or str, optional
            [rows] the list of each row; on Dask as y.
        group : array_like, optional
            [lists] sizes of lists of consecutive rows; not on Dask.
        weights : array_like, optional
            [lists] how much each list counts, in order of first appearance. On Dask: [rows], the
            same in all rows of a list.
        positions : array_like, optional
            [labels] where each row was shown, as in the other rankers; not on Dask.
        rows : array_like, optional
            [labels] which row of X each label is about, as in the other rankers; not on Dask.
        eval_set : tuple or list of tuple, optional
            (X, y, qid) to stop by, or a list with one such tuple; with `query_column`, (X, y).
        checkpoint : path-like, optional
            A folder to keep the state in, as in the other rankers.
        checkpoint_every : float
            Seconds between two states that are kept.
        watch : callable, optional
            Called after every tree with a `tierrank.training.Progress`.
        init_model : BoostedRanker or path-like, optional
            A fitted `BoostedRanker`, or the folder of a saved one, to which up to `trees` more
            trees are added; any library may have grown it.
        client : Client, optional
            A `dask.distributed.Client`; None: if X is of Dask, the one that is there.
        shuffle : bool
            On Dask, whether to bring together the rows of lists that lie in several partitions;
            otherwise they are refused.
        **others
            None: they are refused, and the words of LightGBM and XGBoost answered with ours.

        Returns
        -------
        BoostedRanker
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        predict : Scores of other rows.
        tierrank.save : Keeps what was learned.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 3))
        >>> y, qid = np.digitize(X[:, 0], [0, 1]), np.arange(400) // 10
        >>> ranker = tr.BoostedRanker(trees=30, threads=1, random_state=0)
        >>> ranker = ranker.fit(
        ...     X[:300], y[:300], qid=qid[:300], eval_set=(X[300:], y[300:], qid[300:])
        ... )
        >>> ranker.score(X[300:], y[300:], qid=qid[300:]) > 0.9
        True
        """
        if client is None and not is_dask(X):
            return super().fit(
                X, y, qid=qid, group=group, weights=weights, positions=positions, rows=rows,
                eval_set=eval_set, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
                watch=watch, init_model=init_model, **others,
            )  # fmt: skip
        from tierrank.ranking import dask

        for name, given in (("positions", positions), ("rows", rows)):
            if given is not None:
                raise ArgumentError(
                    Argument(name), " do not go with Dask: give rows that are in memory."
                )

        before = self._before(init_model)
        self._begin(y, others)
        dask.fit(
            self, X, y, qid=qid, group=group, weights=weights, eval_set=eval_set, client=client,
            shuffle=shuffle, checkpoint=checkpoint, checkpoint_every=checkpoint_every, watch=watch,
            before=before,
        )  # fmt: skip
        return self

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Any:
        """Score rows: higher is better, comparable within a list.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            [rows, features], as in `fit`; or a collection of Dask.
        qid, group : array_like, optional
            As in `fit`; needed if a feature step looks at the rest of a list, and not on Dask.

        Returns
        -------
        ndarray of float
            [rows] scores; of a collection of Dask, a lazy one.

        Raises
        ------
        ValueError
            X has other columns than in `fit`.

        See Also
        --------
        score : How good they are.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> X = np.random.default_rng(0).normal(size=(400, 3))
        >>> y = np.digitize(X[:, 0], [0, 1])
        >>> ranker = tr.BoostedRanker(trees=5, threads=1, random_state=0).fit(X, y, group=[10] * 40)
        >>> ranker.predict(X[:10]).shape
        (10,)
        """
        if not is_dask(X):
            return super().predict(X, qid=qid, group=group)
        from tierrank.ranking import dask

        check_is_fitted(self)
        return dask.predict(self, X)

    def _learn(
        self,
        train: TrainingRows,
        valid: ValidationRows | None,
        checkpoint: Checkpoint,
        watch: Watch | None,
        before: Self | None,
    ) -> None:
        self._choose_by_size(train.X.shape[0])
        settings = self._settings()
        with torch_threads(settings.threads):
            kept = checkpoint.load()
            seed = seed_from(self.random_state) if kept is None else kept[0]["seed"]
            self._seed = seed
            rows = LocalRows(
                self._grower(train.X, None if valid is None else valid.X, settings),
                self._boosting_objective(train, seed, before),
                None if valid is None else valid.measure,
            )
            if kept is None:
                forest, dtype = self._forest_of(before), self._score_dtype
                state = BoostingState(
                    forest,
                    forest.added_up(train.X, dtype),
                    None if valid is None else forest.added_up(valid.X, dtype),
                    History("tree", self._metric().name),
                    self._parameters_of(before, rows.objective.parameters),
                )
            else:
                state = BoostingState.from_saved(*kept)
            boosting = Boosting(rows, self._most_trees(before), self.patience, seed)
            state, interrupted = boosting.run(state, checkpoint, watch)
            objective = rows.objective
            if isinstance(objective, ShownObjective) and train.shown.positions is not None:
                loss = objective.bias_loss(self._kept(state).predict(train.X))
                found = fitted_biases(loss, objective.biases)
                self.position_bias_, self.position_standard_errors_ = found
            self._take(state, interrupted)

    def _boosting_objective(
        self, train: TrainingRows, seed: int, before: Self | None
    ) -> BoostingObjective:
        lists = (self._objective(), train.tiers, train.weights, seed)
        if not train.shown.known():
            return BoostingObjective(*lists)
        check_size("position_smoothing", self.position_smoothing, zero=True)
        biases = biases_of(before, train.shown.n_positions)
        return ShownObjective(*lists, train.shown, float(self.position_smoothing), biases)

    def _draws(self, train: TrainingRows) -> bool:
        fractions = (self.row_fraction, self.feature_fraction)
        sampled = any(each == "auto" or each < 1 for each in fractions)
        objective = self._objective()
        drawn = objective.entry.stochastic or objective.options.get("ties") == "random"
        return sampled or drawn

    def _lengthen(self, ratio: float, before: Self | None) -> bool:
        # A tree fits what the ones before left, and of more rows there is more to fit.
        best = self.history_.best_step
        grown = (0 if best is None else best) - (0 if before is None else len(before.forest_))
        self.trees, self.patience = max(1, round(grown * ratio)), None
        self.set_params(**self.settings_by_size_)  # so many were best of trees of this size
        return grown > 0

    def _average(self, learned: Sequence[Self], before: Self | None) -> None:
        known = self._forest_of(before)  # which all began with
        grown = [each.forest_.between(len(known), len(each.forest_)) for each in learned]
        self.categories_ = learned[0].categories_
        self.forest_ = known.followed_by(Forest.mean(grown))
        self.objective_state_ = mean_of([each.objective_state_ for each in learned])

    def _forest_of(self, before: Self | None) -> Forest:
        return Forest.empty(self._width) if before is None else before.forest_

    def _most_trees(self, before: Self | None) -> int:
        return self.trees + (0 if before is None else len(before.forest_))

    @staticmethod
    def _parameters_of(
        before: BoostedRanker | None, parameters: dict[str, float]
    ) -> dict[str, float]:
        """The objective's own parameters to begin with: those that were learned, if they are."""
        if before is None or before.objective_state_.keys() != parameters.keys():
            return parameters
        return dict(before.objective_state_)

    @property
    def _score_dtype(self) -> Any:
        """What the library adds up scores in."""
        return np.float64 if self.library == "lightgbm" else np.float32

    @staticmethod
    def _kept(state: BoostingState) -> Forest:
        """The trees up to the best validation metric."""
        best = state.history.best_step
        return state.forest if best is None else state.forest.first(best)

    def _take(self, state: BoostingState, interrupted: bool) -> None:
        """Keep what was learned."""
        self.history_, self.objective_state_ = state.history, state.parameters
        self.forest_ = self._kept(state)
        if interrupted:
            raise KeyboardInterrupt
        if self.forest_.is_leaf.all():
            warnings.warn(
                "no split was possible, so all scores are equal: are the features constant, or "
                "min_rows_per_leaf and min_hessian_per_leaf too large for so few rows?",
                UserWarning,
                stacklevel=5,
            )

    def _grower(
        self, X: Any, valid_X: Any, settings: TreeSettings, network: dict[str, Any] | None = None
    ) -> Grower:
        if self.library == "lightgbm":
            return LightGBMTrees(X, valid_X, settings, network)
        if self.library == "xgboost":
            return XGBoostTrees(X, valid_X, settings, network)
        raise ValueError(f'library is "lightgbm" or "xgboost", not {self.library!r}')

    def _choose_by_size(self, rows: int) -> None:
        """Set what "auto" stands for, by the number of training rows."""
        rule = by_size(rows)
        if self.library == "xgboost":
            rule["min_rows_per_leaf"] = None
        self.settings_by_size_ = {
            name: rule[name] for name in rule if getattr(self, name) == "auto"
        }

    def _settings(self) -> TreeSettings:
        check_count("trees", self.trees)
        if self.patience is not None:
            check_count("patience", self.patience)
        own = (field.name for field in fields(TreeSettings) if field.name != "categorical")
        given = {name: getattr(self, name) for name in own}
        given |= self.settings_by_size_
        given["threads"] = torch.get_num_threads() if self.threads is None else self.threads
        given["library_params"] = self.library_params or {}
        given["categorical"] = tuple(getattr(self, "categories_", ()))
        return TreeSettings(**given)

    def _before(self, init_model: Any) -> Self | None:
        before = super()._before(init_model)
        self._kept_categories = None if before is None else before.categories_
        return before

    def _begin_categories(self, X: Any) -> list[int]:
        """Which columns of the training rows hold them; those of a ranker before stay as they are.

        Its trees know no others, so that what they say stays the same.
        """
        columns = chosen_columns(X, self.categories)
        if (kept := self._kept_categories) is None:
            self.categories_ = dict.fromkeys(columns, ())
            return columns
        for at in set(columns) - set(kept):
            raise ValueError(
                f"column {called(X, at)} holds categories, but to init_model it held numbers: give "
                "numbers again, or begin anew"
            )
        self.categories_ = dict(kept)
        return sorted(kept)

    def _know_categories_of(self, *tables: Any) -> bool:
        if self._kept_categories is not None:
            return False
        known = dict(self.categories_)
        for table in tables:
            rows = split_query_column(table, self.query_column)[0]
            for at in known:
                known[at] = tuple(sorted({*known[at], *occurring(column_of(rows, at))}))
        new = known != self.categories_
        self.categories_ = known
        return new

    def _numbers(self, X: Any, *, reset: bool) -> Any:
        """X with codes for categories, which are those of the training rows."""
        columns = self._begin_categories(X) if reset else sorted(self.categories_)
        if not columns:
            return super()._numbers(X, reset=reset)
        rows = X.X if isinstance(X, RankingData) else X
        if not reset:
            with warnings.catch_warnings():  # which are said again
                warnings.simplefilter("ignore")
                validate_data(self, rows, reset=False, skip_check_array=True)
        self._check_for_categories(X, rows, columns)
        codes = {}
        for at in columns:
            column = column_of(X, at)
            if reset and self._kept_categories is None:
                self.categories_[at] = occurring(column)
            check_kind(called(X, at), column, self.categories_[at])
            codes[at] = recoded(column, self.categories_[at])
        return with_columns(rows, codes)

    def _check_for_categories(self, X: Any, rows: Any, columns: Sequence[int]) -> None:
        """Refuse what cannot go with them."""
        names = column_names(X)
        for name in X.categories or () if rows is not X else ():
            if names.index(name) not in columns:
                raise ValueError(f"column {name!r} holds categories, and in training held numbers")
        what = f"column {called(X, columns[0])} holds categories, "
        if steps := steps_from(self.features):
            raise ValueError(
                f"{what}which {type(steps[0]).__name__} would take for amounts: leave out features "
                "(trees do not mind scales or missing values)"
            )
        if hasattr(rows, "indptr"):
            raise ValueError(f"{what}but X is sparse, where 0 is no category: give X.toarray()")
        if folder_of(rows) is not None:
            raise ValueError(f"{what}but X is mapped from a file: give rows that are in memory")

    # -- what was learned ---------------------------------------------------------------------

    def _scores(self, X: Any, queries: AnyArray) -> AnyArray:
        return self.forest_.predict(X)

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        info: dict[str, Any] = {
            "n_features": self.forest_.n_features,
            "objective_state": self.objective_state_,
            "settings_by_size": self.settings_by_size_,
        }
        if self.categories_:
            info["categories"] = {str(at): list(words) for at, words in self.categories_.items()}
        return info, self.forest_.arrays()

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        self.forest_ = Forest.from_arrays(info["n_features"], tensors)
        if self.forest_.n_features != self._width:
            raise ValueError(
                f"the forest looks at {self.forest_.n_features} features, of {self._width} there "
                "are"
            )
        self.categories_ = _categories_from(info.get("categories", {}), self.forest_)
        state = info["objective_state"]
        self.objective_state_ = {str(name): float(value) for name, value in state.items()}
        chosen = info.get("settings_by_size", {})  # there were none before
        if not isinstance(chosen, dict) or not chosen.keys() <= by_size(1).keys():
            raise ValueError("the settings by size are no settings of trees by name")
        self.settings_by_size_ = chosen


def by_size(rows: int) -> dict[str, Any]:
    """What "auto" stands for, by the number of training rows: docs/boosted.md has the figures.

    Examples
    --------
    >>> by_size(9_630)
    {'leaves': 7, 'min_rows_per_leaf': 50, 'row_fraction': 0.7, 'feature_fraction': 0.5}
    """
    return {
        "leaves": next((leaves for most, leaves in LEAVES.items() if rows <= most), 31),
        "min_rows_per_leaf": min(50, max(1, rows // 40)),
        "row_fraction": 0.7,
        "feature_fraction": 0.5,
    }


def _categories_from(saved: Any, forest: Forest) -> dict[int, tuple[str, ...]]:
    """Those of a saved model, by number of column; refuses what does not go with the forest."""
    if not isinstance(saved, dict) or not all(
        isinstance(words, list) and all(isinstance(word, str) for word in words)
        for words in saved.values()
    ):
        raise ValueError("the categories of the model are no lists of text by column")
    found = {int(at): tuple(words) for at, words in saved.items()}
    split = forest.category_counts > 0 if forest.splits_categories else np.zeros(0, bool)
    for at, words in found.items():
        if not 0 <= at < forest.n_features or len(set(words)) < len(words):
            raise ValueError(f"the categories of column {at} are none, or twice the same")
    columns = np.repeat(forest.feature, forest.category_counts) if len(split) else split
    for at in np.unique(columns):
        if forest.categories[columns == at].max() >= len(found.get(int(at), ())):
            raise ValueError(f"the forest splits categories of column {at} that have no name")
    return found


@dataclass(frozen=True)
class BoostingState:
    """All that a fit knows between two segments.

    Attributes
    ----------
    forest
        the trees so far
    scores, valid_scores
        [rows] what they say of the training and validation rows, as the library added it up; None
        where the workers of a cluster keep them
    history, parameters
        the curve so far, and the objective's own parameters
    finished
        whether no tree is to be added
    layout
        on a cluster, which partitions of the rows are together
    biases
        [positions] of a fit with positions
    """

    forest: Forest
    scores: AnyArray | None
    valid_scores: AnyArray | None
    history: History
    parameters: dict[str, float]
    finished: bool = False
    layout: Any = None
    biases: AnyArray | None = None

    def save(self, checkpoint: Checkpoint, seed: int) -> None:
        """Keep it."""
        state = {
            "seed": seed,
            "n_features": self.forest.n_features,
            "history": self.history.to_json(),
            "parameters": self.parameters,
            "finished": self.finished,
        }
        if self.layout is not None:
            state["layout"] = self.layout
        tensors = {f"forest.{name}": array for name, array in self.forest.arrays().items()}
        if self.scores is not None:
            tensors["scores"] = self.scores
        if self.valid_scores is not None:
            tensors["valid_scores"] = self.valid_scores
        if self.biases is not None:
            tensors["biases"] = self.biases
        checkpoint.save(state, tensors)

    @classmethod
    def from_saved(cls, state: dict[str, Any], tensors: Arrays) -> BoostingState:
        """From what a checkpoint gave."""
        prefix = "forest."
        forest = {name[len(prefix) :]: tensors[name] for name in tensors if name.startswith(prefix)}
        return cls(
            Forest.from_arrays(state["n_features"], forest),
            tensors.get("scores"),
            tensors.get("valid_scores"),
            History.from_json(state["history"]),
            state["parameters"],
            state["finished"],
            state.get("layout"),
            tensors.get("biases"),
        )


class Step(NamedTuple):
    """What is known after a tree: the mean loss, and what the metric gave, if there is one."""

    loss: float
    metric: Any


class BoostingRows(Protocol):
    """Rows that trees are grown on: `LocalRows`, or those of the workers of a cluster."""

    def start(self, state: BoostingState, seed: int) -> None:
        """Begin a segment."""

    def grow(self) -> Step | None:
        """Add a tree; None if no split was worth it, so that there is none."""

    def look(self) -> Step:
        """Loss and metric as they are now."""

    def state(self, before: BoostingState) -> BoostingState:
        """What the segment came to; its history is the caller's affair."""


class LocalRows:
    """Rows of this process.

    Parameters
    ----------
    grower, objective
        what adds trees, and what they are to improve
    metric
        from [rows] validation scores; None without validation data
    rank
        which part of all rows these are, so that each part draws numbers of its own
    """

    def __init__(
        self,
        grower: Grower,
        objective: BoostingObjective,
        metric: Callable[[AnyArray], Any] | None,
        rank: int = 0,
    ) -> None:
        self.grower, self.objective, self.metric = grower, objective, metric
        self.rank = rank
        self.trees = 0
        self.scores: AnyArray = np.zeros(0)
        self.valid_scores: AnyArray | None = None
        self.derivatives = Derivatives(0.0, self.scores, self.scores)
        self._derived_at: AnyArray | None = None

    def start(self, state: BoostingState, seed: int) -> None:
        assert state.scores is not None
        seeds = np.random.SeedSequence([seed, len(state.forest)]).generate_state(2)
        self.objective.parameters = state.parameters
        if state.biases is not None and isinstance(self.objective, ShownObjective):
            self.objective.biases = state.biases
        self.objective.restart(int(seeds[0]) + self.rank)
        self.grower.start(state.scores, state.valid_scores, int(seeds[1]))
        self.trees, self.scores = len(state.forest), state.scores
        self.valid_scores = state.valid_scores
        self.derive()

    def grow(self) -> Step | None:
        return self.look() if self.add_tree() else None

    def add_tree(self) -> bool:
        """Let the grower add one, by the derivatives at the scores so far."""
        if not self.grower.grow(self.derivatives.gradient, self.derivatives.hessian):
            return False
        self.trees += 1
        self.scores = self.grower.scores()
        if self.metric is not None:
            self.valid_scores = self.grower.valid_scores()
        return True

    def look(self) -> Step:
        """Loss and metric as they are now."""
        self.derive()
        if self.metric is None or self.valid_scores is None:
            return Step(self.derivatives.loss, None)
        return Step(self.derivatives.loss, self.metric(self.valid_scores))

    def derive(self) -> None:
        """Take the derivatives at the scores."""
        scores = self.scores
        advice = "try a smaller learning_rate, or a larger l2 or min_hessian_per_leaf"
        if not np.abs(scores).max() < RUN_AWAY:  # or NaN
            raise ValueError(f"the scores have run away to ±∞ after {self.trees} trees: {advice}")
        if self._derived_at is scores and self.objective.repeats:
            return  # a segment begins where the last one ended
        derivatives = self.objective(scores)
        if not (np.isfinite(derivatives.loss) and np.isfinite(derivatives.gradient).all()):
            raise ValueError(
                f"the loss is {derivatives.loss:g} after {self.trees} trees, or its slope not "
                f"finite: {advice}"
            )
        self._derived_at, self.derivatives = scores, derivatives

    def state(self, before: BoostingState) -> BoostingState:
        grown = self.grower.forest().first(self.trees - len(before.forest))
        return replace(
            before,
            forest=before.forest.followed_by(grown),
            scores=self.scores,
            valid_scores=self.valid_scores,
            parameters=self.objective.parameters,
            biases=getattr(self.objective, "biases", None),
        )


class Boosting:
    """One fit: tree after tree, in segments that can be taken up again.

    A library's own state cannot be saved to the last bit, so it never outlives a segment: after
    every `SEGMENT` trees a new booster starts from the scores so far, with a seed of its own. A fit
    that was stopped goes on from the last such start, and computes what it would have computed.

    Parameters
    ----------
    rows
        what trees are grown on, and by
    trees, patience
        at most so many, and so many without a better metric
    seed
        of everything that is drawn
    """

    def __init__(self, rows: BoostingRows, trees: int, patience: int | None, seed: int) -> None:
        self.rows, self.trees, self.patience, self.seed = rows, trees, patience, seed

    def run(
        self, state: BoostingState, checkpoint: Checkpoint, watch: Watch | None
    ) -> tuple[BoostingState, bool]:
        """Go on from a state to the end, or until Ctrl-C; say whether it was interrupted."""
        with Interruption() as interruption:
            while not state.finished:
                before = state
                state, stopped = self._segment(before, interruption, watch)
                if stopped:
                    before.save(checkpoint, self.seed)
                    return state, True
                if checkpoint.due or state.finished:
                    state.save(checkpoint, self.seed)
        return state, False

    def _segment(
        self, before: BoostingState, interruption: Interruption, watch: Watch | None
    ) -> tuple[BoostingState, bool]:
        history, number = deepcopy(before.history), len(before.forest)
        self.rows.start(before, self.seed)
        if number and not history.steps:  # the trees of a model before, which others are to beat
            history.add(number, *self.rows.look())
        last = min(number + SEGMENT, self.trees)
        finished = stopped = False
        while number < last and not (finished or stopped):
            step = self.rows.grow()
            if step is None:
                finished = True
                break
            number += 1
            history.add(number, step.loss, step.metric)
            finished = number == self.trees or (
                self.patience is not None and history.since_best() >= self.patience
            )
            if watch is not None:
                watch(history.progress(self.trees))
            stopped = interruption.asked and not finished
        state = self.rows.state(before)
        grown = state.forest.is_leaf[before.forest.tree_offsets[-1] :]
        if not stopped and grown.all():  # nothing but constants
            finished = True
        return replace(state, history=history, finished=finished), stopped


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch, and our own code with it, use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
