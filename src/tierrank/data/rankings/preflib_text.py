"""PrefLib's files, read and written: lines ``# KEY: value``, and lines ``count: 6,11,{1,2,3}``.

The grammar of the orders is regular, so that it can be checked for all lines at once: numbers and
marks become tokens, each with a role by what is around it, and a table says which role may follow
which.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tierrank._types import BoolArray, IntArray, ObjectArray
from tierrank.data.files import Text, expands, without_compression, writing
from tierrank.data.rankings.preflib import (
    ALTERNATIVE,
    CATEGORY,
    N_ALTERNATIVES,
    N_CATEGORIES,
    N_UNIQUE,
    N_VOTERS,
    NOTHING,
    RELATED_FILES,
    SUFFIXES,
    TEXTS,
    DataType,
    Doubts,
    Header,
    PrefLib,
    PrefLibError,
    Style,
    check_stated,
    distinct_names,
    file_names,
    header_lines,
    is_known,
    numbered_names,
    split_header,
    stated_type,
    type_fault,
)
from tierrank.tiers import Tiers

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
_LISTS_AT_A_TIME = 1 << 16


@expands
def read_preflib(
    path: str | PathLike[str], *, strict: bool = False, max_expansion: float | None = None
) -> PrefLib:
    """Read a PrefLib file: soc, soi, toc, toi or cat.

    The orders must be what the type says: without ties in soc and soi, with all alternatives in
    soc and toc. Some of PrefLib's own files number from 0, state other numbers than there are, or
    have empty ballots. Since only one reading is possible, they are read so, and a warning says
    what was assumed: numbers as the names have them, or as an order shows that lists all of them;
    what was counted; and the other ballots. `write_preflib` then writes what was assumed.

    Parameters
    ----------
    path : path-like
        The file; decompressed if the name ends in .gz, .xz or .bz2.
    strict : bool
        True to refuse such files.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    PrefLib
        The orders with their header; its `rankings` are for the aggregators.

    Raises
    ------
    PrefLibError
        A `ValueError` that names the file and the line, and says what to do.

    See Also
    --------
    read_rankings : Of any format, by its name.
    write_preflib : Writes such a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_preflib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "lunch.toi")
    ...     _ = file.write_text('''# TITLE: Lunch
    ... # ALTERNATIVE NAME 1: soup
    ... # ALTERNATIVE NAME 2: rice
    ... # ALTERNATIVE NAME 3: cake
    ... 4: 3,{1,2}
    ... 2: 1
    ... ''')
    ...     lunch = read_preflib(file)
    >>> lunch
    PrefLib(toi, 'Lunch': 3 alternatives, 6 voters, 2 unique orders)
    >>> lunch.rankings
    Rankings(2 lists of weight 6, 3 items)
      4 × cake > {soup, rice}
      2 × soup
    """
    return read_with(Path(path), strict=strict, stacklevel=3)  # past the wrapper


def read_with(path: Path, *, strict: bool, stacklevel: int) -> PrefLib:
    """Read a file; a warning of doubts is for the caller that many levels up."""
    doubts = Doubts(strict)
    text = Text(path, PrefLibError)
    header = split_header(text)
    suffix = SUFFIXES.get(without_compression(path).suffix.lower())
    data_type = stated_type(header, text, suffix)
    alternatives, lowest = numbered_names(header, ALTERNATIVE, N_ALTERNATIVES, text, doubts)
    categories: tuple[str, ...] = ()
    if data_type == "cat":
        categories, _ = numbered_names(header, CATEGORY, N_CATEGORIES, text, doubts)
    orders = _split_orders(text, header.end)
    _check_numbers(orders, header, text, doubts)
    orders = _without_empty(orders, data_type, text, doubts)
    _check_groups(orders, data_type, len(categories), text)
    tiers = _tiers_of(orders, lowest, distinct_names(alternatives), text, doubts)
    fault = type_fault(tiers, data_type)
    if fault is not None:
        raise text.file_error(int(orders.lines[fault[0]]), fault[1])
    filled = orders.group_sizes > 0
    tier_of_group = np.cumsum(filled) - 1
    fields = header.fields
    doubts.warn(path, stacklevel + 1)
    return PrefLib(
        orders=tiers,
        counts=orders.counts,
        data_type=data_type,
        alternative_names=alternatives,
        categories=categories,
        tier_categories=_place_in_order(orders)[filled] if data_type == "cat" else None,
        related_files=file_names(fields.get(RELATED_FILES, NOTHING).value),
        other={key: field.value for key, field in fields.items() if not is_known(key)},
        header=header.lines,
        style=Style(
            between_tiers=", " if orders.blank_between_groups else ",",
            in_ties=", " if orders.blank_in_ties else ",",
            braced=tuple(tier_of_group[orders.braced].tolist()),
        ),
        **{attribute: fields.get(key, NOTHING).value for key, attribute in TEXTS.items()},
    )


def _check_numbers(orders: _Orders, header: Header, text: Text, doubts: Doubts) -> None:
    """Compare the header's counts with what is there."""
    voters = int(orders.counts.sum())
    for key, found, what in (
        (N_VOTERS, voters, "are {} voters"),
        *((key, len(orders.counts), "are {} lines of orders") for key in N_UNIQUE),
    ):
        check_stated(header, key, found, what, text, doubts)


