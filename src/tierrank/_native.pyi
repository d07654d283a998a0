"""The compiled core (`native/`): arrays in, arrays filled.

Arrays are contiguous, and of exactly these types. Floats are float32 or float64, all of one call
the same, except where `Float64` asks for the one.
"""

import enum
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
Bool = npt.NDArray[np.bool_]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]

compiler: str
build: str

def instructions() -> str:
    """The set of instructions that is used."""

def all_instructions() -> list[str]:
    """The sets that this machine runs, from the plainest to the widest."""

# The likelihood.

class Layout:
    """Lists of tiers as `Tiers.layout` gives them: every index is checked, once."""

    def __init__(
        self,
        row_offsets: Int64,  # [lists + 1]
        order: Int64,  # [rows of upper tiers]
        tier_offsets: Int64,  # [upper tiers + 1]
        list_offsets: Int64,  # [lists + 1]
    ) -> None: ...
    @property
    def lists(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of lists that threads are given; long lists are not among them."""

def log_prob(
    layout: Layout,
    scores: Floats,  # [rows]
    bottom: Float64 | None,  # [lists] lse of what stands below all rows, −inf for nothing
    tier_weights: Float64 | None,  # [upper tiers], all 1 if there are none
    threads: int,
    log_prob: Floats,  # [lists]; NaN where a score is not finite
    gradient: Floats | None = None,  # [rows]
    bottom_gradient: Float64 | None = None,  # [lists]
    diagonal: Float64 | None = None,  # [rows] of each list's Hessian
) -> int:
    """Value, gradient and the Hessian's diagonal, in one pass: fills what is given.

    Returns the number of the first list whose log-probability is NaN, or −1.
    """

def hessian_product(
    layout: Layout,
    scores: Floats,
    bottom: Float64 | None,
    tier_weights: Float64 | None,
    threads: int,
    vector: Float64 | None,  # [rows]; None asks for the diagonal
    bottom_vector: Float64 | None,  # [lists]
    out: Float64,  # [rows]
    bottom_out: Float64,  # [lists]
) -> None:
    """Each list's Hessian times its part of a vector, or its diagonal."""

def staged_log_prob(
    choice: str,
    layout: Layout,
    scores: Floats,  # [rows]
    bottom: Float64 | None,  # [lists]
    threads: int,
    value: Float64,  # [lists]; NaN where a score is not finite
    gradient: Floats | None = None,  # [rows]
    bottom_gradient: Float64 | None = None,  # [lists], if there are a gradient and a bottom
) -> bool:
    """Tiers chosen one after the other: "breslow", "efron", "subset" or "subset, backward".

    Says whether all scores are finite.
    """

def cross_entropy(
    layout: Layout,
    scores: Floats,  # [rows]
    grades: Float64,  # by list, of its upper tiers, and of its last one (or 0)
    grade_offsets: Int64,  # [lists + 1]
    above_0: bool,  # whether grades up to 0 count for nothing
    threads: int,
    value: Float64,  # [lists] Σ p log softmax, p ∝ e^grade; NaN where a score is not finite
    gradient: Floats | None = None,  # [rows]
) -> bool:
    """Softmax of grades against that of scores. Says whether all scores are finite."""

def scale_lists(row_offsets: Int64, rows: Floats, by_list: Floats, out: Floats) -> None:
    """Every row times the number of its list."""

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

# Graphs, and walks through trees.

def kahn(
    node_offsets: Int64,  # [graphs + 1]
    edge_offsets: Int64,  # [nodes + 1]
    below: Int64,  # [edges]
    waiting: Int64,  # [nodes] for how many nodes each waits; counted down
    order: Int64,  # [nodes] to fill: a topological order, graph by graph
    layer: Int64,  # [nodes] to fill: the longest path that ends there
) -> int:
    """Sort the nodes of graphs; give the first graph that has a cycle, or −1."""

def nest_lists(
    by_size: Int64,  # lists, the shortest first
    list_starts: Int64,  # [lists + 1]
    items: Int32,  # [entries]
    joined: Int32,  # [items] to fill: the link with which an item entered the chain, or −1
    link: Int32,  # [lists] to fill: the link that a list is, or −1
    edge_list: Int32,  # [entries] to fill
    edge_item: Int32,  # [entries] to fill
) -> tuple[int, int]:
    """Sort lists into a chain of nested ones, and those with edges to it; count edges and links."""

def forest_scores(
    X: Any,  # [rows, features] float32 or float64, of any strides
    tree_offsets: Int64,  # [trees + 1]
    feature: Int32,  # [nodes], as what follows
    threshold: Float64,
    left: Int32,
    missing: UInt8,
    default_left: Bool,
    value: Float64,
    out: Float64,  # [rows]
    threads: int,
    category_counts: Int32 | None = None,  # [nodes] how many categories go left
    categories: Int32 | None = None,  # their codes, node after node, rising within one
) -> None:
    """Add to `out` what every tree says of the rows."""

def sparse_forest_scores(
    data: Any,  # [entries] float32 or float64
    indices: Any,  # [entries] int32 or int64
    indptr: Any,  # [rows + 1] of the same type
    n_features: int,
    tree_offsets: Int64,
    feature: Int32,
    threshold: Float64,
    left: Int32,
    missing: UInt8,
    default_left: Bool,
    value: Float64,
    out: Float64,
    threads: int,
    category_counts: Int32 | None = None,
    categories: Int32 | None = None,
) -> None:
    """Add to `out` what every tree says of the rows of a CSR matrix without duplicates."""

# Random draws, and inner products.

def draw_rows(
    bit_generator: object,  # the capsule of numpy's; hold its lock
    offsets: Int64,  # [rows + 1] row i fills the places offsets[i] to offsets[i + 1]
    topics: Int64,  # [rows, slots]
    running_weights: Float64,  # [rows, slots] running sums of the weights of topics, up to 1
    topic_offsets: Int64,  # [topics + 1]
    members: Int32,  # [members] of all topics
    running_worths: Float64,  # [members + 1] starts with 0 and adds up all members' worths
    last_place: Int64,  # [items] where each was put last; −1 before the first row
    items: Int32,  # [places] to fill
    times: Float32,  # [places] to fill: how often each was drawn
) -> None:
    """Fill rows with different items, drawn from their topics by worth."""

def inner_products(
    starts: Int64,  # [rows + 1]
    columns: Int64,  # [entries]
    Z: Float64,  # [rows, width]
    out: Float64,  # [entries]
    threads: int,
) -> None:
    """Fill Z_i · Z_j for the entries i, j of a sparse pattern."""

# Pairs.

def pair_sums(
    kind: str,
    scores: Floats,
    start: Int64,
    stop: Int64,
    parameter: float,
    threads: int,
    loss: Float64,
    gradient: Float64,
    by_parameter: Float64,
) -> None:
    """Pairs of item i with items start[i] … stop[i] − 1, all after i; all arrays [items]."""

def block_pair_sums(
    kind: str,
    named: Floats,
    borders: Int64,
    scores: Floats,
    counts: Floats,
    parameter: float,
    threads: int,
    loss: Float64,
    slope: Float64,
    label_slope: Floats,
) -> None:
    """Pairs of what lists name with all labels of a block.

    named, slope [entries]; borders [lists + 1]; scores [lists, labels]; counts [labels]; loss
    [lists]; label_slope [lists, labels], or [0, 0].
    """

# Objectives for a metric. Rows by list and, best first, tier; gains [rows] are not negative.

def lambda_loss(
    weighting: str,
    metric: str,
    k: int,
    sigma: float,
    mu: float,
    offsets: Int64,  # [lists + 1] rows of a list
    tiers: Int64,  # [rows]
    scores: Float64,  # [rows]
    gains: Float64,  # [rows]
    threads: int,
    value: Float64,  # [lists]
    gradient: Float64 | None = None,  # [rows]
    hessian: Float64 | None = None,  # [rows] its diagonal
) -> None:
    """Weighted logistic pairs, with the weights of the order that the scores give."""

def approx_ndcg(
    temperature: float,
    offsets: Int64,
    scores: Float64,
    gains: Float64,
    threads: int,
    value: Float64,
    gradient: Float64 | None = None,
) -> None:
    """Gains discounted by smooth ranks."""

def expected_dcg(
    k: int,
    fineness: float,
    offsets: Int64,
    scores: Float64,
    gains: Float64,
    threads: int,
    value: Float64,
    gradient: Float64 | None = None,
) -> None:
    """DCG@k as the Plackett-Luce model expects it; `fineness` times the usual step of nodes."""

def stage_hessians(
    kind: str,
    rows: Float64,
    tier_offsets: Int64,
    list_offsets: Int64,
    threads: int,
    out: Float64,
) -> None:
    """Second derivatives of stages, by row; kind: "breslow", "efron" or "one draw".

    rows, out [rows], sorted by list and tier; tier_offsets [tiers + 1] ranges of rows;
    list_offsets [lists + 1] ranges of tiers.
    """

# Lists without ties.

class StrictLists:
    """Lists without ties, whose items share worths. items [entries]; offsets [lists + 1].

    Below, worth, vector, gradient and out are [items] or [items, items], and are added to;
    inverse and slopes are [entries].
    """

    def __init__(self, items: Int64, offsets: Int64, counts: Float64, n_items: int) -> None: ...
    def value_and_gradient(self, worth: Float64, inverse: Float64, gradient: Float64) -> float:
        """Σ count log T; fills `inverse`, 1/T, and adds to the gradient."""

    def product(self, worth: Float64, inverse: Float64, vector: Float64, out: Float64) -> None:
        """Add H · vector."""

    def diagonal(self, worth: Float64, inverse: Float64, out: Float64) -> None:
        """Add the diagonal of H."""

    def matrix(self, worth: Float64, inverse: Float64, out: Float64) -> None:
        """Add H, each pair once, and half of the diagonal."""

    def entry_gradients(self, worth: Float64, inverse: Float64, slopes: Float64) -> None:
        """Set the slopes of every entry, as if its list had been seen once."""

# Lists with ties.

class TiedLists:
    """Lists with small ties, whose items share worths.

    items [entries]; tier_offsets [tiers + 1]; list_offsets [lists + 1]; counts [lists]. Below,
    worth, log_worth and vector are [items], below and value [tiers], slopes [entries], matrices
    [matrix_size]; `out` is [items] or [items, items] and is added to, except by entry_gradients.
    """

    matrix_size: int

    def __init__(
        self,
        items: Int64,
        tier_offsets: Int64,
        list_offsets: Int64,
        counts: Float64,
        n_items: int,
    ) -> None: ...
    def terms(
        self,
        worth: Float64,
        log_worth: Float64,
        threads: int,
        below: Float64,
        value: Float64,
        slopes: Float64,
        matrices: Float64,
    ) -> None:
        """Set below, value, slopes and, unless it is empty, matrices."""

    def entry_gradients(
        self, worth: Float64, below: Float64, slopes: Float64, out: Float64
    ) -> None:
        """Set the slopes of every entry, [entries], as if its list had been seen once."""

    def product(
        self,
        worth: Float64,
        below: Float64,
        slopes: Float64,
        matrices: Float64,
        vector: Float64,
        out: Float64,
    ) -> None:
        """Add H · vector of the log-likelihood."""

    def diagonal(
        self, worth: Float64, below: Float64, slopes: Float64, matrices: Float64, out: Float64
    ) -> None:
        """Add the diagonal of H."""

    def matrix(
        self, worth: Float64, below: Float64, slopes: Float64, matrices: Float64, out: Float64
    ) -> None:
        """Add H, each pair once, and half of the diagonal."""
