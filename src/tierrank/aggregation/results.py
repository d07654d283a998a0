"""What can be asked of fitted worths, whoever fitted them.

A fit is an estimate with a covariance, names, and the lists or games that it can be fitted to
again. From these follow intervals, ranks, tiers, tables, frames, plots and pages, here, once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation import item_ranks, state
from tierrank.aggregation.connectivity import Connectivity
from tierrank.aggregation.lists import CountedLists, distinct, weighted_lists
from tierrank.aggregation.quasi_variances import QuasiVariances, quasi_variances
from tierrank.aggregation.summary import Parameter, WorthTable, scale_from, worth_table
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.errors import Argument, ArgumentError, ArgumentWarning, check_count
from tierrank.plackett_luce import log_prob, log_prob_above
from tierrank.storage import load
from tierrank.tiers import Tiers
from tierrank.training import Progress, Watch
from tierrank.training.covariance import MOST_DENSE, CoefficientTable, Kind, reach
from tierrank.training.optim import Minimum
from tierrank.training.progress import Learned, seed_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from tierrank.aggregation.goodness import Drawing, Expectation, GoodnessOfFit
    from tierrank.aggregation.next_pairs import GameInformation, NextPairs
    from tierrank.aggregation.tier_cuts import TierCut


class NotConverged(ArgumentWarning, ConvergenceWarning):  # type: ignore[misc]
    """A fit did not come to its end; the message says what to do about it.

    It is a `sklearn.exceptions.ConvergenceWarning`.

    See Also
    --------
    tierrank.RankAggregator.fit : Warns of it.

    Examples
    --------
    >>> import warnings
    >>> import tierrank as tr
    >>> from tierrank.aggregation.results import NotConverged
    >>> votes = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"]]
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     fitted = tr.RankAggregator(max_iter=1).fit(votes)
    >>> fitted.converged_, isinstance(said[0].message, NotConverged)
    (False, True)
    """


SHOWN_IN_HTML = 50  # items of the table in a notebook


class Estimates(NamedTuple):
    """Estimates and the ends of their intervals.

    Parameters
    ----------
    estimate : ndarray of float
        [items] what is estimated.
    low, high : ndarray of float
        [items] ends of the intervals.

    See Also
    --------
    tierrank.RankAggregator.intervals : Of worths.
    tierrank.RankAggregator.expected_ranks : Of ranks.

    Examples
    --------
    >>> import tierrank as tr
    >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
    >>> estimate, low, high = fitted.intervals()
    >>> bool((low < estimate).all() and (estimate < high).all())
    True
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


