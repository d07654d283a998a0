"""Data sets of the experiments over huge label sets: files of the XC repository, or drawn ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from printed import XML_SETS

from tierrank.data import MultiLabelData, read_xc, read_xc_split
from tierrank.data.synthetic import label_sets
from tierrank.metrics.labels import inverse_propensity
from tierrank.training.progress import digest

# How folders name what they hold: the kinds of data that they may have, in the order they are
# looked for.
PAIRS = (
    ("trn_X_Xf.*", "trn_X_Y.*", "tst_X_Xf.*", "tst_X_Y.*"),
    ("X.trn.npz", "Y.trn.npz", "X.tst.npz", "Y.tst.npz"),
)
FILES = (("train.txt*", "test.txt*"), ("*_train.txt*", "*_test.txt*"))
SPLITS = ("*_data.txt*", "*_trSplit.txt*", "*_tstSplit.txt*")
LEAST_LABELS = 10
LOOKED_FOR = (
    "train.txt and test.txt, NAME_train.txt and NAME_test.txt, trn_X_Xf.txt, trn_X_Y.txt, "
    "tst_X_Xf.txt and tst_X_Y.txt, X.trn.npz, Y.trn.npz, X.tst.npz and Y.tst.npz, or NAME_data.txt "
    "with NAME_trSplit.txt and NAME_tstSplit.txt (text may end in .gz, .xz or .bz2)"
)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows to learn from and rows to be judged by.

    Attributes
    ----------
    name
        as tables call it
    paper
        the paper's name of the set that it is, or is like; None: of neither
    train, test
        the rows
    drawn
        whether it is not real data
    judged
        what the rows of `test` are, in words
    """

    name: str
    paper: str | None
    train: MultiLabelData
    test: MultiLabelData
    drawn: bool = False
    judged: str = "test rows"

    def inverse_propensity(self) -> Any:
        """[labels] 1/p by the training rows."""
        return inverse_propensity(self.train.Y)

    def digest(self) -> str:
        """What tells these data from all others."""
        return digest(self.train.X, self.train.Y, self.test.X, self.test.Y)

    def facts(self) -> dict[str, str]:
        """Sizes, in words."""
        train, test = self.train.describe(), self.test.describe()
        return {
            "data": self.name + ", drawn at random" * self.drawn,
            "training rows": f"{train.rows:,}, of which {train.rows_without_label:,} have no label",
            self.judged: f"{test.rows:,}, of which {test.rows_without_label:,} have no label",
            "features": f"{train.features:,}, {train.features_a_row:.1f} a row",
            "labels": f"{train.labels:,}, {train.labels_a_row:.2f} a row; "
            f"{train.labels_never_seen:,} in no training row",
        }


@dataclass(frozen=True)
class Source:
    """Where a data set comes from; small, so that processes can be told of it.

    Attributes
    ----------
    files
        a folder; files to train and test with; or features and labels of either, four files
    synthetic, scale, seed
        the set to draw one like, if there are no files; its size; and the seed
    name
        what to call it; by default its name in the paper, or that of the folder
    column
        of split files, from 0
    held_out
        if above 0, this share of the training rows is judged in place of the test rows
    """

    files: tuple[str, ...] = ()
    synthetic: str | None = None
    scale: float = 1.0
    seed: int = 0
    name: str | None = None
    column: int = 0
    held_out: float = 0.0

    def load(self) -> DataSet:
        """Read or draw it."""
        if self.files and self.synthetic:
            raise ValueError("give --data or --synthetic, but not both")
        if self.synthetic:
            train, test = label_sets(self.synthetic, scale=self.scale, seed=self.seed)
            name = self.name or f"{self.synthetic}-like"
            paper = next(
                (each for each, sizes in XML_SETS.items() if _full(self.synthetic) == sizes), None
            )
        elif self.files:
            train, test = same_columns(
                *read_parts([Path(file) for file in self.files], self.column)
            )
            paper = self.name if self.name in XML_SETS else _in_paper(train, test)
            name = self.name or paper or Path(self.files[0]).resolve().stem
        else:
            raise ValueError("give --data with a folder or files, or --synthetic with a name")
        if train.n_labels < LEAST_LABELS:
            raise ValueError(
                f"{name} has {train.n_labels} labels, but the tables go down to place "
                f"{LEAST_LABELS}: give data with as many labels"
            )
        judged = "test rows"
        if self.held_out:
            train, test = _halves(train, self.held_out)
            judged = "held-out training rows"
        return DataSet(name, paper, train, test, bool(self.synthetic), judged)


