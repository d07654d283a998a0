"""The course of a training: epochs, early stopping, checkpoints, Ctrl-C and resuming.

`train` knows nothing of ranking, nor how a step is taken: that is the learner's affair, for
instance of `FabricLearner`, which is autograd and AdamW in one or many processes. `Batches` says
where batches come from. Whatever is random in a step depends on (seed, epoch, step, process) and on
nothing that came before, so a state holds no generators, and it may be kept between any two steps.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from tierrank._types import AnyArray
from tierrank.data.cache import as_kind, blocks
from tierrank.errors import check_count, check_size, optional
from tierrank.ranks import ALONE, Ranks
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.tiers.layout import Layout
from tierrank.training.progress import Checkpoint, History, Interruption, Progress, Watch

if TYPE_CHECKING:
    from lightning_fabric import Fabric


LOOK_EVERY = 1.0  # seconds between what a watch is told on the way through an epoch

Accelerator = Literal["auto", "cpu", "cuda"]
Precision = Literal["32-true", "bf16-mixed"]
Saved = tuple[dict[str, Any], Arrays]
Evaluate = Callable[[], float]
Weights = dict[str, Tensor]
T = TypeVar("T")


@dataclass(frozen=True)
class Course:
    """How long to train, whatever learns.

    Attributes
    ----------
    max_epochs
        passes over the data, at most
    patience
        epochs without a better validation metric that end it; None: never
    """

    max_epochs: int
    patience: int | None = None

    def __post_init__(self) -> None:
        check_count("max_epochs", self.max_epochs)
        if self.patience is not None:
            check_count("patience", self.patience)


@dataclass(frozen=True)
class AdamWSettings:
    """Of AdamW.

    Attributes
    ----------
    learning_rate, weight_decay
        only matrices decay (not biases, norms, or what an objective learns)
    clip
        longest gradient, by its norm; None: any
    """

    learning_rate: float
    weight_decay: float
    clip: float | None = None

    def __post_init__(self) -> None:
        check_size("learning_rate", self.learning_rate)
        check_size("weight_decay", self.weight_decay, zero=True)
        if self.clip is not None:
            check_size("clip", self.clip)


class WentAstray(ValueError):
    """A training whose loss or weights are not finite any more."""


class Diverged(ValueError):
    """A loss that is not finite; the weights are still those before the step."""

    def __init__(self, loss: float) -> None:
        super().__init__(f"the loss is {loss}")


class Batches(Protocol):
    """Where batches come from; `ListBatches` is one."""

    def __len__(self) -> int:
        """Batches of an epoch."""

    def begin(self, epoch: int) -> None:
        """Shuffle for this epoch, to the same order whenever it is asked for again."""

    def load(self, step: int, share: Share, device: torch.device) -> tuple[Any, ...]:
        """What the learner learns from. The losses of all shares add up to the batch's."""

    def part(self, step: int) -> float:
        """Which part of the mean training loss this batch stands for."""


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
    learner: Learner,
    batches: Batches,
    course: Course,
    *,
    seed: int,
    history: History,
    evaluate: Evaluate | None = None,
    together: bool = False,
    checkpoint: Checkpoint,
    saved: Saved | None = None,
    continued: bool = False,
    give_up: Callable[[History], bool] | None = None,
    watch: Watch | None = None,
) -> Position:
    """Train a learner, from the start or from a saved state.

    It ends with the weights of the best epoch by `evaluate`, or without it with the last. Torch's
    global generators are left as they were.

    Parameters
    ----------
    learner
        what takes the steps
    seed
        of all that is random in the steps; the learner's first weights are the caller's affair
    history
        an empty one
    evaluate
        the validation metric of the learner as it is, higher is better; called by one process,
        with the learner in evaluation mode
    together
        whether all processes call `evaluate`, as each has a part of the validation data
    saved
        what `checkpoint.load()` gave; its arrays are let go before training goes on, so that
        a huge state is not held twice
    continued
        whether the learner has learned before, so that the first epoch has a metric to beat
    give_up
        asked after every epoch whether this is the end; it knows the history, and no more
    watch
        called by one process after every epoch, and in a long one every second, with
        `Progress.step`

    Returns
    -------
    Position
        with `finished` false if Ctrl-C was pressed: the caller raises `KeyboardInterrupt`
    """
    at = Position(seed, history) if saved is None else Position.from_saved(saved)
    if at.finished:
        assert saved is not None
        learner.load_weights(at.best or from_arrays("model", saved[1]))
        return at
    if saved is not None:
        learner.load_weights(from_arrays("model", saved[1]))
        learner.restore_memory(saved[1])
        saved[1].clear()
    with own_randomness(learner.device), Interruption() as interruption:
        loop = _Loop(learner, batches, course, at, evaluate, together, checkpoint, watch)
        loop.give_up = give_up
        if continued and saved is None and evaluate is not None:
            loop.note(0, None)
        loop.run(interruption)
    if at.best:
        learner.load_weights(at.best)
    return at


