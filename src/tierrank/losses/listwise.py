"""Losses that compare a list's scores with its grades as a whole.

A tier's grade is its label, where the tiers were built from labels; else it is the number of
tiers below it (`Tiers.grades`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tierrank import _native
from tierrank._types import FloatArray
from tierrank.losses.objective import (
    Pass,
    Reduction,
    in_one_pass,
    objective,
    reduced,
    shares_a_rest,
)
from tierrank.plackett_luce.kernels import checked_layout
from tierrank.plackett_luce.lists import FlatLists, ScoredLists, Scores, wide_dtype
from tierrank.plackett_luce.tier_sums import Groups, LogSumExp
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers, repeat


@objective
def list_net(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Cross-entropy between softmax(grades) and softmax(scores) (ListNet; Cao et al., 2007).

    −Σ_j p_j log q_j, where p_j ∝ e^{grade of j} and q_j ∝ e^{w_j} are the chances to come
    first. Not zero for a list of one tier: there it asks for equal scores.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    att_rank : The same with the relevant grades alone.
    pl_partition : The exact likelihood.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.list_net(scores, tiers)  # Σ p_j log 1/q_j with q = 4/7, 2/7, 1/7
    array(1.0677229)
    """
    given = Scores(scores)
    return reduced(given, _cross_entropy(given.values, tiers, False), weights, reduction)


def list_net_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian: p (1 − p), with p the softmax over the list."""
    lengths = tiers.lengths.numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    worth = np.exp(rows - np.repeat(np.maximum.reduceat(rows, starts), lengths))
    share = worth / np.repeat(np.add.reduceat(worth, starts), lengths)
    return np.asarray(share * (1 - share))


@objective
def att_rank(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Cross-entropy between the relevant grades and softmax(scores) (AttRank; Ai et al., 2018).

    −Σ_j a_j log q_j with a_j ∝ e^{grade of j} for grades above 0, else 0, and q_j ∝ e^{w_j}; 0 for
    a list without any such grade. Over two tiers this is `pl_lower_bound` without its constant,
    divided by the size of the upper one.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    list_net : The same with all grades.
    pl_lower_bound : A cheap lower bound.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.att_rank(scores, tiers)  # −log(4/7 · 2/7) / 2
    array(0.90618939)
    """
    given = Scores(scores)
    return reduced(given, _cross_entropy(given.values, tiers, True), weights, reduction)


def att_rank_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """ListNet's where a list has a grade above 0, its first tier's; else 0, as the loss is."""
    best = tiers.grades.numpy()[tiers.list_offsets.numpy()[:-1]]
    targets = np.repeat(best > 0, tiers.lengths.numpy())
    return np.where(targets, list_net_hessian(rows, tiers), 0.0)


@objective
def rank_cosine(
    scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean"
) -> Any:
    """Half of one minus the cosine between grades and scores (RankCosine; Qin et al., 2008).

    ½ (1 − Σ g_j w_j / (‖g‖ ‖w‖)), from 0 to 1. It depends on where the scores' zero is. If all
    scores or all grades of a list are 0 there is no angle: the loss is ½, and its gradient at
    zero scores points away from the grades, so that a model that starts from zeros can learn.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    list_net : The same with all grades.
    att_rank : The same with the relevant grades alone.

    Examples
    --------
    >>> import tierrank as tr
    >>> tiers = tr.Tiers.from_labels([2, 1, 0])
    >>> float(tr.losses.rank_cosine([2.0, 1.0, 0.0], tiers))  # scores that are the grades
    0.0
    """
    given = Scores(scores)
    lists = _GradedLists(given.values, tiers)
    product = lists.list.sum(lists.of_entries(lists.grades) * lists.entries)
    norms = lists.sum_tiers(lists.grades.square()).sqrt() * lists.norm()
    return reduced(
        given, 0.5 * (1 - product / torch.where(norms > 0, norms, 1.0)), weights, reduction
    )


