"""The first line of an XC text file: how many rows, features and labels follow."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tierrank.data.text.source import Text, shown

HeaderOption = Literal["auto", True, False]

MARK = b"\xef\xbb\xbf"  # that some editors begin UTF-8 with

_LONGEST = 100  # bytes: a longer line is a row
_NUMBERS = {2: "two", 3: "three"}


class Header(NamedTuple):
    """What the first line says, and where the rows begin."""

    sizes: tuple[int, ...] | None  # None if there is no header
    rows_at: int
    first_line: int  # of the rows, counted from 1


def read_header(text: Text, names: tuple[str, ...], option: HeaderOption) -> Header:
    """Read the header, if there is one.

    Parameters
    ----------
    names
        what its numbers mean: ("rows", "features", "labels"), or two of them
    option
        whether there is one; "auto" for one if the first line is as many whole numbers
    """
    content = text.content
    start = header_start(text)
    end = content.index(b"\n", start)
    words = content[start:end].split() if end - start <= _LONGEST else []
    numbers = all(word.isdigit() for word in words)
    if option is not False and numbers and len(words) == len(names):
        return Header(tuple(int(word) for word in words), end + 1, 2)
    if option is True:
        raise text.error(
            start,
            f"the first line is {shown(content[start:end].strip())}, but header=True says that it "
            f"is the header: {expected(names)}.",
        )
    if option == "auto" and numbers and len(words) in (2, 3):
        # Not a row either, so a header of the other format.
        raise text.error(
            start,
            f"the header has {_NUMBERS[len(words)]} numbers, and should be {expected(names)}. "
            f"{_OTHER[len(words)]}",
        )
    return Header(None, start, 1)


def header_start(text: Text) -> int:
    """Where the first line begins."""
    return len(MARK) if text.content.startswith(MARK) else 0


def expected(names: tuple[str, ...]) -> str:
    """What a header looks like, in words."""
    listed = ", ".join(names[:-1]) + " and " + names[-1]
    return f"{_NUMBERS[len(names)]} whole numbers, of {listed}"


_OTHER = {
    2: "If features and labels are in two files, give that of the labels as labels=.",
    3: "If features and labels are both in this file, use read_xc without labels=.",
}
