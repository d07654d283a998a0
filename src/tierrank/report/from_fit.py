"""From a fitted aggregator to the plain data that its page and tables show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.connectivity import Connectivity
from tierrank.aggregation.item_ranks import (
    expected_ranks,
    rank_intervals,
    top_k_probabilities,
)
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.mixture import MixtureGroup
from tierrank.aggregation.periods import first_and_last
from tierrank.aggregation.quasi_variances import quasi_variances
from tierrank.aggregation.results import FittedWorths
from tierrank.aggregation.summary import LOG_WORTHS, Scale, scale_from
from tierrank.aggregation.through_time import WorthsThroughTime
from tierrank.aggregation.tier_cuts import TierCut, cut_into_tiers
from tierrank.data.rankings.games import Games
from tierrank.errors import Argument, ArgumentError
from tierrank.report.aggregation import MOST_PAIRED
from tierrank.report.content import (
    AggregationPage,
    ConnectivityFacts,
    ConvergenceFacts,
    Deviation,
    FitCheck,
    ItemRow,
    PairCounts,
    PairModel,
    TimeCurves,
    percent,
)
from tierrank.training.covariance import MOST_DENSE
from tierrank.training.optim import one_blas_thread

MOST_SOLVED = 20_000_000  # entries of lists, where there are many items and each takes some passes
POINTS = 40  # of the picture of fit: groups of pairs
MOST_EXACT = 500  # rows of which the page knows the standard error of every difference
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
    facts: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    command: str = "",
    check: bool = False,
    scale: str | Scale = "log-worth",
    anchor: Any = None,
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
    facts
        further figures for the head of the page, such as voters and dates
    links, groups
        by name, where an item's name leads to, and which group it belongs to
    command
        the command line that makes the page again
    check
        whether to look if the data contradict the model, which takes up to some seconds
    scale, anchor
        what ratings are, as in `intervals` of a fit

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

    def without_check() -> tuple[_Uncertainty, FloatArray, PairCounts | None]:
        sure = _uncertainty(fitted, lists.entries, level, tiers, shown, seed, spell)
        return sure, item_records(lists), pair_counts(lists, sure.order)

    if check:  # what takes longest is in this thread, where Ctrl-C is heard
        with one_blas_thread(), ThreadPoolExecutor(1) as beside:
            found_beside = beside.submit(without_check)
            fit_check, why_not = _checked(fitted, data, seed)
            sure, records, pairs = found_beside.result()
    else:
        fit_check, why_not = None, ()
        sure, records, pairs = without_check()
    parameters = fitted.parameters(level)
    own = dict(settings or {})
    for each in parameters:
        form = ".4f" if 1e-3 <= abs(each.estimate) < 1e4 or not each.estimate else ".4g"
        own[each.name] = f"{each.estimate:{form}}"
        if each.standard_error == each.standard_error:  # a fit may have none
            own[each.name] += f", from {each.low:{form}} to {each.high:{form}}"
    games = seen == "games" or fitted.of_games or isinstance(data, Games)
    ties = _tied(lists, records, games)
    if isinstance(fitted, MixtureGroup):  # parts of lists: as many whole ones
        records = np.round(records)
        pairs = None if pairs is None else pairs.rounded()
    chosen = scale_from(scale, anchor)
    model_text, tie_says = fitted.in_words()
    first = [fitted.items_[code] for code in sure.order[:MOST_PAIRED]]
    return AggregationPage(
        title=title,
        subtitle=subtitle,
        rows=_rows(fitted, sure, level, top_k, chosen, records, links or {}, groups or {}),
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
        scale=chosen.explained,
        rating_name=chosen.title,
        pairwise=fitted.pairwise_proba(first),
        cut_probabilities=None if sure.cut is None else sure.cut.cut_probabilities.tolist(),
        tier_criterion=None if sure.cut is None else sure.cut.criterion,
        parameters=tuple(parameters),
        settings={**fitted.described(), **own},
        notes=(*notes, *sure.notes, *why_not),
        model_text=model_text,
        facts={"ties": f"{percent(ties)}\N{NARROW NO-BREAK SPACE}%"} | dict(facts or {}),
        pair_model=_pair_model(fitted, sure, tie_says),
        pair_counts=pairs,
        command=command,
        fit_check=fit_check,
        curves=_curves(fitted, sure.order, level, chosen),
    )


def _curves(fitted: FittedWorths, order: IntArray, level: float, scale: Scale) -> TimeCurves | None:
    """Of worths that change, best first; counted from the average item, whatever the anchor."""
    if not isinstance(fitted, WorthsThroughTime):
        return None
    found = fitted.through_time(level)
    middle = 1000.0 if scale.name == "elo" else 0.0
    return TimeCurves(
        tuple(str(period) for period in fitted.periods_),
        tuple(str(fitted.items_[code]) for code in order),
        *(middle + scale.factor * each[order] for each in found),
    )


def facts_of(data: Any, voters: Sequence[str] = (), time: str | None = None) -> dict[str, str]:
    """What columns beside lists or games say to the head of a page: how many voted, and when."""
    beside, found = getattr(data, "beside", {}), {}
    for name in voters:
        seen = {each for each in beside[name].tolist() if each is not None and each == each}
        found[name if name.endswith("s") else f"{name}s"] = f"{len(seen):,}"
    if time is not None:
        found[time] = " to ".join(dict.fromkeys(first_and_last(beside[time])))
    return found


def _checked(fitted: FittedWorths, data: Any, seed: int) -> tuple[FitCheck | None, tuple[str, ...]]:
    """Whether the data contradict the fit; and why that cannot be said, where it is so."""
    try:
        found = fitted.goodness(data, random_state=seed)
    except (ValueError, NotImplementedError) as error:
        return None, (f"Whether the model fits was not looked at: {error}",)
    games = found.wins + found.ties + found.losses
    seen = (found.wins + found.ties / 2) / games
    expected = (found.expected_wins + found.expected_ties / 2) / games
    points = []  # pairs of about the same expectation, as many games in each
    order = np.argsort(expected)
    ends = np.searchsorted(np.cumsum(games[order]), np.linspace(0, games.sum(), POINTS + 1)[1:-1])
    for part in np.split(order, np.unique(ends)):
        if len(part):
            weights = games[part]
            meant, was = (float(np.average(x[part], weights=weights)) for x in (expected, seen))
            points.append((meant, was, float(weights.sum())))
    worst = []
    for pair in found.worst():
        met = pair.wins + pair.ties + pair.losses
        if abs(pair.residual) < 2:
            continue
        shown = round(met) if isinstance(fitted, MixtureGroup) else met
        worst.append(Deviation(
            str(pair.first), str(pair.second), shown, (pair.wins + pair.ties / 2) / met,
            (pair.expected_wins + pair.expected_ties / 2) / met, pair.residual, pair.adjusted_p,
        ))  # fmt: skip
    triples = found.triples
    said = ""
    if triples.triples:
        said = (
            f"{triples.cyclic:,} of {triples.triples:,} triples go round in a circle (a mostly "
            f"beat b, b beat c, and c beat a); by chance, the model expects "
            f"{triples.expected:,.0f} ({triples.low:,.0f} to {triples.high:,.0f})."
        )
    circles: list[tuple[str, str, str]] = []
    for cycle in triples.worst:
        a, b, c = (str(item) for item in cycle.items)
        circles.append((a, b, c))
    return FitCheck(found.verdict(), tuple(points), tuple(worst), tuple(circles), said), ()


def _tied(lists: CountedLists, records: FloatArray, games: bool) -> float:
    """The share of ties: of games, or of the pairs that lists compare."""
    tied = float(records[:, 2].sum())
    pairs = float(records[:, 1:].sum())
    if games:  # to some models a tie says nothing; it is one all the same
        tied, pairs = tied / 2, pairs / 2
        if lists.weight < lists.total:
            tied, pairs = tied + lists.silent, pairs + lists.silent
    return tied / pairs if pairs else 0.0


def _pair_model(fitted: FittedWorths, sure: _Uncertainty, tie_says: str) -> PairModel:
    """What the page needs for the probability that one of two beats the other."""
    own: dict[str, Any] = {}
    if "tie" in fitted._extras:
        own = {"kind": fitted.described()["model"], "tie": fitted._extras["tie"]}
        if sure.covariance is not None:
            whole, size = fitted._parameter_covariance(fitted._kind(None)), len(fitted.items_)
            at = size + list(fitted._extras).index("tie")
            own |= {"tie_variance": float(whole[at, at]), "tie_covariance": whole[at, sure.order]}
    if sure.covariance is not None:
        first = sure.order[:MOST_EXACT]
        matrix = sure.covariance[np.ix_(first, first)]
        spread = np.diag(matrix)
        own["errors"] = np.sqrt(np.maximum(spread[:, None] + spread[None, :] - 2 * matrix, 0))
        if len(sure.order) > MOST_EXACT:
            cut = sure.cut  # which has found them
            found = (
                quasi_variances(sure.covariance, equal=True).values
                if cut is None
                else cut.variances
            )
            own["quasi_variances"] = found[sure.order]
    return PairModel(tie_says=tie_says, **own)


def _rows(
    fitted: FittedWorths,
    sure: _Uncertainty,
    level: float,
    top_k: int | None,
    scale: Scale,
    records: FloatArray,
    links: Mapping[str, str],
    groups: Mapping[str, str],
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
        **dict(zip(("games", "wins", "ties", "losses"), records.T, strict=True)),
    }
    if scale != LOG_WORTHS:
        everybody = np.arange(len(w))
        rated = scale.ratings(fitted, everybody, sure.covariance, level)
        if sure.covariance is None and scale.anchor is None and scale.name != "worth":
            rated = scale.rated(w, sure.errors, level)  # of those that have an error
        columns |= {"rating": rated.estimate, "rating_low": rated.low, "rating_high": rated.high}
    if sure.cut is not None:
        columns["tier"] = sure.cut.tier_of + 1
    if sure.ranks is not None:
        columns["rank_low"], columns["rank_high"] = sure.ranks.T
    if not fitted.of_games:
        columns["expected_rank"] = expected_ranks(w)
    if top_k is not None:
        columns["top_k"] = top_k_probabilities(w, min(top_k, len(w)))
    by_place = [_without_nan(column[sure.order]) for column in columns.values()]
    names = [str(fitted.items_[code]) for code in sure.order]
    return tuple(
        ItemRow(name, link=links.get(name, ""), group=groups.get(name, ""),
                **dict(zip(columns, values, strict=True)))
        for name, *values in zip(names, *by_place, strict=True)
    )  # fmt: skip


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
    covariance
        [items, items] of the log-worths
    notes
        what is not there, and why
    """

    order: IntArray
    errors: FloatArray
    ranks: IntArray | None = None
    cut: TierCut | None = None
    covariance: FloatArray | None = None
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
    if many and entries > MOST_SOLVED and fitted.uncertainty is not None:
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
    return _Uncertainty(order if cut is None else cut.order, errors, ranks, cut, matrix, notes)


