"""The folder of a training run: the model, its curve, and the checkpoint while it is unfinished.

The folder `checkpoint` is there as long as the training is unfinished: it is made before the first
step and goes, by one rename, after the finished model is saved. So a process may be killed at any
moment, and the next one knows what there is to do.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import tierrank
from tierrank import storage
from tierrank.report.plots import plot_curve
from tierrank.report.tables import curve_csv
from tierrank.storage import Savable
from tierrank.training import History

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker

State = Literal["absent", "unfinished", "finished"]


class Fitted(Savable, Protocol):
    """A model that can be saved, and that knows how its training went."""

    history_: History


class TrainingFolder:
    """Where `tierrank train` and `tierrank extreme train` keep what they make.

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
            self._drop_checkpoint()
        self.checkpoint.mkdir(parents=True, exist_ok=True)

    def save(self, ranker: Fitted, title: str) -> None:
        """Save a model and its curve; each file appears whole."""
        tierrank.save(ranker, self.path)
        storage.replace_file(self.path / "curve.csv", curve_csv(ranker.history_).encode())
        plot_curve(self.path / "curve.png", ranker.history_, title=title)

    def finish(self) -> None:
        """The model is saved: nothing is left to resume."""
        self._drop_checkpoint()

    def abandon(self) -> None:
        """The fit, or its model, was refused: without a kept state nothing is left to resume."""
        if not self.has_checkpoint:
            self._drop_checkpoint()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def _states(self) -> list[Path]:
        """Folders in which a training keeps its state."""
        if not self.several_runs:
            return [self.checkpoint]
        return [each for each in self.checkpoint.glob("*") if each.is_dir()]

    def _drop_checkpoint(self) -> None:
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


def load_ranker(folder: Path) -> Ranker:
    """The model of a folder that ranks rows; refuses one that ranks labels."""
    ranker = tierrank.load(folder)
    if type(ranker).__name__ == "ExtremeRanker":
        raise ValueError(
            f"{folder}: is an ExtremeRanker, which ranks labels: use tierrank extreme predict or "
            "tierrank extreme evaluate."
        )
    found: Ranker = ranker
    return found


def command_to_go_on() -> str:
    """The command that was typed, as it goes on with what was stopped."""
    kept = [each for each in sys.argv[1:] if each not in ("--overwrite", "--resume")]
    return shlex.join(["tierrank", *kept, "--resume"])
