"""From the bytes of a file to flat arrays: allocates, runs the compiled pass, words its errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.data.files import read_bytes
from tierrank.data.letor.errors import LetorError
from tierrank.data.letor.sidecar import queries_of

FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

_LONGEST_SHOWN = 40


@dataclass
class Parsed:
    """A file's rows, with feature indices as they are written."""

    path: Path
    text: bytes
    labels: FloatArray  # [rows]
    qid: AnyArray  # [rows]
    row_ends: npt.NDArray[np.int64]  # [rows + 1] ranges of entries
    indices: npt.NDArray[np.int32]  # [entries] ascending in each row
    values: FloatArray  # [entries]
    comments: tuple[str, ...] | None
    first_zero: int  # where in the text an index 0 stands first, or −1
    largest: int  # the largest index, or −1
    largest_at: int  # where it stands first

    def error(self, at: int, what: str) -> LetorError:
        """Name the line and column of a place in the text."""
        return _error(self.path, self.text, at, what)


def parse(path: Path, *, missing: float, keep_comments: bool) -> Parsed:
    """Read and check a file; `read_letor` says what it may hold."""
    from tierrank.data.letor import kernel
    from tierrank.data.letor.decimals import powers_of_five

    if path.is_dir():
        raise LetorError(
            path,
            None,
            "is a folder: read one of its files, or all with read_letor_fold or read_folds.",
        )
    text = read_bytes(path, LetorError)
    if (nul := text.find(b"\0")) >= 0:
        raise _error(path, text, nul, "there is a NUL byte: this is not a text file.")
    if not text.endswith(b"\n"):
        text += b"\n"
    most_rows, most_entries = text.count(b"\n"), text.count(b":")
    labels = np.empty(most_rows)
    qids = np.empty(most_rows, dtype=np.int64)
    spans = np.empty((most_rows, 3), dtype=np.int64)
    comment_spans = np.empty((most_rows if keep_comments else 0, 2), dtype=np.int64)
    row_ends = np.zeros(most_rows + 1, dtype=np.int64)
    indices = np.empty(most_entries, dtype=np.int32)
    values = np.empty(most_entries)
    found = np.zeros(kernel.FOUND, dtype=np.int64)
    left = kernel.scan(
        np.frombuffer(text, dtype=np.uint8), float(missing), powers_of_five(),
        labels, qids, spans, comment_spans, row_ends, indices, values, found,
    )  # fmt: skip
    if found[kernel.FAULT]:
        raise _fault(path, text, int(found[kernel.FAULT]), int(found[kernel.FAULT_AT]))
    rows, entries = int(found[kernel.ROWS]), int(found[kernel.ENTRIES])
    if not rows:
        raise LetorError(
            path, 1, "the file has no rows: give one with `label qid:… index:value …`."
        )
    for array, size in ((labels, rows), (qids, rows), (indices, entries), (values, entries)):
        array.resize(size, refcheck=False)
    row_ends = row_ends[: rows + 1].copy()
    for entry, start, end in left[: found[kernel.LEFT_TO_PYTHON]].tolist():
        target, place = (labels, -1 - entry) if entry < 0 else (values, entry)
        target[place] = _python_float(path, text, start, end)

    if not found[kernel.ROWS_WITH_QID]:
        qid: AnyArray = queries_of(path, rows)
    elif found[kernel.ROWS_WITH_QID] < rows:
        at = int(found[kernel.FIRST_WITHOUT_QID])
        what = "this row has no qid, but others have: write qid:… after its label."
        raise _error(path, text, at, what)
    elif found[kernel.OTHER_QIDS]:
        qid = _words(path, text, spans[:rows, 1:])
    else:
        qid = qids
    comments = None
    if keep_comments:
        comments = tuple(
            text[start:end].strip().decode(errors="surrogateescape")
            for start, end in comment_spans[:rows].tolist()
        )
    parsed = Parsed(
        path, text, labels, qid, row_ends, indices, values, comments,
        first_zero=int(found[kernel.FIRST_ZERO]),
        largest=int(found[kernel.LARGEST]),
        largest_at=int(found[kernel.LARGEST_AT]),
    )  # fmt: skip
    if found[kernel.UNSORTED]:
        _sort_rows(parsed, spans[:rows, 0])
    return parsed


