"""From a fitted aggregator to the plain data that its page and tables show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.aggregator import RankAggregator
from tierrank.aggregation.connectivity import Connectivity, connectivity
from tierrank.aggregation.covariates import FeatureAggregator
from tierrank.aggregation.lists import CountedLists, distinct, weighted_lists
from tierrank.aggregation.paired import PairedTies
from tierrank.aggregation.priors import prior_from
from tierrank.aggregation.rank_intervals import rank_intervals
from tierrank.aggregation.rank_probabilities import (
    expected_ranks,
    pairwise_probabilities,
    top_k_probabilities,
)
from tierrank.aggregation.tier_cuts import TierCut, cut_into_tiers
from tierrank.data.rankings.games import Games
from tierrank.report.aggregation import MOST_PAIRED
from tierrank.report.content import (
    AggregationPage,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
    Parameter,
)
from tierrank.training.covariance import MOST_DENSE

Fitted = RankAggregator | PairedTies | FeatureAggregator

MOST_RANKED = 500  # items whose intervals of ranks are computed: each is compared with all others


def page_of(
    fitted: Fitted,
    *,
    title: str,
    subtitle: str = "",
    data: Any = None,
    seen: Literal["lists", "games"] | None = None,
    level: float = 0.95,
    top_k: int | None = None,
    tiers: bool = True,
    shown: int = 50,
    seconds: float | None = None,
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    seed: int = 0,
) -> AggregationPage:
    """Fill a page from a fit: intervals, tiers, ranks, pairs, data, convergence.

    What the fit has no standard errors for, or what takes too long at its size, is left out, and
    a note says so.

    Parameters
    ----------
    fitted
        a fitted `RankAggregator`, `PairedTies` or `FeatureAggregator`
    title, subtitle
        what was ranked; where it comes from
    data
        what was fitted. A fit knows its lists or games; a model that was loaded needs them here.
    seen
        what to call them: "lists" or "games"; None as the model or `data` says
    level
        of all intervals
    top_k
        also compute the probability of a place among the first k; not for `PairedTies`
    tiers
        whether to cut the ranking into tiers
    shown
        how many items have intervals if there are more than 5,000
    seconds
        that the fit took, if it does not say so itself
    settings, notes
        further lines for the section on settings
    seed
        of the draws that intervals of ranks rest on

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", ("ann", "bob")]]
    >>> fitted = tr.RankAggregator().fit(votes, weights=[5, 3, 2])
    >>> page = page_of(fitted, title="A vote")
    >>> [row.name for row in page.rows], page.connectivity.lists, page.tiers
    (['ann', 'bob', 'cy'], 10, 1)
    """
    lists, found = _compared(fitted, data)
    sure = _uncertainty(fitted, level=level, tiers=tiers, shown=shown, seed=seed)
    parameters = tuple(Parameter(*each) for each in fitted.parameters(level))
    own = dict(settings or {})
    for each in parameters:
        form = ".4f" if 1e-3 <= abs(each.estimate) < 1e4 or not each.estimate else ".4g"
        own[each.name] = f"{each.estimate:{form}}"
        if each.standard_error == each.standard_error:  # a fit may have none
            own[each.name] += f", from {each.low:{form}} to {each.high:{form}}"
    return AggregationPage(
        title=title,
        subtitle=subtitle,
        rows=_rows(fitted, sure, level, top_k),
        connectivity=_data_facts(lists, found, fitted, seen or _seen(fitted, data)),
        convergence=_fit_facts(fitted, seconds),
        level=level,
        top_k=top_k,
        pairwise=_pairs(fitted, sure.order[:MOST_PAIRED]),
        cut_probabilities=None if sure.cut is None else sure.cut.cut_probabilities.tolist(),
        tier_criterion=None if sure.cut is None else sure.cut.criterion,
        parameters=parameters,
        settings={**_own_settings(fitted), **own},
        notes=(*notes, *sure.notes),
    )


def _rows(
    fitted: Fitted, sure: _Uncertainty, level: float, top_k: int | None
) -> tuple[ItemRow, ...]:
    from scipy.special import ndtri

    if top_k is not None and isinstance(fitted, PairedTies):
        raise ValueError(
            f"{fitted.model} is a model of games and says nothing of the first {top_k} of a "
            "ranking: leave top_k out, or fit a RankAggregator"
        )
    w = fitted.log_worths_
    margin = float(ndtri((1 + level) / 2)) * sure.errors
    columns: dict[str, Any] = {
        "log_worth": w,
        "worth": fitted.worths_,
        "low": w - margin,
        "high": w + margin,
        "standard_error": sure.errors,
    }
    if sure.cut is not None:
        columns["tier"] = sure.cut.tier_of + 1
    if sure.ranks is not None:
        columns["rank_low"], columns["rank_high"] = sure.ranks.T
    if not isinstance(fitted, PairedTies):
        columns["expected_rank"] = expected_ranks(w)
    if top_k is not None:
        columns["top_k"] = top_k_probabilities(w, min(top_k, len(w)))
    by_place = [_without_nan(column[sure.order]) for column in columns.values()]
    return tuple(
        ItemRow(str(fitted.items_[code]), **dict(zip(columns, values, strict=True)))
        for code, *values in zip(sure.order.tolist(), *by_place, strict=True)
    )


def _without_nan(values: AnyArray) -> list[Any]:
    """Plain numbers, and None for NaN."""
    return [None if value != value else value for value in values.tolist()]


def _pairs(fitted: Fitted, codes: Any) -> FloatArray:
    """[n, n] P(row above column) of some items; of games, in those that somebody wins."""
    if not isinstance(fitted, PairedTies):
        return pairwise_probabilities(fitted.log_worths_, codes)
    names = [fitted.items_[code] for code in codes]
    size = len(names)
    wins, _, losses = fitted.predict_proba(
        [name for name in names for _ in names], names * size, neutral=True
    )
    return np.asarray(wins / (wins + losses)).reshape(size, size)


def _compared(fitted: Fitted, data: Any) -> tuple[CountedLists, Connectivity]:
    """The lists that were fitted, and what they connect."""
    if isinstance(fitted, PairedTies):
        known = fitted._fixtures
        if known is not None and known.has_teams:
            raise ValueError(
                "a report tells who was compared with whom, and here teams were, not the players "
                "whose worths these are: use summary, to_frame and plot"
            )
        if data is None and known is None:
            raise ValueError("a loaded model has its worths but not its games: give them as data=")
        data = known.to_games() if data is None and known is not None else data
        tiers, weights = weighted_lists(data)
        games = distinct(tiers, weights, ties_speak=True)
        return games, connectivity(games.tiers, ties_connect=True)
    lists = fitted.lists_
    if data is not None:
        lists = distinct(*weighted_lists(data))
    elif not len(lists.tiers):
        raise ValueError("a loaded model has its worths but not its lists: give them as data=")
    elif isinstance(fitted, RankAggregator):
        return lists, fitted.connectivity_
    return lists, connectivity(lists.tiers)


def _seen(fitted: Fitted, data: Any) -> str:
    return "games" if isinstance(fitted, PairedTies) or isinstance(data, Games) else "lists"


def _data_facts(
    lists: CountedLists, found: Connectivity, fitted: Fitted, seen: str
) -> ConnectivityFacts:
    said = found.explain(seen=seen).replace("\n  ", " ")  # the browser folds lines itself
    if not found.connected:
        said = said.partition("\nWhat to do:")[0]
        if isinstance(fitted, FeatureAggregator):
            said += f"\nWhat the {seen} leave open, the features decide."
        elif fitted.prior is not None:
            said += f"\nWhat the {seen} leave open, the prior decides."
    whole = lists.total.is_integer() and lists.silent.is_integer()
    return ConnectivityFacts(
        items=found.n_items,
        # People say how many votes there are, not how many lines they take.
        lists=int(lists.total) if whole else lists.seen,
        distinct_lists=len(lists.tiers),
        total_weight=lists.total,
        lists_without_information=round(lists.silent),
        groups=found.n_groups,
        components=found.n_components,
        strongly_connected=found.connected,
        text=said,
        seen=seen,
    )


def _fit_facts(fitted: Fitted, seconds: float | None) -> ConvergenceFacts:
    games = isinstance(fitted, PairedTies)
    stopped = "tolerance" if fitted.converged_ else "max_iter"
    return ConvergenceFacts(
        solver="newton" if games else fitted.solver_,
        iterations=fitted.n_iter_,
        seconds=getattr(fitted, "seconds_", 0.0) if seconds is None else seconds,
        converged=fitted.converged_,
        stopped_by=stopped if games else fitted.stopped_by_,
        history=() if games else fitted.objective_values_,
        gradient_norm=None if games else fitted.gradient_norm_,
        log_likelihood=fitted.log_likelihood_,
        aic=fitted.aic_,
    )


def _own_settings(fitted: Fitted) -> dict[str, str]:
    if isinstance(fitted, FeatureAggregator):
        own = {"model": f"{fitted.model} in features, {_objective(fitted)}", "l2": f"{fitted.l2:g}"}
        return own | ({"uncertainty": fitted.uncertainty} if fitted.model == "linear" else {})
    prior = prior_from(fitted.prior)
    about = {"prior": "none" if prior is None else str(prior), "uncertainty": fitted.uncertainty}
    if not isinstance(fitted, PairedTies):
        return {"model": _objective(fitted), **about}
    own = {"model": fitted.model, **about}
    if fitted.model != "bradley-terry":
        own["who stands above whom"] = "in games that somebody wins"
    if fitted.ties is not None:
        own["ties"] = fitted.ties
    if fitted.home:
        own["home"] = "the first side has an advantage"
    return own


def _objective(fitted: RankAggregator | FeatureAggregator) -> str:
    options = ", ".join(f"{k}={v}" for k, v in (fitted.objective_params or {}).items())
    return f"{fitted.objective} ({options})" if options else fitted.objective


@dataclass(frozen=True)
class _Uncertainty:
    """Standard errors, tiers and intervals of ranks; what there is none of is None.

    Attributes
    ----------
    order
        [items] numbers of the items, best first
    errors
        [items] standard errors of the log-worths, NaN where there is none
    ranks
        [items, 2] best and worst rank
    cut
        the tiers
    notes
        what is not there, and why
    """

    order: IntArray
    errors: FloatArray
    ranks: IntArray | None = None
    cut: TierCut | None = None
    notes: list[str] = field(default_factory=list)


def _uncertainty(
    fitted: Fitted, *, level: float, tiers: bool, shown: int, seed: int
) -> _Uncertainty:
    """Find out how sure a fit is.

    Parameters
    ----------
    fitted
        the fit
    level
        of the intervals of ranks
    tiers
        whether to cut the ranking into tiers
    shown
        how many items have standard errors where there are too many for all
    seed
        of the draws that intervals of ranks rest on
    """
    w = fitted.log_worths_
    size = len(w)
    order = np.argsort(-w, kind="stable")
    errors = np.full(size, np.nan)
    if size > MOST_DENSE:
        return _of_many(fitted, order, errors, shown)
    try:
        matrix = _covariance_of(fitted)
    except ValueError as error:
        return _Uncertainty(order, errors, notes=[_without_intervals(error)])
    errors = np.sqrt(np.diag(matrix))
    notes = []
    cut = cut_into_tiers(w, matrix) if tiers and size > 1 else None
    ranks = None
    if 1 < size <= MOST_RANKED:
        ranks = rank_intervals(w, matrix, level=level, seed=seed)
    elif size > 1:
        notes.append(
            f"Intervals of ranks were left out: each of {size:,} items would be compared with all "
            f"others, which takes long beyond {MOST_RANKED}."
        )
    # Where estimates are equal, the tiers have an order of their own.
    return _Uncertainty(order if cut is None else cut.order, errors, ranks, cut, notes)


def _covariance_of(fitted: Fitted, items: Any = None) -> FloatArray:
    """[items, items] covariance of the centred log-worths, of all or of some."""
    if isinstance(fitted, PairedTies):
        size = len(fitted.items_)
        return fitted.covariance_[:size, :size]
    return fitted.covariance(items)


def _of_many(fitted: Fitted, order: IntArray, errors: FloatArray, shown: int) -> _Uncertainty:
    """Standard errors of the first items only: each is a system of equations of its own."""
    first = order[: max(shown, 1)]
    size = len(order)
    notes = [
        f"There are {size:,} items, so only the first {len(first):,} have intervals; tiers and "
        f"intervals of ranks, which take all pairs, are left out (limit {MOST_DENSE:,} items)."
    ]
    if fitted.uncertainty == "sandwich" and not isinstance(fitted, PairedTies):
        reason = f'uncertainty="sandwich" takes a matrix of {size:,}² numbers: use "information"'
        return _Uncertainty(order, errors, notes=[f"There are no intervals: {reason}."])
    try:
        if isinstance(fitted, PairedTies):
            errors[first] = fitted.standard_errors_[first]
        else:
            matrix = _covariance_of(fitted, [fitted.items_[code] for code in first])
            errors[first] = np.sqrt(np.diag(matrix))
    except ValueError as error:
        notes = [_without_intervals(error)]
    return _Uncertainty(order, errors, notes=notes)


def _without_intervals(error: ValueError) -> str:
    return f"There are no intervals, no tiers and no intervals of ranks: {error}"
