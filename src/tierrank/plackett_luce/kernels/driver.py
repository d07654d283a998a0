"""Runs the compiled stages over threads: cuts the work into ranges of equal cost.

Threads are our own, not numba's: numba's portable thread layer aborts the process when two
Python threads enter it at once, and a web server or a data loader does that. The stages release
the GIL, so ordinary threads are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tierrank.compilation import announce
from tierrank.plackett_luce.kernels import compiled, curvature
from tierrank.plackett_luce.kernels.elementary import SOURCES
from tierrank.plackett_luce.quadrature import gauss_legendre, rule_for

Integers = npt.NDArray[np.int64]

SEGMENT_ROWS = 1 << 16  # a list longer than this is shared between threads
WORK_PER_TASK = 1 << 17  # nodes of an item: about 0.1 ms, well above a hand-over
TASKS_PER_THREAD = 8

announce(__file__, SOURCES, "compiling the kernels for this CPU: takes some ten seconds, this once")

_pool: ThreadPoolExecutor | None = None
_pool_threads = 0


def _forget_pool() -> None:  # a forked child has the object but not its threads
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _helpers(number: int) -> ThreadPoolExecutor:
    global _pool, _pool_threads
    if _pool is None or _pool_threads != number:
        _pool_threads = number
        _pool = ThreadPoolExecutor(number, thread_name_prefix="tierrank")
    return _pool


def run(stage: Callable[[int, int], Any], cost: npt.NDArray[Any]) -> None:
    """Call stage(lo, hi) on ranges that cover all units; cost[i] is what units before i cost.

    The calling thread works too, and leaves to the others what they get hold of in time: right
    after a parallel operation of torch, whose threads keep spinning, they may be late.
    """
    units, threads = len(cost) - 1, torch.get_num_threads()
    tasks = min(units, threads * TASKS_PER_THREAD, int(cost[-1]) // WORK_PER_TASK)
    if tasks <= 1 or threads == 1:
        stage(0, units)
        return
    targets = cost[-1] * np.arange(1, tasks) / tasks
    edges = np.unique(np.r_[0, np.searchsorted(cost, targets), units])
    ranges: SimpleQueue[tuple[int, int]] = SimpleQueue()
    for ends in pairwise(edges):
        ranges.put(ends)

    def work() -> None:
        while True:
            try:
                ends = ranges.get_nowait()
            except Empty:
                return
            stage(*ends)

    helpers = [_helpers(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():  # one that has begun is waited for, even after an error
                helper.result()


class Problem:
    """One batch of lists as numpy arrays, what the stages hand to each other, and costs."""

    def __init__(
        self,
        scores: torch.Tensor,
        bottom: torch.Tensor,
        layout: tuple[torch.Tensor, ...],
        tier_weights: torch.Tensor,
    ) -> None:
        self.scores = scores.detach().contiguous().numpy()
        self.bottom = bottom.detach().to(torch.float64).numpy()
        self.row_offsets, self.order, self.tier_offsets, self.list_offsets = (
            part.numpy() for part in layout
        )
        self.tier_weights = tier_weights.detach().to(torch.float64).contiguous().numpy()
        self.upper = np.zeros(len(self.scores), np.uint8)
        self.upper[self.order] = 1
        rule = rule_for(scores.dtype)
        self.rule = (rule.drop, rule.tolerance)
        self.points, self.log_weights = gauss_legendre(rule.nodes)
        self.usable = np.empty(len(self.list_offsets) - 1, np.bool_)
        self.below_max = np.empty(len(self.tier_offsets) - 1)
        self.below_log = np.empty(len(self.tier_offsets) - 1)

        self._cut_into_segments()
        self.segment_max = np.empty(len(self.segment_list))
        self.segment_sum = np.empty(len(self.segment_list))

        # in nodes of an item; the searches add about ten nodes' worth
        self.tier_cost = self.tier_offsets * (rule.nodes + 10)
        self.list_cost = self.tier_cost[self.list_offsets] + 2 * self.row_offsets

    def _cut_into_segments(self) -> None:
        """A segment is a list, or a piece of one that is too long for a single thread."""
        lengths = np.diff(self.row_offsets)
        lists = np.arange(len(self.row_offsets))
        self.segment_bounds, self.segment_offsets, self.segment_list = (
            self.row_offsets, lists, lists[:-1],
        )  # fmt: skip
        if lengths.max(initial=0) <= SEGMENT_ROWS:
            return
        pieces = np.maximum(-(-lengths // SEGMENT_ROWS), 1)
        self.segment_list = np.repeat(lists[:-1], pieces)
        self.segment_offsets = np.concatenate([[0], np.cumsum(pieces)])
        piece = np.arange(len(self.segment_list)) - self.segment_offsets[self.segment_list]
        starts = self.row_offsets[self.segment_list] + SEGMENT_ROWS * piece
        self.segment_bounds = np.append(starts, self.row_offsets[-1])

    def reduce(self, lo: int, hi: int, gradient: npt.NDArray[Any]) -> None:
        compiled.reduce_segments(
            self.scores, self.upper, self.segment_bounds, lo, hi,
            self.segment_max, self.segment_sum, gradient,
        )  # fmt: skip

    def climb(self, lo: int, hi: int) -> None:
        compiled.climb(
            self.scores, self.bottom, self.order, self.tier_offsets, self.list_offsets,
            self.segment_offsets, self.segment_max, self.segment_sum, lo, hi,
            self.usable, self.below_max, self.below_log,
        )  # fmt: skip


def log_prob_and_gradient(
    scores: torch.Tensor,
    bottom: torch.Tensor,
    layout: tuple[torch.Tensor, ...],
    tier_weights: torch.Tensor,
    with_gradient: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[lists] log-probabilities, [rows] and [lists] gradients of them in scores and bottom.

    Each upper tier's term counts `tier_weights` times, or once if that is empty. The gradients
    are empty without `with_gradient`. A list with a score that is not finite has
    log-probability NaN.
    """
    p = Problem(scores, bottom, layout, tier_weights)
    lists, tiers = len(p.list_offsets) - 1, len(p.tier_offsets) - 1
    log_prob = np.empty(lists)
    gradient = np.empty(len(p.scores) if with_gradient else 0, p.scores.dtype)
    # zeros: lists without a row, all of them left to the rest, have nothing to set it by
    bottom_gradient = np.zeros(lists if with_gradient else 0)
    last_owes = np.empty(lists)
    term, pull = np.empty(tiers), np.empty(tiers)

    def reduce(lo: int, hi: int) -> None:
        p.reduce(lo, hi, gradient)

    def integrate(lo: int, hi: int) -> None:
        compiled.integrate_tiers(
            p.scores, p.order, p.tier_offsets, p.tier_weights, p.below_max, p.below_log, lo, hi,
            p.rule, p.points, p.log_weights, term, pull, gradient,
        )  # fmt: skip

    def descend(lo: int, hi: int) -> None:
        compiled.descend(
            p.scores, p.bottom, p.order, p.tier_offsets, p.list_offsets, p.below_max, p.below_log,
            p.usable, term, pull, lo, hi, log_prob, gradient, bottom_gradient, last_owes,
        )  # fmt: skip

    def charge(lo: int, hi: int) -> None:
        if with_gradient:
            compiled.charge_last_tier(
                p.upper, p.segment_bounds, p.segment_list, p.list_offsets, p.segment_max,
                p.below_max, p.below_log, last_owes, lo, hi, gradient,
            )  # fmt: skip

    def all_stages(lo: int, hi: int) -> None:
        segments = p.segment_offsets[lo], p.segment_offsets[hi]
        reduce(*segments)
        p.climb(lo, hi)
        integrate(p.list_offsets[lo], p.list_offsets[hi])
        descend(lo, hi)
        charge(*segments)

    if _evenly_divisible(p.list_cost):
        run(all_stages, p.list_cost)
    else:
        run(reduce, p.segment_bounds)
        run(p.climb, p.list_cost)
        run(integrate, p.tier_cost)
        run(descend, p.list_cost)
        run(charge, p.segment_bounds)
    kind = scores.dtype
    return (
        torch.from_numpy(log_prob).to(kind),
        torch.from_numpy(gradient),
        torch.from_numpy(bottom_gradient).to(bottom.dtype),
    )


