"""Rows in the order of their scores, and sums over tied scores, by sorting and scanning alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.metrics.inputs import FloatArray, Lists, Ties, choice
from tierrank.tiers.arrays import offsets, run_starts, stable_order

# Integers in a range up to this are sorted by one packed key, together with their list.
_NARROW = 1 << 16


class Ranked(NamedTuple):
    """Lists with their rows in order, the best score first.

    Attributes
    ----------
    order
        [rows] which row of the `Lists` stands here; tied rows as they came
    rank
        [rows] place in the list, from 1
    starts, sizes
        [lists] first row and number of rows of each list
    tie_starts, tie_sizes
        [ties] the same of each set of rows whose order is left to chance: tied scores of one
        list; single rows if ties count as they come
    """

    order: IntArray
    rank: IntArray
    starts: IntArray
    sizes: IntArray
    tie_starts: IntArray
    tie_sizes: IntArray

    @property
    def strict(self) -> bool:
        """Whether nothing is left to chance."""
        return len(self.tie_starts) == len(self.rank)

    def list_sums(self, values: AnyArray) -> FloatArray:
        """[lists] sums of [rows]."""
        return np.add.reduceat(values.astype(np.float64, copy=False), self.starts)

    def tie_sums(self, values: AnyArray) -> FloatArray:
        """[ties] sums of [rows]."""
        values = values.astype(np.float64, copy=False)
        return values if self.strict else np.add.reduceat(values, self.tie_starts)

    def by_row(self, of_ties: AnyArray) -> AnyArray:
        """[rows] of [ties]: the value of the tie that a row is in."""
        return of_ties if self.strict else np.repeat(of_ties, self.tie_sizes)

    def tie_means(self, values: AnyArray) -> FloatArray:
        """[rows] the expectation of a value at each place, if tied rows come in random order."""
        values = values.astype(np.float64, copy=False)
        if self.strict:
            return values
        means: FloatArray = self.by_row(self.tie_sums(values) / self.tie_sizes)
        return means

    def place_in_tie(self) -> IntArray:
        """[rows] number of rows before this one in its tie."""
        return np.arange(len(self.rank)) - self.by_row(self.tie_starts)

    def within(self, k: int | None) -> AnyArray:
        """[rows] whether a row is among the first k of its list."""
        return np.full(len(self.rank), True) if k is None else self.rank <= k


def rank_rows(lists: Lists, ties: Ties) -> Ranked:
    """Sort the rows of each list by score, the best first."""
    choice("ties", ties, ("average", "input"))
    order = best_first(lists.scores, lists)
    rows, starts = len(order), lists.starts
    tie_starts = np.arange(rows) if ties == "input" else runs(lists.scores[order], starts)
    rank = np.arange(1, rows + 1) - np.repeat(starts, lists.sizes)
    return Ranked(
        order, rank, starts, lists.sizes, tie_starts, np.diff(np.append(tie_starts, rows))
    )


def best_first(values: AnyArray, lists: Lists) -> IntArray:
    """The rows list by list, the highest value first, equal ones as they come."""
    low, high = int(values.min()), int(values.max())
    narrow = low > -_NARROW and high < _NARROW
    if narrow and (values.dtype.kind != "f" or bool(np.all(values == np.trunc(values)))):
        n_values = high - low + 1
        key = high - values.astype(np.int64)
        key += lists.list_of_row * n_values
        order = stable_order(key, (len(lists.borders) - 1) * n_values)
        return np.arange(len(values)) if order is None else order
    # The complement of an integer reverses the order as the negative does, and cannot overflow.
    order = np.argsort(-values if values.dtype.kind == "f" else ~values, kind="stable")
    if len(lists.borders) == 2:
        return order
    by_list = stable_order(lists.list_of_row[order], len(lists.borders) - 1)
    return order if by_list is None else order[by_list]


def runs(values: AnyArray, starts: IntArray) -> IntArray:
    """Where runs of equal neighbours start; a run ends with its list."""
    changed = np.zeros(len(values), dtype=bool)
    changed[run_starts(values)] = True
    changed[starts] = True
    return np.flatnonzero(changed)


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


def counts_before(marked: AnyArray, starts: IntArray, sizes: IntArray) -> IntArray:
    """[rows] how many of the rows before this one in its list are marked."""
    running = offsets(marked)[:-1]
    counts: IntArray = running - np.repeat(running[starts], sizes)
    return counts
