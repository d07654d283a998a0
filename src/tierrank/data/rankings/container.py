"""The container: rankings with ties, each with how often it was given; and its entries, as read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
import torch

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.data.files import shown
from tierrank.errors import Argument, ArgumentError
from tierrank.names import counted, did_you_mean
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import is_missing, offsets, preview
from tierrank.tiers.catalogue import Catalogue, are_numbers
from tierrank.tiers.selection import concatenate, equal_lists, list_hashes

if TYPE_CHECKING:
    from tierrank.data.tables.opening import Table


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Rankings with ties, each with how often it was given.

    What the readers of rankings give and the writers take, and what `fit` of the aggregators takes.
    ``len(rankings)`` is the number of lists.

    Parameters
    ----------
    tiers : Tiers
        The lists, over a catalogue of items (`Tiers.from_rankings`, `Tiers.from_preferences`).
    weights : ndarray of float
        [lists] positive and finite: how often each list was given (read-only).
    read_as : str
        What was taken for what in the table that they come from, if columns were found by name.
    beside : mapping
        [lists] further columns of the table by name, as `read_rankings(…, keep=[…])` keeps them:
        who voted, when, on what. What puts equal lists together forgets them.
    beside_items : mapping
        [entries] columns that vary within lists, in the order of ``tiers.items``, kept by
        ``keep_items=[…]``.

    See Also
    --------
    read_rankings : From a file.
    Games : Comparisons of two.
    tierrank.RankAggregator : Worths of the items.

    Examples
    --------
    >>> from tierrank.data import Rankings
    >>> Rankings.from_rankings([["ann", ("bob", "cy")], ["cy", "ann"]], weights=[3, 1])
    Rankings(2 lists of weight 4, 3 items)
      3 × ann > {bob, cy}
      1 × cy > ann
    """

    tiers: Tiers
    weights: FloatArray
    read_as: str = ""
    beside: Mapping[str, AnyArray] = field(default_factory=dict)
    beside_items: Mapping[str, AnyArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.tiers, Tiers) or self.tiers.n_items is None:
            raise ValueError(
                "tiers must be a Tiers over a catalogue of items, as Tiers.from_rankings gives it: "
                "rows of labels are no rankings of items that lists share."
            )
        object.__setattr__(self, "weights", checked_weights(self.weights, len(self.tiers), "list"))
        check_beside(self.beside, len(self.tiers), "list")
        check_beside(self.beside_items, len(self.tiers.items), "entry")

    @classmethod
    def from_rankings(
        cls,
        rankings: Any,
        items: Any = None,
        weights: Any = None,
        rest: Literal["absent", "last"] = "absent",
    ) -> Rankings:
        """Build from rankings of named items, best first, where a tuple or set is a tie.

        Parameters
        ----------
        rankings : iterable
            A ranking a list, as in `Tiers.from_rankings`.
        items : sequence or int, optional
            The catalogue, as there; None for the items that are named.
        weights : array_like, optional
            [lists] how often each was given; None for once.
        rest : {"absent", "last"}
            What a list does not name is absent from it, or tied in the last place.

        Returns
        -------
        Rankings
            The lists, in the same order.

        Raises
        ------
        ValueError
            A list names an item twice, or a weight is not positive.

        See Also
        --------
        tierrank.Tiers.from_rankings : The lists alone.
        read_rankings : From a file.

        Examples
        --------
        >>> from tierrank.data import Rankings
        >>> Rankings.from_rankings([[2], [0, 1]], items=4, rest="last")
        Rankings(2 lists of weight 2, 4 items)
          1 × 2 > the other 3
          1 × 0 > 1 > the other 2
        """
        tiers = Tiers.from_rankings(rankings, items=items, rest=rest)
        return cls(tiers, np.ones(len(tiers)) if weights is None else weights)

    @property
    def items(self) -> tuple[Any, ...]:
        """The names of the items, or their numbers 0, 1, ... if they have none."""
        if self.tiers.names is not None:
            return self.tiers.names
        return tuple(range(self.tiers.n_items or 0))

    def without(self, items: Iterable[Any]) -> Rankings:
        """Leave some items out; the rest of each list stays.

        Lists that then compare nothing (with fewer than two items left, or none of a list whose
        rest stands last) are left out.

        Parameters
        ----------
        items : iterable
            Names of items.

        Returns
        -------
        Rankings
            What is left.

        Raises
        ------
        ValueError
            An item is not in the catalogue.

        See Also
        --------
        by : Lists of each value of a column.

        Examples
        --------
        >>> from tierrank.data import Rankings
        >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")], ["cy", "ann"]])
        >>> votes.without(["cy"])
        Rankings(1 list of weight 1, 2 items)
          1 × ann > bob
        """
        stays, number = left_over(self.items, items)
        tiers = self.tiers.to("cpu")
        entries, sizes = tiers.items.numpy(), tiers.tier_sizes.numpy()
        tier = np.repeat(np.arange(len(sizes)), sizes)  # [entries]
        list_of = np.repeat(np.arange(len(tiers)), np.diff(tiers.list_offsets.numpy()))  # [tiers]
        named = np.bincount(list_of[tier[stays[entries]]], minlength=len(tiers))
        speaks = named > (0 if tiers.rest and int(stays.sum()) > 1 else 1)
        kept = stays[entries] & speaks[list_of[tier]]
        left = np.bincount(tier[kept], minlength=len(sizes))
        tiers_left = np.bincount(list_of[left > 0], minlength=len(tiers))
        chosen = np.flatnonzero(speaks)
        return replace(
            self,
            tiers=replace(
                tiers,
                items=torch.from_numpy(number[entries[kept]]),
                tier_offsets=torch.from_numpy(offsets(left[left > 0])),
                list_offsets=torch.from_numpy(offsets(tiers_left[chosen])),
                n_items=int(stays.sum()),
                names=tuple(itertools.compress(self.items, stays)),
                keys=None if tiers.keys is None else tiers.keys[chosen],
            ),
            weights=self.weights[chosen],
            beside=taken(self.beside, chosen),
            beside_items=taken(self.beside_items, kept),
        )

    def together(self) -> Rankings:
        """Count equal lists together, whatever they were called.

        Returns
        -------
        Rankings
            The different lists, each with the weight of all its equals.

        See Also
        --------
        by : Lists of each value of a column.

        Examples
        --------
        >>> from tierrank.data import Rankings
        >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")], ["ann", ("cy", "bob")]])
        >>> votes.together()
        Rankings(1 list of weight 2, 3 items)
          2 × ann > {bob, cy}
        """
        first, which = equal_lists(self.tiers)
        alone = replace(self, beside={}, beside_items={})
        if len(first) == len(self):
            return replace(alone, tiers=replace(self.tiers, keys=None))
        tiers = replace(self.tiers[first], keys=None)
        weights: FloatArray = np.bincount(which, self.weights, len(first)).astype(np.float64)
        return replace(alone, tiers=tiers, weights=weights)

    def of(self, lists: IntArray) -> Rankings:
        """Take some lists alone.

        Parameters
        ----------
        lists : ndarray of int
            Their numbers, from 0.

        Returns
        -------
        Rankings
            These lists, over the same items.

        See Also
        --------
        by : Lists of each value of a column.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.data import Rankings
        >>> votes = Rankings.from_rankings([["ann", "bob"], ["bob", "ann"]], weights=[3, 1])
        >>> votes.of(np.array([1]))
        Rankings(1 list of weight 1, 2 items)
          1 × bob > ann
        """
        entries: AnyArray = np.empty(0, dtype=np.int64)
        if self.beside_items:
            lengths = self.tiers.lengths.numpy()
            starts, counts = offsets(lengths)[lists], lengths[lists]
            entries = np.arange(counts.sum()) + np.repeat(starts - offsets(counts)[:-1], counts)
        return replace(
            self,
            tiers=self.tiers[lists],
            weights=self.weights[lists],
            beside=taken(self.beside, lists),
            beside_items=taken(self.beside_items, entries),
        )

    def by(self, column: str) -> dict[Any, Rankings]:
        """Split the lists by a column beside them.

        Items that no list of a part names are left out of it, unless a rest stands last.

        Parameters
        ----------
        column : str
            A name in `beside`.

        Returns
        -------
        dict
            Rankings by each value of the column, those of the most weight first.

        Raises
        ------
        ValueError
            There is no such column; the message says which there are.

        See Also
        --------
        read_rankings : Keeps columns by ``keep=``.

        Examples
        --------
        >>> import polars as pl
        >>> from tierrank.data import read_rankings
        >>> rows = pl.DataFrame(
        ...     {"oil": [1, 2], "herbs": [2, 1], "salt": [3, 0], "in": ["de", "it"]}
        ... )
        >>> read_rankings(rows, kind="wide", keep=["in"]).by("in")["it"].tiers.to_rankings()
        [['herbs', 'oil']]
        """
        parts = {}
        for value, rows in rows_by(self.beside, column, self.weights).items():
            part = self.of(rows)
            named = np.zeros(len(self.items), dtype=bool)
            named[part.tiers.items.numpy()] = True
            absent = [] if part.tiers.rest else list(itertools.compress(self.items, ~named))
            parts[value] = part.without(absent) if absent else part
        return parts

    def hashes(self) -> AnyArray:
        """[lists] uint64, of equal lists equal ones."""
        return np.asarray(list_hashes(self.tiers)["a"])

    def named(self, names: tuple[Any, ...]) -> Rankings:
        """Give the items other names.

        Parameters
        ----------
        names : tuple
            [items] the new names, in order of the items.

        Returns
        -------
        Rankings
            The same lists.

        See Also
        --------
        items : The names they have.

        Examples
        --------
        >>> from tierrank.data import Rankings
        >>> Rankings.from_rankings([[0, 1]]).named(("ann", "bob"))
        Rankings(1 list of weight 1, 2 items)
          1 × ann > bob
        """
        tiers = replace(self.tiers, names=None if are_numbers(names) else names)
        return replace(self, tiers=tiers)

    def recoded(self, code: IntArray, size: int) -> Rankings:
        """The same over a catalogue of this size without names, where items have other numbers."""
        items = torch.from_numpy(code[self.tiers.items.numpy()])
        tiers = replace(self.tiers, items=items, n_items=size, names=None, keys=None)
        return replace(self, tiers=tiers)

    @property
    def entries(self) -> int:
        """Number of items in all lists."""
        return len(self.tiers.items)

    def packed(self) -> Packed:
        """The same in little memory; names and keys are left out."""
        tiers = self.tiers
        arrays = tiers.items, tiers.tier_sizes, tiers.list_offsets.diff()
        items, *sizes = (small(each.numpy()) for each in arrays)
        return Packed(type(self), tiers.n_items or 0, [items], sizes, self.weights, tiers.rest)

    @classmethod
    def unpacked(
        cls, n_items: int, arrays: Sequence[AnyArray], weights: FloatArray, rest: bool
    ) -> Rankings:
        """Undo `packed`."""
        items, tier_sizes, list_tiers = (array.astype(np.int64) for array in arrays)
        tiers = Tiers(
            items=torch.from_numpy(items),
            tier_offsets=torch.from_numpy(offsets(tier_sizes)),
            list_offsets=torch.from_numpy(offsets(list_tiers)),
            n_items=n_items,
            rest=rest,
        )
        return cls(tiers, weights)

    @classmethod
    def concatenate(cls, parts: Sequence[Rankings]) -> Rankings:
        """Put the lists of several parts behind each other.

        Parameters
        ----------
        parts : sequence of Rankings
            All over the same items.

        Returns
        -------
        Rankings
            All their lists.

        See Also
        --------
        together : Counts equal lists together.

        Examples
        --------
        >>> from tierrank.data import Rankings
        >>> votes = Rankings.from_rankings([["ann", "bob"]])
        >>> Rankings.concatenate([votes, votes]).together()
        Rankings(1 list of weight 2, 2 items)
          2 × ann > bob
        """
        tiers = concatenate([part.tiers for part in parts])
        return cls(tiers, np.concatenate([part.weights for part in parts]))

    def __len__(self) -> int:
        return len(self.tiers)

    def __repr__(self) -> str:
        lists, items = counted(len(self), "list"), counted(self.tiers.n_items or 0, "item")
        # The tiers show a few lists themselves, one a line: "  list 0: a > b".
        shown = repr(replace(self.tiers[:_LISTS_SHOWN], keys=None)).splitlines()[1:]
        weights = [short(weight) for weight in self.weights[:_LISTS_SHOWN].tolist()]
        width = max(map(len, weights), default=0)
        lines = [f"Rankings({lists} of weight {short(float(self.weights.sum()))}, {items})"]
        for weight, line in zip(weights, shown, strict=False):
            lines.append(f"  {weight:>{width}} × {line.partition(': ')[2]}")
        if len(self) >= len(lines):
            lines.append(f"  ... {len(self) - len(lines) + 1:,} more")
        if self.read_as:
            lines.append(f"  read as: {self.read_as}")
        return "\n".join(lines)


