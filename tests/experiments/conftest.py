"""The experiments are programs beside the package: their modules are found in their folder."""

import csv
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.append(str(EXPERIMENTS))


@pytest.fixture(scope="session")
def write_rows():
    """Writes rows as a LETOR file."""

    def write(path, X, y, qid):
        lines = (
            f"{label:g} qid:{query} " + " ".join(f"{i}:{v:.17g}" for i, v in enumerate(row, 1))
            for row, label, query in zip(X, y, qid, strict=True)
        )
        path.write_text("".join(f"{line}\n" for line in lines))

    return write


class Left(NamedTuple):
    """What a run leaves behind."""

    folder: Path
    lines: list[dict[str, str]]
    more: dict[str, Any]
    page: str


@pytest.fixture(scope="session")
def run_quickly(tmp_path_factory):
    """Runs an experiment on little data with few steps, and reads what it leaves."""

    def run(program, data, *arguments):
        out = tmp_path_factory.mktemp("run") / "out"
        program.main(["--data", str(data), "--out", str(out), "--quick", *arguments])
        with (out / "table.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        more = json.loads((out / "table.json").read_text())
        return Left(out, lines, more, (out / "page.html").read_text())

    return run


@pytest.fixture(scope="session")
def parts(tmp_path_factory, write_rows):
    """Five parts of 12 queries, whose labels go with the product of the first two features."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data") / "products"
    folder.mkdir()
    for part in range(5):
        X = random.normal(size=(96, 4))
        signal = X[:, 0] * X[:, 1] + 0.1 * random.normal(size=96)
        y = np.digitize(signal, [0.3, 1.0])
        write_rows(folder / f"S{part + 1}.txt", X, y, 100 * part + np.repeat(np.arange(12), 8))
    return folder
