"""What is raised for a table that cannot be read, and for a library that is not there."""

from __future__ import annotations

from pathlib import Path

from tierrank.data.files import DataFileError


class TableError(DataFileError):
    """A table that cannot be read: says which, where in it, what is wrong and what to do."""


def need_pyarrow(path: Path) -> None:
    """Say how to get pyarrow, where it is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        what = 'tables need pyarrow, which is not installed: pip install "tierrank[tables]".'
        raise TableError(path, None, what) from error
