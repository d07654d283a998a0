"""What all rankers share: input in every shape, feature steps, the metric, the saved state."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Never, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tierrank import metrics
from tierrank._types import AnyArray, BoolArray
from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.columns import BadColumn, frame_columns
from tierrank.losses.objective import Objective, from_name
from tierrank.names import THEIR_FIT_WORDS, THEIR_WORDS
from tierrank.ranking import members
from tierrank.ranking.features import Steps, steps_from
from tierrank.ranking.features.base import RANKS, check_finite
from tierrank.ranks import ALONE, Ranks
from tierrank.storage import Arrays, load
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import (
    as_keys,
    checked_lengths,
    frame_library,
    group_rows,
    whole_numbers,
)
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.progress import Learned, digest

MOST_POSITIONS = 100_000  # a larger number is an identifier, or a time


@dataclass(frozen=True)
class Shown:
    """Which row each observation is about, and where it was shown.

    Attributes
    ----------
    rows
        [observations] numbers of rows of X; None: the observations are the rows
    positions
        [observations] places from 1; None: they are not known, or do not matter
    n_positions
        how many there are
    """

    rows: AnyArray | None = None
    positions: AnyArray | None = None
    n_positions: int = 0

    def known(self) -> tuple[AnyArray | None, ...]:
        """Rows and positions; empty where neither is known."""
        known = self.rows is not None or self.positions is not None
        return (self.rows, self.positions) if known else ()

    def spread(self, by_row: AnyArray, biases: AnyArray | None) -> AnyArray:
        """[observations] w[row] + b[position], from [rows] and [positions]."""
        found = by_row if self.rows is None else by_row[self.rows]
        if self.positions is None or biases is None:
            return found
        return np.asarray(found + biases[self.positions - 1])

    def by_row(self, by_observation: AnyArray, rows: int) -> AnyArray:
        """[rows] sums over the observations of each."""
        if self.rows is None:
            return by_observation
        return np.bincount(self.rows, by_observation, rows)

    def by_position(self, by_observation: AnyArray) -> AnyArray:
        """[positions] sums over the observations of each; empty where none are known."""
        if self.positions is None:
            return np.zeros(0)
        return np.bincount(self.positions - 1, by_observation, self.n_positions)


ONCE_EACH = Shown()
"""Every row is observed once, and nobody knows where."""


@dataclass(frozen=True)
class TrainingRows:
    """Rows ready to learn from.

    Attributes
    ----------
    X
        [rows, features], dense or CSR, after the feature steps
    y
        [observations] labels, float64
    tiers
        the lists, with one score an observation
    weights
        [lists] how much each list counts, or None
    shown
        the row of each observation, if they are not the rows themselves, and its position
    """

    X: Any
    y: AnyArray
    tiers: Tiers
    weights: AnyArray | None = None
    shown: Shown = ONCE_EACH

    @property
    def teaches(self) -> BoolArray:
        """[lists] which have several labels, and weigh more than 0."""
        several: BoolArray = self.tiers.n_tiers.numpy() > 1
        return several if self.weights is None else several & (self.weights > 0)

    def check_teaches(self, ranks: Ranks = ALONE) -> None:
        """Refuse rows of which, on all ranks, no list does."""
        if not ranks.any(bool(self.teaches.any())):
            lists, ask = "every list", "Is y right, and qid?"
            if self.weights is not None:
                lists, ask = f"{lists} that weighs more than 0", "Are y, qid and weights right?"
            raise ValueError(f"there is nothing to learn: {lists} has one label only. {ask}")


@dataclass(frozen=True)
class ValidationRows:
    """Rows to stop by: as `TrainingRows`, and the metric as a function of their [rows] scores.

    `values` has it by list, NaN where a list has nothing to measure. If ranks have parts of the
    rows, all call `measure` together.
    """

    X: Any
    tiers: Tiers
    measure: Callable[[AnyArray], float]
    values: Callable[[AnyArray], AnyArray]


def split_query_column(X: Any, column: str | int | None) -> tuple[Any, Any]:
    """Take the column that names the query out of X: the other columns, and the query of each row.

    It lets a table carry its queries through tools that know only X and y, as `GridSearchCV` does.
    Ranking data have them apart, and stay as they are.
    """
    if isinstance(X, RankingData):
        return X, X.qid
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


def list_keys(rows: int, qid: Any, group: Any) -> tuple[Any, AnyArray | None]:
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


def row_queries(rows: int, qid: Any, lengths: AnyArray | None) -> AnyArray:
    """[rows] a query of each row, whichever way the lists were given; all 0 if they were not."""
    if qid is not None:
        return as_keys(qid)
    if lengths is not None:
        return np.repeat(np.arange(len(lengths)), lengths)
    return np.zeros(rows, dtype=np.int64)


def checked_weights(weights: Any, tiers: Tiers, ranks: Ranks = ALONE) -> AnyArray | None:
    """[lists] weights as float64, finite and not negative, and not all 0 on all ranks."""
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(tiers),):
        raise ValueError(
            f"weights have shape {list(values.shape)}, but there are {len(tiers)} lists: "
            "give one a list, in order of first appearance"
        )
    with np.errstate(over="ignore"):
        total = float(values.sum())
    wrong = not np.isfinite(total) or bool((values < 0).any())
    if wrong or not ranks.any(total > 0):
        raise ValueError("weights are finite, not negative, and not all 0; so is their sum")
    return values


def checked_shown(rows: Any, positions: Any, observations: int, n_rows: int) -> Shown:
    """What `fit` was told, as whole numbers in range.

    Raises
    ------
    ArgumentError
        naming the argument, and the first observation that is wrong
    """
    checked = partial(whole_numbers, each="label", where="for observation")
    kept = None if rows is None else checked("rows", rows, observations, 0, n_rows - 1)
    if positions is None:
        return Shown(kept)
    places = checked("positions", positions, observations, 1, MOST_POSITIONS)
    return Shown(kept, places, int(places.max(initial=1)))


def biases_of(before: Any, positions: int) -> AnyArray:
    """[positions] biases to begin with: those of a ranker before, as far as it has some, else 0."""
    found = np.zeros(positions)
    known = getattr(before, "position_bias_", found)[:positions]
    found[: len(known)] = known
    found[len(known) :] = known[-1] if len(known) else 0.0
    return found


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


def check_parts(X: Any, qid: AnyArray | None, ranks: Ranks) -> None:
    """Refuse parts of rows that do not go together, and a list of which two ranks have rows."""
    if ranks.differ([X.shape[1], hasattr(X, "indptr")]):
        raise ValueError(
            "the ranks' parts of X have different numbers of features, or some are sparse and some "
            "dense: read them with the same n_features and dense"
        )
    if qid is None:
        return  # lists are given by their sizes, and all of their rows are here
    names = np.array([str(key) for key in group_rows(qid, len(qid))[1].tolist()], dtype=object)
    marks = np.array([_mark(name) for name in names], dtype=np.int64)
    found = ranks.each(torch.from_numpy(marks))
    del found[ranks.rank]
    others = torch.cat(found).numpy()
    seen: dict[str, int] = {}
    for rank, several in enumerate(ranks.gather(sorted(names[np.isin(marks, others)]))):
        for name in several:
            if seen.setdefault(name, rank) != rank:
                raise ValueError(
                    f"query {name} has rows in the parts of ranks {seen[name]} and {rank}: keep "
                    "the rows of a query together, as by sorting the file by query"
                )


def _mark(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


@contextmanager
def names_known(ranker: Any, data: RankingData | None, *, reset: bool) -> Iterator[None]:
    """Let names of columns be those of ranking data, whose X is an array and has none."""
    if data is None or data.feature_names is None:
        yield
        return
    names = np.asarray(data.feature_names, dtype=object)
    fitted = getattr(ranker, "feature_names_in_", names)
    if not reset and fitted.tolist() != names.tolist():
        raise ValueError(
            f"the columns are {', '.join(names[:30])}, but the model was fitted to "
            f"{', '.join(map(str, fitted[:30]))}: read them with features= these names"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
    if reset:
        ranker.feature_names_in_ = names


def sum_and_number(values: AnyArray) -> tuple[float, int]:
    """Of a metric's values of all lists that have one."""
    known = values[~np.isnan(values)]
    return float(known.sum()), len(known)


