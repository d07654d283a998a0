"""How a network over a huge label set takes a step: the last layer learns block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

from tierrank.extreme.glas import Glas
from tierrank.extreme.head.fused import fused_losses
from tierrank.extreme.head.objectives import Loss, NotFinite
from tierrank.extreme.network import Network
from tierrank.extreme.optimisers import RowOptimiser
from tierrank.extreme.samplers import Sampler
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training.batches import Share
from tierrank.training.loop import Diverged
from tierrank.training.optimiser_state import Weights, weights_of

T = TypeVar("T")


class LabelLearner:
    """A `tierrank.training.loop.Learner` in one process.

    Parameters
    ----------
    network
        on its device
    optimiser
        of all its parameters
    objective
        one of `FUSED`, or a function as `fused_losses` takes it
    sampler
        which labels stand for the rest; None: all of them
    glas
        the regulariser, if there is one
    """

    share = Share()
    first = True

    def __init__(
        self,
        network: Network,
        optimiser: RowOptimiser,
        objective: str | Loss,
        sampler: Sampler | None = None,
        glas: Glas | None = None,
    ) -> None:
        self.network, self.optimiser, self.objective = network, optimiser, objective
        self.sampler, self.glas = sampler, glas
        self.device = network.labels.device
        network.train()

    @property
    def advice(self) -> str:
        """A sentence on what to try when training goes astray."""
        rate = self.optimiser.learning_rate
        return f"Try a smaller learning rate (it is {rate:g}), or scale the features."

    def learn(self, batch: tuple[Any, ...], stop: bool) -> tuple[float, bool]:
        """Take one step."""
        rows, tiers, weights = batch
        features = self.network.features.detach().index_select(0, rows.features).requires_grad_()
        hidden: Tensor = self.network(rows, features)
        step = self._all_labels if self.sampler is None else self._sampled
        try:
            loss, by_hidden = step(hidden.detach(), tiers, weights)
        except NotFinite:
            raise Diverged(math.nan) from None
        hidden.backward(by_hidden)
        assert features.grad is not None
        self.optimiser.update_rows("features", rows.features, features.grad)
        for name, parameter in self.network.named_parameters():
            if parameter.grad is not None:
                self.optimiser.update(name, slice(None), parameter.grad)
                parameter.grad = None
        return loss, stop

    def _all_labels(self, hidden: Tensor, tiers: Tiers, weights: Tensor) -> tuple[float, Tensor]:
        """Update the last layer; give the loss and its gradient in `hidden`."""
        weight, bias = self.network.labels.detach(), self.network.label_bias.detach()
        losses = fused_losses(hidden, weight, bias, tiers, self.objective)
        loss = _checked(losses.by_list @ weights)
        regulariser = self._regulariser(tiers, weight)
        self.optimiser.begin_step()

        def update(labels: slice, by_weight: Tensor, by_bias: Tensor) -> None:
            if regulariser is not None:
                _add_rows(by_weight, labels, *regulariser)
            self.optimiser.update("labels", labels, by_weight)
            self.optimiser.update("label_bias", labels, by_bias)

        return loss, losses.backward(weights, update)

    def _sampled(self, hidden: Tensor, tiers: Tiers, weights: Tensor) -> tuple[float, Tensor]:
        """The same with a catalogue of what the batch names and what was drawn for the rest."""
        assert self.sampler is not None
        sample = self.sampler.draw(tiers.items.cpu(), len(tiers))
        labels = torch.cat([sample.labels.to(self.device), tiers.items]).unique()
        log_weights = torch.full((len(labels),), -torch.inf, device=self.device)
        drawn = torch.searchsorted(labels, sample.labels.to(self.device))
        log_weights[drawn] = sample.log_weights.to(self.device)
        small = Tiers(
            items=torch.searchsorted(labels, tiers.items),
            tier_offsets=tiers.tier_offsets,
            list_offsets=tiers.list_offsets,
            n_items=len(labels),
            rest=True,
        )
        weight = self.network.labels.detach().index_select(0, labels)
        bias = self.network.label_bias.detach()[labels]
        losses = fused_losses(hidden, weight, bias, small, self.objective, log_weights=log_weights)
        loss = _checked(losses.by_list @ weights)
        by_weight, by_bias = torch.empty_like(weight), torch.empty_like(bias)
        regulariser = self._regulariser(tiers, self.network.labels.detach())

        def collect(block: slice, weight_part: Tensor, bias_part: Tensor) -> None:
            by_weight[block], by_bias[block] = weight_part, bias_part

        by_hidden = losses.backward(weights, collect)
        if regulariser is not None:
            of, gradient = regulariser
            by_weight.index_add_(0, torch.searchsorted(labels, of), gradient)
        self.optimiser.begin_step()
        self.optimiser.update_rows("labels", labels, by_weight)
        self.optimiser.update_rows("label_bias", labels, by_bias)
        return loss, by_hidden

    def _regulariser(self, tiers: Tiers, weight: Tensor) -> tuple[Tensor, Tensor] | None:
        """Labels, ascending, and the regulariser's gradient in their weights."""
        if self.glas is None:
            return None
        labels = self.glas.labels(tiers.items.cpu())
        of = labels.to(self.device)
        return of, self.glas.gradient(labels, weight.index_select(0, of))[1]

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode, without gradients, until the context ends."""
        self.network.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.network.train()

    def agree(self, value: T) -> T:
        """The value: there is one process."""
        return value

    def finite(self) -> bool:
        """Whether all weights are finite."""
        # A sum is not finite if any number is not; it could overflow only near that.
        return all(math.isfinite(float(each.detach().sum())) for each in self.network.parameters())

    def weights(self) -> Weights:
        """Copies of all weights, on the CPU."""
        return weights_of(self.network)

    def load_weights(self, weights: Weights) -> None:
        """Take on what `weights` gave."""
        self.network.load_state_dict(weights)

    def memory(self) -> Arrays:
        """What the optimiser remembers."""
        return self.optimiser.memory()

    def restore_memory(self, arrays: Arrays) -> None:
        """Take on what `memory` gave."""
        self.optimiser.restore(arrays)


def _checked(loss: Tensor) -> float:
    value = float(loss)
    if not math.isfinite(value):
        raise Diverged(value)
    return value


def _add_rows(block: Tensor, labels: slice, rows: Tensor, values: Tensor) -> None:
    """Add the values of those rows, ascending, that are in a block of labels."""
    ends = torch.tensor([labels.start, labels.stop], device=rows.device)
    first, last = torch.searchsorted(rows, ends).tolist()
    block.index_add_(0, rows[first:last] - labels.start, values[first:last])
