"""Data drawn from known models: to see whether an estimate finds them, and to test at scale.

Lists with ties, and tables of votes and of games, from the Plackett-Luce model and Davidson's;
extreme multi-label data with the statistics of the real sets. (`simulate_clicks` is here too, by
its name.)
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tierrank._native import draw_rows
from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import PARQUET
from tierrank.data.tables.opening import need_pyarrow
from tierrank.plackett_luce import sample
from tierrank.storage import writing_beside
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers

if TYPE_CHECKING:
    from tierrank.data.multilabel import MultiLabelData
    from tierrank.ranking.clicks import simulate_clicks

__all__ = ["label_sets", "simulate", "simulate_clicks", "simulate_rows", "write_rows"]

if not TYPE_CHECKING:  # to type checkers, a name that is not above is a mistake

    def __getattr__(name: str) -> object:
        """What draws logs of clicks stands beside them."""
        if name != "simulate_clicks":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from tierrank.ranking import clicks

        return clicks.simulate_clicks


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


# -- tables of votes and of games -----------------------------------------------------------------

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
        The folder is there already and not empty, or what is there is a file.

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
    if out.exists() and out.is_dir() == in_one:  # said before the work, not after
        kinds = ("a folder", "the file") if in_one else ("a file", "a new folder")
        raise ValueError(f"{out}: is {kinds[0]}: give the name of {kinds[1]} to write")
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


# -- label sets -----------------------------------------------------------------------------------

LARGEST_SHARE = 0.95  # of the rows that an item is in


def label_sets(
    like: str = "delicious-200k",
    *,
    scale: float = 1.0,
    rows: tuple[int, int] | None = None,
    features: int | None = None,
    labels: int | None = None,
    features_a_row: float | None = None,
    labels_a_row: float | None = None,
    empty_rows: float = 0.0,
    seed: int = 0,
) -> tuple[MultiLabelData, MultiLabelData]:
    """Draw rows to train on and rows to test with, like those of a set of the XC repository.

    A row is about three topics, with weights. Labels and features belong to three topics each,
    and a little to none. The labels of a row are drawn one by one, without replacement, by their
    worths in it: popularity times affinity to its topics. So, given the topics, the probability of
    a row's labels before all others is that of the Plackett-Luce model, exactly, and what a
    learner has to find out from the features are the topics. Features are drawn in the same way,
    until there are enough different ones; their values are (1 + log times drawn) · log(1 + 1 /
    frequency), in each row divided by their norm.

    Matched to the real set: the numbers of rows, features and labels, exactly, and the mean number
    of labels a row. Numbers of labels and features a row spread, and their frequencies follow a
    power law with a head and a long tail (Zipf-Mandelbrot): fitted to the data for Delicious-1K,
    assumed for the other three, as is their mean number of features a row.

    Not matched: which labels go together, the order of labels and features (here it is random), and
    how well labels can be predicted, though that is of the same order. Unlike in the real sets,
    some labels have no row at all. The features of the real Delicious-1K are all 0 or 1.

    Time and memory go with the number of entries, never with rows × labels.

    Parameters
    ----------
    like : {"delicious-1k", "eurlex-4k", "wiki10-31k", "delicious-200k"}
        The set whose shape it takes.
    scale : float
        Multiplies the numbers of rows, features and labels that are not given.
    rows : tuple of int, optional
        How many to train on and to test with.
    features, labels : int, optional
        How many there are.
    features_a_row, labels_a_row : float, optional
        The mean number of them that a row has, from 1 to half of all. If not given: as in the real
        set, but at most a fifth of the features and a tenth of the labels.
    empty_rows : float
        Share of the rows that have no label; the other rows have at least one.
    seed : int
        The same seed gives the same data.

    Returns
    -------
    train : MultiLabelData
        Rows to train on.
    test : MultiLabelData
        Rows to test with.

    Raises
    ------
    ValueError
        There is no such set, or a number is out of its range.

    See Also
    --------
    tierrank.data.read_xc : The real sets.
    tierrank.ExtremeRanker : Learns from them.

    Examples
    --------
    >>> from tierrank.data.synthetic import label_sets
    >>> train, test = label_sets("eurlex-4k", scale=0.05, seed=1)
    >>> train.X.shape, train.Y.shape
    ((777, 250), (777, 200))
    >>> test.X.shape, test.Y.shape
    ((190, 250), (190, 200))
    """
    shape = _shape(like, scale, rows, features, labels, features_a_row, labels_a_row)
    if not 0 <= empty_rows < 1:
        raise ValueError(f"empty_rows is {empty_rows}: give a share from 0 to below 1.")
    seeds = np.random.SeedSequence(_whole(seed, "seed", 0)).spawn(3)
    of_model, of_train, of_test = (np.random.default_rng(each) for each in seeds)
    model = LatentModel.build(of_model, shape)
    train, test = shape.rows
    return model.draw(of_train, train, empty_rows), model.draw(of_test, test, empty_rows)


@dataclass(frozen=True)
class LatentModel:
    """What the rows of a set are drawn from; train and test share it."""

    shape: Shape
    labels: TopicMixture
    features: TopicMixture

    @classmethod
    def build(cls, generator: np.random.Generator, shape: Shape) -> LatentModel:
        """Put labels and features into topics; a popular topic has more features."""
        labels = TopicMixture.build(
            generator, shape.labels.shares(), shape.labels.background, shape.topics
        )
        features = TopicMixture.build(
            generator,
            shape.features.shares(),
            shape.features.background,
            shape.topics,
            labels.popularity(),
        )
        return cls(shape, labels, features)

    def draw(self, generator: np.random.Generator, rows: int, empty: float = 0.0) -> MultiLabelData:
        """Draw new rows; a share `empty` of them has no labels."""
        from tierrank.data.multilabel import MultiLabelData

        about = RowTopics.draw(generator, rows, self.labels.popularity())
        Y = self.label_matrix(generator, about, round(empty * rows))
        return MultiLabelData(self.feature_matrix(generator, about), Y)

    def label_matrix(self, generator: np.random.Generator, about: RowTopics, empty: int = 0) -> Any:
        """CSR [rows, labels] of ones; `empty` rows, chosen at random, have none."""
        rows = len(about.topics)
        sizes = self.shape.labels.sizes(generator, rows)
        sizes[generator.choice(rows, empty, replace=False)] = 0
        offsets, labels, values = self.labels.draw(generator, about, sizes)
        values[:] = 1  # however often it was drawn
        return _csr(values, labels, offsets, self.shape.labels.n)

    def feature_matrix(self, generator: np.random.Generator, about: RowTopics) -> Any:
        """CSR [rows, features] of frequencies in the row times rarity, of norm 1 in every row."""
        rows = len(about.topics)
        sizes = self.shape.features.sizes(generator, rows)
        offsets, features, values = self.features.draw(generator, about, sizes)
        frequency = self.shape.features.a_row * self.features.average_worths()
        rarity = np.log1p(1 / frequency).astype(np.float32)
        # in place and in parts: these are the largest arrays there are
        for first in range(0, rows, ROWS_AT_A_TIME):
            ends = offsets[first : first + ROWS_AT_A_TIME + 1]
            part = values[ends[0] : ends[-1]]
            np.log(part, out=part)
            part += 1
            part *= rarity[features[ends[0] : ends[-1]]]
            norms = np.sqrt(np.add.reduceat(part * part, ends[:-1] - ends[0]))
            part /= norms.repeat(np.diff(ends))
        return _csr(values, features, offsets, self.shape.features.n)


def _csr(values: Any, columns: Any, offsets: Any, n_columns: int) -> Any:
    """Make a canonical matrix of rows whose columns differ, but are in any order."""
    from scipy.sparse import csr_matrix  # takes a while, so only where it is used

    matrix = csr_matrix((values, columns, offsets), shape=(len(offsets) - 1, n_columns))
    matrix.sort_indices()
    matrix.has_canonical_format = True
    return matrix


def _shape(
    like: str,
    scale: float,
    rows: tuple[int, int] | None,
    features: int | None,
    labels: int | None,
    features_a_row: float | None,
    labels_a_row: float | None,
) -> Shape:
    """Check the sizes that were asked for, and fill in the others."""
    if like not in SHAPES:
        raise ValueError(f"there is no set {like!r} to be like. Choose one of {', '.join(SHAPES)}.")
    model = SHAPES[like]
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is {scale}: give a finite number above 0.")
    if rows is None:
        rows = (max(round(model.rows[0] * scale), 1), max(round(model.rows[1] * scale), 1))
    elif len(rows) != 2:
        raise ValueError(f"rows has {len(rows)} numbers: give two, to train on and to test with.")
    train, test = (_whole(number, "a number of rows", 1) for number in rows)
    return model.resized(
        (train, test),
        _resized(model.labels, "labels", labels, labels_a_row, scale, at_most=1 / 10),
        _resized(model.features, "features", features, features_a_row, scale, at_most=1 / 5),
    )


def _resized(
    model: Occurrence, name: str, n: int | None, a_row: float | None, scale: float, at_most: float
) -> Occurrence:
    n = max(round(model.n * scale), 2) if n is None else _whole(n, name, 2)
    if a_row is None:
        a_row = max(min(model.a_row, n * at_most), 1.0)
    elif not 1 <= a_row <= n // 2:
        raise ValueError(
            f"{name}_a_row is {a_row}: with {n:,} {name}, give a number from 1 to {n // 2}."
        )
    return model.resized(n, float(a_row))


def _whole(value: Any, name: str, least: int) -> int:
    try:
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}: give a whole number.") from None
    if number < least:
        raise ValueError(f"{name} is {number}: give at least {least}.")
    return number


# The real sets that synthetic ones are like -------------------------------------------------------


@dataclass(frozen=True)
class Occurrence:
    """How the items of one kind, labels or features, occur.

    Attributes
    ----------
    n
        how many there are
    a_row, spread, most
        a row's number of them: mean, standard deviation, and largest; None for no limit but that
        of half of them
    head
        share of the rows that have the most frequent one
    rarest
        how frequent the rarest is, the average one being 1
    background
        how much of a rare one's worth belongs to no topic
    """

    n: int
    a_row: float
    spread: float
    most: int | None
    head: float
    rarest: float
    background: float

    def resized(self, n: int, a_row: float) -> Occurrence:
        """Give the same with another number, and another mean a row; spread and most follow."""
        factor = a_row / self.a_row
        most = None if self.most is None else max(round(self.most * factor), 1 + int(a_row))
        return replace(self, n=n, a_row=a_row, spread=self.spread * factor, most=most)

    def shares(self) -> FloatArray:
        """[n] in what share of the rows each is to be, most frequent first."""
        return power_law(self.n, self.a_row, self.head, self.rarest)

    def sizes(self, generator: np.random.Generator, rows: int) -> IntArray:
        """[rows] how many each row has: at least 1, and at most half of all."""
        return row_sizes(generator, rows, self.a_row, self.spread, self.most, self.n // 2)


@dataclass(frozen=True)
class Shape:
    """A set to be like: rows to train on and to test with, what is in them, how many topics."""

    rows: tuple[int, int]
    labels: Occurrence
    features: Occurrence
    topics: int

    def resized(self, rows: tuple[int, int], labels: Occurrence, features: Occurrence) -> Shape:
        """Give another size, with topics in proportion to the root of the number of labels.

        So both the topics and what is in them grow, and labels stay about as hard to predict. No
        topic has fewer than 5 labels or features, unless there are fewer than 10 in all.
        """
        topics = round(self.topics * math.sqrt(labels.n / self.labels.n))
        return Shape(rows, labels, features, max(min(topics, labels.n // 5, features.n // 5), 2))


# Numbers of rows, features and labels, and labels a row: Ma et al. (2021), table 3. The other
# numbers of Delicious-1K were fitted to the set itself: its counts, and what nearest neighbours
# predict. Those of the other sets are assumptions: orders of magnitude, and what their sources make
# likely (Wiki10's site showed 30 tags at most).
SHAPES = {
    "delicious-1k": Shape(
        (12_920, 3_185),
        Occurrence(983, 19.03, 5.04, 25, head=0.44, rarest=0.09, background=0.1),
        Occurrence(500, 18.5, 60.0, None, head=0.3, rarest=0.05, background=0.05),
        topics=33,
    ),
    "eurlex-4k": Shape(
        (15_539, 3_809),
        Occurrence(3_993, 5.31, 1.7, None, head=0.08, rarest=0.05, background=0.06),
        Occurrence(5_000, 236.0, 120.0, None, head=0.6, rarest=0.05, background=0.5),
        topics=750,
    ),
    "wiki10-31k": Shape(
        (14_146, 6_616),
        Occurrence(30_938, 18.64, 7.0, 30, head=0.8, rarest=0.15, background=0.1),
        Occurrence(101_938, 673.0, 500.0, None, head=0.6, rarest=0.1, background=0.5),
        topics=258,
    ),
    "delicious-200k": Shape(
        (196_606, 100_095),
        Occurrence(205_443, 75.54, 100.0, None, head=0.4, rarest=0.03, background=0.6),
        Occurrence(782_585, 301.0, 250.0, None, head=0.5, rarest=0.1, background=0.6),
        topics=400,
    ),
}


# How often items occur, and how many of them a row has --------------------------------------------


def power_law(n: int, mean: float, head: float, rarest: float) -> FloatArray:
    """In what share of the rows each of n items is, most frequent first: Zipf-Mandelbrot.

    f_i = c (i + q)^−s, with the shift q, the exponent s and the factor c such that the first
    item is in `head` of the rows, a row has `mean` items, and the last item is `rarest` times as
    frequent as the average one. Where no q ≥ 0 does all of that (few items, many a row), a curve
    that comes near; no item is in more than 0.95 of the rows.
    """
    from scipy.optimize import brentq  # takes a while, so only where it is used

    average = mean / n
    head = max(head, min(2 * average, LARGEST_SHARE))  # the first must be ahead of the average
    ratio = head / (rarest * average)
    ranks = np.arange(1, n + 1, dtype=np.float64)

    def curve(exponent: float) -> FloatArray:
        reach = ratio ** (1 / exponent)  # (n + q) / (1 + q)
        shift = max((n - reach) / (reach - 1), 0.0)
        return np.asarray(head * ((ranks + shift) / (1 + shift)) ** -exponent)

    # a larger exponent, with its larger shift, leaves a broader head: the sum grows with it
    low, high = math.log(ratio) / math.log(n) * (1 + 1e-9), 50.0
    if curve(low).sum() >= mean:
        shares = curve(low)
    elif curve(high).sum() <= mean:
        shares = curve(high)
    else:
        shares = curve(brentq(lambda exponent: curve(exponent).sum() - mean, low, high))
    return np.asarray(np.minimum(shares * (mean / shares.sum()), LARGEST_SHARE))


def row_sizes(
    generator: np.random.Generator,
    rows: int,
    mean: float,
    spread: float,
    most: int | None,
    limit: int,
) -> IntArray:
    """Whole numbers from 1 to `limit` with a given mean and about a given standard deviation.

    Without `most`, skewed to the right: one more than a lognormal number, like the words of a
    document, and cut off at the limit, which takes from the spread but not from the mean. With
    it, a beta distribution from 1 to `most`: the tags of a site that shows no more than so many.
    Rounded up or down at random, so that the mean stays.
    """
    variance = max(spread**2 - 1 / 6, 0.0)  # rounding adds the sixth
    above, reach = mean - 1, min(most or limit, limit) - 1
    if above <= 0 or variance == 0 or above >= reach:
        sizes = np.full(rows, above)
    elif most is None:
        deviation = math.sqrt(math.log1p(variance / above**2))
        middle = _lognormal_middle(above, deviation, reach)
        sizes = np.minimum(generator.lognormal(middle, deviation, rows), reach)
    else:
        centre = above / reach
        evenness = centre * (1 - centre) * reach**2 / variance - 1
        evenness = max(evenness, 0.1)  # no wider than nearly all at one of the two ends
        sizes = reach * generator.beta(centre * evenness, (1 - centre) * evenness, rows)
    return 1 + np.floor(sizes + generator.random(rows)).astype(np.int64)


def _lognormal_middle(mean: float, deviation: float, reach: float) -> float:
    """Find the mean logarithm with which lognormal numbers, cut off at `reach`, have a mean.

    E min(X, c) = e^{μ + σ²/2} Φ((log c − μ) / σ − σ) + c (1 − Φ((log c − μ) / σ))
    """

    def cut_mean(middle: float) -> float:
        far = (math.log(reach) - middle) / deviation
        kept = math.exp(middle + deviation**2 / 2) * _normal(far - deviation)
        return kept + reach * _normal(-far)

    low = math.log(mean) - deviation**2 / 2  # right without the cut
    high = math.log(reach) + 10 * deviation  # nearly all are cut
    for _ in range(100):
        middle = (low + high) / 2
        if cut_mean(middle) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _normal(x: float) -> float:
    """Φ, the distribution function of the standard normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


