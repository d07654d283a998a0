"""The training loop of all networks: AdamW, early stopping, resuming, one or many processes.

It knows nothing of ranking. A model is a module whose forward takes a batch and gives its loss;
`Batches` says where batches come from. Whatever is random in a step depends on (seed, epoch, step,
process) and on nothing that came before, so a state holds no generators, and it may be kept
between any two steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from tierrank.storage import Arrays
from tierrank.training.batches import Share
from tierrank.training.checkpoint import Checkpoint
from tierrank.training.devices import own_randomness, seed_generators
from tierrank.training.interruption import Interruption
from tierrank.training.optimiser_state import (
    Weights,
    as_arrays,
    from_arrays,
    optimiser_arrays,
    restore_optimiser,
    weights_of,
)
from tierrank.training.progress import History, Watch
from tierrank.training.settings import Settings

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Saved = tuple[dict[str, Any], Arrays]
Evaluate = Callable[[], float]


class Batches(Protocol):
    """Where batches come from; `ListBatches` is one."""

    def __len__(self) -> int:
        """Batches of an epoch."""

    def begin(self, epoch: int) -> None:
        """Shuffle for this epoch, to the same order whenever it is asked for again."""

    def load(self, step: int, share: Share, device: torch.device) -> tuple[Any, ...]:
        """What the module is called with. The losses of all shares add up to the batch's."""

    def part(self, step: int) -> float:
        """Which part of the mean training loss this batch stands for."""


