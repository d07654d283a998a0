"""What `tierrank train` and `tierrank extreme train` share: a folder, and the way of a training.

In the folder are the model, its curve, and the checkpoint while the training is unfinished. The
folder `checkpoint` is made before the first step and goes, by one rename, after the finished model
is saved. So a process may be killed at any moment, and the next one knows what there is to do.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import typer

import tierrank
from tierrank import storage
from tierrank.cli.options import INTERRUPTED, can_draw, note, stderr, stdout
from tierrank.report.plots import plot_curve
from tierrank.report.tables import curve_csv
from tierrank.storage import Savable
from tierrank.training import History

State = Literal["absent", "unfinished", "finished"]


class Fitted(Savable, Protocol):
    """A model that can be saved, and that knows how its training went."""

    objective: str
    history_: History


Model = TypeVar("Model", bound=Fitted)
Data = TypeVar("Data")


def train_into(
    folder: TrainingFolder,
    ranker: Model,
    *,
    resume: bool,
    overwrite: bool,
    read: Callable[[], Data],
    describe: Callable[[Model, Data], None],
    fit: Callable[[Model, Data, Path], None],
    summarise: Callable[[Model, Data, float], None],
    unit: str,
) -> None:
    """Train in a folder: look what is there, read, fit, save, and say how it went.

    Ctrl-C leaves the model so far, and says how to go on with it.

    Parameters
    ----------
    folder
        where the model goes
    ranker
        what is trained
    resume, overwrite
        what to do with an earlier training in the folder
    read
        gives the data
    describe
        says what there is to learn from
    fit
        fits, with its checkpoints in the folder that it is given
    summarise
        says how it went, and in how many seconds
    unit
        what a step is called
    """
    folder.check(resume=resume, overwrite=overwrite)
    if resume and folder.state == "finished":
        stdout().print(f"{folder.path} holds a finished model: there is nothing to go on with.")
        return
    data = read()
    describe(ranker, data)
    if resume and not folder.has_checkpoint:
        note(f"{folder.path} has no checkpoint to go on from: the training begins anew.")
    folder.begin(anew=not resume)
    begun = time.monotonic()
    try:
        try:
            fit(ranker, data, folder.checkpoint)
        except KeyboardInterrupt:
            console = stderr()
            if has_steps(ranker):
                folder.save(ranker)
                console.print(f"Stopped. The model so far is in {folder.path}", markup=False)
            else:
                console.print(f"Stopped before the first {unit} was done.", markup=False)
            console.print(f"To go on: {_command_to_go_on()}", markup=False, soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        folder.save(ranker)
    except (ValueError, OSError):
        folder.abandon()
        raise
    folder.drop_checkpoint()
    summarise(ranker, data, time.monotonic() - begun)
    stdout().print(f"The model is in {folder.path}", markup=False, soft_wrap=True)


def after_restart(folder: TrainingFolder, *, resume: bool, overwrite: bool) -> tuple[bool, bool]:
    """Whether to resume or overwrite: what torchrun starts once more goes on by itself."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)):
        resume = resume or folder.state == "unfinished" or not overwrite
    return resume, overwrite and not resume


def has_steps(ranker: Any) -> bool:
    """Whether a fit that was stopped left a model."""
    return bool(getattr(getattr(ranker, "history_", None), "steps", None))


def objective_of(ranker: Any) -> str:
    """The objective with its parameters, as in `pl-topk (k=5)`."""
    own = getattr(ranker, "objective_params", None) or {}
    params = ", ".join(f"{key}={value}" for key, value in own.items())
    return f"{ranker.objective} ({params})" if params else str(ranker.objective)


class TrainingFolder:
    """Where a training keeps what it makes.

    Parameters
    ----------
    path
        the folder; it need not exist
    several_runs
        whether a fit is made of several trainings, which keep their states in folders of their
        own below `checkpoint`
    """

    def __init__(self, path: Path, *, several_runs: bool = False) -> None:
        self.path = path
        self.checkpoint = path / "checkpoint"
        self.several_runs = several_runs

    @property
    def state(self) -> State:
        """What an earlier run left."""
        if self.checkpoint.is_dir():
            return "unfinished"
        return "finished" if storage.exists(self.path, "model") else "absent"

    @property
    def has_checkpoint(self) -> bool:
        """Whether an unfinished run got as far as to keep a state."""
        return any(storage.exists(folder, "checkpoint") for folder in self._states())

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse to touch what an earlier run left, unless the user said so."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path}: is a file, but a model is a folder: choose another.")
        if resume or overwrite:
            return
        if self.state == "unfinished":
            raise ValueError(
                f"{self.path}: holds an unfinished training. Add --resume to go on with it, or "
                "--overwrite to begin anew."
            )
        if self.state == "finished":
            raise ValueError(
                f"{self.path}: holds a model. Choose another --out, or add --overwrite."
            )

    def begin(self, *, anew: bool) -> None:
        """Mark the training as unfinished; a model that is there stays until it is replaced."""
        self._sweep()
        if anew:
            self.drop_checkpoint()
        self.checkpoint.mkdir(parents=True, exist_ok=True)

    def save(self, ranker: Fitted) -> None:
        """Save a model and its curve; each file appears whole."""
        tierrank.save(ranker, self.path)
        storage.replace_file(self.path / "curve.csv", curve_csv(ranker.history_).encode())
        title = f"{type(ranker).__name__}, {objective_of(ranker)}"
        if can_draw():
            plot_curve(self.path / "curve.png", ranker.history_, title=title)

    def abandon(self) -> None:
        """The fit, or its model, was refused: without a kept state nothing is left to resume."""
        if not self.has_checkpoint:
            self.drop_checkpoint()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def _states(self) -> list[Path]:
        """Folders in which a training keeps its state."""
        if not self.several_runs:
            return [self.checkpoint]
        return [each for each in self.checkpoint.glob("*") if each.is_dir()]

    def drop_checkpoint(self) -> None:
        """Leave nothing to resume, as when the model is saved."""
        old = self.path / ".checkpoint.old"
        shutil.rmtree(old, ignore_errors=True)
        if self.checkpoint.is_dir():
            self.checkpoint.rename(old)
            shutil.rmtree(old, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what killed processes were writing."""
        for folder in {self.path, self.checkpoint, *self._states()}:
            storage.sweep(folder, "model", "curve", "checkpoint")
        shutil.rmtree(self.path / ".checkpoint.old", ignore_errors=True)


def _command_to_go_on() -> str:
    """The command that was typed, as it goes on with what was stopped."""
    kept = [each for each in sys.argv[1:] if each not in ("--overwrite", "--resume")]
    return shlex.join(["tierrank", *kept, "--resume"])
