"""How a network over a huge label set learns: batches of rows, a step, its update, and GLaS.

The last layer learns block by block: a block is updated while its gradient is in the cache, so that
the gradient of the whole matrix is never there. Where a batch touches few rows of a matrix, AdaGrad
changes these alone, which is exact: a row without a gradient stands still. With Adam it would move
on by its momentum. So `RowOptimiser` has two ways:

- *exact*: every step goes over all rows.
- *lazy*: the rows of the batch alone, as `torch.optim.SparseAdam` does. That is not Adam, since
  momentum and decay of a row wait until it is touched again, but far cheaper if rows are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from tierrank._types import AnyArray
from tierrank.extreme.head import FusedObjective, Loss, NotFinite, Update, fused_losses
from tierrank.extreme.network import Features, Network, SparseRows, rows_within
from tierrank.extreme.samplers import Sampler
from tierrank.extreme.sharding import Shards
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training.loop import Diverged, Share, Weights, weights_of

T = TypeVar("T")
OptimiserName = Literal["adam", "adagrad"]

BETAS = (0.9, 0.999)
EPSILON = 1e-8
ADAGRAD_EPSILON = 1e-10
BLOCK = 1 << 21  # numbers of a matrix that are gone over at once
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
    weighted
        of the entries of some rows, or None: they are taken as they are
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        weights: AnyArray | None,
        *,
        size: int,
        seed: int,
        weighted: Features | None = None,
    ) -> None:
        self.X, self.Y, self.size, self.seed = X, Y, size, seed
        self.weighted = weighted or Features("raw")
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
        X = self.weighted(self.X[rows])
        return SparseRows.of(X).to(device), tiers.to(device), weights.to(device)

    def part(self, step: int) -> float:
        """Which part of the mean loss a batch stands for."""
        return min(self.size, len(self.rows) - step * self.size) / len(self.rows)


class LabelLearner:
    """A `tierrank.training.loop.Learner`, in one process or with labels spread over several.

    Every rank computes what leads up to the last layer, for all rows of a batch and with the same
    dropout, so that these weights stay the same on all without being sent. Where the features are
    spread, too, what they add up to is summed over the ranks.

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
    shards
        the ranks, of which this one has the network's labels; None: there is one
    """

    share = Share()  # batches are loaded whole
    first = True  # all ranks evaluate and keep the state, each its labels

    def __init__(
        self,
        network: Network,
        optimiser: RowOptimiser,
        objective: str | Loss,
        sampler: Sampler | None = None,
        glas: Glas | None = None,
        shards: Shards | None = None,
    ) -> None:
        self.network, self.optimiser = network, optimiser
        self.shards = shards or Shards()
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
        used = self.network.used(rows)
        features = self.network.features.detach().index_select(0, used).requires_grad_()
        hidden: Tensor = self.network(rows, features)
        step = self._all_labels if self.sampler is None else self._sampled
        loss, stop, by_hidden = step(hidden.detach(), tiers, weights, stop)
        # a number is differentiated: for the gradient of more, torch would load sympy, for 0.3 s
        (hidden[:, : self.network.learned] * by_hidden).sum().backward()
        assert features.grad is not None
        self.optimiser.update_rows("features", used, self._same("features", features.grad))
        for name, parameter in self.network.named_parameters():
            if parameter.grad is not None:
                self.optimiser.update(name, slice(None), self._same(name, parameter.grad))
                parameter.grad = None
        return loss, stop

    def _same(self, name: str, gradient: Tensor) -> Tensor:
        """A gradient of weights that several ranks have: GPUs round it differently each time."""
        if self.device.type == "cuda":
            holders = self.shards.rows if name in self.network.spread else self.shards.everyone
            return holders.from_first(gradient)
        return gradient

    def _all_labels(
        self, hidden: Tensor, tiers: Tiers, weights: Tensor, stop: bool
    ) -> tuple[float, bool, Tensor]:
        """Update the last layer; give the loss, who was asked to stop, and slopes in `hidden`."""
        weight, bias = self.network.labels.detach(), self.network.label_bias.detach()
        loss, stop, backward = self._forward(
            hidden, weight, bias, tiers, weights, stop, first=self.network.own.start
        )
        regulariser = self._regulariser(tiers)
        self.optimiser.begin_step()

        def update(labels: slice, by_weight: Tensor, by_bias: Tensor) -> None:
            by_weight = self.shards.rows.sum(by_weight)
            if regulariser is not None:
                _add_rows(by_weight, labels, *regulariser)
            self.optimiser.update("labels", labels, by_weight)
            self.optimiser.update("label_bias", labels, self.shards.rows.sum(by_bias))

        return loss, stop, backward(update)

    def _sampled(
        self, hidden: Tensor, tiers: Tiers, weights: Tensor, stop: bool
    ) -> tuple[float, bool, Tensor]:
        """The same with a catalogue of what the batch names and what was drawn for the rest.

        All ranks draw the same labels; each takes those that it has.
        """
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
        here = rows_within(labels, self.network.own)
        own = labels[here] - self.network.own.start
        weight = self.network.labels.detach().index_select(0, own)
        bias = self.network.label_bias.detach()[own]
        loss, stop, backward = self._forward(
            hidden, weight, bias, small, weights, stop, first=here.start,
            log_weights=log_weights[here],
        )  # fmt: skip
        by_weight, by_bias = torch.empty_like(weight), torch.empty_like(bias)
        regulariser = self._regulariser(tiers)

        def collect(block: slice, weight_part: Tensor, bias_part: Tensor) -> None:
            by_weight[block], by_bias[block] = weight_part, bias_part

        by_hidden = backward(collect)
        by_weight, by_bias = map(self.shards.rows.sum, (by_weight, by_bias))
        if regulariser is not None:
            of, gradient = regulariser
            by_weight.index_add_(0, torch.searchsorted(own, of), gradient)
        self.optimiser.begin_step()
        self.optimiser.update_rows("labels", own, by_weight)
        self.optimiser.update_rows("label_bias", own, by_bias)
        return loss, stop, by_hidden

    def _forward(
        self,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        tiers: Tiers,
        weights: Tensor,
        stop: bool,
        *,
        first: int,
        log_weights: Tensor | None = None,
    ) -> tuple[float, bool, Callable[[Update], Tensor]]:
        """The loss over all ranks, whether any was asked to stop, and the way back.

        This rank looks at its part of the rows and its labels, those of the catalogue from `first`
        on; the way back gives the gradient in all rows of `hidden`, without what are features.
        """
        labels, rows = self.shards.labels, self.shards.rows
        mine = rows.part(len(tiers))
        if mine.start == mine.stop:  # all ranks must take part in every step
            mine, weights = slice(0, 1), torch.zeros_like(weights)
        own_tiers = tiers[mine] if rows.size > 1 else tiers
        loss = math.nan
        try:
            losses = fused_losses(
                hidden[mine], weight, bias, own_tiers, self.objective, log_weights=log_weights,
                ranks=labels, first=first, batch=len(tiers), lower=self.network.learned,
            )  # fmt: skip
            loss = float(losses.by_list @ weights[mine])
        except NotFinite:  # for this rank's rows: the others are told
            pass
        loss, stop = self._together(loss, stop)

        def backward(update: Update) -> Tensor:
            by_rows = losses.backward(weights[mine], update)
            if rows.size == 1:
                return by_rows
            by_hidden = by_rows.new_zeros(len(hidden), by_rows.shape[1])
            by_hidden[mine] = by_rows
            return rows.sum(by_hidden)

        return loss, stop, backward

    def _together(self, loss: float, stop: bool) -> tuple[float, bool]:
        """The loss over all rows, if it is finite, and whether any rank was asked to stop."""
        own = loss if self.shards.labels.rank == 0 else 0.0  # of the same rows, all have the same
        told = torch.tensor([own, float(stop)], dtype=torch.float64, device=self.device)
        loss, stopped = self.shards.everyone.sum(told).tolist()
        if not math.isfinite(loss):
            raise Diverged(loss)
        return loss, stopped > 0

    def _regulariser(self, tiers: Tiers) -> tuple[Tensor, Tensor] | None:
        """Labels of this rank, ascending and from 0 on, and the regulariser's slopes in weights."""
        if self.glas is None:
            return None
        labels = self.glas.labels(tiers.items.cpu())
        of, own = labels.to(self.device), self.network.own
        here = rows_within(of, own)
        vectors = self.network.labels.new_zeros(len(of), self.network.labels.shape[1])
        vectors[here] = self.network.labels.detach().index_select(0, of[here] - own.start)
        gradient = self.glas.gradient(labels, self.shards.labels.sum(vectors))[1]
        return of[here] - own.start, gradient[here]

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
        """The value: all ranks computed the same."""
        return value

    def finite(self) -> bool:
        """Whether all weights are finite, on all ranks."""
        # A sum is not finite if any number is not; it could overflow only near that.
        sums = [float(each.detach().sum()) for each in self.network.parameters()]
        return not self.shards.everyone.any(not all(map(math.isfinite, sums)))

    def weights(self) -> Weights:
        """Copies of all weights, on the CPU; where ranks share them, those of this one."""
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


