"""Multi-label data from the files of the Extreme Classification Repository."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tierrank.data.files import expands
from tierrank.data.multilabel import MultiLabelData
from tierrank.data.xc.errors import XCError
from tierrank.data.xc.header import HeaderOption
from tierrank.data.xc.npz import is_npz, read_npz
from tierrank.data.xc.parsing import MOST_COLUMNS, parse_matrix, parse_rows


@expands
def read_xc(
    path: str | PathLike[str],
    *,
    labels: str | PathLike[str] | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    one_based: bool = False,
    header: HeaderOption = "auto",
    max_expansion: float | None = None,
) -> MultiLabelData:
    """Read multi-label data in the formats of the Extreme Classification Repository.

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

    The whole text is held in memory, beside 8 bytes a feature value and a label.

    Parameters
    ----------
    path
        the file of features and labels, or of features; in text, a name that ends in .gz, .xz or
        .bz2 says that it is compressed
    labels
        the file of the labels, if they are apart
    n_features, n_labels
        numbers of columns, if more than the header says, or where there is no header
    one_based
        whether the indices of features in text start at 1, as in LIBSVM's files, and not at 0.
        Labels start at 0.
    header
        whether text begins with a header. "auto": if its first line is just three whole numbers,
        two if labels are apart.
    max_expansion
        how many times its size a compressed file, or an .npz, may expand to, beyond half a GiB:
        200 without it

    Raises
    ------
    XCError
        a `ValueError` that names the file, the line and the column, and says what to do

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("3 4 5\\n0,3 1:0.5 2:1\\n 0:2\\n4 3:1\\n")
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
        X = _matrix(path, n_features, int(one_based), header, "features")
        Y = _matrix(Path(labels), n_labels, 0, header, "labels")
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
        what = "is a matrix of features: pass the file of its labels as labels=."
        raise XCError(path, None, what)
    features, label_sets = parse_rows(path, n_features, n_labels, int(one_based), header)
    return MultiLabelData(features.matrix(), label_sets.matrix())


@expands
def read_xc_features(
    path: str | PathLike[str],
    *,
    n_features: int | None = None,
    one_based: bool = False,
    header: HeaderOption = "auto",
    max_expansion: float | None = None,
) -> Any:
    """Read features alone, of rows whose labels are not known.

    The file is one of a pair, such as ``tst_X_Xf.txt``, or .npz; `read_xc` says what they hold, and
    what the arguments mean. Where labels stand in the same file, `read_xc` reads both.

    Returns
    -------
    [rows, features] a scipy `csr_matrix` of float32
    """
    _check_options(n_features, None, one_based, header)
    return _matrix(Path(path), n_features, int(one_based), header, "features")


def _matrix(path: Path, n_columns: int | None, base: int, header: HeaderOption, kind: str) -> Any:
    _check_file(path)
    if is_npz(path):
        return read_npz(path, n_columns, kind)
    return parse_matrix(path, n_columns, base, header, kind).matrix()


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise XCError(path, None, "is a folder: give one of its files.")


def _check_options(
    n_features: int | None, n_labels: int | None, one_based: bool, header: HeaderOption
) -> None:
    if not isinstance(one_based, bool):
        raise ValueError(f"one_based is True or False, not {one_based!r}.")
    if not isinstance(header, bool) and header != "auto":
        raise ValueError(f'header is "auto", True or False, not {header!r}.')
    for name, size in (("n_features", n_features), ("n_labels", n_labels)):
        if size is None:
            continue
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise ValueError(f"{name} is a whole number, not {size!r}.")
        if not 0 <= size <= MOST_COLUMNS:
            raise ValueError(f"{name} is from 0 to {MOST_COLUMNS:,}, not {size}.")
