"""What the columns of tables of rankings are usually called, and so what a table may hold.

Here alone the usual names of columns are known. Columns that have the names of the documentation
are taken by these. Of any other, a name only proposes what it may be: `reading` looks whether the
values bear it out, and where several proposals stand, all are shown and none is taken.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierrank.data.files import shown
from tierrank.data.tables.opening import Table
from tierrank.errors import ArgumentError, Column, InPython
from tierrank.names import TableKind as Kind

KINDS: dict[Kind, str] = {
    "items": "a row is an item of a list",
    "games": "a row is a game of two sides",
    "preferences": "a row is a preference of one item over another",
    "paired-ranks": "a row is two items of a list, each with its rank",
    "wide": "a row is a ranking, a column an item, a cell its rank",
    "orders": "a row is a ranking, best first, a cell an item",
    "pass-fail": "a row is an item or a task, a cell whether it was passed",
}

# Names that the documentation promises.
SIDES = (
    ("first", "second"), ("a", "b"), ("left", "right"), ("model_a", "model_b"),
    ("home_team", "away_team"), ("home", "away"),
)  # fmt: skip
SCORES = (("home_score", "away_score"), ("first_score", "second_score"))
WINS, TIES = ("wins_first", "wins_second"), "ties"

# Names that people also give, in words: driverId is driver, positionOrder is position order.
_WORDS = {
    "list": "list query qid race event contest heat ballot voter vote user session judge juror "
    "ranking election respondent participant annotator rater",
    "item": "item driver player athlete runner rider swimmer skater horse competitor contestant "
    "candidate alternative option team club constructor product document doc docid model system "
    "variety",
    "rank": "rank place position pos placing placement standing order finish",
    "score": "score points rating grade stars",
    "winner": "winner won result outcome preferred preference choice better",
}  # fmt: skip
_LISTS, _ITEMS, _RANKS, _SCORES, _WINNERS = (set(words.split()) for words in _WORDS.values())
_RANKS |= {"position order", "finish position", "finishing position", "finish order"}
_SIDES = _ITEMS | {"", "side", "response", "answer", "fighter", "opponent"}
_TASKS = _LISTS | {"task", "problem", "question", "prompt", "test", "case", "instance"}
_WHEN = {"season", "year", "edition", "date"}  # with which the name of a race is one list's
_GOALS = {"score", "goals", "points", "runs"}
_WON, _TIED = {"wins", "win", "won", "w"}, {"ties", "tie", "tied", "draws", "draw", "t"}
_PREFERRED = (("winner", "loser"), ("better", "worse"), ("chosen", "rejected"))

# Two columns that differ in these only are one of each side; with the third there are three.
_MARKS = {
    ("first", "second"): "third", ("a", "b"): "c", ("left", "right"): "", ("home", "away"): "",
    ("1", "2"): "3", ("x", "y"): "z", ("i", "j"): "k", ("one", "two"): "three",
    ("white", "black"): "", ("ij", "ji"): "",
}  # fmt: skip
_BARE = {"first", "a", "left", "home", "i", "white"}  # that may be a side's name by themselves
_TOKEN = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_ENDINGS = {"id", "name", "code", "key", "no", "nr", "number"}
_ROW_NUMBERS = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__|rownames")
_PLACES = re.compile(
    r"\d+|\d+(st|nd|rd|th)|(rank|place|pos|position|choice|v|x)[ _.]?\d+"
    r"|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth",
    re.I,
)

_SAID = (
    "list", "item", "rank", "score", "first", "second", "first_rank", "second_rank", "winner",
    "loser", "first_score", "second_score", "wins", "ties", "weight", "neutral",
)  # fmt: skip

Columns = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """One way to read a table.

    Attributes
    ----------
    kind
        what a row is
    columns
        options of the reader: columns by the part they play, and what else it needs
    certain
        whether every column was named by the user, or is called as the documentation says
    guessed
        whether there is something to tell the user, who did not name all of it
    """

    kind: Kind
    columns: Mapping[str, Any]
    certain: bool = False
    guessed: bool = False

    @property
    def needs_kind(self) -> bool:
        """Whether the columns alone do not say what kind it is."""
        return self.kind not in PARTS or "loser" in self.columns

    def __str__(self) -> str:
        given = {part: self.columns[part] for part in _SAID if self.columns.get(part)}
        parts = [f"{part.replace('_', ' ')} {_listed(value)}" for part, value in given.items()]
        if self.kind == "preferences" and "list" not in given:
            parts.append("all rows of one list")
        return f"{KINDS[self.kind]}: {', '.join(parts)}"


class UnclearTable(ArgumentError):
    """A table of which it is not clear what it holds.

    Parameters
    ----------
    place : ArgumentError
        The table, and what is unclear.
    readings : sequence of Reading
        What it may be, the likeliest first; none if nothing seems likely.

    See Also
    --------
    read_rankings : Raises it.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import UnclearTable, read_rankings
    >>> try:
    ...     read_rankings(pl.DataFrame({"x": ["a", "b"], "y": ["b", "c"]}))
    ... except UnclearTable as error:
    ...     print(str(error).splitlines()[0])
    no usual columns say what a row is: the columns are 'x', 'y'. Say which it is, as in:
    """

    def __init__(self, place: ArgumentError, readings: Sequence[Reading]) -> None:
        calls = "".join(f"\n  {_call(each)}   # {KINDS[each.kind]}" for each in readings)
        super().__init__(*place.args, InPython(f" Say which it is, as in:{calls}"))
        self.place = str(place)
        self.readings = tuple(readings)

    def __reduce__(self) -> tuple[Any, ...]:  # another process may have raised it
        return type(self), (ArgumentError(*self.args[:-1]), self.readings)


# What to show where nothing is likely: how each kind is asked for.
TEMPLATES = (
    Reading("items", {"list": "COLUMN", "item": "COLUMN", "rank": "COLUMN"}),
    Reading("games", {"first": "COLUMN", "second": "COLUMN", "winner": "COLUMN"}),
    Reading("wide", {}),
)


def readings(table: Table, kind: Kind, named: Mapping[str, Any]) -> list[Reading]:
    """All ways to read a table of this kind, by the names of its columns."""
    if kind == "pass-fail":
        return [Reading(kind, {**named, **pass_fail(table.names, named)[0]})]
    if kind not in PARTS:
        return [Reading(kind, {**named, **_wide(table.names, named)})]
    found = [part(table.names, named) for part in PARTS[kind]]
    if kind == "games" and not found[0]:  # no sides, but perhaps who won and who lost
        found = [_preferred(table.names, named)]
    ways = []
    for way in itertools.product(*found):
        columns: Columns = {}
        for each, _ in way:
            columns |= each
        taken = [name for value in columns.values() if value for name in _names(value)]
        certain = len(found) == len(PARTS[kind]) and all(exact for _, exact in way)
        certain &= kind != "games" or not named.get("loser")  # they may be one list's as well
        if certain or len(set(taken)) == len(taken):
            ways.append(Reading(kind, {**named, **columns}, certain))
    return ways


def missing_parts(table: Table, kind: Kind, named: Mapping[str, Any]) -> int:
    """How many parts of a kind no column can play."""
    return sum(not part(table.names, named) for part in PARTS[kind])


def complete(table: Table, kind: Kind, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of a table of a known kind: those that were named, and the one way to go on."""
    found = readings(table, kind, named)
    if len(found) == 1:
        return found[0].columns
    if found:
        raise unclear(table, found)
    for part in PARTS[kind]:
        if not part(table.names, named):
            listed = _listed(map(shown, table.names))
            table.refuse(*_MISSING[part], f" The columns are {listed}.")
    table.refuse("a column would be taken for two things: name each of them.")


