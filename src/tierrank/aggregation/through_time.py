"""WorthsThroughTime: worths that change, as random walks from period to period."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation import state
from tierrank.aggregation.connectivity import Connectivity, connectivity
from tierrank.aggregation.games import read_fixtures
from tierrank.aggregation.lists import CountedLists, distinct, nothing_said, weighted_lists
from tierrank.aggregation.paired import TITLES, PairedTies, check_ties, share_of_ties
from tierrank.aggregation.paired_likelihood import check_model, derivatives, starting_t
from tierrank.aggregation.periods import FAR, MOST, Calendar, Step, step_from
from tierrank.aggregation.random_walk import (
    LEAST,
    SMALL,
    Nodes,
    Posterior,
    Seen,
    SeenGames,
    SeenLists,
    Variance,
    Walk,
    estimate_variance,
    mode,
)
from tierrank.aggregation.results import Estimates, FittedWorths, NotConverged, model_in_words
from tierrank.aggregation.solvers import watched
from tierrank.aggregation.summary import Parameter, wald
from tierrank.aggregation.terms import GaussianPrior, prior_from
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.names import GAME_MODELS, counted
from tierrank.plackett_luce import log_prob
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.tiers.selection import with_rest_written
from tierrank.training import Progress, Watch
from tierrank.training.covariance import Kind, reach
from tierrank.training.optim import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


Model = Literal["davidson", "rao-kupper", "bradley-terry", "plackett-luce"]
MODELS: tuple[str, ...] = get_args(Model)
TRIED = 12  # about how many variances are tried
# numbers of a factor: nodes · items, 8 bytes each; three of them are there at a time at most
MOST_NUMBERS = 500_000_000
NODES = 24  # of an average over what is not known of a lead
BLOCK = 1 << 22  # numbers of a [lists, items] block of scores


class Data(NamedTuple):
    """What was seen, over the items that were."""

    items: tuple[Any, ...]
    nodes: Nodes
    seen: Seen
    lists: CountedLists  # without times
    start: FloatArray  # of the parameters beside worths
    weight: float
    calendar: Calendar


class WorthsThroughTime(FittedWorths, BaseEstimator):  # type: ignore[misc]
    """Worths that change: log-worths are random walks over periods, with normal innovations.

    An item's log-worth in the first period in which it is seen is normal with mean 0 and the
    prior's standard deviation; from there, it changes in a step by a normal amount of variance σ².
    Games and lists of a period follow the model with the worths of that period. The estimate is
    the posterior mode, exact Newton steps by elimination in the order of time; bands are those of
    the normal approximation there (Laplace's), and σ² maximises the marginal likelihood by it.

    Parameters
    ----------
    model : {"davidson", "rao-kupper", "bradley-terry", "plackett-luce"}
        Of games that may end in a tie, "davidson", "rao-kupper" or "bradley-terry", as in
        `PairedTies`; or "plackett-luce", the exact likelihood of lists with ties, as in
        `RankAggregator`.
    time : str
        The column that says when: of a frame, or beside the lists or games
        (``read_rankings(path, keep=["date"])``).
    step : str or float
        How long a period is: "30d", "2w", "12h"; "1m", "1y" for months and years of the calendar;
        a number where times are plain numbers.
    variance : float, optional
        The variance σ² of the change of a log-worth in one step; None: it is estimated.
    prior : str
        "gaussian:3" or the like: of an item's first log-worth, with this standard deviation.
    ties : {"refuse", "half", "drop"}, optional
        What "bradley-terry" does with ties, as in `PairedTies`.
    home : bool
        Models of games: whether the first side has an advantage, the same at all times.
    max_iter : int
        Most steps of Newton's method.

    Attributes
    ----------
    items_ : tuple
        Names of the items that were seen.
    periods_ : tuple
        [periods] when those begin in which something was seen: dates in ISO's form, or numbers.
    log_worths_, standard_errors_, worths_ : ndarray of float
        [items] in the last period, as in `PairedTies`: log-worths with mean 0. They are counted
        from the average of all items, each where it was last seen.
    variance_ : float
        The variance σ², estimated or as it was given.
    log_likelihood_ : float
        The log of the marginal likelihood: worths, and the parameters of ties and of the first
        side (with a flat density), are integrated out, by Laplace's approximation.
    converged_ : bool
        Whether the fit came to its end; `solver_`, `n_iter_`, `stopped_by_`, `objective_values_`,
        `gradient_norm_` and `seconds_` are as in `RankAggregator`.

    See Also
    --------
    PairedTies : Games whose sides do not change.
    RankAggregator : Lists whose items do not change.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("ann", "bob", "first"), ("bob", "cy", "tie"), ("cy", "ann", "second")] * 10
    >>> games += [("ann", "bob", "second"), ("bob", "cy", "first"), ("cy", "ann", "tie")] * 10
    >>> years = [2001 + number // 6 for number in range(60)]
    >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=years)
    >>> fitted.periods_[0], fitted.periods_[-1], fitted.ranking()
    (2001, 2010, ['bob', 'ann', 'cy'])
    >>> fitted.through_time(items=["ann"]).estimate[0, ::3].round(2)
    array([ 1.66,  1.22,  0.07, -0.39])
    """

    uncertainty: Kind = "information"

    items_: tuple[Any, ...]
    periods_: tuple[Any, ...]
    variance_: float
    _calendar: Calendar
    _positions: IntArray  # [periods]
    _first: IntArray  # [items] the position in which each was first seen
    _curves: FloatArray  # [items, periods] log-worths
    _variances: FloatArray  # [items, periods]
    _extras: dict[str, float]
    _log_error: float | None  # of log σ²
    _lists: CountedLists | None = None

    def __init__(
        self,
        model: Model = "davidson",
        *,
        time: str = "date",
        step: str | float = "30d",
        variance: float | None = None,
        prior: str | GaussianPrior = "gaussian:3",
        ties: Literal["refuse", "half", "drop"] | None = None,
        home: bool = False,
        max_iter: int = 100,
    ) -> None:
        self.model = model
        self.time = time
        self.step = step
        self.variance = variance
        self.prior = prior
        self.ties = ties
        self.home = home
        self.max_iter = max_iter

    @property
    def of_games(self) -> bool:  # type: ignore[override]
        """Whether it is a model of games of two, not of lists."""
        return self.model in GAME_MODELS

    def fit(
        self,
        data: Any,
        weights: Any = None,
        *,
        times: Any = None,
        neutral: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        **columns: Any,
    ) -> Self:
        """Estimate the worths of all items in all periods.

        Parameters
        ----------
        data : Games, Rankings, iterable or DataFrame
            Games as `PairedTies.fit` takes them, or lists as `RankAggregator.fit` does; a frame of
            pandas, polars or pyarrow; `Games` or `Rankings` with the column `time` beside them.
        weights : array_like, optional
            [games or lists] how often each was seen, 0 or more.
        times : array_like, optional
            [games or lists] when each was, where no column says it: dates in ISO's form,
            datetime64, or numbers.
        neutral : array_like or str, optional
            [games] booleans, with `home`: games whose first side had no advantage; of a frame, the
            column.
        rest : {"absent", "last"}
            Of lists, as in `RankAggregator.fit`.
        watch : callable, optional
            Called after every variance that was tried, and every step of Newton's method.
        **columns
            Those of a frame, as in `PairedTies.fit`.

        Returns
        -------
        WorthsThroughTime
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        through_time : The worths of all periods.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3]).periods_
        (1, 2, 3)
        """
        self._check()
        begun = clock.perf_counter()
        if isinstance(neutral, str):
            columns, neutral = columns | {"neutral": neutral}, None
        read = of_frame(data, columns, weights, keep=() if times is not None else (self.time,))
        times = read.beside[self.time] if times is None else times
        scale = self._scale()
        found = (
            self._read_games(read, weights, times, neutral)
            if self.of_games
            else self._read_lists(read, weights, times, rest)
        )
        nodes, seen = found.nodes, found.seen
        _check_size(nodes)
        start = np.concatenate([np.zeros(len(nodes)), found.start])
        with one_blas_thread() if nodes.items <= SMALL else nullcontext():
            chosen = Variance(float(self.variance or 0), None, start)
            if self.variance is None:
                chosen = estimate_variance(
                    nodes, seen, scale, start, max_iter=self.max_iter,
                    tried=_told(watch, found.weight),
                )  # fmt: skip
            walk = Walk(nodes, scale, chosen.value)
            end = mode(
                walk, seen, chosen.point, max_iter=self.max_iter,
                iterated=watched(watch, self.max_iter, found.weight),
            )  # fmt: skip
            posterior = Posterior(walk, seen, end.point)
            curves, variances = posterior.curves(chosen.value)
            last, covariance = posterior.at_the_end()
        self.items_, self._numbers_of, self._lists = found.items, None, found.lists
        self._calendar, self._positions = found.calendar, nodes.positions
        self.periods_ = tuple(found.calendar.label(int(at)) for at in nodes.positions)
        self._first = np.zeros(nodes.items, dtype=np.int64)
        self._first[nodes.item[nodes.first]] = nodes.positions[nodes.period[nodes.first]]
        self._curves, self._variances = curves, variances
        self.log_worths_ = last
        since = np.zeros(nodes.items, dtype=np.int64)
        since[nodes.item] = nodes.positions[-1] - nodes.positions[nodes.period]  # the last stays
        own = np.arange(nodes.items)
        covariance[own, own] += chosen.value * since
        self._covariances = {"information": covariance}
        self._extras = dict(zip(self._extra_names, end.point[len(nodes) :].tolist(), strict=True))
        self.variance_, self._log_error = chosen.value, chosen.log_error
        self.log_likelihood_, self.aic_ = posterior.log_marginal, None
        self._went(end, "newton")
        self.seconds_ = clock.perf_counter() - begun
        if not end.converged:
            warnings.warn(
                NotConverged(f"Newton's method did not come to its end in {end.iterations} steps: "
                             "raise ", Argument("max_iter")), stacklevel=2,
            )  # fmt: skip
        if self.variance is None and chosen.log_error is None:
            small = chosen.value < 1
            warnings.warn(
                NotConverged(
                    "the marginal likelihood "
                    + (f"is as high without any change (σ² = {LEAST:g}): the data show none. "
                       if small else "has no maximum: the data say next to nothing of change. ")
                    + "Give ", Argument("variance"), ", or fit without time",
                ), stacklevel=2,
            )  # fmt: skip
        return self

    def _check(self) -> None:
        """Refuse what the constructor was given and cannot be."""
        check_model(self.model, self.ties, self.home, MODELS)
        if not isinstance(self.time, str):
            raise ArgumentError(Argument("time"), f" is the name of a column, not {self.time!r}")
        step_from(self.step)
        if self.variance is not None:
            check_size("variance", self.variance)
        self._scale()
        check_count("max_iter", self.max_iter)

    def _scale(self) -> float:
        prior = prior_from(self.prior)
        if not isinstance(prior, GaussianPrior):
            raise ArgumentError(
                Argument("prior"), " says how far apart first log-worths are: give ",
                Argument("prior", "gaussian:3"), f" or the like, not {self.prior!r}",
            )  # fmt: skip
        return prior.scale

    @property
    def _extra_names(self) -> list[str]:
        ties = self.model in ("davidson", "rao-kupper")
        return ["tie"] * ties + ["home"] * self.home

    # -- reading ------------------------------------------------------------------------------

    def _read_games(self, games: Any, weights: Any, times: Any, neutral: Any) -> Data:
        model: Any = self.model
        fixtures = read_fixtures(games, weights, neutral, home=self.home)
        times = _as_many(times, len(fixtures.first) if weights is None else len(weights))
        if weights is not None:
            times = times[np.asarray(weights) > 0]
        if fixtures.has_teams:
            raise ValueError(
                "a side has several players: worths through time are those of single ones. Name "
                "each team by one word, or fit PairedTies"
            )
        ties = (self.ties or "refuse") if model == "bradley-terry" else None
        check_ties(fixtures, model, ties, GaussianPrior())
        if ties == "drop":
            times, fixtures = times[fixtures.outcome != 0], fixtures.without_ties()
        calendar, position = Calendar.of(times, self.step)
        sides = fixtures.members[np.concatenate([fixtures.first, fixtures.second])]
        used, codes = np.unique(sides, return_inverse=True)
        nodes, node = Nodes.of(len(used), codes, np.tile(position, 2))
        first, second = np.split(node, 2)
        each = np.arange(len(nodes))
        played = replace(
            fixtures, players=tuple(range(len(nodes))), members=each,
            borders=np.arange(len(nodes) + 1), first=first, second=second,
        ).counted()  # fmt: skip
        played = played._select(np.argsort(played.first, kind="stable"))
        start = (
            [starting_t(share_of_ties(fixtures, model, None))] if model != "bradley-terry" else []
        )
        start += [0.0] * self.home
        items = tuple(fixtures.players[code] for code in used)
        first, second = np.split(codes, 2)
        at_all_times = replace(
            fixtures, players=items, members=np.arange(len(items)),
            borders=np.arange(len(items) + 1), first=first, second=second,
        )  # fmt: skip
        return Data(
            items, nodes, SeenGames(nodes, played, model, home=self.home),
            distinct(*weighted_lists(at_all_times.to_games()), ties_speak=True),
            np.array(start), float(fixtures.weights.sum()), calendar,
        )  # fmt: skip

    def _read_lists(self, rankings: Any, weights: Any, times: Any, rest: Any) -> Data:
        tiers, counts = weighted_lists(rankings, weights, rest=rest)
        times = _as_many(times, len(tiers))
        speaks = np.flatnonzero((tiers.n_tiers.numpy() > 1) & (counts > 0))
        if tiers.rest:
            tiers = with_rest_written(tiers)
            speaks = np.flatnonzero((tiers.n_tiers.numpy() > 1) & (counts > 0))
        if not len(speaks):
            raise nothing_said()
        lists = distinct(tiers, counts)
        tiers, counts, times = tiers[speaks], counts[speaks], times[speaks]
        calendar, position = Calendar.of(times, self.step)
        used, codes = np.unique(tiers.items.numpy(), return_inverse=True)
        names = tiers.names or tuple(range(tiers.n_items or 0))
        items = tuple(names[code] for code in used)
        nodes, node = Nodes.of(len(used), codes, np.repeat(position, tiers.lengths.numpy()))
        over = replace(tiers, items=torch.from_numpy(node), n_items=len(nodes), names=None)
        numbers = np.zeros(len(names), dtype=np.int64)
        numbers[used] = np.arange(len(used))
        kept = torch.from_numpy(numbers)[lists.tiers.items]
        known = replace(lists.tiers, items=kept, n_items=len(used), names=items)
        period = np.searchsorted(nodes.positions, position)
        return Data(
            items, nodes, SeenLists(nodes, over, counts, period),
            replace(lists, tiers=known), np.zeros(0), float(counts.sum()), calendar,
        )  # fmt: skip

    # -- through time -------------------------------------------------------------------------

    def through_time(self, level: float = 0.95, items: Sequence[Any] | None = None) -> Estimates:
        """Compute log-worths in all of `periods_`, with the ends of their bands.

        They are counted from the average over all items, each where it was seen last (or will be
        first). Between an item's games and after the last of them, bands are wider; before the
        first there is nothing, NaN.

        Parameters
        ----------
        level : float
            How often such an interval holds the true value.
        items : sequence, optional
            Names; None for all.

        Returns
        -------
        Estimates
            [items, periods] log-worths, and the ends of bands.

        Raises
        ------
        ValueError
            An item is not known.

        See Also
        --------
        plot_through_time : As a picture.
        curves_frame : As a frame.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> fitted.through_time().estimate.shape
        (2, 3)
        """
        check_is_fitted(self)
        codes = np.arange(len(self.items_)) if items is None else self._codes(list(items))
        margin = reach(level) * np.sqrt(self._variances[codes])
        there = self._positions >= self._first[codes, None]
        estimate = np.where(there, self._curves[codes], np.nan)
        return Estimates(estimate, estimate - margin, estimate + margin)

    def curves_frame(self, level: float = 0.95, items: Sequence[Any] | None = None) -> DataFrame:
        """Make a long frame of pandas of the log-worths in all periods.

        Parameters
        ----------
        level : float
            Of the bands.
        items : sequence, optional
            Names; None for all.

        Returns
        -------
        DataFrame
            Columns item, period, log_worth, low and high.

        See Also
        --------
        through_time : As arrays.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> list(fitted.curves_frame().columns)
        ['item', 'period', 'log_worth', 'low', 'high']
        """
        import pandas as pd

        found = self.through_time(level, items)
        named = self.items_ if items is None else tuple(items)
        shape = found.estimate.shape
        frame = pd.DataFrame(
            {
                "item": np.repeat(np.array(named, dtype=object), shape[1]),
                "period": np.tile(np.array(self.periods_, dtype=object), shape[0]),
                "log_worth": found.estimate.reshape(-1),
                "low": found.low.reshape(-1),
                "high": found.high.reshape(-1),
            }
        )
        return frame[frame["log_worth"].notna()].infer_objects().reset_index(drop=True)

    def plot_through_time(
        self,
        ax: Axes | None = None,
        *,
        items: Sequence[Any] | None = None,
        top: int = 8,
        level: float = 0.95,
    ) -> Axes:
        """Draw log-worths over time, each with its band.

        Parameters
        ----------
        ax : Axes, optional
            Matplotlib's axes to draw on; None for a new figure.
        items : sequence, optional
            Names; None for the best of the last period.
        top : int
            How many of these.
        level : float
            Of the bands.

        Returns
        -------
        Axes
            What was drawn on.

        See Also
        --------
        through_time : The numbers.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> ax = fitted.plot_through_time(plt.figure().add_subplot(), top=2)
        >>> len(ax.lines) >= 2
        True
        """
        from tierrank.report.plots import draw_through_time, new_axes

        check_is_fitted(self)
        check_count("top", top)
        chosen = self.ranking()[:top] if items is None else list(items)
        found = self.through_time(level, chosen)
        if ax is None:
            ax = new_axes(9, 5)
        moments = np.array(
            self.periods_, dtype="datetime64[s]" if self._calendar.step.of_dates else float
        )
        draw_through_time(ax, moments, [str(name) for name in chosen], *found, level=level)
        return ax

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List how far log-worths go in a step (σ, if it was estimated), ties, and the first side.

        The interval of σ is one of its logarithm.

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
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> [parameter.name for parameter in fitted.parameters()]
        ['log v (ties)']
        """
        check_is_fitted(self)
        reached, found = reach(level), []
        if self.variance is None:
            sigma, error = np.sqrt(self.variance_), np.nan
            if self._log_error is not None:
                error = self._log_error / 2  # of log σ
            ends = [sigma * np.exp(way * reached * error) for way in (-1, 1)]
            found.append(
                Parameter(f"σ a step ({self.step})", *map(float, (sigma, sigma * error, *ends)))
            )
        matrix = self.covariance_
        for number, (name, value) in enumerate(self._extras.items(), len(self.items_)):
            error = float(np.sqrt(matrix[number, number]))
            found.append(wald(TITLES[self.model][name], value, error, level))
        return found

    # -- who wins when ------------------------------------------------------------------------

    def predict_proba(
        self,
        a: Any,
        b: Any,
        *,
        at: Any = None,
        neutral: bool = False,
        level: float | None = None,
    ) -> Any:
        """Compute probabilities with the worths of some time.

        Parameters
        ----------
        a, b : object or sequence
            As in `PairedTies.predict_proba`, which gives those of a win, a tie and a loss; or, of
            "plackett-luce", as in `RankAggregator.predict_proba`.
        at : str or float, optional
            When: a date or a number; None for the last period. After that, worths stay where they
            are and get less certain.
        neutral : bool
            With `home`, whether the first side has no advantage.
        level : float, optional
            With it, also intervals: for the last period, and after it.

        Returns
        -------
        object
            As those two give it: three probabilities of games, one of lists; with `level`,
            intervals too.

        Raises
        ------
        ValueError
            An item is not known, or was not seen yet at that time.

        See Also
        --------
        log_prob : Of what was seen.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> win, tie, loss = fitted.predict_proba("ann", "bob", at=2)
        >>> round(win + tie + loss, 6)
        1.0
        """
        snapshot = self._snapshot(at, level is not None)
        if self.of_games:
            return snapshot.predict_proba(a, b, neutral=neutral, level=level)
        return snapshot.predict_proba(a, b, level=level)

    def pairwise_proba(self, items: Sequence[Any] | None = None) -> FloatArray:
        """Compute the probabilities that one item is above another in the end, of all pairs.

        Parameters
        ----------
        items : sequence, optional
            Names; None for all.

        Returns
        -------
        ndarray of float
            [items, items] that the row's item is above the column's.

        Raises
        ------
        ValueError
            An item is not known.

        See Also
        --------
        predict_proba : At any time.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> fitted.pairwise_proba().shape
        (2, 2)
        """
        return np.asarray(self._snapshot(None, False).pairwise_proba(items))

    def log_prob(
        self, data: Any, *, times: Any = None, neutral: Any = None, averaged: bool = False
    ) -> FloatArray:
        """Compute the log-probabilities of what was seen then, or is seen later.

        Parameters
        ----------
        data : Games, Rankings or iterable
            As in `fit`, of these items.
        times : array_like, optional
            When each was, or one time for all; None: as the column beside `data` says, and where
            there is none, the last period.
        neutral : array_like, optional
            As in `fit`.
        averaged : bool
            Of games in the last period or later: the probability averaged over what is not known of
            worths, by their normal approximation, in place of that with the estimates. It is nearer
            to ½ the less is known.

        Returns
        -------
        ndarray of float
            [games or lists] log-probabilities.

        Raises
        ------
        ValueError
            An item is not known, or was not seen yet at that time.

        See Also
        --------
        predict_proba : Of all outcomes.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("ann", "bob", 1), ("bob", "ann", 1), ("ann", "bob", 1), ("ann", "bob", 0)]
        >>> fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games, times=[1, 1, 2, 3])
        >>> fitted.log_prob([("ann", "bob", 0)], times=3).shape
        (1,)
        """
        check_is_fitted(self)
        if times is None:
            times = getattr(data, "beside", {}).get(self.time)
        if self.of_games:
            fixtures = read_fixtures(data, None, neutral, home=self.home).over(self.items_)
            a, b = (fixtures.members[side] for side in (fixtures.first, fixtures.second))
            places, steps = self._between(times, len(a))
            lead = self._worths_at(a, places) - self._worths_at(b, places)
            lead += self._extras.get("home", 0.0) * fixtures.at_home * self.home
            return self._game_log_prob(fixtures.outcome, lead, (a, b, steps) if averaged else None)
        if averaged:
            raise ArgumentError(Argument("averaged"), f" is for games, not for {self.model}")
        if not isinstance(data, Tiers) and not hasattr(data, "beside"):
            data = Tiers.from_rankings(data, items=self.items_)
        tiers, _ = weighted_lists(data)
        if (tiers.names or tuple(range(tiers.n_items or 0))) != self.items_:
            tiers = Tiers.from_rankings(tiers.to_rankings(), items=self.items_)
        places, _ = self._between(times, len(tiers))
        out = np.empty(len(tiers))
        block = max(1, BLOCK // len(self.items_))
        every = np.arange(len(self.items_))
        for start in range(0, len(tiers), block):
            part = slice(start, start + block)
            scores = self._worths_at(every[None, :], places[part, None])
            out[part] = log_prob(scores, tiers[part])
        return out

    def _game_log_prob(
        self,
        outcome: IntArray,
        lead: FloatArray,
        unsure: tuple[IntArray, IntArray, IntArray] | None,
    ) -> FloatArray:
        """Of games with these leads; averaged over them, if it is said whose and how much later."""
        model: Any = self.model
        t = self._extras.get("tie", 0.0)
        if unsure is None:
            return derivatives(model, outcome, lead, t).value
        a, b, steps = unsure
        if (steps < 0).any():
            raise ArgumentError(
                Argument("averaged"), f" is for games from {self.periods_[-1]} on, the last period"
            )
        matrix = self.covariance_
        spread = matrix[a, a] + matrix[b, b] - 2 * matrix[a, b] + 2 * self.variance_ * steps
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        leads = lead + np.sqrt(spread) * nodes[:, None]
        every = np.broadcast_to(outcome, leads.shape)
        values = derivatives(model, every.reshape(-1), leads.reshape(-1), t).value
        logs = values.reshape(leads.shape) + np.log(weights / weights.sum())[:, None]
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    def _between(self, times: Any, count: int) -> tuple[FloatArray, IntArray]:
        """[count] times as places on the axis of `periods_`, with fractions between.

        What is after the last period is at its place; and [count] how many steps later it is.
        """
        if times is None:
            return np.full(count, len(self._positions) - 1.0), np.zeros(count, dtype=np.int64)
        position = self._calendar.positions(np.atleast_1d(np.asarray(times)))
        if isinstance(times, str) or np.ndim(times) == 0:
            position = np.repeat(position, count)
        if len(position) != count:
            raise ValueError(f"there are {len(position)} times for {count} games or lists")
        if (position < self._positions[0]).any():
            raise ValueError(f"a time is before {self.periods_[0]}, when the first were seen")
        places = np.arange(len(self._positions), dtype=np.float64)
        return np.interp(position, self._positions, places), position - self._positions[-1]

    def _worths_at(self, codes: IntArray, places: FloatArray) -> FloatArray:
        """Log-worths, on a line between periods as the bridge is."""
        low = places.astype(np.int64)
        high = np.minimum(low + 1, len(self._positions) - 1)
        share = places - low
        return np.asarray(
            (1 - share) * self._curves[codes, low] + share * self._curves[codes, high]
        )

    def _snapshot(self, at: Any, sure: bool) -> Any:
        """The worths of a time as the estimator of things that do not change has them."""
        check_is_fitted(self)
        from tierrank.aggregation.aggregator import RankAggregator

        matrix, worths = self._covariances["information"], self.log_worths_
        if at is not None:
            position = int(self._calendar.positions(np.atleast_1d(np.asarray(at)))[0])
            steps = position - int(self._positions[-1])
            if steps < 0:
                if sure:
                    raise ValueError(
                        "intervals of probabilities are there for the last period and after it: "
                        "leave out level=, or at="
                    )
                places, _ = self._between(at, 1)
                worths = self._worths_at(np.arange(len(self.items_)), places)
                worths = worths - worths.mean()
            matrix = matrix.copy()
            own = np.arange(len(self.items_))
            matrix[own, own] += self.variance_ * max(steps, 0)
        named = list(range(len(self.items_)))
        facts: dict[str, Any] = {"items": named, "fit": state.facts_of(self)}
        found: PairedTies | RankAggregator
        if self.of_games:
            settings = {"model": self.model, "ties": self.ties, "home": self.home}
            facts |= {"params": settings, "extras": self._extras, "n_iter": self.n_iter_,
                      "converged": self.converged_, "log_likelihood": self.log_likelihood_,
                      "n_parameters": 0.0, "n_games": 0.0}  # fmt: skip
            found = PairedTies.from_state(facts, {"log_worths": worths, "covariance": matrix})
        else:
            facts |= {"parameters": {}, "lists": dict.fromkeys(("seen", "total", "silent"), 0)}
            found = RankAggregator.from_state(facts, {"log_worths": worths, "information": matrix})
        found.items_ = self.items_
        return found

    # -- what the other aggregators tell ------------------------------------------------------

    @property
    def covariance_(self) -> FloatArray:
        """[items + extras, items + extras] of centred log-worths, tie parameter and home, now."""
        check_is_fitted(self)
        return self._covariances["information"]

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        raise ValueError(
            f"there is no {kind} of worths through time: their covariance is that of the "
            'posterior, kind="information"'
        )

    def _drawn(self, random: np.random.Generator) -> Any:
        raise ValueError(
            "there is no bootstrap of worths through time: what is drawn anew would lose its order "
            "in time. Bands are those of the posterior"
        )

    @property
    def ties_connect(self) -> bool:
        """Whether a tie says that two items are about equal."""
        return self.of_games and self.ties != "drop"

    def compared(self, data: Any = None) -> tuple[CountedLists, Connectivity]:
        """The lists or games that were fitted, at all times, and which items they compare.

        Parameters
        ----------
        data
            what was fitted, for a model that was loaded: it is saved without
        """
        check_is_fitted(self)
        lists = self._lists
        if data is not None:
            lists = distinct(*weighted_lists(data, items=self.items_), ties_speak=self.of_games)
        if lists is None:
            raise ValueError("a loaded model has its worths but not its data: give them as data=")
        return lists, connectivity(lists.tiers, ties_connect=self.ties_connect)

    def _settings(self) -> dict[str, str]:
        given = "estimated" if self.variance is None else "given"
        own = {
            "model": self.model,
            "through time": f"random walks over periods of {self.step}, {self.periods_[0]} to "
            f"{self.periods_[-1]}; worths are those of the last",
            "variance of a step": f"{self.variance_:.4g} ({given})",
            "prior": f"{prior_from(self.prior)}, of an item's first period",
            "uncertainty": "information",
        }
        if self.home:
            own["home"] = "the first side has an advantage"
        return own

    def _in_words(self) -> tuple[str, str]:
        model, tie = model_in_words(self.model, self.ties)
        text = "Worths change from period to period by random steps; these are the last ones."
        return f"{model} {text}", tie

    def _note(self) -> str:
        return (
            f"WorthsThroughTime, {self.model}: {len(self.items_):,} items, "
            f"{counted(len(self.periods_), 'period')} of {self.step} from "
            f"{self.periods_[0]} to {self.periods_[-1]}, variance of a step {self.variance_:.4g}, "
            f"log-likelihood {self.log_likelihood_:.2f}"
        )

    # -- saved --------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: worths of all periods with their bands, without the data."""
        check_is_fitted(self)
        step = self._calendar.step
        info = {
            "params": state.plain_setting(self.get_params(deep=False)),
            "items": [state.plain_name(name) for name in self.items_],
            "extras": self._extras,
            "calendar": [step.size, step.unit, self._calendar.origin],
            "variance": [self.variance_, self._log_error],
            "fit": state.facts_of(self),
        }
        arrays = {
            "log_worths": self.log_worths_,
            "covariance": self._covariances["information"],
            "curves": self._curves,
            "variances": self._variances,
            "positions": self._positions.astype(np.float64),
            "first": self._first.astype(np.float64),
        }
        return info, arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave; raises a ValueError if it does not hold together."""
        fitted = cls(**info["params"])
        fitted._check()
        items = state.names_from(info["items"], "item")
        extras = {name: float(info["extras"][name]) for name in fitted._extra_names}
        size, n = len(items) + len(extras), len(items)
        periods = tensors["positions"].size
        shapes = {
            "log_worths": (n,), "covariance": (size, size), "curves": (n, periods),
            "variances": (n, periods), "positions": (periods,), "first": (n,),
        }  # fmt: skip
        if tensors.keys() != shapes.keys():
            raise ValueError(f"there are {sorted(tensors)} in place of {sorted(shapes)}")
        arrays = state.checked_arrays(tensors, shapes)
        positions = arrays["positions"]
        numbered = np.concatenate([positions, arrays["first"]])
        if not periods or (np.diff(positions) < 1).any() or (np.abs(numbered) > MOST).any():
            raise ValueError("the periods do not hold together")
        if (arrays["variances"] < 0).any():
            raise ValueError("there are variances that are negative")
        length, unit, origin = info["calendar"]
        step = Step(float(length), str(unit))
        if step.of_dates and not abs(float(origin)) < FAR:
            raise ValueError(f"the periods begin at {origin!r}, which is no date")
        if step != step_from(fitted.step):
            raise ValueError(f"the periods are of another step than {fitted.step!r}")
        variance, error = info["variance"]
        numbers = [*extras.values(), float(variance), float(error or 0), float(origin)]
        if not np.isfinite(numbers).all() or float(variance) <= 0:
            raise ValueError("the results have numbers that are not finite")
        fitted.items_, fitted._extras = items, extras
        fitted._calendar = Calendar(step, float(origin))
        fitted._positions = positions.astype(np.int64)
        fitted.periods_ = tuple(fitted._calendar.label(int(at)) for at in positions)
        fitted._first = arrays["first"].astype(np.int64)
        fitted._curves, fitted._variances = arrays["curves"], arrays["variances"]
        fitted.log_worths_ = arrays["log_worths"]
        fitted._covariances = {"information": arrays["covariance"]}
        fitted.variance_, fitted._log_error = (
            float(variance),
            None if error is None else float(error),
        )
        state.set_facts(fitted, info["fit"])
        return fitted


def _told(watch: Watch | None, weight: float) -> Any:
    """What tells a watch of variances that were tried."""
    if watch is None:
        return None
    return lambda number, value: watch(
        Progress(number, max(TRIED, number + 1), "variance", value / weight)
    )


def _as_many(times: Any, rows: int) -> Any:
    """[rows] times, as an array."""
    found = np.asarray(times)
    if found.shape != (rows,):
        raise ValueError(
            f"times are of shape {found.shape}: give {rows} of them, one a list or game"
        )
    return found


def _check_size(nodes: Nodes) -> None:
    numbers = len(nodes) * nodes.items
    if numbers > MOST_NUMBERS:
        raise ArgumentError(
            f"{nodes.items:,} items that are seen in {len(nodes):,} periods of theirs in all take "
            f"{numbers:,} numbers of memory a time (limit {MOST_NUMBERS:,}): take a longer ",
            Argument("step"), ", or leave out items with few games",
        )  # fmt: skip
