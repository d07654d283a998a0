"""Subsets of a given size, each as probable as the product of its items' weights.

Let every item toss a coin of its own, and look only at tosses with m heads: the conditional
Bernoulli distribution (Chen, Dempster and Liu, 1994). A constant added to all log-odds changes
nothing, so it can be chosen such that m heads are not improbable. All terms are positive, and
so nothing cancels.
"""

from __future__ import annotations

import torch
from torch import Tensor


class GivenSize:
    """Coins of many rows, of which each is to show its own number of heads.

    Parameters
    ----------
    log_odds
        [rows, items] log(p / (1 − p)); −inf for an item that is not there
    heads
        [rows] how many heads

    Attributes
    ----------
    probability
        [rows] of that many heads
    """

    def __init__(self, log_odds: Tensor, heads: Tensor) -> None:
        rows, items = log_odds.shape
        self.p, self.q = log_odds.sigmoid().unsqueeze(-1), (-log_odds).sigmoid().unsqueeze(-1)
        most = int(heads.max()) if rows else 0
        # after[i, r, j] = P(items i, i + 1, … add the heads that are missing after j), with a
        # column more than heads, so that there is a j + 1
        self.after = log_odds.new_zeros(items + 1, rows, most + 2)
        self.after[items].scatter_(1, heads.unsqueeze(1), 1.0)
        for i in range(items - 1, -1, -1):
            torch.mul(self.after[i + 1], self.q[:, i], out=self.after[i])
            self.after[i, :, :-1].addcmul_(self.after[i + 1, :, 1:], self.p[:, i])
        self.probability = self.after[0, :, 0]

    def inclusion(self) -> Tensor:
        """[rows, items] the probability that an item is in the subset."""
        inclusion = torch.zeros_like(self.p.squeeze(-1))
        before = torch.zeros_like(self.after[0])  # P(the items so far show j heads)
        before[:, 0] = 1.0
        for i in range(inclusion.shape[1]):
            joined = before[:, :-1] * self.p[:, i]
            inclusion[:, i] = (joined * self.after[i + 1, :, 1:]).sum(1)
            before *= self.q[:, i]
            before[:, 1:] += joined
        # where there are fewer items than heads, nothing is included
        possible = self.probability.clamp(min=torch.finfo(inclusion.dtype).tiny)
        return inclusion / possible.unsqueeze(1)

    def draw(self, rows: Tensor, generator: torch.Generator | None) -> Tensor:
        """[draws, items] a subset for each of `rows` [draws], which may name a row repeatedly."""
        items = self.p.shape[1]
        subset = torch.zeros(len(rows), items, dtype=torch.bool, device=rows.device)
        uniform = torch.rand(
            (items, len(rows)), dtype=self.p.dtype, device=rows.device, generator=generator
        )
        heads = torch.zeros_like(rows)
        for i in range(items):
            chance = self.p[rows, i, 0] * self.after[i + 1, rows, heads + 1]
            subset[:, i] = uniform[i] * self.after[i, rows, heads] < chance
            heads += subset[:, i]
        return subset
