"""Rankings in wide form: a row a ranking, and a column an item, or else a place."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.data.files import expands
from tierrank.data.rankings.container import Entries, Rankings
from tierrank.data.rankings.usual_names import readings
from tierrank.data.tables.columns import MISSING, BadKey, keys_of_words
from tierrank.data.tables.opening import Keys, Table, TableFormat, open_table
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
        table.refuse("no cell names an item: nothing is ranked.")
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
