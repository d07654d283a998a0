"""LETOR and svmlight ranking files, read and written: ``label qid:q index:value … # comment``.

The pass over a file's bytes is compiled (`native/letor.hpp`). Here are the arrays that it fills,
what its faults mean, and what several files have to agree on.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise
from os import SEEK_END, PathLike
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, NamedTuple

import numpy as np

from tierrank._native import LARGEST_LETOR_INDEX, LetorFault, scan_letor, spread
from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.cache import Builder, Cache, Where, Words, blocks, words_of
from tierrank.data.files import (
    MARK,
    SUFFIXES,
    DataFileError,
    SparseRows,
    Text,
    Token,
    check_size,
    expands,
    read_bytes,
    shown,
    without_compression,
    writing,
)
from tierrank.data.ranking_data import Part, RankingData, check_part
from tierrank.errors import Argument, ArgumentError, InPython
from tierrank.names import counted
from tierrank.ranks import ALONE, Ranks

OneBased = Literal["auto", True, False]
PARTS = ("train", "vali", "test")

# bytes of a cell of a dense array, and of an entry of a sparse one (value and column)
_CELL, _ENTRY = 8, 12
_BLOCK = 1 << 20  # bytes looked at at once
_BACK = 1 << 14  # bytes that are read to find the row before a place
_EXACT_INTEGERS = 2**53
_QID = re.compile(rb"\s*[^\s#:]+\s+qid:([^\s#]*)")

Place = tuple[int | None, int | None]  # line and column
NOWHERE: Place = (None, None)


class LetorError(DataFileError):
    r"""A LETOR file that cannot be read: says which, where in it, what is wrong and what to do.

    A `DataFileError`, which has its attributes.

    See Also
    --------
    read_letor : Raises it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import LetorError, read_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5\n1 qid:7 1:abc\n")
    ...     try:
    ...         read_letor(file)
    ...     except LetorError as error:
    ...         error.line
    2
    """


@expands
def read_letor(
    path: str | PathLike[str],
    *,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    missing: float = np.nan,
    dense: bool | None = None,
    keep_comments: bool = False,
    cache: Where = False,
    max_expansion: float | None = None,
    part: Part | None = None,
) -> RankingData:
    r"""Read a LETOR or svmlight ranking file.

    A row is ``label qid:q index:value … # comment``. Blank lines, and lines with nothing but a
    comment, are skipped; a `#` starts a comment wherever it stands. Fields are set apart by
    blanks or tabs. Lines may end as on Windows, the last one with nothing, and the file may
    begin with a UTF-8 byte order mark.

    Rows of a query need not be adjacent. Indices of a row need not ascend (they are sorted), but
    none may stand twice. Numbers are read to the last bit, as Python's `float` reads them; one
    that is too large for a float64 is an error, `inf` is accepted for a feature.

    The whole file is held in memory, beside 12 bytes a feature value and about 48 a row; a dense
    `X` takes 8 bytes a cell more, unless every row names every feature: then it takes nothing.
    With a `cache` it is read some lines at a time, and `X` stays on the disk.

    Parameters
    ----------
    path : path-like
        The file; a name that ends in .gz, .xz or .bz2 says that it is compressed. If no row has a
        qid, LightGBM's ``<path>.query`` gives the number of rows of each query, and qid is
        0, 1, …; `.query` is not looked at otherwise.
    n_features : int, optional
        Number of columns; without it, as many as the largest index needs.
    one_based : "auto" or bool
        Whether indices start at 1. "auto": yes, unless an index 0 occurs. A file that starts at
        0 but never uses it looks the same as one that starts at 1: pass False for it.
    missing : float
        What the feature values ``NULL`` (as in LETOR's MQ2007-agg) and ``NaN`` become.
    dense : bool, optional
        True for a numpy array, False for a scipy `csr_matrix`; None for what takes less memory,
        which is dense if at least two thirds of the cells are written. What a row does not name
        is 0.
    keep_comments : bool
        Keep what follows the `#`.
    cache : bool or path-like
        True for a file that is larger than the memory: it is converted once into arrays in the
        folder ``<path>.cache``, and `X` is mapped from there, to be read only. Or the folder to
        keep that one in. A conversion that was stopped goes on; of a file that has changed, it is
        done anew.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.
    part : tuple of int, optional
        (rank, ranks), to read one of so many parts, of about as many bytes each: it begins where a
        query does, and ends where one ends. Rows of a query are then adjacent. What cannot be cut,
        as it is compressed, in a cache or without qid, is read whole, for its part of the queries.
        Processes of `torchrun`, or of a process group, settle together what `n_features` and
        `one_based` leave open; others give both.

    Returns
    -------
    RankingData
        The rows, as they stand in the file.

    Raises
    ------
    LetorError
        A `ValueError` that names the file, the line and the column, and says what to do.

    See Also
    --------
    read : Of any format, by its name.
    write_letor : Writes such a file.
    read_letor_fold : Three files whose columns agree.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:3 # doc 1\n0 qid:7 1:0.1 2:NULL # doc 2\n")
    ...     data = read_letor(file)
    >>> data
    RankingData(2 rows, 1 query, 2 dense features)
    >>> data.X
    array([[0.5, 3. ],
           [0.1, nan]])
    >>> data.tiers()
    Tiers(1 list, 2 rows, 2 tiers)
      7: 0 > 1
    """
    return read_letor_files(
        [Path(path)], n_features=n_features, one_based=one_based, missing=missing, dense=dense,
        keep_comments=keep_comments, cache=cache, part=part,
    )[0]  # fmt: skip


@expands
def read_letor_fold(
    folder: str | PathLike[str],
    *,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    missing: float = np.nan,
    dense: bool | None = None,
    keep_comments: bool = False,
    max_expansion: float | None = None,
) -> dict[str, RankingData]:
    r"""Read the `train.txt`, `vali.txt` and `test.txt` of a folder such as LETOR's `Fold1`.

    They may be compressed (`train.txt.gz`, …). What the arguments leave open (the number of
    features, where indices start, dense or sparse) is settled for all three together, so that their
    columns agree. So all three are in memory at once. A dense file with fewer features than the
    others is refused; a sparse one is filled up with 0 and a warning.

    Parameters
    ----------
    folder : path-like
        Where the files are.
    n_features : int, optional
        Number of columns; without it, as many as the largest index of the three files needs.
    one_based : "auto" or bool
        Whether indices start at 1, as in `read_letor`.
    missing : float
        What the feature values ``NULL`` and ``NaN`` become.
    dense : bool, optional
        True for numpy arrays, False for scipy ones; None for what takes less memory.
    keep_comments : bool
        Keep what follows the ``#``.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    dict of RankingData
        The data by "train", "vali" and "test"; a part without a file is left out, except train.

    Raises
    ------
    LetorError
        A file cannot be read, or there is no file to train on.

    See Also
    --------
    read_letor : One file.
    read_folds : All folds of a folder, of any format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_letor_fold
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "train.txt").write_text("2 qid:1 1:0.5\n0 qid:1 2:1\n")
    ...     _ = pathlib.Path(folder, "test.txt").write_text("1 qid:9 1:0.1 2:0\n")
    ...     parts = read_letor_fold(folder)
    >>> parts["train"].n_features, parts["test"].n_features
    (2, 2)
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LetorError(folder, None, "is not a folder: give the one that holds train.txt.")
    files = {part: file for part in PARTS if (file := _part(folder, part)) is not None}
    if "train" not in files:
        raise LetorError(folder, None, "has no train.txt, .gz, .xz or .bz2: give another folder.")
    read = read_letor_files(
        list(files.values()), n_features=n_features, one_based=one_based, missing=missing,
        dense=dense, keep_comments=keep_comments,
    )  # fmt: skip
    return dict(zip(files, read, strict=True))


