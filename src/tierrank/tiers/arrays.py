"""Numpy views of the user's input and whose it is, and arithmetic on ragged ranges."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tierrank._types import AnyArray, IntArray

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Parts(NamedTuple):
    """What a builder hands to `Tiers`: its fields, as numpy arrays, and where they should live."""

    items: IntArray
    tier_offsets: IntArray
    list_offsets: IntArray
    score_shape: tuple[int, ...] | None = None
    n_items: int | None = None
    rest: bool = False
    names: tuple[Any, ...] | None = None
    keys: AnyArray | None = None
    labels: AnyArray | None = None
    device: torch.device = torch.device("cpu")


def outside_graphs(
    function: Callable[Given, Result],
    reason: str = "tiers depend on values, which a graph has not: build them before, and pass "
    "them in",
) -> Callable[Given, Result]:
    """Keep `torch.compile` out of a function: its result depends on values in every step.

    `torch.compiler.disable` alone would do it, but imports torch._dynamo, which takes seconds.
    """

    @wraps(function)
    def outside(*args: Given.args, **options: Given.kwargs) -> Result:
        if torch.compiler.is_compiling():
            apart = torch.compiler.disable(function)
            return cast(Result, apart(*args, **options))
        return function(*args, **options)

    # what `disable` sets: with fullgraph=True, the error then gives our reason
    outside.__dict__.update(_torchdynamo_disable=True, _torchdynamo_disable_msg=reason)
    return outside


def to_numpy(values: Any, what: str) -> AnyArray:
    """Give numpy, torch or pandas data, or nested lists, as a numpy array; a view if possible."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        if values.dtype == torch.bfloat16:  # numpy has no such type; float32 holds it exactly
            values = values.float()
        return np.asarray(values.numpy())
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{what} cannot be read as an array ({error}). For lists of different lengths, "
            "give all rows one after the other and their lengths."
        ) from error


def frame_library(data: Any) -> str | None:
    """Whose frame it is, if it is one."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    marks = {
        "pandas": ("iloc", "columns"),
        "polars": ("to_series",),
        "pyarrow": ("column_names",),
        "datasets": ("column_names", "num_rows", "with_format"),  # one that streams has no number
    }
    return next(
        (
            library
            for library, has in marks.items()
            if library in libraries and all(hasattr(data, each) for each in has)
        ),
        None,
    )


def is_dask(data: Any) -> bool:
    """Whether it is a collection of Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def device_of(values: Any) -> torch.device:
    """Give the device of a tensor, and the CPU for everything else."""
    return values.device if isinstance(values, Tensor) else torch.device("cpu")


@overload
def offsets(sizes: Tensor) -> Tensor: ...
@overload
def offsets(sizes: npt.ArrayLike) -> IntArray: ...
def offsets(sizes: Tensor | npt.ArrayLike) -> Tensor | IntArray:
    """Running sum from 0: the borders of consecutive ranges with these sizes."""
    if isinstance(sizes, Tensor):
        if sizes.device.type == "cpu":  # numpy's costs a quarter, which short lists feel
            return torch.from_numpy(offsets(sizes.numpy()))
        return torch.nn.functional.pad(sizes.cumsum(0), (1, 0))
    sizes = np.asarray(sizes, dtype=np.int64)
    borders = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=borders[1:])
    return borders


def list_of_entry(entry_offsets: IntArray) -> IntArray:
    """Number of the range that each entry belongs to."""
    return np.repeat(np.arange(len(entry_offsets) - 1, dtype=np.int64), np.diff(entry_offsets))


def range_at(borders: IntArray, entry: int) -> int:
    """Number of the range that one entry belongs to."""
    return int(np.searchsorted(borders, entry, side="right")) - 1


def run_starts(values: AnyArray) -> IntArray:
    """Where runs of equal neighbours start (nothing for no values)."""
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return np.flatnonzero(changed)


def stable_order(key: IntArray, n_keys: int) -> IntArray | None:
    """Stable argsort of keys in 0..n_keys-1, or None if they are sorted already.

    Sorting the pairs (key, position) packed into one integer is several times faster than an
    argsort, and is stable because no two are equal.
    """
    if np.all(key[1:] >= key[:-1]):
        return None
    bits = max(len(key) - 1, 1).bit_length()
    if n_keys.bit_length() + bits > 63:
        return np.argsort(key, kind="stable")
    packed = key << bits
    packed |= np.arange(len(key), dtype=np.int64)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def repeat(values: Tensor, sizes: Tensor) -> Tensor:
    """Repeat each value as often as its size says."""
    if values.device.type == "cpu":  # numpy's is several times faster than torch's, and no threads
        return torch.from_numpy(np.repeat(values.numpy(), sizes.numpy()))
    return values.repeat_interleave(sizes)


def range_numbers(sizes: Tensor) -> Tensor:
    """Give 0 as often as sizes[0] says, 1 as often as sizes[1], ..."""
    return repeat(torch.arange(len(sizes), device=sizes.device), sizes)


def ranges(starts: Tensor, sizes: Tensor) -> Tensor:
    """Give starts[0], starts[0] + 1, ... (sizes[0] of them), then those of the next range."""
    shift = repeat(starts - sizes.cumsum(0) + sizes, sizes)
    return shift.add_(torch.arange(len(shift), device=starts.device))


def preview(values: Any, limit: int = 60) -> str:
    """`repr`, cut to a length that fits into an error message."""
    text = repr(values)
    return text if len(text) <= limit else text[: limit - 3] + "..."
