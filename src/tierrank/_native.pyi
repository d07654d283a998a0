"""What the compiled core offers (`native/`). Arrays are contiguous and of exactly these types."""

import enum

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

# Scanners of text files: texts end with a newline, and places count from their start.

LARGEST_LETOR_INDEX: int

class LetorFault(enum.Enum):
    """What may be wrong with a token of a LETOR file."""

    FINE = ...
    BAD_LABEL = ...
    BAD_QID = ...
    BAD_INDEX = ...
    LARGE_INDEX = ...
    TWICE = ...
    BAD_VALUE = ...

class LetorPass:
    """What a pass over a LETOR file found; −1 is nowhere."""

    fault: LetorFault
    fault_at: int
    rows: int
    entries: int
    rows_with_qid: int
    first_without_qid: int
    other_qids: bool  # some qid is no whole number of 64 bits
    unsorted: bool  # in some row, indices do not ascend
    first_zero: int
    largest: int
    largest_at: int
    left: list[
        tuple[int, int, int]
    ]  # numbers for `float`: entry (of a label, −1 − row), start, end

def scan_letor(
    text: bytes,
    missing: float,
    labels: Float64,  # [rows]
    qids: Int64,  # [rows]
    spans: Int64,  # [rows, 3] where the row starts, and its qid starts and ends
    comments: Int64,  # [rows, 2] where the comment starts and ends; or [0, 2]
    row_ends: Int64,  # [rows + 1]
    indices: Int32,  # [entries]
    values: Float64,  # [entries]
) -> LetorPass:
    """Fill the arrays from the text of a LETOR file, up to the first fault."""

def spread(row_ends: Int64, indices: Int32, base: int, values: Float64, matrix: Float64) -> None:
    """Put the entries of every row into a matrix of zeros [rows, columns]."""

class XCFault(enum.Enum):
    """What may be wrong with a token of an XC file."""

    FINE = ...
    BAD_LABEL = ...
    LARGE_LABEL = ...
    LABEL_TWICE = ...
    BAD_INDEX = ...
    LARGE_INDEX = ...
    ZERO_INDEX = ...
    TWICE = ...
    BAD_VALUE = ...

class XCPass:
    """What a pass over an XC file found; −1 is nowhere."""

    fault: XCFault
    fault_at: int
    rows: int
    filled_rows: int  # without those at the end that have nothing
    labels: int
    entries: int
    largest_label: int
    largest_column: int
    unsorted_labels: bool
    unsorted: bool
    left: list[tuple[int, int, int]]  # numbers whose float32 is left to Python: entry, start, end

def tally_xc(text: bytes, start: int) -> tuple[int, int, int]:
    """Count newlines, colons and commas: what rows, entries and labels are at most."""

def scan_xc(
    text: bytes,
    start: int,
    with_labels: bool,
    base: int,
    n_features: int,
    n_labels: int,
    label_ends: Int64,  # [rows + 1]
    labels: Int32,  # [label entries]
    row_ends: Int64,  # [rows + 1]
    indices: Int32,  # [entries]
    values: Float32,  # [entries]
) -> XCPass:
    """Fill the arrays from the lines of an XC file that start at a place, up to the first fault."""
