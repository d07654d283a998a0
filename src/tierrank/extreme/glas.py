"""Labels that come together point the same way: the regulariser GLaS of Guo et al. (2019).

    GLaS(V) = mean over pairs of labels of (v_i · v_j − (P(i | j) + P(j | i)) / 2)²

P(i | j) is the share of the rows with label j that have i. In a step, the pairs are those of some
of the labels that the batch names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_LABELS = 1024  # of a step
DENSE_LABELS = 4096  # up to so many, all pairs are counted beforehand: 64 MB


class Glas:
    """The regulariser for label sets [rows, labels] CSR, `strength` times."""

    def __init__(self, Y: Any, strength: float) -> None:
        self.strength = strength
        self.counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float32)
        self.columns = (Y != 0).tocsc().astype(np.float32)  # a row has a label or it does not
        self.together: Any = None
        if Y.shape[1] <= DENSE_LABELS:
            self.together = (self.columns.T @ self.columns).toarray()

    def labels(self, named: Tensor) -> Tensor:
        """Labels of a step, ascending: those that a batch names, or some of them."""
        labels: Tensor = named.unique()
        if len(labels) > MOST_LABELS:
            labels = labels[torch.randperm(len(labels))[:MOST_LABELS]].sort().values
        return labels

    def target(self, labels: Tensor) -> Tensor:
        """[labels, labels] (P(i | j) + P(j | i)) / 2."""
        index = labels.numpy()
        if self.together is not None:
            together = self.together[np.ix_(index, index)]
        else:
            chosen = self.columns[:, index]
            together = (chosen.T @ chosen).toarray()
        given = together / self.counts[index]
        return torch.from_numpy((given + given.T) / 2)

    def gradient(self, labels: Tensor, vectors: Tensor) -> tuple[float, Tensor]:
        """The regulariser, and its gradient in [labels, width] vectors."""
        error = vectors @ vectors.T - self.target(labels).to(vectors)
        scale = self.strength / len(labels) ** 2
        value = scale * float(error.square().sum())
        return value, 4 * scale * (error @ vectors)