class Worths(Learned):
    """Worths of items, and all that follows from them and their covariance.

    Whoever has them gives `items_`, `log_worths_`, `uncertainty` and `_compute_covariance`. All but
    `log_worths_`, `worths_` and the probabilities needs standard errors, and so an objective that
    has them.
    """

    items_: tuple[Any, ...]
    log_worths_: FloatArray
    uncertainty: Kind | None  # None: nobody wants to know
    _coef: FloatArray  # [covariates] the last parameters, of a model that has them
    _covariances: dict[str, FloatArray]  # of the parameters, by kind: those that are known
    _numbers_of: dict[Any, int] | None = None

    # -- estimates and how sure they are ------------------------------------------------------

    @property
    def worths_(self) -> FloatArray:
        """[items] worths, which sum to 1."""
        worths = np.exp(self.log_worths_ - self.log_worths_.max())
        return np.asarray(worths / worths.sum())

    @property
    def standard_errors_(self) -> FloatArray:
        """[items] standard errors of the centred log-worths: of an item against the average."""
        return np.asarray(np.sqrt(np.diag(self.covariance())))

    def covariance(
        self, items: Sequence[Any] | None = None, kind: Kind | None = None
    ) -> FloatArray:
        """Compute the covariance of the centred log-worths.

        All items at once take memory for items² numbers, and are limited to
        `tierrank.training.covariance.MOST_DENSE`. Beyond that, ask for some of them.

        Parameters
        ----------
        items : sequence, optional
            Names; None for all.
        kind : {"information", "sandwich"}, optional
            "information" or "sandwich"; None as the estimator was told.

        Returns
        -------
        ndarray of float
            [items, items] in the order of `items`.

        Raises
        ------
        ValueError
            The objective has no covariance, or an item is not known.

        See Also
        --------
        quasi_variances : A number an item, for differences.
        tierrank.RankAggregator.bootstrap : Without an approximation.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.covariance().round(3)
        array([[ 0.375, -0.375],
               [-0.375,  0.375]])
        """
        self._check_fitted()
        codes = None if items is None else self._codes(items)
        return self._covariance_of(codes, self._kind(kind))

    def _kind(self, kind: Kind | None) -> Kind:
        """A kind of covariance that this fit has; refuses all else."""
        kind = self.uncertainty if kind is None else kind
        if kind is None:
            raise ArgumentError(
                "there are no standard errors, and nothing that rests on them: the fit was to do "
                "without. Fit with ", Argument("uncertainty", "information"),
            )  # fmt: skip
        if kind not in ("information", "sandwich"):
            raise ValueError(f'kind is "information" or "sandwich", not {kind!r}')
        return kind

    def _covariance_of(self, codes: IntArray | None, kind: Kind) -> FloatArray:
        """Of some items, or of all: the first parameters are the log-worths."""
        size = len(self.items_)
        if kind not in self._covariances and size > MOST_DENSE:
            return self._covariance_of_some(codes, kind)
        matrix = self._parameter_covariance(kind)
        if codes is None:
            return matrix if len(matrix) == size else matrix[:size, :size]
        return matrix[np.ix_(codes, codes)]

    def _covariance_of_some(self, codes: IntArray | None, kind: Kind) -> FloatArray:
        """Of some of many items, without the matrix as a whole; refuses where there is no way."""
        raise ValueError(
            f"a covariance of {len(self.items_):,} items is too large to be written out (limit "
            f"{MOST_DENSE:,}): ask for some items, covariance(items=[…]), by the information; or "
            "look at summary(top=20)"
        )

    def _parameter_covariance(self, kind: Kind) -> FloatArray:
        """[parameters, parameters] covariance of all that was estimated; computed once."""
        if kind not in self._covariances:
            matrix = self._compute_covariance(kind)
            matrix.flags.writeable = False  # it is kept, and handed out
            self._covariances[kind] = matrix
        return self._covariances[kind]

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        raise NotImplementedError

    def _uncertainty_in_words(self) -> str:
        return self.uncertainty or "no standard errors"

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

    def intervals(
        self, level: float = 0.95, scale: str = "log-worth", *, anchor: Any = None
    ) -> Estimates:
        """Compute log-worths, ratings or worths, with Wald intervals.

        Those of worths are computed for their log-odds, so that they are probabilities.

        Parameters
        ----------
        level : float
            How often such an interval holds the true value.
        scale : {"log-worth", "elo", "worth"}
            "log-worth"; "elo", ratings as in chess, with 400 / ln 10 points a log-worth; or
            "worth", the probability to be the first of all.
        anchor : str or mapping, optional
            The item that stands at 0, and at 1000 of ratings; or it and its place, as in
            ``{"ann": 1200}``. Intervals are of the difference from it. None: the average item does.

        Returns
        -------
        Estimates
            [items] estimates, and the ends of their intervals.

        Raises
        ------
        ValueError
            There are no standard errors, the item is not known, or the level is not between 0 and
            1.

        See Also
        --------
        summary : As a table.
        rank_intervals : Of ranks.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.intervals(scale="elo", anchor={"b": 1200}).estimate.round(1)
        array([1320.4, 1200. ])
        """
        chosen, matrix = scale_from(scale, anchor), self.covariance()
        found = chosen.ratings(self, np.arange(len(self.items_)), matrix, level)
        return Estimates(found.estimate, found.low, found.high)

    def quasi_variances(self) -> QuasiVariances:
        """Compute quasi-variances: numbers q with var(w_i − w_j) ≈ q_i + q_j.

        By Firth and de Menezes (2004). Intervals of w_i ± 1.96 √q_i can be compared with each
        other.

        Returns
        -------
        QuasiVariances
            [items] q, and how far they are off.

        Raises
        ------
        ValueError
            There are no standard errors.

        See Also
        --------
        covariance : What they approximate.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
        >>> fitted.quasi_variances().standard_errors.shape
        (3,)
        """
        return quasi_variances(self.covariance(), equal=True)

    # -- who is above whom --------------------------------------------------------------------

    def ranking(self) -> list[Any]:
        """List the items, best first.

        Returns
        -------
        list
            Their names.

        See Also
        --------
        tiers : Where the data do not tell them apart.
        summary : With worths and intervals.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]]).ranking()
        ['a', 'b']
        """
        return [self.items_[number] for number in self._order()]

    def predict_proba(self, above: Any, below: Any, *, level: float | None = None) -> Any:
        """Compute the exact probability that an item, or a whole set, is above another.

        Parameters
        ----------
        above, below : object or sequence
            An item's name, or several names in a list, tuple or set: every one of `above` is to
            precede every one of `below`. What else takes part does not matter.
        level : float, optional
            With it, also the ends of an interval of this level (by the normal approximation on
            the scale of log-odds).

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
        tierrank.log_prob_above : From scores.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
        >>> round(fitted.predict_proba("a", ["b", "c"]), 3)
        0.532
        """
        return self._predicted(above, below, level)

    def _predicted(
        self, above: Any, below: Any, level: float | None, x: FloatArray | None = None
    ) -> Any:
        """The same, with covariates [items, covariates] of a model that has coefficients."""
        codes = [self._codes(above), self._codes(below)]
        worths = self.log_worths_ if x is None else self.log_worths_ + x @ self._coef
        leaf = torch.from_numpy(worths).requires_grad_()
        log_p = log_prob_above(leaf, *codes)
        p = float(log_p.detach().exp())
        if level is None:
            return p
        involved = np.concatenate(codes)
        (slope,) = torch.autograd.grad(log_p, leaf)
        at = slope.numpy()[involved]
        if x is None:
            matrix = self.covariance([self.items_[code] for code in involved])
        else:
            matrix, at = (
                self._parameter_covariance(self._kind(None)),
                np.append(slope, slope.numpy() @ x),
            )
        miss = np.asarray(-np.expm1(float(log_p.detach())))
        variance = np.asarray(at @ matrix @ at)
        low, high = log_odds_interval(np.asarray(float(log_p.detach())), miss, variance, level)
        return p, float(low), float(high)

    def pairwise_proba(self, items: Sequence[Any] | None = None) -> FloatArray:
        """Compute the exact probabilities that one item is above another, of all pairs.

        Parameters
        ----------
        items : sequence, optional
            Names; None for all.

        Returns
        -------
        ndarray of float
            [items, items] that the item of the row is above the column's; 0.5 of itself.

        Raises
        ------
        ValueError
            An item is not known.

        See Also
        --------
        predict_proba : Of one pair, or of sets, with intervals.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.pairwise_proba().round(3)
        array([[0.5  , 0.667],
               [0.333, 0.5  ]])
        """
        codes = None if items is None else self._codes(items)
        return item_ranks.pairwise_probabilities(self.log_worths_, codes)

    def log_prob(self, rankings: Any) -> FloatArray:
        """Compute the exact log-probabilities of rankings of these items, seen or not.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            As `Tiers.from_rankings` takes them, of these items; or `tierrank.data.Rankings` or a
            `Tiers` of this very catalogue.

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
        >>> np.exp(fitted.log_prob([["a", "b"]])).round(3)
        array([0.667])
        """
        return np.asarray(log_prob(self.log_worths_, self._tiers_of(rankings)))

    def _tiers_of(self, rankings: Any) -> Tiers:
        """Rankings as lists over this very catalogue; refuses those over another."""
        if not isinstance(rankings, Tiers | Rankings | Games):
            rankings = Tiers.from_rankings(rankings, items=self.items_)
        tiers, _ = weighted_lists(rankings)
        theirs = tiers.names or tuple(range(tiers.n_items or 0))
        if theirs != self.items_:
            raise ValueError(
                f"the lists are of another catalogue: {len(theirs):,} items, not the "
                f"{len(self.items_):,} fitted ones, or in another order. Give plain rankings, as "
                "tiers.to_rankings() does, or build them with items=fitted.items_"
            )
        return tiers

    # -- ranks and tiers ----------------------------------------------------------------------

    def expected_ranks(
        self, level: float = 0.95, *, draws: int = 1000, random_state: int = 0
    ) -> Estimates:
        """Compute the expected places in a full ranking of all items, from 1.

        Intervals are percentiles over worths drawn from the estimate's normal approximation.

        Parameters
        ----------
        level : float
            How often such an interval holds the true value.
        draws : int
            How many worths are drawn.
        random_state : int
            A seed of what is drawn.

        Returns
        -------
        Estimates
            [items] 1 + Σ_j P(j above i), and the ends of intervals.

        Raises
        ------
        ValueError
            There are no standard errors.

        See Also
        --------
        rank_intervals : Ranks an item may truly have.
        top_k_proba : The chance of one of the first places.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.expected_ranks().estimate.round(3)
        array([1.333, 1.667])
        """
        return self._with_draws(item_ranks.expected_ranks, level, draws, random_state)

    def top_k_proba(
        self, k: int, level: float | None = None, *, draws: int = 1000, random_state: int = 0
    ) -> FloatArray | Estimates:
        """Compute the exact probabilities to be among the first k of a full ranking of all.

        Parameters
        ----------
        k : int
            How many places.
        level : float, optional
            With it, also intervals, as in `expected_ranks`.
        draws : int
            How many worths are drawn for them.
        random_state : int
            A seed of what is drawn.

        Returns
        -------
        ndarray of float or Estimates
            [items] probabilities; with `level`, and the ends of intervals.

        Raises
        ------
        ValueError
            k is no number of places, or there are no standard errors for intervals.

        See Also
        --------
        expected_ranks : The mean place.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.top_k_proba(1).round(3)
        array([0.667, 0.333])
        """
        check_count("k", k)
        function = partial(item_ranks.top_k_probabilities, k=min(k, len(self.items_)))
        if level is None:
            return function(self.log_worths_)
        return self._with_draws(function, level, draws, random_state)

    def _with_draws(self, function: Any, level: float, draws: int, seed: int) -> Estimates:
        reach(level)  # refuses a wrong one
        low, high = item_ranks.simulated_intervals(
            function, self.log_worths_, self.covariance(), level=level, draws=draws, seed=seed
        )
        return Estimates(function(self.log_worths_), low, high)

    def rank_intervals(
        self, level: float = 0.95, *, draws: int = 1000, random_state: int = 0
    ) -> IntArray:
        """Compute the ranks an item may truly have, from 1, by its differences with all others.

        Parameters
        ----------
        level : float
            How often the interval of an item holds its true rank.
        draws : int
            How many draws of the errors the margins come from.
        random_state : int
            A seed of what is drawn.

        Returns
        -------
        ndarray of int
            [items, 2] first and last rank.

        Raises
        ------
        ValueError
            There are no standard errors.

        See Also
        --------
        expected_ranks : The mean place of a new ranking.
        tiers : Items that the data do not tell apart.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.rank_intervals()
        array([[1, 2],
               [1, 2]])
        """
        return item_ranks.rank_intervals(
            self.log_worths_, self.covariance(), level=level, draws=draws, seed=random_state
        )

    def tiers(self) -> TierCut:
        """Cut the ranking into tiers of items that the data do not tell apart.

        Returns
        -------
        TierCut
            The tiers, best first, and how sure they are.

        Raises
        ------
        ValueError
            There are no standard errors.

        See Also
        --------
        rank_intervals : Ranks an item may truly have.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b", "c"], ["b", "a", "c"]] * 20 + [["c", "a", "b"]]
        >>> tr.RankAggregator().fit(votes).tiers().tiers  # a and b, over c
        (array([0, 1]), array([2]))
        """
        from tierrank.aggregation.tier_cuts import cut_into_tiers

        return cut_into_tiers(self.log_worths_, self.covariance())

    # -- shown --------------------------------------------------------------------------------

    def summary(
        self,
        level: float = 0.95,
        top: int | None = None,
        *,
        scale: str = "log-worth",
        anchor: Any = None,
    ) -> WorthTable:
        """Make a table of the ranking to print: worths, standard errors, intervals.

        Parameters
        ----------
        level : float
            Of the intervals.
        top : int, optional
            How many items to show; None for all.
        scale : {"log-worth", "elo", "worth"}
            As in `intervals`.
        anchor : str or mapping, optional
            As in `intervals`.

        Returns
        -------
        WorthTable
            It prints as text, and shows as HTML in a notebook.

        See Also
        --------
        to_frame : For pandas.
        report : A page of all there is to say.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> print(fitted.summary(scale="elo", anchor={"b": 1200}))
        RankAggregator, pl-partition, information: 2 items, 3 lists, log-likelihood -1.91, AIC 5.819
        rank  item  rating  std err  [0.025  0.975]   worth
           1  a     1320.4    212.8   903.4  1737.4  0.6667
           2  b     1200.0      0.0  1200.0  1200.0  0.3333
        """
        self._check_fitted()
        return worth_table(self, level, top, scale_from(scale, anchor))

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List what was estimated beside worths, such as a parameter of ties, with intervals.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        list of Parameter
            It is empty where there is nothing but worths.

        See Also
        --------
        summary : Shows them below the worths.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0), ("a", "b", 1)]
        >>> [parameter.name for parameter in tr.PairedTies().fit(games).parameters()]
        ['log v (ties)']
        """
        self._check_fitted()
        return []

    def _coefficients(self, level: float) -> CoefficientTable | None:
        """Those of features, where worths follow from them."""
        return None

    def to_frame(
        self,
        level: float = 0.95,
        top: int | None = None,
        *,
        scale: str = "log-worth",
        anchor: Any = None,
    ) -> DataFrame:
        """Make a frame of pandas of the ranking, best first.

        Its columns are rank, item, log_worth, standard_error, low, high (the ends of the interval)
        and worth, as `tierrank aggregate --csv` calls them; NaN where there are no standard errors.
        Ratings are in a column rating before these, and standard_error, low and high are theirs, as
        they are those of worths where these are the scale.

        Parameters
        ----------
        level : float
            Of the intervals.
        top : int, optional
            How many items; None for all.
        scale : {"log-worth", "elo", "worth"}
            As in `intervals`.
        anchor : str or mapping, optional
            As in `intervals`.

        Returns
        -------
        DataFrame
            A row an item.

        See Also
        --------
        summary : To print.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.to_frame()[["rank", "item", "worth"]].round(3)
           rank item  worth
        0     1    a  0.667
        1     2    b  0.333
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas, which is not installed: pip install pandas"
            ) from None
        shown = len(self.items_) if top is None else top
        table = worth_table(self, level, shown, scale_from(scale, anchor))
        log_worths = table.scale.name == "log-worth"
        items = pd.Series(list(table.items), dtype=object).infer_objects()
        return pd.DataFrame(
            {
                "rank": table.ranks,
                "item": items,
                **({"rating": table.estimates} if table.scale.name == "elo" else {}),
                "log_worth": table.estimates if log_worths else table.log_worths,
                "standard_error": table.standard_errors,
                "low": table.lower,
                "high": table.upper,
                "worth": table.worths,
            }
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        top: int = 50,
        scale: str = "log-worth",
        anchor: Any = None,
    ) -> Axes:
        """Draw the ranking, best on top: a dot for each log-worth, a line for its interval.

        Parameters
        ----------
        ax : Axes, optional
            Matplotlib's axes to draw on; None for a new figure.
        level : float
            Of the intervals.
        top : int
            How many items.
        scale : {"log-worth", "elo", "worth"}
            As in `intervals`.
        anchor : str or mapping, optional
            As in `intervals`.

        Returns
        -------
        Axes
            What was drawn on.

        See Also
        --------
        summary : The numbers.
        report : A page with this picture.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> ax = fitted.plot(plt.figure().add_subplot(), level=0.9)
        >>> len(ax.get_yticklabels())
        2
        """
        # Results show themselves: a door from here to the room that shows, opened when asked.
        from tierrank.report.plots import draw_worths, new_axes

        table = worth_table(self, level, top, scale_from(scale, anchor))
        if ax is None:
            ax = new_axes(7, 1.2 + 0.3 * len(table.items))
        draw_worths(ax, table, of=len(self.items_))
        return ax

    def _repr_html_(self) -> str:
        """The table, as notebooks show it; before the fit, what scikit-learn shows."""
        if not hasattr(self, "log_worths_"):
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        return worth_table(self, 0.95, SHOWN_IN_HTML).to_html()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The same for notebooks that would take scikit-learn's diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _note(self) -> str:
        """What was fitted, in words."""
        raise NotImplementedError

    def _check_fitted(self) -> None:
        """Refuse before the fit (which worths by features never had)."""
        _ = self.log_worths_

    def _order(self) -> Any:
        return np.argsort(-self.log_worths_, kind="stable")

    def _codes(self, names: Any) -> Any:
        """Numbers of items from a name, or from several."""
        numbers = self._numbers()
        if not isinstance(names, list | set | frozenset | np.ndarray) and (
            not isinstance(names, tuple) or names in numbers
        ):
            names = [names]
        codes = []
        for name in names:
            name = name.item() if isinstance(name, np.generic) else name
            if not isinstance(name, Hashable) or name not in numbers:
                raise ValueError(f"there is no item {name!r} among the {len(numbers)} fitted ones")
            codes.append(numbers[name])
        return np.array(codes, dtype=np.int64)

    def _numbers(self) -> dict[Any, int]:
        if self._numbers_of is None:
            self._numbers_of = dict(zip(self.items_, range(len(self.items_)), strict=True))
        return self._numbers_of