@objective
def bce(scores: Any, tiers: Tiers, *, weights: Any = None, reduction: Reduction = "mean") -> Any:
    """Logistic loss of every item by itself, relevant or not (one-vs-rest logistic regression).

        loss = Σ_{i relevant} log(1 + e^−w_i) + Σ_{others} log(1 + e^w_i)

    Relevant is what has a grade above 0, and in a catalogue with a rest all that a list names. Each
    item is judged against a threshold, 0, and not against the others: scores are log-odds, and a
    list of one tier says something too.

    Parameters
    ----------
    scores : array_like
        A score an item, in the shape that `tiers` asks for: see `tierrank.log_prob`.
    tiers : Tiers
        The lists.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor or ndarray
        The loss, of the kind that the scores are.

    Raises
    ------
    ValueError
        A score is NaN or infinite, or a shape is wrong.

    See Also
    --------
    list_net : The same with all grades.
    pl_partition : The exact likelihood.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.losses.listwise import bce
    >>> float(bce([2.0, 0.0], tr.Tiers.from_labels([1, 0])))  # log(1 + e^−2) + log 2
    0.820075
    """
    given = Scores(scores)
    lists = _GradedLists(given.values, tiers)
    relevant = lists.of_entries((lists.grades > 0) | tiers.rest)
    own = softplus(torch.where(relevant, -lists.entries, lists.entries))
    return reduced(given, lists.list.sum(own) + lists.rest_softplus(), weights, reduction)


def bce_hessian(rows: FloatArray, tiers: Tiers) -> FloatArray:
    """Diagonal of the Hessian, which is one: σ (1 − σ)."""
    return np.asarray(np.exp(-np.logaddexp(0, rows) - np.logaddexp(0, -rows)))


def _cross_entropy(values: Tensor, tiers: Tiers, above_0: bool) -> Tensor:
    """[lists] −Σ_j p_j log q_j by the native core, or by the formula; p ∝ `_exponential_grades`."""

    def formula(values: Tensor) -> Tensor:
        return _GradedLists(values, tiers).cross_entropy(*_exponential_grades(tiers, above_0))

    if shares_a_rest(values, tiers):
        return formula(values)
    kernel = partial(_fill_cross_entropies, above_0)
    return in_one_pass(values, tiers, kernel, lambda values: -formula(values))


def _fill_cross_entropies(above_0: bool, lists: FlatLists, arrays: Pass) -> bool:
    """Σ_j p_j log softmax(w)_j with p ∝ e^grade, or 0 for grades that are not `above_0`."""
    scores, value, gradient, _ = arrays
    tiers = lists.tiers
    grades = tiers.kept("grades", lambda: tiers.grades.contiguous().numpy())
    of_lists = tiers.list_offsets.contiguous().numpy()
    threads = torch.get_num_threads()
    layout = checked_layout(lists.layout)
    return _native.cross_entropy(
        layout, scores, grades, of_lists, above_0, threads, value, gradient
    )


def _exponential_grades(tiers: Tiers, above_0: bool) -> tuple[Tensor, Tensor]:
    """e^(grade − best): [tiers] of what is named, and [lists] of an item of the rest.

    With `above_0`, grades up to 0, the rest's among them, are worth nothing.
    """
    grades = tiers.grades.to(wide_dtype(tiers.device))
    tier_list = range_numbers(tiers.list_offsets.diff())
    best = grades.new_full((len(tiers),), -torch.inf)
    best.scatter_reduce_(0, tier_list, grades, "amax")
    best = torch.where(tiers.full_lengths > tiers.lengths, best.clamp(min=0), best)
    worth, rest_worth = (grades - best[tier_list]).exp(), (-best).exp()
    if above_0:
        return torch.where(grades > 0, worth, 0.0), torch.zeros_like(rest_worth)
    return worth, rest_worth


