"""Sums of gains, discounted by rank: DCG, NDCG, and the sharp NDCG of Lan et al. (2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.metrics.lists import (
    Empty,
    Gain,
    Lists,
    Ranked,
    Reduction,
    Ties,
    checked_k,
    ratio,
    read_lists,
    reduced,
)


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

    The arguments are those of `tierrank.metrics`. scikit-learn's `dcg_score` is
    ``gain="linear", k=None``; rax's ``k=None, ties="input"``.

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

    The arguments are those of `tierrank.metrics`. A list is `empty` if all its gains are 0.
    Whose NDCG it is:

    ============  ======================================================
    scikit-learn  ``gain="linear", k=None`` (`ndcg_score`; ties averaged)
    trec_eval     ``gain="linear", k=None``, but see below on ties
    LightGBM      ``ties="input", empty=1.0`` (and k from its `eval_at`)
    rax           ``ties="input", k=None``
    ============  ======================================================

    trec_eval orders tied documents by their names, descending: sort the rows so and say
    ``ties="input"``. An empty list is 0 in scikit-learn, trec_eval and rax, 1 in LightGBM.

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

    The arguments are those of `tierrank.metrics`. Without tied scores its numerator is the
    maximum less `pairwise_disagreement` (their theorem 3). A list is `empty` if the maximum
    is 0: all its gains are 0, or it has a single row.

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
