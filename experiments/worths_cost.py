"""Figure 2 of Ma et al. (2021): time and memory of 1,000 steps with 20 lists, over items.

    python experiments/worths_cost.py
    python experiments/worths_cost.py --items 100 10000 --methods pl-partition ranknet

Every figure is taken in a process of its own, one after the other. A step takes 20 lists out of the
data, computes loss and gradient, and moves all scores by AdaGrad. Where 1,000 steps take longer
than the budget, fewer are timed, and the time is that of a step times 1,000.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from command import run
from extreme_report import PAPER, Report
from page import Cell, Table
from processes import ONE_THREAD
from worths_grid import Estimate, Panel, as_csv, estimate, panels_plot
from worths_jobs import Result, Settings, Store, run_cells
from worths_training import MAP, METHODS, PAPERS, Training, data_for, loss_of

from tierrank.tiers import Tiers

ITEMS = (100, 1_000, 10_000, 100_000, 1_000_000)
STEPS = 1_000
BATCHES = 5  # different ones, taken in turn
BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--items", type=int, nargs="+", default=list(ITEMS), metavar="N",
        help=f"sizes of the catalogue, 4 or more (default {' '.join(map(str, ITEMS))})",
    )  # fmt: skip
    parser.add_argument(
        "--methods", nargs="+", default=list(PAPERS), metavar="METHOD",
        choices=[name for name in METHODS if name != MAP],
        help="of the paper's six, the default, and pl-efron",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3, help="how many (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (default 0)")
    parser.add_argument(
        "--budget", type=float, default=20.0, metavar="SECONDS",
        help="of the steps that are timed (default 20); at least one is",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="SECONDS",
        help="of a process in all, with drawing the data; then it is ended (default 300)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, default=1, help="of a process (default 1)")
    parser.add_argument(
        "--out", type=Path, default=Path("out", "worths-cost"), metavar="DIR",
        help="where results and finished cells go (default out/worths-cost)",
    )  # fmt: skip
    return parser


def perform(cell: Settings) -> Result:
    """Measure in a fresh process; one that does not come to an end says why."""
    environment = dict.fromkeys(ONE_THREAD, str(cell["threads"]))
    # glibc keeps blocks for itself otherwise, and what is asked for next would hide there
    environment |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--measure", json.dumps(dict(cell))]
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True,
            timeout=cell["limit"],
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {cell['limit']:g} s"}
    if done.returncode < 0:
        return {"failed": f"ended by signal {-done.returncode}: memory may have run out"}
    if done.returncode:
        raise ValueError(f"measuring failed: {done.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(cell: Settings) -> Result:
    """Seconds of 1,000 steps and bytes by which the process grows. For a fresh process."""
    sys.path.append(str(BENCHMARKS))  # behind this folder: both have a command.py
    from measure import extra_memory, peak_memory

    torch.set_num_threads(cell["threads"])
    batch = Training().batch
    Steps(cell["method"], data_for(cell["method"], 100, 2 * batch, 0)[1]).run(2, 60.0)  # compiles
    _, tiers = data_for(cell["method"], cell["items"], BATCHES * batch, cell["seed"])
    steps = Steps(cell["method"], tiers)
    timed: list[tuple[int, float]] = []
    grown = extra_memory(lambda: timed.append(steps.run(STEPS, cell["budget"])))
    count, seconds = timed[0]
    return {
        "seconds": seconds / count * STEPS, "timed steps": count, "memory": grown,
        "process": peak_memory(),
    }  # fmt: skip


class Steps:
    """AdaGrad on a method's loss, as `worths_training.train` does it, without early stopping."""

    def __init__(self, method: str, tiers: Tiers) -> None:
        self.loss = loss_of(method)
        self.tiers = tiers
        self.batches = torch.arange(len(tiers)).split(Training().batch)

    def run(self, most: int, budget: float) -> tuple[int, float]:
        """Take steps until there are enough or the time is up; give their number and seconds."""
        start = time.perf_counter()
        scores = torch.zeros(self.tiers.n_items or 0, requires_grad=True)
        optimiser = torch.optim.Adagrad([scores], lr=Training().rate)
        for step in range(1, most + 1):
            optimiser.zero_grad()
            self.loss(scores, self.tiers[self.batches[step % len(self.batches)]]).backward()
            optimiser.step()
            seconds = time.perf_counter() - start
            if seconds > budget:
                break
        return step, seconds


