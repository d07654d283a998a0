"""Rankings as JSON lines: a ranking a line, best first, where an array inside it is a tie."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from tierrank.data.files import MARK, DataFileError, expands, read_bytes, writing
from tierrank.data.rankings.container import Rankings
from tierrank.tiers import Tiers
from tierrank.tiers.catalogue import catalogue_of

Rest = Literal["absent", "last"]

_HEADER_KEYS = {"items", "rest"}
_LINE_KEYS = {"ranking", "weight", "rest"}
_PLAIN = {str, int}
_LARGEST_CATALOGUE = 1 << 40
_MOST_WRITTEN_OUT = 10**8
_LISTS_AT_A_TIME = 1 << 14


class JsonLinesError(DataFileError):
    r"""A file of JSON lines that cannot be read: says which, where, what is wrong and what to do.

    A `DataFileError`, which has its attributes.

    See Also
    --------
    read_jsonl_rankings : Raises it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import JsonLinesError, read_jsonl_rankings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.jsonl")
    ...     _ = file.write_text('["ann", "bob"]\n["ann", ]\n')
    ...     try:
    ...         read_jsonl_rankings(file)
    ...     except JsonLinesError as error:
    ...         error.line
    2
    """


class _Catalogue(NamedTuple):
    """What the header says: a number of items, their names, or nothing; and where the rest is."""

    items: int | list[Any] | None
    known: set[Any] | range | None
    rest: Rest


class _Line(NamedTuple):
    ranking: list[Any]  # with a tuple for a tie
    names: list[Any]
    weight: float
    rest: Rest


class _Fault(Exception):
    """What is wrong with a line; the reader adds where."""


@expands
def read_jsonl_rankings(
    path: str | PathLike[str], *, max_expansion: float | None = None
) -> Rankings:
    r"""Read rankings from JSON lines.

    A line is an array of items, best first, with an array inside it for a tie, or an object
    ``{"ranking": [...], "weight": 3, "rest": "last"}`` with this array, how often it was given
    (once, without it), and where the items are that it does not name: "absent" or tied "last".
    Items are strings or numbers. The first line may be ``{"items": [...], "rest": "last"}``: all
    items (or N for the numbers 0 to N - 1), and the rest for lines that do not say. Without it,
    the items are those that occur, and the rest is absent. Empty lines are passed over.

    Parameters
    ----------
    path : path-like
        The file, in UTF-8; decompressed if the name ends in .gz, .xz or .bz2.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        A list a line.

    Raises
    ------
    JsonLinesError
        A `ValueError` that names the file and the line, and says what to do.

    See Also
    --------
    read_rankings : Of any format, by its name.
    write_jsonl_rankings : Writes such a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_jsonl_rankings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.jsonl")
    ...     _ = file.write_text('["ann", ["bob", "cy"]]\n{"ranking": ["cy"], "weight": 2}\n')
    ...     read_jsonl_rankings(file)
    Rankings(2 lists of weight 3, 3 items)
      1 × ann > {bob, cy}
      2 × cy
    """
    path = Path(path)
    catalogue = _Catalogue(None, None, "absent")
    lines: list[_Line] = []
    first = True
    for number, raw in _lines(path):
        try:
            value = _parse(raw)
            if isinstance(value, dict) and "items" in value:
                if not first:
                    raise _Fault('a line with "items" comes first, or not at all.')
                catalogue = _header(value)
            else:
                lines.append(_line(value, catalogue))
        except _Fault as fault:
            raise JsonLinesError(path, number, str(fault)) from None
        first = False
    if not lines:
        raise JsonLinesError(path, None, "there are no rankings: give at least one line.")
    try:
        return _assemble(lines, catalogue)
    except _Fault as fault:
        raise JsonLinesError(path, None, str(fault)) from None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and content of every line that is not empty."""
    content = read_bytes(path, JsonLinesError).removeprefix(MARK)
    for number, raw in enumerate(BytesIO(content), start=1):
        if raw := raw.strip():
            yield number, raw


