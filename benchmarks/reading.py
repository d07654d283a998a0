"""Reading ranking and multi-label files, beside scikit-learn and napkinXC.

    python benchmarks/reading.py                 # a few minutes on 2 cores
    python benchmarks/reading.py --quick         # fewer rows, fewer rounds
    python benchmarks/reading.py --rows 1000000  # as many as you like

All give labels and features (and queries) of a plain text file that was just written, so that it
is in the memory of the system; they take turns. What they give is compared first. MQ2008 and
Delicious are read where they are found: in `$TIERRANK_DATA`, or else in `../shared/data` relative
to the clone. Multi-label files have a tenth of the rows.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from measure import (
    Claim,
    Column,
    Progress,
    Report,
    Table,
    Task,
    Times,
    claims_table,
    figures,
    main,
    side_by_side,
)
from napkinxc.datasets import load_libsvm_file
from sklearn.datasets import load_svmlight_file

from tierrank.data import (
    MultiLabelData,
    RankingData,
    read_letor,
    read_table,
    read_xc,
    write_letor,
    write_table,
    write_xc,
)

DATA = Path(os.environ.get("TIERRANK_DATA", Path(__file__).parents[2] / "shared" / "data"))

OURS, THEIRS = "tierrank.data.read_letor", "sklearn load_svmlight_file"
QUERY = 100  # rows
DENSE, SPARSE, NAMED = 46, 700, 0.1  # features, and how many of the sparse ones a row names
DIGITS = 6

OURS_XC, THEIRS_XC = "tierrank.data.read_xc", "sklearn load_svmlight_file, multilabel"
NAPKIN = "napkinXC load_libsvm_file"
EURLEX = (5_000, 236), (3_993, 5)  # features and labels: how many, and in a row (Eurlex-4K's)


class Plan(NamedTuple):
    """How much to measure."""

    budget: float  # seconds for each reader of a file
    rows: int


FULL = Plan(budget=20.0, rows=200_000)
QUICK = Plan(budget=2.0, rows=20_000)


# Files ---------------------------------------------------------------------------------------


def synthetic(rows: int, sparse: bool) -> RankingData:
    """Grades, queries of 100 rows, and features that are uniform between 0 and 1."""
    rng = np.random.default_rng(0)
    if sparse:
        X: Any = scipy.sparse.random(rows, SPARSE, NAMED, format="csr", random_state=rng)
    else:
        X = rng.random((rows, DENSE))
    return RankingData(X, rng.integers(0, 5, rows).astype(float), np.arange(rows) // QUERY)


def files(folder: Path, rows: int, progress: Progress) -> Iterator[tuple[str, Path]]:
    """Text files, and what they are."""
    for kind, features in (("dense", DENSE), ("sparse", SPARSE)):
        progress(f"writing {rows:,} {kind} rows")
        path = folder / f"{kind}.txt"
        data = synthetic(rows, sparse=kind == "sparse")
        write_letor(path, data.X, data.y, data.qid, precision=DIGITS)
        yield f"{kind}, {rows:,} × {features}", path
    parts = [DATA / "mq2008" / f"S{i}.txt.xz" for i in range(1, 6)]
    if all(part.is_file() for part in parts):
        path = folder / "mq2008.txt"
        path.write_bytes(b"".join(lzma.decompress(part.read_bytes()) for part in parts))
        yield "MQ2008, all parts", path


def synthetic_xc(rows: int) -> MultiLabelData:
    """As many features and labels as Eurlex-4K, uniform; in a row some are drawn twice."""
    rng = np.random.default_rng(0)

    def matrix(columns: int, a_row: int) -> Any:
        drawn = rng.integers(0, columns, rows * a_row)
        data = np.ones(len(drawn), dtype=np.float32)
        found = scipy.sparse.csr_matrix(
            (data, drawn, np.arange(rows + 1) * a_row), shape=(rows, columns)
        )
        found.sum_duplicates()
        found.data[:] = 1
        return found

    X, Y = (matrix(*sizes) for sizes in EURLEX)
    X.data = rng.random(X.nnz).round(DIGITS).astype(np.float32)
    return MultiLabelData(X, Y)


def xc_files(folder: Path, rows: int, progress: Progress) -> Iterator[tuple[str, Path]]:
    """Multi-label files, and what they are."""
    progress(f"writing {rows:,} multi-label rows")
    path = folder / "xc.txt"
    write_xc(path, synthetic_xc(rows))
    (features, _), (labels, _) = EURLEX
    yield f"multi-label, {rows:,} × {features:,}, {labels:,} labels", path
    part = DATA / "delicious" / "train.txt.xz"
    if part.is_file():
        path = folder / "delicious.txt"
        path.write_bytes(lzma.decompress(part.read_bytes()))
        yield "Delicious, train", path


# Readers -------------------------------------------------------------------------------------


def check_same(path: Path) -> None:
    """Both readers give the same numbers."""
    data = read_letor(path)
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    ours = scipy.sparse.csr_matrix(data.X)
    if (ours != X).nnz or (data.y != y).any() or (data.qid != qid).any():
        raise RuntimeError(f"{OURS} and {THEIRS} do not read the same from {path.name}")


def times(path: Path, budget: float) -> dict[str, Times]:
    tasks = {
        OURS: Task(lambda: read_letor(path)),
        THEIRS: Task(lambda: load_svmlight_file(str(path), query_id=True)),
    }
    return side_by_side(tasks, budget)


def xc_readers(path: Path) -> dict[str, Callable[[], Any]]:
    """What gives features and labels: ours, and others'."""
    n_features = read_xc(path).n_features
    return {
        OURS_XC: lambda: read_xc(path),
        THEIRS_XC: lambda: load_svmlight_file(  # the offset skips the header
            str(path), n_features=n_features, dtype=np.float32, multilabel=True, zero_based=True,
            offset=1,
        ),
        NAPKIN: lambda: load_libsvm_file(str(path), labels_format="csr_matrix"),
    }  # fmt: skip


