"""Ranking data from LETOR (svmlight) files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tierrank._native import spread
from tierrank.data.files import SUFFIXES, expands
from tierrank.data.letor.errors import LetorError
from tierrank.data.letor.parsing import Parsed, parse
from tierrank.data.ranking_data import RankingData

OneBased = Literal["auto", True, False]
PARTS = ("train", "vali", "test")

# bytes of a cell of a dense array, and of an entry of a sparse one (value and column)
_CELL, _ENTRY = 8, 12


@expands
def read_letor(
    path: str | PathLike[str],
    *,
    n_features: int | None = None,
    one_based: OneBased = "auto",
    missing: float = np.nan,
    dense: bool | None = None,
    keep_comments: bool = False,
    max_expansion: float | None = None,
) -> RankingData:
    """Read a LETOR or svmlight ranking file.

    A row is ``label qid:q index:value … # comment``. Blank lines, and lines with nothing but a
    comment, are skipped; a `#` starts a comment wherever it stands. Fields are set apart by
    blanks or tabs. Lines may end as on Windows, the last one with nothing, and the file may
    begin with a UTF-8 byte order mark.

    Rows of a query need not be adjacent. Indices of a row need not ascend (they are sorted), but
    none may stand twice. Numbers are read to the last bit, as Python's `float` reads them; one
    that is too large for a float64 is an error, `inf` is accepted for a feature.

    The whole file is held in memory, beside 12 bytes a feature value and about 48 a row; a dense
    `X` takes 8 bytes a cell more, unless every row names every feature: then it takes nothing.

    Parameters
    ----------
    path
        the file; a name that ends in .gz, .xz or .bz2 says that it is compressed. If no row has a
        qid, LightGBM's ``<path>.query`` gives the number of rows of each query, and qid is
        0, 1, …; `.query` is not looked at otherwise.
    n_features
        number of columns; without it, as many as the largest index needs
    one_based
        whether indices start at 1. "auto": yes, unless an index 0 occurs. A file that starts at
        0 but never uses it looks the same as one that starts at 1: pass False for it.
    missing
        what the feature values ``NULL`` (as in LETOR's MQ2007-agg) and ``NaN`` become
    dense
        True for a numpy array, False for a scipy `csr_matrix`; None for what takes less memory,
        which is dense if at least two thirds of the cells are written. What a row does not name
        is 0.
    keep_comments
        keep what follows the `#`
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it

    Raises
    ------
    LetorError
        a `ValueError` that names the file, the line and the column, and says what to do

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:3 # doc 1\\n0 qid:7 1:0.1 2:NULL # doc 2\\n")
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
        keep_comments=keep_comments,
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
    """Read the `train.txt`, `vali.txt` and `test.txt` of a folder such as LETOR's `Fold1`.

    They may be compressed (`train.txt.gz`, …). The arguments are those of `read_letor`; what they
    leave open (the number of features, where indices start, dense or sparse) is settled for all
    three together, so that their columns agree. So all three are in memory at once. A
    dense file with fewer features than the others is refused; a sparse one is filled up with 0 and
    a warning.

    Returns
    -------
    the data by "train", "vali" and "test"; a part without a file is left out, except train
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
) -> list[RankingData]:
    """Read files that belong together, so that their columns agree; options as in `read_letor`."""
    _check_options(n_features, one_based)
    parsed = [parse(path, missing=missing, keep_comments=keep_comments) for path in paths]
    return _finish(parsed, n_features, one_based, dense)


def _part(folder: Path, part: str) -> Path | None:
    files = [folder / f"{part}.txt{suffix}" for suffix in ("", *SUFFIXES)]
    there = [file for file in files if file.is_file()]
    if len(there) > 1:
        names = " and ".join(file.name for file in there)
        raise LetorError(folder, None, f"has both {names}: leave one of them.")
    return there[0] if there else None


def _finish(
    files: Sequence[Parsed], n_features: int | None, one_based: OneBased, dense: bool | None
) -> list[RankingData]:
    """Settle for all files what an index means, and make the matrices."""
    with_zero = [file for file in files if file.first_zero >= 0]
    if with_zero and one_based is True:
        file = with_zero[0]
        what = "the feature index is 0, but one_based=True says they start at 1: pass False."
        raise file.text.error(file.first_zero, what)
    base = int(not with_zero if one_based == "auto" else one_based)
    most = max(file.largest for file in files) - base + 1
    columns = max(most, 0) if n_features is None else int(n_features)
    for file in files:
        if file.largest - base >= columns:
            last = columns - 1 + base
            raise file.text.error(
                file.largest_at,
                f"the feature index {file.largest} is over {last}, the last of {columns} that "
                f"start at {base}: pass a larger n_features, or none.",
            )
    if n_features is None:
        widest = max(files, key=lambda file: file.largest).text.path.name
        for file in files:
            own = max(file.largest - base + 1, 0)
            if own < columns:
                check_fewer(file.text.path, own, columns, widest, dense=_is_dense([file], own))
    if dense is None:
        dense = _is_dense(files, columns)
    return [
        RankingData(_matrix(file, base, columns, dense), file.labels, file.qid, file.comments)
        for file in files
    ]


def check_fewer(path: Path, there: int, columns: int, whose: str, *, dense: bool) -> None:
    """Refuse a dense file that has fewer features than others; say so of a sparse one.

    A sparse file does not say how many it has: its rows may all be 0 in the last ones.
    """
    has = f"has {there:,} feature{'s' * (there != 1)}"
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


def _is_dense(files: Sequence[Parsed], columns: int) -> bool:
    cells = columns * sum(len(file.labels) for file in files)
    return sum(len(file.values) for file in files) * _ENTRY >= cells * _CELL


def _check_options(n_features: int | None, one_based: OneBased) -> None:
    if not isinstance(one_based, bool) and one_based != "auto":
        raise ValueError(f'one_based is "auto", True or False, not {one_based!r}.')
    if n_features is None:
        return
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
        raise ValueError(f"n_features is a whole number, not {n_features!r}.")
    if not 0 <= n_features <= 2**31:
        raise ValueError(f"n_features is from 0 to 2^31, not {n_features}.")


def _matrix(file: Parsed, base: int, columns: int, dense: bool) -> Any:
    rows = len(file.labels)
    if dense and len(file.values) == rows * columns:
        return file.values.reshape(rows, columns)  # no index twice, so each row has them all
    if dense:
        X = np.zeros((rows, columns))
        spread(file.row_ends, file.indices, base, file.values, X)
        return X
    from scipy.sparse import csr_matrix

    file.indices -= np.int32(base)
    matrix = csr_matrix((file.values, file.indices, file.row_ends), shape=(rows, columns))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
