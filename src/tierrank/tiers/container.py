"""The container: lists of items in ordered tiers, ragged, flat and immutable."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from tierrank._types import AnyArray
from tierrank.tiers.arrays import Parts, outside_graphs, range_numbers, ranges, repeat
from tierrank.tiers.build import (
    is_tie,
    parts_from_labels,
    parts_from_positives,
    parts_from_preferences,
    parts_from_rankings,
)
from tierrank.tiers.catalogue import are_numbers
from tierrank.tiers.layout import Layout, Tables, layout_of, tables_of
from tierrank.tiers.selection import (
    concatenate,
    first_places,
    list_numbers,
    rows_of,
    select,
    without_ties,
)

Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False, repr=False, slots=True, kw_only=True)
class Tiers:
    """Lists of items in ordered tiers, best first; items of one tier are tied.

    Build it with `from_labels`, `from_rankings`, `from_positives` or `from_preferences`. The
    constructor is for code that has the fields already: it checks shapes and ranges, and trusts
    that no item stands in two tiers of a list.

    There are three kinds, by what the items index:

    - *rows* (flat labels): row numbers; `score_shape` is ``(rows,)``, each row is in one list.
    - *padded* (2-D labels): flat positions; `score_shape` is ``(lists, width)``.
    - *catalogue* (rankings, positives, preferences): items ``0 .. n_items - 1``, which any
      list may name; scores are ``[lists, n_items]``, or ``[n_items]`` shared by all lists.

    ``len(tiers)`` is the number of lists. ``tiers[3]``, ``tiers[:10]``, ``tiers[mask]`` and
    ``tiers[indices]`` take lists out; what that means for the scores stands at `rows`.

    Parameters
    ----------
    items : Tensor
        [entries] every written item: by list, then tier, best first, then input order.
    tier_offsets : Tensor
        [tiers + 1] ranges of `items`, one a tier.
    list_offsets : Tensor
        [lists + 1] ranges of tiers, one a list.
    score_shape : tuple of int, optional
        Shape of the scores, for the rows and padded kinds; None for a catalogue.
    n_items : int, optional
        Size of the catalogue, else None.
    rest : bool
        Whether each list has a last tier that is not written: the items it does not name.
    names : tuple, optional
        [n_items] names of the catalogue's items; None if they are just 0 .. n_items - 1.
    keys : ndarray, optional
        [lists] the qid of each list, if there were any (a read-only numpy array).
    labels : Tensor, optional
        [tiers] the label of every written tier, in float64, if there were any.

    Raises
    ------
    ValueError
        Fields do not go together; the builders name the row or list that is wrong.

    See Also
    --------
    log_prob : The probability of tiers under scores.
    tierrank.data.read_rankings : Rankings from a file.
    tierrank.losses.pl_partition : The loss, and the other objectives beside it.

    Examples
    --------
    >>> import tierrank as tr
    >>> tr.Tiers.from_labels([2, 0, 1, 0, 1, 1], lengths=[4, 2])  # grades of two queries
    Tiers(2 lists, 6 rows, 1 to 3 tiers a list)
      list 0: 0 > 2 > {1, 3}
      list 1: {4, 5}
    >>> votes = tr.Tiers.from_rankings([["ann", ("bob", "cy")], ["cy", "ann"]])
    >>> votes[0].to_rankings()
    [['ann', ('bob', 'cy')]]
    """

    items: Tensor
    tier_offsets: Tensor
    list_offsets: Tensor
    score_shape: tuple[int, ...] | None = None
    n_items: int | None = None
    rest: bool = False
    names: tuple[Any, ...] | None = None
    keys: AnyArray | None = None
    labels: Tensor | None = None
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        _check_fields(self)
        if self.keys is not None and self.keys.flags.writeable:
            keys = self.keys.copy()
            keys.flags.writeable = False
            object.__setattr__(self, "keys", keys)
        if self.names is not None and are_numbers(self.names):
            object.__setattr__(self, "names", None)

    @classmethod
    @outside_graphs
    def from_labels(
        cls,
        labels: Any,
        *,
        qid: Any = None,
        lengths: Any = None,
        mask: Any = None,
        ignore_label: float | None = None,
    ) -> Tiers:
        """Build from graded labels: the higher the label, the better the tier.

        Arrays may be numpy, torch, pandas or plain lists. The result lives on the labels' device.

        Parameters
        ----------
        labels : array_like
            [rows] or [lists, width], integers, floats or booleans; finite.
        qid : array_like, optional
            [rows] which list each row belongs to, in any order: numbers, strings, any hashable.
            Lists come in order of first appearance, and `keys` keeps their qid.
        lengths : array_like, optional
            [lists] sizes of lists of consecutive rows. Without qid and lengths, flat labels are
            one list.
        mask : array_like, optional
            [lists, width] for 2-D labels, True for a real item; holes may be anywhere.
        ignore_label : float, optional
            For 2-D labels, the label that padding has: it is masked out, wherever it stands.
            TF-Ranking and allRank pad with -1; without this or a mask, such labels are refused.

        Returns
        -------
        Tiers
            Of the rows kind, or padded for 2-D labels.

        Raises
        ------
        ValueError
            A label is not finite, or shapes do not go together; the message says where.

        See Also
        --------
        from_rankings : From items, best first.
        to_labels : The way back.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_labels([2, 0, 1, 0, 1], qid=["a", "a", "b", "a", "b"])
        Tiers(2 lists, 5 rows, 1 to 2 tiers a list)
          'a': 0 > {1, 3}
          'b': {2, 4}
        >>> Tiers.from_labels([[2, 0, 1], [0, 1, -1]], ignore_label=-1)
        Tiers(2 lists, padded to 3, 2 to 3 tiers a list)
          list 0: 0 > 2 > 1
          list 1: 1 > 0
        """
        return cls._assemble(parts_from_labels(labels, qid, lengths, mask, ignore_label))

    @classmethod
    @outside_graphs
    def from_rankings(
        cls,
        rankings: Any,
        *,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
    ) -> Tiers:
        """Build from rankings of named items, best first, with ties.

        Parameters
        ----------
        rankings : iterable
            One iterable a list, best first, of any hashable names; a tuple, set or frozenset
            inside it is a tie. A 2-D integer array holds one strict ranking a row.
        items : sequence or int, optional
            The catalogue: a sequence of names, or N for the integers 0 .. N - 1. Without it, the
            names in order of first appearance, or in their own if they are the integers 0 .. N - 1
            (for a 2-D integer array, 0 .. its largest).
        rest : {"absent", "last"}
            Whether what a list does not name is absent from it, or tied in the last place. In the
            second case a list may also be empty: all it has is that last tier.

        Returns
        -------
        Tiers
            Of the catalogue kind.

        Raises
        ------
        ValueError
            A list names an item twice, or one that is not in the catalogue.

        See Also
        --------
        from_labels : From grades.
        tierrank.data.read_rankings : From a file.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_rankings([["ann", ("bob", "cy")], ["cy", "ann"]])
        Tiers(2 lists, catalogue of 3 items, 2 tiers a list)
          list 0: ann > {bob, cy}
          list 1: cy > ann
        >>> Tiers.from_rankings([[4, 1], [0]], items=6, rest="last")
        Tiers(2 lists, catalogue of 6 items, 2 to 3 tiers a list)
          list 0: 4 > 1 > the other 4
          list 1: 0 > the other 5
        """
        return cls._assemble(parts_from_rankings(rankings, items, rest))

    @classmethod
    @outside_graphs
    def from_positives(cls, matrix: Any) -> Tiers:
        """Build from a sparse matrix of positives: what is set in a row, over all the rest.

        The matrix is never made dense, and is not changed. Entries that are stored twice are
        summed, stored zeros are none. A row without positives is a list of one tier, the rest.

        Parameters
        ----------
        matrix : sparse matrix or sparse Tensor
            [lists, catalogue] scipy sparse matrix or array, or sparse torch tensor, of any
            format; what is not zero is positive, whatever its value.

        Returns
        -------
        Tiers
            Of the catalogue kind, with a rest.

        Raises
        ------
        ValueError
            The matrix is dense, or has an entry that is not finite.

        See Also
        --------
        from_rankings : From items, best first.
        tierrank.data.MultiLabelData : Features with such a matrix.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> from tierrank import Tiers
        >>> Tiers.from_positives(csr_array([[0, 1, 0, 1], [0, 0, 0, 0]]))
        Tiers(2 lists, catalogue of 4 items, 1 to 2 tiers a list)
          list 0: {1, 3} > the other 2
          list 1: all 4 items
        """
        return cls._assemble(parts_from_positives(matrix))

    @classmethod
    @outside_graphs
    def from_preferences(
        cls,
        pairs: Any,
        *,
        items: Any = None,
        method: Literal["exact", "layers"] = "exact",
    ) -> Tiers:
        """Build from preferences between items: an acyclic graph of (winner, loser) a list.

        Takes time linear in the number of preferences. The items of a list are those that its
        preferences mention.

        Parameters
        ----------
        pairs : sequence
            One sequence of (winner, loser) pairs a list, or an integer array [n, 2] a list.
        items : sequence or int, optional
            The catalogue: a sequence of names, or N for the integers 0 .. N - 1. Without it, the
            names in order of first appearance, or in their own if they are the integers 0 .. N - 1
            (for integer arrays, 0 .. their largest).
        method : {"exact", "layers"}
            "exact" gives the ordered partition with the most tiers in which every item of a tier
            is above every item of all lower tiers by a path in the graph, so that nothing is
            invented. "layers" puts an item as many tiers down as the longest path that ends in
            it: more tiers, but with comparisons that nobody made.

        Returns
        -------
        Tiers
            Of the catalogue kind.

        Raises
        ------
        ValueError
            The preferences of a list go round in a circle, or name an item that is not in the
            catalogue.

        See Also
        --------
        from_rankings : From items, best first.
        tierrank.data.read_preferences : From a table.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> games = [("ann", "bob"), ("ann", "cy"), ("bob", "dee"), ("cy", "dee"), ("cy", "eve")]
        >>> Tiers.from_preferences([games])
        Tiers(1 list, catalogue of 5 items, 2 tiers)
          list 0: ann > {bob, cy, dee, eve}
        >>> Tiers.from_preferences([games], method="layers")
        Tiers(1 list, catalogue of 5 items, 3 tiers)
          list 0: ann > {bob, cy} > {dee, eve}
        """
        return cls._assemble(parts_from_preferences(pairs, items, method))

    @classmethod
    @outside_graphs
    def concat(cls, parts: Iterable[Tiers]) -> Tiers:
        """Put lists of several `Tiers` behind each other.

        All are of one kind. Rows: the rows follow each other, as ``cat`` of the scores would do.
        Padded: the same width. Catalogue: the same items, names and rest. Keys stay if all
        have them.

        Parameters
        ----------
        parts : iterable of Tiers
            What to put together.

        Returns
        -------
        Tiers
            All their lists.

        Raises
        ------
        ValueError
            The parts are not of one kind.

        See Also
        --------
        rows : Rows of some lists.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> one, two = Tiers.from_labels([1, 0]), Tiers.from_labels([0, 1, 1])
        >>> Tiers.concat([one, two])
        Tiers(2 lists, 5 rows, 2 tiers a list)
          list 0: 0 > 1
          list 1: {3, 4} > 2
        """
        return concatenate(list(parts))

    @classmethod
    def _assemble(cls, parts: Parts) -> Tiers:
        fields = parts._asdict()
        device = fields.pop("device")
        for name in ("items", "tier_offsets", "list_offsets"):
            fields[name] = torch.from_numpy(fields[name].astype(np.int64, copy=False))
        if fields["labels"] is not None:
            fields["labels"] = torch.from_numpy(fields["labels"])
        return cls(**fields).to(device)

    def __len__(self) -> int:
        return len(self.list_offsets) - 1

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.items.device

    @property
    def lengths(self) -> Tensor:
        """[lists] number of written items."""
        return self.tier_offsets[self.list_offsets].diff()

    @property
    def full_lengths(self) -> Tensor:
        """[lists] number of items, with the rest."""
        if self.n_items is None or not self.rest:
            return self.lengths
        return torch.full_like(self.list_offsets[1:], self.n_items)

    @property
    def n_tiers(self) -> Tensor:
        """[lists] number of tiers, with the rest if it is not empty."""
        written = self.list_offsets.diff()
        if self.n_items is None or not self.rest:
            return written
        return written + (self.lengths < self.n_items)

    @property
    def tier_sizes(self) -> Tensor:
        """[tiers] number of items in every written tier."""
        return self.tier_offsets.diff()

    @property
    def grades(self) -> Tensor:
        """[tiers] how good every written tier is: its label, or else how many tiers are below.

        The rest of a catalogue has grade 0.
        """
        if self.labels is not None:
            return self.labels
        sizes = self.list_offsets.diff()
        place = ranges(torch.zeros_like(sizes), sizes)
        return (repeat(self.n_tiers, sizes) - 1 - place).to(torch.float64)

    def __getitem__(self, selection: Any) -> Tiers:
        return select(self, list_numbers(selection, len(self), self.device))

    def rows(self, selection: Any) -> Tensor:
        """Give the rows of the selected lists: ``tiers[s]`` goes with ``scores[tiers.rows(s)]``.

        For flat labels only. The lists come in the order of selection, the rows of a list in
        their original order. The other kinds have lists along the first axis of the scores:
        ``tiers[s]`` goes with ``scores[s]``. (For numpy scores, use ``tiers.rows(s).numpy()``.)

        Parameters
        ----------
        selection : int, slice or array_like
            Lists by number, as ``tiers[…]`` takes them.

        Returns
        -------
        Tensor
            [rows] numbers of rows.

        Raises
        ------
        ValueError
            The tiers are not of the rows kind.

        See Also
        --------
        concat : Puts lists together.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> tiers = Tiers.from_labels([2, 0, 1, 0], qid=[7, 8, 7, 8])
        >>> tiers.rows([1])
        tensor([1, 3])
        """
        return rows_of(self, list_numbers(selection, len(self), self.device))

    def to(self, device: torch.device | str) -> Tiers:
        """Move to a device (gives itself if it is there already).

        Parameters
        ----------
        device : device or str
            Such as "cuda".

        Returns
        -------
        Tiers
            The same lists.

        See Also
        --------
        device : Where they are.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.Tiers.from_labels([1, 0]).to("cpu").device
        device(type='cpu')
        """
        if torch.device(device) == self.device:
            return self
        return replace(
            self,
            items=self.items.to(device),
            tier_offsets=self.tier_offsets.to(device),
            list_offsets=self.list_offsets.to(device),
            labels=None if self.labels is None else self.labels.to(device),
        )

    def break_ties(
        self, *, at_random: bool = False, generator: torch.Generator | int | None = None
    ) -> Tiers:
        """Give strict lists: every written tie in its input order, or in a random one.

        The rest of a catalogue, which is not written, stays tied.

        Parameters
        ----------
        at_random : bool
            Whether to shuffle inside the tiers.
        generator : Generator or int, optional
            A torch generator or an integer seed; without one, torch's global generator is used.

        Returns
        -------
        Tiers
            Lists without written ties.

        See Also
        --------
        tierrank.losses.list_mle : Asks for a strict order.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_labels([0, 1, 1]).break_ties().to_rankings()
        [[1, 2, 0]]
        """
        return without_ties(self, at_random, generator)

    def top(self, k: int) -> Tiers:
        """Give lists of which only the first k places are known, with all else in one last tier.

        A tier that begins within the first k places is kept whole. The last tier's label, if
        there are labels, is the best of those it takes in.

        Parameters
        ----------
        k : int
            How many places are known.

        Returns
        -------
        Tiers
            Lists whose places beyond are tied.

        Raises
        ------
        ValueError
            There is no place, k < 1.

        See Also
        --------
        tierrank.losses.pl_top_k : The likelihood of these.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_labels([5, 4, 3, 3, 2, 1]).top(3).to_rankings()
        [[0, 1, (2, 3), (4, 5)]]
        """
        return first_places(self, k)

    def to_labels(self) -> Tensor:
        """Give labels that lead back here: in the scores' shape, higher is better, last tier 0.

        Holes of padded lists get -1: `from_labels` takes them back with ``ignore_label=-1``.

        Returns
        -------
        Tensor
            Integers in the shape of the scores.

        Raises
        ------
        ValueError
            The tiers are of a catalogue.

        See Also
        --------
        from_labels : The way back.
        to_rankings : As names.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_labels([0.5, 9, 0.5, 7]).to_labels()
        tensor([0, 2, 0, 1])
        """
        return labels_of(self)

    def to_rankings(self) -> list[list[Any]]:
        """Give one list of names (or numbers) a list, best first, with a tie as a tuple.

        The rest is not written: pass ``rest="last"`` to `from_rankings` to get it back.

        Returns
        -------
        list of list
            Names, or numbers where there are none.

        See Also
        --------
        from_rankings : The way back.
        to_labels : As numbers.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> Tiers.from_labels([2, 0, 1, 0]).to_rankings()
        [[0, 2, (1, 3)]]
        """
        return rankings_of(self)

    def layout(self, per_list: bool = True) -> Layout:
        """Get the likelihood's view of the tiers, made once and kept.

        What is compiled, by `torch.compile`, finds it there if it was called before.

        Parameters
        ----------
        per_list : bool
            For a catalogue: whether scores are [lists, n_items], or [n_items] shared by all lists.

        Returns
        -------
        Layout
            Offsets of lists and tiers among the rows that are scored.

        See Also
        --------
        tierrank.log_prob : Asks for it.

        Examples
        --------
        >>> from tierrank import Tiers
        >>> tiers = Tiers.from_labels([2, 0, 1])
        >>> tiers.layout() is tiers.layout()
        True
        """
        # for rows there is only one way
        key = "layout" if per_list or self.n_items is None else "shared layout"
        layout: Layout | None = self._kept.get(key)
        if layout is None:
            layout = self._kept[key] = layout_of(self, key == "layout")
            if self.device.type != "cpu":
                self.tables(per_list)
        return layout

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Give what depends on the tiers alone: made by the first call with this key, and kept."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast(Kept, self._kept[key])

    def tables(self, per_list: bool = True) -> Tables:
        """Give the layout as tables, for what computes by whole tensors; made once and kept.

        `layout` makes them too, where no native core computes: on every device but the CPU.
        """
        layout = self.layout(per_list)
        key = "tables" if per_list or self.n_items is None else "shared tables"
        return self.kept(key, lambda: tables_of(layout[1:]))

    def __eq__(self, other: object) -> bool:
        """Whether both say the same: the same order, whatever the labels, and on any device."""
        return _same_tiers(self, other) if isinstance(other, Tiers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return describe(self)


def _check_fields(tiers: Tiers) -> None:
    """Refuse fields that do not fit together; cheap beside building them."""
    items, tier_offsets, list_offsets = tiers.items, tiers.tier_offsets, tiers.list_offsets
    for name, tensor in (
        ("items", items),
        ("tier_offsets", tier_offsets),
        ("list_offsets", list_offsets),
    ):
        if tensor.dtype != torch.int64 or tensor.dim() != 1 or tensor.device != items.device:
            raise ValueError(
                f"{name} must be a 1-D int64 tensor on the device of the items, "
                f"not {tensor.dtype} with shape {tuple(tensor.shape)} on {tensor.device}."
            )
    if items.is_meta:  # a tensor without values: only its shape is known
        return
    _check_offsets("tier_offsets", tier_offsets, len(items), at_least=1)
    # A list without a written tier still has the rest.
    _check_offsets("list_offsets", list_offsets, len(tier_offsets) - 1, at_least=not tiers.rest)
    n_lists = len(list_offsets) - 1
    if tiers.keys is not None and len(tiers.keys) != n_lists:
        raise ValueError(f"there are {len(tiers.keys)} keys for {n_lists} lists.")
    if tiers.labels is not None and tiers.labels.shape != (len(tier_offsets) - 1,):
        raise ValueError(
            f"there are {len(tier_offsets) - 1} tiers, but labels of shape "
            f"{tuple(tiers.labels.shape)}: give one a tier."
        )
    _check_kind(tiers, n_lists)


def _check_kind(tiers: Tiers, n_lists: int) -> None:
    if (tiers.score_shape is None) == (tiers.n_items is None):
        raise ValueError("give score_shape (items are rows) or n_items (a catalogue), not both.")
    if tiers.score_shape is None:
        size = tiers.n_items or 0
        if tiers.names is not None and len(tiers.names) != size:
            raise ValueError(f"there are {len(tiers.names)} names for {size} catalogue items.")
        if size == 0 and n_lists:
            raise ValueError(f"the catalogue is empty, but there are {n_lists} lists.")
    else:
        size = math.prod(tiers.score_shape)
        if tiers.rest or tiers.names is not None:
            raise ValueError("rest and names are for catalogues, not for items that are rows.")
        if len(tiers.score_shape) == 1 and size != len(tiers.items):
            raise ValueError(f"{size} rows, but {len(tiers.items)} of them in lists.")
        if len(tiers.score_shape) == 2 and tiers.score_shape[0] != n_lists:
            raise ValueError(f"{n_lists} lists in padded scores of shape {tiers.score_shape}.")
    if len(tiers.items):
        low, high = (int(bound) for bound in torch.stack(tiers.items.aminmax()).tolist())
        if low < 0 or high >= size:
            raise ValueError(f"items are {low} to {high}, outside of 0 to {size - 1}.")


def _check_offsets(name: str, offsets: Tensor, end: int, at_least: int) -> None:
    borders = offsets.cpu().numpy()  # by torch, each of these looks costs several times as much
    if len(borders) == 0 or borders[0] != 0 or borders[-1] != end:
        raise ValueError(f"{name} must begin with 0 and end with {end}.")
    sizes = borders[1:] - borders[:-1]
    if len(sizes) and sizes.min() < at_least:
        at = int(sizes.argmin())
        raise ValueError(
            f"{name}[{at}:{at + 2}] = {borders[at : at + 2].tolist()}: "
            f"offsets must grow{' by at least 1' if at_least else ', or stay'}."
        )


def _same_tiers(one: Tiers, two: Tiers) -> bool:
    """Whether both have the same lists with the same tiers, seen as sets of items."""
    if (
        (one.score_shape, one.n_items, one.rest) != (two.score_shape, two.n_items, two.rest)
        or one.names != two.names
        or (one.keys is None) != (two.keys is None)
    ):
        return False
    if one.keys is not None and two.keys is not None and not np.array_equal(one.keys, two.keys):
        return False
    two = two.to(one.device)
    if not torch.equal(one.tier_offsets, two.tier_offsets) or not torch.equal(
        one.list_offsets, two.list_offsets
    ):
        return False
    return torch.equal(one.items, two.items) or torch.equal(_canonical(one), _canonical(two))


def _canonical(tiers: Tiers) -> Tensor:
    """The pairs (tier, item) as sorted integers."""
    tier = range_numbers(tiers.tier_sizes)
    size = int(tiers.items.max()) + 1
    return (tier * size + tiers.items).sort().values


# Written out: as a short text that shows what was understood, as labels, as rankings -------------

LISTS = 2  # shown
ITEMS = 5  # shown of a tie
WIDTH = 80  # about, of a list's line
NAME = 24  # characters of a name


def describe(tiers: Tiers) -> str:
    """Give the `repr`: a line of counts, then the first lists."""
    n_lists = len(tiers)
    if tiers.score_shape is None:
        shape = f"catalogue of {_count(tiers.n_items or 0, 'item')}"
    elif len(tiers.score_shape) == 1:
        shape = _count(tiers.score_shape[0], "row")
    else:
        shape = f"padded to {tiers.score_shape[1]:,}"
    facts = [_count(n_lists, "list"), shape]
    if n_lists:
        low, high = (int(n) for n in (tiers.n_tiers.min(), tiers.n_tiers.max()))
        span = f"{low:,} to {high:,} tiers" if low < high else _count(high, "tier")
        facts.append(span + (" a list" if n_lists > 1 else ""))
    if tiers.device.type != "cpu":
        facts.append(f"on {tiers.device}")
    lines = [f"Tiers({', '.join(facts)})"]
    lines += [f"  {_title(tiers, i)}: {_line(tiers, i)}" for i in range(min(n_lists, LISTS))]
    if n_lists > LISTS:
        lines.append(f"  ... {n_lists - LISTS:,} more")
    return "\n".join(lines)


def _title(tiers: Tiers, number: int) -> str:
    return (
        f"list {number}"
        if tiers.keys is None
        else _shown(repr(tiers.keys[number : number + 1].tolist()[0]))
    )


def _line(tiers: Tiers, number: int) -> str:
    """One list: a > {b, c} > the other 7, cut at about the width of a line."""
    first, end = (int(i) for i in tiers.list_offsets[number : number + 2])
    base = 0
    if tiers.score_shape is not None and len(tiers.score_shape) == 2:
        base = number * tiers.score_shape[1]  # show the column
    parts: list[str] = []
    for tier in range(first, end):
        if sum(map(len, parts)) + 3 * len(parts) > WIDTH:
            parts.append(f"... {_count(end - tier, 'more tier')}")
            break
        parts.append(_tier(tiers, tier, base))
    written = int(tiers.lengths[number])
    if tiers.rest and written < (tiers.n_items or 0):
        others = (tiers.n_items or 0) - written
        parts.append(f"the other {others:,}" if written else f"all {_count(others, 'item')}")
    return " > ".join(parts)


def _tier(tiers: Tiers, tier: int, base: int) -> str:
    start, end = (int(i) for i in tiers.tier_offsets[tier : tier + 2])
    shown = [
        _name(tiers, item - base) for item in tiers.items[start : min(end, start + ITEMS)].tolist()
    ]
    if end - start == 1:
        return shown[0]
    if end - start > ITEMS:
        shown.append(f"... {end - start - ITEMS:,} more")
    return "{" + ", ".join(shown) + "}"


def _name(tiers: Tiers, item: int) -> str:
    name: Any = item if tiers.names is None else tiers.names[item]
    return _shown(str(name) or repr(name))


def _shown(text: str) -> str:
    text = " ".join(text.split())  # a name may hold line breaks
    return text if len(text) <= NAME else text[: NAME - 3] + "..."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def labels_of(tiers: Tiers) -> Tensor:
    """Number the tiers of each list from the bottom, in the shape of the scores."""
    if tiers.score_shape is None:
        raise ValueError(
            f"labels for every list and item would be a dense array of {len(tiers)} by "
            f"{tiers.n_items}: use to_rankings() for Tiers over a catalogue."
        )
    n_tiers = tiers.list_offsets.diff()
    from_bottom = repeat(tiers.list_offsets[1:] - 1, n_tiers)
    from_bottom -= torch.arange(len(from_bottom), device=tiers.device)
    labels = torch.full(tiers.score_shape, -1, dtype=torch.int64, device=tiers.device)
    labels.view(-1)[tiers.items] = repeat(from_bottom, tiers.tier_sizes)
    return labels


def rankings_of(tiers: Tiers) -> list[list[Any]]:
    """Write the tiers of each list out, best first."""
    items: list[Any] = tiers.items.tolist()
    if tiers.names is not None:
        items = list(map(tiers.names.__getitem__, items))
    borders = tiers.tier_offsets.tolist()
    lists = tiers.list_offsets.tolist()
    written = [
        items[start] if end - start == 1 and not is_tie(items[start]) else tuple(items[start:end])
        for start, end in pairwise(borders)
    ]
    return [written[start:end] for start, end in pairwise(lists)]
