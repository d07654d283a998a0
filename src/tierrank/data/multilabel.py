"""Rows with a set of labels each, out of many: what extreme multi-label ranking learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tierrank.data.cache import rows_of
from tierrank.names import counted
from tierrank.tiers import Tiers


class MultiLabelSummary(NamedTuple):
    """Numbers by which multi-label data sets are compared; means where it says "a row".

    Parameters
    ----------
    rows, features, labels : int
        How many there are.
    features_a_row : float
        Features of a row that are not 0.
    labels_a_row : float
        Relevant labels of a row.
    rows_a_label : float
        Rows that a label is relevant to.
    rows_without_feature, rows_without_label : int
        How many rows have none.
    labels_never_seen : int
        How many labels no row has.

    See Also
    --------
    MultiLabelData.describe : Counts them.

    Examples
    --------
    >>> from tierrank.data import MultiLabelData
    >>> summary = MultiLabelData([[0.5, 0.0], [1.0, 2.0]], [[1, 0, 1], [0, 0, 0]]).describe()
    >>> summary.labels_a_row, summary.labels_never_seen
    (1.0, 1)
    """

    rows: int
    features: int
    labels: int
    features_a_row: float
    labels_a_row: float
    rows_a_label: float  # over all labels, those that no row has among them
    rows_without_feature: int
    rows_without_label: int
    labels_never_seen: int


@dataclass(frozen=True, eq=False, repr=False)
class MultiLabelData:
    """Rows with sparse features, and the labels that are relevant to each.

    Both matrices are `csr_matrix` of float32, with ascending columns in every row and none twice.
    What is given is converted where it must be, and shared where it is like that already: do not
    change it afterwards.

    `Y` holds relevances, not booleans: label files have values, sums and products of such a matrix
    are counts without a conversion, and 4 bytes a label is little beside the features. A relevance
    is 1 in most data sets, and always more than 0; a 0 that is given is not stored.

    Parameters
    ----------
    X : csr_matrix or array_like
        [rows, features] finite numbers. Sparse matrices of other formats and dense arrays may be
        given; entries that stand twice are summed, as scipy does.
    Y : csr_matrix or array_like
        [rows, labels] relevances of at least 0, given and held in the same way. A row may have
        none.

    Raises
    ------
    ValueError
        The two differ in rows, or a value is not finite or, in `Y`, below 0.

    See Also
    --------
    read_xc : From the files of the extreme classification repository.
    tierrank.ExtremeRanker : Learns from them.

    Examples
    --------
    >>> from tierrank.data import MultiLabelData
    >>> data = MultiLabelData([[0.5, 0.0], [1.0, 2.0]], [[1, 0, 1], [0, 0, 0]])
    >>> data
    MultiLabelData(2 rows, 2 features, 3 labels; 1.5 features and 1.0 labels a row)
    >>> data.describe().rows_without_label
    1
    """

    X: Any
    Y: Any

    def __post_init__(self) -> None:
        X, Y = canonical_csr(self.X, "X"), canonical_csr(self.Y, "Y")
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"X has {X.shape[0]:,} rows, but Y has {Y.shape[0]:,}: give as many.")
        if Y.nnz and Y.data.min() <= 0:
            entry = int((Y.data <= 0).argmax())
            if Y.data[entry] < 0:
                row, label = _place(Y, entry)
                raise ValueError(
                    f"Y has {Y.data[entry]} at row {row}, label {label}: a relevance is more than "
                    "0, and what is not relevant is left out."
                )
            Y = Y.copy()
            Y.eliminate_zeros()
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "Y", Y)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of columns of `Y`."""
        return int(self.Y.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        sizes = ", ".join(
            counted(size, name)
            for size, name in (
                (self.n_rows, "row"),
                (self.n_features, "feature"),
                (self.n_labels, "label"),
            )
        )
        features, labels = _ratio(self.X.nnz, self.n_rows), _ratio(self.Y.nnz, self.n_rows)
        return f"MultiLabelData({sizes}; {features:,.1f} features and {labels:,.1f} labels a row)"

    def select(self, rows: Any) -> MultiLabelData:
        """Take some rows, in the order asked for.

        Parameters
        ----------
        rows : array_like
            Their numbers, counted from 0, such as `read_xc_split` gives; or [rows] booleans that
            say which to keep.

        Returns
        -------
        MultiLabelData
            These rows, with all columns.

        Raises
        ------
        ValueError
            A number is not that of a row, or there is not a boolean a row.

        See Also
        --------
        tierrank.data.read_xc_split : The rows of a split.

        Examples
        --------
        >>> from tierrank.data import MultiLabelData
        >>> data = MultiLabelData([[0.5], [1.0], [2.0]], [[1, 0], [0, 1], [1, 1]])
        >>> data.select([2, 0]).Y.toarray()
        array([[1., 1.],
               [1., 0.]], dtype=float32)
        """
        chosen = np.asarray(rows)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "biu" and len(chosen)):
            raise ValueError(
                f"rows has shape {chosen.shape} and type {chosen.dtype}: give a flat array of row "
                "numbers, or of booleans."
            )
        if chosen.dtype.kind == "b":
            if len(chosen) != self.n_rows:
                raise ValueError(
                    f"there are {len(chosen):,} booleans for {self.n_rows:,} rows: give one a row."
                )
            chosen = np.flatnonzero(chosen)
        outside = (chosen < 0) | (chosen >= self.n_rows)
        if outside.any():
            place = int(outside.argmax())
            raise ValueError(
                f"rows[{place}] is {chosen[place]}, but there are {self.n_rows:,} rows, counted "
                "from 0: do these numbers belong to other data?"
            )
        chosen = chosen.astype(np.int64)
        return MultiLabelData(rows_of(self.X, chosen), rows_of(self.Y, chosen))

    def describe(self) -> MultiLabelSummary:
        """Count what matters about the data.

        Returns
        -------
        MultiLabelSummary
            The counts and means.

        See Also
        --------
        MultiLabelSummary : What each number means.

        Examples
        --------
        >>> from tierrank.data import MultiLabelData
        >>> data = MultiLabelData([[0.5, 0.0], [1.0, 2.0]], [[1, 0, 1], [0, 0, 0]])
        >>> data.describe().features_a_row
        1.5
        """
        return MultiLabelSummary(
            rows=self.n_rows,
            features=self.n_features,
            labels=self.n_labels,
            features_a_row=_ratio(self.X.nnz, self.n_rows),
            labels_a_row=_ratio(self.Y.nnz, self.n_rows),
            rows_a_label=_ratio(self.Y.nnz, self.n_labels),
            rows_without_feature=int((np.diff(self.X.indptr) == 0).sum()),
            rows_without_label=int((np.diff(self.Y.indptr) == 0).sum()),
            labels_never_seen=self.n_labels - len(np.unique(self.Y.indices)),
        )

    def tiers(self) -> Tiers:
        """Build one list a row, its labels over all the rest: `Tiers.from_positives(Y)`.

        Returns
        -------
        Tiers
            The lists, over the catalogue of labels.

        See Also
        --------
        tierrank.Tiers.from_positives : Of any sparse matrix.

        Examples
        --------
        >>> from tierrank.data import MultiLabelData
        >>> MultiLabelData([[0.5], [1.0]], [[1, 0, 1], [0, 1, 0]]).tiers()
        Tiers(2 lists, catalogue of 3 items, 2 tiers a list)
          list 0: {0, 2} > the other 1
          list 1: 1 > the other 2
        """
        return Tiers.from_positives(self.Y)


