"""PrefLib files into rankings."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import torch

from tierrank.data.files import expands, without_compression
from tierrank.data.rankings.errors import Doubts, PrefLibError
from tierrank.data.rankings.preflib.checks import SUFFIXES, DataType, type_fault
from tierrank.data.rankings.preflib.container import PrefLib, Style
from tierrank.data.rankings.preflib.header import (
    ALTERNATIVE,
    CATEGORY,
    N_ALTERNATIVES,
    N_CATEGORIES,
    N_UNIQUE,
    N_VOTERS,
    RELATED_FILES,
    TEXTS,
    Field,
    Header,
    check_stated,
    distinct_names,
    file_names,
    is_known,
    numbered_names,
    split_header,
    stated_type,
)
from tierrank.data.rankings.preflib.orders import IntArray, Orders, split_orders
from tierrank.data.text import Text
from tierrank.tiers import Tiers


@expands
def read_preflib(
    path: str | PathLike[str], *, strict: bool = False, max_expansion: float | None = None
) -> PrefLib:
    """Read a PrefLib file: soc, soi, toc, toi or cat.

    The orders must be what the type says: without ties in soc and soi, with all alternatives in
    soc and toc. Some of PrefLib's own files number from 0, state other numbers than there are, or
    have empty ballots. Since only one reading is possible, they are read so, and a warning says
    what was assumed: numbers as the names have them, or as an order shows that lists all of them;
    what was counted; and the other ballots. `write_preflib` then writes what was assumed.

    Parameters
    ----------
    path
        the file; decompressed if the name ends in .gz, .xz or .bz2
    strict
        True to refuse such files
    max_expansion
        how many times its size a compressed file may expand to, beyond half a GiB: 200 without it

    Raises
    ------
    PrefLibError
        a `ValueError` that names the file and the line, and says what to do

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "lunch.toi")
    ...     _ = file.write_text('''# TITLE: Lunch
    ... # ALTERNATIVE NAME 1: soup
    ... # ALTERNATIVE NAME 2: rice
    ... # ALTERNATIVE NAME 3: cake
    ... 4: 3,{1,2}
    ... 2: 1
    ... ''')
    ...     lunch = read_preflib(file)
    >>> lunch
    PrefLib(toi, 'Lunch': 3 alternatives, 6 voters, 2 unique orders)
    >>> lunch.rankings
    Rankings(2 lists of weight 6, 3 items)
      4 × cake > {soup, rice}
      2 × soup
    """
    return read_with(path, Doubts(strict=strict), stacklevel=3)  # past the wrapper


def read_with(path: str | PathLike[str], doubts: Doubts, stacklevel: int) -> PrefLib:
    """Read a file; a warning of doubts is for the caller that many levels up."""
    path = Path(path)
    text = Text(path, PrefLibError)
    header = split_header(text)
    suffix = SUFFIXES.get(without_compression(path).suffix.lower())
    data_type = stated_type(header, text, suffix)
    alternatives, lowest = numbered_names(header, ALTERNATIVE, N_ALTERNATIVES, text, doubts)
    categories: tuple[str, ...] = ()
    if data_type == "cat":
        categories, _ = numbered_names(header, CATEGORY, N_CATEGORIES, text, doubts)
    orders = split_orders(text, header.end)
    _check_numbers(orders, header, text, doubts)
    orders = _without_empty(orders, data_type, text, doubts)
    _check_groups(orders, data_type, len(categories), text)
    tiers = _tiers_of(orders, lowest, distinct_names(alternatives), text, doubts)
    fault = type_fault(tiers, data_type)
    if fault is not None:
        raise text.file_error(int(orders.lines[fault[0]]), fault[1])
    filled = orders.group_sizes > 0
    tier_of_group = np.cumsum(filled) - 1
    fields = header.fields
    doubts.warn(path, stacklevel + 1)
    return PrefLib(
        orders=tiers,
        counts=orders.counts,
        data_type=data_type,
        alternative_names=alternatives,
        categories=categories,
        tier_categories=_place_in_order(orders)[filled] if data_type == "cat" else None,
        related_files=file_names(fields.get(RELATED_FILES, _NOTHING).value),
        other={key: field.value for key, field in fields.items() if not is_known(key)},
        header=header.lines,
        style=Style(
            between_tiers=", " if orders.blank_between_groups else ",",
            in_ties=", " if orders.blank_in_ties else ",",
            braced=tuple(tier_of_group[orders.braced].tolist()),
        ),
        **{attribute: fields.get(key, _NOTHING).value for key, attribute in TEXTS.items()},
    )


_NOTHING = Field("", 0)


def _check_numbers(orders: Orders, header: Header, text: Text, doubts: Doubts) -> None:
    """Compare the header's counts with what is there."""
    voters = int(orders.counts.sum())
    for key, found, what in (
        (N_VOTERS, voters, "are {} voters"),
        *((key, len(orders.counts), "are {} lines of orders") for key in N_UNIQUE),
    ):
        check_stated(header, key, found, what, text, doubts)