class _Loop:
    """The loop's parts, of which only the position changes while it runs."""

    def __init__(
        self,
        learner: Learner,
        batches: Batches,
        course: Course,
        at: Position,
        evaluate: Evaluate | None,
        together: bool,
        checkpoint: Checkpoint,
        watch: Watch | None,
    ) -> None:
        self.learner, self.batches, self.course, self.at = learner, batches, course, at
        self.evaluate, self.together, self.checkpoint = evaluate, together, checkpoint
        self.watch = watch if learner.first else None
        self.give_up: Callable[[History], bool] | None = None
        self.looked = time.monotonic()

    def run(self, interruption: Interruption) -> None:
        """Train until the end, or until Ctrl-C."""
        at, begun = self.at, None
        while not self._is_over():
            if begun != at.epoch:
                self.batches.begin(at.epoch)
                begun = at.epoch
            stop = self._step(interruption)
            if at.step == len(self.batches):
                self._end_epoch()
            elif self.watch is not None and time.monotonic() - self.looked >= LOOK_EVERY:
                self._tell(self._on_the_way())
            if stop or self.checkpoint.due:
                self.keep()
            if stop:
                return
        at.finished = True
        self.keep()

    def _step(self, interruption: Interruption) -> bool:
        """Learn from one batch; say whether Ctrl-C was pressed (in any of the processes)."""
        at, share, device = self.at, self.learner.share, self.learner.device
        source = [at.seed, at.epoch, at.step, share.process]
        draws = np.random.SeedSequence(source).generate_state(1, np.uint64)[0]
        seed_generators(int(draws) >> 1, device)
        batch = self.batches.load(at.step, share, device)
        try:
            loss, stop = self.learner.learn(batch, interruption.asked)
        except Diverged as diverged:
            raise self._astray(str(diverged)) from None
        at.loss += loss * self.batches.part(at.step)
        at.step += 1
        return stop

    def _end_epoch(self) -> None:
        """Note how it went, and go to the next epoch."""
        at, learner = self.at, self.learner
        if not learner.finite():
            raise self._astray("weights are not finite any more")
        self.note(at.epoch + 1, at.loss)
        at.epoch, at.step, at.loss = at.epoch + 1, 0, 0.0
        self._tell(at.history.progress(self.course.max_epochs))

    def note(self, epoch: int, loss: float | None) -> None:
        """Measure how the learner does, and keep its weights if it never did better."""
        learner, metric = self.learner, None
        if self.evaluate is not None:
            with learner.evaluating():
                metric = self.evaluate() if learner.first or self.together else None
            metric = learner.agree(metric)
        if self.at.history.add(epoch, loss, metric):
            self.at.best = learner.weights()

    def _on_the_way(self) -> Progress:
        """Where the training stands within an epoch."""
        at, steps = self.at, len(self.batches)
        parts = list(accumulate(map(self.batches.part, range(steps))))
        done = parts[at.step - 1]
        return Progress(
            at.epoch,
            self.course.max_epochs,
            at.history.unit,
            at.loss * parts[-1] / done if done else None,
            best=at.history.best_metric,
            step=(at.step, steps),
        )

    def _tell(self, progress: Progress) -> None:
        if self.watch is not None:
            self.watch(progress)
        self.looked = time.monotonic()

    def _is_over(self) -> bool:
        at, patience = self.at, self.course.patience
        if at.epoch >= self.course.max_epochs:
            return True
        if self.give_up is not None and at.step == 0 < at.epoch and self.give_up(at.history):
            return True
        return (
            patience is not None and at.step == 0 < at.epoch and at.history.since_best() >= patience
        )

    def _astray(self, problem: str) -> WentAstray:
        step = min(self.at.step + 1, len(self.batches))
        return WentAstray(
            f"training went astray in epoch {self.at.epoch + 1}, step {step}: {problem}. "
            f"{self.learner.advice}"
        )

    def keep(self) -> None:
        """Keep the state; one process does. Of a finished training, only its result is needed."""
        if self.checkpoint.folder is None or not self.learner.first:
            return
        arrays = as_arrays("best", self.at.best)
        if not (self.at.finished and arrays):
            arrays |= as_arrays("model", self.learner.weights())
        if not self.at.finished:
            arrays |= self.learner.memory()
        self.checkpoint.save(self.at.to_json(), arrays)