# A latent topic model: what ties the features of a row to its labels ------------------------------


SHARES = np.array([4, 2, 1]) / 7  # of an item among its topics
TOPICS_A_ROW = 3
ROWS_AT_A_TIME = 16_384  # so that Ctrl-C is heard


@dataclass(frozen=True)
class RowTopics:
    """What rows are about: [rows, 3] topics, and weights that sum to 1 in every row."""

    topics: IntArray
    weights: FloatArray

    @classmethod
    def draw(cls, generator: np.random.Generator, rows: int, popularity: FloatArray) -> RowTopics:
        """Topics by their popularity, weights uniform on the simplex."""
        shape = (rows, TOPICS_A_ROW)
        cumulative = popularity.cumsum()
        topics = cumulative.searchsorted(generator.random(shape) * cumulative[-1], side="right")
        weights = generator.standard_exponential(shape)
        return cls(
            np.minimum(topics, len(popularity) - 1), weights / weights.sum(axis=1, keepdims=True)
        )


@dataclass(frozen=True)
class TopicMixture:
    """Items, labels or features, each in three topics and in a background that every row shares.

    In a row with topics t of weights θ_t, item l has the worth

        w_l = β b_l + (1 − β) Σ_t θ_t a_tl

    where b_l and a_tl are probabilities: of l in the background, and in topic t. Written
    log w_l = log popularity + affinity, this is a Plackett-Luce model of the row.

    Attributes
    ----------
    offsets, members, weights
        topic t has members[offsets[t] : offsets[t + 1]] with these weights, which sum to
        (1 − β) · popularity of t; the last "topic" is the background, β in all
    n_items
        how many items there are
    """

    offsets: IntArray
    members: npt.NDArray[np.int32]
    weights: FloatArray
    n_items: int

    @classmethod
    def build(
        cls,
        generator: np.random.Generator,
        shares: FloatArray,
        background: float,
        topics: int,
        popularity: FloatArray | None = None,
    ) -> TopicMixture:
        """Spread items over topics at random, so that they come out about as often as asked.

        Parameters
        ----------
        shares
            [items] in what share of the rows each item is to be, most frequent first
        background
            how much of an item's worth belongs to no topic, if the item is rare
        topics
            how many topics; at most as many as items
        popularity
            [topics] where items go: larger topics get more of them; None for all alike
        """
        n_items = len(shares)
        worths = -np.log1p(-shares)  # what makes an item come with that probability, given time
        worths /= worths.sum()
        # a label that half of all rows have cannot be about one topic
        common = background + (1 - background) * shares
        # one topic is dealt like cards, so that none goes empty; the others are drawn
        rounds = -(-n_items // topics)
        dealt = generator.permuted(np.tile(np.arange(topics), (rounds, 1)), axis=1)
        dealt = dealt.ravel()[:n_items]
        drawn = generator.choice(topics, (len(SHARES) - 1, n_items), p=popularity)
        topic = np.concatenate([dealt, drawn.ravel(), np.full(n_items, topics)])
        weight = np.concatenate(
            [np.outer(SHARES, worths * (1 - common)).ravel(), worths * common],
        )
        # what an item is called says nothing of how frequent it is
        names = generator.permutation(n_items).astype(np.int32)
        order = topic.argsort(kind="stable")
        offsets = np.concatenate([[0], np.bincount(topic, minlength=topics + 1).cumsum()])
        return cls(offsets, np.tile(names, len(SHARES) + 1)[order], weight[order], n_items)

    @property
    def masses(self) -> FloatArray:
        """[topics + 1] the weight of every topic, and last of the background."""
        return np.add.reduceat(self.weights, self.offsets[:-1])

    def popularity(self) -> FloatArray:
        """[topics] how much of what rows are about is each topic; they sum to 1."""
        masses = self.masses[:-1]
        return np.asarray(masses / masses.sum())

    def average_worths(self) -> FloatArray:
        """[items] the worth of every item in the average row; they sum to 1."""
        worths = np.bincount(self.members, self.weights, self.n_items)
        return np.asarray(worths / worths.sum())

    def slots(self, rows: RowTopics) -> tuple[IntArray, FloatArray]:
        """The topics of rows with the background as one more, and all their weights."""
        background = self.masses[-1] / self.weights.sum()
        last = np.full((len(rows.topics), 1), len(self.offsets) - 2)
        return (
            np.hstack([rows.topics, last]),
            np.hstack([(1 - background) * rows.weights, np.full(last.shape, background)]),
        )

    def worths(self, rows: RowTopics) -> FloatArray:
        """[rows, items] the worths w, which sum to 1 in every row. For few rows: it is dense."""
        topics, weights = self.slots(rows)
        worths = np.zeros((len(topics), self.n_items))
        masses = self.masses
        for i, row in enumerate(worths):
            for topic, weight in zip(topics[i], weights[i], strict=True):
                part = slice(self.offsets[topic], self.offsets[topic + 1])
                share = self.weights[part] / masses[topic]
                row += weight * np.bincount(self.members[part], share, self.n_items)
        return worths

    def draw(
        self, generator: np.random.Generator, rows: RowTopics, sizes: IntArray
    ) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Draw sets from the Plackett-Luce model of every row: its first `sizes` items.

        Returns
        -------
        [rows + 1] offsets, and with row i at offsets[i] to offsets[i + 1] the items, and how
        often each was drawn until there were enough different ones
        """
        topics, weights = self.slots(rows)
        running = weights.cumsum(axis=1)
        worths = np.concatenate([[0.0], self.weights.cumsum()])
        offsets = np.concatenate([[0], sizes.cumsum()])
        items = np.empty(offsets[-1], dtype=np.int32)
        times = np.empty(offsets[-1], dtype=np.float32)
        last_place = np.full(self.n_items, -1, dtype=np.int64)
        bits = generator.bit_generator
        for first in range(0, len(sizes), ROWS_AT_A_TIME):
            block = slice(first, first + ROWS_AT_A_TIME)
            with bits.lock:
                draw_rows(
                    bits.capsule,
                    offsets[first : first + ROWS_AT_A_TIME + 1],
                    topics[block],
                    running[block],
                    self.offsets,
                    self.members,
                    worths,
                    last_place,
                    items,
                    times,
                )
        return offsets, items, times
