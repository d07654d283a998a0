"""A linear ranker: a row's score is a weighted sum of its features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError
from tierrank.losses import find
from tierrank.losses.objective import Objective
from tierrank.ranking.base import Ranker, TrainingRows, ValidationRows, biases_of
from tierrank.ranking.linear_loss import (
    MOST_NEWTON_STEPS,
    LinearLoss,
    Uncertainty,
    check_uncertainty,
    covariance,
    linear_scores,
)
from tierrank.ranking.members import Refit, mean_of
from tierrank.storage import Arrays, check_arrays
from tierrank.training import Checkpoint, History, Interruption, Watch
from tierrank.training.covariance import CoefficientTable, coefficient_table
from tierrank.training.optim import Journal, ascend, lbfgs
from tierrank.training.progress import Tracker, seed_from

NEAR_ENOUGH = 1e-7  # relative improvement at which Newton's method takes over
MOST_NEWTON_FEATURES = 1000  # a step takes as many products with the Hessian as features
STEPS_BETWEEN_MEASUREMENTS = 10  # of stochastic steps, each of which changes little

_NOT_CONVERGED = {
    "max_iter": "L-BFGS did not come to its end in max_iter iterations: raise it, scale the "
    "features, or give some l2",
    "no minimum": "some direction of the features orders the lists perfectly, so that larger "
    "coefficients are better without end: give some l2, for instance 1e-3",
}


Kept = tuple[dict[str, Any], Arrays] | None  # what a checkpoint gives


class Plan(NamedTuple):
    """Settings of a fit, with nothing left open.

    Attributes
    ----------
    means_to_end
        whether L-BFGS is meant to end before `max_iter`: the default of 100 iterations is a rule
        to stop by, any other number a limit
    """

    solver: str
    tol: float
    max_iter: int
    patience: int | None
    means_to_end: bool


class LinearRanker(Ranker):
    """Scores that are linear in the features, fitted by any objective of `tierrank.losses`.

    The coefficients minimise the mean loss of the lists plus (l2/2) ‖coefficients‖². There is no
    intercept: the same number added to all scores of a list changes nothing.

    Parameters
    ----------
    objective : str
        A name of `tierrank.losses`, for instance "pl-partition" or "ranknet".
    objective_params : dict, optional
        Its options, for instance ``{"k": 5}`` of "pl-topk".
    features : str, transformer or list, optional
        Steps before the model: "standardize", "query-scale", "second-order", transformers of
        `tierrank.ranking.features`, a list of them, or None.
    l2 : float
        The penalty. 0 gives the maximum of the likelihood. It has no finite one where some
        direction of the features orders all lists perfectly: then `tol` ends the fit at large
        coefficients, or, if it is 0, a warning says so.
    solver : {"auto", "lbfgs", "sgd"}
        "lbfgs"; "sgd", stochastic gradient steps; "auto" takes "sgd" for "pmop-gibbs" and
        "pmop-mh", whose gradients are random, and else "lbfgs".
    tol : float, optional
        "lbfgs" ends when an iteration improves the summed loss by less than this part of it (of 1,
        if it is smaller); 0 goes on to the last digit. None is 1e-5, the rule of Tran et al.
        (2010), or 0 with `uncertainty`, which is about the minimum itself.
    max_iter : int, optional
        Most iterations. None is theirs: 100 of "lbfgs" (10,000 if tol is 0), 1,000 of "sgd".
    learning_rate : float
        Of "sgd", fixed.
    batch_lists : int, optional
        How many lists, drawn at random, make one step of "sgd"; None for all.
    patience : int, optional
        With an `eval_set`, the fit ends after so many iterations without a better metric, and the
        best iterate is kept. None goes on to the minimum: the metric is only noted.
    position_smoothing : float
        Of a fit with `positions`: the precision of the steps between biases of adjacent positions,
        which are taken for a random walk. 1 is a weak prior, outweighed by some dozens of clicks a
        position; 0 the maximum of the likelihood, which a position without a click does not have.
    refit : bool or "auto"
        Whether to fit once more to training and validation rows: for as many iterations as were
        best (of "sgd", times the rows there are to those there were), or to the minimum where
        there is no `patience`. True needs an `eval_set`; "auto" does so if there is one that the
        fit stops by. `history_` stays that of before.
    members : int
        Fits whose coefficients, and so whose scores, are averaged: of "sgd" with other seeds; of
        "lbfgs" all but the first to a bootstrap sample of the lists.
    uncertainty : {"information", "sandwich"}, optional
        "information" or "sandwich" adds `covariance_`, `standard_errors_` and `summary`: the
        inverse of the observed information, for objectives that are a likelihood, or the estimate
        that is robust to a wrong model, with lists as clusters, for all that are smooth.
    metric : str
        What `score` and `eval_set` measure, a name of `tierrank.metrics`.
    query_column : str or int, optional
        A column of X that says which list a row belongs to.
    random_state : int, optional
        A seed for "sgd" and for ties broken at random (once, for "lbfgs").

    Attributes
    ----------
    coef_ : ndarray of float
        [features after the steps] coefficients.
    objective_state_ : dict of float
        Parameters of the objective itself that were learned: alpha of "rao-kupper", beta of
        "davidson".
    n_iter_ : int
        How many iterations there were.
    stopped_by_ : str
        "tolerance", "line search" (no step improves the loss: rounding, or a kink), "max_iter",
        "patience", "interruption", or "no minimum" (coefficients grow without end; seen at tol=0).
    covariance_, standard_errors_ : ndarray of float
        [features, features] and [features], with `uncertainty`.
    history_ : History
        The training curve, a `tierrank.training.History`; before a refit.
    steps_ : Steps
        The fitted feature steps.
    n_features_in_, feature_names_in_ : int, ndarray of str
        As scikit-learn has them (names only from tables whose columns have some).
    position_bias_, position_standard_errors_ : ndarray of float
        [positions] what each adds to a score, that of the first being 0, of a fit with `positions`;
        their standard errors, where they are known.

    See Also
    --------
    BoostedRanker : Trees.
    FeatureAggregator : Worths of items by features that no query changes.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 2.0], [1.0, 1.0], [3.0, 2.0], [1.5, 0.0]])
    >>> ranker = tr.LinearRanker(l2=0.1).fit(X, [1, 1, 0, 0, 1, 0], qid=[7, 7, 7, 8, 8, 8])
    >>> ranker.predict(X).argsort()[::-1].tolist()  # best first
    [4, 0, 1, 5, 3, 2]
    """

    coef_: AnyArray
    objective_state_: dict[str, float]
    n_iter_: int
    stopped_by_: str
    covariance_: AnyArray
    _is_refit: bool = False  # so that max_iter is a size, no limit to be warned of

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        features: Any = "standardize",
        l2: float = 0.0,
        solver: Literal["auto", "lbfgs", "sgd"] = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        learning_rate: float = 0.1,
        batch_lists: int | None = 32,
        patience: int | None = None,
        position_smoothing: float = 1.0,
        refit: Refit = False,
        members: int = 1,
        uncertainty: Uncertainty | None = None,
        metric: str = "ndcg@10",
        query_column: str | int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.objective_params = objective_params
        self.features = features
        self.l2 = l2
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_lists = batch_lists
        self.patience = patience
        self.position_smoothing = position_smoothing
        self.refit = refit
        self.members = members
        self.uncertainty = uncertainty
        self.metric = metric
        self.query_column = query_column
        self.random_state = random_state

    @property
    def standard_errors_(self) -> AnyArray:
        """[features] square roots of the diagonal of `covariance_`."""
        return np.asarray(np.sqrt(np.diag(self.covariance_)))

    def summary(self, level: float = 0.95) -> CoefficientTable:
        """Make a table of coefficients with standard errors, Wald tests and intervals.

        They are those of the features after the steps: with "standardize", a coefficient is for
        one standard deviation more.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        CoefficientTable
            It prints as text, and shows as HTML in a notebook.

        Raises
        ------
        ValueError
            The ranker was fitted without `uncertainty`.

        See Also
        --------
        fit : With ``uncertainty="information"``.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> y = np.digitize(X[:, 0] + rng.normal(size=200), [0, 1])
        >>> ranker = tr.LinearRanker(uncertainty="sandwich").fit(X, y, group=[10] * 20)
        >>> "x0" in str(ranker.summary())
        True
        """
        check_is_fitted(self)
        if not hasattr(self, "covariance_"):
            raise ValueError(
                'a summary needs standard errors: fit with uncertainty="information" or "sandwich"'
            )
        note = f"LinearRanker, {find(self.objective).name}, {self.uncertainty}" + (
            f", l2={self.l2:g}" if self.l2 else ""
        )
        return coefficient_table(self._feature_names(), self.coef_, self.covariance_, level, note)

    # -- fitting ----------------------------------------------------------------------------

    def _learn(
        self,
        train: TrainingRows,
        valid: ValidationRows | None,
        checkpoint: Checkpoint,
        watch: Watch | None,
        before: Self | None,
    ) -> None:
        objective = self._objective()
        plan = self._plan(objective, validated=valid is not None)
        kept = checkpoint.load()
        seed = seed_from(self.random_state) if kept is None else int(kept[0]["seed"])
        self._seed = seed
        loss = self._loss(train, objective, plan.solver, seed)
        start = loss.start()
        if before is not None:
            start[: loss.features] = before.coef_
            start[loss.features : loss.linear] = biases_of(before, loss.shown.n_positions)[1:]
            if before.objective_state_.keys() == loss.own_parameters(start).keys():
                start[loss.linear :] = list(before.objective_state_.values())
        for name in ("coef_", "covariance_"):  # of an earlier fit, in case this one fails
            if hasattr(self, name):
                delattr(self, name)
        measure = None
        if valid is not None:
            held_out = valid

            def measure(point: AnyArray) -> float:
                return held_out.measure(linear_scores(held_out.X, point[: loss.features]))

        with Interruption() as interruption:
            tracker = Tracker(
                History("iteration", self.metric),
                start,
                total=plan.max_iter,
                measure=measure,
                measure_every=1 if plan.solver == "lbfgs" else STEPS_BETWEEN_MEASUREMENTS,
                patience=plan.patience,
                watch=watch,
                checkpoint=checkpoint,
                interruption=interruption,
                seed=seed,
            )
            try:
                solve = self._by_lbfgs if plan.solver == "lbfgs" else self._by_sgd
                stopped_by = solve(loss, tracker, kept, plan, seed)
            except KeyboardInterrupt:
                self._take(tracker, loss, "interruption")
                raise
            tracker.save(finished=True)
        self._take(tracker, loss, stopped_by)
        endless = stopped_by == "no minimum"
        if endless and self.uncertainty is not None:
            raise ValueError(f"there are no standard errors: {_NOT_CONVERGED[stopped_by]}")
        if endless or (stopped_by == "max_iter" and plan.means_to_end):
            warnings.warn(_NOT_CONVERGED[stopped_by], ConvergenceWarning, stacklevel=3)
        if self.uncertainty is not None:
            found = covariance(loss, tracker.kept, self.uncertainty, self._feature_names())
            self.covariance_ = found[: loss.features, : loss.features]
            if train.shown.positions is not None:
                variances = np.diag(found)[loss.features :]
                self.position_standard_errors_ = np.append(0.0, np.sqrt(variances))

    @property
    def _keeps_best(self) -> bool:
        return self.patience is not None

    def _draws(self, train: TrainingRows) -> bool:
        objective = self._objective()
        drawn = self.batch_lists is not None and self.batch_lists < len(train.tiers)
        return self._solver(objective) == "sgd" and (drawn or objective.entry.stochastic)

    def _lengthen(self, ratio: float, before: Self | None) -> bool:
        if self._keeps_best:
            best = self.history_.best_step
            assert best is not None
            # An iteration of L-BFGS sees all rows, however many; one of "sgd" always a batch.
            sees_a_batch = self._solver(self._objective()) == "sgd"
            self.max_iter = round(best * ratio) if sees_a_batch else best
            self.patience, self._is_refit = None, True
        return True

    def _average(self, learned: Sequence[Self], before: Self | None) -> None:
        self.coef_ = np.mean([each.coef_ for each in learned], axis=0)
        self.objective_state_ = mean_of([each.objective_state_ for each in learned])
        self.n_iter_, self.stopped_by_ = learned[0].n_iter_, learned[0].stopped_by_
        if self.uncertainty is not None:
            self.covariance_ = learned[0].covariance_

    def _solver(self, objective: Objective) -> str:
        if self.solver != "auto":
            return self.solver
        entry = objective.entry
        return "lbfgs" if entry.continuous and not entry.stochastic else "sgd"

    def _plan(self, objective: Objective, *, validated: bool) -> Plan:
        """Check the settings, and fill in what is left to us."""
        entry = objective.entry
        solver = self._solver(objective)
        if solver not in ("lbfgs", "sgd"):
            raise ValueError(f'solver is "auto", "lbfgs" or "sgd", not {solver!r}')
        if solver == "lbfgs" and entry.stochastic:
            raise ValueError(f'the gradient of {entry.name} is random, so it needs solver="sgd"')
        if "generator" in (self.objective_params or {}):
            raise ValueError("a ranker's randomness comes from random_state, not from a generator")
        exact = self.uncertainty is not None
        check_uncertainty(self.uncertainty, objective)
        if exact and solver == "sgd":
            raise ValueError('uncertainty is about the minimum, which takes solver="lbfgs"')
        if exact and validated and self.patience is not None:
            raise ValueError(
                "uncertainty is about the minimum, and patience stops before it: leave out one"
            )
        if exact and self.members > 1:
            raise ArgumentError(
                Argument("uncertainty"), " is about one fit, and ", Argument("members"),
                " average several: leave out one",
            )  # fmt: skip
        tol = self.tol
        if tol is None:
            tol = 0.0 if exact else 1e-5
        for what, value in (
            ("l2", self.l2), ("tol", tol), ("learning_rate", self.learning_rate),
            ("position_smoothing", self.position_smoothing),
        ):  # fmt: skip
            positive = what == "learning_rate"
            if not (value > 0 if positive else value >= 0) or not value < np.inf:
                kind = "positive" if positive else "not negative"
                raise ValueError(f"{what} is a number that is {kind}, not {value!r}")
        for what in ("max_iter", "batch_lists", "patience"):
            count = getattr(self, what)
            if count is not None and not (count == int(count) and count >= 1):
                raise ValueError(f"{what} is an integer from 1, or None, not {count!r}")
        most = self.max_iter
        if most is None:
            most = 1000 if solver == "sgd" else 100 if tol > 0 else 10_000
        means_to_end = solver == "lbfgs" and (self.max_iter is not None or tol == 0)
        means_to_end &= not self._is_refit
        patience = self.patience if validated else None
        return Plan(solver, float(tol), int(most), patience, means_to_end)

    def _by_lbfgs(
        self, loss: LinearLoss, tracker: Tracker, kept: Kept, plan: Plan, seed: int
    ) -> str:
        """Minimise the sum over the lists, so that a relative improvement is one; how it ended.

        To the last digit, L-BFGS comes near and Newton's method does the rest, if it can.
        """
        journal = Journal(None if kept is None else kept[1])
        tracker.arrays = journal.arrays
        if kept is not None:
            tracker.known = History.from_json(kept[0]["history"])

        def iterated(point: AnyArray, value: float) -> bool:
            return tracker.step(point, value / loss.lists)

        to_the_end = (
            plan.tol == 0
            and loss.twice_differentiable
            and loss.objective.entry.convex
            and loss.linear <= MOST_NEWTON_FEATURES
        )
        end = lbfgs(
            loss.summed,
            tracker.point,
            tol=NEAR_ENOUGH if to_the_end else plan.tol,
            max_iter=plan.max_iter,
            journal=journal,
            evaluated=tracker.pause,
            iterated=iterated,
        )
        if not end.iterations:  # it began at the minimum
            iterated(end.point, end.value)
        left = min(plan.max_iter - end.iterations, MOST_NEWTON_STEPS)
        if to_the_end and end.stopped_by in ("tolerance", "line search") and left > 0:
            end = loss.by_newton(end.point, left, iterated)
        return "tolerance" if end.converged else end.stopped_by

    def _by_sgd(self, loss: LinearLoss, tracker: Tracker, kept: Kept, plan: Plan, seed: int) -> str:
        """Take stochastic steps; how they ended."""
        tracker.arrays = lambda: {"point": tracker.point, "best": tracker.best}
        if kept is not None:
            tracker.history = History.from_json(kept[0]["history"])
            tracker.point, tracker.best = kept[1]["point"], kept[1]["best"]
        if not tracker.out_of_patience:  # a fit may have been killed right after its last step
            ascend(
                loss.value_and_gradient,
                tracker.point,
                learning_rate=float(self.learning_rate),
                lists=loss.lists,
                batch=loss.lists if self.batch_lists is None else int(self.batch_lists),
                seed=seed,
                done=len(tracker.history.steps),
                steps=plan.max_iter,
                stepped=tracker.step,
            )
        return "patience" if tracker.out_of_patience else "max_iter"

    def _loss(
        self, train: TrainingRows, objective: Objective, solver: str, seed: int
    ) -> LinearLoss:
        tiers = train.tiers
        if solver == "lbfgs" and objective.options.get("ties") == "random":
            # a line search wants one function, so the ties are broken once for all
            tiers = tiers.break_ties(at_random=True, generator=seed)
            objective.options["ties"] = "exact"
        return LinearLoss(
            train.X, tiers, objective, train.weights, float(self.l2), shown=train.shown,
            smoothing=float(self.position_smoothing),
        )  # fmt: skip

    def _take(self, tracker: Tracker, loss: LinearLoss, stopped_by: str) -> None:
        """Set what was learned, as far as the fit came."""
        self.history_ = tracker.history
        self.n_iter_ = len(tracker.history.steps)
        self.stopped_by_ = stopped_by
        self.coef_ = tracker.kept[: loss.features].copy()
        self.objective_state_ = loss.own_parameters(tracker.kept)
        if loss.shown.positions is not None:
            self.position_bias_ = loss.biases(tracker.kept)

    # -- the rest ---------------------------------------------------------------------------

    def _scores(self, X: Any, queries: AnyArray) -> AnyArray:
        return linear_scores(X, self.coef_)

    def _feature_names(self) -> list[str]:
        """Names of the features after the steps."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.array([f"x{number}" for number in range(self.n_features_in_)], dtype=object)
        for step in self.steps_.steps:
            names = step.get_feature_names_out(names)
        return [str(name) for name in names]

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        info = {
            "objective_state": self.objective_state_,
            "n_iter": self.n_iter_,
            "stopped_by": self.stopped_by_,
        }
        arrays = {"coef": self.coef_}
        if hasattr(self, "covariance_"):
            arrays["covariance"] = self.covariance_
        return info, arrays

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        width = self._width
        shapes = {"coef": (width,), "covariance": (width, width)}
        check_arrays(tensors, shapes)
        self.coef_ = tensors["coef"].copy()
        if "covariance" in tensors:
            self.covariance_ = tensors["covariance"].copy()
            if (np.diag(self.covariance_) <= 0).any():
                raise ValueError("covariance has variances that are not positive")
        own = {name: float(value) for name, value in info["objective_state"].items()}
        known = {name for name, _ in self._objective().named_parameters()}
        if set(own) != known or not all(map(np.isfinite, own.values())):
            raise ValueError(f"the objective's parameters are {sorted(known)}, not {own}")
        self.objective_state_ = own
        self.n_iter_, self.stopped_by_ = int(info["n_iter"]), str(info["stopped_by"])
