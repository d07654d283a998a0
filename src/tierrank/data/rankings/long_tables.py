"""Rankings in long form: a row an item of a list, with its rank or score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray, ObjectArray
from tierrank.data.files import expands, shown
from tierrank.data.rankings.container import Entries, Rankings, refuse_nothing, taken
from tierrank.data.rankings.usual_names import complete
from tierrank.data.tables.columns import MISSING, BadColumn, exact_number, order_of
from tierrank.data.tables.opening import (
    Keys,
    Table,
    TableFormat,
    need_pyarrow,
    open_table,
    table_suffix,
)
from tierrank.data.tables.ranking_tables import is_utf8, write_arrow
from tierrank.errors import Argument, ArgumentError, Column
from tierrank.tiers.arrays import group_rows, preview
from tierrank.tiers.catalogue import Catalogue, catalogue_of, read_catalogue

Action = Literal["drop", "last"]
MissingRank = Literal["error", "drop", "last"] | Mapping[str, Action]
Twice = Literal["error", "best"]

# Not started, finished, qualified or prequalified, excluded and so on, as race results say it.
WORDS = ("DNF", "DNS", "DNQ", "DNPQ", "DNP", "DSQ", "DQ", "EX", "NC", "RET", "WD")

_BETWEEN_KEYS = " / "
_INT64 = range(-(2**63), 2**63)


@expands
def read_long_rankings(
    source: str | PathLike[str] | Any,
    *,
    list: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    items: Any = None,
    rest: Literal["absent", "last"] = "absent",
    missing_rank: MissingRank = "error",
    twice: Twice = "error",
    keep: Sequence[str] = (),
    keep_items: Sequence[str] = (),
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read rankings from a table with a row for every item of every list.

    Rows of a list need not be adjacent; lists come in order of first appearance and `keys` of the
    tiers has what they are called. Lists, and items too, are integers if all are whole numbers
    (in CSV: written as 7, not as 07 or 7.0), else strings.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    list : str or sequence of str, optional
        The column that says which list a row belongs to; or several, which do so together: then a
        list is called by all of them, such as "1950 / monaco".
    item : str, optional
        The column of item names.
    rank, score : str, optional
        The column that orders a list; one of the two. A lower rank is better, a higher score is
        better, equal ones tie, gaps do not matter. Integers and decimals of any length are
        compared exactly.
        What is not named is the column called list, item, rank or score; else the only one with
        a usual name for it, such as race, driver and position.
    weight : str, optional
        The column that says how often a list was given, the same in all rows of a list.
    items : sequence or int, optional
        The catalogue: a sequence of names, or N for the integers 0 .. N - 1. Without it, the
        names in order of first appearance, or in their own if they are the integers 0 .. N - 1.
    rest : {"absent", "last"}
        Where a list stands with the items it does not name: "absent" (nowhere), or "last" (they
        are tied behind those it names).
    missing_rank : {"error", "drop", "last"} or mapping
        What to do with a row that has no rank (or score): "error"; "drop" to leave it out; "last"
        to put it behind all others of its list, tied. Missing is an empty cell, NA and the like,
        and for the last two also a word for those who are not classified: DNF, DNS, DNQ, DNPQ,
        DNP, DSQ, DQ, EX, NC, RET, WD. Or a mapping from words to "drop" or "last", with "" for
        what is missing: ``{"DNF": "last", "DNS": "drop"}``. Any other word is an error.
    twice : {"error", "best"}
        What to do with an item that a list has twice: "error", or "best" to keep its best place.
    keep, keep_items : sequence of str
        Further columns that go along: as `beside` of the lists, the same in all rows of a list, or
        as `beside_items`, which may vary within it.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        The lists.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    read_rankings : Any table or file, and says what it took for what.
    read_wide_rankings : A row a ranking.
    write_long_rankings : Writes such a file.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import read_long_rankings
    >>> races = pl.DataFrame(
    ...     {
    ...         "race": ["rome", "rome", "oslo", "rome", "oslo"],
    ...         "runner": ["ann", "bob", "cy", "cy", "ann"],
    ...         "place": [1, 2, 1, 2, None],
    ...     }
    ... )
    >>> read_long_rankings(
    ...     races, list="race", item="runner", rank="place", missing_rank="last"
    ... ).tiers
    Tiers(2 lists, catalogue of 3 items, 2 tiers a list)
      'rome': ann > {bob, cy}
      'oslo': cy > ann
    """
    without_rank = _checked_option(missing_rank)
    if twice not in get_args(Twice):
        raise ArgumentError(Argument("twice"), f' is "error" or "best", not {twice!r}.')
    if rest not in ("absent", "last"):
        raise ArgumentError(Argument("rest"), f' is "absent" or "last", not {rest!r}.')
    stated = read_catalogue(items)
    named = {"list": list, "item": item, "rank": rank, "score": score}
    with open_table(source, format, separator) as table:
        columns = _find(table, complete(table, "items", named), weight)
        entries, rows, lists = _read_rows(table, columns, stated, without_rank, twice == "best")
        weights = _weights(table, columns.weight, lists)
        beside = {name: _of_lists(table, name, lists) for name in keep}
        beside_items = {name: table.cells(name, "keep_items") for name in keep_items}
    firsts = rows[Keys(entries.lists, entries.keys).first_rows()]
    return Rankings(
        entries.tiers(rest == "last"),
        weights[firsts],
        beside=taken(beside, firsts),
        beside_items=taken(beside_items, rows[entries.in_order()]),
    )


