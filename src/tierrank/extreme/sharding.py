"""Labels spread over several processes, the ranks of `torchrun`: who holds which, and what is told.

Rank l of L holds a slice of the labels: weights, the optimiser's memory, its part of a checkpoint
and its own best labels of a row. What leads up to the last layer is held by all, but for features
of many weights, of which each has a slice, too. The likelihood needs of the other ranks no more
than each row's log-sum-exp of its rest and the scores of its own labels, so a step moves

    batch · (hidden + 2) + labels of its rows

numbers over a rank's network, whatever the number of labels. (A pairwise loss sums slopes of the
rows' labels in place of the log-sum-exp's two numbers. Where the features are spread, it is another
batch · hidden: what each rank's features of a row add up to.)

With D · L ranks, rank d · L + l looks at part d of a batch's rows alone, and the gradients of its
labels are summed over d: that grows with the labels, and pays where batches are large.

Everything here is done by `torch.distributed`: gloo for the CPU, NCCL for GPUs.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank import storage
from tierrank.data.multilabel import MultiLabelData
from tierrank.errors import check_count
from tierrank.ranks import Ranks
from tierrank.storage import Arrays
from tierrank.training import Checkpoint
from tierrank.training.progress import SAVINGS_BETWEEN

PIECE = 1 << 24  # bytes of a matrix that go to the rank that saves at once


@dataclass(frozen=True)
class Shards:
    """A rank's place in a mesh of data × labels. Alone, the default, it has all of both.

    Attributes
    ----------
    labels
        ranks that look at the same rows, each with a slice of the labels
    rows
        ranks that hold the same labels, each with a part of a batch's rows
    everyone
        all of them; the first is the first of both others
    """

    labels: Ranks = field(default_factory=Ranks)
    rows: Ranks = field(default_factory=Ranks)
    everyone: Ranks = field(default_factory=Ranks)

    @classmethod
    def join(cls, device: torch.device, data_ranks: int = 1) -> Shards:
        """Find the other ranks, if a launcher started some or a process group is there already.

        Parameters
        ----------
        device
            where networks learn
        data_ranks
            parts that the rows of a batch are in; the ranks divided by these share the labels
        """
        check_count("data_ranks", data_ranks)
        everyone = Ranks.join(device)
        if everyone.size % data_ranks:
            raise ValueError(
                f"data_ranks={data_ranks} does not divide the {everyone.size} processes there are: "
                "give a number that does, or start as many processes as go with it"
            )
        if data_ranks == 1:
            return cls(labels=everyone, everyone=everyone)
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(
            device.type,
            (data_ranks, everyone.size // data_ranks),
            mesh_dim_names=("data", "labels"),
        )
        labels, rows = (Ranks(mesh.get_group(name), device) for name in ("labels", "data"))
        return cls(labels, rows, everyone)

    @property
    def sent(self) -> int:
        """Bytes of all that was put together so far."""
        return sum(each.sent for each in {id(each): each for each in vars(self).values()}.values())

    def check_data(self, data: MultiLabelData) -> None:
        """Refuse labels that are fewer than their ranks, and data that differ among ranks."""
        if self.labels.size > data.n_labels:
            raise ValueError(
                f"{self.labels.size} processes share the labels, but there are {data.n_labels}: "
                "start fewer processes, or let them share the rows with data_ranks"
            )
        if self.everyone.differ([*data.X.shape, *data.Y.shape, data.X.nnz, data.Y.nnz]):
            raise ValueError(
                "the processes were given different rows: give all of them the same X and Y"
            )


class SpreadRows(storage.Spread):
    """A parameter that ranks share, which the first one writes as the others send their rows."""

    def __init__(self, own: Tensor, rows: int, shards: Shards) -> None:
        self.own, self.shards = own, shards
        self.shape = (rows, *own.shape[1:])
        self.dtype = np.dtype(np.float32)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.here = shards.everyone.rank == 0

    def pieces(self) -> Iterator[np.ndarray[Any, Any]]:
        """All rows in order, on the first rank; all ranks go through them together."""
        ranks, device = self.shards.labels, self.shards.labels.device
        if self.shards.rows.rank:
            return
        step = max(1, PIECE // max(1, self.nbytes // self.shape[0]))
        for source in range(ranks.size):
            part = ranks.part(self.shape[0], source)
            for start in range(0, part.stop - part.start, step):
                count = min(step, part.stop - part.start - start)
                if ranks.rank == source:
                    piece = self.own[start : start + count].to(device)
                else:
                    piece = torch.empty(count, *self.shape[1:], device=device)
                if ranks.rank in (0, source):
                    piece = ranks.to_first(piece, source)
                yield piece.cpu().numpy()

    def wait(self) -> None:
        """Until all ranks are here."""
        self.shards.everyone.any(False)


class ShardedCheckpoint(Checkpoint):
    """A checkpoint to which every rank adds its labels, and that any number of ranks can read.

    Each rank writes its slices beside, as `labels-TOKEN-RANK`; then the first one writes all else
    and what belongs to it. Whoever is killed before that leaves the state before. All ranks must
    see the same folder. With one rank it is an ordinary checkpoint.

    Parameters
    ----------
    shards
        the ranks
    spread
        of each parameter that they share, how many rows there are on all of them
    folder, identity, every
        as for `Checkpoint`
    """

    def __init__(
        self,
        shards: Shards,
        spread: Mapping[str, int],
        folder: Path | str | None,
        identity: Mapping[str, Any],
        *,
        every: float,
    ) -> None:
        super().__init__(folder, identity, every=every)
        self.shards, self.spread = shards, spread

    @property
    def due(self) -> bool:
        """Whether it is time to keep the state, by the first rank's clock."""
        if self.folder is None:
            return False
        everyone = self.shards.everyone
        return everyone.any(super().due and everyone.rank == 0)

    def save(self, state: Mapping[str, Any], tensors: Arrays) -> None:
        """Keep a state in place of the last one."""
        if self.folder is None:
            return
        begun = time.monotonic()
        everyone, labels = self.shards.everyone, self.shards.labels
        token = everyone.agree(secrets.token_hex(4))
        if labels.size > 1:
            parts = [f"labels-{token}-{rank}" for rank in range(labels.size)]
            own = {name: tensors.pop(name) for name in list(tensors) if self._rows_of(name)}
            if self.shards.rows.rank == 0:
                storage.write(self.folder, parts[labels.rank], {}, own)
            state = {**state, "labels": parts}
        everyone.any(False)  # all slices are written
        if everyone.rank == 0:
            super().save(state, tensors)
            for old in self.folder.glob("labels-*"):
                if not old.name.startswith(f"labels-{token}-"):
                    old.unlink(missing_ok=True)
            storage.sweep(self.folder, "labels")
        everyone.any(False)  # it is kept, or this rank would have been killed
        self._last = time.monotonic()
        if self.every > 0:
            self._wait = max(self.every, SAVINGS_BETWEEN * (self._last - begun))

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """The state that was kept, with this rank's slices, or None if there is none."""
        saved = super().load()
        said = None if saved is None else json.dumps(saved[0], sort_keys=True)
        if self.folder is not None and self.shards.everyone.differ(said):
            raise storage.StorageError(
                f"{self.folder}: ranks find different states here. Give a folder on a disk that "
                "all of them see."
            )
        if saved is None:
            return None
        state, tensors = saved
        if "labels" in state:
            tensors |= self._assembled(state.pop("labels"))
        elif self.shards.labels.size > 1:
            for name in filter(self._rows_of, list(tensors)):
                tensors[name] = tensors[name][self.shards.labels.part(self._rows_of(name))].copy()
        return state, tensors

    def _assembled(self, parts: list[str]) -> Arrays:
        """This rank's rows, from the slices of however many ranks."""
        assert self.folder is not None
        ranks, found = self.shards.labels, dict[str, list[np.ndarray[Any, Any]]]()
        for number, name in enumerate(parts):
            if (number + 1) * ranks.size <= ranks.rank * len(parts):
                continue  # its rows come before those of this rank
            if number * ranks.size >= (ranks.rank + 1) * len(parts):
                break
            if not re.fullmatch(r"labels-[0-9a-f]{8}-\d+", name):
                raise storage.StorageError(
                    f"{self.folder}: {name!r} is no part of a state. Remove it, and begin anew."
                )
            for key, array in storage.read(self.folder, name)[1].items():
                rows = self._rows_of(key)
                own, start = ranks.part(rows), rows * number // len(parts)
                mine = array[max(own.start - start, 0) : max(own.stop - start, 0)]
                found.setdefault(key, []).append(mine.copy())
        return {key: np.concatenate(found.pop(key)) for key in list(found)}

    def _rows_of(self, name: str) -> int:
        """Rows on all ranks of a parameter, or of what is remembered of it; 0: all have it."""
        return self.spread.get(name.rpartition(".")[2], 0)
