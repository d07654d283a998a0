"""From a fitted aggregator to the plain data that its page and tables show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.connectivity import Connectivity
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.rank_intervals import rank_intervals
from tierrank.aggregation.rank_probabilities import expected_ranks, top_k_probabilities
from tierrank.aggregation.results import FittedWorths
from tierrank.aggregation.tier_cuts import TierCut, cut_into_tiers
from tierrank.data.rankings.games import Games
from tierrank.errors import Argument, ArgumentError
from tierrank.report.aggregation import MOST_PAIRED
from tierrank.report.content import (
    AggregationPage,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
)
from tierrank.training.covariance import MOST_DENSE

MOST_SOLVED = 20_000_000  # entries of lists, where there are many items and each takes some passes
MOST_RANKED = 500  # items whose intervals of ranks are computed: each is compared with all others


def page_of(
    fitted: FittedWorths,
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
    spell: Callable[[Argument], str] = str,
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
        also compute the probability of a place among the first k; not for models of games
    tiers
        whether to cut the ranking into tiers
    shown
        how many items have intervals if there are more than 5,000
    seconds
        that the fit took, if it does not say so itself
    settings, notes
        further lines for the section on settings
    spell
        how notes call arguments of the library
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
    lists, found = fitted.compared(data)
    if top_k is not None and fitted.of_games:
        raise ValueError(
            f"{fitted.described()['model']} is a model of games and says nothing of the first "
            f"{top_k} of a ranking: leave top_k out, or fit a RankAggregator"
        )
    sure = _uncertainty(fitted, lists.entries, level, tiers, shown, seed, spell)
    parameters = fitted.parameters(level)
    own = dict(settings or {})
    for each in parameters:
        form = ".4f" if 1e-3 <= abs(each.estimate) < 1e4 or not each.estimate else ".4g"
        own[each.name] = f"{each.estimate:{form}}"
        if each.standard_error == each.standard_error:  # a fit may have none
            own[each.name] += f", from {each.low:{form}} to {each.high:{form}}"
    games = fitted.of_games or isinstance(data, Games)
    first = [fitted.items_[code] for code in sure.order[:MOST_PAIRED]]
    return AggregationPage(
        title=title,
        subtitle=subtitle,
        rows=_rows(fitted, sure, level, top_k),
        connectivity=_data_facts(fitted, lists, found, seen or ("games" if games else "lists")),
        convergence=ConvergenceFacts(
            solver=fitted.solver_,
            iterations=fitted.n_iter_,
            seconds=fitted.seconds_ if seconds is None else seconds,
            converged=fitted.converged_,
            stopped_by=fitted.stopped_by_,
            history=fitted.objective_values_,
            gradient_norm=fitted.gradient_norm_,
            log_likelihood=fitted.log_likelihood_,
            aic=fitted.aic_,
        ),
        level=level,
        top_k=top_k,
        pairwise=fitted.pairwise_proba(first),
        cut_probabilities=None if sure.cut is None else sure.cut.cut_probabilities.tolist(),
        tier_criterion=None if sure.cut is None else sure.cut.criterion,
        parameters=tuple(parameters),
        settings={**fitted.described(), **own},
        notes=(*notes, *sure.notes),
    )


def _rows(
    fitted: FittedWorths, sure: _Uncertainty, level: float, top_k: int | None
) -> tuple[ItemRow, ...]:
    from scipy.special import ndtri

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
    if not fitted.of_games:
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


def _data_facts(
    fitted: FittedWorths, lists: CountedLists, found: Connectivity, seen: str
) -> ConnectivityFacts:
    said = found.explain(seen=seen).replace("\n  ", " ")  # the browser folds lines itself
    if not found.connected:
        said = said.partition("\nWhat to do:")[0]
        if (what := fitted.decided_by) is not None:
            verb = "decide" if what.endswith("s") else "decides"
            said += f"\nWhat the {seen} leave open, the {what} {verb}."
    whole = lists.total.is_integer() and lists.silent.is_integer()
    return ConnectivityFacts(
        items=found.n_items,
        # People say how many votes there are, not how many lines they take.
        lists=int(lists.total) if whole else lists.seen,
        distinct_lists=lists.different,
        total_weight=lists.total,
        lists_without_information=round(lists.silent),
        groups=found.n_groups,
        components=found.n_components,
        strongly_connected=found.connected,
        text=said,
        seen=seen,
    )


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
    fitted: FittedWorths,
    entries: int,
    level: float,
    tiers: bool,
    shown: int,
    seed: int,
    spell: Callable[[Argument], str],
) -> _Uncertainty:
    """How sure a fit is, as far as its size allows, and why something is left out."""
    w = fitted.log_worths_
    size = len(w)
    order = np.argsort(-w, kind="stable")
    errors = np.full(size, np.nan)
    many = size > MOST_DENSE
    first = order[: max(shown, 1)] if many else np.arange(size)
    if many and fitted.uncertainty == "sandwich":
        sandwich, other = (
            spell(Argument("uncertainty", kind)) for kind in ("sandwich", "information")
        )
        why = f"{sandwich} takes a matrix of {size:,}² numbers: use {other}"
        return _Uncertainty(order, errors, notes=[f"There are no intervals: {why}."])
    if many and entries > MOST_SOLVED:
        why = f"each takes some tens of passes over lists of {entries:,} entries"
        ask = "in Python, covariance([…]) of a fit has those of some items"
        return _Uncertainty(order, errors, notes=[f"There are no intervals: {why}; {ask}."])
    try:
        # Beyond some items, each is a system of equations of its own.
        matrix = fitted.covariance([fitted.items_[code] for code in first] if many else None)
    except ValueError as error:
        why = error.spelled(spell) if isinstance(error, ArgumentError) else str(error)
        none = f"There are no intervals, no tiers and no intervals of ranks: {why}"
        return _Uncertainty(order, errors, notes=[none])
    errors[first] = np.sqrt(np.diag(matrix))
    if many:
        return _Uncertainty(order, errors, notes=[
            f"There are {size:,} items, so only the first {len(first):,} have intervals; tiers and "
            f"intervals of ranks, which take all pairs, are left out (limit {MOST_DENSE:,} items)."
        ])  # fmt: skip
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
