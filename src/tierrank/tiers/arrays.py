"""The user's input as numpy and generators, rows by list, arithmetic on ragged ranges."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tierrank._types import AnyArray, IntArray
from tierrank.errors import Argument, ArgumentError

Given = ParamSpec("Given")
Result = TypeVar("Result")

MOST = 2**53  # beyond it, decimals are not whole numbers any more

# Of which type all ids of a list are, if numpy made this kind of array of it without a change.
_PURE: dict[str, set[type]] = {"U": {str}, "S": {bytes}, "f": {float}}


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


def as_generator(
    generator: torch.Generator | int | None, device: torch.device
) -> torch.Generator | None:
    """A generator for a device; None stays None, torch's global one."""
    if generator is None or isinstance(generator, torch.Generator):
        return generator
    return torch.Generator(device).manual_seed(operator.index(generator))  # numpy's integers too


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


def is_missing(name: object) -> bool:
    """Whether it stands for no value: None, NaN of any type, NaT, pandas' NA; or has one in it."""
    if isinstance(name, str | int):
        return False
    if isinstance(name, tuple | frozenset):
        return any(map(is_missing, name))
    try:
        return name is None or bool(name != name)
    except (TypeError, ArithmeticError):  # NA is not even unequal to itself
        return True


# Rows by list ------------------------------------------------------------------------------------


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


def whole_numbers(
    name: str,
    given: Any,
    count: int,
    least: int,
    most: int = MOST,
    *,
    each: str = "entry",
    where: str = "in entry",
) -> IntArray:
    """Whole numbers in a range, one for each of so many; refuses others, and names the first."""
    values = np.asarray(given)
    if values.shape != (count,):
        raise ArgumentError(
            Argument(name), f" has shape {list(values.shape)}, not {[count]}: give one a {each}."
        )
    try:
        if values.dtype.kind in "mMc":  # dates would be taken for days
            raise TypeError
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            Argument(name), f" holds no numbers, but {values.dtype}: give whole numbers."
        ) from None
    wrong = ~((numbers >= least) & (numbers <= most) & (numbers == np.floor(numbers)))
    if wrong.any():
        at = int(wrong.argmax())
        limit = f"{most:,}" if most < MOST else "2^53"
        raise ArgumentError(
            Argument(name), f" is {values[at]} {where} {at} (counted from 0): give whole "
            f"numbers, {least:,} to {limit}.",
        )  # fmt: skip
    return numbers.astype(np.int64)
