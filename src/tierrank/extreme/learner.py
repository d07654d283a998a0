"""How a network over a huge label set learns: batches of rows, a step, and GLaS.

The last layer learns block by block, while the gradient of a block is in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray
from tierrank.extreme.head import fused_losses
from tierrank.extreme.network import Network, SparseRows
from tierrank.extreme.optimisers import RowOptimiser
from tierrank.extreme.rest import FusedObjective, Loss, NotFinite
from tierrank.extreme.samplers import Sampler
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training.batches import Share
from tierrank.training.loop import Diverged, Weights, weights_of

T = TypeVar("T")

GLAS_LABELS = 1024  # of a step, at most
GLAS_DENSE = 4096  # labels up to which all pairs are counted beforehand: 64 MB


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

    def __init__(self, X: Any, Y: Any, weights: AnyArray | None, *, size: int, seed: int) -> None:
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


class LabelLearner:
    """A `tierrank.training.loop.Learner` in one process.

    Parameters
    ----------
    network
        on its device
    optimiser
        of all its parameters
    objective
        one of `FUSED`, or a function as `fused_losses` takes it; it is looked up once
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
        self.network, self.optimiser = network, optimiser
        self.objective = FusedObjective.of(objective)
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


class Glas:
    """Labels that come together point the same way: the regulariser of Guo et al. (2019).

        GLaS(V) = mean over pairs of labels of (v_i · v_j − (P(i | j) + P(j | i)) / 2)²

    P(i | j) is the share of the rows with label j that have i. In a step, the pairs are those of
    some of the labels that the batch names.

    Parameters
    ----------
    Y
        [rows, labels] CSR
    strength
        what it is multiplied by
    """

    def __init__(self, Y: Any, strength: float) -> None:
        self.strength = strength
        self.counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float32)
        self.columns = (Y != 0).tocsc().astype(np.float32)  # a row has a label or it does not
        self.together: Any = None
        if Y.shape[1] <= GLAS_DENSE:
            self.together = (self.columns.T @ self.columns).toarray()

    def labels(self, named: Tensor) -> Tensor:
        """Labels of a step, ascending: those that a batch names, or some of them."""
        labels: Tensor = named.unique()
        if len(labels) > GLAS_LABELS:
            labels = labels[torch.randperm(len(labels))[:GLAS_LABELS]].sort().values
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
