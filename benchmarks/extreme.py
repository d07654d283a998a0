"""Training over huge label sets: seconds a step and memory, with all labels and with samples.

    python benchmarks/extreme.py                 # about 10 minutes on 2 cores
    python benchmarks/extreme.py --quick         # about 1 minute: fewer labels, fewer rounds
    python benchmarks/extreme.py --only sharded  # labels over two processes alone

A step is all that training does with a batch of 128 rows: sparse input layer, ReLU, hidden layer of
256, the loss over all labels, gradients, and Adam. Rows and label sets are random, the labels by
Zipf's law, because what they say does not matter here. Contenders take turns.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
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
    peak_memory,
    side_by_side,
)
from scipy.sparse import csr_matrix
from torch import Tensor

import tierrank as tr
from tierrank.extreme.head import FusedObjective, Loss
from tierrank.extreme.learner import LabelBatches, LabelLearner, RowOptimiser
from tierrank.extreme.network import Network
from tierrank.extreme.samplers import sampler_from
from tierrank.extreme.sharding import Shards
from tierrank.ranks import ALONE

BATCH, HIDDEN, BATCHES = 128, 256, 8
MB, GB = 1e6, 1e9
SLOWER_THAN_SOFTMAX = 1.1
EXTRA_MB = 200.0
MOST_GB = 16.0
GROWTH = 1.2
TWO_RANKS = 0.62
MORE_BYTES = 1.05


class Case(NamedTuple):
    """A problem: sizes, labels a row, and the labels that are drawn in a step (0: all count)."""

    labels: int
    features: int
    labels_a_row: int
    negatives: int = 0
    sampler: str = "uniform"
    hidden: int = HIDDEN


class Plan(NamedTuple):
    """What to measure."""

    head: Case
    pairwise: Case
    sampled: list[tuple[str, int]]
    few: int
    many: int
    features: int
    seconds: float
    sharded: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    largest: int = 10_000_000
    spread: int = 1_000_000  # features, of more weights than each rank holds


FULL = Plan(
    head=Case(205_443, 10_000, 75),
    pairwise=Case(30_938, 10_000, 19),
    sampled=[("uniform", 1_000), ("uniform", 10_000), ("frequency", 1_000), ("in-batch", 1)],
    few=100_000,
    many=1_000_000,
    features=100_000,
    seconds=20.0,
)
QUICK = FULL._replace(
    head=Case(20_000, 1_000, 75),
    pairwise=Case(5_000, 1_000, 19),
    sampled=[("uniform", 1_000), ("in-batch", 1)],
    few=20_000,
    many=100_000,
    features=10_000,
    seconds=2.0,
    sharded=(1_000, 10_000, 100_000),
    largest=500_000,
)


def softmax(scores: Tensor, tiers: tr.Tiers) -> Tensor:
    """Cross-entropy of softmax(scores) with a row's labels, each equally probable."""
    rest = tiers.list_offsets[1:] - 1  # the last tier of each short list is the rest, one label
    last = tiers.tier_offsets[rest]
    sizes = tiers.lengths
    list_of = torch.repeat_interleave(sizes)
    largest = scores.detach().max()
    total = torch.zeros(len(tiers)).index_add(0, list_of, (scores - largest).exp())
    of_labels = torch.zeros(len(tiers)).index_add(0, list_of, scores) - scores[last]
    return largest + total.log() - of_labels / (sizes - 1)


class Trainer:
    """A learner of random first weights, and batches to go round in."""

    def __init__(
        self, case: Case, objective: str | Loss = "pl-partition", shards: Shards | None = None
    ) -> None:
        X, Y = random_rows(case)
        ranks = ALONE if shards is None else shards.labels
        self.network = Network(case.features, case.labels, (case.hidden,), ranks=ranks)
        self.network.reset()
        sampler = None
        if case.negatives:
            sampler = sampler_from(case.sampler, case.negatives, Y, BATCH)  # type: ignore[arg-type]
        parameters = {name: each.detach() for name, each in self.network.named_parameters()}
        lazy = case.negatives > 0 or case.features > 20_000
        optimiser = RowOptimiser(parameters, name="adam", learning_rate=1e-3, lazy=lazy)
        self.learner = LabelLearner(self.network, optimiser, objective, sampler, shards=shards)
        batches = LabelBatches(X, Y, None, size=BATCH, seed=0)
        batches.begin(0)
        share, device = self.learner.share, self.learner.device
        self.batches = cycle([batches.load(step, share, device) for step in range(len(batches))])

    def step(self) -> None:
        self.learner.learn(next(self.batches), False)

    @property
    def held(self) -> int:
        """Bytes of weights and what the optimiser remembers."""
        return 3 * sum(each.nbytes for each in self.network.parameters())


