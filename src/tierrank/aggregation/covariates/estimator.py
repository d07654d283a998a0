"""FeatureAggregator: worths as a function of item features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray
from tierrank.aggregation.covariates import fitting, state
from tierrank.aggregation.covariates.results import FeatureResults
from tierrank.aggregation.item_features import read_features
from tierrank.aggregation.likelihood import prepared
from tierrank.aggregation.lists import NOTHING_SAID, distinct, weighted_lists
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import of_frame
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training import Watch
from tierrank.training.covariance import Kind
from tierrank.training.settings import seed_from


class FeatureAggregator(FeatureResults, BaseEstimator):  # type: ignore[misc]
    """Worths of items as a linear or neural function of their features.

    The log-worth of an item is w = coef · x, or a perceptron of x, for its features x: so there is
    one for items that no list names, too. What is minimised is the mean loss of the lists plus
    (l2/2) ‖coef‖². There is no intercept, as the same number added to all log-worths changes
    nothing.

    Parameters
    ----------
    model
        "linear", or "neural" for a perceptron
    objective, objective_params
        as in `RankAggregator`: "pl-partition", the exact likelihood, or any other
    l2
        the penalty on coefficients (of a network, on its matrices)
    standardize
        whether features are divided by their standard deviations before they are penalised, or
        enter a network. `coef_` is for the features as they were given, in any case.
    uncertainty
        "information" or "sandwich": what standard errors of the linear model rest on
    hidden, activation
        of the network: widths of its hidden layers; "silu", "relu", "gelu", "elu" or "tanh"
    learning_rate
        of the network, which Adam trains on all lists at once
    validation_fraction, patience
        of the network: the part of the lists that is held out, and how many iterations without a
        lower loss of theirs end the training. 0: no list, and the training goes on to `max_iter`.
    max_iter
        most iterations; None: 100 of Newton's method, 10,000 of L-BFGS (which takes objectives
        with one derivative), 2,000 of Adam
    item_column
        the column of a frame of features that names the items. Without one, the index of a pandas
        frame does.
    random_state
        a seed for the network's first weights, for the lists that are held out, and for ties that
        "listmle" breaks at random

    Attributes
    ----------
    feature_names_
        names of the features: x0, x1, … if they have none
    coef_
        [features] of the linear model: what one unit more adds to the log-worth
    coef_covariance_, coef_standard_errors_
        [features, features] and [features]
    items_, log_worths_, worths_, standard_errors_
        [items] of the items of the fit, as in `RankAggregator`, whose other results are there too
        (standard errors, and what needs them, of the linear model only)
    log_likelihood_, aic_
        of the lists; `aic_` counts the coefficients (with l2, those that are left free)
    network_, history_
        of the neural model: the perceptron, and the training curve
    lists_, solver_, n_iter_, converged_, stopped_by_, objective_values_, gradient_norm_, seconds_
        as in `RankAggregator`

    Examples
    --------
    >>> weight = {"ant": [1.0], "bee": [2.0], "cat": [3.0], "dog": [4.0]}
    >>> races = [["cat", "bee", "ant"], ["bee", ("ant", "cat")], ["cat", "ant"]]
    >>> fitted = FeatureAggregator().fit(races, weight)
    >>> fitted.coef_
    array([1.28])
    >>> fitted.worths_of({"dog": [4.0], "cat": [3.0]}).predict_proba("dog", "cat")
    0.78
    """

    solver_: str
    n_iter_: int
    converged_: bool
    stopped_by_: str
    objective_values_: list[float]
    gradient_norm_: float | None
    seconds_: float

    def __init__(
        self,
        model: Literal["linear", "neural"] = "linear",
        *,
        objective: str = "pl-partition",
        objective_params: dict[str, Any] | None = None,
        l2: float = 0.0,
        standardize: bool = True,
        uncertainty: Kind = "information",
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
        rankings, weights, items, rest, columns
            as in `RankAggregator.fit`
        features
            a mapping from each item to its vector (or to a mapping from names of features to
            numbers); a frame of pandas (with the items as its index, or in `item_column`), polars
            or pyarrow; or an array [items, features], with a row an item of the catalogue
        watch
            called after every iteration with a `tierrank.training.Progress`

        Raises
        ------
        Unidentified
            without l2, if the lists do not determine the coefficients of the linear model: it says
            which features are why
        """
        fitting.check(self)
        begun = time.perf_counter()
        seed = seed_from(self.random_state)
        rankings = of_frame(rankings, columns, weights)
        seen = weighted_lists(rankings, weights, items, rest)
        lists = distinct(*prepared(*seen, self.objective, self.objective_params, seed))
        if not len(lists.tiers):
            raise ValueError(NOTHING_SAID)
        given = read_features(features, self.item_column)
        counted = isinstance(rankings, Rankings | Tiers | Games) or items is not None
        if given.items is None and not counted and lists.tiers.names is not None:
            raise ValueError(
                "rows of features without names go by the order of the catalogue, which these "
                "rankings leave open: say which item each row is by items=[…], or give a mapping"
            )
        table = given.of(lists.items).checked()
        found = fitting.fit(self, lists, table, seed, watch)
        self._forget()
        self.lists_, self.items_ = lists, lists.items
        self._named = table.names is not None
        self.feature_names_ = fitting.names_of(table)
        self._take(found, table.values)
        self.seconds_ = time.perf_counter() - begun
        if self.model == "linear" and not self.converged_:
            warnings.warn(
                f"the fit did not come to its end in {self.n_iter_} iterations: raise max_iter, "
                "or give some l2",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _take(self, found: fitting.Fit, features: FloatArray) -> None:
        """Set what was learned; and log-worths by it."""
        for name, value in found.attributes.items():
            setattr(self, name, value)
        self._scaling, self._covariances = found.scaling, dict(found.covariances)
        self._later = found.covariance
        self._features = features
        self._spread = (features - features.mean(axis=0)) / found.scaling.unit
        self._offset = 0.0
        self._offset = float(self._scores(features).mean())
        self.log_worths_ = self._scores(features)

    def _forget(self) -> None:
        """Nothing of an earlier fit is to be taken for one of this."""
        for name in ("coef_", "network_", "history_", "_numbers_of"):
            self.__dict__.pop(name, None)

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes."""
        check_is_fitted(self, "log_worths_")
        return state.of_aggregator(self)

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave."""
        fitted = cls(**{**info["parameters"], "hidden": tuple(info["parameters"]["hidden"])})
        state.fill(fitted, info, tensors)
        return fitted
