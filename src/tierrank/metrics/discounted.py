"""Sums of gains, discounted by rank: DCG, NDCG and the sharp NDCG of paper 004."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.metrics.gains import gains_from_zero, gains_of
from tierrank.metrics.inputs import (
    Empty,
    FloatArray,
    Gain,
    Lists,
    Reduction,
    Ties,
    checked_k,
    finish,
    ratio,
    read_lists,
)
from tierrank.metrics.ranked import Ranked, best_first, rank_rows


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
    ranked = rank_rows(lists, ties)
    return finish(_discounted(gains, ranked, log_discount(ranked, k)), reduction)


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
    ranked = rank_rows(lists, ties)
    return _normalised(lists, gains, ranked, log_discount(ranked, k), empty, reduction)


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
    maximum less `pairwise_disagreement` (theorem 3 of the paper). A list is `empty` if the maximum
    is 0: all its gains are 0, or it has a single row.

        >>> from tierrank import metrics
        >>> metrics.sharp_ndcg([3.0, 2.0, 1.0], [1, 2, 0])  # (2 · 1 + 1 · 3) / (2 · 3 + 1 · 1)
        0.7142857143
    """
    lists = read_lists(scores, labels, qid, lengths)
    gains = gains_from_zero(lists, gain)
    ranked = rank_rows(lists, ties)
    return _normalised(lists, gains, ranked, linear_discount(ranked), empty, reduction)


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


def _normalised(
    lists: Lists,
    gains: FloatArray,
    ranked: Ranked,
    discount: FloatArray,
    empty: Empty,
    reduction: Reduction,
) -> Any:
    best = ranked.list_sums(gains[best_first(gains, lists)] * discount)
    values = ratio(_discounted(gains, ranked, discount), best)
    return finish(values, reduction, best == 0, empty)
