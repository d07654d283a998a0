"""Networks that score rows: a perceptron of any depth, and before it attention over the list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from tierrank.ranking.attention import AttentionBlock, PaddedLists
from tierrank.training.perceptron import ACTIVATIONS, check_perceptron, perceptron
from tierrank.training.settings import check_count

Array = np.ndarray[Any, Any]


class Scorer(nn.Module):
    """One score a row.

    A row goes through `project` and `blocks` if there is attention, then through `layers`. That is
    all of it: whoever exports a scorer walks these three, in this order.

    Parameters
    ----------
    n_features
        columns of the rows
    hidden
        widths of the hidden layers; none: a linear scorer
    activation
        "relu", "gelu", "silu", "elu" or "tanh"
    dropout
        probability with which a hidden number is 0 in training
    normalisation
        "layer", "batch" or None, before each activation
    attention_layers
        blocks of attention over the list; 0: a row's score depends on nothing but the row
    attention_width, attention_heads
        of the blocks; the width is a multiple of the heads

    Attributes
    ----------
    project
        Linear(n_features, attention_width), or None without attention
    blocks
        ModuleList of `AttentionBlock`
    layers
        Sequential, a `tierrank.training.perceptron.perceptron`
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        normalisation: str | None = None,
        attention_layers: int = 0,
        attention_width: int = 64,
        attention_heads: int = 4,
    ) -> None:
        super().__init__()
        check_architecture(
            hidden, activation, dropout, normalisation, attention_layers, attention_width,
            attention_heads,
        )  # fmt: skip
        self.n_features = n_features
        self.project: nn.Linear | None = None
        self.blocks = nn.ModuleList()
        width = n_features
        if attention_layers:
            self.project = nn.Linear(n_features, attention_width)
            width = attention_width
            for _ in range(attention_layers):
                active = ACTIVATIONS[activation]()
                self.blocks.append(AttentionBlock(width, attention_heads, active, dropout))
        self.layers = perceptron(
            width, hidden, activation=activation, dropout=dropout, normalisation=normalisation
        )

    @property
    def scores_lists(self) -> bool:
        """Whether a row's score depends on the other rows of its list."""
        return self.project is not None

    @property
    def width(self) -> int:
        """Numbers a row needs where the network is widest."""
        return max(
            self.n_features,
            *(max(each.in_features, each.out_features) for each in self._linear()),
        )

    def _linear(self) -> Iterator[nn.Linear]:
        return (each for each in self.modules() if isinstance(each, nn.Linear))

    def forward(self, X: Tensor, lengths: Array | None = None) -> Tensor:
        """Score rows.

        Parameters
        ----------
        X
            [rows, n_features]
        lengths
            [lists] number of rows of each list, which are adjacent; only attention needs them

        Returns
        -------
        [rows] scores
        """
        x = X
        if self.project is not None:
            every = np.array([len(X)]) if lengths is None else lengths
            lists = PaddedLists(every, X.device)
            x = self.project(x)
            for block in self.blocks:
                x = block(x, lists)
        scores: Tensor = self.layers(x).squeeze(1)
        return scores


def check_architecture(
    hidden: Any,
    activation: Any,
    dropout: Any,
    normalisation: Any,
    attention_layers: Any,
    attention_width: Any,
    attention_heads: Any,
) -> None:
    """Refuse what no scorer can be made of."""
    check_perceptron(hidden, activation, dropout, normalisation)
    check_count("attention_layers", attention_layers, least=0)
    check_count("attention_width", attention_width)
    check_count("attention_heads", attention_heads)
    if attention_layers and attention_width % attention_heads:
        raise ValueError(
            f"attention_width={attention_width} is no multiple of attention_heads="
            f"{attention_heads}: every head has the same width"
        )