class _GradedLists(ScoredLists):
    """What the lists name, with its grades, and sums over whole lists.

    Items of a rest that is not written have grade 0, and only sums over them are needed: with
    scores [lists, items] a list is a row of these, and shared scores [items] are all lists' row.

    Attributes
    ----------
    entries
        [entries] scores of what is named
    list
        which list an entry belongs to, as `Groups`
    grades, tier_list
        [tiers] the grade of every written tier, and which list it belongs to
    rest_sizes
        [lists] how many items are not named
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        super().__init__(values, tiers)
        lengths, index, flat = tiers.lengths, self.written, values.reshape(-1)
        self.list = Groups(range_numbers(lengths), len(tiers))
        wide = wide_dtype(values.device)
        self.entries = flat.index_select(0, index).to(wide)
        self.grades = tiers.grades.to(wide)
        self.tier_list = range_numbers(tiers.list_offsets.diff())
        self.rest_sizes = torch.zeros_like(lengths)
        self._rows: Tensor | None = None
        if tiers.rest and len(tiers):
            assert tiers.n_items is not None
            self.rest_sizes = tiers.n_items - lengths
            self._rows = values.reshape(-1, tiers.n_items).to(wide)
        if not torch.compiler.is_compiling():
            self._check_finite(flat, index)

    def _check_finite(self, flat: Tensor, index: Tensor) -> None:
        bad = ~(self.entries if self._rows is None else flat).isfinite()
        if bad.any():
            place = int(bad.nonzero()[0, 0])
            raise self.not_finite(place if self._rows is not None else int(index[place]))

    def of_entries(self, by_tier: Tensor) -> Tensor:
        """[entries] from [tiers]."""
        return repeat(by_tier, self.tiers.tier_sizes)

    def sum_tiers(self, by_tier: Tensor) -> Tensor:
        """[lists] Σ over the named items of what their tiers have."""
        total = by_tier.new_zeros(len(self.tiers))
        return total.index_add(0, self.tier_list, by_tier * self.tiers.tier_sizes)

    def _of_rows(self, by_row: Tensor) -> Tensor:
        """[lists] from [rows], of which there is one for all lists, or one a list."""
        return by_row.expand(len(self.tiers))

    def log_sum_exp(self) -> LogSumExp:
        """[lists] of all scores of a list."""
        if self._rows is None:
            return self.list.logsumexp(self.entries)
        return LogSumExp(*map(self._of_rows, LogSumExp.of_rows(self._rows)))

    def norm(self) -> Tensor:
        """[lists] ‖w‖ over all items of a list; 1, of gradient 0, where all scores are 0."""
        if self._rows is None:
            squares = self.list.sum(self.entries.square())
        else:
            squares = self._of_rows(self._rows.square().sum(1))
        return torch.where(squares > 0, squares, 1.0).sqrt()

    def shortfall(self, height: Tensor) -> Tensor:
        """[lists] Σ (height − w) over the rest."""
        if self._rows is None:
            return torch.zeros_like(height)
        named = self.list.sum(height[self.list.of] - self.entries)
        return self._rows.shape[1] * height - self._of_rows(self._rows.sum(1)) - named

    def rest_softplus(self) -> Tensor:
        """[lists] Σ log(1 + e^w) over the rest."""
        if self._rows is None:
            return self.entries.new_zeros(len(self.tiers))
        every = self._of_rows(softplus(self._rows).sum(1))
        rest = every - self.list.sum(softplus(self.entries))
        return torch.where(self.rest_sizes > 0, rest, 0.0)

    def cross_entropy(self, worth: Tensor, rest_worth: Tensor) -> Tensor:
        """[lists] Σ_j p_j (lse − w_j) with p ∝ worth, which is `rest_worth` for the rest."""
        lse = self.log_sum_exp()
        total = self.sum_tiers(worth) + rest_worth * self.rest_sizes
        gap = lse.largest[self.list.of] - self.entries
        missed = self.list.sum(self.of_entries(worth) * gap)
        missed = missed + rest_worth * self.shortfall(lse.largest)
        loss = missed / torch.where(total > 0, total, 1.0) + lse.total.log()
        return torch.where(total > 0, loss, 0.0)
