"""CSV files: pyarrow splits and converts, and what it cannot convert is looked at cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.arrow import codes_and_distinct, fill
from tierrank.data.tables.assembly import BadColumn, FloatArray, check_labels, spread
from tierrank.data.tables.choice import Choice, Wanted, choose
from tierrank.data.tables.csv_numbers import MISSING, BadCell, numbers
from tierrank.data.tables.csv_text import CsvText, read_text
from tierrank.data.tables.errors import TableError
from tierrank.data.tables.keys import keys_of_words

_LARGEST_BLOCK = 2**31 - 1


def read_csv(path: Path, wanted: Wanted, missing: float, separator: str) -> RankingData:
    """Read a CSV file; `read_table` says what it may hold."""
    text = read_text(path, separator)
    choice = choose(text.header, wanted, lambda what: header_error(text, what))
    label = choice.label
    columns = choice.features if label is None else (label, *choice.features)
    all_words = False
    try:
        table = _arrow_table(text, numeric=columns, words=(choice.query,))
    except ValueError:
        table, all_words = words_only(text, (*columns, choice.query)), True
    if not table.num_rows:
        raise TableError(path, 1, "there is a header but no row: give at least one.")
    y = np.zeros(table.num_rows)
    X = np.empty((table.num_rows, len(choice.features)))
    targets = dict(zip(columns, X.T if label is None else (y, *X.T), strict=True))
    doubtful = []
    for place, (column, target) in enumerate(targets.items()):
        floats = table.column(place)
        if all_words:
            floats = as_floats(floats)
        if floats is not None:
            fill(floats, target)
        if floats is None or np.isinf(target).any():  # written so, or too large for a float64?
            doubtful.append(column)
    words = words_only(text, doubtful) if doubtful and not all_words else table
    for place, column in enumerate(doubtful):
        cells = words.column(columns.index(column) if all_words else place).to_pylist()
        targets[column][:] = _numbers(text, choice, column, cells)
    if label is not None:
        check_labels(y, partial(_label_error, text, label))
    if not np.isnan(missing):
        X[np.isnan(X)] = missing
    qid = _queries(text, choice, table.column(len(columns)))
    return RankingData(X, y, qid, feature_names=choice.names)


def _arrow_table(text: CsvText, numeric: Sequence[int], words: Sequence[int]) -> Any:
    """Some columns as floats, and after them others as strings."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(column) for column in range(len(text.header))]
    types = {str(column): pa.float64() for column in numeric}
    types |= {str(column): pa.string() for column in words}
    convert = csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=list(MISSING),
        strings_can_be_null=False,
        check_utf8=False,  # checked before
    )
    parse = csv.ParseOptions(
        delimiter=text.separator.decode(), newlines_in_values=b'"' in text.text
    )
    rows = memoryview(text.text)[text.start :]
    if not len(rows):  # which pyarrow refuses
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})

    def read(block: int | None) -> Any:
        read_options = csv.ReadOptions(column_names=names, block_size=block)
        source = pa.BufferReader(pa.py_buffer(rows))
        return csv.read_csv(source, read_options, parse, convert)

    try:
        return read(None)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        return read(min(len(rows) + 1, _LARGEST_BLOCK))  # a row longer than a block of 1 MB


def words_only(text: CsvText, columns: Sequence[int]) -> Any:
    """Some columns as strings, in this order."""
    try:
        return _arrow_table(text, numeric=(), words=columns)
    except ValueError as error:
        if (ragged := text.ragged()) is not None:
            raise ragged from None
        raise TableError(text.path, None, f"cannot be read as CSV: {error}") from error


def as_floats(words: Any) -> Any:
    """A column of strings as float64, or None if some are no numbers for pyarrow."""
    import pyarrow as pa
    from pyarrow import compute

    absent = compute.is_in(words, value_set=pa.array(MISSING))
    try:
        return compute.if_else(absent, pa.scalar(None, pa.string()), words).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _numbers(text: CsvText, choice: Choice, column: int, cells: Sequence[str]) -> FloatArray:
    found = numbers(cells)
    if isinstance(found, BadCell):
        advice = "" if column == choice.label else " Mend it, or name the column in drop."
        what = f"{choice.role(column, text.header)} {found.why}{advice}"
        raise text.cell_error(found.row, column, what)
    return found


def _queries(text: CsvText, choice: Choice, column: Any) -> Any:
    codes, distinct = codes_and_distinct(column)
    qid = spread(keys_of_words(distinct), codes)
    if isinstance(qid, BadColumn):
        raise text.cell_error(qid.row or 0, choice.query, qid.why)
    return qid


def _label_error(text: CsvText, label: int, row: int, what: str) -> TableError:
    return text.cell_error(row, label, what)


def header_error(text: CsvText, what: str) -> TableError:
    """What is wrong with the columns, with a hint where the header is none."""
    others = [mark for mark in b";\t|," if bytes([mark]) != text.separator]
    if len(text.header) == 1 and any(mark in text.header[0].encode() for mark in others):
        mark = next(chr(mark) for mark in others if chr(mark) in text.header[0])
        what += f" The header has no {text.separator.decode()!r}: pass separator={mark!r}?"
    elif not isinstance(numbers(text.header), BadCell):
        what += " The first line holds numbers: it must be a header with the names."
    return text.error(text.start, what)