def unclear(
    table: Table, likely: Sequence[Reading], what: str = "it is not clear what a row is"
) -> UnclearTable:
    """The error that shows what a table may be, or else how each kind is asked for."""
    what = what if likely else "no usual columns say what a row is"
    columns = _listed(map(shown, table.names), 30)
    shortest = [_without_all_items(table, each) for each in likely[:3]]
    return UnclearTable(table.error(f"{what}: the columns are {columns}."), shortest or TEMPLATES)


def _without_all_items(table: Table, reading: Reading) -> Reading:
    """The same without the columns of items, where they are all that there are."""
    others = {part: value for part, value in reading.columns.items() if part != "item"}
    if reading.kind in PARTS or _wide(table.names, others)["item"] != reading.columns["item"]:
        return reading
    return replace(reading, columns=others)


def with_season(table: Table, reading: Reading) -> Reading | None:
    """The same with a list a season and race, where races have the same names every year."""
    lists = reading.columns.get("list")
    when = [name for name in table.names if plain(name) in _WHEN]
    if reading.kind != "items" or not isinstance(lists, str) or len(when) != 1:
        return None
    return Reading(reading.kind, {**reading.columns, "list": (when[0], lists)})


def wide_or_orders(table: Table, named: Mapping[str, Any]) -> list[Reading]:
    """Both readings of a table whose rows are rankings, which one column may name."""
    names = [name for name in table.names if plain(name) in _LISTS | _ENDINGS]
    if not named.get("list") and not named.get("item") and len(names) == 1:
        named = {**named, "list": names[0]}
    return [readings(table, kind, named)[0] for kind in ("wide", "orders")]


