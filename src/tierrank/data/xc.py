"""The formats of the Extreme Classification Repository, read and written.

The pass over a text's bytes is compiled (`native/xc.hpp`). Here are the header, the arrays that the
pass fills, and what its faults mean; and sparse matrices in .npz files, as `scipy.sparse.save_npz`
writes them, of which nothing is unpickled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from zipfile import ZipFile

import numpy as np

from tierrank._native import XCFault, scan_xc, tally_xc
from tierrank._types import AnyArray, IntArray
from tierrank.data.cache import Builder, Cache, Where
from tierrank.data.files import (
    MARK,
    DataFileError,
    SparseRows,
    Text,
    Token,
    check_expansion,
    check_size,
    expands,
    is_negative,
    read_bytes,
    shown,
    writing,
)
from tierrank.data.multilabel import MultiLabelData
from tierrank.errors import Argument, ArgumentError, Column, InPython

HeaderOption = Literal["auto", True, False]

_LONGEST_HEADER = 100  # bytes: a longer line is a row
_MOST_DIGITS = 18  # that surely fit 64 bits
_MOST_COLUMNS = 2**31 - 1
_ROWS_AT_ONCE = 1024  # that are written


class XCError(DataFileError):
    r"""An XC file that cannot be read: says which, where in it, what is wrong and what to do.

    A `DataFileError`, which has its attributes.

    See Also
    --------
    read_xc : Raises it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import XCError, read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     _ = file.write_text("2 4 5\n0,3 1:0.5\n9 2:1\n")  # there are labels 0 to 4
    ...     try:
    ...         read_xc(file)
    ...     except XCError as error:
    ...         error.line
    3
    """


@expands
def read_xc(
    path: str | PathLike[str],
    *,
    labels: str | PathLike[str] | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    one_based: bool = False,
    header: HeaderOption = "auto",
    cache: Where = False,
    max_expansion: float | None = None,
) -> MultiLabelData:
    r"""Read multi-label data in the formats of the Extreme Classification Repository.

    With features and labels together, a file has the header ``rows features labels`` and then
    lines ``label,label,… index:value index:value …``. A line that starts with a blank, or with
    ``index:value``, has no labels; such rows are kept. Files without a header, as of LIBSVM and
    napkinXC, are read too: they have as many columns as the largest index and label need.

    With features and labels apart, as in ``trn_X_Xf.txt`` and ``trn_X_Y.txt``, each has the header
    ``rows columns`` and lines ``index:value …``. Either may be an .npz file that
    `scipy.sparse.save_npz` wrote, in CSR format. A label whose value is 0 is dropped.

    Every line is a row, a blank one too: it has neither features nor labels. Blank lines at the
    end are rows if the header counts them, and else passed over. Indices of a row need not ascend
    (they are sorted), but none may stand twice. A value is the float32 next to what is written;
    NaN, infinity and what is too large for a float32 are refused.

    The whole text is held in memory, beside 8 bytes a feature value and a label. With a `cache`
    it is read some lines at a time, and both matrices stay on the disk.

    Parameters
    ----------
    path : path-like
        The file of features and labels, or of features; in text, a name that ends in .gz, .xz or
        .bz2 says that it is compressed.
    labels : path-like, optional
        The file of the labels, if they are apart.
    n_features, n_labels : int, optional
        Numbers of columns, if more than the header says, or where there is no header.
    one_based : bool
        Whether the indices of features in text start at 1, as in LIBSVM's files, and not at 0.
        Labels start at 0.
    header : "auto" or bool
        Whether text begins with a header. "auto": if its first line is just three whole numbers,
        two if labels are apart.
    cache : bool or path-like
        True for text that is larger than the memory: it is converted once into arrays in the
        folder ``<path>.cache``, and the matrices are mapped from there, to be read only. Or the
        folder to keep that one in. A conversion that was stopped goes on; of a file that has
        changed, it is done anew. An .npz file is read into memory all the same.
    max_expansion : float, optional
        How many times its size a compressed file, or an .npz, may expand to, beyond half a GiB:
        200 without it.

    Returns
    -------
    MultiLabelData
        The rows, as they stand in the file.

    Raises
    ------
    XCError
        A `ValueError` that names the file, the line and the column, and says what to do.

    See Also
    --------
    read_xc_features : Features alone, to predict labels of.
    read_xc_split : The rows of a split.
    write_xc : Writes such a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("3 4 5\n0,3 1:0.5 2:1\n 0:2\n4 3:1\n")
    ...     data = read_xc(file)
    >>> data
    MultiLabelData(3 rows, 4 features, 5 labels; 1.3 features and 1.0 labels a row)
    >>> data.Y.toarray().astype(int)
    array([[1, 0, 0, 1, 0],
           [0, 0, 0, 0, 0],
           [0, 0, 0, 0, 1]])
    """
    path = Path(path)
    _check_options(n_features, n_labels, one_based, header)
    if labels is not None:
        X = _matrix(path, n_features, int(one_based), header, "features", cache)
        Y = _matrix(Path(labels), n_labels, 0, header, "labels", cache)
        if X.shape[0] != Y.shape[0]:
            raise XCError(
                Path(labels),
                None,
                f"has {Y.shape[0]:,} rows, but {path.name} has {X.shape[0]:,}: the two files do "
                "not belong together, or one is cut short.",
            )
        return MultiLabelData(X, Y)
    _check_file(path)
    if is_npz(path):
        raise XCError(path, None, *_FEATURES_ALONE)
    return MultiLabelData(
        *_read_text(path, _TOGETHER, int(one_based), header, n_features, n_labels, cache)
    )


@expands
def read_xc_features(
    path: str | PathLike[str],
    *,
    n_features: int | None = None,
    one_based: bool = False,
    header: HeaderOption = "auto",
    max_expansion: float | None = None,
) -> Any:
    r"""Read features alone, of rows whose labels are not known.

    The file is one of a pair, such as ``tst_X_Xf.txt``, or .npz; `read_xc` says what they hold.
    Where labels stand in the same file, `read_xc` reads both.

    Parameters
    ----------
    path : path-like
        The file; in text, a name that ends in .gz, .xz or .bz2 says that it is compressed.
    n_features : int, optional
        Number of columns, if more than the header says, or where there is no header.
    one_based : bool
        Whether indices in text start at 1, and not at 0.
    header : "auto" or bool
        Whether text begins with a header. "auto": if its first line is just two whole numbers.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    csr_matrix
        [rows, features] in float32.

    Raises
    ------
    XCError
        A `ValueError` that names the file, the line and the column, and says what to do.

    See Also
    --------
    read_xc : With labels.
    tierrank.ExtremeRanker.predict : The best labels of such rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_xc_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tst_X_Xf.txt")
    ...     _ = file.write_text("2 3\n0:0.5 2:1\n1:2\n")
    ...     read_xc_features(file).toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]], dtype=float32)
    """
    _check_options(n_features, None, one_based, header)
    return _matrix(Path(path), n_features, int(one_based), header, "features")


def read_xc_rows(path: Path, *, one_based: bool) -> Any:
    """The same of a file with or without labels, as its header says; they are passed over."""
    if is_npz(path):
        return _matrix(path, None, int(one_based), "auto", "features")
    _check_file(path)
    return _read_text(path, None, int(one_based), "auto", None)[0]


def _matrix(
    path: Path,
    n_columns: int | None,
    base: int,
    header: HeaderOption,
    kind: str,
    cache: Where = False,
) -> Any:
    """Read a file of ``index:value …``, or .npz, whose columns are "features" or "labels"."""
    _check_file(path)
    if is_npz(path):
        return read_npz(path, n_columns, kind)
    return _read_text(path, ("rows", kind), base, header, n_columns, None, cache)[0]


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise XCError(path, None, "is a folder: give one of its files.")


def _check_options(
    n_features: int | None, n_labels: int | None, one_based: bool, header: HeaderOption
) -> None:
    if not isinstance(one_based, bool):
        raise ArgumentError(Argument("one_based"), f" is True or False, not {one_based!r}.")
    if not isinstance(header, bool) and header != "auto":
        raise ArgumentError(Argument("header"), f' is "auto", True or False, not {header!r}.')
    check_size("n_features", n_features, _MOST_COLUMNS)
    check_size("n_labels", n_labels, _MOST_COLUMNS)


# Text ---------------------------------------------------------------------------------------------


def _read_header(
    text: Text, names: tuple[str, ...], option: HeaderOption
) -> tuple[int, ...] | None:
    """Read the header, if there is one.

    Parameters
    ----------
    names
        what its numbers mean: ("rows", "features", "labels"), or two of them
    option
        whether there is one; "auto" for one if the first line is as many whole numbers
    """
    start, end = text.start, text.content.index(b"\n", text.start)
    numbers = _first_numbers(text)
    if option is not False and len(numbers) == len(names):
        return numbers
    if option is True:
        raise text.error(
            start,
            f"the first line is {shown(text.content[start:end].strip())}, but header=True says "
            f"that it is the header: {_expected(names)}.",
        )
    if option == "auto" and len(numbers) in (2, 3):  # not a row either
        there = f"the header has {_NUMBERS[len(numbers)]} numbers, and should be {_expected(names)}"
        held = _FEATURES_ALONE if len(numbers) == 2 else _BOTH
        raise text.error(start, there, ": this ", *held)
    return None


def _first_numbers(text: Text) -> tuple[int, ...]:
    """The whole numbers that are the first line; none if it is something else."""
    line = text.content[text.start : text.content.index(b"\n", text.start)]
    words = line.split() if len(line) <= _LONGEST_HEADER else []
    return tuple(map(int, words)) if all(map(bytes.isdigit, words)) else ()


def _expected(names: Sequence[str]) -> str:
    """What a header looks like, in words."""
    listed = ", ".join(names[:-1]) + " and " + names[-1]
    return f"{_NUMBERS[len(names)]} whole numbers, of {listed}"


_TOGETHER = ("rows", "features", "labels")
_NUMBERS = {2: "two", 3: "three"}
_FEATURES_ALONE = (
    "holds features alone: give the file of their labels as ", Column("labels"), ".",
)  # fmt: skip
_BOTH = (
    "holds features and labels: ", InPython("for both, use read_xc without labels=; else "),
    "leave out ", Column("labels"), ", or give the file of the features alone.",
)  # fmt: skip


def _read_text(
    path: Path,
    names: tuple[str, ...] | None,
    base: int,
    header: HeaderOption,
    n_columns: int | None,
    n_labels: int | None = None,
    cache: Where = False,
) -> tuple[Any, Any]:
    """Read a text: [rows, columns] and [rows, labels] `csr_matrix`, labels as ones.

    Parameters
    ----------
    names
        what the header's numbers mean; None if they say it
    base
        the first index
    """

    def layout_of(text: Text) -> _Layout:
        return _Layout.of(text, names, base, header, n_columns, n_labels)

    if cache is False:
        text = Text(path, XCError)
        layout = layout_of(text)
        part = layout.scan(text)
        rows, sizes = layout.rows(part.lines, part.filled), layout.sizes(part.largest)
        for matrix in part.matrices:
            matrix.ends = matrix.ends[: rows + 1]
        matrices = part.matrices
    else:
        said = {"names": names and list(names), "base": base, "header": header}
        options = {**said, "sizes": [n_columns, n_labels]}
        kept = Cache([path], "xc", options, cache, _KINDS, XCError)
        about, arrays = kept.made_by(lambda builder: _convert(builder, layout_of))
        sizes = about["sizes"]
        matrices = tuple(SparseRows(*(arrays[name] for name in three)) for three in _ARRAYS)
    return matrices[0].matrix(sizes[0]), matrices[1].matrix(sizes[1])


_ARRAYS = ("ends", "columns", "values"), ("label_ends", "labels", "label_values")
_KINDS = {
    name: kind for three in _ARRAYS for name, kind in zip(three, ("i8", "i4", "f4"), strict=True)
}


def _convert(builder: Builder, layout_of: Callable[[Text], _Layout]) -> None:
    """Read a text in pieces, or what is left of it."""
    state = builder.state
    layout = _Layout(builder.cache.path, *state["layout"]) if state else None
    for text in builder.texts():
        if layout is None:
            layout = layout_of(text)
            state |= {"layout": layout[1:], "rows": 0, "filled": 0, "largest": [-1, -1]}
            for ends, *_ in _ARRAYS:
                builder.append(ends, np.zeros(1, dtype=np.int64))
        part = layout.scan(text)
        for names, matrix in zip(_ARRAYS, part.matrices, strict=True):
            builder.append(names[0], matrix.ends[1:] + builder.length(names[1]))
            builder.append(names[1], matrix.columns)
            builder.append(names[2], matrix.values)
        if part.filled:
            state["filled"] = state["rows"] + part.filled
        state["rows"] += part.lines
        state["largest"] = [max(two) for two in zip(state["largest"], part.largest, strict=True)]
    assert layout is not None
    shapes: dict[str, Sequence[int]] = {}
    for ends, *others in _ARRAYS:
        shapes[ends] = [layout.rows(state["rows"], state["filled"]) + 1]
        shapes |= {name: [builder.length(name)] for name in others}
    builder.finish({"sizes": layout.sizes(state["largest"])}, shapes)


class _Part(NamedTuple):
    """Rows of a text: those of features and of labels, as many as lines; so many without blank ones
    at the end; and the largest column and label, or −1.
    """

    matrices: tuple[SparseRows, ...]
    lines: int
    filled: int
    largest: tuple[int, int]


class _Layout(NamedTuple):
    """How rows ``label,label,… index:value …``, or ``index:value …`` alone, are to be read."""

    path: Path
    names: Sequence[str]  # of what the header counts
    said: Sequence[int] | None  # by the header, if there is one
    base: int  # the first index
    n_columns: int | None
    n_labels: int | None

    @classmethod
    def of(
        cls,
        text: Text,
        names: tuple[str, ...] | None,
        base: int,
        header: HeaderOption,
        n_columns: int | None,
        n_labels: int | None,
    ) -> _Layout:
        """Look at the first line."""
        if not re.compile(rb"\S").search(text.content, text.start):
            raise text.file_error(1, "the file is empty: it has neither a header nor a row.")
        if names is None:
            names = _TOGETHER[:2] if len(_first_numbers(text)) == 2 else _TOGETHER
        said = _read_header(text, names, header)
        first = cls(text.path, names, said, base, None, None)
        n_columns = first._settled(1, n_columns)
        n_labels = first._settled(2, n_labels) if len(names) > 2 else None
        return first._replace(n_columns=n_columns, n_labels=n_labels)

    def _settled(self, place: int, asked: int | None) -> int | None:
        """Settle a number of columns from header and argument; None if neither says it."""
        if self.said is None:
            return asked
        said, kind = self.said[place], self.names[place]
        states = f"the header says {said:,} {kind}"
        if said > _MOST_COLUMNS:
            what = f"{states}: more than {_MOST_COLUMNS:,} cannot be read."
            raise XCError(self.path, 1, what)
        if asked is not None and asked < said:
            what = f"{states}, but n_{kind} is {asked:,}: pass as many or more."
            raise XCError(self.path, 1, what)
        return said if asked is None else asked

    def rows(self, lines: int, filled: int) -> int:
        """How many rows there are: blank ones at the end only if the header counts them."""
        if self.said is None:
            return filled
        said = self.said[0]
        if filled <= said <= lines:
            return said
        there = lines if said > lines else filled
        raise XCError(
            self.path,
            1,
            f"the header says {said:,} rows, but there are {there:,}: mend the header, or fetch "
            "the file again if it is cut short.",
        )

    def sizes(self, largest: Sequence[int]) -> list[int]:
        """Numbers of columns and of labels."""
        settled = (self.n_columns, self.n_labels)
        return [most + 1 if n is None else n for n, most in zip(settled, largest, strict=True)]

    def _rows_at(self, text: Text) -> int:
        """Where the rows begin."""
        if text.lines_before or self.said is None:
            return text.start
        return text.content.index(b"\n", text.start) + 1

    def scan(self, text: Text) -> _Part:
        """Read the rows of a text, or of a piece of it.

        Memory is asked for by what the text holds, not by what the header says.
        """
        base, column, rows_at = self.base, self.names[1][:-1], self._rows_at(text)
        with_labels = len(self.names) > 2
        most_columns = _MOST_COLUMNS if self.n_columns is None else self.n_columns
        most_labels = _MOST_COLUMNS if self.n_labels is None else self.n_labels
        most_rows, most_entries, commas = tally_xc(text.content, rows_at)
        label_ends = np.zeros(most_rows + 1, dtype=np.int64)
        labels = np.empty(commas + most_rows if with_labels else 0, dtype=np.int32)
        row_ends = np.zeros(most_rows + 1, dtype=np.int64)
        columns = np.empty(most_entries, dtype=np.int32)
        values = np.empty(most_entries, dtype=np.float32)
        found = scan_xc(
            text.content, rows_at, with_labels, base, most_columns, most_labels,
            label_ends, labels, row_ends, columns, values,
        )  # fmt: skip
        if found.fault != XCFault.FINE:
            what = self._fault(text, found.fault, found.fault_at, most_columns, most_labels)
            raise text.error(found.fault_at, *what)
        columns.resize(found.entries, refcheck=False)
        values.resize(found.entries, refcheck=False)
        labels.resize(found.labels, refcheck=False)
        for entry, start, end in found.left:
            values[entry] = _float32(text, start, end)
        entries = SparseRows(row_ends[: found.rows + 1], columns, values)
        if found.unsorted and (repeated := entries.sort()):
            row, index = repeated[0], repeated[1] + base
            at = self._place(text, row, rb"([0-9]+):", index, 2)
            raise text.error(at, f"{column} '{index}' stands twice: leave one out.")
        if column == "label" and len(entries.values) and entries.values.min() < 0:
            entry = int((entries.values < 0).argmax())
            label = int(entries.columns[entry]) + base
            raise text.error(
                self._place(text, entries.row_of(entry), rb"([0-9]+):", label, 1),
                f"label {label} has the value {entries.values[entry]}: a relevance is more than "
                "0, and what is not relevant is left out.",
            )
        ones = np.ones(len(labels), dtype=np.float32)
        label_sets = SparseRows(label_ends[: found.rows + 1], labels, ones)
        if found.unsorted_labels and (repeated := label_sets.sort()):
            row, label = repeated
            at = self._place(text, row, rb"([0-9]+)(?=[,\s])", label, 2)
            raise text.error(at, f"label '{label}' stands twice: leave one out.")
        largest = found.largest_column, found.largest_label
        return _Part((entries, label_sets), found.rows, found.filled_rows, largest)

    def _place(self, text: Text, row: int, pattern: bytes, index: int, nth: int) -> int:
        """Find where a row names a column for the nth time."""
        content, rows_at = text.content, self._rows_at(text)
        lines = np.frombuffer(content, dtype=np.uint8)[rows_at:] == ord("\n")
        ends = np.append(rows_at, np.flatnonzero(lines) + rows_at + 1)
        start = int(ends[row])
        places = [
            start + match.start()
            for match in re.finditer(pattern, content[start : int(ends[row + 1])])
            if int(match[1]) == index
        ]
        return places[nth - 1] if len(places) >= nth else start

    def _fault(
        self, text: Text, fault: XCFault, at: int, most_columns: int, most_labels: int
    ) -> tuple[object, ...]:
        """Word what the compiled pass stumbled over at a place in the text."""
        content, column = text.content, self.names[1][:-1]
        token = Token(text, at)
        label = token.raw.partition(b",")[0]
        starts_line = content[at - 1 : at] in (b"", b"\n")
        if fault == XCFault.BAD_LABEL and starts_line and b":" in label:
            fault = XCFault.BAD_INDEX  # a row without labels
        what: tuple[object, ...]
        if fault == XCFault.BAD_LABEL:
            what = (_bad_label(token.raw, label),)
        elif fault == XCFault.LARGE_LABEL:
            what = f"label {shown(label)} ", *_over(most_labels, 0, "labels")
        elif fault == XCFault.LABEL_TWICE:
            what = (f"label {shown(label)} stands twice: leave one out.",)
        elif fault == XCFault.LARGE_INDEX:
            what = f"{column} {token.name} ", *_over(most_columns, self.base, self.names[1])
        elif fault == XCFault.ZERO_INDEX:
            so = "says that they start at 1: leave it out."
            given = Argument("one_based"), InPython("=True"), f" {so}"
            what = f"{column} {token.name} is 0, but ", *given
        elif fault == XCFault.TWICE:
            what = (f"{column} {token.name} stands twice: leave one out.",)
        elif fault == XCFault.BAD_VALUE:
            value = f"the value {token.value} of {column} {token.name}"
            what = (f"{value} is not a finite number: write one.",)
        else:
            what = (f"{token.bad_index(column)}.",)
        first_line = content[: content.index(b"\n")]
        begins = self.said is None and not text.lines_before
        if begins and at < len(first_line) and b":" not in first_line:
            what = *what, f" If this is the header, it should be {_expected(self.names)}."
        return what


def _over(size: int, base: int, kind: str) -> tuple[object, ...]:
    return (
        f"is over {size - 1 + base:,}, the last of {size:,} that start at {base}: number them "
        "anew, or mend the header",
        InPython(f", or pass a larger n_{kind}"),
        ".",
    )


def _bad_label(token: bytes, label: bytes) -> str:
    if not token:
        return "a label is missing after the comma: write labels as 3,7 without blanks between."
    if not label:
        return "a label is missing before the comma: write labels as 3,7."
    if is_negative(label):
        return f"label {shown(label)} is negative: labels start at 0."
    if b":" in label:
        return f"{shown(label)} is no label: set labels and features apart by a blank."
    return f"label {shown(label)} is not a whole number: write labels in digits, as 3,7."


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


# Splits -------------------------------------------------------------------------------------------


def read_xc_split(path: str | PathLike[str], column: int = 0) -> IntArray:
    r"""Read the rows of a split, such as ``bibtex_trSplit.txt``, for `MultiLabelData.select`.

    A line has one whole number for each split of the data: rows, counted from 1.

    Parameters
    ----------
    path : path-like
        The file; a name that ends in .gz, .xz or .bz2 says that it is compressed.
    column : int
        Which split, counted from 0.

    Returns
    -------
    ndarray of int
        [rows of the split] counted from 0, in the order of the file.

    Raises
    ------
    XCError
        A number is none, or there is no such column.

    See Also
    --------
    MultiLabelData.select : Takes these rows.
    read_xc : The data that are split.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_xc_split
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trSplit.txt")
    ...     _ = file.write_text("1 4\n3 2\n")
    ...     read_xc_split(file), read_xc_split(file, column=1)
    (array([0, 2]), array([3, 1]))
    """
    path = Path(path)
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        raise ValueError(f"column is a whole number, not {column!r}.")
    _check_file(path)
    rows: list[int] = []
    lines: dict[int, int] = {}
    width = None
    content = read_bytes(path, XCError).removeprefix(MARK)
    for line, words in enumerate(map(bytes.split, BytesIO(content)), start=1):
        if not words:
            continue
        if width is None:
            width = len(words)
            if not 0 <= column < width:
                what = f"has {width} columns, so column is from 0 to {width - 1}, not {column}."
                raise XCError(path, line, what)
        if len(words) != width:
            what = f"has {len(words)} numbers, but others have {width}: is the line cut off?"
            raise XCError(path, line, what)
        for word in words:
            if not word.isdigit() or len(word) > _MOST_DIGITS or int(word) == 0:
                what = f"{shown(word)} is not the number of a row: they are whole, and start at 1."
                raise XCError(path, line, what)
        row = int(words[column])
        if row in lines:
            what = f"row {row} stands on line {lines[row]} too: leave one out."
            raise XCError(path, line, what)
        lines[row] = line
        rows.append(row - 1)
    if width is None:
        raise XCError(path, 1, "the file is empty: give one with the number of a row a line.")
    return np.array(rows, dtype=np.int64)


# Writing ------------------------------------------------------------------------------------------


def write_xc(
    path: str | PathLike[str],
    data: MultiLabelData,
    *,
    labels: str | PathLike[str] | None = None,
) -> None:
    """Write multi-label data in a format of the Extreme Classification Repository.

    `read_xc` gives back the same data, to the last bit. A file is written beside and renamed.

    Parameters
    ----------
    path : path-like
        The file for features and labels together; with `labels`, for features. Text is compressed
        if the name ends in .gz, .xz or .bz2; a name that ends in .npz gets scipy's format.
    data : MultiLabelData
        What to write.
    labels : path-like, optional
        The file for the labels, if they are to stand apart: as text or .npz, and with their
        relevances, for which there is no place where both are together.

    Raises
    ------
    ValueError
        Relevances other than 1 are to stand in one file with the features.

    See Also
    --------
    read_xc : Reads it again.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import MultiLabelData, write_xc
    >>> data = MultiLabelData([[0.0, 0.5], [2.0, 0.0]], [[1, 0, 1], [0, 0, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     write_xc(file, data)
    ...     print(file.read_text(), end="")
    2 2 3
    0,2 1:0.5
     0:2
    """
    path = Path(path)
    if labels is None:
        _write_together(data, path)
        return
    labels = Path(labels)
    if labels.resolve() == path.resolve():
        raise ValueError(f"path and labels are both {path}: give two files, or leave out labels.")
    with writing(labels) as label_file:
        _write_matrix(label_file, data.Y, as_npz=is_npz(labels))
        with writing(path) as feature_file:
            _write_matrix(feature_file, data.X, as_npz=is_npz(path))


def _write_together(data: MultiLabelData, path: Path) -> None:
    if is_npz(path):
        raise ValueError(f"{path} holds one matrix: pass a second file as labels=.")
    if (data.Y.data != 1).any():
        raise ValueError(
            f"there are relevances other than 1, such as {data.Y.data[data.Y.data != 1][0]}, and "
            "no place for them beside the features: pass a file of their own as labels=."
        )
    with writing(path) as file:
        file.write(f"{data.n_rows} {data.n_features} {data.n_labels}\n".encode())
        for features, label_sets in zip(_blocks(data.X), _blocks(data.Y), strict=True):
            heads = _rows(label_sets, ",", with_values=False)
            tails = _rows(features, " ", with_values=True)
            lines = [f"{head} {tail}\n" for head, tail in zip(heads, tails, strict=True)]
            file.write("".join(lines).encode())


def _write_matrix(file: IO[bytes], matrix: Any, *, as_npz: bool) -> None:
    if as_npz:
        from scipy.sparse import save_npz

        save_npz(file, matrix)
        return
    file.write("{} {}\n".format(*matrix.shape).encode())
    for block in _blocks(matrix):
        file.write("".join(f"{row}\n" for row in _rows(block, " ", with_values=True)).encode())


def _blocks(matrix: Any) -> Iterator[Any]:
    for start in range(0, matrix.shape[0], _ROWS_AT_ONCE):
        yield matrix[start : start + _ROWS_AT_ONCE]


def _rows(matrix: Any, separator: str, *, with_values: bool) -> Iterator[str]:
    """Give one row after the other, as text."""
    words = list(map(str, matrix.indices.tolist()))
    if with_values:
        # Most data sets repeat their values, and it takes long to find the shortest text of one.
        values, which = np.unique(matrix.data.view(np.int32), return_inverse=True)
        texts = [_shortest(value) for value in values.view(np.float32)]
        words = [f"{c}:{texts[i]}" for c, i in zip(words, which.tolist(), strict=True)]
    for start, end in pairwise(matrix.indptr.tolist()):
        yield separator.join(words[start:end])


def _shortest(value: np.float32) -> str:
    """Shortest text that reads back as the same float32."""
    return str(value).removesuffix(".0")


# Matrices in .npz files ---------------------------------------------------------------------------


_NPZ_ARRAYS = ("format", "shape", "data", "indices", "indptr")


def is_npz(path: Path) -> bool:
    """Whether the name is that of a sparse matrix in numpy's format."""
    return path.suffix.lower() == ".npz"


def read_npz(path: Path, n_columns: int | None, kind: str) -> Any:
    """Read a matrix whose columns are "features" or "labels", as a `csr_matrix` of float32."""
    arrays = _Archive(path)
    layout = arrays.text("format")
    if layout != "csr":
        what = f"is a matrix of format {layout!r}: save it with save_npz(path, matrix.tocsr())."
        raise XCError(path, None, what)
    rows, columns = arrays.shape()
    if columns > _MOST_COLUMNS:
        what = f"has {columns:,} {kind}: more than {_MOST_COLUMNS:,} cannot be read."
        raise XCError(path, None, what)
    data, indices, ends = (arrays.flat(name) for name in ("data", "indices", "indptr"))
    _check_arrays(path, data, indices, ends, rows, columns)
    used = int(ends[-1])  # scipy allows for more room than there are entries
    entries = SparseRows(ends, indices[:used], _as_float32(path, data[:used]))
    if repeated := entries.sort():
        row, column = repeated
        what = f"{kind[:-1]} {column}, counted from 0, stands twice in this row: {_AGAIN}"
        raise XCError(path, None, what, row=row + 1)
    if kind == "labels" and used and entries.values.min() < 0:
        row = entries.row_of(int((entries.values < 0).argmax()))
        what = "there is a negative relevance: they are more than 0, or left out."
        raise XCError(path, None, what, row=row + 1)
    if n_columns is not None and n_columns < columns:
        what = f"has {columns:,} {kind}, but n_{kind} is {n_columns:,}: pass as many or more."
        raise XCError(path, None, what)
    return entries.matrix(columns if n_columns is None else n_columns)


class _Archive:
    """The arrays of an .npz file, by name, each checked before memory is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            try:
                with ZipFile(file) as archive:
                    there = {name.removesuffix(".npy"): name for name in archive.namelist()}
                    if missing := [name for name in _NPZ_ARRAYS if name not in there]:
                        raise ValueError(f"it has no {', '.join(missing)}")
                    sizes = [archive.getinfo(there[name]).file_size for name in _NPZ_ARRAYS]
                    check_expansion(path, sum(sizes), XCError)
                    self._arrays = {name: _array(archive.read(there[name])) for name in _NPZ_ARRAYS}
            except XCError:
                raise
            except Exception as error:
                # Of any kind: zipfile, zlib, tokenize and numpy's header each have their own.
                what = f"is no sparse matrix that can be read ({_reason(error)})"
                raise self._error(what) from error

    def flat(self, name: str) -> AnyArray:
        """A one-dimensional array."""
        array = self._arrays[name]
        if array.ndim != 1:
            raise self._error(f"its {name} has shape {array.shape} and should be flat")
        return array

    def text(self, name: str) -> str:
        """A word, stored as bytes or as a string."""
        array = self._arrays[name]
        word = array.item() if array.size == 1 and array.dtype.kind in "SU" else None
        if isinstance(word, bytes):
            word = word.decode(errors="backslashreplace")
        if not isinstance(word, str):
            raise self._error(f"its {name} is not a word")
        return word

    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        shape = self._arrays["shape"]
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or min(shape.tolist()) < 0:
            raise self._error(f"its shape is {shape.tolist()} and should be [rows, columns]")
        rows, columns = shape.tolist()
        return rows, columns

    def _error(self, what: str) -> XCError:
        return XCError(self._path, None, f"{what}: {_AGAIN}")


_AGAIN = "write it anew, with scipy.sparse.save_npz."


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": .")[:200]


def _array(content: bytes) -> AnyArray:
    """An array from the bytes of an .npy file; its size must be that of the bytes."""
    file = BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_columns, kind = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"the version {version} of its arrays is not known")
    if kind.hasobject or kind.kind not in "biufSU":
        raise ValueError(f"it has an array of {kind}, not of numbers")
    held = len(content) - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != held:
        raise ValueError(f"an array should be {shape} of {kind}, but has {held:,} bytes")
    if not held:
        return np.empty(shape, dtype=kind)
    array = np.frombuffer(content, dtype=kind, offset=file.tell()).copy()
    return array.reshape(shape, order="F" if by_columns else "C")


def _check_arrays(
    path: Path, data: AnyArray, indices: AnyArray, ends: AnyArray, rows: int, columns: int
) -> None:
    """Compare the three arrays of a compressed matrix with each other and with its shape."""
    wrong = None
    if indices.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        wrong = f"its indices are {indices.dtype} and {ends.dtype}, not integers"
    elif data.dtype.kind not in "biuf" or data.dtype.itemsize > 8:
        wrong = f"its values are {data.dtype}, not numbers"
    elif len(data) != len(indices):
        wrong = f"it has {len(data):,} values for {len(indices):,} indices"
    elif len(ends) != rows + 1:
        wrong = f"its indptr has {len(ends):,} numbers for {rows:,} rows"
    elif ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > len(data):
        wrong = "its indptr does not ascend from 0 to the number of values"
    elif len(indices) and int(indices.min()) < 0:
        wrong = f"it has the index {indices.min()}, which is negative"
    elif len(indices) and int(indices.max()) >= columns:
        wrong = f"it has the index {indices.max()}, but {columns:,} columns"
    if wrong is not None:
        raise XCError(path, None, f"is no valid sparse matrix: {wrong}. {_AGAIN.capitalize()}")


def _as_float32(path: Path, values: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    if len(narrow) and not (np.isfinite(narrow.min()) and np.isfinite(narrow.max())):
        value = values[int((~np.isfinite(narrow)).argmax())]
        what = f"has the value {value}: give finite numbers that a float32 can hold."
        raise XCError(path, None, what)
    return narrow
