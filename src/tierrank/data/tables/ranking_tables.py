"""Ranking data in tables: a column of labels, one of queries, and the others are features."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import FloatArray
from tierrank.data import cache as caching
from tierrank.data.cache import Builder, Cache, Where, Words, words_of
from tierrank.data.files import PARQUET, SEPARATORS, SUFFIXES, expands, shown, writing
from tierrank.data.ranking_data import (
    Categories,
    Missing,
    Part,
    RankingData,
    check_part,
    coded,
    fill_value,
)
from tierrank.data.tables.columns import (
    MISSING,
    BadColumn,
    TableError,
    group_starts,
    open_parquet,
    parquet_part,
    vectors_spread,
)
from tierrank.data.tables.csv import CsvColumns, text_blocks
from tierrank.data.tables.opening import (
    Table,
    TableFormat,
    frame_table,
    need_pyarrow,
    open_table,
    table_kind,
    table_suffix,
)
from tierrank.errors import Argument, ArgumentError

_CELLS_AT_ONCE = 2**22
_ROW_NUMBERS = re.compile(r"\s*|__index_level_\d+__")  # pandas' names for its index


class Wanted(NamedTuple):
    """Columns by name, as the user gave them; no label for rows that are only to be scored."""

    label: str | None
    query: str
    features: Sequence[str] | None
    drop: Sequence[str]
    categories: Categories = ()


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
    cache: Where = False,
    max_expansion: float | None = None,
    part: Part | None = None,
    categories: Categories = (),
) -> RankingData:
    r"""Read a CSV or Parquet file with named columns.

    Rows of a query need not be adjacent. Numbers are read to the last bit. CSV is UTF-8 with a
    header; cells may be quoted, also over several lines; empty lines are passed over. All of the
    file is in memory while it is read, unless there is a `cache`. It takes pyarrow:
    ``pip install "tierrank[tables]"``.

    Parameters
    ----------
    path : path-like
        A name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet.
    label : str or None
        The column of labels: finite numbers, higher is better. None for rows that are only to be
        scored: `y` is 0 then.
    query : str
        The column of queries, of any plain type. `qid` are integers if all are whole numbers (in
        CSV: written as 7, not as 07 or 7.0), else strings. None may be missing, nor, in CSV, one
        of the words below that stand for it.
    features : sequence of str, optional
        The columns of `X`, in this order; without it, all others as they stand in the file.
        They hold numbers, or true and false throughout.
    drop : sequence of str
        Columns that are no features; a column that does not hold numbers must be named here, or in
        `categories`.
    missing : "keep" or float
        What a cell becomes that is null, NaN, empty, NA, N/A, NULL or None: "keep" for NaN, or
        a number.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    cache : bool or path-like
        True for a table that is larger than the memory, or the folder to keep its arrays in: see
        `read_letor`. It is read some lines at a time, of Parquet a row group; a CSV file that is
        compressed cannot be.
    max_expansion : float, optional
        How many times its size a compressed file, or a Parquet file, may expand to, beyond half a
        GiB: 200 without it.
    part : tuple of int, optional
        (rank, ranks), to read one of so many parts: of Parquet the row groups that hold about so
        many rows of those, from where a query begins to where one ends. Rows of a query are then
        adjacent. CSV is read whole, for its part of the queries.
    categories : "auto" or sequence of str
        Feature columns that hold categories, of text or numbers, for a `BoostedRanker`; "auto" for
        those that Parquet says are dictionaries. A category is what is written: "07" is not "7".
        `X` has their places in `RankingData.categories`. They do not go with `cache`.

    Returns
    -------
    RankingData
        The rows, as they stand in the file.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do.

    See Also
    --------
    read : Of any format, by its name.
    RankingData.from_frame : Of a frame in memory.
    write_table : Writes such a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.csv")
    ...     _ = file.write_text("query,clicked,price,age\nshoes,1,9.5,\nhats,0,7,2\nshoes,0,3,1\n")
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
    wanted, fill = Wanted(label, query, features, drop, categories), fill_value(missing)
    check_part(part)
    if cache is not False:
        if categories and categories != "auto":
            raise TableError(
                Path(path), None, "columns of ", Argument("categories"),
                " are read into memory: leave out ", Argument("cache"), ".",
            )  # fmt: skip
        wanted = wanted._replace(categories=())
        whole = _from_cache(Path(path), wanted, fill, (format, separator), cache)
        return whole if part is None else whole.part(part)
    cut = None if part is None else partial(parquet_part, query=query, part=part)
    with open_table(Path(path), format, separator, cut) as table:
        data = _ranking_data(table, wanted, fill)
    return data if part is None or table.is_part else data.part(part)


