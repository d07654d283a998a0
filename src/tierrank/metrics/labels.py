"""Measures of extreme multi-label ranking, from the labels that were predicted first.

A row (a document) has a few relevant labels out of a thousand to a million. All measures are
functions of ``(top, Y, *, k=5, reduction="mean")``; the propensity-scored ones also take
``inverse_propensity=``. They never need the scores of all labels. The definitions, and whose they
are, stand in ``docs/extreme-metrics.md``.

    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> Y = csr_array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
    >>> top = [[2, 3], [1, 0], [1, 2]]  # two predicted labels a row, the best first
    >>> labels.precision(top, Y, k=2)
    0.5
    >>> labels.precision(top, Y, k=2, reduction="none")
    array([0.5, 0.5, 0.5])
    >>> q = labels.inverse_propensity(Y)  # usually of the training labels
    >>> labels.evaluate(top, Y, inverse_propensity=q, ks=[1])
    {'P@1': 0.6666666667, 'nDCG@1': 0.6666666667, 'PSP@1': 0.6616..., 'PSnDCG@1': 0.6616...}

Arguments that they share
-------------------------
top
    [rows, at least k] whole numbers, the predicted labels, best first: a numpy array, a tensor or
    lists. −1 stands for "no more predictions", only at the end of a row, and counts as a miss.
Y
    [rows, labels] scipy sparse matrix or array; what is above zero is relevant, whatever its value.
    It is not changed. A row without relevant labels counts, with the value 0.
k
    how many of the predictions count
inverse_propensity
    [labels] 1 / p of each label, as the function `inverse_propensity` gives them
reduction
    ``"mean"``: a float; ``"none"``: [rows] values with that mean

Bad input raises a `ValueError` that says what is wrong, and in which row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.metrics.evaluation import (
    LabelMetric,
    Reduction,
    checked_cutoff,
    choice,
    label_metric,
    ratio,
    reduced,
)
from tierrank.tiers.arrays import list_of_entry, to_numpy

__all__ = [
    "LabelMetric",
    "evaluate",
    "from_name",
    "inverse_propensity",
    "inverse_propensity_of_counts",
    "ndcg",
    "precision",
    "ps_ndcg",
    "ps_precision",
]

OutOf = Literal["reachable", "all"]

# Relevant labels that are sorted at once: their keys fit into a processor's cache.
_BLOCK = 1 << 18


def precision(top: Any, Y: Any, *, k: int = 5, reduction: Reduction = "mean") -> Any:
    """Share of relevant labels among the first k: their number / k.

    Missing predictions are misses, and a row
    with fewer than k relevant labels cannot reach 1, as in the repository and in napkinXC's
    `precision_at_k`.

    Parameters
    ----------
    top : array_like
        [rows, at least k] predicted labels, best first; −1 stands for no more predictions.
    Y : sparse matrix
        [rows, labels] what is above zero is relevant.
    k : int
        How many of the predictions count.
    reduction : {"mean", "none"}
        "mean": a float; "none": [rows] values with that mean.

    Returns
    -------
    float or ndarray
        The mean over rows, or [rows] values.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    ndcg : Discounted hits.
    ps_precision : Propensity-scored precision.
    evaluate : All measures at once.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> labels.precision([[2, 0, 1]], csr_array([[1, 0, 1, 1]]), k=3)
    0.6666666667
    """
    k = checked_cutoff(k)
    return reduced(precision_of_rows(look_up(top, Y, k), k), reduction)


def ndcg(top: Any, Y: Any, *, k: int = 5, reduction: Reduction = "mean") -> Any:
    """Discounted hits, over those of the best k predictions.

        nDCG@k = Σ_{i ≤ k} hit_i / log2(1 + i)  /  Σ_{i ≤ min(k, n)} 1 / log2(1 + i)

    for a row with n relevant labels; 0 for n = 0. It is the repository's nDCG, and napkinXC's
    `ndcg_at_k`.

    Parameters
    ----------
    top : array_like
        [rows, at least k] predicted labels, best first; −1 stands for no more predictions.
    Y : sparse matrix
        [rows, labels] what is above zero is relevant.
    k : int
        How many of the predictions count.
    reduction : {"mean", "none"}
        "mean": a float; "none": [rows] values with that mean.

    Returns
    -------
    float or ndarray
        The mean over rows, or [rows] values.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    precision : Share of relevant labels among the first.
    ps_ndcg : Propensity-scored nDCG.
    evaluate : All measures at once.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> labels.ndcg([[1, 2, 0]], csr_array([[1, 0, 1, 0]]), k=3)  # (0.631 + 0.5) / (1 + 0.631)
    0.6934264036
    """
    k = checked_cutoff(k)
    return reduced(ndcg_of_rows(look_up(top, Y, k), k), reduction)


def ps_precision(
    top: Any, Y: Any, *, inverse_propensity: Any, k: int = 5, reduction: Reduction = "mean"
) -> Any:
    """Propensity-scored precision: what was found, over the most that k predictions could find.

        PSP@k = Σ_rows Σ_{i ≤ k} hit_i q_i  /  Σ_rows (sum of the k highest q of relevant labels)

    where q is the inverse propensity of a label. It is a ratio of sums over all rows: with
    ``reduction="none"`` a row's value is rows · its numerator / the sum of all denominators, which
    may exceed 1. It is the repository's PSP, and napkinXC's `psprecision_at_k`.

    Parameters
    ----------
    top : array_like
        [rows, at least k] predicted labels, best first; −1 stands for no more predictions.
    Y : sparse matrix
        [rows, labels] what is above zero is relevant.
    inverse_propensity : array_like
        [labels] 1 / p of each label, as `inverse_propensity` gives them.
    k : int
        How many of the predictions count.
    reduction : {"mean", "none"}
        "mean": a float; "none": [rows] values with that mean.

    Returns
    -------
    float or ndarray
        The mean over rows, or [rows] values.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    precision : Share of relevant labels among the first.
    inverse_propensity : From the labels of the training data.
    evaluate : All measures at once.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> Y, q = csr_array([[1, 1, 0], [0, 0, 1]]), [2.0, 5.0, 3.0]
    >>> labels.ps_precision([[0], [2]], Y, inverse_propensity=q, k=1)  # (2 + 3) / (5 + 3)
    0.625
    >>> labels.ps_precision([[0], [2]], Y, inverse_propensity=q, k=1, reduction="none")
    array([0.5 , 0.75])
    """
    k = checked_cutoff(k)
    hits = weigh(look_up(top, Y, k), inverse_propensity)
    return reduced(ps_precision_of_rows(hits, k), reduction)


def ps_ndcg(
    top: Any,
    Y: Any,
    *,
    inverse_propensity: Any,
    k: int = 5,
    out_of: OutOf = "reachable",
    reduction: Reduction = "mean",
) -> Any:
    """Propensity-scored nDCG: discounted, what was found over the most that could be found.

        PSnDCG@k = Σ_rows PSDCG@k / c  /  Σ_rows (highest PSDCG@k) / c
        PSDCG@k = Σ_{i ≤ k} hit_i q_i / log2(1 + i)

    where q is the inverse propensity of a label. With ``out_of="reachable"``,
    c = Σ_{i ≤ min(k, n)} 1 / log2(1 + i) for a row with n relevant labels: napkinXC's
    `psndcg_at_k`, and pyxclib's. With ``"all"``, c has all k terms, is the same for all rows and
    cancels: the repository's text and scripts. The two differ where rows have fewer than k relevant
    labels. As in `ps_precision`,
    ``reduction="none"`` gives rows · numerator / the sum of all denominators.

    Parameters
    ----------
    top : array_like
        [rows, at least k] predicted labels, best first; −1 stands for no more predictions.
    Y : sparse matrix
        [rows, labels] what is above zero is relevant.
    inverse_propensity : array_like
        [labels] 1 / p of each label, as `inverse_propensity` gives them.
    k : int
        How many of the predictions count.
    out_of : {"reachable", "all"}
        "reachable": divided by what min(k, n) predictions could reach; "all": by what k could.
    reduction : {"mean", "none"}
        "mean": a float; "none": [rows] values with that mean.

    Returns
    -------
    float or ndarray
        The mean over rows, or [rows] values.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    ndcg : Discounted hits.
    ps_precision : Propensity-scored precision.
    inverse_propensity : From the labels of the training data.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> Y, q = csr_array([[1, 1, 0], [0, 0, 1]]), [2.0, 5.0, 3.0]
    >>> labels.ps_ndcg([[0, 1], [1, 2]], Y, inverse_propensity=q, k=2)
    0.7388...
    >>> labels.ps_ndcg([[0, 1], [1, 2]], Y, inverse_propensity=q, k=2, out_of="all")
    0.7609...
    """
    k = checked_cutoff(k)
    hits = weigh(look_up(top, Y, k), inverse_propensity)
    return reduced(ps_ndcg_of_rows(hits, k, out_of), reduction)


def evaluate(
    top: Any,
    Y: Any,
    *,
    inverse_propensity: Any = None,
    ks: Iterable[int] = (1, 3, 5),
    out_of: OutOf = "reachable",
) -> dict[str, float]:
    """Evaluate all measures at all ks, by their names, such as ``"P@1"`` and ``"nDCG@5"``.

    ``"PSP@k"`` and ``"PSnDCG@k"`` are there if there are inverse propensities. The predictions are
    looked up once.

    Parameters
    ----------
    top : array_like
        [rows, at least max(ks)] predicted labels, best first; −1 stands for no more predictions.
    Y : sparse matrix
        [rows, labels] what is above zero is relevant.
    inverse_propensity : array_like, optional
        [labels] 1 / p of each label, for the propensity-scored ones.
    ks : iterable of int
        The numbers of predictions that count.
    out_of : {"reachable", "all"}
        As in `ps_ndcg`.

    Returns
    -------
    dict
        Values by the name of the measure.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    from_name : A measure by its name.
    inverse_propensity : From the labels of the training data.
    tierrank.ExtremeRanker : Predicts labels.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> labels.evaluate([[2, 3], [1, 0]], csr_array([[1, 0, 1, 0], [0, 1, 0, 0]]), ks=[1, 2])
    {'P@1': 1.0, 'P@2': 0.5, 'nDCG@1': 1.0, 'nDCG@2': 0.8065735964}
    """
    cutoffs = _checked_ks(ks)
    hits = look_up(top, Y, max(cutoffs))
    values = {f"P@{k}": precision_of_rows(hits, k) for k in cutoffs}
    values |= {f"nDCG@{k}": ndcg_of_rows(hits, k) for k in cutoffs}
    if inverse_propensity is not None:
        weighted = weigh(hits, inverse_propensity)
        values |= {f"PSP@{k}": ps_precision_of_rows(weighted, k) for k in cutoffs}
        values |= {f"PSnDCG@{k}": ps_ndcg_of_rows(weighted, k, out_of) for k in cutoffs}
    return {name: float(of_rows.mean()) for name, of_rows in values.items()}


def precision_of_rows(hits: Hits, k: int) -> FloatArray:
    """[rows] P@k."""
    values: FloatArray = hits.found[:, :k].sum(axis=1) / k
    return values


def ndcg_of_rows(hits: Hits, k: int) -> FloatArray:
    """[rows] nDCG@k."""
    return ratio(hits.found[:, :k] @ _discount(k), _reachable(hits.relevant.counts, k))


def ps_precision_of_rows(hits: WeightedHits, k: int) -> FloatArray:
    """[rows] values whose mean is PSP@k."""
    return _of_best(hits.gains[:, :k].sum(axis=1), hits.best[:, :k].sum(axis=1))


def ps_ndcg_of_rows(hits: WeightedHits, k: int, out_of: OutOf) -> FloatArray:
    """[rows] values whose mean is PSnDCG@k."""
    choice("out_of", out_of, get_args(OutOf))
    discount = _discount(k)
    dcg, best_dcg = hits.gains[:, :k] @ discount, hits.best[:, :k] @ discount
    if out_of == "reachable":
        reachable = _reachable(hits.counts, k)
        dcg, best_dcg = ratio(dcg, reachable), ratio(best_dcg, reachable)
    return _of_best(dcg, best_dcg)


def _discount(k: int) -> FloatArray:
    discount: FloatArray = 1 / np.log2(np.arange(2, k + 2))
    return discount


def _reachable(counts: IntArray, k: int) -> FloatArray:
    """[rows] the DCG@k of the best predictions: a sum over the first min(k, n) ranks."""
    of_count = np.append(0.0, np.cumsum(_discount(k)))
    return of_count[np.minimum(counts, k)]


def _of_best(reached: FloatArray, best: FloatArray) -> FloatArray:
    """Values whose mean is the ratio of the sums."""
    total = best.sum()
    if not total:
        raise ValueError(
            "no row has a relevant label, so there is no best value to divide by: propensity-"
            "scored measures need rows with labels."
        )
    values: FloatArray = reached * (len(reached) / total)
    return values


def _checked_ks(ks: Any) -> list[int]:
    try:
        cutoffs = [checked_cutoff(k) for k in ks]
    except TypeError:
        cutoffs = []
    if not cutoffs:
        raise ValueError(f"ks are numbers of places, such as (1, 3, 5), not {ks!r}.")
    return cutoffs


def inverse_propensity(Y: Any, a: float = 0.55, b: float = 1.5) -> FloatArray:
    """[labels] inverse propensities 1 / p, from the labels of the training data.

        1 / p_l = 1 + C (N_l + b)^−a,   C = (ln N − 1) (b + 1)^a

    for N rows, of which N_l have the label l. It is napkinXC's `Jain_et_al_inverse_propensity`, and
    the repository's `inv_propensity`; both sum the values of Y where this counts rows, which is the
    same for zeros and ones. The values of a and b that results are published with:

    ============================  ====  ===
    data                             a    b
    ============================  ====  ===
    WikiLSHTC-325K, Wikipedia      0.5  0.4
    Amazon                         0.6  2.6
    all others                    0.55  1.5
    ============================  ====  ===

    Parameters
    ----------
    Y : sparse matrix
        [rows, labels] scipy sparse matrix or array; what is above zero is relevant. Rows without
        labels count in N. There must be 3 rows or more: for fewer, C is negative.
    a, b : float
        The model's parameters, above zero.

    Returns
    -------
    ndarray of float
        [labels] 1 / p.

    Raises
    ------
    ValueError
        There are fewer than 3 rows, or a or b is not above zero.

    See Also
    --------
    inverse_propensity_of_counts : From counts.
    ps_precision : Propensity-scored precision.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> labels.inverse_propensity(csr_array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]]))
    array([1.27958798, 1.51160547, 1.38629436])
    """
    relevant = read_relevant(Y)
    counts = np.bincount(relevant.labels, minlength=relevant.n_labels)
    return inverse_propensity_of_counts(counts, len(relevant.counts), a, b)


def inverse_propensity_of_counts(
    counts: IntArray, rows: int, a: float = 0.55, b: float = 1.5
) -> FloatArray:
    """[labels] inverse propensities 1 / p, from how many rows have each label.

    Parameters
    ----------
    counts : ndarray of int
        [labels] rows that have each label.
    rows : int
        How many rows there are in all.
    a, b : float
        The model's parameters, above zero.

    Returns
    -------
    ndarray of float
        [labels] 1 / p, as `inverse_propensity` has them.

    Raises
    ------
    ValueError
        There are fewer than 3 rows, or a or b is not above zero.

    See Also
    --------
    inverse_propensity : From the labels of the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from tierrank.metrics import labels
    >>> labels.inverse_propensity_of_counts(np.array([3, 0, 1]), rows=4)
    array([1.27958798, 1.51160547, 1.38629436])
    """
    for name, value in (("a", a), ("b", b)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is a number above zero, as 0.55 and 1.5 are, not {value!r}.")
    if rows < 3:
        raise ValueError(
            f"Y has {rows} rows; propensities need 3 or more, and mean little for a few: give the "
            "labels of all training data."
        )
    c = (math.log(rows) - 1) * (b + 1) ** a
    inverse: FloatArray = 1 + c * (counts + b) ** -a
    return inverse


def from_name(name: str, **options: Any) -> LabelMetric:
    """Find the measure of this name, which ends in @k.

    Case, hyphens and underscores do not matter.

    Parameters
    ----------
    name : str
        Such as "P@1" or "psndcg@5".
    **options
        Go to the function: psndcg has `out_of`, the others none.

    Returns
    -------
    LabelMetric
        The measure, to be called with predictions and relevant labels.

    Raises
    ------
    ValueError
        There is no measure of this name, or no k.

    See Also
    --------
    evaluate : All measures at once.
    LabelMetric : What it gives.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> metric = labels.from_name("ndcg@1")
    >>> metric.name, metric.k, metric.needs_propensity
    ('nDCG@1', 1, False)
    >>> metric([[1], [0]], csr_array([[0, 1], [0, 1]]))
    0.5
    """
    choice("out_of", options.get("out_of", "all"), get_args(OutOf))
    return label_metric(name, options)


class Hits(NamedTuple):
    """Which of the first predictions are relevant.

    Attributes
    ----------
    first
        [rows, k] the predicted labels, best first, and −1 where there is none
    found
        [rows, k] whether the prediction is relevant
    relevant
        the relevant labels
    """

    first: IntArray
    found: AnyArray
    relevant: Relevant


class WeightedHits(NamedTuple):
    """What was found and what could be found, in inverse propensities.

    Attributes
    ----------
    gains
        [rows, k] the weight of what is found, else 0
    best
        [rows, k] the highest weights of relevant labels, descending, then 0
    counts
        [rows] how many labels are relevant
    """

    gains: FloatArray
    best: FloatArray
    counts: IntArray


def look_up(top: Any, Y: Any, k: int) -> Hits:
    """Check the input of a measure, and find the first k predictions among what is relevant."""
    relevant = read_relevant(Y)
    first = read_top(top, relevant, k)[:, :k]
    return Hits(first, _found(first, relevant), relevant)


def weigh(hits: Hits, inverse_propensity: Any) -> WeightedHits:
    """Check inverse propensities, and weigh hits by them."""
    weights = read_weights(inverse_propensity, hits.relevant.n_labels)
    gains = np.zeros(hits.first.shape)
    gains[hits.found] = weights[hits.first[hits.found]]
    best = _best_weights(weights, hits.relevant, hits.first.shape[1])
    return WeightedHits(gains, best, hits.relevant.counts)


def _found(first: IntArray, relevant: Relevant) -> AnyArray:
    """Bisect for all predictions at once, each among the relevant labels of its row."""
    labels, borders = relevant.labels, relevant.borders
    if not len(labels):
        return np.zeros(first.shape, dtype=bool)
    ends = borders[1:, None]
    # `at` steps over the labels of the row that are smaller than the prediction, in powers of two
    # that fall from the largest that fits into any row. So nothing but [rows, k] is held.
    at = np.repeat(borders[:-1, None], first.shape[1], axis=1)
    step = 1 << int(relevant.counts.max()).bit_length() >> 1
    while step:
        ahead = at + step
        fits = ahead <= ends
        np.minimum(ahead, len(labels), out=ahead)
        at += step * (fits & (labels[ahead - 1] < first))
        step >>= 1
    inside = at < ends
    np.minimum(at, len(labels) - 1, out=at)
    same: AnyArray = inside & (labels[at] == first)
    return same


def _best_weights(weights: FloatArray, relevant: Relevant, k: int) -> FloatArray:
    """[rows, k] the k highest weights of each row's relevant labels.

    The labels are ranked by weight once, so that a row needs its k smallest ranks: whole numbers,
    which sort row by row, in one go, as row · labels + rank.
    """
    order = np.argsort(-weights, kind="stable")
    descending = weights[order]
    rank_of_label = np.empty(len(order), dtype=np.int64)
    rank_of_label[order] = np.arange(len(order))
    best = np.zeros((len(relevant.counts), k))
    position = np.arange(k)
    for first, last in _blocks_of_rows(relevant.borders):
        borders = relevant.borders[first : last + 1]
        row_key = list_of_entry(borders) * relevant.n_labels
        ranks = rank_of_label[relevant.labels[borders[0] : borders[-1]]] + row_key
        ranks.sort()
        ranks -= row_key
        there = position < np.diff(borders)[:, None]
        entry = (borders[:-1, None] - borders[0] + position)[there]
        best[first:last][there] = descending[ranks[entry]]
    return best


def _blocks_of_rows(borders: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of rows that have about `_BLOCK` entries each, and all entries together."""
    wanted = np.arange(0, borders[-1], _BLOCK)
    starts = np.unique(np.searchsorted(borders, wanted, side="right") - 1)
    ends = np.append(starts[1:], len(borders) - 1)
    yield from zip(starts.tolist(), ends.tolist(), strict=False)


