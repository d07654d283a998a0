"""What a fit to lists leaves behind: estimates, how it went, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.connectivity import Connectivity, connectivity
from tierrank.aggregation.likelihood import terms_of
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.priors import Prior, prior_from
from tierrank.aggregation.results import WorthResults
from tierrank.aggregation.terms import ListTerm, Sum
from tierrank.losses import find
from tierrank.training.covariance import MOST_DENSE, Kind, columns, covariance
from tierrank.training.optim import Minimum, TwiceDifferentiable


class FittedLists(WorthResults):
    """Results of a fit that may ask the lists again; `RankAggregator` has the settings."""

    objective: str
    objective_params: dict[str, Any] | None
    prior: str | None
    uncertainty: Kind

    lists_: CountedLists
    log_likelihood_: float | None
    aic_: float | None
    solver_: str
    converged_: bool
    stopped_by_: str
    n_iter_: int
    gradient_norm_: float
    objective_values_: list[float]
    _covariances: dict[str, FloatArray]
    _connectivity: Connectivity | None = None

    def _take(
        self,
        lists: CountedLists,
        parts: Sequence[ListTerm],
        descent: Minimum,
        name: str,
        prior: Prior | None,
    ) -> None:
        """Set what was learned."""
        self.items_ = lists.items
        self.lists_ = lists
        self._numbers_of = None
        self._parts, self._scores, self._prior = parts, descent.point, prior
        self._covariances = {}
        self.log_worths_ = descent.point - descent.point.mean()
        self.converged_, self.stopped_by_ = descent.converged, descent.stopped_by
        self.n_iter_, self.gradient_norm_ = descent.iterations, descent.gradient_norm
        self.objective_values_ = descent.values
        self.log_likelihood_ = self.aic_ = None
        if find(name).is_likelihood(self.objective_params):
            self.log_likelihood_ = -Sum(parts).value_and_gradient(descent.point)[0]
            if prior is None:  # a prior makes the items fewer parameters than they are
                self.aic_ = 2 * (len(self.items_) - 1) - 2 * self.log_likelihood_

    @cached_property
    def _parts(self) -> Sequence[ListTerm]:
        """The terms that were minimised, which a copy makes anew."""
        return terms_of(self.lists_, find(self.objective).name, self.objective_params)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, of joblib and of processes: without what the lists determine."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_parts"}

    @property
    def connectivity_(self) -> Connectivity:
        """Which items were compared with which."""
        check_is_fitted(self, "log_worths_")
        if self._connectivity is None:
            self._check_lists("connectivity")
            self._connectivity = connectivity(self.lists_.tiers)
        return self._connectivity

    def covariance(
        self, items: Sequence[Any] | None = None, kind: Kind | None = None
    ) -> FloatArray:
        """[items, items] covariance of the centred log-worths.

        All items at once take memory for items² numbers, and are limited to
        `tierrank.training.covariance.MOST_DENSE`. Beyond that, ask for some of them.

        Parameters
        ----------
        items
            names; None for all
        kind
            "information" or "sandwich"; None as the estimator was told
        """
        check_is_fitted(self, "log_worths_")
        if kind not in (None, "information", "sandwich"):
            raise ValueError(f'kind is "information" or "sandwich", not {kind!r}')
        kind = self.uncertainty if kind is None else kind
        codes = None if items is None else self._codes(items)
        entry = find(self.objective)
        if kind == "information" and not entry.is_likelihood(self.objective_params):
            raise ValueError(
                f"{entry.name} is no likelihood of a list, so its curvature alone says nothing of "
                'standard errors: use uncertainty="sandwich"'
            )
        if entry.without_errors:
            raise ValueError(
                f"there are no standard errors for {entry.name}, which {entry.without_errors}"
            )
        if self.solver_ == "adagrad" and not self.converged_ and kind not in self._covariances:
            raise ValueError(
                "standard errors are about the maximum itself, and adagrad stops near it: fit "
                'with solver="newton", or bootstrap'
            )
        if kind in self._covariances or len(self.items_) <= MOST_DENSE:
            matrix = self._dense(kind)
            return matrix if codes is None else matrix[np.ix_(codes, codes)]
        if codes is None or kind == "sandwich":
            raise ValueError(
                f"a covariance of {len(self.items_):,} items is too large to be written out "
                f"(limit {MOST_DENSE:,}): ask for some items, covariance(items=[…]), by the "
                "information; or look at summary(top=20)"
            )
        self._check_lists("covariance")
        rows = columns(self._problem().hessian(self._scores), codes, len(self.items_),
                       centred=self._prior is None)  # fmt: skip
        return rows[:, codes]

    def _dense(self, kind: str) -> FloatArray:
        if kind not in self._covariances:
            self._check_lists(f"covariance of kind {kind!r}")
            matrix = covariance(
                self._problem().hessian(self._scores), self._parts, self._scores,
                kind, centred=self._prior is None,  # type: ignore[arg-type]
            )  # fmt: skip
            matrix.flags.writeable = False  # it is kept, and handed out
            self._covariances[kind] = matrix
        return self._covariances[kind]

    def _problem(self) -> TwiceDifferentiable:
        return Sum(self._parts if self._prior is None else [*self._parts, self._prior])

    def _check_lists(self, what: str) -> None:
        if not len(self.lists_.tiers):
            raise ValueError(
                f"there is no {what} here: a model is saved without its lists. Fit again"
            )

    def _errors_of(self, codes: IntArray) -> FloatArray:
        """[codes] standard errors; NaN where the fit has none."""
        try:
            if len(self.items_) <= MOST_DENSE:
                return np.asarray(self.standard_errors_[codes])
            if len(codes) > MOST_DENSE:  # each is a system of equations of its own
                return np.full(len(codes), np.nan)
            return np.sqrt(np.diag(self.covariance([self.items_[code] for code in codes])))
        except ValueError:
            return np.full(len(codes), np.nan)

    def _note(self) -> str:
        lists = self.lists_
        fit = ""
        if self.log_likelihood_ is not None:
            fit += f", log-likelihood {self.log_likelihood_:.4g}"
        if self.aic_ is not None:
            fit += f", AIC {self.aic_:.4g}"
        prior = "" if self.prior is None else f", prior {prior_from(self.prior)}"
        silent = f" ({lists.silent:g} of them one tie of all)" if lists.silent else ""
        return (
            f"RankAggregator, {find(self.objective).name}, {self.uncertainty}{prior}: "
            f"{len(self.items_):,} items, {lists.total:g} lists{silent}{fit}"
        )
