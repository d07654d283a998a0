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
