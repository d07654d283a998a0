"""From lists, features and settings to a fitted function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.aggregation import linear_worths as linear
from tierrank.aggregation import neural_worths as neural
from tierrank.aggregation import solvers
from tierrank.aggregation.item_features import ItemFeatures
from tierrank.aggregation.likelihood import objective_of, terms_of
from tierrank.aggregation.linear_worths import check_features, check_maximum
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.terms import Sum
from tierrank.losses import find
from tierrank.training import Progress, Watch
from tierrank.training.perceptron import check_perceptron
from tierrank.training.settings import check_count, check_size

if TYPE_CHECKING:
    from tierrank.aggregation.covariates.estimator import FeatureAggregator
    from tierrank.aggregation.covariates.results import FeatureResults

MOST_ITERATIONS = {"newton": 100, "lbfgs": 10_000, "adam": 2000}


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


@dataclass(frozen=True)
class CoefCovariance:
    """From a kind to the covariance of coefficients, of features in units of `Scaling.unit`.

    Attributes
    ----------
    objective, params, lists
        what was minimised
    rows, scaling
        [items, features] as they were fitted, and how they came from those that were given
    coef
        [features] of these rows, at the minimum
    hessian, penalty
        [features, features] second derivatives of the lists' loss there, and [features]
    """

    objective: str
    params: dict[str, Any] | None
    lists: CountedLists
    rows: FloatArray
    scaling: Scaling
    coef: FloatArray
    hessian: FloatArray
    penalty: FloatArray

    def __call__(self, kind: str) -> FloatArray:
        """[features, features] by the "information" or the "sandwich"."""
        found = linear.inverse(self.hessian + np.diag(self.penalty))
        if kind == "sandwich":
            found = found @ self._middle() @ found
        scale = self.scaling.scale / self.scaling.unit
        return np.asarray(found / np.outer(scale, scale))

    def _middle(self) -> FloatArray:
        """What stands in the middle of the sandwich."""
        tiers, width = self.lists.tiers, self.rows.shape[1]
        if len(tiers) <= width:
            raise ValueError(
                f"{len(tiers)} different lists are too few to see how {width} coefficients vary "
                'between lists: uncertainty="sandwich" needs more lists than features'
            )
        losses = objective_of(self.objective, self.params)
        return linear.summed_squares(
            losses, tiers, self.lists.counts, self.rows @ self.coef, self.rows
        )


@dataclass(frozen=True)
class Fit:
    """What was learned.

    Attributes
    ----------
    scaling
        of the features
    attributes
        of the estimator, by their names
    covariance
        from a kind to the covariance of the coefficients; None where it is not to be had
    covariances
        those that are known, by their kinds, in the same units
    """

    scaling: Scaling
    attributes: dict[str, Any]
    covariance: CoefCovariance | None = None
    covariances: dict[str, FloatArray] = field(default_factory=dict)


def check(settings: FeatureAggregator) -> None:
    """Refuse settings that are wrong, before anything is read."""
    if settings.model not in ("linear", "neural"):
        raise ValueError(f'model is "linear" or "neural", not {settings.model!r}')
    objective_of(settings.objective, settings.objective_params)
    if settings.uncertainty not in ("information", "sandwich"):
        raise ValueError(
            f'uncertainty is "information" or "sandwich", not {settings.uncertainty!r}'
        )
    check_size("l2", settings.l2, zero=True)
    check_size("learning_rate", settings.learning_rate)
    check_count("patience", settings.patience)
    if settings.max_iter is not None:
        check_count("max_iter", settings.max_iter)
    check_perceptron(settings.hidden, settings.activation)
    check_size("validation_fraction", settings.validation_fraction, zero=True)
    if settings.validation_fraction >= 1:
        raise ValueError(
            f"validation_fraction is below 1, for instance 0.1, not {settings.validation_fraction}"
        )


def check_kind(settings: FeatureResults, kind: Any) -> None:
    """Refuse to give a covariance that a fit does not have."""
    if settings.model == "neural":
        raise ValueError(
            'a network has no standard errors: use model="linear", or fit again to lists that are '
            "drawn from yours"
        )
    if kind not in ("information", "sandwich"):
        raise ValueError(f'kind is "information" or "sandwich", not {kind!r}')
    if kind == "information" and not find(settings.objective).is_likelihood(
        settings.objective_params
    ):
        raise ValueError(
            f"{find(settings.objective).name} with these options is no likelihood of a list, so "
            "its curvature alone says nothing of standard errors: use uncertainty="
            '"sandwich"'
        )


def names_of(table: ItemFeatures) -> tuple[str, ...]:
    """Names of features; x0, x1, … if they have none."""
    return table.names or tuple(f"x{number}" for number in range(table.values.shape[1]))


def fit(
    settings: FeatureAggregator,
    lists: CountedLists,
    table: ItemFeatures,
    seed: int,
    watch: Watch | None,
) -> Fit:
    """Fit the model that the settings ask for."""
    return (_linear if settings.model == "linear" else _neural)(settings, lists, table, seed, watch)


def _linear(
    settings: FeatureAggregator,
    lists: CountedLists,
    table: ItemFeatures,
    seed: int,
    watch: Watch | None,
) -> Fit:
    """By Newton's method, or L-BFGS, on features of mean 0 and variance 1."""
    name, params = find(settings.objective).name, settings.objective_params
    names, scaling = names_of(table), Scaling.of(table.values)
    rows = scaling.applied(table.values)
    weight = float(lists.counts.sum())
    penalty = np.full(scaling.scale.shape, settings.l2 * weight)
    if settings.l2 and not settings.standardize:
        with np.errstate(over="ignore"):
            penalty = penalty / scaling.scale / scaling.scale
        if not np.isfinite(penalty).all():
            small = names[int(np.argmin(scaling.scale))]
            raise ValueError(
                f"feature {small} is so small that its coefficient, which l2 keeps small, has "
                "nothing to say: use standardize=True, or another unit"
            )
    within = None if settings.l2 else check_features(lists, rows, names)
    parts = terms_of(lists, name, params)
    # stochastic steps are for data that this model does not need: it has few coefficients
    solver = solvers.choose("auto", lists, parts)
    solver = "newton" if solver == "adagrad" else solver
    most = settings.max_iter or MOST_ITERATIONS[solver]
    term = linear.FeatureTerm(Sum(parts), rows, penalty)

    def iterated(number: int, value: float) -> None:
        if watch is not None:
            watch(Progress(number, most, "iteration", value / weight))

    descent = linear.minimise(term, solver, most, iterated)
    with np.errstate(over="ignore"):
        coef = descent.point / scaling.scale
    if not np.isfinite(coef).all():
        small = names[int(np.argmin(np.isfinite(coef)))]
        raise ValueError(
            f"feature {small} is so small that its coefficient is beyond float64: use another unit"
        )
    information = term.hessian(descent.point).of_lists()
    if within is not None and find(name).needs_connection:
        check_maximum(term, descent, information, within, names)

    log_likelihood = aic = None
    if find(settings.objective).is_likelihood(settings.objective_params):
        log_likelihood = -Sum(parts).value_and_gradient(rows @ descent.point)[0]
        free = float(len(names))
        if settings.l2:
            free = float(np.trace(linear.inverse(information + np.diag(penalty)) @ information))
        aic = 2 * free - 2 * log_likelihood
    return Fit(
        scaling,
        {
            "coef_": coef,
            "log_likelihood_": log_likelihood,
            "aic_": aic,
            "solver_": solver,
            "n_iter_": descent.iterations,
            "converged_": descent.converged,
            "stopped_by_": descent.stopped_by,
            "objective_values_": descent.values,
            "gradient_norm_": descent.gradient_norm,
        },
        CoefCovariance(name, params, lists, rows, scaling, descent.point, information, penalty),
    )