def curvature_product(
    scores: torch.Tensor,
    bottom: torch.Tensor,
    layout: tuple[torch.Tensor, ...],
    tier_weights: torch.Tensor,
    vector: torch.Tensor | None,
    bottom_vector: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each list's Hessian times its part of `vector` and `bottom_vector`, or its diagonal."""
    p = Problem(scores, bottom, layout, tier_weights)
    lists, tiers = len(p.list_offsets) - 1, len(p.tier_offsets) - 1
    diagonal = vector is None
    v, v_bottom = (
        np.empty(0) if part is None else part.detach().to(torch.float64).contiguous().numpy()
        for part in (vector, bottom_vector)
    )
    mean, pull, push = np.zeros(tiers), np.empty(tiers), np.empty(tiers)
    out, bottom_out = np.zeros(len(p.scores)), np.empty(lists)
    no_gradient = np.empty(0, p.scores.dtype)

    def all_stages(lo: int, hi: int) -> None:
        p.reduce(p.segment_offsets[lo], p.segment_offsets[hi], no_gradient)
        p.climb(lo, hi)
        if not diagonal:
            curvature.means_below(
                p.scores, v, p.bottom, v_bottom, p.upper, p.order, p.tier_offsets, p.list_offsets,
                p.row_offsets, p.below_max, p.below_log, lo, hi, mean,
            )  # fmt: skip
        curvature.tier_curvature(
            p.scores, v, p.order, p.tier_offsets, p.tier_weights, p.below_max, p.below_log, mean,
            p.list_offsets[lo], p.list_offsets[hi], p.rule, p.points, p.log_weights,
            diagonal, pull, push, out,
        )  # fmt: skip
        curvature.charge_curvature(
            p.scores, v, p.bottom, v_bottom, p.upper, p.order, p.tier_offsets, p.list_offsets,
            p.row_offsets, p.below_max, p.below_log, mean, pull, push, lo, hi, diagonal,
            out, bottom_out,
        )  # fmt: skip

    run(all_stages, p.list_cost)
    return torch.from_numpy(out).to(scores.dtype), torch.from_numpy(bottom_out).to(bottom.dtype)


def scale_lists(
    rows: torch.Tensor, row_offsets: torch.Tensor, by_list: torch.Tensor
) -> torch.Tensor:
    """[rows] every row times the number of its list."""
    if len(by_list) == 1:
        return rows * by_list
    out = torch.empty_like(rows)
    values, offsets, factors = (
        part.detach().contiguous().numpy() for part in (rows, row_offsets, by_list.to(rows))
    )
    result = out.numpy()
    run(
        lambda lo, hi: compiled.scale_lists(values, offsets, factors, lo, hi, result),
        offsets,
    )
    return out


def _evenly_divisible(cost: npt.NDArray[Any]) -> bool:
    """Whether whole lists can be shared out: no list is most of a thread's part."""
    largest = int(np.diff(cost).max(initial=0))
    return largest <= max(WORK_PER_TASK, int(cost[-1]) // (2 * torch.get_num_threads()))
