"""Measures of what is relevant and what is not: precision, recall, average precision."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.metrics.lists import (
    Empty,
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
from tierrank.tiers.arrays import offsets


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

    The arguments are those of `tierrank.metrics`; a row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. A list of fewer than k rows is divided by
    k all the same, as in trec_eval (rax divides by its length); k=None divides by the length.

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

    The arguments are those of `tierrank.metrics`; a row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. It is trec_eval's and rax's recall (with
    their rules for ties).

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

    The arguments are those of `tierrank.metrics`; a row is relevant if its label is at least
    `relevant`, and a list without such rows is `empty`. The sum is divided by the number R of
    relevant rows (``out_of="all"``: trec_eval's `map` and `map_cut`, and rax), or by min(R, k), the
    number that could be found (``"reachable"``: LightGBM's `map`, with ``ties="input",
    empty=1.0``). scikit-learn's `average_precision_score` is the same without tied scores; with
    them it takes each tie as one step, which no order of its rows gives.

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
