"""Measures that look at rows from the best score down.

Sums of gains, discounted by rank: DCG, NDCG, and the sharp NDCG of Lan et al. (2014); of what is
relevant: precision, recall, average precision; and of a user who reads down the list and stops:
reciprocal rank, and ERR.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.metrics.evaluation import (
    Empty,
    Gain,
    Lists,
    Ranked,
    Reduction,
    Ties,
    checked_k,
    choice,
    ratio,
    read_lists,
    reduced,
)
from tierrank.tiers.arrays import list_of_entry, offsets


def dcg(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = 10,
    gain: Gain = "exp2",
    ties: Ties = "average",
    reduction: Reduction = "mean",
) -> Any:
    """Discounted cumulative gain (Järvelin and Kekäläinen, 2002).

        DCG@k = Σ_{i ≤ k} gain(label at rank i) / log2(1 + i)

    scikit-learn's `dcg_score` is
    ``gain="linear", k=None``; rax's ``k=None, ties="input"``.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int or None
        Only the first k ranks count; None: all of them.
    gain : {"exp2", "linear"} or callable
        What a label is worth: "exp2", 2^label − 1; "linear", the label; or a function of an array
        of labels.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    ndcg : Normalised by that of the best order.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.dcg([3.0, 2.0, 1.0], [0, 2, 1])  # 3 / log2(3) + 1 / log2(4)
    2.3927892607
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    gains = gains_of(lists, gain)
    ranked = lists.ranked(ties)
    return reduced(_discounted(gains, ranked, log_discount(ranked, k)), reduction)


