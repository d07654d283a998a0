"""Matrices: a row a ranking and a column an item or a place; or models and tasks, and who passed.

Every task is a list in two tiers, passed over failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import expands, shown
from tierrank.data.rankings.container import Entries, Rankings, refuse_nothing
from tierrank.data.rankings.usual_names import pass_fail, readings
from tierrank.data.tables.columns import MISSING, BadKey, keys_of_words
from tierrank.data.tables.opening import Keys, Table, TableFormat, open_table
from tierrank.errors import Column
from tierrank.tiers.arrays import is_missing
from tierrank.tiers.catalogue import Catalogue, catalogue_of

Cells = Literal["ranks", "items"]


@expands
def read_wide_rankings(
    source: str | PathLike[str] | Any,
    *,
    cells: Cells = "ranks",
    list: str | None = None,
    item: str | Sequence[str] | None = None,
    weight: str | None = None,
    keep: Sequence[str] = (),
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read rankings from a table with a row for every ranking, as R's PlackettLuce has them.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    cells : {"ranks", "items"}
        What a cell is: "ranks", the rank of the item that its column is called by, lower is
        better, equal ones tie, 0 or nothing if it is not ranked; or "items", the item in that
        place, best first, nothing where the ranking ends.
    list : str, optional
        The column that names the rankings; the one called list, if there is one.
    item : str or sequence of str, optional
        The columns of the items, or of the places; without it all others, but for row numbers
        that have no name.
    weight : str, optional
        The column that says how often a ranking was given.
    keep : sequence of str
        Further columns that go along as `beside` of the lists.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        A list a row.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    read_rankings : Any table or file, and says what it took for what.
    read_long_rankings : A row an item.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import read_wide_rankings
    >>> salads = pl.DataFrame({"oil": [1, 2], "herbs": [2, 1], "salt": [2, 0]})
    >>> read_wide_rankings(salads)
    Rankings(2 lists of weight 2, 3 items)
      1 × oil > {herbs, salt}
      1 × herbs > oil
    >>> finished = pl.DataFrame({"1st": ["ann", "cy"], "2nd": ["cy", "bob"], "3rd": ["bob", None]})
    >>> read_wide_rankings(finished, cells="items")
    Rankings(2 lists of weight 2, 3 items)
      1 × ann > cy > bob
      1 × cy > bob
    """
    if cells not in get_args(Cells):
        raise ValueError(f'cells is "ranks" or "items", not {cells!r}.')
    with open_table(source, format, separator) as table:
        kind: Any = "wide" if cells == "ranks" else "orders"
        chosen = readings(table, kind, {"list": list, "item": item, "weight": weight})[0].columns
        names, lists = chosen["item"], chosen["list"]
        columns = [table.find(name, "item") for name in names]
        if len(set(columns)) < 2:
            table.refuse("a ranking takes two columns at least, each named once.")
        at_list = None if lists is None else table.find(lists, "list")
        at_weight = None if weight is None else table.find(weight, "weight")
        others = [at for at in (at_list, at_weight) if at is not None]
        table.refuse_twice([*columns, *others])
        table.load(*columns, *others)
        weights = np.ones(table.rows) if at_weight is None else table.weights(at_weight)
        read = _by_rank if cells == "ranks" else _by_place
        rows, items, values, catalogue = read(table, columns, names)
        said = np.bincount(rows, minlength=table.rows)
        table.check(said == 0, columns[0], "the row ranks nothing: leave it out.")
        keys = np.arange(table.rows)
        if at_list is not None:
            called = table.keys(at_list, "list")
            keys = called.keys[called.codes]
        entries = Entries(rows, items, values, keys, catalogue)
        entries.kept(
            False, lambda entry, *what: table.refuse(*what, row=int(rows[entry]), at=columns[0])
        )
        beside = {name: table.cells(name, "keep") for name in keep}
    return Rankings(entries.tiers(False), weights, beside=beside)