def _without_empty(orders: _Orders, data_type: DataType, text: Text, doubts: Doubts) -> _Orders:
    """Leave out ballots that name nobody."""
    order_of_group = np.repeat(np.arange(len(orders.n_groups)), orders.n_groups)
    sizes = np.bincount(order_of_group, orders.group_sizes, minlength=len(orders.n_groups))
    kept = sizes > 0
    if not kept.all():
        what = "no category has an alternative" if data_type == "cat" else "the order is empty"
        doubts.settle(
            text.file_error(
                int(orders.lines[kept.argmin()]), f"{what}: leave the line out, and its voters."
            ),
            f"{what}: it was left out, like all such ballots of {orders.counts[~kept].sum():,} "
            "voters",
        )
        kept_groups = kept[order_of_group]
        orders = orders._replace(
            counts=orders.counts[kept],
            lines=orders.lines[kept],
            n_groups=orders.n_groups[kept],
            group_sizes=orders.group_sizes[kept_groups],
            braced=(np.cumsum(kept_groups) - 1)[orders.braced],
        )
    if not orders.counts.any():
        raise text.file_error(None, "there is no order behind the header that anyone gave.")
    return orders


def _check_groups(orders: _Orders, data_type: DataType, categories: int, text: Text) -> None:
    """Braces may be empty in a cat file alone, where every category has its place."""
    order_of_group = np.repeat(np.arange(len(orders.n_groups)), orders.n_groups)
    if data_type != "cat":
        if not orders.group_sizes.all():
            order = order_of_group[(orders.group_sizes == 0).argmax()]
            raise text.file_error(
                int(orders.lines[order]), "there are empty braces: leave them out."
            )
        return
    wrong = orders.n_groups != categories
    if wrong.any():
        order = int(wrong.argmax())
        raise text.file_error(
            int(orders.lines[order]),
            f"there are {orders.n_groups[order]} groups for {categories} categories: write {{}} "
            "for a category without alternatives.",
        )


def _tiers_of(
    orders: _Orders, lowest: int, names: tuple[str, ...], text: Text, doubts: Doubts
) -> Tiers:
    """Check the alternatives, and give the groups that are not empty as tiers."""
    groups_end = np.append(0, np.cumsum(orders.n_groups))
    entries_end = np.append(0, np.cumsum(orders.group_sizes))
    sizes = np.diff(entries_end[groups_end])
    items = orders.alternatives - lowest

    def line_of_entry(entry: int) -> int:
        return int(orders.lines[np.searchsorted(entries_end[groups_end], entry, side="right") - 1])

    outside = (items < 0) | (items >= len(names))
    if outside.any():
        entry = int(outside.argmax())
        error = text.file_error(
            line_of_entry(entry),
            f"there is no alternative {orders.alternatives[entry]}: they are {lowest} to "
            f"{lowest + len(names) - 1}.",
        )
        other = 1 - lowest
        items = orders.alternatives - other
        # An order of all alternatives has the number of each, so that it shows how they count.
        if ((items < 0) | (items >= len(names))).any() or sizes.max() < len(names):
            raise error
        doubts.settle(
            error,
            f"orders count alternatives from {other}, though their names do from {lowest}",
        )
        lowest = other
    order_of_entry = np.repeat(np.arange(len(orders.counts)), sizes)
    key = order_of_entry * len(names) + items
    in_order = np.sort(key)
    twice = in_order[1:] == in_order[:-1]
    if twice.any():
        order, item = divmod(int(in_order[twice.argmax()]), len(names))
        raise text.file_error(
            int(orders.lines[order]),
            f"alternative {item + lowest} ({names[item]}) stands twice in the order: name it once.",
        )
    filled = orders.group_sizes > 0
    per_list = np.diff(np.append(0, np.cumsum(filled))[groups_end])
    return Tiers(
        items=torch.from_numpy(items),
        tier_offsets=torch.from_numpy(np.append(0, np.cumsum(orders.group_sizes[filled]))),
        list_offsets=torch.from_numpy(np.append(0, np.cumsum(per_list))),
        n_items=len(names),
        names=names,
    )


def _place_in_order(orders: _Orders) -> IntArray:
    """[groups] which group of its order each is, from 0."""
    starts = np.cumsum(orders.n_groups) - orders.n_groups
    return np.arange(len(orders.group_sizes)) - np.repeat(starts, orders.n_groups)


# The orders ---------------------------------------------------------------------------------------


class _Orders(NamedTuple):
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