def read_letor_files(
    paths: Sequence[Path],
    *,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    missing: float = np.nan,
    dense: bool | None = None,
    keep_comments: bool = False,
    cache: Where = False,
    part: Part | None = None,
) -> list[RankingData]:
    """Read files that belong together, so that their columns agree; options as in `read_letor`."""
    if not isinstance(one_based, bool) and one_based != "auto":
        raise ValueError(f'one_based is "auto", True or False, not {one_based!r}.')
    check_size("n_features", n_features, 2**31)
    for path in paths:
        if path.is_dir():
            raise LetorError(
                path,
                None,
                "is a folder: give one of its files",
                InPython(", or read all with read_letor_fold or read_folds"),
                ".",
            )
    check_part(part)
    files: list[_InMemory] | list[_OnDisk]
    if cache is False:
        files = [_InMemory(path, missing, keep_comments, part) for path in paths]
    elif keep_comments:
        raise ValueError("comments are not kept in a cache: leave out keep_comments, or cache.")
    else:
        files = [_OnDisk(path, missing, cache) for path in paths]
    found = [file.found for file in files]
    if part is not None:
        found = _agreed(found, part, said=n_features is not None and one_based != "auto")
    base, columns = _base_and_columns(found, n_features, one_based)
    if dense is None:
        dense = _is_dense(found, columns)
    read = [file.data(base, columns, dense) for file in files]
    if part is None:
        return read
    cut = [file.is_part for file in files]
    return [data if whole else data.part(part) for data, whole in zip(read, cut, strict=True)]