class FabricLearner:
    """Trains a module in place; a `Learner`.

    Parameters
    ----------
    fabric
        from `fabric_for`
    module
        called with what `Batches.load` gives; returns the loss of its share, a scalar. It goes to
        Fabric's device.
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
        """What AdamW remembers of each parameter, as ``optimiser.number.name``."""
        return {
            f"optimiser.{number}.{name}": value.detach().cpu().numpy()
            for number, memory in self._optimiser.state_dict()["state"].items()
            for name, value in memory.items()
        }

    def restore_memory(self, arrays: Arrays) -> None:
        """Take on what `memory` gave; rates and groups stay as they are."""
        memory: dict[int, dict[str, Any]] = {}
        for key, value in from_arrays("optimiser", arrays).items():
            number, _, name = key.partition(".")
            memory.setdefault(int(number), {})[name] = value
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": memory, "param_groups": groups})


# -- where: one device, or one a process under `torchrun` --------------------------------------


def fabric_for(accelerator: Accelerator, precision: Precision, *, several: bool = False) -> Fabric:
    """A Fabric whose processes, if `torchrun` started several, have found each other.

    The number of processes is that of `torchrun`; without it, there is one, unless `several` says
    that another launcher started them.
    """
    if precision not in get_args(Precision):
        known = " or ".join(map(repr, get_args(Precision)))
        raise ValueError(f"precision is {known}, not {precision!r}")
    optional("lightning_fabric", "training a network", "neural")
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    several = several or "TORCHELASTIC_RUN_ID" in os.environ  # torchrun started this process
    processes = int(os.environ["WORLD_SIZE"]) if several else 1
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes)) if several else 1
    if processes > 1:
        Ranks.join(device_for(accelerator))  # a group of our own, which a restart finds anew
    with _quiet():
        fabric = Fabric(
            accelerator=device_for(accelerator).type,
            devices=here,
            num_nodes=processes // here,
            precision=precision,
            # Named, so that a cluster's variables do not make Fabric look for other processes.
            plugins=[TorchElasticEnvironment() if several else LightningEnvironment()],
        )
        fabric.launch()
    return fabric


def device_for(accelerator: Accelerator) -> torch.device:
    """The device that a name stands for: "auto" is a GPU of CUDA if there is one, else the CPU."""
    if accelerator not in get_args(Accelerator):
        known = ", ".join(map(repr, get_args(Accelerator)))
        raise ValueError(f"accelerator is one of {known}, not {accelerator!r}")
    there = torch.cuda.is_available()
    if accelerator == "cuda" and not there:
        raise ValueError('accelerator="cuda", but torch sees no GPU here: try "auto" or "cpu"')
    return torch.device("cpu" if accelerator == "cpu" or not there else "cuda")


@contextlib.contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Leave torch's global generators as they were, whatever is drawn from them inside."""
    here = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=here):
        yield


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed what draws on a device; `torch.manual_seed` would take 30 times as long."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Fabric from announcing precision, processes and unused devices."""
    logger = logging.getLogger("lightning_fabric")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*available but not used.*")
            yield
    finally:
        logger.setLevel(before)


# -- weights as named arrays, which safetensors can hold -----------------------------------------