def experiment(chosen: argparse.Namespace) -> None:
    """Measure what is not measured yet, and write the figure."""
    for name, least in (("seeds", 1), ("threads", 1), ("budget", 0.001), ("limit", 1)):
        if getattr(chosen, name) < least:
            raise ValueError(f"--{name} is {least} or more, not {getattr(chosen, name)}")
    if min(chosen.items) < 4:
        raise ValueError(f"--items {min(chosen.items)}: at least 4 are needed")
    cells: list[dict[str, Any]] = [
        {"method": method, "items": items, "seed": seed, "threads": chosen.threads,
         "budget": chosen.budget, "limit": chosen.limit}
        for items in sorted(set(chosen.items))
        for method in dict.fromkeys(chosen.methods)
        for seed in range(chosen.seed, chosen.seed + chosen.seeds)
    ]  # fmt: skip
    results = run_cells(cells, perform, Store(chosen.out))
    figures = [{**cell, **result} for cell, result in zip(cells, results, strict=True)]
    figure_2(figures).publish(chosen.out)


Figures = Sequence[Mapping[str, Any]]

MEGABYTE = 2**20
COLUMNS = (
    "method", "items", "seed", "threads", "seconds", "timed steps", "memory", "process", "failed"
)  # fmt: skip
NOTES = (
    "Time is of 1,000 steps, each with taking the lists out of the data, loss, gradient and "
    "AdaGrad's move of all scores. Where fewer steps were timed, it is that of a step times 1,000.",
    "Memory is by how much the process grows while it takes the steps, at the peak: scores, "
    "AdaGrad's sums, gradients and whatever the loss needs. Lists and libraries are there before.",
    "The paper's figures are of a GPU, where all pairs are held in memory at once. Sums over pairs "
    "are compiled here and hold no pair: their memory grows with lists times items, their time "
    "with the pairs.",
)


def figure_2(figures: Figures) -> Report:
    """Time and memory against N."""
    items = sorted({figure["items"] for figure in figures})
    methods = [method for method in METHODS if any(f["method"] == method for f in figures)]
    panels = [
        Panel("Time of 1,000 steps, seconds", "N, items", items, {
            m: [_mean(figures, m, n, "seconds", 1) for n in items] for m in methods
        }),
        Panel("Memory that they take, MB", "N, items", items, {
            m: [_mean(figures, m, n, "memory", MEGABYTE) for n in items] for m in methods
        }),
    ]  # fmt: skip
    lines = [{name: figure.get(name) for name in COLUMNS} for figure in figures]
    return Report(
        stem="figure-2",
        title="Figure 2: what 1,000 steps cost",
        introduction=[f"Section 4.1 of {PAPER}: time and memory over the number of items."],
        tables=[
            _table("Seconds of 1,000 steps of 20 lists", figures, items, methods, "seconds", 1),
            _table("Memory, MB", figures, items, methods, "memory", MEGABYTE),
        ],
        plot=panels_plot([panels], ""),
        caption="Time and memory of 1,000 steps with 20 lists against the number of items N.",
        settings={
            "batch": "20 lists, cut into 4 tiers with at most 500 items above the rest",
            "seeds": str(len({figure["seed"] for figure in figures})),
            "threads": str(figures[0]["threads"]),
            "budget": f"{figures[0]['budget']:g} s of steps, and {figures[0]['limit']:g} s in all",
        },
        notes=NOTES,
        csv=as_csv(lines),
        more={"figures": list(figures)},
    )


def _of(figures: Figures, method: str, items: int) -> Figures:
    return [f for f in figures if (f["method"], f["items"]) == (method, items)]


def _mean(figures: Figures, method: str, items: int, what: str, unit: float) -> Estimate | None:
    """Over the seeds; None where one of them did not come to an end, or nothing was to be seen."""
    values = [figure.get(what) for figure in _of(figures, method, items)]
    return estimate([value / unit for value in values]) if all(values) else None


def _table(
    title: str, figures: Figures, items: Sequence[int], methods: Sequence[str], what: str,
    unit: float,
) -> Table:  # fmt: skip
    """A row a number of items; in small print how many steps were timed, if not all."""
    rows = []
    for n in items:
        cells = [Cell(f"N = {n:,}")]
        for method in methods:
            own = _of(figures, method, n)
            mean = _mean(figures, method, n, what, unit)
            failed = next((f["failed"] for f in own if "failed" in f), None)
            steps = min((f.get("timed steps", 1000) for f in own), default=1000)
            fewer = f"{steps} timed" if steps < 1000 and what == "seconds" else ""
            text = failed or (three_figures(mean.mean) if mean else f"{0:.1f}")
            cells.append(Cell(text, fewer))
        rows.append(cells)
    return Table(title, ["", *(METHODS[method] for method in methods)], rows)


def three_figures(value: float) -> str:
    """0.0123, 1.23, 12.3, 1,230."""
    rounded = float(f"{value:.2e}")
    decimals = max(0, 2 - int(f"{value:.2e}".partition("e")[2]))
    return f"{rounded:,.{decimals}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run; None: with the arguments of the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--measure"]:
        print(json.dumps(measure(json.loads(given[1]))))
    else:
        run(options(), experiment, given)


if __name__ == "__main__":
    main()