def _agreed(files: Sequence[_Found], part: Part, *, said: bool) -> list[_Found]:
    """What is known of files whose parts all ranks have read; of no place, in which line it is."""
    ranks = Ranks.join()
    if ranks.size != part[1] and not said:
        raise ArgumentError(
            Argument("part"),
            f" is {part!r}, but there is no group of {part[1]} processes, and a part alone does "
            "not tell how many features there are, nor whether their numbers start at 0: give ",
            Argument("n_features"), " and ", Argument("one_based"), ", or start the processes by "
            "torchrun.",
        )  # fmt: skip
    others = ranks if ranks.size == part[1] else ALONE
    together = []
    for file, *parts in zip(files, *others.gather([file[1:] for file in files]), strict=True):
        found = reduce(_Found.followed_by, [_Found(file.path, *each) for each in parts])
        place = None if found.first_zero is None else NOWHERE
        found = found._replace(first_zero=place, largest_at=NOWHERE)
        together.append(found if others is ALONE else _not_empty(found))
    return together


def _part(folder: Path, part: str) -> Path | None:
    files = [folder / f"{part}.txt{suffix}" for suffix in ("", *SUFFIXES)]
    there = [file for file in files if file.is_file()]
    if len(there) > 1:
        names = " and ".join(file.name for file in there)
        raise LetorError(folder, None, f"has both {names}: leave one of them.")
    return there[0] if there else None


class _Found(NamedTuple):
    """What is known of a file's rows, whose feature indices are as they are written."""

    path: Path
    rows: int = 0
    entries: int = 0
    first_zero: Place | None = None  # line and column of the first index 0
    largest: int = -1  # the largest index
    largest_at: Place = (1, 1)  # where it stands first

    def followed_by(self, other: _Found) -> _Found:
        """The same of these rows and others that come after them."""
        wider = other.largest > self.largest
        return _Found(
            self.path,
            self.rows + other.rows,
            self.entries + other.entries,
            other.first_zero if self.first_zero is None else self.first_zero,
            max(self.largest, other.largest),
            other.largest_at if wider else self.largest_at,
        )

    def error(self, place: Place, what: str) -> LetorError:
        """Name a line and a column, which are not known of a file in parts."""
        return LetorError(self.path, place[0], what, column=place[1])


def _base_and_columns(
    files: Sequence[_Found], n_features: int | None, one_based: OneBased
) -> tuple[int, int]:
    """Settle for all files what the first index is, and how many features there are."""
    with_zero = [file for file in files if file.first_zero is not None]
    if with_zero and one_based is True:
        file = with_zero[0]
        what = "the feature index is 0, but one_based=True says they start at 1: pass False."
        raise file.error(file.first_zero or NOWHERE, what)
    base = int(not with_zero if one_based == "auto" else one_based)
    widest = max(files, key=lambda file: file.largest)
    if n_features is None:
        columns = max(widest.largest - base + 1, 0)
        for file in files:
            own = max(file.largest - base + 1, 0)
            if own < columns:
                dense = _is_dense([file], own)
                check_fewer(file.path, own, columns, widest.path.name, dense=dense)
        return base, columns
    columns = int(n_features)
    for file in files:
        if file.largest - base >= columns:
            last = columns - 1 + base
            raise file.error(
                file.largest_at,
                f"the feature index {file.largest} is over {last}, the last of {columns} that "
                f"start at {base}: pass a larger n_features, or none.",
            )
    return base, columns


def check_fewer(path: Path, there: int, columns: int, whose: str, *, dense: bool) -> None:
    """Refuse a dense file that has fewer features than others; say so of a sparse one.

    A sparse file does not say how many it has: its rows may all be 0 in the last ones.
    """
    has = f"has {counted(there, 'feature')}"
    if dense:
        raise LetorError(
            path,
            None,
            f"{has}, but {whose} has {columns:,}, and the file is dense: its rows name two thirds "
            "of them or more, so the others are missing and not 0. Give these too. (If they are 0 "
            "in all rows, write the last of them into one row, as index:0.)",
        )
    what = f"{path.name} {has}, and {whose} {columns:,}: the file is sparse, so the others are 0."
    warnings.warn(what, stacklevel=2)