def weights_of(module: nn.Module) -> Weights:
    """A copy of all parameters and buffers, on the CPU."""
    return {
        name: value.detach().to("cpu", copy=True) for name, value in module.state_dict().items()
    }


def as_arrays(prefix: str, weights: Mapping[str, Tensor]) -> Arrays:
    """Tensors as arrays under ``prefix.name``."""
    return {f"{prefix}.{name}": tensor.numpy() for name, tensor in weights.items()}


def from_arrays(prefix: str, arrays: Arrays) -> Weights:
    """Undo `as_arrays`, leaving other prefixes out."""
    return {
        name.removeprefix(f"{prefix}."): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(f"{prefix}.")
    }


# -- minibatches of lists: an epoch puts the lists in a new order, a batch is a slice of it --------


class Share(NamedTuple):
    """Which part of every batch a process takes: the number `process` of so many."""

    process: int = 0
    processes: int = 1


class ListBatch:
    """The lists of a batch that one process takes.

    Not a tuple or dataclass, into which Fabric would look for tensors to convert.

    Attributes
    ----------
    tiers
        the lists, with one score a row
    lengths
        number of rows of each list; the rows of a list are adjacent
    weights
        [lists] what each loss is multiplied with: the sum over all processes' lists is the batch's
        loss
    positions
        [rows] where each was shown, if that is known
    """

    def __init__(
        self, tiers: Tiers, lengths: AnyArray, weights: Tensor, positions: Tensor | None = None
    ) -> None:
        self.positions = positions
        self.tiers = tiers
        self.lengths = lengths
        self.weights = weights


