"""Pairs of rows that scores and labels order differently, counted without looking at pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.metrics.inputs import Lists
from tierrank.metrics.ranked import best_first, runs
from tierrank.tiers.arrays import offsets, stable_order


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


def levels(values: AnyArray, lists: Lists) -> Levels:
    """Number the distinct values of each list, from the highest down."""
    order = best_first(values, lists)
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
