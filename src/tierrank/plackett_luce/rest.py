"""The rest of a catalogue under scores that all lists share.

A list that names k of N items leaves N − k below them. Summing those for each list would cost
lists × N; instead every e^w is summed once, and what a list names is taken off:

    Σ_{rest of l} e^w = Σ_all e^w − Σ_{named by l} e^w.

The subtraction costs digits when the list names nearly all of the worth. Where less than
`KEPT` of it remains, the rest of that list is summed by itself.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

KEPT = 2.0**-10


class Rest:
    """The rests of all lists, under scores [items] (in float64, whatever they were).

    `items` and `offsets` say what each list names. Everything is differentiable in `scores`.
    """

    def __init__(self, scores: Tensor, items: Tensor, offsets: Tensor) -> None:
        self.scores, self.items, self.offsets = scores, items, offsets
        self.lists = len(offsets) - 1
        self.list_of = torch.repeat_interleave(offsets.diff(), output_size=len(items))
        self.largest = scores.detach().max()
        self.worth = (scores - self.largest).exp()
        total = self.worth.sum()
        left = total - self._named(self.worth)
        self.empty = offsets.diff() == len(scores)
        self.thin = ((left.detach() < KEPT * total.detach()) & ~self.empty).nonzero()[:, 0]
        self.log_sum = self.largest + left.clamp(min=torch.finfo(left.dtype).tiny).log()
        self.log_sum = torch.where(self.empty, -torch.inf, self.log_sum)
        if len(self.thin):
            self.log_sum = self.log_sum.index_put(
                (self.thin,), self._thin_scores.logsumexp(1), accumulate=False
            )

    def _named(self, values: Tensor) -> Tensor:
        """[lists] Σ over what each list names of values [items]."""
        return values.new_zeros(self.lists).index_add(0, self.list_of, values[self.items])

    @cached_property
    def _thin_scores(self) -> Tensor:
        """[thin lists, items] the scores, −inf where the list names the item."""
        place = torch.full_like(self.offsets[1:], -1)
        place[self.thin] = torch.arange(len(self.thin), device=place.device)
        row = place[self.list_of]
        named = torch.zeros(
            (len(self.thin), len(self.scores)), dtype=torch.bool, device=self.scores.device
        )
        named[row[row >= 0], self.items[row >= 0]] = True
        return self.scores.masked_fill(named, -torch.inf)

    @cached_property
    def _thin_softmax(self) -> Tensor:
        return self._thin_scores.softmax(1)

    def _scale(self, by_list: Tensor, power: int) -> Tensor:
        """[lists] by_list / (Σ_rest e^(w − largest))^power, 0 for empty and thin lists."""
        scaled = by_list * (-power * (self.log_sum - self.largest)).exp()
        scaled = torch.where(self.empty, 0.0, scaled)
        scaled[self.thin] = 0.0
        return scaled

    def mean(self, values: Tensor) -> Tensor:
        """[lists] the mean of values [items] over each list's rest, weighted by worth."""
        weighted = self.worth * values
        mean = (weighted.sum() - self._named(weighted)) * self._scale(
            torch.ones_like(self.log_sum), 1
        )
        if len(self.thin):
            mean[self.thin] = self._thin_softmax @ values
        return mean

    def spread(self, by_list: Tensor, power: int = 1) -> Tensor:
        """[items] Σ_l by_list_l · softmax_l^power, the softmax over the rest of l."""
        scaled = self._scale(by_list, power)
        named = torch.zeros_like(self.worth).index_add(0, self.items, scaled[self.list_of])
        spread = self.worth**power * (scaled.sum() - named)
        if len(self.thin):
            spread = spread + by_list[self.thin] @ self._thin_softmax**power
        return spread
