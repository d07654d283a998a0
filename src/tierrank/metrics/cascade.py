"""Measures of a user who reads down the list and stops: reciprocal rank, and ERR."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.metrics.lists import (
    Empty,
    Lists,
    Ranked,
    Reduction,
    Ties,
    checked_k,
    read_lists,
    reduced,
)
from tierrank.metrics.relevance import relevant_rows
from tierrank.tiers.arrays import list_of_entry, offsets

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

    for the labels r_1, r_2, … in order of the scores. The arguments are those of
    `tierrank.metrics`; labels lie in 0 … `max_grade`, and the default of 4 is V(r) = (2^r − 1)/16,
    as in the Yahoo! challenge. A list is `empty` if all its labels are 0.

    The expectation over m tied rows takes about m · min(m, k, 40 / mean V) steps. That is nothing
    for ties of hundreds; for ties of 100,000 rows, few of them relevant, give a k.

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
