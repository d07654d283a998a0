"""Measures of a user who reads down the list and stops: reciprocal rank, and ERR."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.metrics.inputs import (
    Empty,
    FloatArray,
    Lists,
    Reduction,
    Ties,
    checked_k,
    finish,
    read_lists,
)
from tierrank.metrics.ranked import Ranked, before, rank_rows, running_products
from tierrank.metrics.relevance import relevant_rows
from tierrank.metrics.symmetric import mean_products


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
    """1 / rank of the first relevant row, 0 if it is below rank k; its mean over lists is MRR.

    The arguments are those of `tierrank.metrics`; a row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. It is trec_eval's `recip_rank` and rax's
    `mrr_metric` (with their rules for ties).

        >>> from tierrank import metrics
        >>> metrics.reciprocal_rank([3.0, 2.0, 1.0], [0, 1, 1])
        0.5
        >>> metrics.reciprocal_rank([1.0, 1.0], [0, 1])  # (1/1 + 1/2) / 2
        0.75
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    ranked = rank_rows(lists, ties)
    hits = relevant_rows(lists, relevant)[ranked.order]
    # With r of the m tied rows relevant and j of them seen in vain, the next one is relevant with
    # probability r / (m − j); a tie with r > 0 is never left.
    left = ranked.by_row(ranked.tie_sizes) - ranked.place_in_tie()
    chance = np.minimum(ranked.by_row(ranked.tie_sums(hits)) / left, 1.0)
    values = _stopped_by(chance, ranked, k)
    return finish(values, reduction, ranked.list_sums(hits) == 0, empty)


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

    for the labels r_1, r_2, … in order of the scores. The arguments are those of
    `tierrank.metrics`; labels lie in 0 … `max_grade`, and the default of 4 is V(r) = (2^r − 1)/16,
    as in paper 002 and the Yahoo! challenge. A list is `empty` if all its labels are 0.

    The expectation over m tied rows takes about m · min(m, k, 40 / mean V) steps. That is nothing
    for ties of hundreds; for ties of 100,000 rows, few of them relevant, give a k.

        >>> from tierrank import metrics
        >>> metrics.err([3.0, 2.0, 1.0], [0, 4, 1])  # 1/2 · 15/16 + 1/3 · 1/16 · 1/16
        0.4700520833
    """
    k = checked_k(k)
    lists = read_lists(scores, labels, qid, lengths)
    stop = _stopping_chance(lists, max_grade)
    ranked = rank_rows(lists, ties)
    stop = stop[ranked.order]
    expected = _stopped_by if ranked.strict else _stopped_in_ties
    values = expected(stop, ranked, k)
    return finish(values, reduction, ranked.list_sums(stop) == 0, empty)


def _stopping_chance(lists: Lists, max_grade: float) -> FloatArray:
    if not 0 < max_grade < 1000:
        raise ValueError(f"max_grade is the highest label there can be, not {max_grade!r}.")
    labels = lists.labels.astype(np.float64, copy=False)
    if (bad := (labels < 0) | (labels > max_grade)).any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"labels[{lists.row_in_input(at)}] = {labels[at]:g} is not in 0 … max_grade = "
            f"{max_grade:g} ({int(bad.sum())} such labels in all): give the highest grade of your "
            "labels as max_grade."
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
