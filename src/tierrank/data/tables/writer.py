"""Ranking data into tables in files."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from tierrank.data.files import writing
from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.csv_numbers import MISSING
from tierrank.data.tables.errors import need_pyarrow
from tierrank.data.tables.reader import PARQUET, SEPARATORS, table_suffix
from tierrank.data.text import shown

_CELLS_AT_ONCE = 2**22


def write_table(
    path: str | PathLike[str],
    data: RankingData,
    *,
    label: str = "label",
    query: str = "qid",
) -> None:
    """Write a CSV or Parquet file with a column for the label, the query and each feature.

    `read_table` gives back the same float64, to the last bit. Features are called as
    `data.feature_names` says, or else f1, f2, …; a missing value is an empty cell in CSV and NaN
    in Parquet; comments are not written. In CSV, queries that are strings of digits come back as
    integers if all of them are. A sparse `X` is written dense. The file is written beside and
    renamed.

    Parameters
    ----------
    path
        a name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet
    data
        what to write
    label, query
        the names of these two columns
    """
    path = Path(path)
    suffix = table_suffix(path)
    need_pyarrow(path)
    names = data.feature_names or tuple(f"f{i}" for i in range(1, data.n_features + 1))
    header = [label, query, *names]
    _check(data, names, header)
    with writing(path) as file:
        if suffix == PARQUET:
            _write_parquet(file, data, header)
        else:
            _write_csv(file, data, header, SEPARATORS[suffix])


def _check(data: RankingData, names: tuple[str, ...], header: list[str]) -> None:
    rows = len(data.y)
    if len(names) != data.n_features:
        raise ValueError(f"there are {len(names)} feature names for {data.n_features} features.")
    if len(set(header)) < len(header):
        twice = next(name for i, name in enumerate(header) if name in header[:i])
        raise ValueError(f"two columns would be called {shown(twice)}: rename one of them.")
    for name in header:
        if not name.strip() or "\0" in name or not is_utf8(name):
            raise ValueError(f"a column cannot be called {name!r}: give it a plain name.")
    if not rows:
        raise ValueError("there are no rows: a file needs at least one.")
    if data.X.shape[0] != rows or len(data.qid) != rows:
        raise ValueError(
            f"there are {rows} labels, {data.X.shape[0]} rows of X and {len(data.qid)} qid: give "
            "one of each a row."
        )
    finite = np.isfinite(data.y)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"the label of row {row} is {data.y[row]}: labels are finite numbers.")
    if data.qid.dtype.kind in "iu":
        if data.qid.dtype == np.uint64 and data.qid.max() > np.iinfo(np.int64).max:
            raise ValueError("a qid is over 2^63 - 1: number the queries anew.")
        return
    for row, q in enumerate(data.qid.tolist()):
        if not isinstance(q, str) or not q.strip() or "\0" in q or not is_utf8(q):
            raise ValueError(
                f"the qid of row {row} is {q!r}: write integers, or strings that are not empty "
                "and hold nothing that UTF-8 cannot write, nor NUL."
            )


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can write it: it holds no half of a surrogate pair."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _write_parquet(file: IO[bytes], data: RankingData, header: list[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    blocks = _blocks(data, header, nan_is_null=False)
    first = next(blocks)
    sink = pa.PythonFile(file, mode="w")
    with parquet.ParquetWriter(sink, first.schema, write_page_checksum=True) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)


def _write_csv(file: IO[bytes], data: RankingData, header: list[str], separator: str) -> None:
    import pyarrow as pa
    from pyarrow import csv

    special = (separator, '"', "\n", "\r")
    words = set() if data.qid.dtype.kind in "iu" else set(data.qid.tolist())
    if absent := next((word for word in words if word.strip() in MISSING), None):
        raise ValueError(
            f"in CSV a query {absent!r} is a missing value: call it otherwise, or write Parquet."
        )
    options = csv.WriteOptions(
        include_header=False,
        delimiter=separator,
        quoting_style="needed" if any(c in word for word in words for c in special) else "none",
    )
    cells = [
        _quoted(name) if any(c in name for c in (*special, "\ufeff")) else name for name in header
    ]
    file.write((separator.join(cells) + "\n").encode())
    for block in _blocks(data, header, nan_is_null=True):
        sink = pa.BufferOutputStream()
        csv.write_csv(block, sink, options)
        file.write(memoryview(sink.getvalue()))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _blocks(data: RankingData, header: list[str], nan_is_null: bool) -> Iterator[Any]:
    """Some rows at a time, so that little more than `X` is in memory."""
    import pyarrow as pa

    step = max(1, _CELLS_AT_ONCE // len(header))
    for start in range(0, len(data), step):
        rows = slice(start, start + step)
        X = data.X[rows] if isinstance(data.X, np.ndarray) else data.X[rows].toarray()
        X = np.asarray(X, dtype=np.float64)
        qid = data.qid[rows]
        kind = pa.int64() if qid.dtype.kind in "iu" else pa.string()
        columns = [
            pa.array(np.asarray(data.y[rows], dtype=np.float64)),
            pa.array(qid.tolist(), kind),
        ]
        columns += [pa.array(column.copy(), from_pandas=nan_is_null) for column in X.T]
        yield pa.Table.from_arrays(columns, names=header)
