"""Minibatches of lists: an epoch puts the lists in a new order, and a batch is a slice of it."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray
from tierrank.data.cache import as_kind, blocks
from tierrank.ranks import ALONE, Ranks
from tierrank.tiers import Tiers
from tierrank.tiers.layout import Layout


class Share(NamedTuple):
    """Which part of every batch a process takes: the number `process` of so many."""

    process: int = 0
    processes: int = 1


class ListBatch:
    """The lists of a batch that one process takes.

    Not a tuple or dataclass, into which Fabric would look for tensors to convert.

    Attributes
    ----------
    tiers
        the lists, with one score a row
    lengths
        number of rows of each list; the rows of a list are adjacent
    weights
        [lists] what each loss is multiplied with: the sum over all processes' lists is the batch's
        loss
    positions
        [rows] where each was shown, if that is known
    """

    def __init__(
        self, tiers: Tiers, lengths: AnyArray, weights: Tensor, positions: Tensor | None = None
    ) -> None:
        self.positions = positions
        self.tiers = tiers
        self.lengths = lengths
        self.weights = weights


class ListBatches:
    """Lists of rows with features, a few lists at a time.

    The loss of a batch estimates the mean over all lists, by weight, without bias: each list's
    weight counts as it is, relative to the mean weight, so that batches of light lists are light.

    Parameters
    ----------
    X
        [rows, features] float32, a tensor or CSR; only the rows of a batch are made dense
    tiers
        the lists, with one score a row
    weights
        [lists] how much each list counts, or None
    size
        lists in a batch
    lists
        numbers of the lists to take; the others must have loss 0 whatever the scores
    seed
        of the order of the lists, with the number of the epoch
    ranks
        if several, each has other lists, and numbers them from 0: a batch is of all lists, those
        of the first rank before those of the second, and each takes from it those that it has
    shown_rows, positions
        the row of X that each score is of, if they are not its rows; and where it was shown
    """

    def __init__(
        self,
        X: Any,
        tiers: Tiers,
        weights: AnyArray | None,
        *,
        size: int,
        lists: AnyArray,
        seed: int,
        ranks: Ranks = ALONE,
        shown_rows: AnyArray | None = None,
        positions: AnyArray | None = None,
    ) -> None:
        self.ranks = ranks
        self.shown_rows = None if shown_rows is None else torch.from_numpy(shown_rows)
        self.positions = None if positions is None else torch.from_numpy(positions)
        self.X, self.tiers, self.size, self.seed = X, tiers, size, seed
        self.weights = np.ones(len(tiers)) if weights is None else weights
        sums = torch.tensor([self.weights.sum(), self.weights[lists].sum()], dtype=torch.float64)
        self.total, of_lists = map(float, self.ranks.sum(sums))
        counts = [int(each) for each in self.ranks.each(torch.tensor([len(tiers)]))]
        self.first = sum(counts[: self.ranks.rank])  # the number of this rank's first list
        everyones = self.ranks.each(torch.from_numpy(lists + self.first))
        self.lists = torch.cat(everyones).numpy()
        self.mean = of_lists / len(self.lists)
        if not len(lists):  # all processes must take part in every step
            self.X, self.tiers = torch.zeros(2, X.shape[1]), Tiers.from_labels([1, 0])
            self.weights = np.zeros(1)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return (len(self.lists) + self.size - 1) // self.size

    def begin(self, epoch: int) -> None:
        """Put the lists in the order of this epoch, which is the same each time."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.lists)
        if self.ranks.size > 1:
            order = order - self.first
            self._places = np.flatnonzero((order >= 0) & (order < len(self.tiers)))
            order = order[self._places] if len(self._places) else np.zeros(1, dtype=np.int64)
        self._weights = self.weights[order]
        self._rows = self.tiers.rows(order)
        self._ordered = self.tiers[order]
        self._row_offsets = self._ordered.layout().row_offsets.numpy()

    def part(self, step: int) -> float:
        """Which part of the mean loss a batch stands for."""
        return self._lists_of(step) * self.mean / self.total

    def load(self, step: int, share: Share, device: torch.device) -> tuple[Tensor, ListBatch]:
        """A process's rows and lists of a batch. Where there are too few, its weights are 0."""
        begin, count = step * self.size, self._lists_of(step)
        if self.ranks.size > 1:
            first, last = np.searchsorted(self._places, [begin, begin + count]).tolist()
        else:
            first = begin + count * share.process // share.processes
            last = begin + count * (share.process + 1) // share.processes
        weights = torch.from_numpy(self._weights[first:last] / (count * self.mean))
        if first == last:  # all processes must take part in every step
            first = min(first, len(self._weights) - 1)
            last, weights = first + 1, torch.zeros(1)
        start, end = int(self._row_offsets[first]), int(self._row_offsets[last])
        rows = self._rows[start:end]
        lengths = np.diff(self._row_offsets[first : last + 1])
        positions = None if self.positions is None else self.positions[rows].to(device)
        batch = ListBatch(
            self._slice(first, last).to(device), lengths, weights.to(device, torch.float32),
            positions,
        )  # fmt: skip
        if self.shown_rows is not None:
            rows = self.shown_rows[rows]
        return dense_rows(self.X, rows).to(device, non_blocking=True), batch

    def _lists_of(self, step: int) -> int:
        return min(self.size, len(self.lists) - step * self.size)

    def _slice(self, first: int, last: int) -> Tiers:
        """Consecutive lists of the epoch: `tiers[first:last]`, without sorting anything again.

        The layout is a slice too: to find it anew would cost a third of the likelihood of a small
        batch.
        """
        ordered, whole = self._ordered, self._ordered.layout()
        row, end_row = int(self._row_offsets[first]), int(self._row_offsets[last])
        tier, end_tier = ordered.list_offsets[[first, last]].tolist()
        tiers = Tiers(
            items=ordered.items[row:end_row] - row,
            tier_offsets=ordered.tier_offsets[tier : end_tier + 1] - row,
            list_offsets=ordered.list_offsets[first : last + 1] - tier,
            score_shape=(end_row - row,),
            labels=None if ordered.labels is None else ordered.labels[tier:end_tier],
        )
        upper, end_upper = whole.list_offsets[[first, last]].tolist()
        entry, end_entry = whole.tier_offsets[[upper, end_upper]].tolist()
        layout = Layout(
            rows=None,
            row_offsets=whole.row_offsets[first : last + 1] - row,
            order=whole.order[entry:end_entry] - row,
            tier_offsets=whole.tier_offsets[upper : end_upper + 1] - entry,
            list_offsets=whole.list_offsets[first : last + 1] - upper,
        )
        tiers.kept("layout", lambda: layout)
        return tiers


def as_float32(X: Any) -> Any:
    """[rows, features] in float32: a tensor, or CSR if X is sparse."""
    if X.dtype != np.float32:
        with np.errstate(over="ignore"):
            X = as_kind(X, np.float32)
        values = X.data if hasattr(X, "indptr") else X
        columns = math.prod(values.shape[1:])
        if not all(np.isfinite(values[some]).all() for some in blocks(len(values), columns)):
            raise ValueError(
                "X has numbers above 3.4e38, too large for the network's float32: scale the "
                'features, for instance with features="standardize"'
            )
    if hasattr(X, "indptr"):
        return X
    with warnings.catch_warnings():  # a mapped array may be for reading only, and is only read
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(X))


def dense_rows(X: Any, rows: Tensor | slice) -> Tensor:
    """Some rows of what `as_float32` gave, as a dense tensor."""
    if isinstance(X, Tensor):
        return X[rows] if isinstance(rows, slice) else X.index_select(0, rows)
    chosen = X[rows if isinstance(rows, slice) else rows.numpy()]
    return torch.from_numpy(chosen.toarray())
