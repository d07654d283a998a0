"""Features of items in any form: an array, a mapping, or a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.data.tables.columns import BadColumn, frame_columns
from tierrank.tiers.arrays import preview, to_numpy

SHOWN = 5  # names in an error


@dataclass(frozen=True)
class ItemFeatures:
    """Rows of numbers, with the names of items and of features where there are any.

    Attributes
    ----------
    values
        [rows, features] float64; it may have NaN until `checked`
    items
        [rows] names of the items, no two alike; None: the rows have none
    names
        [features] their names; None: they have none
    """

    values: FloatArray
    items: tuple[Any, ...] | None
    names: tuple[str, ...] | None

    def of(self, items: Sequence[Any]) -> ItemFeatures:
        """The rows of these items, in their order; all rows, if these have no names."""
        if self.items is None:
            if len(self.values) != len(items):
                raise ValueError(
                    f"features have {len(self.values)} rows for {len(items)} items: an array has "
                    "one row an item of the catalogue, in its order"
                )
            return ItemFeatures(self.values, tuple(items), self.names)
        row_of = dict(zip(self.items, range(len(self.items)), strict=True))
        absent = [item for item in items if item not in row_of]
        if absent:
            raise ValueError(
                f"features lack {len(absent)} of {len(items)} items: {_few(absent)}. (They have "
                f"{_few(list(self.items))}.) Give theirs too, or leave out the lists with these "
                "items."
            )
        rows = np.array([row_of[item] for item in items], dtype=np.int64)
        return ItemFeatures(self.values[rows], tuple(items), self.names)

    def named(self, names: tuple[str, ...], *, by_name: bool) -> ItemFeatures:
        """The columns that a fit knows: by their names if it had some, else by their order."""
        values = self.values
        if by_name and self.names is not None:
            column_of = dict(zip(self.names, range(len(self.names)), strict=True))
            absent = [name for name in names if name not in column_of]
            if absent:
                raise ValueError(f"the fit had features that are not there: {_few(absent)}")
            values = values[:, [column_of[name] for name in names]]
        if values.shape[1] != len(names):
            raise ValueError(
                f"there are {values.shape[1]} features an item, but the fit had {len(names)}"
            )
        return ItemFeatures(values, self.items, names)

    def checked(self) -> ItemFeatures:
        """Itself, if all numbers are finite."""
        wrong = ~np.isfinite(self.values)
        if wrong.any():
            row, column = (int(number) for number in np.argwhere(wrong)[0])
            item = f"row {row}" if self.items is None else f"item {preview(self.items[row])}"
            name = column if self.names is None else preview(self.names[column])
            raise ValueError(
                f"{item}: feature {name} is {self.values[row, column]}, not a finite number: fill "
                "in what is missing, or leave the feature or the item out"
            )
        return self


def read_features(features: Any, item_column: str | None = None) -> ItemFeatures:
    """Take features in any form.

    Parameters
    ----------
    features
        [items, features] array; a mapping from items to vectors, or to mappings from names of
        features to numbers; or a frame of pandas (whose index names the items), polars or pyarrow
    item_column
        the column of a frame that names the items
    """
    if isinstance(features, ItemFeatures):
        return features
    if isinstance(features, Mapping):
        return _of_mapping(features)
    if hasattr(features, "columns") or hasattr(features, "collect"):
        return _of_frame(features, item_column)
    values = to_numpy(features, "features")
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise ValueError(
            "features are numbers [items, features], a mapping from items to vectors, or a frame; "
            f"not {values.dtype} of shape {values.shape}"
        )
    return _some(ItemFeatures(values.astype(np.float64), None, None))


def _of_mapping(features: Mapping[Any, Any]) -> ItemFeatures:
    items = tuple(features)
    names: tuple[str, ...] | None = None
    rows: list[FloatArray] = []
    for item, given in features.items():
        if isinstance(given, Mapping):
            own = {str(name): number for name, number in given.items()}
            names = tuple(own) if names is None and not rows else names
            if names is None or set(own) != set(names):
                raise ValueError(
                    f"item {preview(item)} has the features {_few(list(own))}, and item "
                    f"{preview(items[0])} has others: give all items the same"
                )
            given = [own[name] for name in names]
        elif names is not None:
            raise ValueError(f"item {preview(item)}: its features have no names, others' have some")
        row = to_numpy(given, f"features of item {preview(item)}")
        if row.ndim != 1 or row.dtype.kind not in "iufb" or (rows and len(row) != len(rows[0])):
            wanted = f"a vector of {len(rows[0])} numbers" if rows else "a vector of numbers"
            raise ValueError(
                f"item {preview(item)}: features are {wanted}, not {row.dtype} of shape {row.shape}"
            )
        rows.append(row.astype(np.float64))
    values = np.array(rows) if rows else np.zeros((0, 0))
    return _some(ItemFeatures(values, items, names))


def _of_frame(frame: Any, item_column: str | None) -> ItemFeatures:
    columns = frame_columns(frame)
    names = list(columns.names)
    items: tuple[Any, ...] | None = None
    if item_column is not None:
        if names.count(item_column) != 1:
            raise ValueError(
                f"the frame has {names.count(item_column) or 'no'} columns {item_column!r}, which "
                f"item_column names: it has {_few(names)}"
            )
        found = columns.distinct(names.index(item_column), "item")
        if isinstance(found, BadColumn):
            raise ValueError(f"column {item_column!r}, which names the items, {found.why}")
        items = tuple(found.values[code] for code in found.codes.tolist())
    elif hasattr(frame, "index"):  # of pandas
        items = tuple(frame.index.tolist())
    if items is not None and len(set(items)) < len(items):
        twice = next(item for place, item in enumerate(items) if item in items[:place])
        raise ValueError(f"item {preview(twice)} has two rows of features: give it one")
    chosen = [place for place, name in enumerate(names) if name != item_column]
    values = np.empty((columns.rows, len(chosen)))
    for column, place in enumerate(chosen):
        numbers = columns.floats(place)
        if isinstance(numbers, BadColumn):
            raise ValueError(f"feature {names[place]!r} {numbers.why}")
        values[:, column] = numbers
    if len(set(names)) < len(names):
        raise ValueError("two columns of the frame have one name: rename one")
    return _some(ItemFeatures(values, items, tuple(names[place] for place in chosen)))


def _some(features: ItemFeatures) -> ItemFeatures:
    if not features.values.size:
        raise ValueError(f"features have the shape {features.values.shape}: there are none")
    return features


def _few(names: Sequence[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(preview(name) for name in names[:SHOWN]) + more