def _is_dense(files: Sequence[_Found], columns: int) -> bool:
    cells = columns * sum(file.rows for file in files)
    return sum(file.entries for file in files) * _ENTRY >= cells * _CELL


# One file -----------------------------------------------------------------------------------------


class _InMemory:
    """A file that is read whole, or a part of it that begins and ends where queries do."""

    def __init__(self, path: Path, missing: float, keep_comments: bool, part: Part | None) -> None:
        borders = None if part is None else _borders(path, part)
        self.is_part = borders is not None
        if borders is None:
            self._parsed = _parse(Text(path, LetorError), missing, keep_comments)
            self.found = _not_empty(self._parsed.found)
            return
        start, end = borders
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(end - start)
        try:
            self._parsed = _parse(Text(path, LetorError, content), missing, keep_comments)
        except LetorError as error:
            if not start or error.line is None:
                raise
            raise error.further_down(_lines_before(path, start)) from None
        self.found = self._parsed.found

    def data(self, base: int, columns: int, dense: bool) -> RankingData:
        """The rows, once it is known how features are counted."""
        parsed, found = self._parsed, self.found
        qid = parsed.qid
        if qid is None:
            qid = _queries_of(found.path, found.rows) if found.rows else np.empty(0, dtype=np.int64)
        X: Any
        if dense and found.entries == found.rows * columns:  # no index twice: each row has them all
            X = parsed.rows.values.reshape(found.rows, columns)
        elif dense:
            X = _spread(parsed.rows, base, columns)
        else:
            parsed.rows.columns -= np.int32(base)
            X = parsed.rows.matrix(columns)
        return RankingData(X, parsed.labels, qid, parsed.comments)


def _spread(rows: SparseRows, base: int, columns: int) -> FloatArray:
    X = np.zeros((len(rows), columns))
    spread(rows.ends, rows.columns, base, rows.values, X)
    return X


def _not_empty(found: _Found) -> _Found:
    if not found.rows:
        raise LetorError(
            found.path, 1, "the file has no rows: give one with `label qid:… index:value …`."
        )
    return found


class _OnDisk:
    """A file that is read in pieces, into a cache.

    First come its rows as they are written: `values`, `indices` and `ends`. Once it is known how
    features are counted in all files that belong together, the matrix `X` is made of these, or
    `columns` that start at 0, unless every row names every feature: then `values` are the matrix.
    """

    KINDS: ClassVar = {
        "y": "f8", "qid": "i8", "words": "u1", "ends": "i8", "indices": "i4", "values": "f8",
        "columns": "i4", "X": "f8",
    }  # fmt: skip

    is_part = False

    def __init__(self, path: Path, missing: float, where: Where) -> None:
        self._missing = float(missing)
        sources = [path, *([] if (beside := _sidecar(path)) is None else [beside])]
        options = {"missing": repr(self._missing)}
        self._cache = cache = Cache(sources, "letor", options, where, self.KINDS, LetorError)
        with cache.locked():
            self._done = cache.read()
            if self._done is None:
                with Builder(cache) as builder:
                    self.found = self._read(builder)
        if self._done is not None:
            self.found = _Found(path, *self._done[0]["found"])

    def _read(self, builder: Builder) -> _Found:
        """Read the file, or what is left of it."""
        if not self._go_on(builder):
            builder.clear()
            builder.state["words"] = True
            self._go_on(builder)
        return _not_empty(_Found(self._cache.path, *builder.state["found"]))

    def _go_on(self, builder: Builder) -> bool:
        """Read on; False where a qid is a word, and those before it were read as numbers."""
        state, path = builder.state, self._cache.path
        state.setdefault("found", _Found(path)[1:])
        words = Words(builder)
        for text in builder.texts():
            parsed = _parse(text, self._missing, words="words" in state)
            before, qid = _Found(path, *state["found"]), parsed.qid
            if not parsed.found.rows:
                continue
            if state.setdefault("with_qid", qid is not None) != (qid is not None):
                what = "some rows have a qid and some have none: write qid:… after every label."
                raise text.error(parsed.begin, what)
            if qid is not None and qid.dtype == object:
                if before.rows and "words" not in state:
                    return False
                state["words"] = True
                qid = words.numbers(qid.tolist())
            if qid is not None:
                builder.append("qid", qid)
            builder.append("y", parsed.labels)
            if not before.rows:
                builder.append("ends", np.zeros(1, dtype=np.int64))
            builder.append("ends", parsed.rows.ends[1:] + before.entries)
            builder.append("indices", parsed.rows.columns)
            builder.append("values", parsed.rows.values)
            state["found"] = before.followed_by(parsed.found)[1:]
        return True

    def data(self, base: int, columns: int, dense: bool) -> RankingData:
        """The rows, once it is known how features are counted."""
        cache, settled = self._cache, {"base": base, "columns": columns, "dense": dense}
        done = self._done
        if done is None or done[0]["settled"] != settled:
            with cache.locked():
                done = cache.read()
                if done is not None and done[0]["settled"] != settled:
                    cache.say_again("its features were counted in another way")
                    done = None
                if done is None:
                    with Builder(cache) as builder:
                        self._settle(builder, self._read(builder), settled)
                    done = cache.read()
        assert done is not None
        _, arrays = done
        if "words" in arrays:
            qid: AnyArray = np.array(words_of(arrays["words"]), dtype=object)[arrays["qid"]]
        elif "qid" in arrays:
            qid = np.array(arrays["qid"])
        else:
            qid = _queries_of(self.found.path, self.found.rows)
        X: Any = arrays.get("X", arrays.get("values"))
        if not dense:
            X = SparseRows(arrays["ends"], arrays["columns"], arrays["values"]).matrix(columns)
        return RankingData(X, np.array(arrays["y"]), qid)

    def _settle(self, builder: Builder, found: _Found, settled: dict[str, Any]) -> None:
        """Make the matrix."""
        base, columns, dense = settled.values()
        state = builder.state
        if state.setdefault("settled", settled) != settled:
            builder.drop("X", "columns")
            state["settled"] = settled
        shapes: dict[str, Sequence[int]] = {"y": [found.rows]}
        if state["with_qid"]:
            shapes["qid"] = [found.rows]
        if "words" in state:
            shapes["words"] = builder.array("words").shape
        rows = SparseRows(*(builder.array(name) for name in ("ends", "indices", "values")))
        if dense and found.entries == found.rows * columns:
            shapes["values"] = [found.rows, columns]
        elif dense:
            shapes["X"] = [found.rows, columns]
            for some in blocks(found.rows, columns, len(builder.array("X"))):
                builder.append("X", _spread(rows.some(some), base, columns))
                builder.keep(some.stop / found.rows)
        else:
            shapes |= {"ends": [found.rows + 1], "values": [found.entries]}
            shapes["columns"] = [found.entries]
            for some in blocks(found.entries, 1, len(builder.array("columns"))):
                builder.append("columns", rows.columns[some] - np.int32(base))
                builder.keep(some.stop / found.entries)
        builder.finish({"found": found[1:], "settled": settled}, shapes)


