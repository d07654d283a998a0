"""One door for all files of ranking data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Literal

from tierrank.data.files import DataFileError, expands
from tierrank.data.letor import OneBased, read_letor_files
from tierrank.data.ranking_data import Missing, RankingData, fill_value
from tierrank.data.tables import read_table
from tierrank.data.tables.opening import TableFormat, is_table

Format = Literal["auto", "letor"] | TableFormat
FORMATS = ("auto", "letor", "csv", "tsv", "parquet")


@expands
def read(
    path: str | PathLike[str],
    *,
    format: Format = "auto",
    label: str | None = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    max_expansion: float | None = None,
) -> RankingData:
    """Read a file of ranking data, in whatever format its name says.

    Names that end in .csv, .tsv or .parquet are tables (`read_table`), all others LETOR or
    svmlight (`read_letor`); .gz, .xz and .bz2 are looked through.

    Parameters
    ----------
    path
        the file
    format
        "letor", "csv", "tsv" or "parquet", where the name does not tell
    label, query, features, drop
        columns of a table, by name (label=None for rows that are only to be scored); a LETOR file
        has none
    missing
        what a missing value becomes: "keep" for NaN, or a number
    separator
        what stands between two cells of a CSV file; without it, as the name says
    n_features
        the number of columns of `X`; a table must have as many, and in a LETOR file those that
        no row names are 0
    one_based
        whether the indices of a LETOR file start at 1
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it

    Raises
    ------
    DataFileError
        a `ValueError` that names the file and the line

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     letor, table = pathlib.Path(folder, "a.txt"), pathlib.Path(folder, "a.csv")
    ...     _ = letor.write_text("2 qid:7 1:0.5 2:3\\n0 qid:7 1:0.1 2:4\\n")
    ...     _ = table.write_text("qid,label,x,y\\n7,2,0.5,3\\n7,0,0.1,4\\n")
    ...     (read(letor).X == read(table).X).all()
    np.True_
    """
    path = Path(path)
    if format not in FORMATS:
        raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}.")
    if path.is_dir():
        raise DataFileError(
            path,
            None,
            "is a folder: give one of its files, or read train, vali and test together with "
            "read_letor_fold, or all folds with read_folds.",
        )
    return read_files(
        [path], format=format, label=label, query=query, features=features, drop=drop,
        missing=missing, separator=separator, n_features=n_features, one_based=one_based,
    )[0]  # fmt: skip


@expands
def read_files(
    paths: Sequence[Path],
    *,
    format: Format = "auto",
    label: str | None = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    max_expansion: float | None = None,
) -> list[RankingData]:
    """Read files of one kind that belong together, so that their columns agree; see `read`."""
    tables = [path for path in paths if is_table(path)] if format == "auto" else paths
    if not tables or format == "letor":
        if features is not None or drop or separator is not None:
            what = "columns have names in tables alone: leave out features, drop and separator."
            raise DataFileError(paths[0], None, what)
        return read_letor_files(
            paths, n_features=n_features, one_based=one_based, missing=fill_value(missing)
        )
    if len(tables) < len(paths):
        other = next(path for path in paths if path not in tables)
        what = f"is no table, but {tables[0].name} is: give files of one kind."
        raise DataFileError(other, None, what)
    data: list[RankingData] = []
    for path in paths:
        table = read_table(
            path, label=label, query=query, features=features, drop=drop, missing=missing,
            separator=separator, format=None if format == "auto" else format,
        )  # fmt: skip
        if n_features is not None and table.n_features != n_features:
            raise DataFileError(
                path,
                None,
                f"has {table.n_features} feature columns, but should have {n_features}: choose "
                "them with features or drop.",
            )
        data.append(_like(data[0], table, path, paths[0]) if data else table)
    return data


def _like(first: RankingData, other: RankingData, path: Path, first_path: Path) -> RankingData:
    """The columns in the order of the first file, which must be the same ones."""
    names, found = first.feature_names or (), other.feature_names or ()
    if names == found:
        return other
    if different := sorted(set(names) ^ set(found)):
        where = first_path.name if different[0] in names else path.name
        raise DataFileError(
            path,
            None,
            f"the column {different[0]!r} is in {where} alone: give all files the same columns, or "
            "name those to use in features.",
        )
    order = [found.index(name) for name in names]
    return replace(other, X=other.X[:, order], feature_names=names)