def _without_empty(orders: Orders, data_type: DataType, text: Text, doubts: Doubts) -> Orders:
    """Leave out ballots that name nobody."""
    order_of_group = np.repeat(np.arange(len(orders.n_groups)), orders.n_groups)
    sizes = np.bincount(order_of_group, orders.group_sizes, minlength=len(orders.n_groups))
    kept = sizes > 0
    if not kept.all():
        what = "no category has an alternative" if data_type == "cat" else "the order is empty"
        doubts.settle(
            text.file_error(
                int(orders.lines[kept.argmin()]), f"{what}: leave the line out, and its voters."
            ),
            f"{what}: it was left out, like all such ballots of {orders.counts[~kept].sum():,} "
            "voters",
        )
        kept_groups = kept[order_of_group]
        orders = orders._replace(
            counts=orders.counts[kept],
            lines=orders.lines[kept],
            n_groups=orders.n_groups[kept],
            group_sizes=orders.group_sizes[kept_groups],
            braced=(np.cumsum(kept_groups) - 1)[orders.braced],
        )
    if not orders.counts.any():
        raise text.file_error(None, "there is no order behind the header that anyone gave.")
    return orders


def _check_groups(orders: Orders, data_type: DataType, categories: int, text: Text) -> None:
    """Braces may be empty in a cat file alone, where every category has its place."""
    order_of_group = np.repeat(np.arange(len(orders.n_groups)), orders.n_groups)
    if data_type != "cat":
        if not orders.group_sizes.all():
            order = order_of_group[(orders.group_sizes == 0).argmax()]
            raise text.file_error(
                int(orders.lines[order]), "there are empty braces: leave them out."
            )
        return
    wrong = orders.n_groups != categories
    if wrong.any():
        order = int(wrong.argmax())
        raise text.file_error(
            int(orders.lines[order]),
            f"there are {orders.n_groups[order]} groups for {categories} categories: write {{}} "
            "for a category without alternatives.",
        )


def _tiers_of(
    orders: Orders, lowest: int, names: tuple[str, ...], text: Text, doubts: Doubts
) -> Tiers:
    """Check the alternatives, and give the groups that are not empty as tiers."""
    groups_end = np.append(0, np.cumsum(orders.n_groups))
    entries_end = np.append(0, np.cumsum(orders.group_sizes))
    sizes = np.diff(entries_end[groups_end])
    items = orders.alternatives - lowest

    def line_of_entry(entry: int) -> int:
        return int(orders.lines[np.searchsorted(entries_end[groups_end], entry, side="right") - 1])

    outside = (items < 0) | (items >= len(names))
    if outside.any():
        entry = int(outside.argmax())
        error = text.file_error(
            line_of_entry(entry),
            f"there is no alternative {orders.alternatives[entry]}: they are {lowest} to "
            f"{lowest + len(names) - 1}.",
        )
        other = 1 - lowest
        items = orders.alternatives - other
        # An order of all alternatives has the number of each, so that it shows how they count.
        if ((items < 0) | (items >= len(names))).any() or sizes.max() < len(names):
            raise error
        doubts.settle(
            error,
            f"orders count alternatives from {other}, though their names do from {lowest}",
        )
        lowest = other
    order_of_entry = np.repeat(np.arange(len(orders.counts)), sizes)
    key = order_of_entry * len(names) + items
    in_order = np.sort(key)
    twice = in_order[1:] == in_order[:-1]
    if twice.any():
        order, item = divmod(int(in_order[twice.argmax()]), len(names))
        raise text.file_error(
            int(orders.lines[order]),
            f"alternative {item + lowest} ({names[item]}) stands twice in the order: name it once.",
        )
    filled = orders.group_sizes > 0
    per_list = np.diff(np.append(0, np.cumsum(filled))[groups_end])
    return Tiers(
        items=torch.from_numpy(items),
        tier_offsets=torch.from_numpy(np.append(0, np.cumsum(orders.group_sizes[filled]))),
        list_offsets=torch.from_numpy(np.append(0, np.cumsum(per_list))),
        n_items=len(names),
        names=names,
    )


def _place_in_order(orders: Orders) -> IntArray:
    """[groups] which group of its order each is, from 0."""
    starts = np.cumsum(orders.n_groups) - orders.n_groups
    return np.arange(len(orders.group_sizes)) - np.repeat(starts, orders.n_groups)
