"""Worths of items from rankings with ties."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import BoolArray, FloatArray, IntArray
from tierrank.aggregation import solvers, state
from tierrank.aggregation.connectivity import Connectivity, Disconnected
from tierrank.aggregation.dask import PartedLists, PartedTerm, parted_lists
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.goodness import Drawing, GamesExpectation, ListsExpectation
from tierrank.aggregation.lists import (
    CountedLists,
    distinct,
    drawn_counts,
    nothing_said,
    weighted_lists,
)
from tierrank.aggregation.paired_likelihood import GamesTerm
from tierrank.aggregation.results import IN_WORDS, NotConverged, OfLists, worths_before
from tierrank.aggregation.solvers import Steps, watched
from tierrank.aggregation.summary import Parameter
from tierrank.aggregation.terms import (
    MOST_WRITTEN,
    GaussianPrior,
    ListTerm,
    OnWorths,
    Prior,
    Sum,
    objective_of,
    prepared,
    prior_from,
    terms_of,
)
from tierrank.aggregation.votes import (
    EntryTerm,
    FittedVotes,
    Votes,
    check_clusters,
    check_votes,
    cluster_names,
    clustered_squares,
    columns_of_covariates,
    covariates_at,
    drawn_clusters,
    minimise_votes,
    of_entries,
    read_clusters,
    read_covariates,
)
from tierrank.data.rankings.container import PartedRankings, Rankings
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, check_count
from tierrank.losses import find
from tierrank.names import check_solver, check_uncertainty
from tierrank.plackett_luce import log_prob
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.tiers.selection import with_rest_written
from tierrank.training import Watch
from tierrank.training.covariance import (
    MOST_DENSE,
    CoefficientTable,
    Kind,
    columns,
    covariance,
    some,
)
from tierrank.training.optim import Minimum
from tierrank.training.progress import seed_from

FAINT = 3.0  # standard deviation of log-worths, by which a sample has an estimate
OF_GAMES = Argument("covariates"), " of games add to the lead of the first side: fit PairedTies"
GUESSED = 6  # iterations that it is worth
SURE = 100.0  # a score at which an item's own logistic loss is next to 0, or to the score


class FittedLists(OfLists):
    """Worths fitted to lists by some objective, which may ask the lists again."""

    objective: str
    objective_params: dict[str, Any] | None

    def _read_lists(
        self, rankings: Any, weights: Any, items: Any, rest: Literal["absent", "last"], seed: int
    ) -> CountedLists:
        """The lists as the objective sees them, each different one once."""
        lists: CountedLists
        if isinstance(rankings, PartedRankings):
            if items is not None:
                raise ValueError(
                    "lists on a cluster have a catalogue: give items= to read_rankings"
                )
            lists = parted_lists(rankings, rest, self.objective, self.objective_params, seed)
        else:
            given = weighted_lists(rankings, weights, items, rest)
            lists = distinct(*prepared(*given, self.objective, self.objective_params, seed))
        if not lists.there:
            raise nothing_said()
        return lists

    def _terms(self, lists: CountedLists) -> Sequence[ListTerm]:
        """What is minimised, but for a prior: the sum of these."""
        if isinstance(lists, PartedLists):
            return [PartedTerm(lists, self.objective, self.objective_params)]
        return terms_of(lists, self.objective, self.objective_params)

    def _set_likelihood(self, value: float, parameters: float | None) -> None:
        """Note what is left of the loss of all lists; `parameters` were free, if one can say."""
        self.log_likelihood_ = self.aic_ = None
        if find(self.objective).is_likelihood(self.objective_params):
            self.log_likelihood_ = -value
            if parameters is not None:
                self.aic_ = 2 * parameters + 2 * value

    def _kind(self, kind: Kind | None) -> Kind:
        kind, entry = super()._kind(kind), find(self.objective)
        if kind == "information" and not entry.is_likelihood(self.objective_params):
            raise ArgumentError(
                f"{entry.name} is no likelihood of a list, so its curvature alone says nothing of "
                "standard errors: use ", Argument("uncertainty", "sandwich"),
            )  # fmt: skip
        if entry.without_errors:
            raise ValueError(
                f"there are no standard errors for {entry.name}, which {entry.without_errors}"
            )
        return kind

    def _expectation(self, data: Any, drawing: Drawing) -> GamesExpectation | ListsExpectation:
        lists = self.lists_
        if data is not None:
            given = weighted_lists(of_frame(data, {}, None), None, self.items_)
            lists = distinct(*prepared(*given, self.objective, self.objective_params, 0))
        if isinstance(lists, PartedLists):
            raise ValueError("lists on a cluster are not here to be counted: give some as data=")
        if not lists.there:
            raise ValueError("a loaded model has its worths but not its lists: give them as data=")
        information: FloatArray | None = None
        with suppress(ValueError):  # this objective has none, or items are too many
            information = self.covariance(kind="information")
        free = len(self.coef_) if hasattr(self, "coef_") else len(self.items_) - 1
        prior = prior_from(getattr(self, "prior", None))
        resists = None if prior is None else prior.hessian(self.log_worths_)
        if not lists.tiers.rest and bool((lists.tiers.lengths == 2).all()):
            games = GamesTerm(_as_fixtures(lists).counted(), "bradley-terry")
            exact = prior is None and not getattr(self, "l2", 0.0)
            return GamesExpectation(
                games, self.log_worths_, information,
                parameters=free, prior=resists, exact=exact, drawing=drawing,
            )  # fmt: skip
        if lists.tiers.rest:
            if len(lists.tiers) * lists.n_items > MOST_WRITTEN:
                raise ValueError(
                    f"{len(lists.tiers):,} lists with a rest of {lists.n_items:,} items have too "
                    f"many pairs (limit {MOST_WRITTEN:,} entries): give some lists as data="
                )
            lists = replace(lists, tiers=with_rest_written(lists.tiers))
        return ListsExpectation(
            lists, self.log_worths_, information, self._gradient_of,
            parameters=free, prior=resists, drawing=drawing,
        )  # fmt: skip

    def _gradient_of(self, lists: CountedLists) -> Callable[[FloatArray], FloatArray]:
        """[items] of the log-likelihood of lists, at any log-worths."""
        terms = Sum(self._terms(lists))
        return lambda log_worths: -terms.value_and_gradient(log_worths)[1]

    def _objective_in_words(self) -> str:
        options = ", ".join(f"{k}={v}" for k, v in (self.objective_params or {}).items())
        return f"{self.objective} ({options})" if options else self.objective

    def _in_words(self) -> tuple[str, str]:
        if find(self.objective).name == "pl-partition":
            return IN_WORDS["plackett-luce"]
        tie = "What a tie says is for the objective to decide."
        return f"Worths by {self._objective_in_words()}.", tie

    def _fit_in_words(self) -> str:
        fit = ""
        if self.log_likelihood_ is not None:
            fit = f", log-likelihood {self.log_likelihood_:.4g}"
        return fit if self.aic_ is None else f"{fit}, AIC {self.aic_:.4g}"


def _one_sided(objective: str, names: Sequence[Any]) -> ArgumentError:
    """The complaint about items that are relevant always or never."""
    return ArgumentError(
        f"to {objective} an item is relevant, unless it is in the last of several tiers, or not; "
        f"of {some(names)} these lists say but one of the two, so that there is no finite score: "
        "leave them out, or give a prior, for instance ", Argument("prior", "gaussian"),
    )  # fmt: skip


def _as_fixtures(lists: CountedLists) -> Fixtures:
    """Lists of two items as games that the first one won."""
    every = np.arange(lists.n_items + 1)
    winner, loser = lists.tiers.items.numpy().reshape(-1, 2).T
    won, nowhere = np.ones(len(winner), dtype=np.int64), np.zeros(len(winner))
    return Fixtures(lists.items, every[:-1], every, winner, loser, won, nowhere, lists.counts)


class RankAggregator(FittedVotes, FittedLists, BaseEstimator):  # type: ignore[misc]
    """Worths of items, by maximum likelihood of lists with ties under the Plackett-Luce model.

    The log-worths maximise Σ weight · log P(list), with P that of `tierrank.log_prob`: from what is
    left of a list, items are chosen with probability proportional to their worth, and a tie sums
    over all orders of its items.

    Parameters
    ----------
    objective : str
        "pl-partition", the exact likelihood, or for comparison any other smooth objective of
        `tierrank.losses`, such as "pl-lb", "pl-efron", "pmop-fd", "ranknet", or "listmle" (with
        ``objective_params={"ties": "random"}``).
    objective_params : dict, optional
        Its options, for instance ``{"k": 5}`` of "pl-topk".
    prior : str, optional
        None for maximum likelihood; "gaussian" or "gaussian:2", normal log-worths with that
        standard deviation (1 if not given); "pseudo-item" or "pseudo-item:0.5", the prior of R's
        PlackettLuce: every item won and lost so many times against one more item.
    uncertainty : {"information", "sandwich"} or None
        "information" or "sandwich": what `standard_errors_` and all intervals rest on; None: there
        are to be none, and no covariance is computed, not for a saved model either.
    solver : {"auto", "newton", "lbfgs", "adagrad"}
        "newton", with second derivatives; "lbfgs"; "adagrad", a few lists a step; "auto" takes
        "newton", "lbfgs" for objectives with one derivative, and "adagrad" for data of more than
        `tierrank.aggregation.solvers.LARGE` entries.
    max_iter : int, optional
        Most iterations (passes over the data, of "adagrad"); None: 100, and 10,000 of "lbfgs".
    learning_rate : float
        The size of the first steps, of "adagrad".
    batch_lists : int
        Lists of a step, of "adagrad".
    tol : float
        The least relative improvement of a pass that counts as one, of "adagrad".
    random_state : int, optional
        A seed for "adagrad", and for ties that "listmle" breaks at random.
    covariates : sequence of str, optional
        Columns that vary within a list (`Rankings.beside_items`), such as the place at which an
        item was shown: each adds β · x to the log-worth that the item has in this list. Worths are
        those of items that are alike in all of them. Nothing keeps β small. Of games,
        `PairedTies` has covariates.
    clusters : str or sequence of str, optional
        A column beside the lists (`Rankings.beside`), or several, of votes that belong together,
        as in `PairedTies`.

    Attributes
    ----------
    items_ : tuple
        Names of the items.
    log_worths_ : ndarray of float
        [items] log-worths with mean 0: how far an item is from the average one.
    worths_, standard_errors_ : ndarray of float
        [items] worths, which sum to 1; standard errors of `log_worths_`.
    coef_, coef_standard_errors_ : ndarray of float
        [covariates] β, what a unit of each adds to the log-worth.
    covariate_names_ : tuple of str
        What the covariates are called.
    log_likelihood_, aic_ : float or None
        Of the lists (None: the objective is no likelihood), and Akaike's criterion with items − 1
        parameters (None: under a prior, too).
    connectivity_ : Connectivity
        Which items were compared with which.
    lists_ : CountedLists
        The lists as they were fitted: `seen` of them, of weight `total`, `silent` of it in lists of
        one tier, which say nothing.
    solver_, stopped_by_ : str
        The solver that was used, and why it ended.
    converged_ : bool
        Whether the fit came to its end.
    n_iter_ : int
        Iterations.
    gradient_norm_, seconds_ : float
        The norm of the gradient at the end, where the solver knows it, and how long it took.
    objective_values_ : list of float
        What was minimised, at the start and after each iteration.

    See Also
    --------
    DavidsonLuce : Ties that say that items are close.
    PairedTies : Games of two sides.
    FeatureAggregator : Worths that follow from features.
    tierrank.data.read_rankings : Rankings from a file.

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
        uncertainty: Kind | None = "information",
        solver: Literal["auto", "newton", "lbfgs", "adagrad"] = "auto",
        max_iter: int | None = None,
        learning_rate: float = 0.1,
        batch_lists: int = 20,
        tol: float = 1e-4,
        random_state: int | None = None,
        covariates: Sequence[str | tuple[str, str]] | None = None,
        clusters: str | Sequence[str] | None = None,
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
        self.covariates = covariates
        self.clusters = clusters

    def fit(
        self,
        rankings: Any,
        *,
        weights: Any = None,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        init_model: Any = None,
        **columns: Any,
    ) -> Self:
        """Estimate the worths of all items.

        Parameters
        ----------
        rankings : Rankings, Tiers, iterable or DataFrame
            `tierrank.data.Rankings`, as readers give them; a `Tiers` over a catalogue; plain
            rankings, best first, with a tuple or a set for a tie; or a frame of pandas, polars or
            pyarrow.
        weights : array_like, optional
            [lists] how often each was seen, 0 or more.
        items : sequence or int, optional
            The catalogue, in whose order results come: a sequence of names, or N for the integers 0
            .. N - 1. Without it, those that the rankings have or name, in order of first
            appearance, or in their own if they are the integers 0 .. N - 1. An item that no list
            names has no estimate without a prior.
        rest : {"absent", "last"}
            Whether what a list does not name is absent from it or tied in the last place.
        watch : callable, optional
            Called after every iteration with a `tierrank.training.Progress`.
        init_model : estimator, path-like or mapping, optional
            Where to begin: an aggregation fitted before, the folder of a saved one, or a mapping
            from items to log-worths. Items that it lacks begin in the middle. It is no prior: the
            maximum is where it was, only found sooner.
        **columns
            Those of a frame: what `tierrank.data.read_rankings` takes, as in
            ``fit(df, list="race", item="driver", rank="position")``. Those that are not named are
            found by their names, and a warning says what was taken for what.

        Returns
        -------
        RankAggregator
            Itself.

        Raises
        ------
        Disconnected
            Without a prior, if there is no finite estimate: it says which items are why.
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        summary : What was found.
        tierrank.save : Keeps it.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", "ann"]]
        >>> fitted = tr.RankAggregator().fit(votes, weights=[5, 2, 1])
        >>> fitted.ranking()
        ['ann', 'bob', 'cy']
        """
        self._check()
        begun = time.perf_counter()
        seed = seed_from(self.random_state)
        prior = prior_from(self.prior)
        if self.covariates and isinstance(rankings, Games):
            raise ArgumentError(*OF_GAMES)
        rankings = of_frame(
            rankings, columns, weights, parted=True, keep=cluster_names(self.clusters),
            keep_items=columns_of_covariates(self.covariates),
        )  # fmt: skip
        lists = self._read_lists(rankings, weights, items, rest, seed)
        votes = self._read_votes(rankings, weights, items, rest, seed)
        connected: Connectivity | None = None
        if prior is None:
            connected = lists.connectivity()
            if not self._determined(connected):
                games = isinstance(rankings, Games) or getattr(rankings, "of_games", False)
                raise Disconnected(connected, "games" if games else "lists")
        parts = self._terms(lists if votes is None or not self.covariates else votes)
        if prior is None and (open_ := self._without_a_threshold(parts, len(lists.items))).any():
            raise _one_sided(self.objective, [lists.items[at] for at in np.flatnonzero(open_)])
        self.solver_ = solvers.choose(self.solver, lists, parts)
        before = init_model is not None
        start = worths_before(init_model, lists.items) if before else self._start(lists)
        start = np.append(start, np.zeros(len(self._covariate_names())))
        end = self._minimise(lists, parts, start, seed, watch)
        self.items_, self.lists_, self._numbers_of = lists.items, lists, None
        self._parts, self._scores, self._prior = parts, end.point, prior
        self._covariances, self._connectivity, self._votes = {}, connected, votes
        w, coef = np.split(end.point, [len(lists.items)])
        self._unit = np.empty(0) if votes is None else votes.unit
        self.covariate_names_ = self._covariate_names()
        self.log_worths_, self._coef = w - w.mean(), coef / self._unit
        if self.covariates:
            self._check_maximum(parts, end)
        self._went(end, self.solver_)
        # a prior makes the items fewer parameters than they are
        free = len(end.point) - self._shifted(prior) if prior is None else None
        self._set_likelihood(Sum(parts).value_and_gradient(end.point)[0], free)
        self.seconds_ = time.perf_counter() - begun
        if not self.converged_ and self.solver_ != "adagrad":
            problem: list[object] = [
                f"found no maximum ({self.stopped_by_}): some log-worths may be infinite, or "
                "weights too far apart; leave items out"
            ]
            if self.stopped_by_ == "max_iter":
                problem = [
                    f"did not come to its end in {self.n_iter_} iterations: raise ",
                    Argument("max_iter"),
                ]
            remedy = ", or give a prior, for instance ", Argument("prior", "gaussian")
            warnings.warn(NotConverged("the fit ", *problem, *remedy), stacklevel=2)
        return self

    def _check(self) -> None:
        self._check_votes()
        objective_of(self.objective, self.objective_params)
        prior_from(self.prior)
        check_uncertainty(self.uncertainty)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_solver(self.solver)
        Steps(self.learning_rate, self.batch_lists, tol=self.tol)  # refuses what is wrong

    def _minimise(
        self,
        lists: CountedLists,
        parts: Sequence[ListTerm],
        start: FloatArray,
        seed: int,
        watch: Watch | None = None,
    ) -> Minimum:
        """Minimise by `solver_`."""
        most = self.max_iter or (10_000 if self.solver_ == "lbfgs" else 100)
        unit = "pass" if self.solver_ == "adagrad" else "iteration"
        if self.covariates:
            (term,) = parts
            assert isinstance(term, EntryTerm)
            prior, iterated = prior_from(self.prior), watched(watch, most, lists.weight)
            whole = self._whole(parts, prior)
            if self.solver_ == "lbfgs":
                return solvers.minimise_smooth(
                    whole, "lbfgs", start, max_iter=most, iterated=iterated
                )
            return minimise_votes(
                whole, term, start, shifted=self._shifted(prior), max_iter=most, iterated=iterated
            )
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
            iterated=watched(watch, most, lists.weight, unit),
        )

    def _start(self, lists: CountedLists) -> FloatArray:
        """[items] scores to begin with: an estimate by a sample, where it saves passes over all."""
        start = np.zeros(lists.n_items)
        if not isinstance(lists, PartedLists) or self.solver_ != "newton":
            return start
        faint = prior_from(self.prior) or GaussianPrior(FAINT)
        for sample in lists.samples():
            terms = [term for each in sample for term in self._terms(each)]
            start = solvers.minimise_smooth(
                Sum([*terms, faint]), "newton", start, max_iter=GUESSED, longest=solvers.LONGEST
            ).point
        return start

    def _determined(self, found: Connectivity) -> bool:
        """Whether lists that hang together so have one finite estimate by the objective."""
        needed = find(self.objective).needs_connection
        return found.connected if needed else found.n_groups <= 1

    def _shifted(self, prior: Prior | None) -> bool:
        """Whether the same number added to all scores changes nothing."""
        return prior is None and find(self.objective).shift_invariant

    def _without_a_threshold(self, parts: Sequence[ListTerm], items: int) -> BoolArray:
        """[items] whose score has no finite best value where each is judged by itself.

        One that is always relevant wants to rise, however high it is; one that never is, to fall.
        """
        if not find(self.objective).pointwise:
            return np.zeros(items, dtype=bool)
        size = items + len(self._covariate_names())
        scores = np.zeros(size)
        scores[:items] = SURE
        rises, falls = (Sum(parts).value_and_gradient(sign * scores)[1][:items] for sign in (1, -1))
        return np.asarray((rises <= 0) | (falls >= 0))

    _prior: Prior | None
    _scores: FloatArray  # [items + covariates], of covariates in units of their sizes
    _unit: FloatArray  # [covariates]
    _votes: Votes | None = None  # the lists one by one, where something is known of each

    @cached_property
    def _parts(self) -> Sequence[ListTerm]:
        """The terms that were minimised, which a copy makes anew."""
        return self._terms(self._votes if self.covariates and self._votes else self.lists_)

    def _terms(self, lists: CountedLists | Votes) -> Sequence[ListTerm]:
        if isinstance(lists, Votes):
            return [EntryTerm(lists, self.objective, self.objective_params)]
        return super()._terms(lists)

    def _read_votes(
        self, rankings: Any, weights: Any, items: Any, rest: Literal["absent", "last"], seed: int
    ) -> Votes | None:
        """The lists one by one, as the objective sees them; None if nothing is known of each."""
        if not self.covariates and not cluster_names(self.clusters):
            return None
        tiers, counts = weighted_lists(rankings, weights, items, rest)
        numbered = replace(tiers, keys=np.arange(len(tiers)))
        known, counts = prepared(numbered, counts, self.objective, self.objective_params, seed)
        x = self._read_x(rankings, tiers, known)
        beside = getattr(rankings, "beside", {})
        clusters = read_clusters(self.clusters, beside, len(tiers), "list")
        there = (known.n_tiers.numpy() > 1) & (counts > 0)
        lists = np.flatnonzero(there)
        if clusters is not None:
            assert known.keys is not None
            clusters = clusters[np.asarray(known.keys)[lists]]
            check_clusters(self.clusters, clusters, (known.n_items or 0) + x.shape[1])
        entries = np.repeat(there, known.lengths.numpy())
        return Votes.of(known[lists], counts[lists], x[entries], self._covariate_names(), clusters)

    def _read_x(self, rankings: Any, tiers: Tiers, known: Tiers) -> FloatArray:
        """[entries, covariates] of lists as they are fitted, which have to be those given."""
        if not self.covariates:
            return np.empty((len(known.items), 0))
        problem = None
        if isinstance(rankings, Games):
            raise ArgumentError(*OF_GAMES)
        number = {name: code for code, name in enumerate(tiers.names or range(known.n_items or 0))}
        code = np.array([number[name] for name in rankings.items], dtype=np.int64)
        if known.rest:
            problem = " are not known of items that a list does not name: write them down"
        elif not np.array_equal(known.items.numpy(), code[rankings.tiers.items.numpy()]):
            problem = (
                " go with the items of lists as they are, and ties that are broken leave them in "
                "another order: use pl-partition"
            )
        elif len(tiers.names or ()) > MOST_DENSE:
            problem = f" take a matrix of all items: fit at most {MOST_DENSE:,} of them"
        elif self.solver == "adagrad":
            problem = " are not for adagrad: leave it to find a solver"
        if problem is not None:
            raise ArgumentError(Argument("covariates"), problem)
        found = read_covariates(self.covariates, rankings.beside_items, len(known.items), "entry")
        assert found is not None
        return found

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, of joblib and of processes: without what the lists determine."""
        kept: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in kept.items() if name != "_parts"}

    def _drawn(self, random: np.random.Generator) -> Any:
        votes = self._votes
        if votes is None:
            return super()._drawn(random)
        if votes.clusters is None:
            return votes.seen(drawn_counts(votes.counts, random))
        return votes.seen(votes.counts * drawn_clusters(votes.clusters, random))

    def _refit(self, drawn: CountedLists | Votes, seed: int) -> FloatArray | None:
        lists = drawn.counted() if isinstance(drawn, Votes) else drawn
        if self._prior is None and not self._determined(lists.connectivity()):
            return None
        parts = self._terms(drawn if self.covariates else lists)
        if self._prior is None and self._without_a_threshold(parts, len(lists.items)).any():
            return None
        end = self._minimise(lists, parts, self._scores, seed)
        if self.covariates:
            try:
                self._check_maximum(parts, end)
            except ValueError:  # these lists leave something open
                return None
        return end.point[: len(self.items_)]

    def _check_maximum(self, parts: Sequence[ListTerm], end: Minimum) -> None:
        (term,) = parts
        assert isinstance(term, EntryTerm)
        names = [*map(str, self.items_), *self.covariate_names_]
        shifted = self._shifted(self._prior)
        check_votes(self._whole(parts, self._prior), term, end, names, shifted=shifted)

    def _kind(self, kind: Kind | None) -> Kind:
        kind = super()._kind(kind)
        if self.solver_ == "adagrad" and not self.converged_ and kind not in self._covariances:
            raise ArgumentError(
                "standard errors are about the maximum itself, and adagrad stops near it: fit "
                "with ",
                Argument("solver", "newton"), ", or bootstrap",
            )  # fmt: skip
        return kind

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        self._ask_lists(f"covariance of kind {kind!r}")
        outer = None
        matrix = self._whole(self._parts, self._prior).hessian(self._scores).matrix()
        if kind == "sandwich" and self._votes is not None and self._votes.clusters is not None:
            (term,) = self._terms(self._votes)
            assert isinstance(term, EntryTerm)
            slopes = term.slopes(self._scores)
            outer = clustered_squares(slopes, self._votes.clusters, np.diag(matrix))
        elif kind == "sandwich":
            outer = np.asarray(sum(part.outer_products(self._scores) for part in self._parts))
        size = len(self.items_)
        found = covariance(matrix, outer, worths=size, shifted=self._shifted(self._prior))
        unit = np.append(np.ones(size), self._unit)
        return np.asarray(found / np.outer(unit, unit)) if self.covariates else found

    def _covariance_of_some(self, codes: IntArray | None, kind: Kind) -> FloatArray:
        if codes is None or kind == "sandwich":
            return super()._covariance_of_some(codes, kind)
        self._ask_lists("covariance")
        hessian = self._whole(self._parts, self._prior).hessian(self._scores)
        return columns(hessian, codes, len(self.items_), centred=self._prior is None)[:, codes]

    def _whole(self, parts: Sequence[ListTerm], prior: Prior | None) -> Sum:
        """What is minimised: of the lists, and of a prior of log-worths."""
        if prior is None:
            return Sum(parts)
        beside = parts[0].x.shape[1] if isinstance(parts[0], EntryTerm) else 0
        return Sum([*parts, OnWorths(prior, beside)])

    # -- with covariates ----------------------------------------------------------------------

    def _expectation(self, data: Any, drawing: Drawing) -> GamesExpectation | ListsExpectation:
        if self.covariates:
            raise ArgumentError(
                "what is expected of a pair differs from list to list with ",
                Argument("covariates"), ": fit without them to see whether worths explain the data",
            )  # fmt: skip
        return super()._expectation(data, drawing)

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List the coefficients of covariates, with intervals.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        list of Parameter
            One a covariate.

        See Also
        --------
        summary : Shows them below the worths.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.RankAggregator().fit(
        ...     [["a", "b"], ["a", "b"], ["b", "a"]]
        ... ).parameters()  # no covariates
        []
        """
        check_is_fitted(self)
        return self._of_covariates(level)

    def _coefficients(self, level: float) -> CoefficientTable | None:
        return self._covariate_table(level)

    def predict_proba(
        self,
        above: Any,
        below: Any,
        *,
        level: float | None = None,
        covariates: Mapping[str, Mapping[Any, float]] | None = None,
    ) -> Any:
        """Compute the exact probability that an item, or a whole set, is above another.

        Parameters
        ----------
        above, below : object or sequence
            An item's name, or several names in a list, tuple or set: every one of `above` is to
            precede every one of `below`. What else takes part does not matter.
        level : float, optional
            With it, also the ends of an interval of this level.
        covariates : mapping, optional
            From columns to mappings from items to numbers; 0 of what is not named.

        Returns
        -------
        float or tuple of float
            The probability; with `level` also the ends of its interval.

        Raises
        ------
        ValueError
            An item is not known, or stands on both sides.

        See Also
        --------
        pairwise_proba : Of all pairs.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
        >>> round(fitted.predict_proba("a", ["b", "c"]), 3)
        0.532
        """
        involved = [*self._codes(above), *self._codes(below)]
        given: dict[str, Any] = {}
        for column, values in (covariates or {}).items():
            if not isinstance(values, Mapping):
                raise ArgumentError(
                    Argument("covariates"), f": {column!r} differs between items: give a mapping "
                    "from these to numbers",
                )  # fmt: skip
            codes = [int(self._codes([item])[0]) for item in values]
            given[column] = np.zeros(len(self.items_))
            given[column][codes] = list(values.values())
            unused = set(codes) - set(involved)
            if unused:
                raise ArgumentError(
                    Argument("covariates"), f": {self.items_[unused.pop()]!r} has a {column!r}, "
                    "and is neither above nor below",
                )  # fmt: skip
        x = covariates_at(self.covariates, given, len(self.items_))
        return self._predicted(above, below, level, x)

    def log_prob(self, rankings: Any) -> FloatArray:
        """Compute the exact log-probabilities of rankings of these items, seen or not.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            As `Tiers.from_rankings` takes them, of these items; with covariates, `Rankings` that
            have them `beside_items`.

        Returns
        -------
        ndarray of float
            [lists] log-probabilities.

        Raises
        ------
        ValueError
            A ranking names an item that is not known.

        See Also
        --------
        tierrank.log_prob : From scores.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> np.exp(fitted.log_prob([["a", "b"], [("a", "b")]])).round(3)
        array([0.667, 1.   ])
        """
        if not self.covariates:
            return super().log_prob(rankings)
        check_is_fitted(self)
        if not isinstance(rankings, Rankings) or rankings.items != self.items_:
            raise ValueError(
                "lists with covariates are Rankings of this very catalogue, as read_rankings(…, "
                "items=fitted.items_, keep_items=[…]) gives them"
            )
        tiers = rankings.tiers
        x = self._read_x(rankings, tiers, tiers)
        scores = self.log_worths_[tiers.items.numpy()] + x @ self._coef
        return np.asarray(log_prob(scores, of_entries(tiers)))

    def _settings(self) -> dict[str, str]:
        return {
            "model": self._objective_in_words(),
            "prior": str(prior_from(self.prior) or "none"),
            "uncertainty": self._uncertainty_in_words(),
        } | self._worths_in_words()

    def _note(self) -> str:
        lists = self.lists_
        prior = "" if self.prior is None else f", prior {prior_from(self.prior)}"
        silent = f" ({lists.silent:g} of them one tie of all)" if lists.silent else ""
        return (
            f"RankAggregator, {find(self.objective).name}, {self._uncertainty_in_words()}{prior}: "
            f"{len(self.items_):,} items, {lists.total:g} lists{silent}{self._fit_in_words()}"
        )

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: estimates and covariances, without the lists."""
        arrays = {"log_worths": self.log_worths_} | self._saved_coef()
        for kind in state.kinds_of(self):
            with suppress(ValueError):  # this objective has none
                arrays[kind] = self._parameter_covariance(self._kind(kind))
        return self._saved(), arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave."""
        fitted = cls._restored(info)
        fitted.covariate_names_ = fitted._covariate_names()
        items, beside = len(fitted.items_), len(fitted.covariate_names_)
        size = items + beside
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(state.KINDS, (size, size))
        shapes |= {"log_worths": (items,)} | ({"coef": (beside,)} if beside else {})
        arrays = state.checked_arrays(tensors, shapes)
        fitted.log_worths_ = arrays["log_worths"]
        fitted._coef = arrays["coef"] if beside else np.empty(0)
        fitted._covariances = state.covariances_from(arrays)
        return fitted