class Packed:
    """`Rankings` or `Games` with numbers of as few bytes as they need, to be kept by the million.

    Attributes
    ----------
    entries
        number of items in all of them
    """

    def __init__(
        self,
        kind: Any,
        size: int,
        items: Sequence[AnyArray],
        others: Sequence[AnyArray],
        weights: AnyArray | int,
        more: Any,
    ) -> None:
        """Take the class, the number of items, arrays of items, others, and what else it takes.

        `weights` are counts for the most part, which need a byte or two each, or their number if
        all are 1.
        """
        self.kind, self.size, self._items, self._others, self._more = (
            kind, size, items, others, more
        )  # fmt: skip
        if not isinstance(weights, int) and weights.dtype.kind == "f":
            if bool((weights == 1).all()):
                weights = len(weights)
            elif weights.max(initial=0) < 2**32 and bool((weights == np.rint(weights)).all()):
                weights = small(weights.astype(np.int64))
        self._weights = weights
        self.entries = sum(map(len, items))

    def recoded(self, code: IntArray, size: int) -> Packed:
        """The same over a catalogue of this size, where items have other numbers."""
        items = [small(code[each]) for each in self._items]
        return Packed(self.kind, size, items, self._others, self._weights, self._more)

    def unpacked(self) -> Any:
        """What it was, without names and keys."""
        weights = np.ones(self._weights) if isinstance(self._weights, int) else self._weights
        weights = weights.astype(np.float64, copy=False)
        return self.kind.unpacked(self.size, (*self._items, *self._others), weights, self._more)


