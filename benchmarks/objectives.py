"""Every objective beside its peers: time and memory by length, and what the cheap ones miss.

    python benchmarks/objectives.py            # under 10 minutes on 2 cores
    python benchmarks/objectives.py --quick    # under 1.5 minutes: fewer cases, fewer rounds

Every time is for a value and its gradient, in float32, on data that are ready: tiers are built,
the scores of ListMLE in plain torch lie sorted, rax is compiled. The contenders of a family take
turns. rax is optional: `make bench` installs it, or `pip install -c constraints.txt rax`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import approximations
import rax_peers
import torch
from contenders import (
    FIRST,
    LONGEST_CUBIC,
    MOST_BYTES,
    MOST_PAIRS,
    PEERS,
    Contender,
    Difference,
    agreement_table,
    differences,
    everyone,
    of_family,
    with_data,
)
from lists import ITEMS, Lists, five_grades
from measure import (
    GIVES_MEMORY_BACK,
    Claim,
    Column,
    Progress,
    Report,
    Table,
    Task,
    Times,
    claims_table,
    extra_memory,
    figures,
    in_fresh_process,
    main,
    side_by_side,
)

LONG = 20_000  # items of the one long list
LONG_BUDGET = 1.0  # seconds: several rounds of what takes a few tenths
SMALL = 40_000  # items, in lists of 10, that set everything going: threads, caches


class Plan(NamedTuple):
    """How much to measure."""

    budget: float  # seconds for each contender of a case
    lengths: Sequence[int]  # of lists with five grades
    approximated_tiers: Sequence[int]
    approximated_lists: int


FULL = Plan(
    budget=0.5,
    lengths=(10, 100, 1_000, 10_000),
    approximated_tiers=(2, 5, 10, 30, 100, 300, 1_000),
    approximated_lists=20,
)
QUICK = Plan(
    budget=0.08,
    lengths=(100, 1_000),
    approximated_tiers=(2, 30, 1_000),
    approximated_lists=5,
)


# Time and memory by length -------------------------------------------------------------------


def times(contenders: Iterable[Contender], case: Lists, budget: float) -> dict[str, Times]:
    """Seconds an item, for those that can take lists of this length."""
    tasks = {
        contender.name: Task(contender.build(lists), lists.labels.numel())
        for contender, lists in with_data(contenders, case)
    }
    return side_by_side(tasks, budget)


def time_table(family: str, by_length: Mapping[int, Mapping[str, Times]]) -> Table:
    first = FIRST[family]
    columns = [Column("ns an item, by the length of the lists")]
    for length in by_length:
        columns += [Column(f"{length:,}", figures), Column(f"× {first}", figures)]
    rows = []
    for contender in of_family(family):
        row: list[Any] = [contender.name]
        for found in by_length.values():
            mine = found.get(contender.name)
            row += [mine.median * 1e9, mine.over(found[first])] if mine else [None, None]
        rows.append(row)
    return Table(f"Objectives: {family}", columns, rows, notes(family))


def notes(family: str) -> list[str]:
    """What a reader of a family's table should know."""
    return [NOTES[family], *(NO_RAX if PEERS[family] else [])]


NO_RAX = [] if rax_peers.AVAILABLE else ["rax is not installed: its rows are dashes."]


NOTES = {
    "likelihood": (
        f"{ITEMS:,} items in all. `listmle` and `p-listmle` sum over the ties; the peers take one "
        "order for granted. rax sorts in every call."
    ),
    "listwise": f"{ITEMS:,} items in all; for what looks at pairs, at most {MOST_PAIRS:,} pairs.",
    "pairwise": (
        f"{ITEMS:,} items in all; for what looks at pairs, at most {MOST_PAIRS:,} pairs or one "
        f"list, and a dash where all pairs at once would take more than {MOST_BYTES / 1e9:g} GB. "
        "`ranksvm` and `rank-regress` need no pairs. The MSE of rax is of another target, "
        "differences of labels, and counts ties as well: not the loss of `rank-regress`."
    ),
    "metric": (
        "As many items as the slower ones allow. `lambdaloss` and `approx-ndcg` look at all pairs, "
        "`expected-ndcg` at the first ten places, `pl-rank` at 16 draws; `listmle`, a likelihood, "
        "stands beside them."
    ),
    "ordered partition": (
        f"{ITEMS:,} items in all, fewer for `pmop-exact`, which takes cubic time, and lists of up "
        f"to {LONGEST_CUBIC} items. The samplers make three steps."
    ),
}