class _LongColumns(NamedTuple):
    """Positions of the columns; `lower` is whether a lower value is better, as for ranks."""

    lists: tuple[int, ...]
    item: int
    value: int
    lower: bool
    weight: int | None

    @property
    def what(self) -> str:
        """How an error calls the value."""
        return "rank" if self.lower else "score"

    def all(self) -> tuple[int, ...]:
        """Every column that is read."""
        weight = () if self.weight is None else (self.weight,)
        return (*self.lists, self.item, self.value, *weight)


def _find(table: Table, chosen: Mapping[str, Any], weight: str | None) -> _LongColumns:
    """Find the columns by name."""
    rank, score = chosen.get("rank"), chosen.get("score")
    if rank is not None and score is not None:
        table.refuse(
            f"rank {shown(rank)} and score {shown(score)} would both order the lists: pass one of ",
            Column("rank"),
            " and ",
            Column("score"),
            ".",
        )
    lists = chosen["list"]
    names = (lists,) if isinstance(lists, str) else tuple(lists)
    if not names:
        table.refuse("list names no column: give one, or several.")
    value = score if rank is None else rank
    columns = _LongColumns(
        tuple(table.find(name, "list") for name in names),
        table.find(chosen["item"], "item"),
        table.find(str(value), "score" if rank is None else "rank"),
        rank is not None,
        None if weight is None else table.find(weight, "weight"),
    )
    table.refuse_twice(columns.all())
    return columns


def _read_rows(
    table: Table,
    columns: _LongColumns,
    stated: Catalogue | None,
    without_rank: Mapping[str, str],
    keep_best: bool,
) -> tuple[Entries, IntArray, Keys]:
    """Give the entries, their rows, and the list of every row; faults are said with the line."""
    table.load(*columns.all())
    values, dropped = _ranks_and_dropped(table, columns.value, columns.what, without_rank)
    if not columns.lower:
        np.negative(values, out=values, where=np.isfinite(values))  # who is last stays at infinity
    every_list = _lists(table, columns.lists)
    names = table.keys(columns.item, "item")
    rows = np.flatnonzero(~dropped)
    if not len(rows):
        refuse_nothing(table, f"no row has a {columns.what}: nothing is left.")

    def refuse(entry: int, *what: object) -> NoReturn:
        table.refuse(*what, row=int(rows[entry]), at=columns.item)

    lists = every_list.of(rows)
    items, catalogue = _items(names.of(rows), stated, refuse)
    entries = Entries(lists.codes, items, values[rows], lists.keys, catalogue)
    kept = entries.kept(keep_best, refuse)
    return entries.of(kept), rows[kept], every_list


def _lists(table: Table, positions: Sequence[int]) -> Keys:
    """Number the lists in order of first appearance, and give what they are called."""
    columns = [table.keys(at, "list") for at in positions]
    if len(columns) == 1:
        return columns[0]
    together = columns[0].codes
    for column in columns[1:]:
        together = together * len(column.keys) + column.codes
        together = group_rows(together, table.rows)[0]  # small again, so that none overflows
    lists = Keys(together, np.empty(int(together.max()) + 1, dtype=object))
    first = lists.first_rows()
    words = [column.keys[column.codes[first]].tolist() for column in columns]
    lists.keys[:] = [_BETWEEN_KEYS.join(map(str, parts)) for parts in zip(*words, strict=True)]
    same, often = Counter(lists.keys.tolist()).most_common(1)[0]
    if often > 1:
        table.refuse(
            f"two lists would be called {shown(same)}: rename one, without {_BETWEEN_KEYS!r}."
        )
    return lists


