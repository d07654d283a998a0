"""The exact likelihood of tiers beside its peers: speed, accuracy, growth, start-up.

    python benchmarks/likelihood.py            # under 6 minutes on 2 cores
    python benchmarks/likelihood.py --quick    # under 1 minute: fewer cases, fewer rounds

Every time is for a value and its gradient, forward and backward, on data that are ready: tiers
are built, ListMLE's scores lie sorted. The peers answer other questions (ListMLE wants a strict
order, RankNet looks at pairs, `log_softmax` at one winner); they are what people pay today.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from lists import Lists, few_of_many, five_grades, one_list, upper_tier
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
    error,
    extra_memory,
    figures,
    in_fresh_process,
    main,
    side_by_side,
)
from peers import from_tests, list_mle, log_softmax, midpoint, rank_net, value_and_gradient
from torch import Tensor

import tierrank as tr
from tierrank.losses import pl_lower_bound
from tierrank.plackett_luce import kernels

DTYPES = {"float32": torch.float32, "float64": torch.float64}

LOG_PROB, PLAIN = "log_prob (compiled)", "log_prob (plain torch)"
LIST_MLE, RANK_NET, LOG_SOFTMAX = "ListMLE (plain torch)", "RankNet (plain torch)", "log_softmax"
MIDPOINT = "midpoint rule, T = 10,000"
BUILD = "(Tiers.from_labels, once)"
OWN_SCORES, SHARED_SCORES = "log_prob, rest unwritten, [1, N]", "log_prob, rest unwritten, [N]"

MIDPOINT_ITEMS = 1_000  # of a case, for the midpoint rule, which is linear in them
MOST_PAIRS = 10**9  # for RankNet; 1,000,000 items would make 10^12


class Plan(NamedTuple):
    """How much to measure."""

    budget: float  # seconds for each contender of a case
    lengths: Sequence[int]  # of lists with five grades
    tiers: Sequence[int]  # sizes of one upper tier
    accuracy_tiers: Sequence[int]
    midpoint_items: Sequence[int]  # of lists with a top tier of 10
    growth_tiers: Sequence[int]
    growth_items: Sequence[int]
    starts: int  # fresh processes for each start-up time


FULL = Plan(
    budget=0.6,
    lengths=(10, 100, 1_000),
    tiers=(100, 1_000, 10_000),
    accuracy_tiers=(1, 10, 100, 1_000, 10_000),
    midpoint_items=(100, 1_000, 10_000, 100_000),
    growth_tiers=(10, 100, 1_000, 10_000, 100_000),
    growth_items=(1_000, 10_000, 100_000, 1_000_000),
    starts=5,
)
QUICK = Plan(
    budget=0.15,
    lengths=(100,),
    tiers=(1_000,),
    accuracy_tiers=(1, 100),
    midpoint_items=(1_000,),
    growth_tiers=(1_000, 10_000),
    growth_items=(10_000, 1_000_000),
    starts=2,
)


# Contenders ----------------------------------------------------------------------------------


def exact(scores: Tensor, tiers: tr.Tiers, kernel: kernels.Choice) -> Callable[[], object]:
    """`tr.log_prob`, compiled or plain."""
    run = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores, [len(tiers)])

    def with_kernel() -> object:
        with kernels.using(kernel):
            return run()

    return with_kernel


def contenders(lists: Lists, dtype: torch.dtype) -> dict[str, Task]:
    """What is timed on graded lists; RankNet only where its pairs can be counted out."""
    scores, flat = lists.scores.to(dtype), lists.scores.to(dtype).reshape(-1)
    in_order = scores.gather(1, lists.labels.argsort(dim=1, descending=True))
    part = lists.first(max(1, MIDPOINT_ITEMS // scores.shape[1]))
    by_midpoint = value_and_gradient(
        lambda w: midpoint(w, part.labels), part.scores.to(dtype), [len(part.labels)]
    )
    items = scores.numel()
    tasks = {
        LOG_PROB: Task(exact(flat, lists.tiers, "compiled"), items),
        PLAIN: Task(exact(flat, lists.tiers, "plain"), items),
        LIST_MLE: Task(value_and_gradient(list_mle, in_order, [len(scores)]), items),
        LOG_SOFTMAX: Task(log_softmax(scores), items),
        RANK_NET: Task(lambda: rank_net(scores, lists.labels), items),
        MIDPOINT: Task(by_midpoint, part.labels.numel()),
        BUILD: Task(lists.build, items),
    }
    if lists.pairs > MOST_PAIRS:
        del tasks[RANK_NET]
    return tasks


def catalogue_contenders(lists: Lists, dtype: torch.dtype) -> dict[str, Task]:
    """The same, and the list as a ranking over a catalogue whose rest is not written down."""
    tasks = contenders(lists, dtype)
    (scores,), (labels,) = lists.scores.to(dtype), lists.labels
    grades = range(int(labels.max()), 0, -1)
    ranking = [tuple((labels == grade).nonzero()[:, 0].tolist()) for grade in grades]
    tiers = tr.Tiers.from_rankings([ranking], items=len(labels), rest="last")
    return {
        LOG_PROB: tasks.pop(LOG_PROB),
        OWN_SCORES: Task(exact(scores[None], tiers, "compiled"), len(labels)),
        SHARED_SCORES: Task(exact(scores, tiers, "compiled"), len(labels)),
        **tasks,
    }


def warm_up() -> None:
    """Load and start threads, so that no first call is taken for a slow one."""
    lists = upper_tier(20_000)
    for dtype in DTYPES.values():
        scores = lists.scores[0].to(dtype)
        exact(scores, lists.tiers, "compiled")()
        log_softmax(scores)()


# Speed ---------------------------------------------------------------------------------------

Speeds = dict[str, dict[str, Times]]  # by data type, then contender


def speed_cases(plan: Plan) -> Iterator[Lists]:
    yield from map(five_grades, plan.lengths)
    yield from map(upper_tier, plan.tiers)
    yield few_of_many(1_000_000)


def speeds(lists: Lists, budget: float) -> Speeds:
    build = catalogue_contenders if lists.labels.numel() >= 1_000_000 else contenders
    return {name: side_by_side(build(lists, kind), budget) for name, kind in DTYPES.items()}


def speed_table(title: str, by_dtype: Speeds) -> Table:
    columns = [Column("ns an item")]
    for dtype in by_dtype:
        columns += [
            Column(dtype, figures),
            Column("best", figures),
            Column("× ListMLE", figures),
            Column("× log_softmax", figures),
        ]
    names = list(next(iter(by_dtype.values())))
    rows = [
        [name, *itertools.chain(*(_speed_cells(times, name) for times in by_dtype.values()))]
        for name in names
    ]
    left_out = "RankNet is left out: its pairs are more than 10^9."
    return Table(title, columns, rows, [] if RANK_NET in names else [left_out])


def _speed_cells(times: Mapping[str, Times], name: str) -> list[float]:
    mine = times[name]
    ratios = [mine.over(times[peer]) for peer in (LIST_MLE, LOG_SOFTMAX)]
    return [mine.median * 1e9, mine.best * 1e9, *ratios]


# Accuracy ------------------------------------------------------------------------------------

Value = Callable[[Tensor, Lists], Tensor]  # of flat scores


def _exact_by(kernel: kernels.Choice) -> Value:
    def value(scores: Tensor, lists: Lists) -> Tensor:
        with kernels.using(kernel):
            found: Tensor = tr.log_prob(scores, lists.tiers)
            return found

    return value


METHODS: dict[str, tuple[torch.dtype, Value]] = {
    "log_prob (compiled), float64": (torch.float64, _exact_by("compiled")),
    "log_prob (plain torch), float64": (torch.float64, _exact_by("plain")),
    "log_prob (compiled), float32": (torch.float32, _exact_by("compiled")),
    "log_prob (plain torch), float32": (torch.float32, _exact_by("plain")),
    "midpoint rule, T = 10,000, c = 5, float64": (
        torch.float64,
        lambda w, lists: midpoint(w[None], lists.labels),
    ),
    "PL-LB (lower bound), float64": (
        torch.float64,
        lambda w, lists: -pl_lower_bound(w, lists.tiers, reduction="none"),
    ),
}


def accuracy_cases(plan: Plan) -> Iterator[Lists]:
    """Lists, by the column they belong to. Scores are floats of 32 bits, the same for all."""
    for size in plan.accuracy_tiers:
        name = f"tiers of {size:,}"
        base = one_list(name, size, size)
        upper = base.labels == 1
        below = base.scores[~upper].logsumexp(0)
        spread = torch.rand(base.scores.shape, generator=torch.Generator().manual_seed(size)) * 80
        for d in (-40.0, -5.0, 0.0, 5.0, 40.0, spread - 40.0):  # relative to what is below
            yield Lists(name, base.labels, torch.where(upper, below + d, base.scores))
        yield base
    yield replace(five_grades(100).first(1), name="five grades, N = 100")
    if max(plan.accuracy_tiers) >= 10_000:
        yield replace(few_of_many(1_000_000), name="500 of 1,000,000")


class Errors(NamedTuple):
    value: float  # relative to max(1, |log P|)
    gradient: float  # absolute


def errors(lists: Lists, oracle: ModuleType) -> dict[str, Errors]:
    """Each method against 40 digits."""
    scores = lists.scores.reshape(-1).float()
    masks = [lists.labels.reshape(-1) == grade for grade in lists.labels.unique().flip(0)]
    tiers = [scores[mask] for mask in masks]
    value = oracle.log_prob_mp(tiers)
    gradient = np.concatenate([part.astype(float) for part in oracle.gradient_mp(tiers)])
    found = {}
    for name, (dtype, log_prob) in METHODS.items():
        leaf = scores.to(dtype).requires_grad_()
        ours = log_prob(leaf, lists)
        (slope,) = torch.autograd.grad(ours.sum(), leaf)
        by_tier = torch.cat([slope[mask] for mask in masks]).double().numpy()
        worst = float(np.abs(by_tier - gradient).max())
        found[name] = Errors(oracle.relative_error(ours, [value]), worst)
    return found


Worst = dict[str, dict[str, Errors]]  # by column, then method


def worst_errors(plan: Plan, oracle: ModuleType, progress: Progress) -> Worst:
    worst: Worst = {}
    for lists in accuracy_cases(plan):
        progress(f"accuracy: {lists.name}")
        so_far = worst.setdefault(lists.name, {})
        for method, found in errors(lists, oracle).items():
            known = so_far.get(method, Errors(0.0, 0.0))
            so_far[method] = Errors(*map(_worse, known, found))
    return worst


def _worse(one: float, other: float) -> float:
    return math.inf if math.isnan(other) else max(one, other)


def accuracy_tables(worst: Worst) -> Iterator[Table]:
    titles = {
        "value": "Largest error of log P, relative to max(1, |log P|)",
        "gradient": "Largest error of the gradient, absolute",
    }
    columns = [Column("against 40 digits"), *(Column(name, error) for name in worst)]
    for kind, title in titles.items():
        rows = [
            [method, *(getattr(by_method[method], kind) for by_method in worst.values())]
            for method in METHODS
        ]
        yield Table(title, columns, rows, [ACCURACY_NOTE] if kind == "value" else [])


ACCURACY_NOTE = (
    "Tiers stand over as many items. Scores relative to what is below (d): all −40, −5, 0, 5 or "
    "40, mixed from −40 to 40; and standard normal scores throughout, as in the last columns."
)


# The midpoint rule ---------------------------------------------------------------------------


def midpoint_table(sizes: Sequence[int], oracle: ModuleType) -> Table:
    """By how much its log P is off, with the paper's c and with one that suits long lists."""
    rows: list[list[Any]] = []
    for size in sizes:
        lists = one_list(f"{size:,} items", 10, size - 10)
        (scores,), (labels,) = lists.scores, lists.labels
        right = oracle.log_prob_mp([scores[labels == 1], scores[labels == 0]])
        found = [tr.log_prob(scores, lists.tiers)]
        found += [midpoint(lists.scores, lists.labels, c) for c in (5.0, -2.0)]
        off = [abs(float(value) - float(right)) for value in found]
        rows.append([lists.name, float(right), *off])
    columns = [Column("standard normal scores, a top tier of 10"), Column("log P", figures)]
    columns += [
        Column(name, lambda off: error(off) if off < 1e-2 else figures(off))
        for name in ("log_prob", "midpoint rule, c = 5", "midpoint rule, c = −2")
    ]
    return Table("The midpoint rule with T = 10,000: log P off by", columns, rows)