def random_rows(case: Case) -> tuple[Any, Any]:
    """Rows of 100 features, and labels by Zipf's law."""
    rng = np.random.default_rng(0)
    rows = BATCH * BATCHES
    X = csr_matrix(
        (
            np.full(rows * 100, 0.1, np.float32),
            rng.integers(case.features, size=rows * 100),
            np.arange(rows + 1) * 100,
        ),
        shape=(rows, case.features),
    )
    drawn = (case.labels ** rng.random(rows * case.labels_a_row) - 1).astype(np.int64)
    Y = csr_matrix(
        (np.ones(len(drawn), np.float32), drawn, np.arange(rows + 1) * case.labels_a_row),
        shape=(rows, case.labels),
    )
    for matrix in (X, Y):
        matrix.sum_duplicates()
    return X, Y


def time_head(case: Case, objectives: dict[str, str | Loss], seconds: float) -> dict[str, Times]:
    """Seconds a step of several objectives over all labels, on the same network and batches."""
    trainer = Trainer(case)
    tasks = {}
    for name, objective in objectives.items():
        found = FusedObjective.of(objective)

        def step(objective: FusedObjective = found) -> None:
            trainer.learner.objective = objective
            trainer.step()

        tasks[name] = Task(step)
    return side_by_side(tasks, seconds)


def naive_step(case: Case) -> Any:
    """The same step of softmax by whole matrices in plain torch, the textbook's way."""
    trainer = Trainer(case)
    network = trainer.network
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        rows, tiers, _ = next(trainer.batches)
        scores = network(rows) @ network.labels.T + network.label_bias
        wanted = torch.zeros_like(scores)
        of = torch.repeat_interleave(tiers.lengths)
        wanted[of, tiers.items] = 1 / tiers.lengths[of]
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(scores, wanted).backward()
        optimiser.step()

    return step


def memory_of(case: Case, way: str) -> dict[str, float]:
    """Bytes that a training holds, and by which a step makes the process grow at the peak."""
    code = (
        f"import extreme, json\nprint(json.dumps(extreme.memory_here(extreme.{case!r}, {way!r})))"
    )
    found: dict[str, float] = in_fresh_process(code, **GIVES_MEMORY_BACK)
    return found


def memory_here(case: Case, way: str) -> dict[str, float]:
    """The same in this process, which must be fresh."""
    small = case._replace(labels=1_000)
    if way == "naive":
        naive_step(small)()
        step = naive_step(case)
        held = 0
        first = extra_memory(step)  # Adam's memory is made in the first step
        return {"held": held, "extra": first, "peak": peak_memory()}
    Trainer(small).step()
    trainer = Trainer(case)
    trainer.step()
    return {"held": trainer.held, "extra": extra_memory(trainer.step), "peak": peak_memory()}