def _split_orders(text: Text, start: int) -> _Orders:
    """Split everything behind the header; says where the text is no list of orders."""
    line = text.content.count(b"\n", 0, start) + 1
    groups = 0
    parts: list[_Orders] = []
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

    return _Orders(
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


def _split_chunk(text: Text, start: int, end: int, line: int) -> _Orders:
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
    return _Orders(
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
    text: Text, raw: ByteArray, start: int, begins: IntArray, digit: BoolArray
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


# Writing ------------------------------------------------------------------------------------------


def write_preflib(preflib: PrefLib, path: str | PathLike[str]) -> None:
    r"""Write a PrefLib file.

    What `read_preflib` gave is written as it was: the lines of the header that are still true, in
    their order, and the orders as they were spelt. (Blanks in unusual places, empty lines and the
    line ends of Windows are not kept.) The file is written beside and renamed.

    Parameters
    ----------
    preflib : PrefLib
        The rankings with their header; `PrefLib.from_rankings` makes one.
    path : path-like
        The file; compressed if the name ends in .gz, .xz or .bz2.

    Raises
    ------
    ValueError
        The name does not end in the type of the data.

    See Also
    --------
    read_preflib : Reads it again.
    PrefLib.from_rankings : Of rankings from elsewhere.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import PrefLib, Rankings, write_preflib
    >>> votes = Rankings.from_rankings(
    ...     [["ann", ("bob", "cy")], ["cy", "bob", "ann"]], weights=[4, 2]
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "lunch.toc")
    ...     write_preflib(PrefLib.from_rankings(votes), file)
    ...     print(*file.read_text().splitlines()[-2:], sep="\n")
    4: 1,{2,3}
    2: 3,2,1
    """
    path = Path(path)
    suffix = SUFFIXES.get(without_compression(path).suffix.lower())
    if suffix is not None and suffix != preflib.data_type:
        raise ValueError(
            f"{path}: the data type is {preflib.data_type}: let the name end in "
            f".{preflib.data_type}."
        )
    with writing(path) as file:
        for line in header_lines(preflib):
            file.write(f"{line}\n".encode(errors="surrogateescape"))
        for lines in _orders(preflib):
            file.write(lines.encode())


def _orders(preflib: PrefLib) -> Iterator[str]:
    """The lines of the orders, many at a time."""
    tiers = preflib.orders
    words = np.array([str(number + 1) for number in range(tiers.n_items or 0)], dtype=object)
    items, tier_offsets = tiers.items.cpu().numpy(), tiers.tier_offsets.cpu().numpy()
    list_offsets = tiers.list_offsets.cpu().numpy()
    before, after = _around_tiers(preflib)
    for start in range(0, len(tiers), _LISTS_AT_A_TIME):
        end = min(start + _LISTS_AT_A_TIME, len(tiers))
        first_tier, end_tier = int(list_offsets[start]), int(list_offsets[end])
        borders = tier_offsets[first_tier : end_tier + 1]
        pieces: ObjectArray = np.empty((int(borders[-1] - borders[0]), 3), dtype=object)
        pieces[:, 0] = ""
        pieces[:, 1] = words[items[borders[0] : borders[-1]]]
        pieces[:, 2] = preflib.style.in_ties
        pieces[borders[:-1] - borders[0], 0] = before[first_tier:end_tier]
        pieces[borders[1:] - 1 - borders[0], 2] = after[first_tier:end_tier]
        yield "".join(pieces.ravel().tolist())


def _around_tiers(preflib: PrefLib) -> tuple[ObjectArray, ObjectArray]:
    """[tiers] what stands before and behind each: braces, separators, counts and line ends."""
    tiers = preflib.orders
    list_offsets = tiers.list_offsets.cpu().numpy()
    sizes = tiers.tier_sizes.cpu().numpy()
    separator = preflib.style.between_tiers
    braced = sizes > 1
    spelt = np.array(preflib.style.braced, dtype=np.int64)
    braced[spelt[spelt < len(sizes)]] = True
    before: ObjectArray = np.where(braced, "{", "").astype(object)
    after: ObjectArray = np.where(braced, "}", "").astype(object)
    first, last = list_offsets[:-1], list_offsets[1:] - 1
    is_last = np.zeros(len(sizes), dtype=bool)
    is_last[last] = True
    if preflib.tier_categories is not None:
        before, after = _with_empty(preflib, first, last, before, after)
    after += np.where(is_last, "\n", separator).astype(object)
    counts: list[Any] = preflib.counts.tolist()
    before[first] = np.array([f"{count}: " for count in counts], dtype=object) + before[first]
    return before, after


def _with_empty(
    preflib: PrefLib, first: Any, last: Any, before: ObjectArray, after: ObjectArray
) -> tuple[ObjectArray, ObjectArray]:
    """Empty braces for the categories between two tiers of a list, and at its ends."""
    categories = preflib.tier_categories
    assert categories is not None
    separator = preflib.style.between_tiers
    left_out = np.diff(categories, prepend=-1) - 1
    left_out[first] = categories[first]
    behind = np.zeros_like(categories)
    behind[last] = len(preflib.categories) - 1 - categories[last]
    many = range(len(preflib.categories))
    ahead = np.array([f"{{}}{separator}" * n for n in many], dtype=object)
    trailing = np.array([f"{separator}{{}}" * n for n in many], dtype=object)
    return ahead[left_out] + before, after + trailing[behind]
