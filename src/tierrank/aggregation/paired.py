"""PairedTies: worths from games that may end in a tie."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray
from tierrank.aggregation import state
from tierrank.aggregation.connectivity import Connectivity, Disconnected, connectivity
from tierrank.aggregation.games import Fixtures, fixtures_of_table, read_fixtures, side_of
from tierrank.aggregation.goodness import Drawing, GamesExpectation
from tierrank.aggregation.lists import CountedLists, distinct, drawn_counts, weighted_lists
from tierrank.aggregation.next_pairs import GameInformation
from tierrank.aggregation.paired_likelihood import (
    GamesTerm,
    Model,
    PairedLoss,
    check_model,
    derivatives,
    probabilities,
    starting_t,
    tie_parameter,
)
from tierrank.aggregation.results import (
    Estimates,
    NotConverged,
    log_odds_interval,
    model_in_words,
    worths_before,
)
from tierrank.aggregation.solvers import watched
from tierrank.aggregation.summary import Parameter, wald
from tierrank.aggregation.terms import Prior, PseudoItem, prior_from
from tierrank.aggregation.votes import (
    FittedVotes,
    check_clusters,
    columns_of_covariates,
    covariates_at,
    drawn_clusters,
)
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.names import check_uncertainty
from tierrank.storage import Arrays
from tierrank.tiers.arrays import offsets, preview
from tierrank.training import Watch
from tierrank.training.covariance import Kind, reach
from tierrank.training.optim import Minimum

TITLES = {
    "davidson": {"tie": "log v (ties)", "home": "first side"},
    "rao-kupper": {"tie": "log(θ − 1) (ties)", "home": "first side"},
    "bradley-terry": {"home": "first side"},
}
LARGEST_TOL = 1e-8  # so that an estimate that runs away is told from one that arrives
SAVED = ("log_likelihood", "n_parameters", "n_games")


class PairedTies(FittedVotes, BaseEstimator):  # type: ignore[misc]
    """Worths of items from games of two that may end in a tie, by maximum likelihood.

    With d the difference of log-worths, the first side's minus the second's:

    - "davidson": win : tie : loss = e^{d/2} : v : e^{−d/2} (Davidson, 1970)
    - "rao-kupper": win 1/(1 + θ e^−d), loss 1/(1 + θ e^d), tie what remains (Rao and Kupper, 1967)
    - "bradley-terry": win 1/(1 + e^−d), and no ties

    A side that is a tuple or a frozenset is a team: its worth is the sum of its players' worths,
    and it is the players who are estimated.

    Parameters
    ----------
    model : {"davidson", "rao-kupper", "bradley-terry"}
        How games end, as above.
    ties : {"refuse", "half", "drop"}, optional
        What "bradley-terry" does with ties: "refuse" them, count each as "half" a win and half a
        loss, or "drop" them. None for the other models, and "refuse" for this one.
    home : bool
        Whether the first side of a game has an advantage, added to d.
    prior : str, optional
        None; "gaussian" or "gaussian:2", log-worths normal with this standard deviation;
        "pseudo-item" or "pseudo-item:0.5", everybody won and lost so many games against one more
        item. Without one, games must lead from every item to every other.
    tol : float
        The fit goes on until every part of the gradient is below this times the games it is a sum
        over, and the next step would change nothing any more.
    max_iter : int
        Most steps of Newton's method.
    uncertainty : {"information", "sandwich"} or None
        "information", the inverse of the observed information; or "sandwich", which holds with
        enough games even where the model is wrong; None: there are to be no standard errors.
    covariates : sequence of str or of tuple, optional
        Columns beside the games, each of which adds β · x to d; or pairs of them, of which the
        difference does: ``["turn", ("length_a", "length_b")]``. They enter as they are: worths
        are those at 0 of all of them (at no difference of lengths). Nothing keeps β small.
    clusters : str or sequence of str, optional
        A column beside the games, or several, of votes that belong together, as in "voter" or
        ``["voter", "prompt"]``: standard errors are then those of a sandwich clustered by these,
        whatever `uncertainty` says, and `bootstrap` draws clusters.

    Attributes
    ----------
    items_ : tuple
        Names of the items (of the players, with teams).
    log_worths_, worths_, standard_errors_ : ndarray of float
        [items] log-worths with mean 0; worths, which sum to 1; standard errors of `log_worths_`.
    tie_parameter_, tie_standard_error_ : float
        The v of "davidson", the θ of "rao-kupper"; on the log scale `beta_` = log v and
        `alpha_` = log(θ − 1), whose standard error it is.
    home_advantage_, home_standard_error_ : float
        What is added to d for the first side, if `home`.
    coef_, coef_standard_errors_ : ndarray of float
        [covariates] β, what a unit of each adds to d.
    covariate_names_ : tuple of str
        What the covariates are called.
    covariance_ : ndarray of float
        [items + extras, items + extras] of the centred log-worths, the tie parameter on the log
        scale, the home advantage, and the coefficients of covariates.
    log_likelihood_, aic_, bic_ : float
        Of all games, without the prior. With "half" it is no likelihood of what was observed.
    n_parameters_, n_games_ : float
        Free parameters (with a prior, those that the games decide) and the weight of all games.
    converged_ : bool
        Whether the fit came to its end; `solver_`, `n_iter_`, `stopped_by_`, `objective_values_`,
        `gradient_norm_` and `seconds_` are as in `RankAggregator`, whose other results are there
        too. (A full ranking is one by the worths: what Bradley-Terry says of games, step by step.)

    See Also
    --------
    tierrank.data.read_games : Games from a table.
    DavidsonLuce : Lists of any length whose ties say that items are close.
    WorthsThroughTime : Worths that change.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("ann", "bob", "first"), ("bob", "cy", "tie"), ("cy", "ann", "first")] * 20
    >>> games += [("ann", "bob", "tie"), ("ann", "cy", "first"), ("cy", "bob", "second")] * 8
    >>> fitted = tr.PairedTies().fit(games)
    >>> fitted.summary()
    PairedTies, davidson, information: 84 games of 3 items, log-likelihood -90.25, AIC 186.51
    item          log-worth  std err   [0.025  0.975]   worth
    ann              0.2946   0.2246  -0.1455  0.7348  0.4270
    cy               0.1473   0.2224  -0.2885  0.5832  0.3685
    bob             -0.4420   0.2283  -0.8894  0.0055  0.2044
    log v (ties)     0.0372   0.2344  -0.4223  0.4966
    >>> win, tie, loss = fitted.predict_proba("ann", "bob")
    >>> round(win, 3), round(tie, 3), round(loss, 3)
    (0.455, 0.327, 0.218)
    """

    of_games: ClassVar[bool] = True

    log_likelihood_: float
    n_parameters_: float
    n_games_: float
    _extras: dict[str, float]  # "tie" and "home", in the order of `covariance_`
    _coef: FloatArray
    # what was fitted, one by one where that is known of votes; None in a model that was loaded
    _fixtures: Fixtures | None = None
    _hang_together: Connectivity | None = None  # how these do, where the fit had to know
    _prior: Prior | None = None

    def __init__(
        self,
        model: Model = "davidson",
        *,
        ties: Literal["refuse", "half", "drop"] | None = None,
        home: bool = False,
        prior: str | Prior | None = None,
        tol: float = 1e-11,
        max_iter: int = 100,
        uncertainty: Kind | None = "information",
        covariates: Sequence[str | tuple[str, str]] | None = None,
        clusters: str | Sequence[str] | None = None,
    ) -> None:
        self.model = model
        self.ties = ties
        self.home = home
        self.prior = prior
        self.tol = tol
        self.max_iter = max_iter
        self.uncertainty = uncertainty
        self.covariates = covariates
        self.clusters = clusters

    def fit(
        self,
        games: Any,
        weights: Any = None,
        *,
        items: Any = None,
        neutral: Any = None,
        watch: Watch | None = None,
        init_model: Any = None,
        **columns: Any,
    ) -> Self:
        """Fit to games; equal ones are counted once.

        Parameters
        ----------
        games : Games, Rankings, Tiers, iterable or DataFrame
            `Games`; rows of (first, second, outcome), the outcome "first", "second" or "tie", or
            1, −1 or 0; `Rankings` or `Tiers` whose lists have two items, a tie in one tier; or a
            frame of pandas, polars or pyarrow. Covariates and clusters are columns of a frame, or
            of `Games.beside`.
        weights : array_like, optional
            [games] how often each was played, 0 or more, on top of the weights that `Games` have.
        items : sequence or int, optional
            The items (the players, with teams), or N for the integers 0 .. N - 1: results come in
            this order, and one that is in no game needs a prior. Without it, those that occur, in
            order of first appearance, or in their own if they are the integers 0 .. N - 1.
        neutral : array_like or str, optional
            [games] booleans, with `home`: games whose first side had no advantage, where `Games` do
            not say it themselves; of a frame, the column.
        watch : callable, optional
            Called after every step with a `tierrank.training.Progress`.
        init_model : estimator, path-like or mapping, optional
            Where to begin, as in `RankAggregator.fit`.
        **columns
            Those of a frame: what `tierrank.data.read_games` takes, as in
            ``fit(df, first="white", second="black", winner="won")``. Those that are not named are
            found by their names, and a warning says what was taken for what.

        Returns
        -------
        PairedTies
            Itself.

        Raises
        ------
        Disconnected
            Without a prior, if there is no finite estimate: it says which items are why.
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        fit_table : From tables of counts.
        summary : What was found.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 0)]
        >>> tr.PairedTies().fit(games, weights=[6, 2, 3]).ranking()
        ['ann', 'bob']
        """
        self._check()
        if isinstance(neutral, str):
            columns, neutral = columns | {"neutral": neutral}, None
        games = of_frame(
            games, columns, weights, keep=self._columns_beside(), either_way=not self.home
        )
        # not named here, so that the games go when they are counted
        return self._fit(
            read_fixtures(
                games, weights, neutral, home=self.home, items=items, covariates=self.covariates,
                clusters=self.clusters,
            ),
            watch,
            init_model,
        )  # fmt: skip

    def fit_table(self, wins: Any, ties: Any = None, names: Sequence[Any] | None = None) -> Self:
        """Fit to tables of counts.

        Parameters
        ----------
        wins : array_like
            [items, items] how often i beat j.
        ties : array_like, optional
            [items, items], symmetric: how often i and j tied (each tie stands there twice).
        names : sequence, optional
            [items] names of the items; else they are numbers.

        Returns
        -------
        PairedTies
            Itself.

        Raises
        ------
        ValueError
            The tables are not square, not of one size, or the one of ties is not symmetric.

        See Also
        --------
        fit : From games one by one.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.PairedTies().fit_table(
        ...     [[0, 6], [2, 0]], [[0, 3], [3, 0]], names=["ann", "bob"]
        ... )
        >>> fitted.n_games_
        11.0
        """
        self._check()
        if self.home:
            raise ValueError("tables do not say who was at home: for home=True, use fit with games")
        if self._columns_beside():
            raise ValueError(
                "tables of counts have nothing beside them: with covariates or clusters, use fit "
                "with games"
            )
        return self._fit(fixtures_of_table(wins, ties, names))

    def _fit(self, fixtures: Fixtures, watch: Watch | None = None, init_model: Any = None) -> Self:
        begun = time.perf_counter()
        prior = prior_from(self.prior)
        ties = (self.ties or "refuse") if self.model == "bradley-terry" else None
        check_ties(fixtures, self.model, ties, prior)
        if ties == "drop":
            fixtures = fixtures.without_ties()
        votes = None if fixtures.clusters is None else fixtures
        fixtures = fixtures.counted()
        if votes is not None and votes.clusters is not None:
            check_clusters(self.clusters, votes.clusters, len(self._titles(votes)))
        if (found := _connectivity(fixtures, prior)) is not None and not found.connected:
            raise Disconnected(found, "games")
        loss = PairedLoss(fixtures, self.model, home=self.home, prior=prior)
        weight, start = loss.games.weight, _start(loss)
        if init_model is not None:
            start[: len(fixtures.players)] = worths_before(init_model, fixtures.players)
        end = loss.minimise(
            start, tol=self.tol, max_iter=self.max_iter,
            iterated=watched(watch, self.max_iter, weight),
        )  # fmt: skip
        covariances: dict[str, FloatArray] = {}
        titles = self._titles(fixtures)
        if self.uncertainty is None:
            loss.check_minimum(end, titles)
        else:
            kind = self._kind(None)
            covariances[kind] = loss.covariance(
                end, sandwich=kind == "sandwich", names=titles, votes=votes
            )
        if not end.converged:
            steps = f"Newton's method did not come to its end in {end.iterations} steps: raise "
            warnings.warn(
                NotConverged(steps, Argument("max_iter"), ", or give a prior"), stacklevel=3
            )
        w, extras, coef = np.split(end.point, [len(fixtures.players), loss.games.plain])
        self.items_, self._prior, self._coef = fixtures.players, prior, coef
        self._fixtures, self._hang_together = (fixtures, found) if votes is None else (votes, None)
        self.covariate_names_ = self._covariate_names()
        self._numbers_of = None
        self.log_worths_ = w - w.mean()
        self._covariances = covariances
        self._extras = dict(zip(self._extra_names, extras.tolist(), strict=True))
        self.log_likelihood_ = loss.log_likelihood(end.point)
        self.n_parameters_, self.n_games_ = loss.effective_parameters(end.point), weight
        self.aic_ = 2 * self.n_parameters_ - 2 * self.log_likelihood_
        self._went(end, "newton")
        self.seconds_ = time.perf_counter() - begun
        return self

    def _check(self) -> None:
        """Refuse what the constructor was given and cannot be."""
        check_model(self.model, self.ties, self.home)
        check_uncertainty(self.uncertainty)
        self._check_votes()
        prior_from(self.prior)
        check_count("max_iter", self.max_iter)
        check_size("tol", self.tol)
        if self.tol > LARGEST_TOL:
            raise ValueError(f"tol is at most {LARGEST_TOL:g}, not {self.tol}")

    @property
    def _extra_names(self) -> list[str]:
        """What is estimated beside the worths."""
        return ["tie"] * (self.model != "bradley-terry") + ["home"] * self.home

    def _titles(self, fixtures: Fixtures) -> list[str]:
        """[parameters] names of all that is estimated."""
        names = [TITLES[self.model][name] for name in self._extra_names]
        return [*map(str, fixtures.players), *names, *self._covariate_names()]

    # -- parameters beside the worths ---------------------------------------------------------

    @property
    def covariance_(self) -> FloatArray:
        """[items + extras, items + extras] of centred log-worths, ties, home and covariates."""
        check_is_fitted(self)
        return self._parameter_covariance(self._kind(None))

    @property
    def tie_parameter_(self) -> float:
        """The v of "davidson", the θ of "rao-kupper"."""
        return tie_parameter(self.model, self._extra("tie"))

    @property
    def alpha_(self) -> float:
        """The logarithm of θ − 1 of "rao-kupper"."""
        return self._extra("tie", only="rao-kupper")

    @property
    def beta_(self) -> float:
        """The logarithm of v of "davidson"."""
        return self._extra("tie", only="davidson")

    @property
    def tie_standard_error_(self) -> float:
        """Of `alpha_` or `beta_`."""
        return self._extra_error("tie")

    @property
    def home_advantage_(self) -> float:
        """What is added to d for the first side: the log of a factor on its worth."""
        return self._extra("home")

    @property
    def home_standard_error_(self) -> float:
        """Of `home_advantage_`."""
        return self._extra_error("home")

    @property
    def bic_(self) -> float:
        """Compute Schwarz's criterion: log(games) · parameters − 2 · log-likelihood."""
        return float(np.log(self.n_games_)) * self.n_parameters_ - 2 * self.log_likelihood_

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List the parameters of ties (on the log scale), of the first side and of covariates.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        list of Parameter
            With their intervals.

        See Also
        --------
        summary : Shows them below the worths.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0), ("b", "a", -1), ("b", "a", 0)]
        >>> [parameter.name for parameter in tr.PairedTies(home=True).fit(games * 3).parameters()]
        ['log v (ties)', 'first side']
        """
        check_is_fitted(self)
        reach(level)  # refuses a wrong one
        found = []
        for name, value in self._extras.items():
            error = np.nan if self.uncertainty is None else self._extra_error(name)
            found.append(wald(TITLES[self.model][name], value, error, level))
        return found + self._of_covariates(level)

    def _extra(self, name: str, only: str | None = None) -> float:
        check_is_fitted(self)
        if name not in self._extras or (only is not None and self.model != only):
            raise AttributeError(f"model={self.model!r}, home={self.home} has no such parameter")
        return self._extras[name]

    def _extra_error(self, name: str) -> float:
        self._extra(name)
        at = len(self.items_) + list(self._extras).index(name)
        return float(np.sqrt(self.covariance_[at, at]))

    # -- who wins -----------------------------------------------------------------------------

    def predict_proba(
        self,
        a: Any,
        b: Any,
        *,
        neutral: bool = False,
        level: float | None = None,
        covariates: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Any, Any]:
        """Compute the probabilities that a wins, that they tie, and that b wins.

        Parameters
        ----------
        a, b : object or sequence
            A side, or a list or array of sides; one against many is fine. A tuple or frozenset is
            a team. With `home`, a is the first side.
        neutral : bool
            Whether the first side has no advantage.
        level : float, optional
            With it, each probability comes as three numbers, with the ends of an interval of this
            level (by the normal approximation on the scale of log-odds).
        covariates : mapping, optional
            From columns to numbers, or to [games] of them; 0 of a covariate that is not named.

        Returns
        -------
        tuple
            Three floats, or three [games] arrays where a or b are several sides; with `level`,
            three `Estimates` of these.

        Raises
        ------
        ValueError
            A side is not known.

        See Also
        --------
        pairwise_proba : Of all pairs.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 0)]
        >>> fitted = tr.PairedTies().fit(games, weights=[6, 2, 3])
        >>> [round(p, 3) for p in fitted.predict_proba("ann", "bob")]  # 6, 3 and 2 of 11
        [0.545, 0.273, 0.182]
        """
        check_is_fitted(self)
        several = [_is_several(sides) for sides in (a, b)]
        first, second = (_sides(sides) for sides in (a, b))
        if all(several) and len(first) != len(second):
            raise ValueError(f"{len(first)} sides cannot meet {len(second)}: give as many of both")
        games = len(first) if several[0] else len(second)
        x = covariates_at(self.covariates, covariates, games)
        term = self._games_of(first, second, games, neutral=neutral, x=x)
        lead, t = term.lead(self._point), self._extras.get("tie", 0.0)
        chances = probabilities(self.model, lead, t)

        def shaped(values: FloatArray) -> Any:
            return values if any(several) else float(values[0])

        if level is None:
            win, tie, loses = (shaped(chance) for chance in chances)
            return win, tie, loses
        found = []
        for outcome, chance, (one, two) in (
            (1, chances[0], chances[1:]),
            (0, chances[1], chances[::2]),
            (-1, chances[2], chances[:2]),
        ):
            if self.model == "bradley-terry" and outcome == 0:
                found.append(Estimates(*(shaped(chance) for _ in range(3))))
                continue
            log_p, sparse = term.log_probabilities(self._point, outcome)
            slopes = sparse.toarray()
            variance = ((slopes @ self.covariance_) * slopes).sum(axis=1)
            ends = log_odds_interval(log_p, one + two, variance, level)
            found.append(Estimates(shaped(chance), *(shaped(end) for end in ends)))
        win, tie, loses = found
        return win, tie, loses

    def pairwise_proba(self, items: Sequence[Any] | None = None) -> FloatArray:
        """Compute the probabilities that one side wins a game that somebody wins, of all pairs.

        On neutral ground; ½ on the diagonal.

        Parameters
        ----------
        items : sequence, optional
            Names; None for all.

        Returns
        -------
        ndarray of float
            [items, items] that the row's item wins.

        Raises
        ------
        ValueError
            An item is not known.

        See Also
        --------
        predict_proba : With ties, and the advantage of the first side.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 0)]
        >>> tr.PairedTies().fit(games, weights=[6, 2, 3]).pairwise_proba()
        array([[0.5 , 0.75],
               [0.25, 0.5 ]])
        """
        codes = np.arange(len(self.items_)) if items is None else self._codes(items)
        w = self.log_worths_[codes]
        lead = np.subtract.outer(w, w)
        wins, _, losses = probabilities(self.model, lead, self._extras.get("tie", 0.0))
        return np.asarray(wins / (wins + losses))

    def log_prob(self, games: Any, *, neutral: Any = None) -> FloatArray:
        """Compute the log-probabilities of the outcomes of games of these items, seen or not.

        Parameters
        ----------
        games : Games or iterable
            As in `fit`; with covariates, `Games` that have them `beside`.
        neutral : array_like, optional
            [games] booleans, with `home`: games whose first side had no advantage.

        Returns
        -------
        ndarray of float
            [games] log-probabilities.

        Raises
        ------
        ValueError
            A side is not known.

        See Also
        --------
        predict_proba : Of all three outcomes.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 0)]
        >>> fitted = tr.PairedTies().fit(games, weights=[6, 2, 3])
        >>> np.exp(fitted.log_prob([("ann", "bob", "tie")])).round(3)
        array([0.273])
        """
        check_is_fitted(self)
        fixtures = read_fixtures(
            games, None, neutral, home=self.home, covariates=self.covariates
        ).over(self.items_)
        term = GamesTerm(fixtures, self.model, home=self.home)
        return term.log_probabilities(self._point, fixtures.outcome)[0]

    @property
    def _point(self) -> FloatArray:
        """[parameters] the estimate, with centred log-worths."""
        return np.array([*self.log_worths_, *self._extras.values(), *self._coef])

    def _games_of(
        self,
        first: list[Any],
        second: list[Any],
        games: int,
        *,
        neutral: bool,
        x: FloatArray | None,
    ) -> GamesTerm:
        """The likelihood of games between these sides, whatever their outcome."""
        numbers, teams = self._numbers(), [side_of(name) for name in [*first, *second]]
        unknown = next((p for team in teams for p in team if p not in numbers), None)
        if unknown is not None:
            raise ValueError(f"{preview(unknown)} was in no game that was fitted")
        sides = np.arange(len(teams))
        one, two = sides[: len(first)], sides[len(first) :]
        fixtures = Fixtures(
            self.items_,
            np.array([numbers[player] for team in teams for player in team], dtype=np.int64),
            offsets([len(team) for team in teams]),
            np.broadcast_to(one, games).astype(np.int64),
            np.broadcast_to(two, games).astype(np.int64),
            np.zeros(games, dtype=np.int64),
            np.full(games, float(self.home and not neutral)),
            np.ones(games),
            x,
        )
        return GamesTerm(fixtures, self.model, home=self.home)

    # -- the games again ----------------------------------------------------------------------

    def _counts(self, what: str) -> FloatArray:
        if self._fixtures is None:
            raise ValueError(
                f"there is no {what} here: a model is saved without its games. Fit again"
            )
        return self._fixtures.weights

    def _loss(self, fixtures: Fixtures) -> PairedLoss:
        return PairedLoss(fixtures, self.model, home=self.home, prior=self._prior)

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        self._counts(f"covariance of kind {kind!r}")
        votes = self._fixtures
        assert votes is not None
        return self._loss(votes.counted()).covariance(
            Minimum(self._point), sandwich=kind == "sandwich", names=self._titles(votes),
            votes=votes,
        )  # fmt: skip

    def _drawn(self, random: np.random.Generator) -> FloatArray:
        weights = self._counts("bootstrap")
        assert self._fixtures is not None
        if self._fixtures.clusters is None:
            return drawn_counts(weights, random)
        return weights * drawn_clusters(self._fixtures.clusters, random)

    def _refit(self, counts: FloatArray, seed: int) -> FloatArray | None:
        assert self._fixtures is not None
        fixtures = self._fixtures.with_counts(counts).counted()
        found, tied = _connectivity(fixtures, self._prior), fixtures.outcome == 0
        if found is not None and not found.connected:
            return None
        if "tie" in self._extras and (tied.all() or not tied.any()):
            return None
        loss = self._loss(fixtures)
        end = loss.minimise(self._point, tol=self.tol, max_iter=self.max_iter)
        try:
            loss.check_minimum(end, self._titles(fixtures))
        except ValueError:  # these games leave something open
            return None
        return end.point[: len(fixtures.players)]

    def _expectation(self, data: Any, drawing: Drawing) -> GamesExpectation:
        fixtures = self._fixtures
        if data is not None:
            data = of_frame(data, {}, None, keep=columns_of_covariates(self.covariates))
            fixtures = read_fixtures(data, None, None, home=self.home, covariates=self.covariates)
            fixtures = fixtures.over(self.items_)
            fixtures = fixtures.without_ties() if self.ties == "drop" else fixtures
        if fixtures is None:
            raise ValueError("a loaded model has its worths but not its games: give them as data=")
        if data is not None or fixtures.clusters is not None:
            fixtures = fixtures.counted()
        loss = PairedLoss(fixtures, self.model, home=self.home, prior=prior_from(self.prior))
        information = self._covariances.get("information")
        if information is None:
            information = loss.covariance(
                Minimum(self._point), sandwich=False, names=self._titles(fixtures)
            )
        return GamesExpectation(
            loss.games,
            self._point,
            information,
            parameters=self.n_parameters_,
            prior=None if loss.prior is None else loss.terms[1].hessian(self._point),
            exact=self.prior is None,
            drawing=drawing,
        )

    def _game_covariance(self, items: Sequence[Any] | None = None) -> tuple[FloatArray, int | None]:
        matrix, size = self.covariance_, len(self.items_)
        codes = np.arange(size) if items is None else self._codes(items)
        kept = np.concatenate([codes, np.arange(size, len(matrix))])
        return matrix[np.ix_(kept, kept)], len(codes) if "tie" in self._extras else None

    def _game_information(self, d: FloatArray) -> GameInformation:
        if "tie" not in self._extras:
            return super()._game_information(d)
        t = self._extras["tie"]
        found = [np.zeros_like(d) for _ in GameInformation._fields]
        for outcome, chance in zip((1, 0, -1), probabilities(self.model, d, t), strict=True):
            slopes = derivatives(self.model, np.full(d.shape, outcome), d, t)
            for part, square in zip(
                found, (slopes.d**2, slopes.d * slopes.t, slopes.t**2), strict=True
            ):
                part += chance * square
        return GameInformation(*found)

    def _win_chance(self, d: float) -> float:
        return float(probabilities(self.model, np.array([d]), self._extras.get("tie", 0.0))[0][0])

    @property
    def ties_connect(self) -> bool:
        """Whether a tie says that two items are about equal."""
        return self.ties != "drop"

    def compared(self, data: Any = None) -> tuple[CountedLists, Connectivity]:
        """The games that were fitted, and which items they compare.

        Parameters
        ----------
        data
            what was fitted, for a model that was loaded: it is saved without
        """
        check_is_fitted(self)
        known, different = self._fixtures, False
        if known is not None and known.has_teams:
            raise ValueError(
                "a report tells who was compared with whom, and here teams were, not the players "
                "whose worths these are: use summary, to_frame and plot"
            )
        if data is None:
            if known is None:
                raise ValueError(
                    "a loaded model has its worths but not its games: give them as data="
                )
            data = known.to_games()
            counted = known.covariates is None and known.clusters is None
            different = counted and not known.at_home.any()
        games = distinct(*weighted_lists(data), ties_speak=True, different=different)
        found = self._hang_together if different else None
        return games, connectivity(games.tiers, ties_connect=True) if found is None else found

    def _settings(self) -> dict[str, str]:
        own = {
            "model": self.model,
            "prior": str(prior_from(self.prior) or "none"),
            "uncertainty": self._uncertainty_in_words(),
        }
        if self.model != "bradley-terry":
            own["who stands above whom"] = "in games that somebody wins"
        if self.ties is not None:
            own["ties"] = self.ties
        if self.home:
            own["home"] = "the first side has an advantage"
        return own | self._worths_in_words()

    def _in_words(self) -> tuple[str, str]:
        return model_in_words(self.model, self.ties)

    def _note(self) -> str:
        return (
            f"PairedTies, {self.model}, {self._uncertainty_in_words()}"
            + (f", ties={self.ties}" if self.ties else "")
            + (f", prior {prior_from(self.prior)}" if self.prior is not None else "")
            + f": {self.n_games_:,.10g} games of {len(self.items_)} items, "
            f"log-likelihood {self.log_likelihood_:.2f}, AIC {self.aic_:.2f}"
        )

    # -- saved --------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: estimates and their covariance, without the games."""
        check_is_fitted(self)
        info = {
            "params": state.plain_setting(self.get_params(deep=False)),
            "items": [state.plain_name(name) for name in self.items_],
            "extras": self._extras,
            "n_iter": self.n_iter_,
            "converged": self.converged_,
            **{name: float(getattr(self, f"{name}_")) for name in SAVED},
            "fit": state.facts_of(self),
        }
        arrays = {"log_worths": self.log_worths_} | self._saved_coef()
        if self.uncertainty is not None:
            arrays["covariance"] = self.covariance_
        return info, arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave; raises a ValueError if it does not hold together."""
        fitted = cls(**info["params"])
        fitted._check()
        items = state.names_from(info["items"], "item")
        expected = fitted._extra_names
        extras = {name: float(info["extras"][name]) for name in expected}
        if len(info["extras"]) != len(extras):
            raise ValueError(f"the parameters are {expected}, not {sorted(info['extras'])}")
        fitted.covariate_names_ = fitted._covariate_names()
        beside = len(fitted.covariate_names_)
        size = len(items) + len(extras) + beside
        shapes: dict[str, tuple[int, ...]] = {"log_worths": (len(items),)}
        if fitted.uncertainty is not None:
            shapes["covariance"] = size, size
        if beside:
            shapes["coef"] = (beside,)
        if tensors.keys() != shapes.keys():
            raise ValueError(f"there are {sorted(tensors)} in place of {sorted(shapes)}")
        arrays = state.checked_arrays(tensors, shapes)
        numbers = {name: float(info[name]) for name in SAVED}
        if not np.isfinite([*extras.values(), *numbers.values()]).all():
            raise ValueError("the results have numbers that are not finite")
        ended = bool(info["converged"])
        own = {  # what release 0.1 did not save
            "solver_": "newton", "stopped_by_": "tolerance" if ended else "max_iter",
            "objective_values_": [], "gradient_norm_": None, "seconds_": 0.0,
        } | info.get("fit", {})  # fmt: skip
        fitted.items_, fitted._extras = items, extras
        fitted.log_worths_ = arrays["log_worths"]
        fitted._coef = arrays.get("coef", np.empty(0))
        fitted._covariances = {}
        if fitted.uncertainty is not None:
            fitted._covariances[fitted._kind(None)] = arrays["covariance"]
        fitted.log_likelihood_, fitted.n_parameters_, fitted.n_games_ = numbers.values()
        own |= {
            "n_iter_": int(info["n_iter"]), "converged_": ended,
            "log_likelihood_": fitted.log_likelihood_,
            "aic_": 2 * fitted.n_parameters_ - 2 * fitted.log_likelihood_,
        }  # fmt: skip
        state.set_facts(fitted, own)
        return fitted


def _start(loss: PairedLoss) -> FloatArray:
    """[parameters] equal worths, and the t that is right for the share of ties then."""
    games, start = loss.games, np.zeros(loss.games.size)
    if games.tie_at is not None:
        share = share_of_ties(games.fixtures, games.model, loss.prior)
        start[games.tie_at] = starting_t(share)
    return start


def _connectivity(fixtures: Fixtures, prior: Prior | None) -> Connectivity | None:
    """How games hang together, where that decides on a finite estimate."""
    if prior is not None or fixtures.has_teams:
        return None
    return connectivity(fixtures.to_games().to_rankings().tiers, ties_connect=True)


def share_of_ties(fixtures: Fixtures, model: Model, prior: Prior | None) -> float:
    tied, games = fixtures.weights[fixtures.outcome == 0].sum(), fixtures.weights.sum()
    if isinstance(prior, PseudoItem) and model != "bradley-terry":
        games += 2 * prior.wins * len(fixtures.players)  # somebody won these
    return float(tied / games)


def check_ties(fixtures: Fixtures, model: Model, ties: str | None, prior: Prior | None) -> None:
    """Refuse ties, or the lack of them, that a model has no estimate for."""
    share = share_of_ties(fixtures, model, prior)
    if model == "bradley-terry":
        if ties == "refuse" and share:
            tied = fixtures.weights[fixtures.outcome == 0].sum()
            count = "1 game is a tie" if tied == 1 else f"{tied:g} games are ties"
            raise ArgumentError(
                f"{count}, for which bradley-terry has no probability: use ",
                Argument("model", "davidson"), " or ", Argument("model", "rao-kupper"),
                ", or say ", Argument("ties", "half"), " (half a win and half a loss each) or ",
                Argument("ties", "drop"),
            )  # fmt: skip
        if ties == "drop" and share == 1:
            raise ValueError("all games are ties, and without them there are none")
    elif share == 0:
        raise ArgumentError(
            f"no game is a tie, so the tie parameter of {model} has no estimate (it would be where "
            "ties have probability 0, and the model is Bradley-Terry): use ",
            Argument("model", "bradley-terry"),
        )
    elif share == 1:
        raise ValueError(
            f"all games are ties, so the tie parameter of {model} has no estimate: nothing tells "
            "the items apart"
        )


def _is_several(sides: Any) -> bool:
    several = isinstance(sides, list | range) or hasattr(sides, "tolist")
    return several and getattr(sides, "ndim", 1) > 0


def _sides(sides: Any) -> list[Any]:
    """A side, or several, as a list."""
    if isinstance(sides, set | dict):
        raise ValueError(f"{preview(sides)} has no order: give a list, or a tuple for a team")
    if not _is_several(sides):
        return [sides]
    return list(sides.tolist() if hasattr(sides, "tolist") else sides)