def has_three_sides(table: Table) -> bool:
    """Whether columns are called as sides are, but there are three: first, second, third."""
    return any({*sides, third} <= {*table.names} for sides, third in _MARKS.items() if third)


def is_part(name: str) -> bool:
    """Whether a column is called like a part of some kind of table."""
    return plain(name) in _LISTS | _ITEMS | _RANKS | _SCORES | _WINNERS | _WHEN


def is_place(name: str) -> bool:
    """Whether a column is called like a place in a ranking: 1st, rank 2, third."""
    return _PLACES.fullmatch(name.strip()) is not None


def plain(name: str) -> str:
    """A name in words, without what only says that it is one: driverId is driver."""
    tokens = _tokens(name)
    while len(tokens) > 1 and tokens[-1] in _ENDINGS:
        tokens = tokens[:-1]
    return " ".join(tokens)


# The parts of each kind: what may play it, and whether it is called as the documentation says. ----

Ways = list[tuple[Columns, bool]]
Part = Callable[[Sequence[str], Mapping[str, Any]], Ways]


def _column(part: str, words: set[str]) -> Part:
    def find(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
        if named.get(part) is not None:
            return [({part: named[part]}, True)]
        if part in names:
            return [({part: part}, True)]
        return [({part: name}, False) for name in names if plain(name) in words]

    return find


_list, _item = _column("list", _LISTS), _column("item", _ITEMS)


def _value(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    given = {part: named[part] for part in ("rank", "score") if named.get(part) is not None}
    if given:
        return [(given, True)]
    exact: Ways = [({part: part}, True) for part in ("rank", "score") if part in names]
    ranks: Ways = [({"rank": name}, False) for name in names if plain(name) in _RANKS]
    scores: Ways = [({"score": name}, False) for name in names if plain(name) in _SCORES]
    return exact or ranks or scores


def _sides(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    if named.get("first") is not None or named.get("second") is not None:
        return [({part: named.get(part) for part in ("first", "second")}, True)]
    if named.get("loser") is not None:
        return [({}, True)]
    exact = [pair for pair in SIDES if set(pair) <= set(names)]
    alike = ((pair, stem) for pair, stem in _pairs(names) if _without_ending(stem) in _SIDES)
    found = exact or [pair for pair, stem in alike if stem or pair[0].lower() in _BARE]
    return [({"first": one, "second": two}, bool(exact)) for one, two in found]


def _end(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    given = ("winner", "first_score", "second_score", "wins", "ties", "loser")
    if any(named.get(part) is not None for part in given):
        return [({}, True)]
    if "winner" in names:
        return [({"winner": "winner"}, True)]
    for one, two in SCORES:
        if {one, two} <= set(names):
            return [({"first_score": one, "second_score": two}, True)]
    if set(WINS) <= set(names):
        return [({"wins": WINS, "ties": TIES if TIES in names else None}, True)]
    pairs = list(_pairs(names))
    tied = [name for name in names if set(_tokens(name)[:1]) & _TIED]
    ties = tied[0] if len(tied) == 1 else None
    return (
        [({"winner": name}, False) for name in names if plain(name) in _WINNERS]
        or [({"first_score": one, "second_score": two}, False)
            for (one, two), stem in pairs if stem and stem[-1] in _GOALS]
        or [({"wins": pair, "ties": ties}, False) for pair, stem in pairs if set(stem) & _WON]
    )  # fmt: skip


def _preferred(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    """Two columns of one kind: winner_id goes with loser_id, not with loser_name beside it."""
    won, lost = named.get("winner"), named.get("loser")
    if won is not None and lost is not None:
        return [({}, True)]
    exact = (won or "winner", lost or "loser")
    if set(exact) <= set(names):
        return [({"winner": exact[0], "loser": exact[1]}, True)]
    found = [
        (one, two)
        for words in _PREFERRED
        for one in ([won] if won else names)
        for two in ([lost] if lost else names)
        if one == won or plain(one) == words[0]
        if two == lost or plain(two) == words[1]
    ]
    alike = [(one, two) for one, two in found if _tokens(one)[1:] == _tokens(two)[1:]]
    return [({"winner": one, "loser": two}, False) for one, two in alike or found]


def _list_if_there(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    return _list(names, named) or [({"list": None}, True)]


def _ranks(names: Sequence[str], named: Mapping[str, Any]) -> Ways:
    if named.get("first_rank") is not None or named.get("second_rank") is not None:
        return [({part: named.get(part) for part in ("first_rank", "second_rank")}, True)]
    pairs = [pair for pair, stem in _pairs(names) if stem and stem[-1] in _RANKS]
    return [({"first_rank": one, "second_rank": two}, False) for one, two in pairs]


PARTS: dict[Kind, tuple[Part, ...]] = {
    "items": (_list, _item, _value),
    "games": (_sides, _end),
    "preferences": (_list_if_there, _preferred),
    "paired-ranks": (_list, _sides, _ranks),
}
_MISSING: dict[Part, tuple[object, ...]] = {
    _list: (
        "there is no column called list: pass ", Column("list"),
        " with the one that says which list a row belongs to.",
    ),
    _item: (
        "there is no column called item: pass ", Column("item"),
        " with the one that names the item.",
    ),
    _value: (
        "there is no column called rank or score: pass ", Column("rank"), " or ", Column("score"),
        " with the name of the one that orders a list.",
    ),
    _sides: (
        "there are no two columns for the sides ("
        + "; ".join(f"{one} and {two}" for one, two in SIDES)
        + "): pass ", Column("first"), " and ", Column("second"), ".",
    ),
    _end: (
        "no column says how a game ended: pass ", Column("winner"), ", or ", Column("first_score"),
        " and ", Column("second_score"), ", or ", Column("wins"), " and ", Column("ties"),
        ".",
    ),
    _preferred: (
        "there are no columns called winner and loser: pass ", Column("winner"), " and ",
        Column("loser"), ".",
    ),
    _ranks: (
        "there are no two columns of ranks: pass ", Column("first_rank"), " and ",
        Column("second_rank"), ".",
    ),
}  # fmt: skip


def _wide(names: Sequence[str], named: Mapping[str, Any]) -> Columns:
    """All columns are items (or places), but for those that play another part."""
    lists = named.get("list") or ("list" if "list" in names else None)
    taken = {lists, named.get("weight") or "weight", *_names(named.get("keep") or ())}
    others = [name for name in names if name not in taken and not _ROW_NUMBERS.fullmatch(name)]
    return {"list": lists, "item": _names(named.get("item") or others)}


def pass_fail(names: Sequence[str], named: Mapping[str, Any]) -> tuple[Columns, list[str]]:
    """The column that names the rows, items or tasks; and all others, which are the other kind."""
    item, task = named.get("item"), named.get("list")
    if item is None and task is None:
        item = next((name for name in names if plain(name) in _ITEMS), None)
        task = next((name for name in names if plain(name) in _TASKS), None)
    taken = {item, task, named.get("weight"), *_names(named.get("keep") or ())}
    cells = [name for name in names if name not in taken and not _ROW_NUMBERS.fullmatch(name)]
    return {"item": item, "list": task}, cells


def _pairs(names: Sequence[str]) -> list[tuple[tuple[str, str], tuple[str, ...]]]:
    """Columns that are one of each side, and the words that both names have."""
    by_tokens = {tuple(_tokens(name)): name for name in names}
    found = []
    for tokens, name in by_tokens.items():
        for (one, two), three in _MARKS.items():
            for at in (i for i, token in enumerate(tokens) if token == one):
                before, after = tokens[:at], tokens[at + 1 :]
                other = by_tokens.get((*before, two, *after))
                if other is not None and (*before, three, *after) not in by_tokens:
                    found.append(((name, other), (*before, *after)))
    return found


def _tokens(name: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(name)]


def _without_ending(stem: tuple[str, ...]) -> str:
    return " ".join(token for token in stem if token not in _ENDINGS)


def _names(columns: Any) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _listed(names: Any, most: int = 12) -> str:
    every = _names(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _call(reading: Reading) -> str:
    """The options of a reading as Python writes them."""
    given = {"kind": reading.kind} if reading.needs_kind else {}
    columns = {part: value for part, value in reading.columns.items() if value}
    return ", ".join(f"{part}={value!r}" for part, value in (given | columns).items())
