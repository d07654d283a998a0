"""What the training loop asks of whatever learns."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch

from tierrank.storage import Arrays
from tierrank.training.batches import Share
from tierrank.training.optimiser_state import Weights

T = TypeVar("T")


class Diverged(ValueError):
    """A loss that is not finite; the weights are still those before the step."""

    def __init__(self, loss: float) -> None:
        super().__init__(f"the loss is {loss}")


class Learner(Protocol):
    """A model and how it takes a step; `FabricLearner` is one.

    It is in training mode unless the loop says otherwise. Whatever it draws, it draws from torch's
    global generators, which the loop seeds before each step; so a step comes out the same whenever
    it is taken from the same weights and memory.
    """

    @property
    def share(self) -> Share:
        """Which part of every batch this process takes."""

    @property
    def device(self) -> torch.device:
        """Where batches are to be."""

    @property
    def first(self) -> bool:
        """Whether this process is the one that speaks, saves and evaluates."""

    @property
    def advice(self) -> str:
        """A sentence on what to try when training goes astray."""

    def learn(self, batch: tuple[Any, ...], stop: bool) -> tuple[float, bool]:
        """Take one step.

        Parameters
        ----------
        batch
            what `Batches.load` gave
        stop
            whether this process was asked to stop

        Returns
        -------
        tuple
            the batch's loss over all processes, and whether any of them was asked to stop

        Raises
        ------
        Diverged
            if the loss is not finite, in all processes and before any weight changes
        """

    def evaluating(self) -> AbstractContextManager[None]:
        """Evaluation mode, without gradients, until the context ends."""

    def agree(self, value: T) -> T:
        """The first process's value."""

    def finite(self) -> bool:
        """Whether all weights are finite."""

    def weights(self) -> Weights:
        """Copies of all weights, on the CPU."""

    def load_weights(self, weights: Weights) -> None:
        """Take on what `weights` gave."""

    def memory(self) -> Arrays:
        """What the optimiser remembers, under names that begin with ``optimiser.``; no copies."""

    def restore_memory(self, arrays: Arrays) -> None:
        """Take on what `memory` gave, among arrays of other names."""
