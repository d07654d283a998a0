"""What is raised for a file of rankings that cannot be read."""

from tierrank.data.files import DataFileError


class PrefLibError(DataFileError):
    """A PrefLib file that cannot be read: says which, where in it, what is wrong and what to do."""


class JsonLinesError(DataFileError):
    """A file of JSON lines that cannot be read: says which, where, what is wrong and what to do."""
