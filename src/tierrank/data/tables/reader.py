"""Ranking data from tables in files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from tierrank.data.files import expands, without_compression
from tierrank.data.ranking_data import Missing, RankingData, fill_value
from tierrank.data.tables.choice import Wanted
from tierrank.data.tables.errors import TableError, need_pyarrow

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"

TableFormat = Literal["csv", "tsv", "parquet"]


@expands
def read_table(
    path: str | PathLike[str],
    *,
    label: str | None = "label",
    query: str = "qid",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "keep",
    separator: str | None = None,
    format: TableFormat | None = None,
    max_expansion: float | None = None,
) -> RankingData:
    """Read a CSV or Parquet file with named columns.

    Rows of a query need not be adjacent. Numbers are read to the last bit. CSV is UTF-8 with a
    header; cells may be quoted, also over several lines; empty lines are passed over. All of the
    file is in memory while it is read. It takes pyarrow: ``pip install "tierrank[tables]"``.

    Parameters
    ----------
    path
        a name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet
    label
        the column of labels: finite numbers, higher is better. None for rows that are only to be
        scored: `y` is 0 then.
    query
        the column of queries, of any plain type. `qid` are integers if all are whole numbers (in
        CSV: written as 7, not as 07 or 7.0), else strings. None may be missing, nor, in CSV, one
        of the words below that stand for it.
    features
        the columns of `X`, in this order; without it, all others as they stand in the file.
        They hold numbers, or true and false throughout.
    drop
        columns that are no features; a column that does not hold numbers must be named here
    missing
        what a cell becomes that is null, NaN, empty, NA, N/A, NULL or None: "keep" for NaN, or
        a number
    separator
        what stands between two cells of a CSV file; without it, as the name says
    format
        "csv", "tsv" or "parquet", where the name does not tell
    max_expansion
        how many times its size a compressed file, or a Parquet file, may expand to, beyond half a
        GiB: 200 without it

    Raises
    ------
    TableError
        a `ValueError` that names the file and the line (in Parquet the row), and says what to do

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.csv")
    ...     _ = file.write_text(
    ...         "query,clicked,price,age\\nshoes,1,9.5,\\nhats,0,7,2\\nshoes,0,3,1\\n"
    ...     )
    ...     data = read_table(file, label="clicked", query="query")
    >>> data
    RankingData(3 rows, 2 queries, 2 dense features)
    >>> data.feature_names
    ('price', 'age')
    >>> data.X
    array([[9.5, nan],
           [7. , 2. ],
           [3. , 1. ]])
    """
    path = Path(path)
    wanted, fill = Wanted(label, query, features, drop), fill_value(missing)
    suffix, separator = table_kind(path, format, separator)
    if suffix == PARQUET:
        from tierrank.data.tables.parquet_reader import read_parquet

        return read_parquet(path, wanted, fill)
    from tierrank.data.tables.csv_reader import read_csv

    return read_csv(path, wanted, fill, separator)


def table_kind(path: Path, format: TableFormat | None, separator: str | None) -> tuple[str, str]:
    """Give the suffix that stands for the format, and what separates cells (of CSV)."""
    if separator is not None and (len(separator) != 1 or separator in '"\r\n\0'):
        raise ValueError(f"separator is one character, no quote or line break, not {separator!r}.")
    if format is not None and format not in get_args(TableFormat):
        raise ValueError(f"format is one of {', '.join(get_args(TableFormat))}, not {format!r}.")
    if path.is_dir():
        raise TableError(path, None, "is a folder: give one of its files.")
    need_pyarrow(path)
    suffix = table_suffix(path) if format is None else f".{format}"
    return suffix, separator or SEPARATORS.get(suffix, ",")


def table_suffix(path: Path) -> str:
    """Tell the format by the name: .csv, .tsv or .parquet."""
    suffix = without_compression(path).suffix.lower()
    if suffix in SEPARATORS:
        return suffix
    if path.suffix.lower() == PARQUET:
        return PARQUET
    what = "has no suffix of a table: give it one of .csv, .tsv (also .gz, .xz, .bz2), .parquet."
    if suffix == PARQUET:
        what = "is compressed outside, but Parquet compresses inside: unpack it first."
    raise TableError(path, None, what)