def read_parts(files: Sequence[Path], column: int = 0) -> tuple[MultiLabelData, MultiLabelData]:
    """Read rows to train and to test with, from a folder, two files or four."""
    if len(files) == 1:
        if not files[0].is_dir():
            raise ValueError(
                f"{files[0]}: is no folder. Give a folder, a file to train and one to test with, "
                "or features and labels of both, four files."
            )
        return _read_folder(files[0], column)
    if len(files) == 2:
        return read_xc(files[0]), read_xc(files[1])
    if len(files) == 4:
        return read_xc(files[0], labels=files[1]), read_xc(files[2], labels=files[3])
    raise ValueError(
        f"--data has {len(files)} files: give a folder, two files (train, test), or four (features "
        "and labels to train with, features and labels to test with)."
    )


def _read_folder(folder: Path, column: int) -> tuple[MultiLabelData, MultiLabelData]:
    for patterns in (*PAIRS, *FILES):
        found = _matching(folder, patterns)
        if found:
            return read_parts(found)
    found = _matching(folder, SPLITS)
    if found:
        rows, *splits = found
        data = read_xc(rows)
        train, test = (data.select(read_xc_split(split, column=column)) for split in splits)
        return train, test
    raise ValueError(f"{folder}: has no data that this knows. Looked for {LOOKED_FOR}.")


def _matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """One file for each pattern; none, if one is missing."""
    found = []
    for pattern in patterns:
        files = sorted(folder.glob(pattern))
        if not files:
            return []
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise ValueError(f"{folder}: {names} could all be meant. Give the files themselves.")
        found += files
    return found


def same_columns(
    train: MultiLabelData, test: MultiLabelData
) -> tuple[MultiLabelData, MultiLabelData]:
    """The same rows with as many features and labels in both: files without header may differ."""
    sizes = [(getattr(train, part).shape[1], getattr(test, part).shape[1]) for part in ("X", "Y")]
    if all(one == other for one, other in sizes):
        return train, test
    features, labels = (max(pair) for pair in sizes)
    one, other = (
        MultiLabelData(_widened(data.X, features), _widened(data.Y, labels))
        for data in (train, test)
    )
    return one, other


def _widened(matrix: Any, columns: int) -> Any:
    from scipy.sparse import csr_matrix

    parts = (matrix.data, matrix.indices, matrix.indptr)
    return csr_matrix(parts, shape=(matrix.shape[0], columns))


def _halves(data: MultiLabelData, share: float) -> tuple[MultiLabelData, MultiLabelData]:
    """Rows to learn from and rows to be judged by, the same each time."""
    order = np.random.default_rng(data.n_rows).permutation(data.n_rows)
    judged = round(share * data.n_rows)
    if not 0 < judged < data.n_rows:
        raise ValueError(f"--held-out {share:g} of {data.n_rows:,} rows leaves none on one side")
    return data.select(np.sort(order[judged:])), data.select(np.sort(order[:judged]))


def _in_paper(train: MultiLabelData, test: MultiLabelData) -> str | None:
    sizes = (train.n_features, train.n_labels, train.n_rows, test.n_rows)
    return next((name for name, known in XML_SETS.items() if known == sizes), None)


def _full(like: str) -> tuple[int, int, int, int] | None:
    """The sizes of the set that a synthetic one is like."""
    from tierrank.data.synthetic import SHAPES

    shape = SHAPES.get(like)
    return shape and (shape.features.n, shape.labels.n, *shape.rows)