# Growth --------------------------------------------------------------------------------------

GROWERS: dict[str, Callable[[int], Lists]] = {"tier": upper_tier, "items": few_of_many}


def growth_times(kind: str, sizes: Sequence[int], budget: float) -> dict[str, dict[int, Times]]:
    """By data type (`log_softmax` in float32 only) and size; all sizes take turns."""
    names = [*DTYPES, LOG_SOFTMAX]
    tasks: dict[tuple[str, int], Task] = {}
    for size in sizes:
        lists = GROWERS[kind](size)
        for name, dtype in DTYPES.items():
            tasks[name, size] = Task(exact(lists.scores[0].to(dtype), lists.tiers, "compiled"))
        tasks[LOG_SOFTMAX, size] = Task(log_softmax(lists.scores[0].float()))
    times = side_by_side(tasks, budget)
    return {name: {size: times[name, size] for size in sizes} for name in names}


def steps(times: Mapping[int, Times]) -> list[float | None]:
    """How many times as long as the size before; nothing for the first."""
    return [None, *(after.over(before) for before, after in itertools.pairwise(times.values()))]


def peaks_here(kind: str, size: int) -> list[int]:
    """Peak extra bytes of `log_prob` and of `log_softmax`, float32, in this process."""
    warm_up()
    lists = GROWERS[kind](size)
    scores = lists.scores[0].float()
    runs = exact(scores, lists.tiers, "compiled"), log_softmax(scores)
    return [extra_memory(run) for run in runs]


