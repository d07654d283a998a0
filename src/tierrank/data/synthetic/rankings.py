"""Lists with ties drawn from a known model, to see whether an estimate finds it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import PARQUET
from tierrank.data.tables.opening import need_pyarrow
from tierrank.plackett_luce import sample
from tierrank.storage import writing_beside
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers


def simulate(
    items: int,
    lists: int,
    *,
    tiers: int = 4,
    most_above: int = 500,
    seed: int = 0,
    strict: bool = False,
) -> tuple[Tensor, Tiers]:
    """Draw worths and tiers as in section 4.1 of Ma et al. (2021).

    Log-worths are uniform on [0, log items], less a constant. Each list is a full ranking drawn
    from that model, cut at random into `tiers` tiers, of which the last, the rest, is not
    written down. At most `most_above` items stand above it. Inside a tier items stand by their
    number, so that nothing of their order is left.

    Parameters
    ----------
    items, lists : int
        How many.
    tiers : int
        How many tiers a list has, with the rest.
    most_above : int
        Most items above the rest.
    seed : int
        Of worths and lists.
    strict : bool
        Keep the order of the items above the rest, from the same draws: what an oracle would know.

    Returns
    -------
    log_worths : Tensor
        [items] true log-worths, normalised so that worths sum to 1 (float64).
    tiers : Tiers
        The lists.

    Raises
    ------
    ValueError
        There are fewer than 2 items or no list, or more tiers than items.

    See Also
    --------
    simulate_rows : Tables of any length.
    tierrank.sample : Rankings under given scores.

    Examples
    --------
    >>> from tierrank.data.synthetic import simulate
    >>> log_worths, tiers = simulate(items=6, lists=2, tiers=3, seed=1)
    >>> round(float(log_worths.exp().sum()), 6)
    1.0
    >>> len(tiers), tiers.n_items
    (2, 6)
    """
    if items < 2 or lists < 1:
        raise ValueError(f"needs at least 2 items and 1 list, not {items} and {lists}")
    reach = min(items - 1, most_above)
    if not 2 <= tiers <= reach + 1:
        raise ValueError(
            f"{items} items with at most {most_above} above the rest make 2 to {reach + 1} tiers, "
            f"not {tiers}"
        )
    generator = torch.Generator().manual_seed(seed)
    log_worths = torch.log(torch.tensor(float(items))) * torch.rand(
        items, generator=generator, dtype=torch.float64
    )
    log_worths = log_worths.log_softmax(0)
    rankings = sample(log_worths, lists, k=reach, generator=generator)
    # tiers − 1 different cuts among the places 1 … reach, for every list
    keys = torch.rand((lists, reach), generator=generator)
    cuts = keys.topk(tiers - 1, dim=1).indices.add_(1).sort(1).values
    above = cuts[:, -1]
    entries = rankings[torch.arange(reach) < above[:, None]]
    zero = torch.zeros(1, dtype=torch.int64)
    if strict:
        tier_offsets = torch.arange(len(entries) + 1)
        list_offsets = torch.cat([zero, above.cumsum(0)])
    else:
        ends = cuts + (above.cumsum(0) - above)[:, None]
        tier_offsets = torch.cat([zero, ends.reshape(-1)])
        list_offsets = torch.arange(lists + 1) * (tiers - 1)
        entries = _sorted_inside(entries, tier_offsets.diff(), items)
    return log_worths, Tiers(
        items=entries,
        tier_offsets=tier_offsets,
        list_offsets=list_offsets,
        n_items=items,
        rest=True,
    )


def _sorted_inside(entries: Tensor, sizes: Tensor, items: int) -> Tensor:
    """The items of every tier by their number; `sizes` are those of the tiers."""
    return (range_numbers(sizes) * items + entries).sort().values % items


LONGEST = 8  # items that a vote names
PIECE = 1 << 20  # rows that are drawn at a time
TIE_WORTH = 0.5  # Davidson's: a tie of equals is half as probable as one's win


def simulate_rows(
    items: int, rows: int, *, games: bool = False, seed: int = 0
) -> tuple[FloatArray, Iterator[dict[str, AnyArray]]]:
    """Draw tables of any length, piece by piece: votes with a row an item, or games.

    Log-worths are uniform on [0, log items], as in `simulate`, less their mean. A vote names 2 to
    8 items (at most half of all), drawn alike, in an order of the Plackett-Luce model that is cut
    between two items as often as not, and once at least. A game has two sides drawn alike, and ends
    by Davidson's model.

    Parameters
    ----------
    items, rows : int
        How many; the last vote is whole, so there may be some rows more. A piece has about a
        million rows, and ends where a vote does.
    games : bool
        Draw games: first, second, and winner, which is "first", "second" or "tie"; else votes:
        list, item, rank.
    seed : int
        Of worths and rows.

    Returns
    -------
    log_worths : ndarray of float
        [items] true log-worths.
    pieces : iterator of dict
        The columns of each piece by name.

    Raises
    ------
    ValueError
        There are fewer than 2 items or rows.

    See Also
    --------
    simulate : Lists in tiers.
    write_rows : Writes the pieces.

    Examples
    --------
    >>> from tierrank.data.synthetic import simulate_rows
    >>> log_worths, pieces = simulate_rows(items=10, rows=7, seed=1)
    >>> [column.shape for column in next(pieces).values()]
    [(10,), (10,), (10,)]
    """
    if items < 2 or rows < 2:
        raise ValueError(f"needs at least 2 items and 2 rows, not {items} and {rows}")
    random = np.random.default_rng(seed)
    log_worths = np.log(items) * random.random(items)
    log_worths -= log_worths.mean()
    draw = _games if games else _votes
    return log_worths, draw(log_worths, rows, random)


def write_rows(
    out: Path, pieces: Iterator[dict[str, AnyArray]], show: Callable[[int], None]
) -> None:
    """Write pieces as Parquet: a file each in a new folder, or row groups of one file (.parquet).

    Parameters
    ----------
    out : Path
        The folder, which appears when all is in it, or the file.
    pieces : iterator of dict
        Columns by name, integers of 32 bits or words.
    show : callable
        Told after each piece how many rows are written.

    Raises
    ------
    ValueError
        The folder is there already and not empty.

    See Also
    --------
    simulate_rows : Draws the pieces.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import read_rankings
    >>> from tierrank.data.synthetic import simulate_rows, write_rows
    >>> _, pieces = simulate_rows(items=10, rows=7, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.parquet")
    ...     write_rows(file, pieces, show=print)  # the last vote is whole
    ...     read_rankings(file).tiers.n_items
    10
    8
    """
    need_pyarrow(out)
    import pyarrow as pa
    from pyarrow import parquet

    if out.is_dir() and any(out.iterdir()):
        raise ValueError(f"{out}: is there already and not empty: give a new folder")
    in_one = out.suffix.lower() == PARQUET
    beside = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    written = 0
    with ExitStack() as stack:
        file: Any = None
        stack.callback(rmtree, beside, ignore_errors=True)  # what was not finished
        for number, piece in enumerate(pieces):
            table = pa.table({
                name: pa.array(column.tolist() if column.dtype.kind == "U" else column.astype("i4"))
                for name, column in piece.items()
            })  # fmt: skip
            if in_one:
                if file is None:
                    file = parquet.ParquetWriter(
                        stack.enter_context(writing_beside(out)), table.schema
                    )
                    stack.enter_context(file)
                file.write_table(table)
            else:
                beside.mkdir(parents=True, exist_ok=True)
                parquet.write_table(table, beside / f"part-{number:05}.parquet")
            written += table.num_rows
            show(written)
        if not in_one:
            if out.is_dir():
                out.rmdir()
            beside.rename(out)


def _games(
    log_worths: FloatArray, rows: int, random: np.random.Generator
) -> Iterator[dict[str, AnyArray]]:
    words = np.array(["first", "tie", "second"])
    for start in range(0, rows, PIECE):
        size = min(PIECE, rows - start)
        first, second = _different(len(log_worths), np.full(size, 2), 2, random).T
        ahead = log_worths[first] - log_worths[second]
        half = np.exp(-np.abs(ahead) / 2)  # of the better: 1 to it, ν √(e^−d) to a tie, e^−d
        share = random.random(size) * (1 + TIE_WORTH * half + half**2)
        ended = (share > 1).astype(np.int64) + (share > 1 + TIE_WORTH * half)
        yield {"first": first, "second": second, "winner": words[np.where(ahead < 0, 2 - ended,
                                                                          ended)]}  # fmt: skip


def _votes(
    log_worths: FloatArray, rows: int, random: np.random.Generator
) -> Iterator[dict[str, AnyArray]]:
    longest = min(LONGEST, max(2, len(log_worths) // 2))
    lists = 0
    while rows > 0:
        lengths = random.integers(2, longest + 1, min(PIECE, rows) // 2 + 1)
        ends = np.cumsum(lengths)
        number = int(np.searchsorted(ends, min(PIECE, rows)))
        lengths = lengths[: number + 1]  # the last one is whole
        named = np.arange(longest) < lengths[:, None]
        chosen = _different(len(log_worths), lengths, longest, random)
        value = np.where(named, log_worths[chosen] + random.gumbel(size=chosen.shape), -np.inf)
        chosen = np.take_along_axis(chosen, np.argsort(-value, axis=1), axis=1)
        cut = random.random(chosen.shape) < 0.5
        cut[np.arange(len(cut)), random.integers(1, lengths)] = True
        cut[:, 0] = True
        place = np.arange(1, longest + 1) * cut
        rank = np.maximum.accumulate(place, axis=1)
        yield {
            "list": np.repeat(np.arange(lists, lists + len(lengths)), lengths),
            "item": chosen[named],
            "rank": rank[named],
        }
        lists, rows = lists + len(lengths), rows - int(lengths.sum())


def _different(
    items: int, lengths: IntArray, longest: int, random: np.random.Generator
) -> IntArray:
    """[lists, longest] numbers of items, the first `length` of each list no two alike."""
    found = random.integers(items, size=(len(lengths), longest))
    again: Any = slice(None)
    beyond = items + np.arange(longest)  # what is not named differs from all
    while True:
        shown = np.where(np.arange(longest) < lengths[again, None], found[again], beyond)
        shown.sort(axis=1)
        twice = np.flatnonzero((shown[:, 1:] == shown[:, :-1]).any(axis=1))
        if not len(twice):
            return found
        again = twice if isinstance(again, slice) else again[twice]
        found[again] = random.integers(items, size=(len(again), longest))
