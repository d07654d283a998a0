"""What every measure begins and ends with: checked rows, grouped by list; one value a list."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank._types import AnyArray, IntArray
from tierrank.tiers.arrays import list_of_entry, offsets, preview, stable_order, to_numpy
from tierrank.tiers.labels import as_keys, checked_lengths, group_rows

FloatArray = npt.NDArray[np.float64]
Gain = Literal["exp2", "linear"] | Callable[[FloatArray], Any]
Ties = Literal["average", "input"]
Empty = float | Literal["skip"]
Reduction = Literal["mean", "none"]


class Lists(NamedTuple):
    """Rows of the same list side by side, lists in order of first appearance.

    Attributes
    ----------
    scores, labels
        [rows] of any kind of number, finite
    borders
        [lists + 1] list l has the rows borders[l] … borders[l + 1] − 1; none is empty
    rows
        [rows] where each row stood in the input, or None if nothing was moved
    """

    scores: AnyArray
    labels: AnyArray
    borders: IntArray
    rows: IntArray | None

    @property
    def starts(self) -> IntArray:
        return self.borders[:-1]

    @property
    def sizes(self) -> IntArray:
        return np.diff(self.borders)

    @property
    def list_of_row(self) -> IntArray:
        return list_of_entry(self.borders)

    def row_in_input(self, row: int) -> int:
        """The number by which the user knows a row."""
        return row if self.rows is None else int(self.rows[row])


def read_lists(scores: Any, labels: Any, qid: Any, lengths: Any) -> Lists:
    """Check the input of a measure, and group its rows by list."""
    score, label = _finite_rows(scores, "scores"), _finite_rows(labels, "labels")
    if len(score) != len(label):
        raise ValueError(
            f"there are {len(score)} scores, but {len(label)} labels: give one of each a row."
        )
    rows = len(score)
    if qid is not None and lengths is not None:
        raise ValueError("qid and lengths both say which rows form a list: give one of them.")
    if not rows:
        raise ValueError("there are no rows, so there is nothing to measure.")
    if lengths is not None:
        return Lists(
            score, label, offsets(checked_lengths(to_numpy(lengths, "lengths"), rows, "rows")), None
        )
    if qid is None:
        return Lists(score, label, np.array([0, rows]), None)
    list_of_row, keys = group_rows(as_keys(qid), rows)
    borders = offsets(np.bincount(list_of_row, minlength=len(keys)))
    order = stable_order(list_of_row, len(keys))
    if order is None:
        return Lists(score, label, borders, None)
    return Lists(score[order], label[order], borders, order)


def _finite_rows(values: Any, what: str) -> AnyArray:
    rows = to_numpy(values, what)
    if rows.dtype.kind == "O":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{what} must be numbers, not {preview(rows.ravel()[:3].tolist())}."
            ) from None
    if rows.dtype.kind == "b":
        rows = rows.view(np.uint8)
    if rows.dtype.kind not in "iuf":
        raise ValueError(f"{what} must be integers, floats or booleans, not {rows.dtype}.")
    if rows.ndim != 1:
        raise ValueError(
            f"{what} have shape {rows.shape}: give flat rows (1-D), and qid or lengths for "
            "several lists (of padded ones: scores[mask], labels[mask], lengths=mask.sum(1))."
        )
    if rows.dtype.kind == "f" and not (finite := np.isfinite(rows)).all():
        at = int(np.argmin(finite))
        kind = "NaN" if np.isnan(rows[at]) else "infinite"
        raise ValueError(
            f"{what}[{at}] is {kind} ({len(rows) - int(finite.sum())} such {what} in all): "
            "leave the row out, or give it a finite number."
        )
    return rows


def checked_k(k: int | None) -> int | None:
    """A number of places from 1, or None for all of them."""
    if k is None:
        return None
    try:
        places = operator.index(k)
    except TypeError:
        places = 0
    if places < 1:
        raise ValueError(f"k is a number of places from 1 on, or None for all, not {k!r}.")
    return places


def choice(what: str, given: Any, known: tuple[str, ...]) -> Any:
    """Refuse an option that does not exist."""
    if not isinstance(given, str) or given not in known:
        words = " or ".join(f'"{one}"' for one in known)
        raise ValueError(f"{what} is {words}, not {given!r}.")
    return given


def ratio(numerator: AnyArray, denominator: AnyArray) -> FloatArray:
    """Quotients, and 0 where the denominator is not positive (which is where `empty` rules)."""
    positive = denominator > 0
    quotient: FloatArray = numerator / np.where(positive, denominator, 1)
    return np.where(positive, quotient, 0.0)


def finish(
    values: FloatArray, reduction: Reduction, is_empty: AnyArray | None = None, empty: Empty = 0.0
) -> Any:
    """Put `empty` where a list has nothing to measure, and take the mean if it is asked for."""
    choice("reduction", reduction, ("mean", "none"))
    if is_empty is not None:
        values = np.where(is_empty, _value_of_empty(empty), values)
        if empty == "skip" and reduction == "mean":
            values = values[~is_empty]
            if not len(values):
                raise ValueError(
                    "every list is empty (has nothing relevant, or nothing to compare), and "
                    'empty="skip" leaves them all out: there is no mean. Give them a value instead.'
                )
    return float(values.mean()) if reduction == "mean" else values


def _value_of_empty(empty: Empty) -> float:
    if empty == "skip":
        return np.nan
    try:
        return float(empty)
    except (TypeError, ValueError):
        raise ValueError(
            f'empty is a number, or "skip" to leave such lists out, not {empty!r}.'
        ) from None
