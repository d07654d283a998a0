"""What keeps worths from being determined, in words and with the items named."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank._types import IntArray
from tierrank.tiers.arrays import offsets

if TYPE_CHECKING:
    from tierrank.aggregation.connectivity.components import Connectivity

WIDTH = 96  # of a line
NAME = 40  # characters of a name
ORDERS = 3  # groups whose sets are shown in order


def explain(found: Connectivity, limit: int, seen: str) -> str:
    """Write the text of `Connectivity.explain`."""
    if limit < 1:
        raise ValueError(f"limit = {limit}: at least one item must be named.")
    if found.connected:
        if found.n_items < 2:
            return (
                f"There {'is one item' if found.n_items else 'are no items'}: nothing to compare."
            )
        return (
            f"Comparisons lead from each of the {found.n_items:,} items to every other, in both "
            "directions."
        )
    words = _Words(found, limit)
    facts = [*words.groups(), *words.extremes(), *words.sets()]
    ways = [
        'choose a prior (prior="gaussian" or prior="pseudo-item")',
        'leave items out with leave_out (component="largest", min_games= or exclude=)',
    ]
    if words.members.sizes.max() > 1:
        torn = found.n_components > found.n_groups
        ways.append(f"fit each {'component' if torn else 'group'} by itself")
    advice = f"What to do: {', '.join(ways[:-1])}, or {ways[-1]}."
    lines = [
        f"The {seen} do not determine the worths of all {found.n_items:,} items.",
        *(_folded(f"- {fact}", "  ") for fact in facts),
        _folded(advice, ""),
    ]
    return "\n".join(lines)


class _Words:
    """The sentences about one `Connectivity`."""

    def __init__(self, found: Connectivity, limit: int) -> None:
        self.names = found.names
        self.limit = limit
        self.group_members = _Members(found.groups, found.n_groups)
        self.members = _Members(found.components, found.n_components)
        self.never_below, self.never_above = found.never_below, found.never_above
        self.group_of = found.groups[self.members.firsts()]  # [components]
        self.parts = _Members(self.group_of, found.n_groups)  # components of each group
        # Components of a single item that only wins, or only loses.
        self.at_an_end = (self.members.sizes == 1) & (self.never_below ^ self.never_above)

    def groups(self) -> list[str]:
        """Which items were never compared with each other."""
        sizes = self.group_members.sizes
        if len(sizes) == 1:
            return []
        alone, several = np.flatnonzero(sizes == 1), np.flatnonzero(sizes > 1)
        if not len(several):
            items = self.group_members.firsts()
            return [f"No item was ever compared with another: {self._list(items)}."]
        facts = []
        if len(several) > 1:
            several = several[np.argsort(-sizes[several], kind="stable")]
            sets = [self._set(self.group_members[group]) for group in several[: self.limit]]
            facts.append(
                f"There are {len(several):,} groups of items that were never compared with each "
                f"other, directly or through others: {_joined(sets, len(several))}."
            )
        if len(alone):
            items = self.group_members.firsts()[alone]
            subject = "was" if len(alone) == 1 else "were"
            facts.append(f"{self._list(items)} {subject} never compared with another item.")
        return facts

    def extremes(self) -> list[str]:
        """Which single items only ever win or lose."""
        facts = []
        for chosen, here, there, would in (
            (self.never_below, "above", "below", "grow"),
            (self.never_above, "below", "above", "shrink"),
        ):
            items = self.members.firsts()[np.flatnonzero(chosen & self.at_an_end)]
            if len(items):
                stand, worth = ("stands", "worth") if len(items) == 1 else ("stand", "worths")
                facts.append(
                    f"{self._list(items)} {stand} {here} others and never {there} one: the "
                    f"likelihood has no maximum, the {worth} would {would} for ever."
                )
        return facts

    def sets(self) -> list[str]:
        """How the components stand that are more than one item at an end."""
        left = np.flatnonzero(~self.at_an_end)
        by_group = _Members(self.group_of[left], len(self.parts.sizes), left)
        torn = np.flatnonzero(by_group.sizes > 1)
        torn = torn[np.argsort(-self.group_members.sizes[torn], kind="stable")]
        facts = [self._order(group, by_group[group]) for group in torn[:ORDERS]]
        if len(torn) > len(facts):
            hidden = len(torn) - len(facts)
            facts.append(f"There are such sets in {hidden:,} more group{'s' * (hidden != 1)}.")
        elif not facts and len(self.parts.sizes) == 1 and by_group.sizes[0]:
            others = self.members[by_group[0][0]]
            facts.append(f"The others are connected with each other: {self._set(others)}.")
        return facts

    def _order(self, group: int, parts: IntArray) -> str:
        largest = np.argsort(-self.members.sizes[parts], kind="stable")[: self.limit]
        shown = parts[np.sort(largest)]
        sets = [self._set(self.members[part]) for part in shown]
        if self.parts.sizes[group] == 2 and len(sets) == 2:
            return f"{sets[0]} stand above {sets[1]} and never below one of them."
        order = ", ".join(sets)
        if len(shown) < len(parts):
            order = f"{order} (the largest of {len(parts):,})"
        return f"In this order of sets, no item ever stands above one of an earlier set: {order}."

    def _set(self, items: IntArray) -> str:
        if len(items) == 1:
            return self._name(items[0])
        return "{" + _joined(self._names(items), len(items)) + "}"

    def _list(self, items: IntArray) -> str:
        return _joined(self._names(items), len(items))

    def _names(self, items: IntArray) -> list[str]:
        return [self._name(item) for item in items[: self.limit]]

    def _name(self, item: Any) -> str:
        name = int(item) if self.names is None else self.names[item]
        text = " ".join(str(name).split()) or repr(name)  # a name may hold line breaks
        return text if len(text) <= NAME else text[: NAME - 3] + "..."


class _Members:
    """The elements of numbered sets, from the number of each element's set.

    The elements are 0, 1, ... unless given.
    """

    def __init__(self, numbers: IntArray, count: int, elements: IntArray | None = None) -> None:
        self._order = np.argsort(numbers, kind="stable")
        if elements is not None:
            self._order = elements[self._order]
        self.sizes = np.bincount(numbers, minlength=count)
        self._offsets = offsets(self.sizes)

    def __getitem__(self, number: int) -> IntArray:
        return self._order[self._offsets[number] : self._offsets[number + 1]]

    def firsts(self) -> IntArray:
        """[sets] the first element of each."""
        return self._order[self._offsets[:-1]]


def _joined(shown: list[str], count: int) -> str:
    text = ", ".join(shown)
    return text if len(shown) == count else f"{text} and {count - len(shown):,} more"


def _folded(text: str, indent: str) -> str:
    return fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
