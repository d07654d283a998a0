"""Matrices of who passed what: every task is a list in two tiers, passed over failed."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from tierrank._types import FloatArray
from tierrank.data.files import expands, shown
from tierrank.data.rankings.container import Entries, Rankings
from tierrank.data.rankings.usual_names import pass_fail
from tierrank.data.rankings.wide_tables import catalogued, numbers_or_words
from tierrank.data.tables.columns import MISSING
from tierrank.data.tables.opening import Table, TableFormat, open_table
from tierrank.errors import Column
from tierrank.tiers.arrays import is_missing

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
