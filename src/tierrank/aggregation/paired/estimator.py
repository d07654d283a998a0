"""PairedTies: worths from games that may end in a tie."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tierrank.aggregation.connectivity import Disconnected, connectivity
from tierrank.aggregation.games import Fixtures, fixtures_of_table, read_fixtures
from tierrank.aggregation.paired import solver
from tierrank.aggregation.paired.checks import check_options, check_ties
from tierrank.aggregation.paired.results import TITLES, PairedResults
from tierrank.aggregation.paired.state import read_state, write_state
from tierrank.aggregation.paired_likelihood import Model, PairedLoss, starting_t
from tierrank.aggregation.priors import Prior, prior_from
from tierrank.data.rankings.reading import of_frame
from tierrank.storage import Arrays


class PairedTies(PairedResults):
    """Worths of items from games of two that may end in a tie, by maximum likelihood.

    With d the difference of log-worths, the first side's minus the second's:

    - "davidson": win : tie : loss = e^{d/2} : v : e^{−d/2} (Davidson, 1970)
    - "rao-kupper": win 1/(1 + θ e^−d), loss 1/(1 + θ e^d), tie what remains (Rao and Kupper, 1967)
    - "bradley-terry": win 1/(1 + e^−d), and no ties

    A side that is a tuple or a frozenset is a team: its worth is the sum of its players' worths,
    and it is the players who are estimated.

    Parameters
    ----------
    model
        "davidson", "rao-kupper" or "bradley-terry"
    ties
        what "bradley-terry" does with ties: "refuse" them, count each as "half" a win and half a
        loss, or "drop" them. None for the other models, and "refuse" for this one.
    home
        whether the first side of a game has an advantage, added to d
    prior
        None; "gaussian" or "gaussian:2", log-worths normal with this standard deviation;
        "pseudo-item" or "pseudo-item:0.5", everybody won and lost so many games against one more
        item. Without one, games must lead from every item to every other.
    tol
        the fit goes on until every part of the gradient is below this times the games it is a sum
        over, and the next step would change nothing any more
    max_iter
        most steps of Newton's method
    uncertainty
        "information", the inverse of the observed information; or "sandwich", which holds with
        enough games even where the model is wrong

    Attributes
    ----------
    items_
        names of the items (of the players, with teams)
    log_worths_, standard_errors_
        [items] with mean 0, and their standard errors
    worths_
        [items] that sum to 1
    tie_parameter_
        v of "davidson", θ of "rao-kupper"; on the log scale `beta_` = log v and
        `alpha_` = log(θ − 1), with `tie_standard_error_`
    home_advantage_, home_standard_error_
        what is added to d for the first side, if `home`
    covariance_
        [items + extras, items + extras] of the centred log-worths, the tie parameter on the log
        scale, and the home advantage
    log_likelihood_, aic_, bic_
        of all games, without the prior. With "half" it is no likelihood of what was observed.
    n_parameters_, n_games_
        free parameters (with a prior, those that the games decide) and the weight of all games
    n_iter_, converged_, seconds_
        steps, whether they came to an end, and how long the fit took

    Examples
    --------
    >>> games = [("ann", "bob", "first"), ("bob", "cy", "tie"), ("cy", "ann", "first")] * 20
    >>> games += [("ann", "bob", "tie"), ("ann", "cy", "first"), ("cy", "bob", "second")] * 8
    >>> fitted = PairedTies().fit(games)
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

    def __init__(
        self,
        model: Model = "davidson",
        *,
        ties: Literal["refuse", "half", "drop"] | None = None,
        home: bool = False,
        prior: str | Prior | None = None,
        tol: float = 1e-11,
        max_iter: int = 100,
        uncertainty: Literal["information", "sandwich"] = "information",
    ) -> None:
        self.model = model
        self.ties = ties
        self.home = home
        self.prior = prior
        self.tol = tol
        self.max_iter = max_iter
        self.uncertainty = uncertainty

    def fit(
        self,
        games: Any,
        weights: Any = None,
        *,
        items: Any = None,
        neutral: Any = None,
        **columns: Any,
    ) -> Self:
        """Fit to games; equal ones are counted once.

        Parameters
        ----------
        games
            `Games`; rows of (first, second, outcome), the outcome "first", "second" or "tie", or
            1, −1 or 0; `Rankings` or `Tiers` whose lists have two items, a tie in one tier; or a
            frame of pandas, polars or pyarrow
        weights
            [games] how often each was played, 0 or more, on top of the weights that `Games` have
        items
            the items (the players, with teams), or N for the integers 0 .. N - 1: results come in
            this order, and one that is in no game needs a prior. Without it, those that occur, in
            order of first appearance, or in their own if they are the integers 0 .. N - 1.
        neutral
            [games] booleans, with `home`: games whose first side had no advantage, where `Games` do
            not say it themselves; of a frame, the column
        columns
            of a frame: what `tierrank.data.read_games` takes, as in
            ``fit(df, first="white", second="black", winner="won")``. Those that are not named are
            found by their names, and a warning says what was taken for what.
        """
        check_options(self)
        if isinstance(neutral, str):
            columns, neutral = columns | {"neutral": neutral}, None
        games = of_frame(games, columns, weights)
        return self._fit(read_fixtures(games, weights, neutral, home=self.home, items=items))

    def fit_table(self, wins: Any, ties: Any = None, names: Sequence[Any] | None = None) -> Self:
        """Fit to tables of counts.

        Parameters
        ----------
        wins
            [items, items] how often i beat j
        ties
            [items, items], symmetric: how often i and j tied (each tie stands there twice)
        names
            [items] of the items; else they are numbers
        """
        check_options(self)
        if self.home:
            raise ValueError("tables do not say who was at home: for home=True, use fit with games")
        return self._fit(fixtures_of_table(wins, ties, names))

    def _fit(self, fixtures: Fixtures) -> Self:
        begun = time.perf_counter()
        ties = (self.ties or "refuse") if self.model == "bradley-terry" else None
        prior = prior_from(self.prior)
        share = check_ties(fixtures, self.model, ties, prior)
        if ties == "drop":
            fixtures = fixtures.without_ties()
        fixtures = fixtures.counted()
        if prior is None and not fixtures.has_teams:
            found = connectivity(fixtures.to_games().to_rankings().tiers, ties_connect=True)
            if not found.connected:
                raise Disconnected(found, "games")
        loss = PairedLoss(fixtures, self.model, home=self.home, prior=prior)
        start = np.zeros(loss.size)
        if loss.tie_at is not None:
            start[loss.tie_at] = starting_t(share)
        end = solver.minimise(loss, start, tol=self.tol, max_iter=self.max_iter)
        places = {"tie": loss.tie_at, "home": loss.home_at}
        extras = {name: float(end.point[at]) for name, at in places.items() if at is not None}
        names = [str(player) for player in fixtures.players]
        names += [TITLES[self.model][name] for name in extras]
        covariance = solver.covariance(
            loss, end, sandwich=self.uncertainty == "sandwich", names=names
        )
        if not end.converged:
            warnings.warn(
                f"Newton's method did not come to its end in {end.n_iter} steps: raise max_iter, "
                "or give a prior",
                ConvergenceWarning,
                stacklevel=3,
            )
        w = end.point[: loss.players]
        self.items_, self._fixtures = fixtures.players, fixtures
        self.log_worths_ = w - w.mean()
        self.covariance_ = covariance
        self._extras = extras
        self.log_likelihood_ = loss.log_likelihood(end.point)
        self.n_parameters_ = solver.effective_parameters(loss, end.point)
        self.n_games_, self.n_iter_, self.converged_ = loss.weight, end.n_iter, end.converged
        self.seconds_ = time.perf_counter() - begun
        return self

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """All that a copy needs, JSON-able and arrays; names are strings or integers."""
        check_is_fitted(self)
        return write_state(self)

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """What `to_state` wrote down; raises a ValueError if it does not fit."""
        fitted = cls(**info["params"])
        check_options(fitted)
        read_state(fitted, info, tensors)
        return fitted