def _neural(
    settings: FeatureAggregator,
    lists: CountedLists,
    table: ItemFeatures,
    seed: int,
    watch: Watch | None,
) -> Fit:
    """By Adam, on a part of the lists; the others say when to stop."""
    name, params = find(settings.objective).name, settings.objective_params
    width = table.values.shape[1]
    scaling = Scaling(np.zeros(width), np.ones(width))
    if settings.standardize:
        scaling = Scaling.of(table.values)
    rows = scaling.applied(table.values)

    def weighed(counts: FloatArray) -> neural.WeighedTerm:
        part = lists.with_counts(counts)
        return neural.WeighedTerm(Sum(terms_of(part, name, params)), float(counts.sum()))

    out, held = np.zeros_like(lists.counts), None
    if settings.validation_fraction:
        random = np.random.default_rng(seed)
        out = neural.held_out(lists.counts, settings.validation_fraction, random)
        held = weighed(out)
    most = settings.max_iter or MOST_ITERATIONS["adam"]
    course = neural.Course(settings.learning_rate, settings.l2, most, settings.patience)
    network = neural.network_for(width, settings.hidden, settings.activation, seed)
    learned = weighed(lists.counts - out)
    history, stopped_by = neural.train(network, rows, learned, held, course, watch)
    log_likelihood = None
    if find(settings.objective).is_likelihood(settings.objective_params):
        whole = Sum(terms_of(lists, name, params))
        log_likelihood = -whole.value_and_gradient(neural.network_scores(network, rows))[0]
    return Fit(
        scaling,
        {
            "network_": network,
            "history_": history,
            "log_likelihood_": log_likelihood,
            "aic_": None,  # the training stops early, so weights are not free parameters
            "solver_": "adam",
            "n_iter_": len(history.steps),
            "converged_": stopped_by == "patience",
            "stopped_by_": stopped_by,
            "objective_values_": [learned.weight * (loss or 0.0) for loss in history.loss],
            "gradient_norm_": None,
        },
    )