def _borders(path: Path, part: Part) -> tuple[int, int] | None:
    """Where the part of a file begins and ends; None if it has to be read whole."""
    rank, ranks = part
    if path.suffix.lower() in SUFFIXES:
        return None
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        file.seek(0)
        first = next((line for line in file if _is_row(line)), b"")
        if _qid_of(first) is None:
            return None
        begin, end = (size * place // ranks for place in (rank, rank + 1))
        return _query_start(file, begin), _query_start(file, end)


def _query_start(file: IO[bytes], place: int) -> int:
    """Where a query begins first, at a place or behind it; the end of the file if none does."""
    if not place:
        return 0
    file.seek(place - 1)
    start = place - 1 + len(file.readline())  # of the first line that begins at the place or behind
    before = _qid_before(file, start)
    file.seek(start)
    for line in file:
        if _is_row(line) and _qid_of(line) != before:
            break
        start += len(line)
    return start


def _qid_before(file: IO[bytes], end: int) -> bytes | None:
    """The qid of the last row before a place where a line begins."""
    text = b""
    while end:
        begin = max(0, end - _BACK)
        file.seek(begin)
        text, end = file.read(end - begin) + text, begin
        lines = text.split(b"\n")[begin > 0 :]  # without one that begins further up
        if last := next((line for line in reversed(lines) if _is_row(line)), None):
            return _qid_of(last)
    return None


def _is_row(line: bytes) -> bool:
    return line.removeprefix(MARK).lstrip()[:1] not in (b"", b"#")


def _qid_of(line: bytes) -> bytes | None:
    found = _QID.match(line.removeprefix(MARK))
    return found and (found[1].lstrip(b"0") if found[1].isdigit() else found[1])


def _lines_before(path: Path, end: int) -> int:
    with path.open("rb") as file:
        return sum(file.read(min(left, _BLOCK)).count(b"\n") for left in range(end, 0, -_BLOCK))


@dataclass
class _Parsed:
    """Rows of a file, with feature indices as they are written."""

    found: _Found
    begin: int  # where in the text the first row is
    labels: FloatArray  # [rows]
    qid: AnyArray | None  # [rows]
    rows: SparseRows
    comments: tuple[str, ...] | None


def _parse(
    text: Text, missing: float, keep_comments: bool = False, *, words: bool = False
) -> _Parsed:
    """Read and check a text; `read_letor` says what it may hold. With `words`, qid are such."""
    most_rows, most_entries = _most_rows(text.content), text.content.count(b":")
    labels = np.empty(most_rows)
    qids = np.empty(most_rows, dtype=np.int64)
    spans = np.empty((most_rows, 3), dtype=np.int64)
    comment_spans = np.empty((most_rows if keep_comments else 0, 2), dtype=np.int64)
    row_ends = np.zeros(most_rows + 1, dtype=np.int64)
    indices = np.empty(most_entries, dtype=np.int32)
    values = np.empty(most_entries)
    found = scan_letor(
        text.content, float(missing),
        labels, qids, spans, comment_spans, row_ends, indices, values,
    )  # fmt: skip
    if found.fault != LetorFault.FINE:
        raise text.error(found.fault_at, _fault(text, found.fault, found.fault_at))
    rows, entries = found.rows, found.entries
    for array, size in ((labels, rows), (qids, rows), (indices, entries), (values, entries)):
        array.resize(size, refcheck=False)
    for entry, start, end in found.left:  # numbers that the compiled code was not sure of
        target, place = (labels, -1 - entry) if entry < 0 else (values, entry)
        target[place] = float(text.content[start:end])
        if np.isinf(target[place]):
            what = f"{text.shown(start, end)} is too large for a float64: scale it down."
            raise text.error(start, what)
    by_row = SparseRows(row_ends[: rows + 1].copy(), indices, values)
    if found.unsorted and (repeated := by_row.sort()):
        row, index = repeated
        what = f"feature {index} stands twice in this row: leave one out."
        raise text.error(int(spans[row, 0]), what)

    qid: AnyArray | None = None
    if 0 < found.rows_with_qid < rows:
        what = "this row has no qid, but others have: write qid:… after its label."
        raise text.error(found.first_without_qid, what)
    if found.rows_with_qid:
        qid = _words(text, spans[:rows, 1:]) if found.other_qids or words else qids
    comments = None
    if keep_comments:
        comments = tuple(
            text.content[start:end].strip().decode(errors="surrogateescape")
            for start, end in comment_spans[:rows].tolist()
        )
    known = _Found(
        text.path, rows, entries,
        text.place(found.first_zero) if found.first_zero >= 0 else None,
        found.largest, text.place(max(found.largest_at, 0)),
    )  # fmt: skip
    begin = int(spans[0, 0]) if rows else 0
    return _Parsed(known, begin, labels, qid, by_row, comments)


def _most_rows(content: bytes) -> int:
    """As many lines as are not empty, or some more: arrays are made for so many rows."""
    lines = content.count(b"\n")
    if lines * 8 < len(content):
        return lines
    text = np.frombuffer(content, dtype=np.uint8)
    rows = 1
    for start in range(0, len(text), _BLOCK):
        breaks = text[start : start + _BLOCK + 1] == ord("\n")
        rows += int(np.count_nonzero(breaks[1:] & ~breaks[:-1]))
    return rows


def _words(text: Text, spans: IntArray) -> AnyArray:
    """Give every qid as a string; all rows of a query share it, however long it is."""
    known: dict[bytes, str] = {}
    words = np.empty(len(spans), dtype=object)
    for row, (start, end) in enumerate(spans.tolist()):
        raw = text.content[start:end]
        word = known.get(raw)
        if word is None:
            try:
                word = known[raw] = raw.decode()
            except UnicodeDecodeError:
                what = f"the qid {shown(raw)} is not UTF-8: write it as UTF-8, or as a number."
                raise text.error(start, what) from None
        words[row] = word
    return words


def _sidecar_names(path: Path) -> list[str]:
    """What LightGBM's .query file beside a file may be called, without compression."""
    return list(dict.fromkeys(f"{base.name}.query" for base in (path, without_compression(path))))


def _sidecar(path: Path) -> Path | None:
    """The .query file beside a file, if there is one."""
    names = [name + suffix for name in _sidecar_names(path) for suffix in ("", *SUFFIXES)]
    return next((file for name in names if (file := path.with_name(name)).is_file()), None)


def _queries_of(path: Path, rows: int) -> IntArray:
    """Number the queries of a file without qid, by LightGBM's .query file beside it.

    Beside `rank.train` or `rank.train.xz` it is `rank.train.query`, which may be compressed too.

    Returns
    -------
    [rows] 0 for the rows of the first query, 1 for those of the second, …
    """
    sidecar = _sidecar(path)
    if sidecar is None:
        names = " or ".join(_sidecar_names(path))
        raise LetorError(
            path,
            1,
            f"no row has a qid, and there is no {names} beside the file: write "
            "qid:… after the labels, or the number of rows of each query into such a file.",
        )
    counts = []
    for line, word in enumerate(read_bytes(sidecar, LetorError).splitlines(), start=1):
        word = word.removeprefix(MARK).strip()
        if not word:
            continue
        if not word.isdigit() or len(word) > 18 or int(word) == 0:
            raise LetorError(
                sidecar,
                line,
                f"{shown(word)} is not the number of rows of a query: write a whole number of at "
                "least 1 a line.",
            )
        counts.append(int(word))
    if sum(counts) != rows:
        raise LetorError(
            sidecar,
            None,
            f"its counts sum to {sum(counts):,}, but {path.name} has {rows:,} rows: the two files "
            "do not belong together, or one is cut short.",
        )
    return np.repeat(np.arange(len(counts)), counts)


def _fault(text: Text, fault: LetorFault, at: int) -> str:
    """Word what the compiled pass stumbled over at a place in the text."""
    token = Token(text, at, rb"[\s#]")
    if fault == LetorFault.BAD_LABEL and b":" in token.raw:
        return f"the label is missing: the row starts with {token.shown}, not with a number."
    if fault == LetorFault.BAD_LABEL:
        return f"the label {token.shown} is not a finite number: write one, such as 0, 1 or 2."
    if fault == LetorFault.BAD_QID:
        return f"{token.shown} is no qid: write qid: and a number or a word without a colon."
    if fault == LetorFault.LARGE_INDEX:
        largest = f"{LARGEST_LETOR_INDEX:,}"
        return f"the feature index {token.name} is over {largest}: number features anew."
    if fault == LetorFault.TWICE:
        return f"feature {token.name} stands twice in this row: leave one out."
    if fault == LetorFault.BAD_VALUE:
        value = f"the value {token.value} of feature {token.name}"
        return f"{value} is not a number: write one, or NULL."
    if token.raw.startswith(b"qid:"):
        return f"{token.shown} must follow the label directly, and once: move it there."
    if b":" not in token.raw:
        return f"{token.bad_index('feature')}, and # before a comment."
    return f"{token.bad_index('the feature index')}; they start at 1, or at 0."


# Writing ------------------------------------------------------------------------------------------


def write_letor(
    path: str | PathLike[str],
    X: Any,
    y: Any,
    qid: Any,
    *,
    one_based: bool = True,
    comments: Sequence[str] | None = None,
    precision: int | None = None,
) -> None:
    """Write a LETOR or svmlight ranking file.

    `read_letor` gives back the same float64, to the last bit. Of a dense `X` every value is
    written, of a sparse one what is stored: to get its last columns back if they are empty, pass
    `n_features` when you read, and `one_based=False` for a file that starts at 0. NaN, a missing
    value, is written as ``NaN``. The file is written beside and renamed.

    Parameters
    ----------
    path : path-like
        The file; compressed if the name ends in .gz, .xz or .bz2.
    X : array_like or sparse matrix
        [rows, features] numbers: an array, or a scipy sparse matrix.
    y : array_like
        [rows] finite labels.
    qid : array_like
        [rows] integers, or strings without blanks, `:` and `#`. Strings of digits come back as
        integers if all of them are.
    one_based : bool
        Whether indices start at 1, as in LETOR's files, or at 0.
    comments : sequence of str, optional
        [rows] one line each, "" for none.
    precision : int, optional
        Number of significant digits of the features; None for as many as it takes, and no more.

    Raises
    ------
    ValueError
        A label is not finite, a query has a blank, `:` or `#`, or lengths differ.

    See Also
    --------
    read_letor : Reads it again.
    write_table : Writes a CSV or Parquet file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import write_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     write_letor(file, X=[[0.5, 3.0], [0.1, 0.0]], y=[2, 0], qid=[7, 7])
    ...     print(file.read_text(), end="")
    2 qid:7 1:0.5 2:3
    0 qid:7 1:0.1 2:0
    """
    if precision is not None and not 1 <= precision <= 17:
        raise ValueError(f"precision is from 1 to 17 digits, or None for all, not {precision}.")
    labels = _floats(np.asarray(y), "y")
    if labels.ndim != 1:
        raise ValueError(f"y has shape {labels.shape}: give one label a row.")
    if not np.isfinite(labels).all():
        row = int(np.isfinite(labels).argmin())
        raise ValueError(f"the label of row {row} is {labels[row]}: labels are finite numbers.")
    if not len(labels):
        raise ValueError("there are no rows: a file needs at least one.")
    matrix = _checked(X, len(labels))
    heads = _heads(labels, _qid_words(np.asarray(qid)))
    tails = _tails(comments, len(labels))
    rows = zip(heads, _features(matrix, one_based, precision), tails, strict=True)
    with writing(Path(path)) as file:
        while lines := [
            f"{head} {row}{tail}".rstrip(" ") for head, row, tail in islice(rows, 1024)
        ]:
            file.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _shortest(value: float) -> str:
    """Shortest text that reads back as the same float."""
    return repr(value).removesuffix(".0")


def _heads(labels: FloatArray, qids: Sequence[str]) -> list[str]:
    if len(qids) != len(labels):
        raise ValueError(f"there are {len(labels)} labels but {len(qids)} qid: give one a row.")
    return [f"{_shortest(y)} qid:{q}" for y, q in zip(labels.tolist(), qids, strict=True)]


def _qid_words(qid: AnyArray) -> list[str]:
    """Check the qid, and give them as text."""
    if qid.ndim != 1:
        raise ValueError(f"qid has shape {qid.shape}: give one a row.")
    if qid.dtype.kind in "iu":
        return [str(q) for q in qid.tolist()]
    words = []
    for row, q in enumerate(qid.tolist()):
        if isinstance(q, bool) or not isinstance(q, int | str):
            raise ValueError(f"the qid of row {row} is {q!r}: write integers or strings.")
        word = str(q)
        if not word or any(c in ":#" or c <= " " or "\ud800" <= c <= "\udfff" for c in word):
            raise ValueError(
                f"the qid of row {row} is {q!r}: it may not be empty, nor hold blanks, : or #, "
                "nor what UTF-8 cannot write."
            )
        words.append(word)
    return words


def _tails(comments: Sequence[str] | None, rows: int) -> list[str]:
    if comments is None:
        return [""] * rows
    if len(comments) != rows:
        raise ValueError(f"there are {rows} labels but {len(comments)} comments: give one a row.")
    for row, comment in enumerate(comments):
        if not isinstance(comment, str) or any(c in comment for c in "\n\r\0"):
            raise ValueError(f"the comment of row {row} is {comment!r}: give one line of text.")
    return [f" # {comment}" if comment else "" for comment in comments]


def _checked(X: Any, rows: int) -> Any:
    """Check X, and give it as a numpy array or a scipy CSR matrix with sorted rows."""
    matrix = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"X has shape {matrix.shape}: give one row of features a label.")
    if matrix.shape[0] != rows:
        raise ValueError(f"X has {matrix.shape[0]} rows, but there are {rows} labels.")
    if isinstance(matrix, np.ndarray):
        return _floats(matrix, "X")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()  # and sorts
    _floats(matrix.data, "X")
    return matrix


