"""Rows, labels and models of the commands: where they are, files read, columns fitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank.cli.options import DATA, Caching, argument, note, option

if TYPE_CHECKING:
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import ExtremeRanker

FEATURES_AND_LABELS = (
    "Text of the XC repository, with features and labels (also .gz, .xz, .bz2); or features alone, "
    "as text or .npz, with --labels."
)
Data = Annotated[Path, argument(FEATURES_AND_LABELS, metavar="DATA")]
Propensity = Annotated[float, option(
    "Add so many times log(1/p) to the score of a label of propensity p: with 1, rare labels rise "
    "as PSP counts them.", metavar="WEIGHT")]  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Which rows of a file are meant, and how to read them."""

    # fmt: off
    split: Annotated[Path | None, option(
        "Take only the rows of DATA that this file numbers, from 1.", metavar="FILE", panel=DATA
    )] = None
    split_column: Annotated[int, option(
        "Which column of the split file, from 0.", min=0, metavar="N", panel=DATA)] = 0
    one_based: Annotated[bool, option(
        "Features in text files are numbered from 1, as LIBSVM does; labels never are.",
        "--one-based", panel=DATA)] = False
    # fmt: on


@dataclass(frozen=True)
class LabelledRows(Rows):
    """The same of rows with labels."""

    # fmt: off
    labels: Annotated[Path | None, option(
        "The labels of DATA, if they are in a file of their own.", metavar="FILE", panel=DATA
    )] = None
    # fmt: on

    def of_other(self, labels: Path | None) -> LabelledRows:
        """How to read all rows of another file, whose labels may be apart."""
        return LabelledRows(one_based=self.one_based, labels=labels)


@dataclass(frozen=True)
class Parts:
    """What to learn from, and what to stop by if that is apart."""

    train: MultiLabelData
    valid: MultiLabelData | None = None

    def named(self) -> dict[str, MultiLabelData]:
        """The parts that there are, by name."""
        parts = {"train": self.train, "valid": self.valid}
        return {name: part for name, part in parts.items() if part is not None}


def read_labelled(path: Path, how: LabelledRows, cached: Caching | None = None) -> MultiLabelData:
    """Read rows and their labels."""
    from tierrank.data import read_xc

    files = [path] if how.labels is None else [path, how.labels]
    cache = cached is not None and cached.cache_for(*files)
    data = read_xc(path, labels=how.labels, one_based=how.one_based, cache=cache)
    return _chosen(data, path, how)


def read_rows(path: Path, how: Rows) -> Any:
    """Read features, as [rows, features] CSR; labels may be there and are passed over."""
    from scipy.sparse import csr_matrix

    from tierrank.data import MultiLabelData
    from tierrank.data.xc import read_xc_rows

    X = read_xc_rows(path, one_based=how.one_based)
    return _chosen(MultiLabelData(X, csr_matrix((X.shape[0], 1))), path, how).X


def load_model(folder: Path) -> ExtremeRanker:
    """The model of a folder; refuses those that rank rows, not labels."""
    import tierrank
    from tierrank.extreme.ranker import ExtremeRanker

    model = tierrank.load(folder)
    if not isinstance(model, ExtremeRanker):
        raise ValueError(
            f"{folder}: is a {type(model).__name__}, which ranks the rows of a query: use tierrank "
            "predict or tierrank evaluate, without extreme."
        )
    return model


def for_model(matrix: Any, columns: int, path: Path, what: str) -> Any:
    """Features or labels of a file with as many columns as a model knows."""
    there = matrix.shape[1]
    if there > columns:
        raise ValueError(
            f"{path}: has {there:,} {what}, and the model {columns:,}: give data of the same kind "
            f"as it was trained on, or train it with --n-{what} {there}."
        )
    if there < columns:
        note(f"{path} has {there:,} {what}, and the model {columns:,}: no row has the others.")
    return widened(matrix, columns)


def widened(matrix: Any, columns: int) -> Any:
    """A CSR matrix with so many columns; those that it lacked are empty."""
    from scipy.sparse import csr_matrix

    if matrix.shape[1] == columns:
        return matrix
    shape = (matrix.shape[0], columns)
    wider = csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)
    wider.has_canonical_format = True  # as those of the readers are: no need to look again
    return wider


def read_parts(
    train: tuple[Path, LabelledRows],
    valid: tuple[Path, LabelledRows] | None,
    *,
    n_features: int | None,
    n_labels: int | None,
    cached: Caching,
) -> Parts:
    """Read training and validation data, and give both as many features and labels.

    Parameters
    ----------
    train, valid
        the file of each, and how to read it
    n_features, n_labels
        how many there are, if more than in the files
    cached
        whether text is read into arrays on the disk
    """
    from tierrank.cli.progress import converting
    from tierrank.data import MultiLabelData

    sources = [train] if valid is None else [train, valid]
    with converting():
        read = [read_labelled(path, how, cached) for path, how in sources]
    paths = [path for path, _ in sources]
    features = _most("features", [each.n_features for each in read], paths, n_features)
    labels = _most("labels", [each.n_labels for each in read], paths, n_labels)
    return Parts(
        *(MultiLabelData(widened(each.X, features), widened(each.Y, labels)) for each in read)
    )


def _most(what: str, found: list[int], paths: list[Path], asked: int | None) -> int:
    most = max(found)
    if asked is not None and asked < most:
        raise ValueError(
            f"--n-{what} is {asked:,}, but there are {most:,} in the files: give as many or more."
        )
    if asked is None and min(found) < most:
        said = ", ".join(f"{path} has {n:,}" for path, n in zip(paths, found, strict=True))
        note(f"the files differ in {what}: {said}. No row of the one has the others.")
    return most if asked is None else asked


def _chosen(data: MultiLabelData, path: Path, how: Rows) -> MultiLabelData:
    """The rows of the split, or all."""
    if how.split is not None:
        from tierrank.data import read_xc_split

        rows = read_xc_split(how.split, how.split_column)
        try:
            data = data.select(rows)
        except ValueError as error:
            raise ValueError(f"{how.split}: {error}") from None
    if not len(data):
        raise ValueError(f"{path}: has no rows.")
    return data
