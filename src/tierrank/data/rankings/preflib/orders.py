"""The lines of a PrefLib file that hold the votes: ``count: 6,11,{1,2,3}``.

The grammar is regular, so that it can be checked for all lines at once: numbers and marks become
tokens, each with a role by what is around it, and a table says which role may follow which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank.data.text import Text

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

_CHUNK = 1 << 22  # bytes at a time, so that the arrays of tokens stay small
_MOST_DIGITS = 15

_BLANK, _DIGIT, _COMMA, _OPEN, _CLOSE, _COLON, _NEWLINE, _OTHER = range(8)
_KIND = np.full(256, _OTHER, dtype=np.uint8)
for _characters, _kind in (
    (b" \t\r", _BLANK), (b"0123456789", _DIGIT), (b",", _COMMA), (b"{", _OPEN), (b"}", _CLOSE),
    (b":", _COLON), (b"\n", _NEWLINE),
):  # fmt: skip
    _KIND[list(_characters)] = _kind

# Roles: those that numbers and commas play come behind the kinds of the other marks.
_COUNT, _ITEM_IN_TIE, _COMMA_IN_TIE = 8, 9, 10
_ITEM = _DIGIT
_FOLLOWERS = {
    _NEWLINE: ((_NEWLINE, _COUNT), "a count"),
    _COUNT: ((_COLON,), "a colon behind the count"),
    _COLON: ((_ITEM, _OPEN, _NEWLINE), "an alternative"),  # or nothing: an empty ballot
    _ITEM: ((_COMMA, _NEWLINE), "a comma or the end of the line"),
    _COMMA: ((_ITEM, _OPEN), "an alternative"),
    _OPEN: ((_ITEM_IN_TIE, _CLOSE), "an alternative"),
    _ITEM_IN_TIE: ((_COMMA_IN_TIE, _CLOSE), "a comma or a closing brace"),
    _COMMA_IN_TIE: ((_ITEM_IN_TIE,), "an alternative"),
    _CLOSE: ((_COMMA, _NEWLINE), "a comma or the end of the line"),
}
_MAY_FOLLOW = np.zeros((11, 11), dtype=bool)
for _role, (_next, _) in _FOLLOWERS.items():
    _MAY_FOLLOW[_role, list(_next)] = True


class Orders(NamedTuple):
    """All orders of a file, flat.

    Attributes
    ----------
    counts
        [orders] how often each was given
    lines
        [orders] where it stands, counted from 1
    n_groups
        [orders] number of its groups: single alternatives and pairs of braces; 0 if it is empty
    group_sizes
        [groups] number of alternatives, 0 for empty braces
    braced
        numbers of the groups that are one alternative in braces
    alternatives
        [entries] their numbers, as written
    blank_between_groups, blank_in_ties
        whether a blank stands behind the first comma of that kind; None without commas
    """

    counts: IntArray
    lines: IntArray
    n_groups: IntArray
    group_sizes: IntArray
    braced: IntArray
    alternatives: IntArray
    blank_between_groups: bool | None
    blank_in_ties: bool | None


def split_orders(text: Text, start: int) -> Orders:
    """Split everything behind the header; says where the text is no list of orders."""
    line = text.content.count(b"\n", 0, start) + 1
    groups = 0
    parts: list[Orders] = []
    for at, end in _chunks(text.content, start):
        part = _split_chunk(text, at, end, line)
        parts.append(part._replace(braced=part.braced + groups))
        line += text.content.count(b"\n", at, end)
        groups += len(part.group_sizes)

    def joined(name: str) -> IntArray:
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *(getattr(part, name) for part in parts)])

    def first(name: str) -> bool | None:
        return next((v for part in parts if (v := getattr(part, name)) is not None), None)

    return Orders(
        counts=joined("counts"),
        lines=joined("lines"),
        n_groups=joined("n_groups"),
        group_sizes=joined("group_sizes"),
        braced=joined("braced"),
        alternatives=joined("alternatives"),
        blank_between_groups=first("blank_between_groups"),
        blank_in_ties=first("blank_in_ties"),
    )


def _chunks(content: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Pieces of whole lines; the content ends with a newline."""
    while start < len(content):
        end = content.find(b"\n", min(start + _CHUNK, len(content)) - 1) + 1
        yield start, end
        start = end


