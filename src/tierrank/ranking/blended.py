"""Boosted trees, a linear ranker and a network in one score, weighted by validation likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar, Literal, Never, Self

import numpy as np
from sklearn.base import clone

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError
from tierrank.ranking import members as several
from tierrank.ranking.base import Ranker, below, row_queries, validation_set
from tierrank.ranking.boosted import BoostedRanker
from tierrank.ranking.features import Steps, steps_from
from tierrank.ranking.linear import LinearRanker
from tierrank.ranking.members import Refit
from tierrank.ranking.neural import NeuralRanker
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import group_rows
from tierrank.training import History, Watch
from tierrank.training.progress import named, seed_from

HELD_OUT = 0.2  # of the lists, to stop and to weigh by, where there is no eval_set
RIDGE = 1e-4  # so that weights are finite where some order is perfect
KINDS: dict[str, type[Ranker]] = {
    "boosted": BoostedRanker, "linear": LinearRanker, "neural": NeuralRanker
}  # fmt: skip
USUAL: dict[str, dict[str, Any]] = {
    "boosted": {},
    "linear": {"features": ["impute", "standardize"], "l2": 1e-3},
    "neural": {"features": ["impute", "standardize"]},
}  # fmt: skip


class BlendedRanker(Ranker):
    """A weighted sum of the scores of three rankers: boosted, linear and neural.

    The scores of each are divided by their standard deviation within lists: that over all lists, or
    that of the list at hand. Then the weights, not negative, minimise the objective on validation
    lists: a convex problem for the likelihoods, solved exactly, by Newton's method on every set of
    rankers that may have a weight.

    The validation lists are those of `eval_set`, or else a fifth of the lists that is held out. No
    ranker is fitted to them before the weights are known; but they also say when the rankers stop.
    Where there are too few lists to hold some out, the weights are equal.
    With `refit` the rankers learn once more, from all lists, and the weights stay.

    Parameters
    ----------
    objective : str
        Of all rankers and of the weights: a name of `tierrank.losses.OBJECTIVES`.
    objective_params : dict, optional
        Its options.
    boosted, linear, neural : mapping or False, optional
        Settings of each, beside those in `tierrank.ranking.blended.USUAL`; False leaves it out.
    features : str, transformer or list, optional
        Feature steps before all three, which have their own besides.
    scaling : {"global", "query", "auto"}
        What scores are divided by: "global", one number a ranker; "query", the standard deviation
        within the row's own list, so that a list in which a ranker hardly tells the rows apart
        counts like any other; or "auto", whichever has the smaller loss on the validation lists
        (it may be "query", and then to predict takes the lists).
    refit : bool or "auto"
        Whether the rankers learn once more from training and validation lists, as in
        `BoostedRanker`. "auto" does; where nothing is held out there is nothing to learn besides.
    members : int
        Models of each ranker that learns by chance, as in `BoostedRanker`; the linear one is one.
    metric : str
        What `score` and early stopping measure, a name of `tierrank.metrics`.
    query_column : str or int, optional
        A column of X that says which list a row belongs to.
    random_state : int, optional
        A seed for all that is drawn.

    Attributes
    ----------
    rankers_ : dict
        The fitted rankers, by name.
    weights_, scales_ : dict of float
        What the scores of each are multiplied with, and divided by before (1, if by the list's
        own).
    scaling_ : {"global", "query"}
        The scaling that was taken.
    validation_ : dict of float
        The metric of each on the validation lists, before a refit.
    history_ : History
        One step: loss and metric of the blend on the validation lists, to which the weights were
        fitted.

    See Also
    --------
    BoostedRanker : Trees alone.
    LinearRanker : Coefficients alone.
    NeuralRanker : A network alone.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=400), [0, 1])
    >>> small = {"trees": 20, "threads": 1}
    >>> ranker = tr.BlendedRanker(boosted=small, neural=False, random_state=0)
    >>> sorted(ranker.fit(X, y, group=[10] * 40).weights_)
    ['boosted', 'linear']
    """

    allows_missing: ClassVar[bool] = True
    rankers_: dict[str, Any]
    weights_: dict[str, float]
    scaling_: str
    scales_: dict[str, float]
    validation_: dict[str, float]

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        boosted: Mapping[str, Any] | Literal[False] | None = None,
        linear: Mapping[str, Any] | Literal[False] | None = None,
        neural: Mapping[str, Any] | Literal[False] | None = None,
        features: Any = None,
        scaling: Literal["global", "query", "auto"] = "global",
        refit: Refit = False,
        members: int = 1,
        metric: str = "ndcg@10",
        query_column: str | int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.objective_params = objective_params
        self.boosted = boosted
        self.linear = linear
        self.neural = neural
        self.features = features
        self.scaling = scaling
        self.refit = refit
        self.members = members
        self.metric = metric
        self.query_column = query_column
        self.random_state = random_state

    @property
    def scores_lists(self) -> bool:  # type: ignore[override]
        """Whether a row's score depends on the other rows of its list."""
        return getattr(self, "scaling_", "global") == "query" or any(
            each.scores_lists or each.steps_.needs_qid
            for each in getattr(self, "rankers_", {}).values()
        )

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
        init_model: Any = None,
        **others: Never,
    ) -> Self:
        """Learn from labelled rows, as the other rankers do.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            [rows, features], as in the other rankers.
        y : array_like
            [rows] labels, higher is better; equal labels of a list are one tier.
        qid : array_like, optional
            [rows] the list of each row, in any order.
        group : array_like, optional
            [lists] sizes of lists of consecutive rows.
        weights : array_like, optional
            [lists] how much each list counts, in order of first appearance.
        positions, rows : object
            Refused: a ranker alone learns from clicks.
        eval_set : tuple or list of tuple, optional
            (X, y, qid) to stop by and to find the weights on.
        checkpoint : path-like, optional
            A folder to keep the state in; each of the rankers has a folder of its own there.
        checkpoint_every : float
            Seconds between two states that are kept.
        watch : callable, optional
            Called after every step with a `tierrank.training.Progress`.
        init_model : object
            Refused: weights belong to the rankers they were found for.
        **others
            None: they are refused, and the words of LightGBM and XGBoost answered with ours.

        Returns
        -------
        BlendedRanker
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        predict : Scores of other rows.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 3))
        >>> y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=400), [0, 1])
        >>> ranker = tr.BlendedRanker(
        ...     boosted={"trees": 5, "threads": 1}, neural=False, random_state=0
        ... )
        >>> sorted(ranker.fit(X, y, group=[10] * 40).validation_)
        ['boosted', 'linear']
        """
        for name, value in (("positions", positions), ("rows", rows)):
            if value is not None:
                raise ValueError(f"a BlendedRanker takes no {name}: fit one of its rankers")
        if init_model is not None:
            raise ValueError("a BlendedRanker does not go on from an init_model: fit it anew")
        if self.scaling not in ("global", "query", "auto"):
            raise ArgumentError(
                Argument("scaling"), f' is "global", "query" or "auto", not {self.scaling!r}'
            )
        self._begin(y, others)
        given = validation_set(eval_set)
        several.will_refit(self, validated=True, clicks=False)
        data, lists = self._read(X, qid, group, "fit(X, y, qid=qid)", y=y)
        number = group_rows(row_queries(len(data[1]), *lists), len(data[1]))[0]
        self.steps_ = Steps(steps_from(self.features))
        train = self._prepared(data, (number, None), weights, fit=True)
        train.check_teaches()
        everything: tuple[several.Rows, AnyArray | None] | None
        if given is None:
            held = self._held_out(train.teaches, np.bincount(number))
            inside = ~held[number]
            everything = (((train.X, train.y), (number, None)), train.weights)
            fitted: several.Rows = (train.X[inside], train.y[inside]), (number[inside], None)
            chosen: several.Rows = (train.X[~inside], train.y[~inside]), (number[~inside], None)
            own = None if train.weights is None else train.weights[~held]
            of_chosen = None if train.weights is None else train.weights[held]
            if not held.any():
                everything = None
        else:
            read = self._read(
                given[0], given[2], None, "eval_set=[(X, y, qid)]", y=given[1], reset=False
            )
            valid = self._prepared(*read, None)
            queries = row_queries(len(valid.y), *read[1])
            chosen = (valid.X, valid.y), (group_rows(queries, len(valid.y))[0], None)
            fitted, own, of_chosen = ((train.X, train.y), (number, None)), train.weights, None
            everything = several.together(fitted, chosen, own, self._ranks)
        folder = None if checkpoint is None else Path(checkpoint)
        eval_rows = (*chosen[0], chosen[1][0]) if everything is not None else None
        rankers = {}
        for name, ranker in self._unfitted().items():
            rankers[name] = ranker.fit(
                *fitted[0], qid=fitted[1][0], weights=own, eval_set=eval_rows,
                checkpoint=folder and folder / name, checkpoint_every=checkpoint_every,
                watch=named(watch, name),
            )  # fmt: skip
        where, of_where = (chosen, of_chosen) if everything is not None else (fitted, own)
        self._weigh(rankers, *where[0], where[1][0], of_where, equal=everything is None)
        if everything is not None and self.refit:
            ((all_X, all_y), (all_qid, _)), all_weights = everything
            for name, ranker in rankers.items():
                again = copy(ranker)
                again._lengthen(len(all_y) / len(fitted[0][1]), None)
                rankers[name] = again.fit(
                    all_X, all_y, qid=all_qid, weights=all_weights,
                    checkpoint=folder and folder / f"{name}-refit",
                    checkpoint_every=checkpoint_every, watch=named(watch, f"{name}, refit"),
                )  # fmt: skip
            self.history_.refit = 1
        return self

    def _held_out(self, teaches: AnyArray, sizes: AnyArray) -> AnyArray:
        """[lists] which are held out: none where too few are left to learn from, or to weigh by."""
        lists = len(teaches)
        # None is a seed too: a fit that is taken up again holds out the same.
        seed = 0 if self.random_state is None else seed_from(self.random_state)
        held = np.zeros(lists, dtype=bool)
        held[np.random.default_rng(seed).permutation(lists)[: round(HELD_OUT * lists)]] = True
        enough = teaches[held].any() and teaches[~held].any() and sizes[~held].sum() > 1
        return held if enough else np.zeros(lists, dtype=bool)

    def _unfitted(self) -> dict[str, Ranker]:
        """The rankers, by name."""
        found: dict[str, Ranker] = {}
        shared = {
            "objective": self.objective, "objective_params": self.objective_params,
            "metric": self.metric, "random_state": self.random_state,
        }  # fmt: skip
        for name, kind in KINDS.items():
            if (given := getattr(self, name)) is not False:
                if not isinstance(given, Mapping | None):
                    raise ArgumentError(
                        Argument(name), " is a mapping of its settings, None for the usual ones, "
                        f"or False to leave it out, not {given!r}",
                    )  # fmt: skip
                own = {} if name == "linear" else {"members": self.members}
                found[name] = clone(kind(**{**shared, **own, **USUAL[name], **(given or {})}))
        if not found:
            raise ValueError("boosted, linear and neural are all False: leave some of them in")
        return found

    def _weigh(
        self,
        rankers: dict[str, Ranker],
        X: Any,
        y: AnyArray,
        qid: AnyArray,
        weights: Any,
        *,
        equal: bool,
    ) -> None:
        """Find the weights on validation rows: the best of those of every set of rankers.

        Where none is negative, the minimum over a set is that of the problem without bounds. The
        minimum of the whole has some set of weights above 0, and is the one of this set. Where the
        rankers have seen all rows, the weights are equal.
        """
        names = list(rankers)
        scores = np.stack([rankers[name].predict(X, qid=qid) for name in names], 1).astype(float)
        within = spreads(scores, qid)
        spread = np.sqrt(np.mean(within[qid] ** 2, axis=0))
        spread[spread == 0] = 1.0
        scaled = {"global": scores / spread, "query": scores / or_one(within)[qid]}
        self.scaling_ = "global" if self.scaling == "auto" else self.scaling
        best, loss = np.full(len(names), 1 / len(names)), np.inf
        every = range(len(names))
        sets = [list(some) for n in every for some in combinations(every, n + 1)]
        tiered = bool((Tiers.from_labels(y, qid=qid).n_tiers > 1).any())
        ways = list(scaled) if self.scaling == "auto" else [self.scaling]
        for scaling, some in product(ways, sets) if tiered and not equal else ():
            weigher = LinearRanker(
                self.objective, objective_params=self.objective_params, features=None, l2=RIDGE,
                metric=self.metric, tol=0.0, random_state=0,
            ).fit(scaled[scaling][:, some], y, qid=qid, weights=weights)  # fmt: skip
            found = weigher.history_.loss[-1]
            if (weigher.coef_ >= 0).all() and found is not None and found < loss:
                self.scaling_, loss, best = scaling, found, np.zeros(len(names))
                best[some] = weigher.coef_
        columns = scaled[self.scaling_]
        spread = spread if self.scaling_ == "global" else np.ones(len(names))
        self.scales_ = dict(zip(names, spread.tolist(), strict=True))
        self.rankers_ = rankers
        self.weights_ = dict(zip(names, best.tolist(), strict=True))
        metric = self._metric()
        self.validation_ = {
            name: float(metric(column, y, qid=qid))
            for name, column in zip(names, scores.T, strict=True)
        }
        self.history_ = History("blend", metric.name)
        measured = float(metric(columns @ best, y, qid=qid))
        self.history_.add(1, loss if np.isfinite(loss) else None, measured)

    def _scores(self, X: Any, queries: AnyArray) -> AnyArray:
        found = np.zeros(X.shape[0])
        number = group_rows(queries, X.shape[0])[0]
        for name, ranker in self.rankers_.items():
            if weight := self.weights_[name]:
                own = ranker.predict(X, qid=queries).astype(np.float64)
                if self.scaling_ == "query":
                    own /= or_one(spreads(own[:, None], number))[number, 0]
                found += weight / self.scales_[name] * own
        return found

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        info: dict[str, Any] = {
            "weights": self.weights_, "scaling": self.scaling_, "scales": self.scales_,
            "validation": self.validation_, "rankers": {},
        }  # fmt: skip
        arrays: Arrays = {}
        for name, ranker in self.rankers_.items():
            info["rankers"][name], own = ranker.to_state()
            arrays.update({f"{name}.{key}": array for key, array in own.items()})
        return info, arrays

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        self.rankers_ = {}
        for name, own in info["rankers"].items():
            if name not in KINDS:
                raise ValueError(f"there is no ranker {name!r} to blend")
            ranker = KINDS[name].from_state(own, below(f"{name}.", tensors))
            if ranker.n_features_in_ != self._width:
                raise ValueError(f"the {name} ranker is not for {self._width} features")
            self.rankers_[name] = ranker
        for name in ("weights", "scales", "validation"):
            values = {str(key): float(value) for key, value in info[name].items()}
            if values.keys() != self.rankers_.keys() or not np.isfinite([*values.values()]).all():
                raise ValueError(f"the {name} are not those of {', '.join(self.rankers_)}")
            setattr(self, f"{name}_", values)
        self.scaling_ = info.get("scaling", "global")  # the only way there was
        if self.scaling_ not in ("global", "query"):
            raise ValueError(f"there is no scaling {self.scaling_!r}")
        if min(self.scales_.values()) <= 0 or min(self.weights_.values()) < 0:
            raise ValueError("a weight is negative, or a scale is not positive")


def spreads(scores: AnyArray, number: AnyArray) -> AnyArray:
    """[lists, columns] standard deviations of [rows, columns] scores within each list.

    Scores that are all the same have 0, to the last bit.
    """
    lists = int(number.max(initial=-1)) + 1
    sizes = np.maximum(np.bincount(number), 1)[:, None]
    low, high = (np.full((lists, scores.shape[1]), sign * np.inf) for sign in (1, -1))
    np.minimum.at(low, number, scores)
    np.maximum.at(high, number, scores)

    def mean(values: AnyArray) -> AnyArray:
        found: AnyArray = np.stack([np.bincount(number, each) for each in values.T], 1) / sizes
        return found

    found: AnyArray = np.sqrt(mean((scores - mean(scores)[number]) ** 2))
    return np.where(high > low, found, 0.0)


def or_one(spread: AnyArray) -> AnyArray:
    """1 where nothing tells rows apart, to divide by."""
    return np.where(spread > 0, spread, 1.0)
