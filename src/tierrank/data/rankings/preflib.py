"""PrefLib's files of votes, soc, soi, toc, toi and cat: what one holds, and what its header says.

`preflib_text` reads and writes them.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.data.files import DataFileError, Text
from tierrank.data.rankings.container import Rankings
from tierrank.names import counted
from tierrank.tiers import Tiers
from tierrank.tiers.selection import equal_lists, with_rest_written

DataType = Literal["soc", "soi", "toc", "toi", "cat"]
DATA_TYPES: tuple[DataType, ...] = get_args(DataType)
SUFFIXES: dict[str, DataType] = {f".{data_type}": data_type for data_type in DATA_TYPES}

ALTERNATIVE, CATEGORY = "ALTERNATIVE NAME", "CATEGORY NAME"
N_ALTERNATIVES, N_CATEGORIES, N_VOTERS = (
    f"NUMBER {what}" for what in ("ALTERNATIVES", "CATEGORIES", "VOTERS")
)
N_UNIQUE = ("NUMBER UNIQUE ORDERS", "NUMBER UNIQUE PREFERENCES")  # the second in cat files
DATA_TYPE = "DATA TYPE"
RELATED_FILES = "RELATED FILES"
TEXTS = {  # key: attribute
    "FILE NAME": "file_name",
    "TITLE": "title",
    "DESCRIPTION": "description",
    "MODIFICATION TYPE": "modification_type",
    "RELATES TO": "relates_to",
    "PUBLICATION DATE": "publication_date",
    "MODIFICATION DATE": "modification_date",
}
ORDER = (  # of the keys, as PrefLib writes them; names of categories and alternatives follow
    "FILE NAME", "TITLE", "DESCRIPTION", DATA_TYPE, "MODIFICATION TYPE", "RELATES TO",
    RELATED_FILES, "PUBLICATION DATE", "MODIFICATION DATE", N_ALTERNATIVES, N_VOTERS, *N_UNIQUE,
    N_CATEGORIES,
)  # fmt: skip

_LINE = re.compile(r"#([^:]*):(.*)", re.DOTALL)
_NUMBERED = re.compile(rf"({ALTERNATIVE}|{CATEGORY}) 0*([0-9]{{1,15}})")

_NUMBER = re.compile(r"[0-9]{1,15}")
_LARGEST_COUNT = 10**15
_STRICT = ("soc", "soi")
_COMPLETE = ("soc", "toc")


class PrefLibError(DataFileError):
    r"""A PrefLib file that cannot be read: says which, where in it, what is wrong and what to do.

    A `DataFileError`, which has its attributes.

    See Also
    --------
    read_preflib : Raises it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import PrefLibError, read_preflib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.soc")
    ...     _ = file.write_text(
    ...         "# ALTERNATIVE NAME 1: soup\n# ALTERNATIVE NAME 2: rice\n4: 1,2,3\n"
    ...     )
    ...     try:
    ...         read_preflib(file)
    ...     except PrefLibError as error:
    ...         error.line
    3
    """


class Style(NamedTuple):
    """How orders are spelt, where PrefLib's files differ.

    Attributes
    ----------
    between_tiers, in_ties
        what separates two tiers, and two alternatives of a tie: a comma, maybe with a blank
    braced
        numbers of the tiers of one alternative that stand in braces all the same
    """

    between_tiers: str = ","
    in_ties: str = ","
    braced: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrefLib:
    """Rankings with what PrefLib's header says about them.

    `read_preflib` gives it and `write_preflib` takes it; `from_rankings` makes one of rankings
    from elsewhere. The attributes are what is written: with ``dataclasses.replace(votes,
    title="…")`` the file gets another title.

    Parameters
    ----------
    orders : Tiers
        A list for every line, over a catalogue of the alternatives; in incomplete orders (soi,
        toi) alternatives that are not listed are absent.
    counts : ndarray of int
        [orders] how many voters gave each; some of PrefLib's files list orders that nobody gave.
    data_type : {"soc", "soi", "toc", "toi", "cat"}
        "soc" or "soi": strict orders, complete or incomplete; "toc" or "toi": with ties;
        "cat": categories, each that is not empty a tier.
    alternative_names : tuple of str
        As the file has them. Where two are the same, the catalogue has "Lee (3)" and "Lee (7)".
    categories : tuple of str
        Names of the categories of a cat file, best first.
    tier_categories : ndarray of int, optional
        [tiers] the category of every tier in a cat file, counted from 0.
    file_name, title, description, modification_type, relates_to : str
        Of the header, "" where there is nothing.
    related_files : tuple of str
        Of the header.
    publication_date, modification_date : str
        As written, usually 2022-09-16.
    other : mapping
        Fields that the format does not have.
    header : tuple of str
        The lines that were read, as they stood.
    style : Style
        How the orders were spelt.

    See Also
    --------
    read_preflib : From a file.
    Rankings : The lists alone.

    Examples
    --------
    >>> from tierrank.data import PrefLib, Rankings
    >>> votes = Rankings.from_rankings(
    ...     [["ann", ("bob", "cy")], ["cy", "bob", "ann"]], weights=[4, 2]
    ... )
    >>> lunch = PrefLib.from_rankings(votes, title="Who pays")
    >>> lunch
    PrefLib(toc, 'Who pays': 3 alternatives, 6 voters, 2 unique orders)
    >>> lunch.counts, lunch.alternative_names
    (array([4, 2]), ('ann', 'bob', 'cy'))
    """

    orders: Tiers
    counts: IntArray
    data_type: DataType
    alternative_names: tuple[str, ...]
    categories: tuple[str, ...] = ()
    tier_categories: IntArray | None = None
    file_name: str = ""
    title: str = ""
    description: str = ""
    modification_type: str = ""
    relates_to: str = ""
    related_files: tuple[str, ...] = ()
    publication_date: str = ""
    modification_date: str = ""
    other: Mapping[str, str] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    style: Style = field(default_factory=Style)

    def __post_init__(self) -> None:
        if self.data_type not in DATA_TYPES:
            raise ValueError(
                f"data_type is one of {', '.join(DATA_TYPES)}, not {self.data_type!r}."
            )
        if self.orders.n_items is None or self.orders.rest:
            raise ValueError(
                "orders are over a catalogue, without a rest: use PrefLib.from_rankings, which "
                "writes the rest out."
            )
        if distinct_names(self.alternative_names) != self.orders.names:
            raise ValueError(
                "alternative_names and the names in the orders are not the same: make both anew "
                "with PrefLib.from_rankings."
            )
        fault = type_fault(self.orders, self.data_type)
        if fault is not None:
            raise ValueError(f"list {fault[0]}: {fault[1]}")
        self._check_counts()
        self._check_categories()
        self._check_texts()

    @classmethod
    def from_rankings(
        cls,
        rankings: Rankings,
        *,
        title: str = "",
        data_type: DataType | None = None,
        categories: Sequence[str] = (),
        **fields: Any,
    ) -> PrefLib:
        """Make one of rankings from elsewhere.

        Equal lists are counted together, and a rest is written out as a last tier.

        Parameters
        ----------
        rankings : Rankings
            Lists with whole numbers as weights.
        title : str
            What the data are called.
        data_type : {"soc", "soi", "toc", "toi", "cat"}, optional
            None for the narrowest of soc, soi, toc and toi that holds the lists.
        categories : sequence of str
            For data_type="cat": names, best first. The first tier of every list goes into the
            first category, and so on; the last categories may stay empty.
        **fields
            Other attributes, such as description or publication_date.

        Returns
        -------
        PrefLib
            What `write_preflib` takes.

        Raises
        ------
        ValueError
            A weight is no whole number, or the type does not hold the lists.

        See Also
        --------
        write_preflib : Writes it.

        Examples
        --------
        >>> from tierrank.data import PrefLib, Rankings
        >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")], ["cy"], ["cy"]])
        >>> PrefLib.from_rankings(votes, title="A vote")
        PrefLib(toi, 'A vote': 3 alternatives, 3 voters, 2 unique orders)
        """
        names = tuple(_one_line(str(name)) for name in rankings.items)
        if distinct_names(names) != names:
            raise ValueError(
                "two items have the same name once they are text, or one is empty: PrefLib tells "
                "alternatives apart by their names. Rename them."
            )
        tiers = replace(with_rest_written(rankings.tiers.to("cpu")), names=names, keys=None)
        first, which = equal_lists(tiers)
        counts = np.bincount(which, weights=_whole(rankings.weights)).astype(np.int64)
        tiers = tiers[first]
        if data_type == "cat":
            per_list = np.diff(tiers.list_offsets.numpy())
            starts = np.repeat(tiers.list_offsets.numpy()[:-1], per_list)
            fields["tier_categories"] = np.arange(len(starts)) - starts
        fields.setdefault("modification_type", "original")
        return cls(
            orders=tiers,
            counts=counts,
            data_type=type_of(tiers) if data_type is None else data_type,
            alternative_names=names,
            categories=tuple(categories),
            title=title,
            **fields,
        )

    @cached_property
    def rankings(self) -> Rankings:
        """The orders that someone gave, with their counts as weights."""
        given = self.counts > 0
        tiers = self.orders if given.all() else self.orders[given]
        return Rankings(tiers, self.counts[given].astype(np.float64))

    @property
    def number_alternatives(self) -> int:
        """How many alternatives there are, listed or not."""
        return len(self.alternative_names)

    @property
    def number_voters(self) -> int:
        """How many orders were given in all."""
        return int(self.counts.sum())

    @property
    def number_unique_orders(self) -> int:
        """How many lines of orders there are."""
        return len(self.orders)

    def __repr__(self) -> str:
        counts = (
            (self.number_alternatives, "alternative"),
            (self.number_voters, "voter"),
            (self.number_unique_orders, "unique order"),
        )
        listed = ", ".join(counted(*each) for each in counts)
        return f"PrefLib({self.data_type}, {self.title!r}: {listed})"

    def _check_counts(self) -> None:
        counts = self.counts
        if counts.shape != (len(self.orders),) or counts.dtype != np.int64:
            raise ValueError(
                f"counts have shape {counts.shape} and type {counts.dtype}: give one int64 for "
                f"each of {len(self.orders)} orders."
            )
        if not ((counts >= 0) & (counts < _LARGEST_COUNT)).all() or not counts.any():
            raise ValueError("counts are 0 or more and below 10^15, and not all of them are 0.")

    def _check_categories(self) -> None:
        if (self.data_type == "cat") != bool(self.categories):
            raise ValueError("give categories for data_type='cat', and for no other type.")
        if self.data_type != "cat":
            return
        numbers = self.tier_categories
        if numbers is None or numbers.shape != (len(self.orders.tier_sizes),):
            raise ValueError("give tier_categories, the category of every tier.")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self.categories):
            raise ValueError(
                f"tiers are in categories {numbers.min()} to {numbers.max()}, but there are "
                f"{len(self.categories)} categories, counted from 0."
            )
        starts = self.orders.list_offsets.numpy()[:-1]
        grows = np.append(True, np.diff(numbers) > 0)[: len(numbers)]
        grows[starts] = True
        if not grows.all():
            raise ValueError("tier_categories must grow within a list: the best comes first.")

    def _check_texts(self) -> None:
        for attribute in TEXTS.values():
            _one_line(getattr(self, attribute), attribute)
        for text in (*self.alternative_names, *self.categories, *self.related_files):
            _one_line(text)
        for key, value in self.other.items():
            if split_line(f"# {key}: {value}") != (key, value.strip()) or is_known(key):
                raise ValueError(
                    f"other has the key {key!r}: write keys in capitals, without a colon, and give "
                    "what the format has as an attribute of its own."
                )
            _one_line(value, key)


def _whole(weights: FloatArray) -> FloatArray:
    """Refuse weights that are no counts."""
    wrong = (weights != np.floor(weights)) | (weights >= _LARGEST_COUNT)
    if wrong.any():
        number = int(wrong.argmax())
        raise ValueError(
            f"the weight of list {number} is {weights[number]}: PrefLib has whole numbers of "
            "voters. Scale the weights, or write JSON lines."
        )
    return weights


def _one_line(text: str, what: str = "the name") -> str:
    """Refuse text that would not come back from a line of the header."""
    if text != text.strip() or "\n" in text:
        raise ValueError(f"{what} {text!r} has a line break, or blanks at an end: take them out.")
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{what} {text!r} cannot be written in UTF-8: mend it.") from None
    return text


# Which lists a type of file may hold --------------------------------------------------------------


def type_of(tiers: Tiers) -> DataType:
    """The narrowest type that holds these lists: strict or with ties, complete or not."""
    strict = bool((tiers.tier_sizes.numpy() == 1).all())
    if bool((tiers.lengths.numpy() == tiers.n_items).all()):
        return "soc" if strict else "toc"
    return "soi" if strict else "toi"


def type_fault(tiers: Tiers, data_type: DataType) -> tuple[int, str] | None:
    """The first list that a file of this type may not hold, and what is wrong with it."""
    if data_type in _STRICT:
        tied = np.flatnonzero(tiers.tier_sizes.numpy() > 1)
        if len(tied):
            number = int(np.searchsorted(tiers.list_offsets.numpy(), tied[0], side="right")) - 1
            return number, (
                f"there is a tie, but {data_type} is for strict orders: make it "
                f"{'toc' if data_type == 'soc' else 'toi'}."
            )
    if data_type in _COMPLETE:
        missing = (tiers.n_items or 0) - tiers.lengths.numpy()
        if missing.any():
            number = int((missing != 0).argmax())
            return number, (
                f"{missing[number]} of {tiers.n_items} alternatives are missing, but {data_type} "
                f"is for complete orders: make it {'soi' if data_type == 'soc' else 'toi'}."
            )
    return None


# Lines of the header ``# KEY: value`` -------------------------------------------------------------


def split_line(line: str) -> tuple[str, str] | None:
    """Key (in capitals, numbers without zeros) and value of a line; None if it is not one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    key = " ".join(found[1].upper().split())
    return _NUMBERED.sub(r"\1 \2", key), found[2].strip()


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names for a catalogue, where each is given once: number those that are shared or empty."""
    shared = {name for name, times in Counter(names).items() if times > 1 or not name}
    if not shared:
        return tuple(names)
    taken = set(names)
    result = []
    for number, name in enumerate(names, start=1):
        unique = name
        while name in shared and unique in taken:
            unique = f"{unique} ({number})".lstrip()
        taken.add(unique)
        result.append(unique)
    return tuple(result)


def is_known(key: str) -> bool:
    """Whether PrefLib's description of the format has this field."""
    return key in ORDER or _NUMBERED.fullmatch(key) is not None


