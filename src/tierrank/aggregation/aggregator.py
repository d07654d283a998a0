"""Worths of items from rankings with ties."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray
from tierrank.aggregation import solvers, state
from tierrank.aggregation.bootstrap import Bootstrap, drawn_counts
from tierrank.aggregation.connectivity import Connectivity, Disconnected, connectivity
from tierrank.aggregation.fitted import FittedLists
from tierrank.aggregation.likelihood import determined, objective_of, prepared, terms_of
from tierrank.aggregation.lists import NOTHING_SAID, CountedLists, distinct, weighted_lists
from tierrank.aggregation.priors import prior_from
from tierrank.aggregation.solvers import Steps
from tierrank.aggregation.terms import ListTerm
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import of_frame
from tierrank.losses import find
from tierrank.names import check_solver, check_uncertainty
from tierrank.storage import Arrays
from tierrank.training import Progress, Watch
from tierrank.training.covariance import Kind
from tierrank.training.optim import Minimum
from tierrank.training.settings import check_count, seed_from


class RankAggregator(FittedLists, BaseEstimator):  # type: ignore[misc]
    """Worths of items, by maximum likelihood of lists with ties under the Plackett-Luce model.

    Parameters
    ----------
    objective
        "pl-partition", the exact likelihood, or for comparison any other smooth objective of
        `tierrank.losses`: "pl-lb", "pl-efron", "pmop-fd", "listmle" (with
        ``objective_params={"ties": "random"}``), "ranknet", …
    objective_params
        its options, for instance ``{"k": 5}`` of "pl-topk"
    prior
        None for maximum likelihood; "gaussian" or "gaussian:2", normal log-worths with that
        standard deviation (1 if not given); "pseudo-item" or "pseudo-item:0.5", the prior of R's
        PlackettLuce: every item won and lost so many times against one more item
    uncertainty
        "information" or "sandwich": what `standard_errors_` and all intervals rest on
    solver
        "newton", with second derivatives; "lbfgs"; "adagrad", a few lists a step; "auto" takes
        "newton", "lbfgs" for objectives with one derivative, and "adagrad" for data of more than
        `tierrank.aggregation.solvers.LARGE` entries
    max_iter
        most iterations (passes over the data, of "adagrad"); None: 100, and 10,000 of "lbfgs"
    learning_rate, batch_lists, tol
        of "adagrad": the first steps' size, lists of a step, and the least relative improvement
        of a pass that counts as one
    random_state
        a seed for "adagrad", and for ties that "listmle" breaks at random

    Attributes
    ----------
    items_
        names of the items
    log_worths_
        [items] log-worths with mean 0: how far an item is from the average one
    worths_, standard_errors_
        [items] worths, which sum to 1; standard errors of `log_worths_`
    log_likelihood_, aic_
        of the lists (None: the objective is no likelihood), and Akaike's criterion with items − 1
        parameters (None: under a prior, too)
    connectivity_
        which items were compared with which, see `Connectivity`
    lists_
        the lists as they were fitted: `seen` of them, of weight `total`, `silent` of it in lists of
        one tier, which say nothing
    solver_, n_iter_, converged_, stopped_by_, objective_values_, gradient_norm_, seconds_
        how the fit went; `objective_values_` has what was minimised, at the start and after each
        iteration

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [
    ...     ["ann", ("bob", "cy")],
    ...     [("ann", "bob"), "cy"],
    ...     ["cy", ("ann", "bob")],
    ...     ["bob", "cy", "ann"],
    ... ]
    >>> fitted = tr.RankAggregator().fit(votes, weights=[5, 3, 2, 1])
    >>> print(fitted.summary())
    RankAggregator, pl-partition, information: 3 items, 11 lists, log-likelihood -10.99, AIC 25.98
    rank  item  log-worth  std err   [0.025  0.975]   worth
       1  ann      0.6928   0.4121  -0.1149  1.5005  0.5795
       2  bob     -0.1196   0.4411  -0.9842  0.7450  0.2572
       3  cy      -0.5732   0.4412  -1.4379  0.2916  0.1634
    """

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        prior: str | None = None,
        uncertainty: Kind = "information",
        solver: Literal["auto", "newton", "lbfgs", "adagrad"] = "auto",
        max_iter: int | None = None,
        learning_rate: float = 0.1,
        batch_lists: int = 20,
        tol: float = 1e-4,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.objective_params = objective_params
        self.prior = prior
        self.uncertainty = uncertainty
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_lists = batch_lists
        self.tol = tol
        self.random_state = random_state

    def fit(
        self,
        rankings: Any,
        *,
        weights: Any = None,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        **columns: Any,
    ) -> Self:
        """Estimate the worths of all items.

        Parameters
        ----------
        rankings
            `tierrank.data.Rankings`, as readers give them; a `Tiers` over a catalogue; plain
            rankings, best first, with a tuple or a set for a tie; or a frame of pandas, polars or
            pyarrow
        weights
            [lists] how often each was seen, 0 or more
        items, rest
            the catalogue, in whose order results come: a sequence of names, or N for the integers
            0 .. N - 1; and whether what a list does not name is "absent" from it or tied in the
            "last" place. Without items, those that the rankings have or name, in order of first
            appearance, or in their own if they are the integers 0 .. N - 1. An item that no list
            names has no estimate without a prior.
        watch
            called after every iteration with a `tierrank.training.Progress`
        columns
            of a frame: what `tierrank.data.read_rankings` takes, as in
            ``fit(df, list="race", item="driver", rank="position")``. Those that are not named are
            found by their names, and a warning says what was taken for what.

        Raises
        ------
        Disconnected
            without a prior, if there is no finite estimate: it says which items are why
        """
        self._check()
        begun = time.perf_counter()
        seed = seed_from(self.random_state)
        prior = prior_from(self.prior)
        name = find(self.objective).name
        rankings = of_frame(rankings, columns, weights)
        given = weighted_lists(rankings, weights, items, rest)
        lists = distinct(*prepared(*given, name, self.objective_params, seed))
        if not len(lists.tiers):
            raise ValueError(NOTHING_SAID)
        connected: Connectivity | None = None
        if prior is None:
            connected = connectivity(lists.tiers)
            if not determined(connected, name):
                seen = "games" if isinstance(rankings, Games) else "lists"
                raise Disconnected(connected, seen)
        parts = terms_of(lists, name, self.objective_params)
        self.solver_ = solvers.choose(self.solver, lists, parts)
        descent = self._descend(lists, parts, np.zeros(lists.n_items), seed, watch)
        self._take(lists, parts, descent, name, prior)
        self._connectivity = connected
        self.seconds_ = time.perf_counter() - begun
        if not self.converged_ and self.solver_ != "adagrad":
            problem = (
                f"did not come to its end in {self.n_iter_} iterations: raise max_iter"
                if self.stopped_by_ == "max_iter"
                else f"found no maximum ({self.stopped_by_}): some log-worths may be infinite, or "
                "weights too far apart; leave items out"
            )
            warnings.warn(
                f'the fit {problem}, or give a prior, for instance prior="gaussian"',
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check(self) -> None:
        objective_of(self.objective, self.objective_params)
        prior_from(self.prior)
        check_uncertainty(self.uncertainty)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_solver(self.solver)
        Steps(self.learning_rate, self.batch_lists, tol=self.tol)  # refuses what is wrong

    def _descend(
        self,
        lists: CountedLists,
        parts: Sequence[ListTerm],
        start: FloatArray,
        seed: int,
        watch: Watch | None = None,
    ) -> Minimum:
        """Minimise by `solver_`."""
        most = self.max_iter or (10_000 if self.solver_ == "lbfgs" else 100)

        def iterated(number: int, value: float) -> None:
            if watch is not None:
                loss = value / lists.counts.sum()
                unit = "pass" if self.solver_ == "adagrad" else "iteration"
                watch(Progress(number, most, unit, loss))

        return solvers.minimise(
            self.solver_,
            lists,
            parts,
            prior_from(self.prior),
            objective_of(self.objective, self.objective_params),
            start=start,
            max_iter=most,
            steps=Steps(self.learning_rate, self.batch_lists, most, self.tol),
            seed=seed,
            iterated=iterated,
        )

    def bootstrap(
        self,
        replicates: int = 200,
        *,
        random_state: int | None = 0,
        watch: Watch | None = None,
    ) -> Bootstrap:
        """Fit again to lists drawn, with replacement, from those of the last fit.

        Parameters
        ----------
        replicates
            how many fits
        random_state
            a seed of what is drawn
        watch
            called after every fit
        """
        check_is_fitted(self, "log_worths_")
        check_count("replicates", replicates, least=2)
        self._check_lists("bootstrap")
        random = np.random.default_rng(seed_from(random_state))
        found, absent = [], 0
        name, prior = find(self.objective).name, prior_from(self.prior)
        for number in range(1, replicates + 1):
            lists = self.lists_.with_counts(drawn_counts(self.lists_.counts, random))
            seed = int(random.integers(2**31))
            if prior is None and not determined(connectivity(lists.tiers), name):
                absent += 1
            else:
                parts = terms_of(lists, name, self.objective_params)
                scores = self._descend(lists, parts, self._scores, seed).point
                found.append(scores - scores.mean())
            if watch is not None:
                watch(Progress(number, replicates, "replicate"))
        if len(found) < 2:
            raise ValueError(
                f"{absent} of {replicates} replicates have no finite estimate: there are too few "
                "lists for a bootstrap without a prior"
            )
        return Bootstrap(self.items_, self.log_worths_, np.array(found), absent)

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes."""
        check_is_fitted(self, "log_worths_")
        return state.of_aggregator(self)

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave."""
        fitted = cls(**info["parameters"])
        state.fill(fitted, info, tensors)
        return fitted