def _by_rank(
    table: Table, columns: Sequence[int], names: Sequence[str]
) -> tuple[IntArray, IntArray, FloatArray, Catalogue]:
    """Row, item and rank of every cell that has one, and the items: all columns."""
    ranks = np.stack(table.in_order(columns, "rank"), axis=1)
    written = np.stack([table.floats(column, "rank") for column in columns], axis=1)
    for at, column in enumerate(columns):
        table.check(
            (written[:, at] < 0) | np.isinf(written[:, at]),
            column,
            "the rank is negative or infinite: ranks are 1, 2, …, and 0 or nothing for an item "
            "that is not ranked.",
        )
    rows, places = np.nonzero((written > 0) & ~np.isnan(written))
    codes, catalogue = catalogued(numbers_or_words(names).tolist())
    return rows, codes[places], ranks[rows, places], catalogue


def _by_place(
    table: Table, columns: Sequence[int], names: Sequence[str]
) -> tuple[IntArray, IntArray, FloatArray, Catalogue]:
    """Row, item and place of every cell that names an item, and all items that are named."""
    found = [table.distinct(column, "item") for column in columns]
    cells = dict.fromkeys(cell for _, values in found for cell in values if _named(cell))
    if not cells:
        refuse_nothing(table, "no cell names an item: nothing is ranked.")
    keys = table.keys_of(list(cells), columns[0], "item")
    if isinstance(keys, BadKey):
        table.refuse(keys.why)
    number = {cell: code for code, cell in enumerate(cells)}
    by_column = [
        np.array([number.get(cell, -1) for cell in values], dtype=np.int64)[codes]
        for codes, values in found
    ]
    numbers = np.stack(by_column, axis=1)
    rows, places = np.nonzero(numbers >= 0)
    items = Keys(numbers[rows, places], keys).renumbered()
    codes, catalogue = catalogued(items.keys.tolist())
    return rows, codes[items.codes], places.astype(np.float64), catalogue


def numbers_or_words(names: Sequence[str]) -> AnyArray:
    """What columns are called, as if the names stood in cells: integers if all are."""
    keys = keys_of_words(names, "item", missing=())
    return np.array(names, dtype=object) if isinstance(keys, BadKey) else keys


def catalogued(names: Sequence[Any]) -> tuple[IntArray, Catalogue]:
    """The number of each name, none twice, and the catalogue."""
    catalogue = catalogue_of(names)
    numbers = {name: code for code, name in enumerate(catalogue.items)}
    return np.array([numbers[name] for name in names], dtype=np.int64), catalogue


def _named(cell: Any) -> bool:
    return not is_missing(cell) and not (isinstance(cell, str) and cell.strip() in MISSING)


# -- who passed what ------------------------------------------------------------------------------

PASSED = ("1", "true", "yes", "pass", "passed", "correct", "solved", "resolved")
FAILED = (
    "0", "false", "no", "fail", "failed", "incorrect", "wrong", "unsolved", "unresolved"
)  # fmt: skip
_PLACE = dict.fromkeys(PASSED, 0.0) | dict.fromkeys(FAILED, 1.0)  # lower is better


