"""FeatureAggregator: worths as a linear or neural function of item features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Self, overload

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation import solvers, state
from tierrank.aggregation.aggregator import FittedLists
from tierrank.aggregation.feature_worths import (
    Course,
    FeatureTerm,
    ItemFeatures,
    Unidentified,
    WeighedTerm,
    check_features,
    check_maximum,
    coefficient_covariance,
    gradient_products,
    held_out,
    network_for,
    network_scores,
    read_features,
    train_network,
)
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.results import NotConverged, Worths
from tierrank.aggregation.summary import Parameter, parameters_of
from tierrank.aggregation.terms import Sum, objective_of
from tierrank.data.rankings.container import PartedRankings, Rankings
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.losses import find
from tierrank.names import check_uncertainty
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training import History, Watch
from tierrank.training.covariance import (
    MOST_DENSE,
    CoefficientTable,
    Kind,
    coefficient_table,
)
from tierrank.training.optim import Minimum
from tierrank.training.perceptron import check_perceptron, load_weights, perceptron
from tierrank.training.progress import seed_from

MOST_ITERATIONS = {"newton": 100, "lbfgs": 10_000, "adam": 2000}
WEIGHTS = "network."  # arrays of a saved network begin so


@dataclass(frozen=True)
class Scaling:
    """[features] what is taken off, and what the rest is divided by."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Scaling:
        """To mean 0 and variance 1; a feature that is constant is only shifted."""
        largest = np.abs(values).max(axis=0)
        unit = _power_of_two(largest)  # squares of 1e200 or 1e-200 are beyond float64
        scale = unit * (values / unit).std(axis=0)
        return cls(values.mean(axis=0), np.where(scale > 1e-12 * largest, scale, 1.0))

    @property
    def unit(self) -> FloatArray:
        """[features] about `scale`, and nothing is rounded by it. Variances are kept in these."""
        return _power_of_two(self.scale)

    def applied(self, values: FloatArray) -> FloatArray:
        """[rows, features] scaled."""
        return np.asarray((values - self.mean) / self.scale)


def _power_of_two(sizes: FloatArray) -> FloatArray:
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(sizes > 0, sizes, 1.0))[1] - 1))


class FeatureWorths(Worths):
    """Worths w = X · coef, whose covariance is X · covariance of coef · Xᵀ."""

    _spread: FloatArray  # [items, features], with mean 0 over the items, in units of the fit

    def _covariance_of(self, codes: IntArray | None, kind: Kind) -> FloatArray:
        if codes is None and len(self.items_) > MOST_DENSE:
            return self._covariance_of_some(codes, kind)
        rows = self._spread if codes is None else self._spread[codes]
        found = rows @ self._parameter_covariance(kind) @ rows.T
        return np.asarray((found + found.T) / 2)

    @property
    def standard_errors_(self) -> FloatArray:
        """[items] standard errors of the centred log-worths: of an item against the average."""
        return self._errors(self._spread)

    def _errors(self, rows: FloatArray) -> FloatArray:
        variances = ((rows @ self._parameter_covariance(self._kind(None))) * rows).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0)))

    def _errors_of(self, codes: IntArray) -> FloatArray:
        try:
            return self._errors(self._spread[codes])
        except ValueError:
            return np.full(len(codes), np.nan)