def peaks(kind: str, size: int) -> list[int]:
    """The same, in a fresh process."""
    code = f"import likelihood; print(likelihood.peaks_here({kind!r}, {size}))"
    found: list[int] = in_fresh_process(code, **GIVES_MEMORY_BACK)
    return found


def growth_table(
    kind: str, times: Mapping[str, Mapping[int, Times]], memory: Mapping[int, Sequence[int]]
) -> Table:
    columns = [Column("tier size, and as many below" if kind == "tier" else "N", "{:,}".format)]
    for name in times:
        columns += [Column(f"{name}, ms", figures), Column("× the last", figures)]
    columns += [Column(f"{name}, MB", "{:.1f}".format) for name in ("log_prob", LOG_SOFTMAX)]
    by_column: list[Iterable[Any]] = [memory]
    for by_size in times.values():
        by_column += [[t.median * 1e3 for t in by_size.values()], steps(by_size)]
    by_column += zip(*([peak / 1e6 for peak in both] for both in memory.values()), strict=True)
    title = "the tier" if kind == "tier" else "N, with 500 items in three upper tiers"
    rows = list(zip(*by_column, strict=True))
    return Table(f"Growth with {title}: one list, value and gradient", columns, rows, [GROWTH_NOTE])


GROWTH_NOTE = (
    "`log_prob` in float32 and float64; `log_softmax` and memory in float32. Memory is what a "
    "call adds to the process at its peak, gradient included."
)