@dataclass
class Position:
    """Where a training stands: what it will do next, and what it found so far."""

    seed: int
    history: History
    epoch: int = 0
    step: int = 0
    loss: float = 0.0  # of this epoch, so far
    finished: bool = False
    best: Weights = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All but the weights."""
        state = {name: value for name, value in vars(self).items() if name != "best"}
        return {**state, "history": self.history.to_json()}

    @classmethod
    def from_saved(cls, saved: Saved) -> Position:
        """From what a checkpoint gave."""
        state, arrays = saved
        history = History.from_json(state["history"])
        return cls(**{**state, "history": history}, best=from_arrays("best", arrays))


def train(
    fabric: Fabric,
    module: nn.Module,
    batches: Batches,
    settings: Settings,
    *,
    seed: int,
    history: History,
    evaluate: Evaluate | None = None,
    checkpoint: Checkpoint,
    saved: Saved | None = None,
    watch: Watch | None = None,
) -> Position:
    """Train a module in place, from the start or from a saved state.

    It ends on the CPU, in evaluation mode, with the weights of the best epoch by `evaluate`, or
    without it with the last. Torch's global generators are left as they were.

    Parameters
    ----------
    fabric
        from `fabric_for`
    module
        called with what `batches.load` gives; returns the loss of its share, a scalar
    seed
        of all that is random in the steps; the module's first weights are the caller's affair
    history
        an empty one
    evaluate
        the validation metric of the module as it is, higher is better; called by one process,
        with the module in evaluation mode and without gradients
    saved
        what `checkpoint.load()` gave

    Returns
    -------
    Position
        with `finished` false if Ctrl-C was pressed: the caller raises `KeyboardInterrupt`
    """
    at = Position(seed, history) if saved is None else Position.from_saved(saved)
    if at.finished:
        assert saved is not None
        module.load_state_dict(at.best or from_arrays("model", saved[1]))
        module.eval()
        return at
    with own_randomness(fabric.device), Interruption() as interruption:
        loop = _Loop(fabric, module, batches, settings, at, evaluate, checkpoint)
        if saved is not None:
            loop.restore(saved[1])
        loop.run(interruption, watch)
    module.load_state_dict(at.best or weights_of(module))
    module.cpu().eval()
    return at


class _Loop:
    """The loop's parts that do not change while it runs."""

    def __init__(
        self,
        fabric: Fabric,
        module: nn.Module,
        batches: Batches,
        settings: Settings,
        at: Position,
        evaluate: Evaluate | None,
        checkpoint: Checkpoint,
    ) -> None:
        self.fabric, self.module, self.batches, self.settings = fabric, module, batches, settings
        self.at, self.evaluate, self.checkpoint = at, evaluate, checkpoint
        self.share = Share(fabric.global_rank, fabric.world_size)
        groups: list[dict[str, Any]] = [
            {"params": [each for each in module.parameters() if each.dim() > 1]},
            {
                "params": [each for each in module.parameters() if each.dim() <= 1],
                "weight_decay": 0,
            },
        ]
        rate, decay = settings.learning_rate, settings.weight_decay
        optimiser = torch.optim.AdamW(groups, lr=rate, weight_decay=decay, fused=True)
        self.wrapped, self.optimiser = fabric.setup(module, optimiser)

    def run(self, interruption: Interruption, watch: Watch | None) -> None:
        """Train until the end, or until Ctrl-C."""
        at, begun = self.at, None
        self.module.train()
        while not self._is_over():
            if begun != at.epoch:
                self.batches.begin(at.epoch)
                begun = at.epoch
            stop = self._step(interruption)
            if at.step == len(self.batches):
                self._end_epoch(watch)
            if stop or self.checkpoint.due:
                self.keep()
            if stop:
                return
        at.finished = True
        self.keep()

    def _step(self, interruption: Interruption) -> bool:
        """Learn from one batch; say whether Ctrl-C was pressed (in any of the processes)."""
        at, device = self.at, self.fabric.device
        source = [at.seed, at.epoch, at.step, self.share.process]
        draws = np.random.SeedSequence(source).generate_state(1, np.uint64)[0]
        seed_generators(int(draws) >> 1, device)
        loss: Tensor = self.wrapped(*self.batches.load(at.step, self.share, device))
        told = [float(loss.detach()), float(interruption.asked)]
        if self.share.processes > 1:
            mine = torch.tensor(told, dtype=torch.float64, device=device)
            together = cast(Tensor, self.fabric.all_reduce(mine, reduce_op="sum"))
            told = together.tolist()
        if not math.isfinite(told[0]):
            self._go_astray(f"the loss is {told[0]}")
        self.optimiser.zero_grad()
        # Processes' gradients are averaged, but their losses add up.
        self.fabric.backward(loss * self.share.processes)
        if self.settings.clip is not None:
            self.fabric.clip_gradients(self.wrapped, self.optimiser, max_norm=self.settings.clip)
        self.optimiser.step()
        at.loss += told[0] * self.batches.part(at.step)
        at.step += 1
        return told[1] > 0

    def _end_epoch(self, watch: Watch | None) -> None:
        """Note how it went, and go to the next epoch."""
        at = self.at
        if not all(bool(torch.isfinite(each).all()) for each in self.module.state_dict().values()):
            self._go_astray("weights are not finite any more")
        metric = None
        if self.evaluate is not None:
            self.module.eval()
            with torch.no_grad():
                mine = self.evaluate() if self.fabric.is_global_zero else None
            self.module.train()
            metric = self.fabric.broadcast(mine)
        if at.history.add(at.epoch + 1, at.loss, metric):
            at.best = weights_of(self.module)
        at.epoch, at.step, at.loss = at.epoch + 1, 0, 0.0
        if watch is not None and self.fabric.is_global_zero:
            watch(at.history.progress(self.settings.max_epochs))

    def _is_over(self) -> bool:
        at, patience = self.at, self.settings.patience
        if at.epoch >= self.settings.max_epochs:
            return True
        return (
            patience is not None and at.step == 0 < at.epoch and at.history.since_best() >= patience
        )

    def _go_astray(self, problem: str) -> NoReturn:
        step = min(self.at.step + 1, len(self.batches))
        raise ValueError(
            f"training went astray in epoch {self.at.epoch + 1}, step {step}: {problem}. Try a "
            f"smaller learning rate (it is {self.settings.learning_rate:g}), or scale the features."
        )

    def keep(self) -> None:
        """Keep the state; one process does."""
        if self.checkpoint.folder is not None and self.fabric.is_global_zero:
            arrays = {
                **as_arrays("model", weights_of(self.module)),
                **as_arrays("best", self.at.best),
                **optimiser_arrays(self.optimiser),
            }
            self.checkpoint.save(self.at.to_json(), arrays)

    def restore(self, arrays: Arrays) -> None:
        """Take on the weights and the optimiser's memory of a state that was kept."""
        self.module.load_state_dict(from_arrays("model", arrays))
        restore_optimiser(self.optimiser, arrays)