@expands
def read_pass_fail(
    source: str | PathLike[str] | Any,
    *,
    item: str | None = None,
    list: str | None = None,
    weight: str | None = None,
    keep: Sequence[str] = (),
    format: TableFormat | None = None,
    separator: str | None = None,
    max_expansion: float | None = None,
) -> Rankings:
    """Read who passed what from a matrix of models and tasks, each task a list in two tiers.

    Whoever passed a task is above whoever failed it; a cell with nothing in it was not tried, and
    is not in the list. A task that all passed, or none, is a list of one tier, which says nothing.

    Parameters
    ----------
    source : path-like or DataFrame
        A path that ends in .csv or .tsv (also .gz, .xz or .bz2 after it) or in .parquet, or a
        frame of pandas or polars, or a pyarrow table.
    item : str, optional
        The column that names the items (models), if a row is an item: all others are tasks.
    list : str, optional
        The column that names the tasks, if a row is a task: all others are items. Without either,
        it is the one called item, model and the like, or else list, task and the like.
    weight : str, optional
        Where a row is a task: the column that says how often it counts.
    keep : sequence of str
        Where a row is a task: further columns that go along as `beside` of the lists.
    format : {"csv", "tsv", "parquet"}, optional
        What the file is, where the name does not tell.
    separator : str, optional
        What stands between two cells of a CSV file; without it, as the name says.
    max_expansion : float, optional
        How many times its size a compressed file may expand to, beyond half a GiB: 200 without it.

    Returns
    -------
    Rankings
        A list of two tiers a task.

    Raises
    ------
    TableError
        A `ValueError` that names the file and the line (in Parquet the row), and says what to do;
        for frames it is a `ValueError` with the row.

    See Also
    --------
    read_rankings : Any table or file, and says what it took for what.
    read_wide_rankings : Cells that are ranks.

    Examples
    --------
    >>> import polars as pl
    >>> from tierrank.data import read_pass_fail
    >>> passed = {"t1": [1, 1, 0], "t2": [0, 1, 0], "t3": [None, 1, 1]}
    >>> read_pass_fail(pl.DataFrame({"model": ["ant", "bee", "cat"], **passed})).tiers
    Tiers(3 lists, catalogue of 3 items, 1 to 2 tiers a list)
      't1': {ant, bee} > cat
      't2': bee > {ant, cat}
      ... 1 more
    >>> words = {"task": ["t1", "t2"], "ant": ["pass", "fail"], "bee": ["pass", "pass"]}
    >>> read_pass_fail(pl.DataFrame(words)).tiers
    Tiers(2 lists, catalogue of 2 items, 1 to 2 tiers a list)
      't1': {ant, bee}
      't2': bee > ant
    """
    with open_table(source, format, separator) as table:
        named = {"list": list, "item": item, "weight": weight, "keep": keep}
        chosen, others = pass_fail(table.names, named)
        item, list = chosen["item"], chosen["list"]
        if (item is None) == (list is None):
            both = "two columns" if item else "no column"
            table.refuse(
                f"{both} may name the rows: pass ", Column("item"), " if a row is an item and the "
                "other columns are tasks, or ", Column("list"), " if a row is a task and the "
                "others are items (a row for each item of each task is another kind, items, with "
                "the column of passes as ", Column("score"), ").",
            )  # fmt: skip
        if item is not None and (weight is not None or keep):
            table.refuse(
                Column("weight" if weight is not None else "keep"),
                " is for tables where a row is a task: here a row is an item.",
            )
        at = table.find(item or list or "", "item" if item else "list")
        at_weight = None if weight is None else table.find(weight, "weight")
        cells = [table.find(name, "item") for name in others]
        if not cells:
            table.refuse("there is no column beside the names of the rows, so nobody passed it.")
        table.refuse_twice([at, *cells])
        table.load(at, *cells)
        called = table.keys(at, "item" if item else "list")
        again = np.ones(table.rows, dtype=bool)
        again[np.unique(called.codes, return_index=True)[1]] = False
        table.check(again, at, "the row is named like another one above: leave one out.")
        places = np.stack([_places(table, each) for each in cells], axis=1)
        weights = np.ones(table.rows) if at_weight is None else table.weights(at_weight)
        beside = {name: table.cells(name, "keep") for name in keep}
        rows, columns = called.keys[called.codes], numbers_or_words(others)
        keys, items = (columns, rows) if item else (rows, columns)
        if item:
            places, weights = places.T, np.ones(len(columns))
        tried = ~np.isnan(places)
        some = tried.any(axis=1)  # a task that nobody tried is no list
        if not some.any():
            table.refuse("no cell says who passed or failed.")
        codes, catalogue = catalogued(items.tolist())
    lists, who = np.nonzero(tried[some])
    entries = Entries(lists, codes[who], places[some][lists, who], keys[some], catalogue)
    return Rankings(
        entries.tiers(False), weights[some], beside={k: v[some] for k, v in beside.items()}
    )


def _places(table: Table, at: int) -> FloatArray:
    """[rows] 0 where a cell says passed, 1 where it says failed, NaN where it says nothing."""
    codes, values = table.distinct(at, "item")
    found = np.empty(len(values))
    for code, cell in enumerate(values):
        word = str(int(cell) if isinstance(cell, bool | float) and cell in (0, 1) else cell)
        word = word.strip().lower()
        if is_missing(cell) or (isinstance(cell, str) and cell.strip() in MISSING):
            found[code] = np.nan
        elif word in _PLACE or word in ("1.0", "0.0"):
            found[code] = _PLACE[word.removesuffix(".0")]
        else:
            table.refuse(
                f"{shown(table.names[at])} has {shown(cell)}, which says neither passed "
                f"({', '.join(PASSED)}) nor failed ({', '.join(FAILED)}): mend it, or leave the "
                "cell empty if it was not tried.",
                row=int((codes == code).argmax()), at=at,
            )  # fmt: skip
    return np.asarray(found[codes])