def small(numbers: IntArray) -> AnyArray:
    """The same in the fewest bytes that hold them all; none is negative."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


@dataclass(frozen=True, eq=False)
class PartedRankings:
    """Rankings, or games, in parts: on the workers of a Dask cluster, or packed in this process.

    What `tierrank.data.read_rankings` gives with ``client=``, or of a table that is too large for
    lists as they are, and what the aggregators fit.

    Attributes
    ----------
    client
        of the cluster, or a `tierrank.data.cluster.OneProcess`
    parts
        futures of `Packed` ones over the same items, or of None. Equal lists of a part are
        together, on a cluster those of all parts.
    items
        names of the items
    seen
        number of lists before equal ones were counted together
    entries
        number of items in all lists that are left
    of_games
        whether they are games of two
    read_as
        what was taken for what, if columns were found by name
    """

    client: Any
    parts: Sequence[Any]
    items: tuple[Any, ...]
    seen: int
    entries: int
    of_games: bool
    read_as: str = ""

    def __len__(self) -> int:
        return self.seen

    def __repr__(self) -> str:
        what = "games" if self.of_games else "lists"
        return (
            f"PartedRankings({self.seen:,} {what} of {len(self.items):,} items in "
            f"{len(self.parts)} parts, {self.entries:,} entries when equal ones are together)"
        )

    def ties(self) -> tuple[float, float]:
        """Of games, how many are ties, and how many there are."""
        found = self.client.gather(self.client.map(_ties, self.parts, pure=False))
        tied, games = np.sum(found, axis=0)
        return float(tied), float(games)

    def gather(self, *, either_way: bool = False) -> Any:
        """All of them here, `Rankings` or `Games`, equal ones together.

        With `either_way`, games are equal whoever was named first, so that there are half as many.
        """
        read = (part.unpacked() for part in self.client.gather(list(self.parts)) if part)
        if either_way and self.of_games:  # one part after the other: all at once take more memory
            read = (games.either_way() for games in read)
        found = together(list(read))
        if found is None:
            raise ValueError("there are no lists: no partition has a row")
        return replace(found.named(self.items), read_as=self.read_as)


def same_kind(names: Iterable[Any]) -> tuple[Any, ...]:
    """Names of items from several parts of a table: what one takes for a number may be a word."""
    found = tuple(names)
    words = {name for name in found if isinstance(name, str)}
    if not words:
        return found
    both = next((n for n in found if not isinstance(n, str) and f"{n}.0" in words), None)
    if both is not None:
        raise ValueError(
            f"{both} and {both}.0 are one item in parts of the table where all items are whole "
            "numbers, and not in others: make them whole numbers throughout, or words"
        )
    return tuple(map(str, found))


def _ties(part: Packed | None) -> tuple[float, float]:
    if part is None:
        return 0.0, 0.0
    games = part.unpacked()
    return games.weights[games.outcome == 0].sum(), games.weights.sum()


def together(parts: list[Any]) -> Any:
    """All `Rankings`, or all `Games`, of some parts, equal ones together; None: there are none."""
    there = [part for part in parts if part is not None and len(part)]
    return type(there[0]).concatenate(there).together() if there else None


def dealt(lists: Any, bins: int) -> list[Packed]:
    """`Rankings` or `Games` in as many parts, where equal ones of all who deal meet."""
    at = lists.hashes() % np.uint64(bins)
    in_order = np.argsort(at, kind="stable")
    borders = np.searchsorted(at[in_order], np.arange(1, bins))
    return [lists.of(rows).packed() for rows in np.split(in_order, borders)]


FEW = 10_000_000  # entries of different lists on a cluster that one process fits as well: 160 MB
MOST_GAMES = 6 * FEW  # of games, up to which models with ties may have them all in one process
_LISTS_SHOWN = 2


def checked_weights(weights: Any, number: int, one: str) -> FloatArray:
    """Give the weights of lists, or of games, as a read-only copy in float64."""
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers, one a {one}: {error}.") from None
    if values.shape != (number,):
        raise ValueError(
            f"weights have shape {values.shape}, but there are {number} {one}s: give one a {one}."
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"the weight of {one} {at} is {values[at]}: weights are positive and finite. Leave out "
            f"{one}s that nobody saw."
        )
    values.flags.writeable = False
    return values


def check_beside(beside: Mapping[str, AnyArray], number: int, one: str) -> None:
    """Refuse columns that are not as long as there are lists, games or entries."""
    for name, values in beside.items():
        if not isinstance(values, np.ndarray) or values.shape != (number,):
            raise ValueError(
                f"the column {name!r} beside is of shape {np.shape(values)}: give an array of "
                f"{number}, one value a {one}."
            )


def rows_by(
    beside: Mapping[str, AnyArray], column: str, weights: FloatArray
) -> dict[Any, IntArray]:
    """Rows of each value of a column beside, those of the most weight first."""
    if column not in beside:
        known = f"only {', '.join(map(repr, beside))}" if beside else "no column"
        guess = did_you_mean(column, list(beside))
        raise ValueError(
            f"there is {known} beside the lists, not {column!r}.{guess} Read them with "
            f"keep=[{column!r}]."
        )
    values = beside[column].tolist()
    missing = next((row for row, value in enumerate(values) if is_missing(value)), None)
    if missing is not None:
        raise ValueError(
            f"list {missing} has no {column!r}: say which it belongs to, or leave it out."
        )
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(int(v) if whole else v, len(number)) for v in values])
    weight = np.bincount(codes, weights, len(number))
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    names = list(number)
    return {names[code]: rows[code] for code in np.argsort(-weight, kind="stable").tolist()}


def taken(beside: Mapping[str, AnyArray], rows: AnyArray) -> dict[str, AnyArray]:
    """Columns beside of some rows."""
    return {name: values[rows] for name, values in beside.items()}


def left_over(names: tuple[Any, ...], items: Iterable[Any]) -> tuple[BoolArray, IntArray]:
    """[items] who stays when some are left out, and what number each has then."""
    if isinstance(items, str | bytes):
        raise ValueError(f"give the items to leave out in a list, as in [{items!r}].")
    number = {name: i for i, name in enumerate(names)}
    stays = np.ones(len(names), dtype=bool)
    for item in items:
        if item not in number:
            guess = did_you_mean(str(item), map(str, names))
            raise ValueError(f"there is no item {preview(item)} to leave out.{guess}")
        stays[number[item]] = False
    return stays, np.cumsum(stays) - 1


def short(value: float) -> str:
    """A weight as people write it: whole numbers without a fraction."""
    return f"{value:,.0f}" if value.is_integer() and value < 1e15 else f"{value:.6g}"


class NothingThere(Exception):
    """A part of a table has nothing to read.

    `error` says so, should no other part have anything; `items` and `read_as` are what it names all
    the same, and what was found out.
    """

    def __init__(self, error: ArgumentError, items: Sequence[Any], read_as: str) -> None:
        super().__init__(error, items, read_as)
        self.error, self.items, self.read_as = error, items, read_as


def refuse_nothing(
    table: Table, *what: object, items: Sequence[Any] = (), read_as: str = ""
) -> NoReturn:
    """Refuse a table of which nothing is left; of a part, other parts may have something."""
    error = table.error(*what)
    raise NothingThere(error, items, read_as) if table.is_part else error


class Entries(NamedTuple):
    """Items of lists, in any order; a lower value is better, and equal ones tie."""

    lists: IntArray  # [entries] 0 .. lists - 1, each at least once
    items: IntArray  # [entries]
    values: FloatArray  # [entries] no NaN
    keys: AnyArray  # [lists] what the lists are called
    catalogue: Catalogue

    def in_order(self) -> IntArray:
        """[entries] as tiers have them: by list, then by value, then by position."""
        return np.lexsort((self.values, self.lists))

    def tiers(self, rest: bool) -> Tiers:
        """Lists of these entries."""
        order = self.in_order()
        lists, values = self.lists[order], self.values[order]
        starts = np.ones(len(order), dtype=bool)
        starts[1:] = (lists[1:] != lists[:-1]) | (values[1:] != values[:-1])
        first = np.flatnonzero(starts)
        return Tiers(
            items=torch.from_numpy(self.items[order]),
            tier_offsets=torch.from_numpy(np.append(first, len(order))),
            list_offsets=torch.from_numpy(
                offsets(np.bincount(lists[first], minlength=len(self.keys)))
            ),
            n_items=self.catalogue.size,
            names=self.catalogue.names,
            keys=self.keys,
            rest=rest,
        )

    def kept(self, keep_best: bool, refuse: Callable[..., Any]) -> IntArray:
        """Entries that stay: of an item that a list has twice, its best place, or none may be so.

        `refuse` takes the number of the second entry, and what is wrong in parts.
        """
        pairs = self.lists * self.catalogue.size + self.items
        order = np.lexsort((self.values, pairs)) if keep_best else np.argsort(pairs, kind="stable")
        again = np.zeros(len(order), dtype=bool)
        again[1:] = pairs[order[1:]] == pairs[order[:-1]]
        if again.any() and not keep_best:
            at = int(order[again].min())
            name = shown(self.catalogue.name(int(self.items[at])))
            key = shown(self.keys[self.lists[at]])
            refuse(
                at,
                f"the item {name} stands in the list {key} twice: leave one out, or pass ",
                Argument("twice", "best"),
                " to keep the better.",
            )
        return np.sort(order[~again])

    def of(self, kept: IntArray) -> Entries:
        """These entries alone."""
        if len(kept) == len(self.lists):
            return self
        return self._replace(
            lists=self.lists[kept], items=self.items[kept], values=self.values[kept]
        )
