"""Measures over pairs of rows: the pairwise disagreement of Lan et al. (2014), Kendall's tau-b.

Pairs that scores and labels order differently are counted without looking at pairs.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.metrics.evaluation import (
    Empty,
    Gain,
    Lists,
    Reduction,
    choice,
    ratio,
    read_lists,
    reduced,
    runs,
)
from tierrank.metrics.measures import gains_of
from tierrank.tiers.arrays import offsets, stable_order


def pairwise_disagreement(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    weight: Literal["gain", "one"] = "gain",
    gain: Gain = "exp2",
    normalize: bool = False,
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Weight of the pairs that the scores do not put in order (Lan et al., 2014, eq. 11).

        WPDL = Σ_{i, j: label_i > label_j} D(i, j) · [score_i ≤ score_j]

    A loss: lower is better, and a tied score counts as a disagreement. The weight D is
    gain(label_i) − gain(label_j) (``weight="gain"``: D-WPDL, their section 5.3, which falls
    as `sharp_ndcg` rises), or 1, which counts pairs (``"one"``). ``normalize=True`` divides by
    Σ D, so that the worst is 1; a list without a pair to compare is then `empty`.

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
    weight : {"gain", "one"}
        "gain" weighs a pair by the difference of its gains, "one" counts pairs.
    gain : {"exp2", "linear"} or callable
        What a label is worth: "exp2", 2^label − 1; "linear", the label; or a function of an array
        of labels.
    normalize : bool
        Divide by the weight of all pairs, so that the worst is 1.
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
    sharp_ndcg : With a discount that falls linearly.
    kendall_tau_b : Rank correlation.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.pairwise_disagreement([3.0, 2.0, 1.0], [1, 2, 0])  # gains 3 − 1
    2.0
    >>> metrics.pairwise_disagreement([1.0, 1.0, 1.0], [1, 2, 0], weight="one")
    3.0
    """
    choice("weight", weight, ("gain", "one"))
    lists = read_lists(scores, labels, qid, lengths)
    label = levels(lists, lists.labels, lists.by_label)
    score = levels(lists, lists.scores, lists.by_score)
    # Tied scores in the worst order, the lowest label first: each disagreement is an inversion.
    worst = sorted_by(score, label.n_levels - 1 - label.level, label.n_levels)
    if weight == "one":
        wrong = inversions(label.level[worst], lists).astype(np.float64)
        most = _pairs_apart(label, lists)
    else:
        gains = _rising_gains(lists, label, gain)
        # Theorem 3: Σ (n − rank) gain of the best order, less that of this one.
        above, below = _ranks_around(lists)
        best = np.add.reduceat(gains[label.order] * below, lists.starts)
        wrong = best - np.add.reduceat(gains[worst] * below, lists.starts)
        most = np.add.reduceat(gains[label.order] * (below - above), lists.starts)
    if not normalize:
        return reduced(wrong, reduction)
    return reduced(ratio(wrong, most), reduction, most <= 0, empty)