class ListBatches:
    """Lists of rows with features, a few lists at a time.

    The loss of a batch estimates the mean over all lists, by weight, without bias: each list's
    weight counts as it is, relative to the mean weight, so that batches of light lists are light.

    Parameters
    ----------
    X
        [rows, features] float32, a tensor or CSR; only the rows of a batch are made dense
    tiers
        the lists, with one score a row
    weights
        [lists] how much each list counts, or None
    size
        lists in a batch
    lists
        numbers of the lists to take; the others must have loss 0 whatever the scores
    seed
        of the order of the lists, with the number of the epoch
    ranks
        if several, each has other lists, and numbers them from 0: a batch is of all lists, those
        of the first rank before those of the second, and each takes from it those that it has
    shown_rows, positions
        the row of X that each score is of, if they are not its rows; and where it was shown
    """

    def __init__(
        self,
        X: Any,
        tiers: Tiers,
        weights: AnyArray | None,
        *,
        size: int,
        lists: AnyArray,
        seed: int,
        ranks: Ranks = ALONE,
        shown_rows: AnyArray | None = None,
        positions: AnyArray | None = None,
    ) -> None:
        self.ranks = ranks
        self.shown_rows = None if shown_rows is None else torch.from_numpy(shown_rows)
        self.positions = None if positions is None else torch.from_numpy(positions)
        self.X, self.tiers, self.size, self.seed = X, tiers, size, seed
        self.weights = np.ones(len(tiers)) if weights is None else weights
        sums = torch.tensor([self.weights.sum(), self.weights[lists].sum()], dtype=torch.float64)
        self.total, of_lists = map(float, self.ranks.sum(sums))
        counts = [int(each) for each in self.ranks.each(torch.tensor([len(tiers)]))]
        self.first = sum(counts[: self.ranks.rank])  # the number of this rank's first list
        everyones = self.ranks.each(torch.from_numpy(lists + self.first))
        self.lists = torch.cat(everyones).numpy()
        self.mean = of_lists / len(self.lists)
        if not len(lists):  # all processes must take part in every step
            self.X, self.tiers = torch.zeros(2, X.shape[1]), Tiers.from_labels([1, 0])
            self.weights = np.zeros(1)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return (len(self.lists) + self.size - 1) // self.size

    def begin(self, epoch: int) -> None:
        """Put the lists in the order of this epoch, which is the same each time."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.lists)
        if self.ranks.size > 1:
            order = order - self.first
            self._places = np.flatnonzero((order >= 0) & (order < len(self.tiers)))
            order = order[self._places] if len(self._places) else np.zeros(1, dtype=np.int64)
        self._weights = self.weights[order]
        self._rows = self.tiers.rows(order)
        self._ordered = self.tiers[order]
        self._row_offsets = self._ordered.layout().row_offsets.numpy()

    def part(self, step: int) -> float:
        """Which part of the mean loss a batch stands for."""
        return self._lists_of(step) * self.mean / self.total

    def load(self, step: int, share: Share, device: torch.device) -> tuple[Tensor, ListBatch]:
        """A process's rows and lists of a batch. Where there are too few, its weights are 0."""
        begin, count = step * self.size, self._lists_of(step)
        if self.ranks.size > 1:
            first, last = np.searchsorted(self._places, [begin, begin + count]).tolist()
        else:
            first = begin + count * share.process // share.processes
            last = begin + count * (share.process + 1) // share.processes
        weights = torch.from_numpy(self._weights[first:last] / (count * self.mean))
        if first == last:  # all processes must take part in every step
            first = min(first, len(self._weights) - 1)
            last, weights = first + 1, torch.zeros(1)
        start, end = int(self._row_offsets[first]), int(self._row_offsets[last])
        rows = self._rows[start:end]
        lengths = np.diff(self._row_offsets[first : last + 1])
        positions = None if self.positions is None else self.positions[rows].to(device)
        batch = ListBatch(
            self._slice(first, last).to(device), lengths, weights.to(device, torch.float32),
            positions,
        )  # fmt: skip
        if self.shown_rows is not None:
            rows = self.shown_rows[rows]
        return dense_rows(self.X, rows).to(device, non_blocking=True), batch

    def _lists_of(self, step: int) -> int:
        return min(self.size, len(self.lists) - step * self.size)

    def _slice(self, first: int, last: int) -> Tiers:
        """Consecutive lists of the epoch: `tiers[first:last]`, without sorting anything again.

        The layout is a slice too: to find it anew would cost a third of the likelihood of a small
        batch.
        """
        ordered, whole = self._ordered, self._ordered.layout()
        row, end_row = int(self._row_offsets[first]), int(self._row_offsets[last])
        tier, end_tier = ordered.list_offsets[[first, last]].tolist()
        tiers = Tiers(
            items=ordered.items[row:end_row] - row,
            tier_offsets=ordered.tier_offsets[tier : end_tier + 1] - row,
            list_offsets=ordered.list_offsets[first : last + 1] - tier,
            score_shape=(end_row - row,),
            labels=None if ordered.labels is None else ordered.labels[tier:end_tier],
        )
        upper, end_upper = whole.list_offsets[[first, last]].tolist()
        entry, end_entry = whole.tier_offsets[[upper, end_upper]].tolist()
        layout = Layout(
            rows=None,
            row_offsets=whole.row_offsets[first : last + 1] - row,
            order=whole.order[entry:end_entry] - row,
            tier_offsets=whole.tier_offsets[upper : end_upper + 1] - entry,
            list_offsets=whole.list_offsets[first : last + 1] - upper,
        )
        tiers.kept("layout", lambda: layout)
        return tiers


def as_float32(X: Any) -> Any:
    """[rows, features] in float32: a tensor, or CSR if X is sparse."""
    if X.dtype != np.float32:
        with np.errstate(over="ignore"):
            X = as_kind(X, np.float32)
        values = X.data if hasattr(X, "indptr") else X
        columns = math.prod(values.shape[1:])
        if not all(np.isfinite(values[some]).all() for some in blocks(len(values), columns)):
            raise ValueError(
                "X has numbers above 3.4e38, too large for the network's float32: scale the "
                'features, for instance with features="standardize"'
            )
    if hasattr(X, "indptr"):
        return X
    with warnings.catch_warnings():  # a mapped array may be for reading only, and is only read
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(X))


def dense_rows(X: Any, rows: Tensor | slice) -> Tensor:
    """Some rows of what `as_float32` gave, as a dense tensor."""
    if isinstance(X, Tensor):
        return X[rows] if isinstance(rows, slice) else X.index_select(0, rows)
    chosen = X[rows if isinstance(rows, slice) else rows.numpy()]
    return torch.from_numpy(chosen.toarray())