def worths_before(init_model: Any, items: Sequence[Any]) -> FloatArray:
    """[items] log-worths to begin with, by name: 0, the middle, where there was none.

    Parameters
    ----------
    init_model
        a fitted aggregation, the folder of a saved one, or a mapping from items to log-worths
    """
    if isinstance(init_model, str | Path):
        init_model = load(init_model)
    if isinstance(init_model, Worths):
        check_is_fitted(init_model)
        init_model = dict(zip(init_model.items_, init_model.log_worths_.tolist(), strict=True))
    if not isinstance(init_model, Mapping):
        raise ArgumentError(
            Argument("init_model"), f" is a {type(init_model).__name__}: give a fitted "
            "aggregation, the folder of a saved one, or a mapping from items to log-worths",
        )  # fmt: skip
    if not any(item in init_model for item in items):
        known = ", ".join(map(repr, list(init_model)[:3])) or "none"
        raise ArgumentError(
            Argument("init_model"), f" has no item of these lists, such as {items[0]!r}: it knows "
            f"{known}. Are the names of the same kind?",
        )  # fmt: skip
    start = np.array([init_model.get(item, 0.0) for item in items], dtype=np.float64)
    if not np.isfinite(start).all():
        item = items[int(np.argmin(np.isfinite(start)))]
        raise ArgumentError(
            Argument("init_model"), f" has a log-worth of {item!r} that is not finite"
        )
    return start