def _parse(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise _Fault(
            f"the byte 0x{raw[error.start]:02x} is not UTF-8: save the file as UTF-8."
        ) from None
    except RecursionError:
        raise _Fault("arrays are nested too deeply: a tie is one array in the ranking.") from None
    except ValueError as error:  # also of a number with too many digits
        raise _Fault(f"this is not JSON ({error}): {_A_LINE}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise _Fault(f"{name} is no item and no weight: leave it out.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Fault("a key stands twice in the object: give each once.")
    return found


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)
_A_LINE = 'a line is a ranking such as ["ann", ["bob", "cy"]], best first.'


def _header(value: dict[str, Any]) -> _Catalogue:
    _check_keys(value, _HEADER_KEYS)
    items, rest = value["items"], _rest(value.get("rest", "absent"))
    if isinstance(items, int) and not isinstance(items, bool):
        if not 0 < items < _LARGEST_CATALOGUE:
            raise _Fault(f"items is {_shown(items)}: give the number of items, or their names.")
        return _Catalogue(items, range(items), rest)
    if not isinstance(items, list) or not items:
        raise _Fault(f"items is {_shown(items)}: give the number of items, or their names.")
    _check_names(items)
    known = set(items)
    if len(known) < len(items):
        raise _Fault(f"items has {_twice(items)} twice: give each once.")
    return _Catalogue(items, known, rest)


def _line(value: Any, catalogue: _Catalogue) -> _Line:
    weight, rest = 1.0, catalogue.rest
    if isinstance(value, dict):
        _check_keys(value, _LINE_KEYS)
        if "ranking" not in value:
            raise _Fault(f'the object has no "ranking": {_A_LINE}')
        weight = _weight(value.get("weight", 1))
        rest = _rest(value.get("rest", rest))
        value = value["ranking"]
    if not isinstance(value, list):
        raise _Fault(f"{_shown(value)} is no array: {_A_LINE}")
    ranking, names = value, value
    if not set(map(type, value)) <= _PLAIN:
        ranking = [tuple(entry) if isinstance(entry, list) else entry for entry in value]
        if () in ranking:
            raise _Fault("a tie is empty: leave it out.")
        names = list(chain.from_iterable(e if isinstance(e, tuple) else (e,) for e in ranking))
        _check_names(names)
    if not names and rest == "absent":
        raise _Fault("the ranking is empty: leave it out.")
    distinct = set(names)
    if len(distinct) < len(names):
        raise _Fault(f"item {_twice(names)} is in the ranking twice: name each item once.")
    _check_known(names, distinct, catalogue)
    return _Line(ranking, names, weight, rest)


def _check_known(names: list[Any], distinct: set[Any], catalogue: _Catalogue) -> None:
    known = catalogue.known
    if known is None or (isinstance(known, set) and distinct <= known):
        return
    for name in names:
        # 1.0 is in a range as well, but is not one of the whole numbers.
        if name not in known or (isinstance(known, range) and type(name) is not int):
            raise _Fault(f'item {_shown(name)} is not among the "items" of the first line: add it.')


def _check_names(names: list[Any]) -> None:
    for name in names:
        kind = type(name)
        if kind not in _PLAIN and not (kind is float and math.isfinite(name)):
            hint = " A tie is one array in the ranking, and holds no other." * (kind is list)
            raise _Fault(f"{_shown(name)} is no item: items are strings or numbers.{hint}")


def _check_keys(value: dict[str, Any], known: set[str]) -> None:
    for key in value:
        if key not in known:
            listed = ", ".join(sorted(known))
            raise _Fault(f"the key {_shown(key)} is none of {listed}: leave it out.")


def _weight(value: Any) -> float:
    kind = type(value)
    if kind in (int, float):
        try:
            if value > 0 and math.isfinite(weight := float(value)):
                return weight
        except OverflowError:
            pass
    raise _Fault(f"the weight is {_shown(value)}: weights are positive, finite numbers.")


def _rest(value: Any) -> Rest:
    if value == "absent" or value == "last":
        return "last" if value == "last" else "absent"
    raise _Fault(f'rest is {_shown(value)}: it is "absent" or "last".')


def _twice(names: list[Any]) -> str:
    return _shown(next(name for name, times in Counter(names).items() if times > 1))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _assemble(lines: list[_Line], catalogue: _Catalogue) -> Rankings:
    items = catalogue.items
    if items is None:
        found = catalogue_of(dict.fromkeys(chain.from_iterable(line.names for line in lines)))
        items = found.size if found.names is None else list(found.names)
    rankings = [line.ranking for line in lines]
    rest = lines[0].rest
    if any(line.rest != rest for line in lines):
        # All lists of a container have a rest, or none has: write it out where it is last.
        rankings, rest = _with_rest_written(lines, items), "absent"
    tiers = Tiers.from_rankings(rankings, items=items, rest=rest)
    return Rankings(tiers, np.array([line.weight for line in lines]))


def _with_rest_written(lines: list[_Line], items: int | list[Any]) -> list[list[Any]]:
    names = range(items) if isinstance(items, int) else items
    unwritten = sum(len(names) - len(line.names) for line in lines if line.rest == "last")
    if unwritten > _MOST_WRITTEN_OUT:
        raise _Fault(
            f"some lists have a rest and some have none, and to write {unwritten:,} items out is "
            "too much: give all lists the same rest."
        )
    rankings = []
    for line in lines:
        others: tuple[Any, ...] = ()
        if line.rest == "last":
            named = set(line.names)
            others = tuple(name for name in names if name not in named)
        rankings.append([*line.ranking, others] if others else line.ranking)
    return rankings


def write_jsonl_rankings(rankings: Rankings, path: str | PathLike[str]) -> None:
    """Write rankings as JSON lines, which `read_jsonl_rankings` gives back as they were.

    The first line holds the items and the rest. Keys of the lists are not written. The file is
    written beside and renamed.

    Parameters
    ----------
    rankings : Rankings
        Lists of items that are strings or finite numbers.
    path : path-like
        The file; compressed if the name ends in .gz, .xz or .bz2.

    Raises
    ------
    ValueError
        An item is neither a string nor a finite number.

    See Also
    --------
    read_jsonl_rankings : Reads it again.
    write_rankings : Of any format, by its name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import Rankings, write_jsonl_rankings
    >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")]], weights=[3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.jsonl")
    ...     write_jsonl_rankings(votes, file)
    ...     print(file.read_text().splitlines()[1])
    {"weight": 3, "ranking": ["ann", ["bob", "cy"]]}
    """
    tiers = rankings.tiers
    words = tuple(_word(name) for name in rankings.items)
    items = str(tiers.n_items) if tiers.names is None else f"[{', '.join(words)}]"
    rest = "last" if tiers.rest else "absent"
    spelt = replace(tiers, names=words)  # every name is spelt once, not once a list
    with writing(Path(path)) as file:
        file.write(f'{{"items": {items}, "rest": "{rest}"}}\n'.encode())
        for start in range(0, len(rankings), _LISTS_AT_A_TIME):
            part = slice(start, start + _LISTS_AT_A_TIME)
            lines = map(_spelt_line, spelt[part].to_rankings(), rankings.weights[part].tolist())
            file.write("".join(lines).encode())


def _spelt_line(ranking: list[str | tuple[str, ...]], weight: float) -> str:
    entries = [e if isinstance(e, str) else f"[{', '.join(e)}]" for e in ranking]
    array = f"[{', '.join(entries)}]"
    if weight == 1:
        return f"{array}\n"
    number = int(weight) if weight.is_integer() else weight
    return f'{{"weight": {number!r}, "ranking": {array}}}\n'


def _word(name: Any) -> str:
    """A name in JSON."""
    plain = name.item() if isinstance(name, np.generic) else name
    kind = type(plain)
    if kind not in _PLAIN and not (kind is float and math.isfinite(plain)):
        raise ValueError(
            f"item {name!r} is a {kind.__name__}: JSON lines hold items that are strings or finite "
            "numbers. Rename it."
        )
    word = json.dumps(plain, ensure_ascii=False)
    # Half of a surrogate pair is nothing that UTF-8 can write; JSON can escape it.
    return json.dumps(plain) if any("\ud800" <= c <= "\udfff" for c in word) else word
