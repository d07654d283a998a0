"""What is raised for a file of the XC repository's formats that cannot be read."""

from tierrank.data.files import DataFileError


class XCError(DataFileError):
    """An XC file that cannot be read: says which, where in it, what is wrong and what to do."""