IN_WORDS = {  # of a model: what it takes for true, and what a tie tells it
    "davidson": (
        "Davidson's model: the better of two wins more often, and equals tie most often.",
        "A tie is an outcome of its own, likeliest between equals: it says two are close.",
    ),
    "rao-kupper": (
        "Rao and Kupper's model: a game is a tie if the two are too close to be told apart.",
        "A tie is a difference too small to be noticed: it says that two are close.",
    ),
    "bradley-terry": (
        "The Bradley-Terry model: the odds of a win are the ratio of the two worths.",
        "There are no ties in these games.",
    ),
    "plackett-luce": (
        "The Plackett-Luce model, exact with ties: each next place of a list goes to one of the "
        "items that are left, in proportion to their worths.",
        "A tie is an order that nobody saw: it speaks for neither of the two, and does not say "
        "that they are close.",
    ),
    "davidson-luce": (
        "The Davidson-Luce model: each next place of a list goes to one of the items that are "
        "left, or to some of them tied, in proportion to the geometric mean of their worths, times "
        "how prevalent ties of so many are.",
        "A tie is an outcome of its own, likeliest among equals: it says that items are close.",
    ),
}
WITHOUT_TIES = {  # what "bradley-terry" does with them
    "half": "A tie counts as half a win and half a loss.",
    "drop": "Ties were left out.",
}