class Relevant(NamedTuple):
    """The relevant labels of every row.

    Attributes
    ----------
    labels
        [entries] row after row; ascending in a row, and each once
    borders
        [rows + 1] row i has the entries borders[i] … borders[i + 1] − 1
    n_labels
        how many labels there are, relevant anywhere or not
    """

    labels: AnyArray
    borders: IntArray
    n_labels: int

    @property
    def counts(self) -> IntArray:
        """[rows] how many labels are relevant."""
        return np.diff(self.borders)


def read_relevant(Y: Any) -> Relevant:
    """Check a sparse matrix of relevant labels; share its arrays where they will do."""
    from scipy import sparse  # takes a while to import, so only where it is used

    if not sparse.issparse(Y):
        raise ValueError(
            f"Y must be a scipy sparse matrix [rows, labels], not {type(Y).__name__}: "
            "wrap a dense one in scipy.sparse.csr_array(Y)."
        )
    if Y.ndim != 2:
        raise ValueError(f"Y must be [rows, labels], not of shape {Y.shape}.")
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"Y must hold real numbers or booleans, not {Y.dtype}.")
    if not Y.shape[0]:
        raise ValueError("Y has no rows, so there is nothing to measure.")
    if Y.format != "csr" or not Y.has_canonical_format:
        Y = _sorted_rows(Y, sparse)
    else:
        _check_values(Y)
    labels, borders = Y.indices, Y.indptr.astype(np.int64)
    if not Y.data.all():
        relevant = Y.data != 0
        labels, borders = labels[relevant], np.append(0, np.cumsum(relevant))[borders]
    return Relevant(labels, borders, int(Y.shape[1]))


