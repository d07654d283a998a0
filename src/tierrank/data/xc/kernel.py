"""One pass over the rows of an XC file, compiled: `label,label,… index:value index:value …`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba.extending import register_jitable

from tierrank.compilation import announce, compiled, digest
from tierrank.data.text import decimals, tokens
from tierrank.data.text.decimals import FOR_PYTHON, NUMBER, OPTIONS, U, is_digit, number
from tierrank.data.text.tokens import is_blank, noted, skip_blanks

SOURCES = digest([Path(__file__), Path(decimals.__file__), Path(tokens.__file__)])

MOST_COLUMNS = 2**31 - 1

# what may be wrong with a token
FINE, BAD_LABEL, LARGE_LABEL, LABEL_TWICE, BAD_INDEX, LARGE_INDEX, ZERO_INDEX, TWICE, BAD_VALUE = (
    range(9)
)

# what a pass finds out, in `found`
(
    ROWS, FILLED_ROWS, LABELS, ENTRIES, FAULT, FAULT_AT, LARGEST_LABEL, LARGEST_COLUMN,
    UNSORTED_LABELS, UNSORTED, LEFT_TO_PYTHON, FOUND,
) = range(12)  # fmt: skip

SMALLEST_NORMAL, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
LOWER_HALF, HALFWAY = 2**29 - 1, 2**28  # the bits of a float64 that a float32 has no place for


@register_jitable(**OPTIONS)
def rounds_twice(value):
    """Whether the float32 next to a float64 may not be the one next to what was written.

    So it is halfway between two of them; and, to be short, where their spacing is another one.
    """
    if np.uint64(np.float64(value).view(np.uint64)) & U(LOWER_HALF) == U(HALFWAY):
        return True
    size = abs(value)
    return size > LARGEST or (size < SMALLEST_NORMAL and size > 0.0)


@register_jitable(**OPTIONS)
def column_number(text, at):
    """Digits as a number, no larger than what is just too large; and where they end."""
    value = 0
    while is_digit(text[at]):
        if value <= MOST_COLUMNS:
            value = value * 10 + (np.int64(text[at]) - 48)
        at += 1
    return min(value, MOST_COLUMNS + 1), at


def _tally(text, at):
    """How many newlines, colons and commas follow: what rows, entries and labels are at most."""
    newlines = colons = commas = 0
    for byte in text[at:]:  # without a branch, so that it is vectorised
        newlines += byte == 10
        colons += byte == 58
        commas += byte == 44
    return newlines, colons, commas


def _scan(
    text, at, with_labels, base, n_features, n_labels, powers,
    label_ends, labels, row_ends, indices, values, found,
):  # fmt: skip
    """Fill the arrays from the lines of `text` that start at a place; stop at the first fault.

    Every line is a row, a blank one too. The last byte of the text is a newline.

    Parameters
    ----------
    with_labels
        whether a row begins with its labels: what stands at the very start of the line, unless
        that is `index:value`
    base
        the first index: 0 or 1
    n_features, n_labels
        what indices and labels must stay below
    label_ends, row_ends
        [rows + 1] the first is 0; label_ends is not filled without labels

    Returns
    -------
    [left to Python, 3] entry, start and end of numbers whose float32 is left to Python
    """
    left = np.empty((16, 3), dtype=np.int64)
    count = 0
    row = 0
    entry = 0
    label_entry = 0
    largest_label = -1
    largest = -1
    size = len(text)
    while at < size:
        first = entry + label_entry
        if with_labels:
            start = at
            previous = -1
            while not is_blank(text[at]) and text[at] != 10:
                token = at
                label, at = column_number(text, token)
                if text[at] == 58 and token == start:  # no labels, and the first feature
                    at = start
                    break
                ends = text[at] == 44 or is_blank(text[at]) or text[at] == 10
                if at == token or not ends:
                    found[FAULT], found[FAULT_AT] = BAD_LABEL, token
                    return left
                if label >= n_labels:
                    found[FAULT], found[FAULT_AT] = LARGE_LABEL, token
                    return left
                if label <= previous:
                    if label == previous:
                        found[FAULT], found[FAULT_AT] = LABEL_TWICE, token
                        return left
                    found[UNSORTED_LABELS] = 1
                previous = label
                largest_label = max(largest_label, label)
                labels[label_entry] = label
                label_entry += 1
                if text[at] == 44:
                    at += 1
                    if is_blank(text[at]) or text[at] == 10:
                        found[FAULT], found[FAULT_AT] = BAD_LABEL, at
                        return left
            label_ends[row + 1] = label_entry
        previous = -1
        at = skip_blanks(text, at)
        while text[at] != 10:
            token = at
            index, at = column_number(text, token)
            if at == token or text[at] != 58:
                found[FAULT], found[FAULT_AT] = BAD_INDEX, token
                return left
            column = index - base
            if column < 0 or column >= n_features:
                found[FAULT], found[FAULT_AT] = ZERO_INDEX if column < 0 else LARGE_INDEX, token
                return left
            start = at + 1
            value, kind, at = number(text, start, powers)
            if kind == FOR_PYTHON or (kind == NUMBER and np.isfinite(value)):
                if kind == FOR_PYTHON or rounds_twice(value):
                    left = noted(left, count, entry, start, at)
                    count += 1
            else:
                found[FAULT], found[FAULT_AT] = BAD_VALUE, token
                return left
            if column <= previous:
                if column == previous:
                    found[FAULT], found[FAULT_AT] = TWICE, token
                    return left
                found[UNSORTED] = 1
            previous = column
            largest = max(largest, column)
            indices[entry] = column
            values[entry] = value
            entry += 1
            at = skip_blanks(text, at)
        at += 1
        row += 1
        row_ends[row] = entry
        if entry + label_entry > first:
            found[FILLED_ROWS] = row
    found[ROWS], found[ENTRIES], found[LABELS] = row, entry, label_entry
    found[LARGEST_LABEL], found[LARGEST_COLUMN] = largest_label, largest
    found[LEFT_TO_PYTHON] = count
    return left


announce(__file__, SOURCES, "compiling the reader for this CPU: takes some seconds, this once")
tally = compiled(_tally, sources=SOURCES, nogil=True)
scan = compiled(_scan, sources=SOURCES, nogil=True, error_model="numpy")
