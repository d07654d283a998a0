"""Numba, with its cache on disk where there is a folder to keep it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from logging import getLogger
from pathlib import Path
from typing import Any


def compiled(function: Callable[..., Any], *, sources: str, **options: Any) -> Callable[..., Any]:
    """`numba.njit` of a function; kept on disk, or compiled once a process where that fails.

    Numba's cache looks at the function's own file only, and at its time and size, not its text.
    But compiled code holds what it calls and the constants it reads from other files too, and
    wheels may give all files of all versions one time. So `sources`, a digest of everything that
    goes in, becomes part of the function's name, and with it of the cache's.
    """
    import numba  # takes half a second, so only where it is used

    function.__qualname__ = f"{function.__qualname__}_{sources}"
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]


def announce(file: str, sources: str, message: str) -> None:
    """Warn that the code of a file is about to be compiled, if nothing of it is kept yet.

    Silent where the cache is kept elsewhere than beside the file: that is not for us to tell.
    """
    cache = Path(file).parent / "__pycache__"
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(cache, os.W_OK):
        return
    if not any(cache.glob(f"*{sources}*")):
        getLogger("tierrank").warning(message)


def digest(files: Iterable[Path]) -> str:
    """A short digest of the contents of files."""
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:12]