def _weights(table: Table, position: int | None, lists: Keys) -> FloatArray:
    """[rows] the weight of the row's list, which all its rows agree on."""
    if position is None:
        return np.ones(table.rows)
    values = table.weights(position)
    table.check(
        values != values[lists.first_rows()][lists.codes],
        position,
        "the weight differs from that of an earlier row of the same list: it is the list's, so "
        "give all its rows the same.",
    )
    return values


def _of_lists(table: Table, name: str, lists: Keys) -> AnyArray:
    """[rows] what a column says of the row's list, which all its rows agree on."""
    found = table.cells(name, "keep")
    first = found[lists.first_rows()][lists.codes]
    table.check(
        (found != first) & ((found == found) | (first == first)),  # NaN agrees with NaN
        table.find(name, "keep"),
        f"{shown(name)} differs from an earlier row of the same list: ", Argument("keep"),
        " is for what all rows of a list agree on, ", Argument("keep_items"), " for the others.",
    )  # fmt: skip
    return found


def _items(
    names: Keys, stated: Catalogue | None, refuse: Callable[..., NoReturn]
) -> tuple[IntArray, Catalogue]:
    """Number the items: as the catalogue says, or as `catalogue_of` does."""
    found = tuple(names.keys.tolist())
    stated = catalogue_of(found) if stated is None else stated
    if any(isinstance(name, str) for name in stated.names or ()):
        found = tuple(map(str, found))  # words that all happen to be numbers
    number = {name: i for i, name in enumerate(stated.items)}
    numbers = np.fromiter((number.get(name, -1) for name in found), np.int64, len(found))
    if numbers.min() < 0:
        unknown = int(numbers.argmin())
        at = int((names.codes == unknown).argmax())
        refuse(at, f"the item {shown(found[unknown])} is not in the catalogue that items= gives.")
    return numbers[names.codes], stated


# Rows without a rank: cells that are empty, and words such as DNF ---------------------------------


def _checked_option(missing_rank: MissingRank) -> Mapping[str, str]:
    """Give the option as a mapping from words in capitals, "" for what is missing."""
    if isinstance(missing_rank, Mapping):
        for word, action in missing_rank.items():
            if not isinstance(word, str) or action not in ("drop", "last"):
                raise ArgumentError(
                    Argument("missing_rank"),
                    f' maps words to "drop" or "last", not {word!r} to {action!r}.',
                )
        return {word.strip().upper(): action for word, action in missing_rank.items()}
    if missing_rank == "error":
        return {}
    if missing_rank not in ("drop", "last"):
        raise ArgumentError(
            Argument("missing_rank"),
            ' is "error", "drop" or "last", or maps words to "drop" or "last", not '
            f"{missing_rank!r}.",
        )
    return dict.fromkeys(("", *WORDS), missing_rank)


def _ranks_and_dropped(
    table: Table, position: int, what: str, actions: Mapping[str, str]
) -> tuple[FloatArray, BoolArray]:
    """Read ranks, or scores.

    Returns
    -------
    values
        [rows] finite, or infinity for a row that goes behind all others
    dropped
        [rows] whether to leave the row out
    """
    found = table.floats_or_fault(position)
    if not isinstance(found, BadColumn) and not table.rounds(position):
        words, codes = np.array([""], dtype=object), np.where(np.isnan(found), 0, -1)
        values = found.copy()
    else:
        values, codes, words = _values_and_words(table, position, what)
    table.check(
        np.isinf(values), position, f"the {what} is infinite: give a number, or leave the row out."
    )
    action = np.array([actions.get(word, "") for word in words] + ["number"], dtype=object)[codes]
    unknown = action == ""
    if unknown.any():
        row = int(unknown.argmax())
        table.refuse(*_unknown(words[codes[row]], what, actions), row=row, at=position)
    values[action == "last"] = math.inf
    return values, action == "drop"


def _values_and_words(
    table: Table, position: int, what: str
) -> tuple[FloatArray, IntArray, ObjectArray]:
    """Values, NaN for what is a word; and which of the words, -1 for what is a number."""
    codes, cells = table.distinct(position, what)
    exact = [exact_number(cell) for cell in cells]
    if None in exact and not any(isinstance(cell, str) for cell in cells):
        table.floats(position, what)  # which says what is wrong
    values = order_of([math.nan if number is None else number for number in exact])
    words: dict[str, int] = {}
    word_of = np.full(len(cells), -1)
    for code in np.flatnonzero(np.isnan(values)).tolist():
        text = "" if cells[code] is None else str(cells[code]).strip()
        word = "" if text in MISSING else text.upper()
        word_of[code] = words.setdefault(word, len(words))
    known = np.array([*words, None], dtype=object)[:-1]
    return values[codes], word_of[codes], known


