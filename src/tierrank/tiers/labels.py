"""Tiers from labels: rows with one graded label each, higher is better."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.tiers.arrays import (
    AnyArray,
    IntArray,
    Parts,
    device_of,
    list_of_entry,
    offsets,
    preview,
    run_starts,
    stable_order,
    to_numpy,
)
from tierrank.tiers.grouping import as_keys, checked_lengths, group_rows

# Integer labels in a range up to this are ranked by subtraction, others by sorting them first.
_NARROW = 1 << 16


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