def warm_up(contenders: Iterable[Contender]) -> None:
    """Load, compile and start threads, so that no first call is taken for a slow or large one."""
    small = five_grades(10).first(SMALL // 10)
    for contender in contenders:
        if contender.limit(10):
            contender.build(small)()


def peaks_here(contenders: Iterable[Contender], cases: Sequence[Lists]) -> list[dict[str, float]]:
    """Peak extra bytes an item, one entry a case, in this process."""
    lengths = [case.labels.shape[1] for case in cases]
    taking_part = [one for one in contenders if any(map(one.limit, lengths))]
    warm_up(taking_part)
    return [
        {
            contender.name: extra_memory(contender.build(lists)) / lists.labels.numel()
            for contender, lists in with_data(taking_part, case)
        }
        for case in cases
    ]


def peaks(contenders: str, cases: str) -> list[dict[str, float]]:
    """The same in a fresh process, where these expressions are evaluated."""
    code = (
        "import json; from objectives import *; "
        f"print(json.dumps(peaks_here({contenders}, {cases})))"
    )
    found: list[dict[str, float]] = in_fresh_process(code, **GIVES_MEMORY_BACK)
    return found


def peaks_by_length(lengths: Sequence[int]) -> list[dict[str, float]]:
    """Of everyone. The compiler of jax leaves holes in its process, so rax has one of its own."""
    cases = f"list(map(five_grades, {tuple(lengths)}))"
    found = peaks("[one for one in everyone() if not one.by_rax]", cases)
    if not rax_peers.AVAILABLE:
        return found
    by_rax = peaks("[one for one in everyone() if one.by_rax]", cases)
    return [{**one, **other} for one, other in zip(found, by_rax, strict=True)]


def memory_table(lengths: Sequence[int], found: Sequence[Mapping[str, float]]) -> Table:
    columns = [
        Column("bytes an item, by the length of the lists"),
        *(Column(f"{length:,}", figures) for length in lengths),
    ]
    rows = [[one.name, *(by_name.get(one.name) for by_name in found)] for one in everyone()]
    title = "Memory: what a call adds to the process at its peak"
    return Table(title, columns, rows, [MEMORY_NOTE, *NO_RAX])


MEMORY_NOTE = "`pmop-exact` works in blocks of a fixed size, and here few items share one."


# One long list -------------------------------------------------------------------------------

RANK_NET, EXACT = FIRST["pairwise"], FIRST["likelihood"]


def long_list() -> Lists:
    return five_grades(LONG).first(1)


def long_contenders() -> list[Contender]:
    """RankNet, ours and whoever else can do it, and PL-Partition."""
    return [one for one in everyone() if {one.name, one.same_as} & {RANK_NET, EXACT}]


def long_table(found: Mapping[str, Times], memory: Mapping[str, float]) -> Table:
    columns = [
        Column(f"one list of {LONG:,}, five grades"),
        Column("seconds", figures),
        Column("best", figures),
        Column(f"× {EXACT}", figures),
        Column("peak, MB", figures),
    ]
    rows = [
        [name, mine.median * LONG, mine.best * LONG, mine.over(found[EXACT]), memory[name] / 1e6]
        for name, mine in found.items()
    ]
    able = [one.name for one in long_contenders() if one.limit(10)]
    left_out = [name for name in able if name not in found]
    why = f"Left out, as all pairs at once would take too much memory: {', '.join(left_out)}."
    return Table("A long list: all pairs, or the likelihood", columns, rows, [why])


# Claims --------------------------------------------------------------------------------------


def long_claims(found: Mapping[str, Times], memory: Mapping[str, float]) -> Iterator[Claim]:
    case = f"one list of {LONG:,}, float32"
    yield Claim(f"{case}: peak memory of {RANK_NET}, GB", memory[RANK_NET] / 1e9, 2)
    for name in found:
        if name != EXACT:
            ratio = found[name].over(found[EXACT])
            yield Claim(f"{case}: {name} over {EXACT}", ratio, 100, at_least=True)


def agreement_claims(found: Mapping[str, Difference]) -> Iterator[Claim]:
    worst = max(max(difference) for difference in found.values())
    yield Claim("largest relative difference between peers of one name, float32", worst, 1e-4)


# The run -------------------------------------------------------------------------------------


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    rax_peers.use_threads(torch.get_num_threads())
    progress("compiling, if need be")
    warm_up(everyone())
    claims: list[Claim] = []
    if report.wants("peers"):
        same = differences(everyone())
        report.add(agreement_table(same))
        claims += agreement_claims(same)
    for family in filter(report.wants, FIRST):
        by_length = {}
        for length in plan.lengths:
            progress(f"{family}: lists of {length:,}")
            by_length[length] = times(of_family(family), five_grades(length), plan.budget)
        report.add(time_table(family, by_length))
    if report.wants("memory"):
        progress("memory")
        report.add(memory_table(plan.lengths, peaks_by_length(plan.lengths)))
    if report.wants("long"):
        progress(f"one list of {LONG:,}")
        long = times(long_contenders(), long_list(), LONG_BUDGET)
        (per_item,) = peaks("long_contenders()", "[long_list()]")
        long_memory = {name: peak * LONG for name, peak in per_item.items()}
        report.add(long_table(long, long_memory))
        claims += long_claims(long, long_memory)
    if report.wants("approximations"):
        progress("approximations")
        for table in approximations.tables(plan.approximated_tiers, plan.approximated_lists):
            report.add(table)
    if claims:
        report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(
        "Time every objective beside its peers.",
        ["torch", "numpy", *rax_peers.PACKAGES, "tierrank"],
        run,
        full=FULL,
        quick=QUICK,
        parts=("peers", *FIRST, "memory", "long", "approximations"),
    )
