"""What the commands say besides results: notes and errors, on standard error."""

from __future__ import annotations

import errno
import functools
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tierrank.__main__ import INTERRUPTED as INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

STDIN = Path("-")

# What the readers of tables call arguments, as the commands have them.
_SPELLED = {
    r"\bseparator=('[^']+')": r"--separator \1",
    r"\bdrop=\[('[^']*')\]": r"--drop \1",
    r"\bname the column in drop\b": "leave the column out by --drop",
    r"\(for (label|query|drop)\)": r"(for --\1)",
    r", or pass a larger max_expansion= to the reader": "",
}


def explained(command: Callable[..., None]) -> Callable[..., None]:
    """Show what a command refuses as one message, and warnings as notes; never a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _as_note
            try:
                _look_for_inputs(options)
                command(*arguments, **options)
            except BrokenPipeError:
                raise  # somebody closed the pipe, as `head` does: typer leaves in silence
            except (ValueError, OSError, ImportError) as error:
                stderr().print(
                    f"Error: {_said(error)}",
                    style="red",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
                raise typer.Exit(1) from None

    return run


def _look_for_inputs(options: Mapping[str, Any]) -> None:
    """Refuse files and models that are not there, before torch is loaded: that takes seconds."""
    for name in ("data", "file", "valid"):
        path = options.get(name)
        if isinstance(path, Path) and path != STDIN and not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    models = [model] if isinstance(model := options.get("model"), Path) else []
    for ranker in options.get("rankers", ()):
        if ranker.is_dir():
            models.append(ranker)
        elif ranker != STDIN and not ranker.exists():
            raise ValueError(
                f"{ranker}: there is no such model, nor a file of scores or predictions."
            )
    if models:
        from tierrank import storage

        for model in models:
            storage.check(model, "model")


def stdout() -> Console:
    """Where results go. Numbers are not coloured: colours are for what matters."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> Console:
    """Where all else goes, so that results can be piped."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Say something that the user may want to know; of several processes, the first does."""
    if process_number() > 0:
        return
    stderr().print(f"Note: {text}", style="yellow", markup=False, soft_wrap=True)


def process_number() -> int:
    """Which of `torchrun`'s processes this is; 0 without it."""
    return int(os.environ.get("RANK", 0)) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    said = str(error)
    for argument, option in _SPELLED.items():
        said = re.sub(argument, option, said)
    return said


def _as_note(message: Warning | str, *rest: Any, **more: Any) -> None:
    note(str(message))
