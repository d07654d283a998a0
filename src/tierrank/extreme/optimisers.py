"""Adam and AdaGrad that go over a matrix in parts: a block of rows, or the rows of a batch.

A block is updated while its gradient is in the cache, so that the gradient of the whole matrix is
never there. Where a batch touches few rows, AdaGrad changes these alone, which is exact: a row
without a gradient stands still. With Adam it would move on by its momentum. So there are two ways:

- *exact*: every step goes over all rows.
- *lazy*: the rows of the batch alone, as `torch.optim.SparseAdam` does. That is not Adam, since
  momentum and decay of a row wait until it is touched again, but far cheaper if rows are many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from tierrank.storage import Arrays

Name = Literal["adam", "adagrad"]
BETAS = (0.9, 0.999)
EPSILON = 1e-8
ADAGRAD_EPSILON = 1e-10
BLOCK = 1 << 21  # numbers of a matrix that are gone over at once


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
        name: Name,
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
