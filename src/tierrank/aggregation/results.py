"""What can be asked of fitted worths: how sure they are, who is above whom, ranks, tiers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation import rank_intervals, rank_probabilities
from tierrank.aggregation.lists import weighted_lists
from tierrank.aggregation.quasi_variances import QuasiVariances, quasi_variances
from tierrank.aggregation.summary import WorthTable, worth_table
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.plackett_luce import log_prob, log_prob_above
from tierrank.tiers import Tiers
from tierrank.training.covariance import Kind, reach
from tierrank.training.settings import Learned, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from tierrank.aggregation.tier_cuts import TierCut

SHOWN_IN_HTML = 50  # items of the table in a notebook


class Estimates(NamedTuple):
    """Estimates and the ends of their intervals."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


class Shown(Learned):
    """Worths of items as a frame, a plot, a page, and a table in a notebook.

    Whoever fits them gives `items_`, `log_worths_` and the last methods here.
    """

    items_: tuple[Any, ...]
    log_worths_: FloatArray

    @property
    def worths_(self) -> FloatArray:
        """[items] worths, which sum to 1."""
        worths = np.exp(self.log_worths_ - self.log_worths_.max())
        return np.asarray(worths / worths.sum())

    def to_frame(self, level: float = 0.95, top: int | None = None) -> DataFrame:
        """The ranking as a frame of pandas, best first.

        Its columns are rank, item, log_worth, standard_error, low, high (the ends of the interval)
        and worth, as `tierrank aggregate --csv` calls them; NaN where there are no standard errors.

        Parameters
        ----------
        level
            of the intervals
        top
            how many items; None for all
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas, which is not installed: pip install pandas"
            ) from None
        table = worth_table(self, level, len(self.items_) if top is None else top)
        items = pd.Series(list(table.items), dtype=object).infer_objects()
        return pd.DataFrame(
            {
                "rank": table.ranks,
                "item": items,
                "log_worth": table.log_worths,
                "standard_error": table.standard_errors,
                "low": table.lower,
                "high": table.upper,
                "worth": table.worths,
            }
        )

    def plot(self, ax: Axes | None = None, *, level: float = 0.95, top: int = 50) -> Axes:
        """Draw the ranking, best on top: a dot for each log-worth, a line for its interval.

        Parameters
        ----------
        ax
            matplotlib's axes to draw on; None for a new figure
        level
            of the intervals
        top
            how many items
        """
        # Results show themselves: a door from here to the room that shows, opened when asked.
        from tierrank.report.plots import draw_worths

        table = worth_table(self, level, top)
        if ax is None:
            from matplotlib import pyplot

            size = (7, 1.2 + 0.3 * len(table.items))
            ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        draw_worths(ax, table, of=len(self.items_))
        return ax

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Ranking",
        level: float = 0.95,
        top_k: int | None = None,
        data: Any = None,
    ) -> Path:
        """Write all there is to say as one HTML page, as `tierrank aggregate --out` does.

        There is none of games between teams, nor of items by their features.

        Parameters
        ----------
        path
            of the file
        title
            what was ranked
        level
            of all intervals
        top_k
            also show the probability of a place among the first k (not of games)
        data
            what was fitted, for a model that was loaded: it is saved without
        """
        from tierrank.report.aggregation import write_page
        from tierrank.report.from_fit import page_of

        check_is_fitted(self, "log_worths_")
        page = page_of(self, title=title, level=level, top_k=top_k, data=data)  # type: ignore[arg-type]
        return write_page(page, fspath(path))

    def _repr_html_(self) -> str:
        """The table, as notebooks show it; before the fit, what scikit-learn shows."""
        if not hasattr(self, "log_worths_"):
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        return worth_table(self, 0.95, SHOWN_IN_HTML).to_html(self._parameters(0.95))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The same for notebooks that would take scikit-learn's diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _order(self) -> Any:
        return np.argsort(-self.log_worths_, kind="stable")

    def _parameters(self, level: float) -> list[tuple[str, float, float, float, float]]:
        """What was estimated beside worths: name, estimate, standard error, ends of interval."""
        return []

    def _errors_of(self, codes: IntArray) -> FloatArray:
        """[codes] standard errors; NaN where the fit has none."""
        raise NotImplementedError

    def _note(self) -> str:
        """What was fitted, in words."""
        raise NotImplementedError


class WorthResults(Shown):
    """Results of fitted worths; whoever fits them also gives `covariance`.

    All but `log_worths_`, `worths_` and the probabilities needs standard errors, and so an
    objective that has them.
    """

    _numbers_of: dict[Any, int] | None = None

    def covariance(
        self, items: Sequence[Any] | None = None, kind: Kind | None = None
    ) -> FloatArray:
        """[items, items] covariance of the centred log-worths, of all or some items."""
        raise NotImplementedError

    @property
    def standard_errors_(self) -> FloatArray:
        """[items] standard errors of the centred log-worths: of an item against the average."""
        return np.asarray(np.sqrt(np.diag(self.covariance())))

    def ranking(self) -> list[Any]:
        """The items, best first."""
        return [self.items_[number] for number in self._order()]

    def intervals(self, level: float = 0.95, scale: str = "log-worth") -> Estimates:
        """[items] log-worths, or worths, with Wald intervals.

        Those of worths are computed for their logs, so that they stay positive.

        Parameters
        ----------
        level
            how often such an interval holds the true value
        scale
            "log-worth" or "worth"
        """
        errors = reach(level)
        matrix = self.covariance()
        if scale == "log-worth":
            margin = errors * np.sqrt(np.diag(matrix))
            return Estimates(self.log_worths_, self.log_worths_ - margin, self.log_worths_ + margin)
        if scale != "worth":
            raise ValueError(f'scale is "log-worth" or "worth", not {scale!r}')
        worths = self.worths_
        # log worth_i = w_i − lse(w), whose gradient is e_i − worths
        along = matrix @ worths
        variance = np.diag(matrix) - 2 * along + worths @ along
        factor = np.exp(errors * np.sqrt(np.maximum(variance, 0)))
        return Estimates(worths, worths / factor, worths * factor)

    def quasi_variances(self) -> QuasiVariances:
        """[items] numbers q with var(w_i − w_j) ≈ q_i + q_j (Firth and de Menezes, 2004)."""
        return quasi_variances(self.covariance())

    def predict_proba(
        self, above: Any, below: Any, *, level: float | None = None
    ) -> float | tuple[float, float, float]:
        """Exact probability that an item, or a whole set, is above another.

        Parameters
        ----------
        above, below
            an item's name, or several names in a list, tuple or set: every one of `above` is to
            precede every one of `below`. What else takes part does not matter.
        level
            with it, also the ends of an interval of this level (by the normal approximation on
            the scale of log-odds)

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
        >>> round(fitted.predict_proba("a", ["b", "c"]), 3)
        0.532
        """
        codes = [self._codes(above), self._codes(below)]
        leaf = torch.from_numpy(self.log_worths_).requires_grad_()
        log_p = log_prob_above(leaf, *codes)
        p = float(log_p.detach().exp())
        if level is None:
            return p
        involved = np.concatenate(codes)
        (slope,) = torch.autograd.grad(log_p, leaf)
        at = slope.numpy()[involved]
        matrix = self.covariance([self.items_[code] for code in involved])
        # log-odds = log p − log(1 − p), ∂/∂log p = 1/(1 − p)
        miss = max(-np.expm1(float(log_p.detach())), np.finfo(float).tiny)
        error = float(np.sqrt(max(at @ matrix @ at, 0))) / miss
        odds = float(log_p.detach()) - np.log(miss)
        low, high = (expit(odds + way * reach(level) * error) for way in (-1, 1))
        return p, float(low), float(high)

    def pairwise_proba(self, items: Sequence[Any] | None = None) -> FloatArray:
        """[items, items] exact probability that the item of the row is above the column's."""
        codes = None if items is None else self._codes(items)
        return rank_probabilities.pairwise_probabilities(self.log_worths_, codes)

    def log_prob(self, rankings: Any) -> FloatArray:
        """[lists] exact log-probabilities of rankings of these items, seen or not.

        Parameters
        ----------
        rankings
            as `Tiers.from_rankings` takes them, of these items; or `tierrank.data.Rankings` or a
            `Tiers` of this very catalogue
        """
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
        return np.asarray(log_prob(self.log_worths_, tiers))

    def expected_ranks(
        self, level: float = 0.95, *, draws: int = 1000, random_state: int = 0
    ) -> Estimates:
        """[items] expected places in a full ranking of all, from 1.

        Intervals are percentiles over worths drawn from the estimate's normal approximation.
        """
        return self._with_draws(rank_probabilities.expected_ranks, level, draws, random_state)

    def top_k_proba(
        self, k: int, level: float | None = None, *, draws: int = 1000, random_state: int = 0
    ) -> FloatArray | Estimates:
        """[items] exact probabilities to be among the first k of a full ranking of all.

        With `level`, also intervals, as in `expected_ranks`.
        """
        check_count("k", k)
        function = partial(rank_probabilities.top_k_probabilities, k=min(k, len(self.items_)))
        if level is None:
            return function(self.log_worths_)
        return self._with_draws(function, level, draws, random_state)

    def rank_intervals(
        self, level: float = 0.95, *, draws: int = 1000, random_state: int = 0
    ) -> IntArray:
        """[items, 2] ranks an item may truly have, from 1, by its differences with all others."""
        return rank_intervals.rank_intervals(
            self.log_worths_, self.covariance(), level=level, draws=draws, seed=random_state
        )

    def tiers(self) -> TierCut:
        """Cut the ranking into tiers of items that the data do not tell apart; see `TierCut`."""
        from tierrank.aggregation.tier_cuts import cut_into_tiers

        return cut_into_tiers(self.log_worths_, self.covariance())

    def summary(self, level: float = 0.95, top: int | None = None) -> WorthTable:
        """The ranking as a table to print: worths, standard errors, intervals.

        Parameters
        ----------
        level
            of the intervals
        top
            how many items to show; None for all
        """
        return worth_table(self, level, top)

    def _with_draws(self, function: Any, level: float, draws: int, seed: int) -> Estimates:
        reach(level)  # refuses a wrong one
        low, high = rank_intervals.simulated_intervals(
            function, self.log_worths_, self.covariance(), level=level, draws=draws, seed=seed
        )
        return Estimates(function(self.log_worths_), low, high)

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