def _sorted_rows(Y: Any, sparse: Any) -> Any:
    """A new CSR matrix of booleans: labels ascend in a row, and each is stored once."""
    coo = Y.tocoo(copy=False)
    _check_values(coo)
    # Of booleans, because the sum of numbers that are stored twice may overflow to zero.
    csr = sparse.csr_array((coo.data != 0, (coo.row, coo.col)), shape=Y.shape)
    csr.sum_duplicates()
    return csr


def _check_values(Y: Any) -> None:
    values: AnyArray = Y.data
    if values.dtype.kind in "bu" or not len(values):
        return
    if values.min() >= 0 and np.isfinite(values.max()):  # false for NaN as well
        return
    at = int(np.argmax(~((values >= 0) & np.isfinite(values))))
    coo = Y.tocoo(copy=False)
    raise ValueError(
        f"Y, row {coo.row[at]}, label {coo.col[at]}: the value is {values[at]}. What is relevant "
        "has a finite number above zero: drop the entry, or mark it as you mean it."
    )


def read_top(top: Any, relevant: Relevant, k: int) -> IntArray:
    """[rows, columns] the predictions, checked; of the columns, at least k."""
    numbers = to_numpy(top, "top")
    if numbers.ndim != 2:
        raise ValueError(
            f"top has shape {numbers.shape}: give [rows, k] label numbers, best first."
        )
    if numbers.dtype.kind not in "iu":
        raise ValueError(
            f"top must be label numbers, which are whole, not {numbers.dtype}: of scores, take the "
            "numbers of the k highest, best first, as torch.topk(scores, k).indices does."
        )
    rows, columns = numbers.shape
    if rows != len(relevant.counts):
        raise ValueError(f"top has {rows} rows, but Y has {len(relevant.counts)}: give the same.")
    if columns < k:
        raise ValueError(
            f"top has {columns} columns, but k is {k}: predict at least {k} labels a row, and "
            "write −1 where there is no more."
        )
    if numbers.dtype.kind == "u":
        _refuse(numbers >= relevant.n_labels, numbers, _out_of_range(relevant))
    numbers = numbers.astype(np.int64, copy=False)
    _refuse((numbers < -1) | (numbers >= relevant.n_labels), numbers, _out_of_range(relevant))
    after_end = np.zeros(numbers.shape, dtype=bool)
    np.logical_and(numbers[:, :-1] < 0, numbers[:, 1:] >= 0, out=after_end[:, 1:])
    _refuse(after_end, numbers, "stands after a −1, which ends a row: write −1 only at the end")
    ascending = np.sort(numbers, axis=1)
    again = np.zeros(numbers.shape, dtype=bool)
    np.logical_and(ascending[:, :-1] == ascending[:, 1:], ascending[:, 1:] >= 0, out=again[:, 1:])
    _refuse(again, ascending, "is predicted more than once: give each label once a row")
    return numbers


