"""Messages of the library in the words of the command line: `prior="gaussian"` is `--prior`."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

# Arguments that have an option of another name, or of the same.
_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "list", "item", "rank", "score", "weight", "rest", "missing_rank", "twice", "first",
        "second", "winner", "loser", "first_rank", "second_rank", "neutral", "first_score",
        "second_score", "winner_as", "separator", "format",
        "prior", "model", "ties", "home", "uncertainty", "solver", "max_iter", "level",
        "kind", "exclude", "min_games", "component",
    )
} | {"top_k": "--top-k", "tie_words": "--tie-word", "objective": "--model"}  # fmt: skip
_COUNTS = {"wins": "--first-wins and --second-wins", "ties": "--tied"}

_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_MAPPED = re.compile(rf"\b({_NAMES})=\{{(['\"])(.*?)\2: (['\"])(\w+)\4\}}")
_VALUED = re.compile(rf"\b({_NAMES})=(['\"])(.*?)\2")
_BARE = re.compile(rf"\b({_NAMES}|wins)=(?!\w)(?: \(two columns\))?")
_FOR = re.compile(rf"\(for ({_NAMES}|wins)\)")
_SUBJECT = re.compile(rf"^({_NAMES}) is ")
_OR = re.compile(r'(?<=\w)( or )"([\w-]+)"')
_WORDS = re.compile(r"\b(max_iter|tie_words|winner_as|missing_rank)\b")
# What a terminal would obey, but for the line break.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def spelled(message: str) -> str:
    """A message in the words of the command line, and harmless to a terminal."""
    message = message.replace("it is None, ", "it is none, ")
    message = re.sub(r"\s+with\s+leave_out\b", "", message)
    message = _SUBJECT.sub(lambda m: f"{_OPTIONS[m[1]]} is ", message)
    message = _MAPPED.sub(lambda m: f"{_OPTIONS[m[1]]} {_quoted(m[3] + '=' + m[5])}", message)
    valued = _VALUED.sub(lambda m: f"{_OPTIONS[m[1]]} {_quoted(m[3])}", message)
    message = message if valued == message else _OR.sub(r"\1\2", valued)
    both = _OPTIONS | _COUNTS
    message = _BARE.sub(lambda m: both[m[1]], message)
    message = _FOR.sub(lambda m: f"(for {both[m[1]]})", message)
    message = _WORDS.sub(lambda m: _OPTIONS[m[1]], message)
    return _CONTROL.sub("\ufffd", message)


def in_words(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command refuse and warn in its own words."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        show = warnings.showwarning
        warnings.showwarning = lambda message, *rest: show(spelled(str(message)), *rest)
        try:
            command(**options)
        except ValueError as error:
            raise ValueError(spelled(str(error))) from None

    return run


def _quoted(value: str) -> str:
    """A value as a shell takes it."""
    plain = re.fullmatch(r"[\w.=:/-]+", value)
    return value if plain else f'"{value}"'


# What the readers of tables call arguments, as the commands have them.
_TABLES = {
    r"\bseparator=('[^']+')": r"--separator \1",
    r"\bdrop=\[('[^']*')\]": r"--drop \1",
    r"\bname the column in drop\b": "leave the column out by --drop",
    r"\(for (label|query|drop)\)": r"(for --\1)",
    r", or pass a larger max_expansion= to the reader": "",
}


def of_tables(said: str) -> str:
    """A message of a reader of tables in the words of the command line."""
    for argument, option in _TABLES.items():
        said = re.sub(argument, option, said)
    return said
