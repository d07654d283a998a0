"""What a PrefLib file holds: rankings, and all that its header says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tierrank.data.rankings.container import FloatArray, Rankings
from tierrank.data.rankings.preflib.checks import DATA_TYPES, DataType, type_fault, type_of
from tierrank.data.rankings.preflib.header import TEXTS, distinct_names, is_known, split_line
from tierrank.data.rankings.preflib.orders import IntArray
from tierrank.tiers import Tiers
from tierrank.tiers.selection import equal_lists, with_rest_written

_LARGEST_COUNT = 10**15


class Style(NamedTuple):
    """How orders are spelt, where PrefLib's files differ.

    Attributes
    ----------
    between_tiers, in_ties
        what separates two tiers, and two alternatives of a tie: a comma, maybe with a blank
    braced
        numbers of the tiers of one alternative that stand in braces all the same
    """

    between_tiers: str = ","
    in_ties: str = ","
    braced: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrefLib:
    """Rankings with what PrefLib's header says about them.

    `read_preflib` gives it and `write_preflib` takes it; `from_rankings` makes one of rankings
    from elsewhere. The attributes are what is written: with ``dataclasses.replace(votes,
    title="…")`` the file gets another title.

    Attributes
    ----------
    orders
        a list for every line, over a catalogue of the alternatives; in incomplete orders (soi,
        toi) alternatives that are not listed are absent
    counts
        [orders] how many voters gave each; some of PrefLib's files list orders that nobody gave
    data_type
        "soc" or "soi": strict orders, complete or incomplete; "toc" or "toi": with ties;
        "cat": categories, each that is not empty a tier
    alternative_names
        as the file has them. Where two are the same, the catalogue has "Lee (3)" and "Lee (7)".
    categories
        names of the categories of a cat file, best first
    tier_categories
        [tiers] the category of every tier in a cat file, counted from 0
    file_name, title, description, modification_type, relates_to, related_files
        of the header, "" or () where there is nothing
    publication_date, modification_date
        as written, usually 2022-09-16
    other
        fields that the format does not have
    header
        the lines that were read, as they stood
    style
        how the orders were spelt
    """

    orders: Tiers
    counts: IntArray
    data_type: DataType
    alternative_names: tuple[str, ...]
    categories: tuple[str, ...] = ()
    tier_categories: IntArray | None = None
    file_name: str = ""
    title: str = ""
    description: str = ""
    modification_type: str = ""
    relates_to: str = ""
    related_files: tuple[str, ...] = ()
    publication_date: str = ""
    modification_date: str = ""
    other: Mapping[str, str] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    style: Style = field(default_factory=Style)

    def __post_init__(self) -> None:
        if self.data_type not in DATA_TYPES:
            raise ValueError(
                f"data_type is one of {', '.join(DATA_TYPES)}, not {self.data_type!r}."
            )
        if self.orders.n_items is None or self.orders.rest:
            raise ValueError(
                "orders are over a catalogue, without a rest: use PrefLib.from_rankings, which "
                "writes the rest out."
            )
        if distinct_names(self.alternative_names) != self.orders.names:
            raise ValueError(
                "alternative_names and the names in the orders are not the same: make both anew "
                "with PrefLib.from_rankings."
            )
        fault = type_fault(self.orders, self.data_type)
        if fault is not None:
            raise ValueError(f"list {fault[0]}: {fault[1]}")
        self._check_counts()
        self._check_categories()
        self._check_texts()

    @classmethod
    def from_rankings(
        cls,
        rankings: Rankings,
        *,
        title: str = "",
        data_type: DataType | None = None,
        categories: Sequence[str] = (),
        **fields: Any,
    ) -> PrefLib:
        """Make one of rankings from elsewhere.

        Equal lists are counted together, and a rest is written out as a last tier.

        Parameters
        ----------
        rankings
            with whole numbers as weights
        title
            of the data
        data_type
            None for the narrowest of soc, soi, toc and toi that holds the lists
        categories
            for data_type="cat": names, best first. The first tier of every list goes into the
            first category, and so on; the last categories may stay empty.
        fields
            other attributes, such as description or publication_date

        Examples
        --------
        >>> votes = Rankings.from_rankings([["ann", ("bob", "cy")], ["cy"], ["cy"]])
        >>> PrefLib.from_rankings(votes, title="A vote")
        PrefLib(toi, 'A vote': 3 alternatives, 3 voters, 2 unique orders)
        """
        names = tuple(_one_line(str(name)) for name in rankings.items)
        if distinct_names(names) != names:
            raise ValueError(
                "two items have the same name once they are text, or one is empty: PrefLib tells "
                "alternatives apart by their names. Rename them."
            )
        tiers = replace(with_rest_written(rankings.tiers.to("cpu")), names=names, keys=None)
        first, which = equal_lists(tiers)
        counts = np.bincount(which, weights=_whole(rankings.weights)).astype(np.int64)
        tiers = tiers[first]
        if data_type == "cat":
            per_list = np.diff(tiers.list_offsets.numpy())
            starts = np.repeat(tiers.list_offsets.numpy()[:-1], per_list)
            fields["tier_categories"] = np.arange(len(starts)) - starts
        fields.setdefault("modification_type", "original")
        return cls(
            orders=tiers,
            counts=counts,
            data_type=type_of(tiers) if data_type is None else data_type,
            alternative_names=names,
            categories=tuple(categories),
            title=title,
            **fields,
        )

    @cached_property
    def rankings(self) -> Rankings:
        """The orders that someone gave, with their counts as weights."""
        given = self.counts > 0
        tiers = self.orders if given.all() else self.orders[given]
        return Rankings(tiers, self.counts[given].astype(np.float64))

    @property
    def number_alternatives(self) -> int:
        """How many alternatives there are, listed or not."""
        return len(self.alternative_names)

    @property
    def number_voters(self) -> int:
        """How many orders were given in all."""
        return int(self.counts.sum())

    @property
    def number_unique_orders(self) -> int:
        """How many lines of orders there are."""
        return len(self.orders)

    def __repr__(self) -> str:
        counts = (
            (self.number_alternatives, "alternative"),
            (self.number_voters, "voter"),
            (self.number_unique_orders, "unique order"),
        )
        listed = ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for n, word in counts)
        return f"PrefLib({self.data_type}, {self.title!r}: {listed})"

    def _check_counts(self) -> None:
        counts = self.counts
        if counts.shape != (len(self.orders),) or counts.dtype != np.int64:
            raise ValueError(
                f"counts have shape {counts.shape} and type {counts.dtype}: give one int64 for "
                f"each of {len(self.orders)} orders."
            )
        if not ((counts >= 0) & (counts < _LARGEST_COUNT)).all() or not counts.any():
            raise ValueError("counts are 0 or more and below 10^15, and not all of them are 0.")

    def _check_categories(self) -> None:
        if (self.data_type == "cat") != bool(self.categories):
            raise ValueError("give categories for data_type='cat', and for no other type.")
        if self.data_type != "cat":
            return
        numbers = self.tier_categories
        if numbers is None or numbers.shape != (len(self.orders.tier_sizes),):
            raise ValueError("give tier_categories, the category of every tier.")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self.categories):
            raise ValueError(
                f"tiers are in categories {numbers.min()} to {numbers.max()}, but there are "
                f"{len(self.categories)} categories, counted from 0."
            )
        starts = self.orders.list_offsets.numpy()[:-1]
        grows = np.append(True, np.diff(numbers) > 0)[: len(numbers)]
        grows[starts] = True
        if not grows.all():
            raise ValueError("tier_categories must grow within a list: the best comes first.")

    def _check_texts(self) -> None:
        for attribute in TEXTS.values():
            _one_line(getattr(self, attribute), attribute)
        for text in (*self.alternative_names, *self.categories, *self.related_files):
            _one_line(text)
        for key, value in self.other.items():
            if split_line(f"# {key}: {value}") != (key, value.strip()) or is_known(key):
                raise ValueError(
                    f"other has the key {key!r}: write keys in capitals, without a colon, and give "
                    "what the format has as an attribute of its own."
                )
            _one_line(value, key)


def _whole(weights: FloatArray) -> FloatArray:
    """Refuse weights that are no counts."""
    wrong = (weights != np.floor(weights)) | (weights >= _LARGEST_COUNT)
    if wrong.any():
        number = int(wrong.argmax())
        raise ValueError(
            f"the weight of list {number} is {weights[number]}: PrefLib has whole numbers of "
            "voters. Scale the weights, or write JSON lines."
        )
    return weights


def _one_line(text: str, what: str = "the name") -> str:
    """Refuse text that would not come back from a line of the header."""
    if text != text.strip() or "\n" in text:
        raise ValueError(f"{what} {text!r} has a line break, or blanks at an end: take them out.")
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{what} {text!r} cannot be written in UTF-8: mend it.") from None
    return text