def _out_of_range(relevant: Relevant) -> str:
    return f"is out of range: labels are 0 to {relevant.n_labels - 1}, and −1 ends a row"


def _refuse(bad: AnyArray, numbers: AnyArray, problem: str) -> None:
    if bad.any():
        row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise ValueError(
            f"top, row {row}: label {numbers[row, column]} {problem} "
            f"({int(bad.any(axis=1).sum())} such rows in all)."
        )


def read_weights(inverse_propensity: Any, n_labels: int) -> FloatArray:
    """[labels] inverse propensities, checked."""
    if inverse_propensity is None:
        raise ValueError(
            "propensity-scored measures need inverse_propensity, one number a label: take "
            "tierrank.metrics.labels.inverse_propensity(Y) of the training labels."
        )
    weights = to_numpy(inverse_propensity, "inverse_propensity")
    if weights.shape != (n_labels,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"inverse_propensity must be one number for each of the {n_labels} labels of Y, "
            f"not {weights.dtype} of shape {weights.shape}."
        )
    weights = weights.astype(np.float64, copy=False)
    if not (good := (weights >= 1) & (weights < np.inf)).all():
        at = int(np.argmin(good))
        raise ValueError(
            f"inverse_propensity[{at}] = {weights[at]:g} ({int((~good).sum())} such labels in "
            "all): 1 / p of a probability p is finite and at least 1. Are these the p themselves?"
        )
    return weights
