"""From a query id per row to a list number per row, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.tiers.arrays import AnyArray, IntArray, run_starts, to_numpy

_PURE: dict[str, set[type]] = {"U": {str}, "S": {bytes}, "f": {float}}


def as_keys(qid: Any) -> AnyArray:
    """Query ids as an array in which those are equal that Python holds equal.

    Of a list with several types numpy makes one: 1 and "1" would be one string, NaN beside words
    the word "nan", and integers beside floats, or over 2^63, would lose digits.
    """
    keys = to_numpy(qid, "qid")
    pure = _PURE.get(keys.dtype.kind)
    if pure is None or keys.ndim != 1 or not isinstance(qid, list | tuple):
        return keys
    if set(map(type, qid)) <= pure:
        return keys
    as_given = np.empty(len(qid), dtype=object)
    as_given[:] = qid
    return as_given


def group_rows(qid: AnyArray, rows: int) -> tuple[IntArray, AnyArray]:
    """Number the lists in order of first appearance.

    Returns
    -------
    lists
        [rows] the list of each row
    keys
        [lists] the qid of each list
    """
    if qid.shape != (rows,):
        raise ValueError(
            f"qid has shape {qid.shape}, but there are {rows} labels: give one qid a row."
        )
    _check_present(qid)
    if qid.dtype.kind == "O":
        return _by_hash(qid)
    starts = run_starts(qid)
    keys = qid[starts]
    # Rows that are grouped already have one run a list; shuffled rows are not even worth the look.
    if 2 * len(starts) <= rows and len(np.unique(keys)) == len(keys):
        lists = np.zeros(rows, dtype=np.int64)
        lists[starts[1:]] = 1
        return np.cumsum(lists, out=lists), keys
    if qid.dtype.kind in "UST":
        return _by_hash(qid)
    first, codes = _first_and_code(qid)
    by_appearance = np.argsort(first)
    number = np.empty_like(by_appearance)
    number[by_appearance] = np.arange(len(first), dtype=np.int64)
    return number[codes], qid[first[by_appearance]]


def _first_and_code(qid: AnyArray) -> tuple[IntArray, IntArray]:
    """First row of every distinct qid, and for every row which of them it has."""
    rows = len(qid)
    if qid.dtype.kind in "iu":
        low, span = int(qid.min()), int(qid.max()) - int(qid.min()) + 1
        if span <= 4 * rows + 1024 and abs(low) + span < 1 << 62:  # a table beats a sort
            code = qid.astype(np.int64)
            code -= low
            first = np.full(span, rows, dtype=np.int64)
            first[code[::-1]] = np.arange(rows - 1, -1, -1)  # the last written stays: the first row
            used = np.flatnonzero(first < rows)
            squeeze = np.empty(span, dtype=np.int64)
            squeeze[used] = np.arange(len(used))
            return first[used], squeeze[code]
    _, first, code = np.unique(qid, return_index=True, return_inverse=True)
    return first, code.reshape(-1)


def _by_hash(qid: AnyArray) -> tuple[IntArray, AnyArray]:
    """Strings and objects: a dictionary keeps the order of appearance and never sorts."""
    values = qid.tolist()
    try:
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
    except TypeError as error:
        raise ValueError(f"qid must be hashable, such as numbers or strings: {error}.") from error
    lists = np.fromiter(map(number.__getitem__, values), dtype=np.int64, count=len(values))
    missing = [i for value, i in number.items() if _is_missing(value)]
    if missing:
        _refuse_missing(np.isin(lists, missing))
    keys = np.empty(len(number), dtype=qid.dtype)
    for value, i in number.items():  # one by one: numpy would unpack a tuple
        keys[i] = value
    return lists, keys


def _check_present(qid: AnyArray) -> None:
    if qid.dtype.kind in "fc":
        _refuse_missing(np.isnan(qid))
    elif qid.dtype.kind in "mM":
        _refuse_missing(np.isnat(qid))


def _refuse_missing(missing: AnyArray) -> None:
    if missing.any():
        raise ValueError(
            f"qid[{int(np.argmax(missing))}] is missing ({int(missing.sum())} such rows in all): "
            "every row needs the qid of its list."
        )


def _is_missing(value: Any) -> bool:
    """None, or not equal to itself: NaN and pandas' NaT and NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA: neither true nor false
        return True


def checked_lengths(lengths: AnyArray, rows: int, what: str) -> IntArray:
    """Sizes of lists of consecutive rows, each of which has one of `what`."""
    if lengths.ndim != 1 or (len(lengths) and lengths.dtype.kind not in "iu"):
        raise ValueError(
            f"lengths must be 1-D integers, not {lengths.dtype} with shape {lengths.shape}."
        )
    sizes = lengths.astype(np.int64)
    if len(sizes) and sizes.min() <= 0:
        at = int(np.argmax(sizes <= 0))
        problem = "is negative" if sizes[at] < 0 else "is an empty list: leave it out"
        raise ValueError(f"lengths[{at}] = {sizes[at]} {problem}.")
    if int(sizes.sum()) != rows:
        raise ValueError(
            f"the lengths sum to {sizes.sum()}, but there are {rows} {what}: "
            "every row must belong to exactly one list."
        )
    return sizes
