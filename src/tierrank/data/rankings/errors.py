"""What is raised for a file of rankings that cannot be read."""

from __future__ import annotations

import warnings

from tierrank.data.files import DataFileError


class PrefLibError(DataFileError):
    """A PrefLib file that cannot be read: says which, where in it, what is wrong and what to do."""


class JsonLinesError(DataFileError):
    """A file of JSON lines that cannot be read: says which, where, what is wrong and what to do."""


class Doubts:
    """What a file gets wrong but leaves no doubt about: an error if strict, else an assumption.

    Parameters
    ----------
    strict
        whether to raise instead of assuming
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.assumed: list[str] = []

    def settle(self, error: DataFileError, assumed: str) -> None:
        """Raise the error, or note what is assumed in its place."""
        if self.strict:
            raise error
        self.assumed.append(f"{'' if error.line is None else f'line {error.line}: '}{assumed}")

    def warn(self, path: object, stacklevel: int) -> None:
        """Say in one warning what was assumed, if anything was."""
        if self.assumed:
            warnings.warn(f"{path}: {'; '.join(self.assumed)}.", stacklevel=stacklevel + 1)