# A small call --------------------------------------------------------------------------------

VALUE, GRADIENT = "log_prob, value", "log_prob, value and gradient"


def call_times(budget: float) -> dict[str, Times]:
    """Ten lists of seven: what a call costs beside its arithmetic."""
    lists = replace(five_grades(7).first(10), name="10 lists of 7")
    scores, tiers = lists.scores.float(), lists.tiers
    flat = scores.reshape(-1)
    doubled = value_and_gradient(lambda w: 2.0 * w, flat, [flat.numel()])
    return side_by_side(
        {
            VALUE: Task(lambda: tr.log_prob(flat, tiers)),
            GRADIENT: Task(value_and_gradient(lambda w: tr.log_prob(w, tiers), flat, [10])),
            LIST_MLE: Task(value_and_gradient(list_mle, scores, [10])),
            "2 · scores, value and gradient": Task(doubled),
        },
        budget,
    )


def call_table(times: Mapping[str, Times]) -> Table:
    columns = [Column("microseconds"), Column("median", figures), Column("best", figures)]
    rows = [[name, t.median * 1e6, t.best * 1e6] for name, t in times.items()]
    return Table("A call on 10 lists of 7, float32", columns, rows)


# Start-up ------------------------------------------------------------------------------------

TORCH, FIRST_CALL = "import torch", "import tierrank and torch, first log_prob with gradient"
OBJECTIVE = "from tierrank.losses import pl_partition"
STARTS = {
    TORCH: "import torch",
    FIRST_CALL: """
import torch, tierrank as tr
scores, tiers = torch.zeros(4, requires_grad=True), tr.Tiers.from_labels([2, 1, 1, 0])
tr.log_prob(scores, tiers).sum().backward()
""",
    OBJECTIVE: "from tierrank.losses import pl_partition",
}


