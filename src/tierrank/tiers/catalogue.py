"""The catalogue: from the names of items to their numbers, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import is_missing, list_of_entry, preview, range_at


class Catalogue(NamedTuple):
    """Items 0 .. size - 1, with names or without."""

    size: int
    names: tuple[Any, ...] | None

    @property
    def items(self) -> Sequence[Any]:
        """What the user calls the items: their names, or their numbers if they have none."""
        return range(self.size) if self.names is None else self.names

    def name(self, code: int) -> Any:
        """Give what the user calls this item."""
        return code if self.names is None else self.names[code]


def read_catalogue(items: Any) -> Catalogue | None:
    """Give the catalogue that the user states, if any: a number of items, or their names."""
    if items is None:
        return None
    if isinstance(items, int | np.integer) and not isinstance(items, bool):
        if items < 0:
            raise ValueError(f"items = {items}: the number of items cannot be negative.")
        return Catalogue(int(items), None)
    if isinstance(items, range) and items == range(len(items)):
        return Catalogue(len(items), None)
    if isinstance(items, str | bytes | set | frozenset | bool) or not isinstance(items, Iterable):
        raise ValueError(
            f"items must be a sequence of names, or the number of items, not {preview(items)} "
            f"({type(items).__name__})."
        )
    names = plain_list(items)
    try:
        numbers = {name: i for i, name in enumerate(names)}
    except TypeError as error:
        raise ValueError(f"items must be hashable, such as numbers or strings: {error}.") from None
    if len(numbers) < len(names):
        twice = next(i for i, name in enumerate(names) if numbers[name] != i)
        raise ValueError(
            f"items[{twice}] and items[{numbers[names[twice]]}] are both {preview(names[twice])}: "
            "give each item once."
        )
    _refuse_missing(names)
    return Catalogue(len(names), None if are_numbers(names) else tuple(names))


def are_numbers(names: Sequence[Any]) -> bool:
    """Whether names are just 0, 1, ... in order: these are no names, so that all say the same."""
    return len(names) > 0 and all(
        _is_number(name, len(names)) and name == number for number, name in enumerate(names)
    )


def catalogue_of(known: Iterable[Any]) -> Catalogue:
    """Give the catalogue of the names that occur, none twice, where the user states none.

    Where they are just the integers 0 .. size - 1, these are the numbers of the items, whatever
    came first: `log_worths_[3]` is then that of item 3. All other names keep the order in which
    they appeared.
    """
    names = tuple(known)
    if names and all(_is_number(name, len(names)) for name in names):
        return Catalogue(len(names), None)
    return Catalogue(len(names), names)


def encode(
    names: list[Any], borders: IntArray, stated: Catalogue | None
) -> tuple[IntArray, Catalogue]:
    """Give the number of every name, and the catalogue.

    Parameters
    ----------
    names
        of the items of all lists, one list after the other
    borders
        [lists + 1] ranges of `names`, to say in which list something is wrong
    stated
        the catalogue; None makes one of the names, by `catalogue_of`
    """
    if stated is not None and stated.names is None:
        return _encode_numbers(names, borders, stated), stated
    try:
        if stated is None:
            stated = catalogue_of(dict.fromkeys(names))
        numbers = dict(zip(stated.items, range(stated.size), strict=True))
        codes = np.fromiter(map(numbers.get, names, repeat(-1)), dtype=np.int64, count=len(names))
    except TypeError:
        at = next(i for i, name in enumerate(names) if not _hashable(name))
        raise ValueError(
            f"list {range_at(borders, at)}: item {preview(names[at])} cannot be a name, because a "
            f"{type(names[at]).__name__} is not hashable. Use numbers or strings as names, and a "
            "tuple or a set for a tie."
        ) from None
    _refuse_missing(stated.names or (), codes, borders)
    _refuse_unknown(codes < 0, names, borders, stated)
    return codes, stated


def encode_array(
    values: AnyArray, borders: IntArray, stated: Catalogue | None
) -> tuple[IntArray, Catalogue]:
    """Give the same as `encode` for an integer array, where the items are the numbers 0, 1, ..."""
    if stated is not None and stated.names is not None:
        return encode(values.tolist(), borders, stated)
    if stated is None:
        stated = Catalogue(max(int(values.max()) + 1, 0) if len(values) else 0, None)
    _refuse_unknown((values < 0) | (values >= stated.size), values, borders, stated)
    return values.astype(np.int64), stated


def entry_keys(codes: IntArray, borders: IntArray, size: int) -> IntArray:
    """Give one integer for every (list, item), that sorts by list and then by item."""
    if (len(borders) - 1) * size >= 1 << 62:
        raise ValueError(
            f"a catalogue of {size} items is too large for {len(borders) - 1} lists: give the "
            "names that occur as items=."
        )
    return list_of_entry(borders) * size + codes


def plain_list(values: Iterable[Any]) -> list[Any]:
    """Give a list of Python objects: the elements of an array become ordinary numbers."""
    if isinstance(values, Tensor) or hasattr(values, "tolist"):
        as_list = values.tolist()
        return as_list if isinstance(as_list, list) else [as_list]
    return list(values)


def lists_of(lists: Any, what: str, hint: str) -> list[list[Any]]:
    """Give every list as a Python list; refuse what has no order or is no list at all."""
    if isinstance(lists, str | bytes) or not isinstance(lists, Iterable):
        raise ValueError(f"{what}s must be one sequence a list, not {preview(lists)}. {hint}")
    result = []
    for number, one in enumerate(lists):
        unordered = isinstance(one, set | frozenset | Mapping)
        scalar = getattr(one, "ndim", 1) == 0
        if unordered or scalar or isinstance(one, str | bytes) or not isinstance(one, Iterable):
            reason = "has no order" if unordered else f"is not a sequence ({type(one).__name__})"
            raise ValueError(f"list {number}: {preview(one)} {reason}. {hint}")
        result.append(plain_list(one))
    return result


def _encode_numbers(names: list[Any], borders: IntArray, stated: Catalogue) -> IntArray:
    kinds = set(map(type, names))
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        try:
            values = np.fromiter(names, dtype=np.int64, count=len(names))
            return encode_array(values, borders, stated)[0]
        except OverflowError:
            pass
    unknown = np.fromiter((not _is_number(name, stated.size) for name in names), bool, len(names))
    _refuse_unknown(unknown, names, borders, stated)
    raise AssertionError("unreachable")  # pragma: no cover


def _is_number(name: object, size: int) -> bool:
    return (
        isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= int(name) < size
    )


def _refuse_unknown(
    unknown: AnyArray, names: Sequence[Any] | AnyArray, borders: IntArray, stated: Catalogue
) -> None:
    if not unknown.any():
        return
    at = int(np.argmax(unknown))
    name = names[at].item() if isinstance(names, np.ndarray) else names[at]
    known = (
        f"the integers 0 to {stated.size - 1}"
        if stated.names is None
        else preview(stated.names, 40)
    )
    raise ValueError(
        f"list {range_at(borders, at)}: item {preview(name)} is not in the catalogue ({known}). "
        "Leave it out, or give items= with all the names."
    )


def _refuse_missing(
    names: Sequence[Any], codes: IntArray | None = None, borders: IntArray | None = None
) -> None:
    """A missing value is no name: two of them need not be the same item."""
    if set(map(type, names)) <= {str, int}:
        return
    code = next((code for code, name in enumerate(names) if is_missing(name)), None)
    if code is not None:
        where = "items"
        if codes is not None and borders is not None:
            where = f"list {range_at(borders, int(np.argmax(codes == code)))}"
        raise ValueError(
            f"{where}: {preview(names[code])} is a missing value, which cannot be the name of an "
            "item: leave it out."
        )


def _hashable(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """Give the elements of all lists, one after the other."""
    return list(chain.from_iterable(lists))