def _add_rows(block: Tensor, labels: slice, rows: Tensor, values: Tensor) -> None:
    """Add the values of those rows, ascending, that are in a block of labels."""
    here = rows_within(rows, labels)
    block.index_add_(0, rows[here] - labels.start, values[here])


class RowOptimiser:
    """Holds the memory of named parameters, and updates them in place.

    Parameters
    ----------
    parameters
        by name; the first axis is that of rows
    name
        "adam" or "adagrad"
    learning_rate
        of either
    weight_decay
        decoupled, as in AdamW, of matrices only; rows that a step skips do not decay in it
    lazy
        whether Adam skips rows that a step does not touch
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        *,
        name: OptimiserName,
        learning_rate: float,
        weight_decay: float = 0.0,
        lazy: bool = False,
    ) -> None:
        if name not in ("adam", "adagrad"):
            raise ValueError(f'optimiser is "adam" or "adagrad", not {name!r}')
        self.parameters = dict(parameters)
        self.name, self.lazy = name, lazy
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.step = 0
        moments = ("mean", "square") if name == "adam" else ("square",)
        self.moments = {
            moment: {key: torch.zeros_like(value) for key, value in self.parameters.items()}
            for moment in moments
        }

    def begin_step(self) -> None:
        """Count a step, before its updates."""
        self.step += 1

    def update(self, key: str, rows: slice, gradient: Tensor) -> None:
        """Change consecutive rows by their gradient."""
        self._change([part[rows] for part in self._parts(key)], gradient)

    def update_rows(self, key: str, rows: Tensor, gradient: Tensor) -> None:
        """Change some rows, ascending, by their gradient; the others have none."""
        if self.name == "adagrad" or self.lazy:
            parts = self._parts(key)
            chosen = [part.index_select(0, rows) for part in parts]
            self._change(chosen, gradient)
            for part, changed in zip(parts, chosen, strict=True):
                part.index_copy_(0, rows, changed)
            return
        parameter = self.parameters[key]
        step = max(1, BLOCK // max(1, parameter.shape[1:].numel()))
        for start in range(0, len(parameter), step):
            stop = min(start + step, len(parameter))
            ends = torch.tensor([start, stop], device=rows.device)
            first, last = torch.searchsorted(rows, ends).tolist()
            whole = parameter.new_zeros((stop - start, *parameter.shape[1:]))
            whole[rows[first:last] - start] = gradient[first:last]
            self.update(key, slice(start, stop), whole)

    def _parts(self, key: str) -> list[Tensor]:
        """A parameter, and what is remembered of it."""
        return [self.parameters[key], *(moment[key] for moment in self.moments.values())]

    def _change(self, parts: list[Tensor], gradient: Tensor) -> None:
        """Take a step in place."""
        parameter, *moments = parts
        rate = self.learning_rate
        if self.weight_decay and parameter.dim() > 1:
            parameter.mul_(1 - rate * self.weight_decay)
        if self.name == "adagrad":
            (square,) = moments
            square.addcmul_(gradient, gradient)
            parameter.addcdiv_(gradient, square.sqrt().add_(ADAGRAD_EPSILON), value=-rate)
            return
        gradient = gradient.contiguous()  # torch's fused step reads memory as it lies
        mean, square = moments
        before = torch.tensor(self.step - 1.0, device=parameter.device)  # it counts this one
        adam(
            [parameter], [gradient], [mean], [square], [], [before],
            amsgrad=False, beta1=BETAS[0], beta2=BETAS[1], lr=rate, weight_decay=0.0, eps=EPSILON,
            maximize=False, fused=True,
        )  # fmt: skip

    def memory(self) -> Arrays:
        """What there is besides the parameters, as named arrays."""
        arrays: Arrays = {"optimiser.step": np.array(self.step)}
        for moment, parts in self.moments.items():
            for key, part in parts.items():
                arrays[f"optimiser.{moment}.{key}"] = part.cpu().numpy()
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Undo `memory`."""
        self.step = int(arrays["optimiser.step"])
        for moment, parts in self.moments.items():
            for key, part in parts.items():
                part.copy_(torch.from_numpy(np.array(arrays[f"optimiser.{moment}.{key}"])))


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