def _ratio(total: int, parts: int) -> float:
    return total / parts if parts else 0.0


def _place(matrix: Any, entry: int) -> tuple[int, int]:
    """Row and column of a stored entry."""
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    return row, int(matrix.indices[entry])


def canonical_csr(matrix: Any, name: str) -> Any:
    """Check a matrix, and give it as a canonical `csr_matrix` of finite float32."""
    from scipy.sparse import csr_matrix, issparse  # takes a while, so only where it is used

    given: Any = matrix if issparse(matrix) else np.asarray(matrix)
    if given.ndim != 2:
        raise ValueError(f"{name} has shape {given.shape}: it is [rows, columns].")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{name} is of type {given.dtype}: give integers, floats or booleans.")
    try:
        if hasattr(given, "check_format"):  # an index out of range would read other memory
            given.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is no valid sparse matrix ({error}): build it anew.") from error
    if issparse(given) and given.format == "csr":
        # An object of our own, as what follows would change the caller's; its indices have 32
        # bits where they fit.
        csr = csr_matrix((given.data, given.indices, given.indptr), shape=given.shape)
        csr.data = _float32(csr, name)
        if given.has_canonical_format:
            csr.has_canonical_format = True
            return csr
        csr = csr.copy()
    elif issparse(given):
        entries = given.tocoo()
        with np.errstate(over="ignore"):  # first widened, or sums of small integers could overflow
            values = entries.data.astype(np.float32)
        csr = csr_matrix((values, (entries.row, entries.col)), shape=given.shape)
    else:
        csr = csr_matrix(given)
    csr.sum_duplicates()  # and sorts
    csr.data = _float32(csr, name)
    return csr


def _float32(matrix: Any, name: str) -> Any:
    """Give the stored values as float32, and refuse what it cannot hold."""
    with np.errstate(over="ignore"):
        values = matrix.data.astype(np.float32, copy=False)
    if len(values) and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        entry = int((~np.isfinite(values)).argmax())
        row, column = _place(matrix, entry)
        raise ValueError(
            f"{name} has {matrix.data[entry]} at row {row}, column {column}: give finite numbers "
            "that a float32 can hold."
        )
    return values