_KINDS = {"X": "f8", "y": "f8", "qid": "i8", "words": "u1"}


def _from_cache(
    path: Path,
    wanted: Wanted,
    missing: float,
    how: tuple[TableFormat | None, str | None],
    where: Where,
) -> RankingData:
    """Read a table in pieces, into a cache, or what is left of it; `how` is format, separator."""
    suffix, separator = table_kind(path, *how)
    columns = [list(each) if isinstance(each, tuple) else each for each in wanted[:4]]
    read_as = {"as": [suffix, separator], "missing": repr(missing), "piece": caching.PIECE}
    options = {"columns": columns, **read_as}
    kept = Cache([path], "table", options, where, _KINDS, TableError)
    about, arrays = kept.made_by(
        lambda builder: _convert(builder, wanted, missing, suffix, separator)
    )
    words = words_of(arrays["words"])
    keys = np.array([int(word) for word in words]) if about["whole"] else np.array(words, object)
    names = tuple(about["names"])
    return RankingData(arrays["X"], np.array(arrays["y"]), keys[arrays["qid"]], feature_names=names)


def _convert(builder: Builder, wanted: Wanted, missing: float, suffix: str, separator: str) -> None:
    state, words = builder.state, Words(builder)
    for number, (table, share) in enumerate(_pieces(builder.cache.path, suffix, separator)):
        if number < state.get("pieces", 0):
            continue
        part = _ranking_data(table, wanted, missing)
        state["whole"] = state.get("whole", True) and part.qid.dtype.kind == "i"
        builder.append("qid", words.numbers(list(map(str, part.qid.tolist()))))
        builder.append("y", part.y)
        builder.append("X", part.X)
        state |= {"pieces": number + 1, "names": part.feature_names}
        if state["pieces"] % caching.KEPT == 0:
            builder.keep(share)
    rows = builder.length("y")
    if not rows:
        what = "there are columns but no row: give at least one."
        raise TableError(builder.cache.path, None if suffix == PARQUET else 1, what)
    builder.keep(1.0)
    shapes = {"X": [rows, len(state["names"])], "y": [rows], "qid": [rows]}
    shapes["words"] = [builder.length("words")]
    builder.finish({"names": state["names"], "whole": state["whole"]}, shapes)


def _pieces(path: Path, suffix: str, separator: str) -> Iterator[tuple[Table, float]]:
    """A table, some rows at a time, and the share of it that ends with each."""
    if suffix == PARQUET:
        with open_parquet(path) as file:
            starts = group_starts(file)
        for first, end in pairwise(starts):
            with open_table(path, "parquet", None, lambda _: slice(first, end)) as table:  # noqa: B023
                yield table, end / starts[-1]
        return
    if path.suffix.lower() in SUFFIXES:
        raise TableError(
            path, None, "is compressed, and cannot be read in pieces: unpack it, or leave out ",
            Argument("cache"), ".",
        )  # fmt: skip
    read, size = 0, path.stat().st_size
    for text in text_blocks(path, separator, caching.PIECE):
        columns = partial(CsvColumns.of, text)
        read += len(text.text)
        yield Table(text.header, columns, text.error, is_part=True), read / size