def _split_chunk(text: Text, start: int, end: int, line: int) -> Orders:
    raw = np.frombuffer(text.content, dtype=np.uint8, count=end - start, offset=start)
    kinds = _KIND[raw]
    strange = kinds == _OTHER
    if strange.any():
        at = start + int(strange.argmax())
        raise text.error(at, f"{_named(text, at)} does not belong here. {_AN_ORDER}")
    digit = kinds == _DIGIT
    begins = digit & ~np.append(False, digit[:-1])
    places = np.flatnonzero(begins | (kinds > _DIGIT))
    tokens = kinds[places]
    roles = _roles(tokens)
    _check_roles(text, start + places, roles)
    numbers = _numbers(text, raw, start, places[tokens == _DIGIT], digit)
    of_number = roles[tokens == _DIGIT]
    order = np.cumsum(roles == _COUNT) - 1
    begins_group = (roles == _ITEM) | (roles == _OPEN)
    group = np.cumsum(begins_group) - 1
    n_orders, n_groups = int(order[-1]) + 1, int(group[-1]) + 1
    is_item = (roles == _ITEM) | (roles == _ITEM_IN_TIE)
    sizes = np.bincount(group[is_item], minlength=n_groups)
    opened = group[roles == _OPEN]
    return Orders(
        counts=numbers[of_number == _COUNT],
        lines=line + np.cumsum(tokens == _NEWLINE)[roles == _COUNT],
        n_groups=np.bincount(order[begins_group], minlength=n_orders),
        group_sizes=sizes,
        braced=opened[sizes[opened] == 1],
        alternatives=numbers[of_number != _COUNT],
        blank_between_groups=_blank_behind(kinds, places[roles == _COMMA]),
        blank_in_ties=_blank_behind(kinds, places[roles == _COMMA_IN_TIE]),
    )


def _roles(tokens: ByteArray) -> ByteArray:
    """What each token is for: a number may be a count, an item, or an item in a tie."""
    roles = tokens.copy()
    in_tie = np.cumsum((tokens == _OPEN).astype(np.int64) - (tokens == _CLOSE)) > 0
    roles[(tokens == _DIGIT) & in_tie] = _ITEM_IN_TIE
    roles[(tokens == _COMMA) & in_tie] = _COMMA_IN_TIE
    at_line_start = np.append(True, tokens[:-1] == _NEWLINE)
    roles[(tokens == _DIGIT) & at_line_start] = _COUNT
    return roles


def _check_roles(text: Text, places: IntArray, roles: ByteArray) -> None:
    # Up to the first mistake the roles are right, so the first one that is found is the first.
    previous = np.append(np.uint8(_NEWLINE), roles[:-1])
    wrong = ~_MAY_FOLLOW[previous, roles]
    if not wrong.any():
        return
    token = int(wrong.argmax())
    at = int(places[token])
    expected = _FOLLOWERS[int(previous[token])][1]
    raise text.error(at, f"{_named(text, at)} stands where {expected} should. {_AN_ORDER}")


_AN_ORDER = "An order is a line such as 12: 6,11,{1,2}."


def _named(text: Text, at: int) -> str:
    if text.content[at : at + 1] == b"\n":
        return "the end of the line"
    if text.content[at : at + 1] == b"#":
        return "a header line (they come before all orders)"
    end = at + 1
    while text.content[at:end].isdigit() and text.content[end : end + 1].isdigit():
        end += 1
    while text.content[end] & 0xC0 == 0x80:  # the rest of a character in UTF-8
        end += 1
    return text.shown(at, end)


def _numbers(
    text: Text, raw: ByteArray, start: int, begins: IntArray, digit: npt.NDArray[np.bool_]
) -> IntArray:
    """The values of the numbers that begin at these places."""
    ends = np.flatnonzero(digit & ~np.append(digit[1:], False)) + 1
    lengths = ends - begins
    longest = int(lengths.max(initial=0))
    if longest > _MOST_DIGITS:
        at = start + int(begins[(lengths > _MOST_DIGITS).argmax()])
        raise text.error(at, f"the number {_named(text, at)} is too large.")
    values = np.zeros(len(begins), dtype=np.int64)
    for place in range(longest):
        more = lengths > place
        values[more] = values[more] * 10 + (raw[begins[more] + place] - np.uint8(ord("0")))
    return values


def _blank_behind(kinds: ByteArray, commas: IntArray) -> bool | None:
    return bool(kinds[commas[0] + 1] == _BLANK) if len(commas) else None
