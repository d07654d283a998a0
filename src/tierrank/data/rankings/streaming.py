"""Tables of rankings that are larger than the memory, read piece by piece in one process.

A piece is some row groups of Parquet, or a block of CSV. It is read as any table is, its equal
lists are counted together, and they are kept packed: four bytes an item, or less. A list that goes
on in the next piece is held back for it. Where a list comes again later than that, all is read once
more, several times: each time the lists that a hash puts into one bin.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tierrank._types import AnyArray, IntArray
from tierrank.data.cluster import OneProcess, parquet_files
from tierrank.data.files import PARQUET, DataFileError
from tierrank.data.rankings.container import (
    FEW,
    NothingThere,
    Packed,
    PartedRankings,
    Rankings,
    dealt,
    same_kind,
    together,
)
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.usual_names import Reading
from tierrank.data.tables.columns import (
    ArrowColumns,
    BadColumn,
    TableError,
    one_schema,
    open_parquet,
)
from tierrank.data.tables.csv import CsvColumns, CsvText, text_blocks, words_only
from tierrank.data.tables.opening import Table, need_pyarrow, table_kind
from tierrank.errors import ArgumentError
from tierrank.tiers.catalogue import catalogue_of

LARGE = 2_000_000  # rows of a table that is read in pieces
ROW = 20  # bytes that a row of CSV has, about
PIECE = 1 << 20  # rows of a piece, if a file's row groups allow it
PART = 1_000_000  # entries of different lists that are kept together
OF_GAMES = 8  # times as many of games, which are counted by far quicker than lists
ALIKE = 0.5  # share of entries that is left when lists repeat, so that it pays to go on counting

Error = Callable[..., ArgumentError]  # of a row, the position of a column, and what is wrong
Read = Callable[[Table], Rankings | Games]
Found = Rankings | Games | NothingThere  # what a piece has


def in_pieces(path: Path) -> list[Path]:
    """The files of a folder or a pattern of Parquet, or a large table; else none."""
    suffix = path.suffix.lower()
    if path.is_dir() or (not path.exists() and suffix == PARQUET):
        found = parquet_files(path)
        if not found and path.is_dir():
            raise DataFileError(path, None, "is a folder without .parquet files: give a file.")
        return found
    if suffix == PARQUET:
        need_pyarrow(path)
        with open_parquet(path) as file:
            return [path] if file.metadata.num_rows > LARGE else []
    plain = suffix in (".csv", ".tsv") and path.is_file()
    return [path] if plain and path.stat().st_size > LARGE * ROW else []


class Piece(NamedTuple):
    """Some rows: columns of pyarrow by name; and what to say of a row, by where it comes from."""

    cells: Any
    places: list[tuple[Sequence[int] | IntArray, Error]]  # row numbers there, and how it says it

    def error(self, row: int | None, at: int | None, *what: object) -> ArgumentError:
        """What is wrong with a row in the column `at`, or with all, as a `Table` says it."""
        rows, error = self.places[0]
        if row is None:
            return error(None, at, *what)
        for rows, error in self.places:  # noqa: B007
            if row < len(rows):
                break
            row -= len(rows)
        return error(int(rows[row]), at, *what)

    def between(self, start: int, stop: int) -> Piece:
        """Adjacent rows; what they do not come from is forgotten."""
        places, before = [], 0
        for rows, error in self.places:
            kept = rows[max(0, start - before) : max(0, stop - before)]
            before += len(rows)
            if len(kept):
                places.append((kept, error))
        return Piece(self.cells.slice(start, stop - start), places)

    @classmethod
    def joined(cls, pieces: Sequence[Piece]) -> Piece:
        """All rows of several."""
        import pyarrow as pa

        cells = pa.concat_tables([each.cells for each in pieces], promote_options="permissive")
        return cls(cells, [place for piece in pieces for place in piece.places])


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
            self.names: Sequence[str] = next(self._texts()).header
            return
        self.names = one_schema(paths)

    def of(self, columns: Sequence[str], *, numbered: bool = False) -> Iterator[Piece]:
        """Piece by piece, some columns; with words as numbers of words, if these are stored so."""
        at = [self.names.index(name) for name in columns]
        if self.written:
            for number, text in enumerate(self._texts()):
                cells = words_only(text, at).rename_columns(list(columns))
                if cells.num_rows:
                    yield Piece(cells, [(range(cells.num_rows), partial(self._error, number, at))])
            return
        for path in self._paths:
            with open_parquet(path, self._words(path) if numbered else ()) as file:
                start = 0
                for groups in _groups(file.metadata):
                    cells = file.read_row_groups(groups, columns=list(columns))
                    cells.validate(full=True)
                    if cells.num_rows:
                        place = range(cells.num_rows), partial(_in_file, path, start)
                        yield Piece(cells, [place])
                    start += cells.num_rows

    @staticmethod
    def _words(path: Path) -> list[str]:
        """Columns of strings."""
        from pyarrow import large_string, string

        with open_parquet(path) as file:
            return [
                each.name for each in file.schema_arrow if each.type in (string(), large_string())
            ]

    def _texts(self) -> Iterator[CsvText]:
        return text_blocks(self._paths[0], self._separator, PIECE * ROW)

    def _error(
        self, block: int, positions: Sequence[int], row: int | None, at: int | None, *what: object
    ) -> ArgumentError:
        """Of a row of CSV: the block is read once more, so that none has to be kept."""
        text = next(itertools.islice(self._texts(), block, None))
        return text.error(row, None if at is None else positions[at], *what)

    def table(self, piece: Piece, *, is_part: bool = False) -> Table:
        """A piece as a table."""
        cells = piece.cells
        names = cells.column_names
        columns = (
            CsvColumns(names, dict(enumerate(cells.columns)), cells.num_rows)
            if self.written
            else ArrowColumns(cells, names)
        )
        return Table(names, lambda *_: columns, piece.error, is_part)


def _in_file(
    path: Path, start: int, row: int | None, _: int | None, *what: object
) -> ArgumentError:
    return TableError(path, None, *what, row=None if row is None else start + row + 1)


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
    pieces: Pieces, way: Reading, read: Read, *, either_way: bool = False
) -> Rankings | Games | PartedRankings | None:
    """Read all pieces in one way; None if only the table as a whole can be read so.

    With `either_way`, games are equal whoever was named first.
    """
    columns = [
        name for name in pieces.names
        if any(name == each or (not isinstance(each, str | int) and each and name in each)
               for each in way.columns.values())
    ]  # fmt: skip
    lists = way.columns.get("list")
    by_list = way.kind in ("items", "preferences", "paired-ranks")
    if (by_list and lists is None) or way.kind == "pass-fail":
        return None
    called = [lists] if isinstance(lists, str) else list(lists or ())
    games = way.kind == "games"
    opened = pieces.of(columns, numbered=games)
    whole = _whole_lists(opened, called) if by_list else opened

    def of_piece(piece: Piece) -> Found:
        try:
            return read(pieces.table(piece, is_part=True))
        except NothingThere as none:
            return none

    found = Counted(by_list, either_way=either_way)
    for part in _read_ahead(whole, of_piece):
        found.add(part)
    if found.nothing is not None and not found.seen:
        raise found.nothing
    if found.again():
        rows, found = found.rows, Counted(False, found.number)
        for number in range(bins := rows // PIECE + 1):
            of_bin = _of_bin(pieces, columns, called, number, bins)
            if of_bin is not None:
                found.add(of_piece(of_bin))
    return found.all()


def _read_ahead(pieces: Iterable[Piece], read: Callable[[Piece], Found]) -> Iterator[Found]:
    """What each piece has, in their order: the next is opened, and read, beside the last."""
    with ThreadPoolExecutor(1) as beside:
        ahead: Future[Found] | None = None
        opened = iter(pieces)
        while True:
            try:
                piece = next(opened, None)
            except ValueError:
                if ahead is not None:
                    ahead.result()  # whose fault, if it has one, comes first
                raise
            before, ahead = ahead, None if piece is None else beside.submit(read, piece)
            if before is not None:
                yield before.result()
            if ahead is None:
                return


def _whole_lists(pieces: Iterable[Piece], lists: Sequence[str]) -> Iterator[Piece]:
    """The same rows, where no list that stands in adjacent rows is cut."""
    from pyarrow import compute

    held: list[Piece] = []
    for piece in pieces:
        rows = Piece.joined([*held, piece]) if held else piece
        size = rows.cells.num_rows
        other = np.zeros(size, dtype=bool)  # than the list of the last row
        for name in lists:
            column = rows.cells.column(name)
            other |= compute.not_equal(column, column[-1]).fill_null(True).to_numpy()
        cut = size - int(other[::-1].argmax()) if other.any() else 0
        held = [rows.between(cut, size)]
        if cut:
            yield rows.between(0, cut)
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
        rows = np.flatnonzero(hashed % bins == number)
        found.append(Piece(piece.cells.take(rows), [(rows, piece.places[0][1])]))
    there = [piece for piece in found if piece.cells.num_rows]
    return Piece.joined(there) if there else None


def _paired(parts: list[Packed]) -> list[Packed]:
    """Games of all parts, each pair of sides in one part: pairs repeat where whole lists do not."""
    entries = sum(part.entries for part in parts)
    bins = entries // (10 * PART) + 1
    if entries <= FEW or bins == 1:
        return parts
    hands = [dealt(parts.pop().unpacked(), bins) for _ in range(len(parts))]
    return [
        found.packed()
        for some in zip(*hands, strict=True)
        if (found := together([each.unpacked() for each in some])) is not None
    ]


class Counted:
    """What was read so far: equal lists of some pieces together, packed."""

    def __init__(
        self, by_list: bool, number: dict[Any, int] | None = None, *, either_way: bool = False
    ) -> None:
        self.number = number or {}  # of each name, in order of appearance
        self._by_list, self._either_way = by_list, either_way
        self._keys: list[AnyArray] = []
        self._parts: list[Packed] = []
        self._left: list[Rankings | Games] = []  # that are not packed yet
        self.seen = self.rows = 0
        self.nothing: ArgumentError | None = None  # what the first part without anything says

    def add(self, read: Found) -> None:
        """Take what one piece has."""
        code = np.array([self.number.setdefault(name, len(self.number)) for name in read.items])
        if isinstance(read, NothingThere):
            self.nothing = self.nothing or read.error
            return
        self.seen += len(read)
        self.rows += read.entries
        if self._by_list and isinstance(read, Rankings):
            assert read.tiers.keys is not None
            self._keys.append(read.tiers.keys)
        coded = read.recoded(code, len(self.number))
        most = PART
        if isinstance(coded, Games):
            coded, most = coded.lower_first() if self._either_way else coded, OF_GAMES * PART
        self._left.append(coded)
        if sum(each.entries for each in self._left) > most:
            self._merge()

    def _merge(self) -> None:
        before = sum(each.entries for each in self._left)
        size = len(self.number)
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
        self._parts, self._left = [], []
        names = same_kind(self.number)
        known = {name: code for code, name in enumerate(dict.fromkeys(names))}
        catalogue = catalogue_of(known)
        if catalogue.names is None:  # the names are their numbers
            known = {name: name for name in known}
        code: IntArray = np.array([known[name] for name in names], dtype=np.int64)
        parts = [part.recoded(code, catalogue.size) for part in parts]
        if parts[0].kind is Games:
            parts = _paired(parts)
        found = PartedRankings(
            OneProcess(), parts, tuple(catalogue.items), self.seen,
            sum(part.entries for part in parts), parts[0].kind is Games,
        )  # fmt: skip
        return found.gather() if found.entries <= FEW else found
