"""Tiers from labels: rows with one graded label each, higher is better."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import (
    Parts,
    device_of,
    list_of_entry,
    offsets,
    preview,
    run_starts,
    stable_order,
    to_numpy,
)
from tierrank.tiers.catalogue import is_missing

# Integer labels in a range up to this are ranked by subtraction, others by sorting them first.
_NARROW = 1 << 16

# Of which type all ids of a list are, if numpy made this kind of array of it without a change.
_PURE: dict[str, set[type]] = {"U": {str}, "S": {bytes}, "f": {float}}


def parts_from_labels(labels: Any, qid: Any, lengths: Any, mask: Any, ignore_label: Any) -> Parts:
    """Build the fields of `Tiers.from_labels`, which says what the arguments mean."""
    values = _numeric(labels)
    if values.ndim == 2:
        parts = _padded(values, qid, lengths, _real_items(values, mask, ignore_label))
    elif values.ndim == 1:
        if mask is not None or ignore_label is not None:
            name = "mask" if mask is not None else "ignore_label"
            raise ValueError(
                f"{name} is for 2-D labels: for flat labels, leave the rows out instead."
            )
        parts = _flat(values, qid, lengths)
    else:
        raise ValueError(
            f"labels have shape {values.shape}: give flat rows (1-D), or one list a row (2-D)."
        )
    return parts._replace(device=device_of(labels))


def _flat(values: AnyArray, qid: Any, lengths: Any) -> Parts:
    if qid is not None and lengths is not None:
        raise ValueError("qid and lengths both say which rows form a list: give one of them.")
    rows = len(values)
    keys: AnyArray | None = None
    if qid is not None:
        lists, keys = group_rows(as_keys(qid), rows)
        n_lists = len(keys)
    elif lengths is not None:
        sizes = checked_lengths(to_numpy(lengths, "lengths"), rows, "labels")
        lists, n_lists = list_of_entry(offsets(sizes)), len(sizes)
    else:
        lists, n_lists = np.zeros(rows, dtype=np.int64), min(rows, 1)
    _check_finite(values, None, (rows,))
    parts = _sort_into_tiers(values, lists, n_lists, None)
    return parts._replace(score_shape=(rows,), keys=keys)


def _real_items(values: AnyArray, mask: Any, ignore_label: Any) -> AnyArray | None:
    """Which of 2-D labels are no padding; None for all."""
    if mask is None and ignore_label is None:
        _refuse_padding(values)
        return None
    real = np.ones(values.shape, bool) if mask is None else to_numpy(mask, "mask")
    if real.shape != values.shape or real.dtype != np.bool_:
        raise ValueError(
            f"mask must be boolean with the labels' shape {values.shape} (True is a real "
            f"item), not {real.dtype} with shape {real.shape}."
        )
    if ignore_label is None:
        return real
    if not isinstance(ignore_label, int | float | np.number):
        raise ValueError(f"ignore_label is the label of padding, a number, not {ignore_label!r}.")
    return np.asarray(real & (values != ignore_label))


def _refuse_padding(values: AnyArray) -> None:
    """Others pad with −1; taken for a label it would be a worst tier, and nothing would tell."""
    if not values.size or values.min() != -1:
        return
    padding = values == -1
    if padding.all() or not (values[~padding] >= 0).all():
        return
    row, column = np.unravel_index(int(np.argmax(padding)), values.shape)
    raise ValueError(
        f"labels[{row}, {column}] is -1 ({int(padding.sum())} such labels in all), and the others "
        "are 0 or more: that looks like padding. Leave it out with ignore_label=-1, or give mask= "
        "(True is a real item; all True if -1 is a label like the others)."
    )


def _padded(values: AnyArray, qid: Any, lengths: Any, real: AnyArray | None) -> Parts:
    if qid is not None or lengths is not None:
        raise ValueError(
            "with 2-D labels each row is a list, so qid and lengths have no place: give a mask for "
            "the padding (with lengths: mask = np.arange(width) < lengths[:, None])."
        )
    n_lists, width = values.shape
    if real is None:
        sizes = np.full(n_lists, width)
        flat, entries = values.ravel(), None
    else:
        sizes = real.sum(axis=1)
        entries = np.flatnonzero(real)
        flat = values.ravel()[entries]
    if n_lists and not sizes.all():
        raise ValueError(
            f"labels[{int(np.argmin(sizes != 0))}]: the list has no items"
            f"{'' if real is None else ' (all are masked)'}. Leave the row out."
        )
    _check_finite(flat, entries, values.shape)
    parts = _sort_into_tiers(flat, list_of_entry(offsets(sizes)), n_lists, entries)
    return parts._replace(score_shape=(n_lists, width))


def _sort_into_tiers(
    values: AnyArray, lists: IntArray, n_lists: int, entries: IntArray | None
) -> Parts:
    """Sort by list, then by label with the best first, then by position."""
    rank, n_ranks = _descending_rank(values)
    if n_lists * n_ranks >= 1 << 62:  # pragma: no cover (more than 2 billion rows)
        raise ValueError(f"{n_lists} lists with {n_ranks} distinct labels are too many.")
    rank += lists * n_ranks
    key = rank
    order = stable_order(key, n_lists * n_ranks)
    if order is None:
        order = np.arange(len(key), dtype=np.int64)
    else:
        key = key[order]
    starts = run_starts(key)
    tiers_per_list = np.bincount(key[starts] // max(n_ranks, 1), minlength=n_lists)
    return Parts(
        items=order if entries is None else entries[order],
        tier_offsets=np.append(starts, len(key)),
        list_offsets=offsets(tiers_per_list),
        labels=values[order[starts]].astype(np.float64),
    )


def _descending_rank(values: AnyArray) -> tuple[IntArray, int]:
    """Rank of each label among all labels, the highest is 0, and the number of ranks."""
    if not len(values):
        return np.zeros(0, dtype=np.int64), 1
    low, high = values.min(), values.max()
    # Exact in Python's integers; grades read as floats (0.0, 1.0, ...) are ranked as integers too.
    narrow = int(high) - int(low) < _NARROW and abs(int(low)) < 1 << 52
    if narrow and (values.dtype.kind != "f" or bool(np.all(values == np.trunc(values)))):
        rank = values.astype(np.int64)
        np.subtract(int(high), rank, out=rank)
        return rank, int(high) - int(low) + 1
    distinct, ascending = np.unique(values, return_inverse=True)
    rank = len(distinct) - 1 - ascending.reshape(-1).astype(np.int64, copy=False)
    return rank, len(distinct)


def _numeric(labels: Any) -> AnyArray:
    values = to_numpy(labels, "labels")
    if values.dtype.kind == "O":  # pandas' nullable columns, lists with None: missing becomes NaN
        try:
            if hasattr(labels, "to_numpy"):
                values = labels.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"labels must be numbers, not {preview(values.ravel()[:3].tolist())}."
            ) from None
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"labels must be integers, floats or booleans (higher is better), not {values.dtype}."
        )
    return values


def _check_finite(values: AnyArray, entries: IntArray | None, shape: tuple[int, ...]) -> None:
    if values.dtype.kind != "f":
        return
    finite = np.isfinite(values)
    if finite.all():
        return
    at = int(np.argmin(finite))
    place = np.unravel_index(at if entries is None else int(entries[at]), shape)
    where = ", ".join(str(int(i)) for i in place)
    kind = "NaN" if np.isnan(values[at]) else "infinite"
    cure = "leave the row out" if len(shape) == 1 else "mask it out"
    raise ValueError(
        f"labels[{where}] is {kind} ({len(values) - int(finite.sum())} such labels in all): "
        f"{cure}, or give it a finite label."
    )


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
    missing = [i for value, i in number.items() if type(value) is not tuple and is_missing(value)]
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