# -- how often items, and pairs of them, stood above, beside and below each other ------------------

MOST_ROWS = 1_000  # whose pairs are counted: in a square table of them
MOST_PAIRS = 20_000  # that a page has room for
MOST_MET = 50_000_000  # pairs within all lists, which are gone through one by one


def item_records(lists: CountedLists) -> FloatArray:
    """[items, 4] lists that an item is in; others that it stood above, beside and below there."""
    tiers, size = lists.tiers, lists.n_items
    items, sizes = tiers.items.numpy(), tiers.tier_sizes.numpy()
    per_list = np.asarray(tiers.lengths.numpy(), dtype=np.int64)
    list_of = np.repeat(np.arange(len(tiers)), tiers.list_offsets.diff().numpy())
    starts = np.concatenate([[0], np.cumsum(per_list)[:-1]])
    better = tiers.tier_offsets.numpy()[:-1] - starts[list_of]
    unnamed = (size - per_list) * tiers.rest
    worse = per_list[list_of] - better - sizes + unnamed[list_of]
    found = np.zeros((size, 4))
    by_entry = np.repeat(np.arange(len(sizes)), sizes)
    for column, values in enumerate((np.ones(len(sizes)), worse, sizes - 1, better)):
        weighted = (values * lists.counts[list_of])[by_entry]
        found[:, column] = np.bincount(items, weighted, size)
    if tiers.rest:  # a list that does not name an item has it tied with the others, behind all
        entry_list = list_of[by_entry]
        for column, each in ((0, np.ones(len(tiers))), (2, unnamed - 1.0), (3, 1.0 * per_list)):
            where = each * lists.counts
            found[:, column] += where.sum() - np.bincount(items, where[entry_list], size)
    return found


