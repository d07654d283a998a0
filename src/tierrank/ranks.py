"""Several processes that learn together, the ranks of `torchrun`, and what they tell each other.

All is done by `torch.distributed`: gloo for the CPU, NCCL for GPUs. What is not a tensor travels as
JSON.
"""

from __future__ import annotations

import atexit
import json
import os
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torch's env:// needs
CPU = torch.device("cpu")

T = TypeVar("T")


class Ranks:
    """Processes that put numbers together. Alone, the default, all methods give what they get.

    Parameters
    ----------
    group
        of `torch.distributed`; None: there is one process
    device
        where the group's backend wants its tensors

    Attributes
    ----------
    rank, size
        this process's number, and how many there are
    sent
        bytes of all that was put together so far, as they lie in memory. A ring of R ranks sends
        2 (R − 1) / R as many from each, to add them up.
    """

    def __init__(
        self, group: dist.ProcessGroup | None = None, device: torch.device | None = None
    ) -> None:
        self.group, self.device = group, device
        self.rank = 0 if group is None else dist.get_rank(group)
        self.size = 1 if group is None else dist.get_world_size(group)
        self.sent = 0

    @classmethod
    def join(cls, device: torch.device = CPU) -> Ranks:
        """All processes, if a launcher started some or a process group is there already."""
        if not (dist.is_available() and (dist.is_initialized() or _launched())):
            return cls()
        if not dist.is_initialized():
            if device.type == "cuda":
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
            _meet("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        return cls(dist.group.WORLD, device) if dist.get_world_size() > 1 else cls()

    def part(self, count: int, rank: int | None = None) -> slice:
        """Which of so many things a rank has, this one if none is named."""
        rank = self.rank if rank is None else rank
        return slice(count * rank // self.size, count * (rank + 1) // self.size)

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up all ranks' tensors; the same bits on all, in place if they lie in order."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def max(self, tensor: Tensor) -> Tensor:
        """The largest of all ranks' numbers. A NaN may be lost."""
        return self._reduced(tensor, dist.ReduceOp.MAX)

    def _reduced(self, tensor: Tensor, operation: Any) -> Tensor:
        if self.size > 1:
            tensor = tensor.contiguous()
            self.sent += tensor.nbytes
            dist.all_reduce(tensor, operation, group=self.group)
        return tensor

    def side_by_side(self, tensor: Tensor) -> Tensor:
        """[rows, numbers] of all ranks, in their order, as [rows, ranks · numbers]."""
        if self.size == 1:
            return tensor
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        self.sent += tensor.nbytes
        dist.all_gather(found, tensor.contiguous(), group=self.group)
        return torch.cat(found, 1)

    def from_first(self, tensor: Tensor) -> Tensor:
        """The first rank's tensor, in place."""
        if self.size > 1:
            self.sent += tensor.nbytes
            dist.broadcast(tensor, group=self.group, group_src=0)
        return tensor

    def to_first(self, tensor: Tensor, source: int) -> Tensor:
        """A rank's tensor on the first rank; others give one of this shape, which they get back."""
        if source and self.rank == source:
            dist.send(tensor.contiguous(), group=self.group, group_dst=0)
        elif source and self.rank == 0:
            dist.recv(tensor, group=self.group, group_src=source)
        return tensor

    def each(self, tensor: Tensor) -> list[Tensor]:
        """[numbers] of every rank, as many as it has, in their order."""
        if self.size == 1:
            return [tensor]
        own = torch.tensor([[len(tensor)]], device=tensor.device)
        lengths = self.side_by_side(own)[0].tolist()
        padded = tensor.new_zeros(1, max(lengths))
        padded[0, : len(tensor)] = tensor
        found = self.side_by_side(padded).view(self.size, -1)
        return [row[:length] for row, length in zip(found, lengths, strict=True)]

    def gather(self, value: T) -> list[T]:
        """Every rank's value of what can be JSON, in their order."""
        if self.size == 1:
            return [value]
        text = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        texts = self.each(torch.tensor(text, device=self.device))
        return [json.loads(bytes(each.tolist())) for each in texts]

    def agree(self, value: T) -> T:
        """The first rank's value of what can be JSON."""
        return self.gather(value)[0]

    def differ(self, value: Any) -> bool:
        """Whether any rank has another value than the first; all are told."""
        return self.any(self.agree(value) != value)

    def any(self, value: bool) -> bool:
        """Whether it is so on any rank; all have come here when one goes on."""
        return bool(self.sum(torch.tensor([float(value)], device=self.device)).item() > 0)


ALONE = Ranks()


def _launched() -> bool:
    """Whether a launcher such as `torchrun` started several processes."""
    return all(name in os.environ for name in LAUNCHED) and os.environ["WORLD_SIZE"] != "1"


def _meet(backend: str) -> None:
    """Make the process group of a launcher's processes.

    torchrun may keep its store when it starts them once more, with the addresses of those that are
    gone: names in it are those of the attempt. The store may live in the first rank, which must not
    end (an error, say) while another still looks up addresses in it: all wait for the last to come.
    """
    store, rank, ranks = next(rendezvous("env://"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"tierrank attempt {attempt}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
    dist.all_reduce(torch.zeros(1))
    atexit.register(_leave)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