def head_table(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """What objectives cost over all labels."""
    rows: list[list[Any]] = []
    claims = []
    likelihoods: dict[str, str | Loss] = {
        name: name for name in ("pl-partition", "pl-lb", "pl-efron")
    }
    cases = [
        (plan.head, {"softmax": softmax, **likelihoods}),
        (plan.pairwise, {"softmax": softmax, **likelihoods, "ranknet": "ranknet",
                         "ranksvm": "ranksvm"}),
    ]  # fmt: skip
    for case, objectives in cases:
        progress(f"{case.labels:,} labels: objectives")
        times = time_head(case, objectives, plan.seconds)
        for name, each in times.items():
            ratio = each.over(times["softmax"])
            rows.append([f"{name}, {case.labels:,} labels", each.median, ratio])
            if case is plan.head and name == "pl-partition":
                claims.append(
                    Claim(f"{case.labels:,} labels: a step, {name} over softmax, same head",
                          ratio, SLOWER_THAN_SOFTMAX)
                )  # fmt: skip
    progress(f"{plan.pairwise.labels:,} labels: whole matrices")
    trainer = Trainer(plan.pairwise, softmax)
    both = {"fused": Task(trainer.step), "naive": Task(naive_step(plan.pairwise))}
    times = side_by_side(both, plan.seconds)
    rows.append([
        f"softmax by whole matrices in torch, {plan.pairwise.labels:,} labels",
        times["naive"].median, times["naive"].over(times["fused"]),
    ])  # fmt: skip
    columns = [Column("a step of"), Column("seconds", figures), Column("over softmax", figures)]
    return Table("All labels in every step", columns, rows), claims


def memory_table(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """What a step needs besides weights and optimiser."""
    rows: list[list[Any]] = []
    claims = []
    for labels in (plan.head.labels // 2, plan.head.labels):
        case = plan.head._replace(labels=labels)
        for way in ("fused", "naive"):
            progress(f"{labels:,} labels: memory, {way}")
            found = memory_of(case, way)
            if way == "naive":
                found["extra"] -= 2 / 3 * rows[-1][1] * MB  # its first step makes Adam's moments
                found["held"] = rows[-1][1] * MB
            name = f"{way}, {labels:,} labels"
            rows.append([name, found["held"] / MB, found["extra"] / MB, found["peak"] / MB])
    text = f"{plan.head.labels:,} labels: MB of a step besides weights and Adam's moments"
    claims.append(Claim(text, rows[-2][2], EXTRA_MB))
    columns = [
        Column("a step"), Column("weights and Adam, MB", figures), Column("besides, MB", figures),
        Column("whole process, MB", figures),
    ]  # fmt: skip
    notes = [
        "Besides: growth of the process at the peak of a step. The naive way holds scores, their "
        "gradient and that of all weights; the fused one a block of each."
    ]
    return Table("Memory", columns, rows, notes), claims


def sampled_table(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """How a step's time grows with the labels, with and without sampling."""
    rows: list[list[Any]] = []
    claims = []
    ways: list[tuple[str, int]] = [("all labels", 0), *plan.sampled]
    for sampler, negatives in ways:
        name = sampler if sampler in ("all labels", "in-batch") else f"{negatives:,} {sampler}"
        progress(f"{plan.few:,} and {plan.many:,} labels: {name}")
        tasks = {}
        for labels in (plan.few, plan.many):
            case = Case(labels, plan.features, 20, negatives, sampler)
            tasks[labels] = Task(Trainer(case).step)
        times = side_by_side(tasks, plan.seconds)
        growth = times[plan.many].over(times[plan.few])
        rows.append([name, times[plan.few].median, times[plan.many].median, growth])
        if negatives:
            text = f"{name}: a step at {plan.many:,} labels over one at {plan.few:,}"
            claims.append(Claim(text, growth, GROWTH))
    for sampler, negatives in ways[:2]:
        progress(f"{plan.many:,} labels: memory, {sampler}")
        found = memory_of(Case(plan.many, plan.features, 20, negatives, sampler), "fused")
        text = f"{plan.many:,} labels, {sampler}: GB of the whole process at the peak"
        claims.append(Claim(text, found["peak"] / GB, MOST_GB))
    columns = [Column("a step looks at"), *(
        Column(f"seconds, {labels:,} labels", figures) for labels in (plan.few, plan.many)
    ), Column("ratio", figures)]  # fmt: skip
    notes = [f"{plan.features:,} features; 20 labels a row; lazy Adam for rows not touched."]
    return Table("Growth with the number of labels", columns, rows, notes), claims


class Ranks:
    """Processes of one thread that share the labels and take a step when they are told."""

    def __init__(self, case: Case, ranks: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        here = os.pathsep.join(
            filter(None, [str(Path(__file__).parent), os.getenv("PYTHONPATH")])
        )  # fmt: skip
        common = {
            "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONPATH": here,
        }  # fmt: skip
        code = f"import extreme\nextreme.rank_here(extreme.{case!r})"
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=os.environ | common | {"RANK": str(rank)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        self.sent, self.peak = self.answers()

    def answers(self) -> tuple[int, int]:
        """Bytes of a step that ranks put together, and of the largest process so far."""
        said = []
        for process in self.processes:
            assert process.stdout is not None
            said.append([int(word) for word in process.stdout.readline().split()])
        return said[0][0], max(peak for _, peak in said)

    def step(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("step\n")
            process.stdin.flush()
        self.sent, self.peak = self.answers()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def rank_here(case: Case) -> None:
    """Be one of `Ranks`."""
    torch.set_num_threads(1)
    shards = Shards.join(torch.device("cpu"))
    trainer = Trainer(case, shards=shards)
    said = sys.stdin
    while True:
        before = shards.sent
        trainer.step()
        print(shards.sent - before, peak_memory(), flush=True)
        if not said.readline():
            return


def sharded_table(plan: Plan, progress: Progress) -> tuple[Table, list[Claim]]:
    """What labels over two ranks cost: time, and what travels."""
    rows: list[list[Any]] = []
    claims = []
    sent: list[int] = []
    ratios: list[float] = []
    cases = [Case(labels, plan.features, 20) for labels in plan.sharded]
    cases.append(Case(plan.sharded[0], plan.spread, 20, hidden=64))  # with features spread, too
    for case in cases:
        progress(f"{case.labels:,} labels, {case.features:,} features: one rank and two")
        with Ranks(case, 1) as one, Ranks(case, 2) as two:
            both = {"one": Task(one.step), "two": Task(two.step)}
            times = side_by_side(both, plan.seconds)
            ratios.append(times["two"].over(times["one"]))
            sent.append(two.sent)
            rows.append([
                f"{case.labels:,} labels, {case.features:,} features, {case.hidden} hidden",
                times["one"].median, times["two"].median, ratios[-1], two.sent / 1e3,
                one.peak / GB, two.peak / GB,
            ])  # fmt: skip
    ratio, sent = ratios[-2], sent[:-1]
    text = f"{plan.sharded[-1]:,} labels: a step of two ranks with a thread each over one with one"
    claims.append(Claim(text, ratio, TWO_RANKS))
    text = f"bytes a step, {plan.sharded[-1]:,} labels over {plan.sharded[0]:,}"
    claims.append(Claim(text, max(sent) / min(sent), MORE_BYTES))
    progress(f"{plan.largest:,} labels: two ranks")
    case = Case(plan.largest, plan.features, 20, hidden=64)
    with Ranks(case, 2) as two:
        times = side_by_side({"two": Task(two.step)}, plan.seconds)
        rows.append([
            f"{case.labels:,} labels, {case.features:,} features, {case.hidden} hidden", None,
            times["two"].median, None, two.sent / 1e3, None, two.peak / GB,
        ])  # fmt: skip
    columns = [
        Column("a step"), Column("one rank, s", figures), Column("two ranks, s", figures),
        Column("ratio", figures), Column("kB put together", figures),
        Column("one rank, GB", figures), Column("each of two, GB", figures),
    ]  # fmt: skip
    notes = [
        "One thread a rank, gloo on loopback. Put together: what a rank brings to the sums of a "
        "step; in a ring of R it sends 2 (R − 1) / R times that."
    ]
    return Table("Labels over ranks", columns, rows, notes), claims


PARTS = {"head": head_table, "memory": memory_table, "growth": sampled_table,
         "sharded": sharded_table}  # fmt: skip


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    kept: list[Claim] = []
    for part, measure in PARTS.items():
        if report.wants(part):
            table, claims = measure(plan, progress)
            report.add(table)
            kept += claims
    report.add(claims_table(kept))
    return kept


if __name__ == "__main__":
    main(
        "Time and weigh training steps over huge label sets.",
        ["torch", "numpy", "scipy", "tierrank"],
        run,
        full=FULL,
        quick=QUICK,
        parts=tuple(PARTS),
    )
