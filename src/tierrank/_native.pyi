"""The compiled core: arrays in, arrays filled. Arrays are contiguous, and of the kinds given here.

Floats are float32 or float64, all of one call the same, except where `Doubles` asks for float64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

compiler: str

def instructions() -> str:
    """The set of instructions that is used."""

def all_instructions() -> list[str]:
    """The sets that this machine runs, from the plainest to the widest."""

# -- pairs ----------------------------------------------------------------------------------------

def pair_sums(
    kind: str,
    scores: Floats,
    start: Integers,
    stop: Integers,
    parameter: float,
    threads: int,
    loss: Doubles,
    gradient: Doubles,
    by_parameter: Doubles,
) -> None:
    """Pairs of item i with items start[i] … stop[i] − 1, all after i; all arrays [items]."""

def block_pair_sums(
    kind: str,
    named: Floats,
    borders: Integers,
    scores: Floats,
    counts: Floats,
    parameter: float,
    threads: int,
    loss: Doubles,
    slope: Doubles,
    label_slope: Floats,
) -> None:
    """Pairs of what lists name with all labels of a block.

    named, slope [entries]; borders [lists + 1]; scores [lists, labels]; counts [labels]; loss
    [lists]; label_slope [lists, labels], or [0, 0].
    """

def stage_bends(
    kind: str,
    rows: Doubles,
    tier_offsets: Integers,
    list_offsets: Integers,
    threads: int,
    out: Doubles,
) -> None:
    """Second derivatives of stages, by row; kind: "breslow", "efron" or "one draw".

    rows, out [rows], sorted by list and tier; tier_offsets [tiers + 1] ranges of rows;
    list_offsets [lists + 1] ranges of tiers.
    """

# -- strict lists ---------------------------------------------------------------------------------

class StrictLists:
    """Lists without ties, whose items share worths. items [entries]; offsets [lists + 1].

    Below, worth, vector, gradient and out are [items] or [items, items], and are added to;
    inverse and slopes are [entries].
    """

    def __init__(
        self, items: Integers, offsets: Integers, counts: Doubles, n_items: int
    ) -> None: ...
    def value_and_gradient(self, worth: Doubles, inverse: Doubles, gradient: Doubles) -> float:
        """Σ count log T; fills `inverse`, 1/T, and adds to the gradient."""

    def product(self, worth: Doubles, inverse: Doubles, vector: Doubles, out: Doubles) -> None:
        """Add H · vector."""

    def diagonal(self, worth: Doubles, inverse: Doubles, out: Doubles) -> None:
        """Add the diagonal of H."""

    def matrix(self, worth: Doubles, inverse: Doubles, out: Doubles) -> None:
        """Add H, each pair once, and half of the diagonal."""

    def entry_gradients(self, worth: Doubles, inverse: Doubles, slopes: Doubles) -> None:
        """Set the slopes of every entry, as if its list had been seen once."""

# -- lists with ties ------------------------------------------------------------------------------

class TiedLists:
    """Lists with small ties, whose items share worths.

    items [entries]; tier_offsets [tiers + 1]; list_offsets [lists + 1]; counts [lists]. Below,
    worth, log_worth and vector are [items], below and value [tiers], slopes [entries], matrices
    [matrix_size]; `out` is [items] or [items, items] and is added to, except by entry_gradients.
    """

    matrix_size: int

    def __init__(
        self,
        items: Integers,
        tier_offsets: Integers,
        list_offsets: Integers,
        counts: Doubles,
        n_items: int,
    ) -> None: ...
    def terms(
        self,
        worth: Doubles,
        log_worth: Doubles,
        threads: int,
        below: Doubles,
        value: Doubles,
        slopes: Doubles,
        matrices: Doubles,
    ) -> None:
        """Set below, value, slopes and, unless it is empty, matrices."""

    def entry_gradients(
        self, worth: Doubles, below: Doubles, slopes: Doubles, out: Doubles
    ) -> None:
        """Set the slopes of every entry, [entries], as if its list had been seen once."""

    def product(
        self,
        worth: Doubles,
        below: Doubles,
        slopes: Doubles,
        matrices: Doubles,
        vector: Doubles,
        out: Doubles,
    ) -> None:
        """Add H · vector of the log-likelihood."""

    def diagonal(
        self, worth: Doubles, below: Doubles, slopes: Doubles, matrices: Doubles, out: Doubles
    ) -> None:
        """Add the diagonal of H."""

    def matrix(
        self, worth: Doubles, below: Doubles, slopes: Doubles, matrices: Doubles, out: Doubles
    ) -> None:
        """Add H, each pair once, and half of the diagonal."""
