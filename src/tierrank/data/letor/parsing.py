"""From the bytes of a file to flat arrays: allocates, runs the compiled pass, words its errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank._native import LARGEST_LETOR_INDEX, LetorFault, scan_letor
from tierrank.data.files import DataFileError, read_bytes
from tierrank.data.letor.errors import LetorError
from tierrank.data.letor.sidecar import queries_of
from tierrank.data.text.rows import first_repeated
from tierrank.data.text.source import Text

FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

_BLOCK = 1 << 20  # bytes looked at at once


@dataclass
class Parsed:
    """A file's rows, with feature indices as they are written."""

    text: Text
    labels: FloatArray  # [rows]
    qid: AnyArray  # [rows]
    row_ends: npt.NDArray[np.int64]  # [rows + 1] ranges of entries
    indices: npt.NDArray[np.int32]  # [entries] ascending in each row
    values: FloatArray  # [entries]
    comments: tuple[str, ...] | None
    first_zero: int  # where in the text an index 0 stands first, or −1
    largest: int  # the largest index, or −1
    largest_at: int  # where it stands first


def parse(path: Path, *, missing: float, keep_comments: bool) -> Parsed:
    """Read and check a file; `read_letor` says what it may hold."""
    if path.is_dir():
        raise LetorError(
            path,
            None,
            "is a folder: read one of its files, or all with read_letor_fold or read_folds.",
        )
    text = Text(path, read_bytes(path, LetorError), LetorError)
    most_rows, most_entries = _most_rows(text.content), text.content.count(b":")
    labels = np.empty(most_rows)
    qids = np.empty(most_rows, dtype=np.int64)
    spans = np.empty((most_rows, 3), dtype=np.int64)
    comment_spans = np.empty((most_rows if keep_comments else 0, 2), dtype=np.int64)
    row_ends = np.zeros(most_rows + 1, dtype=np.int64)
    indices = np.empty(most_entries, dtype=np.int32)
    values = np.empty(most_entries)
    found = scan_letor(
        text.content, float(missing),
        labels, qids, spans, comment_spans, row_ends, indices, values,
    )  # fmt: skip
    if found.fault != LetorFault.FINE:
        raise _fault(text, found.fault, found.fault_at)
    rows, entries = found.rows, found.entries
    if not rows:
        raise LetorError(
            path, 1, "the file has no rows: give one with `label qid:… index:value …`."
        )
    for array, size in ((labels, rows), (qids, rows), (indices, entries), (values, entries)):
        array.resize(size, refcheck=False)
    row_ends = row_ends[: rows + 1].copy()
    for entry, start, end in found.left:
        target, place = (labels, -1 - entry) if entry < 0 else (values, entry)
        target[place] = _python_float(text, start, end)

    if not found.rows_with_qid:
        qid: AnyArray = queries_of(path, rows)
    elif found.rows_with_qid < rows:
        what = "this row has no qid, but others have: write qid:… after its label."
        raise text.error(found.first_without_qid, what)
    elif found.other_qids:
        qid = _words(text, spans[:rows, 1:])
    else:
        qid = qids
    comments = None
    if keep_comments:
        comments = tuple(
            text.content[start:end].strip().decode(errors="surrogateescape")
            for start, end in comment_spans[:rows].tolist()
        )
    parsed = Parsed(
        text, labels, qid, row_ends, indices, values, comments,
        first_zero=found.first_zero,
        largest=found.largest,
        largest_at=found.largest_at,
    )  # fmt: skip
    if found.unsorted:
        _sort_rows(parsed, spans[:rows, 0])
    return parsed


def _most_rows(content: bytes) -> int:
    """As many lines as are not empty, or some more: arrays are made for so many rows."""
    lines = content.count(b"\n")
    if lines * 8 < len(content):
        return lines
    text = np.frombuffer(content, dtype=np.uint8)
    rows = 1
    for start in range(0, len(text), _BLOCK):
        breaks = text[start : start + _BLOCK + 1] == ord("\n")
        rows += int(np.count_nonzero(breaks[1:] & ~breaks[:-1]))
    return rows


def _sort_rows(parsed: Parsed, row_starts: npt.NDArray[np.int64]) -> None:
    """Make indices ascend in every row, and refuse one that stands twice."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(
        (parsed.values, parsed.indices, parsed.row_ends),
        shape=(len(parsed.labels), parsed.largest + 1),
    )
    matrix.sort_indices()
    parsed.values, parsed.indices = matrix.data, matrix.indices.astype(np.int32, copy=False)
    if repeated := first_repeated(parsed.row_ends, parsed.indices):
        row, index = repeated
        what = f"feature {index} stands twice in this row: leave one out."
        raise parsed.text.error(int(row_starts[row]), what)


def _words(text: Text, spans: npt.NDArray[np.int64]) -> AnyArray:
    """Give every qid as a string; all rows of a query share it, however long it is."""
    known: dict[bytes, str] = {}
    words = np.empty(len(spans), dtype=object)
    for row, (start, end) in enumerate(spans.tolist()):
        try:
            raw = text.content[start:end]
            word = known.get(raw)
            if word is None:
                word = known[raw] = raw.decode()
            words[row] = word
        except UnicodeDecodeError:
            what = (
                f"the qid {text.shown(start, end)} is not UTF-8: write it as UTF-8, or as a number."
            )
            raise text.error(start, what) from None
    return words


def _python_float(text: Text, start: int, end: int) -> float:
    """Read a number that the compiled code was not sure of."""
    value = float(text.content[start:end])
    if np.isinf(value):
        what = f"{text.shown(start, end)} is too large for a float64: scale it down."
        raise text.error(start, what)
    return value


def _fault(text: Text, fault: LetorFault, at: int) -> DataFileError:
    """Word what the compiled pass stumbled over at a place in the text."""
    token = text.content[at : at + 400].split(maxsplit=1)[0].split(b"#")[0]
    shown = text.shown(at, at + len(token))
    name = text.shown(at, at + len(token.partition(b":")[0]))
    value = text.shown(at + len(token.partition(b":")[0]) + 1, at + len(token))
    if fault == LetorFault.BAD_LABEL and b":" in token:
        what = f"the label is missing: the row starts with {shown}, not with a number."
    elif fault == LetorFault.BAD_LABEL:
        what = f"the label {shown} is not a finite number: write one, such as 0, 1 or 2."
    elif fault == LetorFault.BAD_QID:
        what = f"{shown} is no qid: write qid: and a number or a word without a colon."
    elif fault == LetorFault.LARGE_INDEX:
        what = f"the feature index {name} is over {LARGEST_LETOR_INDEX:,}: number features anew."
    elif fault == LetorFault.TWICE:
        what = f"feature {name} stands twice in this row: leave one out."
    elif fault == LetorFault.BAD_VALUE:
        what = f"the value {value} of feature {name} is not a number: write one, or NULL."
    elif token.startswith(b"qid:"):
        what = f"{shown} must follow the label directly, and once: move it there."
    elif b":" not in token:
        what = f"{shown} is not index:value: write a feature as 3:0.5, and # before a comment."
    elif token[:1] == b"-" and token.partition(b":")[0][1:].isdigit():
        what = f"the feature index {name} is negative: indices start at 1, or at 0."
    else:
        what = f"the feature index {name} is not a whole number: write it in digits alone."
    return text.error(at, what)
