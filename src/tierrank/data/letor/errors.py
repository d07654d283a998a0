"""What is raised for a LETOR file that cannot be read."""

from tierrank.data.files import DataFileError


class LetorError(DataFileError):
    """A LETOR file that cannot be read: says which, where in it, what is wrong and what to do."""
