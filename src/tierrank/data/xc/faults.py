"""What is wrong with a token of an XC text file, in words."""

from __future__ import annotations

import re
from typing import NamedTuple

from tierrank._native import XCFault
from tierrank.data.files import DataFileError
from tierrank.data.text.source import Text
from tierrank.data.xc.header import Header, expected


class Rules(NamedTuple):
    """What the rows of a file must keep to."""

    names: tuple[str, ...]  # of the header's numbers: rows, features, labels, or two of them
    base: int  # the first index
    most_columns: int
    most_labels: int  # 0 where rows do not begin with labels


def fault(text: Text, head: Header, rules: Rules, kind: XCFault, at: int) -> DataFileError:
    """Word what the compiled pass stumbled over at a place in the text."""
    token = re.split(rb"\s", text.content[at : at + 400], maxsplit=1)[0]
    before = token.partition(b":")[0]
    name = text.shown(at, at + len(before))
    value = text.shown(at + len(before) + 1, at + len(token))
    label = text.shown(at, at + len(token.partition(b",")[0]))
    columns = rules.names[1]
    column = columns[:-1]
    starts_line = text.content[at - 1 : at] in (b"", b"\n")
    if kind == XCFault.BAD_LABEL and starts_line and b":" in token.partition(b",")[0]:
        kind = XCFault.BAD_INDEX  # a row without labels
    if kind == XCFault.BAD_LABEL:
        what = _bad_label(token, label)
    elif kind == XCFault.LARGE_LABEL:
        what = f"label {label} is over {_last(rules.most_labels, 0)}: {_MORE.format('n_labels')}"
    elif kind == XCFault.LABEL_TWICE:
        what = f"label {label} stands twice: leave one out."
    elif kind == XCFault.LARGE_INDEX:
        last = _last(rules.most_columns, rules.base)
        what = f"{column} {name} is over {last}: {_MORE.format('n_' + columns)}"
    elif kind == XCFault.ZERO_INDEX:
        what = f"{column} {name} is 0, but one_based=True says that they start at 1: leave it out."
    elif kind == XCFault.TWICE:
        what = f"{column} {name} stands twice: leave one out."
    elif kind == XCFault.BAD_VALUE:
        what = f"the value {value} of {column} {name} is not a finite number: write one."
    else:
        what = _bad_index(token, name, column)
    first_line = text.content[: text.content.index(b"\n")]
    if head.sizes is None and at < len(first_line) and b":" not in first_line:
        what += f" If this is the header, it should be {expected(rules.names)}."
    return text.error(at, what)


_MORE = "number them anew, mend the header, or pass a larger {}."


def _last(size: int, base: int) -> str:
    return f"{size - 1 + base:,}, the last of {size:,} that start at {base}"


def _bad_label(token: bytes, label: str) -> str:
    if not token:
        return "a label is missing after the comma: write labels as 3,7 without blanks between."
    first = token.partition(b",")[0]
    if not first:
        return "a label is missing before the comma: write labels as 3,7."
    if first[:1] == b"-" and first[1:].isdigit():
        return f"label {label} is negative: labels start at 0."
    if b":" in first:
        return f"{label} is no label: set labels and features apart by a blank."
    return f"label {label} is not a whole number: write labels in digits, as 3,7."


def _bad_index(token: bytes, name: str, column: str) -> str:
    if b":" not in token:
        return f"{name} is not index:value: write a {column} as 3:0.5."
    if token[:1] == b"-" and token.partition(b":")[0][1:].isdigit():
        return f"{column} {name} is negative: they start at 0."
    return f"{column} {name} is not a whole number: write it in digits alone."