def ndcg(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = 10,
    gain: Gain = "exp2",
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Normalised discounted cumulative gain: DCG@k over that of the best order.

        NDCG@k = DCG@k / max DCG@k,   DCG@k = Σ_{i ≤ k} gain(label at rank i) / log2(1 + i)

    A list is `empty` if all its gains are 0.
    Whose NDCG it is:

    ============  ======================================================
    scikit-learn  ``gain="linear", k=None`` (`ndcg_score`; ties averaged)
    trec_eval     ``gain="linear", k=None``, but see below on ties
    LightGBM      ``ties="input", empty=1.0`` (and k from its `eval_at`)
    rax           ``ties="input", k=None``
    ============  ======================================================

    trec_eval orders tied documents by their names, descending: sort the rows so and say
    ``ties="input"``. An empty list is 0 in scikit-learn, trec_eval and rax, 1 in LightGBM.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int or None
        Only the first k ranks count; None: all of them.
    gain : {"exp2", "linear"} or callable
        What a label is worth: "exp2", 2^label − 1; "linear", the label; or a function of an array
        of labels.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    dcg : The same, not normalised.
    sharp_ndcg : With a discount that falls linearly.
    evaluate : Several measures at once.
    from_name : A measure by its name.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.ndcg([3.0, 2.0, 1.0], [1, 2, 0])  # (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    0.7967075809
    >>> metrics.ndcg([1.0, 1.0], [1, 0], ties="average")  # (1 + 1 / log2(3)) / 2
    0.8154648768
    >>> metrics.ndcg([2.0, 1.0, 5.0], [0, 0, 1], qid=["a", "a", "b"], reduction="none")
    array([0., 1.])
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    gains = gains_from_zero(lists, gain)
    ranked = lists.ranked(ties)
    best = _best_gains(lists, gains, gain)
    return _normalised(gains, best, ranked, log_discount(ranked, k), empty, reduction)


def sharp_ndcg(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    gain: Gain = "exp2",
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """NDCG with a discount that falls linearly (Lan et al., 2014, section 5.3).

        sharp-NDCG = Σ_i (n − rank of i) gain(label of i) / its maximum      for n rows

    Without tied scores its numerator is the
    maximum less `pairwise_disagreement` (their theorem 3). A list is `empty` if the maximum
    is 0: all its gains are 0, or it has a single row.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    gain : {"exp2", "linear"} or callable
        What a label is worth: "exp2", 2^label − 1; "linear", the label; or a function of an array
        of labels.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    ndcg : Normalised discounted cumulative gain.
    pairwise_disagreement : Weight of the pairs in the wrong order.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.sharp_ndcg([3.0, 2.0, 1.0], [1, 2, 0])  # (2 · 1 + 1 · 3) / (2 · 3 + 1 · 1)
    0.7142857143
    """
    lists = read_lists(scores, labels, qid, lengths)
    gains = gains_from_zero(lists, gain)
    ranked = lists.ranked(ties)
    best = _best_gains(lists, gains, gain)
    return _normalised(gains, best, ranked, linear_discount(ranked), empty, reduction)


def log_discount(ranked: Ranked, k: int | None) -> FloatArray:
    """[rows] 1 / log2(1 + rank) up to rank k, then 0."""
    longest = int(ranked.sizes.max())
    of_rank = np.zeros(longest + 1)
    last = longest if k is None else min(k, longest)
    of_rank[1 : last + 1] = 1 / np.log2(np.arange(2, last + 2))
    return of_rank[ranked.rank]


def linear_discount(ranked: Ranked) -> FloatArray:
    """[rows] n − rank."""
    return (np.repeat(ranked.sizes, ranked.sizes) - ranked.rank).astype(np.float64)


def _discounted(gains: FloatArray, ranked: Ranked, discount: FloatArray) -> FloatArray:
    """Every place of a tie expects the mean of its gains (McSherry and Najork, 2008)."""
    return ranked.list_sums(ranked.tie_means(gains[ranked.order]) * discount)


def _best_gains(lists: Lists, gains: FloatArray, gain: Gain) -> FloatArray:
    """[rows] the gains of each list, descending; those of the user's own need not follow labels."""
    descending: FloatArray = gains[lists.best_first(gains) if callable(gain) else lists.by_label]
    return descending


def _normalised(
    gains: FloatArray,
    best_gains: FloatArray,
    ranked: Ranked,
    discount: FloatArray,
    empty: Empty,
    reduction: Reduction,
) -> Any:
    best = ranked.list_sums(best_gains * discount)
    values = ratio(_discounted(gains, ranked, discount), best)
    return reduced(values, reduction, best == 0, empty)


def gains_of(lists: Lists, gain: Gain) -> FloatArray:
    """[rows] what each label is worth: 2^label − 1, the label, or a function of the user's."""
    labels = lists.labels.astype(np.float64, copy=False)
    if callable(gain):
        gains = _called(gain, labels)
    elif gain == "linear":
        gains = labels
    elif gain == "exp2":
        lists.refuse(labels < 0, 'is negative, where gain="exp2" has no meaning', "raise it to 0")
        with np.errstate(over="ignore"):
            gains = np.exp2(labels) - 1
    else:
        raise ValueError(f'gain is "exp2", "linear" or a function of the labels, not {gain!r}.')
    lists.refuse(~np.isfinite(gains), "has no finite gain", "use smaller labels, or another gain")
    return gains


def gains_from_zero(lists: Lists, gain: Gain) -> FloatArray:
    """[rows] gains that are not negative, so that there is a best possible sum to divide by."""
    gains = gains_of(lists, gain)
    lists.refuse(gains < 0, "has a negative gain, which cannot be normalised", "raise it to 0")
    return gains


def _called(gain: Any, labels: FloatArray) -> FloatArray:
    gains = np.asarray(gain(labels.copy()), dtype=np.float64)
    if gains.shape != labels.shape:
        raise ValueError(
            f"gain must give one number a label: for labels of shape {labels.shape} it gave "
            f"shape {gains.shape}."
        )
    return gains


# What is relevant and what is not -----------------------------------------------------------------


def precision(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = 10,
    relevant: float = 1.0,
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Share of relevant rows among the first k: their number / k.

    A row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. A list of fewer than k rows is divided by
    k all the same, as in trec_eval (rax divides by its length); k=None divides by the length.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int or None
        Only the first k ranks count; None: all of them.
    relevant : float
        The least label that is relevant.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    recall : Share of the relevant rows that is found.
    average_precision : Precision at the relevant rows.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.precision([3.0, 2.0, 1.0], [1, 0, 1], k=2)
    0.5
    """
    k, ranked, hits = _ranked_hits(scores, labels, qid, lengths, k, relevant, ties)
    ranks = ranked.sizes if k is None else np.full(len(ranked.sizes), k)
    found = ranked.list_sums(ranked.tie_means(hits) * ranked.within(k))
    return reduced(found / ranks, reduction, ranked.list_sums(hits) == 0, empty)


def recall(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = 10,
    relevant: float = 1.0,
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Share of the relevant rows that is among the first k.

    A row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. It is trec_eval's and rax's recall (with
    their rules for ties).

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int or None
        Only the first k ranks count; None: all of them.
    relevant : float
        The least label that is relevant.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    precision : Share of relevant rows among the first.
    average_precision : Precision at the relevant rows.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.recall([1.0, 1.0, 0.0], [1, 0, 1], k=1)  # found half of the time, of two
    0.25
    """
    k, ranked, hits = _ranked_hits(scores, labels, qid, lengths, k, relevant, ties)
    found = ranked.list_sums(ranked.tie_means(hits) * ranked.within(k))
    relevant_in_list = ranked.list_sums(hits)
    return reduced(ratio(found, relevant_in_list), reduction, relevant_in_list == 0, empty)


def average_precision(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = None,
    relevant: float = 1.0,
    out_of: Literal["all", "reachable"] = "all",
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Mean of the precisions at the ranks of the relevant rows; its mean over lists is MAP.

        AP@k = Σ_{i ≤ k, relevant} (number of relevant rows up to i) / i  /  out of

    A row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. The sum is divided by the number R of
    relevant rows (``out_of="all"``: trec_eval's `map` and `map_cut`, and rax), or by min(R, k), the
    number that could be found (``"reachable"``: LightGBM's `map`, with ``ties="input",
    empty=1.0``). scikit-learn's `average_precision_score` is the same without tied scores; with
    them it takes each tie as one step, which no order of its rows gives.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int, optional
        Only the first k ranks count; None: all of them.
    relevant : float
        The least label that is relevant.
    out_of : {"all", "reachable"}
        Divide by the number of relevant rows, or by that of those that could be found among the
        first k.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    precision : Share of relevant rows among the first.
    recall : Share of the relevant rows that is found.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.average_precision([3.0, 2.0, 1.0], [1, 0, 1])  # (1/1 + 2/3) / 2
    0.8333333333
    """
    choice("out_of", out_of, ("all", "reachable"))
    k, ranked, hits = _ranked_hits(scores, labels, qid, lengths, k, relevant, ties)
    at_hand = ranked.list_sums(hits)
    precisions = ranked.list_sums(_expected_precision_at_hits(ranked, hits) * ranked.within(k))
    total = at_hand if k is None or out_of == "all" else np.minimum(at_hand, k)
    return reduced(ratio(precisions, total), reduction, at_hand == 0, empty)


def _expected_precision_at_hits(ranked: Ranked, hits: AnyArray) -> AnyArray:
    """[rows] P(relevant here) · E[precision here, given so] (McSherry and Najork, 2008).

    In a tie of m rows, r of them relevant, after R others: a place is relevant with probability
    r/m, and then each of the j tied rows before it is so with probability (r − 1)/(m − 1).
    """
    if ranked.strict:
        return hits * (counts_before(hits, ranked.starts, ranked.sizes) + 1) / ranked.rank
    size, in_tie = ranked.tie_sizes, ranked.tie_sums(hits)
    before_tie = counts_before(hits, ranked.starts, ranked.sizes)[ranked.tie_starts]
    others = (in_tie - 1) / np.maximum(size - 1, 1)
    expected = ranked.by_row(before_tie + 1) + ranked.position_in_tie() * ranked.by_row(others)
    return ranked.by_row(in_tie / size) * expected / ranked.rank


def _ranked_hits(
    scores: Any, labels: Any, qid: Any, lengths: Any, k: int | None, relevant: float, ties: Ties
) -> tuple[int | None, Ranked, AnyArray]:
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    ranked = lists.ranked(ties)
    return k, ranked, relevant_rows(lists, relevant)[ranked.order]


def relevant_rows(lists: Lists, relevant: float) -> AnyArray:
    """[rows] whether the label is at least `relevant`."""
    if not np.isfinite(relevant):
        raise ValueError(f"relevant is the least label that counts, a number, not {relevant!r}.")
    marked: AnyArray = lists.labels >= relevant
    return marked


def counts_before(marked: AnyArray, starts: IntArray, sizes: IntArray) -> IntArray:
    """[rows] how many of the rows before this one in its list are marked."""
    running = offsets(marked)[:-1]
    counts: IntArray = running - np.repeat(running[starts], sizes)
    return counts


# A user who reads down the list and stops ---------------------------------------------------------


_NOTHING = 1e-18  # a product that no longer counts
# Numbers in a table of one block of ties: small enough for the processor's cache.
_BLOCK = 1 << 15


def reciprocal_rank(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = None,
    relevant: float = 1.0,
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Inverse rank of the first relevant row, 0 if it is below rank k; its mean is MRR.

    A row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. It is trec_eval's `recip_rank` and rax's
    `mrr_metric` (with their rules for ties).

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int, optional
        Only the first k ranks count; None: all of them.
    relevant : float
        The least label that is relevant.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    err : Where a user stops.
    average_precision : Precision at the relevant rows.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.reciprocal_rank([3.0, 2.0, 1.0], [0, 1, 1])
    0.5
    >>> metrics.reciprocal_rank([1.0, 1.0], [0, 1])  # (1/1 + 1/2) / 2
    0.75
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    ranked = lists.ranked(ties)
    hits = relevant_rows(lists, relevant)[ranked.order]
    # With r of the m tied rows relevant and j of them seen in vain, the next one is relevant with
    # probability r / (m − j); a tie with r > 0 is never left.
    left = ranked.by_row(ranked.tie_sizes) - ranked.position_in_tie()
    chance = np.minimum(ranked.by_row(ranked.tie_sums(hits)) / left, 1.0)
    values = _stopped_by(chance, ranked, k)
    return reduced(values, reduction, ranked.list_sums(hits) == 0, empty)


def err(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    k: int | None = None,
    max_grade: float = 4,
    ties: Ties = "average",
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Expected reciprocal rank of where a user stops (Chapelle et al., 2009).

        ERR@k = Σ_{i ≤ k} 1/i · V(r_i) Π_{j < i} (1 − V(r_j)),   V(r) = (2^r − 1) / 2^max_grade

    for the labels r_1, r_2, … in order of the scores. Labels lie in 0 … `max_grade`, and the
    default of 4 is V(r) = (2^r − 1)/16, as in the Yahoo! challenge. A list is `empty` if all its
    labels are 0.

    The expectation over m tied rows takes about m · min(m, k, 40 / mean V) steps. That is nothing
    for ties of hundreds; for ties of 100,000 rows, few of them relevant, give a k.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    k : int, optional
        Only the first k ranks count; None: all of them.
    max_grade : float
        The highest grade there may be.
    ties : {"average", "input"}
        What becomes of tied scores: "average" is the exact expectation over all their orders;
        "input" takes them as they come.
    empty : float or "skip"
        The value of a list with nothing relevant in it: a number, or "skip" to leave it out of the
        mean.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    float or ndarray
        The mean over lists, or [lists] values in order of the lists' first appearance.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    ndcg : Normalised discounted cumulative gain.
    reciprocal_rank : Place of the first relevant row.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.err([3.0, 2.0, 1.0], [0, 4, 1])  # 1/2 · 15/16 + 1/3 · 1/16 · 1/16
    0.4700520833
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    stop = _stopping_chance(lists, max_grade)
    ranked = lists.ranked(ties)
    stop = stop[ranked.order]
    expected = _stopped_by if ranked.strict else _stopped_in_ties
    values = expected(stop, ranked, k)
    return reduced(values, reduction, ranked.list_sums(stop) == 0, empty)


def _stopping_chance(lists: Lists, max_grade: float) -> FloatArray:
    if not 0 < max_grade < 1000:
        raise ValueError(f"max_grade is the highest label there can be, not {max_grade!r}.")
    labels = lists.labels.astype(np.float64, copy=False)
    lists.refuse(
        (labels < 0) | (labels > max_grade),
        f"is not in 0 … max_grade = {max_grade:g}",
        "give the highest grade of your labels as max_grade",
    )
    chance: FloatArray = (np.exp2(labels) - 1) / 2.0**max_grade
    return chance


def _stopped_by(chance: FloatArray, ranked: Ranked, k: int | None) -> FloatArray:
    """[lists] Σ_{i ≤ k} 1/i · chance_i Π_{j < i} (1 − chance_j)."""
    going_on = before(running_products(1 - chance, ranked.rank), ranked.starts, 1.0)
    return ranked.list_sums(going_on * chance / ranked.rank * ranked.within(k))


def _stopped_in_ties(stop: FloatArray, ranked: Ranked, k: int | None) -> FloatArray:
    """The same, expected over the orders of tied rows.

    A user who enters a tie after p rows goes on from its first j rows with probability A_j, the
    mean over its subsets of j rows of Π (1 − V); so the row at rank p + j + 1 has, in
    expectation, (A_j − A_{j+1}) / (p + j + 1).
    """
    entered = before(running_products(1 - stop, ranked.rank), ranked.starts, 1.0)[ranked.tie_starts]
    inside = mean_products(1 - stop, ranked, k)
    expected = ranked.by_row(entered) * (inside.before - inside.after)
    return ranked.list_sums(expected / ranked.rank * ranked.within(k))


def running_products(values: FloatArray, rank: IntArray) -> FloatArray:
    """Products of the values of a list up to and with each row, in log2(longest list) passes."""
    products = values.copy()
    reach, longest = 1, int(rank.max())
    while reach < longest:
        # Each product spans `reach` rows so far; those that reach their list's start are done.
        factor = np.where(rank[reach:] > reach, products[:-reach], 1.0)
        products[reach:] *= factor
        reach *= 2
    return products


def before(running: FloatArray, starts: IntArray, first: float) -> FloatArray:
    """The running value up to, but without, each row; `first` at the start of a list."""
    shifted = np.empty_like(running)
    shifted[1:] = running[:-1]
    shifted[starts] = first
    return shifted


class MeanProducts(NamedTuple):
    """[rows] A_j and A_{j+1} at the j-th row (from 0) of every tie."""

    before: FloatArray
    after: FloatArray


def mean_products(going_on: FloatArray, ranked: Ranked, k: int | None) -> MeanProducts:
    """The A_j of every tie of [rows] numbers; those that no measure at k needs are left at 1.

    For a_1 … a_m in [0, 1], A_j is the mean of the products over all subsets of j of them: the
    elementary symmetric polynomial e_j / C(m, j). One more number a changes it by

        A_j  ←  (m − j)/m · A_j  +  j/m · a · A_{j−1}          (m counts the new one)

    a convex combination, so that nothing overflows or cancels. Maclaurin's inequality A_j ≤ A_1^j
    says after which j all that is left is nothing.
    """
    mean = ranked.tie_sums(going_on) / ranked.tie_sizes
    depth = _depth(mean, ranked, k)
    # A tie of one row has A_0 = 1 and A_1 = a; where all are 1, so is every A_j.
    result = MeanProducts(np.ones_like(going_on), np.ones_like(going_on))
    single = ranked.tie_starts[ranked.tie_sizes == 1]
    result.after[single] = going_on[single]
    wide = np.flatnonzero((ranked.tie_sizes > 1) & (depth > 0) & (mean < 1))
    wide = wide[np.argsort(-ranked.tie_sizes[wide], kind="stable")]
    for block in _blocks(wide, depth):
        starts, sizes = ranked.tie_starts[block], ranked.tie_sizes[block]
        table = _table(going_on, starts, sizes, int(depth[block].max()))
        reach = np.minimum(sizes, len(table) - 1)
        which = list_of_entry(offsets(reach))
        j = np.arange(len(which)) - np.repeat(offsets(reach)[:-1], reach)
        row = starts[which] + j
        result.before[row] = table[j, which]
        result.after[row] = table[j + 1, which]
    return result


def _depth(mean: FloatArray, ranked: Ranked, k: int | None) -> IntArray:
    """[ties] after how many rows the products no longer matter."""
    with np.errstate(divide="ignore"):
        vanished = np.ceil(np.log(_NOTHING) / np.log(np.minimum(mean, 1 - 1e-15)))
    depth: IntArray = np.minimum(vanished, ranked.tie_sizes).astype(np.int64)
    if k is not None:
        depth = np.minimum(depth, np.maximum(k + 1 - ranked.rank[ranked.tie_starts], 0))
    return depth


def _blocks(ties: IntArray, depth: IntArray) -> list[IntArray]:
    """Cut the ties, largest first, so that each block's table is small."""
    cells = np.cumsum(depth[ties] + 1)
    return np.split(ties, np.flatnonzero(np.diff(cells // _BLOCK)) + 1) if len(ties) else []


def _table(going_on: FloatArray, starts: IntArray, sizes: IntArray, depth: int) -> FloatArray:
    """[depth + 1, ties] A_0 … A_depth of ties whose sizes descend; 0 beyond the size."""
    # The longer side lies side by side in memory: numpy's inner loops run along it.
    table = np.zeros((depth + 1, len(starts)), order="C" if len(starts) > depth else "F")
    table[0] = 1.0
    j = np.arange(depth + 1)[:, None]
    active = np.searchsorted(-sizes, -np.arange(1, int(sizes[0]) + 1), side="right")
    for m, n_active in enumerate(active.tolist(), start=1):
        top = min(m, depth)
        a = going_on[starts[:n_active] + m - 1]
        share = j[1 : top + 1] / m
        old, lower = table[1 : top + 1, :n_active], table[:top, :n_active]
        table[1 : top + 1, :n_active] = old * (1 - share) + lower * a * share
    return table
