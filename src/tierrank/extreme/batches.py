"""Minibatches of sparse rows with their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.extreme.network import SparseRows
from tierrank.tiers import Tiers
from tierrank.training.batches import Share

Array = np.ndarray[Any, Any]


class LabelBatches:
    """Rows of X with their labels, a few at a time, in a new order each epoch.

    Parameters
    ----------
    X, Y
        [rows, features] CSR of float32, [rows, labels] CSR
    weights
        [rows] how much each row counts, or None
    size
        rows in a batch
    seed
        of the order, with the number of the epoch
    """

    def __init__(self, X: Any, Y: Any, weights: Array | None, *, size: int, seed: int) -> None:
        self.X, self.Y, self.size, self.seed = X, Y, size, seed
        self.rows = np.flatnonzero(np.diff(Y.indptr))  # one without labels has no loss
        if not len(self.rows):
            raise ValueError("there is nothing to learn: no row has a label")
        chosen = np.ones(len(self.rows)) if weights is None else weights[self.rows]
        self.weights = (chosen / chosen.mean()).astype(np.float32)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return (len(self.rows) + self.size - 1) // self.size

    def begin(self, epoch: int) -> None:
        """Put the rows in the order of this epoch, which is the same each time."""
        self._order = np.random.default_rng([self.seed, epoch]).permutation(len(self.rows))

    def load(
        self, step: int, share: Share, device: torch.device
    ) -> tuple[SparseRows, Tiers, Tensor]:
        """A batch: its rows, their labels over all others, and what each row counts in the mean."""
        chosen = self._order[step * self.size : (step + 1) * self.size]
        rows = self.rows[chosen]
        weights = torch.from_numpy(self.weights[chosen] / np.float32(len(chosen)))
        tiers = Tiers.from_positives(self.Y[rows])
        return SparseRows.of(self.X[rows]).to(device), tiers.to(device), weights.to(device)

    def part(self, step: int) -> float:
        """Which part of the mean loss a batch stands for."""
        return min(self.size, len(self.rows) - step * self.size) / len(self.rows)
