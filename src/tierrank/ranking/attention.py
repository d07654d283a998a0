"""Self-attention over the items of a list: what an item is worth beside the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

Array = np.ndarray[Any, Any]


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

    def __init__(self, lengths: Array, device: torch.device) -> None:
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
