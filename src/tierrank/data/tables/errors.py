"""What is raised for a table that cannot be read, and for a library that is not there."""

from __future__ import annotations

from pathlib import Path

from tierrank.data.files import DataFileError

_LONGEST_SHOWN = 40


class TableError(DataFileError):
    """A table that cannot be read: says which, where in it, what is wrong and what to do."""


def need_pyarrow(path: Path) -> None:
    """Say how to get pyarrow, where it is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        what = 'tables need pyarrow, which is not installed: pip install "tierrank[tables]".'
        raise TableError(path, None, what) from error


def shown(value: object) -> str:
    """A value as an error shows it, cut if it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")