def from_frame(frame: Any, wanted: Wanted, missing: Missing) -> RankingData:
    """Take the columns of a frame: see `RankingData.from_frame`."""
    features, others = wanted.features, (wanted.label, wanted.query, *wanted.drop)
    frame, spread = vectors_spread(
        frame, lambda name: name not in others and (features is None or name in features)
    )
    if features is not None and not isinstance(features, str):
        features = [number for name in features for number in spread.get(name, [name])]
    wanted = wanted._replace(features=features)
    return _ranking_data(frame_table(frame), wanted, fill_value(missing))


class _Choice(NamedTuple):
    """Columns by position."""

    label: int | None
    query: int
    features: list[int]
    categories: list[int]


def _choose(table: Table, wanted: Wanted) -> _Choice:
    """Find the wanted columns among those that there are."""
    for option in ("features", "drop", "categories"):
        given = getattr(wanted, option)
        if isinstance(given, str) and (option, given) != ("categories", "auto"):
            what = f" is a list of column names, not one string: [{given!r}]."
            raise ArgumentError(Argument(option), what)
    names = table.names
    if wanted.label == wanted.query:
        both = f" are both {shown(wanted.query)}: they are two columns."
        table.refuse(Argument("label"), " and ", Argument("query"), both)
    label = None if wanted.label is None else table.find(wanted.label, "label")
    query = table.find(wanted.query, "query")
    own = {query} if label is None else {label, query}
    dropped = {table.find(name, "drop") for name in wanted.drop}
    if dropped & own:
        names_own = " names the label or the query column: leave it out of "
        table.refuse(Argument("drop"), names_own, Argument("drop"), ".")
    taken = own | dropped
    if wanted.features is None:
        features = [i for i in range(len(names)) if i not in taken]
    else:
        features = [table.find(name, "features") for name in wanted.features]
        for i in features:
            if i in taken:
                table.refuse(
                    Argument("features"),
                    f" names {shown(names[i])}, which is the label, the query, in ",
                    Argument("drop"),
                    " or named twice: leave it out.",
                )
            taken.add(i)
    for i in features:
        refuse_row_numbers(table, [i], "leave it out with ", Argument("drop", (names[i],)), ".")
    named = () if wanted.categories == "auto" else wanted.categories
    categories = [table.find(name, "categories") for name in named]
    for i in categories:
        if i not in features:
            what = f" names {shown(names[i])}, which is no feature: leave it out."
            table.refuse(Argument("categories"), what)
    return _Choice(label, query, features, categories)


def refuse_row_numbers(table: Table, features: Sequence[int], *advice: object) -> None:
    """Refuse a feature without a name; `advice` is what else to do than to give it one."""
    for at in features:
        if _ROW_NUMBERS.fullmatch(name := table.names[at]):
            table.refuse(
                f"column {at + 1}, called {name!r}, has no name of its own, as when pandas writes "
                "its row numbers: name it, or ", *advice,
            )  # fmt: skip


