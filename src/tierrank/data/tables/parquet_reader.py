"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tierrank.data.files import check_expansion
from tierrank.data.ranking_data import RankingData
from tierrank.data.tables.arrow import ArrowColumns
from tierrank.data.tables.assembly import assemble
from tierrank.data.tables.choice import Wanted, choose
from tierrank.data.tables.errors import TableError

_MAGIC = b"PAR1"
_CELL = 8  # bytes


def read_parquet(path: Path, wanted: Wanted, missing: float) -> RankingData:
    """Read a Parquet file; `read_table` says what it may hold."""

    def refuse(row: int | None, what: str) -> TableError:
        return TableError(path, None, what, row=None if row is None else row + 1)

    with open_parquet(path) as file:
        names = file.schema_arrow.names
        choice = choose(names, wanted, lambda what: refuse(None, what))
        label = () if choice.label is None else (choice.label,)
        table = read_columns(
            path, file, [names[i] for i in (*label, choice.query, *choice.features)]
        )
        return assemble(ArrowColumns(table, names), choice, missing, refuse)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a `pyarrow.parquet.ParquetFile`; whatever goes wrong with it is a `TableError`."""
    from pyarrow import parquet

    with path.open("rb") as raw:
        start = raw.read(len(_MAGIC))
        if not start:
            raise TableError(path, None, "the file is empty: give one with columns and rows.")
        if start != _MAGIC:
            raise TableError(path, None, "is not a Parquet file: give its name the right suffix.")
        raw.seek(0)
        with _damaged(path):
            yield parquet.ParquetFile(raw, page_checksum_verification=True)


def read_columns(path: Path, file: Any, names: Sequence[str]) -> Any:
    """Some columns of an open Parquet file."""
    check_expansion(path, file.metadata.num_rows * len(names) * _CELL, TableError)
    table = file.read(columns=list(names))
    table.validate(full=True)  # pyarrow trusts offsets and UTF-8 otherwise
    return table


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Whatever pyarrow finds wrong with the file, under its name."""
    from pyarrow import ArrowException

    try:
        yield
    except TableError:
        raise
    except (ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        why = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
        raise TableError(
            path,
            None,
            f"cannot be read as Parquet ({why[0]}): it is cut short or damaged, or holds what "
            "pyarrow does not know. Fetch or write it again.",
        ) from error
