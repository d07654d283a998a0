"""Numba, with its cache on disk where there is a folder to keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`numba.njit` of a function; kept on disk, or compiled once a process where that fails."""
    import numba  # takes half a second, so only where it is used

    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
