"""What the commands say besides results, on standard error; and how a function becomes one."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from tierrank.__main__ import INTERRUPTED as INTERRUPTED
from tierrank.errors import Argument, ArgumentError, ArgumentWarning, Column

if TYPE_CHECKING:
    from rich.console import Console

STDIN = Path("-")

# Arguments of the library that have an option of another name, and those that name columns.
_OPTIONS = {"objective": "--model", "tie_words": "--tie-word"}
_COLUMNS = {"wins": "--first-wins and --second-wins", "ties": "--tied"}
# What a terminal would obey, but for the line break.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def explained(command: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: it says what it refuses in one message, never by a traceback.

    Warnings become notes, and Ctrl-C ends it in peace. A parameter that is a dataclass is a group
    of options: the command line has one for each field.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _as_note
            try:
                _look_for_inputs(options)
                for name, group in groups.items():
                    own = {each.name: options.pop(each.name) for each in fields(group)}
                    options[name] = group(**own)
                command(**options)
            except BrokenPipeError:
                raise  # somebody closed the pipe, as `head` does: typer leaves in silence
            except KeyboardInterrupt:
                stderr().print("Stopped.")
                raise typer.Exit(INTERRUPTED) from None
            except (ValueError, OSError, ImportError) as error:
                stderr().print(
                    f"Error: {_said(error)}",
                    style="red",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
                raise typer.Exit(1) from None

    flat = [
        each for one in signature.parameters.values() for each in _options_of(one, groups)
    ]  # fmt: skip
    run.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in flat}
    return run


def _options_of(
    parameter: inspect.Parameter, groups: Mapping[str, Any]
) -> Iterator[inspect.Parameter]:
    """The options that a parameter of a command stands for: itself, or the fields of its group."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if parameter.name not in groups:
        yield parameter.replace(kind=keyword)
        return
    group = groups[parameter.name]
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        yield inspect.Parameter(
            each.name, keyword, default=each.default, annotation=hints[each.name]
        )


def _look_for_inputs(options: Mapping[str, Any]) -> None:
    """Refuse files and models that are not there, before torch is loaded: that takes seconds."""
    for name in ("data", "file", "valid", "features"):
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
    stderr().print(f"Note: {spelled(text)}", style="yellow", markup=False, soft_wrap=True)


def said(what: str, path: Path) -> None:
    """Say where something is."""
    stderr().print(f"{what} is in {path}", markup=False, soft_wrap=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what takes its time."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def process_number() -> int:
    """Which of `torchrun`'s processes this is; 0 without it."""
    return int(os.environ.get("RANK", 0)) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def spell(argument: Argument) -> str:
    """An argument of the library as the option that it is here, with its value for a shell.

    >>> spell(Argument("missing_rank", {"DNF": "last"})), spell(Argument("separator", ";"))
    ('--missing-rank DNF=last', '--separator ";"')
    """
    name, value = argument
    own = _COLUMNS if isinstance(argument, Column) else _OPTIONS
    option = own.get(name, f"--{name.replace('_', '-')}")
    if value is None:
        return option
    if isinstance(value, tuple):
        return " ".join(f"{option} {_quoted(each)}" for each in value)
    if isinstance(value, Mapping):
        return " ".join(f"{option} {_quoted(f'{word}={what}')}" for word, what in value.items())
    return f"{option} {_quoted(value)}"


def _quoted(value: str) -> str:
    """A value as a shell takes it."""
    return value if re.fullmatch(r"[\w.=:/-]+", value) else f'"{value}"'


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return spelled(error)


def spelled(message: object) -> str:
    """A message in the words of the command line, and harmless to a terminal."""
    if isinstance(message, ArgumentError | ArgumentWarning):
        message = message.spelled(spell)
    return _CONTROL.sub("\ufffd", str(message))


def _as_note(message: Warning | str, *rest: Any, **more: Any) -> None:
    note(spelled(message))