def pair_counts(lists: CountedLists, order: IntArray) -> PairCounts | None:
    """How pairs of rows met, of as many of the first rows as there is room for.

    Parameters
    ----------
    lists
        what was compared
    order
        [items] numbers of the items, best first: the rows
    """
    tiers = lists.tiers
    rows = min(len(order), MOST_ROWS)
    place = np.full(lists.n_items, rows)
    place[order[:rows]] = np.arange(rows)
    sizes = tiers.tier_sizes.numpy()
    tier_of = np.repeat(np.arange(len(sizes)), sizes)
    list_of = np.repeat(np.arange(len(tiers)), tiers.list_offsets.diff().numpy())[tier_of]
    at = place[tiers.items.numpy()]
    kept = at < rows
    at, tier_of, list_of = at[kept], tier_of[kept], list_of[kept]
    length = np.bincount(list_of, minlength=len(tiers))
    if float((length.astype(float) ** 2).sum()) / 2 > MOST_MET:
        return None
    # Each entry with all that follow in its list: these stand beside or below it.
    ends = np.cumsum(length)[list_of]
    following = ends - np.arange(len(at)) - 1
    one = np.repeat(np.arange(len(at)), following)
    within = np.arange(len(one)) - np.repeat(np.cumsum(following) - following, following)
    two = one + 1 + within
    weights = lists.counts[list_of[one]]
    tied = tier_of[one] == tier_of[two]

    def table(which: IntArray) -> FloatArray:
        codes = at[one[which]] * rows + at[two[which]]
        counted: FloatArray = np.bincount(codes, weights[which], rows * rows).astype(np.float64)
        return counted.reshape(rows, rows)

    above, beside = table(np.flatnonzero(~tied)), table(np.flatnonzero(tied))
    beside += beside.T
    if tiers.rest:
        from scipy.sparse import csr_array

        named = csr_array((np.ones(len(at)), (list_of, at)), shape=(len(tiers), rows))
        both = (named.T @ (named * lists.counts[:, None])).toarray()
        alone = np.asarray(named.T @ lists.counts)
        above += alone[:, None] - both
        beside += lists.counts.sum() - alone[:, None] - alone[None, :] + both
    upper = np.triu(above + above.T + beside, 1) > 0
    per_row = np.cumsum(upper.sum(axis=0))
    among = int(np.searchsorted(per_row, MOST_PAIRS, side="right"))
    first, second = np.nonzero(upper[:among, :among])
    return PairCounts(
        first, second, above[first, second], beside[first, second], above[second, first], among
    )
