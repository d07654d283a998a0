"""One pass over the bytes of a LETOR file, compiled: `label qid:q index:value … # comment`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba.extending import register_jitable

from tierrank.compilation import announce, compiled, digest
from tierrank.data.text import decimals, tokens
from tierrank.data.text.decimals import (
    FOR_PYTHON,
    MISSING,
    NO_NUMBER,
    NUMBER,
    OPTIONS,
    U,
    ends_token,
    is_digit,
    number,
)
from tierrank.data.text.tokens import noted, skip_blanks

SOURCES = digest([Path(__file__), Path(decimals.__file__), Path(tokens.__file__)])

LARGEST_INDEX = 2**31 - 1

# what may be wrong with a token
FINE, BAD_LABEL, BAD_QID, BAD_INDEX, LARGE_INDEX, TWICE, BAD_VALUE = range(7)

# what a pass finds out, in `found`
(
    ROWS, ENTRIES, FAULT, FAULT_AT, ROWS_WITH_QID, FIRST_WITHOUT_QID, OTHER_QIDS, UNSORTED,
    FIRST_ZERO, LARGEST, LARGEST_AT, LEFT_TO_PYTHON, FOUND,
) = range(13)  # fmt: skip


@register_jitable(**OPTIONS)
def starts_qid(text, at):
    # the newline at the end of the text stops the comparison
    return text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58


@register_jitable(error_model="numpy")
def whole_number(text, at, end):
    """An integer, and whether it is one that fits 64 bits."""
    negative = text[at] == 45
    if negative:
        at += 1
    if at == end or end - at > 19:
        return 0, False
    value = U(0)
    for i in range(at, end):
        if not is_digit(text[i]):
            return 0, False
        value = value * U(10) + (U(text[i]) - U(48))
    if value >= (U(1) << U(63)) + U(negative):
        return 0, False
    return -np.int64(value) if negative else np.int64(value), True


def _scan(text, missing, powers, labels, qids, spans, comments, row_ends, indices, values, found):
    """Fill the arrays from `text`, whose last byte is a newline; stop at the first fault.

    Parameters
    ----------
    spans
        [rows, 3] where the row starts, and its qid starts and ends
    comments
        [rows, 2] where the comment starts and ends; not filled if it has no rows
    row_ends
        [rows + 1] the first is 0

    Returns
    -------
    [left to Python, 3] entry (for a label, −1 − row), start and end of numbers left to `float`
    """
    left = np.empty((16, 3), dtype=np.int64)
    count = 0
    row = 0
    entry = 0
    with_qid = 0
    largest = -1
    at = 0
    size = len(text)
    found[FIRST_ZERO] = found[FIRST_WITHOUT_QID] = -1
    if size > 3 and text[0] == 0xEF and text[1] == 0xBB and text[2] == 0xBF:
        at = 3  # the mark some editors begin UTF-8 with
    while at < size:
        at = skip_blanks(text, at)
        if text[at] != 10 and text[at] != 35:
            token = at
            spans[row, 0] = token
            value, kind, at = number(text, token, powers)
            if kind in (NO_NUMBER, MISSING) or (kind == NUMBER and np.isinf(value)):
                found[FAULT], found[FAULT_AT] = BAD_LABEL, token
                return left
            if kind == FOR_PYTHON:
                left = noted(left, count, -1 - row, token, at)
                count += 1
            labels[row] = value
            at = skip_blanks(text, at)
            spans[row, 1] = spans[row, 2] = at
            if starts_qid(text, at):
                token = at
                at += 4
                spans[row, 1] = at
                while not ends_token(text[at]):
                    if text[at] == 58:
                        break
                    at += 1
                if text[at] == 58 or at == spans[row, 1]:
                    found[FAULT], found[FAULT_AT] = BAD_QID, token
                    return left
                spans[row, 2] = at
                qids[row], whole = whole_number(text, spans[row, 1], at)
                if not whole:
                    found[OTHER_QIDS] = 1
                with_qid += 1
                at = skip_blanks(text, at)
            elif found[FIRST_WITHOUT_QID] < 0:
                found[FIRST_WITHOUT_QID] = token
            previous = -1
            while text[at] != 10 and text[at] != 35:
                token = at
                index = 0
                while is_digit(text[at]):
                    index = index * 10 + (np.int64(text[at]) - 48)
                    if index > LARGEST_INDEX:
                        found[FAULT], found[FAULT_AT] = LARGE_INDEX, token
                        return left
                    at += 1
                if at == token or text[at] != 58:
                    found[FAULT], found[FAULT_AT] = BAD_INDEX, token
                    return left
                value, kind, at = number(text, at + 1, powers)
                if kind != NUMBER:
                    if kind == NO_NUMBER:
                        found[FAULT], found[FAULT_AT] = BAD_VALUE, token
                        return left
                    if kind == MISSING:
                        value = missing
                    else:
                        start = token
                        while text[start] != 58:
                            start += 1
                        left = noted(left, count, entry, start + 1, at)
                        count += 1
                if index <= previous:
                    if index == previous:
                        found[FAULT], found[FAULT_AT] = TWICE, token
                        return left
                    found[UNSORTED] = 1
                if index > largest:
                    largest = index
                    found[LARGEST_AT] = token
                if index == 0 and found[FIRST_ZERO] < 0:
                    found[FIRST_ZERO] = token
                previous = index
                indices[entry] = index
                values[entry] = value
                entry += 1
                at = skip_blanks(text, at)
            start = at
            while text[at] != 10:
                at += 1
            if len(comments):
                comments[row, 0] = start + 1 if at > start else at
                comments[row, 1] = at
            row += 1
            row_ends[row] = entry
        while text[at] != 10:
            at += 1
        at += 1
    found[ROWS], found[ENTRIES], found[ROWS_WITH_QID] = row, entry, with_qid
    found[LARGEST], found[LEFT_TO_PYTHON] = largest, count
    return left


def _spread(row_ends, indices, base, values, matrix):
    """Put the entries of every row into a matrix of zeros; keeps the sign of −0."""
    for row in range(len(row_ends) - 1):
        for entry in range(row_ends[row], row_ends[row + 1]):
            matrix[row, indices[entry] - base] = values[entry]


announce(__file__, SOURCES, "compiling the reader for this CPU: takes some seconds, this once")
scan = compiled(_scan, sources=SOURCES, nogil=True, error_model="numpy")
spread = compiled(_spread, sources=SOURCES, nogil=True, error_model="numpy")