def model_in_words(model: str, ties: str | None) -> tuple[str, str]:
    """A model, and what a tie tells it, which of "bradley-terry" is a setting."""
    text, tie = IN_WORDS[model]
    return text, WITHOUT_TIES.get(ties or "", tie)


class FittedWorths(Worths):
    """Worths that were fitted to lists or games: how that went, and what they say together.

    `RankAggregator`, `PairedTies` and `FeatureAggregator` have the settings, and give `_refit`,
    `compared`, `_settings` and `_in_words`.
    """

    of_games: ClassVar[bool] = False  # whether it is a model of games of two, not of lists

    _extras: Mapping[str, float] = MappingProxyType({})  # "tie" and "home" of models of games
    log_likelihood_: float | None
    aic_: float | None
    solver_: str
    n_iter_: int
    converged_: bool
    stopped_by_: str
    objective_values_: list[float]
    gradient_norm_: float | None
    seconds_: float

    @property
    def ties_connect(self) -> bool:
        """Whether a tie says that two items are about equal."""
        return False

    @property
    def decided_by(self) -> str | None:
        """What decides on worths where the data leave them open; None: nothing does."""
        return None if getattr(self, "prior", None) is None else "prior"

    def compared(self, data: Any = None) -> tuple[CountedLists, Connectivity]:
        """The lists or games that were fitted, and which items they compare.

        Parameters
        ----------
        data
            what was fitted, for a model that was loaded: it is saved without
        """
        raise NotImplementedError

    def described(self) -> dict[str, str]:
        """Say the settings that matter to a reader, in words.

        Returns
        -------
        dict of str
            Settings, as reports show them, by what they are called.

        See Also
        --------
        report : Shows them.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.described()
        {'model': 'pl-partition', 'prior': 'none', 'uncertainty': 'information'}
        """
        check_is_fitted(self)
        return self._settings()

    def _settings(self) -> dict[str, str]:
        raise NotImplementedError

    def in_words(self) -> tuple[str, str]:
        """Say what the model takes for true, and what a tie tells it.

        Returns
        -------
        tuple of two str
            The model, and a tie, in a sentence or two each, for readers of a page.

        See Also
        --------
        described : The settings.
        report : Shows them.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.PairedTies().fit([("a", "b", 1), ("b", "a", 1), ("a", "b", 0)])
        >>> fitted.in_words()[1]
        'A tie is an outcome of its own, likeliest between equals: it says two are close.'
        """
        told = self.described()
        model, tie = self._in_words()
        if told.get("home"):
            model += " The first side has an advantage, which is estimated and taken out."
        if (prior := told.get("prior", "none")) != "none":
            model += f" A prior ({prior}) keeps worths of rarely seen items near the average."
        return model, tie

    def _in_words(self) -> tuple[str, str]:
        raise NotImplementedError

    def bootstrap(
        self,
        replicates: int = 200,
        *,
        random_state: int | None = 0,
        watch: Watch | None = None,
    ) -> Bootstrap:
        """Fit again to lists, or games, drawn with replacement from those of the last fit.

        Parameters
        ----------
        replicates : int
            How many fits.
        random_state : int, optional
            A seed of what is drawn.
        watch : callable, optional
            Called after every fit.

        Returns
        -------
        Bootstrap
            The log-worths of each fit, with standard errors and percentile intervals.

        Raises
        ------
        ValueError
            The model was loaded: what it was fitted to is not saved with it.

        See Also
        --------
        covariance : By second derivatives.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b"]] * 20 + [["b", "a"]] * 10
        >>> boot = tr.RankAggregator().fit(votes).bootstrap(20, random_state=1)
        >>> boot.log_worths.shape
        (20, 2)
        """
        check_is_fitted(self)
        check_count("replicates", replicates, least=2)
        random = np.random.default_rng(seed_from(random_state))
        found = []
        for number in range(1, replicates + 1):
            drawn = self._drawn(random)
            scores = self._refit(drawn, int(random.integers(2**31)))
            if scores is not None:
                found.append(scores - scores.mean())
            if watch is not None:
                watch(Progress(number, replicates, "replicate"))
        absent = replicates - len(found)
        if len(found) < 2:
            raise ValueError(
                f"{absent} of {replicates} replicates have no finite estimate: there are too few "
                f"{'games' if self.of_games else 'lists'} for a bootstrap without a prior"
            )
        return Bootstrap(self.items_, self.log_worths_, np.array(found), absent)

    def goodness(
        self,
        data: Any = None,
        *,
        draws: int | None = None,
        worst: int = 10,
        random_state: int | None = 0,
    ) -> GoodnessOfFit:
        """Test whether one worth an item explains what was seen of pairs.

        Parameters
        ----------
        data : object, optional
            What was fitted, for a model that was loaded: it is saved without.
        draws : int, optional
            Data sets that are drawn from the model, to compare with; None: 199, or as many of them
            as are done in some seconds.
        worst : int
            How many pairs and triples are listed.
        random_state : int, optional
            A seed of what is drawn.

        Returns
        -------
        GoodnessOfFit
            The test, and the pairs and triples that fit worst.

        Raises
        ------
        ValueError
            The model was loaded, and `data` is not given.

        See Also
        --------
        bootstrap : Intervals that do not rest on the model.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
        >>> games += [(second, first, 1) for first, second, _ in games[:12]]
        >>> fitted = tr.PairedTies("bradley-terry").fit(games)
        >>> fitted.goodness().verdict()
        'The data contradict one worth an item (p = 0.005: χ² with 1 degree of freedom).'
        """
        from tierrank.aggregation.goodness import Drawing, goodness_of

        check_is_fitted(self)
        if draws is not None:
            check_count("draws", draws)
        check_count("worst", worst)
        drawing = Drawing(draws, np.random.default_rng(seed_from(random_state)))
        return goodness_of(self._expectation(data, drawing), worst)

    def _expectation(self, data: Any, drawing: Drawing) -> Expectation:
        """Pairs as observed and as the model expects them."""
        raise ValueError("this model does not say what it expects of pairs of items")

    def next_pairs(self, number: int = 100, *, top: int = 10) -> NextPairs:
        """Choose which pairs to ask next: those whose games make the first places surest.

        What the next games are to make small is the variance of the differences of log-worths
        between each of the first `top` items and all others, weighted by how open their order is.
        What a game adds to the information is known before it is played, and so is the covariance
        after it; pairs are chosen one after the other with all before taken into account, each
        where it tells most. (More than 200 games are chosen several at once.)

        Parameters
        ----------
        number : int
            How many games.
        top : int
            How many first places are to become sure.

        Returns
        -------
        NextPairs
            The pairs, how many games of each, and how much they tell.

        Raises
        ------
        ValueError
            There are no standard errors.

        See Also
        --------
        games_to_separate : How many games two items need.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", "bob"]] * 8 + [["bob", "ann"]] * 6 + [["bob", "cy"], ["cy", "dan"]] * 5
        >>> fitted = tr.RankAggregator(prior="gaussian").fit(votes + [["dan", "cy"]] * 2)
        >>> fitted.next_pairs(20, top=1)
        20 games that tell most about the first place: the mean variance of differences whose order
        is open goes from 0.3643 to 0.1992
        first  second  games  P(first wins)  reduction
        ann        cy      6           0.76      18.6%
        ann       dan      4           0.82       8.9%
        ann       bob     10           0.52      17.8%
        """
        from tierrank.aggregation.next_pairs import next_pairs

        check_is_fitted(self)
        return next_pairs(self, number, top)

    def games_to_separate(self, a: Any, b: Any, level: float = 0.95, power: float = 0.8) -> int:
        """Compute how many more games between two items it takes to tell which is better.

        So many that the interval of this level of the difference of their log-worths will leave out
        0 with a probability of `power`, if they differ as they do by the estimate. That is a guess
        itself: where the difference is half as large, it takes about four times as many.

        Parameters
        ----------
        a, b : object
            Names of two items.
        level : float
            Of the interval.
        power : float
            How probable it is that these games suffice.

        Returns
        -------
        int
            The number of games; 0 if they are told apart already.

        Raises
        ------
        ValueError
            An item is not known, or the two do not differ at all.

        See Also
        --------
        next_pairs : Which games tell most.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"]] * 20 + [["b", "a"]] * 10)
        >>> fitted.games_to_separate("a", "b")
        32
        """
        from tierrank.aggregation.next_pairs import games_to_separate

        check_is_fitted(self)
        return games_to_separate(self, a, b, level, power)

    def _game_covariance(self, items: Sequence[Any] | None = None) -> tuple[FloatArray, int | None]:
        """Of log-worths and all that games tell of besides; which is the tie parameter, if any."""
        return self.covariance(items), None

    def _game_information(self, d: FloatArray) -> GameInformation:
        """What a game of items that are d apart tells: p (1 − p), of one that somebody wins."""
        from tierrank.aggregation.next_pairs import GameInformation

        return GameInformation(expit(d) * expit(-d), np.zeros_like(d), np.zeros_like(d))

    def _win_chance(self, d: float) -> float:
        """The probability that somebody who is ahead by d wins a game."""
        return float(expit(d))

    def _drawn(self, random: np.random.Generator) -> Any:
        """As many lists or games as were seen, drawn from them."""
        raise NotImplementedError

    def _refit(self, drawn: Any, seed: int) -> FloatArray | None:
        """[items] log-worths by lists that were drawn; None: no finite estimate."""
        raise NotImplementedError

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Ranking",
        level: float = 0.95,
        top_k: int | None = None,
        data: Any = None,
        scale: str = "log-worth",
        anchor: Any = None,
    ) -> Path:
        """Write all there is to say as one HTML page, as `tierrank aggregate --out` does.

        There is none of games between teams.

        Parameters
        ----------
        path : path-like
            The file to write.
        title : str
            What was ranked.
        level : float
            Of all intervals.
        top_k : int, optional
            Also show the probability of a place among the first k (not of games).
        data : object, optional
            What was fitted, for a model that was loaded: it is saved without.
        scale : {"log-worth", "elo", "worth"}
            As in `intervals`.
        anchor : str or mapping, optional
            As in `intervals`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            The model was loaded, and `data` is not given.

        See Also
        --------
        summary : The table alone.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = fitted.report(pathlib.Path(folder, "votes.html"), title="Votes")
        ...     "<h1>Votes</h1>" in page.read_text()
        True
        """
        from tierrank.report.aggregation import write_page
        from tierrank.report.from_fit import page_of

        check_is_fitted(self)
        page = page_of(
            self, title=title, level=level, top_k=top_k, data=data, scale=scale, anchor=anchor
        )
        return write_page(page, fspath(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "log_worths_")

    def _went(self, end: Minimum, solver: str) -> None:
        """Note how a minimisation went."""
        self.solver_, self.stopped_by_ = solver, end.stopped_by
        self.n_iter_, self.converged_ = end.iterations, end.converged
        self.objective_values_, self.gradient_norm_ = end.values, end.gradient_norm


class OfLists(FittedWorths):
    """Worths that were fitted to lists, which may be asked again."""

    lists_: CountedLists
    _connectivity: Connectivity | None = None

    def _ask_lists(self, what: str) -> None:
        """Refuse `what` of a model that was loaded."""
        if not self.lists_.there:
            raise ValueError(
                f"there is no {what} here: a model is saved without its lists. Fit again"
            )

    def _drawn(self, random: np.random.Generator) -> Any:
        self._ask_lists("bootstrap")
        return self.lists_.drawn(random)

    def _counted(self, data: Any) -> CountedLists:
        """Lists in any form, each different one once."""
        return distinct(*weighted_lists(data))

    def _connected(self, lists: CountedLists) -> Connectivity:
        """Which items lists compare, in the eyes of the model."""
        return lists.connectivity()

    @property
    def connectivity_(self) -> Connectivity:
        """Which items were compared with which."""
        check_is_fitted(self)
        if self._connectivity is None:
            self._ask_lists("connectivity")
            self._connectivity = self._connected(self.lists_)
        return self._connectivity

    def compared(self, data: Any = None) -> tuple[CountedLists, Connectivity]:
        """The lists that were fitted, and which items they compare.

        Parameters
        ----------
        data
            what was fitted, for a model that was loaded: it is saved without
        """
        check_is_fitted(self)
        if data is not None:
            lists = self._counted(data)
            return lists, self._connected(lists)
        if not self.lists_.there:
            raise ValueError("a loaded model has its worths but not its lists: give them as data=")
        return self.lists_, self.connectivity_

    def _saved(self, **more: Any) -> dict[str, Any]:
        """What all of them save beside their numbers, and what one has of its own."""
        check_is_fitted(self)
        return {
            "parameters": state.plain_setting(self.get_params()),  # type: ignore[attr-defined]
            "items": [state.plain_name(name) for name in self.items_],
            "fit": state.facts_of(self),
            "lists": state.counts_of(self.lists_),
            **more,
        }

    @classmethod
    def _restored(cls, info: Mapping[str, Any], **settings: Any) -> Self:
        """Undo `_saved`: an estimator with all but its numbers."""
        fitted = cls(**info["parameters"] | settings)
        fitted._check()
        fitted.items_ = state.names_from(info["items"], "item")
        state.set_facts(fitted, info["fit"])
        fitted.lists_ = state.lists_from(fitted.items_, info["lists"])
        return fitted

    def _check(self) -> None:
        """Refuse what the constructor was given and cannot be."""
        raise NotImplementedError


def log_odds_interval(
    log_p: FloatArray, miss: FloatArray, variance: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals of probabilities, normal on the scale of log-odds.

    Parameters
    ----------
    log_p, miss
        logs of the probabilities, and 1 less these
    variance
        of `log_p`: log-odds = log p − log(1 − p), ∂/∂log p = 1/(1 − p)
    level
        how often such an interval holds the true value
    """
    miss = np.maximum(miss, np.finfo(float).tiny)
    margin = reach(level) * np.sqrt(np.maximum(variance, 0)) / miss
    odds = log_p - np.log(miss)
    return expit(odds - margin), expit(odds + margin)


# -- fitting again to lists drawn from the lists --------------------------------------------------


@dataclass(frozen=True)
class Bootstrap:
    """Estimates from lists that were drawn, with replacement, from those that were seen.

    Parameters
    ----------
    items : tuple
        Their names.
    estimate : ndarray of float
        [items] centred log-worths of all lists.
    log_worths : ndarray of float
        [replicates, items] centred log-worths of the drawn ones.
    without_estimate : int
        Replicates that had no finite estimate and are left out: in these, some item was never
        beaten, or never beat another. Where they are many, intervals are too short.

    See Also
    --------
    tierrank.RankAggregator.bootstrap : Gives it.

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [["a", "b"]] * 20 + [["b", "a"]] * 10
    >>> boot = tr.RankAggregator().fit(votes).bootstrap(20, random_state=1)
    >>> boot.items, boot.estimate.round(3)
    (('a', 'b'), array([ 0.347, -0.347]))
    """

    items: tuple[Any, ...]
    estimate: FloatArray
    log_worths: FloatArray
    without_estimate: int

    @property
    def standard_errors(self) -> FloatArray:
        """[items] standard deviations over the replicates."""
        return np.asarray(self.log_worths.std(axis=0, ddof=1))

    def covariance(self) -> FloatArray:
        """Compute the covariance of the log-worths over the replicates.

        Returns
        -------
        ndarray of float
            [items, items] numbers.

        See Also
        --------
        standard_errors : The roots of its diagonal.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b"]] * 20 + [["b", "a"]] * 10
        >>> tr.RankAggregator().fit(votes).bootstrap(20, random_state=1).covariance().shape
        (2, 2)
        """
        return np.atleast_2d(np.cov(self.log_worths, rowvar=False))

    def intervals(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Compute percentile intervals of the log-worths.

        Parameters
        ----------
        level : float
            How often such an interval holds the true value.

        Returns
        -------
        tuple of ndarray
            [items] lower and [items] upper ends.

        See Also
        --------
        tierrank.RankAggregator.intervals : By the normal approximation.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["a", "b"]] * 20 + [["b", "a"]] * 10
        >>> low, high = tr.RankAggregator().fit(votes).bootstrap(20, random_state=1).intervals(0.9)
        >>> bool((low < high).all())
        True
        """
        reach(level)  # refuses a wrong one
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(self.log_worths, tails, axis=0)
        return low, high
