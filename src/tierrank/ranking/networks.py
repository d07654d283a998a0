"""Networks that score rows: a perceptron of any depth, and before it attention over the list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tierrank._types import AnyArray
from tierrank.errors import check_count
from tierrank.training.perceptron import ACTIVATIONS, check_perceptron, perceptron


class PaddedLists:
    """Lists of different lengths, in groups of which each is padded to its longest.

    The lengths in a group differ by less than a factor of two, so less than half of what is
    computed is padding, whatever the lists.

    Parameters
    ----------
    lengths
        [lists] number of rows of each list; lists follow each other
    device
        of the rows
    """

    def __init__(self, lengths: AnyArray, device: torch.device) -> None:
        starts = np.cumsum(lengths) - lengths
        doublings = np.frexp(lengths.astype(np.float64))[1]
        self.groups: list[tuple[Tensor, Tensor | None]] = []
        places = []
        for doubling in np.unique(doublings):
            chosen = np.flatnonzero(doublings == doubling)
            column = np.arange(lengths[chosen].max())
            real = column < lengths[chosen, None]
            rows = starts[chosen, None] + np.where(real, column, 0)
            whole = bool(real.all())
            mask = None if whole else torch.from_numpy(real).to(device)
            self.groups.append((torch.from_numpy(rows).to(device), mask))
            places.append(rows[real])
        self.back = torch.from_numpy(np.argsort(np.concatenate(places))).to(device)


class ListAttention(nn.Module):
    """Multi-head attention of each row to the rows of its list, without positions.

    Attributes
    ----------
    in_proj
        Linear to queries, keys and values, which stand behind each other, each by head
    out_proj
        Linear of the heads' results, which stand behind each other
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor, lists: PaddedLists) -> Tensor:
        """[rows, width] for [rows, width]."""
        projected = self.in_proj(x)
        found = []
        for rows, mask in lists.groups:
            count, longest = rows.shape
            parts = projected[rows].view(count, longest, 3, self.heads, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            seen = scaled_dot_product_attention(
                query, key, value, None if mask is None else mask[:, None, None, :]
            )
            by_row = seen.transpose(1, 2).reshape(count, longest, -1)
            found.append(by_row.flatten(0, 1) if mask is None else by_row[mask])
        attended: Tensor = self.out_proj(torch.cat(found)[lists.back])
        return attended


class AttentionBlock(nn.Module):
    """A transformer's encoder block, normalised before each part.

    x + attention(norm1(x)), then x + feed(norm2(x)). Permuting a list permutes what comes out.

    Attributes
    ----------
    norm1, attention, norm2, feed
        LayerNorm, `ListAttention`, LayerNorm, Sequential(Linear, activation, Linear)
    dropout
        of what either part adds
    """

    def __init__(self, width: int, heads: int, activation: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = ListAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), activation, nn.Linear(2 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, lists: PaddedLists) -> Tensor:
        """[rows, width] for [rows, width]."""
        x = x + self.dropout(self.attention(self.norm1(x), lists))
        out: Tensor = x + self.dropout(self.feed(self.norm2(x)))
        return out


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
        check_perceptron(hidden, activation, dropout, normalisation)
        check_count("attention_layers", attention_layers, least=0)
        check_count("attention_width", attention_width)
        check_count("attention_heads", attention_heads)
        if attention_layers and attention_width % attention_heads:
            raise ValueError(
                f"attention_width={attention_width} is no multiple of attention_heads="
                f"{attention_heads}: every head has the same width"
            )
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
        linear = (each for each in self.modules() if isinstance(each, nn.Linear))
        return max(self.n_features, *(max(each.in_features, each.out_features) for each in linear))

    def forward(self, X: Tensor, lengths: AnyArray | None = None) -> Tensor:
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
