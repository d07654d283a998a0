"""From the bytes of a text file to flat arrays: allocates, runs the compiled pass, checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank._native import XCFault, scan_xc, tally_xc
from tierrank.data.files import read_bytes
from tierrank.data.text.rows import first_repeated
from tierrank.data.text.source import Text
from tierrank.data.xc.errors import XCError
from tierrank.data.xc.faults import Rules, fault
from tierrank.data.xc.header import Header, HeaderOption, header_start, read_header

IntArray = npt.NDArray[np.int64]

MOST_COLUMNS = 2**31 - 1


@dataclass
class Entries:
    """The sparse rows of a matrix: columns and values, row after row."""

    row_ends: IntArray  # [rows + 1] the first is 0
    columns: npt.NDArray[np.int32]  # [entries] ascending in each row, none twice
    values: npt.NDArray[np.float32]  # [entries]
    n_columns: int

    def matrix(self) -> Any:
        """The same as a scipy `csr_matrix`."""
        matrix = self._matrix()
        matrix.has_canonical_format = True
        return matrix

    def sort(self) -> tuple[int, int] | None:
        """Make the columns of every row ascend; row and column of one that stands twice, if any."""
        matrix = self._matrix()
        matrix.sort_indices()
        self.columns, self.values = matrix.indices.astype(np.int32, copy=False), matrix.data
        return first_repeated(self.row_ends, self.columns)

    def _matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        shape = (len(self.row_ends) - 1, self.n_columns)
        return csr_matrix((self.values, self.columns, self.row_ends), shape=shape)


def read_text(path: Path) -> Text:
    """Read a file that is not empty."""
    text = Text(path, read_bytes(path, XCError), XCError)
    if not re.compile(rb"\S").search(text.content, header_start(text)):
        raise text.file_error(1, "the file is empty: it has neither a header nor a row.")
    return text


def parse_rows(
    path: Path,
    n_features: int | None,
    n_labels: int | None,
    base: int,
    header: HeaderOption,
) -> tuple[Entries, Entries]:
    """Read a file of `label,label,… index:value …`; features, and labels with the value 1."""
    text = read_text(path)
    names = ("rows", "features", "labels")
    head = read_header(text, names, header)
    n_features = _columns(text, head, 1, n_features, "features")
    n_labels = _columns(text, head, 2, n_labels, "labels")
    return _scan(text, head, names, base, n_features, n_labels, with_labels=True)


def parse_matrix(
    path: Path, n_columns: int | None, base: int, header: HeaderOption, kind: str
) -> Entries:
    """Read a file of `index:value …`, whose columns are "features" or "labels"."""
    text = read_text(path)
    names = ("rows", kind)
    head = read_header(text, names, header)
    n_columns = _columns(text, head, 1, n_columns, kind)
    entries, _ = _scan(text, head, names, base, n_columns, None, with_labels=False)
    if kind == "labels" and len(entries.values) and entries.values.min() < 0:
        entry = int((entries.values < 0).argmax())
        row = int(np.searchsorted(entries.row_ends, entry, side="right")) - 1
        label = int(entries.columns[entry]) + base
        raise text.error(
            _column_at(text, head, row, label, 1, labels=False),
            f"label {label} has the value {entries.values[entry]}: a relevance is more than 0, "
            "and what is not relevant is left out.",
        )
    return entries


def _columns(text: Text, head: Header, place: int, asked: int | None, kind: str) -> int | None:
    """Settle a number of columns from header and argument; None if neither says it."""
    if head.sizes is None:
        return asked
    said = head.sizes[place]
    if said > MOST_COLUMNS:
        what = f"the header says {said:,} {kind}: more than {MOST_COLUMNS:,} cannot be read."
        raise text.file_error(1, what)
    if asked is not None and asked < said:
        what = f"the header says {said:,} {kind}, but n_{kind} is {asked:,}: pass as many or more."
        raise text.file_error(1, what)
    return said if asked is None else asked


def _scan(
    text: Text,
    head: Header,
    names: tuple[str, ...],
    base: int,
    n_columns: int | None,
    n_labels: int | None,
    *,
    with_labels: bool,
) -> tuple[Entries, Entries]:
    """Run the compiled pass; allocate by what the text holds, not by what the header says."""
    most_rows, most_entries, commas = tally_xc(text.content, head.rows_at)
    label_ends = np.zeros(most_rows + 1, dtype=np.int64)
    labels = np.empty(commas + most_rows if with_labels else 0, dtype=np.int32)
    row_ends = np.zeros(most_rows + 1, dtype=np.int64)
    columns = np.empty(most_entries, dtype=np.int32)
    values = np.empty(most_entries, dtype=np.float32)
    rules = Rules(
        names,
        base,
        most_columns=MOST_COLUMNS if n_columns is None else n_columns,
        most_labels=MOST_COLUMNS if n_labels is None else n_labels,
    )
    found = scan_xc(
        text.content, head.rows_at, with_labels, base, rules.most_columns, rules.most_labels,
        label_ends, labels, row_ends, columns, values,
    )  # fmt: skip
    if found.fault != XCFault.FINE:
        raise fault(text, head, rules, found.fault, found.fault_at)
    rows = _rows(text, head, found.rows, found.filled_rows)
    columns.resize(found.entries, refcheck=False)
    values.resize(found.entries, refcheck=False)
    labels.resize(found.labels, refcheck=False)
    for entry, start, end in found.left:
        values[entry] = _float32(text, start, end)

    if n_columns is None:
        n_columns = found.largest_column + 1
    entries = Entries(row_ends[: rows + 1], columns, values, n_columns)
    if found.unsorted and (repeated := entries.sort()):
        row, column = repeated
        at = _column_at(text, head, row, column + base, 2, labels=False)
        raise text.error(at, f"{names[1][:-1]} '{column + base}' stands twice: leave one out.")
    if n_labels is None:
        n_labels = found.largest_label + 1
    ones = np.ones(len(labels), dtype=np.float32)
    label_entries = Entries(label_ends[: rows + 1], labels, ones, n_labels)
    if found.unsorted_labels and (repeated := label_entries.sort()):
        row, label = repeated
        at = _column_at(text, head, row, label, 2, labels=True)
        raise text.error(at, f"label '{label}' stands twice: leave one out.")
    return entries, label_entries


def _rows(text: Text, head: Header, lines: int, filled: int) -> int:
    """How many rows there are: blank lines at the end are rows only if the header counts them."""
    if head.sizes is None:
        return filled
    said = head.sizes[0]
    if filled <= said <= lines:
        return said
    there = lines if said > lines else filled
    raise text.file_error(
        1,
        f"the header says {said:,} rows, but there are {there:,}: mend the header, or fetch the "
        "file again if it is cut short.",
    )


def _float32(text: Text, start: int, end: int) -> np.float32:
    """The float32 next to what is written, where going through float64 might give another."""
    word = text.content[start:end].decode()
    double = float(word)
    with np.errstate(over="ignore"):
        single = np.float32(double)
        rest = double - float(single)  # exact
        other: np.float32 = np.nextafter(single, np.float32(np.copysign(np.inf, rest)))
    if np.isinf(single):
        what = f"{text.shown(start, end)} is too large for a float32: scale it down."
        raise text.error(start, what)
    if rest and abs(float(other) - double) == abs(rest):  # halfway: what the double lost decides
        written, halfway = Decimal(word), Decimal(double)
        if written != halfway and (written > halfway) == (rest > 0):
            return other
    return single


def _column_at(text: Text, head: Header, row: int, column: int, nth: int, *, labels: bool) -> int:
    """Find where a row names a column for the nth time."""
    newlines = np.flatnonzero(np.frombuffer(text.content, dtype=np.uint8) == ord("\n"))
    line = row + head.first_line - 1  # counted from 0
    start = int(newlines[line - 1]) + 1 if line else head.rows_at
    pattern = rb"([0-9]+)(?=[,\s])" if labels else rb"([0-9]+):"
    place = start
    for match in re.finditer(pattern, text.content[start : int(newlines[line]) + 1]):
        if int(match[1]) == column:
            place = start + match.start()
            nth -= 1
            if not nth:
                break
    return place