def _features(matrix: Any, one_based: bool, precision: int | None) -> Iterator[str]:
    """Give the features of one row after the other, as text."""
    write: Callable[[float], str] = _shortest if precision is None else f"{{:.{precision}g}}".format
    base = int(one_based)
    if isinstance(matrix, np.ndarray):
        columns = list(range(base, matrix.shape[1] + base))
        for row in matrix:
            yield _row(columns, map(write, row.tolist()))
    else:
        values = _floats(matrix.data, "X")
        for start, end in pairwise(matrix.indptr.tolist()):
            columns = (matrix.indices[start:end].astype(np.int64) + base).tolist()
            yield _row(columns, map(write, values[start:end].tolist()))


def _row(columns: Sequence[int], words: Iterator[str]) -> str:
    pairs = [f"{column}:{word}" for column, word in zip(columns, words, strict=True)]
    return " ".join(pairs).replace(":nan", ":NaN")


def _floats(values: AnyArray, name: str) -> FloatArray:
    """Give numbers as float64, and refuse those that it cannot hold."""
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise ValueError(f"{name} is of type {values.dtype}: give integers, floats or booleans.")
    whole = values.dtype.kind in "iu" and values.size > 0
    if whole and max(int(values.max()), -int(values.min())) > _EXACT_INTEGERS:
        raise ValueError(f"{name} has integers over 2^53, which a float64 cannot hold: scale it.")
    return values.astype(np.float64, copy=False)