class FeatureAggregator(FeatureWorths, FittedLists, BaseEstimator):  # type: ignore[misc]
    """Worths of items as a linear or neural function of their features.

    The log-worth of an item is w = coef · x, or a perceptron of x, for its features x: so there is
    one for items that no list names, too. What is minimised is the mean loss of the lists plus
    (l2/2) ‖coef‖². There is no intercept, as the same number added to all log-worths changes
    nothing.

    Parameters
    ----------
    model : {"linear", "neural"}
        What the log-worth is of the features; "neural" is a perceptron.
    objective : str
        As in `RankAggregator`: "pl-partition", the exact likelihood, or any other.
    objective_params : dict, optional
        Its options.
    l2 : float
        The penalty on coefficients (of a network, on its matrices).
    standardize : bool
        Whether features are divided by their standard deviations before they are penalised, or
        enter a network. `coef_` is for the features as they were given, in any case.
    uncertainty : {"information", "sandwich"} or None
        "information" or "sandwich": what standard errors of the linear model rest on; None: there
        are to be none.
    hidden : sequence of int
        Of the network: widths of its hidden layers.
    activation : {"silu", "relu", "gelu", "elu", "tanh"}
        Of the network.
    learning_rate : float
        Of the network, which Adam trains on all lists at once.
    validation_fraction : float
        Of the network: the part of the lists that is held out. 0: no list, and the training goes on
        to `max_iter`.
    patience : int
        Of the network: how many iterations without a lower loss of those lists end the training.
    max_iter : int, optional
        Most iterations; None: 100 of Newton's method, 10,000 of L-BFGS (which takes objectives
        with one derivative), 2,000 of Adam.
    item_column : str, optional
        The column of a frame of features that names the items. Without one, the index of a pandas
        frame does.
    random_state : int, optional
        A seed for the network's first weights, for the lists that are held out, and for ties that
        "listmle" breaks at random.

    Attributes
    ----------
    feature_names_ : tuple of str
        Names of the features: x0, x1, … if they have none.
    coef_, coef_standard_errors_ : ndarray of float
        [features] of the linear model: what one unit more adds to the log-worth.
    coef_covariance_ : ndarray of float
        [features, features] of the linear model.
    items_ : tuple
        Names of the items of the fit.
    log_worths_, worths_, standard_errors_ : ndarray of float
        [items] as in `RankAggregator`, whose other results are there too (standard errors, and what
        needs them, of the linear model only).
    log_likelihood_, aic_ : float or None
        Of the lists; `aic_` counts the coefficients (with l2, those that are left free).
    network_, history_ : Sequential, History
        Of the neural model: the perceptron, and the training curve.
    lists_ : CountedLists
        The lists as they were fitted.
    converged_ : bool
        Whether the fit came to its end; `solver_`, `n_iter_`, `stopped_by_`, `objective_values_`,
        `gradient_norm_` and `seconds_` are as in `RankAggregator`.

    See Also
    --------
    RankAggregator : A worth an item, without features.
    LinearRanker : Features of items that differ between queries.

    Examples
    --------
    >>> import tierrank as tr
    >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0], "dog": [4.0]}
    >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
    >>> fitted = tr.FeatureAggregator().fit(races, weight)
    >>> fitted.coef_
    array([1.28])
    >>> fitted.worths_of({"dog": [4.0], "cat": [3.0]}).predict_proba("dog", "cat")
    0.78
    """

    _last_learned = "log_worths_"

    feature_names_: tuple[str, ...]
    coef_: FloatArray
    network_: nn.Sequential
    history_: History

    _named: bool  # whether features were given with names
    _features: FloatArray  # [items, features] as they were given
    _scaling: Scaling
    _offset: float
    # of scaled features: coefficients, second derivatives of the lists' loss, and the penalty
    _minimum: tuple[FloatArray, FloatArray, FloatArray] | None = None

    def __init__(
        self,
        model: Literal["linear", "neural"] = "linear",
        *,
        objective: str = "pl-partition",
        objective_params: dict[str, Any] | None = None,
        l2: float = 0.0,
        standardize: bool = True,
        uncertainty: Kind | None = "information",
        hidden: Sequence[int] = (32,),
        activation: str = "silu",
        learning_rate: float = 0.01,
        validation_fraction: float = 0.1,
        patience: int = 50,
        max_iter: int | None = None,
        item_column: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.objective_params = objective_params
        self.l2 = l2
        self.standardize = standardize
        self.uncertainty = uncertainty
        self.hidden = hidden
        self.activation = activation
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_iter = max_iter
        self.item_column = item_column
        self.random_state = random_state

    def fit(
        self,
        rankings: Any,
        features: Any,
        *,
        weights: Any = None,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        **columns: Any,
    ) -> Self:
        """Estimate the function from features to log-worths.

        Parameters
        ----------
        rankings : Rankings, Tiers, iterable or DataFrame
            As in `RankAggregator.fit`.
        features : mapping, DataFrame or array_like
            A mapping from each item to its vector (or to a mapping from names of features to
            numbers); a frame of pandas (with the items as its index, or in `item_column`), polars
            or pyarrow; or an array [items, features], with a row an item of the catalogue.
        weights : array_like, optional
            [lists] how often each was seen, 0 or more.
        items : sequence or int, optional
            The catalogue, as in `RankAggregator.fit`.
        rest : {"absent", "last"}
            Whether what a list does not name is absent from it or tied in the last place.
        watch : callable, optional
            Called after every iteration with a `tierrank.training.Progress`.
        **columns
            Those of a frame of rankings, as in `RankAggregator.fit`.

        Returns
        -------
        FeatureAggregator
            Itself.

        Raises
        ------
        Unidentified
            Without l2, if the lists do not determine the coefficients of the linear model: it says
            which features are why.
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        worths_of : Worths of other items.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).ranking()
        ['cat', 'bee', 'ant']
        """
        self._check()
        begun = time.perf_counter()
        seed = seed_from(self.random_state)
        rankings = of_frame(rankings, columns, weights, parted=self.model == "linear")
        lists = self._read_lists(rankings, weights, items, rest, seed)
        given = read_features(features, self.item_column)
        counted = (
            isinstance(rankings, Rankings | PartedRankings | Tiers | Games) or items is not None
        )
        if given.items is None and not counted and lists.tiers.names is not None:
            raise ValueError(
                "rows of features without names go by the order of the catalogue, which these "
                "rankings leave open: say which item each row is by items=[…], or give a mapping"
            )
        table = given.of(lists.items).checked()
        names = table.names or tuple(f"x{number}" for number in range(table.values.shape[1]))
        if self.model == "linear":
            self._fit_linear(lists, table.values, names, watch)
        else:
            self._fit_network(lists, table.values, seed, watch)
        self.lists_, self.items_, self._numbers_of = lists, lists.items, None
        self._connectivity = None
        self._named, self.feature_names_ = table.names is not None, names
        self._set_worths(table.values)
        self.seconds_ = time.perf_counter() - begun
        if self.model == "linear" and not self.converged_:
            steps = f"the fit did not come to its end in {self.n_iter_} iterations: raise "
            remedy = Argument("max_iter"), ", or give some ", Argument("l2")
            warnings.warn(NotConverged(steps, *remedy), stacklevel=2)
        return self

    def _check(self) -> None:
        """Refuse settings that are wrong, before anything is read."""
        if self.model not in ("linear", "neural"):
            raise ValueError(f'model is "linear" or "neural", not {self.model!r}')
        objective_of(self.objective, self.objective_params)
        check_uncertainty(self.uncertainty)
        check_size("l2", self.l2, zero=True)
        check_size("learning_rate", self.learning_rate)
        check_count("patience", self.patience)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_perceptron(self.hidden, self.activation)
        check_size("validation_fraction", self.validation_fraction, zero=True)
        if self.validation_fraction >= 1:
            raise ValueError(
                f"validation_fraction is below 1, for instance 0.1, not {self.validation_fraction}"
            )

    def _fit_linear(
        self,
        lists: CountedLists,
        values: FloatArray,
        names: Sequence[str],
        watch: Watch | None = None,
    ) -> None:
        """By Newton's method, or L-BFGS, on features of mean 0 and variance 1."""
        scaling = Scaling.of(values)
        rows = scaling.applied(values)
        term, end, solver = self._minimise(lists, rows, scaling, names, watch)
        with np.errstate(over="ignore"):
            coef = end.point / scaling.scale
        if not np.isfinite(coef).all():
            small = names[int(np.argmin(np.isfinite(coef)))]
            raise ValueError(
                f"feature {small} is so small that its coefficient is beyond float64: use another "
                "unit"
            )
        information = term.hessian(end.point).of_lists()
        self.__dict__.pop("network_", None)  # nothing of an earlier fit is to be taken for this
        self.__dict__.pop("history_", None)
        self.coef_, self._scaling = coef, scaling
        self._minimum = end.point, information, term.penalty
        self._covariances = {}
        self._went(end, solver)
        free = float(len(names))
        if self.l2:
            whole = coefficient_covariance(information + np.diag(term.penalty))
            free = float(np.trace(whole @ information))
        self._set_likelihood(term.term.value_and_gradient(rows @ end.point)[0], free)

    def _minimise(
        self,
        lists: CountedLists,
        rows: FloatArray,
        scaling: Scaling,
        names: Sequence[str],
        watch: Watch | None = None,
    ) -> tuple[FeatureTerm, Minimum, str]:
        """What was minimised, its minimum, checked to be one, and the solver."""
        penalty = np.full(scaling.scale.shape, self.l2 * lists.weight)
        if self.l2 and not self.standardize:
            with np.errstate(over="ignore"):
                penalty = penalty / scaling.scale / scaling.scale
            if not np.isfinite(penalty).all():
                small = names[int(np.argmin(scaling.scale))]
                raise ValueError(
                    f"feature {small} is so small that its coefficient, which l2 keeps small, has "
                    "nothing to say: use standardize=True, or another unit"
                )
        within = None if self.l2 else check_features(lists, rows, names)
        parts = self._terms(lists)
        # stochastic steps are for data that this model does not need: it has few coefficients
        solver = solvers.choose("auto", lists, parts)
        solver = "newton" if solver == "adagrad" else solver
        most = self.max_iter or MOST_ITERATIONS[solver]
        term = FeatureTerm(Sum(parts), rows, penalty)
        end = solvers.minimise_smooth(
            term, solver, np.zeros(rows.shape[1]), max_iter=most,
            iterated=solvers.watched(watch, most, lists.weight),
        )  # fmt: skip
        if within is not None and find(self.objective).needs_connection:
            check_maximum(term, end, within, names)
        return term, end, solver

    def _fit_network(
        self, lists: CountedLists, values: FloatArray, seed: int, watch: Watch | None
    ) -> None:
        """By Adam, on a part of the lists; the others say when to stop."""
        width = values.shape[1]
        scaling = Scaling(np.zeros(width), np.ones(width))
        if self.standardize:
            scaling = Scaling.of(values)
        rows = scaling.applied(values)
        network, history, stopped_by, weight = self._trained(lists, rows, seed, watch)
        scores = network_scores(network, rows)
        # weights of a stopped training are not free
        self._set_likelihood(Sum(self._terms(lists)).value_and_gradient(scores)[0], None)
        self.__dict__.pop("coef_", None)
        self.network_, self.history_, self._scaling = network, history, scaling
        self._covariances, self._minimum = {}, None
        self.solver_, self.stopped_by_ = "adam", stopped_by
        self.n_iter_, self.converged_ = len(history.steps), stopped_by == "patience"
        self.objective_values_ = [weight * (loss or 0.0) for loss in history.loss]
        self.gradient_norm_ = None

    def _trained(
        self, lists: CountedLists, rows: FloatArray, seed: int, watch: Watch | None = None
    ) -> tuple[nn.Sequential, History, str, float]:
        """A network, its training curve, why that ended, and the weight of the lists it saw."""

        def weighed(counts: FloatArray) -> WeighedTerm:
            whole = Sum(self._terms(lists.with_counts(counts)))
            return WeighedTerm(whole, float(counts.sum()))

        out, held = np.zeros_like(lists.counts), None
        if self.validation_fraction:
            random = np.random.default_rng(seed)
            out = held_out(lists.counts, self.validation_fraction, random)
            held = weighed(out)
        most = self.max_iter or MOST_ITERATIONS["adam"]
        course = Course(self.learning_rate, self.l2, most, self.patience)
        network = network_for(rows.shape[1], self.hidden, self.activation, seed)
        learned = weighed(lists.counts - out)
        history, stopped_by = train_network(network, rows, learned, held, course, watch)
        return network, history, stopped_by, learned.weight

    def _set_worths(self, features: FloatArray) -> None:
        """Log-worths by what was learned."""
        self._features = features
        self._spread = (features - features.mean(axis=0)) / self._scaling.unit
        self._offset = 0.0
        self._offset = float(self._scores(features).mean())
        self.log_worths_ = self._scores(features)

    def _refit(self, lists: CountedLists, seed: int) -> FloatArray | None:
        rows = self._scaling.applied(self._features)
        if self.model == "neural":
            return network_scores(self._trained(lists, rows, seed)[0], rows)
        try:
            _, end, _ = self._minimise(lists, rows, self._scaling, self.feature_names_)
        except Unidentified:
            return None
        return np.asarray(rows @ end.point)

    # -- what features say --------------------------------------------------------------------

    @overload
    def predict(self, features: Any) -> FloatArray: ...

    @overload
    def predict(self, features: Any, *, return_std: bool) -> Any: ...

    def predict(
        self, features: Any, *, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Compute log-worths of items, seen or not, on the scale of `log_worths_`.

        0 is the average item of the fit, so items of the fit get their `log_worths_` again.

        Parameters
        ----------
        features : mapping, DataFrame or array_like
            As in `fit`. Columns of a frame are found by their names.
        return_std : bool
            Whether to give [rows] standard errors too, of the linear model.

        Returns
        -------
        ndarray of float
            [rows] log-worths; with `return_std` also their standard errors.

        Raises
        ------
        ValueError
            Features are missing, not finite, or have other names than in the fit.

        See Also
        --------
        worths_of : With all that can be asked of worths.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).predict([[2.0], [3.0]])
        array([0.  , 1.28])
        """
        rows = self._read(features).values
        scores = self._scores(rows)
        if not return_std:
            return scores
        return scores, self._errors((rows - self._scaling.mean) / self._scaling.unit)

    def worths_of(self, features: Any) -> ItemWorths:
        """Compute worths of any items by their features, with all that can be asked of worths.

        Parameters
        ----------
        features : mapping, DataFrame or array_like
            As in `fit`; rows of an array are items by number, from 0.

        Returns
        -------
        ItemWorths
            Centred: 0 is the average of these items.

        Raises
        ------
        ValueError
            Features are missing, not finite, or have other names than in the fit.

        See Also
        --------
        predict : The log-worths alone.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).worths_of(
        ...     {"cow": [9.0], "dog": [4.0]}
        ... ).ranking()
        ['cow', 'dog']
        """
        table = self._read(features)
        items = tuple(range(len(table.values))) if table.items is None else table.items
        return ItemWorths(self, items, table.values)

    def _read(self, features: Any) -> ItemFeatures:
        check_is_fitted(self)
        columns = getattr(features, "column_names", getattr(features, "columns", ()))
        known = self.item_column in list(columns)  # a frame of new items may do without names
        given = read_features(features, self.item_column if known else None)
        return given.named(self.feature_names_, by_name=self._named).checked()

    def _scores(self, features: FloatArray) -> FloatArray:
        """[rows] log-worths, 0 for the average item of the fit."""
        if self.model == "linear":
            scores = (features - self._scaling.mean) @ self.coef_
        else:
            scores = network_scores(self.network_, self._scaling.applied(features))
        return np.asarray(scores - self._offset)

    # -- uncertainty --------------------------------------------------------------------------

    @property
    def coef_covariance_(self) -> FloatArray:
        """[features, features] covariance of the coefficients."""
        return self.coef_covariance()

    @property
    def coef_standard_errors_(self) -> FloatArray:
        """[features] standard errors of the coefficients."""
        check_is_fitted(self)
        matrix = self._parameter_covariance(self._kind(None))
        return np.asarray(np.sqrt(np.diag(matrix)) / self._scaling.unit)

    def coef_covariance(self, kind: Kind | None = None) -> FloatArray:
        """Compute the covariance of the coefficients.

        With I the second derivatives of all that was minimised, and g_l the gradient of one list's
        loss, it is I⁻¹ ("information") or I⁻¹ (Σ_l count_l g_l g_lᵀ) I⁻¹ ("sandwich").

        Parameters
        ----------
        kind : {"information", "sandwich"}, optional
            "information" or "sandwich"; None as the estimator was told.

        Returns
        -------
        ndarray of float
            [features, features] numbers.

        Raises
        ------
        ValueError
            The model is neural, or its objective has no second derivatives.

        See Also
        --------
        parameters : Coefficients with intervals.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).coef_covariance("sandwich").shape
        (1, 1)
        """
        check_is_fitted(self)
        unit = self._parameter_covariance(self._kind(kind))
        return np.asarray(unit / self._scaling.unit / self._scaling.unit[:, None])

    def _kind(self, kind: Kind | None) -> Kind:
        if self.model == "neural":
            raise ValueError(
                'a network has no standard errors: use model="linear", or fit again to lists that '
                "are drawn from yours, as bootstrap does"
            )
        return super()._kind(kind)

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        """Of the coefficients, of features in units of `Scaling.unit`."""
        if self._minimum is None:
            raise ValueError(f"the saved model has no covariance of kind {kind!r}: fit again")
        coef, information, penalty = self._minimum
        different, width, outer = self.lists_.different, len(coef), None
        if kind == "sandwich":
            if different <= width:
                raise ArgumentError(
                    f"{different} different lists are too few to see how {width} coefficients "
                    "vary between lists: ", Argument("uncertainty", "sandwich"),
                    " needs more lists than features",
                )  # fmt: skip
            rows = self._scaling.applied(self._features)
            outer = gradient_products(
                self.lists_, coef, rows, self.objective, self.objective_params
            )
        found = coefficient_covariance(information + np.diag(penalty), outer)
        scale = self._scaling.scale / self._scaling.unit
        return np.asarray(found / np.outer(scale, scale))

    # -- shown --------------------------------------------------------------------------------

    def _coefficients(self, level: float) -> CoefficientTable | None:
        """The coefficients of the linear model; NaN for standard errors that it does not have."""
        if self.model == "neural":
            return None
        matrix = np.full((len(self.coef_),) * 2, np.nan)
        with suppress(ValueError):
            matrix = self.coef_covariance()
        names = list(self.feature_names_)
        return coefficient_table(names, self.coef_, matrix, level, "coefficients")

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List the coefficients of the linear model, with intervals.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        list of Parameter
            One a feature.

        See Also
        --------
        coef_covariance : Of several together.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> (coefficient,) = tr.FeatureAggregator().fit(races, weight).parameters()
        >>> coefficient.name, round(coefficient.estimate, 2)
        ('coefficient of x0', 1.28)
        """
        check_is_fitted(self)
        table = self._coefficients(level)
        return [] if table is None else parameters_of(table, "coefficient of {}")

    @property
    def decided_by(self) -> str | None:
        """What decides on worths where the lists leave them open."""
        return "features"

    def _settings(self) -> dict[str, str]:
        model = f"{self.model} in features, {self._objective_in_words()}"
        own = {"model": model, "l2": f"{self.l2:g}"}
        return own | (
            {"uncertainty": self._uncertainty_in_words()} if self.model == "linear" else {}
        )

    def _in_words(self) -> tuple[str, str]:
        text = {
            "linear": "Log-worths are sums of the items' features, each times a coefficient.",
            "neural": "Log-worths are what a network makes of the items' features.",
        }[self.model]
        model, tie = super()._in_words()
        return f"{text} {model}", tie

    def _note(self) -> str:
        kind = f", {self._uncertainty_in_words()}" if self.model == "linear" else ""
        penalty = f", l2={self.l2:g}" if self.l2 else ""
        return (
            f"FeatureAggregator, {self.model}, {find(self.objective).name}{kind}{penalty}: "
            f"{len(self.items_):,} items, {self.lists_.total:g} lists{self._fit_in_words()}"
        )

    # -- saved --------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: the function and its covariances, without the lists."""
        info = self._saved(features=list(self.feature_names_), named=self._named)
        arrays = {
            "features": self._features, "mean": self._scaling.mean, "scale": self._scaling.scale,
        }  # fmt: skip
        if self.model == "neural":
            info["history"] = self.history_.to_json()
            weights = self.network_.state_dict()
            arrays.update({WEIGHTS + name: value.numpy() for name, value in weights.items()})
            return info, arrays
        arrays["coef"] = self.coef_
        for kind in state.KINDS if self.uncertainty is not None else ():
            with suppress(ValueError):  # this fit has none
                matrix = self.coef_covariance(kind)
                if np.isfinite(matrix).all() and np.diag(matrix).all():  # else beyond float64
                    arrays[kind] = matrix
        return info, arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave."""
        fitted = cls._restored(info, hidden=tuple(info["parameters"]["hidden"]))
        fitted.feature_names_ = state.names_from(info["features"], "feature", (str,))
        width = len(fitted.feature_names_)
        weights = {
            name.removeprefix(WEIGHTS): tensors.pop(name)
            for name in list(tensors) if name.startswith(WEIGHTS)
        }  # fmt: skip
        shapes = {"features": (len(fitted.items_), width), "mean": (width,), "scale": (width,)}
        if fitted.model == "linear":
            shapes |= {"coef": (width,), "information": (width, width), "sandwich": (width, width)}
        arrays = state.checked_arrays(tensors, shapes)
        if not (arrays["scale"] > 0).all():
            raise ValueError("scale has numbers that are not positive")
        fitted._scaling = Scaling(arrays["mean"], arrays["scale"])
        unit = fitted._scaling.unit
        fitted._covariances = {
            kind: arrays[kind] * unit * unit[:, None] for kind in state.KINDS if kind in arrays
        }
        if fitted.model == "linear":
            fitted.coef_ = arrays["coef"]
        else:
            with torch.device("meta"):
                network = perceptron(width, fitted.hidden, activation=fitted.activation)
            load_weights(network, weights)
            fitted.network_ = network
            fitted.history_ = History.from_json(info["history"])
        fitted._named = bool(info["named"])
        fitted._set_worths(arrays["features"])
        return fitted


class ItemWorths(FeatureWorths):
    """Worths of any items by the features that a `FeatureAggregator` was given.

    They are centred: 0 is the average of these items, not of those that the fit saw. `ranking`,
    `intervals`, `predict_proba`, `expected_ranks`, `summary` and so on are as in `RankAggregator`.

    Parameters
    ----------
    fitted : FeatureAggregator
        The model.
    items : tuple
        Names of the items.
    features : ndarray of float
        [items, features] as the model takes them.

    Attributes
    ----------
    items_ : tuple
        Names of the items.
    log_worths_, worths_, standard_errors_ : ndarray of float
        [items] as in `RankAggregator`.

    See Also
    --------
    tierrank.FeatureAggregator.worths_of : Gives it.

    Examples
    --------
    >>> import tierrank as tr
    >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
    >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
    >>> worths = tr.FeatureAggregator().fit(races, weight).worths_of({"cow": [9.0], "dog": [4.0]})
    >>> worths.items_, worths.log_worths_.round(1)
    (('cow', 'dog'), array([ 3.2, -3.2]))
    """

    def __init__(
        self, fitted: FeatureAggregator, items: tuple[Any, ...], features: FloatArray
    ) -> None:
        self._fitted = fitted
        self.items_ = items
        scores = fitted._scores(features)
        self.log_worths_ = scores - scores.mean()
        self._spread = (features - features.mean(axis=0)) / fitted._scaling.unit

    def coef_covariance(self, kind: Kind | None = None) -> FloatArray:
        """Compute the covariance of the coefficients, that of the fit.

        Parameters
        ----------
        kind : {"information", "sandwich"}, optional
            None as the estimator was told.

        Returns
        -------
        ndarray of float
            [features, features] numbers.

        See Also
        --------
        tierrank.FeatureAggregator.coef_covariance : The same.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).worths_of(
        ...     {"cow": [9.0]}
        ... ).coef_covariance().shape
        (1, 1)
        """
        return self._fitted.coef_covariance(kind)

    def _kind(self, kind: Kind | None) -> Kind:
        return self._fitted._kind(kind)

    def _parameter_covariance(self, kind: Kind) -> FloatArray:
        return self._fitted._parameter_covariance(kind)

    def report(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there is no page of items by their features, which are of no list.

        Parameters
        ----------
        *_, **__
            Not looked at.

        Raises
        ------
        ValueError
            Always; it says what to do instead.

        See Also
        --------
        summary : The table of these items.

        Examples
        --------
        >>> import tierrank as tr
        >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0]}
        >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
        >>> tr.FeatureAggregator().fit(races, weight).worths_of({"cow": [9.0]}).report("cow.html")
        Traceback (most recent call last):
            ...
        ValueError: ...
        """
        raise ValueError(
            "a report tells of a fit and its lists, and these items are worths by their features: "
            "use the report of the fitted model, or to_frame and plot of these"
        )

    def _note(self) -> str:
        return f"{len(self.items_):,} items by their features; {self._fitted._note()}"
