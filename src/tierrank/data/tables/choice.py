"""Which column is the label, which the query, and which are features."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from tierrank.data.text import shown

Refuse = Callable[[str], ValueError]

_MOST_NAMES = 30
_ROW_NUMBERS = re.compile(r"\s*|__index_level_\d+__")  # pandas' names for its index


class Wanted(NamedTuple):
    """Columns by name, as the user gave them; no label for rows that are only to be scored."""

    label: str | None
    query: str
    features: Sequence[str] | None
    drop: Sequence[str]


class Choice(NamedTuple):
    """Columns by position, and the names of the features."""

    label: int | None
    query: int
    features: tuple[int, ...]
    names: tuple[str, ...]

    def role(self, position: int, names: Sequence[str]) -> str:
        """How an error calls a column."""
        what = "label" if position == self.label else "feature"
        return f"the {what} column {shown(names[position])}"


def choose(names: Sequence[str], wanted: Wanted, refuse: Refuse) -> Choice:
    """Find the wanted columns among those that there are; `refuse` makes the error."""
    for option, given in (("features", wanted.features), ("drop", wanted.drop)):
        if isinstance(given, str):
            raise ValueError(f"{option} is a list of column names, not one string: [{given!r}].")
    refuse_same_names(names, refuse)
    if wanted.label == wanted.query:
        raise refuse(f"label and query are both {shown(wanted.query)}: they are two columns.")
    place = {name: i for i, name in enumerate(names)}

    def find(name: str, option: str) -> int:
        if name not in place:
            raise refuse(absent(name, names, option))
        return place[name]

    label = None if wanted.label is None else find(wanted.label, "label")
    query = find(wanted.query, "query")
    own = {query} if label is None else {label, query}
    dropped = {find(name, "drop") for name in wanted.drop}
    if dropped & own:
        raise refuse("drop names the label or the query column: leave it out of drop.")
    if wanted.features is None:
        left_out = own | dropped
        features = [i for i in range(len(names)) if i not in left_out]
    else:
        features = [find(name, "features") for name in wanted.features]
        taken = own | dropped
        for i in features:
            if i in taken:
                raise refuse(
                    f"features names {shown(names[i])}, which is the label, the query, in drop or "
                    "named twice: leave it out."
                )
            taken.add(i)
    for i in features:
        if _ROW_NUMBERS.fullmatch(names[i]):
            raise refuse(
                f"column {i + 1}, called {names[i]!r}, has no name of its own, as when pandas "
                f"writes its row numbers: name it, or leave it out with drop=[{names[i]!r}]."
            )
    return Choice(label, query, tuple(features), tuple(names[i] for i in features))


def refuse_same_names(names: Sequence[str], refuse: Refuse) -> None:
    """Two columns of one name cannot be told apart."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise refuse(f"two columns are called {shown(name)}: rename one of them.")
        seen.add(name)


def absent(name: str, names: Sequence[str], option: str) -> str:
    """What to say about a column that is not there."""
    listed = ", ".join(shown(column) for column in names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        listed += f" and {len(names) - _MOST_NAMES} more"
    alike = [column for column in names if column.strip().lower() == name.strip().lower()]
    alike = alike or get_close_matches(name, names, n=1)
    hint = f"did you mean {shown(alike[0])}? " if alike else ""
    return f"there is no column {shown(name)} (for {option}): {hint}The columns are {listed}."
