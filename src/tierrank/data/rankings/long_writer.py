"""Rankings into tables in long form."""

from __future__ import annotations

from collections import Counter
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tierrank.data.files import writing
from tierrank.data.rankings.container import Rankings
from tierrank.data.tables.csv_numbers import MISSING
from tierrank.data.tables.errors import need_pyarrow
from tierrank.data.tables.reader import PARQUET, SEPARATORS, table_suffix
from tierrank.data.tables.writer import is_utf8
from tierrank.tiers.arrays import preview

_INT64 = range(-(2**63), 2**63)


def write_long_rankings(rankings: Rankings, path: str | PathLike[str]) -> None:
    """Write a CSV or Parquet file with the columns list, item, rank and weight.

    `read_long_rankings` with ``weight="weight"`` gives back the same lists. A rank is 1 more than
    the number of items above. Lists are called by their key, or else 1, 2, …; items by their
    name. What is not written: the rest (read it with ``rest="last"``), and items that no list
    names (pass ``items=``). In CSV, names that are strings of digits come back as integers if all
    of them are. The file is written beside and renamed.

    Parameters
    ----------
    rankings
        with names and keys that are integers or strings, and no list without items
    path
        a name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet

    Examples
    --------
    >>> import tempfile
    >>> rankings = Rankings.from_rankings([["ann", ("bob", "cy"), "dee"]], weights=[3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_long_rankings(rankings, Path(folder, "votes.csv"))
    ...     print(Path(folder, "votes.csv").read_text())
    list,item,rank,weight
    1,ann,1,3
    1,bob,2,3
    1,cy,2,3
    1,dee,4,3
    """
    path = Path(path)
    suffix = table_suffix(path)
    need_pyarrow(path)
    table = _table(rankings)
    if suffix != PARQUET:
        _refuse_missing_words(table)
    with writing(path) as file:
        if suffix == PARQUET:
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(table, pa.PythonFile(file, mode="w"), write_page_checksum=True)
        else:
            file.write(_as_csv(table, SEPARATORS[suffix]))


def _table(rankings: Rankings) -> Any:
    """The rows, by list and then best first, as a `pyarrow.Table`."""
    import pyarrow as pa

    tiers = rankings.tiers
    sizes = tiers.lengths.cpu().numpy()
    if not len(sizes):
        raise ValueError("there are no lists: a file needs at least one.")
    if not sizes.all():
        raise ValueError(
            f"list {int(sizes.argmin())} names no item, which a table in long form cannot say: "
            "leave it out."
        )
    tier_sizes = tiers.tier_sizes.cpu().numpy()
    starts = tiers.tier_offsets.cpu().numpy()[:-1]
    list_starts = np.repeat(np.cumsum(sizes) - sizes, tiers.list_offsets.diff().cpu().numpy())
    lists = np.arange(1, len(sizes) + 1).tolist() if tiers.keys is None else tiers.keys.tolist()
    if len(set(map(str, lists))) < len(lists):
        raise ValueError("two lists have the same key: give each its own.")
    return pa.table(
        {
            "list": _repeated(lists, np.repeat(np.arange(len(sizes)), sizes), "key of list"),
            "item": _repeated(list(rankings.items), tiers.items.cpu().numpy(), "name of item"),
            "rank": np.repeat(starts - list_starts + 1, tier_sizes),
            "weight": np.repeat(rankings.weights, sizes),
        }
    )


def _repeated(names: list[Any], codes: Any, what: str) -> Any:
    """A column of names: integers if all are, else strings."""
    import pyarrow as pa

    for number, name in enumerate(names):
        whole = isinstance(name, int) and not isinstance(name, bool) and name in _INT64
        text = isinstance(name, str) and name.strip() and "\0" not in name and is_utf8(name)
        if not whole and not text:
            raise ValueError(
                f"the {what} {number} is {preview(name)}: write integers of 64 bits, or strings "
                "that are not empty and hold nothing that UTF-8 cannot write, nor NUL."
            )
    if all(isinstance(name, int) for name in names):
        return pa.array(names, pa.int64()).take(pa.array(codes))
    words = list(map(str, names))
    same, often = Counter(words).most_common(1)[0]
    if often > 1:
        raise ValueError(f"an integer and a string are both {same!r}: rename one of them.")
    return pa.array(words, pa.large_string()).take(pa.array(codes))


def _refuse_missing_words(table: Any) -> None:
    from pyarrow import compute

    for what in ("list", "item"):
        words = compute.unique(table.column(what)).to_pylist()
        if absent := next((word for word in words if str(word).strip() in MISSING), None):
            raise ValueError(
                f"in CSV the {what} {absent!r} is a missing value: call it otherwise, or write "
                "Parquet."
            )


def _as_csv(table: Any, separator: str) -> bytes:
    import pyarrow as pa
    from pyarrow import compute, csv

    special = (separator, '"', "\n", "\r")
    texts = [column for column in table.columns if pa.types.is_large_string(column.type)]
    quoted = any(
        compute.any(compute.match_substring(column, mark)).as_py()
        for column in texts
        for mark in special
    )
    options = csv.WriteOptions(
        include_header=False, delimiter=separator, quoting_style="needed" if quoted else "none"
    )
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, options)
    header = separator.join(table.column_names) + "\n"
    return header.encode() + bytes(sink.getvalue())