def kendall_tau_b(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Rank correlation of scores and labels, corrected for ties in either (Kendall, 1945).

        τ_b = (concordant − discordant pairs) / √(pairs untied in scores · pairs untied in labels)

    It is `scipy.stats.kendalltau` of each list. A
    list is `empty` if all its scores or all its labels are tied (scipy says NaN).

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
    pairwise_disagreement : Weight of the pairs in the wrong order.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.kendall_tau_b([3.0, 2.0, 1.0], [1, 2, 0])  # (2 − 1) / 3
    0.3333333333
    """
    lists = read_lists(scores, labels, qid, lengths)
    label = levels(lists, lists.labels, lists.by_label)
    score = levels(lists, lists.scores, lists.by_score)
    order = sorted_by(score, label.level, label.n_levels)
    by_score, by_label = score.level[order], label.level[order]
    discordant = inversions(by_label, lists)  # tied scores stand in the labels' order: no inversion
    apart_in_scores = _all_pairs(lists) - tied_pairs(by_score, lists)
    apart_in_labels = _pairs_apart(label, lists)
    tied_in_both = tied_pairs(by_score * label.n_levels + by_label, lists)
    apart_in_both = apart_in_scores + apart_in_labels - _all_pairs(lists) + tied_in_both
    difference = (apart_in_both - 2 * discordant).astype(np.float64)
    scale = np.sqrt(apart_in_scores.astype(np.float64)) * np.sqrt(apart_in_labels)
    values = np.clip(ratio(difference, scale), -1.0, 1.0)
    return reduced(values, reduction, scale == 0, empty)


def _all_pairs(lists: Lists) -> IntArray:
    return lists.sizes * (lists.sizes - 1) // 2


def _pairs_apart(label: Levels, lists: Lists) -> IntArray:
    """[lists] the number of pairs with different labels."""
    return _all_pairs(lists) - tied_pairs(label.level[label.order], lists)


def _ranks_around(lists: Lists) -> tuple[IntArray, IntArray]:
    """[rows] how many rows of the list are ranked above (rank − 1) and below (n − rank) each."""
    row = np.arange(len(lists.labels))
    above = row - np.repeat(lists.starts, lists.sizes)
    return above, np.repeat(lists.borders[1:], lists.sizes) - 1 - row


def _rising_gains(lists: Lists, label: Levels, gain: Gain) -> FloatArray:
    """[rows] gains, none of them lower than that of a lower label in the same list."""
    gains = gains_of(lists, gain)
    rises = np.diff(gains[label.order]) > 0
    rises[lists.starts[1:] - 1] = False
    if rises.any():
        at = int(label.order[int(np.argmax(rises))])
        raise ValueError(
            f"the gain of {lists.name_row(at)} is lower than that of a lower label, so pairs have "
            "no order: give a gain that rises with the label."
        )
    return gains


class Levels(NamedTuple):
    """The distinct values of each list, numbered from the highest down.

    Attributes
    ----------
    order
        [rows] the rows list by list, the highest value first
    level
        [rows] level of each row in its list, from 0
    number
        [rows] the same, counted on from list to list
    n_levels
        the most levels of a list
    """

    order: IntArray
    level: IntArray
    number: IntArray
    n_levels: int


def levels(lists: Lists, values: AnyArray, order: IntArray) -> Levels:
    """Number the distinct values of each list, whose `order` has the highest first."""
    starts = runs(values[order], lists.starts)
    in_order = np.zeros(len(values), dtype=np.int64)
    in_order[starts[1:]] = 1
    np.cumsum(in_order, out=in_order)
    number = np.empty_like(in_order)
    number[order] = in_order
    level = number - np.repeat(in_order[lists.starts], lists.sizes)
    return Levels(order, level, number, int(level.max()) + 1)


def sorted_by(first: Levels, then: IntArray, n_then: int) -> IntArray:
    """The rows list by list, by their level, and then by another in 0 … n_then − 1, ascending."""
    key = first.number * n_then + then
    order = stable_order(key, (int(first.number.max()) + 1) * n_then)
    return np.arange(len(key)) if order is None else order


def inversions(level: IntArray, lists: Lists) -> IntArray:
    """[lists] the number of pairs of rows where the earlier has the higher level.

    Two levels differ first at some bit. So, bit by bit from the highest, rows that agree in all
    bits above stand together in their old order, and every 1 before a 0 among them is a pair.
    """
    starts = lists.starts
    total = np.zeros(len(starts), dtype=np.int64)
    level = level.copy()
    for bit in reversed(range(int(level.max()).bit_length())):
        one = (level >> bit) & 1
        first = runs(level >> (bit + 1), starts)
        size = np.diff(np.append(first, len(level)))
        ones = offsets(one)
        ones_before = ones[:-1] - np.repeat(ones[first], size)
        total += np.add.reduceat(np.where(one == 1, 0, ones_before), starts)
        # A stable partition: the zeros of each part move to its front, the ones behind them.
        zeros = size - np.diff(np.append(ones[first], ones[-1]))
        part_start = np.repeat(first, size)
        zeros_before = np.arange(len(level)) - part_start - ones_before
        to = part_start + np.where(one == 1, np.repeat(zeros, size) + ones_before, zeros_before)
        moved = np.empty_like(level)
        moved[to] = level
        level = moved
    return total


def tied_pairs(values: AnyArray, lists: Lists) -> IntArray:
    """[lists] the number of pairs of rows in one run of equal neighbours."""
    first = runs(values, lists.starts)
    size = np.diff(np.append(first, len(values)))
    of_row = np.zeros(len(values), dtype=np.int64)
    of_row[first] = size * (size - 1) // 2
    pairs: IntArray = np.add.reduceat(of_row, lists.starts)
    return pairs