class Doubts:
    """What a file gets wrong but leaves no doubt about: an error if strict, else an assumption."""

    def __init__(self, strict: bool) -> None:
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


class Field(NamedTuple):
    """What a line of the header says."""

    value: str
    line: int


NOTHING = Field("", 0)


class Header(NamedTuple):
    """All lines of a header, and where the orders begin."""

    fields: dict[str, Field]
    lines: tuple[str, ...]
    end: int


def split_header(text: Text) -> Header:
    """Read the lines at the start of a file that begin with #."""
    fields: dict[str, Field] = {}
    lines = []
    end = text.start
    for number, (raw, after) in enumerate(_lines(text.content, end), start=1):
        if raw and not raw.startswith(b"#"):
            break
        end = after
        if not raw:
            continue
        line = raw.decode(errors="surrogateescape")
        pair = split_line(line)
        if pair is None or not pair[0]:
            raise text.file_error(number, f"{_shown(line)} is no header line: # KEY: value.")
        if pair[0] in fields:
            raise text.file_error(
                number,
                f"{pair[0]} stands here and in line {fields[pair[0]].line}: give each key once.",
            )
        fields[pair[0]] = Field(pair[1], number)
        lines.append(line)
    if not fields:
        raise text.file_error(
            1,
            "there is no header: the file begins with lines such as # TITLE: a vote and "
            "# ALTERNATIVE NAME 1: ann. (Files of PrefLib from before 2022 have none: fetch it "
            "again from preflib.org.)",
        )
    return Header(fields, tuple(lines), end)