def start_up(starts: int) -> dict[str, Times]:
    """CPU seconds of whole processes, fresh ones, which take turns."""
    end = "\nimport time; print(time.process_time())"
    rounds = [[in_fresh_process(code + end) for code in STARTS.values()] for _ in range(starts)]
    return {name: Times(list(t)) for name, t in zip(STARTS, zip(*rounds, strict=True), strict=True)}


def start_up_table(times: Mapping[str, Times]) -> Table:
    columns = [Column("CPU seconds"), Column("median", figures), Column("best", figures)]
    rows = [[name, t.median, t.best] for name, t in times.items()]
    return Table("Start-up, in fresh processes", columns, rows)


# Claims --------------------------------------------------------------------------------------


# × ListMLE on presorted lists of 10, 100 and 1,000, by threads; the goals on one
MOST = {
    1: {"float32": (0.45, 0.35, 0.15), "float64": (0.5, 0.5, 0.25)},
    2: {"float32": (0.45, 0.40, 0.20), "float64": (0.45, 0.55, 0.22)},
}
GOALS = {"float32": (0.34, 0.22, 0.06), "float64": (None, None, None)}


def speed_claims(by_case: Mapping[str, Speeds]) -> Iterator[Claim]:
    def case(words: str) -> Speeds | None:
        return next((speeds for name, speeds in by_case.items() if words in name), None)

    threads = min(torch.get_num_threads(), 2)
    for dtype, limits in MOST[threads].items():
        goals = GOALS[dtype] if threads == 1 else (None, None, None)
        for length, limit, goal in zip((10, 100, 1_000), limits, goals, strict=True):
            speeds = case(f"lists of {length:,},")
            if speeds is not None:
                times, text = speeds[dtype], f"lists of {length:,}, {dtype}: log_prob over ListMLE"
                yield Claim(text, times[LOG_PROB].over(times[LIST_MLE]), limit, goal=goal)
    if not by_case:
        return
    hundred, million = case("lists of 100,"), case("list of 1,000,000:")
    assert hundred is not None
    assert million is not None
    text = "lists of 100, float32: the midpoint rule over log_prob"
    times = hundred["float32"]
    yield Claim(text, times[MIDPOINT].over(times[LOG_PROB]), 100, at_least=True)
    times = million["float32"]
    for name in (LOG_PROB, OWN_SCORES, SHARED_SCORES):
        text = f"N = 1,000,000, float32: {name} over log_softmax"
        yield Claim(text, times[name].over(times[LOG_SOFTMAX]), 1.0)


