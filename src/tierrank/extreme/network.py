"""The network below the last layer: sparse rows in, [rows, width] hidden numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding_bag

from tierrank.training.settings import check_count


class SparseRows(NamedTuple):
    """Some rows of X, on the features that they have.

    Attributes
    ----------
    features
        [used] the numbers of the features that any of the rows has, ascending
    places, values
        [entries] which of `features`, and its value; row by row
    starts
        [rows] where the entries of a row start
    """

    features: Tensor
    places: Tensor
    values: Tensor
    starts: Tensor

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """From a CSR matrix of float32."""
        features, places = np.unique(X.indices, return_inverse=True)
        starts = X.indptr[:-1].astype(np.int64)
        parts = features.astype(np.int64), places.reshape(-1), X.data, starts
        return cls(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))

    def to(self, device: torch.device) -> SparseRows:
        """The same there."""
        return SparseRows(*(part.to(device) for part in self))


def widths(hidden: int | Sequence[int]) -> tuple[int, ...]:
    """Widths of the hidden layers, of which there is at least one."""
    several = tuple(hidden) if isinstance(hidden, Sequence) else (hidden,)
    for width in several:
        check_count("hidden", width)
    if not several:
        raise ValueError("hidden is the width of the hidden layer, or of several, but not of none")
    return several


class Network(nn.Module):
    """A perceptron on sparse rows: Σ value · row of `features`, ReLU, and further layers.

    Parameters
    ----------
    n_features, n_labels
        sizes of the first and the last layer
    hidden
        widths of the layers between
    input_dropout, hidden_dropout
        probability with which an entry of X, or a hidden number, is left out in training
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        hidden: Sequence[int],
        *,
        input_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.input_dropout, self.hidden_dropout = input_dropout, hidden_dropout
        self.features = nn.Parameter(torch.empty(n_features, hidden[0]))
        self.feature_bias = nn.Parameter(torch.empty(hidden[0]))
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(hidden))
        self.labels = nn.Parameter(torch.empty(n_labels, hidden[-1]))
        self.label_bias = nn.Parameter(torch.empty(n_labels))

    def reset(self) -> None:
        """Draw first weights as `nn.Linear` does, uniform in ±1/√inputs."""
        for parts in ((self.features, self.feature_bias), (self.labels, self.label_bias)):
            inputs = len(parts[0]) if parts[0] is self.features else parts[0].shape[1]
            for part in parts:
                nn.init.uniform_(part, -(inputs**-0.5), inputs**-0.5)

    def forward(self, rows: SparseRows, features: Tensor | None = None) -> Tensor:
        """[rows, width] hidden numbers.

        `features` are the rows of ``self.features`` that `rows` use, if they are there already.
        """
        if features is None:
            features = self.features.index_select(0, rows.features)
        values = dropout(rows.values, self.input_dropout, self.training)
        hidden = embedding_bag(
            rows.places, features, rows.starts, mode="sum", per_sample_weights=values
        )
        hidden = self._activated(hidden + self.feature_bias)
        for layer in self.layers:
            hidden = self._activated(layer(hidden))
        return hidden

    def _activated(self, hidden: Tensor) -> Tensor:
        return dropout(hidden.relu(), self.hidden_dropout, self.training)
