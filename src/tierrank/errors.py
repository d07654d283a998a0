"""Complaints and advice that name arguments, so that a command can spell them as its options.

And the checks that many arguments go through.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Argument(NamedTuple):
    """An argument that a message names, alone or with a value: `prior`, `prior="gaussian"`.

    The value may be several, or a mapping: `drop=['id']`, `missing_rank={'DNF': 'last'}`.
    """

    name: str
    value: str | tuple[str, ...] | Mapping[str, str] | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        if isinstance(self.value, Mapping):
            return f"{self.name}={dict(self.value)!r}"
        if isinstance(self.value, tuple):
            return f"{self.name}={list(self.value)!r}"
        return f'{self.name}="{self.value}"'


class Column(Argument):
    """An argument that is to name a column of a table: `rank=`."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.name}="


class InPython(str):
    """Part of a message that only somebody who calls from Python can make use of."""

    __slots__ = ()


class _Spelled:
    """A message in parts, where each `Argument` stands for itself.

    As text it speaks Python; `spelled` lets somebody else say what the arguments are called.
    """

    args: tuple[object, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """The message outside of Python, with `spell` of each argument in its place."""
        parts = (part for part in self.args if not isinstance(part, InPython))
        return "".join(spell(part) if isinstance(part, Argument) else str(part) for part in parts)


class ArgumentError(_Spelled, ValueError):
    """A bad value, or advice to give another argument.

    >>> error = ArgumentError("nobody beat 'b': use ", Argument("prior", "gaussian"))
    >>> print(error)
    nobody beat 'b': use prior="gaussian"
    >>> error.spelled(lambda argument: f"--{argument.name} {argument.value}")
    "nobody beat 'b': use --prior gaussian"
    """


class ArgumentWarning(_Spelled, UserWarning):
    """The same of something that goes on all the same."""


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Refuse what is no whole number from `least` on."""
    try:
        fits = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        fits = False
    if not fits:
        what = f" is a whole number, {least} or more, not {value!r}"
        raise ArgumentError(Argument(name), what)


def check_size(name: str, value: float, *, zero: bool = False) -> None:
    """Refuse what is no finite number above 0 (or 0, if that has a meaning)."""
    try:
        fits = math.isfinite(value) and (value > 0 or (zero and value == 0))
    except TypeError:
        fits = False
    if not fits:
        what = f" is a number above 0{' or 0' if zero else ''}, not {value!r}"
        raise ArgumentError(Argument(name), what)


def optional(library: str, what: str, extra: str) -> Any:
    """A library that not everybody installs; where it is missing, the command that brings it.

    >>> optional("no_such_library", "a picture", "plots")
    Traceback (most recent call last):
        ...
    ImportError: a picture needs no_such_library: pip install "tierrank[plots]"
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f'{what} needs {library}: pip install "tierrank[{extra}]"', name=library
        ) from error