class Ranker(Learned, BaseEstimator):  # type: ignore[misc]
    """A model that scores rows by their features, fitted to the tiers of each list.

    A subclass gives `_learn`, `_lengthen`, `_average`, `_scores`, `_to_state` and `_from_state`,
    and a constructor with at least `objective`, `objective_params`, `features`, `refit`, `members`,
    `metric`, `query_column` and `random_state`.

    Attributes
    ----------
    history_
        the training curve, a `tierrank.training.History`; of several members, that of the first,
        and before a refit
    steps_
        the fitted feature steps
    n_features_in_, feature_names_in_
        as scikit-learn has them (names only from tables whose columns have some)
    position_bias_
        [positions] what each adds to a score, that of the first being 0; of a fit with `positions`
    position_standard_errors_
        [positions] their standard errors, where they are known
    """

    allows_missing: ClassVar[bool] = False
    _last_learned: ClassVar[str | None] = "history_"
    scores_lists: bool = False  # whether a row's score depends on the other rows of its list

    # scikit-learn's tools hand qid on where a ranker has use for it (docs/scikit-learn.md)
    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    # (a Pipeline's score always has a sample_weight to hand on, be it None)
    __metadata_request__score: ClassVar = {"qid": True, "sample_weight": None}

    objective: str
    objective_params: dict[str, Any] | None
    features: Any
    refit: members.Refit
    members: int
    metric: str
    query_column: str | int | None
    random_state: int | None
    _no_text: ClassVar[str] = (  # what to do with a column that holds categories
        "turn it into some (scikit-learn's OneHotEncoder, pandas.get_dummies), leave it out, or "
        "take a BoostedRanker, whose trees split categories"
    )
    _seed: int  # of the last fit; `_learn` sets it
    history_: History
    steps_: Steps
    position_bias_: AnyArray
    position_standard_errors_: AnyArray

    def __new__(cls, *_: Any, **words: Any) -> Self:
        """Answer the words of LightGBM and XGBoost, which `__init__` does not know, with ours."""
        known = cls._get_param_names()
        for word in words:
            ours = THEIR_WORDS.get(word)
            if word not in known and ours in known:
                value = f"={{{word!r}: {words[word]!r}}}" if ours == "library_params" else ""
                raise TypeError(f"{cls.__name__} has no argument {word!r}: write {ours}{value}")
        ranker: Self = super().__new__(cls)
        return ranker

    # -- what subclasses give ---------------------------------------------------------------

    def _learn(
        self,
        train: TrainingRows,
        valid: ValidationRows | None,
        checkpoint: Checkpoint,
        watch: Watch | None,
        before: Self | None,
    ) -> None:
        """Fit to rows that are checked and went through the feature steps; set `history_`.

        If there is one `before`, go on from what it learned.
        """
        raise NotImplementedError

    @property
    def _keeps_best(self) -> bool:
        """Whether validation data decide which step is kept; else it is the last."""
        return True

    def _draws(self, train: TrainingRows) -> bool:
        """Whether another seed makes another model of these rows."""
        return True

    def _lengthen(self, ratio: float, before: Self | None) -> bool:
        """Change the settings so that a fit to `ratio` times the rows is as long as was best.

        Say whether there is anything to learn: with one `before`, it may have been the best.
        """
        raise NotImplementedError

    def _average(self, learned: Sequence[Self], before: Self | None) -> None:
        """Take on what several learned, so that scores are the mean of theirs."""
        raise NotImplementedError

    def _scores(self, X: Any, queries: AnyArray) -> AnyArray:
        """[rows] scores of rows that went through the feature steps; queries are [rows]."""
        raise NotImplementedError

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What was learned: JSON-able, and arrays."""
        raise NotImplementedError

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        """Take on what was learned; raise a ValueError if it does not hold together."""
        raise NotImplementedError

    # -- what users call --------------------------------------------------------------------

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
        **others: Never,  # so that type checkers refuse them too
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            [rows, features]: numpy, a pandas or polars frame, a scipy sparse matrix, or a
            `RankingData`, which has its own qid (but its positions count only where they are given,
            ``positions=data.positions``).
        y : array_like
            [rows] labels, higher is better; equal labels of a list are one tier.
        qid : array_like, optional
            [rows] the list of each row, in any order; numbers or strings.
        group : array_like, optional
            [lists] sizes of lists of consecutive rows, as LightGBM has them; ``[len(X)]`` if all
            rows are one list. One of qid, group and the constructor's `query_column` is needed.
        weights : array_like, optional
            [lists] how much each list counts, in order of first appearance.
        positions : array_like, optional
            [labels] where each row was shown when its label, a click, came about, from 1. The
            likelihood is that of score + bias of the position, and the biases are learned with the
            model (`position_bias_`); `predict` leaves them out. See docs/clicks.md.
        rows : array_like, optional
            [labels] which row of X each label is about, from 0; then y, qid and positions have one
            an observation, and a row that was shown a million times has its features once. None:
            label i is about row i.
        eval_set : tuple or list of tuple, optional
            (X, y, qid) to stop by, or a list with one such tuple; with `query_column`, (X, y).
        checkpoint : path-like, optional
            A folder to keep the state in, now and then and on Ctrl-C. If there is a state of this
            very fit, it goes on from there, to the same result as without the stop.
        checkpoint_every : float
            Seconds between two states that are kept.
        watch : callable, optional
            Called after every step with a `tierrank.training.Progress`.
        init_model : estimator or path-like, optional
            A fitted ranker of this kind, or the folder of a saved one, to go on from: `trees` more
            trees, `max_epochs` more epochs, or coefficients to begin with. Its feature steps stay
            as they were fitted, and with an `eval_set` it is what the first step has to beat. It is
            left as it is.
        **others
            None: they are refused, and the words of LightGBM and XGBoost answered with ours.

        Returns
        -------
        Ranker
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        predict : Scores of other rows.
        tierrank.save : Keeps what was learned.
        tierrank.data.read : Rows from a file.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 2.0], [1.0, 1.0], [3.0, 2.0], [1.5, 0.0]])
        >>> y, qid = [1, 1, 0, 0, 1, 0], [7, 7, 7, 8, 8, 8]
        >>> ranker = tr.LinearRanker(l2=0.1, max_iter=50)
        >>> ranker.fit(X, y, qid=qid, eval_set=(X, y, qid)).stopped_by_
        'tolerance'
        """
        before = self._before(init_model)
        self._begin(y, others)
        ranks = self._ranks
        if ranks.size > 1 and (positions is not None or rows is not None):
            raise ValueError(
                "positions and rows do not go with sharded=True: let every process have all rows"
            )
        given = validation_set(eval_set)
        clicks = positions is not None or rows is not None
        refit = members.will_refit(self, validated=given is not None, clicks=clicks)
        data, lists = self._read(X, qid, group, "fit(X, y, qid=qid)", y=y, indexed=rows is not None)
        shown = checked_shown(rows, positions, len(data[1]), data[0].shape[0])
        held_out = None
        if given is not None:
            valid_X, valid_y, valid_qid = given
            call = "eval_set=[(X, y, qid)]"
            held_out = self._read(valid_X, valid_qid, None, call, y=valid_y, reset=False)
        if ranks.size > 1:
            check_parts(data[0], lists[0], ranks)
        if before is not None:
            self._check_same_features(before)
        identity: dict[str, Any] = {}
        if checkpoint is not None:
            identity = {
                "estimator": type(self).__name__,
                "params": self._json_params(),
                "training data": digest(*data, *lists, weights, *shown.known()),
                "validation data": digest(*held_out[0], *held_out[1]) if held_out else None,
            }
            if before is not None:
                identity["init_model"] = digest(*before.to_state()[1].values())
            if ranks.size > 1:  # a state belongs to all parts
                parts = ranks.gather([identity["training data"], identity["validation data"]])
                identity["training data"], identity["validation data"] = zip(*parts, strict=True)
        self.steps_ = Steps(steps_from(self.features)) if before is None else before.steps_
        train = self._prepared(data, lists, weights, shown, fit=before is None)
        valid = None if held_out is None else self._prepared(*held_out, None)
        train.check_teaches(ranks)
        validation = None if valid is None else self._validation(valid)
        kept = Checkpoint(checkpoint, identity, every=checkpoint_every)
        self._learn(train, validation, kept, watch, before)
        if refit or self.members > 1:
            every, model = None, copy(self)
            if refit and given is not None and held_out is not None:
                first: members.Rows = data, lists
                if model._know_categories_of(X, given[0]):
                    first = model._read(X, qid, group, None, y=y, reset=False)
                    held_out = model._read(given[0], given[2], None, None, y=given[1], reset=False)
                every = members.together(first, held_out, weights, ranks)
            members.learn(self, model, train, validation, every, kept, watch, before)
        return self

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> AnyArray:
        """Score rows: higher is better, comparable within a list.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            [rows, features], as in `fit`.
        qid, group : array_like, optional
            As in `fit`; needed if a score depends on the rest of its list (`QueryScale`,
            attention), and of no use elsewhere.

        Returns
        -------
        ndarray of float
            [rows] scores.

        Raises
        ------
        ValueError
            X has other columns than in `fit`, or lists are needed and not given.

        See Also
        --------
        score : How good they are.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 2.0], [1.0, 1.0], [3.0, 2.0], [1.5, 0.0]])
        >>> ranker = tr.LinearRanker(l2=0.1).fit(X, [1, 1, 0, 0, 1, 0], qid=[7, 7, 7, 8, 8, 8])
        >>> ranker.predict(X).shape
        (6,)
        """
        check_is_fitted(self)
        by_list = self.scores_lists or self.steps_.needs_qid
        call = "predict(X, qid=qid)" if by_list else None
        (X, _), lists = self._read(X, qid, group, call, reset=False)
        queries = row_queries(X.shape[0], *lists)
        return self._scores(self.steps_.transform(X, queries), queries)

    def score(self, X: Any, y: Any, *, qid: Any = None, group: Any = None) -> float:
        """Compute the mean of `metric` over the lists.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            As in `fit`.
        y : array_like
            As in `fit`.
        qid, group : array_like, optional
            As in `fit`.

        Returns
        -------
        float
            The metric of the scores.

        Raises
        ------
        ValueError
            The data are not as they should be; the message says where.

        See Also
        --------
        tierrank.metrics.evaluate : Several metrics of scores.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 2.0], [1.0, 1.0], [3.0, 2.0], [1.5, 0.0]])
        >>> y, qid = [1, 1, 0, 0, 1, 0], [7, 7, 7, 8, 8, 8]
        >>> tr.LinearRanker(l2=0.1).fit(X, y, qid=qid).score(X, y, qid=qid)
        1.0
        """
        if qid is None and group is None:
            qid = split_query_column(X, self.query_column)[1]
            if qid is None:
                raise no_lists("score(X, y, qid=qid)")
        scores = self.predict(X, qid=qid, group=group)
        return float(self._metric()(scores, np.asarray(y), qid=qid, lengths=group))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "history_")

    @property
    def _ranks(self) -> Ranks:
        """In a fit, the processes of which each has a part of the lists."""
        return RANKS.get()

    # -- what subclasses use ----------------------------------------------------------------

    def _begin(self, y: Any, others: Mapping[str, Any]) -> None:
        """Refuse arguments of others, and forget what was fitted."""
        if word := next(iter(others), None):
            ours = f": write {THEIR_FIT_WORDS[word]}" if word in THEIR_FIT_WORDS else ""
            raise TypeError(f"{type(self).__name__}.fit has no argument {word!r}{ours}")
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        # a fit that fails does not leave half of another one
        for name in ("history_", "position_bias_", "position_standard_errors_"):
            self.__dict__.pop(name, None)

    def _before(self, init_model: Any) -> Self | None:
        """The ranker to go on from, a copy, so that a ranker may go on from itself."""
        if init_model is None:
            return None
        if isinstance(init_model, str | Path):
            init_model = load(init_model)
        own = type(self)
        if type(init_model) is not own:
            raise ValueError(
                f"init_model is a {type(init_model).__name__}: a {own.__name__} goes on from a "
                f"fitted {own.__name__}, or from the folder of a saved one"
            )
        check_is_fitted(init_model)
        if init_model._json_params()["features"] != self._json_params()["features"]:
            raise ValueError(
                f"init_model has other feature steps, features={init_model.features!r}: give the "
                "same, since they stay as they were fitted"
            )
        before: Self = copy(init_model)
        return before

    def _check_same_features(self, before: Self) -> None:
        """Refuse columns of X that are not those that the ranker before was fitted to."""
        if self.n_features_in_ != before.n_features_in_:
            raise ValueError(
                f"X has {self.n_features_in_} features, but init_model was fitted to "
                f"{before.n_features_in_}"
            )
        names, own = (getattr(each, "feature_names_in_", ()) for each in (self, before))
        for number, (name, known) in enumerate(zip(names, own, strict=False), 1):
            if name != known:
                raise ValueError(
                    f"feature {number} is {name!r}, but of init_model it was {known!r}: give the "
                    "same columns in the same order"
                )

    def _objective(self) -> Objective:
        """The objective as a module, one loss a list; it may have parameters of its own."""
        try:
            return from_name(self.objective, **(self.objective_params or {}), reduction="none")
        except TypeError as error:
            raise ValueError(f"objective_params do not fit {self.objective}: {error}") from None

    def _metric(self) -> metrics.Metric:
        metric = metrics.from_name(self.metric)
        if not metric.higher_is_better:
            raise ValueError(
                f"{metric.name} is better when it is lower, and a ranker stops and is scored by "
                "what is better when higher: measure it on what `predict` gives instead"
            )
        return metric

    def _validation(self, rows: TrainingRows) -> ValidationRows:
        """Rows to stop by: grouped by list once for all measurements, of which one is made now.

        So labels that the metric refuses are refused before the fit.
        """
        metric = self._metric()
        gather = rows.tiers.layout().rows
        order = np.arange(len(rows.y)) if gather is None else gather.numpy()
        labels, lengths = rows.y[order], rows.tiers.lengths.numpy()

        ranks = self._ranks

        def measure(scores: AnyArray) -> float:
            if ranks.size == 1:
                return float(metric(scores[order], labels, lengths=lengths))
            own = sum_and_number(values(scores)) if len(scores) else (0.0, 0.0)
            total, number = map(float, ranks.sum(torch.tensor(own, dtype=torch.float64)))
            if not number:
                raise ValueError("there are no rows of eval_set to measure by: give some")
            return total / number

        def values(scores: AnyArray) -> AnyArray:
            by_list = metric(scores[order], labels, lengths=lengths, reduction="none")
            return np.asarray(by_list)

        measure(np.zeros(len(order)))
        return ValidationRows(rows.X, rows.tiers, measure, values)

    @property
    def _width(self) -> int:
        """How many features come out of the steps."""
        steps = self.steps_.steps
        return steps[-1].n_features_out_ if steps else int(self.n_features_in_)

    # -- the rest ---------------------------------------------------------------------------

    def _read(
        self,
        X: Any,
        qid: Any,
        group: Any,
        call: str | None,
        *,
        y: Any = None,
        reset: bool = True,
        indexed: bool = False,
    ) -> tuple[tuple[Any, Any], tuple[Any, AnyArray | None]]:
        """Check X and y, and give them with (qid, lengths); `call` shows how, where it must be.

        If rows are `indexed`, there need not be as many labels.
        """
        data = X if isinstance(X, RankingData) else None
        X, column = split_query_column(X, self.query_column)
        if qid is None and group is None:
            qid = column
            if qid is None and call is not None:
                raise no_lists(call)
        options: dict[str, Any] = {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": False,  # check_finite says where, and what to do
            "reset": reset,
        }
        if y is not None and not indexed:
            least = 0 if self._ranks.size > 1 else 2 if reset else 1
            options |= {"y": y, "y_numeric": True, "ensure_min_samples": least}
        with names_known(self, data, reset=reset):
            X = self._numbers(X, reset=reset)
            with self._text_explained(X):
                X = validate_data(self, X, **options)
        if indexed:
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            y = column_or_1d(y)
        elif y is not None:
            X, y = X
            y = np.asarray(y, dtype=np.float64)
        check_finite(X, allow_nan=self._takes_missing())
        return (X, y), list_keys(len(y) if indexed else X.shape[0], qid, group)

    def _know_categories_of(self, *tables: Any) -> bool:
        """Take on those of all tables, and say whether any are new; most rankers know none."""
        return False

    def _numbers(self, X: Any, *, reset: bool) -> Any:
        """X without categories: they are refused here, and a subclass that knows them has codes."""
        if not isinstance(X, RankingData):
            return X
        for name in X.categories or ():
            raise ValueError(f"column {name!r} holds categories, no numbers: {self._no_text}")
        return X.X

    @contextmanager
    def _text_explained(self, X: Any) -> Iterator[None]:
        """Say which column of a frame it is that holds no numbers, and what to do."""
        try:
            yield
        except ValueError as error:
            if "could not convert" not in str(error) or frame_library(X) is None:
                raise
            columns = frame_columns(X)
            for at, name in enumerate(columns.names):
                if isinstance(columns.floats(at), BadColumn):
                    raise ValueError(f"column {name!r} holds no numbers: {self._no_text}") from None
            raise

    def _takes_missing(self) -> bool:
        return self.allows_missing or Steps(steps_from(self.features)).fills_missing

    def _prepared(
        self,
        rows: tuple[Any, Any],
        lists: tuple[Any, Any],
        weights: Any,
        shown: Shown = ONCE_EACH,
        *,
        fit: bool = False,
    ) -> TrainingRows:
        X, y = rows
        tiers = Tiers.from_labels(y, qid=lists[0], lengths=lists[1])
        queries, labels = row_queries(len(y), *lists), y
        steps = self.steps_
        if shown.rows is not None:  # a row may be in many lists, with a label in each
            if steps.needs_qid:
                raise ValueError(
                    "feature steps that look at a list do not go with rows, by which a row of X is "
                    "in several: transform X before the fit"
                )
            queries, labels = np.zeros(X.shape[0], dtype=np.int64), None
        X = steps.fit_transform(X, labels, queries) if fit else steps.transform(X, queries)
        return TrainingRows(X, y, tiers, checked_weights(weights, tiers, self._ranks), shown)

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """All that a copy needs, JSON-able and arrays; `tierrank.save` writes it."""
        check_is_fitted(self)
        steps, step_arrays = self.steps_.to_state()
        learned, arrays = self._to_state()
        info = {
            "params": self._json_params(),
            "n_features_in": int(self.n_features_in_),
            "feature_names_in": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "history": self.history_.to_json(),
            "steps": steps,
            "learned": learned,
        }
        tensors = {f"steps.{key}": array for key, array in step_arrays.items()}
        tensors.update({f"learned.{key}": array for key, array in arrays.items()})
        for name in ("position_bias", "position_standard_errors"):
            if hasattr(self, f"{name}_"):
                tensors[f"positions.{name}"] = getattr(self, f"{name}_")
        return info, tensors

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """The ranker that `to_state` wrote down; raises a ValueError if it does not fit."""
        params = dict(info["params"])
        steps = Steps.from_state(info["steps"], below("steps.", tensors))
        if params["features"] is not None:
            params["features"] = [clone(step) for step in steps.steps]
        ranker = cls(**params)
        features, names = info["n_features_in"], info["feature_names_in"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("the names of features are no list of strings")
        if not isinstance(features, int) or (names and len(names) != features):
            raise ValueError(f"{len(names)} names of features do not go with {features!r} features")
        if steps.steps and steps.steps[0].n_features_in_ != features:
            raise ValueError(f"the first feature step is not for {features} features")
        ranker.n_features_in_ = features
        if names:
            ranker.feature_names_in_ = np.asarray(names, dtype=object)
        ranker.history_ = History.from_json(info["history"])
        ranker.steps_ = steps
        ranker._from_state(info["learned"], below("learned.", tensors))
        for name, array in below("positions.", tensors).items():
            if name not in ("position_bias", "position_standard_errors") or array.ndim != 1:
                raise ValueError(f"{name} is nothing that is known of positions")
            setattr(ranker, f"{name}_", np.array(array, dtype=np.float64))
        return ranker

    def _json_params(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON takes them."""
        params: dict[str, Any] = self.get_params(deep=False)
        if params["features"] is not None:
            params["features"] = [
                {"name": type(step).__name__, "params": step.get_params()}
                for step in steps_from(self.features)
            ]
        for name, value in params.items():
            if isinstance(value, np.generic):
                params[name] = value.item()
            try:
                json.dumps(params[name], allow_nan=False)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name}={value!r} cannot be written down as JSON, so neither a checkpoint nor "
                    "a saved model can hold it: give numbers, strings, lists or dicts of them"
                ) from None
        return params

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.allows_missing
        return tags


def below(prefix: str, tensors: Arrays) -> Arrays:
    """The arrays whose names begin with a prefix, without it."""
    return {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
