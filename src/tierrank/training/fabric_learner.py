"""A module that learns by autograd and AdamW, in one or many processes of Lightning Fabric."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn

from tierrank.storage import Arrays
from tierrank.training.batches import Share
from tierrank.training.learner import Diverged
from tierrank.training.optimiser_state import (
    Weights,
    optimiser_arrays,
    restore_optimiser,
    weights_of,
)
from tierrank.training.settings import AdamWSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")


class FabricLearner:
    """Trains a module in place; a `Learner`.

    Parameters
    ----------
    fabric
        from `fabric_for`
    module
        called with what `Batches.load` gives; returns the loss of its share, a scalar. It goes to
        Fabric's device, and comes back by `finish`.
    settings
        of AdamW
    """

    def __init__(self, fabric: Fabric, module: nn.Module, settings: AdamWSettings) -> None:
        self.fabric, self.module, self.settings = fabric, module, settings
        self.share = Share(fabric.global_rank, fabric.world_size)
        self.device = fabric.device
        self.first = fabric.is_global_zero
        rate, decay = settings.learning_rate, settings.weight_decay
        self.advice = f"Try a smaller learning rate (it is {rate:g}), or scale the features."
        groups: list[dict[str, Any]] = [
            {"params": [each for each in module.parameters() if each.dim() > 1]},
            {
                "params": [each for each in module.parameters() if each.dim() <= 1],
                "weight_decay": 0,
            },
        ]
        optimiser = torch.optim.AdamW(groups, lr=rate, weight_decay=decay, fused=True)
        self._wrapped, self._optimiser = fabric.setup(module, optimiser)
        module.train()

    def learn(self, batch: tuple[Any, ...], stop: bool) -> tuple[float, bool]:
        """Take one step; give the loss, and whether any process was asked to stop."""
        loss: Tensor = self._wrapped(*batch)
        told = [float(loss.detach()), float(stop)]
        if self.share.processes > 1:
            mine = torch.tensor(told, dtype=torch.float64, device=self.device)
            together = cast(Tensor, self.fabric.all_reduce(mine, reduce_op="sum"))
            told = together.tolist()
        if not math.isfinite(told[0]):
            raise Diverged(told[0])
        self._optimiser.zero_grad()
        # Processes' gradients are averaged, but their losses add up.
        self.fabric.backward(loss * self.share.processes)
        if self.settings.clip is not None:
            self.fabric.clip_gradients(self._wrapped, self._optimiser, max_norm=self.settings.clip)
        self._optimiser.step()
        return told[0], told[1] > 0

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode, without gradients, until the context ends."""
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train()

    def agree(self, value: T) -> T:
        """The first process's value."""
        return self.fabric.broadcast(value)

    def finite(self) -> bool:
        """Whether all weights are finite."""
        return all(bool(torch.isfinite(each).all()) for each in self.module.state_dict().values())

    def weights(self) -> Weights:
        """Copies of all weights, on the CPU."""
        return weights_of(self.module)

    def load_weights(self, weights: Weights) -> None:
        """Take on what `weights` gave."""
        self.module.load_state_dict(weights)

    def memory(self) -> Arrays:
        """What AdamW remembers of each parameter."""
        return optimiser_arrays(self._optimiser)

    def restore_memory(self, arrays: Arrays) -> None:
        """Take on what `memory` gave."""
        restore_optimiser(self._optimiser, arrays)

    def finish(self) -> None:
        """Leave the module on the CPU, in evaluation mode."""
        self.module.cpu().eval()
