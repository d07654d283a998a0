"""Tables of rankings that are larger than the memory, read piece by piece in one process.

A piece is some row groups of Parquet, or a block of CSV. It is read as any table is, its equal
lists are counted together, and they are kept packed: four bytes an item, or less. A list that goes
on in the next piece is held back for it. Where a list comes again later than that, all is read once
more, several times: each time the lists that a hash puts into one bin.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.data.cluster import OneProcess
from tierrank.data.files import PARQUET, DataFileError, shown, without_compression
from tierrank.data.rankings.container import FEW, Packed, PartedRankings, Rankings, together
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.usual_names import Reading
from tierrank.data.tables.columns import (
    ArrowColumns,
    BadColumn,
    TableError,
    open_parquet,
)
from tierrank.data.tables.csv import CsvColumns, CsvText, text_blocks, words_only
from tierrank.data.tables.opening import Table, table_kind
from tierrank.errors import ArgumentError
from tierrank.tiers.catalogue import catalogue_of

LARGE = 10_000_000  # rows of a table that is read in pieces
ROW = 20  # bytes that a row of CSV has, about
PIECE = 1 << 20  # rows of a piece, if a file's row groups allow it
PART = 4_000_000  # entries of different lists that are kept together
ALIKE = 0.5  # share of entries that is left when lists repeat, so that it pays to go on counting

Read = Callable[[Table], Rankings | Games]


def in_pieces(path: Path) -> list[Path]:
    """The files of a folder or a pattern of Parquet, or a large table; else none."""
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
        if not found:
            raise DataFileError(path, None, "is a folder without .parquet files: give a file.")
        return found
    if not path.exists():
        return sorted(path.parent.glob(path.name)) if path.suffix.lower() == PARQUET else []
    suffix = path.suffix.lower()
    if suffix == PARQUET:
        with open_parquet(path) as file:
            return [path] if file.metadata.num_rows > LARGE else []
    plain = without_compression(path) == path and suffix in (".csv", ".tsv")
    return [path] if plain and path.stat().st_size > LARGE * ROW else []


class Piece(NamedTuple):
    """Some rows: columns of pyarrow by name; and how to name what is wrong with one of them."""

    cells: Any
    error: Callable[..., ArgumentError]  # of a row and the position of a column, as a `Table`'s

    def of(self, rows: IntArray | range) -> Piece:
        """Those of some rows."""

        def error(row: int | None, at: int | None, *what: object) -> ArgumentError:
            return self.error(None if row is None else int(rows[row]), at, *what)

        if isinstance(rows, range):
            return Piece(self.cells.slice(rows.start, len(rows)), error)
        return Piece(self.cells.take(rows), error)

    @classmethod
    def joined(cls, pieces: Sequence[Piece]) -> Piece:
        """All rows of several."""
        import pyarrow as pa

        starts = np.cumsum([0, *(piece.cells.num_rows for piece in pieces)])

        def error(row: int | None, at: int | None, *what: object) -> ArgumentError:
            of = 0 if row is None else int(np.searchsorted(starts, row, side="right")) - 1
            return pieces[of].error(None if row is None else row - int(starts[of]), at, *what)

        return cls(pa.concat_tables([piece.cells for piece in pieces]), error)


class Pieces:
    """The rows of one large CSV file, or of Parquet files of one schema.

    Attributes
    ----------
    names
        of all columns
    """

    def __init__(self, paths: Sequence[Path], format: Any, separator: str | None) -> None:
        self._paths, (suffix, self._separator) = paths, table_kind(paths[0], format, separator)
        self.written = suffix != PARQUET  # as text
        if self.written:
            first = next(text_blocks(paths[0], self._separator, PIECE * ROW))
            self.names: Sequence[str] = first.header
            return
        schema: Any = None
        for path in paths:
            with open_parquet(path) as file:
                own = file.schema_arrow.remove_metadata()
            if schema is None:
                schema = own
            if not own.equals(schema):
                raise TableError(path, None, _differs(schema, own, paths[0]))
        self.names = schema.names

    def of(self, columns: Sequence[str]) -> Iterator[Piece]:
        """Piece by piece, some columns."""
        at = [self.names.index(name) for name in columns]
        if self.written:
            for text in text_blocks(self._paths[0], self._separator, PIECE * ROW):
                cells = words_only(text, at).rename_columns(list(columns))
                yield Piece(cells, partial(_in_text, text, at))
            return
        for path in self._paths:
            with open_parquet(path) as file:
                start = 0
                for groups in _groups(file.metadata):
                    cells = file.read_row_groups(groups, columns=list(columns))
                    cells.validate(full=True)
                    yield Piece(cells, partial(_in_file, path, start))
                    start += cells.num_rows

    def table(self, piece: Piece) -> Table:
        """A piece as a table."""
        cells = piece.cells
        names = cells.column_names
        columns = (
            CsvColumns(names, dict(enumerate(cells.columns)), cells.num_rows)
            if self.written
            else ArrowColumns(cells, names)
        )
        return Table(names, lambda *_: columns, piece.error)


def _in_text(
    text: CsvText, positions: Sequence[int], row: int | None, at: int | None, *what: object
) -> ArgumentError:
    return text.error(row, None if at is None else positions[at], *what)


def _in_file(
    path: Path, start: int, row: int | None, _: int | None, *what: object
) -> ArgumentError:
    return TableError(path, None, *what, row=None if row is None else start + row + 1)


def _differs(schema: Any, own: Any, first: Path) -> str:
    """What is other in a second schema."""
    for field in schema:
        if own.get_field_index(field.name) < 0:
            return f"has no column {shown(field.name)}, but {first} has: give files of one schema."
        if (kind := own.field(field.name).type) != field.type:
            return (
                f"the column {shown(field.name)} is of type {kind}, but in {first} it is of type "
                f"{field.type}: give files of one schema."
            )
    return f"has other columns, or in another order, than {first}: give files of one schema."


def _groups(metadata: Any) -> Iterator[list[int]]:
    """Numbers of row groups that make up a piece."""
    some: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        some.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= PIECE or group == metadata.num_row_groups - 1:
            yield some
            some, rows = [], 0


def read_streamed(
    pieces: Pieces, way: Reading, read: Read
) -> Rankings | Games | PartedRankings | None:
    """Read all pieces in one way; None if only the table as a whole can be read so."""
    columns = [
        name for name in pieces.names
        if any(name == each or (not isinstance(each, str | int) and each and name in each)
               for each in way.columns.values())
    ]  # fmt: skip
    lists = way.columns.get("list")
    by_list = way.kind in ("items", "preferences", "paired-ranks")
    if by_list and lists is None:
        return None
    called = [lists] if isinstance(lists, str) else list(lists or ())
    whole = _whole_lists(pieces.of(columns), called) if by_list else pieces.of(columns)
    found = Counted(by_list)
    for piece in whole:
        found.add(read(pieces.table(piece)))
    if found.again():
        rows, found = found.rows, Counted(False)
        for number in range(bins := rows // PIECE + 1):
            of_bin = _of_bin(pieces, columns, called, number, bins)
            if of_bin is not None:
                found.add(read(pieces.table(of_bin)))
    return found.all()


def _whole_lists(pieces: Iterable[Piece], lists: Sequence[str]) -> Iterator[Piece]:
    """The same rows, where no list that stands in adjacent rows is cut."""
    from pyarrow import compute

    held: list[Piece] = []
    for piece in pieces:
        if not piece.cells.num_rows:
            continue
        rows = Piece.joined([*held, piece]) if held else piece
        size = rows.cells.num_rows
        other = np.zeros(size, dtype=bool)  # than the list of the last row
        for name in lists:
            column = rows.cells.column(name)
            other |= compute.not_equal(column, column[-1]).fill_null(True).to_numpy()
        cut = size - int(other[::-1].argmax()) if other.any() else 0
        held = [rows.of(range(cut, size))]
        if cut:
            yield rows.of(range(cut))
    if held:
        yield held[0]


def _of_bin(
    pieces: Pieces, columns: Sequence[str], lists: Sequence[str], number: int, bins: int
) -> Piece | None:
    """All rows of the lists that a hash puts into a bin."""
    found = []
    for piece in pieces.of(columns):
        table = ArrowColumns(piece.cells, piece.cells.column_names)
        hashed = np.zeros(piece.cells.num_rows, dtype=np.uint32)
        for name in lists:
            distinct = table.distinct(table.names.index(name), "list")
            if isinstance(distinct, BadColumn):
                raise piece.error(distinct.row, table.names.index(name), distinct.why)
            hashes = np.array([zlib.crc32(str(value).encode()) for value in distinct.values],
                              dtype=np.uint32)  # fmt: skip
            hashed = hashed * np.uint32(31) + hashes[distinct.codes]
        found.append(piece.of(np.flatnonzero(hashed % bins == number)))
    there = [piece for piece in found if piece.cells.num_rows]
    return Piece.joined(there) if there else None


class Counted:
    """What was read so far: equal lists of some pieces together, packed."""

    def __init__(self, by_list: bool) -> None:
        self._number: dict[Any, int] = {}  # of each name, in order of appearance
        self._by_list = by_list
        self._keys: list[AnyArray] = []
        self._parts: list[Packed] = []
        self._left: list[Rankings | Games] = []  # that are not packed yet
        self.seen = self.rows = 0

    def add(self, read: Rankings | Games) -> None:
        """Take what one piece has."""
        self.seen += len(read)
        self.rows += read.entries
        if self._by_list and isinstance(read, Rankings):
            assert read.tiers.keys is not None
            self._keys.append(read.tiers.keys)
        code = np.array([self._number.setdefault(name, len(self._number)) for name in read.items])
        self._left.append(read.recoded(code, len(self._number)))
        if sum(each.entries for each in self._left) > PART:
            self._merge()

    def _merge(self) -> None:
        before = sum(each.entries for each in self._left)
        size = len(self._number)
        every = np.arange(size)
        merged = together([each.recoded(every, size) for each in self._left])
        self._left = [merged]
        if merged.entries > ALIKE * before:
            self._parts.append(merged.packed())
            self._left = []

    def again(self) -> bool:
        """Whether a list stands in several pieces."""
        if not self._keys:
            return False
        if len({keys.dtype.kind for keys in self._keys}) > 1:
            self._keys = [keys.astype(str).astype(object) for keys in self._keys]
        keys = np.concatenate(self._keys)
        self._keys = []
        if keys.dtype.kind == "O":
            keys = np.fromiter(map(hash, keys), np.int64, len(keys))
        keys.sort()
        return bool((keys[1:] == keys[:-1]).any())

    def all(self) -> Rankings | Games | PartedRankings:
        """All of it: as lists or games where they are few, else in parts."""
        if self._left:
            self._merge()
        parts = [*self._parts, *(each.packed() for each in self._left)]
        self._left = []
        names = tuple(self._number)
        if any(isinstance(name, str) for name in names):
            names = tuple(map(str, names))
        known = {name: code for code, name in enumerate(dict.fromkeys(names))}
        catalogue = catalogue_of(known)
        if catalogue.names is None:  # the names are their numbers
            known = {name: name for name in known}
        code: IntArray = np.array([known[name] for name in names], dtype=np.int64)
        parts = [part.recoded(code, catalogue.size) for part in parts]
        found = PartedRankings(
            OneProcess(), parts, tuple(catalogue.items), self.seen,
            sum(part.entries for part in parts), parts[0].kind is Games,
        )  # fmt: skip
        return found.gather() if found.entries <= FEW else found
