"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from measure import Claim, Column, Progress, Report, Table, machine

Plan = TypeVar("Plan")
Measure = Callable[[Plan, Report, Progress], list[Claim]]


def main(
    description: str, packages: Sequence[str], measure: Measure[Plan], full: Plan, quick: Plan
) -> None:
    """Read the options, say what the machine is, measure by the full plan or the quick one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer cases, fewer rounds")
    parser.add_argument("--threads", type=int, help="threads for all (default: torch's choice)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--markdown", action="store_true", help="tables to paste")
    chosen = parser.parse_args()
    if chosen.threads:
        os.environ["OMP_NUM_THREADS"] = str(chosen.threads)  # for fresh processes
        torch.set_num_threads(chosen.threads)
    progress = Progress()
    report = Report(chosen.markdown, progress)
    about = machine(torch.get_num_threads(), packages)
    report.add(Table("Machine", [Column("what"), Column("which")], list(about.items())))
    claims = measure(quick if chosen.quick else full, report, progress)
    if chosen.json:
        report.save(chosen.json, machine=about, claims=[claim.raw() for claim in claims])
