"""The bytes of a text file, and how errors name a place in them."""

from __future__ import annotations

from pathlib import Path

from tierrank.data.files import DataFileError

_LONGEST_SHOWN = 40


class Text:
    """A file's bytes, without NUL and with a newline at the end.

    Attributes
    ----------
    path
        the file
    content
        what it holds, decompressed
    """

    def __init__(self, path: Path, content: bytes, error_class: type[DataFileError]) -> None:
        self.path = path
        self.content = content
        self._error_class = error_class
        if (nul := content.find(b"\0")) >= 0:
            raise self.error(nul, "there is a NUL byte: this is not a text file.")
        if not content.endswith(b"\n"):
            self.content += b"\n"

    def error(self, at: int, what: str) -> DataFileError:
        """Name the line and column of a place."""
        line_start = self.content.rfind(b"\n", 0, at) + 1
        line = self.content.count(b"\n", 0, line_start) + 1
        return self._error_class(self.path, line, what, column=at - line_start + 1)

    def file_error(self, line: int | None, what: str) -> DataFileError:
        """Name a line as a whole, or none."""
        return self._error_class(self.path, line, what)

    def shown(self, start: int, end: int) -> str:
        """A piece of the text as an error quotes it, cut if it is long."""
        return shown(self.content[start:end])


def shown(word: bytes) -> str:
    """A word as an error quotes it, cut if it is long."""
    text = word.decode(errors="backslashreplace")
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")
