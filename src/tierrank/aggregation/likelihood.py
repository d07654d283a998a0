"""From lists and the name of an objective to the terms that are minimised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.aggregation.connectivity import Connectivity
from tierrank.aggregation.lists import CountedLists, largest_ties
from tierrank.aggregation.terms import LARGEST_TIE, Exact, ListTerm, Smooth, Strict, Tied
from tierrank.losses import find, from_name
from tierrank.losses.objective import Objective
from tierrank.tiers import Tiers
from tierrank.tiers.selection import with_rest_written
from tierrank.training.settings import check_count

# numbers of lists × items up to which a rest is written out: the kernels for small ties then do
MOST_WRITTEN = 5_000_000
MOST_KEPT = 100_000_000  # numbers of all matrices that small ties keep: 800 MB
MOST_BROKEN = 10_000  # ways in which the ties of a list seen more often are broken


def objective_of(name: str, params: dict[str, Any] | None) -> Objective:
    """The objective as a module that gives one loss a list, of lists as `prepared` gives them.

    Raises
    ------
    ValueError
        for one that worths cannot be fitted by
    """
    if not isinstance(params, dict | None) or not isinstance(name, str):
        raise ValueError(
            f"objective is a name and objective_params a dict, not {name!r} and {params!r}"
        )
    entry, options = find(name), dict(params or {})
    found = entry.name
    if entry.stochastic:
        raise ValueError(f"the gradient of {found} is random: use pmop-fd or pmop-exact")
    if entry.tie_parameter:
        raise ValueError(
            f"{found} has a parameter for ties beside the worths: use "
            f'tierrank.PairedTies("{found}"), which estimates both'
        )
    if "reduction" in options:
        raise ValueError("the losses of lists are always summed: reduction is no option here")
    if "generator" in options:
        raise ValueError("randomness comes from random_state, not from a generator")
    if is_exact(found, options):
        _ = from_name(found, **options)  # refuses options that it does not have
        return from_name("pl-partition", reduction="none")
    return from_name(found, **options, reduction="none").double()


def determined(found: Connectivity, name: str) -> bool:
    """Whether lists that hang together so have one finite estimate by this objective."""
    return found.connected if find(name).needs_connection else found.n_groups <= 1


def is_exact(name: str, params: dict[str, Any] | None) -> bool:
    """Whether the objective is the exact likelihood of the lists that `prepared` gives."""
    found = find(name).name
    weighted = (params or {}).get("alpha") is not None
    return found in ("pl-topk", "listmle") or (found == "pl-partition" and not weighted)


def prepared(
    tiers: Tiers, counts: FloatArray, name: str, params: dict[str, Any] | None, seed: int
) -> tuple[Tiers, FloatArray]:
    """The lists as the objective sees them, before equal ones are put together.

    PL-TopK forgets what comes after the first k places. ListMLE may break ties, once for all: each
    list that was seen, in an order of its own (in `MOST_BROKEN` orders, if more often).
    """
    found, options = find(name).name, dict(params or {})
    if found == "pl-topk":
        k = options.get("k", 10)
        check_count("k", k)
        return tiers.top(int(k)), counts
    ties = options.get("ties", "exact")
    if found != "listmle" or ties == "exact":
        return tiers, counts
    if ties not in ("input", "random"):
        raise ValueError(f'ties are "exact", broken by "input" or at "random", not {ties!r}')
    if ties == "random":
        ways = np.minimum(np.ceil(counts), MOST_BROKEN).astype(np.int64)
        tiers = tiers[np.repeat(np.arange(len(ways)), ways)]
        counts = np.repeat(counts / np.maximum(ways, 1), ways)
    return tiers.break_ties(at_random=ties == "random", generator=seed), counts


def terms_of(
    lists: CountedLists, name: str, params: dict[str, Any] | None = None
) -> list[ListTerm]:
    """The terms that Σ count · loss consists of: lists with small ties, or none, are quicker."""
    objective = objective_of(name, params)
    if not is_exact(name, params):
        return [Smooth(lists.tiers, lists.counts, objective)]
    if lists.tiers.rest and len(lists.tiers) * lists.n_items <= MOST_WRITTEN:
        lists = replace(lists, tiers=with_rest_written(lists.tiers))
    upper, last = largest_ties(lists.tiers)
    strict, small = np.maximum(upper, last) <= 1, upper <= LARGEST_TIE
    if small.any() and not strict.all():
        numbers = np.cumsum(np.where(small & ~strict, upper * lists.tiers.full_lengths.numpy(), 0))
        small &= numbers <= MOST_KEPT
    terms: list[ListTerm] = []
    for kind, chosen in ((Strict, strict), (Tied, small & ~strict), (Exact, ~small & ~strict)):
        if chosen.any():
            tiers = lists.tiers if chosen.all() else lists.tiers[np.flatnonzero(chosen)]
            terms.append(kind(tiers, lists.counts[chosen]))
    return terms