def _ranking_data(table: Table, wanted: Wanted, missing: float) -> RankingData:
    """Take the wanted columns of a table."""
    label, query, features, categorical = _choose(table, wanted)
    plain = [at for at in features if at not in categorical]
    table.load(query, *categorical, numbers=[*([] if label is None else [label]), *plain])
    if wanted.categories == "auto":
        categorical = [at for at in features if table.is_categorical(at)]

    def numbers(at: int, what: str, *advice: object) -> FloatArray:
        found = table.floats_or_fault(at, keep=False)
        if isinstance(found, BadColumn):
            column = f"the {what} column {shown(table.names[at])}"
            table.refuse(f"{column} {found.why}", *advice, row=found.row, at=at)
        return found

    y = np.zeros(table.rows)
    if label is not None:
        y[:] = numbers(label, "label")
        finite = np.isfinite(y)
        wrong = "missing" if np.isnan(y[~finite][:1]).any() else "infinite"
        what = f"the label is {wrong}: labels are finite numbers, such as 0, 1 or 2."
        table.check(~finite, label, what)
    X = np.empty((table.rows, len(features)))
    categories: dict[str, tuple[str, ...]] = {}
    for target, at in zip(X.T, features, strict=True):
        if at in categorical:
            try:
                column = coded(table.distinct(at, "category"), table.missing_words(at))
            except ValueError as error:
                table.refuse(f"the column {shown(table.names[at])} {error}.")
            target[:] = np.where(column.codes < 0, np.nan, column.codes)
            categories[table.names[at]] = tuple(column.values)
            continue
        target[:] = numbers(
            at, "feature", " Mend it, or leave the column out by ", Argument("drop"),
            ". If it holds categories, boosted trees take it by ", Argument("categories"), ".",
        )  # fmt: skip
        if not np.isnan(missing):
            target[np.isnan(target)] = missing
    qid = table.unordered_keys(query, "query")
    names = tuple(table.names[i] for i in features)
    keys = qid.keys[qid.codes]
    return RankingData(X, y, keys, feature_names=names, categories=categories or None)


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
    path : path-like
        A name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet.
    data : RankingData
        What to write.
    label, query : str
        The names of these two columns.

    Raises
    ------
    ValueError
        Two columns would be called the same, or the name is not that of a table.

    See Also
    --------
    read_table : Reads it again.
    write_letor : Writes a LETOR file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from tierrank.data import RankingData, write_table
    >>> data = RankingData(
    ...     np.array([[0.5], [np.nan]]), y=np.array([2.0, 0.0]), qid=np.array([7, 7])
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     write_table(file, data)
    ...     print(file.read_text(), end="")
    label,qid,f1
    2,7,0.5
    0,7,
    """
    path = Path(path)
    suffix = table_suffix(path)
    need_pyarrow(path)
    for name in data.categories or ():
        raise ValueError(f"the column {shown(name)} holds categories, which are not written.")
    names = data.feature_names or tuple(f"f{i}" for i in range(1, data.n_features + 1))
    header = [label, query, *names]
    _check(data, names, header)
    words = {} if data.qid.dtype.kind in "iu" else {"query": set(data.qid.tolist())}
    write_arrow(path, _blocks(data, header, nan_is_null=suffix != PARQUET), header, words)


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


def write_arrow(
    path: Path, blocks: Iterator[Any], header: Sequence[str], words: Mapping[str, Collection[Any]]
) -> None:
    """Write tables of pyarrow, one below the other, as Parquet or CSV.

    `words` are the different values of the columns that are text, by what they are.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    if (suffix := table_suffix(path)) == PARQUET:
        with writing(path) as file:
            first = next(blocks)
            sink = pa.PythonFile(file, mode="w")
            with parquet.ParquetWriter(sink, first.schema, write_page_checksum=True) as writer:
                writer.write_table(first)
                for block in blocks:
                    writer.write_table(block)
        return
    separator = SEPARATORS[suffix]
    special = (separator, '"', "\n", "\r")
    needed = False
    for what, texts in words.items():
        if absent := next((word for word in texts if str(word).strip() in MISSING), None):
            raise ValueError(
                f"in CSV the {what} {absent!r} is a missing value: call it otherwise, or write "
                "Parquet."
            )
        needed |= any(mark in str(word) for word in texts for mark in special)
    options = csv.WriteOptions(
        include_header=False,
        delimiter=separator,
        quoting_style="needed" if needed else "none",
    )
    cells = [
        _quoted(name) if any(c in name for c in (*special, "\ufeff")) else name for name in header
    ]
    with writing(path) as file:
        file.write((separator.join(cells) + "\n").encode())
        for block in blocks:
            buffer = pa.BufferOutputStream()
            csv.write_csv(block, buffer, options)
            file.write(memoryview(buffer.getvalue()))


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