def check_same_xc(path: Path) -> None:
    """All readers give the same numbers."""
    readers = xc_readers(path)
    data = readers[OURS_XC]()
    X, label_sets = readers[THEIRS_XC]()
    labels = np.concatenate([np.sort(labels) for labels in label_sets])
    if (X != data.X).nnz or (labels != data.Y.indices).any():
        raise RuntimeError(f"{OURS_XC} and {THEIRS_XC} do not read the same from {path.name}")
    X, Y = readers[NAPKIN]()
    X.resize(data.X.shape)  # without its last columns if they are empty
    Y.resize(data.Y.shape)
    if abs(X - data.X).max() > 1e-6 or (Y != data.Y).nnz:
        raise RuntimeError(f"{OURS_XC} and {NAPKIN} do not read the same from {path.name}")


def xc_times(path: Path, budget: float) -> dict[str, Times]:
    tasks = {name: Task(read) for name, read in xc_readers(path).items()}
    return side_by_side(tasks, budget)


def table_times(folder: Path, text: Path, budget: float) -> dict[str, tuple[float, Times]]:
    """The same rows as CSV and Parquet, with the size of the file in MB."""
    data = read_letor(text)
    paths = {"LETOR": text, "CSV": folder / "same.csv", "Parquet": folder / "same.parquet"}
    write_table(paths["CSV"], data)
    write_table(paths["Parquet"], data)
    tasks = {
        kind: Task(lambda path=path: (read_letor if path is text else read_table)(path))
        for kind, path in paths.items()
    }
    found = side_by_side(tasks, budget)
    return {kind: (megabytes(paths[kind]), found[kind]) for kind in paths}


def megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6


# Tables --------------------------------------------------------------------------------------


def readers_table(
    title: str, ours: str, found: Mapping[str, tuple[float, Mapping[str, Times]]]
) -> Table:
    columns = [
        Column("file"),
        Column("MB", figures),
        Column("reader"),
        Column("MB/s", figures),
        Column("best", figures),
        Column("rounds"),
        Column("× ours", figures),
    ]
    rows = [
        [
            name,
            size,
            reader,
            size / mine.median,
            size / mine.best,
            len(mine.rounds),
            mine.over(by[ours]),
        ]
        for name, (size, by) in found.items()
        for reader, mine in by.items()
    ]
    note = "`× ours`: the time that the reader takes over the time that ours takes."
    return Table(title, columns, rows, [note])


def formats_table(found: Mapping[str, tuple[float, Times]]) -> Table:
    columns = [
        Column("the dense rows as"),
        Column("MB", figures),
        Column("seconds", figures),
        Column("best", figures),
    ]
    rows = [[kind, size, mine.median, mine.best] for kind, (size, mine) in found.items()]
    return Table("The same rows in other formats", columns, rows)


def run(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    found: dict[str, tuple[float, dict[str, Times]]] = {}
    found_xc: dict[str, tuple[float, dict[str, Times]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, path in files(folder, plan.rows, progress):
            progress(f"reading {what}")
            check_same(path)
            found[what] = megabytes(path), times(path, plan.budget)
        report.add(readers_table("LETOR files: beside scikit-learn", OURS, found))
        progress("other formats")
        report.add(formats_table(table_times(folder, folder / "dense.txt", plan.budget)))
        for what, path in xc_files(folder, plan.rows // 10, progress):
            progress(f"reading {what}")
            check_same_xc(path)
            found_xc[what] = megabytes(path), xc_times(path, plan.budget)
        title = "Multi-label files: beside scikit-learn and napkinXC"
        report.add(readers_table(title, OURS_XC, found_xc))
    claims = [
        Claim(f"{what}: time of {theirs} over ours", by[theirs].over(by[ours]), 1, at_least=True)
        for ours, theirs, files_found in ((OURS, THEIRS, found), (OURS_XC, THEIRS_XC, found_xc))
        for what, (_, by) in files_found.items()
    ]
    report.add(claims_table(claims))
    return claims


if __name__ == "__main__":
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--rows", type=int)
    chosen, sys.argv[1:] = options.parse_known_args()
    rows = {} if chosen.rows is None else {"rows": chosen.rows}
    main(
        "Time the reading of files beside scikit-learn. --rows N: of the synthetic files.",
        ["numpy", "scipy", "pyarrow", "scikit-learn", "napkinxc", "tierrank"],
        run,
        full=FULL._replace(**rows),
        quick=QUICK._replace(**rows),
    )