def _unknown(word: str, what: str, actions: Mapping[str, str]) -> tuple[object, ...]:
    if word:
        known = ", ".join(w for w in actions if w)
        nor = f" and not among the words for none ({known})" if known else ""
        return (
            f"the {what} is {shown(word)}, which is not a number{nor}: mend it, or say what to do "
            "with such rows, as in ",
            Argument("missing_rank", {word: "last"}),
            " or ",
            Argument("missing_rank", {word: "drop"}),
            ".",
        )
    return (
        f"the {what} is missing: give one, or pass ",
        Argument("missing_rank", "drop"),
        " to leave such rows out, or ",
        Argument("missing_rank", "last"),
        " to put them behind the others.",
    )


# Writing ------------------------------------------------------------------------------------------


def write_long_rankings(rankings: Rankings, path: str | PathLike[str]) -> None:
    """Write a CSV or Parquet file with the columns list, item, rank and weight.

    `read_long_rankings` with ``weight="weight"`` gives back the same lists. A rank is 1 more than
    the number of items above. Lists are called by their key, or else 1, 2, …; items by their
    name. What is not written: the rest (read it with ``rest="last"``), and items that no list
    names (pass ``items=``). In CSV, names that are strings of digits come back as integers if all
    of them are. The file is written beside and renamed.

    Parameters
    ----------
    rankings : Rankings
        Lists with names and keys that are integers or strings, and no list without items.
    path : path-like
        A name that ends in .csv or .tsv (also .gz, .xz or .bz2 after it), or in .parquet.

    Raises
    ------
    ValueError
        A name or a key is neither an integer nor a string, or a list is empty.

    See Also
    --------
    read_long_rankings : Reads it again.
    write_rankings : Of any format, by its name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tierrank.data import Rankings, write_long_rankings
    >>> rankings = Rankings.from_rankings([["ann", ("bob", "cy"), "dee"]], weights=[3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.csv")
    ...     write_long_rankings(rankings, file)
    ...     print(file.read_text())
    list,item,rank,weight
    1,ann,1,3
    1,bob,2,3
    1,cy,2,3
    1,dee,4,3
    """
    path = Path(path)
    table_suffix(path)
    need_pyarrow(path)
    table = _arrow_table(rankings)
    words = {what: table.column(what).unique().to_pylist() for what in ("list", "item")}
    write_arrow(path, iter([table]), table.column_names, words)


def _arrow_table(rankings: Rankings) -> Any:
    """The rows, by list and then best first, as a `pyarrow.Table`."""
    import pyarrow as pa

    tiers = rankings.tiers
    sizes = tiers.lengths.cpu().numpy()
    if not len(sizes):
        raise ValueError("there are no lists: a file needs at least one.")
    if not sizes.all():
        raise ValueError(
            f"list {int(sizes.argmin())} names no item, which a table in long form cannot say: "
            "leave it out."
        )
    tier_sizes = tiers.tier_sizes.cpu().numpy()
    starts = tiers.tier_offsets.cpu().numpy()[:-1]
    list_starts = np.repeat(np.cumsum(sizes) - sizes, tiers.list_offsets.diff().cpu().numpy())
    lists = np.arange(1, len(sizes) + 1).tolist() if tiers.keys is None else tiers.keys.tolist()
    if len(set(map(str, lists))) < len(lists):
        raise ValueError("two lists have the same key: give each its own.")
    return pa.table(
        {
            "list": _repeated(lists, np.repeat(np.arange(len(sizes)), sizes), "key of list"),
            "item": _repeated(list(rankings.items), tiers.items.cpu().numpy(), "name of item"),
            "rank": np.repeat(starts - list_starts + 1, tier_sizes),
            "weight": np.repeat(rankings.weights, sizes),
        }
    )


def _repeated(names: list[Any], codes: Any, what: str) -> Any:
    """A column of names: integers if all are, else strings."""
    import pyarrow as pa

    for number, name in enumerate(names):
        whole = isinstance(name, int) and not isinstance(name, bool) and name in _INT64
        text = isinstance(name, str) and name.strip() and "\0" not in name and is_utf8(name)
        if not whole and not text:
            raise ValueError(
                f"the {what} {number} is {preview(name)}: write integers of 64 bits, or strings "
                "that are not empty and hold nothing that UTF-8 cannot write, nor NUL."
            )
    if all(isinstance(name, int) for name in names):
        return pa.array(names, pa.int64()).take(pa.array(codes))
    words = list(map(str, names))
    same, often = Counter(words).most_common(1)[0]
    if often > 1:
        raise ValueError(f"an integer and a string are both {same!r}: rename one of them.")
    return pa.array(words, pa.large_string()).take(pa.array(codes))
