"""Measures over pairs of rows: the pairwise disagreement of paper 004, and Kendall's tau-b."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tierrank._types import IntArray
from tierrank.metrics.gains import gains_of
from tierrank.metrics.inputs import (
    Empty,
    FloatArray,
    Gain,
    Lists,
    Reduction,
    choice,
    finish,
    ratio,
    read_lists,
)
from tierrank.metrics.inversions import Levels, inversions, levels, sorted_by, tied_pairs


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
    gain(label_i) − gain(label_j) (``weight="gain"``: D-WPDL, section 5.3 of the paper, which falls
    as `sharp_ndcg` rises), or 1, which counts pairs (``"one"``). ``normalize=True`` divides by
    Σ D, so that the worst is 1; a list without a pair to compare is then `empty`. The other
    arguments are those of `tierrank.metrics`.

        >>> from tierrank import metrics
        >>> metrics.pairwise_disagreement([3.0, 2.0, 1.0], [1, 2, 0])  # gains 3 − 1
        2.0
        >>> metrics.pairwise_disagreement([1.0, 1.0, 1.0], [1, 2, 0], weight="one")
        3.0
    """
    choice("weight", weight, ("gain", "one"))
    lists = read_lists(scores, labels, qid, lengths)
    label, score = levels(lists.labels, lists), levels(lists.scores, lists)
    # Tied scores in the worst order, the lowest label first: each disagreement is an inversion.
    worst = sorted_by(score, label.n_levels - 1 - label.level, label.n_levels)
    if weight == "one":
        wrong = inversions(label.level[worst], lists).astype(np.float64)
        most = _pairs_apart(label, lists)
    else:
        gains = _rising_gains(lists, label, gain)
        # Theorem 3: Σ (n − rank) gain of the best order, less that of this one.
        above, below = _places_around(lists)
        best = np.add.reduceat(gains[label.order] * below, lists.starts)
        wrong = best - np.add.reduceat(gains[worst] * below, lists.starts)
        most = np.add.reduceat(gains[label.order] * (below - above), lists.starts)
    if not normalize:
        return finish(wrong, reduction)
    return finish(ratio(wrong, most), reduction, most <= 0, empty)


def kendall_tau_b(
    scores: Any,
    labels: Any,
    *,
    qid: Any = None,
    lengths: Any = None,
    empty: Empty = 0.0,
    reduction: Reduction = "mean",
) -> Any:
    """Kendall's rank correlation of scores and labels, corrected for ties in either.

        τ_b = (concordant − discordant pairs) / √(pairs untied in scores · pairs untied in labels)

    The arguments are those of `tierrank.metrics`. It is `scipy.stats.kendalltau` of each list. A
    list is `empty` if all its scores or all its labels are tied (scipy says NaN).

        >>> from tierrank import metrics
        >>> metrics.kendall_tau_b([3.0, 2.0, 1.0], [1, 2, 0])  # (2 − 1) / 3
        0.3333333333
    """
    lists = read_lists(scores, labels, qid, lengths)
    label, score = levels(lists.labels, lists), levels(lists.scores, lists)
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
    return finish(values, reduction, scale == 0, empty)


def _all_pairs(lists: Lists) -> IntArray:
    return lists.sizes * (lists.sizes - 1) // 2


def _pairs_apart(label: Levels, lists: Lists) -> IntArray:
    """[lists] the number of pairs with different labels."""
    return _all_pairs(lists) - tied_pairs(label.level[label.order], lists)


def _places_around(lists: Lists) -> tuple[IntArray, IntArray]:
    """[rows] how many places of the list are above (rank − 1) and below (n − rank) each."""
    place = np.arange(len(lists.labels))
    above = place - np.repeat(lists.starts, lists.sizes)
    return above, np.repeat(lists.borders[1:], lists.sizes) - 1 - place


def _rising_gains(lists: Lists, label: Levels, gain: Gain) -> FloatArray:
    """[rows] gains, none of them lower than that of a lower label in the same list."""
    gains = gains_of(lists, gain)
    rises = np.diff(gains[label.order]) > 0
    rises[lists.starts[1:] - 1] = False
    if rises.any():
        at = int(label.order[int(np.argmax(rises))])
        raise ValueError(
            f"the gain of labels[{lists.row_in_input(at)}] = {lists.labels[at]:g} is lower than "
            "that of a lower label, so pairs have no order: give a gain that rises with the label."
        )
    return gains