def _lines(content: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    """Lines without what ends them, and where the next one begins."""
    while start < len(content):
        end = content.index(b"\n", start) + 1
        line = content[start:end].rstrip(b"\r\n")
        yield line if line.startswith(b"#") else line.strip(), end
        start = end


def _shown(line: str) -> str:
    """A line as an error quotes it."""
    return repr(line if len(line) <= 60 else line[:59] + "…")


def stated_type(header: Header, text: Text, suffix: DataType | None) -> DataType:
    """The type that the header says, or else the suffix; they may not differ."""
    field = header.fields.get(DATA_TYPE)
    if field is None:
        if suffix is None:
            raise text.file_error(
                None, f"{DATA_TYPE} is missing: say which of {', '.join(DATA_TYPES)} this is."
            )
        return suffix
    found = SUFFIXES.get(f".{field.value.lower()}")
    if found is None:
        raise text.file_error(
            field.line,
            f"the data type {_shown(field.value)} is not one of {', '.join(DATA_TYPES)}: only "
            "these are rankings.",
        )
    if suffix is not None and found != suffix:
        raise text.file_error(
            field.line,
            f"the data type is {found}, but the file's name ends in .{suffix}: rename it, or mend "
            "the header.",
        )
    return found


def _stated_number(header: Header, key: str, text: Text) -> int | None:
    """A whole number of the header; None if it is not there."""
    field = header.fields.get(key)
    if field is None:
        return None
    if not _NUMBER.fullmatch(field.value):
        raise text.file_error(
            field.line, f"{key} is {_shown(field.value)}, but should be a whole number."
        )
    return int(field.value)


def check_stated(
    header: Header, key: str, found: int, what: str, text: Text, doubts: Doubts
) -> None:
    """Compare a number of the header, if it is there, with what the file holds."""
    stated = _stated_number(header, key, text)
    if stated is None or stated == found:
        return
    line = header.fields[key].line
    differ = f"{key} is {stated}, but there {what.format(found)}"
    doubts.settle(text.file_error(line, f"{differ}: mend one of the two."), differ)


def numbered_names(
    header: Header, key: str, count_key: str, text: Text, doubts: Doubts
) -> tuple[tuple[str, ...], int]:
    """The names of the alternatives or the categories, and the number of the first.

    They are numbered from 1, or with a doubt from 0, and none is left out.
    """
    found: dict[int, Field] = {}
    for name, line in header.fields.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered is not None and numbered[1] == key:
            found[int(numbered[2])] = line
    check_stated(header, count_key, len(found), f"are {{}} lines {key}", text, doubts)
    if not found:
        raise text.file_error(None, f"there is no line # {key} 1: give every one a name.")
    first = 0 if 0 in found else 1
    places = range(first, first + len(found))
    for number, line in found.items():
        error = text.file_error(
            line.line, f"{key} {number}: number them from 1 to {len(found)}, as many as are."
        )
        if number not in places:
            raise error
        if number == 0:
            doubts.settle(error, f"{key} is counted from 0, and so it was taken")
    return tuple(found[number].value for number in places), first


def file_names(value: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def header_lines(preflib: PrefLib) -> list[str]:
    """The header of a file: the lines that were read where they are still true, others anew."""
    wanted = _wanted(preflib)
    lines = []
    for line in preflib.header:
        key, value = split_line(line) or ("", "")
        if key not in wanted:
            continue  # an alternative that is no more
        now = wanted.pop(key)
        lines.append(line if _same(key, value, now) else f"# {key}: {now}")
    return lines + [f"# {key}: {now}" for key, now in wanted.items() if now or not preflib.header]


def _same(key: str, value: str, now: str) -> bool:
    """Whether two values of a field mean the same."""
    if key == RELATED_FILES:
        return file_names(value) == file_names(now)
    return (value.lower() if key == DATA_TYPE else value) == now


def _wanted(preflib: PrefLib) -> dict[str, str]:
    """Key and value of every line that is to be written, in PrefLib's order."""
    values = {key: getattr(preflib, attribute) for key, attribute in TEXTS.items()}
    values[DATA_TYPE] = preflib.data_type
    values[RELATED_FILES] = ",".join(preflib.related_files)
    values[N_ALTERNATIVES] = str(preflib.number_alternatives)
    values[N_VOTERS] = str(preflib.number_voters)
    read = [key for line in preflib.header if (key := (split_line(line) or ("",))[0]) in N_UNIQUE]
    unique = read or [N_UNIQUE[preflib.data_type == "cat"]]
    values.update(dict.fromkeys(unique, str(preflib.number_unique_orders)))
    if preflib.categories:
        values[N_CATEGORIES] = str(len(preflib.categories))
    ordered = {key: values[key] for key in ORDER if key in values}
    ordered.update(preflib.other)
    for key, names in ((CATEGORY, preflib.categories), (ALTERNATIVE, preflib.alternative_names)):
        ordered.update({f"{key} {number}": name for number, name in enumerate(names, start=1)})
    return ordered