def _sort_rows(parsed: Parsed, row_starts: npt.NDArray[np.int64]) -> None:
    """Make indices ascend in every row, and refuse one that stands twice."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(
        (parsed.values, parsed.indices, parsed.row_ends),
        shape=(len(parsed.labels), parsed.largest + 1),
    )
    matrix.sort_indices()
    parsed.values, parsed.indices = matrix.data, matrix.indices.astype(np.int32, copy=False)
    same = np.append(False, parsed.indices[1:] == parsed.indices[:-1])
    same[parsed.row_ends[:-1][np.diff(parsed.row_ends) > 0]] = False  # the first of a row
    if same.any():
        entry = int(same.argmax())
        row = int(np.searchsorted(parsed.row_ends, entry, side="right")) - 1
        what = f"feature {parsed.indices[entry]} stands twice in this row: leave one out."
        raise parsed.error(int(row_starts[row]), what)


def _words(path: Path, text: bytes, spans: npt.NDArray[np.int64]) -> AnyArray:
    """Give every qid as a string."""
    words = []
    for start, end in spans.tolist():
        try:
            words.append(text[start:end].decode())
        except UnicodeDecodeError:
            what = f"the qid {text[start:end]!r} is not UTF-8: write it as UTF-8, or as a number."
            raise _error(path, text, start, what) from None
    return np.array(words)


def _python_float(path: Path, text: bytes, start: int, end: int) -> float:
    """Read a number that the compiled code was not sure of."""
    value = float(text[start:end])
    if np.isinf(value):
        what = f"{_shown(text, start, end)} is too large for a float64: scale it down."
        raise _error(path, text, start, what)
    return value


def _fault(path: Path, text: bytes, fault: int, at: int) -> LetorError:
    """Word what the compiled pass stumbled over at a place in the text."""
    from tierrank.data.letor import kernel

    token = text[at : at + 400].split(maxsplit=1)[0].split(b"#")[0]
    shown = _shown(text, at, at + len(token))
    name = _shown(text, at, at + len(token.partition(b":")[0]))
    value = _shown(text, at + len(token.partition(b":")[0]) + 1, at + len(token))
    if fault == kernel.BAD_LABEL and b":" in token:
        what = f"the label is missing: the row starts with {shown}, not with a number."
    elif fault == kernel.BAD_LABEL:
        what = f"the label {shown} is not a finite number: write one, such as 0, 1 or 2."
    elif fault == kernel.BAD_QID:
        what = f"{shown} is no qid: write qid: and a number or a word without a colon."
    elif fault == kernel.LARGE_INDEX:
        what = f"the feature index {name} is over {kernel.LARGEST_INDEX:,}: number features anew."
    elif fault == kernel.TWICE:
        what = f"feature {name} stands twice in this row: leave one out."
    elif fault == kernel.BAD_VALUE:
        what = f"the value {value} of feature {name} is not a number: write one, or NULL."
    elif token.startswith(b"qid:"):
        what = f"{shown} must follow the label directly, and once: move it there."
    elif b":" not in token:
        what = f"{shown} is not index:value: write a feature as 3:0.5, and # before a comment."
    elif token[:1] == b"-" and token.partition(b":")[0][1:].isdigit():
        what = f"the feature index {name} is negative: indices start at 1, or at 0."
    else:
        what = f"the feature index {name} is not a whole number: write it in digits alone."
    return _error(path, text, at, what)


def _shown(text: bytes, start: int, end: int) -> str:
    word = text[start:end].decode(errors="backslashreplace")
    return repr(word if len(word) <= _LONGEST_SHOWN else word[:_LONGEST_SHOWN] + "…")


def _error(path: Path, text: bytes, at: int, what: str) -> LetorError:
    line_start = text.rfind(b"\n", 0, at) + 1
    line = text.count(b"\n", 0, line_start) + 1
    return LetorError(path, line, what, column=at - line_start + 1)