def call_claims(times: Mapping[str, Times]) -> Iterator[Claim]:
    yield Claim("10 lists of 7: microseconds of a value", times[VALUE].median * 1e6, 25)
    text = "10 lists of 7: microseconds of value and gradient"
    yield Claim(text, times[GRADIENT].median * 1e6, 110)


def growth_claims(by_tier: Mapping[str, Mapping[int, Times]]) -> Iterator[Claim]:
    for dtype in DTYPES:
        worst = max(step for step in steps(by_tier[dtype]) if step)
        yield Claim(f"{dtype}: ten times the tier size, at most", worst, 12)


def accuracy_claims(worst: Worst) -> Iterator[Claim]:
    for dtype, limits in (("float64", (1e-12, 1e-10)), ("float32", (1e-5, 1e-4))):
        for kind, limit in zip(Errors._fields, limits, strict=True):
            found = (
                getattr(worst[column][method], kind)
                for column, method in itertools.product(worst, METHODS)
                if method.startswith("log_prob") and method.endswith(dtype)
            )
            yield Claim(f"{dtype}: largest error of the {kind}", max(found), limit)


def start_claims(times: Mapping[str, Times]) -> Iterator[Claim]:
    yield Claim(
        "import of an objective over import torch", times[OBJECTIVE].over(times[TORCH]), 1.3
    )
    more = times[FIRST_CALL].median - times[TORCH].median
    yield Claim("CPU seconds of import and first call, beyond import torch", more, 0.3)


# The run -------------------------------------------------------------------------------------


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    oracle = from_tests("oracle")
    warm_up()
    by_case: dict[str, Speeds] = {}
    for lists in speed_cases(plan) if report.wants("speed") else ():
        progress(f"speed: {lists.name}")
        by_case[lists.name] = speeds(lists, plan.budget)
        report.add(speed_table(lists.name, by_case[lists.name]))
    claims = [*speed_claims(by_case)]
    if report.wants("errors"):
        worst = worst_errors(plan, oracle, progress)
        for table in accuracy_tables(worst):
            report.add(table)
        claims += accuracy_claims(worst)
    if report.wants("midpoint"):
        progress("the midpoint rule")
        report.add(midpoint_table(plan.midpoint_items, oracle))
    if report.wants("growth"):
        growth = {}
        for kind, sizes in (("tier", plan.growth_tiers), ("items", plan.growth_items)):
            progress(f"growth: {kind}")
            growth[kind] = growth_times(kind, sizes, plan.budget)
            memory = {size: peaks(kind, size) for size in sizes}
            report.add(growth_table(kind, growth[kind], memory))
        claims += growth_claims(growth["tier"])
    if report.wants("calls"):
        progress("a small call")
        call = call_times(plan.budget)
        report.add(call_table(call))
        progress("start-up")
        start = start_up(plan.starts)
        report.add(start_up_table(start))
        claims += [*call_claims(call), *start_claims(start)]
    if claims:
        report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    main(
        "Time the likelihood of tiers beside its peers.",
        ["torch", "numpy", "tierrank"],
        run,
        full=FULL,
        quick=QUICK,
        parts=("speed", "errors", "midpoint", "growth", "calls"),
    )
