"""The header of a PrefLib file: lines ``# KEY: value``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tierrank.data.rankings.errors import Doubts
from tierrank.data.rankings.preflib.checks import DATA_TYPES, DataType, known_type
from tierrank.data.text import Text

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
_MARK = b"\xef\xbb\xbf"  # that some editors begin UTF-8 with


class Field(NamedTuple):
    """What a line of the header says."""

    value: str
    line: int


class Header(NamedTuple):
    """All lines of a header, and where the orders begin."""

    fields: dict[str, Field]
    lines: tuple[str, ...]
    end: int


def split_line(line: str) -> tuple[str, str] | None:
    """Key (in capitals, numbers without zeros) and value of a line; None if it is not one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    key = " ".join(found[1].upper().split())
    return _NUMBERED.sub(r"\1 \2", key), found[2].strip()


def split_header(text: Text) -> Header:
    """Read the lines at the start of a file that begin with #."""
    fields: dict[str, Field] = {}
    lines = []
    end = len(_MARK) if text.content.startswith(_MARK) else 0
    for number, (raw, after) in enumerate(_lines(text.content, end), start=1):
        if raw and not raw.startswith(b"#"):
            break
        end = after
        if not raw:
            continue
        line = raw.decode(errors="surrogateescape")
        pair = split_line(line)
        if pair is None or not pair[0]:
            raise text.file_error(number, f"{text_shown(line)} is no header line: # KEY: value.")
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


def text_shown(line: str) -> str:
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
    found = known_type(field.value)
    if found is None:
        raise text.file_error(
            field.line,
            f"the data type {text_shown(field.value)} is not one of {', '.join(DATA_TYPES)}: only "
            "these are rankings.",
        )
    if suffix is not None and found != suffix:
        raise text.file_error(
            field.line,
            f"the data type is {found}, but the file's name ends in .{suffix}: rename it, or mend "
            "the header.",
        )
    return found


def stated_number(header: Header, key: str, text: Text) -> int | None:
    """A whole number of the header; None if it is not there."""
    field = header.fields.get(key)
    if field is None:
        return None
    if not _NUMBER.fullmatch(field.value):
        raise text.file_error(
            field.line, f"{key} is {text_shown(field.value)}, but should be a whole number."
        )
    return int(field.value)


def check_stated(
    header: Header, key: str, found: int, what: str, text: Text, doubts: Doubts
) -> None:
    """Compare a number of the header, if it is there, with what the file holds."""
    stated = stated_number(header, key, text)
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
    for name, field in header.fields.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered is not None and numbered[1] == key:
            found[int(numbered[2])] = field
    check_stated(header, count_key, len(found), f"are {{}} lines {key}", text, doubts)
    if not found:
        raise text.file_error(None, f"there is no line # {key} 1: give every one a name.")
    first = 0 if 0 in found else 1
    places = range(first, first + len(found))
    for number, field in found.items():
        error = text.file_error(
            field.line, f"{key} {number}: number them from 1 to {len(found)}, as many as are."
        )
        if number not in places:
            raise error
        if number == 0:
            doubts.settle(error, f"{key} is counted from 0, and so it was taken")
    return tuple(found[number].value for number in places), first


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


def file_names(value: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def header_lines(preflib: Any) -> list[str]:
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


def _wanted(preflib: Any) -> dict[str, str]:
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
